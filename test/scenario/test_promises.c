/* Promises about time, order and memory that no other scenario is about: how long a repetition
 * waits, who goes first, how long a key is kept, who is woken (RULES 1, 5). */
#include "../lib/world.h"
#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PRIORITY_LOW = 0, PRIORITY_HIGH = 9, PRIORITY_MS = 10000, GRACE_MS = 1000 };

static int open_world(void **state)
{
    return world_setup(state, NULL, WORLD_FILES("order", "promises/climbs"));
}

static int64_t wait_of(struct world *w, struct rv_task_id task)
{
    const struct rv_step *step = world_step(w, task, 1);
    assert_string_equal(rv_step_state_text(step->state), "pending");
    return step->ready_at - w->now;
}

static void fail_once(struct world *w)
{
    assert_int_equal(world_fail(w, world_take(w, "slow", "i1"), true, RV_EFFECT_NONE), 200);
}

/* The delay doubles up to the cool-down, with up to a quarter on top; a round ends with the
 * cool-down, with up to a tenth on top; then all begins again. */
static void the_ladder_waits_longer_with_each_rung(void **state)
{
    static const int64_t rungs[] = {1000, 2000, 4000, 5000, 5000};
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "climbs", "{}");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof rungs / sizeof *rungs; i++) {
            fail_once(w);
            int64_t wait = wait_of(w, task);
            assert_in_range(wait, rungs[i], rungs[i] + rungs[i] / 4);
            world_pass(w, wait - 1);
            assert_int_equal(world_poll(w, "slow", "i1", 1)->u.poll.requests_count, 0);
            world_pass(w, 1);
        }
        fail_once(w);
        if (round == 1)
            break;
        int64_t wait = wait_of(w, task);
        assert_in_range(wait, 5000, 5500);
        world_pass(w, wait);
    }
    assert_state(w, task, "error");
}

static int64_t wait_after(struct world *w, struct rv_task_id task, int64_t retry_after_ms)
{
    struct rv_reply reply = {.error = RV_STR("{\"type\":\"busy\",\"status\":503}"),
                             .transient = true,
                             .retry_after_ms = retry_after_ms};
    assert_int_equal(world_reply(w, world_take(w, "slow", "i1"), reply), 200);
    return wait_of(w, task);
}

static void an_agent_that_asks_for_more_time_gets_it(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "climbs", "{}");
    assert_int_equal(wait_after(w, task, 30000), 30000);
    assert_int_equal(world_step(w, task, 1)->failure_count, 1);
    world_pass(w, 30000);
    /* One that asks for less waits as the ladder says. */
    assert_in_range(wait_after(w, task, 500), 2000, 2500);
}

static struct rv_submission *submit(struct world *w, uint8_t priority, const char *key,
                                    const char *hash)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
    *item = (struct rv_submission){
        .space = RV_STR("shop"), .name = RV_STR("climbs"), .priority = priority};
    if (key != NULL) {
        item->key = rv_str_of(key);
        item->body_hash = rv_str_of(hash);
    }
    call->u.submit.items = item;
    call->u.submit.count = 1;
    assert_true(world_run(w, call));
    return item;
}

/* A step of a priority is worth ten seconds of waiting: nobody waits for ever. */
static void who_has_waited_long_goes_before_the_important(void **state)
{
    struct world *w = *state;
    const int64_t worth = (PRIORITY_HIGH - PRIORITY_LOW) * PRIORITY_MS;
    for (int longer = 0; longer < 2; longer++) {
        struct rv_task_id low = submit(w, PRIORITY_LOW, NULL, NULL)->task;
        world_pass(w, longer ? worth + 1 : worth - 1);
        struct rv_task_id high = submit(w, PRIORITY_HIGH, NULL, NULL)->task;
        struct rv_assignment first = world_take(w, "slow", "i1");
        struct rv_assignment second = world_take(w, "slow", "i1");
        assert_int_equal(first.step.task.value, longer ? low.value : high.value);
        assert_int_equal(second.step.task.value, longer ? high.value : low.value);
        assert_int_equal(world_done(w, first, "{}"), 200);
        assert_int_equal(world_done(w, second, "{}"), 200);
    }
}

