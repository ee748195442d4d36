/* A target that stays dead: what was tried and failed counts, what was not tried waits in its place
 * in line, and the operator hears of the target (RULES 5). */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/limits.h"
#include "core/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct store_faults faults;

static int open_world(void **state)
{
    faults = (struct store_faults){.fail_with = RV_ERR_BUSY};
    return world_setup(state, &faults, WORLD_FILES("dead_targets/dead"));
}

static struct rv_task_id submit(struct world *w, uint8_t priority)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
    *item = (struct rv_submission){.space = RV_STR("shop"),
                                   .name = RV_STR("dead"),
                                   .input = RV_STR("{}"),
                                   .priority = priority};
    call->u.submit.items = item;
    call->u.submit.count = 1;
    assert_true(world_run(w, call));
    assert_int_equal(item->err, RV_OK);
    return item->task;
}

/* Not tried: the agent leaves the target alone. */
static void parks_at(struct world *w, struct rv_assignment request, struct rv_str target,
                     int64_t ms)
{
    struct rv_reply open = {.error = RV_STR("{\"type\":\"circuit-open\"}"),
                            .transient = true,
                            .circuit_open = true,
                            .target = target,
                            .retry_after_ms = ms};
    assert_int_equal(world_reply(w, request, open), 200);
}

static void parks(struct world *w, struct rv_assignment request, int64_t ms)
{
    parks_at(w, request, RV_STR("shop:80"), ms);
}

/* ... all of its targets. */
static void whole(struct world *w, struct rv_assignment request, int64_t ms)
{
    parks_at(w, request, RV_STR_NONE, ms);
}

/* Tried: it failed, and the circuit is open. */
static void fails(struct world *w, struct rv_assignment request, int64_t ms)
{
    struct rv_reply failed = {.error = RV_STR("{\"type\":\"refused\"}"),
                              .transient = true,
                              .target = RV_STR("shop:80"),
                              .retry_after_ms = ms};
    assert_int_equal(world_reply(w, request, failed), 200);
}

/* Each task has its probe, and each probe that fails is a failure of its task's ladder. */
static void every_task_comes_to_the_end_of_its_ladder(void **state)
{
    enum { TASKS = 4 };
    struct world *w = *state;
    struct rv_task_id tasks[TASKS];
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = submit(w, 5);
        world_pass(w, 10);
    }
    for (int i = 0; i < TASKS; i++)
        parks(w, world_take(w, "inventory", "i1"), 5000);
    for (int i = 0; i < TASKS; i++) {
        world_pass(w, 5000);
        struct rv_call *probe = world_poll(w, "inventory", "i1", 8);
        assert_int_equal(probe->u.poll.requests_count, 1);
        assert_int_equal(probe->u.poll.requests[0].step.task.value, tasks[i].value);
        fails(w, probe->u.poll.requests[0], 5000);
        assert_state(w, tasks[i], "error");
        assert_int_equal(world_count_alerts(w, tasks[i], RV_ALERT_FAILED), 1);
        assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 0);
    }
}

/* "Not tried, but perhaps it had an effect" is a contradiction: it was tried. */
static void a_circuit_that_opens_after_an_effect_is_a_failure(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = submit(w, 5);
    struct rv_reply open = {.error = RV_STR("{\"type\":\"circuit-open\"}"),
                            .transient = true,
                            .circuit_open = true,
                            .effect = RV_EFFECT_UNKNOWN,
                            .retry_after_ms = 5000};
    assert_int_equal(world_reply(w, world_take(w, "inventory", "i1"), open), 200);
    assert_state(w, task, "error");
}

/* The probe's end says nothing better of the target: the next one goes out, one at a time. */
static void a_lost_probe_is_followed_by_one_other(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 3; i++)
        (void)submit(w, 5);
    for (int i = 0; i < 3; i++)
        parks(w, world_take(w, "inventory", "i1"), 5000);
    world_pass(w, 5000);
    (void)world_take(w, "inventory", "i1");
    world_pass(w, 11000);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 1);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 0);
}

