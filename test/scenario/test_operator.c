/* What an operator may do beside resubmitting, undoing and cancelling: suspend and resume, settle
 * a step, resubmit with another input (RULES 6, 7). */
#include "../lib/world.h"
#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int open_world(void **state)
{
    return world_setup(
        state, NULL, WORLD_FILES("order", "operator/parked", "operator/waiting", "operator/timed"));
}

static struct rv_call *asked(struct world *w, enum rv_command_kind verb, struct rv_task_id task)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate.verb = verb;
    call->u.operate.task = task;
    call->u.operate.by = RV_STR("ann");
    return call;
}

static enum rv_err pass_over(struct world *w, struct rv_task_id task, uint32_t step,
                             const char *output)
{
    return world_settle_seen(w, task, step, RV_FINDING_DONE, output, 0);
}

enum word { NOTHING_SAID, NOT_DONE, UNDO_FIRST };

static enum rv_err resubmit(struct world *w, struct rv_task_id task, const char *input,
                            enum word word, uint32_t late_seen)
{
    struct rv_call *call = asked(w, RV_COMMAND_RESUBMIT, task);
    call->u.operate.input = rv_str_of(input);
    call->u.operate.assume_not_done = word == NOT_DONE;
    call->u.operate.undo_first = word == UNDO_FIRST;
    call->u.operate.late_seen = late_seen;
    assert_true(world_run(w, call));
    return call->err;
}

static void assert_nothing(struct world *w, const char *agent)
{
    assert_int_equal(world_poll(w, agent, "i1", 4)->u.poll.requests_count, 0);
}

/* The instance i1 of agent `one` polls, in that life. */
static struct rv_call *poll_of_boot(struct world *w, const char *boot)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    char poll[32];
    snprintf(poll, sizeof poll, "poll-%llu", (unsigned long long)call->serial);
    call->u.poll = (struct rv_poll){.agent = RV_STR("one"),
                                    .instance = RV_STR("i1"),
                                    .boot = rv_str_of(boot),
                                    .poll = rv_arena_str(&call->arena, rv_str_of(poll)),
                                    .max = 4};
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    return call;
}

static void assert_step_text(struct world *w, struct rv_task_id task, uint32_t number,
                             const char *output)
{
    assert_true(rv_str_is(world_step(w, task, number)->output, output));
}

/* A task of "parked" whose first step fails. */
static struct rv_task_id parked(struct world *w, enum rv_effect effect)
{
    struct rv_task_id task = world_submit(w, "parked", "{}");
    world_fail(w, world_take(w, "one", "i1"), false, effect);
    assert_state(w, task, "error");
    return task;
}

/* The same, but its first attempt runs out of time: the request. */
static struct rv_assignment parked_late(struct world *w, struct rv_task_id *ret_task)
{
    *ret_task = world_submit(w, "parked", "{}");
    struct rv_assignment request = world_take(w, "one", "i1");
    world_pass(w, 10000);
    assert_state(w, *ret_task, "error");
    return request;
}

/* Its undo knows that the step was done, and ends it. */
static void undone_as_completed(struct world *w, struct rv_task_id task)
{
    struct rv_assignment undo = world_take(w, "one", "i1");
    assert_non_null(strstr(undo.input.at, "\"outcome\":\"completed\""));
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, task, "compensated");
}

/* ---- suspend and resume ---- */

static void a_suspended_task_hands_nothing_out(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{\"sku\":\"A\"}");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    assert_state(w, task, "pending");
    assert_nothing(w, "inventory");
    world_restart(w, 1000);
    assert_nothing(w, "inventory");
    world_pass(w, 30 * 60 * 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 0);
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK); /* once more */
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    world_pass(w, 4 * 60 * 1000); /* the wait for an agent begins now */
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 0);
    world_complete(w, "inventory");
    world_complete(w, "payment");
    assert_state(w, task, "processed");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_ERR_REFUSED);
}

