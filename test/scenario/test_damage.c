/* F-53: rows of a SQLite store that somebody has edited by hand, and bits that have flipped. The
 * task whose row is hit is parked or goes on, the others come to their end; nothing ends the
 * process but a page that cannot be read.
 *
 * Each round has a seed. Half of them are the same in each run; the others come from the commit, as
 * in sim/new-seeds, so that each commit looks at other values and its runs at the same ones. A
 * failure says the seed of its round: REEVE_SEED=N runs the rounds from that seed on instead, and
 * REEVE_TELL=1 prints each round before it runs. */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/prng.h"
#include "document.h"
#include "store/sqlite/sqlite_priv.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { START_AT = 1000000000, LOOPS_MAX = 120, PATH_BYTES = 300, ROUNDS = 250, FLIPS = 60 };
/* Texts of this length stand apart from their rows: many of these. */
enum { APART_BYTES = 16 };
/* The seeds that are the same in each run, and how many a commit has for itself. */
enum { SEED_FIXED = 20261121, SEEDS_OF_COMMIT = 10000 };

/* What the tasks of the store are at when it is hit. */
enum { PENDING, TAKEN, HALF, PROCESSED, UNDONE, REVOKED, FAILED, LATE, WAITS, PARKED, TASKS };

static const char *const parks = DOCUMENT("parks") "do:\n"
                                                   "  - a: {call: one, metadata: {reeve: {failures:"
                                                   " {threshold: 1, rounds: 0, then: error}}}}\n";
static struct {
    char directory[PATH_BYTES - 32];
    char base[PATH_BYTES]; /* undamaged */
    char path[PATH_BYTES]; /* of the world */
    int64_t now;           /* when the base was left */
    struct rv_task_id tasks[TASKS];
} store;

/* ---- the store before it is hit ---- */

static enum rv_err sqlite_open(struct world *w, struct rv_store **ret_store)
{
    struct rv_store_sqlite_fault fault;
    struct rv_store_sqlite_options options = {
        .path = store.path, .clock = w->clock, .apart_bytes = APART_BYTES};
    enum rv_err err = rv_store_sqlite_open(&options, ret_store, &fault);
    if (err != RV_OK)
        fail_msg("%s", fault.message);
    return err;
}

static void open_at(struct world *w, int64_t now, bool may_break)
{
    world_open_on(w,
                  (struct world_ground){.open = sqlite_open, .now = now, .may_break = may_break});
}

static void base_tasks(struct world *w)
{
    struct rv_task_id *tasks = store.tasks;
    tasks[TAKEN] = world_submit(w, "order", "{\"sku\":1}");
    (void)world_take(w, "inventory", "i1");
    tasks[HALF] = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    tasks[PROCESSED] = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    (void)world_take(w, "payment", "p1"); /* of HALF */
    assert_int_equal(world_done(w, world_take(w, "payment", "p1"), "1"), 200);
    assert_state(w, tasks[PROCESSED], "processed");
    tasks[UNDONE] = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    world_fail(w, world_take(w, "payment", "p1"), false, RV_EFFECT_UNKNOWN);
    assert_state(w, tasks[UNDONE], "compensating");
    tasks[FAILED] = world_submit(w, "order", "{}");
    world_fail(w, world_take(w, "inventory", "i1"), true, RV_EFFECT_UNKNOWN);
    tasks[LATE] = world_submit(w, "order", "{}");
    struct rv_assignment late = world_take(w, "inventory", "i1");
    world_fail(w, late, true, RV_EFFECT_UNKNOWN);
    world_done(w, late, "{\"late\":true}");
    assert_int_equal(world_count_late(w, tasks[LATE]), 1);
    tasks[PARKED] = world_submit(w, "parks", "{}");
    world_fail(w, world_take(w, "one", "o1"), false, RV_EFFECT_NONE);
    tasks[WAITS] = world_submit(w, "waits", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "o1"), "1"), 200);
    tasks[REVOKED] = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, tasks[REVOKED]), RV_OK);
    tasks[PENDING] = world_submit(w, "order", "{}");
}

