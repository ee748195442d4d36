/* A task whose rows or definition cannot be read (RULES 11): it is parked with an alert, what its
 * agents say is kept, and it goes on when it is mended. */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/limits.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const longer =
    DOCUMENT("long") "do:\n"
                     "  - a: {call: one, metadata: {reeve: {completeBy: P7D, lease: PT10S, "
                     "compensate: [{undoA: {call: one}}]}}}\n";

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    world_publish(&w, workflow_file("order"));
    world_publish(&w, workflow_file("unreadable/alone"));
    world_publish(&w, workflow_file("unreadable/hurried"));
    world_publish(&w, longer);
    *state = &w;
    return 0;
}

/* A definition that nothing can read. */
static int64_t unreadable(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_PUBLISH);
    call->u.publish.row = (struct rv_workflow_row){.space = RV_STR("shop"),
                                                   .name = RV_STR("new"),
                                                   .version = RV_STR("1.0.0"),
                                                   .hash = RV_STR("aa"),
                                                   .source = RV_STR("{}")};
    assert_true(world_run(w, call));
    return call->u.publish.row.id;
}

/* Gives the workflow that mends it. */
static int64_t make_unreadable(struct world *w, struct rv_task_id task)
{
    int64_t workflow = world_task(w, task)->workflow;
    world_pin(w, task, unreadable(w));
    return workflow;
}

/* RULES 11: it is parked with an alert; the others go on. */
static void a_task_whose_definition_cannot_be_read_is_parked(void **state)
{
    struct world *w = *state;
    struct rv_task_id waiting = world_submit(w, "order", "{}");
    struct rv_task_id good = world_submit(w, "order", "{}");
    (void)make_unreadable(w, waiting);
    assert_int_equal(world_take(w, "inventory", "i1").step.task.value, good.value);
    assert_state(w, waiting, "error");
    assert_int_equal(world_count_alerts(w, waiting, RV_ALERT_UNREADABLE), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, waiting), RV_ERR_CORRUPT);
    assert_int_equal(world_count_alerts(w, waiting, RV_ALERT_UNREADABLE), 1);
}

/* Its agent is told that the result was not counted, and the result is kept: for the operator, and
 * for the compensation. */
static void a_result_that_cannot_be_taken_is_kept(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    int64_t workflow = make_unreadable(w, task);
    struct rv_call *reply = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item item = {
        .step = request.step, .token = request.token, .reply = {.output = RV_STR("{\"r\":1}")}};
    reply->u.replies.items = &item;
    reply->u.replies.count = 1;
    assert_true(world_run(w, reply));
    assert_int_equal(reply->err, RV_OK);
    assert_int_equal(item.status, 410);
    assert_non_null(strstr(item.message.at, "its task cannot be read; the reply is kept"));
    assert_int_equal(world_count_late(w, task), 1);
    assert_state(w, task, "error");
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNREADABLE), 1);
    world_pin(w, task, workflow); /* it is mended */
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    world_pass(w, 10000);
    struct rv_assignment release = world_take(w, "inventory", "i1");
    assert_non_null(strstr(release.input.at, "\"was\":{\"r\":1}"));
    assert_int_equal(world_done(w, release, "{}"), 200);
    assert_state(w, task, "compensated");
}

/* A failure as well, and what a revoked attempt says. */
static void what_a_revoked_attempt_of_such_a_task_says_is_kept(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    (void)make_unreadable(w, task);
    assert_int_equal(world_say(w, request, NULL, "{\"type\":\"busy\"}"), 410);
    assert_int_equal(world_say(w, request, "1", NULL), 410);
    assert_int_equal(world_count_late(w, task), 2);
    assert_int_equal(world_step(w, task, 1)->effect, RV_EFFECT_DONE);
}

static enum rv_err edit(struct world *w, struct rv_task_id task, const char *input)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate = (struct rv_call_operate){.verb = RV_COMMAND_RESUBMIT, .task = task};
    call->u.operate.input = rv_str_of(input);
    call->u.operate.assume_not_done = true;
    assert_true(world_run(w, call));
    return call->err;
}

