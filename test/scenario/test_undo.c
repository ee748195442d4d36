/* Revocation, undo order, unknown outcomes, pivots, failed undos, cancel and the operator
 * (RULES 6, 7). */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "core/tags.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int open_world(void **state)
{
    return world_setup(state, NULL,
                       WORLD_FILES("order", "undo/leased", "undo/cut-short", "undo/mixed",
                                   "undo/pivot", "undo/refunds"));
}

/* A task of "order" whose first step is done. */
static struct rv_task_id reserved(struct world *w)
{
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    return task;
}

/* Both steps are done. */
static struct rv_task_id charged(struct world *w)
{
    struct rv_task_id task = reserved(w);
    assert_int_equal(world_done(w, world_take(w, "payment", "p1"), "2"), 200);
    assert_state(w, task, "processed");
    return task;
}

/* The undo of its first step, the last of the undo. */
static void released(struct world *w, struct rv_task_id task)
{
    world_complete(w, "inventory");
    assert_state(w, task, "compensated");
}

/* A task of "mixed" whose last step fails. */
static struct rv_task_id mixed_fails(struct world *w, enum rv_effect effect)
{
    struct rv_task_id task = world_submit(w, "mixed", "{}");
    for (int i = 0; i < 3; i++)
        world_expect_one(w, "{}");
    world_fail(w, world_take(w, "one", "i1"), false, effect);
    return task;
}

static void undo_goes_in_reverse_and_skips_what_needs_none(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = mixed_fails(w, RV_EFFECT_NONE);
    assert_state(w, task, "compensating");
    world_expect_one(w, "{\"undo\":\"c\"}");
    world_expect_one(w, "{\"undo\":\"c2\"}");
    world_expect_one(w, "{\"undo\":\"a\"}");
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 1)->undone);
    assert_true(world_step(w, task, 2)->undone);
    assert_true(world_step(w, task, 3)->undone);
    assert_int_equal(world_task(w, task)->undo_head, 0);
}

static void an_effect_that_nobody_can_undo_calls_the_operator(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = mixed_fails(w, RV_EFFECT_UNKNOWN);
    assert_state(w, task, "error");
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_UNDO), 1);
    assert_int_equal(world_task(w, task)->direction, RV_FORWARD);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    assert_state(w, task, "processing");
    world_expect_one(w, "{}");
    assert_state(w, task, "processed");
    assert_int_equal(world_step(w, task, 4)->attempt, 2);
}

/* The scope's time is over, not the call's own: what the call may have done is undone all the same.
 */
static void a_call_that_a_scopes_timeout_cuts_short_is_undone(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "cut-short", "{}");
    (void)world_take(w, "one", "i1");
    world_pass(w, 6000);
    assert_state(w, task, "compensating");
    world_expect_one(w, "{\"undo\":\"a\"}");
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 2)->undone); /* the first row is the way into the scope */
}

static void an_unknown_outcome_is_compensated_as_unknown(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = reserved(w);
    world_fail(w, world_take(w, "payment", "p1"), false, RV_EFFECT_UNKNOWN);
    assert_state(w, task, "compensating");
    struct rv_assignment refund = world_take(w, "payment", "p1");
    assert_non_null(strstr(refund.input.at, "\"outcome\":\"unknown\""));
    assert_int_equal(world_done(w, refund, "{}"), 200);
    released(w, task);
}

static void cancel_revokes_first_and_compensates_only_then(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = reserved(w);
    struct rv_assignment charge = world_take(w, "payment", "p1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "compensating");
    assert_int_equal(world_step(w, task, 2)->attempt_state, RV_ATTEMPT_REVOKED);
    /* Its instance hears of it; nothing is compensated beside it. */
    struct rv_call *poll = world_poll(w, "payment", "p1", 8);
    assert_int_equal(poll->u.poll.requests_count, 0);
    assert_int_equal(poll->u.poll.cancels_count, 1);
    assert_int_equal(poll->u.poll.cancels[0].token, charge.token);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 0);
    /* Its `done` does not move the task forward, but tells the compensation. */
    assert_int_equal(world_done(w, charge, "{\"charged\":12}"), 410);
    assert_int_equal(world_count_late(w, task), 1);
    struct rv_assignment refund = world_take(w, "payment", "p1");
    assert_non_null(strstr(refund.input.at, "\"outcome\":\"completed\""));
    assert_int_equal(world_done(w, refund, "{}"), 200);
    released(w, task);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_ERR_REFUSED);
}

