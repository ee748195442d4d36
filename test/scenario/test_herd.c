/* Thousands of tasks due at one instant: batches stay small, those who come meanwhile do not wait,
 * and what expired together does not come back together (RULES 9, 11). */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/limits.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CALLS = 10, HERD = CALLS * RV_CALL_ITEMS_MAX, LEASE_MS = 10000, TENTHS = 10 };
enum { PIECE_MAX = 1000 }; /* RULES 11: a batch is bounded, about 1,000 */

static const char *const waits = DOCUMENT("waits") "do:\n  - pause: {wait: PT5S}\n";

static struct rv_task_id herd[HERD];

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    world_publish(&w, workflow_file("order"));
    world_publish(&w, waits);
    *state = &w;
    return 0;
}

static void submit_herd(struct world *w, const char *workflow)
{
    for (size_t c = 0; c < CALLS; c++) {
        struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
        struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission,
                                                   RV_CALL_ITEMS_MAX);
        for (size_t i = 0; i < RV_CALL_ITEMS_MAX; i++)
            items[i] = (struct rv_submission){.space = RV_STR("shop"), .name = rv_str_of(workflow)};
        call->u.submit.items = items;
        call->u.submit.count = RV_CALL_ITEMS_MAX;
        call->u.submit.batch = true;
        assert_true(world_run(w, call));
        for (size_t i = 0; i < RV_CALL_ITEMS_MAX; i++) {
            assert_int_equal(items[i].err, RV_OK);
            herd[c * RV_CALL_ITEMS_MAX + i] = items[i].task;
        }
    }
}

/* Visits the first step of each task of the herd, as it is in the store. */
static void each_step(struct world *w, void (*visit)(const struct rv_step *step, void *user),
                      void *user)
{
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    for (size_t from = 0; from < HERD; from += RV_CALL_ITEMS_MAX) {
        struct rv_step_id ids[RV_CALL_ITEMS_MAX];
        const struct rv_step *steps[RV_CALL_ITEMS_MAX];
        rv_arena_reset(&arena);
        for (size_t i = 0; i < RV_CALL_ITEMS_MAX; i++)
            ids[i] = (struct rv_step_id){herd[from + i], 1};
        assert_int_equal(w->store->ops->load_steps(w->store, &arena, RV_COLUMNS_ALL, ids,
                                                   RV_CALL_ITEMS_MAX, steps),
                         RV_OK);
        for (size_t i = 0; i < RV_CALL_ITEMS_MAX; i++)
            visit(steps[i], user);
    }
    rv_arena_done(&arena);
}

static void count_processed(const struct rv_step *step, void *user)
{
    *(size_t *)user += step->state == RV_STEP_PROCESSED;
}

static void count_expired(const struct rv_step *step, void *user)
{
    *(size_t *)user += step->attempt_state == RV_ATTEMPT_EXPIRED;
}

/* One batch with a submission in it, which must not wait for the next. */
static void batch_with_submission(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission item = {.space = RV_STR("shop"), .name = RV_STR("order")};
    call->u.submit.items = &item;
    call->u.submit.count = 1;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &call, 1, w->mono), RV_OK);
    assert_true(world_finished(call));
    assert_int_equal(item.err, RV_OK);
}

/* All of the herd is due. Each batch takes a piece, until it has all. */
static void take_in_pieces(struct world *w, void (*count)(const struct rv_step *, void *))
{
    size_t before = 0, batches = 0;
    do {
        size_t now = 0;
        batch_with_submission(w);
        each_step(w, count, &now);
        assert_true(now >= before && now - before <= PIECE_MAX);
        before = now;
        batches++;
        assert_true(batches <= HERD / PIECE_MAX + 2);
    } while (rv_scheduler_next_wake(w->scheduler, w->mono) == 0);
    assert_int_equal(before, HERD);
}

static void timers_of_one_instant_come_in_pieces(void **state)
{
    struct world *w = *state;
    submit_herd(w, "waits");
    world_pass(w, 4999);
    size_t early = 0;
    each_step(w, count_processed, &early);
    assert_int_equal(early, 0);
    w->now++;
    w->mono++;
    take_in_pieces(w, count_processed);
}

static void take_all(struct world *w)
{
    size_t taken = 0;
    while (taken < HERD) {
        struct rv_call *poll = world_poll(w, "inventory", "i1", RV_POLL_REQUESTS_MAX);
        assert_true(poll->u.poll.requests_count > 0);
        taken += poll->u.poll.requests_count;
    }
}

struct spread {
    int64_t now;
    size_t tenths[TENTHS];
};

static void measure(const struct rv_step *step, void *user)
{
    struct spread *spread = user;
    int64_t wait = step->ready_at - spread->now;
    assert_int_equal(step->state, RV_STEP_PENDING);
    assert_int_equal(step->failure_count, 0);
    assert_int_equal(step->effect, RV_EFFECT_UNKNOWN);
    assert_true(wait >= 0 && wait <= LEASE_MS);
    spread->tenths[wait == LEASE_MS ? TENTHS - 1 : wait * TENTHS / LEASE_MS]++;
}

/* Nobody looked for a minute: every attempt has expired, none of them counts as a failure, and they
 * are repeated evenly over one lease. */
static void what_expired_in_an_absence_comes_back_spread(void **state)
{
    struct world *w = *state;
    submit_herd(w, "order");
    take_all(w);
    w->now += 60000;
    w->mono += 60000;
    take_in_pieces(w, count_expired);
    struct spread spread = {.now = w->now};
    each_step(w, measure, &spread);
    for (size_t i = 0; i < TENTHS; i++)
        assert_in_range(spread.tenths[i], HERD / TENTHS / 2, HERD / TENTHS * 3 / 2);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(timers_of_one_instant_come_in_pieces),
        SCENARIO(what_expired_in_an_absence_comes_back_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