/* A poll that is parked gets nothing either, and is woken by the resume. */
static void a_resume_wakes_the_polls_that_wait(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    struct rv_call *poll = world_call(w, RV_CALL_POLL);
    poll->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("b"),
                                    .poll = RV_STR("p"),
                                    .max = 1,
                                    .wait_ms = 20000};
    assert_false(world_run(w, poll));
    world_pass(w, 5000);
    assert_false(world_finished(poll));
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    assert_true(world_finished(poll));
    assert_int_equal(poll->u.poll.requests_count, 1);
}

static void open_attempts_finish_while_suspended(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    assert_int_equal(world_done(w, request, "{}"), 200);
    assert_step(w, task, 1, "processed");
    assert_nothing(w, "payment");
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    world_complete(w, "payment");
    assert_state(w, task, "processed");
    assert_int_equal(world_task(w, task)->suspended_at, 0);
}

static void open_attempts_expire_while_suspended(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    world_pass(w, 10000);
    assert_step(w, task, 1, "pending");
    assert_int_equal(world_step(w, task, 1)->failure_count, 1);
    world_pass(w, 60000);
    assert_nothing(w, "inventory");
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    world_complete(w, "inventory");
}

static void timers_that_fall_due_run_at_resume(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "waiting", "{}");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    world_pass(w, 60000);
    assert_int_equal(world_step(w, task, 1)->state, RV_STEP_PROCESSING);
    world_restart(w, 1000);
    world_pass(w, 60000);
    assert_int_equal(world_step(w, task, 1)->state, RV_STEP_PROCESSING);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    assert_step(w, task, 1, "processed");
    world_complete(w, "one");
    assert_state(w, task, "processed");
}

/* The undo of a suspended task begins, and its compensations wait for the resume. */
static void an_undo_waits_for_the_resume(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    world_complete(w, "inventory");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_state(w, task, "compensating");
    assert_nothing(w, "inventory");
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    world_complete(w, "inventory");
    assert_state(w, task, "compensated");
}

/* ---- skip ---- */

static void a_settled_step_has_the_given_output(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "parked", "{}");
    assert_int_equal(pass_over(w, task, 1, "{\"by\":\"hand\"}"), RV_OK);
    assert_step(w, task, 1, "skipped");
    assert_step_text(w, task, 1, "{\"by\":\"hand\"}");
    assert_state(w, task, "processing");
    struct rv_assignment b = world_take(w, "two", "i1");
    assert_string_equal(b.input.at, "{\"got\":{\"by\":\"hand\"}}");
    assert_int_equal(world_done(w, b, "{}"), 200);
    assert_state(w, task, "processed");
    /* It had no effect, so the undo passes it by; b declares none. */
    assert_int_equal(world_task(w, task)->undo_head, 2);
}

static void a_parked_step_is_settled_and_its_effect_undone(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = parked(w, RV_EFFECT_UNKNOWN);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_int_equal(pass_over(w, task, 1, "7"), RV_OK);
    assert_state(w, task, "processing");
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    undone_as_completed(w, task);
    assert_true(world_step(w, task, 1)->undone);
    assert_step_text(w, task, 1, "7");
}

/* Somebody did it by hand: the undo works with what he said. */
static void a_step_done_by_hand_is_undone_as_completed(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "parked", "{}");
    assert_int_equal(world_settle_seen(w, task, 1, RV_FINDING_DONE, "7", 0), RV_OK);
    assert_int_equal(world_step(w, task, 1)->effect, RV_EFFECT_DONE);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    undone_as_completed(w, task);
}

static void a_step_at_work_is_not_settled(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "parked", "{}");
    struct rv_assignment request = world_take(w, "one", "i1");
    assert_int_equal(pass_over(w, task, 1, "7"), RV_ERR_REFUSED);
    assert_int_equal(pass_over(w, task, 2, "7"), RV_ERR_REFUSED); /* no such step */
    assert_int_equal(world_done(w, request, "{}"), 200);
    assert_int_equal(pass_over(w, task, 1, "7"), RV_ERR_REFUSED); /* it is not there any more */
    assert_int_equal(pass_over(w, task, 2, "7"), RV_OK);
    assert_state(w, task, "processed");
    assert_int_equal(pass_over(w, task, 2, "7"), RV_ERR_REFUSED);
}