static void file_copy(const char *from, const char *to)
{
    enum { BYTES = 65536 };
    static char bytes[BYTES];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    for (size_t count; (count = fread(bytes, 1, BYTES, in)) > 0;)
        assert_int_equal(fwrite(bytes, 1, count, out), count);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

static void file_remove(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", ".lock"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char name[PATH_BYTES + 8];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static int base_make(void **state)
{
    static struct world w;
    /* In memory where that can be had: nothing here is about what a sync keeps. */
    snprintf(store.directory, sizeof store.directory, "%s/reeve-damage-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(store.directory) == NULL)
        return -1;
    snprintf(store.base, sizeof store.base, "%s/base.db", store.directory);
    snprintf(store.path, sizeof store.path, "%s/base.db", store.directory);
    open_at(&w, START_AT, false);
    world_publish(&w, workflow_file("order"));
    world_publish(&w, parks);
    world_publish(&w, workflow_file("damage/waits"));
    base_tasks(&w);
    store.now = w.now;
    world_close(&w);
    snprintf(store.path, sizeof store.path, "%s/reeve.db", store.directory);
    *state = &w;
    return 0;
}

static int base_remove(void **state)
{
    (void)state;
    file_remove(store.base);
    file_remove(store.path);
    return rmdir(store.directory);
}

/* ---- wrong values ---- */

static void execute(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

/* Through the VFS that seals the pages, as any program would that is built for it. */
struct edit {
    struct rv_seal *seal;
    sqlite3 *db;
};

static struct edit edit_begin(void)
{
    struct edit edit = {.seal = rv_seal_new(NULL)};
    assert_non_null(edit.seal);
    assert_int_equal(
        sqlite3_open_v2(store.path, &edit.db, SQLITE_OPEN_READWRITE, rv_seal_name(edit.seal)),
        SQLITE_OK);
    execute(edit.db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA ignore_check_constraints = ON");
    return edit;
}

static void edit_end(struct edit edit)
{
    assert_int_equal(sqlite3_close(edit.db), SQLITE_OK);
    rv_seal_free(edit.seal);
}

/* A column of the table that is no key, by its number in turn. */
static void column_draw(sqlite3 *db, struct rv_prng *prng, const char *table, char name[static 64])
{
    char sql[200];
    sqlite3_stmt *statement;
    snprintf(sql, sizeof sql,
             "SELECT name, count(*) OVER () FROM pragma_table_info('%s') WHERE pk = 0"
             " AND name NOT IN ('task', 'step') ORDER BY random()",
             table);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    uint64_t chosen = rv_prng_below(prng, (uint64_t)sqlite3_column_int(statement, 1));
    sqlite3_finalize(statement);
    snprintf(sql, sizeof sql,
             "SELECT name FROM pragma_table_info('%s') WHERE pk = 0"
             " AND name NOT IN ('task', 'step') ORDER BY cid LIMIT 1 OFFSET %d",
             table, (int)chosen);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    snprintf(name, 64, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
}

static const char *value_draw(struct rv_prng *prng)
{
    /* clang-format off */
    static const char *const values[] = {
        "NULL", "-1", "0", "1", "2", "3", "7", "255", "256", "4294967295", "4294967296",
        "9223372036854775807", "-9223372036854775808", "1000001000", "1000000000", "'x'", "''",
        "'1'", "'2'", "'1 1'", "'1 2'", "'9'", "'{}'", "'[]'", "'null'", "'{\"n\":1}'",
        "'{\"n\":2,\"m\":\"w\"}'", "'{\"n\":99}'", "'{'", "x'00ff'", "x''", "1.5", "'pending'",
        "'processing'", "'processed'", "'error'", "'cancelled'", "'compensating'",
        "'compensated'", "'skipped'", "'open'", "'revoked'", "'done'", "'failed'", "'expired'",
        "'none'", "'unknown'", "'undo'", "'forward'", "'call'", "'wait'", "'inline'",
        "'inventory'", "'payment'"};
    /* clang-format on */
    return values[rv_prng_below(prng, sizeof values / sizeof values[0])];
}

/* One value of one row of the task; false: it has no such row. */
static bool value_spoil(sqlite3 *db, struct rv_prng *prng, struct rv_task_id task, char *told)
{
    static const char *const tables[] = {"task",    "task",       "step",  "step",   "step",
                                         "attempt", "late_reply", "alert", "payload"};
    const char *table = tables[rv_prng_below(prng, sizeof tables / sizeof tables[0])];
    bool of_task = strcmp(table, "task") == 0;
    char column[64];
    column_draw(db, prng, table, column);
    snprintf(told, 400,
             "UPDATE %s SET %s = %s WHERE rowid IN (SELECT rowid FROM %s WHERE %s = %lld"
             " ORDER BY rowid LIMIT 1 OFFSET %d)",
             table, column, value_draw(prng), table, of_task ? "id" : "task", (long long)task.value,
             of_task ? 0 : (int)rv_prng_below(prng, 4));
    if (strcmp(table, "payload") == 0 && rv_prng_below(prng, 2) == 0)
        snprintf(told, 400,
                 "DELETE FROM payload WHERE rowid IN (SELECT rowid FROM payload WHERE task = %lld"
                 " ORDER BY rowid LIMIT 1 OFFSET %d)",
                 (long long)task.value, (int)rv_prng_below(prng, 4));
    if (strcmp(table, "attempt") == 0) /* which has no rowid */
        snprintf(told, 400, "UPDATE attempt SET %s = %s WHERE task = %lld", column,
                 value_draw(prng), (long long)task.value);
    int code = sqlite3_exec(db, told, NULL, NULL, NULL);
    return code == SQLITE_OK && sqlite3_changes(db) > 0; /* a column may be NOT NULL */
}

static void rows_spoil(struct rv_prng *prng, struct rv_task_id task, char *told)
{
    struct edit edit = edit_begin();
    while (!value_spoil(edit.db, prng, task, told))
        continue;
    edit_end(edit);
}

/* ---- a while of life afterwards ---- */

static void agent_turn(struct world *w, const char *agent)
{
    struct rv_call *poll = world_call(w, RV_CALL_POLL);
    poll->u.poll = (struct rv_poll){
        .agent = rv_str_of(agent),
        .instance = RV_STR("late"),
        .boot = RV_STR("b"),
        .poll = rv_arena_printf(&poll->arena, "%s-%d", agent, (int)w->serial),
        .max = 8};
    assert_true(world_run(w, poll));
    for (size_t i = 0; i < poll->u.poll.requests_count; i++)
        (void)world_done(w, poll->u.poll.requests[i], "{\"n\":1}");
}

static bool over(enum rv_task_state state)
{
    return !rv_task_state_open(state) || state == RV_TASK_ERROR;
}

static size_t count_open(struct world *w, int hit)
{
    size_t open = 0;
    for (int i = 0; i < TASKS; i++)
        open += i != hit && !over(world_task(w, store.tasks[i])->state);
    return open;
}

/* Every list that an operator may ask for. */
static void lists_read(struct world *w, struct rv_task_id task)
{
    static const enum rv_call_kind kinds[] = {RV_CALL_TASKS, RV_CALL_STEPS,  RV_CALL_ATTEMPTS,
                                              RV_CALL_LATE,  RV_CALL_ALERTS, RV_CALL_SHOW};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct rv_call *call = world_call(w, kinds[i]);
        if (kinds[i] == RV_CALL_SHOW)
            call->u.show.task = task;
        else if (kinds[i] != RV_CALL_TASKS)
            call->u.list.task = task;
        assert_true(world_run(w, call));
        assert_int_equal(call->err, RV_OK);
    }
}

static void operator_turn(struct world *w, struct rv_task_id task)
{
    (void)world_operate(w, RV_COMMAND_RESUBMIT, task);
    agent_turn(w, "inventory");
    (void)world_operate(w, RV_COMMAND_UNDO, task);
    world_pass(w, 20000);
    (void)world_operate(w, RV_COMMAND_CANCEL, task);
    agent_turn(w, "payment");
    struct rv_call *abandon = world_call(w, RV_CALL_OPERATE);
    abandon->u.operate.verb = RV_COMMAND_CANCEL;
    abandon->u.operate.task = task;
    abandon->u.operate.abandon = true;
    assert_true(world_run(w, abandon));
    world_pass(w, 70000);
}

static const char *end_of(int task)
{
    return task == UNDONE || task == REVOKED ? "compensated"
           : task == PARKED                  ? "error"
                                             : "processed";
}

static void life(struct world *w, int hit)
{
    int loops = 0;
    lists_read(w, store.tasks[hit]);
    for (; loops < LOOPS_MAX && (loops < 3 || count_open(w, hit) > 0); loops++) {
        agent_turn(w, "inventory");
        agent_turn(w, "payment");
        agent_turn(w, "one");
        world_pass(w, 1000);
    }
    assert_true(loops < LOOPS_MAX);
    lists_read(w, store.tasks[hit]);
    operator_turn(w, store.tasks[hit]);
    lists_read(w, store.tasks[hit]);
    for (int i = 0; i < TASKS; i++)
        if (i != hit)
            assert_state(w, store.tasks[i], end_of(i));
}

/* ---- rounds ---- */

/* The round under way; one that is not over when its test ends has failed. */
static struct {
    uint64_t seed;
    char told[400];
    bool over;
} under_way = {.over = true};

static void round_begin(uint64_t seed)
{
    under_way.seed = seed;
    under_way.told[0] = '\0';
    under_way.over = false;
    file_remove(store.path);
    file_copy(store.base, store.path);
}

static void round_hits(void)
{
    if (getenv("REEVE_TELL") != NULL)
        print_message("# seed %llu: %s\n", (unsigned long long)under_way.seed, under_way.told);
}

static void round_tell(void)
{
    if (!under_way.over)
        print_message("# REEVE_SEED=%llu repeats it: %s\n", (unsigned long long)under_way.seed,
                      under_way.told);
    under_way.over = true;
}

/* An assertion of the product: nothing runs any more. */
static void aborted(int number)
{
    (void)number;
    round_tell();
}

static int rounds_begin(void **state)
{
    const struct sigaction tells = {.sa_handler = aborted, .sa_flags = (int)SA_RESETHAND};
    (void)state;
    return sigaction(SIGABRT, &tells, NULL);
}

static int rounds_end(void **state)
{
    (void)state;
    round_tell();
    return 0;
}

/* What git says goes into the file; 0: it has said something. */
static int commit_ask(char *path)
{
    const char *source = getenv("REEVE_SOURCE");
    char git[] = "git", in[] = "-C", ask[] = "rev-parse", head[] = "HEAD", top[PATH_BYTES];
    char *argv[] = {git, in, top, ask, head, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 0;
    snprintf(top, sizeof top, "%s", source != NULL ? source : ".");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, path, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawnp(&pid, git, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed == 0)
        assert_int_equal(waitpid(pid, &status, 0), pid);
    return failed != 0 ? failed : status;
}

/* 0: there is no commit here. */
static uint64_t seed_of_commit(void)
{
    char commit[9] = "";
    file_remove(store.path);
    if (commit_ask(store.path) != 0)
        return 0;
    FILE *said = fopen(store.path, "r");
    assert_non_null(said);
    size_t len = fread(commit, 1, sizeof commit - 1, said);
    assert_int_equal(fclose(said), 0);
    bool is = len == sizeof commit - 1 && strspn(commit, "0123456789abcdef") == len;
    return is ? strtoull(commit, NULL, 16) * SEEDS_OF_COMMIT + 1 : 0;
}

/* Those of the second half come from the commit; without one they follow the fixed ones. */
static uint64_t seed_of_round(uint64_t round, uint64_t count)
{
    static uint64_t commit;
    const char *given = getenv("REEVE_SEED");
    bool halves = given == NULL && round == count / 2;
    if (halves)
        commit = seed_of_commit();
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) + round : SEED_FIXED + round;
    if (given == NULL && round >= count / 2 && commit != 0)
        seed = commit + round - count / 2;
    if (round == 0 || halves)
        print_message("# seeds %llu to %llu\n", (unsigned long long)seed,
                      (unsigned long long)(seed + (given != NULL ? count : count / 2) - 1));
    return seed;
}

static void wrong_values_hit_one_task_alone(void **state)
{
    struct world *w = *state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct rv_prng prng;
        round_begin(seed_of_round(round, ROUNDS));
        rv_prng_init(&prng, under_way.seed);
        int hit = (int)rv_prng_below(&prng, TASKS);
        rows_spoil(&prng, store.tasks[hit], under_way.told);
        round_hits();
        open_at(w, store.now + 10, false);
        life(w, hit);
        world_close(w);
        under_way.over = true;
    }
}

static void store_edit(const char *sql)
{
    struct edit edit = edit_begin();
    execute(edit.db, sql);
    edit_end(edit);
}

static void edit_task(const char *change, const char *column, int task)
{
    char sql[200];
    snprintf(sql, sizeof sql, "UPDATE %s WHERE %s = %lld", change, column,
             (long long)store.tasks[task].value);
    store_edit(sql);
}

/* The cure that the alert names: mend the row, resubmit the task. */
static void what_cannot_be_read_is_parked_until_it_is_mended(void **state)
{
    struct world *w = *state;
    file_remove(store.path);
    file_copy(store.base, store.path);
    edit_task("task SET priority = 4711", "id", PENDING);
    edit_task("step SET token = 'x'", "task", TAKEN);
    open_at(w, store.now + 10, false);
    static const int hit[] = {PENDING, TAKEN};
    for (size_t i = 0; i < 2; i++) {
        assert_state(w, store.tasks[hit[i]], "error");
        assert_int_equal(world_count_alerts(w, store.tasks[hit[i]], RV_ALERT_UNREADABLE), 1);
        assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, store.tasks[hit[i]]),
                         RV_ERR_CORRUPT);
    }
    assert_true(world_task(w, store.tasks[PENDING])->unreadable);
    assert_true(world_step(w, store.tasks[TAKEN], 1)->unreadable);
    int64_t now = w->now;
    world_close(w);
    edit_task("task SET priority = 5", "id", PENDING);
    edit_task("step SET token = 99", "task", TAKEN);
    open_at(w, now + 10, false);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, store.tasks[hit[i]]), RV_OK);
    for (int loops = 0; loops < 30; loops++) {
        agent_turn(w, "inventory");
        agent_turn(w, "payment");
        world_pass(w, 1000);
    }
    for (size_t i = 0; i < 2; i++)
        assert_state(w, store.tasks[hit[i]], "processed");
    world_close(w);
}

