/* The statements, as a table: a few words of SQL each, the columns from core/tbl/row.def. They
 * are prepared when first used, so that opening a store costs only what opening needs. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

#include <errno.h>

enum shape {
    PLAIN,   /* the text is the statement */
    INSERT,  /* INSERT INTO table(columns) VALUES(?1, ...), then the text */
    REPLACE, /* the same, over a row that may be there */
    UPDATE,  /* UPDATE table SET all columns but the keys, WHERE the keys, then the text */
    SPARED,  /* the same of a row whose columns that indexes look at are so already */
    MOVED,   /* the same, but for the state of a task */
    SELECT,  /* SELECT columns FROM table, then the text */
    GATHER   /* SELECT columns of the rows with RV_GATHER_MAX keys, NULL being the key of none */
};

struct sql {
    enum shape shape;
    const struct rv_row_kind *kind;
    const char *text;
};

#define TASK &rv_row_task
#define STEP &rv_row_step
#define ATTEMPT &rv_row_attempt
#define LATE &rv_row_late_reply
#define ALERT &rv_row_alert
/* Alerts of no task that are forgotten. */
#define TASKLESS_OVER                                                                              \
    "SELECT id FROM alert INDEXED BY alert_task WHERE task = 0 AND "                               \
    "(acked_at <= ?1 OR closed_at <= ?1) ORDER BY id LIMIT ?2"
#define MESSAGE &rv_row_message
#define HISTORY &rv_row_history
#define DELIVERY &rv_row_delivery
#define WORKFLOW &rv_row_workflow
#define RECORD &rv_row_record
#define KEY &rv_row_key
#define OPEN "{process_state open}"
#define OF_PAYLOAD "WHERE task = ?1 AND step = ?2 AND name = ?3"
/* The error of an unreadable task, or the mark of one that stands apart and is lost. */
#define KEPT_ERROR(name, parameter)                                                                \
    name " = CASE WHEN " parameter " IS NULL AND typeof(" name ") = 'blob' AND "                   \
         "(SELECT text FROM payload WHERE task = ?1 AND step = 0 AND name = '" name "') IS NULL "  \
         "THEN " name " ELSE " parameter " END, "

