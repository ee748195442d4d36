/* What all servers of a store know, API keys, limits and workflows: what is changed on one of them
 * holds in the next batch of the others. No time passes here, and each expectation is about one
 * batch. */
#include "../lib/pair.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "core/api_key.h"
#include "sim/store/memory/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

enum { KEPT = 8, WAIT_MS = 20000 };

/* What the api of the other server was told of keys. */
static struct {
    size_t lists;
    size_t keys; /* of the newest list */
    uint64_t changes;
    size_t failures; /* so many lists are refused first */
} told;

static struct pair aside;

/* Names that the other server has asked its store for as a batch began. */
static size_t names_asked;
static struct rv_store_ops counting;
static rv_store_begin_fn *begin;

static enum rv_err begin_counting(struct rv_store *store, struct rv_wants *load, int64_t *ret_now)
{
    names_asked += load != NULL ? load->names_count : 0;
    return begin(store, load, ret_now);
}

static void key_change(struct world *w, enum rv_call_kind kind, const char *id, enum rv_role role);

/* While the other server commits, this one revokes a key; NULL: it does not. */
static struct world *revokes_here;
static rv_store_commit_fn *commit;

static enum rv_err commit_behind(struct rv_store *store, struct rv_batch *batch)
{
    struct world *w = revokes_here;
    revokes_here = NULL;
    if (w != NULL)
        key_change(w, RV_CALL_KEY_REVOKE, "admin001", RV_ROLE_ADMIN);
    return commit(store, batch);
}

static enum rv_err learn(void *self, const struct rv_record *rows, size_t count, uint64_t changes)
{
    (void)self, (void)rows;
    told.lists++;
    if (told.failures > 0) {
        told.failures--;
        return RV_ERR_MEMORY;
    }
    assert_true(changes > told.changes);
    told.keys = count;
    told.changes = changes;
    return RV_OK;
}

static enum rv_err open_shared(struct world *w, struct rv_store **ret_store)
{
    rv_store_memory_data_keep(w->data, KEPT);
    return pair_share(w, ret_store);
}

static int open_two(void **state)
{
    static struct world w;
    world_open_on(&w, (struct world_ground){.open = open_shared});
    world_publish(&w, workflow_file("order"));
    memset(&told, 0, sizeof told);
    pair_store(&aside, &w);
    const struct rv_store_ops *ops = pair_wrap(aside.store, &counting);
    begin = ops->begin;
    commit = ops->commit;
    counting.begin = begin_counting;
    counting.commit = commit_behind;
    pair_start(&aside,
               (struct rv_scheduler_options){.boot = RV_STR("other"), .keys = {.learn = learn}});
    pair_swap(&aside);
    world_settle(&w);
    pair_swap(&aside);
    names_asked = 0;
    *state = &w;
    return 0;
}

static int close_two(void **state)
{
    pair_close(&aside);
    return world_teardown(state);
}

static void key_change(struct world *w, enum rv_call_kind kind, const char *id, enum rv_role role)
{
    struct rv_call *call = world_call(w, kind);
    call->u.key.row = (struct rv_api_key){.id = rv_str_of(id), .role = role, .hash = RV_STR(HASH)};
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
}

/* Allowed by the keys that the other server's api knows. */
static struct rv_call *with_key(struct rv_call *call, const char *id)
{
    call->keys_known = told.changes;
    call->key_id = id != NULL ? rv_str_of(id) : RV_STR_NONE;
    return call;
}

static struct rv_call *poll_of(struct world *w, const char *instance)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){.agent = RV_STR("idle"),
                                    .instance = rv_str_of(instance),
                                    .boot = RV_STR("b1"),
                                    .poll = RV_STR("p1"),
                                    .max = 8,
                                    .wait_ms = WAIT_MS};
    return call;
}

static struct rv_call *submission_of(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
    *item = (struct rv_submission){
        .space = RV_STR("shop"), .name = RV_STR("order"), .input = RV_STR("{}"), .priority = 5};
    call->u.submit.items = item;
    call->u.submit.count = 1;
    return call;
}

