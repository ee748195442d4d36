/* The SQLite store on a simulated disk: full, failing, without power, and with a byte that has
 * changed. */
#include "sqlite_subject.h"

#include "sim/store/disk.h"
#include "sim/store/vfs.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_priv.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The store on a disk that fails when a test says so. */
struct on_disk {
    struct subject subject; /* first: what the suite knows */
    struct disk *disk;
    struct vfs *vfs;
};

static struct disk *disk_of(struct subject *s)
{
    return ((struct on_disk *)s)->disk;
}

static void disk_create(struct subject *s)
{
    struct on_disk *mine = (struct on_disk *)s;
    mine->disk = disk_new(seed_of_run());
    mine->vfs = vfs_new(mine->disk, "disk", 0);
    s->vfs = "disk";
    snprintf(s->path, sizeof s->path, "reeve.db");
}

static void disk_destroy(struct subject *s)
{
    struct on_disk *mine = (struct on_disk *)s;
    vfs_free(mine->vfs);
    disk_free(mine->disk);
}

static void disk_subject_open(struct subject *s)
{
    sqlite_factory()->open(s);
}

static int setup_on_disk(void **state)
{
    static const struct factory factory = {"sqlite on a disk", disk_create, disk_subject_open,
                                           disk_destroy};
    struct on_disk *mine = calloc(1, sizeof *mine);
    assert_non_null(mine);
    subject_init(&mine->subject, &factory);
    *state = mine;
    return 0;
}

static int teardown_on_disk(void **state)
{
    disk_arm(disk_of(*state), DISK_SOUND, 0, false);
    return sqlite_teardown(state);
}

/* ---- a disk that fails ---- */

/* The log goes out in pieces of 64 KiB: a batch of LARGE inputs takes several writes. */
enum { BATCH = 40, SMALL = 0, LARGE = 9000, WRITES_MAX = 400 };

static struct rv_change *many_births(struct subject *s, int64_t first, size_t input_bytes)
{
    struct rv_change *changes = RV_NEW_ARRAY(&s->arena, struct rv_change, BATCH);
    for (int i = 0; i < BATCH; i++) {
        changes[i] = *birth_of(s, first + i);
        if (input_bytes == SMALL)
            continue;
        struct rv_task *task = RV_NEW(&s->arena, struct rv_task);
        *task = *changes[i].task;
        task->input = (struct rv_str){rv_arena_zero(&s->arena, 1, input_bytes), input_bytes};
        changes[i].task = task;
    }
    return changes;
}

static size_t births_there(struct subject *s, int64_t first)
{
    size_t there = 0;
    for (int i = 0; i < BATCH; i++)
        there += load(s, first + i) != NULL && load_step(s, first + i, 1) != NULL;
    return there;
}

/* A disk that is full from the n-th write on, for every n that a batch has. */
static void full_at_every_write(struct subject *s, enum disk_fault fault)
{
    int strikes = 0;
    for (int n = 0; n < WRITES_MAX; n++) {
        int64_t first = TASK_BASE + n * 1000;
        struct rv_change *changes = many_births(s, first, LARGE);
        disk_arm(disk_of(s), fault, (uint64_t)n, true);
        enum rv_err err = subject_commit(s, changes, BATCH);
        bool struck = disk_struck(disk_of(s));
        disk_arm(disk_of(s), DISK_SOUND, 0, false);
        assert_int_equal(err, struck ? RV_ERR_FULL : RV_OK);
        assert_int_equal(births_there(s, first), struck ? 0 : BATCH);
        strikes += struck;
        if (!struck)
            break;
        subject_commit_all(s, many_births(s, first, LARGE), BATCH); /* there is space again */
        assert_int_equal(births_there(s, first), BATCH);
        rv_arena_reset(&s->arena);
    }
    assert_true(strikes > 5 && strikes < WRITES_MAX);
    subject_restart(s);
    assert_int_equal(s->enlistment.open_tasks, (strikes + 1) * BATCH);
    subject_close(s);
    assert_sql(s, "PRAGMA integrity_check", "ok");
}

static void a_full_disk_is_survived(void **state)
{
    full_at_every_write(*state, DISK_FULL);
}

/* A batch that does not fit into the cache: pages go into the log and are read back before its
 * end. What could not be written of it is no matter of the batches behind it. */
