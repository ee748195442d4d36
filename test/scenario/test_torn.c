/* On a shared store the rows of one task that are loaded one after the other may be of two
 * instants: what is decided on them, and changes nothing, stands only if the task has not changed
 * meanwhile. */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "sim/store/memory/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct rv_store_ops *memory_ops;
static struct rv_store *other;  /* of another server */
static struct rv_task_id moved; /* by it, before the next load of steps; none: not */

/* Another server changes the task's row. */
static void other_moves(struct rv_task_id id)
{
    struct rv_arena arena;
    const struct rv_task *row;
    int64_t now;
    rv_arena_init(&arena, 0);
    assert_int_equal(other->ops->begin(other, NULL, &now), RV_OK);
    assert_int_equal(other->ops->load_tasks(other, &arena, RV_COLUMNS_ALL, &id, 1, &row), RV_OK);
    struct rv_task task = *row;
    task.revision++;
    struct rv_change change = {
        .task = &task, .revision_before = row->revision, .at = now, .task_before = row};
    struct rv_batch batch = {.changes = &change, .changes_count = 1, .number = 1};
    assert_int_equal(other->ops->commit(other, &batch), RV_OK);
    assert_int_equal(change.outcome, RV_OK);
    rv_arena_done(&arena);
}

static enum rv_err load_steps(struct rv_store *store, struct rv_arena *arena,
                              enum rv_columns columns, const struct rv_step_id *ids, size_t count,
                              const struct rv_step **ret_steps)
{
    struct rv_task_id task = moved;
    moved.value = 0;
    if (task.value != 0)
        other_moves(task);
    return memory_ops->load_steps(store, arena, columns, ids, count, ret_steps);
}

static enum rv_err open_torn(struct world *w, struct rv_store **ret_store)
{
    static struct rv_store_ops ops;
    rv_store_memory_data_share(w->data);
    enum rv_err err = rv_store_memory_open(w->data, w->clock, ret_store);
    assert_int_equal(err, RV_OK);
    memory_ops = (*ret_store)->ops;
    ops = *memory_ops;
    ops.load_steps = load_steps;
    (*ret_store)->ops = &ops;
    return RV_OK;
}

static int open_world(void **state)
{
    static struct world w;
    struct rv_enlistment enlistment = {.lease_ms = 5000};
    moved.value = 0;
    world_open_on(&w, (struct world_ground){.open = open_torn});
    world_publish(&w, workflow_file("order"));
    assert_int_equal(rv_store_memory_open(w.data, w.clock, &other), RV_OK);
    assert_int_equal(other->ops->enlist(other, RV_STR("other"), 2, &enlistment), RV_OK);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    other->ops->close(other);
    return world_teardown(state);
}

static struct rv_call *reply_again(struct world *w, struct rv_assignment request)
{
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item *item = RV_NEW(&call->arena, struct rv_reply_item);
    *item = (struct rv_reply_item){.step = request.step, .token = request.token};
    item->reply.output = RV_STR("1");
    call->u.replies.items = item;
    call->u.replies.count = 1;
    return call;
}

/* Control has left the step: its row is loaded after those of its task. */
static void a_refusal_is_decided_again_if_its_task_changes_meanwhile(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    assert_int_equal(world_done(w, request, "1"), 200);
    struct rv_call *still = reply_again(w, request);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &still, 1, w->mono), RV_OK);
    assert_true(world_finished(still));
    assert_int_equal(still->u.replies.items[0].status, 200);

    struct rv_call *again = reply_again(w, request);
    moved = task;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &again, 1, w->mono), RV_OK);
    assert_int_equal(moved.value, 0);
    assert_false(world_finished(again));
    world_settle(w);
    assert_true(world_finished(again));
    assert_int_equal(again->u.replies.items[0].status, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_refusal_is_decided_again_if_its_task_changes_meanwhile,
                                        open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
