/* The cycle alone: three-step tasks through the scheduler on SQLite, in one process, without HTTP;
 * the same beside an agent that has named so many targets as down; then for some seconds in smaller
 * batches beside a backlog of tasks that have ended, in turns without the retention rule and with
 * it. */
#include "../lib/workflow.h"
#include "base/os/clock.h"
#include "json/json.h"
#include "scheduler/scheduler.h"
#include "store/sqlite/sqlite.h"
#include "workflow/definition.h"
#include "yaml/yaml.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    LANES = 4,
    TIMED_MAX = 1000000,
    TARGETS = 30000,
    BESIDE = 20000,
    RETAIN_MS = 1000,
    BACKLOG = 40000,
    INTAKE_US = 5000000,
    PAIRS = 3,
    WAITING = 100000,
    POLLS = 301
};

/* What goes through the scheduler, and how much of it at once. */
struct load {
    size_t tasks;      /* 0: by the time */
    int64_t us_max;    /* 0: by the tasks */
    size_t batch;      /* tasks of a submission */
    size_t calls;      /* submissions of a batch */
    size_t in_flight;  /* tasks */
    uint32_t poll_max; /* requests */
};

/* In a folder of its own, on a disk: /tmp may be memory. */
static char folder[] = "/var/tmp/bench-scheduler-XXXXXX";
static const char path[] = "bench.db";
static int64_t lasted_us[TIMED_MAX]; /* submissions */

static struct rv_scheduler *scheduler;
static uint64_t serial;

static int64_t wall(void *self)
{
    (void)self;
    return rv_clock_wall_ms();
}

static int64_t mono_now(void *self)
{
    (void)self;
    return rv_clock_mono_ms();
}

static int64_t mono_now_us(void *self)
{
    (void)self;
    return rv_clock_mono_us();
}

/* Of this thread, which alone does the work. */
static int64_t cpu_us(void)
{
    struct timespec used;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0)
        abort();
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

static void finished(struct rv_call *call)
{
    call->owner = call;
}

static struct rv_call *call_new(enum rv_call_kind kind)
{
    struct rv_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        abort();
    call->kind = kind;
    call->serial = ++serial;
    call->seed = serial * UINT64_C(0x9e3779b97f4a7c15);
    call->mono_at = rv_clock_mono_ms();
    call->finish = finished;
    rv_arena_init(&call->arena, 0);
    return call;
}

static void call_free(struct rv_call *call)
{
    rv_arena_done(&call->arena);
    free(call);
}

static void run(struct rv_call **calls, size_t count)
{
    if (rv_scheduler_run_batch(scheduler, calls, count, rv_clock_mono_ms()) != RV_OK)
        abort();
}

static void publish(void)
{
    struct rv_call *call = call_new(RV_CALL_PUBLISH);
    struct rv_json document;
    struct rv_yaml_fault where;
    struct rv_buf source;
    rv_buf_init(&source, 100000);
    struct rv_str text = rv_str_of(workflow_file("bench/three"));
    if (rv_yaml_parse(&call->arena, text, text.len + 1, &document, &where) != RV_OK)
        abort();
    rv_json_write_canonical(&source, &document);
    call->u.publish.row = (struct rv_workflow_row){.space = RV_STR("bench"),
                                                   .name = RV_STR("three"),
                                                   .version = RV_STR("1.0.0"),
                                                   .hash = RV_STR("00"),
                                                   .source = rv_buf_str(&source)};
    run(&call, 1);
    rv_buf_done(&source);
    call_free(call);
}

static struct rv_call *submission(size_t count)
{
    struct rv_call *call = call_new(RV_CALL_SUBMIT);
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, count);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct rv_submission){
            .space = RV_STR("bench"),
            .name = RV_STR("three"),
            .input = RV_STR("{\"orderId\":17,\"sku\":\"A-1\",\"quantity\":2}"),
            .priority = 5};
    call->u.submit.items = items;
    call->u.submit.count = count;
    return call;
}

