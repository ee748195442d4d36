/* The files of the SQLite store under somebody else's hands: deleted, moved, cut or written to. */
#include "sqlite_subject.h"

#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files that are displaced ---- */

static void assert_look(struct subject *s, enum rv_err wanted, const char *text)
{
    const char *why;
    assert_int_equal(rv_store_sqlite_look(s->store, &why), wanted);
    assert_int_equal(why != NULL, text != NULL);
    if (text != NULL && (strstr(why, text) == NULL || strstr(why, s->path) == NULL))
        fail_msg("no \"%s\" in: %s", text, why);
}

static void a_file_that_is_displaced_is_seen(void **state)
{
    static const char *const names[] = {"", "-wal", ".lock"};
    static const char *const texts[] = {"no longer at", "the log of the store",
                                        "the lock file of the store"};
    struct subject *s = *state;
    char name[SUBJECT_PATH_BYTES + 32], aside[SUBJECT_PATH_BYTES + 32];
    snprintf(aside, sizeof aside, "%s-aside", s->path);
    bear(s, TASK_BASE);
    assert_look(s, RV_OK, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "%s%s", s->path, names[i]);
        assert_int_equal(rename(name, aside), 0);
        assert_look(s, RV_ERR_DISPLACED, texts[i]);
        int fd = open(name, O_WRONLY | O_CREAT, 0600); /* another in its place */
        assert_true(fd >= 0);
        close(fd);
        assert_look(s, RV_ERR_DISPLACED, texts[i]);
        assert_int_equal(rename(aside, name), 0);
        assert_look(s, RV_OK, NULL);
    }
}

/* It is left as after a kill: that it was stopped could be noted nowhere. */
static void a_store_whose_lock_file_is_gone_is_stopped_and_starts(void **state)
{
    struct subject *s = *state;
    char lock[SUBJECT_PATH_BYTES + 32];
    snprintf(lock, sizeof lock, "%s.lock", s->path);
    bear(s, TASK_BASE);
    assert_int_equal(unlink(lock), 0);
    subject_restart(s);
    assert_non_null(load(s, TASK_BASE));
}

static void progress_ignore(void *self)
{
    (void)self;
}

static void assert_save(struct subject *s, enum rv_err wanted, const char *end)
{
    static const struct rv_store_sqlite_progress progress = {.told = progress_ignore};
    struct rv_store_sqlite_saved saved;
    char name[SUBJECT_PATH_BYTES + 32];
    snprintf(name, sizeof name, "%s%s", end[0] != '\0' ? s->path : "", end);
    enum rv_err err = rv_store_sqlite_save(s->store, &progress, &saved);
    if (err != wanted)
        fail_msg("%s: %s", rv_err_text(err), saved.why);
    assert_string_equal(saved.file, name);
    assert_int_equal(saved.why[0] != '\0', wanted != RV_OK);
}

static void what_has_no_name_is_saved(void **state)
{
    struct subject *s = *state;
    char log[SUBJECT_PATH_BYTES + 32], other[SUBJECT_PATH_BYTES + 32];
    bear(s, TASK_BASE);
    snprintf(log, sizeof log, "%s-wal", s->path);
    snprintf(other, sizeof other, "%s.saved", s->path);
    assert_save(s, RV_OK, "");
    assert_int_equal(unlink(s->path), 0);
    assert_look(s, RV_ERR_DISPLACED, "was deleted");
    assert_save(s, RV_OK, ".saved");
    assert_save(s, RV_OK, ".saved.2"); /* the first one is somebody's */
    assert_int_equal(unlink(log), 0);
    assert_int_equal(rename(other, s->path), 0);
    snprintf(other, sizeof other, "%s.saved.2", s->path);
    assert_int_equal(unlink(other), 0);
    subject_restart(s);
    assert_non_null(load(s, TASK_BASE));
}

/* Somebody writes to a file, or cuts it. Nothing is committed then; what is in memory is saved. */
static void spoil(const char *name, off_t at, off_t end)
{
    int fd = open(name, O_WRONLY);
    assert_true(fd >= 0);
    if (at >= 0)
        assert_int_equal(pwrite(fd, "spoiled", 7, at), 7);
    else
        assert_int_equal(ftruncate(fd, end), 0);
    close(fd);
}

