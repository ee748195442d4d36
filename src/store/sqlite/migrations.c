/* The schema, as numbered steps; each runs in a transaction of its own and is never changed later.
 *
 * If you change a table, or a word in core/tbl:
 *  - add a version at the end; never edit one that was released;
 *  - change the schema of a new store, schema.c, in the same way;
 *  - bring core/tbl/row.def in line with the tables as they are after the newest version;
 *  - a long text of a task or step is in the table payload from version 23 on (apart.c): what reads
 *    such a column looks there, too;
 *  - a new state needs its table built anew: its CHECK, and for tasks the indexes task_open and
 *    task_rare, list the words as they were. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

/* Version 1. Payloads stand last, so that everything an index or a list looks at lies in the first
 * bytes of a row. */
static const char *const version_1[] = {
    "CREATE TABLE schema_version("
    " version INTEGER PRIMARY KEY,"
    " migrated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')))",

    "CREATE TABLE workflow("
    " id INTEGER PRIMARY KEY,"
    " published_at INTEGER,"
    " namespace TEXT,"
    " name TEXT,"
    " version TEXT,"
    " hash TEXT,"
    " source TEXT)",
    "CREATE UNIQUE INDEX workflow_name ON workflow(namespace, name, version)",

    "CREATE TABLE task("
    " id INTEGER PRIMARY KEY,"
    " revision INTEGER NOT NULL,"
    " process_state TEXT NOT NULL CHECK {process_state task_state},"
    " workflow INTEGER NOT NULL,"
    " direction TEXT NOT NULL CHECK {direction direction},"
    " cancelling INTEGER NOT NULL,"
    " priority INTEGER NOT NULL,"
    " locked_by INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " last_number INTEGER NOT NULL,"
    " undo_head INTEGER NOT NULL,"
    " undo_blocker INTEGER NOT NULL,"
    " pivot INTEGER NOT NULL,"
    " open_steps TEXT NOT NULL,"
    " created_at INTEGER,"
    " started_at INTEGER,"
    " ended_at INTEGER,"
    " submission_key TEXT,"
    " correlation_id TEXT,"
    " input TEXT,"
    " context TEXT,"
    " output TEXT,"
    " error TEXT)",
    "CREATE INDEX task_open ON task(id) WHERE {process_state open}",
    "CREATE INDEX task_rare ON task(process_state, id) WHERE {process_state rare}",
    "CREATE INDEX task_workflow ON task(workflow, id)",

    "CREATE TABLE step("
    " task INTEGER NOT NULL,"
    " number INTEGER NOT NULL,"
    " kind TEXT NOT NULL CHECK {kind step_kind},"
    " process_state TEXT NOT NULL CHECK {process_state step_state},"
    " direction TEXT NOT NULL CHECK {direction direction},"
    " undoes INTEGER NOT NULL,"
    " node INTEGER NOT NULL,"
    " visit INTEGER NOT NULL,"
    " effect TEXT NOT NULL CHECK {effect effect},"
    " undo_prev INTEGER NOT NULL,"
    " chained INTEGER NOT NULL,"
    " undone INTEGER NOT NULL,"
    " failure_count INTEGER NOT NULL,"
    " round INTEGER NOT NULL,"
    " deaths INTEGER NOT NULL,"
    " wake_at INTEGER,"
    " ready_at INTEGER,"
    " deadline INTEGER,"
    " attempt INTEGER NOT NULL,"
    " attempt_state TEXT NOT NULL CHECK {attempt_state attempt_state},"
    " token INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " attempt_at INTEGER,"
    " attempt_ended_at INTEGER,"
    " complete_by INTEGER,"
    " lease_ms INTEGER NOT NULL,"
    " lease_until INTEGER,"
    " created_at INTEGER,"
    " ended_at INTEGER,"
    " reference TEXT,"
    " iteration TEXT,"
    " agent TEXT,"
    " target TEXT,"
    " instance TEXT,"
    " boot TEXT,"
    " poll TEXT,"
    " frames TEXT,"
    " data TEXT,"
    " input TEXT,"
    " output TEXT,"
    " error TEXT,"
    " PRIMARY KEY (task, number))",

    "CREATE TABLE attempt("
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " number INTEGER NOT NULL,"
    " attempt_state TEXT NOT NULL CHECK {attempt_state attempt_state},"
    " effect TEXT NOT NULL CHECK {effect effect},"
    " token INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " attempt_at INTEGER,"
    " complete_by INTEGER,"
    " ended_at INTEGER,"
    " instance TEXT,"
    " error TEXT,"
    " PRIMARY KEY (task, step, number)) WITHOUT ROWID",

    "CREATE TABLE late_reply("
    " id INTEGER PRIMARY KEY,"
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " arrived_at INTEGER,"
    " reason TEXT NOT NULL CHECK {reason late_reason},"
    " output TEXT,"
    " error TEXT)",
    "CREATE INDEX late_reply_task ON late_reply(task)",

    "CREATE TABLE alert("
    " id INTEGER PRIMARY KEY,"
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " kind TEXT NOT NULL CHECK {kind alert_kind},"
    " raised_at INTEGER,"
    " acked_at INTEGER,"
    " closed_at INTEGER,"
    " acked_by TEXT,"
    " message TEXT)",
    "CREATE INDEX alert_task ON alert(task, id)",
    "CREATE INDEX alert_open ON alert(id) WHERE acked_at IS NULL AND closed_at IS NULL",

    /* Kept apart from its task, which it outlives. */
    "CREATE TABLE submission_key("
    " key TEXT PRIMARY KEY,"
    " body_hash TEXT,"
    " task INTEGER NOT NULL) WITHOUT ROWID",

    /* Who used this store: a row for each enlistment, the numbers used in turn. alive_at is the
     * clock's floor too, batch the last one committed. */
    "CREATE TABLE instance("
    " number INTEGER PRIMARY KEY CHECK (number BETWEEN 1 AND 255),"
    " enlistment INTEGER NOT NULL,"
    " boot TEXT,"
    " pid INTEGER NOT NULL,"
    " host TEXT,"
    " enlisted_at INTEGER NOT NULL,"
    " alive_at INTEGER NOT NULL,"
    " batch INTEGER NOT NULL)",

    "CREATE TABLE role("
    " name TEXT PRIMARY KEY,"
    " instance INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL,"
    " lease_until INTEGER NOT NULL) WITHOUT ROWID",

    /* Commands from task to task, written in the transaction of the one that sends and removed in
     * the one that decides them: sub-workflows, events, cancellation
     * through a tree. Laid out now, so that a store of this version can take them. */
    "CREATE TABLE inbox("
    " id INTEGER PRIMARY KEY,"
    " target INTEGER NOT NULL,"
    " command TEXT NOT NULL,"
    " operation INTEGER NOT NULL,"
    " arrived_at INTEGER NOT NULL,"
    " payload TEXT)",
    "CREATE INDEX inbox_target ON inbox(target, id)",
    NULL,
};

