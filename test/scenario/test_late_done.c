/* A `done` that comes when its task has ended, and took the step for one that did nothing: its
 * effect is left, and an operator is called (RULES 6). */
#include "../lib/world.h"
#include "order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const alone =
    DOCUMENT("alone") "do:\n"
                      "  - a:\n"
                      "      call: one\n"
                      "      metadata: {reeve: {completeBy: PT10S,"
                      " failures: {threshold: 1, rounds: 0, then: error},\n"
                      "        compensate: [{undoA: {call: one,"
                      " with: {undo: '${ $undo.outcome }'}}}]}}\n";

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    world_publish(&w, alone);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    world_close(*state);
    return 0;
}

static void found_to_be_nothing(struct world *w, struct rv_task_id task)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate = (struct rv_call_operate){
        .verb = RV_COMMAND_SETTLE, .task = task, .step = 1, .finding = RV_FINDING_NOTHING};
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
}

static struct rv_alert open_alert(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_ALERTS);
    call->u.list.open_only = true;
    assert_true(world_run(w, call));
    assert_int_equal(call->u.list.count, 1);
    return call->u.list.alerts[0];
}

/* A finding that was wrong, and nothing of the task is left to tell: an operator is called, once,
 * until he says that he has seen to it. */
static void a_late_done_after_an_undo_calls_an_operator(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "alone", "{}");
    struct rv_request first = world_take(w, "one", "i1");
    world_pass(w, 10000);
    assert_state(w, task, "error");
    found_to_be_nothing(w, task);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "cancelled");
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_int_equal(world_done(w, first, "{\"was\":2}"), 410);
    struct rv_alert alert = open_alert(w);
    assert_int_equal(alert.kind, RV_ALERT_LATE_DONE);
    assert_int_equal(alert.step, 1);
    assert_string_equal(alert.message.at,
                        "the task is cancelled and counts /do/0/a as not done: attempt 1 of step 1 "
                        "was done, its late reply says, with the output {\"was\":1}");
    world_restart(w, 1000);
    struct rv_call *ack = world_call(w, RV_CALL_ACK);
    ack->u.ack = (struct rv_call_ack){.alert = open_alert(w).id, .by = RV_STR("me")};
    assert_true(world_run(w, ack));
    assert_int_equal(ack->err, RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* Said of the step while its undo was under way. */
static void a_late_done_of_what_needed_no_undo_calls_an_operator(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "alone", "{}");
    struct rv_request first = world_take(w, "one", "i1");
    world_pass(w, 10000);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_state(w, task, "compensating");
    found_to_be_nothing(w, task);
    assert_state(w, task, "compensated");
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_int_equal(world_done(w, first, "{\"was\":2}"), 410);
    assert_int_equal(open_alert(w).kind, RV_ALERT_LATE_DONE);
}

/* What was undone is undone, whatever comes of the attempt later. */
static void a_late_done_of_what_was_undone_calls_nobody(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "alone", "{}");
    struct rv_request first = world_take(w, "one", "i1");
    world_pass(w, 10000);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_state(w, task, "compensated");
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* Left on purpose. */
static void a_late_done_of_an_abandoned_task_calls_nobody(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "alone", "{}");
    struct rv_request first = world_take(w, "one", "i1");
    world_pass(w, 10000);
    found_to_be_nothing(w, task);
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate = (struct rv_call_operate){
        .verb = RV_COMMAND_CANCEL, .task = task, .abandon = true, .reason = RV_STR("old")};
    assert_true(world_run(w, call));
    assert_state(w, task, "cancelled");
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_int_equal(world_count_late(w, task), 1);
    assert_int_equal(world_count_open_alerts(w), 0);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_late_done_after_an_undo_calls_an_operator),
        SCENARIO(a_late_done_of_what_needed_no_undo_calls_an_operator),
        SCENARIO(a_late_done_of_what_was_undone_calls_nobody),
        SCENARIO(a_late_done_of_an_abandoned_task_calls_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
