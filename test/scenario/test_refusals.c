/* Batches that the store refuses, whole or in part: what was in them goes on (RULES 11). */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "document.h"
#include "scheduler/counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct store_faults faults;

static int open_world(void **state)
{
    faults = (struct store_faults){.fail_with = RV_ERR_BUSY};
    return world_setup(state, &faults, WORLD_FILES("order"));
}

static struct rv_call *poll_call(struct world *w, const char *agent, const char *instance,
                                 const char *boot, const char *poll, int64_t wait_ms)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){.agent = rv_str_of(agent),
                                    .instance = rv_str_of(instance),
                                    .boot = rv_str_of(boot),
                                    .poll = rv_str_of(poll),
                                    .max = 8,
                                    .wait_ms = wait_ms};
    return call;
}

static struct rv_call *operate_call(struct world *w, enum rv_command_kind verb,
                                    struct rv_task_id task)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate.verb = verb;
    call->u.operate.task = task;
    return call;
}

static struct rv_call *reply_call(struct world *w, struct rv_assignment request)
{
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item *item = RV_NEW(&call->arena, struct rv_reply_item);
    *item = (struct rv_reply_item){
        .step = request.step, .token = request.token, .reply = {.output = RV_STR("{}")}};
    call->u.replies.items = item;
    call->u.replies.count = 1;
    return call;
}

/* All in one batch, whose commit fails. */
static void fail_commit(struct world *w, struct rv_call **calls, size_t count)
{
    faults.fail_commits = 1;
    assert_int_not_equal(rv_scheduler_run_batch(w->scheduler, calls, count, w->mono), RV_OK);
    assert_int_equal(faults.fail_commits, 0);
    world_settle(w);
}

/* The hint of the ready step was taken by a poll that saw the step cancelled. */
static void a_ready_step_survives_a_refused_cancel(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *both[] = {operate_call(w, RV_COMMAND_CANCEL, task),
                              poll_call(w, "inventory", "i1", "b1", "p1", 0)};
    fail_commit(w, both, 2);
    assert_int_equal(both[0]->err, RV_ERR_BUSY);
    assert_state(w, task, "pending");
    world_pass(w, 1000);
    (void)world_take(w, "inventory", "i1");
}

static void a_new_boot_counts_though_its_first_poll_was_refused(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *old = poll_call(w, "inventory", "i1", "b1", "p1", 0);
    assert_true(world_run(w, old));
    assert_int_equal(old->u.poll.requests_count, 1);
    struct rv_call *fresh = poll_call(w, "inventory", "i1", "b2", "p2", 0);
    fail_commit(w, &fresh, 1);
    fresh = poll_call(w, "inventory", "i1", "b2", "p3", 0);
    assert_true(world_run(w, fresh));
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_LOST);
}

static struct rv_call *confirming(struct world *w, const char *boot, const char *poll,
                                  const char *confirmed)
{
    struct rv_call *call = poll_call(w, "inventory", "i1", boot, poll, 0);
    call->u.poll.confirms = true;
    call->u.poll.confirm = RV_NEW(&call->arena, struct rv_str);
    *call->u.poll.confirm = rv_str_of(confirmed);
    call->u.poll.confirm_count = confirmed != NULL;
    return call;
}

/* Two late polls of its predecessor have made it look gone; what it says it has got, it has. */
static void a_process_that_looks_gone_still_confirms(void **state)
{
    struct world *w = *state;
    assert_true(world_run(w, confirming(w, "b1", "p1", NULL)));
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *taken = confirming(w, "b2", "p2", NULL);
    assert_true(world_run(w, taken));
    assert_int_equal(taken->u.poll.requests_count, 1);
    assert_true(world_run(w, confirming(w, "b1", "p3", NULL)));
    struct rv_call *late = confirming(w, "b1", "p4", NULL);
    fail_commit(w, &late, 1);
    assert_true(world_run(w, confirming(w, "b2", "p5", "p2")));
    assert_true(world_run(w, confirming(w, "b2", "p6", "p5")));
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_OPEN);
    assert_int_equal(world_step(w, task, 1)->attempt, 1);
}

