#include "sqlite_subject.h"

#include "store/sqlite/sqlite_priv.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct factory *sqlite_factory(void)
{
    for (size_t i = 0; i < factories_count; i++) {
        if (strcmp(factories[i].name, "sqlite") == 0)
            return &factories[i];
    }
    fail_msg("there is no SQLite store");
    return NULL;
}

int sqlite_setup(void **state)
{
    struct subject *subject = calloc(1, sizeof *subject);
    assert_non_null(subject);
    subject_init(subject, sqlite_factory());
    *state = subject;
    return 0;
}

int sqlite_teardown(void **state)
{
    subject_done(*state);
    free(*state);
    return 0;
}

void subject_close(struct subject *s)
{
    s->ops->close(s->store);
    s->store = NULL;
}

int64_t no_clock(void *self)
{
    (void)self;
    return 1;
}

/* Runs SQL on the closed store's file; the first column of the last row, as text. */
void sql(struct subject *s, const char *text, char result[static 64])
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    struct rv_seal *seal = rv_seal_new(s->vfs); /* what is changed here is to be found whole */
    assert_non_null(seal);
    result[0] = '\0';
    assert_int_equal(sqlite3_open_v2(s->path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                     rv_seal_name(seal)),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL),
                     SQLITE_OK); /* a disk of ours has no shared memory */
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
    int code = sqlite3_step(statement);
    for (; code == SQLITE_ROW; code = sqlite3_step(statement))
        snprintf(result, 64, "%s", (const char *)sqlite3_column_text(statement, 0));
    assert_int_equal(code, SQLITE_DONE);
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    rv_seal_free(seal);
}

void assert_sql(struct subject *s, const char *text, const char *wanted)
{
    char result[64];
    sql(s, text, result);
    assert_string_equal(result, wanted);
}

void assert_payloads_last(struct subject *s)
{
    assert_sql(s,
               "SELECT group_concat(name) FROM (SELECT name FROM pragma_table_info('task') "
               "ORDER BY cid DESC LIMIT 5)",
               "output,context,input,undo_error,error");
    assert_sql(s,
               "SELECT group_concat(name) FROM (SELECT name FROM pragma_table_info('step') "
               "ORDER BY cid DESC LIMIT 6)",
               "output,input,data,frames,attempt_error,error");
}