/* Replies to what the call before has brought, and asks for the next. */
static struct rv_call *replies(const struct rv_call *before, uint32_t max, size_t *ret_count)
{
    struct rv_call *call = call_new(RV_CALL_REPLIES);
    struct rv_call_replies *r = &call->u.replies;
    r->count = before ? before->u.replies.next.requests_count : 0;
    r->items = RV_NEW_ARRAY(&call->arena, struct rv_reply_item, r->count + 1);
    for (size_t i = 0; i < r->count; i++) {
        const struct rv_assignment *request = &before->u.replies.next.requests[i];
        r->items[i] = (struct rv_reply_item){.step = request->step, .token = request->token};
        r->items[i].reply.output = RV_STR("{\"ok\":true,\"step\":\"06DWX3T9H2K4Q-3\"}");
    }
    r->has_next = true;
    r->next = (struct rv_poll){.agent = RV_STR("bench"),
                               .instance = RV_STR("i"),
                               .boot = RV_STR("b"),
                               .max = max,
                               .confirms = true};
    r->next.poll = rv_arena_printf(&call->arena, "p%llu", (unsigned long long)serial);
    if (before != NULL) {
        r->next.confirm = RV_NEW(&call->arena, struct rv_str);
        *r->next.confirm = rv_arena_str(&call->arena, before->u.replies.next.poll);
        r->next.confirm_count = 1;
    }
    *ret_count = r->count;
    return call;
}

