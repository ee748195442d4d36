/* Long texts of tasks and steps stand in a table of their own, apart from their rows (decision
 * 035): SQLite writes a row with all its pages anew when its length changes, and most changes of a
 * row leave its payloads as they are. The row's column then holds an empty blob, which is none of
 * our texts. The table has a text if and only if its column holds that. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

/* The parameters of every statement on the table. */
static enum rv_err statement_of(struct rv_sqlite *store, enum rv_sqlite_sql sql,
                                struct rv_step_id row, const char *name,
                                sqlite3_stmt **ret_statement)
{
    RV_TRY(rv_sqlite_statement(store, sql, ret_statement));
    sqlite3_bind_int64(*ret_statement, 1, row.task.value);
    sqlite3_bind_int64(*ret_statement, 2, row.number);
    rv_sqlite_bind_str(*ret_statement, 3, rv_str_of(name));
    return RV_OK;
}

enum rv_err rv_apart_read(struct rv_sqlite *store, struct rv_step_id row, const char *name,
                          struct rv_arena *arena, struct rv_str *ret_text)
{
    sqlite3_stmt *statement = NULL;
    bool there = false;
    *ret_text = RV_STR_NONE;
    RV_TRY(statement_of(store, RV_SQL_PAYLOAD_LOAD, row, name, &statement));
    enum rv_err err = rv_sqlite_next(store, statement, &there);
    struct rv_str stored = there ? rv_sqlite_column_str(statement, 0) : RV_STR_NONE;
    if (stored.at != NULL) {
        *ret_text = rv_arena_str(arena, stored);
        err = ret_text->at != NULL ? RV_OK : arena->refused;
    }
    sqlite3_reset(statement);
    return err;
}

enum rv_err rv_apart_remove(struct rv_sqlite *store, struct rv_step_id row, const char *name)
{
    sqlite3_stmt *statement = NULL;
    rv_assert(store->in_transaction);
    RV_TRY(statement_of(store, RV_SQL_PAYLOAD_REMOVE, row, name, &statement));
    return rv_sqlite_run(store, statement);
}

static enum rv_err text_put(struct rv_sqlite *store, enum rv_sqlite_sql sql, struct rv_step_id row,
                            const char *name, struct rv_str text)
{
    sqlite3_stmt *statement = NULL;
    rv_assert(store->in_transaction);
    RV_TRY(statement_of(store, sql, row, name, &statement));
    rv_sqlite_bind_str(statement, 4, text);
    return rv_sqlite_run(store, statement);
}

static const struct rv_str *text_of(const void *row, size_t offset)
{
    return (const void *)((const char *)row + offset);
}

/* Most rows have none. */
static bool any_apart(size_t bytes, const struct rv_row_kind *kind, const void *row,
                      const void *before)
{
    for (size_t i = 0; i < kind->texts_count; i++) {
        size_t offset = kind->texts[i].offset;
        if (text_of(row, offset)->len >= bytes ||
            (before != NULL && text_of(before, offset)->len >= bytes))
            return true;
    }
    return false;
}

static bool same(struct rv_str a, struct rv_str b)
{
    return a.at == b.at ? a.len == b.len : rv_str_eq(a, b);
}

/* KEEP: a row of an earlier version holds a long text itself, and what is unchanged is not there
 * yet. */
enum rv_err rv_apart_write(struct rv_sqlite *store, const struct rv_row_kind *kind,
                           struct rv_step_id id, const void *row, const void *before, bool insert)
{
    bool known = insert || before != NULL;
    rv_assert(!insert || before == NULL);
    if (known && !any_apart(store->apart_bytes, kind, row, before))
        return RV_OK;
    for (int i = 0; i < kind->count; i++) {
        const struct rv_field *field = &kind->fields[i];
        if (!rv_apart_may(kind, field))
            continue;
        struct rv_str text = *text_of(row, field->offset);
        struct rv_str old = before != NULL ? *text_of(before, field->offset) : RV_STR_NONE;
        bool unchanged = before != NULL && same(text, old);
        if (rv_apart_is(store->apart_bytes, kind, field, text))
            RV_TRY(text_put(store, unchanged ? RV_SQL_PAYLOAD_KEEP : RV_SQL_PAYLOAD_PUT, id,
                            field->column, text));
        else if (!known || rv_apart_is(store->apart_bytes, kind, field, old))
            RV_TRY(rv_apart_remove(store, id, field->column));
    }
    return RV_OK;
}