/* Version 2: until when an attempt that ended unheard may be at work. */
static const char *const version_2[] = {
    "ALTER TABLE task ADD COLUMN quiet_at INTEGER",
    NULL,
};

/* Version 3: late replies of tasks that cannot be read, and what there is of one attempt. */
static const char *const version_3[] = {
    "CREATE TABLE late_reply_3("
    " id INTEGER PRIMARY KEY,"
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " arrived_at INTEGER,"
    " reason TEXT NOT NULL CHECK {reason late_reason},"
    " output TEXT,"
    " error TEXT)",
    "INSERT INTO late_reply_3 SELECT * FROM late_reply",
    "DROP TABLE late_reply",
    "ALTER TABLE late_reply_3 RENAME TO late_reply",
    "CREATE INDEX late_reply_attempt ON late_reply(task, step, attempt)",
    NULL,
};

/* Version 4: what the server and its operators keep beside tasks. */
static const char *const version_4[] = {
    "CREATE TABLE record("
    " kind TEXT NOT NULL,"
    " key TEXT NOT NULL,"
    " written_at INTEGER,"
    " value TEXT,"
    " PRIMARY KEY (kind, key)) WITHOUT ROWID",
    NULL,
};

/* Version 5: messages to submitters and how far they have come; the alert that tells of one that
 * cannot be delivered. */
