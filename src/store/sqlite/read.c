/* Rows by their ids, and the open tasks. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"
#include "store/load.h"

#include <string.h>

/* The row at which the statement stands, on the arena. */
static enum rv_err row_take(struct rv_sqlite *store, sqlite3_stmt *statement,
                            const struct rv_row_kind *kind, struct rv_arena *arena, void **ret_row)
{
    void *row = rv_arena_zero(arena, 1, kind->bytes);
    if (row == NULL)
        return arena->refused;
    RV_TRY(rv_sqlite_read(store, statement, kind, arena, row));
    *ret_row = row;
    return RV_OK;
}

/* Runs a statement that finds one row or none, and resets it. */
static enum rv_err row_find(struct rv_sqlite *store, sqlite3_stmt *statement,
                            const struct rv_row_kind *kind, struct rv_arena *arena, void **ret_row)
{
    bool there = false;
    enum rv_err err = rv_sqlite_next(store, statement, &there);
    if (there)
        err = row_take(store, statement, kind, arena, ret_row);
    sqlite3_reset(statement);
    return err;
}

/* Rows by their keys. */
struct gather {
    enum rv_sqlite_sql one, many;
    enum rv_columns columns;
    const struct rv_row_kind *kind;
    size_t count;
    int64_t keys[2 * RV_GATHER_MAX]; /* kind->keys for each row */
    void *rows[RV_GATHER_MAX];       /* what is found; NULL: there is none */
};

/* The place of the row at which the statement stands, `from` being tried first. */
static size_t gather_place(const struct gather *gather, sqlite3_stmt *statement, size_t from)
{
    int keys = gather->kind->keys;
    rv_assert(gather->count > 0);
    int64_t first = sqlite3_column_int64(statement, 0);
    int64_t last = sqlite3_column_int64(statement, keys - 1);
    for (size_t i = 0; i < gather->count; i++) {
        size_t at = (from + i) % gather->count;
        const int64_t *wanted = gather->keys + at * (size_t)keys;
        if (gather->rows[at] == NULL && wanted[0] == first && wanted[keys - 1] == last)
            return at;
    }
    return gather->count;
}

/* One run for all: SQLite keeps the memory of a row's texts for the next row's, and has its start
 * and end once. */
static enum rv_err gather_many(struct rv_sqlite *store, struct gather *gather,
                               struct rv_arena *arena)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement_of(store, gather->many, gather->columns, &statement);
    if (err != RV_OK)
        return err;
    size_t keys = (size_t)gather->kind->keys;
    rv_assert(keys >= 1);
    rv_assert(keys <= sizeof gather->keys / sizeof gather->keys[0] / RV_GATHER_MAX);
    for (size_t i = 0; i < RV_GATHER_MAX * keys; i++) {
        if (i < gather->count * keys)
            sqlite3_bind_int64(statement, (int)i + 1, gather->keys[i]);
        else
            sqlite3_bind_null(statement, (int)i + 1);
    }
    bool there = true;
    size_t at = 0;
    while ((err = rv_sqlite_next(store, statement, &there)) == RV_OK && there) {
        at = gather_place(gather, statement, at);
        err = at < gather->count
                  ? row_take(store, statement, gather->kind, arena, &gather->rows[at])
                  : RV_ERR_CORRUPT; /* an index leads to another row */
        if (err != RV_OK)
            break;
    }
    sqlite3_reset(statement);
    return err;
}

static enum rv_err gather_rows(struct rv_sqlite *store, struct gather *gather,
                               struct rv_arena *arena)
{
    rv_assert(gather->count >= 1);
    rv_assert(gather->count <= RV_GATHER_MAX);
    memset(gather->rows, 0, sizeof gather->rows);
    if (gather->count > 1)
        return gather_many(store, gather, arena);
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement_of(store, gather->one, gather->columns, &statement);
    if (err != RV_OK)
        return err;
    for (int i = 0; i < gather->kind->keys; i++)
        sqlite3_bind_int64(statement, i + 1, gather->keys[i]);
    return row_find(store, statement, gather->kind, arena, &gather->rows[0]);
}

static size_t gather_count(size_t rest)
{
    return rest < RV_GATHER_MAX ? rest : RV_GATHER_MAX;
}

enum rv_err rv_sqlite_load_tasks(struct rv_store *base, struct rv_arena *arena,
                                 enum rv_columns columns, const struct rv_task_id *ids,
                                 size_t count, const struct rv_task **ret_tasks)
{
    struct gather gather = {.one = RV_SQL_TASK_LOAD,
                            .many = RV_SQL_TASK_GATHER,
                            .columns = columns,
                            .kind = &rv_row_task};
    enum rv_err err = RV_OK;
    for (size_t first = 0; err == RV_OK && first < count; first += gather.count) {
        gather.count = gather_count(count - first);
        for (size_t i = 0; i < gather.count; i++)
            gather.keys[i] = ids[first + i].value;
        err = gather_rows((struct rv_sqlite *)base, &gather, arena);
        for (size_t i = 0; i < gather.count; i++)
            ret_tasks[first + i] = gather.rows[i];
    }
    return err;
}