static void a_full_disk_below_a_large_batch_is_survived(void **state)
{
    struct subject *s = *state;
    sqlite3 *db = ((struct rv_sqlite *)s->store)->db;
    assert_int_equal(sqlite3_exec(db, "PRAGMA cache_size = 5", NULL, NULL, NULL), SQLITE_OK);
    full_at_every_write(s, DISK_FULL);
}

static void a_used_up_quota_is_a_full_disk(void **state)
{
    full_at_every_write(*state, DISK_QUOTA);
}

/* One more commit while the fault is armed from the n-th operation on. */
static enum rv_err commit_under(struct subject *s, enum disk_fault fault, int n, bool *ret_struck)
{
    static int64_t first = TASK_BASE;
    disk_arm(disk_of(s), fault, (uint64_t)n, true);
    enum rv_err err = subject_commit(s, many_births(s, first += 1000, LARGE), BATCH);
    *ret_struck = disk_struck(disk_of(s));
    disk_arm(disk_of(s), DISK_SOUND, 0, false);
    rv_arena_reset(&s->arena);
    return err;
}

/* A file goes on saying that its last failure was a quota, long after there was space again. */
static void a_quota_of_old_excuses_no_failed_write(void **state)
{
    struct subject *s = *state;
    bool struck = false;
    s->checkpoint_pages = 1;
    subject_restart(s);
    enum rv_err err = RV_ERR_FULL;
    int n = 0;
    for (; n < WRITES_MAX && !(err == RV_OK && struck); n++) {
        assert_int_equal(commit_under(s, DISK_SOUND, 0, &struck), RV_OK);
        err = commit_under(s, DISK_QUOTA, 0, &struck);
    }
    assert_true(n < WRITES_MAX); /* in a checkpoint: the database has met the quota */
    assert_int_equal(commit_under(s, DISK_WRITE, 0, &struck), RV_ERR_COMMIT_UNKNOWN);
    for (n = 0; n < WRITES_MAX; n++) {
        subject_restart(s);
        subject_restart(s); /* from a clean stop: the log begins anew, and has to grow */
        assert_int_equal(commit_under(s, DISK_QUOTA, 0, &struck), RV_ERR_FULL);
        err = commit_under(s, DISK_WRITE, n, &struck);
        assert_int_equal(err, struck ? RV_ERR_COMMIT_UNKNOWN : RV_OK);
        if (!struck)
            break;
    }
    assert_true(n > 5 && n < WRITES_MAX);
}

/* Nobody may be answered; the restart finds all of the batch or nothing of it. */
static void assert_never_again(struct subject *s, enum disk_fault fault, int n, int *ret_all)
{
    int64_t first = TASK_BASE + 1000000 + n * 1000;
    int64_t now;
    bool committed;
    disk_arm(disk_of(s), fault, (uint64_t)n, true);
    assert_int_equal(subject_commit(s, many_births(s, first, LARGE), BATCH), RV_ERR_COMMIT_UNKNOWN);
    disk_arm(disk_of(s), DISK_SOUND, 0, false); /* a disk that works again changes nothing */
    assert_int_equal(s->ops->committed(s->store, s->number, &committed), RV_ERR_IO);
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_ERR_IO);
    subject_restart(s);
    size_t there = births_there(s, first);
    assert_true(there == 0 || there == BATCH);
    *ret_all += there == BATCH;
    rv_arena_reset(&s->arena);
}

static void a_failed_write_or_sync_ends_the_store(void **state)
{
    struct subject *s = *state;
    int all = 0;
    for (int n = 0; n < 6; n++)
        assert_never_again(s, DISK_WRITE, n, &all);
    assert_int_equal(all, 0);
    assert_never_again(s, DISK_SYNC, 0, &all);
    subject_close(s);
    assert_sql(s, "PRAGMA integrity_check", "ok");
}

/* The copy of the log into the database fails: what was committed stays, but nobody is answered,
 * since the system may have thrown the pages away. */
