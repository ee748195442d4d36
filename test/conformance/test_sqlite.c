/* What is true of the SQLite store alone: who may open which file, what is damaged, crashes. */
#include "sqlite_subject.h"

#include "base/time.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_priv.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opening must fail so, with a message that starts with the path and holds `text`. */
static void assert_refused(const char *path, enum rv_err wanted, const char *text, int64_t pid)
{
    struct rv_store *store = NULL;
    struct rv_store_sqlite_fault fault;
    struct rv_store_sqlite_options options = {.path = path, .clock = {no_clock, NULL}};
    enum rv_err err = rv_store_sqlite_open(&options, &store, &fault);
    assert_int_equal(err, wanted);
    assert_null(store);
    assert_memory_equal(fault.message, path, strlen(path));
    if (strstr(fault.message, text) == NULL)
        fail_msg("no \"%s\" in: %s", text, fault.message);
    assert_int_equal(fault.pid, pid);
}

/* ---- who may open what ---- */

static void a_second_server_is_refused_by_pid(void **state)
{
    struct subject *s = *state;
    char text[128];
    snprintf(text, sizeof text,
             " is used by a server (pid %d): stop the server, or use another --store",
             (int)getpid());
    assert_refused(s->path, RV_ERR_IN_USE, text, getpid());
    bear(s, TASK_BASE); /* the first goes on unharmed */
    subject_restart(s);
    assert_non_null(load(s, TASK_BASE));
}

static void another_name_of_the_file_does_not_help(void **state)
{
    struct subject *s = *state;
    char alias[SUBJECT_PATH_BYTES + 32];
    char lock[SUBJECT_PATH_BYTES + 40];
    snprintf(alias, sizeof alias, "%s/alias", s->directory);
    snprintf(lock, sizeof lock, "%s.lock", alias);
    assert_int_equal(symlink(s->path, alias), 0);
    assert_refused(alias, RV_ERR_IN_USE, "is open in another program", 0);
    unlink(alias);
    unlink(lock);
}

static void the_file_is_its_owners_alone(void **state)
{
    static const char *const ends[] = {"", "-wal", ".lock"};
    struct subject *s = *state;
    char path[SUBJECT_PATH_BYTES + 32];
    struct stat of;
    mode_t before = umask(0);
    for (size_t i = 0; i < 3; i++) { /* those without their store would be refused */
        snprintf(path, sizeof path, "%s%s", s->path, ends[i]);
        assert_int_equal(unlink(path), 0);
    }
    subject_restart(s);
    bear(s, TASK_BASE);
    umask(before);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(path, sizeof path, "%s%s", s->path, ends[i]);
        assert_int_equal(stat(path, &of), 0);
        assert_int_equal(of.st_mode & 0777, 0600);
    }
}

/* Whoever may write in the folder may not have us write elsewhere. */
static void a14_links_in_the_place_of_files_are_not_followed(void **state)
{
    static const char *const ends[] = {".lock", "", "-wal"};
    struct subject *s = *state;
    char target[SUBJECT_PATH_BYTES + 32], path[SUBJECT_PATH_BYTES + 32];
    char link[SUBJECT_PATH_BYTES + 40];
    struct stat of;
    snprintf(target, sizeof target, "%s/target", s->directory);
    snprintf(path, sizeof path, "%s/other", s->directory);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(link, sizeof link, "%s%s", path, ends[i]);
        assert_int_equal(symlink(target, link), 0);
        assert_refused(path, RV_ERR_REFUSED, "symbolic link", 0);
        assert_int_not_equal(stat(target, &of), 0);
        assert_int_equal(unlink(link), 0);
    }
    assert_int_not_equal(stat(path, &of), 0); /* nothing is left of what was refused */
    snprintf(link, sizeof link, "%s.lock", path);
    assert_int_not_equal(stat(link, &of), 0);
}

