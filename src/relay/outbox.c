#include "relay/outbox.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The end of the year 9999. */
#define CREATED_S_MAX INT64_C(253402300799)

enum { BUSY_MS = 1000, TRACE_BYTES_MAX = 1024 /* more is none, and the server passes it over */ };

/* The key is drawn when the row is inserted and stays with it: in a copy of the file, after the
 * restore of a backup, for as many relays as there may be. NOT NULL ON CONFLICT REPLACE: who writes
 * NULL means the default. */
static const char sql_table[] =
    "CREATE TABLE IF NOT EXISTS reeve_outbox(\n"
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
    "  workflow TEXT NOT NULL,\n"
    "  input TEXT NOT NULL ON CONFLICT REPLACE DEFAULT '{}',\n"
    "  key TEXT NOT NULL ON CONFLICT REPLACE DEFAULT ('outbox-' || lower(hex(randomblob(16)))),\n"
    "  priority INTEGER,\n"
    "  correlation_id TEXT,\n"
    "  created_at INTEGER NOT NULL ON CONFLICT REPLACE DEFAULT (strftime('%s', 'now')),\n"
    "  error TEXT,\n"
    "  traceparent TEXT,\n"
    "  tracestate TEXT);\n"
    "CREATE INDEX IF NOT EXISTS reeve_outbox_waiting ON reeve_outbox(id) WHERE error IS NULL;\n";

static const char *const column_names[] = {"id",       "workflow",       "input",      "key",
                                           "priority", "correlation_id", "created_at", "error"};

enum statement { READ, LAST, DELETE, MARK, MARKED, VERSION, BEGIN, COMMIT, ROLLBACK, STATEMENTS };

#define SQL_READ(trace)                                                                            \
    "SELECT id, workflow, input, key, priority, correlation_id, created_at, " trace                \
    " FROM reeve_outbox INDEXED BY reeve_outbox_waiting"                                           \
    " WHERE error IS NULL AND id >= ?1 AND id <= ?2 ORDER BY id LIMIT ?3"

/* Of a table that was made without the columns of the trace context: it need not have them. */
static const char sql_read_untraced[] = SQL_READ("NULL, NULL");

static const char *const statement_sql[STATEMENTS] = {
    [READ] = SQL_READ("traceparent, tracestate"),
    [LAST] = "SELECT coalesce(max(id), 0) FROM reeve_outbox",
    [DELETE] = "DELETE FROM reeve_outbox WHERE id = ?1 AND key = ?2",
    [MARK] = "UPDATE reeve_outbox SET error = ?2 WHERE id = ?1",
    [MARKED] = "SELECT coalesce(sum(error LIKE '" RV_ROW_OLD_WHY "%'), 0), count(*)"
               " FROM reeve_outbox WHERE error IS NOT NULL",
    [VERSION] = "PRAGMA data_version",
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
};

struct rv_outbox {
    char *path; /* owned */
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    int64_t version; /* of the data when it was last asked for; -1: never */
};

const char *rv_outbox_sql(void)
{
    return sql_table;
}

/* ---- what is wrong ---- */

__attribute__((format(printf, 4, 5))) static enum rv_err
fail(struct rv_relay_fault *fault, enum rv_err err, const char *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *at = fault->message;
    size_t room = sizeof fault->message;
    int n = snprintf(at, room, "%s ", path);
    if (n > 0 && (size_t)n < room)
        vsnprintf(at + n, room - (size_t)n, format, args);
    va_end(args);
    return err;
}

/* What SQLite said, for those who look after the application. */
static enum rv_err fail_sqlite(struct rv_relay_fault *fault, const char *path, sqlite3 *db)
{
    const char *said = sqlite3_errmsg(db);
    switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fail(fault, RV_ERR_BUSY, path,
                    "is locked by an open transaction of another program: end the transaction");
    case SQLITE_NOTADB:
        return fail(
            fault, RV_ERR_CORRUPT, path,
            "is not an SQLite database; give the application's database: reeve relay sqlite:PATH");
    case SQLITE_CORRUPT:
        return fail(fault, RV_ERR_CORRUPT, path, "is damaged (%s): restore it from a backup", said);
    case SQLITE_FULL:
        return fail(fault, RV_ERR_FULL, path,
                    "cannot be written because the disk is full; free up disk space");
    case SQLITE_NOMEM:
        return fail(fault, RV_ERR_MEMORY, path, "cannot be read: out of memory");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        return fail(fault, RV_ERR_IO, path,
                    "cannot be used (%s): the relay needs read and write permission for the file "
                    "and its folder",
                    said);
    default: /* no enum, but SQLite's numbers: what is left are our own statements */
        return fail(fault, RV_ERR_INVALID, path,
                    "has an unsuitable table reeve_outbox (%s); create it as shown by \"reeve "
                    "relay --print\"",
                    said);
    }
}

