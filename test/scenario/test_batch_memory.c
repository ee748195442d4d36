/* Rows of many large tasks: a batch loads a bounded number of bytes, and takes fewer where the
 * machine has little memory. A task that never fits is parked alone (RULES 11). */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/limits.h"
#include "scheduler/batch/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* All tasks together are many times of what a batch may load: a few shares of BATCH_BYTES * 4, and
 * the pieces by which these are exceeded. */
enum { TASKS = 60, TEXT_BYTES = 70 * 1000, BATCH_BYTES = 64 * 1024, LOADS_MAX = 4 * 1000 * 1000 };

/* The row of a task has its input as submitted, that of its step has it as the data of control. */
static const uint64_t task_bytes = 2 * (uint64_t)TEXT_BYTES;

struct stage {
    struct world w;
    struct store_faults faults;
    struct rv_task_id tasks[TASKS];
    char *input;
};

static int open_stage(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    world_open_faulty(&stage->w, &stage->faults);
    stage->w.batch_bytes_max = BATCH_BYTES;
    world_restart(&stage->w, 1);
    world_publish(&stage->w, workflow_file("batch_memory/waits"));
    stage->input = malloc(TEXT_BYTES + 100);
    assert_non_null(stage->input);
    snprintf(stage->input, TEXT_BYTES + 100, "{\"text\":\"%*s\"}", (int)TEXT_BYTES, "");
    *state = stage;
    return 0;
}

static int close_stage(void **state)
{
    struct stage *stage = *state;
    world_close(&stage->w);
    free(stage->input);
    free(stage);
    return 0;
}

static void submit_all(struct stage *stage)
{
    for (size_t i = 0; i < TASKS; i++)
        stage->tasks[i] = world_submit(&stage->w, "waits", stage->input);
    world_settle(&stage->w);
    stage->faults.loaded_bytes_max = 0;
}

/* Work in progress of one instance. */
static struct rv_assignment *take_all(struct stage *stage)
{
    struct rv_assignment *requests = calloc(TASKS, sizeof *requests);
    assert_non_null(requests);
    for (size_t count = 0; count < TASKS;) {
        struct rv_call *poll = world_poll(&stage->w, "agent", "i1", TASKS);
        assert_true(poll->u.poll.requests_count > 0);
        for (size_t i = 0; i < poll->u.poll.requests_count; i++)
            requests[count++] = poll->u.poll.requests[i];
    }
    return requests;
}

static void assert_bounded(const struct stage *stage)
{
    assert_int_equal(stage->w.batches_failed, 0);
    assert_in_range(stage->faults.loaded_bytes_max, 1, LOADS_MAX);
}

static void tasks_that_are_due_at_once_are_loaded_in_batches(void **state)
{
    struct stage *stage = *state;
    submit_all(stage);
    world_pass(&stage->w, 31000);
    for (size_t i = 0; i < TASKS; i++)
        assert_step(&stage->w, stage->tasks[i], 2, "pending");
    assert_bounded(stage);
}

static void a_start_walks_over_large_tasks_in_batches(void **state)
{
    struct stage *stage = *state;
    submit_all(stage);
    world_restart(&stage->w, 100);
    world_pass(&stage->w, 31000);
    for (size_t i = 0; i < TASKS; i++)
        assert_step(&stage->w, stage->tasks[i], 2, "pending");
    assert_bounded(stage);
    /* Nothing but the walk finds the steps that are ready. */
    world_restart(&stage->w, 100);
    free(take_all(stage));
    assert_bounded(stage);
}

/* The tasks come with the piece of the walk; where there is no memory for that, after it. */
static void a_start_loads_the_tasks_with_its_walk(void **state)
{
    struct stage *stage = *state;
    for (int little = 0; little <= 1; little++) {
        struct rv_task_id task = world_submit(&stage->w, "waits", "{}");
        world_restart_unlooked(&stage->w, 100);
        stage->faults.loads = stage->faults.calls = 0;
        stage->faults.fail_with = RV_ERR_MEMORY;
        stage->faults.fail_at = little ? 1 : 0;
        world_settle(&stage->w);
        assert_false(stage->w.scheduler->supervisor.scan_first);
        assert_int_equal(stage->faults.failed, little);
        assert_int_equal(stage->faults.loads, little ? 2 : 0);
        stage->faults.fail_at = 0;
        world_pass(&stage->w, 31000);
        assert_step(&stage->w, task, 2, "pending");
    }
}

/* What the last piece of the walk gave is known once the batch is written. */
static void a_walk_is_over_with_the_batch_that_is_written(void **state)
{
    struct stage *stage = *state;
    const struct rv_supervisor *supervisor;
    world_submit(&stage->w, "waits", "{}");
    world_restart_unlooked(&stage->w, 100);
    supervisor = &stage->w.scheduler->supervisor;
    stage->faults.fail_with = RV_ERR_BUSY;
    stage->faults.fail_commits = 1;
    assert_int_equal(rv_scheduler_run_batch(stage->w.scheduler, NULL, 0, stage->w.mono),
                     RV_ERR_BUSY);
    assert_true(supervisor->scan_first);
    world_settle(&stage->w);
    assert_false(supervisor->scan_first);
}

