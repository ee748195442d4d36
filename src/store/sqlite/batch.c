/* One batch, one transaction. Every guard of a change is looked at before its first write or by it,
 * so a change that loses has written nothing and needs no savepoint. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"
#include "core/tags.h"

/* The log is copied into the database when it has this many pages, 8 MiB. Measured: from 1,000 to
 * 8,000 the rate is the same within the noise, so what the next start has to read decides. */
enum { CHECKPOINT_PAGES = 2000 };

struct commit {
    struct rv_sqlite *store;
    int64_t now;
    bool wrote;
    bool epoch_known;
    int64_t epoch; /* of the supervisor's role */
};

static int64_t clock_read(struct rv_sqlite *store)
{
    int64_t wall = store->clock.now(store->clock.self);
    int64_t now = store->clock.mono != NULL
                      ? rv_slew_read(&store->slew, wall, store->clock.mono(store->clock.self))
                      : rv_slew_follow(&store->slew, wall);
    store->store.wall_ahead_ms = wall - now;
    return now;
}

/* Some errors end the transaction by themselves. */
static enum rv_err rollback_run(struct rv_sqlite *store)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_get_autocommit(store->db))
        return RV_OK;
    RV_TRY(rv_sqlite_statement(store, RV_SQL_ROLLBACK, &statement));
    return rv_sqlite_run(store, statement);
}

void rv_sqlite_rollback(struct rv_store *base)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    rv_assert(store->in_transaction);
    store->in_transaction = false;
    if (store->broken)
        return;
    enum rv_err err = rollback_run(store);
    if (err == RV_OK || sqlite3_get_autocommit(store->db))
        rv_seal_undone(store->seal);
    else
        store->broken = true;
}

enum rv_err rv_sqlite_begin(struct rv_store *base, struct rv_wants *load, int64_t *ret_now)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    rv_assert(!store->in_transaction);
    sqlite3_stmt *statement = NULL;
    RV_TRY(rv_sqlite_statement(store, RV_SQL_BEGIN, &statement));
    RV_TRY(rv_sqlite_run(store, statement));
    rv_assert(!sqlite3_get_autocommit(store->db));
    store->in_transaction = true;
    store->claimed = false;
    *ret_now = clock_read(store);
    enum rv_err err = load != NULL ? rv_sqlite_load(base, load) : RV_OK;
    if (err != RV_OK)
        rv_sqlite_rollback(base);
    return err;
}

static enum rv_err log_check(struct rv_sqlite *store)
{
    if (rv_seal_log_whole(store->seal, (uint32_t)store->frames))
        return RV_OK;
    store->broken = true;
    return RV_ERR_CORRUPT;
}

enum rv_err rv_store_sqlite_log_check(struct rv_store *base)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    return store->broken ? RV_OK : log_check(store);
}

/* Moves the log into the database, so that both stay small. SQLite's own automatic checkpoint would
 * swallow a failed sync, and a second one of the same pages would then succeed without having
 * written them. A full disk does no harm here: the log keeps everything. Nor does a damaged log:
 * the file stays as it was, and `reeve check --keep-intact` adds what is intact. */
enum rv_err rv_sqlite_checkpoint(struct rv_sqlite *store)
{
    rv_assert(!store->in_checkpoint);
    store->log_moved = false;
    if (rv_place_changed(store))
        return RV_ERR_DISPLACED;
    enum rv_err err = log_check(store);
    if (err != RV_OK)
        return err;
    store->in_checkpoint = true;
    int code = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    err = rv_sqlite_err(store, code);
    store->in_checkpoint = false;
    store->log_moved = err == RV_OK;
    if (err == RV_OK)
        store->frames = 0;
    if (err == RV_ERR_DISPLACED)
        return err;
    if (err != RV_ERR_IO && err != RV_ERR_CORRUPT)
        return RV_OK;
    store->broken = true;
    return err == RV_ERR_CORRUPT ? err : RV_ERR_COMMIT_UNKNOWN;
}

enum rv_err rv_sqlite_give_up(struct rv_sqlite *store, enum rv_err err)
{
    rv_sqlite_rollback(&store->store);
    if (err != RV_ERR_IO)
        return err;
    store->broken = true;
    return RV_ERR_COMMIT_UNKNOWN;
}

