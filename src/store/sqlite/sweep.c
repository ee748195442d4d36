/* The retention rule on a piece of the store. A walk reads some rows ahead before anything is
 * deleted: SQLite leaves open what a statement sees of rows that go while it stands among them.
 * Neighbours that all go are deleted together, by the range of their ids: between two rows of the
 * walk there is no other task, so no row of another task is in the range. The ids of alerts are in
 * it: their deliveries go with their tasks. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

enum {
    PIECE_MAX = 64,   /* rows that are read ahead */
    ALERTS_MAX = 256, /* of no task, deleted in a round */
    TASKS_PART = 4    /* the keys have one part of so many of the time */
};

struct piece {
    int64_t ids[PIECE_MAX];
    bool takes[PIECE_MAX];
    size_t count;
};

/* What a walk may take, and has taken. */
struct pace {
    const struct rv_sweep *sweep;
    int64_t us_from;
    int64_t us_max;
    size_t rows;
    size_t entries; /* of the walk, that these were the rows of */
    size_t run_max; /* of neighbours that are deleted together */
};

static int64_t pace_us(const struct rv_sweep *sweep)
{
    return sweep->now_us != NULL ? sweep->now_us(sweep->self) : 0;
}

static struct pace pace_of(const struct rv_sweep *sweep, int64_t us_max)
{
    return (struct pace){.sweep = sweep, .us_from = pace_us(sweep), .us_max = us_max, .run_max = 1};
}

static bool pace_spent(const struct pace *pace)
{
    bool late = pace->sweep->now_us != NULL && pace_us(pace->sweep) - pace->us_from >= pace->us_max;
    return pace->entries > 0 && (late || pace->rows >= pace->sweep->rows_max);
}

/* How many go together next: twice as many as before, as far as the budget allows by what one has
 * cost so far. */
static void pace_next(struct pace *pace)
{
    size_t left = pace->sweep->rows_max > pace->rows ? pace->sweep->rows_max - pace->rows : 0;
    int64_t took = pace_us(pace->sweep) - pace->us_from;
    rv_assert(pace->entries > 0);
    rv_assert(pace->rows >= pace->entries);
    size_t run = 2 * pace->run_max < PIECE_MAX ? 2 * pace->run_max : PIECE_MAX;
    size_t by_rows = left * pace->entries / pace->rows;
    run = by_rows < run ? by_rows : run;
    if (took > 0 && pace->us_max > took) {
        int64_t by_time = (pace->us_max - took) * (int64_t)pace->entries / took;
        run = by_time < (int64_t)run ? (size_t)by_time : run;
    }
    pace->run_max = run > 0 ? run : 1;
    rv_assert(pace->run_max <= PIECE_MAX);
}

/* The next ids of a walk, each with whether the rule takes it. */
static enum rv_err piece_read(struct rv_sqlite *store, enum rv_sqlite_sql sql, int64_t after,
                              const struct rv_sweep *sweep, struct piece *piece)
{
    sqlite3_stmt *statement = NULL;
    bool there = true;
    piece->count = 0;
    enum rv_err err = rv_sqlite_statement(store, sql, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, after);
    sqlite3_bind_int64(statement, 2, PIECE_MAX);
    if (sql == RV_SQL_SWEEP_WALK)
        sqlite3_bind_int64(statement, 3, sweep->ended_by);
    while (err == RV_OK && piece->count < PIECE_MAX) {
        err = rv_sqlite_next(store, statement, &there);
        if (!there)
            break;
        piece->ids[piece->count] = sqlite3_column_int64(statement, 0);
        piece->takes[piece->count++] = sqlite3_column_int(statement, 1) != 0;
    }
    sqlite3_reset(statement);
    return err;
}

static enum rv_err rows_delete(struct rv_sqlite *store, enum rv_sqlite_sql sql, int64_t first,
                               int64_t last, size_t *rows)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, sql, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, first);
    sqlite3_bind_int64(statement, 2, last);
    err = rv_sqlite_run(store, statement);
    *rows += (size_t)sqlite3_changes(store->db);
    return err;
}

static enum rv_err tasks_delete(struct rv_sqlite *store, int64_t first, int64_t last, size_t *rows)
{
    static const enum rv_sqlite_sql parts[] = {
        RV_SQL_SWEEP_STEPS,    RV_SQL_SWEEP_ATTEMPTS, RV_SQL_SWEEP_LATE,
        RV_SQL_SWEEP_NOTICES,  RV_SQL_SWEEP_ALERTS,   RV_SQL_SWEEP_MESSAGES,
        RV_SQL_SWEEP_DELIVERY, RV_SQL_SWEEP_TAGS,     RV_SQL_SWEEP_ERROR_TYPES,
        RV_SQL_SWEEP_HISTORY,  RV_SQL_SWEEP_PAYLOADS, RV_SQL_SWEEP_TASK};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        RV_TRY(rows_delete(store, parts[i], first, last, rows));
    return RV_OK;
}

/* A walk over the ids of tasks. */
struct sweep_walk {
    enum rv_sqlite_sql read;
    int64_t by;      /* ids made later are not looked at: the walk is over */
    int64_t no_more; /* ids above this one: not in this piece */
    struct rv_task_id *after;
    bool *over;
    size_t *gone; /* entries of the walk */
};

