/* The DSL's own timeouts and retries, and what they leave behind (RULES 5, 6). */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const plain = DOCUMENT("plain") "do:\n  - a: {call: one}\n";

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    world_publish(&w, workflow_file("order"));
    world_publish(&w, workflow_file("deadlines/scoped"));
    world_publish(&w, workflow_file("deadlines/whole"));
    world_publish(&w, workflow_file("deadlines/own"));
    world_publish(&w, workflow_file("deadlines/waits"));
    world_publish(&w, workflow_file("deadlines/caught"));
    world_publish(&w, workflow_file("deadlines/retried"));
    world_publish(&w, workflow_file("deadlines/reserving"));
    world_publish(&w, workflow_file("deadlines/anew"));
    world_publish(&w, plain);
    *state = &w;
    return 0;
}

static void an_attempt_ended_by_an_outer_timeout_is_undone(void **state)
{
    struct world *w = *state;
    const char *const names[] = {"scoped", "whole"};
    for (int i = 0; i < 2; i++) {
        struct rv_task_id task = world_submit(w, names[i], "{}");
        struct rv_assignment request = world_take(w, "one", "i1");
        world_pass(w, 5000);
        assert_int_equal(world_step(w, task, request.step.number)->effect, RV_EFFECT_UNKNOWN);
        assert_state(w, task, "compensating");
        struct rv_assignment undo = world_take(w, "one", "i1");
        assert_string_equal(undo.input.at, "{\"undo\":\"a\"}");
        assert_int_equal(world_done(w, undo, "{}"), 200);
        assert_state(w, task, "compensated");
    }
}

static void what_waits_anew_stands_behind_those_that_waited(void **state)
{
    struct world *w = *state;
    struct rv_task_id first = world_submit(w, "anew", "{}");
    world_pass(w, 1000);
    struct rv_task_id second = world_submit(w, "plain", "{}");
    world_pass(w, 1500);
    assert_int_equal(world_take(w, "one", "i1").step.task.value, second.value);
    assert_int_equal(world_take(w, "one", "i1").step.task.value, first.value);
}

/* Timeouts of the DSL that are over while the server is down have the time that they had left. */
static void downtime_does_not_count_for_timeouts(void **state)
{
    struct world *w = *state;
    enum { TASKS = 20, LEASE_MS = 10000 };
    struct rv_task_id tasks[TASKS];
    for (int i = 0; i < TASKS; i++)
        tasks[i] = world_submit(w, i % 2 == 0 ? "whole" : "scoped", "{}");
    world_pass(w, 2000);
    world_restart(w, 600000);
    world_pass(w, 2000);
    for (int i = 0; i < TASKS; i++)
        assert_true(world_task(w, tasks[i])->state == RV_TASK_PENDING);
    struct rv_assignment request = world_take(w, "one", "i1");
    assert_int_equal(world_done(w, request, "{}"), 200);
    assert_int_equal(world_task(w, request.step.task)->state, RV_TASK_PROCESSED);
    /* They end in the course of a lease, not all at once. */
    int ended = 0, at_once = 0, left = 0;
    for (int ms = 0; ms < LEASE_MS + 5000; ms += 100) {
        int now = 0;
        world_pass(w, 100);
        for (int i = 0; i < TASKS; i++)
            now += world_task(w, tasks[i])->state == RV_TASK_COMPENSATED;
        at_once = now - ended > at_once ? now - ended : at_once;
        ended = now;
    }
    for (int i = 0; i < TASKS; i++)
        left += rv_task_state_open(world_task(w, tasks[i])->state);
    assert_int_equal(left, 0);
    assert_int_equal(ended, TASKS - 1);
    assert_in_range(at_once, 1, TASKS / 2);
}

/* An attempt that was under way is repeated, in the time that its scope has left; what is over when
 * the server is there ends as ever. */
static void an_attempt_in_a_timeout_is_repeated_after_downtime(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "scoped", "{}");
    uint32_t step = world_take(w, "one", "i1").step.number;
    world_pass(w, 1000);
    world_restart(w, 60000);
    world_pass(w, 100);
    int64_t ready_at = world_step(w, task, step)->ready_at;
    assert_in_range(ready_at - w->now + 100, 1, 10100);
    assert_in_range(world_step(w, task, step)->deadline - ready_at, 3000, 5000);
    world_pass(w, ready_at > w->now ? ready_at - w->now : 0);
    struct rv_assignment again = world_take(w, "one", "i1");
    assert_int_equal(again.attempt, 2);
    assert_true(again.complete_by > w->now);
    assert_int_equal(world_done(w, again, "{}"), 200);
    assert_state(w, task, "processed");
    task = world_submit(w, "scoped", "{}");
    world_pass(w, 5000);
    assert_state(w, task, "compensated");
}

/* The wait inside of a timeout goes on, and ends with it if it is longer. */
static void a_wait_in_a_timeout_goes_on_after_downtime(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "waits", "{}");
    world_pass(w, 1000);
    world_restart(w, 5500); /* the timeout is over, the wait is not */
    assert_state(w, task, "processing");
    world_pass(w, 3900);
    assert_state(w, task, "processed");
}