/* What is committed is written, whatever becomes of the files later. */
static enum rv_err checkpoint_due(struct rv_sqlite *store)
{
    int pages = store->checkpoint_pages != 0 ? store->checkpoint_pages : CHECKPOINT_PAGES;
    enum rv_err err = store->frames >= pages ? rv_sqlite_checkpoint(store) : RV_OK;
    return err == RV_ERR_DISPLACED ? RV_OK : err;
}

enum rv_err rv_sqlite_end(struct rv_sqlite *store)
{
    rv_assert(store->in_transaction);
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_COMMIT, &statement);
    if (err != RV_OK) {
        rv_sqlite_rollback(&store->store);
        return err;
    }
    err = rv_sqlite_run(store, statement);
    if (err == RV_OK) {
        rv_assert(sqlite3_get_autocommit(store->db));
        store->in_transaction = false;
        rv_sqlite_record_log(store);
        return checkpoint_due(store);
    }
    /* Only a full disk is known to have left nothing: the commit's own frame is the last write.
     * Everything else, also a lack of memory for the log's index, may come after it. */
    if (err != RV_ERR_FULL) {
        store->broken = true;
        store->in_transaction = false;
        return RV_ERR_COMMIT_UNKNOWN;
    }
    rv_sqlite_rollback(&store->store);
    return store->broken ? RV_ERR_COMMIT_UNKNOWN : err;
}

/* ---- guards ---- */

static enum rv_err guard_epoch(struct commit *commit, int64_t epoch, enum rv_err *ret_outcome)
{
    if (epoch == 0)
        return RV_OK;
    if (!commit->epoch_known) {
        sqlite3_stmt *statement = NULL;
        enum rv_err err = rv_sqlite_statement(commit->store, RV_SQL_ROLE_LOAD, &statement);
        if (err != RV_OK)
            return err;
        rv_sqlite_bind_str(statement, 1, RV_STR(RV_ROLE_SUPERVISOR));
        bool there = false;
        err = rv_sqlite_next(commit->store, statement, &there);
        commit->epoch = there ? sqlite3_column_int64(statement, 1) : 0;
        sqlite3_reset(statement);
        if (err != RV_OK)
            return err;
        commit->epoch_known = true;
    }
    if (commit->epoch != epoch)
        *ret_outcome = RV_ERR_DEPOSED;
    return RV_OK;
}

static enum rv_err guard_revision(struct commit *commit, const struct rv_change *change,
                                  enum rv_err *ret_outcome)
{
    sqlite3_stmt *statement = NULL;
    rv_assert(*ret_outcome == RV_OK);
    enum rv_err err = rv_sqlite_statement(commit->store, RV_SQL_TASK_GUARD, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, change->task->id.value);
    bool there = false;
    err = rv_sqlite_next(commit->store, statement, &there);
    /* As it was read: what is no revision is 0. */
    bool number = there && sqlite3_column_type(statement, 0) == SQLITE_INTEGER;
    int64_t revision = number ? sqlite3_column_int64(statement, 0) : 0;
    if (revision < 0 || revision == INT64_MAX)
        revision = 0;
    if (revision != change->revision_before)
        *ret_outcome = RV_ERR_CONFLICT;
    sqlite3_reset(statement);
    return err;
}

static enum rv_err guard_key(struct commit *commit, const struct rv_change *change,
                             enum rv_err *ret_outcome)
{
    rv_assert(*ret_outcome == RV_OK);
    if (change->key == NULL)
        return RV_OK;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(commit->store, RV_SQL_KEY_LOAD, &statement);
    if (err != RV_OK)
        return err;
    rv_sqlite_bind_str(statement, 1, change->key->key);
    bool there = false;
    err = rv_sqlite_next(commit->store, statement, &there);
    if (there)
        *ret_outcome = RV_ERR_DUPLICATE;
    sqlite3_reset(statement);
    return err;
}

/* ---- writes ---- */

static void instant_bind(sqlite3_stmt *statement, int parameter, int64_t at)
{
    if (at != 0)
        sqlite3_bind_int64(statement, parameter, at);
    else
        sqlite3_bind_null(statement, parameter);
}