/* The old process is gone; its parked poll must not take a step with it, and waits no longer. */
static void nothing_goes_to_a_poll_of_an_older_boot(void **state)
{
    struct world *w = *state;
    struct rv_call *old = poll_call(w, "inventory", "i1", "b1", "p1", 20000);
    assert_false(world_run(w, old));
    struct rv_call *fresh = poll_call(w, "inventory", "i1", "b2", "p2", 20000);
    assert_false(world_run(w, fresh));
    assert_true(world_finished(old));
    assert_int_equal(old->u.poll.requests_count, 0);
    (void)world_submit(w, "order", "{}");
    assert_true(world_finished(fresh));
    assert_int_equal(fresh->u.poll.requests_count, 1);
}

static void an_offender_is_escalated_and_its_reply_answered(void **state)
{
    struct world *w = *state;
    struct rv_task_id good = world_submit(w, "order", "{}");
    struct rv_task_id bad = world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    struct rv_assignment second = world_take(w, "inventory", "i1");
    faults.offender = bad;
    struct rv_call *both[] = {reply_call(w, first), reply_call(w, second)};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, both, 2, w->mono), RV_OK);
    world_settle(w);
    assert_true(world_finished(both[0]) && world_finished(both[1]));
    assert_int_equal(both[0]->u.replies.items[0].status, 200);
    assert_int_not_equal(both[1]->u.replies.items[0].status, 200);
    assert_step(w, good, 1, "processed");
    assert_state(w, bad, "error");
    assert_int_equal(world_count_alerts(w, bad, RV_ALERT_OFFENDER), 1);
    faults.offender = (struct rv_task_id){0};
}

/* One task that the store refuses: the other replies of the same call have their results. */
static void an_offender_blocks_no_other_reply(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    struct rv_task_id bad = world_submit(w, "order", "{}");
    struct rv_assignment requests[] = {world_take(w, "inventory", "i1"),
                                       world_take(w, "inventory", "i1")};
    struct rv_reply_item items[2];
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    for (size_t i = 0; i < 2; i++)
        items[i] = (struct rv_reply_item){.step = requests[i].step,
                                          .token = requests[i].token,
                                          .reply = {.output = RV_STR("{}")}};
    call->u.replies.items = items;
    call->u.replies.count = 2;
    faults.offender = bad;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(items[i].status, items[i].step.task.value == bad.value ? 503 : 200);
    faults.offender = (struct rv_task_id){0};
    assert_state(w, bad, "error");
}

/* Whoever watches hears of a task that is parked for its offence as of any other. */
static void a_parked_offender_is_counted_and_logged(void **state)
{
    struct world *w = *state;
    struct rv_task_id bad = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    const struct rv_counts *counts = rv_scheduler_counts(w->scheduler);
    int alerts = w->alerts;
    faults.offender = bad;
    assert_int_not_equal(world_done(w, request, "{}"), 200);
    assert_int_equal(counts->open_by_state[RV_TASK_PROCESSING], 0);
    assert_int_equal(counts->open_by_state[RV_TASK_ERROR], 1);
    assert_int_equal(counts->alerts[RV_ALERT_OFFENDER], 1);
    assert_int_equal(w->alerts, alerts + 1);
    faults.offender = (struct rv_task_id){0};
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, bad), RV_OK);
    assert_int_equal(counts->open_by_state[RV_TASK_ERROR], 0);
}

static void an_operators_command_on_an_offender_is_answered(void **state)
{
    struct world *w = *state;
    struct rv_task_id bad = world_submit(w, "order", "{}");
    faults.offender = bad;
    struct rv_call *cancel = operate_call(w, RV_COMMAND_CANCEL, bad);
    assert_true(world_run(w, cancel));
    assert_int_not_equal(cancel->err, RV_OK);
    assert_state(w, bad, "error");
    faults.offender = (struct rv_task_id){0};
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, bad), RV_OK);
    assert_state(w, bad, "cancelled");
}

/* What is acknowledged is there, whoever else was in the batch. */
static void a_publication_beside_an_offender_is_written(void **state)
{
    struct world *w = *state;
    struct rv_task_id bad = world_submit(w, "order", "{}");
    faults.offender = bad;
    struct rv_call *publish = world_call(w, RV_CALL_PUBLISH);
    publish->u.publish.row = (struct rv_workflow_row){.space = RV_STR("shop"),
                                                      .name = RV_STR("other"),
                                                      .version = RV_STR("1.0.0"),
                                                      .hash = RV_STR("1"),
                                                      .source = RV_STR("{}")};
    struct rv_call *both[] = {operate_call(w, RV_COMMAND_CANCEL, bad), publish};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, both, 2, w->mono), RV_OK);
    world_settle(w);
    assert_true(world_finished(publish));
    assert_int_equal(publish->err, RV_OK);
    struct rv_call *list = world_call(w, RV_CALL_WORKFLOWS);
    assert_true(world_run(w, list));
    assert_int_equal(list->u.list.count, 2);
    faults.offender = (struct rv_task_id){0};
}

