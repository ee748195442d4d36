/* The failure ladder, rule by rule (RULES 5), and replies that count or do not (RULES 3). */
#include "../lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void a_task_runs_to_its_end(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{\"sku\":\"A-1\"}");
    assert_state(w, task, "pending");
    struct rv_assignment reserve = world_take(w, "inventory", "i1");
    assert_string_equal(reserve.input.at, "{\"sku\":\"A-1\"}");
    assert_string_equal(reserve.reference.at, "/do/0/reserve");
    assert_state(w, task, "processing");
    assert_int_equal(world_done(w, reserve, "{\"ok\":true}"), 200);
    struct rv_assignment charge = world_take(w, "payment", "p1");
    assert_string_equal(charge.input.at, "{\"amount\":12}");
    assert_true(charge.fence > reserve.fence);
    assert_int_equal(world_done(w, charge, "{\"charged\":12}"), 200);
    assert_state(w, task, "processed");
    assert_string_equal(world_task(w, task)->output.at, "{\"charged\":12}");
}

static void the_same_reply_again_is_200_and_changes_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment reserve = world_take(w, "inventory", "i1");
    assert_int_equal(world_done(w, reserve, "1"), 200);
    int64_t revision = world_task(w, task)->revision;
    assert_int_equal(world_done(w, reserve, "1"), 200);
    assert_int_equal(world_task(w, task)->revision, revision);
    assert_string_equal(world_step(w, task, 1)->output.at, "1");
}

/* What got a 200 is on record; so a second answer that says something else does not get one. */
static void another_reply_to_the_same_attempt_is_410_and_goes_to_the_ledger(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment reserve = world_take(w, "inventory", "i1");
    assert_int_equal(world_done(w, reserve, "1"), 200);
    assert_int_equal(world_done(w, reserve, "2"), 410);
    assert_int_equal(world_fail(w, reserve, false, RV_EFFECT_UNKNOWN), 410);
    assert_string_equal(world_step(w, task, 1)->output.at, "1");
    struct rv_assignment charge = world_take(w, "payment", "p1");
    assert_int_equal(world_fail(w, charge, true, RV_EFFECT_NONE), 200);
    assert_int_equal(world_fail(w, charge, true, RV_EFFECT_NONE), 200);
    assert_int_equal(world_done(w, charge, "1"), 410);
    assert_step(w, task, 2, "pending");
    assert_int_equal(world_step(w, task, 2)->effect, RV_EFFECT_DONE);
    assert_int_equal(world_count_late(w, task), 3);
}

static void a_token_that_was_never_issued_is_409(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment reserve = world_take(w, "inventory", "i1");
    struct rv_assignment forged = reserve;
    forged.token ^= 1;
    assert_int_equal(world_done(w, forged, "1"), 409);
    assert_int_equal(world_count_late(w, task), 0);
    forged = reserve;
    forged.step.number = 77;
    assert_int_equal(world_done(w, forged, "1"), 409);
    assert_step(w, task, 1, "processing");
}

static void expiry_makes_a_new_attempt_and_the_late_reply_goes_to_the_ledger(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    world_pass(w, 10000);
    assert_step(w, task, 1, "pending");
    assert_int_equal(world_step(w, task, 1)->failure_count, 1);
    assert_int_equal(world_done(w, first, "\"late\""), 410);
    assert_int_equal(world_count_late(w, task), 1);
    world_pass(w, 1300); /* the delay of one second, and its jitter */
    struct rv_assignment second = world_take(w, "inventory", "i2");
    assert_int_equal(second.attempt, 2);
    assert_int_not_equal(second.token, first.token);
    assert_true(second.fence > first.fence);
    assert_int_equal(world_done(w, first, "\"late again\""), 410);
    assert_int_equal(world_done(w, second, "\"good\""), 200);
    assert_string_equal(world_step(w, task, 1)->output.at, "\"good\"");
}

static void a_reply_at_complete_by_is_late_before_the_supervisor_has_looked(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    w->now += 10000;
    w->mono += 10000;
    assert_int_equal(world_done(w, first, "1"), 410);
    assert_step(w, task, 1, "pending");
}

static void cool_down_then_undo_when_all_rounds_are_used_up(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    world_fail(w, world_take(w, "payment", "p1"), true, RV_EFFECT_NONE);
    world_pass(w, 1300);
    world_fail(w, world_take(w, "payment", "p1"), true, RV_EFFECT_NONE);
    const struct rv_step *charge = world_step(w, task, 2);
    assert_int_equal(charge->round, 1);
    assert_true(charge->ready_at >= w->now + 60000);
    world_pass(w, 59000);
    assert_int_equal(world_poll(w, "payment", "p1", 1)->u.poll.requests_count, 0);
    world_pass(w, 8000);
    world_fail(w, world_take(w, "payment", "p1"), true, RV_EFFECT_NONE);
    world_pass(w, 1300);
    world_fail(w, world_take(w, "payment", "p1"), true, RV_EFFECT_NONE);
    assert_state(w, task, "compensating");
    struct rv_assignment release = world_take(w, "inventory", "i1");
    assert_int_equal(world_done(w, release, "{}"), 200);
    assert_state(w, task, "compensated");
    assert_int_equal(world_poll(w, "payment", "p1", 1)->u.poll.requests_count, 0);
}

