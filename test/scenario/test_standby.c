/* A standby takes over that has not heard of the newest transactions: what was committed is gone,
 * and whoever remembers it must forget it, and say so (reliability programme, F-50). */
#include "../lib/world.h"
#include "order.h"
#include "store/memory/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { KEPT = 8 };

static enum rv_err open_keeping(struct world *w, struct rv_store **ret_store)
{
    rv_store_memory_data_keep(w->data, KEPT);
    return rv_store_memory_open(w->data, w->clock, ret_store);
}

static int open_world(void **state)
{
    static struct world w;
    world_open_on(&w, (struct world_ground){.open = open_keeping});
    world_publish(&w, ORDER);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    world_close(*state);
    return 0;
}

static void a_lost_attempt_is_handed_out_again_with_another_token(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_request lost = world_take(w, "inventory", "i1");
    rv_store_memory_data_lose(w->data, 1);
    struct rv_request again = world_take(w, "inventory", "i2");
    assert_int_equal(w->histories_lost, 1);
    assert_int_equal(again.step.task.value, task.value);
    assert_int_equal(again.attempt, lost.attempt);
    assert_true(again.token != lost.token);
    assert_int_not_equal(world_done(w, lost, "1"), 200);
    assert_int_equal(world_done(w, again, "1"), 200);
}

static void a_parked_poll_is_answered_and_what_was_lost_is_not_there(void **state)
{
    struct world *w = *state;
    struct rv_call *parked = world_call(w, RV_CALL_POLL);
    parked->u.poll = (struct rv_poll){.agent = RV_STR("payment"),
                                      .instance = RV_STR("p1"),
                                      .boot = RV_STR("b"),
                                      .poll = RV_STR("p"),
                                      .max = 1,
                                      .wait_ms = 20000};
    assert_false(world_run(w, parked));
    struct rv_task_id task = world_submit(w, "order", "{}");
    rv_store_memory_data_lose(w->data, 1);
    world_pass(w, 2000);
    assert_int_equal(w->histories_lost, 1);
    assert_true(world_finished(parked));
    struct rv_call *show = world_call(w, RV_CALL_SHOW);
    show->u.show.task = task;
    assert_true(world_run(w, show));
    assert_int_equal(show->err, RV_ERR_NOT_FOUND);
    /* And all goes on. */
    (void)world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    assert_int_equal(world_done(w, world_take(w, "payment", "p1"), "2"), 200);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_lost_attempt_is_handed_out_again_with_another_token),
        SCENARIO(a_parked_poll_is_answered_and_what_was_lost_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
