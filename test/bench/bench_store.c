/* How many three-step tasks a second the store can record: bench_store [FINISHED [DIRECTORY]].
 *
 * A task is an insert with its first step, then three updates, each of which replaces the task's
 * row, finishes a step and (but for the last) inserts the next. A batch holds 1,000 changes, 250 of
 * each kind, and a task's changes lie LAG batches apart, so some 4,000 tasks are open. FINISHED is
 * how many tasks the store holds before the measured ones. Each figure is the best of ROUNDS, since
 * the disk is shared; what was written is read back. */
#include "base/arena.h"
#include "base/assert.h"
#include "sim/store/memory/memory.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PER_BATCH = 250, STAGES = 4, LAG = 4, MEASURED = 50000, ROUNDS = 3, PATH_BYTES = 512 };
enum { PAYLOAD_BYTES = 300 };

static char payload[PAYLOAD_BYTES + 1];

static struct rv_str bytes(size_t len)
{
    rv_assert(len <= PAYLOAD_BYTES);
    return (struct rv_str){payload, len};
}

static int64_t wall_now(void *self)
{
    (void)self;
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    return at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

static double seconds(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static double cpu_seconds(void)
{
    struct timespec at;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* 20 tasks a millisecond. */
static int64_t instant_of(int64_t index)
{
    return INT64_C(1790000000000) + index / 20;
}

/* Ids as the server makes them: by time. */
static struct rv_task_id id_of(int64_t index)
{
    return (struct rv_task_id){(instant_of(index) << 21) | (INT64_C(1) << 13) | (index % 20)};
}

static struct rv_task task_at(int64_t index, int stage)
{
    int64_t now = instant_of(index);
    struct rv_task task = {
        .id = id_of(index),
        .revision = stage + 1,
        .workflow = 1,
        .state = stage == 0   ? RV_TASK_PENDING
                 : stage == 3 ? RV_TASK_PROCESSED
                              : RV_TASK_PROCESSING,
        .priority = 5,
        .locked_by = 1,
        .fence = (uint32_t)stage + 1,
        .last_number = (uint32_t)(stage < 3 ? stage + 1 : 3),
        .undo_head = (uint32_t)stage,
        .open_count =
            stage<3, .open = {(uint32_t)stage + 1}, .created_at = now, .started_at = stage> 0 ? now
                                                                                              : 0,
        .ended_at = stage == 3 ? now : 0,
        .input = bytes(PAYLOAD_BYTES)};
    if (stage == 3)
        task.output = bytes(PAYLOAD_BYTES / 3);
    return task;
}

static struct rv_step step_at(int64_t index, uint32_t number, bool ended)
{
    int64_t now = instant_of(index);
    static const char *const references[] = {"/do/0/reserveStock", "/do/1/chargeCard",
                                             "/do/2/shipOrder"};
    static const char *const agents[] = {"inventory", "payment", "shipping"};
    struct rv_step step = {.number = number,
                           .kind = RV_KIND_CALL,
                           .state = ended ? RV_STEP_PROCESSED : RV_STEP_PROCESSING,
                           .node = number,
                           .visit = 1,
                           .effect = ended ? RV_EFFECT_DONE : RV_EFFECT_NONE,
                           .undo_prev = number - 1,
                           .chained = true,
                           .wake_at = ended ? 0 : now + 10000,
                           .attempt = 1,
                           .attempt_state = ended ? RV_ATTEMPT_DONE : RV_ATTEMPT_OPEN,
                           .token = (uint64_t)index * UINT64_C(0x9e3779b97f4a7c15),
                           .fence = number,
                           .attempt_at = now,
                           .complete_by = now + 10000,
                           .lease_ms = 10000,
                           .lease_until = now + 10000,
                           .created_at = now,
                           .ended_at = ended ? now : 0,
                           .reference = rv_str_of(references[number - 1]),
                           .iteration = RV_STR(""),
                           .agent = rv_str_of(agents[number - 1]),
                           .instance = RV_STR("worker-17"),
                           .boot = RV_STR("f3a9c1d27b60"),
                           .poll = RV_STR("p4711"),
                           .frames = bytes(PAYLOAD_BYTES / 5),
                           .data = bytes(PAYLOAD_BYTES / 3),
                           .input = bytes(PAYLOAD_BYTES / 3)};
    if (ended)
        step.output = bytes(PAYLOAD_BYTES / 3);
    return step;
}

/* What one change is made of; lives as long as its batch. */
struct cell {
    struct rv_task task, task_before;
    struct rv_step ended, ended_before;
    struct rv_step next;
    const struct rv_step *steps[2], *steps_before[2];
    bool steps_new[2];
};

static void cell_fill(struct cell *cell, struct rv_change *change, int64_t index, int stage)
{
    size_t count = 0;
    cell->task = task_at(index, stage);
    if (stage > 0) {
        cell->task_before = task_at(index, stage - 1);
        cell->ended = step_at(index, (uint32_t)stage, true);
        cell->ended_before = step_at(index, (uint32_t)stage, false);
        cell->steps_new[count] = false;
        cell->steps_before[count] = &cell->ended_before;
        cell->steps[count++] = &cell->ended;
    }
    if (stage < 3) {
        cell->next = step_at(index, (uint32_t)stage + 1, false);
        cell->steps_new[count] = true;
        cell->steps_before[count] = NULL;
        cell->steps[count++] = &cell->next;
    }
    *change = (struct rv_change){.task = &cell->task,
                                 .revision_before = stage,
                                 .task_before = stage > 0 ? &cell->task_before : NULL,
                                 .steps = cell->steps,
                                 .steps_new = cell->steps_new,
                                 .steps_before = cell->steps_before,
                                 .steps_count = count};
}

/* Records the tasks [first, first + count) from their submission to their end. */
static void tasks_run(struct rv_store *store, int64_t first, int64_t count)
{
    static struct cell cells[PER_BATCH * STAGES];
    static struct rv_change changes[PER_BATCH * STAGES];
    static int64_t number;
    int64_t waves = (count + PER_BATCH - 1) / PER_BATCH;
    for (int64_t wave = 0; wave < waves + LAG * (STAGES - 1); wave++) {
        int64_t now = 0;
        enum rv_err err = store->ops->begin(store, NULL, &now);
        rv_assert(err == RV_OK);
        struct rv_batch batch = {.changes = changes, .number = ++number};
        for (int stage = 0; stage < STAGES; stage++) {
            int64_t from = (wave - (int64_t)stage * LAG) * PER_BATCH;
            for (int64_t i = from; i >= 0 && i < from + PER_BATCH && i < count; i++) {
                size_t at = batch.changes_count++;
                cell_fill(&cells[at], &changes[at], first + i, stage);
            }
        }
        err = store->ops->commit(store, &batch);
        rv_assert(err == RV_OK);
        for (size_t i = 0; i < batch.changes_count; i++)
            rv_assert(changes[i].outcome == RV_OK);
    }
}

static struct rv_store *open_store(const char *path, struct rv_enlistment *ret_enlistment)
{
    struct rv_store *store = NULL;
    struct rv_store_sqlite_fault fault;
    struct rv_store_sqlite_options options = {.path = path, .clock = {wall_now, NULL}};
    enum rv_err err = rv_store_sqlite_open(&options, &store, &fault);
    if (err != RV_OK) {
        fprintf(stderr, "%s\n", fault.message);
        exit(1);
    }
    err = store->ops->enlist(store, RV_STR("boot"), getpid(), ret_enlistment);
    rv_assert(err == RV_OK);
    return store;
}

static int64_t file_bytes(const char *path)
{
    struct stat stat_of;
    return stat(path, &stat_of) == 0 ? stat_of.st_size : 0;
}

/* Every measured task is there, processed, with three processed steps. */
static void verify(struct rv_store *store, int64_t first, int64_t count)
{
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    for (int64_t i = first; i < first + count; i++) {
        rv_arena_reset(&arena);
        struct rv_task_id id = id_of(i);
        const struct rv_task *task = NULL;
        struct rv_step steps[4];
        size_t steps_count = 0;
        enum rv_err err = store->ops->load_tasks(store, &arena, RV_COLUMNS_ALL, &id, 1, &task);
        rv_assert(err == RV_OK && task != NULL && task->state == RV_TASK_PROCESSED);
        err = store->ops->list_steps(store, &arena, RV_COLUMNS_ALL, id, 0, 4, steps, &steps_count);
        rv_assert(err == RV_OK && steps_count == 3);
        for (size_t s = 0; s < steps_count; s++)
            rv_assert(steps[s].state == RV_STEP_PROCESSED && steps[s].output.len > 0);
    }
    rv_arena_done(&arena);
}

static void remove_store(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", ".lock"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char name[PATH_BYTES + 8];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

/* Tasks per second in the best of ROUNDS; *next is the index of the next task to make. */
static double measure(const char *name, struct rv_store *store, int64_t *next)
{
    double best = 0;
    double cpu_best = 0;
    int64_t finished = *next;
    for (int round = 0; round < ROUNDS; round++) {
        sync(); /* the rounds and tasks before are written by now, and not in our time */
        double start = seconds();
        double cpu = cpu_seconds();
        tasks_run(store, *next, MEASURED);
        double rate = MEASURED / (seconds() - start);
        cpu = (cpu_seconds() - cpu) * 1e6 / MEASURED;
        cpu_best = round == 0 || cpu < cpu_best ? cpu : cpu_best;
        best = rate > best ? rate : best;
        verify(store, *next, MEASURED);
        *next += MEASURED;
    }
    printf("store.%s %.0f tasks/s, %.1f us of processor per task, %" PRId64 " finished before\n",
           name, best, cpu_best, finished);
    return best;
}

/* Closes and opens: how large it is, and how long the start takes. */
static struct rv_store *reopen(struct rv_store *store, const char *path, int64_t finished)
{
    store->ops->close(store);
    printf("store.sqlite %" PRId64 " bytes per task\n", file_bytes(path) / finished);
    struct rv_enlistment enlistment = {.lease_ms = 5000};
    double start = seconds();
    store = open_store(path, &enlistment);
    printf("store.sqlite open %.1f ms, %" PRId64 " finished before\n", (seconds() - start) * 1e3,
           finished);
    rv_assert(enlistment.open_tasks == 0 && !enlistment.created);
    return store;
}

static void measure_memory(void)
{
    struct rv_store_memory_data *data = NULL;
    struct rv_store *store = NULL;
    struct rv_enlistment enlistment = {.lease_ms = 5000};
    int64_t next = 0;
    enum rv_err err = rv_store_memory_data_new(&data);
    rv_assert(err == RV_OK);
    err = rv_store_memory_open(data, (struct rv_wall_clock){.now = wall_now}, &store);
    rv_assert(err == RV_OK);
    err = store->ops->enlist(store, RV_STR("boot"), getpid(), &enlistment);
    rv_assert(err == RV_OK);
    measure("memory", store, &next);
    store->ops->close(store);
    rv_store_memory_data_free(data);
}

int main(int argc, char **argv)
{
    int64_t finished = argc > 1 ? strtoll(argv[1], NULL, 10) : 0;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/bench_store.%d.db", argc > 2 ? argv[2] : ".", (int)getpid());
    for (size_t i = 0; i < PAYLOAD_BYTES; i++)
        payload[i] = (char)('a' + i % 26);
    measure_memory();
    struct rv_enlistment enlistment = {.lease_ms = 5000};
    struct rv_store *store = open_store(path, &enlistment);
    rv_assert(enlistment.created);
    int64_t next = 0;
    double empty = measure("sqlite", store, &next);
    store = reopen(store, path, next);
    if (finished > next) {
        tasks_run(store, next, finished - next);
        next = finished;
        double full = measure("sqlite", store, &next);
        store = reopen(store, path, next);
        printf("store.sqlite rate times %.2f at %" PRId64 " finished\n", full / empty, finished);
    }
    store->ops->close(store);
    remove_store(path);
    return 0;
}