static void a_newer_schema_is_refused(void **state)
{
    struct subject *s = *state;
    subject_close(s);
    char ignored[64];
    sql(s, "INSERT INTO schema_version(version) VALUES(4711)", ignored);
    assert_refused(s->path, RV_ERR_VERSION,
                   "has schema version 4711, and this program supports versions up to 23", 0);
}

/* Of `reeve clock reset`: a server ran while the wall clock was ten years ahead. */
static void a_clock_that_was_ahead_is_set_back(void **state)
{
    struct subject *s = *state;
    const int64_t years = 3650 * (int64_t)RV_DAY_MS;
    int64_t now, back_ms = 0;
    s->wall += years;
    subject_restart(s);
    bear(s, TASK_BASE);
    const struct rv_task *task_before = load(s, TASK_BASE);
    const struct rv_step *step_before = load_step(s, TASK_BASE, 1);
    struct rv_task task = *task_before;
    struct rv_step step = *step_before;
    step.wake_at = step.complete_by = s->wall + 5000;
    step.ended_at = 0;
    const struct rv_step *steps[] = {&step};
    const bool steps_new[] = {false};
    struct rv_change change = {.task = &task,
                               .revision_before = task.revision,
                               .task_before = task_before,
                               .steps = steps,
                               .steps_new = steps_new,
                               .steps_before = &step_before,
                               .steps_count = 1};
    task.revision++;
    subject_commit_all(s, &change, 1);
    s->wall += 3000 - years;
    subject_close(s);
    char wait[200], ignored[64];
    snprintf(wait, sizeof wait,
             "INSERT INTO record(kind, key, value) VALUES('retention-wait', 'until', "
             "'{\"until\":%lld}')",
             (long long)(s->wall + years + 20 * (int64_t)RV_DAY_MS));
    sql(s, wait, ignored);
    s->factory->open(s);
    assert_int_equal(rv_store_sqlite_reset_clock(s->store, &back_ms), RV_OK);
    assert_int_equal(back_ms, years - 3000);
    subject_restart(s);
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(now, s->wall);
    s->ops->rollback(s->store);
    assert_int_equal(load_step(s, TASK_BASE, 1)->wake_at, s->wall + 5000);
    assert_int_equal(load_step(s, TASK_BASE, 1)->complete_by, s->wall + 5000);
    subject_close(s);
    snprintf(wait, sizeof wait, "{\"until\":%lld}", (long long)(s->wall + RV_DAY_MS));
    assert_sql(s, "SELECT value FROM record WHERE kind = 'retention-wait'", wait);
}

static void file_write(const char *path, const char *text, size_t bytes, int64_t offset)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, bytes, offset), (ssize_t)bytes);
    close(fd);
}