static void a_revoked_attempt_that_stays_silent_holds_the_undo_until_complete_by(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    world_pass(w, 9000);
    assert_int_equal(world_poll(w, "inventory", "i2", 8)->u.poll.requests_count, 0);
    world_pass(w, 1000);
    struct rv_assignment release = world_take(w, "inventory", "i2");
    assert_non_null(strstr(release.input.at, "\"outcome\":\"unknown\""));
    assert_int_equal(world_done(w, release, "{}"), 200);
    assert_state(w, task, "compensated");
}

static void a_cancel_of_what_had_no_effect_ends_as_cancelled(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "cancelled");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    struct rv_task_id other = world_submit(w, "order", "{}");
    struct rv_assignment reserve = world_take(w, "inventory", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, other), RV_OK);
    assert_int_equal(world_fail(w, reserve, false, RV_EFFECT_NONE), 410);
    assert_state(w, other, "cancelled");
}

static void a_failed_undo_is_an_error_with_direction_undo(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = reserved(w);
    world_fail(w, world_take(w, "payment", "p1"), false, RV_EFFECT_NONE);
    world_fail(w, world_take(w, "inventory", "i1"), false, RV_EFFECT_UNKNOWN);
    assert_state(w, task, "error");
    assert_int_equal(world_task(w, task)->direction, RV_UNDO);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNDO_FAILED), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_ERR_REFUSED);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    assert_state(w, task, "compensating");
    released(w, task);
}

/* The error type of the group in which operators see the only open alert of the task. */
static struct rv_str type_of_alert(struct world *w, struct rv_task_id task)
{
    struct rv_call *call = world_call(w, RV_CALL_ALERTS);
    call->u.list.task = task;
    call->u.list.open_only = true;
    assert_true(world_run(w, call));
    assert_int_equal(call->u.list.count, 1);
    return call->u.list.alert_facts[0].error_type;
}

static bool is_found(struct world *w, struct rv_task_id task, struct rv_str type)
{
    struct rv_call *call = world_call(w, RV_CALL_TASKS);
    call->u.list.filter.error_type = type;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    bool found = false;
    for (size_t i = 0; i < call->u.list.count; i++)
        found = found || call->u.list.tasks[i].id.value == task.value;
    return found;
}

static int fails_as(struct world *w, const char *agent, const char *error)
{
    struct rv_reply reply = {.effect = RV_EFFECT_NONE, .error = rv_str_of(error)};
    return world_reply(w, world_take(w, agent, "i1"), reply);
}

/* What an alert groups by is what selects its tasks: the compensation's error, until the undo
 * continues. */
static void a_stopped_undo_is_found_by_its_own_error(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = reserved(w);
    assert_int_equal(fails_as(w, "payment", "{\"type\":\"https://x/declined\"}"), 200);
    assert_true(is_found(w, task, RV_STR("declined")));
    assert_int_equal(fails_as(w, "inventory", "{\"type\":\"https://x/gone\"}"), 200);
    assert_state(w, task, "error");
    assert_true(rv_str_is(type_of_alert(w, task), "https://x/gone"));
    assert_true(is_found(w, task, RV_STR("https://x/gone")));
    assert_true(is_found(w, task, RV_STR("gone")));
    assert_false(is_found(w, task, RV_STR("declined")));
    world_restart(w, 10);
    assert_true(is_found(w, task, RV_STR("gone")));
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    assert_false(is_found(w, task, RV_STR("gone")));
    assert_true(is_found(w, task, RV_STR("declined")));
    released(w, task);
    assert_true(is_found(w, task, RV_STR("declined")));
}

