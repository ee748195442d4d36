/* The undo of a task waits for an agent that is gone: an operator is called, and what he finds out
 * about the step is taken (RULES 6). */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/limits.h"
#include "base/time.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define UNDO(agent)                                                                                \
    "compensate: [{undo: {call: " agent ", with: {key: '${ $undo.idempotencyKey }'}}}]"

/* Its agent may still run for a week. */
static const char *const week =
    DOCUMENT("week") "do:\n"
                     "  - a: {call: one, metadata: {reeve: {completeBy: P7D, lease: PT10S, " UNDO(
                         "one") "}}}\n";

static const char *const hour =
    DOCUMENT("hour") "do:\n"
                     "  - a: {call: one, metadata: {reeve: {completeBy: P1D, lease: PT1H, " UNDO(
                         "one") "}}}\n";

/* More steps without anything to undo than one decision takes off the chain. */
#define N1 "  - s%u: {call: two, metadata: {reeve: {compensate: none}}}\n"
enum { NONE_STEPS = 40 };

static void publish_many(struct world *w, const char *head, const char *first)
{
    static char text[8192];
    int len = snprintf(text, sizeof text,
                       "%sdo:\n  - a: {call: one, metadata: {reeve: {completeBy: P1D, lease: PT1H, "
                       "%s}}}\n",
                       head, first);
    for (unsigned i = 0; i <= NONE_STEPS; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, N1, i);
    world_publish(w, text);
}

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    world_publish(&w, week);
    world_publish(&w, hour);
    world_publish(&w, workflow_file("gone/pivot"));
    world_publish(&w, workflow_file("gone/settled"));
    publish_many(&w, DOCUMENT("many"), UNDO("one"));
    publish_many(&w, DOCUMENT("none"), "compensate: none");
    *state = &w;
    return 0;
}

static void done(struct world *w, const char *agent)
{
    assert_int_equal(world_done(w, world_take(w, agent, "i1"), "{\"n\":1}"), 200);
}

static void assert_refused(const struct rv_call *call, const char *part)
{
    assert_int_equal(call->err, RV_ERR_REFUSED);
    assert_non_null(memmem(call->message.at, call->message.len, part, strlen(part)));
}

/* The agent that has the step dies, and then the task is cancelled: complete-by is a week away. */
static struct rv_assignment cancelled_while_gone(struct world *w, struct rv_task_id *ret_task)
{
    *ret_task = world_submit(w, "week", "{}");
    struct rv_assignment request = world_take(w, "one", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, *ret_task), RV_OK);
    world_assert_cures(w, *ret_task, "abandon");
    assert_refused(world_settle_step(w, *ret_task, 1, RV_FINDING_NOTHING, NULL), "may still run");
    assert_int_equal(world_count_open_alerts(w), 0);
    world_pass(w, 20000); /* its lease is over */
    world_assert_cures(w, *ret_task,
                       "settle-done:1 settle-undone:1 settle-nothing-happened:1 abandon");
    world_pass(w, RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_count_alerts(w, *ret_task, RV_ALERT_NO_AGENT), 1);
    assert_int_equal(world_count_open_alerts(w), 1);
    world_assert_cures(w, *ret_task,
                       "settle-done:1 settle-undone:1 settle-nothing-happened:1 abandon");
    return request;
}

static void a_revoked_step_whose_agent_is_gone_is_found_done(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment request = cancelled_while_gone(w, &task);
    assert_int_equal(world_settle_step(w, task, 1, RV_FINDING_DONE, "{\"n\":1}")->err, RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_step(w, task, 1, "cancelled");
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_LOST);
    assert_int_equal(world_done(w, request, "{\"late\":1}"), 410);
    assert_int_equal(world_count_late(w, task), 1);
    done(w, "one");
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 1)->undone);
}

static void a_revoked_step_whose_agent_is_gone_did_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment request = cancelled_while_gone(w, &task);
    assert_int_equal(world_settle_step(w, task, 1, RV_FINDING_NOTHING, NULL)->err, RV_OK);
    assert_state(w, task, "cancelled");
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_int_equal(world_done(w, request, "{\"late\":1}"), 410);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_LATE_DONE), 1);
}