/* One after the other: the task is escalated, whatever it would do with the value. */
static void a_value_that_no_row_has_escalates_the_task(void **state)
{
    static const struct {
        const char *change, *column;
        int task;
    } damages[] = {
        {"task SET created_at = -9223372036854775808", "id", PENDING},
        {"task SET quiet_at = 9223372036854775807", "id", UNDONE},
        {"step SET lease_until = 9223372036854775807", "task", TAKEN},
        {"step SET stale = 1", "task", PENDING},
        {"step SET token = 'x'", "task", TAKEN},
        {"task SET redo = 1", "id", HALF},
        {"step SET process_state = iif(kind = 'wait', 'pending', process_state)", "task", WAITS},
        {"step SET agent = CAST(x'00ff' AS TEXT)", "task", PENDING},
        {"step SET agent = CAST(x'6f6e6500' AS TEXT)", "task", TAKEN},
        {"step SET instance = CAST(x'693100' AS TEXT)", "task", TAKEN},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        struct rv_task_id task = store.tasks[damages[i].task];
        print_message("# %s\n", damages[i].change);
        file_remove(store.path);
        file_copy(store.base, store.path);
        edit_task(damages[i].change, damages[i].column, damages[i].task);
        open_at(w, store.now + 10, false);
        assert_state(w, task, "error");
        assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNREADABLE), 1);
        lists_read(w, task);
        world_close(w);
    }
}