static const char *const version_5[] = {
    "ALTER TABLE task ADD COLUMN last_message INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE task ADD COLUMN reply_stream INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE task ADD COLUMN reply_url TEXT",

    "CREATE TABLE message("
    " task INTEGER NOT NULL,"
    " number INTEGER NOT NULL,"
    " kind TEXT NOT NULL CHECK {kind message_kind},"
    " step INTEGER NOT NULL,"
    " at INTEGER,"
    " body TEXT,"
    " PRIMARY KEY (task, number)) WITHOUT ROWID",

    "CREATE TABLE delivery("
    " task INTEGER PRIMARY KEY,"
    " next INTEGER NOT NULL,"
    " last INTEGER NOT NULL,"
    " failures INTEGER NOT NULL,"
    " since INTEGER,"
    " due_at INTEGER,"
    " parked INTEGER NOT NULL,"
    " destination TEXT,"
    " url TEXT)",
    "CREATE INDEX delivery_waiting ON delivery(destination, task) "
    "WHERE next <= last AND NOT parked",

    "CREATE TABLE alert_5("
    " id INTEGER PRIMARY KEY,"
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " kind TEXT NOT NULL CHECK {kind alert_kind},"
    " raised_at INTEGER,"
    " acked_at INTEGER,"
    " closed_at INTEGER,"
    " acked_by TEXT,"
    " message TEXT)",
    "INSERT INTO alert_5 SELECT * FROM alert",
    "DROP TABLE alert",
    "ALTER TABLE alert_5 RENAME TO alert",
    "CREATE INDEX alert_task ON alert(task, id)",
    "CREATE INDEX alert_open ON alert(id) WHERE acked_at IS NULL AND closed_at IS NULL",
    NULL,
};

/* Version 6: keys are deleted by the age of their tasks. */
static const char *const version_6[] = {
    "CREATE INDEX submission_key_task ON submission_key(task)",
    NULL,
};

/* Version 7: tasks that are suspended, and steps that were resubmitted with another input. */
static const char *const version_7[] = {
    "ALTER TABLE task ADD COLUMN suspended_at INTEGER",
    "ALTER TABLE task ADD COLUMN redo INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE step ADD COLUMN replaces INTEGER NOT NULL DEFAULT 0",
    NULL,
};

/* Version 8: tags, by which submitters find their tasks. Tasks that have none cost nothing. */
static const char *const version_8[] = {
    "ALTER TABLE task ADD COLUMN tags TEXT",
    "CREATE TABLE tag("
    " name TEXT NOT NULL,"
    " value TEXT NOT NULL,"
    " task INTEGER NOT NULL,"
    " PRIMARY KEY (name, value, task)) WITHOUT ROWID",
    "CREATE INDEX tag_task ON tag(task)",
    NULL,
};

/* Version 9: alerts that programs outside of the server raise, once for each source. */
static const char *const version_9[] = {
    "CREATE TABLE alert_9("
    " id INTEGER PRIMARY KEY,"
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " kind TEXT NOT NULL CHECK {kind alert_kind},"
    " raised_at INTEGER,"
    " acked_at INTEGER,"
    " closed_at INTEGER,"
    " acked_by TEXT,"
    " message TEXT,"
    " source TEXT)",
    "INSERT INTO alert_9 SELECT id, task, step, kind, raised_at, acked_at, closed_at, acked_by, "
    "message, NULL FROM alert",
    "DROP TABLE alert",
    "ALTER TABLE alert_9 RENAME TO alert",
    "CREATE INDEX alert_task ON alert(task, id)",
    "CREATE INDEX alert_open ON alert(id) WHERE acked_at IS NULL AND closed_at IS NULL",
    "CREATE INDEX alert_source ON alert(source, id) WHERE source IS NOT NULL",
    NULL,
};

