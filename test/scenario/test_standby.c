/* A standby takes over that has not heard of the newest transactions: what was committed is gone,
 * and whoever remembers it must forget it, and say so (reliability programme, F-50). */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "sim/store/memory/memory.h"

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

static enum rv_err open_shared(struct world *w, struct rv_store **ret_store)
{
    rv_store_memory_data_share(w->data);
    return open_keeping(w, ret_store);
}

static int open_sharing(void **state)
{
    static struct world w;
    world_open_on(&w, (struct world_ground){.open = open_shared});
    *state = &w;
    return 0;
}

static int open_world(void **state)
{
    static struct world w;
    world_open_on(&w, (struct world_ground){.open = open_keeping});
    world_publish(&w, workflow_file("order"));
    *state = &w;
    return 0;
}

/* Between the batch of which one change did not pass and the next one a standby takes over. */
static void lose_between(struct world *w, bool inside)
{
    struct store_faults *faults = w->ground.faults;
    if (inside || faults->drop_at == 0 || faults->drops == 0)
        return;
    faults->drop_at = 0;
    rv_store_memory_data_lose(w->data, 1);
}

static int open_dropping(void **state)
{
    static struct world w;
    static struct store_faults faults;
    faults = (struct store_faults){0};
    world_open_on(&w, (struct world_ground){
                          .faults = &faults, .open = open_keeping, .product = lose_between});
    world_publish(&w, workflow_file("order"));
    *state = &w;
    return 0;
}

/* The second change from now on does not pass, and is decided again in the next batch. */
static void drop_second(struct world *w)
{
    w->ground.faults->drop_at = w->ground.faults->changes + 2;
}

static void a_lost_attempt_is_handed_out_again_with_another_token(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment lost = world_take(w, "inventory", "i1");
    rv_store_memory_data_lose(w->data, 1);
    struct rv_assignment again = world_take(w, "inventory", "i2");
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

static void a_task_that_was_lost_before_its_call_was_answered_is_made_anew(void **state)
{
    struct world *w = *state;
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission items[2];
    for (size_t i = 0; i < 2; i++)
        items[i] = (struct rv_submission){
            .space = RV_STR("shop"), .name = RV_STR("order"), .input = RV_STR("{}"), .priority = 5};
    call->u.submit.items = items;
    call->u.submit.count = 2;
    drop_second(w);
    assert_true(world_run(w, call));
    assert_int_equal(w->histories_lost, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(items[i].err, RV_OK);
        assert_state(w, items[i].task, "pending");
    }
}

static void a_reply_that_was_lost_before_its_call_was_answered_is_taken_anew(void **state)
{
    struct world *w = *state;
    struct rv_reply_item items[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        (void)world_submit(w, "order", "{}");
        struct rv_assignment request = world_take(w, "inventory", "i1");
        items[i] = (struct rv_reply_item){.step = request.step, .token = request.token};
        items[i].reply = (struct rv_reply){.output = RV_STR("1")};
    }
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    call->u.replies.items = items;
    call->u.replies.count = 2;
    drop_second(w);
    assert_true(world_run(w, call));
    assert_int_equal(w->histories_lost, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(items[i].status, 200);
        assert_step(w, items[i].step.task, items[i].step.number, "processed");
    }
}

static struct rv_call *reply_call(struct world *w, struct rv_assignment request)
{
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item *item = RV_NEW(&call->arena, struct rv_reply_item);
    *item = (struct rv_reply_item){
        .step = request.step, .token = request.token, .reply = {.output = RV_STR("1")}};
    call->u.replies.items = item;
    call->u.replies.count = 1;
    call->mono_at = w->mono;
    return call;
}

static void pass_at_once(struct world *w, int64_t ms)
{
    w->now += ms;
    w->mono += ms;
}

/* What follows it takes many batches: it waits in the server while the standby takes over, and a
 * late copy of it comes. The copy does not pass it. */
static void a_reply_that_was_in_time_is_decided_before_its_late_copy(void **state)
{
    struct world *w = *state;
    world_publish(w, "document: {dsl: '1.0.3', namespace: shop, name: slow, version: 1.0.0}\n"
                     "do:\n- a: {call: inventory}\n"
                     "- b: {set: {n: '${ [range(60000)] | length }'}}\n");
    (void)world_submit(w, "slow", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    (void)world_submit(w, "order", "{}");
    pass_at_once(w, request.complete_by - w->now - 1);
    struct rv_call *first = reply_call(w, request);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &first, 1, w->mono), RV_OK);
    assert_false(world_finished(first));
    rv_store_memory_data_lose(w->data, 1);
    pass_at_once(w, 2);
    struct rv_call *copy = reply_call(w, request);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &copy, 1, w->mono), RV_OK);
    while (!world_finished(first) || !world_finished(copy))
        world_pass(w, 1);
    assert_int_equal(w->histories_lost, 1);
    assert_int_equal(first->u.replies.items[0].status, 200);
    assert_int_equal(copy->u.replies.items[0].status, 200);
    assert_int_equal(world_count_late(w, request.step.task), 0);
}

