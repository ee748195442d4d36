/* Stores of older versions of the schema, which their first start brings up. */
#include "sqlite_subject.h"

#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_priv.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static void assert_found(struct subject *s, struct rv_task_filter filter, size_t count)
{
    struct rv_task tasks[2];
    size_t found = 0;
    struct rv_task_id next;
    assert_int_equal(
        s->ops->list_tasks(s->store, &s->arena, RV_COLUMNS_ALL, &filter, 2, tasks, &found, &next),
        RV_OK);
    assert_int_equal(found, count);
}

/* Takes from a store what version 14 and later ones have brought. */
static const char *const undoing_version_14[] = {
    "DROP TABLE payload",
    "DROP TABLE history",
    "ALTER TABLE task DROP COLUMN undo_error",
    "ALTER TABLE task DROP COLUMN by_hand",
    "ALTER TABLE step DROP COLUMN waits_since",
    "ALTER TABLE step DROP COLUMN called",
    "ALTER TABLE step DROP COLUMN insist",
    "ALTER TABLE step DROP COLUMN stale",
    "ALTER TABLE step DROP COLUMN undo_way",
    "ALTER TABLE step DROP COLUMN attempt_effect",
    "ALTER TABLE step DROP COLUMN attempt_error",
    "DROP INDEX attempt_token",
    "ALTER TABLE attempt DROP COLUMN retry_at",
    "ALTER TABLE attempt DROP COLUMN round",
    "UPDATE schema_version SET version = 13",
};

/* After that: makes a store of the first version of it, with something of each kind that versions
 * bring up. */
static const char *const undoing_versions[] = {
    "ALTER TABLE task DROP COLUMN quiet_at",
    "DROP INDEX late_reply_attempt",
    "CREATE INDEX late_reply_task ON late_reply(task)",
    "INSERT INTO late_reply(task, step, attempt, reason, output)"
    " VALUES(1000000, 1, 1, 'after complete-by', '{\"a\":1}')",
    "DROP INDEX submission_key_task",
    "DROP TABLE record",
    "DROP TABLE tag",
    "DROP TABLE error_type",
    "DROP INDEX step_agent",
    "UPDATE task SET open_steps = '1', error = '{\"type\":\"https://x/errors/timeout\"}'",
    "ALTER TABLE task DROP COLUMN tags",
    "ALTER TABLE task DROP COLUMN suspended_at",
    "ALTER TABLE task DROP COLUMN redo",
    "ALTER TABLE step DROP COLUMN replaces",
    "ALTER TABLE task DROP COLUMN last_message",
    "ALTER TABLE task DROP COLUMN reply_stream",
    "ALTER TABLE task DROP COLUMN reply_url",
    "ALTER TABLE task DROP COLUMN trace",
    "ALTER TABLE task DROP COLUMN tracestate",
    "DROP TABLE message",
    "DROP TABLE delivery",
    "DROP INDEX alert_source",
    "ALTER TABLE alert DROP COLUMN source",
    "INSERT INTO alert(id, task, step, kind, raised_at) VALUES(5, 1000000, 0, 'failed', 9)",
    "UPDATE schema_version SET version = 1",
};

static void sql_each(struct subject *s, const char *const *texts, size_t count)
{
    char ignored[64];
    for (size_t i = 0; i < count; i++)
        sql(s, texts[i], ignored);
}

static void an_alert_keeps_its_source_in_a_newer_schema(void **state)
{
    struct subject *s = *state;
    subject_close(s);
    sql_each(s, undoing_version_14, sizeof undoing_version_14 / sizeof undoing_version_14[0]);
    static const char *const raised[] = {
        "INSERT INTO alert(id, task, step, kind, raised_at, message, source)"
        " VALUES(5, 0, 0, 'reported', 9, 'the outbox is gone', 'relay:shop')"};
    sql_each(s, raised, 1);
    subject_open(s);
    subject_close(s);
    assert_sql(s, "SELECT kind || message || source FROM alert WHERE id = 5",
               "reportedthe outbox is gonerelay:shop");
}