static void a_target_that_answers_lets_all_go(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 3; i++)
        (void)submit(w, 5);
    for (int i = 0; i < 3; i++)
        parks(w, world_take(w, "inventory", "i1"), 5000);
    world_pass(w, 5000);
    assert_int_equal(world_fail(w, world_take(w, "inventory", "i1"), false, RV_EFFECT_NONE), 200);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 2);
}

/* Parked again and again, a step still calls after five minutes, once, and by its target's name. */
static void the_alert_names_the_target(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = submit(w, 5);
    for (int i = 0; i < 10; i++) {
        parks(w, world_take(w, "inventory", "i1"), 60000);
        world_pass(w, 60000);
    }
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 0);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_TARGET), 1);
    assert_int_equal(world_step(w, task, 1)->failure_count, 0);
    struct rv_call *call = world_call(w, RV_CALL_ALERTS);
    call->u.list.limit = 10;
    assert_true(world_run(w, call));
    assert_int_equal(call->u.list.count, 1);
    assert_non_null(memmem(call->u.list.alerts[0].message.at, call->u.list.alerts[0].message.len,
                           "shop:80", 7));
    /* It was tried: the alert is over. */
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* ---- for how long others may have it wait ---- */

#define YEARS_MS (INT64_C(10) * 365 * 24 * 3600 * 1000)

static void a_remote_word_has_a_bound(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("dead_targets/twice"));
    struct rv_task_id task = world_submit(w, "twice", "{}");
    struct rv_reply later = {
        .error = RV_STR("{\"type\":\"later\"}"), .transient = true, .retry_after_ms = YEARS_MS};
    assert_int_equal(world_reply(w, world_take(w, "inventory", "i1"), later), 200);
    assert_int_equal(world_step(w, task, 1)->ready_at, w->now + 3600 * 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_POSTPONED), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_RETRY, task), RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_int_equal(world_step(w, task, 1)->failure_count, 1);
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    assert_state(w, task, "processed");
}

static void a_circuit_has_a_bound(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = submit(w, 5);
    (void)submit(w, 5);
    struct rv_assignment first = world_take(w, "inventory", "i1");
    parks(w, world_take(w, "inventory", "i1"), YEARS_MS);
    parks(w, first, YEARS_MS);
    assert_int_equal(world_step(w, task, 1)->ready_at, w->now + 5 * 60 * 1000);
    world_restart(w, 1000);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 0);
    world_pass(w, 5 * 60 * 1000);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 1);
}

/* The operator's word goes through an open circuit; what comes of it is the circuit's probe. */
static void retry_goes_through_an_open_circuit(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = submit(w, 5);
    (void)submit(w, 5);
    struct rv_assignment first = world_take(w, "inventory", "i1");
    parks(w, world_take(w, "inventory", "i1"), 60000);
    parks(w, first, 60000);
    assert_int_equal(world_operate(w, RV_COMMAND_RETRY, task), RV_OK);
    struct rv_assignment request = world_take(w, "inventory", "i1");
    assert_int_equal(request.step.task.value, task.value);
    assert_true(request.insist);
    assert_int_equal(world_operate(w, RV_COMMAND_RETRY, task), RV_ERR_REFUSED);
    assert_int_equal(world_done(w, request, "1"), 200);
    assert_int_equal(world_operate(w, RV_COMMAND_RETRY, task), RV_ERR_REFUSED);
    struct rv_task_id other = submit(w, 5);
    assert_int_equal(world_take(w, "inventory", "i1").step.task.value, other.value);
}

/* It waits in the circuit's line, where no agent has refused it. */
static void retry_takes_a_step_out_of_the_circuits_line(void **state)
{
    struct world *w = *state;
    (void)submit(w, 5);
    struct rv_assignment first = world_take(w, "inventory", "i1");
    whole(w, first, 60000);
    struct rv_task_id behind = submit(w, 5);
    struct rv_task_id third = submit(w, 5);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 0);
    assert_int_equal(world_operate(w, RV_COMMAND_RETRY, third), RV_OK);
    struct rv_call *poll = world_poll(w, "inventory", "i1", 8);
    assert_int_equal(poll->u.poll.requests_count, 1);
    assert_int_equal(poll->u.poll.requests[0].step.task.value, third.value);
    assert_true(poll->u.poll.requests[0].insist);
    assert_int_equal(world_done(w, poll->u.poll.requests[0], "1"), 200);
    assert_int_equal(world_take(w, "inventory", "i1").step.task.value, behind.value);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 0);
}