/* Neither has a step that failed. */
static void an_undo_that_stops_outside_of_a_call_is_found(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("undo/unmade"));
    struct rv_task_id task = world_submit(w, "unmade", "{}");
    world_expect_one(w, "{}");
    assert_int_equal(fails_as(w, "one", "{\"type\":\"declined\"}"), 200);
    assert_state(w, task, "error");
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNDO_FAILED), 1);
    assert_true(rv_error_type_last(type_of_alert(w, task)).len > 0);
    assert_true(is_found(w, task, type_of_alert(w, task)));
    assert_false(is_found(w, task, RV_STR("declined")));
    assert_int_equal(world_settle_step(w, task, 1, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    assert_state(w, task, "compensated");
    assert_null(world_task(w, task)->undo_error.at);

    task = world_submit(w, "mixed", "{}");
    for (int i = 0; i < 4; i++)
        world_expect_one(w, "{}");
    assert_state(w, task, "processed");
    struct rv_command undo = {.kind = RV_COMMAND_UNDO};
    undo.u.operate.by_hand = true;
    assert_int_equal(world_give(w, task, undo)->err, RV_OK);
    assert_state(w, task, "error");
    assert_true(rv_str_is(type_of_alert(w, task), "no-compensation"));
    assert_true(is_found(w, task, RV_STR("no-compensation")));
}

static void after_the_pivot_it_only_goes_forward(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "pivot", "{}");
    world_expect_one(w, "{}");
    world_expect_one(w, "{}");
    world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_NONE);
    assert_state(w, task, "error");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_ERR_REFUSED);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_ERR_REFUSED);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    world_expect_one(w, "{}");
    assert_state(w, task, "processed");
}

/* Nothing that its alert recommends may be refused: nobody undoes a pivot. */
static void a_pivot_that_may_have_been_passed_is_a_failure(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "pivot", "{}");
    world_expect_one(w, "{}");
    world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_UNKNOWN);
    assert_state(w, task, "error");
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_UNDO), 0);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_FAILED), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_ERR_REFUSED);
    world_assert_cures(w, task,
                       "resubmit settle-done:2 settle-undone:2 settle-nothing-happened:2 abandon");
}

static void a_processed_task_can_be_undone(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = charged(w);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_ERR_REFUSED);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(world_done(w, world_take(w, "payment", "p1"), "{}"), 200);
    released(w, task);
}

static void a_late_done_supplies_the_output(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    world_pass(w, 10000);
    assert_int_equal(world_done(w, first, "{\"r\":9}"), 410);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    struct rv_assignment release = world_take(w, "inventory", "i1");
    assert_non_null(strstr(release.input.at, "\"outcome\":\"completed\""));
    assert_non_null(strstr(release.input.at, "\"was\":{\"r\":9}"));
}

static void undo_survives_a_restart_at_every_step(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    world_restart(w, 100);
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    world_restart(w, 100);
    struct rv_assignment charge = world_take(w, "payment", "p1");
    world_restart(w, 100);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    world_restart(w, 100);
    assert_int_equal(world_fail(w, charge, false, RV_EFFECT_NONE), 410);
    world_restart(w, 100);
    struct rv_assignment release = world_take(w, "inventory", "i1");
    world_restart(w, 100);
    assert_int_equal(world_done(w, release, "{}"), 200);
    assert_state(w, task, "compensated");
}

static struct rv_call *poll_with(struct world *w, const char *boot, const char *poll, uint32_t max,
                                 bool confirms)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = RV_STR("i1"),
                                    .boot = rv_str_of(boot),
                                    .poll = rv_str_of(poll),
                                    .max = max,
                                    .confirms = confirms};
    assert_true(world_run(w, call));
    return call;
}