/* Runs an INSERT or UPDATE of a whole row; `given` stands in the first column if
 * rows of that kind do not hold it themselves. Says whether the row is there. */
static enum rv_err row_replace(struct commit *commit, enum rv_sqlite_sql sql,
                               const struct rv_row_kind *kind, const void *row, int64_t given,
                               bool *ret_there)
{
    struct rv_sqlite *store = commit->store;
    sqlite3_stmt *statement = NULL;
    rv_assert(store->in_transaction);
    rv_assert((kind->fields[0].kind == RV_FIELD_GIVEN) == (given != 0));
    enum rv_err err = rv_sqlite_statement(store, sql, &statement);
    if (err != RV_OK)
        return err;
    if (kind->fields[0].kind == RV_FIELD_GIVEN)
        sqlite3_bind_int64(statement, 1, given);
    rv_sqlite_bind(store, statement, kind, store->bound[sql], row);
    commit->wrote = true;
    err = rv_sqlite_run(store, statement);
    *ret_there = err == RV_OK && sqlite3_changes(store->db) == 1;
    return err;
}

/* The same; INVALID: the row that it replaces is not there. */
static enum rv_err row_write(struct commit *commit, enum rv_sqlite_sql sql,
                             const struct rv_row_kind *kind, const void *row, int64_t given)
{
    bool there = false;
    enum rv_err err = row_replace(commit, sql, kind, row, given, &there);
    return err == RV_OK && !there ? RV_ERR_INVALID : err;
}

/* What was read of it is not all that is there. */
static enum rv_err task_keep(struct commit *commit, const struct rv_task *task)
{
    struct rv_sqlite *store = commit->store;
    sqlite3_stmt *statement = NULL;
    rv_assert(task->unreadable);
    rv_assert(store->in_transaction);
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_TASK_KEEP, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, task->id.value);
    sqlite3_bind_int64(statement, 2, task->revision);
    instant_bind(statement, 3, task->ended_at);
    rv_sqlite_bind_str(statement, 4, task->error);
    rv_sqlite_bind_str(statement, 5, task->undo_error);
    rv_sqlite_bind_str(statement, 6, rv_str_of(rv_task_state_text(task->state)));
    sqlite3_bind_int64(statement, 7, task->locked_by);
    commit->wrote = true;
    RV_TRY(rv_sqlite_run(store, statement));
    RV_TRY(rv_apart_remove(store, (struct rv_step_id){task->id, 0}, "error"));
    return rv_apart_remove(store, (struct rv_step_id){task->id, 0}, "undo_error");
}

/* Writes the row over the one that has the revision before, and what the statement leaves as it is,
 * if there is one. */
static enum rv_err task_replace(struct commit *commit, const struct rv_change *change,
                                enum rv_sqlite_sql sql, bool *ret_there)
{
    struct rv_sqlite *store = commit->store;
    const struct rv_row_kind *kind = &rv_row_task;
    sqlite3_stmt *statement = NULL;
    rv_assert(!change->task->unreadable); /* it would write values that were not read */
    rv_assert(change->revision_before != 0);
    rv_assert(store->in_transaction);
    enum rv_err err = rv_sqlite_statement(store, sql, &statement);
    if (err != RV_OK)
        return err;
    rv_sqlite_bind(store, statement, kind, store->bound[sql], change->task);
    sqlite3_bind_int64(statement, kind->count + 1, change->revision_before);
    err = rv_sqlite_run(store, statement);
    *ret_there = err == RV_OK && sqlite3_changes(store->db) == 1;
    commit->wrote = commit->wrote || *ret_there;
    return err;
}

/* The statement that writes the least: most changes leave the state as it is, and none changes the
 * workflow to which a task is pinned. */
static enum rv_sqlite_sql task_statement(const struct rv_change *change)
{
    const struct rv_task *before = change->task_before;
    if (before == NULL || before->workflow != change->task->workflow)
        return RV_SQL_TASK_REPLACE;
    return before->state == change->task->state ? RV_SQL_TASK_UPDATE : RV_SQL_TASK_MOVE;
}