static void a_wait_is_not_settled(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "waiting", "{}");
    assert_int_equal(pass_over(w, task, 1, "7"), RV_ERR_REFUSED);
}

/* What the agent said too late is looked at before its step is passed over; what it says later is
 * kept and changes nothing. */
static void the_ledger_is_seen_before_a_settlement(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment request = parked_late(w, &task);
    assert_int_equal(world_done(w, request, "{\"late\":1}"), 410);
    assert_int_equal(pass_over(w, task, 1, "7"), RV_ERR_REFUSED);
    assert_state(w, task, "error");
    assert_int_equal(world_settle_seen(w, task, 1, RV_FINDING_DONE, "{\"late\":1}", 1), RV_OK);
    assert_int_equal(world_step(w, task, 1)->effect, RV_EFFECT_DONE);
    assert_int_equal(world_done(w, request, "{\"later\":1}"), 410);
    assert_step_text(w, task, 1, "{\"late\":1}");
    assert_int_equal(world_count_late(w, task), 2);
}

/* A compensation that cannot be done is passed over: somebody undid it by hand. */
static void a_compensation_is_settled(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    world_complete(w, "inventory");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    struct rv_assignment undo = world_take(w, "inventory", "i1");
    world_fail(w, undo, false, RV_EFFECT_UNKNOWN);
    assert_state(w, task, "error");
    assert_int_equal(pass_over(w, task, undo.step.number, "{}"), RV_OK);
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 1)->undone);
}

/* ---- another input ---- */

static void another_input_has_another_key(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "parked", "{}");
    struct rv_assignment first = world_take(w, "one", "i1");
    world_fail(w, first, false, RV_EFFECT_NONE);
    assert_state(w, task, "error");
    assert_int_equal(resubmit(w, task, "{\"n\":2}", NOTHING_SAID, 0), RV_OK);
    struct rv_assignment second = world_take(w, "one", "i1");
    assert_int_not_equal(second.step.number, first.step.number);
    assert_string_equal(second.input.at, "{\"n\":2}");
    assert_step(w, task, first.step.number, "cancelled");
    assert_int_equal(world_step(w, task, second.step.number)->replaces, first.step.number);
    assert_int_equal(world_done(w, second, "{}"), 200);
    world_complete(w, "two");
    assert_state(w, task, "processed");
}

static void an_unknown_outcome_refuses_another_input(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = parked(w, RV_EFFECT_UNKNOWN);
    assert_int_equal(resubmit(w, task, "{\"n\":2}", NOTHING_SAID, 0), RV_ERR_REFUSED);
    assert_state(w, task, "error");
    assert_int_equal(resubmit(w, task, "{\"n\":2}", NOT_DONE, 0), RV_OK);
    world_complete(w, "one");
    /* What the operator took for not done is not undone ... */
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    struct rv_assignment undo = world_take(w, "one", "i1");
    char key[RV_STEP_TEXT_BYTES];
    assert_non_null(strstr(undo.input.at, rv_step_text((struct rv_step_id){task, 2}, key).at));
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, task, "compensated");
}

/* ... unless its agent says that it was. */
static void a_wrong_assumption_is_undone_all_the_same(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment first = parked_late(w, &task);
    assert_int_equal(resubmit(w, task, "{\"n\":2}", NOT_DONE, 0), RV_OK);
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_NONE);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    undone_as_completed(w, task);
}

static void a_late_done_refuses_another_input(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment first = parked_late(w, &task);
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_int_equal(resubmit(w, task, "{\"n\":2}", NOT_DONE, 0), RV_ERR_REFUSED); /* not seen */
    assert_int_equal(resubmit(w, task, "{\"n\":2}", NOT_DONE, 1), RV_ERR_REFUSED); /* done */
    assert_int_equal(resubmit(w, task, "{\"n\":2}", UNDO_FIRST, 1), RV_OK);
}