/* A state that none is, in a task that the index of the open ones still names. */
static void state_hide(struct rv_task_id task, const char *text)
{
    struct edit edit = edit_begin();
    char sql[100];
    execute(edit.db, "CREATE TEMP TABLE kept AS SELECT sql FROM sqlite_schema WHERE "
                     "name = 'task_open'; PRAGMA writable_schema = ON; "
                     "UPDATE sqlite_schema SET sql = 'CREATE INDEX task_open ON task(id) "
                     "WHERE id > 0' WHERE name = 'task_open'; PRAGMA writable_schema = RESET");
    snprintf(sql, sizeof sql, "UPDATE task SET process_state = '%s' WHERE id = %lld", text,
             (long long)task.value);
    execute(edit.db, sql);
    execute(edit.db, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
                     "(SELECT sql FROM kept) WHERE name = 'task_open'");
    edit_end(edit);
}

static void a_state_that_the_index_hides_escalates_the_task(void **state)
{
    struct world *w = *state;
    file_remove(store.path);
    file_copy(store.base, store.path);
    state_hide(store.tasks[PENDING], "wrong");
    open_at(w, store.now + 10, false);
    assert_state(w, store.tasks[PENDING], "error");
    assert_int_equal(world_count_alerts(w, store.tasks[PENDING], RV_ALERT_UNREADABLE), 1);
    life(w, PENDING);
    world_close(w);
    file_remove(store.path);
    file_copy(store.base, store.path);
    state_hide(store.tasks[PENDING], "processed"); /* of an open step */
    open_at(w, store.now + 10, false);
    life(w, PENDING);
    world_close(w);
}