/* Both requests, the newest first; the first one's effect is known by its late reply alone. */
static void assert_both_undone(struct world *w, struct rv_task_id task)
{
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    for (int i = 0; i < 2; i++) {
        struct rv_assignment undo = world_take(w, "one", "i1");
        assert_string_equal(undo.input.at, "{\"undo\":\"completed\"}");
        assert_int_equal(world_done(w, undo, "{}"), 200);
    }
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 1)->undone);
    assert_true(world_step(w, task, 2)->undone);
}

/* An operator took the first request for not done. Its `done` comes when the task has ended. */
static void a_late_done_after_the_end_is_undone_with_the_rest(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "alone", "{}");
    struct rv_assignment first = world_take(w, "one", "i1");
    world_pass(w, 10000);
    assert_int_equal(edit(w, task, "{\"n\":2}"), RV_OK);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_state(w, task, "processed");
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_LATE_DONE), 1);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_both_undone(w, task);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* Or while its definition cannot be read. */
static void a_late_done_of_such_a_task_is_undone_with_the_rest(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "alone", "{}");
    struct rv_assignment first = world_take(w, "one", "i1");
    world_pass(w, 10000);
    assert_int_equal(edit(w, task, "{\"n\":2}"), RV_OK);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    int64_t workflow = make_unreadable(w, task);
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    world_pin(w, task, workflow); /* it is mended */
    assert_both_undone(w, task);
}

/* A timeout that was over while the task was parked does not fire when it goes on, at a call as at
 * a wait. */
static void a_mended_task_has_its_time_again(void **state)
{
    struct world *w = *state;
    int64_t damaged = unreadable(w);
    struct rv_task_id task = world_submit(w, "hurried", "{}");
    int64_t workflow = world_task(w, task)->workflow;
    for (int at_pause = 0; at_pause < 2; at_pause++) {
        world_pin(w, task, damaged);
        world_restart(w, 100);
        world_pass(w, 2 * 60 * 1000);
        assert_state(w, task, "error");
        world_pin(w, task, workflow);
        assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
        if (at_pause == 0)
            assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    }
    assert_int_equal(world_done(w, world_take(w, "two", "i1"), "{}"), 200);
    assert_state(w, task, "processed");
}

/* A failure ends its `error` without an operator. Suspended it does not go on: the alert stays open
 * until the resume. */
static void a_mended_task_that_is_suspended_keeps_its_alert(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
    struct rv_assignment request = world_take(w, "payment", "i1");
    int64_t workflow = make_unreadable(w, task);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_ERR_CORRUPT);
    assert_state(w, task, "error");
    world_pin(w, task, workflow); /* it is mended */
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    assert_int_equal(world_fail(w, request, false, RV_EFFECT_NONE), 200);
    assert_state(w, task, "compensating");
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* The end of an attempt ends the alert that the attempt was postponed, but not the alert of the
 * error. */
static void the_end_of_an_attempt_leaves_the_alert_of_the_error(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_reply refusal = {.error = RV_STR("{\"type\":\"circuit-open\"}"),
                               .target = RV_STR("shop"),
                               .circuit_open = true,
                               .retry_after_ms = 4 * 60 * 1000};
    assert_int_equal(world_reply(w, world_take(w, "inventory", "i1"), refusal), 200);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_POSTPONED), 1);
    world_pass(w, 5 * 60 * 1000);
    struct rv_assignment request = world_take(w, "inventory", "i2");
    int64_t workflow = make_unreadable(w, task);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_ERR_CORRUPT);
    assert_state(w, task, "error");
    world_pin(w, task, workflow); /* it is mended */
    size_t open = world_count_open_alerts(w);
    assert_int_equal(world_fail(w, request, true, RV_EFFECT_NONE), 200);
    assert_state(w, task, "error");
    assert_int_equal(world_count_open_alerts(w), open);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* It is at work on it all the time: where its task goes on again, that counts for the limit of its
 * kind from the batch on in which it does. */
