/* The schema of a new store. It is what the migrations make of an empty file (test_sqlite_schema),
 * in one transaction and without the tables that they build only to build them again.
 *
 * If you change it, add a migration that does the same (migrations.c). */
#include "store/sqlite/sqlite_priv.h"

const char *const rv_sqlite_schema[] = {
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
    " retry_at INTEGER,"
    " round INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY (task, step, number)) WITHOUT ROWID",

    "CREATE TABLE submission_key("
    " key TEXT PRIMARY KEY,"
    " body_hash TEXT,"
    " task INTEGER NOT NULL) WITHOUT ROWID",

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

    "CREATE TABLE inbox("
    " id INTEGER PRIMARY KEY,"
    " target INTEGER NOT NULL,"
    " command TEXT NOT NULL,"
    " operation INTEGER NOT NULL,"
    " arrived_at INTEGER NOT NULL,"
    " payload TEXT)",

    "CREATE INDEX inbox_target ON inbox(target, id)",

    "CREATE TABLE late_reply("
    " id INTEGER PRIMARY KEY,"
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " arrived_at INTEGER,"
    " reason TEXT NOT NULL CHECK {reason late_reason},"
    " output TEXT,"
    " error TEXT)",

    "CREATE INDEX late_reply_attempt ON late_reply(task, step, attempt)",

    "CREATE TABLE record("
    " kind TEXT NOT NULL,"
    " key TEXT NOT NULL,"
    " written_at INTEGER,"
    " value TEXT,"
    " PRIMARY KEY (kind, key)) WITHOUT ROWID",

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
    " url TEXT,"
    " alert INTEGER NOT NULL DEFAULT 0)",

    "CREATE INDEX delivery_waiting ON delivery(destination, task) "
    "WHERE next <= last AND NOT parked",

    "CREATE INDEX submission_key_task ON submission_key(task)",

    "CREATE TABLE tag("
    " name TEXT NOT NULL,"
    " value TEXT NOT NULL,"
    " task INTEGER NOT NULL,"
    " PRIMARY KEY (name, value, task)) WITHOUT ROWID",

    "CREATE INDEX tag_task ON tag(task)",

    "CREATE INDEX delivery_alert ON delivery(task) WHERE alert",

    "CREATE TABLE error_type("
    " type TEXT NOT NULL,"
    " task INTEGER NOT NULL,"
    " PRIMARY KEY (type, task)) WITHOUT ROWID",

    "CREATE INDEX error_type_task ON error_type(task)",

    "CREATE INDEX attempt_token ON attempt(task, step, token)",

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

    "CREATE TABLE alert("
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

    "CREATE INDEX alert_task ON alert(task, id)",

    "CREATE INDEX alert_open ON alert(id) WHERE acked_at IS NULL AND closed_at IS NULL",

    "CREATE INDEX alert_source ON alert(source, id) WHERE source IS NOT NULL",

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

    "CREATE INDEX step_agent ON step(agent, task) WHERE ended_at IS NULL AND agent IS NOT NULL",

    "CREATE TABLE payload("
    " task INTEGER NOT NULL,"
    " step INTEGER NOT NULL,"
    " name TEXT NOT NULL,"
    " text TEXT NOT NULL,"
    " PRIMARY KEY (task, step, name))",
    NULL,
};