static void what_is_no_store_is_refused(void **state)
{
    struct subject *s = *state;
    subject_close(s);
    assert_refused(s->directory, RV_ERR_IO, "cannot be opened: Is a directory", 0);
    char path[SUBJECT_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s.lock", s->directory);
    unlink(path);
    snprintf(path, sizeof path, "%s/none/reeve.db", s->directory);
    assert_refused(path, RV_ERR_IO, "is in a folder that does not exist; create the folder", 0);
    assert_int_equal(unlink(s->path), 0);
    char text[4096];
    memset(text, 'x', sizeof text);
    file_write(s->path, text, sizeof text, 0);
    assert_refused(s->path, RV_ERR_CORRUPT, "is not a database", 0);
    assert_int_equal(unlink(s->path), 0);
    sql(s, "CREATE TABLE task(id INTEGER)", text);
    assert_refused(s->path, RV_ERR_CORRUPT, "is the database of another program", 0);
}

static void a_damaged_store_is_refused(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    subject_close(s);
    char rubbish[300];
    memset(rubbish, 0x5a, sizeof rubbish);
    file_write(s->path, rubbish, sizeof rubbish, 100); /* behind the header: the schema's page */
    assert_refused(s->path, RV_ERR_CORRUPT, "is damaged", 0);
}

/* It is told from the others, and what is written of it leaves alone what cannot be read. */
static void a_row_that_none_of_ours_can_be_is_told(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    bear(s, TASK_BASE + 1);
    subject_close(s);
    char ignored[64];
    sql(s, "UPDATE task SET priority = 4711, open_steps = 'x' WHERE id = 1000000", ignored);
    sql(s, "UPDATE step SET token = 'y' WHERE task = 1000001", ignored);
    subject_open(s);
    struct rv_task task = *load(s, TASK_BASE);
    assert_true(task.unreadable);
    assert_int_equal(task.priority, 0);
    assert_false(load(s, TASK_BASE + 1)->unreadable);
    assert_true(load_step(s, TASK_BASE + 1, 1)->unreadable);
    assert_false(load_step(s, TASK_BASE, 1)->unreadable);
    struct rv_change change = {.task = &task, .revision_before = task.revision};
    task.revision++;
    task.state = RV_TASK_ERROR;
    task.error = RV_STR("{}");
    subject_commit_all(s, &change, 1);
    subject_restart(s);
    assert_int_equal(load(s, TASK_BASE)->state, RV_TASK_ERROR);
    subject_close(s);
    assert_sql(s, "SELECT priority || open_steps || error FROM task WHERE id = 1000000", "4711x{}");
}

/* On the connection of the store, which lets everything pass. */
static void damage(struct subject *s, const char *text)
{
    char *message = NULL;
    if (sqlite3_exec(((struct rv_sqlite *)s->store)->db, text, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", text, message);
}

/* The server's own rows: no number is made of what is none. */
static void numbers_that_no_server_has_are_an_error(void **state)
{
    static const char *const at_enlistment[] = {
        "UPDATE instance SET number = -1", "UPDATE instance SET number = 256",
        "UPDATE instance SET enlistment = -1", "UPDATE instance SET enlistment = 'x'",
        "UPDATE instance SET enlistment = 9223372036854775807"};
    static const char *const at_open[] = {"UPDATE instance SET alive_at = -1",
                                          "UPDATE instance SET alive_at = 9223372036854775807",
                                          "UPDATE instance SET alive_at = 'x'"};
    static const char *const of_role[] = {"UPDATE role SET epoch = -1",
                                          "UPDATE role SET epoch = 9223372036854775807",
                                          "UPDATE role SET epoch = 'x'"};
    struct subject *s = *state;
    int64_t epoch, until;
    for (size_t i = 0; i < sizeof at_enlistment / sizeof *at_enlistment; i++) {
        damage(s, at_enlistment[i]);
        subject_close(s);
        s->factory->open(s);
        assert_int_equal(s->ops->enlist(s->store, RV_STR("boot"), 1, &s->enlistment),
                         RV_ERR_CORRUPT);
        damage(s, "DELETE FROM instance");
        subject_restart(s);
    }
    for (size_t i = 0; i < sizeof at_open / sizeof *at_open; i++) {
        char ignored[64];
        damage(s, at_open[i]);
        subject_close(s);
        assert_refused(s->path, RV_ERR_CORRUPT, "is damaged", 0);
        sql(s, "DELETE FROM instance", ignored);
        subject_open(s);
    }
    for (size_t i = 0; i < sizeof of_role / sizeof *of_role; i++) {
        assert_int_equal(s->ops->claim_role(s->store, RV_STR("r"), 5000, &epoch, &until), RV_OK);
        damage(s, of_role[i]);
        assert_int_equal(s->ops->claim_role(s->store, RV_STR("r"), 5000, &epoch, &until),
                         RV_ERR_CORRUPT);
        damage(s, "DELETE FROM role");
    }
}

/* A list gives no task of which the id says that there is none. */
static void a_task_without_an_id_is_in_no_list(void **state)
{
    struct subject *s = *state;
    struct rv_task_filter filter = {.before = {0}};
    struct rv_task rows[2];
    struct rv_task_id next;
    size_t count;
    bear(s, TASK_BASE);
    bear(s, TASK_BASE + 1);
    damage(s, "UPDATE task SET id = 0 WHERE id = 1000000");
    assert_int_equal(
        s->ops->list_tasks(s->store, &s->arena, RV_COLUMNS_ALL, &filter, 2, rows, &count, &next),
        RV_OK);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].id.value, TASK_BASE + 1);
    assert_int_equal(next.value, 0);
}

/* ---- the ways on which tasks are found ---- */

/* How SQLite goes about a statement, one line for each part. */
static void plan_read(struct rv_sqlite *store, enum rv_sqlite_sql sql, struct rv_buf *plan)
{
    enum { DETAIL = 3 };
    sqlite3_stmt *statement = NULL;
    struct rv_buf text;
    rv_buf_init(&text, 16384);
    assert_int_equal(rv_sqlite_statement(store, sql, &statement), RV_OK);
    rv_buf_printf(&text, "EXPLAIN QUERY PLAN %s", sqlite3_sql(statement));
    assert_int_equal(text.failed, RV_OK);
    assert_int_equal(sqlite3_prepare_v2(store->db, text.at, (int)text.len, &statement, NULL),
                     SQLITE_OK);
    rv_buf_reset(plan);
    while (sqlite3_step(statement) == SQLITE_ROW)
        rv_buf_printf(plan, "%s\n", (const char *)sqlite3_column_text(statement, DETAIL));
    rv_buf_add_char(plan, '\0');
    sqlite3_finalize(statement);
    rv_buf_done(&text);
}

/* Each filter goes by an index: nothing is read through, nothing is sorted. */
static void every_filter_goes_by_an_index(void **state)
{
    static const struct {
        enum rv_sqlite_sql sql;
        const char *plan;
    } ways[] = {
        {RV_SQL_WALK_ALL, "SEARCH task USING INTEGER PRIMARY KEY (rowid<?)\n"},
        {RV_SQL_WALK_OPEN, "SEARCH task USING INDEX task_open (id<?)\n"},
        {RV_SQL_WALK_RARE, "SEARCH task USING INDEX task_rare (process_state=? AND id<?)\n"},
        {RV_SQL_WALK_WORKFLOW, "SEARCH task USING INDEX task_workflow (workflow=? AND id<?)\n"},
        {RV_SQL_WORKFLOW_IDS,
         "SEARCH workflow USING COVERING INDEX workflow_name (namespace=? AND name=?)\n"},
        {RV_SQL_WALK_TAG, "SEARCH tag USING PRIMARY KEY (name=? AND value=? AND task<?)\n"
                          "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)\n"},
        {RV_SQL_WALK_ERROR, "SEARCH error_type USING PRIMARY KEY (type=? AND task<?)\n"
                            "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)\n"},
        {RV_SQL_WALK_AGENT, "SEARCH step USING INDEX step_agent (agent=? AND task<?)\n"
                            "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)\n"},
        {RV_SQL_SWEEP_ERROR_TYPES,
         "SEARCH error_type USING COVERING INDEX error_type_task (task>? AND task<?)\n"},
        {RV_SQL_TASK_AGENT,
         "SEARCH step USING INDEX sqlite_autoindex_step_1 (task=? AND number=?)\n"},
        {RV_SQL_TASK_LOOK, "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)\n"
                           "CORRELATED SCALAR SUBQUERY 1\n"
                           "SEARCH payload USING INDEX sqlite_autoindex_payload_1 "
                           "(task=? AND step=? AND name=?)\n"},
        {RV_SQL_PAYLOAD_LOAD, "SEARCH payload USING INDEX sqlite_autoindex_payload_1 "
                              "(task=? AND step=? AND name=?)\n"},
        {RV_SQL_SWEEP_PAYLOADS, "SEARCH payload USING INDEX sqlite_autoindex_payload_1 "
                                "(task>? AND task<?)\n"},
        {RV_SQL_KEY_LOAD, "SEARCH submission_key USING PRIMARY KEY (key=?)\n"},
        {RV_SQL_SWEEP_TAGS, "SEARCH tag USING COVERING INDEX tag_task (task>? AND task<?)\n"},
    };
    struct subject *s = *state;
    struct rv_buf plan;
    rv_buf_init(&plan, 16384);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        plan_read((struct rv_sqlite *)s->store, ways[i].sql, &plan);
        assert_int_equal(plan.failed, RV_OK);
        assert_string_equal(plan.at, ways[i].plan);
    }
    rv_buf_done(&plan);
}