/* A submission without a key. */
static struct rv_call *submit_call(struct world *w, size_t count)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, count);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct rv_submission){
            .space = RV_STR("shop"), .name = RV_STR("order"), .input = RV_STR("{}"), .priority = 5};
    call->u.submit.items = items;
    call->u.submit.count = count;
    call->u.submit.batch = count > 1;
    return call;
}

static struct rv_call *publish_call(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_PUBLISH);
    call->u.publish.row = (struct rv_workflow_row){.space = RV_STR("shop"),
                                                   .name = RV_STR("other"),
                                                   .version = RV_STR("1.0.0"),
                                                   .hash = RV_STR("1"),
                                                   .source = RV_STR("{}")};
    return call;
}

static void run_batch(struct world *w, struct rv_call **calls, size_t count)
{
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, count, w->mono), RV_OK);
}

static size_t count_tasks(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_TASKS);
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    return call->u.list.count;
}

static size_t count_workflows(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_WORKFLOWS);
    assert_true(world_run(w, call));
    return call->u.list.count;
}

/* The batch is halved, its last piece is refused for now: the others hear at once of what is
 * written, and the last is written a little later, once. */
static void what_is_written_is_answered_and_the_rest_decided_again(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    struct rv_task_id bad = world_submit(w, "order", "{}");
    struct rv_call *calls[] = {reply_call(w, world_take(w, "inventory", "i1")),
                               operate_call(w, RV_COMMAND_CANCEL, bad), submit_call(w, 1)};
    faults.offender = bad;
    faults.pass_commits = 5; /* whole, whole, the reply, the other two, the offender */
    faults.fail_commits = 1;
    run_batch(w, calls, 3);
    assert_int_equal(faults.fail_commits, 0);
    assert_true(world_finished(calls[0]) && world_finished(calls[1]));
    assert_int_equal(calls[0]->err, RV_OK);
    assert_int_equal(calls[0]->u.replies.items[0].status, 200);
    assert_int_equal(calls[1]->err, RV_ERR_REFUSED);
    assert_false(world_finished(calls[2]));
    faults.offender = (struct rv_task_id){0};
    world_pass(w, 1000);
    assert_true(world_finished(calls[2]));
    assert_int_equal(calls[2]->u.submit.items[0].err, RV_OK);
    assert_state(w, calls[2]->u.submit.items[0].task, "pending");
    assert_int_equal(count_tasks(w), 3);
}

/* Of a call with many items too: those that are written stay as they are. */
static void the_items_of_a_halved_call_are_written_once_each(void **state)
{
    struct world *w = *state;
    struct rv_task_id bad = world_submit(w, "order", "{}");
    int struck = 0;
    for (uint32_t passed = 1; passed < 12; passed++) {
        size_t before = count_tasks(w);
        struct rv_call *calls[] = {operate_call(w, RV_COMMAND_CANCEL, bad), submit_call(w, 5)};
        faults.offender = bad;
        faults.pass_commits = passed;
        faults.fail_commits = 1;
        run_batch(w, calls, 2);
        struck += faults.fail_commits == 0;
        faults.fail_commits = 0;
        faults.offender = (struct rv_task_id){0};
        world_pass(w, 1000);
        assert_true(world_finished(calls[0]) && world_finished(calls[1]));
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(calls[1]->u.submit.items[i].err, RV_OK);
        assert_int_equal(count_tasks(w), before + 5);
        assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, bad), RV_OK);
        bad = calls[1]->u.submit.items[0].task;
    }
    assert_true(struck > 4 && struck < 11);
}

/* The connection broke in the commit; the store says that nothing of it is there. */
static void a_commit_that_is_found_absent_is_decided_again(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *calls[] = {submit_call(w, 1), operate_call(w, RV_COMMAND_CANCEL, task),
                               publish_call(w), publish_call(w),
                               poll_call(w, "inventory", "i1", "b1", "p1", 0)};
    faults.fail_with = RV_ERR_COMMIT_UNKNOWN;
    faults.fail_commits = 3;
    run_batch(w, calls, 5);
    assert_false(world_finished(calls[0]));
    world_pass(w, 1000);
    assert_int_equal(faults.fail_commits, 0);
    for (size_t i = 0; i < 5; i++)
        assert_true(world_finished(calls[i]) && calls[i]->err == RV_OK);
    assert_state(w, task, "cancelled");
    assert_int_equal(count_tasks(w), 2);
    assert_false(calls[2]->u.publish.known);
    assert_true(calls[3]->u.publish.known);
    assert_int_equal(count_workflows(w), 2);
    /* The new task's hint was lost with the batch, and given again. */
    struct rv_assignment request = world_take(w, "inventory", "i1");
    assert_int_equal(request.step.task.value, calls[0]->u.submit.items[0].task.value);
}

