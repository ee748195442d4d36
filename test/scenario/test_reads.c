/* Answers with large rows: what is loaded for them is bounded, whoever asks and however long, and
 * small reads do not wait for them. */
#include "../lib/store_faults.h"
#include "../lib/world.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LARGE = 300 * 1024, WAIT_MS = 20000, SMALL = 16 * 1024 };

static const char *const one_step = DOCUMENT("one") "do:\n  - a: {call: one}\n";

/* The maker of answers, and what it holds of loaded rows. */
static bool room;
static size_t took;

static bool maker_room(void *self)
{
    (void)self;
    return room;
}

static void maker_took(void *self, size_t bytes)
{
    (void)self;
    took += bytes;
}

static const struct rv_call_loads maker = {maker_room, maker_took, NULL};

static struct store_faults faults;

static int open_world(void **state)
{
    static struct world w;
    room = true;
    took = 0;
    faults = (struct store_faults){.fail_with = RV_ERR_FULL};
    world_open_faulty(&w, &faults);
    world_publish(&w, one_step);
    *state = &w;
    return 0;
}

/* {"text":"aaa..."} */
static struct rv_str large_json(struct world *w)
{
    static char text[LARGE];
    (void)w;
    memset(text, 'a', sizeof text);
    memcpy(text, "{\"text\":\"", 9);
    memcpy(text + sizeof text - 2, "\"}", 2);
    return (struct rv_str){text, sizeof text};
}

static struct rv_call *show(struct world *w, struct rv_task_id task, int64_t wait_ms)
{
    struct rv_call *call = world_call(w, RV_CALL_SHOW);
    call->loads = &maker;
    call->u.show.task = task;
    call->u.show.wait_ms = wait_ms;
    call->u.show.after_revision = INT64_MAX;
    return call;
}

/* Its input is not on the call's own arena, so that this has nothing but what the answer takes. */
static struct rv_call *submission(struct world *w, struct rv_str input)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
    *item = (struct rv_submission){
        .space = RV_STR("shop"), .name = RV_STR("one"), .input = input, .priority = 5};
    call->loads = &maker;
    call->u.submit.items = item;
    call->u.submit.count = 1;
    call->u.submit.wait_ms = WAIT_MS;
    return call;
}

static struct rv_task_id large_task(struct world *w)
{
    struct rv_call *call = submission(w, large_json(w));
    call->u.submit.wait_ms = 0;
    assert_true(world_run(w, call));
    assert_int_equal(call->u.submit.items[0].err, RV_OK);
    return call->u.submit.items[0].task;
}

static void assert_whole(const struct rv_task *task, enum rv_task_state state)
{
    assert_non_null(task);
    assert_int_equal(task->state, state);
    assert_int_equal(task->input.len, LARGE);
}

static void a_large_read_waits_for_room_and_small_ones_do_not(void **state)
{
    struct world *w = *state;
    struct rv_task_id large = large_task(w), small = world_submit(w, "one", "{}");
    room = false;
    struct rv_call *waits = show(w, large, 0), *goes = show(w, small, 0);
    assert_false(world_run(w, waits));
    assert_true(world_run(w, goes));
    assert_non_null(goes->u.show.found);
    assert_in_range(waits->arena.bytes_taken, 0, SMALL);
    room = true;
    world_settle(w);
    assert_true(world_finished(waits));
    assert_whole(waits->u.show.found, RV_TASK_PENDING);
    assert_in_range(took, LARGE, 2 * LARGE);
}

static void a_full_disk_leaves_large_reads_in_line(void **state)
{
    struct world *w = *state;
    struct rv_task_id large = large_task(w);
    room = false;
    struct rv_call *waits = show(w, large, 0), *fails = submission(w, RV_STR("{}"));
    assert_false(world_run(w, waits));
    faults.fail_commits = 1;
    assert_true(world_run(w, fails));
    assert_int_equal(fails->err, RV_ERR_FULL);
    assert_false(world_finished(waits));
    room = true;
    world_settle(w);
    assert_true(world_finished(waits));
    assert_whole(waits->u.show.found, RV_TASK_PENDING);
}