static struct rv_call *poll_of(struct world *w, const char *boot, const char *poll, bool confirms)
{
    return poll_with(w, boot, poll, 8, confirms);
}

/* The requests that the poll brings. */
static size_t brings(struct world *w, const char *boot, const char *poll)
{
    return poll_of(w, boot, poll, true)->u.poll.requests_count;
}

/* Takes nothing, and tells that what was answered before has not arrived. */
static void answer_is_missed(struct world *w, const char *poll)
{
    (void)poll_with(w, "b1", poll, 0, true);
}

/* The undo waits `ms` longer and not a millisecond more: its request. */
static struct rv_assignment undo_after(struct world *w, int64_t ms)
{
    world_pass(w, ms - 1);
    assert_int_equal(brings(w, "b1", "p4"), 0);
    world_pass(w, 1);
    struct rv_call *poll = poll_of(w, "b1", "p5", true);
    assert_int_equal(poll->u.poll.requests_count, 1);
    return poll->u.poll.requests[0];
}

/* It knows that output, and ends. */
static void released_after(struct world *w, struct rv_task_id task, int64_t ms, const char *was)
{
    struct rv_assignment release = undo_after(w, ms);
    assert_non_null(strstr(release.input.at, was));
    assert_int_equal(world_done(w, release, "{}"), 200);
    assert_state(w, task, "compensated");
}

/* An answer that was lost may have reached its agent all the same. */
static void an_undelivered_attempt_holds_the_undo_like_an_open_one(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment first = poll_of(w, "b1", "p1", true)->u.poll.requests[0];
    answer_is_missed(w, "p2");
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_UNDELIVERED);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "compensating");
    world_pass(w, 5000);
    assert_int_equal(brings(w, "b1", "p3"), 0);
    assert_int_equal(world_done(w, first, "{\"r\":1}"), 410);
    released_after(w, task, 5000, "\"was\":{\"r\":1}");
}

/* The answer to p1 was not lost: its agent is at work while another attempt completes the step. The
 * undo waits for the one of which nobody has heard, over a restart too. */
static void an_older_attempt_that_ended_unheard_holds_the_undo(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment first = poll_of(w, "b1", "p1", true)->u.poll.requests[0];
    world_pass(w, 2000);
    struct rv_call *again = poll_of(w, "b1", "p2", true);
    assert_int_equal(again->u.poll.requests[0].attempt, 2);
    assert_int_equal(world_task(w, task)->quiet_at, first.lease_until);
    assert_int_equal(world_done(w, again->u.poll.requests[0], "{\"r\":2}"), 200);
    assert_int_equal(world_fail(w, world_take(w, "payment", "p1"), false, RV_EFFECT_NONE), 200);
    assert_state(w, task, "compensating");
    assert_int_equal(brings(w, "b1", "p3"), 0);
    world_restart(w, 100);
    released_after(w, task, 7900, "\"was\":{\"r\":2}");
}

/* The same for a task that is processed by then. */
static void an_undo_of_a_processed_task_waits_for_the_unheard_too(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(brings(w, "b1", "p1"), 1);
    struct rv_call *again = poll_of(w, "b1", "p2", true);
    assert_int_equal(world_done(w, again->u.poll.requests[0], "1"), 200);
    assert_int_equal(world_done(w, world_take(w, "payment", "p1"), "2"), 200);
    assert_state(w, task, "processed");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_state(w, task, "compensating");
    assert_int_equal(world_poll(w, "payment", "p1", 1)->u.poll.requests_count, 0);
    world_pass(w, 10000);
    assert_int_equal(world_done(w, world_take(w, "payment", "p1"), "{}"), 200);
    assert_int_equal(brings(w, "b1", "p3"), 1);
}

/* Whoever has an attempt stops at the end of its lease, which is renewed no more once the attempt
 * has ended; complete-by may be far off. */
