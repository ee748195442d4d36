/* Finished tasks are deleted as fast as others come (decision 015). */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/time.h"
#include "store/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    RETAIN_MS = 500,
    ROUND_MS = 1000,
    SLACK_MS = 200,
    EVERY_MS = 10,
    BATCHES = 400,
    TASKS = 100
};

/* Several tasks at once; gives the first. `key` is its key. */
static struct rv_task_id submit(struct world *w, size_t count, struct rv_str key)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, count);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct rv_submission){
            .space = RV_STR("shop"), .name = RV_STR("eight"), .priority = 5};
    items[0].key = key;
    items[0].body_hash = key.at != NULL ? RV_STR("aaaa") : RV_STR_NONE;
    call->u.submit.items = items;
    call->u.submit.count = count;
    assert_true(world_run(w, call));
    assert_int_equal(items[count - 1].err, RV_OK);
    return items[0].task;
}

static bool there(struct world *w, struct rv_task_id id)
{
    struct rv_arena arena;
    const struct rv_task *task = NULL;
    rv_arena_init(&arena, 0);
    assert_int_equal(w->store->ops->load_tasks(w->store, &arena, RV_COLUMNS_ALL, &id, 1, &task),
                     RV_OK);
    bool found = task != NULL;
    rv_arena_done(&arena);
    return found;
}

/* 10,000 tasks a second: nothing stays longer than a round. */
static void it_keeps_up_with_what_ends(void **state)
{
    struct world w;
    struct rv_task_id first[BATCHES];
    (void)state;
    world_open_on(&w, (struct world_ground){.retain_ms = RETAIN_MS});
    world_publish(&w, workflow_file("retention/eight"));
    for (int i = 0; i < BATCHES; i++) {
        first[i] = submit(&w, TASKS, RV_STR_NONE);
        world_pass(&w, EVERY_MS);
        int old = i - (RETAIN_MS + ROUND_MS + SLACK_MS) / EVERY_MS;
        if (old >= 0)
            assert_false(there(&w, first[old]));
        if (i >= RETAIN_MS / EVERY_MS)
            assert_true(there(&w, first[i - RETAIN_MS / EVERY_MS + 2]));
    }
    world_close(&w);
}

static bool key_there(struct world *w, struct rv_str name)
{
    struct rv_arena arena;
    struct rv_key_row row;
    rv_arena_init(&arena, 0);
    assert_int_equal(rv_store_load_keys(w->store, &arena, &name, 1, &row), RV_OK);
    rv_arena_done(&arena);
    return row.task.value != 0;
}

/* Keys of submissions go after thirty days, however many tasks come and go meanwhile. */
static void keys_go_while_tasks_come(void **state)
{
    enum { LEFT_MS = 1000 };
    struct world w;
    (void)state;
    world_open_on(&w, (struct world_ground){.retain_ms = RETAIN_MS});
    world_publish(&w, workflow_file("retention/eight"));
    struct rv_task_id task = submit(&w, 1, RV_STR("order-1"));
    world_pass(&w, EVERY_MS);
    world_absent(&w, 30 * RV_DAY_MS - LEFT_MS);
    for (int i = 0; i < BATCHES; i++) {
        (void)submit(&w, TASKS, RV_STR_NONE);
        world_pass(&w, EVERY_MS);
        if (i < LEFT_MS / EVERY_MS / 2)
            assert_true(key_there(&w, RV_STR("order-1")));
    }
    assert_false(there(&w, task));
    assert_false(key_there(&w, RV_STR("order-1")));
    world_close(&w);
}

/* The clock may have been wrong at the first start: the wait for an operator outlives a second one,
 * and ends. */
static void a_restart_does_not_end_the_wait(void **state)
{
    enum { AWAY_MS = 10 * 3600 * RV_SECOND_MS };
    struct world w;
    (void)state;
    world_open_on(&w, (struct world_ground){.retain_ms = RETAIN_MS});
    world_publish(&w, workflow_file("retention/eight"));
    struct rv_task_id task = submit(&w, 1, RV_STR_NONE);
    world_pass(&w, EVERY_MS);
    world_restart(&w, AWAY_MS);
    world_pass(&w, AWAY_MS / 2);
    assert_true(there(&w, task));
    world_restart(&w, 100);
    world_pass(&w, AWAY_MS / 2 - 1000);
    assert_true(there(&w, task));
    world_pass(&w, 70 * RV_SECOND_MS);
    assert_false(there(&w, task));
    world_close(&w);
}

/* It ends in its first batch, before or after its commit, and the next one begins the wait, or goes
 * on with it. */
static void a_start_that_dies_does_not_end_the_wait(void **state)
{
    enum { AWAY_MS = 10 * 3600 * RV_SECOND_MS };
    (void)state;
    for (int batches = 0; batches <= 2; batches++) {
        struct world w;
        world_open_on(&w, (struct world_ground){.retain_ms = RETAIN_MS});
        world_publish(&w, workflow_file("retention/eight"));
        struct rv_task_id task = submit(&w, 1, RV_STR_NONE);
        world_pass(&w, EVERY_MS);
        world_restart_unlooked(&w, AWAY_MS);
        for (int i = 0; i < batches; i++)
            assert_int_equal(rv_scheduler_run_batch(w.scheduler, NULL, 0, w.mono), RV_OK);
        world_restart(&w, 10);
        world_pass(&w, AWAY_MS - 1000);
        assert_true(there(&w, task));
        world_pass(&w, 70 * RV_SECOND_MS);
        assert_false(there(&w, task));
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest scenarios[] = {
        cmocka_unit_test(it_keeps_up_with_what_ends),
        cmocka_unit_test(keys_go_while_tasks_come),
        cmocka_unit_test(a_restart_does_not_end_the_wait),
        cmocka_unit_test(a_start_that_dies_does_not_end_the_wait),
    };
    return cmocka_run_group_tests(scenarios, NULL, NULL);
}
