/* The kinds of rows as data, and copies of rows. */
#include "core/rows.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- the fields ---- */

#define FIELD(kind, member, column, texts, least)                                                  \
    {                                                                                              \
        column, texts, RV_FIELD_##kind, RV_COLUMNS_##least, offsetof(struct ROW, member)           \
    }
#define RV_ROW(name, table, keys) static const struct rv_field name##_fields[] = {
#define RV_ROW_END                                                                                 \
    }                                                                                              \
    ;
#define RV_FIELD_AS(kind, member, column) FIELD(kind, member, column, NULL, PLAIN),
#define RV_TEXT_AS(level, member, column) FIELD(TEXT, member, column, NULL, level),
#define RV_WORD(type, member, column) FIELD(WORD, member, column, &rv_texts_##type, PLAIN),
#define RV_STEP_ID(member)                                                                         \
    FIELD(OWNER, member.task, "task", NULL, PLAIN),                                                \
        FIELD(UINT32, member.number, "step", NULL, PLAIN),
#define RV_GIVEN(column) {column, NULL, RV_FIELD_GIVEN, RV_COLUMNS_PLAIN, 0},
#include "core/tbl/row.def"

#define RV_ROW(name, table, keys) static const struct rv_row_text name##_texts[] = {
#define RV_ROW_END                                                                                 \
    }                                                                                              \
    ;
#define RV_TEXT_AS(level, member, column) {offsetof(struct ROW, member), RV_COLUMNS_##level},
#include "core/tbl/row.def"

#define RV_ROW(name, as, keyed)                                                                    \
    const struct rv_row_kind rv_row_##name = {.table = as,                                         \
                                              .bytes = sizeof(struct ROW),                         \
                                              .fields = name##_fields,                             \
                                              .count = COUNT(name##_fields),                       \
                                              .keys = keyed,                                       \
                                              .texts = name##_texts,                               \
                                              .texts_count = COUNT(name##_texts),
#define RV_ROW_END                                                                                 \
    }                                                                                              \
    ;
#define RV_UNREADABLE(member) .unreadable = offsetof(struct ROW, member),
#include "core/tbl/row.def"

/* ---- copies ---- */

size_t rv_row_text_bytes(const struct rv_row_kind *kind, enum rv_columns columns, const void *from)
{
    size_t bytes = 0;
    for (size_t i = 0; i < kind->texts_count; i++) {
        const struct rv_row_text *text = &kind->texts[i];
        const struct rv_str *value = (const void *)((const char *)from + text->offset);
        if (text->least <= columns && value->at != NULL)
            bytes += value->len + 1;
    }
    return bytes;
}

void rv_row_copy_to(const struct rv_row_kind *kind, enum rv_columns columns, const void *from,
                    void *ret_row, char *at)
{
    memcpy(ret_row, from, kind->bytes);
    for (size_t i = 0; i < kind->texts_count; i++) {
        const struct rv_row_text *text = &kind->texts[i];
        struct rv_str *value = (void *)((char *)ret_row + text->offset);
        if (text->least > columns)
            *value = RV_STR_NONE;
        if (value->at == NULL)
            continue;
        memcpy(at, value->at, value->len);
        at[value->len] = '\0';
        value->at = at;
        at += value->len + 1;
    }
}

enum rv_err rv_row_read(const struct rv_row_kind *kind, enum rv_columns columns,
                        struct rv_arena *arena, const void *from, void *ret_row)
{
    char *at = rv_arena_bytes(arena, rv_row_text_bytes(kind, columns, from) + 1);
    if (at == NULL)
        return arena->refused;
    rv_row_copy_to(kind, columns, from, ret_row, at);
    return RV_OK;
}

void *rv_row_copy(const struct rv_row_kind *kind, enum rv_columns columns, struct rv_arena *arena,
                  const void *from)
{
    void *copy = rv_arena_take(arena, kind->bytes);
    if (copy == NULL || rv_row_read(kind, columns, arena, from, copy) != RV_OK)
        return NULL;
    return copy;
}