static void an_attempt_of_a_mended_task_counts_at_once(void **state)
{
    struct world *w = *state;
    struct rv_call *limit = world_call(w, RV_CALL_LIMIT);
    struct rv_agent_limit row = {.agent = RV_STR("inventory"), .concurrent = 1};
    limit->u.limit = (struct rv_call_limit){.sets_concurrent = true, .row = row};
    assert_true(world_run(w, limit));
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    int64_t workflow = make_unreadable(w, task);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_ERR_CORRUPT);
    assert_state(w, task, "error");
    world_restart(w, 100); /* what is open of it is not known from now on */
    world_settle(w);
    world_pin(w, task, workflow); /* it is mended */
    (void)world_submit(w, "order", "{}");
    struct rv_call *calls[] = {world_call(w, RV_CALL_OPERATE), world_call(w, RV_CALL_POLL)};
    struct rv_poll poll = {.agent = RV_STR("inventory"), .instance = RV_STR("i2"), .max = 8};
    calls[0]->u.operate = (struct rv_call_operate){.verb = RV_COMMAND_RESUBMIT, .task = task};
    poll.boot = poll.poll = RV_STR("2");
    calls[1]->u.poll = poll;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, 2, w->mono), RV_OK);
    assert_true(world_finished(calls[1]));
    assert_int_equal(calls[0]->err, RV_OK);
    assert_int_equal(calls[1]->u.poll.requests_count, 0);
    assert_int_equal(world_done(w, request, "{}"), 200);
    assert_int_equal(world_poll(w, "inventory", "i2", 8)->u.poll.requests_count, 1);
}

static void parked_and_mended(struct world *w, struct rv_task_id task)
{
    int64_t workflow = make_unreadable(w, task);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_ERR_CORRUPT);
    assert_state(w, task, "error");
    world_pin(w, task, workflow);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
}

/* The resubmission closes the alerts of before; what they told is still so. */
static void a_mended_task_that_no_agent_takes_calls_again(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    world_pass(w, RV_NO_AGENT_ALERT_MS + 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
    parked_and_mended(w, task);
    assert_state(w, task, "processing");
    world_pass(w, 3 * RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_count_open_alerts(w), 1);
}

/* Nobody could take the step while its task was parked: that is no wait for an agent. */
static void a_mended_task_waits_for_an_agent_anew(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "long", "{}");
    int64_t workflow = make_unreadable(w, task);
    assert_int_equal(world_poll(w, "one", "i1", 1)->u.poll.requests_count, 0);
    assert_state(w, task, "error");
    world_pass(w, 2 * RV_NO_AGENT_ALERT_MS);
    world_pin(w, task, workflow); /* it is mended */
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    world_pass(w, RV_NO_AGENT_ALERT_MS - 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 0);
    world_pass(w, 2000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
}

static void a_mended_task_whose_revoked_attempt_is_silent_calls_again(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "long", "{}");
    (void)world_take(w, "one", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    world_pass(w, RV_NO_AGENT_ALERT_MS + 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
    parked_and_mended(w, task);
    assert_state(w, task, "compensating");
    world_pass(w, 3 * RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_REVOKED);
    assert_int_equal(world_count_open_alerts(w), 1);
}

static void a_mended_task_at_which_instances_died_calls_again(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "long", "{}");
    for (int death = 0; death < 3; death++) {
        (void)world_take(w, "one", "i1");
        world_pass(w, 60000);
    }
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_POISON), 1);
    parked_and_mended(w, task);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_POISON), 2);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_POISON), 3);
    assert_int_equal(world_count_open_alerts(w), 1);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_task_whose_definition_cannot_be_read_is_parked),
        SCENARIO(a_result_that_cannot_be_taken_is_kept),
        SCENARIO(what_a_revoked_attempt_of_such_a_task_says_is_kept),
        SCENARIO(a_late_done_after_the_end_is_undone_with_the_rest),
        SCENARIO(a_late_done_of_such_a_task_is_undone_with_the_rest),
        SCENARIO(a_mended_task_has_its_time_again),
        SCENARIO(a_mended_task_that_is_suspended_keeps_its_alert),
        SCENARIO(the_end_of_an_attempt_leaves_the_alert_of_the_error),
        SCENARIO(an_attempt_of_a_mended_task_counts_at_once),
        SCENARIO(a_mended_task_that_no_agent_takes_calls_again),
        SCENARIO(a_mended_task_waits_for_an_agent_anew),
        SCENARIO(a_mended_task_whose_revoked_attempt_is_silent_calls_again),
        SCENARIO(a_mended_task_at_which_instances_died_calls_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