/* One poll has room for all of them. */
static void polls_hand_out_steps_of_large_tasks_in_batches(void **state)
{
    struct stage *stage = *state;
    submit_all(stage);
    world_pass(&stage->w, 31000);
    stage->faults.loaded_bytes_max = 0;
    free(take_all(stage));
    assert_bounded(stage);
}

static struct rv_call *replies_of(struct world *w, const struct rv_assignment *requests,
                                  size_t count)
{
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item *items = RV_NEW_ARRAY(&call->arena, struct rv_reply_item, count);
    assert_non_null(items);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct rv_reply_item){.step = requests[i].step,
                                          .token = requests[i].token,
                                          .reply = {.output = RV_STR("{}")}};
    call->u.replies.items = items;
    call->u.replies.count = count;
    return call;
}

/* Each in a small call, all in one batch; then one large one. */
static void expect_replies(struct stage *stage, size_t each)
{
    struct world *w = &stage->w;
    struct rv_call *calls[TASKS];
    submit_all(stage);
    world_pass(w, 31000);
    struct rv_assignment *requests = take_all(stage);
    stage->faults.loaded_bytes_max = 0;
    size_t count = 0;
    for (size_t i = 0; i < TASKS; i += each)
        calls[count++] = replies_of(w, requests + i, each);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, count, w->mono), RV_OK);
    world_settle(w);
    for (size_t i = 0; i < count; i++) {
        assert_true(world_finished(calls[i]));
        for (size_t n = 0; n < each; n++)
            assert_int_equal(calls[i]->u.replies.items[n].status, 200);
    }
    free(requests);
    for (size_t i = 0; i < TASKS; i++)
        assert_state(w, stage->tasks[i], "processed");
    assert_bounded(stage);
}

static void replies_about_large_tasks_take_turns(void **state)
{
    expect_replies(*state, 1);
}

static void one_call_with_replies_about_large_tasks_takes_turns(void **state)
{
    expect_replies(*state, TASKS);
}

/* Their agent is started again: all that it held ends. */
static void ends_of_attempts_of_large_tasks_take_turns(void **state)
{
    struct stage *stage = *state;
    struct world *w = &stage->w;
    submit_all(stage);
    world_pass(w, 31000);
    free(take_all(stage));
    stage->faults.loaded_bytes_max = 0;
    struct rv_call *poll = world_call(w, RV_CALL_POLL);
    poll->u.poll = (struct rv_poll){.agent = RV_STR("agent"),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("the next one"),
                                    .poll = RV_STR("first"),
                                    .max = 1};
    assert_true(world_run(w, poll));
    assert_int_equal(poll->err, RV_OK);
    assert_bounded(stage);
    for (size_t i = 0; i < TASKS; i++)
        assert_int_not_equal(world_step(w, stage->tasks[i], 2)->attempt_state, RV_ATTEMPT_OPEN);
}

static void renewals_about_large_tasks_take_turns(void **state)
{
    struct stage *stage = *state;
    struct world *w = &stage->w;
    submit_all(stage);
    world_pass(w, 31000);
    struct rv_assignment *requests = take_all(stage);
    stage->faults.loaded_bytes_max = 0;
    struct rv_call *call = world_call(w, RV_CALL_LEASES);
    struct rv_lease_item items[TASKS] = {{.status = 0}};
    for (size_t i = 0; i < TASKS; i++) {
        items[i].step = requests[i].step;
        items[i].token = requests[i].token;
    }
    call->u.leases.items = items;
    call->u.leases.count = TASKS;
    (void)world_run(w, call);
    world_settle(w);
    assert_true(world_finished(call));
    for (size_t i = 0; i < TASKS; i++) {
        assert_int_equal(items[i].status, 200);
        assert_false(items[i].cancel);
    }
    free(requests);
    assert_bounded(stage);
}

static void commands_about_large_tasks_take_turns(void **state)
{
    struct stage *stage = *state;
    struct world *w = &stage->w;
    struct rv_call *calls[TASKS];
    submit_all(stage);
    for (size_t i = 0; i < TASKS; i++) {
        calls[i] = world_call(w, RV_CALL_OPERATE);
        calls[i]->u.operate = (struct rv_call_operate){.verb = RV_COMMAND_CANCEL,
                                                       .task = stage->tasks[i],
                                                       .by = RV_STR("me"),
                                                       .reason = RV_STR("no need")};
    }
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, TASKS, w->mono), RV_OK);
    world_settle(w);
    for (size_t i = 0; i < TASKS; i++) {
        assert_true(world_finished(calls[i]));
        assert_int_equal(calls[i]->err, RV_OK);
        assert_state(w, stage->tasks[i], "cancelled");
    }
    assert_bounded(stage);
}