static void a_permanent_failure_undoes_at_once(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{\"r\":1}"), 200);
    world_fail(w, world_take(w, "payment", "p1"), false, RV_EFFECT_NONE);
    struct rv_assignment release = world_take(w, "inventory", "i1");
    char expected[200], step[RV_STEP_TEXT_BYTES];
    snprintf(expected, sizeof expected,
             "{\"key\":\"%s\",\"outcome\":\"completed\",\"was\":{\"r\":1}}",
             rv_step_text((struct rv_step_id){task, 1}, step).at);
    assert_string_equal(release.input.at, expected);
    assert_int_equal(world_done(w, release, "{}"), 200);
    assert_state(w, task, "compensated");
}

static void an_open_circuit_burns_no_failure_and_sends_one_probe(void **state)
{
    struct world *w = *state;
    struct rv_task_id a = world_submit(w, "order", "{}");
    struct rv_task_id b = world_submit(w, "order", "{}");
    struct rv_reply open = {.error = RV_STR("{\"type\":\"circuit-open\"}"),
                            .transient = true,
                            .circuit_open = true,
                            .retry_after_ms = 5000};
    assert_int_equal(world_reply(w, world_take(w, "inventory", "i1"), open), 200);
    assert_int_equal(world_step(w, a, 1)->failure_count, 0);
    assert_step(w, a, 1, "pending");
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 0);
    world_pass(w, 5000);
    struct rv_call *poll = world_poll(w, "inventory", "i1", 8);
    assert_int_equal(poll->u.poll.requests_count, 1);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 0);
    assert_int_equal(world_done(w, poll->u.poll.requests[0], "1"), 200);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 1);
    assert_int_equal(world_step(w, b, 1)->failure_count, 0);
}

static void a_step_that_nobody_takes_raises_an_alert_and_stays(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    world_pass(w, 4 * 60 * 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 0);
    world_pass(w, 2 * 60 * 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_state(w, task, "pending");
    world_pass(w, 60 * 60 * 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
    struct rv_assignment request = world_take(w, "inventory", "i1");
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_int_equal(world_done(w, request, "1"), 200);
}

static void the_servers_absence_is_nobodys_failure(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    world_absent(w, 60000);
    const struct rv_step *step = world_step(w, task, 1);
    assert_int_equal(step->failure_count, 0);
    assert_int_equal(step->effect, RV_EFFECT_UNKNOWN);
    assert_true(step->ready_at <= w->now + 10000);
    assert_int_equal(world_done(w, first, "1"), 410);
    world_pass(w, 10000);
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
}

static void downtime_is_an_absence_and_a_restart_resumes(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_task_id other = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    world_restart(w, 60000);
    assert_int_equal(world_step(w, task, 1)->failure_count, 0);
    world_pass(w, 10000);
    struct rv_call *poll = world_poll(w, "inventory", "i1", 8);
    assert_int_equal(poll->u.poll.requests_count, 2);
    assert_int_equal(world_done(w, poll->u.poll.requests[0], "1"), 200);
    assert_int_equal(world_done(w, poll->u.poll.requests[1], "1"), 200);
    poll = world_poll(w, "payment", "p1", 8);
    assert_int_equal(poll->u.poll.requests_count, 2);
    assert_int_equal(world_done(w, poll->u.poll.requests[0], "1"), 200);
    assert_int_equal(world_done(w, poll->u.poll.requests[1], "1"), 200);
    assert_state(w, task, "processed");
    assert_state(w, other, "processed");
}

/* An agent that was cut off gets as long after the start as any other. */
static void downtime_does_not_count_as_waiting_for_an_agent(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    world_pass(w, 60 * 1000);
    world_restart(w, 20 * 60 * 1000); /* over in the downtime */
    world_pass(w, 4 * 60 * 1000 + 30 * 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 0);
    world_restart(w, 28 * 1000); /* over right after the start */
    world_pass(w, 4 * 60 * 1000 + 50 * 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 0);
    world_pass(w, 20 * 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
}

/* The first start after the downtime dies before it has decided anything. */
static void downtime_before_a_start_that_failed_is_an_absence_too(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    world_restart_stumbling(w, 60000);
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_EXPIRED);
    assert_int_equal(world_step(w, task, 1)->failure_count, 0);
}

static void a_short_restart_keeps_the_open_attempt(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    world_restart(w, 2000);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 0);
    assert_int_equal(world_done(w, first, "1"), 200);
    assert_step(w, task, 1, "processed");
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, world_setup_order, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_task_runs_to_its_end),
        SCENARIO(the_same_reply_again_is_200_and_changes_nothing),
        SCENARIO(another_reply_to_the_same_attempt_is_410_and_goes_to_the_ledger),
        SCENARIO(a_token_that_was_never_issued_is_409),
        SCENARIO(expiry_makes_a_new_attempt_and_the_late_reply_goes_to_the_ledger),
        SCENARIO(a_reply_at_complete_by_is_late_before_the_supervisor_has_looked),
        SCENARIO(cool_down_then_undo_when_all_rounds_are_used_up),
        SCENARIO(a_permanent_failure_undoes_at_once),
        SCENARIO(an_open_circuit_burns_no_failure_and_sends_one_probe),
        SCENARIO(a_step_that_nobody_takes_raises_an_alert_and_stays),
        SCENARIO(the_servers_absence_is_nobodys_failure),
        SCENARIO(downtime_is_an_absence_and_a_restart_resumes),
        SCENARIO(downtime_does_not_count_as_waiting_for_an_agent),
        SCENARIO(downtime_before_a_start_that_failed_is_an_absence_too),
        SCENARIO(a_short_restart_keeps_the_open_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
