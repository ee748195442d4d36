/* What an operator allows the agents of one name (so many at a time, so many a second, none), and
 * which of several polls takes a step: priority with ageing, health, load. */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/bucket.h"
#include "base/prng.h"
#include "dispatch/agents.h"
#include "dispatch/health.h"
#include "dispatch/kind.h"
#include "dispatch/ready.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { MANY = 40 };

static void submit_many(struct world *w, int count)
{
    for (int i = 0; i < count; i++)
        (void)world_submit(w, "order", "{}");
}

static struct rv_call_limit at_a_time(uint32_t count)
{
    return (struct rv_call_limit){.sets_concurrent = true, .row.concurrent = count};
}

static struct rv_call_limit a_second(uint32_t count)
{
    return (struct rv_call_limit){.sets_rate = true, .row.per_second = count};
}

static struct rv_call_limit pause(bool paused)
{
    return (struct rv_call_limit){.sets_paused = true, .row.paused = paused};
}

/* A poll that waits. */
static struct rv_call *park(struct world *w, const char *instance, uint32_t max)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = rv_str_of(instance),
                                    .boot = RV_STR("boot-1"),
                                    .max = max,
                                    .wait_ms = 20000};
    call->u.poll.poll = rv_arena_printf(&call->arena, "park-%llu",
                                        (unsigned long long)call->serial);
    assert_false(world_run(w, call));
    return call;
}

static size_t handed_out(struct world *w, uint32_t max)
{
    return world_poll(w, "inventory", "i1", max)->u.poll.requests_count;
}

static struct rv_agent_kind_row kind_row(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_AGENTS);
    assert_true(world_run(w, call));
    for (size_t i = 0; i < call->u.agents.kinds_count; i++)
        if (rv_str_is(call->u.agents.kinds[i].agent, "inventory"))
            return call->u.agents.kinds[i];
    fail_msg("no agent \"inventory\" is known");
    return (struct rv_agent_kind_row){.instances = 0};
}

/* ---- limits ---- */

static void no_more_are_open_than_may_be(void **state)
{
    struct world *w = *state;
    submit_many(w, 5);
    world_limit(w, at_a_time(2));
    struct rv_call *poll = world_poll(w, "inventory", "i1", 8);
    assert_int_equal(poll->u.poll.requests_count, 2);
    assert_int_equal(world_poll(w, "inventory", "i2", 8)->u.poll.requests_count, 0);
    assert_int_equal(kind_row(w).open_attempts, 2);
    assert_int_equal(world_done(w, poll->u.poll.requests[0], "{}"), 200);
    assert_int_equal(world_poll(w, "inventory", "i2", 8)->u.poll.requests_count, 1);
    world_limit(w, at_a_time(0));
    assert_int_equal(world_poll(w, "inventory", "i2", 8)->u.poll.requests_count, 2);
}

static void a_limit_below_what_is_open_waits_for_that(void **state)
{
    struct world *w = *state;
    submit_many(w, 6);
    struct rv_call *poll = world_poll(w, "inventory", "i1", 4);
    assert_int_equal(poll->u.poll.requests_count, 4);
    world_limit(w, at_a_time(2));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_done(w, poll->u.poll.requests[i], "{}"), 200);
        assert_int_equal(handed_out(w, 8), 0);
    }
    assert_int_equal(world_done(w, poll->u.poll.requests[2], "{}"), 200);
    assert_int_equal(handed_out(w, 8), 1);
}

static void a_parked_poll_hears_of_the_end_of_an_attempt(void **state)
{
    struct world *w = *state;
    submit_many(w, 2);
    world_limit(w, at_a_time(1));
    struct rv_assignment first = world_take(w, "inventory", "i1");
    struct rv_call *parked = park(w, "i2", 1);
    assert_int_equal(world_done(w, first, "{}"), 200);
    world_settle(w);
    assert_true(world_finished(parked));
    assert_int_equal(parked->u.poll.requests_count, 1);
}

