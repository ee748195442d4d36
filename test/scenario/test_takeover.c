/* Several servers on one store: who takes over what a dead server leaves, and how hungry servers
 * and limits divide the work. The world acts at one server, others are aside of it. */
#include "../lib/pair.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "core/agent_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A server is dead for the others after its lease and a margin. */
enum { LEASE_MS = 5000, DEAD_MS = LEASE_MS + 1000, SCAN_MS = 1000, WAIT_MS = 60000 };
enum { AGENTS = 20, PER_BATCH = 16 };

/* Of these the world acts at the first, and the others are aside. */
static struct pair second, third;

/* What all servers ask of the store, and what it answers. */
static struct {
    bool one_each;               /* each server finds one orphan, and no more */
    const struct rv_store *fed;  /* ... as this one has */
    size_t orphan_looks;         /* loads that have asked for orphans */
    size_t cuts;                 /* so many of these loads end before the orphans */
    const struct rv_store *by;   /* the server whose steals count; NULL: none */
    size_t steals;               /* agents for which it has asked */
    size_t steals_most;          /* the most steps for which it has asked at once */
    size_t stolen;               /* tasks that were claimed for it so */
    unsigned asked[AGENTS];      /* so often for the agents "kind-a", "kind-b", ... */
    size_t commits;              /* that the store has written */
    const struct rv_store *weak; /* the server whose next renewal is refused; NULL: none */
    size_t renewals;             /* of leases that were tried */
} seen;

static struct rv_store_ops ops;
static const struct rv_store_ops *memory_ops;

static void steals_see(const struct rv_wants *wants)
{
    for (size_t i = 0; i < wants->steals_count; i++) {
        const struct rv_steal *steal = &wants->steals[i];
        seen.steals++;
        seen.steals_most = steal->most > seen.steals_most ? steal->most : seen.steals_most;
        if (rv_str_begins(steal->agent, RV_STR("kind-")))
            seen.asked[steal->agent.at[steal->agent.len - 1] - 'a']++;
    }
}

static enum rv_err begin(struct rv_store *store, struct rv_wants *wants, int64_t *ret_now)
{
    if (wants == NULL)
        return memory_ops->begin(store, wants, ret_now);
    bool cut = wants->orphans_max > 0 && seen.cuts > 0;
    seen.orphan_looks += wants->orphans_max > 0;
    if (seen.one_each && wants->orphans_max > 0)
        wants->orphans_max = store != seen.fed;
    if (cut)
        wants->orphans_max = 0;
    if (store == seen.by)
        steals_see(wants);
    enum rv_err err = memory_ops->begin(store, wants, ret_now);
    for (size_t i = 0; err == RV_OK && i < wants->tasks_count; i++) {
        seen.stolen += store == seen.by && wants->tasks[i].how == RV_LOADED_STOLEN;
        if (wants->tasks[i].how == RV_LOADED_ORPHAN)
            seen.fed = store;
    }
    if (cut) {
        seen.cuts--;
        wants->cut = true;
    }
    return err;
}

static enum rv_err commit(struct rv_store *store, struct rv_batch *batch)
{
    seen.renewals += batch->renew;
    if (batch->renew && store == seen.weak) {
        seen.weak = NULL;
        memory_ops->rollback(store);
        return RV_ERR_BUSY;
    }
    enum rv_err err = memory_ops->commit(store, batch);
    seen.commits += err == RV_OK;
    return err;
}

static enum rv_err open_shared(struct world *w, struct rv_store **ret_store)
{
    assert_int_equal(pair_share(w, ret_store), RV_OK);
    memory_ops = pair_wrap(*ret_store, &ops);
    ops.begin = begin;
    ops.commit = commit;
    return RV_OK;
}

static void server_add(struct pair *pair, struct world *w, const char *boot)
{
    pair_store(pair, w);
    pair->store->ops = &ops;
    pair_start(pair, (struct rv_scheduler_options){.boot = rv_str_of(boot)});
}

