/* On a shared store the owner of a task may live and forget an instant. The supervisor looks at all
 * open tasks, slowly, and decides what is overdue by more than two leases. Two servers: the world
 * acts at the supervisor, and the other one owns the tasks. */
#include "../lib/pair.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "supervisor/supervisor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { LEASE_MS = 5000 };

static struct pair aside;

static bool forgets;      /* whoever notes an instant now */
static bool starves;      /* there is no memory for that */
static size_t rows_asked; /* by looks of the supervisor, */
static size_t looks;      /* ... and how many there were */
static size_t rows_most;  /* that the store looks at; 0: as many as it is asked for */
static struct rv_store_ops ops;
static const struct rv_store_ops *memory_ops;

enum rv_err __real_rv_supervisor_note(struct rv_supervisor *supervisor, struct rv_task_id task,
                                      int64_t wake_at);
enum rv_err __wrap_rv_supervisor_note(struct rv_supervisor *supervisor, struct rv_task_id task,
                                      int64_t wake_at);

enum rv_err __wrap_rv_supervisor_note(struct rv_supervisor *supervisor, struct rv_task_id task,
                                      int64_t wake_at)
{
    if (starves && wake_at != 0)
        return RV_ERR_MEMORY;
    return __real_rv_supervisor_note(supervisor, task, forgets ? 0 : wake_at);
}

static enum rv_err begin(struct rv_store *store, struct rv_wants *wants, int64_t *ret_now)
{
    if (wants != NULL && wants->look != NULL) {
        looks++;
        rows_asked += wants->look->rows_max;
        if (rows_most != 0)
            wants->look->rows_max = rows_most;
    }
    return memory_ops->begin(store, wants, ret_now);
}

static enum rv_err open_shared(struct world *w, struct rv_store **ret_store)
{
    assert_int_equal(pair_share(w, ret_store), RV_OK);
    memory_ops = pair_wrap(*ret_store, &ops);
    ops.begin = begin;
    return RV_OK;
}

static int open_two(void **state)
{
    static struct world w;
    forgets = starves = false;
    looks = rows_asked = rows_most = 0;
    world_open_on(&w, (struct world_ground){.open = open_shared});
    world_publish(&w, workflow_file("order"));
    pair_store(&aside, &w);
    pair_start(&aside, (struct rv_scheduler_options){.boot = RV_STR("other")});
    *state = &w;
    return 0;
}

static int close_two(void **state)
{
    pair_close(&aside);
    return world_teardown(state);
}

/* A task that the other server owns, and of which an agent has the first step. */
static struct rv_task_id begin_there(struct world *w, bool forgotten)
{
    pair_swap(&aside);
    struct rv_task_id task = world_submit(w, "order", "{}");
    forgets = forgotten;
    (void)world_take(w, "inventory", "i1");
    forgets = false;
    pair_swap(&aside);
    assert_int_equal(world_task(w, task)->locked_by, pair_number(&aside));
    return task;
}

static enum rv_attempt_state attempt_of(struct world *w, struct rv_task_id task)
{
    return world_step(w, task, world_task(w, task)->open[0])->attempt_state;
}

static int64_t ends_in(struct world *w, struct rv_task_id task)
{
    const struct rv_step *step = world_step(w, task, world_task(w, task)->open[0]);
    return step->lease_until - world_now(w);
}

static void what_the_owner_forgets_is_decided_by_the_supervisor(void **state)
{
    struct world *w = *state;
    pair_pass(&aside, 3 * LEASE_MS);
    struct rv_task_id task = begin_there(w, true);
    pair_pass(&aside, ends_in(w, task) + 2 * LEASE_MS - PAIR_STEP_MS);
    assert_int_equal(attempt_of(w, task), RV_ATTEMPT_OPEN);
    assert_int_equal(world_task(w, task)->locked_by, pair_number(&aside));
    pair_pass(&aside, 2 * PAIR_STEP_MS + 1000);
    assert_int_equal(attempt_of(w, task), RV_ATTEMPT_EXPIRED);
    assert_int_equal(world_task(w, task)->locked_by, pair_number_of(w->scheduler));
}

/* The owner itself knows that it could not note the instant. */
static void an_instant_without_memory_is_noted_by_the_next_walk(void **state)
{
    struct world *w = *state;
    pair_pass(&aside, 3 * LEASE_MS);
    pair_swap(&aside);
    struct rv_task_id task = world_submit(w, "order", "{}");
    starves = true;
    (void)world_take(w, "inventory", "i1");
    starves = false;
    pair_swap(&aside);
    assert_true(ends_in(w, task) > 2 * 1000);
    pair_pass(&aside, ends_in(w, task) + 2 * PAIR_STEP_MS);
    assert_int_equal(attempt_of(w, task), RV_ATTEMPT_EXPIRED);
    assert_int_equal(world_task(w, task)->locked_by, pair_number(&aside));
}

