/* The outbox in real SQLite files: its shape, what is read and settled, and relays that are killed
 * at any instruction of SQLite. */
#include "base/hash.h"
#include "base/prng.h"
#include "relay/lock.h"
#include "relay/outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS_MAX = 64 };

struct fixture {
    char folder[64];
    char path[128];
    sqlite3 *application; /* the application's own connection */
    struct rv_outbox *outbox;
    struct rv_arena arena;
    struct rv_relay_fault fault;
    struct rv_row rows[ROWS_MAX];
    size_t count;
};

static void run_sql(sqlite3 *db, const char *sql)
{
    char *said = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s: %s", sql, said);
}

static int fixture_open_mode(void **state, const char *mode)
{
    static struct fixture f;
    bool new_file;
    memset(&f, 0, sizeof f);
    rv_arena_init(&f.arena, 0);
    snprintf(f.folder, sizeof f.folder, "/tmp/reeve-outbox-XXXXXX");
    assert_non_null(mkdtemp(f.folder));
    snprintf(f.path, sizeof f.path, "%s/shop.db", f.folder);
    assert_int_equal(rv_outbox_make(f.path, &new_file, &f.fault), RV_OK);
    assert_true(new_file);
    assert_int_equal(sqlite3_open(f.path, &f.application), SQLITE_OK);
    sqlite3_busy_timeout(f.application, 10000);
    run_sql(f.application, mode);
    *state = &f;
    return 0;
}

static int fixture_open(void **state)
{
    return fixture_open_mode(state, "PRAGMA journal_mode = WAL");
}

static int fixture_open_journal(void **state)
{
    return fixture_open_mode(state, "PRAGMA journal_mode = DELETE");
}

static int fixture_close(void **state)
{
    struct fixture *f = *state;
    char command[128];
    rv_outbox_close(f->outbox);
    assert_int_equal(sqlite3_close(f->application), SQLITE_OK);
    rv_arena_done(&f->arena);
    static const char *const names[] = {"", "-wal", "-shm", "-journal", "-relay"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(command, sizeof command, "%s%s", f->path, names[i]);
        unlink(command);
    }
    return rmdir(f->folder);
}

static void open_outbox(struct fixture *f)
{
    if (rv_outbox_open(f->path, &f->outbox, &f->fault) != RV_OK)
        fail_msg("%s", f->fault.message);
}

static void read_rows(struct fixture *f, int64_t from, size_t limit)
{
    rv_arena_reset(&f->arena);
    if (rv_outbox_read(f->outbox, &f->arena, from, INT64_MAX, limit, 1 << 20, f->rows, &f->count,
                       &f->fault) != RV_OK)
        fail_msg("%s", f->fault.message);
}

static void settle(struct fixture *f)
{
    if (rv_outbox_settle(f->outbox, f->rows, f->count, &f->fault) != RV_OK)
        fail_msg("%s", f->fault.message);
}

static int keep_text(void *user, int count, char **values, char **names)
{
    (void)count;
    (void)names;
    snprintf(user, 256, "%s", values[0] != NULL ? values[0] : "NULL");
    return 0;
}

static const char *ask(struct fixture *f, const char *query)
{
    static char text[256];
    text[0] = '\0';
    assert_int_equal(sqlite3_exec(f->application, query, keep_text, text, NULL), SQLITE_OK);
    return text;
}

/* ---- rows ---- */