static int open_three(void **state)
{
    static struct world w;
    memset(&seen, 0, sizeof seen);
    world_open_on(&w, (struct world_ground){.open = open_shared});
    world_publish(&w, workflow_file("order"));
    server_add(&second, &w, "second");
    server_add(&third, &w, "third");
    *state = &w;
    return 0;
}

/* kill -9 of the server. */
static void die(struct pair *pair)
{
    pair_close(pair);
    pair->scheduler = NULL;
}

static int close_three(void **state)
{
    if (second.scheduler != NULL)
        pair_close(&second);
    if (third.scheduler != NULL)
        pair_close(&third);
    return world_teardown(state);
}

/* All servers live that have not died. */
static void pass(struct world *w, int64_t ms)
{
    for (int64_t end = w->mono + ms; w->mono < end;) {
        world_pass(w, PAIR_STEP_MS);
        if (second.scheduler != NULL)
            assert_int_equal(pair_batch(&second, NULL, 0), RV_OK);
        if (third.scheduler != NULL)
            assert_int_equal(pair_batch(&third, NULL, 0), RV_OK);
    }
}

static struct rv_task_id submit_at(struct pair *pair)
{
    pair_swap(pair);
    struct rv_task_id task = world_submit(pair->world, "order", "{}");
    pair_swap(pair);
    return task;
}

/* A task of that server, of which an agent has the first step. */
static struct rv_task_id begin_at(struct pair *pair)
{
    struct rv_task_id task = submit_at(pair);
    pair_swap(pair);
    (void)world_take(pair->world, "inventory", "i1");
    pair_swap(pair);
    return task;
}

/* A poll that waits. */
static struct rv_call *poll_of(struct world *w, const char *agent, uint32_t max)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){
        .agent = rv_arena_str(&call->arena, rv_str_of(agent)),
        .instance = RV_STR("waits"),
        .boot = RV_STR("b1"),
        .poll = rv_arena_printf(&call->arena, "poll-%llu", (unsigned long long)call->serial),
        .max = max,
        .wait_ms = WAIT_MS};
    return call;
}

static struct rv_call *park_at(struct pair *pair, const char *agent, uint32_t max)
{
    struct rv_call *call = poll_of(pair->world, agent, max), *poll = call;
    assert_int_equal(pair_batch(pair, &call, 1), RV_OK);
    return poll;
}

static uint8_t owner_of(struct world *w, struct rv_task_id task)
{
    return world_task(w, task)->locked_by;
}

/* ---- what a dead server leaves ---- */

/* The column undo_head names a step that is not the task's. */
static void damage(struct rv_task *row, int64_t unused)
{
    (void)unused;
    row->undo_head = row->last_number + 1;
}

static void what_cannot_be_read_is_taken_over_once(void **state)
{
    struct world *w = *state;
    uint8_t own = pair_number_of(w->scheduler);
    enum { SECONDS = 10 };
    pass(w, 3 * LEASE_MS);
    struct rv_task_id task = submit_at(&second);
    pair_swap(&second);
    world_edit(w, task, damage, 0);
    pair_swap(&second);
    assert_int_equal(owner_of(w, task), pair_number(&second));
    die(&second);
    die(&third);
    for (int64_t end = w->mono + DEAD_MS + 2 * SCAN_MS; w->mono < end && owner_of(w, task) != own;)
        world_pass(w, PAIR_STEP_MS);
    assert_int_equal(owner_of(w, task), own);
    int64_t revision = world_task(w, task)->revision;
    size_t commits = seen.commits;
    world_pass(w, SECONDS * SCAN_MS);
    assert_in_range(world_task(w, task)->revision, revision, revision + 1); /* it may be parked */
    /* The lease and the role are renewed, the first batch may look for more. */
    assert_in_range(seen.commits - commits, 1, SECONDS + 1);
}

static const struct rv_step *step_of(struct world *w, struct rv_task_id task)
{
    return world_step(w, task, world_task(w, task)->open[0]);
}

