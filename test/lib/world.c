#include "world.h"

#include "base/os/fiber.h"
#include "base/limits.h"
#include "base/time.h"
#include "sim/store/memory/memory.h"
#include "store_faults.h"
#include "workflow.h"
#include "workflow/definition.h"
#include "yaml/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { START_AT = 1000000000, RUN_BATCHES_MAX = 10000, STARTS_MAX = 100, START_AGAIN_MS = 100 };
enum { CREDITS_MAX = 1000, CREDIT_MS_MAX = 250 };

int64_t world_now(void *self)
{
    const struct world *w = self;
    return w->now + w->wall_ahead;
}

/* Of the machine: what somebody sets the wall clock to does not move it. */
static int64_t world_steady(void *self)
{
    return ((struct world *)self)->now;
}

static int64_t world_mono(void *self)
{
    return ((struct world *)self)->mono;
}

static void time_goes(struct world *w, int64_t ms)
{
    w->now += ms;
    w->mono += ms;
}

static void log_write(void *self, enum rv_log_level level, const char *event,
                      const struct rv_log_field *fields, size_t count)
{
    struct world *w = self;
    (void)level;
    (void)fields, (void)count;
    if (strcmp(event, "alert") == 0)
        w->alerts++;
    if (strcmp(event, "history-lost") == 0)
        w->histories_lost++;
    if (strcmp(event, "command") == 0)
        w->commands_logged++;
    if (strcmp(event, "bulk-end") == 0)
        w->bulks_ended++;
}

static void product(struct world *w, bool inside)
{
    if (w->ground.product != NULL)
        w->ground.product(w, inside);
}

static enum rv_err store_open(struct world *w)
{
    struct rv_store *store;
    enum rv_err err = w->ground.open != NULL ? w->ground.open(w, &store)
                                             : rv_store_memory_open(w->data, w->clock, &store);
    if (err == RV_OK)
        w->store = w->ground.faults ? store_faults_wrap(w->ground.faults, store) : store;
    return err;
}

static enum rv_err files_look(void *self, const char **ret_why)
{
    const struct world *w = self;
    *ret_why = w->files == RV_ERR_DISPLACED ? "the file is gone" : NULL;
    return w->files;
}

static enum rv_err begin_once(struct world *w)
{
    char boot[32];
    snprintf(boot, sizeof boot, "server-%d", w->restarts);
    struct rv_scheduler_options options = {
        .boot = rv_str_of(boot),
        .pid = 1,
        .seed = 42 + (uint64_t)w->restarts,
        .hash_key = {1, 2},
        .mono = {.now = world_mono, .self = w},
        .log = {log_write, w},
        .files = {.look = files_look, .self = w},
        .fibers = &rv_fibers,
        .turn_fuel = w->turn_fuel,
        .polls_parked_max = w->polls_parked_max,
        .batch_bytes_max = w->batch_bytes_max,
        .decision_bytes_max = w->decision_bytes_max,
        .outlet = w->ground.outlet,
        .alert_url = w->ground.alert_url,
        .retain_ms = w->ground.retain_ms,
    };
    product(w, true);
    enum rv_err err = store_open(w);
    if (err == RV_OK) {
        options.store = w->store;
        err = rv_scheduler_open(&options, &w->scheduler);
        if (err != RV_OK)
            w->store->ops->close(w->store);
    }
    product(w, false);
    return err;
}

static void world_begin(struct world *w)
{
    enum rv_err err = begin_once(w);
    for (int i = 0; err != RV_OK && w->ground.faults != NULL && i < STARTS_MAX; i++) {
        time_goes(w, START_AGAIN_MS);
        err = begin_once(w);
    }
    assert_int_equal(err, RV_OK);
}

static void world_start(struct world *w)
{
    world_begin(w);
    world_settle(w);
}

void world_open(struct world *w)
{
    world_open_faulty(w, NULL);
}

void world_open_faulty(struct world *w, struct store_faults *faults)
{
    world_open_on(w, (struct world_ground){.faults = faults});
}