static void the_old_request_is_undone_first(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = parked(w, RV_EFFECT_UNKNOWN);
    assert_int_equal(resubmit(w, task, "{\"n\":2}", UNDO_FIRST, 0), RV_OK);
    assert_state(w, task, "compensating");
    world_restart(w, 100);
    struct rv_assignment undo = world_take(w, "one", "i1");
    assert_non_null(strstr(undo.input.at, "\"undo\""));
    assert_nothing(w, "one"); /* the new one waits */
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, task, "processing");
    assert_true(world_step(w, task, 1)->undone);
    struct rv_assignment second = world_take(w, "one", "i1");
    assert_string_equal(second.input.at, "{\"n\":2}");
    assert_int_equal(world_done(w, second, "{}"), 200);
    world_complete(w, "two");
    assert_state(w, task, "processed");
}

/* The first request was taken for not done, and was done: its late reply arrives while the second
 * waits to be undone, and puts it on the undo chain above the second. */
static void a_late_done_of_an_older_request_does_not_replace_the_undo(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment first = parked_late(w, &task);
    assert_int_equal(resubmit(w, task, "{\"n\":2}", NOT_DONE, 0), RV_OK);
    assert_int_equal(poll_of_boot(w, "before")->u.poll.requests_count, 1);
    poll_of_boot(w, "after"); /* restarted: nobody knows what became of the second */
    assert_state(w, task, "error");
    assert_int_equal(resubmit(w, task, "{\"n\":3}", UNDO_FIRST, 0), RV_OK);
    assert_state(w, task, "compensating");
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    world_pass(w, 10000);
    struct rv_assignment undo = world_take(w, "one", "i2");
    assert_non_null(strstr(undo.input.at, "\"undo\"")); /* of the first, the newest known */
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_false(world_step(w, task, 2)->undone);
    undo = world_take(w, "one", "i2");
    assert_non_null(strstr(undo.input.at, "\"undo\""));
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_true(world_step(w, task, 2)->undone);
    assert_string_equal(world_take(w, "one", "i2").input.at, "{\"n\":3}");
}

/* The new input's attempt is lost, and may be at work after the compensation that was before it:
 * that is no damage when the compensation's reply comes once more. But the next compensation waits
 * for the lost one. */
static void what_was_undone_first_is_no_damage_when_a_later_attempt_is_lost(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = parked(w, RV_EFFECT_UNKNOWN);
    assert_int_equal(resubmit(w, task, "{\"n\":2}", UNDO_FIRST, 0), RV_OK);
    struct rv_assignment undo = world_take(w, "one", "i1");
    assert_int_equal(world_done(w, undo, "{}"), 200);
    struct rv_assignment lost = world_take(w, "one", "i1");
    assert_int_equal(poll_of_boot(w, "boot-2")->u.poll.requests_count, 0);
    assert_int_equal(world_task(w, task)->quiet_at, lost.lease_until);
    assert_state(w, task, "error");
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    struct rv_call *second = poll_of_boot(w, "boot-2");
    assert_int_equal(second->u.poll.requests_count, 1);
    struct rv_assignment request = second->u.poll.requests[0];
    struct rv_reply_item items[] = {
        {.step = undo.step, .token = undo.token, .reply = {.output = RV_STR("{}")}},
        {.step = request.step, .token = request.token, .reply = {.output = RV_STR("{}")}}};
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    call->u.replies.items = items;
    call->u.replies.count = 2;
    assert_true(world_run(w, call));
    assert_int_equal(items[0].status, 200);
    assert_int_equal(items[1].status, 200);
    assert_state(w, task, "processing");
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNREADABLE), 0);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    world_pass(w, lost.lease_until - w->now - 1);
    assert_int_equal(poll_of_boot(w, "boot-2")->u.poll.requests_count, 0);
    world_pass(w, 1);
    struct rv_call *last = poll_of_boot(w, "boot-2");
    assert_int_equal(last->u.poll.requests_count, 1);
    assert_int_equal(world_done(w, last->u.poll.requests[0], "{}"), 200);
    assert_state(w, task, "compensated");
}