/* A store of the first version opens with its tasks, is brought to the newest, and takes what the
 * newest knows. */
static void an_older_schema_is_brought_up(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    subject_close(s);
    sql_each(s, undoing_version_14, sizeof undoing_version_14 / sizeof undoing_version_14[0]);
    sql_each(s, undoing_versions, sizeof undoing_versions / sizeof undoing_versions[0]);
    subject_open(s);
    assert_int_equal(s->enlistment.open_tasks, 1);
    assert_int_equal(load(s, TASK_BASE)->quiet_at, 0);
    assert_non_null(load_step(s, TASK_BASE, 1));
    assert_found(s, (struct rv_task_filter){.error_type = RV_STR("timeout")}, 1);
    assert_found(s, (struct rv_task_filter){.error_type = RV_STR("errors/timeout")}, 1);
    assert_found(s, (struct rv_task_filter){.error_type = RV_STR("out")}, 0);
    assert_found(s, (struct rv_task_filter){.agent = RV_STR("inventory")}, 1);
    struct rv_late_reply late[2];
    size_t count = 0;
    assert_int_equal(s->ops->list_late_replies(s->store, &s->arena, RV_COLUMNS_ALL,
                                               (struct rv_step_id){{TASK_BASE}, 1}, 1, 0, 2, late,
                                               &count),
                     RV_OK);
    assert_int_equal(count, 1);
    assert_string_equal(late[0].output.at, "{\"a\":1}");
    late[1] = late[0];
    late[1].reason = RV_LATE_UNREADABLE; /* a word of the newest */
    struct rv_alert alerts[2] = {
        {.id = 6, .task = {TASK_BASE}, .kind = RV_ALERT_UNDELIVERABLE, .raised_at = 1}};
    struct rv_task task = *load(s, TASK_BASE);
    struct rv_change change = {.task = &task,
                               .revision_before = task.revision,
                               .late_replies = &late[1],
                               .late_replies_count = 1,
                               .alerts = alerts,
                               .alerts_count = 1};
    task.revision++;
    task.quiet_at = 4711;
    subject_commit_all(s, &change, 1);
    subject_restart(s);
    assert_int_equal(load(s, TASK_BASE)->quiet_at, 4711);
    assert_int_equal(s->ops->list_alerts(s->store, &s->arena, (struct rv_task_id){TASK_BASE}, false,
                                         0, 2, alerts, &count),
                     RV_OK);
    assert_int_equal(count, 2);
    assert_int_equal(alerts[1].kind, RV_ALERT_FAILED);
    subject_close(s);
    assert_sql(s, "SELECT group_concat(version) FROM schema_version",
               "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23");
    assert_payloads_last(s);
}

/* Stores before version 22 kept the error of a stopped undo in its step alone. */
static void a_stopped_undo_of_an_older_schema_has_its_error(void **state)
{
    static const char *const older[] = {
        "UPDATE task SET process_state = 'error', direction = 'undo', open_steps = '1', "
        "error = '{\"type\":\"declined\"}'",
        "UPDATE step SET process_state = 'error', direction = 'undo', undoes = 1, "
        "error = '{\"type\":\"https://x/errors/gone\"}'",
        "ALTER TABLE task DROP COLUMN undo_error", "DROP TABLE payload",
        "UPDATE schema_version SET version = 21"};
    struct subject *s = *state;
    bear(s, TASK_BASE);
    subject_close(s);
    sql_each(s, older, sizeof older / sizeof older[0]);
    subject_open(s);
    assert_string_equal(load(s, TASK_BASE)->undo_error.at, "{\"type\":\"https://x/errors/gone\"}");
    assert_found(s, (struct rv_task_filter){.error_type = RV_STR("gone")}, 1);
    assert_found(s, (struct rv_task_filter){.error_type = RV_STR("declined")}, 0);
    subject_close(s);
    assert_payloads_last(s);
}

/* The undo goes on, or was parked for another reason, with the error of a compensation that is
 * over. */