/* ---- opening ---- */

/* A path that SQLite would make a file of, or fail with less of a reason. */
static enum rv_err path_check(const char *path, struct rv_relay_fault *fault)
{
    struct stat about;
    if (stat(path, &about) != 0 && errno == ENOENT)
        return fail(fault, RV_ERR_NOT_FOUND, path,
                    "does not exist; give the application's database, or create one: reeve relay "
                    "--init sqlite:%s",
                    path);
    if (stat(path, &about) != 0)
        return fail(fault, RV_ERR_IO, path, "cannot be opened: %s", strerror(errno));
    if (!S_ISREG(about.st_mode))
        return fail(fault, RV_ERR_INVALID, path,
                    "is not a regular file; give the application's database");
    return RV_OK;
}

static int one_number(void *user, int count, char **values, char **names)
{
    (void)count;
    (void)names;
    *(int64_t *)user = values[0] != NULL ? strtoll(values[0], NULL, 10) : 0;
    return 0;
}

/* Durable enough: a deletion that is lost has its row sent once more, under the same key. In a
 * database without a write-ahead log, though, a write that is not synced could damage it. */
static enum rv_err database_configure(struct rv_outbox *outbox, struct rv_relay_fault *fault)
{
    static const char *const pragmas[] = {"PRAGMA wal_autocheckpoint = 0",
                                          "PRAGMA temp_store = MEMORY"};
    int64_t unused = 0;
    sqlite3_extended_result_codes(outbox->db, 1);
    sqlite3_busy_timeout(outbox->db, BUSY_MS);
    sqlite3_db_config(outbox->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    for (size_t i = 0; i < sizeof pragmas / sizeof pragmas[0]; i++)
        if (sqlite3_exec(outbox->db, pragmas[i], one_number, &unused, NULL) != SQLITE_OK)
            return fail_sqlite(fault, outbox->path, outbox->db);
    if (sqlite3_db_readonly(outbox->db, "main") == 1)
        return fail(fault, RV_ERR_IO, outbox->path,
                    "cannot be written, but the relay must delete the rows that it has submitted");
    return RV_OK;
}

/* The journal mode is the application's; what is in it decides how much to sync. */
static enum rv_err sync_choose(struct rv_outbox *outbox, struct rv_relay_fault *fault)
{
    sqlite3_stmt *statement = NULL;
    bool wal = false;
    if (sqlite3_prepare_v2(outbox->db, "PRAGMA journal_mode", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        wal = strcmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
    sqlite3_finalize(statement);
    const char *pragma = wal ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL";
    if (sqlite3_exec(outbox->db, pragma, NULL, NULL, NULL) != SQLITE_OK)
        return fail_sqlite(fault, outbox->path, outbox->db);
    return RV_OK;
}

static enum rv_err database_open(struct rv_outbox *outbox, int flags, struct rv_relay_fault *fault)
{
    flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(outbox->path, &outbox->db, flags, NULL) != SQLITE_OK)
        return fail_sqlite(fault, outbox->path, outbox->db);
    enum rv_err err = database_configure(outbox, fault);
    return err == RV_OK ? sync_choose(outbox, fault) : err;
}

/* Counts what the query finds. */
static enum rv_err count_of(struct rv_outbox *outbox, const char *query, int64_t *ret_count,
                            struct rv_relay_fault *fault)
{
    *ret_count = 0;
    if (sqlite3_exec(outbox->db, query, one_number, ret_count, NULL) != SQLITE_OK)
        return fail_sqlite(fault, outbox->path, outbox->db);
    return RV_OK;
}

#define CURE_PRINT "compare the table with the output of \"reeve relay --print\""

static enum rv_err column_count(struct rv_outbox *outbox, const char *name, int64_t *ret_count,
                                struct rv_relay_fault *fault)
{
    static const char query[] =
        "SELECT count(*) FROM pragma_table_info('reeve_outbox') WHERE name = ?1";
    sqlite3_stmt *statement = NULL;
    bool good = sqlite3_prepare_v2(outbox->db, query, -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW;
    *ret_count = good ? sqlite3_column_int64(statement, 0) : 0;
    enum rv_err err = good ? RV_OK : fail_sqlite(fault, outbox->path, outbox->db);
    sqlite3_finalize(statement);
    return err;
}

static enum rv_err shape_check(struct rv_outbox *outbox, struct rv_relay_fault *fault)
{
    int64_t count;
    enum rv_err err = count_of(
        outbox, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'reeve_outbox'",
        &count, fault);
    if (err != RV_OK)
        return err;
    if (count == 0)
        return fail(fault, RV_ERR_INVALID, outbox->path,
                    "has no table reeve_outbox: run `reeve relay --init sqlite:%s`, or add the SQL "
                    "of `reeve relay --print` to the application's migrations",
                    outbox->path);
    for (size_t i = 0; i < sizeof column_names / sizeof column_names[0]; i++) {
        err = column_count(outbox, column_names[i], &count, fault);
        if (err != RV_OK)
            return err;
        if (count == 0)
            return fail(fault, RV_ERR_INVALID, outbox->path,
                        "has a table reeve_outbox without the column %s; " CURE_PRINT,
                        column_names[i]);
    }
    err = count_of(outbox,
                   "SELECT count(*) FROM pragma_table_info('reeve_outbox')"
                   " WHERE name = 'id' AND pk = 1 AND upper(type) = 'INTEGER'",
                   &count, fault);
    if (err != RV_OK)
        return err;
    if (count == 0)
        return fail(fault, RV_ERR_INVALID, outbox->path,
                    "has a table reeve_outbox whose id is not an INTEGER PRIMARY KEY; " CURE_PRINT);
    err = count_of(outbox,
                   "SELECT count(*) FROM pragma_index_list('reeve_outbox')"
                   " WHERE name = 'reeve_outbox_waiting' AND partial = 1",
                   &count, fault);
    if (err != RV_OK)
        return err;
    if (count == 0)
        return fail(fault, RV_ERR_INVALID, outbox->path,
                    "has no index reeve_outbox_waiting; create it: reeve relay --init sqlite:%s",
                    outbox->path);
    return RV_OK;
}

static enum rv_err statements_prepare(struct rv_outbox *outbox, struct rv_relay_fault *fault)
{
    int64_t traced;
    enum rv_err err = count_of(outbox,
                               "SELECT count(*) FROM pragma_table_info('reeve_outbox')"
                               " WHERE name IN ('traceparent', 'tracestate')",
                               &traced, fault);
    if (err != RV_OK)
        return err;
    for (int i = 0; i < STATEMENTS; i++) {
        rv_assert(outbox->statements[i] == NULL);
        const char *sql = i == READ && traced < 2 ? sql_read_untraced : statement_sql[i];
        if (sqlite3_prepare_v3(outbox->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                               &outbox->statements[i], NULL) != SQLITE_OK)
            return fail_sqlite(fault, outbox->path, outbox->db);
    }
    return RV_OK;
}

static struct rv_outbox *outbox_new(const char *path, struct rv_relay_fault *fault)
{
    struct rv_outbox *outbox = calloc(1, sizeof *outbox);
    char *copy = strdup(path);
    if (outbox == NULL || copy == NULL) {
        free(outbox);
        free(copy);
        (void)fail(fault, RV_ERR_MEMORY, path, "cannot be opened: out of memory");
        return NULL;
    }
    outbox->path = copy;
    outbox->version = -1;
    return outbox;
}

enum rv_err rv_outbox_open(const char *path, struct rv_outbox **ret_outbox,
                           struct rv_relay_fault *fault)
{
    enum rv_err err = path_check(path, fault);
    if (err != RV_OK)
        return err;
    struct rv_outbox *outbox = outbox_new(path, fault);
    if (outbox == NULL)
        return RV_ERR_MEMORY;
    err = database_open(outbox, 0, fault);
    if (err != RV_OK)
        goto err_after_outbox;
    err = shape_check(outbox, fault);
    if (err != RV_OK)
        goto err_after_outbox;
    err = statements_prepare(outbox, fault);
    if (err != RV_OK)
        goto err_after_outbox;
    *ret_outbox = outbox;
    return RV_OK;

err_after_outbox:
    rv_outbox_close(outbox);
    return err;
}

static enum rv_err table_make(struct rv_outbox *outbox, struct rv_relay_fault *fault)
{
    static const char *const steps[] = {"BEGIN IMMEDIATE", sql_table, "COMMIT"};
    enum rv_err err = database_open(outbox, SQLITE_OPEN_CREATE, fault);
    if (err != RV_OK)
        return err;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (sqlite3_exec(outbox->db, steps[i], NULL, NULL, NULL) != SQLITE_OK)
            return fail_sqlite(fault, outbox->path, outbox->db);
    return shape_check(outbox, fault);
}

enum rv_err rv_outbox_make(const char *path, bool *ret_new_file, struct rv_relay_fault *fault)
{
    enum rv_err err = path_check(path, fault);
    *ret_new_file = err == RV_ERR_NOT_FOUND;
    if (err != RV_OK && err != RV_ERR_NOT_FOUND)
        return err;
    struct rv_outbox *outbox = outbox_new(path, fault);
    if (outbox == NULL)
        return RV_ERR_MEMORY;
    err = table_make(outbox, fault);
    rv_outbox_close(outbox);
    return err;
}

void rv_outbox_close(struct rv_outbox *outbox)
{
    if (outbox == NULL)
        return;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(outbox->statements[i]);
    int code = sqlite3_close(outbox->db);
    rv_assert(code == SQLITE_OK);
    free(outbox->path);
    free(outbox);
}

/* ---- reading ---- */

static struct rv_str text_of(struct rv_arena *arena, sqlite3_stmt *statement, int column,
                             size_t bytes_max)
{
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        return RV_STR_NONE;
    const char *bytes = (const char *)sqlite3_column_text(statement, column);
    size_t len = (size_t)sqlite3_column_bytes(statement, column);
    if (bytes == NULL) { /* the text is made of what another encoding holds: that takes memory */
        arena->refused = RV_ERR_MEMORY;
        return RV_STR_NONE;
    }
    /* One byte over the limit is enough to be refused. */
    return rv_arena_str(arena, (struct rv_str){bytes, len > bytes_max ? bytes_max + 1 : len});
}

/* Refuses a row with a value of a type that its column should not hold; SQLite keeps any. */
static void types_take(sqlite3_stmt *statement, struct rv_row *row)
{
    int type = sqlite3_column_type(statement, 4);
    int key_type = sqlite3_column_type(statement, 3);
    int64_t priority = sqlite3_column_int64(statement, 4);
    row->item.priority = type == SQLITE_NULL ? -1 : (int)priority;
    int64_t created_s = sqlite3_column_int64(statement, 6);
    bool timed = created_s >= 0 && created_s <= CREATED_S_MAX;
    row->created_at = timed ? created_s * RV_SECOND_MS : 0;
    if (type != SQLITE_NULL && (type != SQLITE_INTEGER || priority < 0 || priority > 9)) {
        row->verdict = RV_ROW_REFUSED;
        row->why = RV_STR("priority must be a whole number from 0 to 9, or NULL");
    } else if (key_type != SQLITE_TEXT && key_type != SQLITE_NULL) {
        row->verdict = RV_ROW_REFUSED;
        row->why = RV_STR("key must be text");
    } else if (sqlite3_column_type(statement, 6) != SQLITE_INTEGER) {
        row->verdict = RV_ROW_REFUSED;
        row->why = RV_STR("created_at must be a whole number of seconds since 1970");
    } else if (!timed) {
        row->verdict = RV_ROW_REFUSED;
        row->why = RV_STR("created_at must be a time from 1970 to 9999, in seconds since 1970 and "
                          "not in milliseconds: correct the value, then set error to NULL");
    }
}

/* False: no memory. */
static bool row_take(struct rv_arena *arena, sqlite3_stmt *statement, struct rv_row *row)
{
    *row = (struct rv_row){.id = sqlite3_column_int64(statement, 0)};
    types_take(statement, row); /* first: asking for a text changes the type */
    row->item.workflow = text_of(arena, statement, 1, RV_KEY_BYTES_MAX * 4);
    row->item.input = text_of(arena, statement, 2, RV_PAYLOAD_BYTES_MAX);
    row->item.key = text_of(arena, statement, 3, RV_KEY_BYTES_MAX);
    row->item.correlation_id = text_of(arena, statement, 5, RV_KEY_BYTES_MAX);
    row->item.traceparent = text_of(arena, statement, 7, TRACE_BYTES_MAX);
    row->item.tracestate = text_of(arena, statement, 8, TRACE_BYTES_MAX);
    return arena->refused == RV_OK;
}

enum rv_err rv_outbox_read(struct rv_outbox *outbox, struct rv_arena *arena, int64_t from,
                           int64_t until, size_t limit, size_t bytes, struct rv_row *ret_rows,
                           size_t *ret_count, struct rv_relay_fault *fault)
{
    sqlite3_stmt *statement = outbox->statements[READ];
    size_t count = 0;
    size_t taken = arena->bytes_taken;
    int code = SQLITE_ROW;
    bool room = true;
    sqlite3_bind_int64(statement, 1, from);
    sqlite3_bind_int64(statement, 2, until);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)limit);
    while (room && arena->bytes_taken - taken < bytes &&
           (code = sqlite3_step(statement)) == SQLITE_ROW) {
        rv_assert(count < limit); /* of the statement */
        room = row_take(arena, statement, &ret_rows[count]);
        if (room)
            count++;
    }
    enum rv_err err = RV_OK;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        err = fail_sqlite(fault, outbox->path, outbox->db);
    else if (!room && count == 0)
        err = fail(fault, RV_ERR_MEMORY, outbox->path, "cannot be read: out of memory");
    sqlite3_reset(statement);
    *ret_count = count;
    return err;
}

static enum rv_err number_ask(struct rv_outbox *outbox, enum statement which, int64_t *ret_number,
                              struct rv_relay_fault *fault)
{
    sqlite3_stmt *statement = outbox->statements[which];
    enum rv_err err = RV_OK;
    if (sqlite3_step(statement) == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(statement, 0);
    else
        err = fail_sqlite(fault, outbox->path, outbox->db);
    sqlite3_reset(statement);
    return err;
}

enum rv_err rv_outbox_last(struct rv_outbox *outbox, int64_t *ret_id, struct rv_relay_fault *fault)
{
    return number_ask(outbox, LAST, ret_id, fault);
}

enum rv_err rv_outbox_marked(struct rv_outbox *outbox, uint64_t *ret_old, uint64_t *ret_all,
                             struct rv_relay_fault *fault)
{
    sqlite3_stmt *statement = outbox->statements[MARKED];
    enum rv_err err = RV_OK;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        *ret_old = (uint64_t)sqlite3_column_int64(statement, 0);
        *ret_all = (uint64_t)sqlite3_column_int64(statement, 1);
    } else {
        err = fail_sqlite(fault, outbox->path, outbox->db);
    }
    sqlite3_reset(statement);
    return err;
}

enum rv_err rv_outbox_changed(struct rv_outbox *outbox, bool *ret_changed,
                              struct rv_relay_fault *fault)
{
    int64_t version = 0;
    enum rv_err err = number_ask(outbox, VERSION, &version, fault);
    if (err != RV_OK)
        return err;
    *ret_changed = version != outbox->version;
    outbox->version = version;
    return RV_OK;
}

bool rv_outbox_moved(struct rv_outbox *outbox)
{
    int moved = 0;
    int code = sqlite3_file_control(outbox->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return code == SQLITE_OK && moved != 0;
}

/* ---- settling ---- */

static bool statement_run(struct rv_outbox *outbox, enum statement which)
{
    rv_assert(which < STATEMENTS);
    sqlite3_stmt *statement = outbox->statements[which];
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE;
}

static bool row_settle(struct rv_outbox *outbox, const struct rv_row *row)
{
    bool moved = row->verdict == RV_ROW_ACCEPTED || row->verdict == RV_ROW_KNOWN;
    enum statement which = moved ? DELETE : MARK;
    sqlite3_stmt *statement = outbox->statements[which];
    rv_assert(row->verdict <= RV_ROW_OLD);
    if (row->verdict == RV_ROW_WAITS)
        return true;
    rv_assert(!sqlite3_get_autocommit(outbox->db)); /* the rows of a batch go together */
    struct rv_str why = row->why.at != NULL ? row->why : RV_STR("refused");
    struct rv_str text = moved ? row->item.key : why;
    sqlite3_bind_int64(statement, 1, row->id);
    sqlite3_bind_text(statement, 2, text.at, (int)text.len, SQLITE_STATIC);
    return statement_run(outbox, which);
}

enum rv_err rv_outbox_settle(struct rv_outbox *outbox, const struct rv_row *rows, size_t count,
                             struct rv_relay_fault *fault)
{
    bool good = statement_run(outbox, BEGIN);
    for (size_t i = 0; good && i < count; i++)
        good = row_settle(outbox, &rows[i]);
    good = good && statement_run(outbox, COMMIT);
    rv_assert(!good || sqlite3_get_autocommit(outbox->db));
    if (good)
        return RV_OK;
    enum rv_err err = fail_sqlite(fault, outbox->path, outbox->db);
    if (!sqlite3_get_autocommit(outbox->db))
        (void)statement_run(outbox, ROLLBACK); /* what it would have undone is undone by closing */
    return err;
}