/* Version 10: the trace context of tasks. */
static const char *const version_10[] = {
    "ALTER TABLE task ADD COLUMN trace TEXT",
    "ALTER TABLE task ADD COLUMN tracestate TEXT",
    NULL,
};

/* Version 11: alerts on their way to the operators' webhook. */
static const char *const version_11[] = {
    "ALTER TABLE delivery ADD COLUMN alert INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX delivery_alert ON delivery(task) WHERE alert",
    NULL,
};

/* Version 12: tasks by the types of their errors. Tasks without one cost nothing. */
static const char *const version_12[] = {
    /* Every type that a task's error has had, without what leads to its last slash. */
    "CREATE TABLE error_type("
    " type TEXT NOT NULL,"
    " task INTEGER NOT NULL,"
    " PRIMARY KEY (type, task)) WITHOUT ROWID",
    "CREATE INDEX error_type_task ON error_type(task)",
    "INSERT INTO error_type SELECT substr(type, length(rtrim(type, replace(type, '/', ''))) + 1), "
    "id "
    "FROM (SELECT id, json_extract(error, '$.type') AS type FROM task "
    "WHERE error IS NOT NULL AND json_valid(error)) WHERE typeof(type) = 'text'",
    NULL,
};

/* Version 13: tasks by the agents that their steps ask, while those go on. */
static const char *const version_13[] = {
    "CREATE INDEX step_agent ON step(agent, task) WHERE ended_at IS NULL AND agent IS NOT NULL",
    NULL,
};

/* Version 14: the age of a step in the ready queue, whether an alert calls for it, whether an
 * operator insists; the effect of an attempt, beside that of all attempts of its step. */
static const char *const version_14[] = {
    "ALTER TABLE step ADD COLUMN waits_since INTEGER",
    "ALTER TABLE step ADD COLUMN called INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE step ADD COLUMN insist INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE step ADD COLUMN attempt_effect TEXT NOT NULL DEFAULT 'none' "
    "CHECK {attempt_effect effect}",
    "ALTER TABLE step ADD COLUMN attempt_error TEXT",
    "UPDATE step SET waits_since = ready_at WHERE ready_at IS NOT NULL AND ended_at IS NULL",
    "UPDATE step SET attempt_effect = effect WHERE effect <> 'none'",
    "CREATE INDEX attempt_token ON attempt(task, step, token)",
    /* Two more kinds of alerts. */
    "CREATE TABLE alert_14("
    " id INTEGER PRIMARY KEY,"
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " kind TEXT NOT NULL CHECK {kind alert_kind},"
    " raised_at INTEGER,"
    " acked_at INTEGER,"
    " closed_at INTEGER,"
    " acked_by TEXT,"
    " message TEXT,"
    " source TEXT)",
    "INSERT INTO alert_14 SELECT id, task, step, kind, raised_at, acked_at, closed_at, acked_by, "
    "message, source FROM alert",
    "DROP TABLE alert",
    "ALTER TABLE alert_14 RENAME TO alert",
    "CREATE INDEX alert_task ON alert(task, id)",
    "CREATE INDEX alert_open ON alert(id) WHERE acked_at IS NULL AND closed_at IS NULL",
    "CREATE INDEX alert_source ON alert(source, id) WHERE source IS NOT NULL",
    NULL,
};

/* Version 15: whether a compensation is to ask anew, since more is known of what it undoes. */
static const char *const version_15[] = {
    "ALTER TABLE step ADD COLUMN stale INTEGER NOT NULL DEFAULT 0",
    NULL,
};

/* Version 16: commands of operators, by task. */
static const char *const version_16[] = {
    "CREATE TABLE history("
    " task INTEGER NOT NULL,"
    " number INTEGER NOT NULL,"
    " verb TEXT NOT NULL CHECK {verb operator_verb},"
    " step INTEGER NOT NULL,"
    " at INTEGER,"
    " options TEXT,"
    " given_by TEXT,"
    " reason TEXT,"
    " selection INTEGER NOT NULL,"
    " PRIMARY KEY (task, number)) WITHOUT ROWID",
    NULL,
};