/* The first to take over some tasks deposes their owner, the second only finds the others. */
static void each_who_takes_over_excuses_what_ended_meanwhile(void **state)
{
    struct world *w = *state;
    pass(w, 3 * LEASE_MS);
    struct rv_task_id tasks[] = {begin_at(&third), begin_at(&third)};
    while (step_of(w, tasks[0])->lease_until - world_now(w) > 2 * PAIR_STEP_MS)
        pass(w, PAIR_STEP_MS);
    assert_int_equal(step_of(w, tasks[1])->attempt_state, RV_ATTEMPT_OPEN);
    uint8_t dead = pair_number(&third);
    die(&third);
    seen.one_each = true;
    pass(w, DEAD_MS + 2 * SCAN_MS);
    assert_int_not_equal(owner_of(w, tasks[0]), owner_of(w, tasks[1]));
    for (size_t i = 0; i < 2; i++) {
        assert_int_not_equal(owner_of(w, tasks[i]), dead);
        assert_int_equal(step_of(w, tasks[i])->attempt_state, RV_ATTEMPT_EXPIRED);
        assert_int_equal(step_of(w, tasks[i])->failure_count, 0);
    }
}

static void a_takeover_that_was_cut_goes_on_at_once(void **state)
{
    struct world *w = *state;
    pass(w, 3 * LEASE_MS);
    seen.cuts = 3;
    seen.orphan_looks = 0;
    for (int64_t end = w->mono + 2 * SCAN_MS; w->mono < end && seen.orphan_looks == 0;)
        world_pass(w, PAIR_STEP_MS);
    assert_int_equal(seen.cuts, 0);
    assert_int_equal(seen.orphan_looks, 4);
}

static void a_lease_that_was_not_written_is_renewed_at_once(void **state)
{
    struct world *w = *state;
    pass(w, 3 * LEASE_MS);
    enum rv_err err = RV_OK;
    seen.weak = second.store;
    for (int64_t end = w->mono + LEASE_MS; w->mono < end && err == RV_OK;) {
        world_pass(w, PAIR_STEP_MS);
        err = pair_batch(&second, NULL, 0);
    }
    assert_int_equal(err, RV_ERR_BUSY);
    assert_null(seen.weak);
    size_t renewals = seen.renewals;
    assert_int_equal(pair_batch(&second, NULL, 0), RV_OK);
    assert_int_equal(seen.renewals, renewals + 1);
    assert_int_equal(pair_batch(&second, NULL, 0), RV_OK);
    assert_int_equal(seen.renewals, renewals + 1);
}

/* ---- what hungry servers ask for ---- */

static void each_of_many_hungry_agents_is_asked_for(void **state)
{
    struct world *w = *state;
    enum { APART_MS = 1200, MANY = 3 };
    pass(w, 3 * LEASE_MS);
    for (unsigned i = 0; i < AGENTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "kind-%c", 'a' + (int)i);
        (void)park_at(&second, name, 1);
    }
    /* All are due in each batch when these are further apart than their longest pause. */
    for (int round = 0; round < MANY; round++) {
        memset(seen.asked, 0, sizeof seen.asked);
        for (int batch = 0; batch < 2; batch++) {
            world_pass(w, APART_MS);
            seen.by = second.store;
            seen.steals = 0;
            assert_int_equal(pair_batch(&second, NULL, 0), RV_OK);
            assert_int_equal(seen.steals, PER_BATCH);
        }
        for (unsigned i = 0; i < AGENTS; i++)
            assert_in_range(seen.asked[i], 1, 2);
    }
}

static void limit_set(struct world *w, const char *agent, uint32_t concurrent)
{
    struct rv_call_limit limit = {.sets_concurrent = true, .row.concurrent = concurrent};
    struct rv_call *call = world_limit_call(w, limit);
    call->u.limit.row.agent = rv_str_of(agent);
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
}