/* Its reply is decided again, and what its poll took has ended meanwhile. */
static void a_carried_reply_is_answered_with_what_is_open_then(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    struct rv_call *first = poll_call(w, "inventory", "i1", "b1", "p1", 0);
    assert_true(world_run(w, first));
    assert_int_equal(first->u.poll.requests_count, 1);
    int64_t left = first->u.poll.requests[0].complete_by - w->now;
    world_pass(w, left - 1000);
    (void)world_submit(w, "order", "{}");
    struct rv_call *call = reply_call(w, world_take(w, "inventory", "i2"));
    call->u.replies.has_next = true;
    call->u.replies.next = first->u.poll;
    call->u.replies.next.requests_count = 0;
    faults.fail_with = RV_ERR_COMMIT_UNKNOWN;
    faults.fail_commits = 1;
    run_batch(w, &call, 1);
    assert_false(world_finished(call));
    w->now += 2000;
    w->mono += 2000;
    world_settle(w);
    assert_true(world_finished(call));
    assert_int_equal(call->u.replies.items[0].status, 200);
    assert_int_equal(call->u.replies.next.requests_count, 0);
}

/* The first loss is made good at once; a store that loses everything is not asked without end, and
 * what its tasks miss meanwhile is nobody's failure. */
static void a_store_that_loses_every_commit_is_asked_now_and_then(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    faults.fail_with = RV_ERR_COMMIT_UNKNOWN;
    faults.fail_commits = UINT32_MAX;
    uint64_t before = faults.commit_calls;
    world_pass(w, 20000);
    assert_in_range(faults.commit_calls - before, 10, 100);
    faults.fail_commits = 0;
    world_pass(w, 20000);
    assert_step(w, task, 1, "pending");
    assert_int_equal(world_step(w, task, 1)->failure_count, 0);
}

/* The renewal came in time, but in an absence, and the batch that would have taken it was lost:
 * the agent has heard of neither, and has stopped. */
static void an_absence_lasts_until_something_is_written(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("refusals/leased"));
    struct rv_task_id task = world_submit(w, "leased", "{}");
    struct rv_call *lease = world_call(w, RV_CALL_LEASES);
    struct rv_assignment request = world_take(w, "slow", "i1");
    struct rv_lease_item item = {.step = request.step, .token = request.token};
    lease->u.leases.items = &item;
    lease->u.leases.count = 1;
    lease->mono_at = w->mono + 2000;
    w->now += 19500;
    w->mono += 19500;
    faults.fail_with = RV_ERR_COMMIT_UNKNOWN;
    faults.fail_commits = 1;
    run_batch(w, &lease, 1);
    assert_false(world_finished(lease));
    world_absent(w, 1000);
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_EXPIRED);
    assert_int_equal(world_step(w, task, 1)->failure_count, 0);
}

/* Again and again: at some time the callers hear so, and what to do. */
static void the_tries_are_bounded(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    struct rv_call *lease = world_call(w, RV_CALL_LEASES);
    struct rv_lease_item item = {.step = request.step, .token = request.token};
    lease->u.leases.items = &item;
    lease->u.leases.count = 1;
    struct rv_call *calls[] = {lease, submit_call(w, 1), operate_call(w, RV_COMMAND_CANCEL, task),
                               publish_call(w), reply_call(w, request)};
    faults.fail_with = RV_ERR_COMMIT_UNKNOWN;
    faults.fail_commits = 1000;
    run_batch(w, calls, 5);
    for (int i = 0; i < 20; i++)
        run_batch(w, NULL, 0);
    faults.fail_commits = 0;
    for (size_t i = 0; i < 5; i++)
        assert_true(world_finished(calls[i]));
    assert_int_equal(calls[1]->u.submit.items[0].err, RV_ERR_BUSY);
    assert_non_null(strstr(calls[1]->u.submit.items[0].message.at, "send the request again"));
    for (size_t i = 0; i < 5; i++)
        assert_true(i == 1 || (calls[i]->err == RV_ERR_BUSY &&
                               strstr(calls[i]->message.at, "send the request again") != NULL));
    world_settle(w);
    assert_int_equal(count_tasks(w), 1);
    assert_int_equal(count_workflows(w), 1);
    assert_int_equal(world_done(w, request, "{}"), 200);
}