/* Version 17: one more kind of alerts. */
static const char *const version_17[] = {
    "CREATE TABLE alert_17("
    " id INTEGER PRIMARY KEY,"
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " kind TEXT NOT NULL CHECK {kind alert_kind},"
    " raised_at INTEGER,"
    " acked_at INTEGER,"
    " closed_at INTEGER,"
    " acked_by TEXT,"
    " message TEXT,"
    " source TEXT)",
    "INSERT INTO alert_17 SELECT id, task, step, kind, raised_at, acked_at, closed_at, acked_by, "
    "message, source FROM alert",
    "DROP TABLE alert",
    "ALTER TABLE alert_17 RENAME TO alert",
    "CREATE INDEX alert_task ON alert(task, id)",
    "CREATE INDEX alert_open ON alert(id) WHERE acked_at IS NULL AND closed_at IS NULL",
    "CREATE INDEX alert_source ON alert(source, id) WHERE source IS NOT NULL",
    NULL,
};

/* Version 18: how much of an undo a person has done. */
static const char *const version_18[] = {
    "ALTER TABLE task ADD COLUMN by_hand INTEGER NOT NULL DEFAULT 0",
    NULL,
};

/* Version 19: how a step is undone, for when its definition cannot be read. */
static const char *const version_19[] = {
    "ALTER TABLE step ADD COLUMN undo_way INTEGER NOT NULL DEFAULT 0",
    NULL,
};

/* Version 20: when and in which round a step could be tried again after an attempt. */
static const char *const version_20[] = {
    "ALTER TABLE attempt ADD COLUMN retry_at INTEGER",
    "ALTER TABLE attempt ADD COLUMN round INTEGER NOT NULL DEFAULT 0",
    NULL,
};

/* Version 21: payloads behind all other columns again, and errors right before them. SQLite keeps a
 * row's columns in the order of its table, a long row in a chain of pages that is followed page by
 * page: whoever wants a column behind a payload reads the payload. A column that is added later
 * stands behind them too; views should not need it, or the table is built anew as here. */