/* As many as fit are taken, after a few batches that failed; then there is no end to the answers
 * that others get. */
static void little_memory_makes_smaller_batches(void **state)
{
    struct stage *stage = *state;
    struct world *w = &stage->w;
    submit_all(stage);
    stage->faults.memory_bytes = 2 * task_bytes + task_bytes / 2;
    world_pass(w, 60000);
    for (size_t i = 0; i < TASKS; i++)
        assert_step(w, stage->tasks[i], 2, "pending");
    assert_in_range(w->batches_failed, 1, 8);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* With more memory it goes on: the alert says so. */
static void what_does_not_fit_alone_is_parked_alone(void **state)
{
    struct stage *stage = *state;
    struct world *w = &stage->w;
    struct rv_task_id small[2];
    small[0] = world_submit(w, "waits", "{}");
    struct rv_task_id large = world_submit(w, "waits", stage->input);
    small[1] = world_submit(w, "waits", "{}");
    stage->faults.memory_bytes = task_bytes / 2 + task_bytes / 4;
    world_pass(w, 60000);
    stage->faults.memory_bytes = 0;
    for (size_t i = 0; i < 2; i++)
        assert_step(w, small[i], 2, "pending");
    assert_state(w, large, "error");
    assert_int_equal(world_count_alerts(w, large, RV_ALERT_UNREADABLE), 1);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, large), RV_OK);
    world_pass(w, 60000);
    assert_step(w, large, 2, "pending");
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* The limit of memory counts them, whichever error it is. */
static void a_large_error_that_ends_a_wait_is_counted(void **state)
{
    enum { BIG = 900 * 1000 };
    struct stage *stage = *state;
    struct world *w = &stage->w;
    char *error = malloc(BIG + 64);
    assert_non_null(error);
    snprintf(error, BIG + 64, "{\"type\":\"x\",\"title\":\"%*s\"}", (int)BIG, "");
    struct rv_reply big = {.effect = RV_EFFECT_NONE, .error = rv_str_of(error)};
    struct rv_reply little = {.effect = RV_EFFECT_NONE, .error = RV_STR("{\"type\":\"y\"}")};
    world_publish(w, workflow_file("order"));
    for (int undo = 0; undo <= 1; undo++) {
        struct rv_task_id task = world_submit(w, "order", "{}");
        assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
        assert_int_equal(world_reply(w, world_take(w, "payment", "i1"), undo ? little : big), 200);
        struct rv_assignment release = world_take(w, "inventory", "i1");
        struct rv_call *show = world_call(w, RV_CALL_SHOW);
        show->u.show.task = task;
        show->u.show.wait_ms = 20000;
        show->u.show.after_revision = 1000;
        assert_false(world_run(w, show));
        assert_int_equal(undo ? world_reply(w, release, big) : world_done(w, release, "{}"), 200);
        world_settle(w);
        assert_true(world_finished(show));
        assert_true(show->loaded_bytes > BIG);
    }
    free(error);
}

static void a_batch_has_room_for_the_scan_only_when_it_is_due(void **state)
{
    struct stage *stage = *state;
    struct rv_scheduler *scheduler = stage->w.scheduler;
    world_settle(&stage->w);
    size_t without = scheduler->arena.bytes_taken;
    stage->w.now += scheduler->supervisor.scan_interval_ms;
    stage->w.mono += scheduler->supervisor.scan_interval_ms;
    world_settle(&stage->w);
    assert_true(scheduler->arena.bytes_taken >=
                without + RV_SCAN_ROWS_MAX * sizeof(struct rv_scanned));
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
    const struct CMUnitTest tests[] = {
        SCENARIO(tasks_that_are_due_at_once_are_loaded_in_batches),
        SCENARIO(a_start_walks_over_large_tasks_in_batches),
        SCENARIO(a_start_loads_the_tasks_with_its_walk),
        SCENARIO(a_walk_is_over_with_the_batch_that_is_written),
        SCENARIO(polls_hand_out_steps_of_large_tasks_in_batches),
        SCENARIO(replies_about_large_tasks_take_turns),
        SCENARIO(one_call_with_replies_about_large_tasks_takes_turns),
        SCENARIO(ends_of_attempts_of_large_tasks_take_turns),
        SCENARIO(renewals_about_large_tasks_take_turns),
        SCENARIO(commands_about_large_tasks_take_turns),
        SCENARIO(little_memory_makes_smaller_batches),
        SCENARIO(what_does_not_fit_alone_is_parked_alone),
        SCENARIO(a_large_error_that_ends_a_wait_is_counted),
        SCENARIO(a_batch_has_room_for_the_scan_only_when_it_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