/* The step that a resubmission with another input lets wait for an undo: the row of the task names
 * one that is over. */
static void a_step_that_waits_for_an_undo_and_is_over_is_found(void **state)
{
    static const enum rv_command_kind verbs[] = {RV_COMMAND_CANCEL, RV_COMMAND_UNDO};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        file_remove(store.path);
        file_copy(store.base, store.path);
        edit_task("task SET redo = 1", "id", UNDONE);
        open_at(w, store.now + 10, false);
        (void)world_operate(w, verbs[i], store.tasks[UNDONE]);
        for (int loops = 0; loops < 5; loops++) {
            agent_turn(w, "payment");
            agent_turn(w, "inventory");
            world_pass(w, 5000); /* the compensation waits for the end of the attempt */
        }
        assert_state(w, store.tasks[UNDONE], "error");
        assert_int_equal(world_count_alerts(w, store.tasks[UNDONE], RV_ALERT_UNREADABLE), 1);
        lists_read(w, store.tasks[UNDONE]);
        operator_turn(w, store.tasks[UNDONE]);
        assert_state(w, store.tasks[UNDONE], "cancelled");
        world_close(w);
    }
}

/* What is damaged is the step at which the task stands, not the one of which the reply tells. */
static void a_late_done_is_kept_beside_a_damaged_step(void **state)
{
    static const char *const damages[] = {
        "UPDATE step SET frames = '{\"s\":['",
        "UPDATE step SET frames = 'x'",
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        file_remove(store.path);
        file_copy(store.base, store.path);
        open_at(w, store.now + 10, false);
        world_publish(w, workflow_file("damage/goes-past"));
        struct rv_task_id task = world_submit(w, "past", "{}");
        struct rv_assignment request = world_take(w, "one", "i1");
        world_pass(w, 3000);
        int64_t now = w->now;
        struct rv_assignment late = {.step = request.step, .token = request.token};
        world_close(w);
        char sql[200];
        snprintf(sql, sizeof sql, "%s WHERE agent = 'two' AND task = %lld", damages[i],
                 (long long)task.value);
        store_edit(sql);
        open_at(w, now + 10, false);
        assert_int_equal(world_done(w, late, "{\"charged\":1}"), 410);
        assert_int_equal(world_count_late(w, task), 1);
        const struct rv_step *step = world_step(w, task, late.step.number);
        assert_int_equal(step->effect, RV_EFFECT_DONE);
        assert_string_equal(step->output.at, "{\"charged\":1}");
        world_close(w);
    }
}

