/* Rows as columns: what core/tbl/row.def says of each field, bound and read. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"
#include "base/time.h"

void rv_sqlite_bind_str(sqlite3_stmt *statement, int parameter, struct rv_str text)
{
    if (text.at == NULL)
        sqlite3_bind_null(statement, parameter);
    else
        sqlite3_bind_text64(statement, parameter, text.at, text.len, SQLITE_STATIC, SQLITE_UTF8);
}

/* The connection belongs to one thread, so a value may be looked at without the connection's lock,
 * of which each sqlite3_column_* would ask. */
static struct rv_str value_str(sqlite3_value *value)
{
    if (sqlite3_value_type(value) == SQLITE_NULL)
        return RV_STR_NONE;
    const char *at = sqlite3_value_blob(value);
    int bytes = sqlite3_value_bytes(value);
    return bytes > 0 ? (struct rv_str){at, (size_t)bytes} : RV_STR("");
}

struct rv_str rv_sqlite_column_str(sqlite3_stmt *statement, int column)
{
    return value_str(sqlite3_column_value(statement, column));
}

/* "3 4": numbers in decimal, one space between; no text at all for none. */
static struct rv_str open_text_of(const struct rv_task *task, char text[static RV_OPEN_TEXT_BYTES])
{
    rv_assert(task->open_count <= RV_OPEN_STEPS_MAX);
    char *at = text;
    for (uint32_t i = 0; i < task->open_count; i++) {
        if (i > 0)
            *at++ = ' ';
        char digits[10];
        int n = 0;
        uint32_t rest = task->open[i];
        do {
            digits[n++] = (char)('0' + rest % 10);
            rest /= 10;
        } while (rest > 0);
        while (n > 0)
            *at++ = digits[--n];
    }
    rv_assert(at <= text + RV_OPEN_TEXT_BYTES);
    return (struct rv_str){text, (size_t)(at - text)};
}

static bool open_text_read(struct rv_str text, struct rv_task *task)
{
    task->open_count = 0;
    size_t at = 0;
    while (at < text.len) {
        uint64_t number = 0;
        size_t digits = 0;
        for (; at < text.len && text.at[at] >= '0' && text.at[at] <= '9'; at++, digits++)
            number = number * 10 + (uint64_t)(text.at[at] - '0');
        bool last = at == text.len;
        bool spaced = !last && text.at[at] == ' ' && at + 1 < text.len;
        if (digits == 0 || digits > 10 || number > UINT32_MAX || !(last || spaced) ||
            task->open_count == RV_OPEN_STEPS_MAX) {
            task->open_count = 0;
            return false;
        }
        task->open[task->open_count++] = (uint32_t)number;
        at += 1;
    }
    return text.at != NULL;
}

/* Whether the parameter holds that already; else it does from now on. */
static bool bound_same(struct rv_bound *bound, enum rv_bound_kind kind, int64_t value)
{
    bool same = bound->kind == kind && bound->value == value;
    *bound = (struct rv_bound){kind, value};
    return same;
}

static void number_bind(sqlite3_stmt *statement, int parameter, struct rv_bound *bound,
                        int64_t value)
{
    if (!bound_same(bound, RV_BOUND_NUMBER, value))
        sqlite3_bind_int64(statement, parameter, value);
}

static void str_bind(sqlite3_stmt *statement, int parameter, struct rv_bound *bound,
                     struct rv_str text)
{
    if (text.at == NULL && bound_same(bound, RV_BOUND_NULL, 0))
        return;
    if (text.at != NULL)
        bound->kind = RV_BOUND_OTHER;
    rv_sqlite_bind_str(statement, parameter, text);
}

static void text_bind(const struct rv_sqlite *store, sqlite3_stmt *statement,
                      const struct rv_row_kind *kind, int i, struct rv_bound *bound,
                      struct rv_str text)
{
    if (!rv_apart_is(store->apart_bytes, kind, &kind->fields[i], text))
        str_bind(statement, i + 1, bound, text);
    else if (!bound_same(bound, RV_BOUND_APART, 0))
        sqlite3_bind_blob(statement, i + 1, "", 0, SQLITE_STATIC);
}

static void column_bind(struct rv_sqlite *store, sqlite3_stmt *statement,
                        const struct rv_row_kind *kind, int i, struct rv_bound *bound,
                        const void *row)
{
    const struct rv_field *column = &kind->fields[i];
    const void *field = (const char *)row + column->offset;
    int parameter = i + 1;
    switch (column->kind) {
    case RV_FIELD_GIVEN:
        break;
    case RV_FIELD_COUNT:
    case RV_FIELD_INT64:
    case RV_FIELD_UINT64:
    case RV_FIELD_TASK_ID:
    case RV_FIELD_OWNER:
        number_bind(statement, parameter, bound, *(const int64_t *)field);
        break;
    case RV_FIELD_UINT32:
        number_bind(statement, parameter, bound, *(const uint32_t *)field);
        break;
    case RV_FIELD_UINT8:
        number_bind(statement, parameter, bound, *(const uint8_t *)field);
        break;
    case RV_FIELD_BOOL:
        number_bind(statement, parameter, bound, *(const bool *)field);
        break;
    case RV_FIELD_INSTANT:
        if (*(const int64_t *)field != 0)
            number_bind(statement, parameter, bound, *(const int64_t *)field);
        else if (!bound_same(bound, RV_BOUND_NULL, 0))
            sqlite3_bind_null(statement, parameter);
        break;
    case RV_FIELD_TEXT:
        text_bind(store, statement, kind, i, bound, *(const struct rv_str *)field);
        break;
    case RV_FIELD_WORD: {
        unsigned value = *(const unsigned *)field;
        rv_assert(value < column->texts->count);
        if (!bound_same(bound, RV_BOUND_ENUM, value))
            rv_sqlite_bind_str(statement, parameter, column->texts->texts[value]);
        break;
    }
    case RV_FIELD_OPEN:
        str_bind(statement, parameter, bound, open_text_of(row, store->open_text));
        break;
    }
}