/* Its compensation fails: the task is parked, and a resubmission goes on with the undo, then with
 * the new input. */
static void an_undo_that_failed_first_is_resubmitted(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = parked(w, RV_EFFECT_UNKNOWN);
    assert_int_equal(resubmit(w, task, "{\"n\":2}", UNDO_FIRST, 0), RV_OK);
    world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_UNKNOWN);
    assert_state(w, task, "error");
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNDO_FAILED), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    world_complete(w, "one");
    assert_string_equal(world_take(w, "one", "i1").input.at, "{\"n\":2}");
}

/* A cancel meanwhile undoes the whole, and the new input never leaves. */
static void a_cancel_takes_the_new_input_back(void **state)
{
    struct world *w = *state;
    for (int abandon = 0; abandon < 2; abandon++) {
        print_message("# %s\n", abandon ? "abandoned" : "undone");
        struct rv_task_id task = parked(w, RV_EFFECT_UNKNOWN);
        assert_int_equal(resubmit(w, task, "{\"n\":2}", UNDO_FIRST, 0), RV_OK);
        struct rv_call *call = asked(w, RV_COMMAND_CANCEL, task);
        call->u.operate.abandon = abandon == 1;
        call->u.operate.reason = RV_STR("no use");
        assert_true(world_run(w, call));
        assert_int_equal(call->err, RV_OK);
        if (abandon == 0)
            world_complete(w, "one");
        assert_state(w, task, abandon ? "cancelled" : "compensated");
        assert_step(w, task, 2, "cancelled");
        assert_nothing(w, "one");
    }
}

static void what_cannot_be_undone_is_not_undone_first(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "parked", "{}");
    world_complete(w, "one");
    world_fail(w, world_take(w, "two", "i1"), false, RV_EFFECT_UNKNOWN);
    assert_int_equal(resubmit(w, task, "{}", UNDO_FIRST, 0), RV_ERR_REFUSED);
    assert_int_equal(resubmit(w, task, "{}", NOT_DONE, 0), RV_OK);
    world_complete(w, "two");
    assert_state(w, task, "processed");
}

/* ---- timeouts that have passed ---- */

/* The scope's time passes while the task is parked: resubmitted, the step and what follows have
 * time again. */
static void a_resubmission_does_not_meet_the_passed_deadline(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "timed", "{}");
    world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_NONE);
    assert_state(w, task, "error");
    world_pass(w, 2 * 60 * 1000);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    world_complete(w, "one");
    assert_state(w, task, "processing");
    const struct rv_task *row = world_task(w, task);
    assert_int_equal(world_step(w, task, row->open[0])->deadline, w->now + 20000);
    world_complete(w, "two");
    row = world_task(w, task);
    assert_int_equal(world_step(w, task, row->open[0])->deadline, w->now + 60000);
    world_complete(w, "three");
    assert_state(w, task, "processed");
}

/* The scope's time passes while the step is under way: the task is parked at that step, and can be
 * resubmitted. */
static void a_step_cut_short_by_a_scope_is_resubmitted(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "timed", "{}");
    world_pass(w, 15000);
    (void)world_take(w, "one", "i1");
    world_pass(w, 5000);
    assert_state(w, task, "error");
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    world_complete(w, "one");
    world_complete(w, "two");
    world_complete(w, "three");
    assert_state(w, task, "processed");
}

static void a_settlement_and_another_input_have_time_again_too(void **state)
{
    struct world *w = *state;
    for (int edit = 0; edit < 2; edit++) {
        print_message("# %s\n", edit ? "another input" : "settled");
        struct rv_task_id task = world_submit(w, "timed", "{}");
        world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_NONE);
        world_pass(w, 2 * 60 * 1000);
        if (edit == 0) {
            assert_int_equal(pass_over(w, task, world_task(w, task)->open[0], "{}"), RV_OK);
        } else {
            assert_int_equal(resubmit(w, task, "{}", NOTHING_SAID, 0), RV_OK);
            world_complete(w, "one");
        }
        world_complete(w, "two");
        world_complete(w, "three");
        assert_state(w, task, "processed");
    }
}