static void the_unheard_hold_the_undo_no_longer_than_their_lease(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "leased", "{}");
    struct rv_assignment first = poll_of(w, "b1", "p1", true)->u.poll.requests[0];
    assert_int_equal(first.lease_until + 58000, first.complete_by);
    answer_is_missed(w, "p2");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    (void)undo_after(w, 2000);
}

/* A new boot id ends a revoked attempt at once. But it may be a late poll of a process before: the
 * one that has the attempt stops with its lease. */
static void a_revoked_attempt_ends_with_its_process(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "leased", "{}");
    (void)poll_of(w, "b1", "p1", false);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_int_equal(brings(w, "b2", "p2"), 0);
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_LOST);
    world_pass(w, 2000);
    struct rv_call *fresh = poll_of(w, "b2", "p3", false);
    assert_int_equal(fresh->u.poll.requests_count, 1);
    assert_non_null(strstr(fresh->u.poll.requests[0].input.at, "unknown"));
    assert_state(w, task, "compensating");
}

/* After a restart nobody knows any more that boot b1 was before b2: its poll, on its way for long,
 * ends the attempt of b2, which is at work. */
static void a_late_poll_of_a_process_that_is_gone_lets_nothing_be_undone_beside_work(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "leased", "{}");
    (void)poll_of(w, "b2", "p1", true);
    world_restart(w, 100);
    assert_int_equal(brings(w, "b1", "p0"), 0);
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_LOST);
    assert_state(w, task, "compensating");
    (void)undo_after(w, 1900);
}

/* The lease ended, the step waits for its next attempt, the task is cancelled, and then the first
 * agent says that it has done it. */
static void a_late_done_during_the_undo_reaches_the_compensation(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment reserve = world_take(w, "inventory", "i1");
    world_pass(w, 12000);
    struct rv_assignment second = world_take(w, "inventory", "i2");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_int_equal(world_done(w, reserve, "{\"r\":5}"), 410);
    assert_int_equal(world_fail(w, second, false, RV_EFFECT_NONE), 410);
    struct rv_assignment release = world_take(w, "inventory", "i1");
    assert_non_null(strstr(release.input.at, "\"was\":{\"r\":5}"));
    assert_int_equal(world_done(w, release, "{}"), 200);
    assert_state(w, task, "compensated");
}

/* A task of "refunds" whose charge runs out of time: what is left is its refund. */
static struct rv_assignment charge_expires(struct world *w, struct rv_task_id *ret_task)
{
    *ret_task = world_submit(w, "refunds", "{}");
    struct rv_assignment charge = world_take(w, "one", "i1");
    world_pass(w, 10000);
    return charge;
}

/* By a refund that knows what was charged; its request. */
static struct rv_assignment refunded(struct world *w, struct rv_task_id task)
{
    struct rv_assignment refund = world_take(w, "one", "i1");
    assert_string_equal(refund.input.at, "{\"id\":7,\"outcome\":\"completed\",\"was\":{\"id\":7}}");
    assert_int_equal(world_done(w, refund, "{}"), 200);
    assert_state(w, task, "compensated");
    return refund;
}

/* The compensation was told that nobody knows, and its attempt is out when the `done` comes: that
 * attempt stays as it left, and the next one knows. */
static void a_late_done_reaches_the_next_attempt_of_the_compensation(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment charge = charge_expires(w, &task);
    struct rv_assignment refund = world_take(w, "one", "i1");
    assert_string_equal(refund.input.at, "{\"id\":null,\"outcome\":\"unknown\",\"was\":null}");
    assert_int_equal(world_done(w, charge, "{\"id\":7}"), 410);
    assert_string_equal(world_step(w, task, 2)->input.at, refund.input.at);
    assert_int_equal(world_fail(w, refund, true, RV_EFFECT_NONE), 200);
    world_pass(w, 2000);
    struct rv_assignment next = refunded(w, task);
    assert_int_equal(next.step.number, refund.step.number);
    assert_int_equal(next.attempt, 2);
}