/* However they are asked for, in no window more begin than its length and a second allow. */
static void no_more_begin_than_the_rate_allows(void **state)
{
    enum { RATE = 7, ROUNDS = 60, BEGUN_MAX = 400 };
    struct world *w = *state;
    struct rv_prng dice;
    int64_t begun[BEGUN_MAX];
    size_t count = 0;
    rv_prng_init(&dice, 7);
    world_limit(w, a_second(RATE));
    submit_many(w, MANY);
    for (int round = 0; round < ROUNDS && count < MANY; round++) {
        size_t got = handed_out(w, 1 + (uint32_t)(rv_prng_next(&dice) % 9));
        for (size_t i = 0; i < got; i++)
            begun[count++] = w->now;
        world_pass(w, (int64_t)(rv_prng_next(&dice) % 400));
        if (round % 20 == 19)
            world_restart(w, 5); /* which forgets the bucket */
    }
    assert_int_equal(count, MANY);
    for (size_t from = 0; from < count; from++)
        for (size_t to = from; to < count; to++)
            assert_in_range((to - from + 1) * 1000, 0,
                            (size_t)(begun[to] - begun[from]) * RATE + RATE * 1000);
}

static void a_parked_poll_gets_its_step_when_the_bucket_has_a_token(void **state)
{
    struct world *w = *state;
    world_limit(w, a_second(4));
    submit_many(w, 2);
    struct rv_call *parked = park(w, "i1", 1);
    world_pass(w, 249);
    assert_false(world_finished(parked));
    world_pass(w, 1);
    assert_true(world_finished(parked));
    assert_int_equal(parked->u.poll.requests_count, 1);
}

static void nothing_is_handed_out_while_paused(void **state)
{
    struct world *w = *state;
    submit_many(w, 2);
    struct rv_assignment first = world_take(w, "inventory", "i1");
    world_limit(w, pause(true));
    struct rv_call *parked = park(w, "i2", 8);
    world_pass(w, 3000);
    assert_false(world_finished(parked));
    assert_true(kind_row(w).limit.paused);
    assert_true(rv_str_is(kind_row(w).limit.by, "me"));
    assert_int_equal(world_done(w, first, "{}"), 200); /* what runs goes on */
    world_limit(w, pause(false));
    world_settle(w);
    assert_true(world_finished(parked));
    assert_int_equal(parked->u.poll.requests_count, 1);
}

/* Who is called to a step that nobody takes is told why. */
static void an_alert_says_that_the_agent_is_paused(void **state)
{
    static const char resume[] = "`reeve agents resume inventory`";
    struct world *w = *state;
    submit_many(w, 1);
    world_limit(w, pause(true));
    world_pass(w, RV_NO_AGENT_ALERT_MS + 1000);
    struct rv_call *call = world_call(w, RV_CALL_ALERTS);
    call->u.list.open_only = true;
    call->u.list.limit = 10;
    assert_true(world_run(w, call));
    assert_int_equal(call->u.list.count, 1);
    struct rv_str message = call->u.list.alerts[0].message;
    assert_int_equal(call->u.list.alerts[0].kind, RV_ALERT_NO_AGENT);
    assert_non_null(memmem(message.at, message.len, resume, sizeof resume - 1));
}

static void limits_survive_a_restart(void **state)
{
    struct world *w = *state;
    submit_many(w, 4);
    world_limit(w, at_a_time(3));
    world_limit(w, pause(true));
    world_restart(w, 100);
    assert_int_equal(handed_out(w, 8), 0);
    assert_int_equal(kind_row(w).limit.concurrent, 3);
    world_limit(w, pause(false));
    assert_int_equal(handed_out(w, 8), 3);
    world_restart(w, 100); /* which must know the three that are open */
    world_settle(w);
    assert_int_equal(world_poll(w, "inventory", "i2", 8)->u.poll.requests_count, 0);
}

/* What the first walk has found is known even if the change that it came to is refused, and the
 * batch after it, too. */