static void a_revoked_step_whose_agent_is_gone_was_undone_by_hand(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    (void)cancelled_while_gone(w, &task);
    assert_int_equal(world_settle_step(w, task, 1, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    assert_state(w, task, "cancelled");
    assert_true(world_step(w, task, 1)->undone);
    assert_int_equal(world_poll(w, "one", "i2", 8)->u.poll.requests_count, 0);
}

/* Nothing was undone yet, and nothing can be: the finding alone leads on behind the pivot. */
static void a_revoked_pivot_whose_agent_is_gone_goes_on_behind_it(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "pivot", "{}");
    done(w, "one");
    struct rv_assignment request = world_take(w, "one", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_int_equal(world_explained(w, task)->reason, RV_WAIT_PIVOT);
    world_pass(w, 20000 + RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_explained(w, task)->reason, RV_WAIT_GONE_PIVOT);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_DONE, "{\"n\":1}")->err, RV_OK);
    assert_state(w, task, "processing");
    assert_step(w, task, 2, "skipped");
    assert_int_equal(world_task(w, task)->direction, RV_FORWARD);
    assert_int_equal(world_task(w, task)->pivot, 2);
    assert_false(world_task(w, task)->cancelling);
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_ERR_REFUSED);
    assert_int_equal(world_done(w, request, "{\"late\":1}"), 410);
    assert_int_equal(world_poll(w, "one", "i2", 8)->u.poll.requests_count, 0);
    done(w, "three");
    assert_state(w, task, "processed");
    assert_null(world_task(w, task)->error.at);
}

static void a_revoked_pivot_whose_agent_is_gone_did_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "pivot", "{}");
    done(w, "one");
    (void)world_take(w, "one", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    world_pass(w, 20000);
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_NOTHING, NULL)->err, RV_OK);
    done(w, "one");
    assert_state(w, task, "compensated");
}

/* The operator ends the undo of a step by the word that nothing happened, and its service says
 * otherwise: what the alert says is what the explanation says. */
static void a_late_done_that_contradicts_an_operator_is_explained(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "week", "{}");
    struct rv_assignment request = world_take(w, "one", "i1");
    world_fail(w, request, false, RV_EFFECT_UNKNOWN);
    assert_state(w, task, "compensating");
    assert_int_equal(world_settle_step(w, task, 1, RV_FINDING_NOTHING, NULL)->err, RV_OK);
    assert_state(w, task, "compensated");
    assert_int_equal(world_explained(w, task)->effects[0].how, RV_EFFECT_IS_UNDONE);
    assert_int_equal(world_done(w, request, "{}"), 410);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_LATE_DONE), 1);
    assert_int_equal(world_explained(w, task)->effects[0].how, RV_EFFECT_STAYS);
    assert_int_equal(world_explained(w, task)->effects_total[RV_EFFECT_IS_UNDONE], 0);
}

/* It lives after all: its answer counts for the undo, and the alert is over. */
static void a_revoked_step_whose_agent_answers_calls_no_more(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment request = cancelled_while_gone(w, &task);
    assert_int_equal(world_done(w, request, "{}"), 410);
    assert_int_equal(world_count_open_alerts(w), 0);
    done(w, "one");
    assert_state(w, task, "compensated");
}

/* Its lease is longer than an operator is kept waiting. It may be at work until then: nothing is
 * undone before, and only what would be undone is taken. */