static void a_failed_checkpoint_ends_the_store(void **state)
{
    struct subject *s = *state;
    enum rv_err err = RV_OK;
    int64_t batches = 0;
    while (err == RV_OK) {
        struct rv_change *changes = many_births(s, TASK_BASE + batches * 1000, 40000);
        /* a commit has one sync; a second is a checkpoint's */
        disk_arm(disk_of(s), DISK_SYNC, 1, true);
        err = subject_commit(s, changes, BATCH);
        batches++;
        assert_true(batches < 100);
        rv_arena_reset(&s->arena);
    }
    assert_true(batches > 1);
    assert_int_equal(err, RV_ERR_COMMIT_UNKNOWN);
    disk_arm(disk_of(s), DISK_SOUND, 0, false);
    subject_restart(s);
    assert_int_equal(s->enlistment.open_tasks, batches * BATCH);
    subject_close(s);
    assert_sql(s, "PRAGMA integrity_check", "ok");
}

/* ---- power ---- */

/* The process dies, with the power or without; the next one starts. */
static void subject_crash(struct subject *s, bool power, uint32_t keep)
{
    disk_die(disk_of(s));
    subject_close(s);
    disk_restart(disk_of(s), power, keep);
    subject_open(s);
}

static void what_was_acknowledged_survives_the_power(void **state)
{
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, seed_of_run());
    int64_t acked = 0;
    for (int i = 0; i < 100; i++) {
        size_t batches = rv_prng_below(&prng, 8);
        for (size_t b = 0; b < batches; b++)
            subject_commit_all(s, many_births(s, TASK_BASE + 1000 * acked++, SMALL), BATCH);
        rv_arena_reset(&s->arena);
        subject_crash(s, true, (uint32_t)rv_prng_below(&prng, 1001));
        assert_int_equal(s->enlistment.open_tasks, acked * BATCH);
    }
    assert_true(acked > 0);
    subject_close(s);
    assert_sql(s, "PRAGMA integrity_check", "ok");
}

/* The system forgets what it could not sync, but goes on showing it: the next process must not
 * build on what only the cache has. */
static void a_failed_sync_leaves_no_hole(void **state)
{
    struct subject *s = *state;
    for (int64_t i = 0; i < 20; i++) {
        int64_t first = TASK_BASE + i * 10000;
        disk_arm(disk_of(s), DISK_SYNC, 0, false);
        assert_int_equal(subject_commit(s, many_births(s, first, SMALL), BATCH),
                         RV_ERR_COMMIT_UNKNOWN);
        subject_crash(s, false, 0);
        size_t seen = births_there(s, first);
        subject_commit_all(s, many_births(s, first + 1000, SMALL), BATCH);
        subject_crash(s, true, 0);
        assert_int_equal(births_there(s, first), seen);
        assert_int_equal(births_there(s, first + 1000), BATCH);
        rv_arena_reset(&s->arena);
    }
    subject_close(s);
    assert_sql(s, "PRAGMA integrity_check", "ok");
}

/* SQLite would copy the log into the file as it closes it, before the log was made durable. */
/* A write that goes out late fails where SQLite asks for something else: the sync fails, too. */
static void a_lost_write_is_told_to_the_next_sync(void **state)
{
    struct subject *s = *state;
    sqlite3 *db = ((struct rv_sqlite *)s->store)->db;
    sqlite3_file *log = NULL;
    sqlite3_int64 bytes = 0;
    char page[RV_SQLITE_PAGE_BYTES] = "";
    subject_commit_all(s, many_births(s, TASK_BASE, SMALL), BATCH);
    assert_int_equal(sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log),
                     SQLITE_OK);
    assert_int_equal(log->pMethods->xFileSize(log, &bytes), SQLITE_OK);
    for (int asked_first = 0; asked_first < 2; asked_first++) {
        assert_int_equal(log->pMethods->xWrite(log, page, sizeof page, bytes), SQLITE_OK);
        disk_arm(disk_of(s), DISK_WRITE, 0, false);
        sqlite3_int64 size = 0;
        int code = asked_first ? log->pMethods->xFileSize(log, &size)
                               : log->pMethods->xRead(log, page, sizeof page, bytes);
        assert_int_not_equal(code, SQLITE_OK);
        assert_int_equal(log->pMethods->xRead(log, page, sizeof page, 0), SQLITE_OK);
        assert_true(disk_struck(disk_of(s)));
        disk_arm(disk_of(s), DISK_SOUND, 0, false);
        assert_int_not_equal(log->pMethods->xSync(log, SQLITE_SYNC_NORMAL), SQLITE_OK);
        assert_int_equal(log->pMethods->xSync(log, SQLITE_SYNC_NORMAL), SQLITE_OK);
    }
    assert_int_equal(log->pMethods->xFileSize(log, &bytes), SQLITE_OK);
    subject_commit_all(s, many_births(s, TASK_BASE + 1000, SMALL), BATCH);
    subject_restart(s);
    assert_int_equal(s->enlistment.open_tasks, 2 * BATCH);
}