static const char *const version_21[] = {
    "CREATE TABLE task_21("
    " id INTEGER PRIMARY KEY,"
    " revision INTEGER NOT NULL,"
    " process_state TEXT NOT NULL CHECK {process_state task_state},"
    " workflow INTEGER NOT NULL,"
    " direction TEXT NOT NULL CHECK {direction direction},"
    " cancelling INTEGER NOT NULL,"
    " priority INTEGER NOT NULL,"
    " locked_by INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " last_number INTEGER NOT NULL,"
    " undo_head INTEGER NOT NULL,"
    " undo_blocker INTEGER NOT NULL,"
    " by_hand INTEGER NOT NULL,"
    " pivot INTEGER NOT NULL,"
    " last_message INTEGER NOT NULL,"
    " reply_stream INTEGER NOT NULL,"
    " open_steps TEXT NOT NULL,"
    " created_at INTEGER,"
    " started_at INTEGER,"
    " ended_at INTEGER,"
    " quiet_at INTEGER,"
    " suspended_at INTEGER,"
    " redo INTEGER NOT NULL,"
    " submission_key TEXT,"
    " correlation_id TEXT,"
    " tags TEXT,"
    " reply_url TEXT,"
    " trace TEXT,"
    " tracestate TEXT,"
    " error TEXT,"
    " input TEXT,"
    " context TEXT,"
    " output TEXT)",
    "INSERT INTO task_21(id, revision, process_state, workflow, direction, cancelling, "
    "priority, locked_by, fence, last_number, undo_head, undo_blocker, by_hand, pivot, "
    "last_message, reply_stream, open_steps, created_at, started_at, ended_at, quiet_at, "
    "suspended_at, redo, submission_key, correlation_id, tags, reply_url, trace, tracestate, "
    "error, input, context, output) "
    "SELECT id, revision, process_state, workflow, direction, cancelling, priority, locked_by, "
    "fence, last_number, undo_head, undo_blocker, by_hand, pivot, last_message, reply_stream, "
    "open_steps, created_at, started_at, ended_at, quiet_at, suspended_at, redo, "
    "submission_key, correlation_id, tags, reply_url, trace, tracestate, error, input, context, "
    "output FROM task",
    "DROP TABLE task",
    "ALTER TABLE task_21 RENAME TO task",
    "CREATE INDEX task_open ON task(id) WHERE {process_state open}",
    "CREATE INDEX task_rare ON task(process_state, id) WHERE {process_state rare}",
    "CREATE INDEX task_workflow ON task(workflow, id)",

    "CREATE TABLE step_21("
    " task INTEGER NOT NULL,"
    " number INTEGER NOT NULL,"
    " kind TEXT NOT NULL CHECK {kind step_kind},"
    " process_state TEXT NOT NULL CHECK {process_state step_state},"
    " direction TEXT NOT NULL CHECK {direction direction},"
    " undoes INTEGER NOT NULL,"
    " replaces INTEGER NOT NULL,"
    " node INTEGER NOT NULL,"
    " visit INTEGER NOT NULL,"
    " effect TEXT NOT NULL CHECK {effect effect},"
    " undo_way INTEGER NOT NULL,"
    " undo_prev INTEGER NOT NULL,"
    " chained INTEGER NOT NULL,"
    " undone INTEGER NOT NULL,"
    " failure_count INTEGER NOT NULL,"
    " round INTEGER NOT NULL,"
    " deaths INTEGER NOT NULL,"
    " wake_at INTEGER,"
    " ready_at INTEGER,"
    " waits_since INTEGER,"
    " called INTEGER NOT NULL,"
    " insist INTEGER NOT NULL,"
    " stale INTEGER NOT NULL,"
    " deadline INTEGER,"
    " attempt INTEGER NOT NULL,"
    " attempt_state TEXT NOT NULL CHECK {attempt_state attempt_state},"
    " attempt_effect TEXT NOT NULL CHECK {attempt_effect effect},"
    " token INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " attempt_at INTEGER,"
    " attempt_ended_at INTEGER,"
    " complete_by INTEGER,"
    " lease_ms INTEGER NOT NULL,"
    " lease_until INTEGER,"
    " created_at INTEGER,"
    " ended_at INTEGER,"
    " reference TEXT,"
    " iteration TEXT,"
    " agent TEXT,"
    " target TEXT,"
    " instance TEXT,"
    " boot TEXT,"
    " poll TEXT,"
    " error TEXT,"
    " attempt_error TEXT,"
    " frames TEXT,"
    " data TEXT,"
    " input TEXT,"
    " output TEXT,"
    " PRIMARY KEY (task, number))",
    "INSERT INTO step_21(task, number, kind, process_state, direction, undoes, replaces, node, "
    "visit, effect, undo_way, undo_prev, chained, undone, failure_count, round, deaths, "
    "wake_at, ready_at, waits_since, called, insist, stale, deadline, attempt, attempt_state, "
    "attempt_effect, token, fence, attempt_at, attempt_ended_at, complete_by, lease_ms, "
    "lease_until, created_at, ended_at, reference, iteration, agent, target, instance, boot, "
    "poll, error, attempt_error, frames, data, input, output) "
    "SELECT task, number, kind, process_state, direction, undoes, replaces, node, visit, "
    "effect, undo_way, undo_prev, chained, undone, failure_count, round, deaths, wake_at, "
    "ready_at, waits_since, called, insist, stale, deadline, attempt, attempt_state, "
    "attempt_effect, token, fence, attempt_at, attempt_ended_at, complete_by, lease_ms, "
    "lease_until, created_at, ended_at, reference, iteration, agent, target, instance, boot, "
    "poll, error, attempt_error, frames, data, input, output FROM step",
    "DROP TABLE step",
    "ALTER TABLE step_21 RENAME TO step",
    "CREATE INDEX step_agent ON step(agent, task) WHERE ended_at IS NULL AND agent IS NOT NULL",
    NULL,
};