static void a_row_is_read_as_it_was_written(void **state)
{
    struct fixture *f = *state;
    run_sql(f->application, "INSERT INTO reeve_outbox(workflow) VALUES ('s/a');"
                            "INSERT INTO reeve_outbox(workflow, input, key, priority,"
                            " correlation_id, created_at, traceparent, tracestate) VALUES"
                            " ('s/b:1', '{\"x\":1}', 'order-1', 0, 'c', 1700000000, 'p', 's'),"
                            " ('s/c', NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
    open_outbox(f);
    read_rows(f, 0, ROWS_MAX);
    assert_int_equal(f->count, 3);
    const struct rv_row *row = &f->rows[1];
    assert_int_equal(row->id, 2);
    assert_true(rv_str_is(row->item.workflow, "s/b:1"));
    assert_true(rv_str_is(row->item.input, "{\"x\":1}"));
    assert_true(rv_str_is(row->item.key, "order-1"));
    assert_true(rv_str_is(row->item.correlation_id, "c"));
    assert_true(rv_str_is(row->item.traceparent, "p"));
    assert_true(rv_str_is(row->item.tracestate, "s"));
    assert_int_equal(row->item.priority, 0);
    assert_int_equal(row->created_at, INT64_C(1700000000000));
    for (int i = 0; i <= 2; i += 2) {
        row = &f->rows[i];
        assert_true(rv_str_is(row->item.input, "{}"));
        assert_int_equal(row->item.key.len, strlen("outbox-") + 32);
        assert_int_equal(row->item.priority, -1);
        assert_null(row->item.correlation_id.at);
        assert_null(row->item.traceparent.at);
        assert_true(row->created_at > INT64_C(1700000000000));
    }
    assert_false(rv_str_eq(f->rows[0].item.key, f->rows[2].item.key));
}

static void reading_is_bounded_and_goes_on_after_the_last(void **state)
{
    struct fixture *f = *state;
    run_sql(f->application,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)"
            " INSERT INTO reeve_outbox(workflow, input) SELECT 's/a', '\"' || hex(zeroblob(1000))"
            " || '\"' FROM n");
    open_outbox(f);
    read_rows(f, 0, 7);
    assert_int_equal(f->count, 7);
    read_rows(f, 8, 7);
    assert_int_equal(f->rows[0].id, 8);
    rv_arena_reset(&f->arena);
    assert_int_equal(rv_outbox_read(f->outbox, &f->arena, 0, INT64_MAX, 30, 10000, f->rows,
                                    &f->count, &f->fault),
                     RV_OK);
    assert_in_range(f->count, 4, 6);
    assert_int_equal(
        rv_outbox_read(f->outbox, &f->arena, 0, 3, 30, 1 << 20, f->rows, &f->count, &f->fault),
        RV_OK);
    assert_int_equal(f->count, 3);
    int64_t last;
    assert_int_equal(rv_outbox_last(f->outbox, &last, &f->fault), RV_OK);
    assert_int_equal(last, 30);
}

/* The application may give rows their ids. */
static void a_row_of_any_id_is_read(void **state)
{
    static const int64_t ids[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
    struct fixture *f = *state;
    run_sql(f->application, "INSERT INTO reeve_outbox(id, workflow) VALUES"
                            " (-9223372036854775808, 's/a'), (-1, 's/a'), (0, 's/a'), (1, 's/a'),"
                            " (9223372036854775807, 's/a')");
    open_outbox(f);
    read_rows(f, INT64_MIN, ROWS_MAX);
    assert_int_equal(f->count, 5);
    for (size_t i = 0; i < f->count; i++)
        assert_true(f->rows[i].id == ids[i]);
}

/* Milliseconds given for seconds would keep a row young for ever. */
static void a_time_that_no_row_can_have_is_refused(void **state)
{
    static const char *const times[] = {"-1", "-9223372036854775808", "1700000000000",
                                        "253402300800", "9223372036854775807"};
    struct fixture *f = *state;
    run_sql(f->application, "INSERT INTO reeve_outbox(workflow, created_at) VALUES ('s/a', 0),"
                            " ('s/a', 253402300799)");
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char sql[128];
        snprintf(sql, sizeof sql,
                 "INSERT INTO reeve_outbox(workflow, created_at) VALUES ('s/a', %s)", times[i]);
        run_sql(f->application, sql);
    }
    open_outbox(f);
    read_rows(f, 0, ROWS_MAX);
    assert_int_equal(f->count, 7);
    for (size_t i = 0; i < f->count; i++) {
        bool good = i < 2;
        assert_int_equal(f->rows[i].verdict, good ? RV_ROW_WAITS : RV_ROW_REFUSED);
        if (!good)
            assert_non_null(strstr(f->rows[i].why.at, "in seconds since 1970 and not in "
                                                      "milliseconds: correct the value, then set "
                                                      "error to NULL"));
    }
    assert_true(f->rows[1].created_at == INT64_C(253402300799000));
}