/* The rows of one task are damaged: its agent is told to send that reply again, and the others that
 * it sends with it are taken. */
static void a_damaged_step_blocks_no_other_reply(void **state)
{
    struct world *w = *state;
    struct rv_reply_item items[2];
    struct rv_lease_item leases[2];
    file_remove(store.path);
    open_at(w, START_AT, false);
    world_publish(w, workflow_file("order"));
    struct rv_task_id good = world_submit(w, "order", "{}"), bad = world_submit(w, "order", "{}");
    const struct rv_call *poll = world_poll(w, "inventory", "i1", 2);
    assert_int_equal(poll->u.poll.requests_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct rv_assignment *request = &poll->u.poll.requests[i];
        leases[i] = (struct rv_lease_item){.step = request->step, .token = request->token};
        items[i] = (struct rv_reply_item){
            .step = request->step, .token = request->token, .reply = {.output = RV_STR("{}")}};
    }
    bool first = items[0].step.task.value == good.value;
    int64_t now = w->now;
    world_close(w);
    char sql[200];
    snprintf(sql, sizeof sql, "UPDATE step SET round = 'x' WHERE task = %lld",
             (long long)bad.value);
    store_edit(sql);
    open_at(w, now + 10, false);
    struct rv_call *renew = world_call(w, RV_CALL_LEASES);
    renew->u.leases.items = leases;
    renew->u.leases.count = 2;
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    call->u.replies.items = items;
    call->u.replies.count = 2;
    assert_true(world_run(w, renew) && world_run(w, call));
    assert_true(renew->err == RV_OK && call->err == RV_OK);
    assert_int_equal(leases[!first].status, 200);
    assert_int_equal(leases[first].status, 503);
    assert_false(leases[0].cancel || leases[1].cancel);
    assert_int_equal(items[!first].status, 200);
    assert_int_equal(items[first].status, 503);
    assert_true(items[first].message.len > 0);
    assert_step(w, good, 1, "processed");
    assert_state(w, bad, "error");
    now = w->now;
    struct rv_assignment again = {.step = items[first].step, .token = items[first].token};
    world_close(w);
    snprintf(sql, sizeof sql, "UPDATE step SET round = 0 WHERE task = %lld", (long long)bad.value);
    store_edit(sql);
    open_at(w, now + 10, false);
    assert_int_equal(world_done(w, again, "{}"), 200);
    assert_step(w, bad, 1, "processed");
    world_close(w);
}