/* The statement is its own guard. */
static enum rv_err task_update(struct commit *commit, const struct rv_change *change,
                               enum rv_err *ret_outcome)
{
    enum rv_sqlite_sql sql = task_statement(change);
    bool there = false;
    RV_TRY(task_replace(commit, change, sql, &there));
    if (!there && sql != RV_SQL_TASK_REPLACE)
        RV_TRY(task_replace(commit, change, RV_SQL_TASK_REPLACE, &there));
    if (!there)
        *ret_outcome = RV_ERR_CONFLICT;
    return RV_OK;
}

static enum rv_err task_write(struct commit *commit, const struct rv_change *change,
                              enum rv_err *ret_outcome)
{
    const struct rv_row_kind *kind = &rv_row_task;
    bool insert = change->revision_before == 0;
    if (change->task->unreadable)
        return task_keep(commit, change->task);
    RV_TRY(insert ? row_write(commit, RV_SQL_TASK_INSERT, kind, change->task, 0)
                  : task_update(commit, change, ret_outcome));
    if (*ret_outcome != RV_OK)
        return RV_OK;
    return rv_apart_write(commit->store, kind, (struct rv_step_id){change->task->id, 0},
                          change->task, change->task_before, insert);
}

static enum rv_err tags_insert(struct rv_sqlite *store, const struct rv_task *task,
                               struct rv_arena *arena)
{
    struct rv_tag tags[RV_TAGS_MAX];
    size_t count = 0;
    sqlite3_stmt *statement = NULL;
    RV_TRY(rv_tags_read(arena, task->tags, tags, &count));
    RV_TRY(rv_sqlite_statement(store, RV_SQL_TAG_INSERT, &statement));
    for (size_t i = 0; i < count; i++) {
        rv_sqlite_bind_str(statement, 1, tags[i].name);
        rv_sqlite_bind_str(statement, 2, tags[i].value);
        sqlite3_bind_int64(statement, 3, task->id.value);
        RV_TRY(rv_sqlite_run(store, statement));
    }
    return RV_OK;
}

/* A row for each tag, so that tasks are found by it. */
static enum rv_err tags_write(struct commit *commit, const struct rv_change *change)
{
    struct rv_arena arena;
    if (change->task->tags.at == NULL || change->revision_before != 0)
        return RV_OK;
    rv_arena_init(&arena, 0);
    enum rv_err err = tags_insert(commit->store, change->task, &arena);
    rv_arena_done(&arena);
    return err;
}

static enum rv_err error_type_insert(struct rv_sqlite *store, struct rv_task_id task,
                                     struct rv_str error, struct rv_arena *arena)
{
    sqlite3_stmt *statement = NULL;
    struct rv_str type;
    RV_TRY(rv_error_type(arena, error, &type));
    if (type.at == NULL)
        return RV_OK;
    RV_TRY(rv_sqlite_statement(store, RV_SQL_ERROR_TYPE_INSERT, &statement));
    rv_sqlite_bind_str(statement, 1, rv_error_type_last(type));
    sqlite3_bind_int64(statement, 2, task.value);
    return rv_sqlite_run(store, statement);
}

/* The type of the task's present error, so that the task is found by it. The types of its earlier
 * errors stay: few tasks have two, and a query checks the task itself. */
static enum rv_err error_type_write(struct commit *commit, const struct rv_task *task)
{
    struct rv_str error = rv_task_error(task);
    struct rv_arena arena;
    if (error.at == NULL)
        return RV_OK;
    rv_arena_init(&arena, 0);
    enum rv_err err = error_type_insert(commit->store, task->id, error, &arena);
    rv_arena_done(&arena);
    return err;
}

/* Open steps use an UPDATE that touches no indexed column; zero rows changed means fall back. */
static enum rv_err step_update(struct commit *commit, const struct rv_step *step, int64_t task)
{
    const struct rv_row_kind *kind = &rv_row_step;
    bool there = false;
    if (step->ended_at == 0)
        RV_TRY(row_replace(commit, RV_SQL_STEP_UPDATE, kind, step, task, &there));
    return there ? RV_OK : row_write(commit, RV_SQL_STEP_MOVE, kind, step, task);
}