static void rows_are_settled_by_their_verdicts(void **state)
{
    struct fixture *f = *state;
    run_sql(f->application, "INSERT INTO reeve_outbox(workflow) VALUES"
                            " ('s/1'), ('s/2'), ('s/3'), ('s/4'), ('s/5')");
    open_outbox(f);
    read_rows(f, 0, ROWS_MAX);
    f->rows[0].verdict = RV_ROW_ACCEPTED;
    f->rows[1].verdict = RV_ROW_KNOWN;
    f->rows[2].verdict = RV_ROW_REFUSED;
    f->rows[2].why = RV_STR("no such thing");
    f->rows[3].verdict = RV_ROW_OLD;
    settle(f);
    assert_string_equal(ask(f, "SELECT group_concat(id || coalesce(error, '')) FROM reeve_outbox"),
                        "3no such thing,4refused,5");
    read_rows(f, 0, ROWS_MAX);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->rows[0].id, 5);
    /* An operator lets one go again; no number is ever used twice. */
    run_sql(f->application, "UPDATE reeve_outbox SET error = NULL WHERE id = 3;"
                            "DELETE FROM reeve_outbox WHERE id = 5;"
                            "INSERT INTO reeve_outbox(workflow) VALUES ('s/6')");
    read_rows(f, 0, ROWS_MAX);
    assert_int_equal(f->count, 2);
    assert_int_equal(f->rows[0].id, 3);
    assert_int_equal(f->rows[1].id, 6);
}

static void a_row_that_was_given_another_key_stays(void **state)
{
    struct fixture *f = *state;
    run_sql(f->application, "INSERT INTO reeve_outbox(workflow, key) VALUES ('s/1', 'a')");
    open_outbox(f);
    read_rows(f, 0, ROWS_MAX);
    run_sql(f->application, "UPDATE reeve_outbox SET key = 'b'");
    f->rows[0].verdict = RV_ROW_ACCEPTED;
    settle(f);
    assert_string_equal(ask(f, "SELECT key FROM reeve_outbox"), "b");
}

/* SQLite keeps any value in any column. */
static void values_of_the_wrong_type_are_refused(void **state)
{
    struct fixture *f = *state;
    run_sql(f->application, "INSERT INTO reeve_outbox(workflow, key, priority, created_at) VALUES"
                            " ('s/1', x'6b', NULL, 1700000000), ('s/2', 'k', 'high', 1700000000),"
                            " ('s/3', 'k', 4.5, 1700000000), ('s/4', 'k', -1, 1700000000),"
                            " ('s/5', 'k', 10, 1700000000), ('s/6', 'k', 1, 'today'),"
                            " (7, 8, '9', '1700000000')");
    open_outbox(f);
    read_rows(f, 0, ROWS_MAX);
    assert_int_equal(f->count, 7);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(f->rows[i].verdict, RV_ROW_REFUSED);
        assert_true(f->rows[i].why.len > 0);
    }
    assert_int_equal(f->rows[6].verdict, RV_ROW_WAITS); /* the column makes texts and numbers */
    assert_true(rv_str_is(f->rows[6].item.key, "8"));
    assert_int_equal(f->rows[6].item.priority, 9);
    settle(f);
    read_rows(f, 0, ROWS_MAX);
    assert_int_equal(f->count, 1);
}

static void texts_beyond_all_limits_are_cut_to_be_refused(void **state)
{
    struct fixture *f = *state;
    run_sql(f->application, "INSERT INTO reeve_outbox(workflow, input, key) VALUES"
                            " ('s/1', '\"' || hex(zeroblob(2000000)) || '\"', 'a'),"
                            " ('s/2', '{}', hex(zeroblob(100000)))");
    open_outbox(f);
    rv_arena_reset(&f->arena);
    assert_int_equal(rv_outbox_read(f->outbox, &f->arena, 0, INT64_MAX, ROWS_MAX, 1 << 22, f->rows,
                                    &f->count, &f->fault),
                     RV_OK);
    assert_int_equal(f->count, 2);
    for (size_t i = 0; i < f->count; i++) {
        rv_row_check(&f->arena, &f->rows[i], f->rows[i].created_at);
        assert_int_equal(f->rows[i].verdict, RV_ROW_REFUSED);
    }
    settle(f);
    read_rows(f, 0, ROWS_MAX);
    assert_int_equal(f->count, 0);
}