static void what_is_open_is_known_after_refused_batches(void **state)
{
    (void)state;
    static struct world w;
    struct store_faults faults = {.fail_with = RV_ERR_BUSY};
    world_open_faulty(&w, &faults);
    world_publish(&w, workflow_file("order"));
    submit_many(&w, 2);
    world_limit(&w, at_a_time(1));
    struct rv_assignment request = world_take(&w, "inventory", "i1");
    world_restart_unlooked(&w, 100);
    faults.drop_at = faults.changes + 1;
    faults.pass_commits = faults.fail_commits = 1;
    (void)world_fail(&w, request, true, RV_EFFECT_NONE); /* it hears that the store is busy */
    assert_int_equal(faults.drops, 1);
    assert_int_equal(faults.fail_commits, 0);
    assert_int_equal(world_poll(&w, "inventory", "i2", 1)->u.poll.requests_count, 0);
    assert_int_equal(world_done(&w, request, "{}"), 200);
    assert_int_equal(world_poll(&w, "inventory", "i2", 1)->u.poll.requests_count, 1);
    world_close(&w);
}

/* Each goes by what the one before has left. */
static void changes_of_one_batch_all_count(void **state)
{
    struct world *w = *state;
    struct rv_call *calls[] = {world_limit_call(w, at_a_time(3)), world_limit_call(w, a_second(9)),
                               world_limit_call(w, pause(true))};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, 3, w->mono), RV_OK);
    world_settle(w);
    for (int i = 0; i < 3; i++)
        assert_true(world_finished(calls[i]));
    struct rv_agent_limit limit = kind_row(w).limit;
    assert_int_equal(limit.concurrent, 3);
    assert_int_equal(limit.per_second, 9);
    assert_true(limit.paused);
}

static void an_agent_with_limits_is_not_forgotten(void **state)
{
    struct world *w = *state;
    world_limit(w, pause(true));
    world_pass(w, 30 * 60 * 1000);
    assert_true(kind_row(w).limit.paused);
    world_limit(w, pause(false));
    assert_false(kind_row(w).limit.paused);
}

/* ---- which poll ---- */

static void steps_go_away_from_who_fails(void **state)
{
    struct world *w = *state;
    submit_many(w, 3);
    for (int i = 0; i < 3; i++)
        world_fail(w, world_take(w, "inventory", "i1"), true, RV_EFFECT_NONE);
    struct rv_call *ill = park(w, "i1", 1);
    struct rv_call *well = park(w, "i2", 1);
    submit_many(w, 1);
    world_settle(w);
    assert_true(world_finished(well));
    assert_false(world_finished(ill));
    /* Alone it gets what there is. */
    submit_many(w, 1);
    world_settle(w);
    assert_true(world_finished(ill));
    assert_int_equal(ill->u.poll.requests_count, 1);
}

/* Equal again to one that never failed, it is the first in line. */
static void who_failed_is_tried_again_after_a_while(void **state)
{
    struct world *w = *state;
    submit_many(w, 3);
    for (int i = 0; i < 3; i++)
        world_fail(w, world_take(w, "inventory", "i1"), true, RV_EFFECT_NONE);
    world_pass(w, 2000); /* the retries come due, and are taken */
    assert_int_equal(world_poll(w, "inventory", "i2", 8)->u.poll.requests_count, 3);
    world_pass(w, 3 * HEALTH_HALF_MS);
    (void)world_poll(w, "inventory", "i2", 8); /* which takes what was to be done again */
    struct rv_call *failed = park(w, "i1", 1);
    struct rv_call *well = park(w, "i3", 1);
    submit_many(w, 1);
    world_settle(w);
    assert_true(world_finished(failed));
    assert_false(world_finished(well));
}

static void steps_go_to_who_holds_the_least_of_what_he_could(void **state)
{
    struct world *w = *state;
    submit_many(w, 3);
    assert_int_equal(handed_out(w, 3), 3);
    struct rv_call *busy = park(w, "i1", 5);
    struct rv_call *idle = park(w, "i2", 5);
    submit_many(w, 1);
    world_settle(w);
    assert_true(world_finished(idle));
    assert_false(world_finished(busy));
}