static void files_remove(void)
{
    static const char *const names[] = {"bench.db", "bench.db-wal", "bench.db-shm",
                                        "bench.db-journal", "bench.db.lock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unlink(names[i]);
}

static void folder_remove(void)
{
    files_remove();
    rmdir(folder);
}

static void interrupted(int signal)
{
    folder_remove(); /* calls only what a handler may */
    _exit(128 + signal);
}

static void folder_enter(void)
{
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) {
        perror(folder);
        exit(1);
    }
    atexit(folder_remove);
    const struct sigaction action = {.sa_handler = interrupted};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static struct rv_store *store_open(bool anew)
{
    struct rv_store *store;
    struct rv_store_sqlite_fault fault;
    struct rv_store_sqlite_options file = {.path = path, .clock = {wall, NULL}};
    if (anew)
        files_remove();
    if (rv_store_sqlite_open(&file, &store, &fault) != RV_OK) {
        fprintf(stderr, "%s\n", fault.message);
        exit(1);
    }
    return store;
}

struct figures {
    size_t submitted;
    size_t batches;
    size_t timed; /* submissions, in lasted_us */
    int64_t took_us;
};

/* What is under way: a large call may wait for a later batch than the next one. */
struct flight {
    struct rv_call *submissions[LANES];
    int64_t since_us[LANES];
    struct rv_call *lanes[LANES];  /* replies and the next poll */
    struct rv_call *before[LANES]; /* whose requests they answer */
};

static bool over(const struct rv_call *call)
{
    return call != NULL && call->owner != NULL;
}

/* The next calls, where one is over. */
static size_t calls_next(struct flight *flight, const struct load *load, struct figures *f,
                         size_t *steps, struct rv_call **calls)
{
    size_t n = 0;
    for (size_t slot = 0; slot < load->calls; slot++) {
        bool more = load->tasks == 0 || f->submitted < load->tasks;
        bool full = f->submitted - *steps / 3 >= load->in_flight;
        if (flight->submissions[slot] != NULL || !more || full)
            continue;
        calls[n++] = flight->submissions[slot] = submission(load->batch);
        flight->since_us[slot] = rv_clock_mono_us();
        f->submitted += load->batch;
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        size_t count;
        if (flight->lanes[lane] != NULL && !over(flight->lanes[lane]))
            continue;
        if (flight->before[lane] != NULL)
            call_free(flight->before[lane]);
        flight->before[lane] = flight->lanes[lane];
        calls[n++] = flight->lanes[lane] = replies(flight->before[lane], load->poll_max, &count);
        *steps += count;
    }
    return n;
}

static void submissions_take(struct flight *flight, struct figures *f)
{
    for (size_t slot = 0; slot < LANES; slot++) {
        if (!over(flight->submissions[slot]))
            continue;
        if (f->timed < TIMED_MAX)
            lasted_us[f->timed++] = rv_clock_mono_us() - flight->since_us[slot];
        call_free(flight->submissions[slot]);
        flight->submissions[slot] = NULL;
    }
}

static void flight_end(struct flight *flight, struct figures *f)
{
    for (bool open = true; open;) {
        open = false;
        run(NULL, 0);
        submissions_take(flight, f);
        for (size_t lane = 0; lane < LANES; lane++)
            open = open || flight->submissions[lane] != NULL || !over(flight->lanes[lane]);
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        call_free(flight->lanes[lane]);
        if (flight->before[lane] != NULL)
            call_free(flight->before[lane]);
    }
}

static struct figures pass(const struct load *load)
{
    struct figures f = {0};
    struct flight flight = {0};
    int64_t from = rv_clock_mono_us();
    for (size_t steps = 0; load->us_max > 0 ? f.took_us < load->us_max : steps < 3 * load->tasks;) {
        struct rv_call *calls[2 * LANES];
        size_t n = calls_next(&flight, load, &f, &steps, calls);
        run(calls, n);
        f.took_us = rv_clock_mono_us() - from;
        f.batches++;
        submissions_take(&flight, &f);
    }
    flight_end(&flight, &f);
    return f;
}

static size_t tasks_left(struct rv_store *store)
{
    struct rv_arena arena;
    struct rv_task_filter filter = {.before = {0}};
    size_t left = 0;
    rv_arena_init(&arena, 0);
    for (bool more = true; more;) {
        struct rv_task rows[RV_PAGE_ROWS_MAX];
        struct rv_task_id next;
        size_t got;
        rv_arena_reset(&arena);
        if (store->ops->list_tasks(store, &arena, RV_COLUMNS_ALL, &filter, RV_PAGE_ROWS_MAX, rows,
                                   &got, &next) != RV_OK)
            abort();
        left += got;
        filter.before = got > 0 ? rows[got - 1].id : next;
        more = got == RV_PAGE_ROWS_MAX || next.value != 0;
    }
    rv_arena_done(&arena);
    return left;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int by_ratio(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void end(struct rv_store *store)
{
    rv_scheduler_close(scheduler);
    store->ops->close(store);
    files_remove();
}

static struct rv_scheduler *serve(struct rv_store *store, int64_t retain_ms)
{
    struct rv_scheduler *s;
    struct rv_scheduler_options options = {.store = store,
                                           .boot = RV_STR("bench"),
                                           .pid = 1,
                                           .seed = 9,
                                           .mono = {.now = mono_now, .now_us = mono_now_us},
                                           .retain_ms = retain_ms};
    if (rv_scheduler_open(&options, &s) != RV_OK)
        exit(1);
    return s;
}

/* Each of so many tasks has its first step sent back: its target, a new one, is down. */
static void targets_fail(size_t count)
{
    struct rv_call *before = NULL;
    for (size_t done = 0; done < count;) {
        size_t got;
        struct rv_call *calls[] = {submission(RV_POLL_REQUESTS_MAX),
                                   replies(before, RV_POLL_REQUESTS_MAX, &got)};
        for (size_t i = 0; i < got; i++)
            calls[1]->u.replies.items[i].reply = (struct rv_reply){
                .error = RV_STR("{\"type\":\"circuit-open\"}"),
                .transient = true,
                .circuit_open = true,
                .target = rv_arena_printf(&calls[1]->arena, "host%zu:80", done + i),
                .retry_after_ms = 3600000};
        run(calls, 2);
        while (!over(calls[0]) || !over(calls[1]))
            run(NULL, 0);
        done += got;
        call_free(calls[0]);
        if (before != NULL)
            call_free(before);
        before = calls[1];
    }
    if (before != NULL)
        call_free(before);
}

static void beside_targets(size_t targets)
{
    const struct load load = {
        .tasks = BESIDE, .batch = 16, .calls = 4, .in_flight = 2000, .poll_max = 16};
    struct rv_store *store = store_open(true);
    scheduler = serve(store, 0);
    run(NULL, 0);
    publish();
    targets_fail(targets);
    struct figures f = pass(&load);
    printf("scheduler.targets_%zu.rate %.0f tasks/s\n", targets,
           (double)load.tasks / ((double)f.took_us / 1e6));
    end(store);
}

/* Intake as fast as possible beside a backlog of tasks that have ended. How many the rule has
 * deleted is counted by what is there at the end. Gives the p99 of submissions. */
static double intake(int64_t retain_ms)
{
    const struct load backlog = {
        .tasks = BACKLOG, .batch = 250, .calls = 4, .in_flight = 2000, .poll_max = 256};
    const struct load load = {
        .us_max = INTAKE_US, .batch = 16, .calls = 1, .in_flight = 200, .poll_max = 16};
    struct rv_store *store = store_open(true);
    scheduler = serve(store, 0);
    run(NULL, 0);
    publish();
    pass(&backlog);
    rv_scheduler_close(scheduler);
    store->ops->close(store);
    store = store_open(false);
    scheduler = serve(store, retain_ms);
    struct figures f = pass(&load);
    double seconds = (double)f.took_us / 1e6;
    size_t left = tasks_left(store);
    const char *name = retain_ms != 0 ? "retention" : "no_retention";
    qsort(lasted_us, f.timed, sizeof lasted_us[0], by_time);
    double p99 = (double)lasted_us[f.timed * 99 / 100] / 1e3;
    printf("scheduler.%s.intake %.0f tasks/s\n", name, (double)f.submitted / seconds);
    printf("scheduler.%s.deleted %.0f tasks/s\n", name,
           (double)(BACKLOG + f.submitted - left) / seconds);
    printf("scheduler.%s.submit_p50 %.2f ms\n", name, (double)lasted_us[f.timed / 2] / 1e3);
    printf("scheduler.%s.submit_p99 %.2f ms\n", name, p99);
    end(store);
    return p99;
}

/* One poll in a batch of its own, that takes as much as it can, beside so many tasks whose first
 * step waits for an agent. */
static void beside_waiting(void)
{
    struct rv_store *store = store_open(true);
    int64_t took_us[POLLS], used_us[POLLS];
    scheduler = serve(store, 0);
    run(NULL, 0);
    publish();
    for (size_t i = 0; i < WAITING / RV_POLL_REQUESTS_MAX; i++) {
        struct rv_call *call = submission(RV_POLL_REQUESTS_MAX);
        for (run(&call, 1); !over(call);)
            run(NULL, 0);
        call_free(call);
    }
    struct rv_call *before = NULL;
    for (size_t i = 0; i < POLLS; i++) {
        size_t none;
        struct rv_call *call = replies(NULL, 1000, &none);
        if (before != NULL) {
            call->u.replies.next.confirm = RV_NEW(&call->arena, struct rv_str);
            *call->u.replies.next.confirm = rv_arena_str(&call->arena, before->u.replies.next.poll);
            call->u.replies.next.confirm_count = 1;
            call_free(before);
        }
        int64_t from = rv_clock_mono_us(), used = cpu_us();
        for (run(&call, 1); !over(call);)
            run(NULL, 0);
        took_us[i] = rv_clock_mono_us() - from;
        used_us[i] = cpu_us() - used;
        if (call->u.replies.next.requests_count != RV_POLL_REQUESTS_MAX)
            abort();
        before = call;
    }
    call_free(before);
    qsort(took_us, POLLS, sizeof took_us[0], by_time);
    qsort(used_us, POLLS, sizeof used_us[0], by_time);
    printf("scheduler.waiting_%d.poll %.2f ms\n", WAITING, (double)took_us[POLLS / 2] / 1e3);
    printf("scheduler.waiting_%d.poll_cpu %.2f ms\n", WAITING, (double)used_us[POLLS / 2] / 1e3);
    end(store);
}

int main(void)
{
    const struct load load = {
        .tasks = 100000, .batch = 250, .calls = 4, .in_flight = 2000, .poll_max = 256};
    folder_enter();
    beside_waiting();
    struct rv_store *store = store_open(true);
    scheduler = serve(store, 0);
    run(NULL, 0);
    publish();
    struct figures f = pass(&load);
    double took = (double)f.took_us / 1e6;
    printf("scheduler.rate %.0f tasks/s\n", (double)load.tasks / took);
    printf("scheduler.batch %.2f ms\n", took * 1e3 / (double)f.batches);
    end(store);
    beside_targets(0);
    beside_targets(TARGETS);
    double ratio[PAIRS];
    for (size_t i = 0; i < PAIRS; i++) {
        double without = intake(0);
        ratio[i] = intake(RETAIN_MS) / without;
    }
    qsort(ratio, PAIRS, sizeof ratio[0], by_ratio);
    printf("scheduler.retention.p99_ratio %.2f\n", ratio[PAIRS / 2]);
    return 0;
}