static void a_caught_error_of_an_older_schema_is_not_its_undos(void **state)
{
    static const char *const older[] = {
        "UPDATE task SET process_state = 'error', direction = 'undo', open_steps = '11 3'",
        "UPDATE step SET process_state = 'error', direction = 'undo', undoes = 1, "
        "error = '{\"type\":\"gone\"}'",
        "ALTER TABLE task DROP COLUMN undo_error", "DROP TABLE payload",
        "UPDATE schema_version SET version = 21"};
    struct subject *s = *state;
    bear(s, TASK_BASE);
    subject_close(s);
    sql_each(s, older, sizeof older / sizeof older[0]);
    subject_open(s);
    assert_null(load(s, TASK_BASE)->undo_error.at);
    assert_found(s, (struct rv_task_filter){.error_type = RV_STR("gone")}, 0);
}

/* Constraints do not hold damage back. */
static void damage(struct subject *s, const char *text)
{
    char both[256];
    sqlite3 *db = NULL;
    struct rv_seal *seal = rv_seal_new(s->vfs);
    assert_non_null(seal);
    snprintf(both, sizeof both,
             "PRAGMA locking_mode = EXCLUSIVE; PRAGMA ignore_check_constraints = ON; %s", text);
    assert_int_equal(sqlite3_open_v2(s->path, &db, SQLITE_OPEN_READWRITE, rv_seal_name(seal)),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, both, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    rv_seal_free(seal);
}

/* Such a row is told from the others, and the store opens. */
static void a_damaged_row_of_an_older_schema_is_brought_up(void **state)
{
    static const char *const older[] = {
        "UPDATE task SET process_state = 'error', direction = 'undo', open_steps = '1' "
        "WHERE id = 1000001",
        "UPDATE step SET process_state = 'error', direction = 'undo', undoes = 1, error = '{' "
        "WHERE task = 1000001",
        "ALTER TABLE task DROP COLUMN undo_error", "DROP TABLE payload",
        "UPDATE schema_version SET version = 21"};
    struct subject *s = *state;
    for (int i = 0; i < 3; i++)
        bear(s, TASK_BASE + i);
    subject_close(s);
    sql_each(s, older, sizeof older / sizeof older[0]);
    damage(s, "UPDATE task SET direction = 'sideways' WHERE id = 1000000");
    subject_open(s);
    assert_true(load(s, TASK_BASE)->unreadable);
    assert_string_equal(load(s, TASK_BASE + 1)->undo_error.at, "{");
    assert_false(load(s, TASK_BASE + 2)->unreadable);
}

/* What has failed, and not what came after it. */
static void a_migration_that_fails_tells_why(void **state)
{
    static const char *const older[] = {"ALTER TABLE task DROP COLUMN undo_error",
                                        "DROP TABLE payload", "CREATE TABLE task_22(id INTEGER)",
                                        "UPDATE schema_version SET version = 21"};
    struct subject *s = *state;
    bear(s, TASK_BASE);
    subject_close(s);
    sql_each(s, older, sizeof older / sizeof older[0]);
    struct rv_store *store = NULL;
    struct rv_store_sqlite_fault fault;
    struct rv_store_sqlite_options options = {.path = s->path, .clock = {no_clock, NULL}};
    assert_int_equal(rv_store_sqlite_open(&options, &store, &fault), RV_ERR_CORRUPT);
    assert_non_null(strstr(fault.message, "is damaged (table task_22 already exists)"));
    sql_each(s, (const char *const[]){"DROP TABLE task_22"}, 1);
    subject_open(s);
    assert_non_null(load(s, TASK_BASE));
}

#define ON_A_STORE(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, sqlite_setup, sqlite_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_STORE(an_older_schema_is_brought_up),
        ON_A_STORE(a_stopped_undo_of_an_older_schema_has_its_error),
        ON_A_STORE(a_caught_error_of_an_older_schema_is_not_its_undos),
        ON_A_STORE(a_damaged_row_of_an_older_schema_is_brought_up),
        ON_A_STORE(a_migration_that_fails_tells_why),
        ON_A_STORE(an_alert_keeps_its_source_in_a_newer_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