/* A new store in the place of the one that is open or closed. */
static void anew(struct subject *s)
{
    static const char *const ends[] = {"", "-wal", ".lock"};
    char name[SUBJECT_PATH_BYTES + 32];
    if (s->store != NULL)
        subject_close(s);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", s->path, ends[i]);
        (void)unlink(name);
    }
    subject_open(s);
}

static void a_file_that_somebody_writes_to_is_seen_before_a_commit(void **state)
{
    static const struct {
        const char *name;
        off_t at, end;
    } ways[] = {{"", -1, 0},      {"", -1, RV_SQLITE_PAGE_BYTES},
                {"", 30, 0},      {"-wal", -1, 0},
                {"-wal", -1, 50}, {"-wal", 0, 0}};
    struct subject *s = *state;
    char name[SUBJECT_PATH_BYTES + 32], saved[sizeof name], log[sizeof name];
    snprintf(saved, sizeof saved, "%s.saved", s->path);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *text = ways[i].name[0] == '\0' ? "the store's file" : "the log of the store";
        bear(s, TASK_BASE);
        snprintf(name, sizeof name, "%s%s", s->path, ways[i].name);
        snprintf(log, sizeof log, "%s-wal", s->path);
        assert_look(s, RV_OK, NULL);
        spoil(name, ways[i].at, ways[i].end);
        assert_int_equal(subject_commit(s, birth_of(s, TASK_BASE + 1), 1), RV_ERR_DISPLACED);
        assert_look(s, RV_ERR_DISPLACED, text);
        assert_save(s, RV_OK, ".saved");
        subject_close(s);
        assert_int_equal(unlink(log), 0); /* what is whole of it stays until somebody has looked */
        assert_int_equal(rename(saved, s->path), 0);
        subject_open(s);
        assert_non_null(load(s, TASK_BASE));
        assert_null(load(s, TASK_BASE + 1));
        anew(s);
    }
}

static void what_is_nowhere_any_more_is_not_saved(void **state)
{
    struct subject *s = *state;
    char log[SUBJECT_PATH_BYTES + 32];
    snprintf(log, sizeof log, "%s-wal", s->path);
    bear(s, TASK_BASE);
    subject_restart(s); /* of which little is in memory now */
    spoil(s->path, -1, RV_SQLITE_PAGE_BYTES);
    assert_int_equal(subject_commit(s, birth_of(s, TASK_BASE + 1), 1), RV_ERR_DISPLACED);
    assert_save(s, RV_ERR_CORRUPT, "");
    subject_close(s);
    struct stat file;
    assert_int_equal(stat(s->path, &file), 0);
    assert_int_equal(file.st_size, RV_SQLITE_PAGE_BYTES);
    assert_int_equal(access(log, F_OK), 0);
    anew(s);
}

/* ---- what a server that was killed has left ---- */

static const char *const parts[] = {"", "-wal", ".lock"};

static void part_copy(const char *from, const char *to, const char *part)
{
    static char bytes[1 << 20];
    char name[SUBJECT_PATH_BYTES + 64];
    snprintf(name, sizeof name, "%s%s", from, part);
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    size_t count = fread(bytes, 1, sizeof bytes, file);
    assert_true(count < sizeof bytes);
    fclose(file);
    snprintf(name, sizeof name, "%s%s", to, part);
    file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

/* The files as they are now, under another name, as a kill would leave them. */
static void image_take(struct subject *s, const char *to)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        part_copy(s->path, to, parts[i]);
}

static void image_remove(const char *path)
{
    char name[SUBJECT_PATH_BYTES + 64];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, parts[i]);
        (void)unlink(name);
    }
}

/* As `reeve check` and as a server, which leave what is refused as it is; and again. */
static void assert_start(const char *path, enum rv_err wanted, const char *text)
{
    struct rv_store *store = NULL;
    struct rv_store_sqlite_fault fault;
    struct rv_store_sqlite_options options = {.path = path, .clock = {no_clock, NULL}};
    for (int i = 0; i < 4; i++) {
        options.there = i % 2 == 0;
        enum rv_err err = rv_store_sqlite_open(&options, &store, &fault);
        if (err != wanted || (err != RV_OK && strstr(fault.message, text) == NULL))
            fail_msg("%s: %s", rv_err_text(err), fault.message);
        if (err == RV_OK)
            store->ops->close(store);
    }
}

