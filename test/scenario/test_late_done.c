/* A `done` that comes when its task has ended, and took the step for one that did nothing: its
 * effect is left, and an operator is called (RULES 6). */
#include "../lib/world.h"
#include "order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const alone =
    DOCUMENT("alone") "do:\n"
                      "  - a:\n"
                      "      call: one\n"
                      "      metadata: {reeve: {completeBy: PT10S,"
                      " failures: {threshold: 1, rounds: 0, then: error},\n"
                      "        compensate: [{undoA: {call: one,"
                      " with: {undo: '${ $undo.outcome }'}}}]}}\n";

/* What nobody can undo, then a pivot. */
static const char *const passing =
    DOCUMENT("passing") "do:\n"
                        "  - a: {call: one}\n"
                        "  - b:\n"
                        "      call: one\n"
                        "      metadata: {reeve: {completeBy: PT10S, pivot: true,"
                        " failures: {threshold: 1, rounds: 0}}}\n";

/* `b` cannot be undone and is the newest; the undo of `a` comes after it. */
static const char *const two =
    DOCUMENT("two") "do:\n"
                    "  - a:\n"
                    "      call: one\n"
                    "      metadata: {reeve: {completeBy: PT10S,"
                    " failures: {threshold: 1, rounds: 0, then: error},\n"
                    "        compensate: [{undoA: {call: one, with: {undo: a}}}]}}\n"
                    "  - b:\n"
                    "      call: one\n"
                    "      metadata: {reeve: {completeBy: PT10S,"
                    " failures: {threshold: 1, rounds: 0, then: error},\n"
                    "        compensate: [{undoB: {call: one,"
                    " with: {undo: '${ $undo.outcome }'}}}]}}\n";

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    world_publish(&w, alone);
    world_publish(&w, passing);
    world_publish(&w, two);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    world_close(*state);
    return 0;
}

static enum rv_err settle(struct world *w, struct rv_task_id task, struct rv_call_operate operate)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    operate.verb = RV_COMMAND_SETTLE;
    operate.task = task;
    call->u.operate = operate;
    assert_true(world_run(w, call));
    return call->err;
}

static enum rv_err finds_nothing(struct world *w, struct rv_task_id task, uint32_t step)
{
    return settle(w, task, (struct rv_call_operate){.step = step, .finding = RV_FINDING_NOTHING});
}

static void found_to_be_nothing(struct world *w, struct rv_task_id task)
{
    assert_int_equal(finds_nothing(w, task, 1), RV_OK);
}

static void resubmit_edited(struct world *w, struct rv_task_id task, bool undo_first)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate = (struct rv_call_operate){.verb = RV_COMMAND_RESUBMIT,
                                               .task = task,
                                               .input = RV_STR("{\"n\":2}"),
                                               .undo_first = undo_first,
                                               .assume_not_done = !undo_first};
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

/* The finding about `b` was wrong, and the undo is at work on `a`: `b` is undone after all. */
static void a_late_done_while_the_undo_goes_on_is_undone(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "two", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    struct rv_request b = world_take(w, "one", "i1");
    world_pass(w, 10000);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(finds_nothing(w, task, 2), RV_OK);
    struct rv_request undo = world_take(w, "one", "i1");
    assert_string_equal(undo.input.at, "{\"undo\":\"a\"}");
    assert_int_equal(world_done(w, b, "{\"was\":1}"), 410);
    assert_false(world_step(w, task, 2)->undone);
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, task, "compensating");
    undo = world_take(w, "one", "i1");
    assert_string_equal(undo.input.at, "{\"undo\":\"completed\"}");
    assert_int_equal(world_done(w, b, "{\"was\":2}"), 410);
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 2)->undone);
    assert_int_equal(world_done(w, b, "{\"was\":3}"), 410);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* Nor is it settled as one that did nothing, once its `done` is known. */
static void what_was_done_late_is_not_settled_as_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "two", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    struct rv_request b = world_take(w, "one", "i1");
    world_pass(w, 10000);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(world_done(w, b, "{\"was\":1}"), 410);
    assert_int_equal(finds_nothing(w, task, 2), RV_ERR_REFUSED);
    world_pass(w, 10000);
    assert_int_equal(finds_nothing(w, task, 2), RV_ERR_REFUSED);
}

/* `b` was done by an operator's word, then by his word it was not. */
static void a_late_done_of_what_a_person_took_back_is_undone(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "two", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    struct rv_request b = world_take(w, "one", "i1");
    world_pass(w, 10000);
    assert_int_equal(settle(w, task, (struct rv_call_operate){.step = 2}), RV_OK);
    assert_state(w, task, "processed");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(finds_nothing(w, task, 2), RV_OK);
    struct rv_request undo = world_take(w, "one", "i1");
    assert_int_equal(world_done(w, b, "{\"was\":1}"), 410);
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_state(w, task, "compensated");
}