void rv_sqlite_bind(struct rv_sqlite *store, sqlite3_stmt *statement,
                    const struct rv_row_kind *kind, struct rv_bound *bound, const void *row)
{
    rv_assert(kind->count <= RV_COLUMNS_MAX);
    for (int i = 0; i < kind->count; i++)
        column_bind(store, statement, kind, i, &bound[i], row);
}

/* A value that it cannot have: the first of its table in a row that says so itself. */
static bool enum_read(const struct rv_field *column, struct rv_str text, bool told, unsigned *ret)
{
    *ret = told ? 0 : (unsigned)column->texts->count;
    return rv_texts_find(column->texts, text, ret);
}

/* A whole number within the bounds; else 0. */
static bool int_read(sqlite3_value *value, int64_t min, int64_t max, int64_t *ret_value)
{
    *ret_value = sqlite3_value_int64(value);
    bool good = sqlite3_value_type(value) == SQLITE_INTEGER && *ret_value >= min &&
                *ret_value <= max;
    if (!good)
        *ret_value = 0;
    return good;
}

/* Any column but a TEXT; false: it holds no value that it can have. `told`: the row says so. */
static bool value_read(sqlite3_value *stored, const struct rv_field *column, bool told, void *row)
{
    void *field = (char *)row + column->offset;
    int64_t value = 0;
    bool good = true;
    switch (column->kind) {
    case RV_FIELD_GIVEN:
    case RV_FIELD_TEXT:
        break;
    case RV_FIELD_COUNT:
        good = int_read(stored, 0, INT64_MAX - 1, &value);
        *(int64_t *)field = value;
        break;
    case RV_FIELD_INT64:
    case RV_FIELD_UINT64:
    case RV_FIELD_TASK_ID:
    case RV_FIELD_OWNER:
        return int_read(stored, INT64_MIN, INT64_MAX, field);
    case RV_FIELD_INSTANT:
        *(int64_t *)field = 0;
        return sqlite3_value_type(stored) == SQLITE_NULL ||
               int_read(stored, -RV_INSTANT_FAR, RV_INSTANT_FAR, field);
    case RV_FIELD_UINT32:
        good = int_read(stored, 0, UINT32_MAX, &value);
        *(uint32_t *)field = (uint32_t)value;
        break;
    case RV_FIELD_UINT8:
        good = int_read(stored, 0, UINT8_MAX, &value);
        *(uint8_t *)field = (uint8_t)value;
        break;
    case RV_FIELD_BOOL:
        good = int_read(stored, 0, 1, &value);
        *(bool *)field = value != 0;
        break;
    case RV_FIELD_WORD:
        return enum_read(column, value_str(stored), told, field);
    case RV_FIELD_OPEN:
        return open_text_read(value_str(stored), row);
    }
    return good;
}

/* A TEXT of the row at which the statement stands, whose keys come first; *ret_good false: it
 * stands apart (apart.c), and is not there. */
static enum rv_err text_read(struct rv_sqlite *store, sqlite3_stmt *statement,
                             const struct rv_row_kind *kind, int i, struct rv_arena *arena,
                             struct rv_str *ret_text, bool *ret_good)
{
    const struct rv_field *column = &kind->fields[i];
    sqlite3_value *value = sqlite3_column_value(statement, i);
    struct rv_str stored = value_str(value);
    bool empty = stored.at != NULL && stored.len == 0;
    *ret_good = true;
    if (empty && rv_apart_may(kind, column) && sqlite3_value_type(value) == SQLITE_BLOB) {
        struct rv_step_id row = {{sqlite3_column_int64(statement, 0)}, 0};
        if (kind->keys > 1)
            row.number = (uint32_t)sqlite3_column_int64(statement, 1);
        RV_TRY(rv_apart_read(store, row, column->column, arena, ret_text));
        *ret_good = ret_text->at != NULL;
        return RV_OK;
    }
    *ret_text = rv_arena_str(arena, stored);
    return stored.at != NULL && ret_text->at == NULL ? arena->refused : RV_OK;
}

enum rv_err rv_sqlite_read(struct rv_sqlite *store, sqlite3_stmt *statement,
                           const struct rv_row_kind *kind, struct rv_arena *arena, void *row)
{
    bool told = kind->unreadable != 0;
    rv_assert(sqlite3_column_count(statement) >= kind->count);
    for (int i = 0; i < kind->count; i++) {
        const struct rv_field *column = &kind->fields[i];
        void *field = (char *)row + column->offset;
        bool good;
        if (column->kind == RV_FIELD_TEXT)
            RV_TRY(text_read(store, statement, kind, i, arena, field, &good));
        else
            good = value_read(sqlite3_column_value(statement, i), column, told, row);
        if (!good && told)
            *((bool *)((char *)row + kind->unreadable)) = true;
    }
    return RV_OK;
}