/* Version 22: the errors at which undos have stopped. Views need them, so they stand before the
 * payloads. */
static const char *const version_22[] = {
    "CREATE TABLE task_22("
    " id INTEGER PRIMARY KEY,"
    " revision INTEGER NOT NULL,"
    " process_state TEXT NOT NULL CHECK {process_state task_state},"
    " workflow INTEGER NOT NULL,"
    " direction TEXT NOT NULL CHECK {direction direction},"
    " cancelling INTEGER NOT NULL,"
    " priority INTEGER NOT NULL,"
    " locked_by INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " last_number INTEGER NOT NULL,"
    " undo_head INTEGER NOT NULL,"
    " undo_blocker INTEGER NOT NULL,"
    " by_hand INTEGER NOT NULL,"
    " pivot INTEGER NOT NULL,"
    " last_message INTEGER NOT NULL,"
    " reply_stream INTEGER NOT NULL,"
    " open_steps TEXT NOT NULL,"
    " created_at INTEGER,"
    " started_at INTEGER,"
    " ended_at INTEGER,"
    " quiet_at INTEGER,"
    " suspended_at INTEGER,"
    " redo INTEGER NOT NULL,"
    " submission_key TEXT,"
    " correlation_id TEXT,"
    " tags TEXT,"
    " reply_url TEXT,"
    " trace TEXT,"
    " tracestate TEXT,"
    " error TEXT,"
    " undo_error TEXT,"
    " input TEXT,"
    " context TEXT,"
    " output TEXT)",
    "INSERT INTO task_22(id, revision, process_state, workflow, direction, cancelling, "
    "priority, locked_by, fence, last_number, undo_head, undo_blocker, by_hand, pivot, "
    "last_message, reply_stream, open_steps, created_at, started_at, ended_at, quiet_at, "
    "suspended_at, redo, submission_key, correlation_id, tags, reply_url, trace, tracestate, "
    "error, undo_error, input, context, output) "
    "SELECT id, revision, process_state, workflow, direction, cancelling, priority, locked_by, "
    "fence, last_number, undo_head, undo_blocker, by_hand, pivot, last_message, reply_stream, "
    "open_steps, created_at, started_at, ended_at, quiet_at, suspended_at, redo, "
    "submission_key, correlation_id, tags, reply_url, trace, tracestate, error, "
    "CASE WHEN process_state = 'error' AND direction = 'undo' THEN "
    "(SELECT step.error FROM step WHERE step.task = task.id AND step.direction = 'undo' AND "
    "step.process_state = 'error' AND "
    "instr(' ' || task.open_steps || ' ', ' ' || step.number || ' ') > 0 "
    "ORDER BY number DESC LIMIT 1) END, input, context, "
    "output FROM task",
    "DROP TABLE task",
    "ALTER TABLE task_22 RENAME TO task",
    "CREATE INDEX task_open ON task(id) WHERE {process_state open}",
    "CREATE INDEX task_rare ON task(process_state, id) WHERE {process_state rare}",
    "CREATE INDEX task_workflow ON task(workflow, id)",
    "INSERT OR IGNORE INTO error_type "
    "SELECT substr(type, length(rtrim(type, replace(type, '/', ''))) + 1), id "
    "FROM (SELECT id, json_extract(undo_error, '$.type') AS type FROM task "
    "WHERE {process_state rare} AND process_state = 'error' AND undo_error IS NOT NULL AND "
    "json_valid(undo_error)) WHERE typeof(type) = 'text'",
    NULL,
};

/* Version 23: long texts of tasks and steps, by the name of their column; `step` 0: the task's own.
 * Rows hold theirs until they are written again. */
static const char *const version_23[] = {
    "CREATE TABLE payload("
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " name TEXT NOT NULL,"
    " text TEXT NOT NULL,"
    " PRIMARY KEY (task, step, name))",
    NULL,
};

