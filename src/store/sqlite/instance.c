/* Who uses the store: instances and the leases on their roles. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"
#include "base/time.h"

enum { INSTANCE_MAX = 255 };

/* A number from 0 on that can be raised; false: something else is there. */
static bool count_read(sqlite3_stmt *statement, int column, int64_t *ret_count)
{
    int64_t count = sqlite3_column_int64(statement, column);
    if (sqlite3_column_type(statement, column) != SQLITE_INTEGER || count < 0 || count == INT64_MAX)
        return false;
    *ret_count = count;
    return true;
}

enum rv_err rv_sqlite_alive_read(struct rv_sqlite *store)
{
    sqlite3_stmt *statement = NULL;
    bool there = false;
    RV_TRY(rv_sqlite_statement(store, RV_SQL_INSTANCE_NEWEST, &statement));
    enum rv_err err = rv_sqlite_next(store, statement, &there);
    store->created = !there;
    if (there &&
        (!count_read(statement, 2, &store->last_alive_at) || store->last_alive_at > RV_INSTANT_FAR))
        err = RV_ERR_CORRUPT;
    sqlite3_reset(statement);
    return err;
}

/* The numbers go round, so that the ids of this process differ from those that the one before made
 * in the same millisecond. */
static enum rv_err instance_next(struct rv_sqlite *store, int64_t *ret_number,
                                 int64_t *ret_enlistment)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_INSTANCE_NEWEST, &statement);
    if (err != RV_OK)
        return err;
    bool there = false;
    int64_t number = 0, enlistment = 0;
    err = rv_sqlite_next(store, statement, &there);
    if (there && (!count_read(statement, 0, &number) || number < 1 || number > INSTANCE_MAX ||
                  !count_read(statement, 1, &enlistment)))
        err = RV_ERR_CORRUPT;
    sqlite3_reset(statement);
    *ret_number = number % INSTANCE_MAX + 1;
    *ret_enlistment = enlistment + 1;
    return err;
}

/* It has committed nothing yet: what the store knows of the time before is the next one's as well,
 * should this one end here. */
static enum rv_err instance_write(struct rv_sqlite *store, int64_t number, int64_t enlistment,
                                  struct rv_str boot, int64_t pid, int64_t now)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_INSTANCE_REPLACE, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, number);
    sqlite3_bind_int64(statement, 2, enlistment);
    rv_sqlite_bind_str(statement, 3, boot);
    sqlite3_bind_int64(statement, 4, pid);
    rv_sqlite_bind_str(statement, 5, rv_str_of(store->host));
    sqlite3_bind_int64(statement, 6, now);
    sqlite3_bind_int64(statement, 7, store->created ? now : store->last_alive_at);
    return rv_sqlite_run(store, statement);
}

static enum rv_err open_count(struct rv_sqlite *store, int64_t *by_state, int64_t *ret_count)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_TASK_OPEN_COUNT, &statement);
    if (err != RV_OK)
        return err;
    bool there = false;
    while ((err = rv_sqlite_next(store, statement, &there)) == RV_OK && there) {
        enum rv_task_state state;
        int64_t count = sqlite3_column_int64(statement, 1);
        *ret_count += count;
        if (rv_task_state_parse(rv_sqlite_column_str(statement, 0), &state))
            by_state[state] = count;
    }
    sqlite3_reset(statement);
    return err;
}

static enum rv_err mark_write(struct rv_sqlite *store, uint32_t mark)
{
    char sql[64];
    sqlite3_snprintf(sizeof sql, sql, "PRAGMA user_version = %d", (int)mark);
    return rv_sqlite_err(store, sqlite3_exec(store->db, sql, NULL, NULL, NULL));
}

enum rv_err rv_sqlite_mark_stop(struct rv_sqlite *store)
{
    int mark = 0;
    enum rv_err err = rv_sqlite_number(store, "PRAGMA user_version", &mark);
    if (err != RV_OK || !rv_mark_runs((uint32_t)mark))
        return err;
    return mark_write(store, (uint32_t)mark - RV_MARK_RUNS);
}

/* What is in no record is not missed. The mark is of use in the file alone; once it is there, a
 * file without it is not the one that the log goes on from. */
static enum rv_err log_announce(struct rv_sqlite *store, uint32_t mark)
{
    if (store->lock_fd < 0)
        return RV_OK;
    (void)rv_sqlite_record(store, true);
    enum rv_err err = rv_sqlite_checkpoint(store);
    if (err == RV_OK && store->log_moved)
        (void)rv_sqlite_record_mark(store, mark);
    return err;
}