/* How many indexes SQLite writes with the statement. */
static int indexes_written(struct rv_sqlite *store, enum rv_sqlite_sql sql)
{
    enum { OPCODE = 1 };
    sqlite3_stmt *statement = NULL;
    struct rv_buf text;
    int count = 0;
    rv_buf_init(&text, 16384);
    assert_int_equal(rv_sqlite_statement(store, sql, &statement), RV_OK);
    rv_buf_printf(&text, "EXPLAIN %s", sqlite3_sql(statement));
    assert_int_equal(text.failed, RV_OK);
    assert_int_equal(sqlite3_prepare_v2(store->db, text.at, (int)text.len, &statement, NULL),
                     SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW)
        count += strcmp((const char *)sqlite3_column_text(statement, OPCODE), "IdxInsert") == 0;
    sqlite3_finalize(statement);
    rv_buf_done(&text);
    return count;
}

/* Most changes of a row are in no column of an index. */
static void a_change_writes_no_index_that_it_leaves(void **state)
{
    struct rv_sqlite *store = (struct rv_sqlite *)((struct subject *)*state)->store;
    assert_int_equal(indexes_written(store, RV_SQL_TASK_UPDATE), 0);
    assert_int_equal(indexes_written(store, RV_SQL_STEP_UPDATE), 0);
    assert_int_equal(indexes_written(store, RV_SQL_TASK_MOVE), 2); /* task_open, task_rare */
    assert_int_equal(indexes_written(store, RV_SQL_TASK_REPLACE), 3);
    assert_int_equal(indexes_written(store, RV_SQL_STEP_MOVE), 1);
}

