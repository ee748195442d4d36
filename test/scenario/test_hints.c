/* On a shared store the server at which steps begin to wait tells the others, once; and one at
 * which polls wait looks for such steps: on its own in pauses of up to a second, and at once when
 * it is told. */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "sim/store/memory/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct rv_store_ops *memory_ops;
static size_t looks;  /* for waiting steps of "inventory" */
static size_t hints;  /* of "inventory", in written batches */
static bool refusing; /* the store takes no batch */

static enum rv_err begin(struct rv_store *store, struct rv_wants *wants, int64_t *ret_now)
{
    for (size_t i = 0; wants != NULL && i < wants->steals_count; i++)
        looks += rv_str_is(wants->steals[i].agent, "inventory");
    return memory_ops->begin(store, wants, ret_now);
}

static enum rv_err commit(struct rv_store *store, struct rv_batch *batch)
{
    if (refusing) {
        memory_ops->rollback(store);
        return RV_ERR_BUSY;
    }
    for (size_t i = 0; i < batch->ready_count; i++)
        hints += rv_str_is(batch->ready[i], "inventory");
    return memory_ops->commit(store, batch);
}

static enum rv_err open_shared(struct world *w, struct rv_store **ret_store)
{
    static struct rv_store_ops ops;
    rv_store_memory_data_share(w->data);
    assert_int_equal(rv_store_memory_open(w->data, w->clock, ret_store), RV_OK);
    memory_ops = (*ret_store)->ops;
    ops = *memory_ops;
    ops.begin = begin;
    ops.commit = commit;
    (*ret_store)->ops = &ops;
    return RV_OK;
}

static int open_world(void **state)
{
    static struct world w;
    looks = hints = 0;
    refusing = false;
    world_open_on(&w, (struct world_ground){.open = open_shared, .may_break = true});
    world_publish(&w, workflow_file("order"));
    *state = &w;
    return 0;
}

static void wait_for_work(struct world *w)
{
    struct rv_call *poll = world_call(w, RV_CALL_POLL);
    poll->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("boot-1"),
                                    .poll = RV_STR("p1"),
                                    .max = 1,
                                    .wait_ms = 30000};
    assert_false(world_run(w, poll));
}

static void hear(struct world *w, struct rv_str agent)
{
    struct rv_call *hint = world_call(w, RV_CALL_HINT);
    struct rv_str *agents = RV_NEW(&hint->arena, struct rv_str);
    assert_non_null(agents);
    *agents = agent;
    hint->u.hint.agents = agents;
    hint->u.hint.count = 1;
    assert_true(world_run(w, hint));
    world_settle(w);
}

static void a_hungry_server_looks_rarely_and_at_a_hint_at_once(void **state)
{
    struct world *w = *state;
    wait_for_work(w);
    world_pass(w, 5000);
    size_t before = looks;
    world_pass(w, 10000);
    assert_in_range(looks - before, 10, 14);

    hear(w, RV_STR("inventory"));
    before = looks;
    world_settle(w);
    assert_int_equal(looks, before);
    hear(w, RV_STR("shipping"));
    assert_int_equal(looks, before);
    for (size_t i = 1; i <= 3; i++) {
        hear(w, RV_STR("inventory"));
        assert_int_equal(looks, before + i);
    }
}

static void the_others_are_told_once_while_steps_wait(void **state)
{
    struct world *w = *state;
    world_submit(w, "order", "{}");
    assert_int_equal(hints, 1);
    world_submit(w, "order", "{}");
    world_pass(w, 5000);
    assert_int_equal(hints, 1);

    world_take(w, "inventory", "i1");
    world_take(w, "inventory", "i1");
    assert_int_equal(hints, 1);
    world_submit(w, "order", "{}");
    assert_int_equal(hints, 2);
}

/* Nobody is told of a step that the batch has handed out. */
static void a_step_that_is_taken_at_once_is_no_news(void **state)
{
    struct world *w = *state;
    wait_for_work(w);
    world_submit(w, "order", "{}");
    world_settle(w);
    assert_int_equal(hints, 0);
}

static void what_was_not_written_is_told_when_it_is(void **state)
{
    struct world *w = *state;
    struct rv_call *submit = world_call(w, RV_CALL_SUBMIT);
    submit->u.submit.items = RV_NEW(&submit->arena, struct rv_submission);
    assert_non_null(submit->u.submit.items);
    submit->u.submit.items[0] = (struct rv_submission){
        .space = RV_STR("shop"), .name = RV_STR("order"), .input = RV_STR("{}"), .priority = 5};
    submit->u.submit.count = 1;
    refusing = true;
    assert_true(world_run(w, submit));
    assert_int_equal(submit->err, RV_ERR_BUSY);
    assert_int_equal(hints, 0);

    refusing = false;
    world_submit(w, "order", "{}");
    assert_int_equal(hints, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define HINTS(test) cmocka_unit_test_setup_teardown(test, open_world, world_teardown)
        HINTS(a_hungry_server_looks_rarely_and_at_a_hint_at_once),
        HINTS(the_others_are_told_once_while_steps_wait),
        HINTS(a_step_that_is_taken_at_once_is_no_news),
        HINTS(what_was_not_written_is_told_when_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