/* ---- an operator closes a circuit ---- */

static struct rv_call *close_circuit(struct world *w, const char *target)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate.verb = RV_COMMAND_RETRY;
    call->u.operate.agent = RV_STR("inventory");
    call->u.operate.target = rv_str_of(target);
    call->u.operate.by = RV_STR("me");
    assert_true(world_run(w, call));
    return call;
}

static void a_closed_circuit_is_tried_by_who_waits_longest(void **state)
{
    struct world *w = *state;
    struct rv_task_id oldest = submit(w, 5);
    world_pass(w, 10);
    (void)submit(w, 5);
    struct rv_assignment first = world_take(w, "inventory", "i1");
    parks(w, world_take(w, "inventory", "i1"), 60000);
    parks(w, first, 60000);
    struct rv_call *call = close_circuit(w, NULL);
    assert_int_equal(call->err, RV_OK);
    assert_true(rv_str_is(call->u.operate.target, "shop:80"));
    assert_int_equal(call->u.operate.task.value, oldest.value);
    assert_int_equal(call->u.operate.step, 1);
    struct rv_call *poll = world_poll(w, "inventory", "i1", 8);
    assert_int_equal(poll->u.poll.requests_count, 1);
    assert_int_equal(poll->u.poll.requests[0].step.task.value, oldest.value);
    assert_true(poll->u.poll.requests[0].insist);
    struct rv_call *history = world_call(w, RV_CALL_HISTORY);
    history->u.list.task = oldest;
    history->u.list.limit = 10;
    assert_true(world_run(w, history));
    assert_int_equal(history->u.list.count, 1);
    assert_true(rv_str_is(history->u.list.history[0].options, "close-circuit"));
    assert_int_equal(world_done(w, poll->u.poll.requests[0], "1"), 200);
    assert_int_equal(close_circuit(w, NULL)->err, RV_ERR_REFUSED);
}

/* More tasks than a page are at steps of the agent, and newer. */
static void who_waits_longest_is_found_among_many(void **state)
{
    enum { OTHERS = 150 };
    struct world *w = *state;
    struct rv_task_id oldest = submit(w, 5);
    parks_at(w, world_take(w, "inventory", "i1"), RV_STR("bank:80"), 60000);
    world_pass(w, 10);
    (void)submit(w, 5);
    parks_at(w, world_take(w, "inventory", "i1"), RV_STR("bank:80"), 60000);
    for (int i = 0; i < OTHERS; i++)
        (void)submit(w, 5);
    struct rv_call *call = close_circuit(w, "bank:80");
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(call->u.operate.task.value, oldest.value);
    assert_int_equal(call->u.operate.step, 1);
    world_restart(w, 1); /* the steps are known again from their rows */
    call = close_circuit(w, "bank:80");
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(call->u.operate.step, 1);
}

/* What is suspended waits for nothing: it is not looked through, however many there are. */
static void what_is_suspended_is_not_searched(void **state)
{
    enum { SUSPENDED = 150 };
    struct world *w = *state;
    for (int i = 0; i < SUSPENDED; i++) {
        struct rv_task_id task = submit(w, 5);
        parks_at(w, world_take(w, "inventory", "i1"), RV_STR("bank:80"), 60000);
        assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    }
    world_pass(w, 10);
    struct rv_task_id last = submit(w, 5);
    parks_at(w, world_take(w, "inventory", "i1"), RV_STR("bank:80"), 60000);
    struct rv_call *call = close_circuit(w, "bank:80");
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(call->u.operate.task.value, last.value);
}

/* The agent has named more targets than it has circuits: what waits for one of the others is tried
 * all the same. */
static void a_target_without_a_circuit_is_tried(void **state)
{
    struct world *w = *state;
    char target[32];
    struct rv_task_id last = {0};
    for (int i = 0; i <= RV_AGENT_CIRCUITS_MAX; i++) {
        last = submit(w, 5);
        snprintf(target, sizeof target, "shop-%d:80", i);
        parks_at(w, world_take(w, "inventory", "i1"), rv_str_of(target), 60000);
    }
    struct rv_call *call = close_circuit(w, target);
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(call->u.operate.task.value, last.value);
    assert_true(rv_str_is(call->u.operate.target, target));
    assert_int_equal(world_take(w, "inventory", "i1").step.task.value, last.value);
}