static void a_log_that_lacks_what_was_acknowledged_is_refused(void **state)
{
    enum { FRAME = 24 + RV_SQLITE_PAGE_BYTES };
    struct subject *s = *state;
    char image[SUBJECT_PATH_BYTES + 32], older[sizeof image + 16], log[sizeof image + 16];
    snprintf(image, sizeof image, "%s2", s->path);
    snprintf(older, sizeof older, "%s-older", image);
    snprintf(log, sizeof log, "%s-wal", image);
    bear(s, TASK_BASE);
    image_take(s, older);
    bear(s, TASK_BASE + 1);
    image_take(s, image);
    /* Behind it are pages of the log before. */
    off_t end = 32 + (off_t)((struct rv_sqlite *)s->store)->frames * FRAME;
    const struct {
        off_t at, end;
    } ways[] = {{0, 0},        {-1, 10},          {-1, 32},
                {-1, end / 2}, {-1, end - FRAME}, {end - FRAME + 100, 0}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        spoil(log, ways[i].at, ways[i].end);
        assert_start(image, RV_ERR_REFUSED, "without the last acknowledged changes of a killed");
        image_take(s, image);
    }
    part_copy(older, image, "-wal");
    assert_start(image, RV_ERR_REFUSED, "without the last acknowledged changes of a killed");
    image_take(s, image);
    assert_start(image, RV_OK, "");
    image_remove(image);
    image_remove(older);
}

/* The note is written after the commit, so it may be behind: by a batch, or by a whole log. */
static void a_log_that_has_more_than_was_noted_is_taken(void **state)
{
    struct subject *s = *state;
    char image[SUBJECT_PATH_BYTES + 32], older[sizeof image + 16];
    snprintf(image, sizeof image, "%s2", s->path);
    snprintf(older, sizeof older, "%s-older", image);
    bear(s, TASK_BASE);
    image_take(s, older);
    for (int64_t i = 1; i < 4; i++) {
        if (i > 1)
            assert_int_equal(rv_sqlite_checkpoint((struct rv_sqlite *)s->store), RV_OK);
        bear(s, TASK_BASE + i);
        image_take(s, image);
        part_copy(older, image, ".lock");
        assert_start(image, RV_OK, "");
        image_remove(image);
    }
    image_remove(older);
}

/* A copy of the file that was made at an earlier stop is put back beside the newer log. */
static void a_log_beside_an_older_copy_of_its_file_is_refused(void **state)
{
    struct subject *s = *state;
    char older[SUBJECT_PATH_BYTES + 32], image[sizeof older];
    snprintf(older, sizeof older, "%s2", s->path);
    snprintf(image, sizeof image, "%s3", s->path);
    bear(s, TASK_BASE);
    subject_close(s);
    part_copy(s->path, older, "");
    subject_open(s);
    for (int64_t i = 1; i < 3; i++) {
        bear(s, TASK_BASE + i);
        image_take(s, image);
        part_copy(older, image, "");
        assert_start(image, RV_ERR_REFUSED, "is older than the log beside it");
        image_take(s, image);
        assert_start(image, RV_OK, "");
        image_remove(image);
    }
    image_remove(older);
}

static void part_remove(const char *path, const char *part)
{
    char name[SUBJECT_PATH_BYTES + 64];
    snprintf(name, sizeof name, "%s%s", path, part);
    assert_int_equal(unlink(name), 0);
}

/* So many that the file grows, which its first page tells. */
enum { BIRTHS = 30 };

static void bear_many(struct subject *s, int64_t first)
{
    for (int64_t i = 0; i < BIRTHS; i++)
        bear(s, first + i);
}

/* Of the store itself or of another one, it is not what was left there. */
static void a_log_beside_a_store_that_was_stopped_is_refused(void **state)
{
    struct subject *s = *state;
    char older[SUBJECT_PATH_BYTES + 32], other[sizeof older];
    snprintf(older, sizeof older, "%s2", s->path);
    snprintf(other, sizeof other, "%s3", s->path);
    bear(s, TASK_BASE);
    image_take(s, other);
    anew(s);
    bear(s, TASK_BASE);
    image_take(s, older);
    bear_many(s, TASK_BASE + 1);
    subject_close(s);
    const char *const logs[] = {older, other};
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        part_copy(logs[i], s->path, "-wal");
        assert_start(s->path, RV_ERR_REFUSED, "which is an older copy");
        part_remove(s->path, "-wal");
    }
    assert_start(s->path, RV_OK, "");
    subject_open(s);
    assert_non_null(load(s, TASK_BASE + BIRTHS));
    image_remove(older);
    image_remove(other);
}