static const struct sql statements[RV_SQL_COUNT] = {
    [RV_SQL_BEGIN] = {PLAIN, NULL, "BEGIN IMMEDIATE"},
    [RV_SQL_COMMIT] = {PLAIN, NULL, "COMMIT"},
    [RV_SQL_ROLLBACK] = {PLAIN, NULL, "ROLLBACK"},
    [RV_SQL_TASK_GUARD] = {PLAIN, NULL, "SELECT revision FROM task WHERE id = ?1"},
    [RV_SQL_TASK_INSERT] = {INSERT, TASK, ""},
    [RV_SQL_TASK_UPDATE] = {SPARED, TASK, " AND revision=?"},
    [RV_SQL_TASK_MOVE] = {MOVED, TASK, " AND revision=?"},
    [RV_SQL_TASK_REPLACE] = {UPDATE, TASK, " AND revision=?"},
    [RV_SQL_TASK_KEEP] = {PLAIN, NULL,
                          "UPDATE task SET revision = ?2, ended_at = ?3, " KEPT_ERROR("error", "?4")
                              KEPT_ERROR("undo_error",
                                         "?5") "process_state = ?6, locked_by = ?7 WHERE id = ?1"},
    [RV_SQL_TASK_LOAD] = {SELECT, TASK, "WHERE id = ?1"},
    [RV_SQL_TASK_GATHER] = {GATHER, TASK, NULL},
    [RV_SQL_TASK_OPEN] = {PLAIN, NULL,
                          "SELECT id, revision, process_state FROM task INDEXED BY task_open "
                          "WHERE " OPEN " AND id > ?1 ORDER BY id LIMIT ?2"},
    [RV_SQL_TASK_OPEN_COUNT] = {PLAIN, NULL,
                                "SELECT process_state, count(*) FROM task INDEXED BY task_open "
                                "WHERE " OPEN " GROUP BY process_state"},
    [RV_SQL_STEP_INSERT] = {INSERT, STEP, ""},
    [RV_SQL_STEP_UPDATE] = {SPARED, STEP, ""},
    [RV_SQL_STEP_MOVE] = {UPDATE, STEP, ""},
    [RV_SQL_STEP_LOAD] = {SELECT, STEP, "WHERE task = ?1 AND number = ?2"},
    [RV_SQL_STEP_GATHER] = {GATHER, STEP, NULL},
    [RV_SQL_STEP_LIST] = {SELECT, STEP, "WHERE task = ?1 AND number > ?2 ORDER BY number LIMIT ?3"},
    [RV_SQL_PAYLOAD_LOAD] = {PLAIN, NULL, "SELECT text FROM payload " OF_PAYLOAD},
    [RV_SQL_PAYLOAD_PUT] = {PLAIN, NULL,
                            "INSERT OR REPLACE INTO payload(task, step, name, text) "
                            "VALUES(?1, ?2, ?3, ?4)"},
    [RV_SQL_PAYLOAD_KEEP] = {PLAIN, NULL,
                             "INSERT INTO payload(task, step, name, text) SELECT ?1, ?2, ?3, ?4 "
                             "WHERE NOT EXISTS (SELECT 1 FROM payload " OF_PAYLOAD ")"},
    [RV_SQL_PAYLOAD_REMOVE] = {PLAIN, NULL, "DELETE FROM payload " OF_PAYLOAD},
    [RV_SQL_ATTEMPT_INSERT] = {INSERT, ATTEMPT, ""},
    [RV_SQL_ATTEMPT_LIST] = {SELECT, ATTEMPT,
                             "WHERE task = ?1 AND (step, number) > (?3, ?4) "
                             "ORDER BY step, number LIMIT ?5"},
    [RV_SQL_ATTEMPT_LIST_STEP] = {SELECT, ATTEMPT,
                                  "WHERE task = ?1 AND step = ?2 AND (step, number) > (?3, ?4) "
                                  "ORDER BY number LIMIT ?5"},
    [RV_SQL_ATTEMPT_OF_TOKEN] = {SELECT, ATTEMPT,
                                 "INDEXED BY attempt_token "
                                 "WHERE task = ?1 AND step = ?2 AND token = ?3 LIMIT 1"},
    [RV_SQL_LATE_INSERT] = {INSERT, LATE, ""},
    [RV_SQL_LATE_LIST] = {SELECT, LATE, "WHERE task = ?1 ORDER BY id LIMIT ?2 OFFSET ?3"},
    [RV_SQL_LATE_LIST_ATTEMPT] = {SELECT, LATE,
                                  "WHERE task = ?1 AND step = ?4 AND attempt = ?5 "
                                  "ORDER BY id LIMIT ?2 OFFSET ?3"},
    [RV_SQL_ALERT_INSERT] = {INSERT, ALERT, ""},
    [RV_SQL_ALERT_CLOSE] = {PLAIN, NULL,
                            "UPDATE alert SET closed_at = ?2 WHERE task = ?1 AND closed_at IS NULL "
                            "AND kind NOT IN ('undeliverable', 'late-done')"},
    [RV_SQL_ALERT_CLOSE_LATE] = {PLAIN, NULL,
                                 "UPDATE alert SET closed_at = ?2 WHERE task = ?1 AND step = ?3 "
                                 "AND closed_at IS NULL AND kind = 'late-done'"},
    [RV_SQL_ALERT_ACK] = {PLAIN, NULL,
                          "UPDATE alert SET acked_at = ?2, acked_by = ?3 "
                          "WHERE id = ?1 AND acked_at IS NULL"},
    [RV_SQL_ALERT_THERE] = {PLAIN, NULL, "SELECT 1 FROM alert WHERE id = ?1"},
    [RV_SQL_ALERT_OF_SOURCE] = {SELECT, ALERT,
                                "INDEXED BY alert_source WHERE source = ?1 AND acked_at IS NULL "
                                "AND closed_at IS NULL ORDER BY id DESC LIMIT 1"},
    [RV_SQL_ALERT_LIST] = {SELECT, ALERT, "WHERE id <= ?1 ORDER BY id DESC LIMIT ?2"},
    [RV_SQL_ALERT_LIST_OPEN] = {SELECT, ALERT,
                                "INDEXED BY alert_open WHERE acked_at IS NULL "
                                "AND closed_at IS NULL AND id <= ?1 ORDER BY id DESC LIMIT ?2"},
    [RV_SQL_ALERT_LIST_TASK] = {SELECT, ALERT,
                                "INDEXED BY alert_task WHERE task = ?3 AND id <= ?1 AND "
                                "(NOT ?4 OR (acked_at IS NULL AND closed_at IS NULL)) "
                                "ORDER BY id DESC LIMIT ?2"},
    [RV_SQL_ALERT_CLOSE_UNDELIVERABLE] =
        {PLAIN, NULL,
         "UPDATE alert SET closed_at = ?2 WHERE task = ?1 AND closed_at IS NULL "
         "AND kind = 'undeliverable'"},
    [RV_SQL_HISTORY_INSERT] = {INSERT, HISTORY, ""},
    [RV_SQL_HISTORY_LIST] = {SELECT, HISTORY,
                             "WHERE task = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3"},
    [RV_SQL_MESSAGE_INSERT] = {INSERT, MESSAGE, ""},
    [RV_SQL_MESSAGE_LIST] = {SELECT, MESSAGE,
                             "WHERE task = ?1 AND number > ?2 ORDER BY number LIMIT ?3"},
    [RV_SQL_DELIVERY_GROW] =
        {INSERT, DELIVERY,
         " ON CONFLICT(task) DO UPDATE SET "
         "since = CASE WHEN next > last THEN excluded.since ELSE since END, "
         "due_at = CASE WHEN next > last THEN excluded.due_at ELSE due_at END, "
         "last = excluded.last"},
    [RV_SQL_DELIVERY_UPDATE] =
        {PLAIN, NULL,
         "UPDATE delivery SET next = ?2, failures = ?3, since = ?4, due_at = ?5, "
         "parked = ?6 WHERE task = ?1 AND next = ?7 AND failures = ?8"},
    [RV_SQL_DELIVERY_AGAIN] =
        {PLAIN, NULL,
         "UPDATE delivery INDEXED BY delivery_alert SET parked = 0, failures = 0, since = ?1, "
         "due_at = ?1 WHERE alert AND parked"},
    [RV_SQL_DELIVERY_LOAD] = {SELECT, DELIVERY, "WHERE task = ?1"},
    [RV_SQL_DELIVERY_LIST] = {SELECT, DELIVERY,
                              "INDEXED BY delivery_waiting WHERE next <= last AND NOT parked AND "
                              "(destination, task) > (?1, ?2) ORDER BY destination, task LIMIT ?3"},
    [RV_SQL_KEY_INSERT] = {INSERT, KEY, ""},
    [RV_SQL_KEY_LOAD] = {SELECT, KEY, "WHERE key = ?1"},
    [RV_SQL_SWEEP_WALK] =
        {PLAIN, NULL,
         "SELECT id, {process_state ended} AND ended_at <= ?3 AND NOT EXISTS "
         "(SELECT 1 FROM delivery WHERE delivery.task = task.id AND next <= last) AND NOT EXISTS "
         "(SELECT 1 FROM alert INDEXED BY alert_task WHERE alert.task = task.id AND "
         "kind = 'late-done' AND acked_at IS NULL AND closed_at IS NULL) "
         "FROM task WHERE id > ?1 ORDER BY id LIMIT ?2"},
    [RV_SQL_SWEEP_STEPS] = {PLAIN, NULL, "DELETE FROM step WHERE task BETWEEN ?1 AND ?2"},
    [RV_SQL_SWEEP_PAYLOADS] = {PLAIN, NULL, "DELETE FROM payload WHERE task BETWEEN ?1 AND ?2"},
    [RV_SQL_SWEEP_ATTEMPTS] = {PLAIN, NULL, "DELETE FROM attempt WHERE task BETWEEN ?1 AND ?2"},
    [RV_SQL_SWEEP_LATE] = {PLAIN, NULL, "DELETE FROM late_reply WHERE task BETWEEN ?1 AND ?2"},
    [RV_SQL_SWEEP_ALERTS] = {PLAIN, NULL, "DELETE FROM alert WHERE task BETWEEN ?1 AND ?2"},
    [RV_SQL_SWEEP_NOTICES] = {PLAIN, NULL,
                              "DELETE FROM delivery WHERE task IN (SELECT id FROM alert "
                              "INDEXED BY alert_task WHERE task BETWEEN ?1 AND ?2)"},
    [RV_SQL_SWEEP_TASKLESS_NOTICES] = {PLAIN, NULL,
                                       "DELETE FROM delivery WHERE task IN (" TASKLESS_OVER ")"},
    [RV_SQL_SWEEP_TASKLESS] = {PLAIN, NULL, "DELETE FROM alert WHERE id IN (" TASKLESS_OVER ")"},
    [RV_SQL_SWEEP_HISTORY] = {PLAIN, NULL, "DELETE FROM history WHERE task BETWEEN ?1 AND ?2"},
    [RV_SQL_SWEEP_MESSAGES] = {PLAIN, NULL, "DELETE FROM message WHERE task BETWEEN ?1 AND ?2"},
    [RV_SQL_SWEEP_DELIVERY] = {PLAIN, NULL,
                               "DELETE FROM delivery WHERE task BETWEEN ?1 AND ?2 AND NOT alert"},
    [RV_SQL_SWEEP_TAGS] = {PLAIN, NULL, "DELETE FROM tag WHERE task BETWEEN ?1 AND ?2"},
    [RV_SQL_SWEEP_ERROR_TYPES] = {PLAIN, NULL,
                                  "DELETE FROM error_type WHERE task BETWEEN ?1 AND ?2"},
    [RV_SQL_SWEEP_TASK] = {PLAIN, NULL, "DELETE FROM task WHERE id BETWEEN ?1 AND ?2"},
    [RV_SQL_SWEEP_KEY_WALK] =
        {PLAIN, NULL,
         "SELECT task, NOT EXISTS (SELECT 1 FROM task WHERE task.id = submission_key.task) "
         "FROM submission_key WHERE task > ?1 ORDER BY task LIMIT ?2"},
    [RV_SQL_SWEEP_KEY] = {PLAIN, NULL, "DELETE FROM submission_key WHERE task BETWEEN ?1 AND ?2"},
    [RV_SQL_WORKFLOW_INSERT] = {INSERT, WORKFLOW, ""},
    [RV_SQL_WORKFLOW_LOAD] = {SELECT, WORKFLOW, "WHERE id = ?1"},
    [RV_SQL_WORKFLOW_FIND] = {SELECT, WORKFLOW,
                              "WHERE namespace = ?1 AND name = ?2 AND version = ?3"},
    [RV_SQL_WORKFLOW_FIND_NEWEST] = {SELECT, WORKFLOW,
                                     "WHERE namespace = ?1 AND name = ?2 "
                                     "ORDER BY published_at DESC, id DESC LIMIT 1"},
    [RV_SQL_WORKFLOW_LIST] = {SELECT, WORKFLOW,
                              "ORDER BY namespace, name, published_at DESC, id DESC "
                              "LIMIT ?2 OFFSET ?1"},
    [RV_SQL_WORKFLOW_IDS] = {PLAIN, NULL,
                             "SELECT id FROM workflow WHERE namespace = ?1 AND name = ?2 "
                             "AND (?3 IS NULL OR version = ?3)"},
    [RV_SQL_RECORD_PUT] = {REPLACE, RECORD, ""},
    [RV_SQL_RECORD_REMOVE] = {PLAIN, NULL, "DELETE FROM record WHERE kind = ?1 AND key = ?2"},
    [RV_SQL_RECORD_LIST] = {SELECT, RECORD,
                            "WHERE kind = ?1 AND key >= ?2 AND key IS NOT ?3 "
                            "ORDER BY key LIMIT ?4"},
    [RV_SQL_WALK_ALL] = {PLAIN, NULL,
                         "SELECT id, process_state, workflow FROM task "
                         "WHERE id <= ?1 ORDER BY id DESC LIMIT ?2"},
    [RV_SQL_WALK_OPEN] = {PLAIN, NULL,
                          "SELECT id, process_state, workflow FROM task INDEXED BY task_open "
                          "WHERE " OPEN " AND id <= ?1 ORDER BY id DESC LIMIT ?2"},
    [RV_SQL_WALK_RARE] = {PLAIN, NULL,
                          "SELECT id, process_state, workflow FROM task INDEXED BY task_rare "
                          "WHERE {process_state rare} AND process_state = ?3 AND id <= ?1 "
                          "ORDER BY id DESC LIMIT ?2"},
    [RV_SQL_WALK_WORKFLOW] = {PLAIN, NULL,
                              "SELECT id, process_state, workflow FROM task "
                              "INDEXED BY task_workflow WHERE workflow = ?3 AND id <= ?1 "
                              "ORDER BY id DESC LIMIT ?2"},
    [RV_SQL_WALK_TAG] = {PLAIN, NULL,
                         "SELECT tag.task, process_state, workflow FROM tag CROSS JOIN task "
                         "ON task.id = tag.task WHERE tag.name = ?3 AND tag.value = ?4 "
                         "AND tag.task <= ?1 ORDER BY tag.task DESC LIMIT ?2"},
    [RV_SQL_WALK_ERROR] = {PLAIN, NULL,
                           "SELECT error_type.task, process_state, workflow FROM error_type "
                           "CROSS JOIN task ON task.id = error_type.task WHERE type = ?3 "
                           "AND error_type.task <= ?1 ORDER BY error_type.task DESC LIMIT ?2"},
    [RV_SQL_WALK_AGENT] = {PLAIN, NULL,
                           "SELECT step.task, task.process_state, workflow FROM step "
                           "INDEXED BY step_agent CROSS JOIN task ON task.id = step.task "
                           "WHERE step.agent = ?3 AND step.ended_at IS NULL AND step.task <= ?1 "
                           "ORDER BY step.task DESC LIMIT ?2"},
    [RV_SQL_ERROR_TYPE_INSERT] = {PLAIN, NULL,
                                  "INSERT OR IGNORE INTO error_type(type, task) VALUES(?1, ?2)"},
    [RV_SQL_TAG_INSERT] = {PLAIN, NULL, "INSERT INTO tag(name, value, task) VALUES(?1, ?2, ?3)"},
    [RV_SQL_TASK_AGENT] = {PLAIN, NULL,
                           "SELECT 1 FROM step WHERE task = ?1 AND number = ?2 AND agent = ?3"},
    [RV_SQL_TASK_LOOK] = {PLAIN, NULL,
                          "SELECT " RV_SQL_TASK_ERROR_TEXT ", tags, open_steps, suspended_at "
                          "FROM task WHERE id = ?1"},
    [RV_SQL_INSTANCE_NEWEST] = {PLAIN, NULL,
                                "SELECT number, enlistment, (SELECT max(alive_at) FROM instance) "
                                "FROM instance ORDER BY enlistment DESC LIMIT 1"},
    [RV_SQL_INSTANCE_REPLACE] = {PLAIN, NULL,
                                 "INSERT OR REPLACE INTO instance(number, enlistment, boot, pid, "
                                 "host, enlisted_at, alive_at, batch) "
                                 "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)"},
    [RV_SQL_INSTANCE_COMMIT] = {PLAIN, NULL,
                                "UPDATE instance SET alive_at = ?2, batch = ?3 WHERE number = ?1"},
    [RV_SQL_INSTANCE_ALIVE] = {PLAIN, NULL, "UPDATE instance SET alive_at = ?2 WHERE number = ?1"},
    [RV_SQL_INSTANCE_BATCH] = {PLAIN, NULL, "SELECT batch FROM instance WHERE number = ?1"},
    [RV_SQL_ROLE_LOAD] = {PLAIN, NULL,
                          "SELECT instance, epoch, lease_until FROM role WHERE name = ?1"},
    [RV_SQL_ROLE_REPLACE] = {PLAIN, NULL,
                             "INSERT OR REPLACE INTO role(name, instance, epoch, lease_until) "
                             "VALUES(?1, ?2, ?3, ?4)"},
};