static void a_circuit_that_is_closed_is_named(void **state)
{
    struct world *w = *state;
    (void)submit(w, 5);
    (void)submit(w, 5);
    assert_int_equal(close_circuit(w, NULL)->err, RV_ERR_REFUSED);
    struct rv_assignment first = world_take(w, "inventory", "i1");
    struct rv_assignment second = world_take(w, "inventory", "i1");
    parks(w, first, 60000);
    assert_int_equal(close_circuit(w, "shop:81")->err, RV_ERR_REFUSED);
    parks_at(w, second, RV_STR("bank:80"), 60000);
    struct rv_call *call = close_circuit(w, NULL);
    assert_int_equal(call->err, RV_ERR_REFUSED);
    assert_non_null(memmem(call->message.at, call->message.len, "shop:80", 7));
    assert_non_null(memmem(call->message.at, call->message.len, "bank:80", 7));
    call = close_circuit(w, "bank:80");
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(call->u.operate.task.value, second.step.task.value);
    struct rv_assignment probe = world_take(w, "inventory", "i1");
    assert_int_equal(probe.step.task.value, second.step.task.value);
    /* It failed: the circuit stays open, and may be tried again. */
    parks_at(w, probe, RV_STR("bank:80"), 60000);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 0);
    assert_int_equal(close_circuit(w, "bank:80")->err, RV_OK);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 1);
}

static void a_circuit_that_nobody_waits_for_is_over(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = submit(w, 5);
    parks(w, world_take(w, "inventory", "i1"), 60000);
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    struct rv_call *call = close_circuit(w, "shop:80");
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(call->u.operate.step, 0);
    assert_int_equal(close_circuit(w, "shop:80")->err, RV_ERR_REFUSED);
}

/* ---- what each attempt has done ---- */

static void each_attempt_has_its_own_error_and_effect(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("dead_targets/each-attempt-has-its-own-error-and-e-2"));
    struct rv_task_id task = world_submit(w, "twice", "{}");
    assert_int_equal(world_fail(w, world_take(w, "inventory", "i1"), true, RV_EFFECT_UNKNOWN), 200);
    world_pass(w, 60000);
    assert_int_equal(world_fail(w, world_take(w, "inventory", "i1"), true, RV_EFFECT_NONE), 200);
    const struct rv_step *step = world_step(w, task, 1);
    assert_int_equal(step->effect, RV_EFFECT_UNKNOWN);
    assert_int_equal(step->attempt_effect, RV_EFFECT_NONE);
    world_pass(w, 60000);
    (void)world_take(w, "inventory", "i1");
    struct rv_call *call = world_call(w, RV_CALL_ATTEMPTS);
    call->u.list.task = task;
    call->u.list.limit = 10;
    assert_true(world_run(w, call));
    assert_int_equal(call->u.list.count, 2);
    assert_int_equal(call->u.list.attempts[0].effect, RV_EFFECT_UNKNOWN);
    assert_int_equal(call->u.list.attempts[1].effect, RV_EFFECT_NONE);
    assert_null(rv_attempt_error(&call->u.list.steps[0]).at);
}

/* ---- the place in line ---- */

static struct rv_task_id takes(struct world *w)
{
    return world_take(w, "inventory", "i1").step.task;
}

static void a_parked_step_keeps_its_place_in_line(void **state)
{
    struct world *w = *state;
    struct rv_task_id first = submit(w, 5);
    struct rv_task_id second = submit(w, 5);
    struct rv_task_id urgent = submit(w, 9);
    struct rv_assignment requests[3];
    for (int i = 0; i < 3; i++)
        requests[i] = world_take(w, "inventory", "i1");
    for (int i = 0; i < 3; i++)
        parks(w, requests[i], 5000);
    world_pass(w, 100);
    struct rv_task_id newer = submit(w, 5);
    parks(w, world_take(w, "inventory", "i1"), 5000);
    world_pass(w, 5000);
    struct rv_assignment probe = world_take(w, "inventory", "i1");
    assert_int_equal(probe.step.task.value, urgent.value);
    assert_int_equal(world_done(w, probe, "1"), 200);
    struct rv_task_id newest = submit(w, 5);
    assert_int_equal(takes(w).value, first.value);
    assert_int_equal(takes(w).value, second.value);
    assert_int_equal(takes(w).value, newer.value);
    assert_int_equal(takes(w).value, newest.value);
}

