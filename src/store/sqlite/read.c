/* Rows by their ids, and the open tasks. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

/* The row at which the statement stands, on the arena. */
static enum rv_err row_take(sqlite3_stmt *statement, const struct rv_table *table,
                            struct rv_arena *arena, size_t bytes, void **ret_row)
{
    void *row = rv_arena_zero(arena, 1, bytes);
    if (row == NULL)
        return arena->refused;
    enum rv_err err = rv_sqlite_read(statement, table, arena, row);
    if (err == RV_OK)
        *ret_row = row;
    return err;
}

/* Runs a statement that finds one row or none, and resets it. */
static enum rv_err row_find(struct rv_sqlite *store, sqlite3_stmt *statement,
                            const struct rv_table *table, struct rv_arena *arena, size_t bytes,
                            void **ret_row)
{
    bool there = false;
    enum rv_err err = rv_sqlite_next(store, statement, &there);
    if (there)
        err = row_take(statement, table, arena, bytes, ret_row);
    sqlite3_reset(statement);
    return err;
}

enum rv_err rv_sqlite_load_tasks(struct rv_store *base, struct rv_arena *arena,
                                 const struct rv_task_id *ids, size_t count,
                                 const struct rv_task **ret_tasks)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_TASK_LOAD, &statement);
    for (size_t i = 0; err == RV_OK && i < count; i++) {
        void *row = NULL;
        sqlite3_bind_int64(statement, 1, ids[i].value);
        err = row_find(store, statement, &rv_table_task, arena, sizeof(struct rv_task), &row);
        ret_tasks[i] = row;
    }
    return err;
}

enum rv_err rv_sqlite_load_steps(struct rv_store *base, struct rv_arena *arena,
                                 const struct rv_step_id *ids, size_t count,
                                 const struct rv_step **ret_steps)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_STEP_LOAD, &statement);
    for (size_t i = 0; err == RV_OK && i < count; i++) {
        void *row = NULL;
        sqlite3_bind_int64(statement, 1, ids[i].task.value);
        sqlite3_bind_int64(statement, 2, ids[i].number);
        err = row_find(store, statement, &rv_table_step, arena, sizeof(struct rv_step), &row);
        ret_steps[i] = row;
    }
    return err;
}

static enum rv_err key_take(sqlite3_stmt *statement, struct rv_arena *arena, struct rv_key_row *row)
{
    struct rv_str body_hash = rv_sqlite_column_str(statement, 0);
    row->task.value = sqlite3_column_int64(statement, 1);
    row->body_hash = rv_arena_str(arena, body_hash);
    return body_hash.at != NULL && row->body_hash.at == NULL ? arena->refused : RV_OK;
}

enum rv_err rv_sqlite_find_keys(struct rv_store *base, struct rv_arena *arena,
                                const struct rv_str *keys, size_t count,
                                struct rv_key_row *ret_rows)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_KEY_LOAD, &statement);
    for (size_t i = 0; err == RV_OK && i < count; i++) {
        ret_rows[i] = (struct rv_key_row){.key = rv_arena_str(arena, keys[i])};
        if (keys[i].at != NULL && ret_rows[i].key.at == NULL)
            return arena->refused;
        bool there = false;
        rv_sqlite_bind_str(statement, 1, keys[i]);
        err = rv_sqlite_next(store, statement, &there);
        if (there)
            err = key_take(statement, arena, &ret_rows[i]);
        sqlite3_reset(statement);
    }
    return err;
}

enum rv_err rv_sqlite_load_workflow(struct rv_store *base, struct rv_arena *arena, int64_t id,
                                    const struct rv_workflow_row **ret_row)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_WORKFLOW_LOAD, &statement);
    if (err != RV_OK)
        return err;
    void *row = NULL;
    sqlite3_bind_int64(statement, 1, id);
    err = row_find(store, statement, &rv_table_workflow, arena, sizeof(struct rv_workflow_row),
                   &row);
    if (err == RV_OK)
        *ret_row = row;
    return err;
}

enum rv_err rv_sqlite_find_workflow(struct rv_store *base, struct rv_arena *arena,
                                    struct rv_str space, struct rv_str name, struct rv_str version,
                                    const struct rv_workflow_row **ret_row)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    bool newest = version.at == NULL;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(
        store, newest ? RV_SQL_WORKFLOW_FIND_NEWEST : RV_SQL_WORKFLOW_FIND, &statement);
    if (err != RV_OK)
        return err;
    void *row = NULL;
    rv_sqlite_bind_str(statement, 1, space);
    rv_sqlite_bind_str(statement, 2, name);
    if (!newest)
        rv_sqlite_bind_str(statement, 3, version);
    err = row_find(store, statement, &rv_table_workflow, arena, sizeof(struct rv_workflow_row),
                   &row);
    if (err == RV_OK)
        *ret_row = row;
    return err;
}

/* A piece of the walk over the open tasks holds no more than this and one row. */
enum { SCAN_BYTES_MAX = 4 * 1024 * 1024 };

enum rv_err rv_sqlite_scan_open(struct rv_store *base, struct rv_arena *arena,
                                struct rv_task_id after, size_t limit,
                                const struct rv_task **ret_tasks, size_t *ret_count)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_TASK_OPEN, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, after.value);
    sqlite3_bind_int64(statement, 2, (int64_t)limit);
    size_t count = 0;
    bool there = true;
    size_t before = arena->bytes_taken;
    while (err == RV_OK && count < limit && arena->bytes_taken - before < SCAN_BYTES_MAX) {
        err = rv_sqlite_next(store, statement, &there);
        void *row = NULL;
        if (there)
            err = row_take(statement, &rv_table_task, arena, sizeof(struct rv_task), &row);
        if (err != RV_OK || !there)
            break;
        ret_tasks[count++] = row;
        /* An index that is out of order would have the walk go round for ever. */
        if (ret_tasks[count - 1]->id.value <= after.value)
            err = RV_ERR_CORRUPT;
        after = ret_tasks[count - 1]->id;
    }
    sqlite3_reset(statement);
    if (err == RV_OK)
        *ret_count = count;
    return err;
}