/* The row of this instance, its mark, and what the store has at its start. */
static enum rv_err enlist_write(struct rv_sqlite *store, struct rv_str boot, int64_t pid,
                                int64_t now, int64_t *ret_enlistment,
                                struct rv_enlistment *ret_found)
{
    int64_t number = 0;
    rv_assert(store->in_transaction);
    RV_TRY(open_count(store, ret_found->open_by_state, &ret_found->open_tasks));
    RV_TRY(instance_next(store, &number, ret_enlistment));
    ret_found->instance = (uint8_t)number;
    RV_TRY(instance_write(store, number, *ret_enlistment, boot, pid, now));
    return store->lock_fd >= 0 ? mark_write(store, rv_mark_of(*ret_enlistment) | RV_MARK_RUNS)
                               : RV_OK;
}

enum rv_err rv_sqlite_enlist(struct rv_store *base, struct rv_str boot, int64_t pid,
                             struct rv_enlistment *ret_enlistment)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    rv_assert(store->instance == 0);
    int64_t now = 0;
    enum rv_err err = rv_sqlite_begin(base, NULL, &now);
    if (err != RV_OK)
        return err;
    int64_t enlistment = 0;
    struct rv_enlistment found = {.lease_ms = ret_enlistment->lease_ms,
                                  .last_alive_at = store->last_alive_at,
                                  .created = store->created,
                                  .copied = store->copied};
    err = enlist_write(store, boot, pid, now, &enlistment, &found);
    if (err != RV_OK)
        return rv_sqlite_give_up(store, err);
    RV_TRY(rv_sqlite_end(store));
    RV_TRY(log_announce(store, rv_mark_of(enlistment)));
    store->instance = found.instance;
    *ret_enlistment = found;
    return RV_OK;
}

enum rv_err rv_sqlite_committed(struct rv_store *base, int64_t number, bool *ret_committed)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_INSTANCE_BATCH, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, store->instance);
    bool there = false;
    err = rv_sqlite_next(store, statement, &there);
    if (err == RV_OK)
        *ret_committed = there && sqlite3_column_int64(statement, 0) >= number;
    sqlite3_reset(statement);
    return err;
}

struct role {
    bool there;
    int64_t instance;
    int64_t epoch;
    int64_t until;
};

static enum rv_err role_load(struct rv_sqlite *store, struct rv_str name, struct role *role)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_ROLE_LOAD, &statement);
    if (err != RV_OK)
        return err;
    rv_sqlite_bind_str(statement, 1, name);
    err = rv_sqlite_next(store, statement, &role->there);
    if (role->there) {
        role->instance = sqlite3_column_int64(statement, 0);
        role->until = sqlite3_column_int64(statement, 2);
        if (!count_read(statement, 1, &role->epoch))
            err = RV_ERR_CORRUPT;
    }
    sqlite3_reset(statement);
    return err;
}

static enum rv_err role_write(struct rv_sqlite *store, struct rv_str name, const struct role *role,
                              int64_t now)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_ROLE_REPLACE, &statement);
    if (err != RV_OK)
        return err;
    rv_sqlite_bind_str(statement, 1, name);
    sqlite3_bind_int64(statement, 2, role->instance);
    sqlite3_bind_int64(statement, 3, role->epoch);
    sqlite3_bind_int64(statement, 4, role->until);
    err = rv_sqlite_run(store, statement);
    if (err != RV_OK)
        return err;
    err = rv_sqlite_statement(store, RV_SQL_INSTANCE_ALIVE, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, store->instance);
    sqlite3_bind_int64(statement, 2, now);
    return rv_sqlite_run(store, statement);
}

/* There is one instance: whoever else held the role is dead, so it is always ours to take. */
static enum rv_err role_claim(struct rv_sqlite *store, struct rv_str name, int64_t lease_ms,
                              int64_t now, struct role *role)
{
    enum rv_err err = role_load(store, name, role);
    if (err != RV_OK)
        return err;
    if (!role->there || role->instance != store->instance)
        role->epoch += 1;
    role->instance = store->instance;
    role->until = now + lease_ms;
    return role_write(store, name, role, now);
}

enum rv_err rv_sqlite_claim_role(struct rv_store *base, struct rv_str name, int64_t lease_ms,
                                 int64_t *ret_epoch, int64_t *ret_until)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    rv_assert(store->instance != 0);
    rv_assert(lease_ms >= 0);
    rv_assert(lease_ms <= RV_DAY_MS);
    bool own = !store->in_transaction;
    int64_t now = store->slew.shown;
    if (rv_place_changed(store))
        return RV_ERR_DISPLACED;
    if (own)
        RV_TRY(rv_sqlite_begin(base, NULL, &now));
    struct role role = {.there = false};
    enum rv_err err = role_claim(store, name, lease_ms, now, &role);
    store->claimed = !own;
    if (own)
        err = err == RV_OK ? rv_sqlite_end(store) : rv_sqlite_give_up(store, err);
    if (err != RV_OK)
        return err;
    *ret_epoch = role.epoch;
    *ret_until = role.until;
    return RV_OK;
}