/* Whether the statement leaves the column as it is: an index looks at it, and SQLite writes the
 * index anew for each column that is set, also to the same value. */
static bool left_out(const struct sql *of, const struct rv_field *field)
{
    if (of->shape != SPARED && of->shape != MOVED)
        return false;
    if (of->kind == TASK)
        return field->offset == offsetof(struct rv_task, workflow) ||
               (field->offset == offsetof(struct rv_task, state) && of->shape == SPARED);
    return field->offset == offsetof(struct rv_step, agent) ||
           field->offset == offsetof(struct rv_step, ended_at);
}

static void insert_write(struct rv_buf *sql, const char *verb, const struct sql *of)
{
    const struct rv_row_kind *kind = of->kind;
    rv_assert(kind->count <= RV_COLUMNS_MAX);
    rv_buf_printf(sql, "%s INTO %s(", verb, kind->table);
    for (int i = 0; i < kind->count; i++)
        rv_buf_printf(sql, "%s%s", i > 0 ? "," : "", kind->fields[i].column);
    rv_buf_lit(sql, ") VALUES(");
    for (int i = 0; i < kind->count; i++)
        rv_buf_printf(sql, "%s?%d", i > 0 ? "," : "", i + 1);
    rv_buf_lit(sql, ")");
    rv_sqlite_expand(sql, of->text);
}

