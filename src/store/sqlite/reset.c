/* `reeve clock reset`: an operator sets the clock of a store back to the wall clock (decision 019).
 * What is due at an instant that was set by the old clock is due as much earlier. */
#include "store/sqlite/sqlite_priv.h"

#include <stdio.h>

/* ?1: how far back; ?2: the instant that it is then. An instant is never 0. */
static const char *const statements[] = {
    "BEGIN IMMEDIATE",
    "UPDATE step SET wake_at = max(wake_at - ?1, 1), ready_at = max(ready_at - ?1, 1), "
    "waits_since = max(waits_since - ?1, 1), "
    "deadline = max(deadline - ?1, 1), complete_by = max(complete_by - ?1, 1), "
    "lease_until = max(lease_until - ?1, 1), attempt_at = max(attempt_at - ?1, 1), "
    "created_at = max(created_at - ?1, 1) WHERE ended_at IS NULL",
    "UPDATE task SET quiet_at = max(quiet_at - ?1, 1), suspended_at = max(suspended_at - ?1, 1) "
    "WHERE ended_at IS NULL",
    "UPDATE task SET ended_at = min(ended_at, ?2) WHERE ended_at > ?2",
    "UPDATE delivery SET due_at = max(due_at - ?1, 1), since = max(since - ?1, 1)",
    "UPDATE role SET lease_until = min(lease_until, ?2)",
    "UPDATE instance SET alive_at = min(alive_at, ?2), enlisted_at = min(enlisted_at, ?2)",
    /* The wait of the retention rule: what the old clock has begun is over in a day. */
    "UPDATE record SET value = json_set(value, '$.until', min(json_extract(value, '$.until') - ?1, "
    "?2 + 86400000)) WHERE kind = 'retention-wait' AND json_valid(value) "
    "AND json_extract(value, '$.until') > ?2",
    "COMMIT",
};

static enum rv_err run(struct rv_sqlite *store, const char *sql, int64_t back_ms, int64_t now)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    int places = sqlite3_bind_parameter_count(statement);
    if (code == SQLITE_OK && places >= 1)
        code = sqlite3_bind_int64(statement, 1, back_ms);
    if (code == SQLITE_OK && places >= 2)
        code = sqlite3_bind_int64(statement, 2, now);
    enum rv_err err = code == SQLITE_OK ? rv_sqlite_run(store, statement) : RV_ERR_IO;
    sqlite3_finalize(statement);
    return err;
}

enum rv_err rv_store_sqlite_reset_clock(struct rv_store *base, int64_t *ret_back_ms)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    int64_t now = store->clock.now(store->clock.self);
    int64_t back_ms = store->last_alive_at - now;
    *ret_back_ms = back_ms > 0 ? back_ms : 0;
    if (back_ms <= 0)
        return RV_OK;
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < sizeof statements / sizeof *statements; i++)
        err = run(store, statements[i], back_ms, now);
    if (err != RV_OK && !sqlite3_get_autocommit(store->db))
        (void)run(store, "ROLLBACK", 0, 0);
    return err;
}
