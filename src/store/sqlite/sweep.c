/* The retention rule on a piece of the store. A walk reads its piece to the end before anything is
 * deleted: SQLite leaves open what a statement sees of rows that go while it stands among them. */
#include "store/sqlite/sqlite_priv.h"

enum { PIECE_MAX = 256 };

struct piece {
    int64_t ids[PIECE_MAX];
    bool takes[PIECE_MAX];
    size_t count;
};

/* The next ids of a walk, each with whether the rule takes it. */
static enum rv_err piece_read(struct rv_sqlite *store, sqlite3_stmt *statement, struct piece *piece,
                              size_t room)
{
    enum rv_err err = RV_OK;
    bool there = true;
    piece->count = 0;
    while (err == RV_OK && there && piece->count < room) {
        err = rv_sqlite_next(store, statement, &there);
        if (!there)
            break;
        piece->ids[piece->count] = sqlite3_column_int64(statement, 0);
        piece->takes[piece->count++] = sqlite3_column_int(statement, 1) != 0;
    }
    sqlite3_reset(statement);
    return err;
}

static size_t room_of(const struct rv_sweep *sweep)
{
    return sweep->rows_max < PIECE_MAX ? sweep->rows_max : PIECE_MAX;
}

static enum rv_err rows_delete(struct rv_sqlite *store, enum rv_sqlite_sql sql, int64_t task,
                               size_t *rows)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, sql, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, task);
    err = rv_sqlite_run(store, statement);
    *rows += (size_t)sqlite3_changes(store->db);
    return err;
}

static enum rv_err task_delete(struct rv_sqlite *store, int64_t task, size_t *rows)
{
    static const enum rv_sqlite_sql parts[] = {
        RV_SQL_SWEEP_STEPS,    RV_SQL_SWEEP_ATTEMPTS, RV_SQL_SWEEP_LATE,
        RV_SQL_SWEEP_NOTICES,  RV_SQL_SWEEP_ALERTS,   RV_SQL_SWEEP_MESSAGES,
        RV_SQL_SWEEP_DELIVERY, RV_SQL_SWEEP_TAGS,     RV_SQL_SWEEP_ERROR_TYPES,
        RV_SQL_SWEEP_HISTORY,  RV_SQL_SWEEP_TASK};
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < sizeof parts / sizeof parts[0]; i++)
        err = rows_delete(store, parts[i], task, rows);
    return err;
}

static enum rv_err sweep_tasks(struct rv_sqlite *store, struct rv_sweep *sweep)
{
    struct piece piece;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_SWEEP_WALK, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, sweep->tasks_after.value);
    sqlite3_bind_int64(statement, 2, sweep->ended_by);
    sqlite3_bind_int64(statement, 3, (int64_t)room_of(sweep));
    err = piece_read(store, statement, &piece, room_of(sweep));
    bool over = piece.count < room_of(sweep);
    struct rv_task_id last = {0};
    size_t rows = 0;
    for (size_t i = 0; err == RV_OK && i < piece.count; i++) {
        struct rv_task_id id = {piece.ids[i]};
        over = over || rv_id_made_at(id) > sweep->ended_by;
        if (rv_id_made_at(id) > sweep->ended_by)
            break;
        if (rows++ >= sweep->rows_max) {
            over = false;
            break;
        }
        last = id;
        if (!piece.takes[i])
            continue;
        sweep->tasks_gone++;
        err = task_delete(store, id.value, &rows);
    }
    sweep->tasks_after = over ? (struct rv_task_id){0} : last;
    return err;
}

static enum rv_err sweep_keys(struct rv_sqlite *store, struct rv_sweep *sweep)
{
    struct piece piece;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_SWEEP_KEY_WALK, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, sweep->keys_after.value);
    sqlite3_bind_int64(statement, 2, (int64_t)room_of(sweep));
    err = piece_read(store, statement, &piece, room_of(sweep));
    bool over = piece.count < room_of(sweep);
    struct rv_task_id last = {0};
    for (size_t i = 0; err == RV_OK && i < piece.count; i++) {
        struct rv_task_id id = {piece.ids[i]};
        if (rv_id_made_at(id) > sweep->keys_by) {
            over = true;
            break;
        }
        last = id;
        if (piece.takes[i])
            err = rows_delete(store, RV_SQL_SWEEP_KEY, id.value, &sweep->keys_gone);
    }
    sweep->keys_after = over ? (struct rv_task_id){0} : last;
    return err;
}

static enum rv_err taskless_delete(struct rv_sqlite *store, enum rv_sqlite_sql sql,
                                   const struct rv_sweep *sweep)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, sql, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, sweep->ended_by);
    sqlite3_bind_int64(statement, 2, (int64_t)room_of(sweep));
    return rv_sqlite_run(store, statement);
}

static enum rv_err sweep_alerts(struct rv_sqlite *store, struct rv_sweep *sweep)
{
    enum rv_err err = taskless_delete(store, RV_SQL_SWEEP_TASKLESS_NOTICES, sweep);
    if (err == RV_OK)
        err = taskless_delete(store, RV_SQL_SWEEP_TASKLESS, sweep);
    sweep->alerts_gone = err == RV_OK ? (size_t)sqlite3_changes(store->db) : 0;
    return err;
}

enum rv_err rv_sqlite_sweep(struct rv_sqlite *store, struct rv_sweep *sweep)
{
    bool first = sweep->tasks_after.value == 0 && sweep->keys_after.value == 0;
    enum rv_err err = first ? sweep_alerts(store, sweep) : RV_OK;
    if (err == RV_OK && sweep->keys_after.value == 0)
        err = sweep_tasks(store, sweep);
    return err == RV_OK && sweep->tasks_after.value == 0 ? sweep_keys(store, sweep) : err;
}