/* No task changes its workflow. If one did, it would be written, whatever is known of the row. */
static void another_workflow_is_written(void **state)
{
    struct subject *s = *state;
    struct rv_task before, task;
    subject_commit_all(s, birth_of(s, TASK_BASE), 1);
    for (int64_t other = 71; other < 74; other++) {
        before = task = *load(s, TASK_BASE);
        struct rv_change change = {.task = &task, .revision_before = task.revision};
        task.revision++;
        task.workflow = other;
        if (other > 71)
            change.task_before = &before;
        if (other > 72)
            before.workflow = other; /* it is not so */
        subject_commit_all(s, &change, 1);
        assert_int_equal(load(s, TASK_BASE)->workflow, other);
    }
    subject_close(s);
    assert_sql(s, "SELECT id FROM task INDEXED BY task_workflow WHERE workflow = 73", "1000000");
}

/* ---- seals ---- */

static struct rv_change *heavy_birth(struct subject *s, int64_t id, size_t bytes)
{
    struct rv_change *change = birth_of(s, id);
    struct rv_task *task = RV_NEW(&s->arena, struct rv_task);
    *task = *change->task;
    task->input = (struct rv_str){rv_arena_zero(&s->arena, 1, bytes), bytes};
    change->task = task;
    return change;
}

static int row_is_ok(void *context, int columns, char **texts, char **names)
{
    (void)columns;
    (void)names;
    *(bool *)context = strcmp(texts[0], "ok") == 0;
    return 1;
}

/* Whether every page can be read and SQLite finds all of them in order. */
static bool whole(struct subject *s)
{
    struct rv_seal *seal = rv_seal_new(s->vfs);
    sqlite3 *db = NULL;
    bool ok = false;
    assert_non_null(seal);
    if (sqlite3_open_v2(s->path, &db, SQLITE_OPEN_READWRITE, rv_seal_name(seal)) == SQLITE_OK &&
        sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK)
        sqlite3_exec(db, "PRAGMA integrity_check", row_is_ok, &ok, NULL);
    sqlite3_close(db);
    rv_seal_free(seal);
    return ok;
}