/* The stop had put all of it into the file when the process or the machine died. */
static void the_log_that_a_stop_has_left_is_taken(void **state)
{
    struct subject *s = *state;
    struct rv_sqlite *store = (struct rv_sqlite *)s->store;
    char image[SUBJECT_PATH_BYTES + 32];
    snprintf(image, sizeof image, "%s2", s->path);
    bear(s, TASK_BASE);
    assert_int_equal(rv_sqlite_mark_stop(store), RV_OK);
    assert_int_equal(rv_sqlite_checkpoint(store), RV_OK);
    assert_true(rv_sqlite_record(store, false));
    image_take(s, image);
    assert_start(image, RV_OK, "");
    image_remove(image);
}

/* A start writes to the log before a server has enlisted: from then on a stop is over. */
static void the_log_of_a_start_that_was_cut_off_is_taken(void **state)
{
    struct subject *s = *state;
    char image[SUBJECT_PATH_BYTES + 32];
    snprintf(image, sizeof image, "%s2", s->path);
    bear(s, TASK_BASE);
    subject_close(s);
    s->factory->open(s);
    sqlite3 *db = ((struct rv_sqlite *)s->store)->db;
    assert_int_equal(sqlite3_exec(db, "UPDATE task SET priority = 9", NULL, NULL, NULL), SQLITE_OK);
    image_take(s, image);
    assert_start(image, RV_OK, "");
    image_remove(image);
}

/* The lock file may be gone, too. */
static void a_log_of_another_store_is_refused_without_a_lock_file(void **state)
{
    struct subject *s = *state;
    char other[SUBJECT_PATH_BYTES + 32], older[sizeof other];
    snprintf(other, sizeof other, "%s2", s->path);
    snprintf(older, sizeof older, "%s3", s->path);
    for (int i = 0; i < 3; i++)
        subject_restart(s); /* so that its enlistment is above that of the store below */
    bear_many(s, TASK_BASE);
    assert_int_equal(sqlite3_exec(((struct rv_sqlite *)s->store)->db, "PRAGMA user_version = 77",
                                  NULL, NULL, NULL),
                     SQLITE_OK); /* which is in the first page, as the id */
    image_take(s, other);
    anew(s);
    bear(s, TASK_BASE);
    image_take(s, older);
    subject_restart(s);
    bear_many(s, TASK_BASE + 1);
    part_copy(s->path, older, "");
    part_remove(older, ".lock");
    assert_start(older, RV_ERR_REFUSED, "which is an older copy"); /* older than what is running */
    image_take(s, older);
    subject_close(s);
    part_copy(other, s->path, "-wal");
    part_remove(s->path, ".lock");
    assert_start(s->path, RV_ERR_IN_USE, "which belongs to another store");
    part_copy(older, s->path, "-wal");
    assert_start(s->path, RV_ERR_REFUSED, "which is an older copy");
    part_remove(s->path, "-wal");
    subject_open(s);
    assert_non_null(load(s, TASK_BASE + BIRTHS));
    image_remove(other);
    image_remove(older);
}

/* The first page's field for a number of the user, as it is in the file alone. */
static uint32_t mark_of(const char *path)
{
    unsigned char bytes[4];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 60, SEEK_SET), 0);
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    fclose(file);
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void a_file_that_was_copied_without_its_log_is_refused(void **state)
{
    struct subject *s = *state;
    char image[SUBJECT_PATH_BYTES + 32];
    snprintf(image, sizeof image, "%s2", s->path);
    for (int i = 0; i < 3; i++) {
        part_copy(s->path, image, ""); /* before anything is moved into it, and after */
        assert_start(image, RV_ERR_REFUSED, "needs its log");
        bear(s, TASK_BASE + i);
        if (i == 1)
            assert_int_equal(rv_sqlite_checkpoint((struct rv_sqlite *)s->store), RV_OK);
    }
    part_copy(s->path, image, "-wal");
    assert_start(image, RV_OK, "");
    assert_false(rv_mark_runs(mark_of(image)));
    subject_close(s);
    part_copy(s->path, image, "");
    assert_start(image, RV_OK, "");
    subject_open(s);
    image_remove(image);
}

