/* The cycle alone: three-step tasks through the scheduler on SQLite, in one process, without HTTP.
 * */
#include "base/os/clock.h"
#include "json/json.h"
#include "scheduler/scheduler.h"
#include "store/sqlite/sqlite.h"
#include "workflow/definition.h"
#include "yaml/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TASKS = 100000, BATCH = 250, IN_FLIGHT = 2000, POLL_MAX = 256 };

static const char text[] =
    "document: {dsl: '1.0.3', namespace: bench, name: three, version: '1.0.0'}\n"
    "do:\n"
    "  - reserveStock: {call: bench, with: {orderId: '${ $workflow.input.orderId }'},"
    " metadata: {reeve: {compensate: none}}}\n"
    "  - chargePayment: {call: bench, with: {orderId: '${ $workflow.input.orderId }'},"
    " metadata: {reeve: {compensate: none}}}\n"
    "  - shipOrder: {call: bench, with: {orderId: '${ $workflow.input.orderId }'},"
    " metadata: {reeve: {compensate: none}}}\n";

static struct rv_scheduler *scheduler;
static uint64_t serial;

static int64_t wall(void *self)
{
    (void)self;
    return rv_clock_wall_ms();
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
    if (rv_yaml_parse(&call->arena, rv_str_of(text), sizeof text, &document, &where) != RV_OK)
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

static struct rv_call *submission(void)
{
    struct rv_call *call = call_new(RV_CALL_SUBMIT);
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, BATCH);
    for (int i = 0; i < BATCH; i++)
        items[i] = (struct rv_submission){
            .space = RV_STR("bench"),
            .name = RV_STR("three"),
            .input = RV_STR("{\"orderId\":17,\"sku\":\"A-1\",\"quantity\":2}"),
            .priority = 5};
    call->u.submit.items = items;
    call->u.submit.count = BATCH;
    return call;
}

/* Replies to what the call before has brought, and asks for the next. */
static struct rv_call *replies(const struct rv_call *before, size_t *ret_count)
{
    struct rv_call *call = call_new(RV_CALL_REPLIES);
    struct rv_call_replies *r = &call->u.replies;
    r->count = before ? before->u.replies.next.requests_count : 0;
    r->items = RV_NEW_ARRAY(&call->arena, struct rv_reply_item, r->count + 1);
    for (size_t i = 0; i < r->count; i++) {
        const struct rv_request *request = &before->u.replies.next.requests[i];
        r->items[i] = (struct rv_reply_item){.step = request->step, .token = request->token};
        r->items[i].reply.output = RV_STR("{\"ok\":true,\"step\":\"06DWX3T9H2K4Q-3\"}");
    }
    r->has_next = true;
    r->next = (struct rv_poll){.agent = RV_STR("bench"),
                               .instance = RV_STR("i"),
                               .boot = RV_STR("b"),
                               .max = POLL_MAX,
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

int main(void)
{
    static const char path[] = "bench-scheduler.db";
    struct rv_store *store;
    struct rv_store_sqlite_fault fault;
    unlink(path);
    struct rv_store_sqlite_options file = {.path = path, .clock = {wall, NULL}};
    if (rv_store_sqlite_open(&file, &store, &fault) != RV_OK) {
        fprintf(stderr, "%s\n", fault.message);
        return 1;
    }
    struct rv_scheduler_options options = {
        .store = store, .boot = RV_STR("bench"), .pid = 1, .seed = 9};
    if (rv_scheduler_open(&options, &scheduler) != RV_OK)
        return 1;
    run(NULL, 0);
    publish();
    size_t submitted = 0, steps = 0, batches = 0;
    struct rv_call *lanes[4] = {NULL};
    int64_t begin = rv_clock_mono_us();
    while (steps < 3 * (size_t)TASKS) {
        struct rv_call *calls[16];
        struct rv_call *done[16];
        size_t n = 0, old = 0;
        while (n < 4 && submitted < TASKS && submitted - steps / 3 < IN_FLIGHT) {
            calls[n++] = submission();
            submitted += BATCH;
        }
        size_t submissions = n;
        for (size_t lane = 0; lane < 4; lane++) {
            size_t count;
            if (lanes[lane] != NULL)
                done[old++] = lanes[lane];
            lanes[lane] = replies(lanes[lane], &count);
            calls[n++] = lanes[lane];
            steps += count;
        }
        run(calls, n);
        batches++;
        for (size_t i = 0; i < submissions; i++)
            call_free(calls[i]);
        for (size_t i = 0; i < old; i++)
            call_free(done[i]);
    }
    double took = (double)(rv_clock_mono_us() - begin) / 1e6;
    printf("scheduler.rate %.0f tasks/s\n", TASKS / took);
    printf("scheduler.batch %.2f ms\n", took * 1e3 / (double)batches);
    for (size_t lane = 0; lane < 4; lane++)
        call_free(lanes[lane]);
    rv_scheduler_close(scheduler);
    store->ops->close(store);
    unlink(path);
    unlink("bench-scheduler.db.lock");
    return 0;
}