static void file_flip(const char *path, int64_t at, unsigned char bits)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= bits;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void no_page_changes_unnoticed(void **state)
{
    struct subject *s = *state;
    struct rv_prng prng;
    struct stat of;
    rv_prng_init(&prng, seed_of_run());
    for (int i = 0; i < 20; i++)
        subject_commit_all(s, heavy_birth(s, TASK_BASE + i, 10000), 1);
    subject_close(s);
    assert_int_equal(stat(s->path, &of), 0);
    assert_true(whole(s));
    for (int64_t page = 0; page < of.st_size / RV_SQLITE_PAGE_BYTES; page++) {
        int64_t at = page * RV_SQLITE_PAGE_BYTES +
                     (int64_t)rv_prng_below(&prng, RV_SQLITE_PAGE_BYTES);
        unsigned char bits = (unsigned char)(1 + rv_prng_below(&prng, 255));
        file_flip(s->path, at, bits);
        assert_false(whole(s));
        file_flip(s->path, at, bits);
    }
    assert_true(whole(s));
}

/* Two pages that end a long payload each are alike to SQLite: only their places tell them apart. */
static void no_page_lies_in_the_place_of_another(void **state)
{
    struct subject *s = *state;
    static unsigned char pages[2][RV_SQLITE_PAGE_BYTES];
    long places[2];
    int found = 0;
    for (int i = 0; i < 20; i++)
        subject_commit_all(s, heavy_birth(s, TASK_BASE + i, 10000), 1);
    subject_close(s);
    FILE *file = fopen(s->path, "r+b");
    assert_non_null(file);
    for (long page = 1; found < 2; page++) {
        assert_int_equal(fseek(file, page * RV_SQLITE_PAGE_BYTES, SEEK_SET), 0);
        assert_int_equal(fread(pages[found], 1, RV_SQLITE_PAGE_BYTES, file), RV_SQLITE_PAGE_BYTES);
        bool last = memcmp(pages[found], "\0\0\0\0", 4) == 0 &&
                    pages[found][RV_SQLITE_PAGE_BYTES - 1] != 0;
        bool other = found == 0 || memcmp(pages[0], pages[1], RV_SQLITE_PAGE_BYTES) != 0;
        if (last && other)
            places[found++] = page * RV_SQLITE_PAGE_BYTES;
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fseek(file, places[i], SEEK_SET), 0);
        assert_int_equal(fwrite(pages[1 - i], 1, RV_SQLITE_PAGE_BYTES, file), RV_SQLITE_PAGE_BYTES);
    }
    assert_int_equal(fclose(file), 0);
    assert_false(whole(s));
}

/* Each byte of the header, on which it depends whether seals are looked at. */
static void no_change_of_the_header_goes_unnoticed(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    subject_close(s);
    for (int64_t at = 0; at < 100; at++) {
        struct rv_store *store = NULL;
        struct rv_store_sqlite_fault fault;
        struct rv_store_sqlite_options options = {.path = s->path, .clock = {no_clock, NULL}};
        file_flip(s->path, at, 0x41);
        assert_int_equal(rv_store_sqlite_open(&options, &store, &fault), RV_ERR_CORRUPT);
        assert_non_null(strstr(fault.message, "restore"));
        file_flip(s->path, at, 0x41);
    }
    subject_open(s);
    assert_non_null(load(s, TASK_BASE));
}