static void update_write(struct rv_buf *sql, const struct sql *of)
{
    const struct rv_row_kind *kind = of->kind;
    rv_assert(kind->keys > 0); /* otherwise it would change all rows */
    rv_assert(kind->keys < kind->count);
    rv_buf_printf(sql, "UPDATE %s", kind->table);
    const char *before = " SET ";
    for (int i = kind->keys; i < kind->count; i++) {
        if (left_out(of, &kind->fields[i]))
            continue;
        rv_buf_printf(sql, "%s%s=?%d", before, kind->fields[i].column, i + 1);
        before = ",";
    }
    for (int i = 0; i < kind->keys; i++)
        rv_buf_printf(sql, "%s%s=?%d", i > 0 ? " AND " : " WHERE ", kind->fields[i].column, i + 1);
    for (int i = kind->keys; i < kind->count; i++)
        if (left_out(of, &kind->fields[i]))
            rv_buf_printf(sql, " AND %s IS ?%d", kind->fields[i].column, i + 1);
    rv_sqlite_expand(sql, of->text);
}

static void columns_write(struct rv_buf *sql, const struct rv_row_kind *kind,
                          enum rv_columns columns)
{
    rv_buf_lit(sql, "SELECT ");
    for (int i = 0; i < kind->count; i++)
        rv_buf_printf(sql, "%s%s", i > 0 ? "," : "",
                      kind->fields[i].least <= columns ? kind->fields[i].column : "NULL");
}