/* ---- explain ---- */

static void it_is_explained_why_no_agent_takes_a_step(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    const struct rv_call_explain *told = world_explained(w, task);
    assert_int_equal(told->reason, RV_WAIT_NO_AGENT);
    assert_int_equal(told->steps[0].connected, 0);
    assert_int_equal(told->next_at, world_step(w, task, 1)->wake_at);
    struct rv_task_id other = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    told = world_explained(w, task);
    assert_int_equal(told->reason, RV_WAIT_HELD);
    assert_true(rv_str_is(told->steps[0].step->instance, "i1"));
    assert_int_equal(told->until, w->now + 10000);
    told = world_explained(w, other);
    assert_int_equal(told->reason, RV_WAIT_BUSY);
    assert_int_equal(told->steps[0].connected, 1);
    assert_int_equal(told->steps[0].queued, 1);
    struct rv_reply open = {.error = RV_STR("{\"type\":\"circuit-open\"}"),
                            .circuit_open = true,
                            .retry_after_ms = 5000};
    assert_int_equal(world_reply(w, request, open), 200);
    for (int i = 0; i < 2; i++) {
        told = world_explained(w, i == 0 ? task : other);
        assert_int_equal(told->reason, RV_WAIT_CIRCUIT);
        assert_int_equal(told->until, w->now + 5000);
    }
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    assert_int_equal(world_explained(w, task)->reason, RV_WAIT_SUSPENDED);
    assert_int_equal(world_explained(w, task)->next_at, 0);
}

static void it_is_explained_that_an_operator_holds_the_agent_back(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    struct rv_task_id task = world_submit(w, "order", "{}");
    world_limit(w, (struct rv_call_limit){.sets_paused = true, .row.paused = true});
    const struct rv_call_explain *told = world_explained(w, task);
    assert_int_equal(told->reason, RV_WAIT_PAUSED);
    assert_int_equal(told->steps[0].connected, 0);
    world_limit(w, (struct rv_call_limit){
                       .sets_paused = true, .sets_concurrent = true, .row.concurrent = 1});
    assert_int_equal(world_explained(w, task)->reason, RV_WAIT_NO_AGENT);
    struct rv_assignment request = world_take(w, "inventory", "i1");
    told = world_explained(w, task);
    assert_int_equal(told->reason, RV_WAIT_LIMIT);
    assert_int_equal(told->until, 0);
    assert_int_equal(told->steps[0].queued, 1);
    world_limit(
        w, (struct rv_call_limit){.sets_concurrent = true, .sets_rate = true, .row.per_second = 1});
    assert_int_equal(world_done(w, request, "{}"), 200);
    told = world_explained(w, task);
    assert_int_equal(told->reason, RV_WAIT_RATE);
    assert_int_equal(told->until, w->now + 1000);
    world_limit(w, (struct rv_call_limit){.sets_rate = true});
    assert_int_equal(world_explained(w, told->task)->reason, RV_WAIT_BUSY);
}

static void it_is_explained_what_has_failed(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    world_pass(w, 10000);
    const struct rv_call_explain *told = world_explained(w, task);
    assert_int_equal(told->reason, RV_WAIT_RETRY);
    assert_int_equal(told->steps[0].connected, 1);
    assert_int_equal(told->steps[0].threshold, 2);
    world_pass(w, 2000);
    (void)world_take(w, "inventory", "i1");
    world_pass(w, 10000);
    told = world_explained(w, task);
    assert_int_equal(told->reason, RV_WAIT_COOL_DOWN);
    assert_true(told->until >= w->now + 60000);
    assert_int_equal(told->attempts_count, 2);
    assert_int_equal(told->attempts[0].state, RV_ATTEMPT_EXPIRED);
    assert_int_equal(told->attempts[1].state, RV_ATTEMPT_EXPIRED);
    struct rv_task_id parked_task = parked(w, RV_EFFECT_UNKNOWN);
    told = world_explained(w, parked_task);
    assert_int_equal(told->reason, RV_WAIT_OPERATOR);
    assert_int_equal(told->alerts_count, 1);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, parked_task), RV_OK);
    world_complete(w, "one");
    assert_int_equal(world_explained(w, parked_task)->reason, RV_WAIT_NOTHING);
    struct rv_call *none = world_call(w, RV_CALL_EXPLAIN);
    none->u.explain.task = (struct rv_task_id){7};
    assert_true(world_run(w, none));
    assert_int_equal(none->err, RV_ERR_NOT_FOUND);
    struct rv_task_id timer = world_submit(w, "waiting", "{}");
    told = world_explained(w, timer);
    assert_int_equal(told->reason, RV_WAIT_TIMER);
    assert_int_equal(told->until, w->now + 5000);
}