static void a_store_that_does_not_open_leaves_its_log(void **state)
{
    struct subject *s = *state;
    for (int i = 0; i < 3; i++)
        subject_commit_all(s, many_births(s, TASK_BASE + i * 1000, SMALL), BATCH);
    disk_die(disk_of(s));
    subject_close(s);
    disk_restart(disk_of(s), false, 0);
    uint64_t bytes = disk_bytes_of(disk_of(s), "reeve.db-wal");
    assert_true(bytes > 0);
    struct rv_store_sqlite_options options = {
        .path = s->path, .clock = {no_clock, NULL}, .vfs = s->vfs};
    struct rv_store_sqlite_fault fault;
    struct rv_store *store = NULL;
    disk_arm(disk_of(s), DISK_WRITE, 0, false);
    assert_int_equal(rv_store_sqlite_open(&options, &store, &fault), RV_ERR_IO);
    assert_true(disk_struck(disk_of(s)));
    assert_int_equal(disk_bytes_of(disk_of(s), "reeve.db-wal"), bytes);
    disk_arm(disk_of(s), DISK_SOUND, 0, false);
    subject_open(s);
    assert_int_equal(s->enlistment.open_tasks, 3 * BATCH);
}

static void assert_damaged(struct disk *disk)
{
    struct vfs *vfs = vfs_new(disk, "copy", 0);
    struct rv_store_sqlite_options options = {
        .path = "reeve.db", .clock = {no_clock, NULL}, .vfs = "copy"};
    struct rv_store_sqlite_fault fault;
    struct rv_store *store = NULL;
    assert_int_equal(rv_store_sqlite_open(&options, &store, &fault), RV_ERR_CORRUPT);
    assert_non_null(strstr(fault.message, "has a damaged log"));
    vfs_free(vfs);
}

/* Whatever byte of the log has changed: what stands behind it was acknowledged, and is not dropped
 * in silence; nor does the refusal take the log away. */
static void a_log_damaged_in_its_middle_is_refused(void **state)
{
    enum { LOG_HEADER_BYTES = 32, ROUNDS = 60 };
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, seed_of_run());
    for (int i = 0; i < 10; i++)
        subject_commit_all(s, many_births(s, TASK_BASE + i * 1000, SMALL), BATCH);
    uint64_t certain = disk_bytes_of(disk_of(s), "reeve.db-wal") - LOG_HEADER_BYTES;
    for (int i = 10; i < 12; i++)
        subject_commit_all(s, many_births(s, TASK_BASE + i * 1000, SMALL), BATCH);
    disk_die(disk_of(s));
    subject_close(s);
    disk_restart(disk_of(s), false, 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct disk *copy = disk_copy(disk_of(s));
        uint64_t at = LOG_HEADER_BYTES + rv_prng_below(&prng, certain);
        uint8_t bits = (uint8_t)(1 + rv_prng_below(&prng, 255));
        assert_true(disk_rot(copy, "reeve.db-wal", at, bits));
        assert_damaged(copy);
        assert_damaged(copy);
        disk_free(copy);
    }
    subject_open(s);
    assert_int_equal(s->enlistment.open_tasks, 12 * BATCH);
}

#define ON_A_DISK(function)                                                                        \
    cmocka_unit_test_setup_teardown(function, setup_on_disk, teardown_on_disk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_DISK(a_full_disk_is_survived),
        ON_A_DISK(a_full_disk_below_a_large_batch_is_survived),
        ON_A_DISK(a_used_up_quota_is_a_full_disk),
        ON_A_DISK(a_quota_of_old_excuses_no_failed_write),
        ON_A_DISK(a_failed_write_or_sync_ends_the_store),
        ON_A_DISK(a_failed_checkpoint_ends_the_store),
        ON_A_DISK(what_was_acknowledged_survives_the_power),
        ON_A_DISK(a_failed_sync_leaves_no_hole),
        ON_A_DISK(a_lost_write_is_told_to_the_next_sync),
        ON_A_DISK(a_store_that_does_not_open_leaves_its_log),
        ON_A_DISK(a_log_damaged_in_its_middle_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
