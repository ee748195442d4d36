/* A look at a store at rest, for what no server would see until it needs it: a page that has
 * changed on the disk, an index that has lost an entry, rows whose task is not there. */
#include "store/sqlite/sqlite_priv.h"

#include <inttypes.h>
#include <stdio.h>

enum { TOLD_MAX = 100, WHAT_BYTES = 512 };

struct look {
    struct rv_sqlite *store;
    const struct rv_store_sqlite_finder *finder;
    size_t told; /* by the part that looks now */
    bool unread; /* told that not all can be read */
};

static const struct rv_task_id no_task = {0};

static void look_tell(struct look *look, struct rv_task_id task, const char *what)
{
    if (look->told++ < TOLD_MAX)
        look->finder->found(look->finder->self, task, what);
}

/* What one part has found beyond what it told. */
static void look_end(struct look *look, const char *what)
{
    char text[WHAT_BYTES];
    if (look->told > TOLD_MAX) {
        snprintf(text, sizeof text, "%zu more %s", look->told - TOLD_MAX, what);
        look->finder->found(look->finder->self, no_task, text);
    }
    look->told = 0;
}

/* ---- pages ---- */

static void page_found(void *self, int64_t page)
{
    char text[WHAT_BYTES];
    snprintf(text, sizeof text, "page %" PRId64 " has a wrong checksum", page);
    look_tell(self, no_task, text);
}

static enum rv_err pages_look(struct look *look)
{
    int code = rv_seal_check(look->store->db, page_found, look);
    look_end(look, "pages have a wrong checksum");
    return rv_sqlite_err(look->store, code);
}

/* ---- SQLite's trees, and rows without their task ---- */

/* Rows of what is told: a text alone, or a task's id and a text. Damage ends the walk. */
static enum rv_err rows_look(struct look *look, const char *sql, const char *more)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(look->store->db, sql, -1, &statement, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
            break;
        int columns = sqlite3_column_count(statement);
        const char *text = (const char *)sqlite3_column_text(statement, columns - 1);
        struct rv_task_id task = {columns > 1 ? sqlite3_column_int64(statement, 0) : 0};
        if (text == NULL) /* every statement below gives one */
            code = SQLITE_NOMEM;
        else if (strcmp(text, "ok") != 0)
            look_tell(look, task, text);
    }
    enum rv_err err = rv_sqlite_err(look->store, code);
    sqlite3_finalize(statement);
    look_end(look, more);
    if (err != RV_ERR_CORRUPT)
        return err;
    if (!look->unread)
        look_tell(look, no_task, "a part of the file cannot be read: the check is incomplete");
    look->unread = true;
    look->told = 0;
    return RV_OK;
}

#define ORPHANS(table)                                                                             \
    "SELECT DISTINCT task, "                                                                       \
    "'rows in the table " #table " belong to this task, which does not exist' "                    \
    "FROM " #table " WHERE task NOT IN (SELECT id FROM task)"

/* The texts that may stand apart from their rows (apart.c). */
#define TASK_TEXTS(X) X(error) X(undo_error) X(input) X(context) X(output)
#define STEP_TEXTS(X) X(error) X(attempt_error) X(frames) X(data) X(input) X(output)
#define APART(column) "(typeof(" #column ") = 'blob' AND length(" #column ") = 0)"
#define PLUS(column) " + " APART(column)
#define WHEN(column) " WHEN '" #column "' THEN " APART(column)
/* How many of a row's texts do, and whether that of a row of the table payload is one of them. */
#define COUNT(texts) "0" texts(PLUS)
#define NAMED(texts) "CASE name" texts(WHEN) " ELSE 0 END"
#define LACKS_TEXT "'the table payload lacks a text of this task'"
#define SPARE_TEXT "'a row in the table payload belongs to no text of this task'"

static const char *const statements[] = {
    "PRAGMA ignore_check_constraints = OFF", /* the words, too */
    "PRAGMA integrity_check",
    ORPHANS(step),
    ORPHANS(attempt),
    ORPHANS(late_reply),
    ORPHANS(alert) " AND source IS NULL",
    ORPHANS(message),
    ORPHANS(history),
    ORPHANS(delivery) " AND NOT alert",
    "SELECT task, 'a delivery to the alert webhook refers to an alert that does not exist' FROM "
    "delivery WHERE alert AND task NOT IN (SELECT id FROM alert)",
    ORPHANS(tag),
    ORPHANS(error_type),
    "SELECT id, " LACKS_TEXT " FROM task WHERE " COUNT(
        TASK_TEXTS) " <> (SELECT count(*) FROM payload "
                    "WHERE payload.task = task.id AND payload.step = 0 AND " NAMED(TASK_TEXTS) ")",
    "SELECT DISTINCT step.task, " LACKS_TEXT
    " FROM step WHERE " COUNT(STEP_TEXTS) " <> (SELECT count(*) FROM "
                                          "payload WHERE payload.task = step.task AND payload.step "
                                          "= step.number AND " NAMED(STEP_TEXTS) ")",
    "SELECT DISTINCT payload.task, " SPARE_TEXT
    " FROM payload WHERE payload.step = 0 AND NOT EXISTS "
    "(SELECT 1 FROM task WHERE task.id = payload.task AND " NAMED(TASK_TEXTS) ")",
    "SELECT DISTINCT payload.task, " SPARE_TEXT
    " FROM payload WHERE payload.step <> 0 AND NOT EXISTS "
    "(SELECT 1 FROM step WHERE step.task = payload.task AND step.number = payload.step "
    "AND " NAMED(STEP_TEXTS) ")",
    /* Else it is not found by them, or by others. */
    "SELECT id, 'the tags of this task do not match the table tag' FROM task WHERE tags IS NOT "
    "NULL AND (SELECT count(*) FROM tag WHERE tag.task = task.id) <> CASE WHEN json_valid(tags) "
    "THEN (SELECT count(*) FROM json_each(tags)) ELSE -1 END",
    "SELECT id, 'the table error_type has no row for the error of this task' FROM task WHERE "
    "json_valid(" RV_SQL_TASK_ERROR_TEXT ") AND typeof(json_extract(" RV_SQL_TASK_ERROR_TEXT ", "
    "'$.type')) = 'text' AND NOT EXISTS (SELECT 1 FROM error_type e WHERE e.task = id AND "
    "substr('/' || (" RV_SQL_TASK_ERROR_TEXT " ->> '$.type'), -1 - length(e.type)) = "
    "'/' || e.type)",
    /* Else the same key would make a second task. */
    "SELECT id, 'the table submission_key has no row for the idempotency key of this task' FROM "
    "task WHERE submission_key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM submission_key k WHERE "
    "k.key = submission_key AND k.task = task.id)",
};

enum rv_err rv_store_sqlite_check(struct rv_store *base,
                                  const struct rv_store_sqlite_finder *finder)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    struct look look = {.store = store, .finder = finder};
    RV_TRY(rv_sqlite_checkpoint(store));
    RV_TRY(pages_look(&look));
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        RV_TRY(rows_look(&look, statements[i], "findings of the same kind"));
    return RV_OK;
}