static void select_write(struct rv_buf *sql, const struct sql *of, enum rv_columns columns)
{
    columns_write(sql, of->kind, columns);
    rv_buf_printf(sql, " FROM %s ", of->kind->table);
    rv_sqlite_expand(sql, of->text);
}

/* CROSS: the keys are gone through one after the other, each by the index. */
static void gather_write(struct rv_buf *sql, const struct rv_row_kind *kind,
                         enum rv_columns columns)
{
    columns_write(sql, kind, columns);
    rv_buf_lit(sql, " FROM (VALUES");
    for (int i = 0; i < RV_GATHER_MAX; i++) {
        for (int key = 0; key < kind->keys; key++)
            rv_buf_printf(sql, "%s?%d",
                          key > 0 ? ","
                          : i > 0 ? ",("
                                  : "(",
                          i * kind->keys + key + 1);
        rv_buf_lit(sql, ")");
    }
    rv_buf_printf(sql, ") CROSS JOIN %s", kind->table);
    for (int key = 0; key < kind->keys; key++)
        rv_buf_printf(sql, "%s%s=column%d", key > 0 ? " AND " : " ON ", kind->fields[key].column,
                      key + 1);
}

static void sql_write(struct rv_buf *sql, const struct sql *of, enum rv_columns columns)
{
    switch (of->shape) {
    case PLAIN:
        rv_sqlite_expand(sql, of->text);
        break;
    case INSERT:
        insert_write(sql, "INSERT", of);
        break;
    case REPLACE:
        insert_write(sql, "INSERT OR REPLACE", of);
        break;
    case UPDATE:
    case SPARED:
    case MOVED:
        update_write(sql, of);
        break;
    case SELECT:
        select_write(sql, of, columns);
        break;
    case GATHER:
        gather_write(sql, of->kind, columns);
        break;
    }
}