/* What belongs to no task stands in a piece of its own. */
static void a_publication_that_is_refused_for_now_is_written_later(void **state)
{
    struct world *w = *state;
    struct rv_task_id bad = world_submit(w, "order", "{}");
    struct rv_call *calls[] = {operate_call(w, RV_COMMAND_CANCEL, bad), publish_call(w)};
    faults.offender = bad;
    faults.pass_commits = 1;
    faults.fail_commits = 1;
    run_batch(w, calls, 2);
    assert_true(world_finished(calls[0]) && !world_finished(calls[1]));
    assert_state(w, bad, "error");
    assert_true(world_finished(calls[1]));
    assert_int_equal(calls[1]->err, RV_OK);
    assert_int_equal(count_workflows(w), 2);
    faults.offender = (struct rv_task_id){0};
}

/* The offender cannot be parked now: the others are none the wiser. */
static void an_offender_whose_parking_is_refused_is_parked_later(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    struct rv_task_id bad = world_submit(w, "order", "{}");
    struct rv_call *calls[] = {reply_call(w, world_take(w, "inventory", "i1")),
                               reply_call(w, world_take(w, "inventory", "i1"))};
    faults.offender = bad;
    faults.pass_commits = 4; /* whole, whole, the good one, the offender */
    faults.fail_commits = 1;
    run_batch(w, calls, 2);
    assert_int_equal(faults.fail_commits, 0);
    assert_int_equal(calls[0]->u.replies.items[0].status, 200);
    assert_int_equal(calls[1]->u.replies.items[0].status, 503);
    assert_state(w, bad, "processing");
    world_pass(w, 60 * 1000);
    assert_state(w, bad, "error");
    faults.offender = (struct rv_task_id){0};
}

/* Somebody has edited the file by hand. */
static void break_row(struct world *w, struct rv_task_id task)
{
    struct rv_arena arena;
    int64_t now;
    const struct rv_task *row;
    const struct rv_step *steps[1];
    struct rv_step_id id = {task, 1};
    rv_arena_init(&arena, 0);
    assert_int_equal(w->store->ops->begin(w->store, NULL, &now), RV_OK);
    assert_int_equal(w->store->ops->load_tasks(w->store, &arena, RV_COLUMNS_ALL, &task, 1, &row),
                     RV_OK);
    assert_int_equal(w->store->ops->load_steps(w->store, &arena, RV_COLUMNS_ALL, &id, 1, steps),
                     RV_OK);
    struct rv_step step = *steps[0];
    struct rv_task after = *row;
    step.undoes = 7;
    after.revision++;
    const struct rv_step *changed[] = {&step};
    bool fresh[] = {false};
    struct rv_change change = {.task = &after,
                               .revision_before = row->revision,
                               .task_before = row,
                               .steps = changed,
                               .steps_new = fresh,
                               .steps_before = steps,
                               .steps_count = 1};
    struct rv_batch batch = {.changes = &change, .changes_count = 1, .number = 1000000};
    assert_int_equal(w->store->ops->commit(w->store, &batch), RV_OK);
    assert_int_equal(change.outcome, RV_OK);
    rv_arena_done(&arena);
}

static void a_task_whose_rows_break_a_rule_is_parked(void **state)
{
    struct world *w = *state;
    struct rv_task_id bad = world_submit(w, "order", "{}");
    struct rv_task_id good = world_submit(w, "order", "{}");
    break_row(w, bad);
    world_restart(w, 100);
    assert_state(w, bad, "error");
    struct rv_call *poll = world_poll(w, "inventory", "i1", 8);
    assert_int_equal(poll->u.poll.requests_count, 1);
    assert_int_equal(poll->u.poll.requests[0].step.task.value, good.value);
    assert_int_equal(world_count_alerts(w, bad, RV_ALERT_UNREADABLE), 1);
    assert_int_not_equal(world_operate(w, RV_COMMAND_RESUBMIT, bad), RV_OK);
    struct rv_call *call = operate_call(w, RV_COMMAND_CANCEL, bad);
    call->u.operate.abandon = true;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    assert_state(w, bad, "cancelled");
}