/* What a timeout has ended says so, though a catch took the error: a call that nobody took, a wait,
 * an attempt under way. */
static void a_caught_timeout_is_the_steps_error(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "caught", "{}");
    world_pass(w, 10000);
    struct rv_assignment request = world_take(w, "one", "i1");
    world_pass(w, 5000);
    assert_state(w, task, "processed");
    unsigned told = 0;
    for (uint32_t n = 1; n <= world_task(w, task)->last_number; n++) {
        const struct rv_step *step = world_step(w, task, n);
        bool timed_out = step->state == RV_STEP_ERROR || step->state == RV_STEP_CANCELLED;
        assert_int_equal(timed_out, step->error.at != NULL);
        if (!timed_out)
            continue;
        assert_non_null(memmem(step->error.at, step->error.len, "errors/timeout", 14));
        told++;
    }
    assert_int_equal(told, 3);
    assert_int_equal(world_step(w, task, request.step.number)->state, RV_STEP_ERROR);
}

static void a_timeout_before_any_attempt_had_no_effect(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "whole", "{}");
    world_pass(w, 5000);
    assert_state(w, task, "compensated");
}

static void a_step_resubmitted_after_its_timeout_has_time_again(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "own", "{}");
    (void)world_take(w, "one", "i1");
    world_pass(w, 5000);
    assert_state(w, task, "error");
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    assert_state(w, task, "processing");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_state(w, task, "processed");
}

static void a_cancel_between_the_attempts_of_a_try_undoes_what_they_left(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "retried", "{}");
    struct rv_assignment first = world_take(w, "one", "i1");
    assert_int_equal(world_done(w, first, "{}"), 200);
    world_fail(w, world_take(w, "two", "i1"), false, RV_EFFECT_UNKNOWN);
    assert_state(w, task, "processing"); /* waits for the retry */
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "compensating");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, first.step.number)->undone);
}

static void a_retried_try_undoes_both_visits(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "retried", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    world_fail(w, world_take(w, "two", "i1"), false, RV_EFFECT_UNKNOWN);
    world_pass(w, 3000);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    struct rv_assignment again = world_take(w, "two", "i1");
    assert_int_equal(again.attempt, 2); /* the step that had not completed keeps its identity */
    /* This one the catch does not take. */
    struct rv_reply other = {.error = RV_STR("{\"type\":\"other\",\"status\":418}")};
    assert_int_equal(world_reply(w, again, other), 200);
    assert_state(w, task, "compensating");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_state(w, task, "compensated");
}

static struct rv_assignment charge_for(struct world *w, const char *reserved, enum rv_effect effect)
{
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), reserved), 200);
    struct rv_assignment charge = world_take(w, "two", "i1");
    assert_string_equal(charge.input.at,
                        strcmp(reserved, "{\"r\":1}") == 0 ? "{\"of\":1}" : "{\"of\":2}");
    assert_int_equal(world_fail(w, charge, false, effect), 200);
    world_pass(w, 3000);
    return charge;
}

static void refund(struct world *w, struct rv_task_id task, const struct rv_assignment *charge,
                   const char *of)
{
    char step[RV_STEP_TEXT_BYTES], input[RV_STEP_TEXT_BYTES + 64];
    struct rv_assignment request = world_take(w, "two", "i1");
    snprintf(input, sizeof input, "{\"key\":\"%s\",\"of\":%s}",
             rv_step_text((struct rv_step_id){task, charge->step.number}, step).at, of);
    assert_string_equal(request.input.at, input);
    assert_int_equal(world_done(w, request, "{}"), 200);
}

/* A retry that asks for something else is another request, and so has another key: the service
 * would answer the old one, or refuse the new one. What the first may have done is undone, too. */
static void a_retry_that_asks_for_something_else_has_another_key(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "reserving", "{}");
    struct rv_assignment first = charge_for(w, "{\"r\":1}", RV_EFFECT_UNKNOWN);
    struct rv_assignment second = charge_for(w, "{\"r\":2}", RV_EFFECT_UNKNOWN);
    assert_int_not_equal(second.step.number, first.step.number);
    assert_int_equal(second.attempt, 1);
    assert_int_equal(world_step(w, task, first.step.number)->visit, 1);
    assert_int_equal(world_step(w, task, second.step.number)->visit, 2);
    assert_string_equal(world_step(w, task, first.step.number)->input.at, "{\"of\":1}");
    struct rv_assignment again = charge_for(w, "{\"r\":2}", RV_EFFECT_NONE);
    assert_int_equal(again.step.number, second.step.number); /* the same request, the same key */
    assert_int_equal(again.attempt, 2);
    struct rv_assignment third = charge_for(w, "{\"r\":1}", RV_EFFECT_NONE);
    assert_true(third.step.number > again.step.number);
    assert_int_equal(world_step(w, task, third.step.number)->visit, 3);
    assert_state(w, task, "compensating");
    refund(w, task, &second, "2");
    refund(w, task, &first, "1");
    assert_state(w, task, "compensated");
}