static void a_refused_batch_keeps_the_line(void **state)
{
    struct world *w = *state;
    struct rv_task_id low = submit(w, 0);
    struct rv_task_id first = submit(w, 5);
    world_pass(w, 10);
    struct rv_task_id second = submit(w, 5);
    struct rv_call *poll = world_call(w, RV_CALL_POLL);
    poll->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("boot-1"),
                                    .poll = RV_STR("refused"),
                                    .max = 8};
    world_pass(w, 3000);
    faults.fail_commits = 1;
    assert_true(world_run(w, poll));
    assert_int_equal(poll->err, RV_ERR_BUSY);
    struct rv_task_id third = submit(w, 5);
    assert_int_equal(takes(w).value, first.value);
    assert_int_equal(takes(w).value, second.value);
    assert_int_equal(takes(w).value, third.value);
    assert_int_equal(takes(w).value, low.value);
}

static void what_was_not_delivered_keeps_its_place(void **state)
{
    struct world *w = *state;
    struct rv_task_id first = submit(w, 5);
    struct rv_call *poll = world_poll(w, "inventory", "i1", 1);
    assert_int_equal(poll->u.poll.requests_count, 1);
    world_pass(w, 1000);
    (void)submit(w, 5);
    world_pass(w, 1000);
    world_undelivered(w, poll);
    assert_int_equal(takes(w).value, first.value);
}

/* However many attempts its step has had, a reply to an older one is looked up by its token. */
static void a_reply_reads_one_attempt_at_most(void **state)
{
    enum { ATTEMPTS = 300 };
    struct world *w = *state;
    (void)submit(w, 5);
    struct rv_assignment first = world_take(w, "inventory", "i1");
    parks(w, first, 1000);
    struct rv_assignment last = first;
    for (int i = 1; i < ATTEMPTS; i++) {
        world_pass(w, 1000);
        last = world_take(w, "inventory", "i1");
        parks(w, last, 1000);
    }
    uint64_t read = faults.attempts_read;
    struct rv_assignment unknown = last;
    unknown.token = first.token + 1;
    assert_int_equal(world_fail(w, unknown, true, RV_EFFECT_NONE), 409);
    assert_int_equal(faults.attempts_read, read);
    assert_int_equal(world_done(w, first, "{}"), 410);
    assert_int_equal(faults.attempts_read, read + 1);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(every_task_comes_to_the_end_of_its_ladder),
        SCENARIO(a_circuit_that_opens_after_an_effect_is_a_failure),
        SCENARIO(a_lost_probe_is_followed_by_one_other),
        SCENARIO(a_target_that_answers_lets_all_go),
        SCENARIO(the_alert_names_the_target),
        SCENARIO(a_remote_word_has_a_bound),
        SCENARIO(a_circuit_has_a_bound),
        SCENARIO(retry_goes_through_an_open_circuit),
        SCENARIO(retry_takes_a_step_out_of_the_circuits_line),
        SCENARIO(a_closed_circuit_is_tried_by_who_waits_longest),
        SCENARIO(who_waits_longest_is_found_among_many),
        SCENARIO(what_is_suspended_is_not_searched),
        SCENARIO(a_target_without_a_circuit_is_tried),
        SCENARIO(a_circuit_that_is_closed_is_named),
        SCENARIO(a_circuit_that_nobody_waits_for_is_over),
        SCENARIO(each_attempt_has_its_own_error_and_effect),
        SCENARIO(a_parked_step_keeps_its_place_in_line),
        SCENARIO(a_refused_batch_keeps_the_line),
        SCENARIO(what_was_not_delivered_keeps_its_place),
        SCENARIO(a_reply_reads_one_attempt_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