enum rv_err rv_sqlite_statement_of(struct rv_sqlite *store, enum rv_sqlite_sql sql,
                                   enum rv_columns columns, sqlite3_stmt **ret_statement)
{
    rv_assert(columns <= RV_COLUMNS_ALL);
    rv_assert(sql < RV_SQL_COUNT);
    sqlite3_stmt **kept = &store->statements[columns][sql];
    if (store->broken)
        return RV_ERR_IO;
    if (*kept == NULL) {
        enum { SQL_BYTES_MAX = 16384 };
        struct rv_buf text;
        rv_buf_init(&text, SQL_BYTES_MAX);
        sql_write(&text, &statements[sql], columns);
        enum rv_err err = text.failed;
        rv_assert(err != RV_ERR_LIMIT);
        if (err == RV_OK)
            err = rv_sqlite_err(store, sqlite3_prepare_v3(store->db, text.at, (int)text.len,
                                                          SQLITE_PREPARE_PERSISTENT, kept, NULL));
        rv_buf_done(&text);
        if (err != RV_OK)
            return err;
    }
    rv_assert(*kept != NULL);
    *ret_statement = *kept;
    return RV_OK;
}

enum rv_err rv_sqlite_statement(struct rv_sqlite *store, enum rv_sqlite_sql sql,
                                sqlite3_stmt **ret_statement)
{
    return rv_sqlite_statement_of(store, sql, RV_COLUMNS_ALL, ret_statement);
}