static void what_comes_at_once_is_shared(void **state)
{
    struct world *w = *state;
    struct rv_call *a = park(w, "i1", 8);
    struct rv_call *b = park(w, "i2", 8);
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, 8);
    for (int i = 0; i < 8; i++)
        items[i] = (struct rv_submission){.space = RV_STR("shop"), .name = RV_STR("order")};
    call->u.submit.items = items;
    call->u.submit.count = 8;
    call->u.submit.batch = true;
    assert_true(world_run(w, call));
    assert_int_equal(a->u.poll.requests_count, 4);
    assert_int_equal(b->u.poll.requests_count, 4);
}

/* ---- priority ---- */

/* Whatever priorities come, and however fast: a step is passed only by those that became ready
 * within nine levels' worth of waiting after it. */
static void nothing_starves(void **state)
{
    enum { STEPS = 3000 };
    (void)state;
    uint64_t seed = (uint64_t)time(NULL);
    print_message("# seed %llu\n", (unsigned long long)seed);
    struct rv_prng dice;
    struct agents agents;
    static int64_t ready_at[STEPS + 1];
    static bool taken[STEPS + 1];
    rv_prng_init(&dice, seed);
    agents_init(&agents, (struct rv_hash_key){1, 2}, 0);
    int64_t now = 1000000, mean = 1 + (int64_t)(rv_prng_next(&dice) % 400);
    uint32_t arrived = 0, oldest = 1, out = 0;
    struct agent_kind *kind = agents_kind(&agents, RV_STR("inventory"));
    while (out < STEPS) {
        now += (int64_t)(rv_prng_next(&dice) % (uint64_t)(2 * mean));
        if (arrived < STEPS && (rv_prng_next(&dice) % 3 != 0 || out == arrived)) {
            struct rv_task task = {.id = {++arrived},
                                   .priority = rv_prng_next(&dice) % 4 == 0 ? 0 : 9};
            struct rv_step step = {.number = 1, .agent = RV_STR("inventory"), .ready_at = now};
            ready_at[arrived] = now;
            assert_int_equal(agents_ready(&agents, &task, &step), RV_OK);
            continue;
        }
        struct rv_step_id id;
        struct ready_place place;
        assert_true(agents_ready_take(kind, &id, &place));
        assert_int_equal(place.since, ready_at[id.task.value]);
        taken[id.task.value] = true;
        out++;
        while (oldest <= arrived && taken[oldest])
            oldest++;
        if (oldest <= arrived)
            assert_true(ready_at[id.task.value] <= ready_at[oldest] + 9 * RV_PRIORITY_WORTH_MS);
    }
    agents_done(&agents);
}

int main(void)
{
#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup_order, world_teardown)
    const struct CMUnitTest tests[] = {
        WORLD(no_more_are_open_than_may_be),
        WORLD(a_limit_below_what_is_open_waits_for_that),
        WORLD(a_parked_poll_hears_of_the_end_of_an_attempt),
        WORLD(no_more_begin_than_the_rate_allows),
        WORLD(a_parked_poll_gets_its_step_when_the_bucket_has_a_token),
        WORLD(nothing_is_handed_out_while_paused),
        WORLD(an_alert_says_that_the_agent_is_paused),
        WORLD(limits_survive_a_restart),
        cmocka_unit_test(what_is_open_is_known_after_refused_batches),
        WORLD(changes_of_one_batch_all_count),
        WORLD(an_agent_with_limits_is_not_forgotten),
        WORLD(steps_go_away_from_who_fails),
        WORLD(who_failed_is_tried_again_after_a_while),
        WORLD(steps_go_to_who_holds_the_least_of_what_he_could),
        WORLD(what_comes_at_once_is_shared),
        cmocka_unit_test(nothing_starves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
