/* Answers with large rows: what is loaded for them is bounded, whoever asks and however long, and
 * small reads do not wait for them. */
#include "../lib/store_faults.h"
#include "../lib/world.h"
#include "order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LARGE = 300 * 1024, WAIT_MS = 20000, SMALL = 16 * 1024 };

static const char *const one_step = DOCUMENT("one") "do:\n  - a: {call: one}\n";

/* The maker of answers, and what it holds of loaded rows. */
static bool room;
static size_t took;

static bool maker_room(void *self)
{
    (void)self;
    return room;
}

static void maker_took(void *self, size_t bytes)
{
    (void)self;
    took += bytes;
}

static const struct rv_call_loads maker = {maker_room, maker_took, NULL};

static struct store_faults faults;

static int open_world(void **state)
{
    static struct world w;
    room = true;
    took = 0;
    faults = (struct store_faults){.fail_with = RV_ERR_FULL};
    world_open_faulty(&w, &faults);
    world_publish(&w, one_step);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    world_close(*state);
    return 0;
}

/* {"text":"aaa..."} */
static struct rv_str large_json(struct world *w)
{
    static char text[LARGE];
    (void)w;
    memset(text, 'a', sizeof text);
    memcpy(text, "{\"text\":\"", 9);
    memcpy(text + sizeof text - 2, "\"}", 2);
    return (struct rv_str){text, sizeof text};
}

static struct rv_call *show(struct world *w, struct rv_task_id task, int64_t wait_ms)
{
    struct rv_call *call = world_call(w, RV_CALL_SHOW);
    call->loads = &maker;
    call->u.show.task = task;
    call->u.show.wait_ms = wait_ms;
    call->u.show.after_revision = INT64_MAX;
    return call;
}

/* Its input is not on the call's own arena, so that this has nothing but what the answer takes. */
static struct rv_call *submission(struct world *w, struct rv_str input)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
    *item = (struct rv_submission){
        .space = RV_STR("shop"), .name = RV_STR("one"), .input = input, .priority = 5};
    call->loads = &maker;
    call->u.submit.items = item;
    call->u.submit.count = 1;
    call->u.submit.wait_ms = WAIT_MS;
    return call;
}

static struct rv_task_id large_task(struct world *w)
{
    struct rv_call *call = submission(w, large_json(w));
    call->u.submit.wait_ms = 0;
    assert_true(world_run(w, call));
    assert_int_equal(call->u.submit.items[0].err, RV_OK);
    return call->u.submit.items[0].task;
}

static void assert_whole(const struct rv_task *task, enum rv_task_state state)
{
    assert_non_null(task);
    assert_int_equal(task->state, state);
    assert_int_equal(task->input.len, LARGE);
}

static void a_large_read_waits_for_room_and_small_ones_do_not(void **state)
{
    struct world *w = *state;
    struct rv_task_id large = large_task(w), small = world_submit(w, "one", "{}");
    room = false;
    struct rv_call *waits = show(w, large, 0), *goes = show(w, small, 0);
    assert_false(world_run(w, waits));
    assert_true(world_run(w, goes));
    assert_non_null(goes->u.show.found);
    assert_in_range(waits->arena.bytes_taken, 0, SMALL);
    room = true;
    world_settle(w);
    assert_true(world_finished(waits));
    assert_whole(waits->u.show.found, RV_TASK_PENDING);
    assert_in_range(took, LARGE, 2 * LARGE);
}

static void a_full_disk_leaves_large_reads_in_line(void **state)
{
    struct world *w = *state;
    struct rv_task_id large = large_task(w);
    room = false;
    struct rv_call *waits = show(w, large, 0), *fails = submission(w, RV_STR("{}"));
    assert_false(world_run(w, waits));
    faults.fail_commits = 1;
    assert_true(world_run(w, fails));
    assert_int_equal(fails->err, RV_ERR_FULL);
    assert_false(world_finished(waits));
    room = true;
    world_settle(w);
    assert_true(world_finished(waits));
    assert_whole(waits->u.show.found, RV_TASK_PENDING);
}

static void queries_are_answered_in_a_batch_that_cannot_be_written(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "one", "{}");
    struct rv_call *fails = submission(w, RV_STR("{}"));
    struct rv_call *asks = world_call(w, RV_CALL_TASKS);
    asks->u.list.limit = 10;
    struct rv_call *calls[] = {fails, asks};
    faults.fail_commits = 1;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, 2, w->mono), RV_ERR_FULL);
    assert_int_equal(fails->err, RV_ERR_FULL);
    assert_true(world_finished(asks));
    assert_int_equal(asks->err, RV_OK);
    assert_int_equal(asks->u.list.count, 1);
}