void rv_sqlite_statements_done(struct rv_sqlite *store)
{
    for (int columns = 0; columns <= RV_COLUMNS_ALL; columns++) {
        for (int i = 0; i < RV_SQL_COUNT; i++) {
            sqlite3_finalize(store->statements[columns][i]);
            store->statements[columns][i] = NULL;
        }
    }
}

enum rv_err rv_sqlite_run(struct rv_sqlite *store, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    rv_assert(code != SQLITE_ROW);
    enum rv_err err = rv_sqlite_err(store, code);
    sqlite3_reset(statement);
    return err;
}

enum rv_err rv_sqlite_next(struct rv_sqlite *store, sqlite3_stmt *statement, bool *ret_there)
{
    int code = sqlite3_step(statement);
    *ret_there = code == SQLITE_ROW;
    return rv_sqlite_err(store, code);
}

/* A used-up quota or limit on file sizes (ulimit -f) reaches SQLite as a failed write; to us it is
 * a full disk. Only the files themselves still know why (sqlite3_system_errno is not set by a
 * COMMIT), and each only of its own last failure, however old: the one that was being written is
 * asked. A transaction writes the log, a checkpoint the database; while a store is being opened it
 * may be either, but then neither is old. */
static bool quota_used_up(struct rv_sqlite *store)
{
    int of_database = 0;
    int of_log = 0;
    sqlite3_file *log = NULL;
    if (!store->in_transaction)
        sqlite3_file_control(store->db, "main", SQLITE_FCNTL_LAST_ERRNO, &of_database);
    if (!store->in_checkpoint)
        sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (log != NULL && log->pMethods != NULL)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &of_log);
    return of_database == EDQUOT || of_database == EFBIG || of_log == EDQUOT || of_log == EFBIG;
}

static enum rv_err io_err(struct rv_sqlite *store, int code)
{
    if (code == SQLITE_IOERR_NOMEM)
        return RV_ERR_MEMORY;
    if (code == SQLITE_IOERR_DATA)
        return RV_ERR_CORRUPT; /* seal.c */
    return code == SQLITE_IOERR_WRITE && quota_used_up(store) ? RV_ERR_FULL : RV_ERR_IO;
}

static enum rv_err code_err(struct rv_sqlite *store, int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return RV_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return RV_ERR_BUSY;
    case SQLITE_FULL:
        return RV_ERR_FULL;
    case SQLITE_NOMEM:
        return RV_ERR_MEMORY;
    case SQLITE_TOOBIG:
        return RV_ERR_LIMIT;
    case SQLITE_CONSTRAINT:
        return RV_ERR_INVALID;
    case SQLITE_IOERR:
        return io_err(store, code);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return RV_ERR_IO;
    case SQLITE_MISUSE:
        rv_assert(code != SQLITE_MISUSE);
        return RV_ERR_IO;
    default: /* CORRUPT, NOTADB, and ERROR: a table or column is not as the schema says */
        return RV_ERR_CORRUPT;
    }
}

/* What cannot be read because somebody has written to the file is not the disk's fault. */
enum rv_err rv_sqlite_err(struct rv_sqlite *store, int code)
{
    enum rv_err err = code_err(store, code);
    if ((err == RV_ERR_CORRUPT || err == RV_ERR_IO) && rv_place_changed(store))
        return RV_ERR_DISPLACED;
    return err;
}