/* ---- flipped bits ---- */

static void bit_flip(struct rv_prng *prng, char *told)
{
    struct stat of;
    int fd = open(store.path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &of), 0);
    off_t at = (off_t)rv_prng_below(prng, (uint64_t)of.st_size);
    unsigned char byte, bit = (unsigned char)rv_prng_below(prng, 8);
    snprintf(told, sizeof under_way.told, "bit %u of byte %lld", bit, (long long)at);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte = (unsigned char)(byte ^ 1u << bit);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(close(fd), 0);
}

static bool opens_at_all(void)
{
    struct rv_store *opened;
    struct rv_store_sqlite_fault fault;
    struct world w = {.now = store.now};
    struct rv_store_sqlite_options options = {
        .path = store.path, .clock = {world_now, &w}, .apart_bytes = APART_BYTES};
    enum rv_err err = rv_store_sqlite_open(&options, &opened, &fault);
    if (err != RV_OK)
        return false;
    struct rv_enlistment enlistment = {.lease_ms = 5000};
    err = opened->ops->enlist(opened, RV_STR("before"), 1, &enlistment);
    opened->ops->close(opened);
    return err == RV_OK;
}

/* Whatever they hit, the server refuses the file, or ends because it cannot be read, or it was
 * nothing that anybody looks at: then all is as if it had not been. */
static void flipped_bits_are_found_or_do_no_harm(void **state)
{
    struct world *w = *state;
    int refused = 0, broke = 0;
    for (uint64_t round = 0; round < FLIPS; round++) {
        struct rv_prng prng;
        round_begin(seed_of_round(round, FLIPS));
        rv_prng_init(&prng, under_way.seed);
        bit_flip(&prng, under_way.told);
        round_hits();
        if (!opens_at_all()) {
            refused++;
            under_way.over = true;
            continue;
        }
        open_at(w, store.now + 10, true);
        for (int loops = 0; loops < LOOPS_MAX && !w->broke; loops++) {
            agent_turn(w, "inventory");
            agent_turn(w, "payment");
            agent_turn(w, "one");
            world_pass(w, 1000);
        }
        broke += w->broke;
        for (int i = 0; i < TASKS && !w->broke; i++)
            assert_state(w, store.tasks[i], end_of(i));
        world_close(w);
        under_way.over = true;
    }
    print_message("# %d flips: %d files refused, %d ended the process\n", FLIPS, refused, broke);
    assert_true(refused > 0 && broke > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_that_no_row_has_escalates_the_task),
        cmocka_unit_test(a_state_that_the_index_hides_escalates_the_task),
        cmocka_unit_test(a_step_that_waits_for_an_undo_and_is_over_is_found),
        cmocka_unit_test(a_late_done_is_kept_beside_a_damaged_step),
        cmocka_unit_test(a_damaged_step_blocks_no_other_reply),
        cmocka_unit_test_setup_teardown(wrong_values_hit_one_task_alone, rounds_begin, rounds_end),
        cmocka_unit_test(what_cannot_be_read_is_parked_until_it_is_mended),
        cmocka_unit_test_setup_teardown(flipped_bits_are_found_or_do_no_harm, rounds_begin,
                                        rounds_end),
    };
    return cmocka_run_group_tests(tests, base_make, base_remove);
}