static void what_lies_in_the_log_is_looked_at_too(void **state)
{
    struct subject *s = *state;
    enum { LOG_PAGES = 30 };
    char path[SUBJECT_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s-wal", s->path);
    subject_commit_all(s, heavy_birth(s, TASK_BASE, 900000), 1);
    /* The newest pages, which are read again only once the cache has let them go. */
    struct stat of;
    assert_int_equal(stat(path, &of), 0);
    file_flip(path, of.st_size - 100, 0x10);
    sqlite3 *db = ((struct rv_sqlite *)s->store)->db;
    assert_int_equal(sqlite3_db_release_memory(db), SQLITE_OK);
    struct rv_task_id id = {TASK_BASE};
    const struct rv_task *task = NULL;
    enum rv_err err = s->ops->load_tasks(s->store, &s->arena, RV_COLUMNS_ALL, &id, 1, &task);
    file_flip(path, of.st_size - 100, 0x10);
    assert_int_equal(err, RV_ERR_CORRUPT);
    assert_non_null(load(s, TASK_BASE));
}

/* SQLite writes such a batch in part before its end, and pages of it more than once. */
static void a_batch_beyond_the_cache_is_whole(void **state)
{
    enum { TASKS = 700, PAYLOAD_BYTES = 40000 };
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, seed_of_run());
    int64_t ids[TASKS];
    for (int round = 0; round < 2; round++) {
        struct rv_change *changes = RV_NEW_ARRAY(&s->arena, struct rv_change, TASKS);
        for (int i = 0; i < TASKS; i++) {
            ids[i] = (int64_t)(rv_prng_next(&prng) >> 8) + 1;
            changes[i] = *heavy_birth(s, ids[i], PAYLOAD_BYTES);
        }
        static const bool not_new[1] = {false};
        if (round == 0) /* the last one replaces a step that is not there: all is taken back */
            changes[TASKS - 1].steps_new = not_new;
        assert_int_equal(subject_commit(s, changes, TASKS), round == 0 ? RV_ERR_INVALID : RV_OK);
        rv_arena_reset(&s->arena);
    }
    subject_restart(s);
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(load(s, ids[i])->input.len, PAYLOAD_BYTES);
        rv_arena_reset(&s->arena);
    }
    subject_close(s);
    assert_true(whole(s));
}

/* ---- what an operator sees ---- */

static void an_operator_reads_the_patterns_own_words(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    subject_close(s);
    assert_sql(s, "SELECT process_state FROM task", "processing");
    assert_sql(s, "SELECT process_state FROM step", "pending");
    assert_sql(s, "SELECT locked_by || priority FROM task", "05");
    assert_sql(s, "SELECT failure_count || ifnull(complete_by, 'none') FROM step", "0none");
    assert_sql(s, "SELECT count(*) FROM inbox", "0");
    assert_sql(s, "SELECT group_concat(version) FROM schema_version", "23");
    assert_sql(s, "PRAGMA journal_mode", "wal");
    assert_payloads_last(s);
}

static void word_found(void *self, struct rv_task_id task, const char *what)
{
    (void)task;
    bool *found = self;
    *found = *found || strcmp(what, "CHECK constraint failed in step") == 0;
}