/* Steps wait at the third server, and the polls are at others. */
static void a_limit_bounds_what_a_hungry_server_asks_for(void **state)
{
    struct world *w = *state;
    pass(w, 3 * LEASE_MS);
    limit_set(w, "inventory", 1);
    for (int i = 0; i < 4; i++)
        (void)submit_at(&third);
    seen.by = second.store;
    struct rv_call *poll = park_at(&second, "inventory", 8);
    for (int64_t end = w->mono + 10 * SCAN_MS; w->mono < end && !world_finished(poll);)
        pass(w, PAIR_STEP_MS);
    assert_true(world_finished(poll));
    assert_int_equal(poll->u.poll.requests_count, 1);
    assert_int_equal(seen.steals_most, 1);
    assert_int_equal(seen.stolen, 1);
    /* The other has no share until that one has ended. */
    seen.by = w->store;
    seen.steals = seen.stolen = 0;
    struct rv_call *idle = poll_of(w, "inventory", 8);
    assert_false(world_run(w, idle));
    pass(w, 3 * SCAN_MS);
    assert_false(world_finished(idle));
    assert_int_equal(seen.steals, 0);
    assert_int_equal(seen.stolen, 0);
}

/* ---- how a limit is divided ---- */

/* Somebody has edited the file by hand. */
static void record_damage(struct world *w, const char *key)
{
    int64_t now;
    struct rv_record_change change = {.row = {.kind = RV_STR(RV_RECORD_AGENT_USE),
                                              .key = rv_str_of(key),
                                              .value = RV_STR("{\"version\":")}};
    struct rv_batch batch = {.records = &change, .records_count = 1, .number = 1000000};
    assert_int_equal(w->store->ops->begin(w->store, NULL, &now), RV_OK);
    assert_int_equal(w->store->ops->commit(w->store, &batch), RV_OK);
    assert_int_equal(change.outcome, RV_OK);
}

/* A limit is removed, and attempts begin at another server without one: nothing is known of what
 * they take when there is a limit again. */
static void a_share_of_a_limit_that_was_removed_is_void(void **state)
{
    struct world *w = *state;
    pass(w, 3 * LEASE_MS);
    limit_set(w, "inventory", 4);
    pass(w, 12 * SCAN_MS);
    limit_set(w, "inventory", 0);
    pass(w, 2 * SCAN_MS);
    for (int i = 0; i < 9; i++)
        (void)submit_at(&second);
    struct rv_call *there = park_at(&second, "inventory", 6);
    assert_true(world_finished(there));
    assert_int_equal(there->u.poll.requests_count, 6);
    (void)world_submit(w, "order", "{}");
    limit_set(w, "inventory", 6);
    struct rv_call *here = poll_of(w, "inventory", 8);
    assert_false(world_run(w, here));
    pass(w, 2 * SCAN_MS);
    assert_false(world_finished(here));
}

/* Two agents with a limit: what a server reports of one says nothing about the other. */
static void reports_about_another_agent_do_not_count(void **state)
{
    struct world *w = *state;
    char key[32];
    pass(w, 3 * LEASE_MS);
    limit_set(w, "another", 1);
    pass(w, 3 * SCAN_MS);
    snprintf(key, sizeof key, "%u/another", pair_number(&second));
    record_damage(w, key);
    limit_set(w, "inventory", 1);
    (void)submit_at(&third);
    struct rv_call *poll = park_at(&second, "inventory", 1);
    for (int64_t end = w->mono + 10 * SCAN_MS; w->mono < end && !world_finished(poll);)
        pass(w, PAIR_STEP_MS);
    assert_true(world_finished(poll));
    assert_int_equal(poll->u.poll.requests_count, 1);
}

int main(void)
{
#define TAKEOVER_TEST(name) cmocka_unit_test_setup_teardown(name, open_three, close_three)
    const struct CMUnitTest tests[] = {
        TAKEOVER_TEST(what_cannot_be_read_is_taken_over_once),
        TAKEOVER_TEST(each_who_takes_over_excuses_what_ended_meanwhile),
        TAKEOVER_TEST(a_takeover_that_was_cut_goes_on_at_once),
        TAKEOVER_TEST(a_lease_that_was_not_written_is_renewed_at_once),
        TAKEOVER_TEST(each_of_many_hungry_agents_is_asked_for),
        TAKEOVER_TEST(a_limit_bounds_what_a_hungry_server_asks_for),
        TAKEOVER_TEST(a_share_of_a_limit_that_was_removed_is_void),
        TAKEOVER_TEST(reports_about_another_agent_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
