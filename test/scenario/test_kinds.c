/* What many kinds of agents cost a batch: it looks at those where something has changed. */
#include "../lib/world.h"
#include "dispatch/agents.h"
#include "dispatch/held.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "scheduler/batch/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { KINDS = 60, NAME_MAX_BYTES = 16, TEXT_MAX_BYTES = 256, WAIT_MS = 20000 };

static const char *name_of(char *name, int i)
{
    snprintf(name, NAME_MAX_BYTES, "kind%d", i);
    return name;
}

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    for (int i = 0; i < KINDS; i++) {
        char name[NAME_MAX_BYTES], yaml[TEXT_MAX_BYTES];
        name_of(name, i);
        snprintf(yaml, sizeof yaml,
                 "document: {dsl: '1.0.3', namespace: shop, name: %s, version: '1.0.0'}\n"
                 "do:\n"
                 "  - ask: {call: %s}\n",
                 name, name);
        world_publish(&w, yaml);
    }
    *state = &w;
    return 0;
}

/* Kinds that the next batch looks at. */
static size_t looked_at(const struct world *w)
{
    size_t count = 0;
    for (const struct agent_kind *k = w->scheduler->agents.stirring; k != NULL; k = k->stirs_next)
        count++;
    return count;
}

static struct rv_call *poll_waits(struct world *w, const char *agent)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){.agent = rv_str_of(agent),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("boot-1"),
                                    .poll = RV_STR("p1"),
                                    .max = 1,
                                    .wait_ms = WAIT_MS};
    assert_false(world_run(w, call));
    return call;
}

static void steps_that_no_agent_asks_for_cost_a_batch_nothing(void **state)
{
    struct world *w = *state;
    char name[NAME_MAX_BYTES];
    for (int i = 0; i < KINDS; i++) {
        (void)world_submit(w, name_of(name, i), "{}");
        assert_true(looked_at(w) <= 1);
    }
    for (int i = 0; i < KINDS; i++)
        (void)world_take(w, name_of(name, i), "i1");
    assert_true(looked_at(w) <= 1);
}

static void polls_that_wait_cost_a_batch_nothing(void **state)
{
    struct world *w = *state;
    char name[NAME_MAX_BYTES];
    struct rv_call *polls[KINDS];
    for (int i = 0; i < KINDS; i++) {
        polls[i] = poll_waits(w, name_of(name, i));
        assert_true(looked_at(w) <= 1);
    }
    for (int i = 0; i < KINDS; i++) {
        (void)world_submit(w, name_of(name, i), "{}");
        assert_true(world_finished(polls[i]));
        assert_int_equal(polls[i]->u.poll.requests_count, 1);
        assert_true(looked_at(w) <= 1);
    }
}

/* A kind whose limit holds something back is looked at until it does no more. */
static void a_limit_that_holds_is_looked_at_until_it_lets(void **state)
{
    struct world *w = *state;
    struct rv_call *pause = world_call(w, RV_CALL_LIMIT);
    pause->u.limit = (struct rv_call_limit){.sets_paused = true,
                                            .row = {.agent = RV_STR("kind7"), .paused = true}};
    assert_true(world_run(w, pause));
    struct rv_call *poll = poll_waits(w, "kind7");
    (void)world_submit(w, "kind7", "{}");
    assert_false(world_finished(poll));
    assert_int_equal(looked_at(w), 1);
    struct rv_call *again = world_call(w, RV_CALL_LIMIT);
    again->u.limit = (struct rv_call_limit){.sets_paused = true, .row.agent = RV_STR("kind7")};
    assert_true(world_run(w, again));
    world_pass(w, 1);
    assert_true(world_finished(poll));
    assert_int_equal(poll->u.poll.requests_count, 1);
    world_pass(w, 1);
    assert_true(looked_at(w) <= 1);
}

static struct rv_call *confirming(struct world *w, const char *boot, int number)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    struct rv_str *before = RV_NEW(&call->arena, struct rv_str);
    *before = rv_arena_printf(&call->arena, "p%d", number - 1);
    call->u.poll = (struct rv_poll){.agent = RV_STR("kind3"),
                                    .instance = RV_STR("i1"),
                                    .boot = rv_str_of(boot),
                                    .max = 1,
                                    .confirms = true,
                                    .confirm = before,
                                    .confirm_count = number > 0};
    call->u.poll.poll = rv_arena_printf(&call->arena, "p%d", number);
    assert_true(world_run(w, call));
    return call;
}

static const struct agent_instance *instance_of(const struct world *w)
{
    const struct agents *agents = &w->scheduler->agents;
    const struct agent_kind *kind = agents_kind_find(agents, RV_STR("kind3"));
    return agents_instance_find(agents, kind, RV_STR("i1"));
}

static size_t unconfirmed(const struct agent_instance *instance)
{
    size_t count = 0;
    for (const struct delivery *d = instance->unconfirmed; d != NULL; d = d->next)
        count++;
    return count;
}

/* A poll looks at what it has not confirmed, and at what another boot id has taken. */
static void confirmed_attempts_cost_a_poll_nothing(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < KINDS; i++) {
        (void)world_submit(w, "kind3", "{}");
        assert_int_equal(confirming(w, "boot-1", i)->u.poll.requests_count, 1);
        assert_int_equal(instance_of(w)->held_count, i + 1);
        assert_int_equal(unconfirmed(instance_of(w)), 1);
        assert_int_equal(instance_of(w)->held_before, 0);
    }
    /* The newest answer was lost; then the process that holds all others is gone. */
    struct rv_call *poll = confirming(w, "boot-1", KINDS - 1);
    assert_int_equal(poll->u.poll.requests_count, 1);
    (void)confirming(w, "boot-2", KINDS + 1);
    assert_int_equal(instance_of(w)->held_before, 0);
    assert_true(instance_of(w)->held_count <= 1);
    assert_true(unconfirmed(instance_of(w)) <= 1);
}

static void a_count_that_disagrees_with_its_list_is_noticed(void **state)
{
    struct world *w = *state;
    (void)poll_waits(w, "inventory");
    assert_null(rv_scheduler_broken(w->scheduler));
    struct agent_kind *kind = agents_kind_find(&w->scheduler->agents, RV_STR("inventory"));
    kind->parked_count++;
    assert_string_equal(rv_scheduler_broken(w->scheduler),
                        "a kind has a correct count of its parked polls");
    kind->parked_count--;
    w->scheduler->agents.circuits_count++;
    assert_string_equal(rv_scheduler_broken(w->scheduler), "the count of circuits is correct");
    w->scheduler->agents.circuits_count--;
    assert_null(rv_scheduler_broken(w->scheduler));
}

#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENARIO(steps_that_no_agent_asks_for_cost_a_batch_nothing),
        SCENARIO(polls_that_wait_cost_a_batch_nothing),
        SCENARIO(confirmed_attempts_cost_a_poll_nothing),
        SCENARIO(a_limit_that_holds_is_looked_at_until_it_lets),
        SCENARIO(a_count_that_disagrees_with_its_list_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