static void a_key_is_known_after_thirty_days(void **state)
{
    struct world *w = *state;
    struct rv_submission *first = submit(w, 5, "order-1", "aaaa");
    struct rv_task_id task = first->task;
    assert_false(first->known);
    assert_int_equal(world_done(w, world_take(w, "slow", "i1"), "{}"), 200);
    assert_state(w, task, "processed");
    world_absent(w, 30 * RV_DAY_MS);
    world_restart(w, 1000);
    struct rv_submission *again = submit(w, 5, "order-1", "aaaa");
    assert_int_equal(again->err, RV_OK);
    assert_true(again->known);
    assert_int_equal(again->task.value, task.value);
    assert_int_equal(submit(w, 5, "order-1", "bbbb")->err, RV_ERR_DUPLICATE);
    assert_int_equal(world_poll(w, "slow", "i1", 1)->u.poll.requests_count, 0);
}

static struct rv_call *poll_parked(struct world *w, const char *instance, const char *poll)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){.agent = RV_STR("slow"),
                                    .instance = rv_str_of(instance),
                                    .boot = RV_STR("boot-1"),
                                    .poll = rv_str_of(poll),
                                    .max = 8,
                                    .wait_ms = 20000,
                                    .confirms = true};
    (void)world_run(w, call);
    return call;
}

static void a_cancel_wakes_the_poll_of_its_instance(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "climbs", "{}");
    struct rv_assignment request = world_take(w, "slow", "i1");
    struct rv_call *other = poll_parked(w, "i2", "p2");
    struct rv_call *confirming = world_call(w, RV_CALL_POLL);
    confirming->u.poll = other->u.poll;
    confirming->u.poll.instance = RV_STR("i1");
    confirming->u.poll.poll = RV_STR("p1");
    confirming->u.poll.confirms = false;
    assert_false(world_run(w, confirming));
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_true(world_finished(confirming));
    assert_int_equal(confirming->u.poll.requests_count, 0);
    assert_int_equal(confirming->u.poll.cancels_count, 1);
    assert_int_equal(confirming->u.poll.cancels[0].step.task.value, task.value);
    assert_true(confirming->u.poll.cancels[0].token == request.token);
    assert_false(world_finished(other));
}

/* An instance with two polls out may send the next one while an answer is still on its way: that
 * answer counts as lost only when it is a second old. */
static void overlapping_polls_have_a_grace(void **state)
{
    struct world *w = *state;
    struct rv_call *first = poll_parked(w, "i1", "p1");
    (void)poll_parked(w, "i1", "p2");
    struct rv_task_id task = world_submit(w, "climbs", "{}");
    assert_true(world_finished(first));
    assert_int_equal(first->u.poll.requests_count, 1);
    world_pass(w, GRACE_MS - 1);
    (void)poll_parked(w, "i1", "p3");
    assert_int_equal(world_step(w, task, 1)->attempt, 1);
    assert_step(w, task, 1, "processing");
    world_pass(w, 1);
    (void)poll_parked(w, "i1", "p4");
    assert_int_equal(world_step(w, task, 1)->attempt, 2);
    assert_int_equal(world_step(w, task, 1)->failure_count, 0);
    assert_int_equal(world_done(w, first->u.poll.requests[0], "{}"), 410);
}

static struct rv_call *submission(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    call->u.submit.items = RV_NEW(&call->arena, struct rv_submission);
    call->u.submit.items[0] = (struct rv_submission){
        .space = RV_STR("shop"), .name = RV_STR("order"), .input = RV_STR("{}")};
    call->u.submit.count = 1;
    return call;
}

/* The walk over the open rows after a start ends, though each batch begins a task: until then
 * nothing is handed out. */
static void a_start_hands_out_while_tasks_are_submitted(void **state)
{
    enum { BATCHES = 6 };
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    world_restart_unlooked(w, 100);
    struct rv_call *poll = world_call(w, RV_CALL_POLL);
    poll->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("b1"),
                                    .poll = RV_STR("p1"),
                                    .max = 1};
    for (int i = 0; i < BATCHES && !world_finished(poll); i++) {
        struct rv_call *calls[] = {submission(w), poll};
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, i == 0 ? 2 : 1, w->mono),
                         RV_OK);
        assert_int_equal(calls[0]->u.submit.items[0].err, RV_OK);
        w->now += 5;
        w->mono += 5;
    }
    assert_true(world_finished(poll));
    assert_int_equal(poll->u.poll.requests_count, 1);
    assert_int_equal(poll->u.poll.requests[0].step.task.value, task.value);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(the_ladder_waits_longer_with_each_rung),
        SCENARIO(an_agent_that_asks_for_more_time_gets_it),
        SCENARIO(who_has_waited_long_goes_before_the_important),
        SCENARIO(a_key_is_known_after_thirty_days),
        SCENARIO(a_cancel_wakes_the_poll_of_its_instance),
        SCENARIO(overlapping_polls_have_a_grace),
        SCENARIO(a_start_hands_out_while_tasks_are_submitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