static const char *const *const versions[] = {
    version_1,  version_2,  version_3,  version_4,  version_5,  version_6,  version_7,  version_8,
    version_9,  version_10, version_11, version_12, version_13, version_14, version_15, version_16,
    version_17, version_18, version_19, version_20, version_21, version_22, version_23};

int rv_sqlite_version_newest(void)
{
    return (int)(sizeof versions / sizeof versions[0]);
}

enum rv_err rv_sqlite_number(struct rv_sqlite *store, const char *sql, int *ret_value)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
            *ret_value = sqlite3_column_int(statement, 0);
    }
    enum rv_err err = rv_sqlite_err(store, code);
    sqlite3_finalize(statement);
    return err;
}

enum rv_err rv_sqlite_version(struct rv_sqlite *store, int *ret_version)
{
    int tables = 0;
    enum rv_err err = rv_sqlite_number(store, "SELECT count(*) FROM sqlite_schema", &tables);
    if (err != RV_OK)
        return err;
    if (tables == 0) {
        *ret_version = 0;
        return RV_OK;
    }
    int ours = 0;
    err = rv_sqlite_number(store,
                           "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "
                           "('schema_version', 'task', 'step', 'instance')",
                           &ours);
    if (err != RV_OK)
        return err;
    if (ours != 4)
        return RV_ERR_NOT_FOUND;
    int version = 0;
    RV_TRY(rv_sqlite_number(store, "SELECT max(version) FROM schema_version", &version));
    if (version < 1)
        return RV_ERR_CORRUPT;
    *ret_version = version;
    return RV_OK;
}

static enum rv_err sql_execute(struct rv_sqlite *store, const char *template)
{
    enum { SQL_BYTES_MAX = 65536 };
    struct rv_buf sql;
    rv_buf_init(&sql, SQL_BYTES_MAX);
    rv_sqlite_expand(&sql, template);
    rv_buf_add_char(&sql, '\0');
    enum rv_err err = sql.failed;
    rv_assert(err != RV_ERR_LIMIT);
    if (err == RV_OK)
        err = rv_sqlite_err(store, sqlite3_exec(store->db, sql.at, NULL, NULL, NULL));
    rv_buf_done(&sql);
    return err;
}

/* After an error the transaction stays open: SQLite's message stands until the connection's next
 * statement, and closing rolls back. */
static enum rv_err version_apply(struct rv_sqlite *store, const char *const steps[], int version)
{
    enum { SQL_BYTES = 80 };
    char sql[SQL_BYTES];
    rv_assert(version >= 1);
    rv_assert(version <= rv_sqlite_version_newest());
    RV_TRY(sql_execute(store, "BEGIN IMMEDIATE"));
    for (const char *const *step = steps; *step != NULL; step++)
        RV_TRY(sql_execute(store, *step));
    sqlite3_snprintf(SQL_BYTES, sql, "INSERT INTO schema_version(version) VALUES(%d)", version);
    RV_TRY(sql_execute(store, sql));
    return sql_execute(store, "COMMIT");
}

enum rv_err rv_sqlite_create(struct rv_sqlite *store)
{
    return version_apply(store, rv_sqlite_schema, rv_sqlite_version_newest());
}

/* A table that is built anew leaves its old pages free. With secure deletion, which some builds of
 * SQLite have on, all of them are overwritten in one statement: that takes the table's size in
 * memory and once more in the log. Every row is still there, so there is nothing to hide. */
enum rv_err rv_sqlite_migrate(struct rv_sqlite *store, int version)
{
    int secure = 0;
    rv_assert(version >= 0);
    rv_assert(version <= rv_sqlite_version_newest());
    RV_TRY(rv_sqlite_number(store, "PRAGMA secure_delete", &secure));
    RV_TRY(sql_execute(store, "PRAGMA secure_delete = OFF"));
    for (; version < rv_sqlite_version_newest(); version++)
        RV_TRY(version_apply(store, versions[version], version + 1));
    return secure != 0 ? sql_execute(store, "PRAGMA secure_delete = ON") : RV_OK;
}