static void a_silent_agent_with_a_long_lease_calls_after_five_minutes(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "hour", "{}");
    struct rv_assignment request = world_take(w, "one", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    world_pass(w, RV_NO_AGENT_ALERT_MS - 1000);
    assert_int_equal(world_count_open_alerts(w), 0);
    world_assert_cures(w, task, "abandon");
    struct rv_call *refused = world_settle_step(w, task, 1, RV_FINDING_DONE, "{}");
    assert_refused(refused, "may still run");
    assert_null(memmem(refused->message.at, refused->message.len, "suspend", 7));
    world_pass(w, 2000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
    world_assert_cures(w, task, "settle-done:1 abandon");
    assert_refused(world_settle_step(w, task, 1, RV_FINDING_NOTHING, NULL), "may still run");
    assert_int_equal(world_settle_step(w, task, 1, RV_FINDING_DONE, "{}")->err, RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_int_equal(world_poll(w, "one", "i2", 8)->u.poll.requests_count, 0);
    assert_int_equal(world_explained(w, task)->reason, RV_WAIT_QUIET);
    assert_int_equal(world_done(w, request, "{}"), 410);
    world_pass(w, 3600000);
    done(w, "one");
    assert_state(w, task, "compensated");
}

/* The agent that has the step, in another process. */
static void starts_again(struct world *w)
{
    struct rv_call *poll = world_call(w, RV_CALL_POLL);
    poll->u.poll = (struct rv_poll){.agent = RV_STR("one"),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("the next one"),
                                    .poll = RV_STR("its first")};
    assert_true(world_run(w, poll));
    assert_int_equal(poll->err, RV_OK);
}

static void undo_done(struct world *w, struct rv_task_id task)
{
    assert_int_equal(world_done(w, world_take(w, "one", "i2"), "{}"), 200);
    assert_state(w, task, "compensated");
}

/* Its agent was started again: the attempt counts as lost, and may be at work until its lease ends.
 */
static void lost_with_a_long_lease(struct world *w, struct rv_task_id *ret_task)
{
    *ret_task = world_submit(w, "hour", "{}");
    (void)world_take(w, "one", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, *ret_task), RV_OK);
    world_pass(w, 60000);
    starts_again(w);
    assert_int_equal(world_step(w, *ret_task, 1)->attempt_state, RV_ATTEMPT_LOST);
    assert_int_equal(world_explained(w, *ret_task)->reason, RV_WAIT_QUIET);
    world_pass(w, RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_count_alerts(w, *ret_task, RV_ALERT_NO_AGENT), 1);
    assert_int_equal(world_count_open_alerts(w), 1);
    world_assert_cures(w, *ret_task, "settle-done:1 abandon");
    assert_refused(world_settle_step(w, *ret_task, 1, RV_FINDING_NOTHING, NULL), "may still run");
    assert_refused(world_settle_step(w, *ret_task, 1, RV_FINDING_UNDONE, NULL), "may still run");
}

static void a_restarted_agent_with_a_long_lease_calls_too(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    lost_with_a_long_lease(w, &task);
    world_pass(w, 3600000 - RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
    undo_done(w, task);
}

/* The finding goes to the compensation, which begins no sooner for it. */
static void a_lost_attempt_with_a_long_lease_is_found_done(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    lost_with_a_long_lease(w, &task);
    assert_int_equal(world_settle_step(w, task, 1, RV_FINDING_DONE, "{\"n\":1}")->err, RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_int_equal(world_step(w, task, 1)->effect, RV_EFFECT_DONE);
    assert_string_equal(world_step(w, task, 1)->output.at, "{\"n\":1}");
    assert_refused(world_settle_step(w, task, 1, RV_FINDING_DONE, "{}"), "is being undone");
    world_pass(w, 2 * RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_poll(w, "one", "i2", 8)->u.poll.requests_count, 0);
    assert_int_equal(world_count_open_alerts(w), 0);
    world_pass(w, 3600000);
    undo_done(w, task);
}

/* Its resume closes the alerts of before. */
static void an_undo_that_waits_calls_again_after_its_resume(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    lost_with_a_long_lease(w, &task);
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    assert_int_equal(world_count_open_alerts(w), 1);
    world_assert_cures(w, task, "settle-done:1 abandon");
}

/* The attempt was lost before the undo began. */
static void an_undo_that_begins_after_a_lost_attempt_calls_too(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "hour", "{}");
    (void)world_take(w, "one", "i1");
    starts_again(w);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    world_pass(w, RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_count_open_alerts(w), 1);
    world_assert_cures(w, task, "settle-done:1 abandon");
    world_pass(w, 3600000 - RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* The operator has settled the step at the head of the chain when he knew of no wait. */
static void an_undo_that_waits_at_a_step_settled_before_calls_too(void **state)
{
    struct world *w = *state;
    for (int by_operator = 0; by_operator < 2; by_operator++) {
        struct rv_task_id task = world_submit(w, "settled", "{}");
        const char *instance = by_operator ? "j1" : "i1";
        (void)world_take(w, "one", instance);
        struct rv_call *poll = world_call(w, RV_CALL_POLL);
        poll->u.poll = (struct rv_poll){.agent = RV_STR("one"),
                                        .instance = rv_str_of(instance),
                                        .boot = by_operator ? RV_STR("third") : RV_STR("second"),
                                        .poll = by_operator ? RV_STR("p3") : RV_STR("p2")};
        assert_true(world_run(w, poll));
        assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_LOST);
        world_pass(w, 5000);
        assert_int_equal(world_done(w, world_take(w, "one", "i2"), "{}"), 200);
        struct rv_assignment b = world_take(w, "two", "i1");
        if (by_operator) {
            assert_int_equal(world_fail(w, b, false, RV_EFFECT_NONE), 200);
            assert_state(w, task, "error");
            assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_DONE, "{}")->err, RV_OK);
        } else {
            assert_int_equal(world_done(w, b, "{}"), 200);
        }
        assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
        assert_state(w, task, "compensating");
        assert_int_equal(world_explained(w, task)->reason, RV_WAIT_QUIET);
        world_pass(w, RV_NO_AGENT_ALERT_MS);
        if (world_count_alerts(w, task, RV_ALERT_NO_AGENT) != 1)
            fail_msg("settled by an operator: %d, alerts: %zu", by_operator,
                     (size_t)world_count_alerts(w, task, RV_ALERT_NO_AGENT));
    }
}

/* The alerts of before are closed by a resume, and by a resubmission: it still waits. */
static void a_silent_revoked_attempt_calls_again_after_a_resume(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    (void)cancelled_while_gone(w, &task);
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    assert_state(w, task, "compensating");
    world_pass(w, 2 * RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_REVOKED);
    assert_int_equal(world_count_open_alerts(w), 1);
}

/* The lease of the first step's lost attempt has most of its hour left, and many steps are done. */
static struct rv_task_id cancelled_after_many(struct world *w, const char *workflow)
{
    struct rv_task_id task = world_submit(w, workflow, "{}");
    (void)world_take(w, "one", "i1");
    starts_again(w);
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_LOST);
    world_pass(w, 5000);
    assert_int_equal(world_done(w, world_take(w, "one", "i2"), "{}"), 200);
    for (unsigned i = 0; i < NONE_STEPS; i++)
        assert_int_equal(world_done(w, world_take(w, "two", "i1"), "{}"), 200);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    return task;
}