static enum rv_err steps_write(struct commit *commit, const struct rv_change *change)
{
    const struct rv_row_kind *kind = &rv_row_step;
    for (size_t i = 0; i < change->steps_count; i++) {
        const struct rv_step *step = change->steps[i];
        const struct rv_step *before = change->steps_before ? change->steps_before[i] : NULL;
        int64_t task = change->task->id.value;
        bool insert = change->steps_new[i];
        rv_assert(!step->unreadable); /* it would write values that were not read */
        RV_TRY(insert ? row_write(commit, RV_SQL_STEP_INSERT, kind, step, task)
                      : step_update(commit, step, task));
        RV_TRY(rv_apart_write(commit->store, kind,
                              (struct rv_step_id){change->task->id, step->number}, step, before,
                              insert));
    }
    return RV_OK;
}

/* `step` counts where the statement asks for one. */
static enum rv_err alerts_close(struct commit *commit, enum rv_sqlite_sql sql,
                                struct rv_task_id task, uint32_t step)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(commit->store, sql, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, task.value);
    sqlite3_bind_int64(statement, 2, commit->now);
    if (step != 0)
        sqlite3_bind_int64(statement, 3, step);
    return rv_sqlite_run(commit->store, statement);
}

static enum rv_err alert_write(struct commit *commit, const struct rv_alert *alert,
                               const struct rv_delivery *to)
{
    rv_assert(alert->id != 0);
    RV_TRY(row_write(commit, RV_SQL_ALERT_INSERT, &rv_row_alert, alert, 0));
    if (to == NULL)
        return RV_OK;
    struct rv_delivery row = rv_delivery_of_alert(alert, to);
    return row_write(commit, RV_SQL_DELIVERY_GROW, &rv_row_delivery, &row, 0);
}

static enum rv_err ledgers_write(struct commit *commit, const struct rv_change *change)
{
    for (size_t i = 0; i < change->attempts_count; i++)
        RV_TRY(row_write(commit, RV_SQL_ATTEMPT_INSERT, &rv_row_attempt, &change->attempts[i], 0));
    for (size_t i = 0; i < change->late_replies_count; i++)
        RV_TRY(
            row_write(commit, RV_SQL_LATE_INSERT, &rv_row_late_reply, &change->late_replies[i], 0));
    if (change->close_alerts)
        RV_TRY(alerts_close(commit, RV_SQL_ALERT_CLOSE, change->task->id, 0));
    for (size_t i = 0; i < change->late_over_count; i++)
        RV_TRY(
            alerts_close(commit, RV_SQL_ALERT_CLOSE_LATE, change->task->id, change->late_over[i]));
    for (size_t i = 0; i < change->alerts_count; i++)
        RV_TRY(alert_write(commit, &change->alerts[i], change->alerts_to));
    for (size_t i = 0; i < change->messages_count; i++)
        RV_TRY(row_write(commit, RV_SQL_MESSAGE_INSERT, &rv_row_message, &change->messages[i], 0));
    for (size_t i = 0; i < change->history_count; i++)
        RV_TRY(row_write(commit, RV_SQL_HISTORY_INSERT, &rv_row_history, &change->history[i], 0));
    if (change->delivery != NULL)
        RV_TRY(row_write(commit, RV_SQL_DELIVERY_GROW, &rv_row_delivery, change->delivery, 0));
    return RV_OK;
}

static enum rv_err delivery_update(struct commit *commit, struct rv_delivery_change *change)
{
    const struct rv_delivery *row = &change->row;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(commit->store, RV_SQL_DELIVERY_UPDATE, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, row->task.value);
    sqlite3_bind_int64(statement, 2, row->next);
    sqlite3_bind_int64(statement, 3, row->failures);
    instant_bind(statement, 4, row->since);
    instant_bind(statement, 5, row->due_at);
    sqlite3_bind_int(statement, 6, row->given_up);
    sqlite3_bind_int64(statement, 7, change->next_before);
    sqlite3_bind_int64(statement, 8, change->failures_before);
    err = rv_sqlite_run(commit->store, statement);
    change->outcome = sqlite3_changes(commit->store->db) == 1 ? RV_OK : RV_ERR_CONFLICT;
    return err;
}