/* Nothing is out: what waits asks anew at once, and a restart changes nothing. */
static void a_late_done_reaches_a_compensation_that_waits(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment charge = charge_expires(w, &task);
    world_fail(w, world_take(w, "one", "i1"), true, RV_EFFECT_NONE);
    assert_int_equal(world_done(w, charge, "{\"id\":7}"), 410);
    assert_int_equal(world_done(w, charge, "{\"id\":7}"), 410);
    world_restart(w, 2000);
    (void)refunded(w, task);
}

/* What is known by then has the workflow's own expression fail: that calls an operator, whose word
 * on what to ask for stands, whatever else comes. */
static void a_late_done_that_the_compensation_cannot_take_calls_the_operator(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment charge = charge_expires(w, &task);
    world_fail(w, world_take(w, "one", "i1"), true, RV_EFFECT_NONE);
    assert_int_equal(world_done(w, charge, "[1]"), 410);
    assert_state(w, task, "error");
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNDO_FAILED), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    assert_state(w, task, "error");
}

static void abandon(struct world *w, struct rv_task_id task)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate.verb = RV_COMMAND_CANCEL;
    call->u.operate.task = task;
    call->u.operate.by = RV_STR("ann");
    call->u.operate.reason = RV_STR("undone by hand");
    call->u.operate.abandon = true;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    assert_state(w, task, "cancelled");
}

/* Whatever state a task is in, an operator can end it. */
static void abandon_is_the_way_out_of_everything(void **state)
{
    struct world *w = *state;
    struct rv_task_id pending = world_submit(w, "order", "{}");
    abandon(w, pending);
    /* At work: the reply comes too late and is kept. */
    struct rv_task_id busy = world_submit(w, "order", "{}");
    struct rv_assignment reserve = world_take(w, "inventory", "i1");
    abandon(w, busy);
    assert_non_null(strstr(world_task(w, busy)->error.at, "undone by hand"));
    assert_int_equal(world_step(w, busy, 1)->effect, RV_EFFECT_UNKNOWN);
    assert_int_equal(world_done(w, reserve, "{}"), 410);
    assert_int_equal(world_count_late(w, busy), 1);
    /* Revoked. */
    struct rv_task_id revoked = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, revoked), RV_OK);
    assert_state(w, revoked, "compensating");
    abandon(w, revoked);
    /* Stuck at a step that nobody can undo. */
    struct rv_task_id stuck = mixed_fails(w, RV_EFFECT_UNKNOWN);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, stuck), RV_ERR_REFUSED);
    struct rv_command by_hand = {.kind = RV_COMMAND_CANCEL};
    by_hand.u.operate.by_hand = true;
    assert_int_equal(world_give(w, stuck, by_hand)->err, RV_OK);
    assert_state(w, stuck, "error");
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, stuck), RV_ERR_REFUSED);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, stuck), RV_ERR_REFUSED);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, stuck), RV_ERR_REFUSED);
    abandon(w, stuck);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, stuck), RV_ERR_REFUSED);
    world_pass(w, 10 * 60 * 1000);
    assert_state(w, stuck, "cancelled");
}

/* The first step goes on from the task's input, and so does its undo: they keep no copy of it. */
static void an_input_is_stored_once(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("undo/once"));
    struct rv_task_id task = world_submit(w, "once", "{\"sku\":\"A\"}");
    assert_null(world_step(w, task, 1)->data.at);
    world_restart(w, 1000);
    world_complete(w, "one");
    assert_true(rv_str_is(world_step(w, task, 2)->data, "{\"was\":\"A\",\"got\":{}}"));
    struct rv_assignment request = world_take(w, "one", "i1");
    assert_string_equal(request.input.at, "{\"given\":{\"was\":\"A\",\"got\":{}}}");
    assert_int_equal(world_fail(w, request, false, RV_EFFECT_NONE), 200);
    assert_null(world_step(w, task, 3)->data.at);
    world_restart(w, 1000);
    world_expect_one(w, "{\"sku\":\"A\"}");
    assert_state(w, task, "compensated");
    assert_true(rv_str_is(world_task(w, task)->input, "{\"sku\":\"A\"}"));
}