void world_open_on(struct world *w, struct world_ground ground)
{
    *w = (struct world){.now = ground.now, .mono = 5000, .ground = ground};
    if (w->now == 0)
        w->now = START_AT;
    w->clock = (struct rv_wall_clock){.now = world_now, .self = w, .mono = world_steady};
    assert_int_equal(rv_store_memory_data_new(&w->data), RV_OK);
    world_start(w);
}

static void world_stop(struct world *w)
{
    product(w, true);
    rv_scheduler_close(w->scheduler);
    w->store->ops->close(w->store);
    product(w, false);
}

static void calls_free(struct world *w)
{
    for (size_t i = 0; i < w->out_count; i++) {
        assert_true(world_finished(w->out[i]));
        rv_arena_done(&w->out[i]->arena);
        free(w->out[i]);
    }
    w->out_count = 0;
}

void world_close(struct world *w)
{
    world_stop(w);
    calls_free(w);
    rv_store_memory_data_free(w->data);
}

int world_setup(void **state, struct store_faults *faults, const char *const *files)
{
    static struct world w;
    world_open_faulty(&w, faults);
    for (; *files != NULL; files++)
        world_publish(&w, workflow_file(*files));
    *state = &w;
    return 0;
}

int world_setup_order(void **state)
{
    return world_setup(state, NULL, WORLD_FILES("order"));
}

int world_teardown(void **state)
{
    world_close(*state);
    return 0;
}

void world_restart(struct world *w, int64_t down_ms)
{
    world_stop(w);
    time_goes(w, down_ms);
    w->restarts++;
    world_start(w);
}

void world_restart_unlooked(struct world *w, int64_t down_ms)
{
    world_stop(w);
    time_goes(w, down_ms);
    w->restarts++;
    world_begin(w);
}

void world_restart_stumbling(struct world *w, int64_t down_ms)
{
    world_restart_unlooked(w, down_ms);
    world_restart(w, 10);
}

/* The process ended and nobody was answered: their connections are gone. */
static void calls_lost(struct world *w)
{
    for (size_t i = 0; i < w->out_count; i++) {
        if (world_finished(w->out[i]))
            continue;
        w->out[i]->err = RV_ERR_COMMIT_UNKNOWN;
        w->out[i]->owner = NULL;
    }
}

static void world_batch(struct world *w, struct rv_call **calls, size_t count)
{
    if (w->broke) {
        calls_lost(w);
        return;
    }
    product(w, true);
    int64_t heard = w->heard_until != 0 ? w->heard_until : w->mono;
    enum rv_err err = rv_scheduler_run_batch(w->scheduler, calls, count, heard);
    product(w, false);
    assert_true(err == RV_OK || w->ground.faults != NULL || w->ground.may_break);
    w->batches_failed += err != RV_OK;
    if (err != RV_ERR_COMMIT_UNKNOWN && err != RV_ERR_CORRUPT)
        return;
    if (w->ground.may_break) {
        w->broke = true;
        calls_lost(w);
    } else {
        world_stop(w);
        calls_lost(w);
        time_goes(w, START_AGAIN_MS);
        w->restarts++;
        world_start(w);
    }
}

void world_settle(struct world *w)
{
    int batches = 0;
    do {
        world_batch(w, NULL, 0);
        assert_true(++batches < RUN_BATCHES_MAX);
    } while (!w->broke && rv_scheduler_next_wake(w->scheduler, w->mono) == 0);
}

void world_absent(struct world *w, int64_t ms)
{
    time_goes(w, ms);
    world_settle(w);
}

void world_pass(struct world *w, int64_t ms)
{
    int64_t end = w->mono + ms;
    while (w->mono < end && !w->broke) {
        int64_t wait = rv_scheduler_next_wake(w->scheduler, w->mono);
        if (wait > end - w->mono)
            wait = end - w->mono;
        time_goes(w, wait);
        world_settle(w);
    }
}

static void call_finish(struct rv_call *call)
{
    call->owner = NULL;
}

bool world_finished(const struct rv_call *call)
{
    return call->owner == NULL;
}

/* The finished ones among the older half. */
static void calls_free_old(struct world *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->out_count; i++) {
        if (i < w->out_count / 2 && world_finished(w->out[i])) {
            rv_arena_done(&w->out[i]->arena);
            free(w->out[i]);
        } else {
            w->out[kept++] = w->out[i];
        }
    }
    w->out_count = kept;
}