/* What each kind of query asks for; false: it is none. */
static bool query_ask(struct rv_call *call, struct rv_task_id task)
{
    switch (call->kind) {
    case RV_CALL_STEPS:
    case RV_CALL_ATTEMPTS:
    case RV_CALL_LATE:
    case RV_CALL_HISTORY:
        call->u.list.task = task;
        call->u.list.limit = 10;
        return true;
    case RV_CALL_TASKS:
    case RV_CALL_ALERTS:
    case RV_CALL_WORKFLOWS:
        call->u.list.limit = 10;
        return true;
    case RV_CALL_SHOW:
        call->u.show.task = task;
        return true;
    case RV_CALL_EXPLAIN:
        call->u.explain.task = task;
        return true;
    case RV_CALL_MESSAGES:
        call->u.messages.task = task;
        return true;
    case RV_CALL_OUTCOMES:
        call->u.outcomes.selection = task;
        return true;
    case RV_CALL_AGENTS:
    case RV_CALL_METRICS:
    case RV_CALL_STATUS:
    case RV_CALL_KEYS:
    case RV_CALL_SELECTIONS:
    case RV_CALL_BACKUP:
        return true;
    case RV_CALL_PUBLISH:
    case RV_CALL_SUBMIT:
    case RV_CALL_POLL:
    case RV_CALL_REPLIES:
    case RV_CALL_LEASES:
    case RV_CALL_OPERATE:
    case RV_CALL_ACK:
    case RV_CALL_RAISE:
    case RV_CALL_LIMIT:
    case RV_CALL_KEY_ADD:
    case RV_CALL_KEY_REVOKE:
    case RV_CALL_RETRY:
    case RV_CALL_DELIVERED:
    case RV_CALL_SELECT:
    case RV_CALL_BULK:
    case RV_CALL_GONE:
    case RV_CALL_HINT:
    case RV_CALL_UNSENT:
        return false;
    }
    return false;
}

static enum rv_err query_wanted(enum rv_call_kind kind)
{
    switch ((int)kind) {
    case RV_CALL_MESSAGES: /* the task was submitted without replyTo */
        return RV_ERR_REFUSED;
    case RV_CALL_OUTCOMES:
        return RV_ERR_NOT_FOUND;
    case RV_CALL_BACKUP:
        return RV_ERR_UNSUPPORTED;
    default:
        return RV_OK;
    }
}

static void assert_answered_unwritten(struct world *w, struct rv_task_id task, enum rv_err refusal)
{
#define RV_CALL(name, member, changes, ops) RV_CALL_##name,
    static const enum rv_call_kind kinds[] = {
#include "scheduler/tbl/call.def"
    };
#undef RV_CALL
    enum { KINDS = sizeof kinds / sizeof kinds[0], QUERIES = 17 };
    struct rv_call *calls[1 + KINDS];
    size_t count = 0;
    struct rv_call *fails = calls[count++] = world_call(w, RV_CALL_OPERATE);
    fails->u.operate.verb = RV_COMMAND_SUSPEND;
    fails->u.operate.task = task;
    for (size_t i = 0; i < KINDS; i++) {
        struct rv_call probe = {.kind = kinds[i]};
        if (!query_ask(&probe, task))
            continue;
        calls[count] = world_call(w, kinds[i]);
        (void)query_ask(calls[count++], task);
    }
    assert_int_equal(count, 1 + QUERIES);
    faults.fail_commits = 1;
    faults.fail_with = refusal;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, count, w->mono), refusal);
    assert_int_equal(fails->err, refusal);
    for (size_t i = 1; i < count; i++) {
        if (!world_finished(calls[i]) || calls[i]->err != query_wanted(calls[i]->kind))
            fail_msg("kind %d: %s", (int)calls[i]->kind, rv_err_text(calls[i]->err));
        if (calls[i]->kind == RV_CALL_SHOW) /* as it is, and not as it would have become */
            assert_int_equal(calls[i]->u.show.found->suspended_at, 0);
    }
}

static void queries_are_answered_in_a_batch_that_cannot_be_written(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "one", "{}");
    assert_answered_unwritten(w, task, RV_ERR_FULL);
    assert_answered_unwritten(w, task, RV_ERR_DISPLACED);
}

/* A store whose files are displaced may take no role either: no query fails for that. */
static void queries_are_answered_while_the_role_cannot_be_taken(void **state)
{
    enum { LEASES_MS = 20000, TURN_MS = 100 };
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "one", "{}");
    faults.fail_with = RV_ERR_DISPLACED;
    faults.fail_roles = true;
    faults.fail_commits = UINT32_MAX;
    for (int ms = 0; ms < LEASES_MS; ms += TURN_MS) {
        struct rv_call *call = show(w, task, 0);
        w->now += TURN_MS;
        w->mono += TURN_MS;
        enum rv_err err = rv_scheduler_run_batch(w->scheduler, &call, 1, w->mono);
        assert_true(err == RV_OK || err == RV_ERR_DISPLACED);
        assert_true(world_finished(call));
        assert_int_equal(call->err, RV_OK);
        assert_true(rv_scheduler_next_wake(w->scheduler, w->mono) > 0);
    }
    faults.fail_roles = false;
    faults.fail_commits = 0;
}