static void assert_failures(struct world *w, const char *type)
{
    struct rv_call *call = world_call(w, RV_CALL_STATUS);
    size_t found = 0;
    assert_true(world_run(w, call));
    for (size_t i = 0; i < call->u.status->failures_count; i++) {
        assert_int_equal(call->u.status->failures[i].count, 1);
        found += rv_str_is(call->u.status->failures[i].type, type);
    }
    assert_int_equal(found, 1);
}

/* It has no error of its own. */
static void a_failed_undo_of_a_processed_task_is_counted(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = charged(w);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(fails_as(w, "payment", "{\"type\":\"gone\"}"), 200);
    assert_state(w, task, "error");
    assert_failures(w, "gone");
}

/* Its older error was counted when the undo began. */
static void a_task_that_is_parked_while_it_is_undone_is_counted(void **state)
{
    static struct world w;
    struct store_faults faults = {.fail_with = RV_ERR_BUSY};
    (void)state;
    world_open_faulty(&w, &faults);
    world_publish(&w, workflow_file("order"));
    struct rv_task_id task = reserved(&w);
    assert_int_equal(fails_as(&w, "payment", "{\"type\":\"declined\"}"), 200);
    faults.offender = task;
    (void)world_poll(&w, "inventory", "i1", 1);
    world_settle(&w);
    faults.offender = (struct rv_task_id){0};
    assert_state(&w, task, "error");
    assert_failures(&w, "declined");
    assert_failures(&w, "refused-by-store");
    world_close(&w);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(an_input_is_stored_once),
        SCENARIO(undo_goes_in_reverse_and_skips_what_needs_none),
        SCENARIO(an_effect_that_nobody_can_undo_calls_the_operator),
        SCENARIO(a_call_that_a_scopes_timeout_cuts_short_is_undone),
        SCENARIO(an_unknown_outcome_is_compensated_as_unknown),
        SCENARIO(cancel_revokes_first_and_compensates_only_then),
        SCENARIO(a_revoked_attempt_that_stays_silent_holds_the_undo_until_complete_by),
        SCENARIO(a_cancel_of_what_had_no_effect_ends_as_cancelled),
        SCENARIO(a_failed_undo_is_an_error_with_direction_undo),
        SCENARIO(a_stopped_undo_is_found_by_its_own_error),
        SCENARIO(an_undo_that_stops_outside_of_a_call_is_found),
        SCENARIO(a_failed_undo_of_a_processed_task_is_counted),
        cmocka_unit_test(a_task_that_is_parked_while_it_is_undone_is_counted),
        SCENARIO(after_the_pivot_it_only_goes_forward),
        SCENARIO(a_pivot_that_may_have_been_passed_is_a_failure),
        SCENARIO(a_processed_task_can_be_undone),
        SCENARIO(a_late_done_supplies_the_output),
        SCENARIO(undo_survives_a_restart_at_every_step),
        SCENARIO(an_undelivered_attempt_holds_the_undo_like_an_open_one),
        SCENARIO(an_older_attempt_that_ended_unheard_holds_the_undo),
        SCENARIO(an_undo_of_a_processed_task_waits_for_the_unheard_too),
        SCENARIO(the_unheard_hold_the_undo_no_longer_than_their_lease),
        SCENARIO(a_revoked_attempt_ends_with_its_process),
        SCENARIO(a_late_poll_of_a_process_that_is_gone_lets_nothing_be_undone_beside_work),
        SCENARIO(a_late_done_during_the_undo_reaches_the_compensation),
        SCENARIO(a_late_done_reaches_the_next_attempt_of_the_compensation),
        SCENARIO(a_late_done_reaches_a_compensation_that_waits),
        SCENARIO(a_late_done_that_the_compensation_cannot_take_calls_the_operator),
        SCENARIO(abandon_is_the_way_out_of_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