/* What needs no undo is passed at once, however many there are, and then the wait calls. */
static void an_undo_in_pieces_that_waits_calls_too(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = cancelled_after_many(w, "many");
    world_pass(w, 1);
    assert_state(w, task, "compensating");
    assert_int_equal(world_task(w, task)->undo_head, 1);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
    int64_t quiet_at = world_task(w, task)->quiet_at;
    assert_int_equal(world_explained(w, task)->next_at, quiet_at);
    world_restart(w, 1000);
    world_pass(w, RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
    assert_int_equal(world_explained(w, task)->next_at, quiet_at);
    world_pass(w, 3600000);
    undo_done(w, task);
    assert_int_equal(world_count_open_alerts(w), 0);
}

static void an_undo_in_pieces_that_has_nothing_to_wait_for_ends_at_once(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = cancelled_after_many(w, "none");
    world_pass(w, 1);
    assert_false(rv_task_state_open(world_task(w, task)->state));
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* What is over before an operator would be called calls nobody. */
static void an_undo_that_waits_for_the_rest_of_a_lease_calls_nobody(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "hour", "{}");
    (void)world_take(w, "one", "i1");
    world_pass(w, 3600000 - RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    starts_again(w);
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_LOST);
    world_pass(w, RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 0);
    undo_done(w, task);
}

static void after_a_long_lease_any_finding_is_taken(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "hour", "{}");
    (void)world_take(w, "one", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    world_pass(w, 3600000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
    world_assert_cures(w, task, "settle-done:1 settle-undone:1 settle-nothing-happened:1 abandon");
    assert_int_equal(world_settle_step(w, task, 1, RV_FINDING_NOTHING, NULL)->err, RV_OK);
    assert_state(w, task, "cancelled");
}

/* Nobody could be heard of while the server was absent. */
static void an_absence_calls_nobody_for_a_revoked_attempt(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "week", "{}");
    (void)world_take(w, "one", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    world_restart(w, RV_NO_AGENT_ALERT_MS);
    world_pass(w, 5000);
    assert_int_equal(world_count_open_alerts(w), 0);
    world_pass(w, RV_NO_AGENT_ALERT_MS);
    assert_int_equal(world_count_open_alerts(w), 1);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_revoked_step_whose_agent_is_gone_is_found_done),
        SCENARIO(a_revoked_step_whose_agent_is_gone_did_nothing),
        SCENARIO(a_revoked_step_whose_agent_is_gone_was_undone_by_hand),
        SCENARIO(a_revoked_pivot_whose_agent_is_gone_goes_on_behind_it),
        SCENARIO(a_revoked_pivot_whose_agent_is_gone_did_nothing),
        SCENARIO(a_late_done_that_contradicts_an_operator_is_explained),
        SCENARIO(a_revoked_step_whose_agent_answers_calls_no_more),
        SCENARIO(a_silent_agent_with_a_long_lease_calls_after_five_minutes),
        SCENARIO(a_restarted_agent_with_a_long_lease_calls_too),
        SCENARIO(a_lost_attempt_with_a_long_lease_is_found_done),
        SCENARIO(an_undo_that_waits_calls_again_after_its_resume),
        SCENARIO(an_undo_that_begins_after_a_lost_attempt_calls_too),
        SCENARIO(an_undo_that_waits_for_the_rest_of_a_lease_calls_nobody),
        SCENARIO(an_undo_that_waits_at_a_step_settled_before_calls_too),
        SCENARIO(an_undo_in_pieces_that_waits_calls_too),
        SCENARIO(an_undo_in_pieces_that_has_nothing_to_wait_for_ends_at_once),
        SCENARIO(a_silent_revoked_attempt_calls_again_after_a_resume),
        SCENARIO(after_a_long_lease_any_finding_is_taken),
        SCENARIO(an_absence_calls_nobody_for_a_revoked_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