/* A key is a row that was counted when it was looked at. */
static enum rv_err run_delete(struct rv_sqlite *store, const struct sweep_walk *walk, int64_t first,
                              int64_t last, size_t *rows)
{
    size_t keys = 0;
    return walk->read == RV_SQL_SWEEP_WALK
               ? tasks_delete(store, first, last, rows)
               : rows_delete(store, RV_SQL_SWEEP_KEY, first, last, &keys);
}

/* Entries from the i-th one that go together; 0: it stays. */
static size_t run_of(const struct sweep_walk *walk, const struct piece *piece, size_t i,
                     size_t run_max)
{
    size_t run = 0;
    while (run < run_max && i + run < piece->count && piece->takes[i + run] &&
           rv_id_made_at((struct rv_task_id){piece->ids[i + run]}) <= walk->by &&
           piece->ids[i + run] <= walk->no_more)
        run++;
    rv_assert(run <= piece->count - i);
    return run;
}

static enum rv_err piece_walk(struct rv_sqlite *store, const struct sweep_walk *walk,
                              const struct piece *piece, struct pace *pace, bool *ret_stop)
{
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < piece->count && !*ret_stop;) {
        *walk->over = rv_id_made_at((struct rv_task_id){piece->ids[i]}) > walk->by;
        *ret_stop = *walk->over || piece->ids[i] > walk->no_more || pace_spent(pace);
        if (*ret_stop)
            break;
        size_t run = run_of(walk, piece, i, pace->run_max);
        size_t looked = run > 0 ? run : 1;
        int64_t last = piece->ids[i + looked - 1];
        pace->rows += looked;
        pace->entries += looked;
        *walk->gone += run;
        if (run > 0) {
            err = run_delete(store, walk, piece->ids[i], last, &pace->rows);
            pace_next(pace);
        }
        walk->after->value = last;
        i += looked;
    }
    return err;
}

static enum rv_err walk_on(struct rv_sqlite *store, const struct rv_sweep *sweep,
                           const struct sweep_walk *walk, int64_t us_max)
{
    struct pace pace = pace_of(sweep, us_max);
    bool stop = *walk->over;
    while (!stop) {
        struct piece piece;
        RV_TRY(piece_read(store, walk->read, walk->after->value, sweep, &piece));
        rv_assert(piece.count <= PIECE_MAX);
        RV_TRY(piece_walk(store, walk, &piece, &pace, &stop));
        if (!stop && piece.count < PIECE_MAX)
            stop = *walk->over = true;
    }
    return RV_OK;
}

static enum rv_err sweep_tasks(struct rv_sqlite *store, struct rv_sweep *sweep)
{
    const struct sweep_walk walk = {.read = RV_SQL_SWEEP_WALK,
                                    .by = sweep->ended_by,
                                    .no_more = INT64_MAX,
                                    .after = &sweep->tasks_after,
                                    .over = &sweep->tasks_over,
                                    .gone = &sweep->tasks_gone};
    int64_t keys_us = sweep->keys_over ? 0 : sweep->us_max / TASKS_PART;
    return walk_on(store, sweep, &walk, sweep->us_max - keys_us);
}

static enum rv_err sweep_keys(struct rv_sqlite *store, struct rv_sweep *sweep, int64_t us_max)
{
    const struct sweep_walk walk = {.read = RV_SQL_SWEEP_KEY_WALK,
                                    .by = sweep->keys_by,
                                    .no_more = sweep->tasks_over ? INT64_MAX
                                                                 : sweep->tasks_after.value,
                                    .after = &sweep->keys_after,
                                    .over = &sweep->keys_over,
                                    .gone = &sweep->keys_gone};
    return walk_on(store, sweep, &walk, us_max);
}

static enum rv_err taskless_delete(struct rv_sqlite *store, enum rv_sqlite_sql sql,
                                   const struct rv_sweep *sweep)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, sql, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, sweep->ended_by);
    sqlite3_bind_int64(statement, 2, ALERTS_MAX);
    return rv_sqlite_run(store, statement);
}

static enum rv_err sweep_alerts(struct rv_sqlite *store, struct rv_sweep *sweep)
{
    RV_TRY(taskless_delete(store, RV_SQL_SWEEP_TASKLESS_NOTICES, sweep));
    RV_TRY(taskless_delete(store, RV_SQL_SWEEP_TASKLESS, sweep));
    sweep->alerts_gone = (size_t)sqlite3_changes(store->db);
    return RV_OK;
}

enum rv_err rv_sqlite_sweep(struct rv_sqlite *store, struct rv_sweep *sweep)
{
    int64_t from = pace_us(sweep);
    rv_assert(store->in_transaction);
    if (rv_sweep_begins(sweep))
        RV_TRY(sweep_alerts(store, sweep));
    RV_TRY(sweep_tasks(store, sweep));
    RV_TRY(sweep_keys(store, sweep, sweep->us_max - (pace_us(sweep) - from)));
    sweep->took_us = pace_us(sweep) - from;
    return RV_OK;
}