struct rv_call *world_call(struct world *w, enum rv_call_kind kind)
{
    struct rv_call *call = calloc(1, sizeof *call);
    assert_non_null(call);
    if (w->out_count == sizeof w->out / sizeof w->out[0])
        calls_free_old(w);
    assert_true(w->out_count < sizeof w->out / sizeof w->out[0]);
    w->out[w->out_count++] = call;
    call->kind = kind;
    call->serial = ++w->serial;
    call->seed = w->serial * UINT64_C(0x9e3779b97f4a7c15);
    call->mono_at = w->mono;
    call->finish = call_finish;
    call->owner = w;
    rv_arena_init(&call->arena, 0);
    return call;
}

bool world_run(struct world *w, struct rv_call *call)
{
    world_batch(w, &call, 1);
    world_settle(w);
    /* An evaluation waits until there is credit for it. */
    bool decided = call->kind == RV_CALL_SUBMIT || call->kind == RV_CALL_REPLIES ||
                   call->kind == RV_CALL_OPERATE;
    for (int i = 0; decided && i < CREDITS_MAX && !w->broke && !world_finished(call); i++) {
        int64_t wait = rv_scheduler_next_wake(w->scheduler, w->mono);
        if (wait > CREDIT_MS_MAX)
            break;
        world_pass(w, wait);
    }
    return world_finished(call);
}

struct rv_call *world_limit_call(struct world *w, struct rv_call_limit limit)
{
    struct rv_call *call = world_call(w, RV_CALL_LIMIT);
    call->u.limit = limit;
    call->u.limit.row.agent = RV_STR("inventory");
    call->u.limit.row.by = RV_STR("me");
    return call;
}

void world_limit(struct world *w, struct rv_call_limit limit)
{
    struct rv_call *call = world_limit_call(w, limit);
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
}

void world_publish(struct world *w, const char *yaml)
{
    struct rv_call *call = world_call(w, RV_CALL_PUBLISH);
    struct rv_json document;
    struct rv_yaml_fault where;
    struct rv_definition_fault fault = {.message = RV_STR_NONE};
    const struct rv_definition *definition;
    enum rv_err err = rv_yaml_parse(&call->arena, rv_str_of(yaml), RV_DEFINITION_BYTES_MAX,
                                    &document, &where);
    if (err != RV_OK)
        fail_msg("%u:%u: %.*s", where.line, where.column, RV_STR_FMT(where.message));
    err = rv_definition_load(&call->arena, &document, &definition, &fault);
    if (err != RV_OK)
        fail_msg("%.*s: %.*s", RV_STR_FMT(fault.pointer), RV_STR_FMT(fault.message));
    struct rv_buf text;
    rv_buf_init(&text, RV_DEFINITION_BYTES_MAX);
    rv_json_write_canonical(&text, &document);
    call->u.publish.row.space = rv_definition_namespace(definition);
    call->u.publish.row.name = rv_definition_name(definition);
    call->u.publish.row.version = rv_definition_version(definition);
    call->u.publish.row.source = rv_arena_str(&call->arena, rv_buf_str(&text));
    call->u.publish.row.hash = RV_STR("0000");
    rv_buf_done(&text);
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
}

struct rv_task_id world_submit(struct world *w, const char *workflow, const char *input)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
    *item = (struct rv_submission){.space = RV_STR("shop"),
                                   .name = rv_str_of(workflow),
                                   .input = rv_str_of(input),
                                   .priority = 5};
    call->u.submit.items = item;
    call->u.submit.count = 1;
    assert_true(world_run(w, call));
    if (item->err != RV_OK)
        fail_msg("submission: %.*s", RV_STR_FMT(item->message));
    return item->task;
}

struct rv_call *world_poll(struct world *w, const char *agent, const char *instance, uint32_t max)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    char poll[32];
    snprintf(poll, sizeof poll, "poll-%llu", (unsigned long long)call->serial);
    call->u.poll = (struct rv_poll){.agent = rv_str_of(agent),
                                    .instance = rv_str_of(instance),
                                    .boot = RV_STR("boot-1"),
                                    .poll = rv_arena_str(&call->arena, rv_str_of(poll)),
                                    .max = max};
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    return call;
}