/* Before anything is decided: a stop waits for what is parked for its own agent. */
static void a_caller_that_left_is_heard_though_the_store_refuses(void **state)
{
    struct world *w = *state;
    struct rv_call *parked = world_call(w, RV_CALL_POLL);
    struct rv_call *gone = world_call(w, RV_CALL_GONE);
    parked->u.poll = (struct rv_poll){.agent = RV_STR("one"),
                                      .instance = RV_STR("i1"),
                                      .boot = RV_STR("b1"),
                                      .poll = RV_STR("p1"),
                                      .max = 8,
                                      .wait_ms = WAIT_MS};
    assert_false(world_run(w, parked));
    gone->u.gone.serial = parked->serial;
    faults.fail_at = faults.calls + 1;
    assert_true(world_run(w, gone));
    assert_int_equal(faults.failed, 1);
    assert_true(world_finished(parked));
}

/* As long as it waits for its task it holds none of its payloads, and then it waits for room. */
static void assert_waits_with_nothing(struct world *w, struct rv_call *call)
{
    assert_false(world_run(w, call));
    assert_in_range(call->arena.bytes_taken, 0, SMALL);
    room = false;
    struct rv_request request = world_take(w, "one", "i1");
    assert_in_range(call->arena.bytes_taken, 0, SMALL);
    assert_int_equal(world_done(w, request, "{}"), 200);
    world_settle(w);
    assert_false(world_finished(call));
    assert_in_range(call->arena.bytes_taken, 0, SMALL);
    room = true;
    world_settle(w);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_OK);
    assert_in_range(took, LARGE, 2 * LARGE);
}

static void a_look_that_waits_holds_no_payloads(void **state)
{
    struct world *w = *state;
    struct rv_call *call = show(w, large_task(w), WAIT_MS);
    assert_waits_with_nothing(w, call);
    assert_whole(call->u.show.found, RV_TASK_PROCESSED);
}

static void a_submission_that_waits_holds_no_payloads(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submission(w, large_json(w));
    assert_waits_with_nothing(w, call);
    assert_int_equal(call->u.submit.items[0].err, RV_OK);
    assert_whole(call->u.submit.task, RV_TASK_PROCESSED);
}

/* A small task that becomes large while the submission waits for it. */
static void a_submission_lets_go_of_what_becomes_large(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submission(w, RV_STR("{}"));
    assert_false(world_run(w, call));
    struct rv_request request = world_take(w, "one", "i1");
    room = false;
    struct rv_reply reply = {.output = large_json(w), .effect = RV_EFFECT_DONE};
    assert_int_equal(world_reply(w, request, reply), 200);
    world_settle(w);
    assert_false(world_finished(call));
    assert_in_range(call->arena.bytes_taken, 0, SMALL);
    room = true;
    world_settle(w);
    assert_true(world_finished(call));
    assert_non_null(call->u.submit.task);
    assert_int_equal(call->u.submit.task->output.len, LARGE);
}

static void a_submission_whose_time_is_over_is_told_how_its_task_stands(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submission(w, large_json(w));
    assert_false(world_run(w, call));
    world_pass(w, WAIT_MS + 1000);
    assert_true(world_finished(call));
    assert_whole(call->u.submit.task, RV_TASK_PENDING);
}

/* What waits for room when the server stops: the submission is carried out, and says so. */
static void a_stop_answers_what_waits_for_room(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submission(w, large_json(w));
    assert_false(world_run(w, call));
    room = false;
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    struct rv_call *look = show(w, call->u.submit.items[0].task, 0);
    assert_false(world_run(w, look));
    world_restart(w, 100);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(call->u.submit.items[0].err, RV_OK);
    assert_true(world_finished(look));
    assert_int_equal(look->err, RV_ERR_BUSY);
}

int main(void)
{
#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_large_read_waits_for_room_and_small_ones_do_not),
        SCENARIO(a_full_disk_leaves_large_reads_in_line),
        SCENARIO(queries_are_answered_in_a_batch_that_cannot_be_written),
        SCENARIO(a_caller_that_left_is_heard_though_the_store_refuses),
        SCENARIO(a_look_that_waits_holds_no_payloads),
        SCENARIO(a_submission_that_waits_holds_no_payloads),
        SCENARIO(a_submission_lets_go_of_what_becomes_large),
        SCENARIO(a_submission_whose_time_is_over_is_told_how_its_task_stands),
        SCENARIO(a_stop_answers_what_waits_for_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