static void changes_of_others_are_seen_and_own_ones_are_not(void **state)
{
    struct fixture *f = *state;
    bool changed;
    open_outbox(f);
    assert_int_equal(rv_outbox_changed(f->outbox, &changed, &f->fault), RV_OK);
    assert_true(changed); /* at first, all is new */
    assert_int_equal(rv_outbox_changed(f->outbox, &changed, &f->fault), RV_OK);
    assert_false(changed);
    run_sql(f->application, "INSERT INTO reeve_outbox(workflow) VALUES ('s/1')");
    assert_int_equal(rv_outbox_changed(f->outbox, &changed, &f->fault), RV_OK);
    assert_true(changed);
    read_rows(f, 0, ROWS_MAX);
    f->rows[0].verdict = RV_ROW_ACCEPTED;
    settle(f);
    assert_int_equal(rv_outbox_changed(f->outbox, &changed, &f->fault), RV_OK);
    assert_false(changed);
    assert_false(rv_outbox_moved(f->outbox));
    assert_int_equal(rename(f->path, f->folder) != 0, 1); /* a folder is there */
    char other[160];
    snprintf(other, sizeof other, "%s.old", f->path);
    assert_int_equal(rename(f->path, other), 0);
    assert_true(rv_outbox_moved(f->outbox));
    assert_int_equal(rename(other, f->path), 0);
}