/* ---- the history's bound ---- */

/* The first 1,000 commands are kept, in the batch that reaches the bound too; a later one is
 * carried out, and is in the log. */
static void the_history_keeps_the_first_commands(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "waiting", "{}");
    for (int i = 0; i < RV_HISTORY_MAX - 1; i++)
        assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    assert_int_equal(w->commands_logged, 0);
    struct rv_call *calls[] = {asked(w, RV_COMMAND_SUSPEND, task),
                               asked(w, RV_COMMAND_RESUME, task)};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, 2, w->mono), RV_OK);
    assert_int_equal(calls[1]->err, RV_OK);
    assert_int_equal(w->commands_logged, 1);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_int_equal(w->commands_logged, 2);
    assert_state(w, task, "cancelled");
    struct rv_call *history = world_call(w, RV_CALL_HISTORY);
    history->u.list.task = task;
    history->u.list.limit = RV_PAGE_ROWS_MAX;
    assert_true(world_run(w, history));
    assert_int_equal(history->u.list.count, RV_PAGE_ROWS_MAX);
    assert_int_equal(history->u.list.history[0].number, RV_HISTORY_MAX);
    assert_int_equal(history->u.list.history[0].verb, RV_OPERATOR_SUSPEND);
    assert_true(rv_str_is(history->u.list.history[0].by, "ann"));
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_suspended_task_hands_nothing_out),
        SCENARIO(the_history_keeps_the_first_commands),
        SCENARIO(a_resume_wakes_the_polls_that_wait),
        SCENARIO(open_attempts_finish_while_suspended),
        SCENARIO(open_attempts_expire_while_suspended),
        SCENARIO(timers_that_fall_due_run_at_resume),
        SCENARIO(an_undo_waits_for_the_resume),
        SCENARIO(a_settled_step_has_the_given_output),
        SCENARIO(a_parked_step_is_settled_and_its_effect_undone),
        SCENARIO(a_step_done_by_hand_is_undone_as_completed),
        SCENARIO(a_step_at_work_is_not_settled),
        SCENARIO(a_wait_is_not_settled),
        SCENARIO(the_ledger_is_seen_before_a_settlement),
        SCENARIO(a_compensation_is_settled),
        SCENARIO(another_input_has_another_key),
        SCENARIO(an_unknown_outcome_refuses_another_input),
        SCENARIO(a_wrong_assumption_is_undone_all_the_same),
        SCENARIO(a_late_done_refuses_another_input),
        SCENARIO(the_old_request_is_undone_first),
        SCENARIO(a_late_done_of_an_older_request_does_not_replace_the_undo),
        SCENARIO(what_was_undone_first_is_no_damage_when_a_later_attempt_is_lost),
        SCENARIO(an_undo_that_failed_first_is_resubmitted),
        SCENARIO(a_cancel_takes_the_new_input_back),
        SCENARIO(what_cannot_be_undone_is_not_undone_first),
        SCENARIO(a_resubmission_does_not_meet_the_passed_deadline),
        SCENARIO(a_step_cut_short_by_a_scope_is_resubmitted),
        SCENARIO(a_settlement_and_another_input_have_time_again_too),
        SCENARIO(it_is_explained_why_no_agent_takes_a_step),
        SCENARIO(it_is_explained_that_an_operator_holds_the_agent_back),
        SCENARIO(it_is_explained_what_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