static enum rv_err alerts_again(struct commit *commit, const struct rv_delivery_change *change)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(commit->store, RV_SQL_DELIVERY_AGAIN, &statement);
    if (err != RV_OK)
        return err;
    instant_bind(statement, 1, change->row.since);
    return rv_sqlite_run(commit->store, statement);
}

static enum rv_err delivery_write(struct commit *commit, struct rv_delivery_change *change)
{
    change->outcome = RV_OK;
    RV_TRY(guard_epoch(commit, change->epoch, &change->outcome));
    if (change->outcome != RV_OK)
        return RV_OK;
    RV_TRY(change->all_alerts ? alerts_again(commit, change) : delivery_update(commit, change));
    if (change->outcome != RV_OK)
        return RV_OK;
    commit->wrote = true;
    if (change->close_alert)
        RV_TRY(alerts_close(commit, RV_SQL_ALERT_CLOSE_UNDELIVERABLE, change->row.task, 0));
    if (change->alert != NULL)
        RV_TRY(alert_write(commit, change->alert, change->alert_to));
    return RV_OK;
}

/* All guards of the change, and the row of its task. */
static enum rv_err change_begin(struct commit *commit, const struct rv_change *change,
                                enum rv_err *ret_outcome)
{
    /* Else the statement that writes the task is the guard. */
    bool apart = change->revision_before == 0 || change->task->unreadable || change->key != NULL;
    RV_TRY(guard_epoch(commit, change->epoch, ret_outcome));
    if (*ret_outcome == RV_OK && apart)
        RV_TRY(guard_revision(commit, change, ret_outcome));
    if (*ret_outcome == RV_OK)
        RV_TRY(guard_key(commit, change, ret_outcome));
    return *ret_outcome == RV_OK ? task_write(commit, change, ret_outcome) : RV_OK;
}

static enum rv_err change_write(struct commit *commit, struct rv_change *change)
{
    rv_assert(change->task->id.value > 0);
    rv_assert(change->task->revision == change->revision_before + 1);
    rv_assert(change->task_before == NULL ||
              change->task_before->revision == change->revision_before);
    enum rv_err outcome = RV_OK;
    RV_TRY(change_begin(commit, change, &outcome));
    change->outcome = outcome;
    if (outcome != RV_OK)
        return RV_OK;
    if (change->key != NULL)
        RV_TRY(row_write(commit, RV_SQL_KEY_INSERT, &rv_row_key, change->key, 0));
    RV_TRY(tags_write(commit, change));
    RV_TRY(error_type_write(commit, change->task));
    RV_TRY(steps_write(commit, change));
    RV_TRY(ledgers_write(commit, change));
    if (change->record != NULL)
        RV_TRY(row_write(commit, RV_SQL_RECORD_PUT, &rv_row_record, change->record, 0));
    return RV_OK;
}

static enum rv_err ack_write(struct commit *commit, struct rv_ack *ack)
{
    struct rv_sqlite *store = commit->store;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_ALERT_THERE, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, ack->alert);
    bool there = false;
    err = rv_sqlite_next(store, statement, &there);
    sqlite3_reset(statement);
    ack->outcome = there ? RV_OK : RV_ERR_NOT_FOUND;
    if (err != RV_OK || !there)
        return err;
    err = rv_sqlite_statement(store, RV_SQL_ALERT_ACK, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, ack->alert);
    instant_bind(statement, 2, ack->at);
    rv_sqlite_bind_str(statement, 3, ack->by);
    commit->wrote = true;
    return rv_sqlite_run(store, statement);
}

static enum rv_err raise_write(struct commit *commit, struct rv_raise *raise)
{
    struct rv_sqlite *store = commit->store;
    sqlite3_stmt *statement = NULL;
    rv_assert(raise->alert.source.len > 0);
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_ALERT_OF_SOURCE, &statement);
    if (err != RV_OK)
        return err;
    rv_sqlite_bind_str(statement, 1, raise->alert.source);
    bool there = false;
    err = rv_sqlite_next(store, statement, &there);
    sqlite3_reset(statement);
    raise->outcome = there ? RV_ERR_DUPLICATE : RV_OK;
    if (err != RV_OK || there)
        return err;
    return alert_write(commit, &raise->alert, raise->to);
}