/* The guest leaves the write-ahead log to its host. */
static void the_relay_moves_no_log_into_the_database(void **state)
{
    struct fixture *f = *state;
    struct stat before;
    struct stat after;
    run_sql(f->application,
            "PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE);"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)"
            " INSERT INTO reeve_outbox(workflow, input) SELECT 's/a', '\"' || hex(zeroblob(60000))"
            " || '\"' FROM n");
    assert_int_equal(stat(f->path, &before), 0);
    open_outbox(f);
    rv_arena_reset(&f->arena);
    assert_int_equal(rv_outbox_read(f->outbox, &f->arena, 0, INT64_MAX, ROWS_MAX, 1 << 24, f->rows,
                                    &f->count, &f->fault),
                     RV_OK);
    assert_int_equal(f->count, 60);
    for (size_t i = 0; i < f->count; i++)
        f->rows[i].verdict = RV_ROW_ACCEPTED;
    settle(f);
    assert_int_equal(sqlite3_close(f->application), SQLITE_OK); /* the relay is the last */
    rv_outbox_close(f->outbox);
    f->outbox = NULL;
    assert_int_equal(stat(f->path, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(sqlite3_open(f->path, &f->application), SQLITE_OK);
    assert_string_equal(ask(f, "SELECT count(*) FROM reeve_outbox"), "0");
}

/* ---- what is wrong with a database ---- */

static void refused(struct fixture *f, const char *path, enum rv_err err, const char *why)
{
    struct rv_outbox *outbox;
    assert_int_equal(rv_outbox_open(path, &outbox, &f->fault), err);
    if (strstr(f->fault.message, why) == NULL)
        fail_msg("\"%s\" says nothing of \"%s\"", f->fault.message, why);
}

static void what_is_wrong_is_told_with_its_cure(void **state)
{
    struct fixture *f = *state;
    bool new_file;
    refused(f, "/tmp/reeve-no-such/shop.db", RV_ERR_NOT_FOUND, "reeve relay --init");
    refused(f, f->folder, RV_ERR_INVALID, "is not a regular file");
    run_sql(f->application, "DROP INDEX reeve_outbox_waiting");
    refused(f, f->path, RV_ERR_INVALID, "no index reeve_outbox_waiting; create it: reeve relay");
    assert_int_equal(rv_outbox_make(f->path, &new_file, &f->fault), RV_OK);
    assert_false(new_file);
    run_sql(f->application, "ALTER TABLE reeve_outbox RENAME COLUMN priority TO urgency");
    refused(f, f->path, RV_ERR_INVALID, "without the column priority");
    assert_int_equal(rv_outbox_make(f->path, &new_file, &f->fault), RV_ERR_INVALID);
    run_sql(f->application, "DROP TABLE reeve_outbox");
    refused(f, f->path, RV_ERR_INVALID, "has no table reeve_outbox: run");
    run_sql(f->application, "CREATE VIEW reeve_outbox AS SELECT 1 AS id");
    refused(f, f->path, RV_ERR_INVALID, "has no table reeve_outbox");
    run_sql(f->application,
            "DROP VIEW reeve_outbox;"
            "CREATE TABLE reeve_outbox(id TEXT PRIMARY KEY, workflow, input, key, priority,"
            " correlation_id, created_at, error)");
    refused(f, f->path, RV_ERR_INVALID, "whose id is not an INTEGER PRIMARY KEY");
}

static void what_is_no_database_is_told(void **state)
{
    struct fixture *f = *state;
    bool new_file;
    char path[160];
    snprintf(path, sizeof path, "%s.txt", f->path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 200; i++)
        fprintf(file, "this is a diary, day %d\n", i);
    assert_int_equal(fclose(file), 0);
    refused(f, path, RV_ERR_CORRUPT, "is not an SQLite database");
    assert_int_equal(rv_outbox_make(path, &new_file, &f->fault), RV_ERR_CORRUPT);
    assert_int_equal(unlink(path), 0);
}

static void a_locked_database_is_told_as_locked(void **state)
{
    struct fixture *f = *state;
    run_sql(f->application, "INSERT INTO reeve_outbox(workflow) VALUES ('s/1')");
    open_outbox(f);
    read_rows(f, 0, ROWS_MAX);
    f->rows[0].verdict = RV_ROW_ACCEPTED;
    run_sql(f->application, "BEGIN IMMEDIATE");
    assert_int_equal(rv_outbox_settle(f->outbox, f->rows, f->count, &f->fault), RV_ERR_BUSY);
    assert_non_null(strstr(f->fault.message, "is locked by an open transaction"));
    run_sql(f->application, "COMMIT");
    settle(f);
    assert_string_equal(ask(f, "SELECT count(*) FROM reeve_outbox"), "0");
}

static void a_trigger_that_forbids_to_delete_is_told(void **state)
{
    struct fixture *f = *state;
    run_sql(f->application, "INSERT INTO reeve_outbox(workflow) VALUES ('s/1');"
                            "CREATE TRIGGER keep BEFORE DELETE ON reeve_outbox"
                            " BEGIN SELECT raise(ABORT, 'never'); END");
    open_outbox(f);
    read_rows(f, 0, ROWS_MAX);
    f->rows[0].verdict = RV_ROW_ACCEPTED;
    assert_int_equal(rv_outbox_settle(f->outbox, f->rows, f->count, &f->fault), RV_ERR_INVALID);
    assert_non_null(strstr(f->fault.message, "never"));
}

static void one_relay_at_a_time_has_the_lock(void **state)
{
    struct fixture *f = *state;
    struct rv_relay_lock first;
    struct rv_relay_lock second;
    int64_t pid;
    char other[160];
    snprintf(other, sizeof other, "%s/../%s/shop.db", f->folder, f->folder + strlen("/tmp/"));
    assert_int_equal(rv_relay_lock_take(&first, f->path, &pid, &f->fault), RV_OK);
    assert_int_equal(rv_relay_lock_take(&second, other, &pid, &f->fault), RV_ERR_IN_USE);
    assert_int_equal(pid, getpid());
    rv_relay_lock_give(&first);
    assert_int_equal(rv_relay_lock_take(&second, other, &pid, &f->fault), RV_OK);
    rv_relay_lock_give(&second);
    rv_relay_lock_give(&second);
    char lock[200];
    struct stat about;
    snprintf(lock, sizeof lock, "%s-relay", f->path);
    assert_int_equal(stat(lock, &about), 0);
    assert_int_equal(about.st_size, 0); /* it names nobody who no longer relays */
    assert_int_equal(rv_relay_lock_take(&first, "/tmp/reeve-no-such/a", &pid, &f->fault),
                     RV_ERR_IO);
}

/* ---- relays that are killed ---- */

/* What the server has: keys of tasks, and how many tasks there are. It never loses anything, and
 * lives in memory that the relays' processes share. */
struct server {
    size_t tasks;
    uint64_t keys[20000];
};

/* The steps of one relay until it dies: instructions of SQLite, and calls to the server. */
static int64_t steps_left;

static void step(void)
{
    if (--steps_left < 0)
        raise(SIGKILL);
}

static int on_progress(void *unused)
{
    (void)unused;
    step();
    return 0;
}

static int on_open(sqlite3 *db, const char **message, const struct sqlite3_api_routines *api)
{
    (void)message;
    (void)api;
    sqlite3_progress_handler(db, 1, on_progress, NULL);
    return SQLITE_OK;
}

static enum rv_row_verdict server_submit(struct server *server, struct rv_str key)
{
    uint64_t hash = rv_hash((struct rv_hash_key){1, 2}, key);
    for (size_t i = 0; i < server->tasks; i++)
        if (server->keys[i] == hash)
            return RV_ROW_KNOWN;
    server->keys[server->tasks++] = hash;
    return RV_ROW_ACCEPTED;
}

/* What a relay's threads do, one after another: read, send, settle. Dies on the way. */
static void relay_live(struct fixture *f, struct server *server, struct rv_prng *prng)
{
    steps_left = (int64_t)rv_prng_below(prng, 6000);
    assert_int_equal(sqlite3_auto_extension((void (*)(void))(uintptr_t)on_open), SQLITE_OK);
    while (rv_outbox_open(f->path, &f->outbox, &f->fault) == RV_ERR_BUSY) {
    }
    for (;;) {
        size_t most = 1 + (size_t)rv_prng_below(prng, ROWS_MAX - 1);
        enum rv_err err = rv_outbox_read(f->outbox, &f->arena, 0, INT64_MAX, most, 1 << 20, f->rows,
                                         &f->count, &f->fault);
        for (size_t i = 0; err == RV_OK && i < f->count; i++) {
            if (rv_prng_below(prng, 8) == 0)
                continue; /* the server cannot take it now */
            step();       /* the call is lost */
            f->rows[i].verdict = server_submit(server, f->rows[i].item.key);
            step(); /* its answer is lost */
        }
        if (err == RV_OK)
            err = rv_outbox_settle(f->outbox, f->rows, f->count, &f->fault);
        rv_arena_reset(&f->arena);
        step();
    }
}

static void relays_are_killed(struct fixture *f, uint64_t seed)
{
    enum { DEATHS = 100, INSERTS_MAX = 12 };
    struct rv_prng prng;
    size_t inserted = 0;
    struct server *server = mmap(NULL, sizeof *server, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(server, MAP_FAILED);
    rv_prng_init(&prng, seed);
    run_sql(f->application, "PRAGMA synchronous = OFF"); /* no power is cut here */
    for (int death = 0; death < DEATHS; death++) {
        uint64_t own_seed = rv_prng_next(&prng);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            struct rv_prng own;
            rv_prng_init(&own, own_seed);
            relay_live(f, server, &own);
        }
        uint64_t inserts = rv_prng_below(&prng, INSERTS_MAX);
        for (uint64_t i = 0; i < inserts; i++, inserted++)
            run_sql(f->application, "INSERT INTO reeve_outbox(workflow) VALUES ('s/1')");
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_true(server->tasks <= inserted);
    }
    /* The last one is left in peace. */
    open_outbox(f);
    read_rows(f, 0, ROWS_MAX);
    while (f->count > 0) {
        for (size_t i = 0; i < f->count; i++)
            f->rows[i].verdict = server_submit(server, f->rows[i].item.key);
        settle(f);
        read_rows(f, 0, ROWS_MAX);
    }
    assert_true(inserted > DEATHS);
    assert_int_equal(server->tasks, inserted);
    assert_string_equal(ask(f, "PRAGMA integrity_check"), "ok");
    assert_int_equal(munmap(server, sizeof *server), 0);
}

static void killed_relays_make_one_task_of_each_row(void **state)
{
    relays_are_killed(*state, 1);
}

static void killed_relays_make_one_task_of_each_row_without_a_log(void **state)
{
    relays_are_killed(*state, 2);
}

#define WITH_OUTBOX(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)
#define WITH_JOURNAL(test)                                                                         \
    cmocka_unit_test_setup_teardown(test, fixture_open_journal, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_OUTBOX(a_row_is_read_as_it_was_written),
        WITH_OUTBOX(reading_is_bounded_and_goes_on_after_the_last),
        WITH_OUTBOX(a_row_of_any_id_is_read),
        WITH_OUTBOX(a_time_that_no_row_can_have_is_refused),
        WITH_OUTBOX(rows_are_settled_by_their_verdicts),
        WITH_JOURNAL(rows_are_settled_by_their_verdicts),
        WITH_OUTBOX(a_row_that_was_given_another_key_stays),
        WITH_OUTBOX(values_of_the_wrong_type_are_refused),
        WITH_OUTBOX(texts_beyond_all_limits_are_cut_to_be_refused),
        WITH_OUTBOX(changes_of_others_are_seen_and_own_ones_are_not),
        WITH_JOURNAL(changes_of_others_are_seen_and_own_ones_are_not),
        WITH_OUTBOX(the_relay_moves_no_log_into_the_database),
        WITH_OUTBOX(what_is_wrong_is_told_with_its_cure),
        WITH_OUTBOX(what_is_no_database_is_told),
        WITH_OUTBOX(a_locked_database_is_told_as_locked),
        WITH_OUTBOX(a_trigger_that_forbids_to_delete_is_told),
        WITH_OUTBOX(one_relay_at_a_time_has_the_lock),
        WITH_OUTBOX(killed_relays_make_one_task_of_each_row),
        WITH_JOURNAL(killed_relays_make_one_task_of_each_row_without_a_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