static const char lost_source[] = "document: {dsl: '1.0.3', namespace: shop, name: note, "
                                  "version: 1.0.0}\ndo:\n- lost: {call: inventory}\n";
static const char kept_source[] = "{\"document\":{\"dsl\":\"1.0.3\",\"namespace\":\"shop\","
                                  "\"name\":\"note\",\"version\":\"1.0.0\"},"
                                  "\"do\":[{\"kept\":{\"call\":\"payment\"}}]}";

static void find_note(struct rv_store *store, struct rv_arena *arena,
                      const struct rv_workflow_row **ret_row)
{
    int64_t now;
    assert_int_equal(store->ops->begin(store, NULL, &now), RV_OK);
    assert_int_equal(store->ops->find_workflow(store, arena, RV_STR("shop"), RV_STR("note"),
                                               RV_STR("1.0.0"), ret_row),
                     RV_OK);
    store->ops->rollback(store);
}

/* The clock of a standby may stand, so that another server gives the id of a lost publication to
 * what it publishes. */
static void a_lost_workflow_is_not_run_in_the_place_of_another(void **state)
{
    struct world *w = *state;
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    struct rv_store *other;
    struct rv_enlistment enlistment = {.lease_ms = 5000};
    int64_t now;
    assert_int_equal(rv_store_memory_open(w->data, w->clock, &other), RV_OK);
    assert_int_equal(other->ops->enlist(other, RV_STR("other"), 2, &enlistment), RV_OK);
    world_publish(w, lost_source);
    (void)world_submit(w, "note", "{}");
    const struct rv_workflow_row *found;
    find_note(other, &arena, &found);
    assert_non_null(found);

    rv_store_memory_data_lose(w->data, 2);
    assert_int_equal(other->ops->begin(other, NULL, &now), RV_ERR_WENT_BACK);
    const struct rv_workflow_row *none;
    find_note(other, &arena, &none);
    assert_null(none);
    struct rv_workflow_row row = *found;
    row.source = rv_str_of(kept_source);
    struct rv_batch batch = {.workflows = &row, .workflows_count = 1, .number = 1};
    assert_int_equal(other->ops->begin(other, NULL, &now), RV_OK);
    assert_int_equal(other->ops->commit(other, &batch), RV_OK);
    other->ops->close(other);
    rv_arena_done(&arena);

    (void)world_submit(w, "note", "{}");
    assert_int_equal(w->histories_lost, 1);
    struct rv_assignment request = world_take(w, "payment", "p1");
    assert_true(rv_str_is(request.reference, "/do/0/kept"));
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
#define SHARING(name) cmocka_unit_test_setup_teardown(name, open_sharing, world_teardown)
#define DROPPING(name) cmocka_unit_test_setup_teardown(name, open_dropping, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_lost_attempt_is_handed_out_again_with_another_token),
        SCENARIO(a_parked_poll_is_answered_and_what_was_lost_is_not_there),
        SHARING(a_lost_workflow_is_not_run_in_the_place_of_another),
        DROPPING(a_task_that_was_lost_before_its_call_was_answered_is_made_anew),
        DROPPING(a_reply_that_was_lost_before_its_call_was_answered_is_taken_anew),
        SCENARIO(a_reply_that_was_in_time_is_decided_before_its_late_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