/* The ids of tasks can be guessed: the first of a millisecond is known before it is made. */
static void a_reply_for_the_task_that_begins_in_its_batch_is_refused(void **state)
{
    enum { MADE_AT_BITS = 21, COUNTER_BITS = 13 };
    struct world *w = *state;
    world_publish(w, DOCUMENT("soon") "do:\n"
                                      "  - a: {wait: {milliseconds: 100}}\n");
    struct rv_task_id known = world_submit(w, "order", "{}");
    int64_t instance = known.value & ((1 << MADE_AT_BITS) - (1 << COUNTER_BITS));
    w->now++;
    w->mono++;
    struct rv_assignment guess = {.step = {{rv_id_from(w->now).value | instance}, 1}, .token = 1};
    struct rv_call *calls[] = {reply_call(w, guess), submit_call(w, 2)};
    for (int i = 0; i < 2; i++)
        calls[1]->u.submit.items[i].name = RV_STR("soon");
    run_batch(w, calls, 2);
    assert_true(world_finished(calls[0]) && world_finished(calls[1]));
    assert_int_equal(calls[0]->u.replies.items[0].status, 409);
    const struct rv_submission *items = calls[1]->u.submit.items;
    assert_int_equal(items[0].task.value, guess.step.task.value);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(items[i].err, RV_OK);
        assert_state(w, items[i].task, "processing");
    }
    world_pass(w, 150); /* its timer is not forgotten */
    for (int i = 0; i < 2; i++)
        assert_state(w, items[i].task, "processed");
}

/* Nothing new is begun on a store whose files are displaced; what is under way goes on. */
static void files_that_are_displaced_refuse_new_work(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment reserve = world_take(w, "inventory", "i1");
    size_t before = world_count_open_alerts(w);
    w->files = RV_ERR_FULL;
    world_pass(w, 1000);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, NULL, 0, w->mono), RV_ERR_FULL);
    assert_int_equal(world_count_open_alerts(w), before);
    w->files = RV_ERR_DISPLACED;
    world_pass(w, 3000);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, NULL, 0, w->mono), RV_ERR_DISPLACED);
    assert_int_equal(world_count_open_alerts(w), before + 1);
    static const enum rv_call_kind kinds[] = {RV_CALL_SUBMIT, RV_CALL_PUBLISH};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct rv_call *call = world_call(w, kinds[i]);
        assert_true(world_run(w, call));
        assert_int_equal(call->err, RV_ERR_DISPLACED);
        assert_true(rv_str_is(call->message, "the file is gone"));
    }
    assert_int_equal(world_done(w, reserve, "1"), 200);
    assert_step(w, task, 1, "processed");
    w->files = RV_OK;
    world_pass(w, 1000);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, NULL, 0, w->mono), RV_OK);
    (void)world_submit(w, "order", "{}");
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_reply_for_the_task_that_begins_in_its_batch_is_refused),
        SCENARIO(a_ready_step_survives_a_refused_cancel),
        SCENARIO(a_new_boot_counts_though_its_first_poll_was_refused),
        SCENARIO(a_process_that_looks_gone_still_confirms),
        SCENARIO(nothing_goes_to_a_poll_of_an_older_boot),
        SCENARIO(an_offender_is_escalated_and_its_reply_answered),
        SCENARIO(an_offender_blocks_no_other_reply),
        SCENARIO(a_parked_offender_is_counted_and_logged),
        SCENARIO(an_operators_command_on_an_offender_is_answered),
        SCENARIO(a_publication_beside_an_offender_is_written),
        SCENARIO(what_is_written_is_answered_and_the_rest_decided_again),
        SCENARIO(the_items_of_a_halved_call_are_written_once_each),
        SCENARIO(a_commit_that_is_found_absent_is_decided_again),
        SCENARIO(a_carried_reply_is_answered_with_what_is_open_then),
        SCENARIO(a_store_that_loses_every_commit_is_asked_now_and_then),
        SCENARIO(an_absence_lasts_until_something_is_written),
        SCENARIO(the_tries_are_bounded),
        SCENARIO(a_publication_that_is_refused_for_now_is_written_later),
        SCENARIO(an_offender_whose_parking_is_refused_is_parked_later),
        SCENARIO(a_task_whose_rows_break_a_rule_is_parked),
        SCENARIO(files_that_are_displaced_refuse_new_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