/* The store's own connection writes nothing else, and so leaves out the look at each row. */
static void words_are_checked_where_others_may_have_written(void **state)
{
    struct subject *s = *state;
    char ignored[64];
    bear(s, TASK_BASE);
    subject_close(s);
    sql(s, "UPDATE OR IGNORE step SET process_state = 'lost'", ignored);
    assert_sql(s, "SELECT process_state FROM step", "pending");
    subject_open(s);
    bool found = false;
    struct rv_store_sqlite_finder finder = {word_found, &found};
    assert_int_equal(rv_store_sqlite_check(s->store, &finder), RV_OK);
    assert_false(found);
    subject_restart(s);
    sqlite3 *db = ((struct rv_sqlite *)s->store)->db;
    assert_int_equal(sqlite3_exec(db, "UPDATE step SET process_state = 'lost'", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(rv_store_sqlite_check(s->store, &finder), RV_OK);
    assert_true(found);
}

/* ---- crashes ---- */

enum { KILLS = 10, ACKED_MAX = 120, PER_BATCH = 20, BLOB_BYTES = 3000 };

static _Noreturn void child_commits(const char *path, int64_t first, int pipe_fd)
{
    struct subject s = {.factory = sqlite_factory(), .wall = INT64_C(1790000000000)};
    rv_arena_init(&s.arena, 0);
    snprintf(s.path, sizeof s.path, "%s", path);
    subject_open(&s);
    for (int64_t batch = first;; batch++) {
        struct rv_change changes[PER_BATCH];
        for (int i = 0; i < PER_BATCH; i++) {
            changes[i] = *birth_of(&s, TASK_BASE + batch * PER_BATCH + i);
            struct rv_task *task = RV_NEW(&s.arena, struct rv_task);
            *task = *changes[i].task;
            task->input = (struct rv_str){rv_arena_zero(&s.arena, 1, BLOB_BYTES), BLOB_BYTES};
            changes[i].task = task;
        }
        subject_commit_all(&s, changes, PER_BATCH);
        if (write(pipe_fd, &batch, sizeof batch) != sizeof batch)
            _exit(1);
        rv_arena_reset(&s.arena);
    }
}

/* Starts a child at batch `first`, kills it after `acked` acknowledgements; the newest one. */
static int64_t killed_after(struct subject *s, int64_t first, uint64_t acked)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        child_commits(s->path, first, ends[1]);
    }
    close(ends[1]);
    int64_t newest = first - 1;
    int64_t number;
    uint64_t seen = 0;
    while (seen < acked && read(ends[0], &number, sizeof number) == sizeof number) {
        newest = number;
        seen++;
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    while (read(ends[0], &number, sizeof number) == sizeof number)
        newest = number;
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(seen == acked);
    close(ends[0]);
    return newest;
}

static void what_was_acknowledged_survives_kill_9(void **state)
{
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, seed_of_run());
    subject_close(s);
    int64_t next = 0;
    for (int kills = 0; kills < KILLS; kills++) {
        int64_t newest = killed_after(s, next, 1 + rv_prng_below(&prng, ACKED_MAX));
        subject_open(s);
        for (int64_t i = 0; i < (newest + 1) * PER_BATCH; i++) {
            assert_non_null(load(s, TASK_BASE + i));
            assert_non_null(load_step(s, TASK_BASE + i, 1));
            rv_arena_reset(&s->arena);
        }
        /* One more batch may have been committed and not acknowledged, but not a part of it. */
        int64_t more = s->enlistment.open_tasks - (newest + 1) * PER_BATCH;
        assert_true(more == 0 || more == PER_BATCH);
        next = newest + 1 + (more == PER_BATCH);
        subject_close(s);
        assert_sql(s, "PRAGMA integrity_check", "ok");
    }
}

#define ON_A_STORE(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, sqlite_setup, sqlite_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_STORE(a_second_server_is_refused_by_pid),
        ON_A_STORE(another_name_of_the_file_does_not_help),
        ON_A_STORE(the_file_is_its_owners_alone),
        ON_A_STORE(a14_links_in_the_place_of_files_are_not_followed),
        ON_A_STORE(a_newer_schema_is_refused),
        ON_A_STORE(a_clock_that_was_ahead_is_set_back),
        ON_A_STORE(what_is_no_store_is_refused),
        ON_A_STORE(a_damaged_store_is_refused),
        ON_A_STORE(a_row_that_none_of_ours_can_be_is_told),
        ON_A_STORE(numbers_that_no_server_has_are_an_error),
        ON_A_STORE(a_task_without_an_id_is_in_no_list),
        ON_A_STORE(no_page_changes_unnoticed),
        ON_A_STORE(no_page_lies_in_the_place_of_another),
        ON_A_STORE(no_change_of_the_header_goes_unnoticed),
        ON_A_STORE(what_lies_in_the_log_is_looked_at_too),
        ON_A_STORE(a_batch_beyond_the_cache_is_whole),
        ON_A_STORE(every_filter_goes_by_an_index),
        ON_A_STORE(a_change_writes_no_index_that_it_leaves),
        ON_A_STORE(another_workflow_is_written),
        ON_A_STORE(an_operator_reads_the_patterns_own_words),
        ON_A_STORE(words_are_checked_where_others_may_have_written),
        ON_A_STORE(what_was_acknowledged_survives_kill_9),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