static enum rv_err record_write(struct commit *commit, struct rv_record_change *change)
{
    struct rv_sqlite *store = commit->store;
    const struct rv_record *row = &change->row;
    rv_assert(row->kind.len > 0);
    rv_assert(row->key.len > 0);
    change->outcome = RV_OK;
    enum rv_err err = guard_epoch(commit, change->epoch, &change->outcome);
    if (err != RV_OK || change->outcome != RV_OK)
        return err;
    if (!change->gone)
        return row_write(commit, RV_SQL_RECORD_PUT, &rv_row_record, row, 0);
    sqlite3_stmt *statement = NULL;
    err = rv_sqlite_statement(store, RV_SQL_RECORD_REMOVE, &statement);
    if (err != RV_OK)
        return err;
    rv_sqlite_bind_str(statement, 1, row->kind);
    rv_sqlite_bind_str(statement, 2, row->key);
    err = rv_sqlite_run(store, statement);
    commit->wrote = commit->wrote || sqlite3_changes(store->db) > 0;
    return err;
}

static enum rv_err instance_write(struct commit *commit, int64_t number)
{
    struct rv_sqlite *store = commit->store;
    sqlite3_stmt *statement = NULL;
    rv_assert(store->instance != 0);
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_INSTANCE_COMMIT, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, store->instance);
    sqlite3_bind_int64(statement, 2, commit->now);
    sqlite3_bind_int64(statement, 3, number);
    return rv_sqlite_run(store, statement);
}

static enum rv_err sweep_write(struct commit *commit, struct rv_sweep *sweep)
{
    if (sweep == NULL)
        return RV_OK;
    sweep->outcome = RV_OK;
    sweep->tasks_gone = sweep->keys_gone = sweep->alerts_gone = 0;
    sweep->took_us = 0;
    RV_TRY(guard_epoch(commit, sweep->epoch, &sweep->outcome));
    if (sweep->outcome != RV_OK)
        return RV_OK;
    RV_TRY(rv_sqlite_sweep(commit->store, sweep));
    commit->wrote = commit->wrote || sweep->tasks_gone + sweep->keys_gone + sweep->alerts_gone > 0;
    return RV_OK;
}

static enum rv_err batch_write(struct commit *commit, struct rv_batch *batch)
{
    for (size_t i = 0; i < batch->workflows_count; i++)
        RV_TRY(
            row_write(commit, RV_SQL_WORKFLOW_INSERT, &rv_row_workflow, &batch->workflows[i], 0));
    for (size_t i = 0; i < batch->changes_count; i++)
        RV_TRY(change_write(commit, &batch->changes[i]));
    for (size_t i = 0; i < batch->acks_count; i++)
        RV_TRY(ack_write(commit, &batch->acks[i]));
    for (size_t i = 0; i < batch->raises_count; i++)
        RV_TRY(raise_write(commit, &batch->raises[i]));
    for (size_t i = 0; i < batch->records_count; i++)
        RV_TRY(record_write(commit, &batch->records[i]));
    for (size_t i = 0; i < batch->deliveries_count; i++)
        RV_TRY(delivery_write(commit, &batch->deliveries[i]));
    RV_TRY(sweep_write(commit, batch->sweep));
    bool wrote = commit->wrote || commit->store->claimed;
    /* A batch that changes nothing costs no sync. */
    return wrote ? instance_write(commit, batch->number) : RV_OK;
}

enum rv_err rv_sqlite_commit(struct rv_store *base, struct rv_batch *batch)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    rv_assert(store->in_transaction);
    rv_assert(store->instance != 0);
    struct commit commit = {.store = store, .now = store->slew.shown};
    /* First of all: what is rolled back is forgotten, and may be nowhere else any more. */
    enum rv_err err = rv_place_changed(store) ? RV_ERR_DISPLACED : batch_write(&commit, batch);
    if (err == RV_OK)
        return rv_sqlite_end(store);
    return rv_sqlite_give_up(store, err);
}