static void assert_refused(const struct rv_call *call)
{
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_ERR_REFUSED);
    assert_true(call->access_ended);
}

static void keys_make(struct world *w)
{
    key_change(w, RV_CALL_KEY_ADD, "admin001", RV_ROLE_ADMIN);
    key_change(w, RV_CALL_KEY_ADD, "ended001", RV_ROLE_OPERATOR);
    assert_int_equal(pair_batch(&aside, NULL, 0), RV_OK);
    assert_int_equal(told.keys, 2);
}

static void a_revoked_key_has_no_effect_on_another_server(void **state)
{
    struct world *w = *state;
    keys_make(w);
    struct rv_call *parked = with_key(poll_of(w, "i1"), "ended001");
    struct rv_call *stays = with_key(poll_of(w, "i2"), "admin001");
    assert_int_equal(pair_batch(&aside, (struct rv_call *[]){parked, stays}, 2), RV_OK);
    key_change(w, RV_CALL_KEY_REVOKE, "ended001", RV_ROLE_OPERATOR);
    assert_false(world_finished(parked));
    struct rv_call *calls[] = {with_key(submission_of(w), "ended001"),
                               with_key(world_call(w, RV_CALL_AGENTS), "ended001"),
                               with_key(world_call(w, RV_CALL_AGENTS), "admin001")};
    struct rv_call *submission = calls[0], *read = calls[1], *good = calls[2];
    assert_int_equal(pair_batch(&aside, calls, 3), RV_OK);
    assert_refused(submission);
    assert_refused(read);
    assert_refused(parked);
    assert_true(world_finished(good));
    assert_int_equal(good->err, RV_OK);
    assert_false(world_finished(stays));
    assert_int_equal(told.keys, 1);
}

/* Each of two servers revokes one of two admin keys, and has read both. */
static void of_two_admin_keys_one_stays_although_two_servers_revoke(void **state)
{
    struct world *w = *state;
    struct rv_call *there = world_call(w, RV_CALL_KEY_REVOKE);
    key_change(w, RV_CALL_KEY_ADD, "admin001", RV_ROLE_ADMIN);
    key_change(w, RV_CALL_KEY_ADD, "admin002", RV_ROLE_ADMIN);
    there->u.key.row.id = RV_STR("admin002");
    revokes_here = w;
    assert_int_equal(pair_batch(&aside, &there, 1), RV_OK);
    assert_null(revokes_here);
    assert_false(world_finished(there)); /* its store did not take that */
    assert_int_equal(pair_batch(&aside, NULL, 0), RV_OK);
    assert_true(world_finished(there));
    assert_int_equal(there->err, RV_ERR_REFUSED);
    assert_int_equal(told.keys, 1);
}

static void the_first_key_shuts_the_door_of_another_server(void **state)
{
    struct world *w = *state;
    struct rv_call *parked = with_key(poll_of(w, "i1"), NULL);
    assert_int_equal(pair_batch(&aside, &parked, 1), RV_OK);
    key_change(w, RV_CALL_KEY_ADD, "admin001", RV_ROLE_ADMIN);
    struct rv_call *call = with_key(submission_of(w), NULL), *submission = call;
    assert_int_equal(pair_batch(&aside, &call, 1), RV_OK);
    assert_refused(submission);
    assert_refused(parked);
}

/* Keys of a transaction that a standby has lost open nothing: all is read again. */
static void a_key_that_was_lost_has_no_effect(void **state)
{
    struct world *w = *state;
    key_change(w, RV_CALL_KEY_ADD, "admin001", RV_ROLE_ADMIN);
    key_change(w, RV_CALL_KEY_ADD, "ended001", RV_ROLE_OPERATOR);
    assert_int_equal(pair_batch(&aside, NULL, 0), RV_OK);
    assert_int_equal(told.keys, 2);
    rv_store_memory_data_lose(w->data, 1);
    struct rv_call *call = with_key(submission_of(w), "ended001"), *submission = call;
    assert_int_equal(pair_batch(&aside, &call, 1), RV_OK);
    assert_refused(submission);
    assert_int_equal(told.keys, 1);
}