/* The owner comes first with what it knows: the supervisor takes nothing. */
static void what_the_owner_decides_stays_with_it(void **state)
{
    struct world *w = *state;
    pair_pass(&aside, 3 * LEASE_MS);
    struct rv_task_id task = begin_there(w, false);
    pair_pass(&aside, ends_in(w, task) + PAIR_STEP_MS);
    assert_int_equal(attempt_of(w, task), RV_ATTEMPT_EXPIRED);
    pair_pass(&aside, 4 * LEASE_MS);
    assert_true(looks > 0);
    assert_int_equal(world_task(w, task)->locked_by, pair_number(&aside));
}

static void what_the_supervisor_forgets_itself_it_finds(void **state)
{
    struct world *w = *state;
    pair_pass(&aside, 3 * LEASE_MS);
    struct rv_task_id task = world_submit(w, "order", "{}");
    forgets = true;
    (void)world_take(w, "inventory", "i1");
    forgets = false;
    pair_pass(&aside, ends_in(w, task) + 2 * LEASE_MS + 2 * PAIR_STEP_MS + 1000);
    assert_int_equal(attempt_of(w, task), RV_ATTEMPT_EXPIRED);
}

/* A suspended task is overdue in its rows alone. */
static void a_suspended_task_is_left_alone(void **state)
{
    struct world *w = *state;
    pair_pass(&aside, 3 * LEASE_MS);
    pair_swap(&aside);
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    pair_swap(&aside);
    int64_t revision = world_task(w, task)->revision;
    pair_pass(&aside, 10 * 60 * 1000);
    assert_true(looks > 0);
    assert_int_equal(world_task(w, task)->revision, revision);
}

/* All owners have something to catch up with then. */
static void after_an_absence_nothing_is_taken_for_two_leases(void **state)
{
    struct world *w = *state;
    enum { ABSENT_MS = 4000 };
    pair_pass(&aside, 3 * LEASE_MS);
    struct rv_task_id task = begin_there(w, true);
    pair_pass(&aside, ends_in(w, task) + 2 * LEASE_MS - ABSENT_MS / 2);
    world_absent(w, ABSENT_MS);
    assert_int_equal(pair_batch(&aside, NULL, 0), RV_OK);
    pair_pass(&aside, 2 * LEASE_MS - PAIR_STEP_MS);
    assert_int_equal(attempt_of(w, task), RV_ATTEMPT_OPEN);
    pair_pass(&aside, 1000 + 2 * PAIR_STEP_MS);
    assert_int_equal(attempt_of(w, task), RV_ATTEMPT_EXPIRED);
}

/* A look goes on where the one before has ended. */
static void a_task_behind_many_others_is_found(void **state)
{
    struct world *w = *state;
    enum { OTHERS = 7, ROWS = 2 };
    pair_pass(&aside, 3 * LEASE_MS);
    pair_swap(&aside);
    for (int i = 0; i < OTHERS; i++) {
        struct rv_task_id other = world_submit(w, "order", "{}");
        assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, other), RV_OK);
    }
    pair_swap(&aside);
    rows_most = ROWS;
    struct rv_task_id task = begin_there(w, true);
    pair_pass(&aside,
              ends_in(w, task) + 2 * LEASE_MS + (OTHERS / ROWS + 2) * 1000 + 2 * PAIR_STEP_MS);
    assert_int_equal(attempt_of(w, task), RV_ATTEMPT_EXPIRED);
}

static void the_supervisor_looks_at_a_thousand_rows_a_second(void **state)
{
    (void)state;
    pair_pass(&aside, 3 * LEASE_MS);
    rows_asked = looks = 0;
    pair_pass(&aside, 20 * 1000);
    assert_in_range(looks, 15, 21);
    assert_true(rows_asked <= 21 * 1000);
}

int main(void)
{
#define OVERDUE_TEST(name) cmocka_unit_test_setup_teardown(name, open_two, close_two)
    const struct CMUnitTest tests[] = {
        OVERDUE_TEST(what_the_owner_forgets_is_decided_by_the_supervisor),
        OVERDUE_TEST(an_instant_without_memory_is_noted_by_the_next_walk),
        OVERDUE_TEST(what_the_owner_decides_stays_with_it),
        OVERDUE_TEST(what_the_supervisor_forgets_itself_it_finds),
        OVERDUE_TEST(a_suspended_task_is_left_alone),
        OVERDUE_TEST(after_an_absence_nothing_is_taken_for_two_leases),
        OVERDUE_TEST(a_task_behind_many_others_is_found),
        OVERDUE_TEST(the_supervisor_looks_at_a_thousand_rows_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
