/* A wall clock that is set ahead and back (RULES 9): time goes on evenly, nothing is due at once,
 * nothing stands, and an operator is called. */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int open_world(void **state)
{
    struct world *w = malloc(sizeof *w);
    *state = w;
    world_open(w);
    world_publish(w, workflow_file("order"));
    return 0;
}

static int close_world(void **state)
{
    world_close(*state);
    free(*state);
    return 0;
}

static const int64_t week = 7 * (int64_t)RV_DAY_MS;

static void a_jump_expires_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment reserve = world_take(w, "inventory", "i1");
    w->wall_ahead = week;
    world_pass(w, 3000);
    w->wall_ahead = -week;
    world_pass(w, 3000);
    assert_step(w, task, 1, "processing");
    assert_int_equal(world_done(w, reserve, "1"), 200);
    assert_step(w, task, 1, "processed");
}

static void after_a_jump_ahead_and_back_time_goes_on(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    w->wall_ahead = week;
    world_pass(w, 2000);
    w->wall_ahead = 0;
    world_pass(w, 8100);
    assert_step(w, task, 1, "pending"); /* its 10 s are over */
    assert_int_equal(world_step(w, task, 1)->failure_count, 1);
    world_pass(w, 1300);
    assert_int_equal(world_take(w, "inventory", "i2").attempt, 2);
}

/* Through a restart in the middle of it: the store's clock is ahead from then on, and does not
 * stand. */
static void a_restart_while_it_is_ahead_stops_no_time(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    w->wall_ahead = week;
    world_restart(w, 1000);
    w->wall_ahead = 0;
    world_restart(w, 1000);
    (void)world_take(w, "inventory", "i1");
    world_pass(w, 10100);
    assert_step(w, task, 1, "pending");
    assert_int_equal(world_step(w, task, 1)->failure_count, 1);
    world_pass(w, 1300);
    assert_int_equal(world_take(w, "inventory", "i2").attempt, 2);
}

static void an_operator_is_called_once_an_hour(void **state)
{
    struct world *w = *state;
    size_t before = world_count_open_alerts(w);
    w->wall_ahead = 9000;
    world_pass(w, 2000);
    assert_int_equal(world_count_open_alerts(w), before);
    for (int i = 1; i <= 4; i++) {
        w->wall_ahead = i * 20 * RV_SECOND_MS;
        world_pass(w, 2000);
    }
    assert_int_equal(world_count_open_alerts(w), before + 1);
    w->wall_ahead = -week;
    world_pass(w, 3600 * RV_SECOND_MS);
    assert_int_equal(world_count_open_alerts(w), before + 2);
}

#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENARIO(a_jump_expires_nothing),
        SCENARIO(after_a_jump_ahead_and_back_time_goes_on),
        SCENARIO(a_restart_while_it_is_ahead_stops_no_time),
        SCENARIO(an_operator_is_called_once_an_hour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