/* Nothing is decided with keys that nobody could take over. */
static void keys_without_memory_are_told_again(void **state)
{
    struct world *w = *state;
    keys_make(w);
    key_change(w, RV_CALL_KEY_REVOKE, "ended001", RV_ROLE_OPERATOR);
    told.failures = 1;
    struct rv_call *call = with_key(submission_of(w), "ended001"), *submission = call;
    assert_int_equal(pair_batch(&aside, &call, 1), RV_ERR_MEMORY);
    assert_true(world_finished(submission));
    assert_int_equal(submission->err, RV_ERR_MEMORY);
    assert_int_equal(told.keys, 2);
    assert_int_equal(pair_batch(&aside, NULL, 0), RV_OK);
    assert_int_equal(told.keys, 1);
    size_t lists = told.lists;
    assert_int_equal(pair_batch(&aside, NULL, 0), RV_OK);
    assert_int_equal(told.lists, lists); /* what has not changed is not told */
}

static size_t taken_there(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL), *poll = call;
    call->u.poll = (struct rv_poll){
        .agent = RV_STR("inventory"), .instance = RV_STR("i1"), .boot = RV_STR("b1"), .max = 1};
    call->u.poll.poll = rv_arena_printf(&call->arena, "poll-%llu",
                                        (unsigned long long)call->serial);
    assert_int_equal(pair_batch(&aside, &call, 1), RV_OK);
    assert_true(world_finished(poll));
    return poll->u.poll.requests_count;
}

static void a_limit_holds_in_the_next_batch_of_another_server(void **state)
{
    struct world *w = *state;
    pair_swap(&aside);
    (void)world_submit(w, "order", "{}");
    (void)world_submit(w, "order", "{}");
    world_settle(w);
    pair_swap(&aside);
    assert_int_equal(taken_there(w), 1);
    struct rv_call_limit pause = {.sets_paused = true, .row.paused = true};
    world_limit(w, pause);
    assert_int_equal(taken_there(w), 0);
    pause.row.paused = false;
    world_limit(w, pause);
    assert_int_equal(taken_there(w), 1);
}

static const char newer[] =
    "document: {dsl: '1.0.3', namespace: shop, name: order, version: '2.0.0'}\n"
    "do:\n"
    "  - only: {call: newer}\n";

static struct rv_task_id submit_there(struct world *w)
{
    struct rv_call *call = submission_of(w), *submission = call;
    assert_int_equal(pair_batch(&aside, &call, 1), RV_OK);
    assert_true(world_finished(submission));
    assert_int_equal(submission->u.submit.items[0].err, RV_OK);
    return submission->u.submit.items[0].task;
}

static void a_workflow_is_used_by_the_next_submission_on_another_server(void **state)
{
    struct world *w = *state;
    struct rv_task_id before = submit_there(w);
    assert_int_equal(names_asked, 1);
    assert_int_equal(world_task(w, submit_there(w))->workflow, world_task(w, before)->workflow);
    assert_int_equal(names_asked, 1); /* it is known until something is published */
    world_publish(w, newer);
    struct rv_task_id after = submit_there(w);
    assert_true(world_task(w, after)->workflow != world_task(w, before)->workflow);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_two, close_two)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_revoked_key_has_no_effect_on_another_server),
        SCENARIO(of_two_admin_keys_one_stays_although_two_servers_revoke),
        SCENARIO(the_first_key_shuts_the_door_of_another_server),
        SCENARIO(a_key_that_was_lost_has_no_effect),
        SCENARIO(keys_without_memory_are_told_again),
        SCENARIO(a_limit_holds_in_the_next_batch_of_another_server),
        SCENARIO(a_workflow_is_used_by_the_next_submission_on_another_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