/* An undo in the middle finds it, too; and what had no effect needs none. */
static void a_cancel_undoes_the_requests_that_a_retry_replaced(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "reserving", "{}");
    (void)charge_for(w, "{\"r\":1}", RV_EFFECT_NONE);
    struct rv_assignment second = charge_for(w, "{\"r\":2}", RV_EFFECT_UNKNOWN);
    struct rv_assignment third = charge_for(w, "{\"r\":1}", RV_EFFECT_UNKNOWN);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    refund(w, task, &third, "1");
    refund(w, task, &second, "2");
    assert_state(w, task, "compensated");
}

/* The task goes on without it: a late `done` calls an operator, as for any step that was left. */
static void a_replaced_request_that_was_done_late_calls(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "reserving", "{}");
    struct rv_assignment first = charge_for(w, "{\"r\":1}", RV_EFFECT_NONE);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{\"r\":2}"), 200);
    assert_int_equal(world_done(w, first, "{\"charged\":1}"), 410);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_int_equal(world_done(w, world_take(w, "two", "i1"), "{}"), 200);
    assert_int_equal(world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_NONE), 200);
    struct rv_assignment undo = world_take(w, "two", "i1");
    assert_int_equal(world_done(w, undo, "{}"), 200);
    refund(w, task, &first, "1");
    assert_state(w, task, "compensated");
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* The clock stands: the server does not wake again and again for an instant that does not come. */
static void a_clock_that_stands_is_not_watched_all_the_time(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    world_pass(w, 9999 - 9999 % 7);
    int64_t wakes = 0;
    for (int64_t passed = 0; passed < 10000;) {
        int64_t wait = rv_scheduler_next_wake(w->scheduler, w->mono);
        w->mono += wait;
        passed += wait;
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, NULL, 0, w->mono), RV_OK);
        assert_true(++wakes < 1000);
    }
}

static struct rv_call *done_call(struct world *w, const struct rv_assignment *request)
{
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    call->u.replies.items = RV_NEW(&call->arena, struct rv_reply_item);
    call->u.replies.count = 1;
    call->u.replies.items[0] = (struct rv_reply_item){
        .step = request->step, .token = request->token, .reply.output = RV_STR("{}")};
    return call;
}

/* The reply is in a mailbox from which a batch takes only so much, or arrives while a batch begins:
 * no batch has it yet when its complete-by passes. */
static void nothing_expires_before_what_arrived_earlier_is_read(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    world_pass(w, request.complete_by - w->now - 1);
    struct rv_call *reply = done_call(w, &request);
    w->heard_until = w->mono;
    world_pass(w, 3000);
    assert_step(w, task, request.step.number, "processing");
    w->heard_until = 0;
    assert_true(world_run(w, reply));
    assert_int_equal(reply->u.replies.items[0].status, 200);
    assert_step(w, task, request.step.number, "processed");
}

static void what_ended_before_all_that_is_unread_expires(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    w->heard_until = w->mono + request.complete_by - w->now;
    world_pass(w, request.complete_by - w->now + 1000);
    assert_step(w, task, request.step.number, "pending");
    struct rv_call *reply = done_call(w, &request);
    w->heard_until = 0;
    assert_true(world_run(w, reply));
    assert_int_equal(reply->u.replies.items[0].status, 410);
}

/* A timeout of the DSL is an end like any other. */
static void no_timeout_fires_before_what_arrived_earlier_is_read(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "own", "{}");
    struct rv_assignment request = world_take(w, "one", "i1");
    world_pass(w, 4999);
    struct rv_call *reply = done_call(w, &request);
    w->heard_until = w->mono;
    world_pass(w, 3000);
    assert_state(w, task, "processing");
    w->heard_until = 0;
    assert_true(world_run(w, reply));
    assert_int_equal(reply->u.replies.items[0].status, 200);
    assert_state(w, task, "processed");
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(an_attempt_ended_by_an_outer_timeout_is_undone),
        SCENARIO(what_waits_anew_stands_behind_those_that_waited),
        SCENARIO(downtime_does_not_count_for_timeouts),
        SCENARIO(an_attempt_in_a_timeout_is_repeated_after_downtime),
        SCENARIO(a_wait_in_a_timeout_goes_on_after_downtime),
        SCENARIO(a_caught_timeout_is_the_steps_error),
        SCENARIO(a_timeout_before_any_attempt_had_no_effect),
        SCENARIO(a_step_resubmitted_after_its_timeout_has_time_again),
        SCENARIO(a_cancel_between_the_attempts_of_a_try_undoes_what_they_left),
        SCENARIO(a_retried_try_undoes_both_visits),
        SCENARIO(a_retry_that_asks_for_something_else_has_another_key),
        SCENARIO(a_cancel_undoes_the_requests_that_a_retry_replaced),
        SCENARIO(a_replaced_request_that_was_done_late_calls),
        SCENARIO(nothing_expires_before_what_arrived_earlier_is_read),
        SCENARIO(what_ended_before_all_that_is_unread_expires),
        SCENARIO(no_timeout_fires_before_what_arrived_earlier_is_read),
        SCENARIO(a_clock_that_stands_is_not_watched_all_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