struct rv_call *world_undelivered_call(struct world *w, const struct rv_call *poll)
{
    struct rv_call *call = world_call(w, RV_CALL_UNSENT);
    struct rv_call_unsent *u = &call->u.unsent;
    u->attempts = RV_NEW_ARRAY(&call->arena, struct rv_handed_out, poll->u.poll.requests_count);
    for (size_t i = 0; i < poll->u.poll.requests_count; i++)
        u->attempts[u->count++] = (struct rv_handed_out){poll->u.poll.requests[i].step,
                                                         poll->u.poll.requests[i].token};
    return call;
}

void world_undelivered(struct world *w, const struct rv_call *poll)
{
    assert_true(world_run(w, world_undelivered_call(w, poll)));
}

struct rv_assignment world_take(struct world *w, const char *agent, const char *instance)
{
    struct rv_call *call = world_poll(w, agent, instance, 1);
    assert_int_equal(call->u.poll.requests_count, 1);
    return call->u.poll.requests[0];
}

int world_reply(struct world *w, struct rv_assignment request, struct rv_reply reply)
{
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item *item = RV_NEW(&call->arena, struct rv_reply_item);
    *item = (struct rv_reply_item){.step = request.step, .token = request.token, .reply = reply};
    call->u.replies.items = item;
    call->u.replies.count = 1;
    assert_true(world_run(w, call));
    return item->status;
}

int world_done(struct world *w, struct rv_assignment request, const char *output)
{
    return world_reply(w, request, (struct rv_reply){.output = rv_str_of(output)});
}

int world_fail(struct world *w, struct rv_assignment request, bool transient, enum rv_effect effect)
{
    return world_reply(w, request,
                       (struct rv_reply){.error = RV_STR("{\"type\":\"broken\",\"status\":500}"),
                                         .transient = transient,
                                         .effect = effect});
}

int world_say(struct world *w, struct rv_assignment request, const char *output, const char *error)
{
    return world_reply(w, request,
                       (struct rv_reply){.output = rv_str_of(output),
                                         .error = rv_str_of(error),
                                         .effect = RV_EFFECT_UNKNOWN});
}

const struct rv_task *world_task(struct world *w, struct rv_task_id task)
{
    struct rv_call *call = world_call(w, RV_CALL_SHOW);
    call->u.show.task = task;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    return call->u.show.found;
}

static struct rv_call *world_list(struct world *w, enum rv_call_kind kind, struct rv_task_id task)
{
    struct rv_call *call = world_call(w, kind);
    call->u.list.task = task;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    return call;
}

const struct rv_step *world_step(struct world *w, struct rv_task_id task, uint32_t number)
{
    struct rv_call *call = world_list(w, RV_CALL_STEPS, task);
    for (size_t i = 0; i < call->u.list.count; i++)
        if (call->u.list.steps[i].number == number)
            return &call->u.list.steps[i];
    return NULL;
}

size_t world_count_alerts(struct world *w, struct rv_task_id task, enum rv_alert_kind kind)
{
    struct rv_call *call = world_list(w, RV_CALL_ALERTS, task);
    size_t count = 0;
    for (size_t i = 0; i < call->u.list.count; i++)
        count += call->u.list.alerts[i].kind == kind;
    return count;
}

size_t world_count_open_alerts(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_ALERTS);
    call->u.list.open_only = true;
    assert_true(world_run(w, call));
    return call->u.list.count;
}

size_t world_count_late(struct world *w, struct rv_task_id task)
{
    return world_list(w, RV_CALL_LATE, task)->u.list.count;
}

enum rv_err world_operate(struct world *w, enum rv_command_kind verb, struct rv_task_id task)
{
    struct rv_call *ledger = world_call(w, RV_CALL_LATE);
    ledger->u.list.task = task;
    assert_true(world_run(w, ledger));
    size_t late = ledger->err == RV_OK ? ledger->u.list.count : 0;
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate.verb = verb;
    call->u.operate.task = task;
    call->u.operate.by = RV_STR("operator");
    call->u.operate.late_seen = (uint32_t)late;
    assert_true(world_run(w, call));
    return call->err;
}