enum rv_err rv_sqlite_load_steps(struct rv_store *base, struct rv_arena *arena,
                                 enum rv_columns columns, const struct rv_step_id *ids,
                                 size_t count, const struct rv_step **ret_steps)
{
    struct gather gather = {.one = RV_SQL_STEP_LOAD,
                            .many = RV_SQL_STEP_GATHER,
                            .columns = columns,
                            .kind = &rv_row_step};
    enum rv_err err = RV_OK;
    for (size_t first = 0; err == RV_OK && first < count; first += gather.count) {
        gather.count = gather_count(count - first);
        for (size_t i = 0; i < gather.count; i++) {
            gather.keys[2 * i] = ids[first + i].task.value;
            gather.keys[2 * i + 1] = ids[first + i].number;
        }
        err = gather_rows((struct rv_sqlite *)base, &gather, arena);
        for (size_t i = 0; i < gather.count; i++)
            ret_steps[first + i] = gather.rows[i];
    }
    return err;
}

static enum rv_err key_find(struct rv_sqlite *store, sqlite3_stmt *statement,
                            struct rv_arena *arena, struct rv_str key, struct rv_key_row *ret_row)
{
    bool there = false;
    *ret_row = (struct rv_key_row){.key = RV_STR_NONE};
    rv_sqlite_bind_str(statement, 1, key);
    RV_TRY(rv_sqlite_next(store, statement, &there));
    if (there)
        return rv_sqlite_read(store, statement, &rv_row_key, arena, ret_row);
    return rv_row_read(&rv_row_key, RV_COLUMNS_ALL, arena, &(struct rv_key_row){.key = key},
                       ret_row);
}

static enum rv_err keys_load(struct rv_sqlite *store, struct rv_wants *load)
{
    sqlite3_stmt *statement = NULL;
    load->key_rows = RV_NEW_ARRAY(load->arena, struct rv_key_row, load->keys_count + 1);
    if (load->key_rows == NULL)
        return load->arena->refused;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_KEY_LOAD, &statement);
    for (size_t i = 0; err == RV_OK && i < load->keys_count; i++) {
        err = key_find(store, statement, load->arena, load->keys[i], &load->key_rows[i]);
        sqlite3_reset(statement);
    }
    return err;
}

/* The statement asks for open states, but SQLite believes the index and does not look at the row
 * itself. What is no state is 0, as in a task that is read whole. */
static void scanned_take(sqlite3_stmt *statement, struct rv_scanned *ret_row)
{
    *ret_row = (struct rv_scanned){.id = {sqlite3_column_int64(statement, 0)},
                                   .revision = sqlite3_column_int64(statement, 1)};
    (void)rv_task_state_parse(rv_sqlite_column_str(statement, 2), &ret_row->state);
}

static enum rv_err scan_read(struct rv_sqlite *store, struct rv_scan *scan)
{
    sqlite3_stmt *statement = NULL;
    struct rv_task_id after = scan->after;
    RV_TRY(rv_sqlite_statement(store, RV_SQL_TASK_OPEN, &statement));
    sqlite3_bind_int64(statement, 1, after.value);
    sqlite3_bind_int64(statement, 2, (int64_t)scan->rows_max);
    size_t count = 0;
    bool there = true;
    enum rv_err err = RV_OK;
    while (err == RV_OK && count < scan->rows_max) {
        err = rv_sqlite_next(store, statement, &there);
        if (err != RV_OK || !there)
            break;
        scanned_take(statement, &scan->rows[count]);
        /* An index that is out of order would have the walk go round for ever. */
        if (scan->rows[count].id.value <= after.value)
            err = RV_ERR_CORRUPT;
        after = scan->rows[count++].id;
    }
    sqlite3_reset(statement);
    rv_assert(count <= scan->rows_max);
    scan->count = count;
    return err;
}

/* Nobody else writes to the file. */
enum rv_err rv_sqlite_load(struct rv_store *base, struct rv_wants *load)
{
    load->now = ((struct rv_sqlite *)base)->slew.shown;
    size_t count = load->count;
    RV_TRY(rv_store_load_name(load, 0));
    if (load->scan != NULL) {
        RV_TRY(scan_read((struct rv_sqlite *)base, load->scan));
        rv_store_load_met(load, &count);
    }
    RV_TRY(rv_store_load_tasks_whole(base, load, count));
    return load->keys_count > 0 ? keys_load((struct rv_sqlite *)base, load) : RV_OK;
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
    RV_TRY(row_find(store, statement, &rv_row_workflow, arena, &row));
    *ret_row = row;
    return RV_OK;
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
    RV_TRY(row_find(store, statement, &rv_row_workflow, arena, &row));
    *ret_row = row;
    return RV_OK;
}