/* Before anything is decided: a stop waits for what is parked for its own agent. */
static void a_caller_that_left_is_heard_though_the_store_refuses(void **state)
{
    struct world *w = *state;
    struct rv_call *parked = world_call(w, RV_CALL_POLL);
    struct rv_call *gone = world_call(w, RV_CALL_GONE);
    parked->u.poll = (struct rv_poll){.agent = RV_STR("one"),
                                      .instance = RV_STR("i1"),
                                      .boot = RV_STR("b1"),
                                      .poll = RV_STR("p1"),
                                      .max = 8,
                                      .wait_ms = WAIT_MS};
    assert_false(world_run(w, parked));
    gone->u.gone.serial = parked->serial;
    faults.fail_at = faults.calls + 1;
    assert_true(world_run(w, gone));
    assert_int_equal(faults.failed, 1);
    assert_true(world_finished(parked));
}

/* As long as it waits for its task it holds none of its payloads, and then it waits for room. */
static void assert_waits_with_nothing(struct world *w, struct rv_call *call)
{
    assert_false(world_run(w, call));
    assert_in_range(call->arena.bytes_taken, 0, SMALL);
    room = false;
    struct rv_assignment request = world_take(w, "one", "i1");
    assert_in_range(call->arena.bytes_taken, 0, SMALL);
    assert_int_equal(world_done(w, request, "{}"), 200);
    world_settle(w);
    assert_false(world_finished(call));
    assert_in_range(call->arena.bytes_taken, 0, SMALL);
    room = true;
    world_settle(w);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_OK);
    assert_in_range(took, LARGE, 2 * LARGE);
}

static void a_look_that_waits_holds_no_payloads(void **state)
{
    struct world *w = *state;
    struct rv_call *call = show(w, large_task(w), WAIT_MS);
    assert_waits_with_nothing(w, call);
    assert_whole(call->u.show.found, RV_TASK_PROCESSED);
}

static void a_submission_that_waits_holds_no_payloads(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submission(w, large_json(w));
    assert_waits_with_nothing(w, call);
    assert_int_equal(call->u.submit.items[0].err, RV_OK);
    assert_whole(call->u.submit.task, RV_TASK_PROCESSED);
}

/* A small task that becomes large while the submission waits for it. */
static void a_submission_lets_go_of_what_becomes_large(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submission(w, RV_STR("{}"));
    assert_false(world_run(w, call));
    struct rv_assignment request = world_take(w, "one", "i1");
    room = false;
    struct rv_reply reply = {.output = large_json(w), .effect = RV_EFFECT_DONE};
    assert_int_equal(world_reply(w, request, reply), 200);
    world_settle(w);
    assert_false(world_finished(call));
    assert_in_range(call->arena.bytes_taken, 0, SMALL);
    room = true;
    world_settle(w);
    assert_true(world_finished(call));
    assert_non_null(call->u.submit.task);
    assert_int_equal(call->u.submit.task->output.len, LARGE);
}

static void a_submission_whose_time_is_over_is_told_how_its_task_stands(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submission(w, large_json(w));
    assert_false(world_run(w, call));
    world_pass(w, WAIT_MS + 1000);
    assert_true(world_finished(call));
    assert_whole(call->u.submit.task, RV_TASK_PENDING);
}

/* What waits for room when the server stops: the submission is carried out, and says so. */
static void a_stop_answers_what_waits_for_room(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submission(w, large_json(w));
    assert_false(world_run(w, call));
    room = false;
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    struct rv_call *look = show(w, call->u.submit.items[0].task, 0);
    assert_false(world_run(w, look));
    world_restart(w, 100);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(call->u.submit.items[0].err, RV_OK);
    assert_true(world_finished(look));
    assert_int_equal(look->err, RV_ERR_BUSY);
}

int main(void)
{
#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_large_read_waits_for_room_and_small_ones_do_not),
        SCENARIO(a_full_disk_leaves_large_reads_in_line),
        SCENARIO(queries_are_answered_in_a_batch_that_cannot_be_written),
        SCENARIO(queries_are_answered_while_the_role_cannot_be_taken),
        SCENARIO(a_caller_that_left_is_heard_though_the_store_refuses),
        SCENARIO(a_look_that_waits_holds_no_payloads),
        SCENARIO(a_submission_that_waits_holds_no_payloads),
        SCENARIO(a_submission_lets_go_of_what_becomes_large),
        SCENARIO(a_submission_whose_time_is_over_is_told_how_its_task_stands),
        SCENARIO(a_stop_answers_what_waits_for_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