struct rv_call *world_give(struct world *w, struct rv_task_id task, struct rv_command command)
{
    size_t late = world_count_late(w, task);
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate.verb = command.kind;
    call->u.operate.task = task;
    call->u.operate.by = RV_STR("ann");
    call->u.operate.reason = RV_STR("test");
    call->u.operate.late_seen = (uint32_t)late;
    call->u.operate.step = command.step;
    call->u.operate.finding = command.u.operate.finding;
    call->u.operate.output = command.u.operate.output;
    call->u.operate.input = command.u.operate.input;
    call->u.operate.assume_not_done = command.u.operate.assume_not_done;
    call->u.operate.undo_first = command.u.operate.undo_first;
    call->u.operate.by_hand = command.u.operate.by_hand;
    call->u.operate.abandon = command.u.operate.abandon;
    assert_true(world_run(w, call));
    return call;
}

struct rv_call *world_settle_step(struct world *w, struct rv_task_id task, uint32_t step,
                                  enum rv_finding finding, const char *output)
{
    struct rv_command command = {.kind = RV_COMMAND_SETTLE, .step = step};
    command.u.operate.finding = finding;
    command.u.operate.output = rv_str_of(output);
    return world_give(w, task, command);
}

enum rv_err world_settle_seen(struct world *w, struct rv_task_id task, uint32_t step,
                              enum rv_finding finding, const char *output, uint32_t late_seen)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate = (struct rv_call_operate){.verb = RV_COMMAND_SETTLE,
                                               .task = task,
                                               .by = RV_STR("ann"),
                                               .step = step,
                                               .finding = finding,
                                               .output = rv_str_of(output),
                                               .late_seen = late_seen};
    assert_true(world_run(w, call));
    return call->err;
}

void world_assert_cures(struct world *w, struct rv_task_id task, const char *expected)
{
    struct rv_call *call = world_call(w, RV_CALL_EXPLAIN);
    char named[256] = "";
    size_t len = 0;
    call->u.explain.task = task;
    assert_true(world_run(w, call));
    for (size_t i = 0; i < call->u.explain.cures_count; i++) {
        const struct rv_cure *cure = &call->u.explain.cures[i];
        int written = snprintf(named + len, sizeof named - len,
                               cure->step != 0 ? "%s%s:%u" : "%s%s", i > 0 ? " " : "",
                               rv_cure_text(cure->kind), cure->step);
        len += (size_t)written;
    }
    assert_string_equal(named, expected);
}

void world_edit(struct world *w, struct rv_task_id task, void (*edit)(struct rv_task *, int64_t),
                int64_t value)
{
    struct rv_arena arena;
    int64_t now;
    const struct rv_task *row;
    rv_arena_init(&arena, 0);
    assert_int_equal(w->store->ops->begin(w->store, NULL, &now), RV_OK);
    assert_int_equal(w->store->ops->load_tasks(w->store, &arena, RV_COLUMNS_ALL, &task, 1, &row),
                     RV_OK);
    struct rv_task after = *row;
    edit(&after, value);
    after.revision++;
    struct rv_change change = {
        .task = &after, .revision_before = row->revision, .task_before = row};
    struct rv_batch batch = {.changes = &change, .changes_count = 1, .number = 1000000};
    assert_int_equal(w->store->ops->commit(w->store, &batch), RV_OK);
    assert_int_equal(change.outcome, RV_OK);
    rv_arena_done(&arena);
}

static void pin_edit(struct rv_task *row, int64_t workflow)
{
    row->workflow = workflow;
}

void world_pin(struct world *w, struct rv_task_id task, int64_t workflow)
{
    world_edit(w, task, pin_edit, workflow);
}

const struct rv_call_explain *world_explained(struct world *w, struct rv_task_id task)
{
    struct rv_call *call = world_call(w, RV_CALL_EXPLAIN);
    call->u.explain.task = task;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    return &call->u.explain;
}

void world_complete(struct world *w, const char *agent)
{
    assert_int_equal(world_done(w, world_take(w, agent, "i1"), "{}"), 200);
}

void world_expect_one(struct world *w, const char *input)
{
    struct rv_assignment request = world_take(w, "one", "i1");
    assert_string_equal(request.input.at, input);
    assert_int_equal(world_done(w, request, "{}"), 200);
}
