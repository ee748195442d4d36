#include "rows.h"

#include "base/assert.h"

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

static union at field_at(const struct rv_field *field, void *row)
{
    return (union at){.any = (char *)row + field->offset};
}

/* ---- a row with everything ---- */

static void field_fill(const struct rv_row_kind *kind, int i, int64_t owner, struct rv_arena *arena,
                       void *row)
{
    const struct rv_field *field = &kind->fields[i];
    union at at = field_at(field, row);
    struct rv_task *task = row;
    switch (field->kind) {
    case RV_FIELD_GIVEN:
        break;
    case RV_FIELD_INT64:
    case RV_FIELD_INSTANT:
        *at.int64 = INT64_C(1790000000000) + i;
        break;
    case RV_FIELD_UINT64:
        *at.uint64 = UINT64_MAX - (unsigned)i;
        break;
    case RV_FIELD_COUNT:
        *at.int64 = 1;
        break;
    case RV_FIELD_UINT32:
        *at.uint32 = UINT32_MAX - (unsigned)i;
        break;
    case RV_FIELD_UINT8:
        *at.uint8 = (uint8_t)(UINT8_MAX - i);
        break;
    case RV_FIELD_BOOL:
        *at.flag = true;
        break;
    case RV_FIELD_TASK_ID:
    case RV_FIELD_OWNER:
        *at.int64 = owner;
        break;
    case RV_FIELD_TEXT:
        *at.text = rv_arena_printf(arena, "{\"%s\":\"%s\"}", field->column, kind->table);
        rv_assert(at.text->at != NULL);
        break;
    case RV_FIELD_WORD:
        *at.word = (unsigned)field->texts->count - 1;
        break;
    case RV_FIELD_OPEN:
        for (task->open_count = 0; task->open_count < RV_OPEN_STEPS_MAX; task->open_count++)
            task->open[task->open_count] = UINT32_MAX - task->open_count;
        break;
    }
}

void row_full(const struct rv_row_kind *kind, int64_t owner, struct rv_arena *arena, void *row)
{
    memset(row, 0, kind->bytes);
    for (int i = 0; i < kind->count; i++)
        field_fill(kind, i, owner, arena, row);
}

/* ---- random rows ---- */

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

int64_t row_random_int64(struct rv_prng *prng)
{
    static const int64_t extremes[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_C(1790000000000)};
    uint64_t kind = rv_prng_below(prng, 8);
    return kind < 6 ? extremes[kind] : (int64_t)rv_prng_next(prng);
}

static uint32_t random_uint32(struct rv_prng *prng)
{
    static const uint32_t extremes[] = {0, 1, UINT32_MAX, INT32_MAX, 127, 128};
    uint64_t kind = rv_prng_below(prng, 8);
    return kind < 6 ? extremes[kind] : (uint32_t)rv_prng_next(prng);
}

static void field_random(const struct rv_field *field, int64_t owner, struct rv_prng *prng,
                         struct rv_arena *arena, void *row)
{
    union at at = field_at(field, row);
    struct rv_task *task = row;
    switch (field->kind) {
    case RV_FIELD_GIVEN:
        break;
    case RV_FIELD_INT64:
    case RV_FIELD_INSTANT:
        *at.int64 = row_random_int64(prng);
        break;
    case RV_FIELD_UINT64:
        *at.uint64 = (uint64_t)row_random_int64(prng);
        break;
    case RV_FIELD_COUNT:
        *at.int64 = 1;
        break;
    case RV_FIELD_UINT32:
        *at.uint32 = random_uint32(prng);
        break;
    case RV_FIELD_UINT8:
        *at.uint8 = (uint8_t)rv_prng_below(prng, 256);
        break;
    case RV_FIELD_BOOL:
        *at.flag = rv_prng_below(prng, 2) == 1;
        break;
    case RV_FIELD_TASK_ID:
    case RV_FIELD_OWNER:
        *at.int64 = owner;
        break;
    case RV_FIELD_TEXT:
        *at.text = row_random_text(prng, arena);
        break;
    case RV_FIELD_WORD:
        *at.word = (unsigned)rv_prng_below(prng, field->texts->count);
        break;
    case RV_FIELD_OPEN:
        task->open_count = (uint32_t)rv_prng_below(prng, RV_OPEN_STEPS_MAX + 1);
        for (uint32_t i = 0; i < task->open_count; i++)
            task->open[i] = random_uint32(prng);
        break;
    }
}

void row_random(const struct rv_row_kind *kind, int64_t owner, struct rv_prng *prng,
                struct rv_arena *arena, void *row)
{
    memset(row, 0, kind->bytes);
    for (int i = 0; i < kind->count; i++)
        field_random(&kind->fields[i], owner, prng, arena, row);
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