/* It was to be undone before another request leaves; the task has been processed since. */
static void a_late_done_of_a_replaced_request_is_undone_with_the_rest(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "alone", "{}");
    struct rv_request first = world_take(w, "one", "i1");
    world_pass(w, 10000);
    resubmit_edited(w, task, true);
    found_to_be_nothing(w, task);
    struct rv_request second = world_take(w, "one", "i1");
    assert_int_equal(world_done(w, second, "{}"), 200);
    assert_state(w, task, "processed");
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_int_equal(open_alert(w).kind, RV_ALERT_LATE_DONE);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_state(w, task, "compensated");
}

/* The pivot has been carried out, says its late reply; its definition cannot be read just then. */
static void a_pivot_that_was_done_late_is_known_while_its_definition_is_lost(void **state)
{
    struct world *w = *state;
    struct rv_call *lost = world_call(w, RV_CALL_PUBLISH);
    lost->u.publish.row = (struct rv_workflow_row){.space = RV_STR("shop"),
                                                   .name = RV_STR("lost"),
                                                   .version = RV_STR("1.0.0"),
                                                   .hash = RV_STR("aa"),
                                                   .source = RV_STR("{}")};
    assert_true(world_run(w, lost));
    struct rv_task_id task = world_submit(w, "passing", "{}");
    int64_t workflow = world_task(w, task)->workflow;
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    struct rv_request b = world_take(w, "one", "i1");
    world_pass(w, 10000);
    resubmit_edited(w, task, false);
    world_pin(w, task, lost->u.publish.row.id);
    assert_int_equal(world_done(w, b, "{}"), 410);
    world_pin(w, task, workflow); /* it is mended */
    struct rv_call *undo = world_call(w, RV_CALL_OPERATE);
    undo->u.operate = (struct rv_call_operate){
        .verb = RV_COMMAND_UNDO, .task = task, .by_hand = true, .late_seen = 1};
    assert_true(world_run(w, undo));
    assert_int_equal(undo->err, RV_ERR_REFUSED);
    assert_non_null(strstr(undo->message.at, "is the point of no return (pivot) and was passed"));
}

/* Both attempts were done, and an operator found that nothing had happened. */
static void a_finding_that_was_disproved_is_not_believed_again(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "two", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    struct rv_request first = world_take(w, "one", "i1");
    world_pass(w, 20000);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    struct rv_request second = world_take(w, "one", "i1");
    assert_int_equal(first.step.number, second.step.number);
    world_pass(w, 20000);
    assert_state(w, task, "error");
    assert_int_equal(finds_nothing(w, task, 2), RV_OK);
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_true(world_step(w, task, 2)->undone);
    struct rv_request undo = world_take(w, "one", "i1");
    assert_int_equal(world_done(w, second, "{\"was\":1}"), 410);
    assert_true(world_step(w, task, 2)->undone);
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, task, "compensated");
}

static const char *const caught =
    DOCUMENT("caught") "do:\n"
                       "  - t:\n"
                       "      try:\n"
                       "        - a: {call: one, metadata: {reeve: {completeBy: PT10S,"
                       " failures: {threshold: 1, rounds: 0}}}}\n"
                       "      catch: {do: [{b: {set: {n: 0}}}]}\n";

static void an_undo_that_would_be_refused_is_not_named(void **state)
{
    struct world *w = *state;
    world_publish(w, caught);
    struct rv_task_id task = world_submit(w, "caught", "{}");
    struct rv_request first = world_take(w, "one", "i1");
    assert_int_equal(world_fail(w, first, false, RV_EFFECT_NONE), 200);
    assert_state(w, task, "processed");
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_null(strstr(open_alert(w).message.at, "reeve undo"));
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_late_done_after_an_undo_calls_an_operator),
        SCENARIO(a_late_done_of_what_needed_no_undo_calls_an_operator),
        SCENARIO(a_late_done_of_what_was_undone_calls_nobody),
        SCENARIO(a_late_done_while_the_undo_goes_on_is_undone),
        SCENARIO(what_was_done_late_is_not_settled_as_nothing),
        SCENARIO(a_late_done_of_what_a_person_took_back_is_undone),
        SCENARIO(a_late_done_of_a_replaced_request_is_undone_with_the_rest),
        SCENARIO(a_pivot_that_was_done_late_is_known_while_its_definition_is_lost),
        SCENARIO(a_late_done_of_an_abandoned_task_calls_nobody),
        SCENARIO(a_finding_that_was_disproved_is_not_believed_again),
        SCENARIO(an_undo_that_would_be_refused_is_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
