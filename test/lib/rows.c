#include "rows.h"

#include "base/assert.h"
#include "base/time.h"

#include <inttypes.h>
#include <string.h>

/* A field of a row as it is written. */
union at {
    void *any;
    int64_t *int64;
    uint64_t *uint64;
    uint32_t *uint32;
    uint8_t *uint8;
    bool *flag;
    unsigned *word;
    struct rv_str *text;
};

/* ---- values ---- */

struct rv_str row_random_text(struct rv_prng *prng, struct rv_arena *arena)
{
    static const size_t sizes[] = {1, 7, 40, 300, 5000};
    uint64_t kind = rv_prng_below(prng, 10);
    if (kind == 0)
        return RV_STR_NONE;
    if (kind == 1)
        return RV_STR("");
    size_t len = kind < 9 ? sizes[kind % 4] : sizes[4];
    char *at = rv_arena_bytes(arena, len);
    rv_assert(at != NULL);
    for (size_t i = 0; i < len; i++)
        at[i] = (char)(1 + rv_prng_below(prng, 255)); /* any byte but NUL, UTF-8 or not */
    return (struct rv_str){at, len};
}

/* Where the values of a row come from. */
struct source {
    struct rv_prng *prng; /* NULL: no value is zero */
    struct rv_arena *arena;
    int64_t owner;
    unsigned field; /* number of the field */
};

static int64_t int64_of(const struct source *source)
{
    static const int64_t extremes[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_C(1790000000000)};
    if (source->prng == NULL)
        return INT64_C(1790000000000) + source->field;
    uint64_t kind = rv_prng_below(source->prng, 8);
    return kind < 6 ? extremes[kind] : (int64_t)rv_prng_next(source->prng);
}

static int64_t instant_of(const struct source *source)
{
    int64_t at = int64_of(source);
    return at > RV_INSTANT_FAR ? RV_INSTANT_FAR : at < -RV_INSTANT_FAR ? -RV_INSTANT_FAR : at;
}

static uint32_t uint32_of(const struct source *source)
{
    static const uint32_t extremes[] = {0, 1, UINT32_MAX, INT32_MAX, 127, 128};
    if (source->prng == NULL)
        return UINT32_MAX - source->field;
    uint64_t kind = rv_prng_below(source->prng, 8);
    return kind < 6 ? extremes[kind] : (uint32_t)rv_prng_next(source->prng);
}

/* Below `count`. */
static unsigned below(const struct source *source, size_t count)
{
    return source->prng != NULL ? (unsigned)rv_prng_below(source->prng, count)
                                : (unsigned)count - 1;
}

static struct rv_str text_of(const struct source *source, const char *column)
{
    if (source->prng != NULL)
        return row_random_text(source->prng, source->arena);
    struct rv_str text = rv_arena_printf(source->arena, "{\"%s\":\"%u\"}", column, source->field);
    rv_assert(text.at != NULL);
    return text;
}

/* ---- rows ---- */

static void field_set(const struct rv_field *field, const struct source *source, void *row)
{
    union at at = {.any = (char *)row + field->offset};
    struct rv_task *task = row;
    switch (field->kind) {
    case RV_FIELD_GIVEN:
        break;
    case RV_FIELD_INT64:
        *at.int64 = int64_of(source);
        break;
    case RV_FIELD_INSTANT:
        *at.int64 = instant_of(source);
        break;
    case RV_FIELD_UINT64:
        *at.uint64 = (uint64_t)int64_of(source);
        break;
    case RV_FIELD_COUNT:
        *at.int64 = 1;
        break;
    case RV_FIELD_UINT32:
        *at.uint32 = uint32_of(source);
        break;
    case RV_FIELD_UINT8:
        *at.uint8 = (uint8_t)uint32_of(source);
        break;
    case RV_FIELD_BOOL:
        *at.flag = below(source, 2) == 1;
        break;
    case RV_FIELD_TASK_ID:
    case RV_FIELD_OWNER:
        *at.int64 = source->owner;
        break;
    case RV_FIELD_TEXT:
        *at.text = text_of(source, field->column);
        break;
    case RV_FIELD_WORD:
        *at.word = below(source, field->texts->count);
        break;
    case RV_FIELD_OPEN:
        task->open_count = below(source, RV_OPEN_STEPS_MAX + 1);
        for (uint32_t i = 0; i < task->open_count; i++)
            task->open[i] = uint32_of(source);
        break;
    }
}

static void row_set(const struct rv_row_kind *kind, struct source source, void *row)
{
    memset(row, 0, kind->bytes);
    for (int i = 0; i < kind->count; i++) {
        source.field = (unsigned)i;
        field_set(&kind->fields[i], &source, row);
    }
}

void row_full(const struct rv_row_kind *kind, int64_t owner, struct rv_arena *arena, void *row)
{
    row_set(kind, (struct source){.arena = arena, .owner = owner}, row);
}

void row_random(const struct rv_row_kind *kind, int64_t owner, struct rv_prng *prng,
                struct rv_arena *arena, void *row)
{
    row_set(kind, (struct source){.prng = prng, .arena = arena, .owner = owner}, row);
}

/* ---- rows as text ---- */

static void text_dump(struct rv_buf *out, struct rv_str text)
{
    if (text.at == NULL)
        rv_buf_lit(out, "absent");
    char *hex = rv_buf_reserve(out, text.len * 2);
    rv_assert(hex != NULL);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        hex[2 * i] = "0123456789abcdef"[byte >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[byte & 15];
    }
    out->len += text.len * 2;
}

static void field_dump(struct rv_buf *out, const struct rv_field *field, const void *row)
{
    const void *at = (const char *)row + field->offset;
    const struct rv_task *task = row;
    switch (field->kind) {
    case RV_FIELD_GIVEN:
        break;
    case RV_FIELD_INT64:
    case RV_FIELD_UINT64:
    case RV_FIELD_COUNT:
    case RV_FIELD_INSTANT:
    case RV_FIELD_TASK_ID:
    case RV_FIELD_OWNER:
        rv_buf_printf(out, "%" PRId64, *(const int64_t *)at);
        break;
    case RV_FIELD_UINT32:
    case RV_FIELD_WORD:
        rv_buf_printf(out, "%" PRIu32, *(const uint32_t *)at);
        break;
    case RV_FIELD_UINT8:
        rv_buf_printf(out, "%d", *(const uint8_t *)at);
        break;
    case RV_FIELD_BOOL:
        rv_buf_printf(out, "%d", *(const bool *)at);
        break;
    case RV_FIELD_TEXT:
        text_dump(out, *(const struct rv_str *)at);
        break;
    case RV_FIELD_OPEN:
        for (uint32_t i = 0; i < task->open_count; i++)
            rv_buf_printf(out, "%" PRIu32 ",", task->open[i]);
        break;
    }
}

void row_dump(struct rv_buf *out, const struct rv_row_kind *kind, const void *row)
{
    rv_buf_printf(out, "%s", kind->table);
    for (int i = 0; i < kind->count; i++) {
        rv_buf_printf(out, " %s=", kind->fields[i].column);
        field_dump(out, &kind->fields[i], row);
    }
    rv_buf_add_char(out, '\n');
}