static void a_backup_has_no_mark(void **state)
{
    static char bytes[1 << 20];
    struct subject *s = *state;
    struct rv_copy *copy;
    char image[SUBJECT_PATH_BYTES + 32], saved[sizeof image];
    size_t count;
    snprintf(image, sizeof image, "%s2", s->path);
    snprintf(saved, sizeof saved, "%s.saved", s->path);
    bear(s, TASK_BASE);
    assert_int_not_equal(mark_of(s->path), 0);
    assert_int_equal(rv_store_sqlite_copy(s->store, &copy), RV_OK);
    assert_true(copy->bytes < (int64_t)sizeof bytes);
    assert_int_equal(copy->read(copy, bytes, sizeof bytes, &count), RV_OK);
    assert_int_equal(count, copy->bytes);
    copy->close(copy);
    FILE *file = fopen(image, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
    assert_int_equal(mark_of(image), 0);
    assert_start(image, RV_OK, "");
    image_remove(image);
    part_copy(s->path, image, "");
    part_remove(s->path, "");
    assert_save(s, RV_OK, ".saved");
    assert_int_equal(mark_of(saved), 0);
    assert_start(saved, RV_OK, "");
    image_remove(saved);
    image_remove(image);
    anew(s);
}

/* An older program enlists, and stops, and leaves the mark of a newer one. */
static void a_mark_that_is_stale_is_ignored(void **state)
{
    struct subject *s = *state;
    struct rv_sqlite *store = (struct rv_sqlite *)s->store;
    char image[SUBJECT_PATH_BYTES + 32];
    snprintf(image, sizeof image, "%s2", s->path);
    bear(s, TASK_BASE);
    assert_int_equal(sqlite3_exec(store->db, "UPDATE instance SET enlistment = enlistment + 1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(rv_sqlite_checkpoint(store), RV_OK);
    part_copy(s->path, image, "");
    assert_true(rv_mark_runs(mark_of(image)));
    assert_start(image, RV_OK, "");
    image_remove(image);
}

static void without_its_log_a_file_is_taken_if_that_is_wanted(void **state)
{
    struct subject *s = *state;
    struct rv_store *store = NULL;
    struct rv_store_sqlite_fault fault;
    char image[SUBJECT_PATH_BYTES + 32];
    snprintf(image, sizeof image, "%s2", s->path);
    bear(s, TASK_BASE);
    part_copy(s->path, image, "");
    struct rv_store_sqlite_options options = {
        .path = image, .clock = {no_clock, NULL}, .there = true, .keep_intact = true};
    assert_int_equal(rv_store_sqlite_open(&options, &store, &fault), RV_OK);
    assert_non_null(strstr(fault.message, "no log, although the store needs its log"));
    store->ops->close(store);
    assert_start(image, RV_OK, "");
    image_remove(image);
}

#define ON_A_STORE(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, sqlite_setup, sqlite_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_STORE(a_file_that_is_displaced_is_seen),
        ON_A_STORE(a_store_whose_lock_file_is_gone_is_stopped_and_starts),
        ON_A_STORE(what_has_no_name_is_saved),
        ON_A_STORE(a_file_that_somebody_writes_to_is_seen_before_a_commit),
        ON_A_STORE(what_is_nowhere_any_more_is_not_saved),
        ON_A_STORE(a_log_that_lacks_what_was_acknowledged_is_refused),
        ON_A_STORE(a_log_that_has_more_than_was_noted_is_taken),
        ON_A_STORE(a_log_beside_an_older_copy_of_its_file_is_refused),
        ON_A_STORE(a_log_beside_a_store_that_was_stopped_is_refused),
        ON_A_STORE(the_log_that_a_stop_has_left_is_taken),
        ON_A_STORE(the_log_of_a_start_that_was_cut_off_is_taken),
        ON_A_STORE(a_log_of_another_store_is_refused_without_a_lock_file),
        ON_A_STORE(a_file_that_was_copied_without_its_log_is_refused),
        ON_A_STORE(a_backup_has_no_mark),
        ON_A_STORE(a_mark_that_is_stale_is_ignored),
        ON_A_STORE(without_its_log_a_file_is_taken_if_that_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
