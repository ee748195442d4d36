/* Calls and the API keys that they came with, once a key is revoked or the first one is made. */
#include "../lib/world.h"
#include "core/api_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

enum { WAIT_MS = 20000 };

/* The number of the change. */
static uint64_t key_change(struct world *w, enum rv_call_kind kind, const char *id,
                           enum rv_role role)
{
    struct rv_call *call = world_call(w, kind);
    call->u.key.row = (struct rv_api_key){.id = rv_str_of(id), .role = role, .hash = RV_STR(HASH)};
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    return call->u.key.changes;
}

static struct rv_call *with_key(struct rv_call *call, uint64_t known, const char *id)
{
    call->keys_known = known;
    call->key_id = id != NULL ? rv_str_of(id) : RV_STR_NONE;
    return call;
}

static struct rv_poll idle_poll(const char *instance)
{
    return (struct rv_poll){.agent = RV_STR("idle"),
                            .instance = rv_str_of(instance),
                            .boot = RV_STR("b1"),
                            .poll = RV_STR("p1"),
                            .max = 8,
                            .wait_ms = WAIT_MS};
}

static struct rv_call *poll_of(struct world *w, const char *instance)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = idle_poll(instance);
    return call;
}

static struct rv_call *show_of(struct world *w, struct rv_task_id task)
{
    struct rv_call *call = world_call(w, RV_CALL_SHOW);
    call->u.show.task = task;
    call->u.show.after_revision = INT64_MAX;
    call->u.show.wait_ms = WAIT_MS;
    return call;
}

static void assert_refused(const struct rv_call *call)
{
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_ERR_REFUSED);
    assert_true(call->access_ended);
}

static void calls_that_wait_end_with_their_key(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    (void)key_change(w, RV_CALL_KEY_ADD, "admin001", RV_ROLE_ADMIN);
    uint64_t known = key_change(w, RV_CALL_KEY_ADD, "ended001", RV_ROLE_OPERATOR);
    struct rv_call *mine[] = {with_key(poll_of(w, "i1"), known, "ended001"),
                              with_key(show_of(w, task), known, "ended001")};
    struct rv_call *others[] = {with_key(poll_of(w, "i2"), known, "admin001"),
                                with_key(show_of(w, task), known, "admin001"), poll_of(w, "i3")};
    for (size_t i = 0; i < 2; i++)
        assert_false(world_run(w, mine[i]));
    for (size_t i = 0; i < 3; i++)
        assert_false(world_run(w, others[i]));
    assert_true(key_change(w, RV_CALL_KEY_REVOKE, "ended001", RV_ROLE_OPERATOR) > known);
    for (size_t i = 0; i < 2; i++)
        assert_refused(mine[i]);
    for (size_t i = 0; i < 3; i++)
        assert_false(world_finished(others[i]));
    /* It was sent before its api heard of the revocation. */
    struct rv_call *late = with_key(poll_of(w, "i1"), known, "ended001");
    assert_true(world_run(w, late));
    assert_refused(late);
}

static void calls_that_wait_without_a_key_end_with_the_first_key(void **state)
{
    struct world *w = *state;
    struct rv_call *poll = with_key(poll_of(w, "i1"), 1, NULL);
    assert_false(world_run(w, poll));
    world_settle(w);
    struct rv_call *call = world_call(w, RV_CALL_KEY_ADD);
    call->u.key.row = (struct rv_api_key){
        .id = RV_STR("admin001"), .role = RV_ROLE_ADMIN, .hash = RV_STR(HASH)};
    assert_true(rv_scheduler_next_wake(w->scheduler, w->mono) > 0);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &call, 1, w->mono), RV_OK);
    assert_true(world_finished(call));
    assert_int_equal(rv_scheduler_next_wake(w->scheduler, w->mono), 0); /* at once */
    world_settle(w);
    assert_refused(poll);
}

/* What it has written stays: its api tells no more than the caller may still know. */
static void a_submission_that_waits_ends_with_its_task(void **state)
{
    struct world *w = *state;
    (void)key_change(w, RV_CALL_KEY_ADD, "admin001", RV_ROLE_ADMIN);
    uint64_t known = key_change(w, RV_CALL_KEY_ADD, "ended001", RV_ROLE_SUBMITTER);
    struct rv_call *call = with_key(world_call(w, RV_CALL_SUBMIT), known, "ended001");
    struct rv_submission item = {
        .space = RV_STR("shop"), .name = RV_STR("order"), .input = RV_STR("{}"), .priority = 5};
    call->u.submit.items = &item;
    call->u.submit.count = 1;
    call->u.submit.wait_ms = WAIT_MS;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &call, 1, w->mono), RV_OK);
    assert_false(world_finished(call));
    (void)key_change(w, RV_CALL_KEY_REVOKE, "ended001", RV_ROLE_SUBMITTER);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_OK);
    assert_false(call->access_ended);
    assert_state(w, item.task, "pending");
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, world_setup_order, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(calls_that_wait_end_with_their_key),
        SCENARIO(calls_that_wait_without_a_key_end_with_the_first_key),
        SCENARIO(a_submission_that_waits_ends_with_its_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
