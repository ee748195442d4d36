/* What applications, operators and authors ask for: publication, submission, resubmission, pages;
 * and what they hear when the store or the definition does not let them (RULES 1, 6, 11). */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/limits.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct store_faults faults;

/* The delay doubles, but never beyond the cool-down. */
static const char *const patient =
    DOCUMENT("patient") "do:\n"
                        "  - a: {call: one, metadata: {reeve: {failures:"
                        " {threshold: 5, delay: PT4S, cooldown: PT10S, rounds: 0}}}}\n";

static const char *const remembers =
    DOCUMENT("remembers") "do:\n"
                          "  - a: {call: one, export: {as: '{seen: .n}'}}\n"
                          "  - b: {call: two, with: {context: '${ $context.seen }'}}\n";

static int open_world(void **state)
{
    static struct world w;
    faults = (struct store_faults){.fail_with = RV_ERR_BUSY};
    world_open_faulty(&w, &faults);
    world_publish(&w, workflow_file("order"));
    world_publish(&w, workflow_file("commands/fragile"));
    world_publish(&w, workflow_file("commands/chain"));
    world_publish(&w, patient);
    world_publish(&w, remembers);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    faults.offender = (struct rv_task_id){0};
    faults.drops_per_1000 = 0;
    world_close(*state);
    return 0;
}

/* ---- publication ---- */

static struct rv_call *publication(struct world *w, const char *hash)
{
    struct rv_call *call = world_call(w, RV_CALL_PUBLISH);
    call->u.publish.row = (struct rv_workflow_row){.space = RV_STR("shop"),
                                                   .name = RV_STR("new"),
                                                   .version = RV_STR("1.0.0"),
                                                   .hash = rv_str_of(hash),
                                                   .source = RV_STR("{}")};
    return call;
}

static void a_published_version_never_changes(void **state)
{
    struct world *w = *state;
    struct rv_call *first = publication(w, "aa");
    assert_true(world_run(w, first));
    assert_int_equal(first->err, RV_OK);
    assert_false(first->u.publish.known);
    struct rv_call *same = publication(w, "aa");
    assert_true(world_run(w, same));
    assert_int_equal(same->err, RV_OK);
    assert_true(same->u.publish.known);
    assert_int_equal(same->u.publish.row.id, first->u.publish.row.id);
    struct rv_call *other = publication(w, "bb");
    assert_true(world_run(w, other));
    assert_int_equal(other->err, RV_ERR_DUPLICATE);
    assert_non_null(strstr(other->message.at, "increase document.version"));
}

static void two_publications_of_one_batch_are_one(void **state)
{
    struct world *w = *state;
    struct rv_call *calls[] = {publication(w, "aa"), publication(w, "aa"), publication(w, "bb")};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, 3, w->mono), RV_OK);
    assert_false(calls[0]->u.publish.known);
    assert_true(calls[1]->u.publish.known);
    assert_int_equal(calls[1]->u.publish.row.id, calls[0]->u.publish.row.id);
    assert_int_equal(calls[2]->err, RV_ERR_DUPLICATE);
}

/* ---- submission ---- */

static struct rv_call *submission(struct world *w, const char *workflow, const char *key,
                                  int64_t wait_ms)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
    *item = (struct rv_submission){.space = RV_STR("shop"), .name = rv_str_of(workflow)};
    if (key != NULL) {
        item->key = rv_str_of(key);
        item->body_hash = RV_STR("h");
    }
    call->u.submit.items = item;
    call->u.submit.count = 1;
    call->u.submit.wait_ms = wait_ms;
    return call;
}

static void a_definition_that_cannot_be_read_starts_nothing(void **state)
{
    struct world *w = *state;
    assert_true(world_run(w, publication(w, "aa"))); /* "{}" is no definition */
    struct rv_call *call = submission(w, "new", NULL, 0);
    assert_true(world_run(w, call));
    assert_int_equal(call->u.submit.items[0].err, RV_ERR_CORRUPT);
    assert_int_equal(call->u.submit.items[0].task.value, 0);
    (void)world_submit(w, "order", "{}");
}

static void the_same_key_waits_for_the_same_task(void **state)
{
    struct world *w = *state;
    struct rv_call *first = submission(w, "patient", "k", 0);
    assert_true(world_run(w, first));
    struct rv_call *again = submission(w, "patient", "k", 20000);
    assert_false(world_run(w, again));
    assert_true(again->u.submit.items[0].known);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "5"), 200);
    assert_true(world_finished(again));
    assert_int_equal(again->u.submit.items[0].task.value, first->u.submit.items[0].task.value);
    assert_int_equal(again->u.submit.task->state, RV_TASK_PROCESSED);
    struct rv_call *late = submission(w, "patient", "k", 20000);
    assert_true(world_run(w, late));
    assert_int_equal(late->u.submit.task->state, RV_TASK_PROCESSED);
}

/* Ids of one instant count up: the next task's is known before it is there. */
static void a_submission_that_the_store_refuses_is_told(void **state)
{
    struct world *w = *state;
    struct rv_task_id last = world_submit(w, "order", "{}");
    faults.offender = (struct rv_task_id){last.value + 1};
    struct rv_call *call = submission(w, "order", NULL, 0);
    assert_true(world_run(w, call));
    assert_int_equal(call->u.submit.items[0].err, RV_ERR_INVALID);
    assert_int_equal(call->u.submit.items[0].task.value, 0);
    faults.offender = (struct rv_task_id){0};
    (void)world_submit(w, "order", "{}");
    assert_state(w, last, "pending");
}

/* Another submitter took the key between the look and the commit: the same body, the same task. */
static void a_change_that_does_not_pass_is_decided_again(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submission(w, "order", "k", 0);
    faults.drops_per_1000 = 1000;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &call, 1, w->mono), RV_OK);
    assert_false(world_finished(call));
    faults.drops_per_1000 = 0;
    world_settle(w);
    assert_true(world_finished(call));
    assert_int_equal(call->u.submit.items[0].err, RV_OK);
    assert_state(w, call->u.submit.items[0].task, "pending");
}

/* A call that would have been decided again when the server stops was not done, and hears so. */
static void a_stop_answers_what_it_did_not_decide(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submission(w, "order", "k", 0);
    faults.drops_per_1000 = 1000;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &call, 1, w->mono), RV_OK);
    faults.drops_per_1000 = 0;
    world_restart(w, 100);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_ERR_BUSY);
    assert_non_null(strstr(call->message.at, "stopping"));
    struct rv_call *again = submission(w, "order", "k", 0);
    assert_true(world_run(w, again));
    assert_false(again->u.submit.items[0].known);
}

/* ---- what is not there, or cannot be read ---- */

static struct rv_call *renewal(struct world *w, struct rv_assignment request)
{
    struct rv_call *call = world_call(w, RV_CALL_LEASES);
    struct rv_lease_item *item = RV_NEW(&call->arena, struct rv_lease_item);
    *item = (struct rv_lease_item){.step = request.step, .token = request.token};
    call->u.leases.items = item;
    call->u.leases.count = 1;
    return call;
}

static enum rv_err page_of(struct world *w, enum rv_call_kind kind, struct rv_task_id task)
{
    struct rv_call *call = world_call(w, kind);
    if (kind == RV_CALL_SHOW)
        call->u.show.task = task;
    else
        call->u.list.task = task;
    assert_true(world_run(w, call));
    assert_true(call->err == RV_OK || strstr(call->message.at, "no such task") != NULL);
    return call->err;
}

static void what_is_not_there_is_told(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_task_id none = {task.value + 77};
    static const enum rv_call_kind pages[] = {RV_CALL_SHOW, RV_CALL_STEPS, RV_CALL_ATTEMPTS,
                                              RV_CALL_LATE};
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        assert_int_equal(page_of(w, pages[i], task), RV_OK);
        assert_int_equal(page_of(w, pages[i], none), RV_ERR_NOT_FOUND);
    }
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, none), RV_ERR_NOT_FOUND);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, none), RV_ERR_NOT_FOUND);
    struct rv_call *ack = world_call(w, RV_CALL_ACK);
    ack->u.ack.alert = 77;
    assert_true(world_run(w, ack));
    assert_int_equal(ack->err, RV_ERR_NOT_FOUND);
    struct rv_assignment request = world_take(w, "inventory", "i1");
    struct rv_assignment stranger = request;
    stranger.step.task = none;
    assert_int_equal(world_done(w, stranger, "1"), 409);
    struct rv_call *lease = renewal(w, stranger);
    assert_true(world_run(w, lease));
    assert_int_equal(lease->u.leases.items[0].status, 409);
    assert_true(lease->u.leases.items[0].cancel); /* the agent stops working on it */
    assert_int_equal(world_done(w, request, "1"), 200);
}

/* Two in one batch, and one after a restart: one alert is listed, until somebody has seen it. */
static void an_alert_from_outside_is_raised_once(void **state)
{
    struct world *w = *state;
    struct rv_call *raises[3];
    for (int i = 0; i < 3; i++) {
        raises[i] = world_call(w, RV_CALL_RAISE);
        raises[i]->u.raise.source = RV_STR("outbox/1/k");
        raises[i]->u.raise.message = RV_STR("row 1 is too old");
    }
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, raises, 2, w->mono), RV_OK);
    world_restart(w, 10);
    assert_true(world_run(w, raises[2]));
    assert_false(raises[0]->u.raise.known);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(raises[i]->err, RV_OK);
        assert_true(raises[i]->u.raise.known);
        assert_true(raises[i]->u.raise.alert == raises[0]->u.raise.alert);
    }
    for (int i = 0; i < 2; i++) {
        struct rv_call *list = world_call(w, RV_CALL_ALERTS);
        list->u.list.open_only = true;
        list->u.list.limit = 5;
        assert_true(world_run(w, list));
        assert_int_equal(list->u.list.count, 1 - i);
        struct rv_call *ack = world_call(w, RV_CALL_ACK);
        ack->u.ack.alert = raises[0]->u.raise.alert;
        assert_true(world_run(w, ack));
        assert_int_equal(ack->err, RV_OK);
    }
}

/* What a late agent says stands there once, however often it says it; and no more than so much. */
static void the_ledger_keeps_what_is_said_once(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    world_pass(w, 12000);
    struct rv_assignment second = world_take(w, "inventory", "i1");
    world_pass(w, 10000);
    for (int i = 0; i < 5; i++)
        assert_int_equal(world_say(w, first, NULL, "{\"type\":\"busy\"}"), 410);
    assert_int_equal(world_count_late(w, task), 1);
    int64_t revision = world_task(w, task)->revision;
    assert_int_equal(world_say(w, first, NULL, "{\"type\":\"busy\"}"), 410);
    assert_int_equal(world_task(w, task)->revision, revision); /* nothing is written */
    assert_int_equal(world_say(w, second, NULL, "{\"type\":\"busy\"}"), 410);
    assert_int_equal(world_count_late(w, task), 2); /* another attempt */
    for (int i = 0; i < 50; i++) {
        char error[40];
        snprintf(error, sizeof error, "{\"type\":\"busy-%d\"}", i);
        assert_int_equal(world_say(w, first, NULL, error), 410);
    }
    assert_int_equal(world_count_late(w, task), RV_LATE_REPLIES_MAX);
    /* One place is left for what counts: that it was done. */
    assert_int_equal(world_say(w, first, "{\"r\":1}", NULL), 410);
    assert_int_equal(world_say(w, first, "{\"r\":2}", NULL), 410);
    assert_int_equal(world_count_late(w, task), RV_LATE_REPLIES_MAX + 1);
    assert_string_equal(world_step(w, task, 1)->output.at, "{\"r\":1}");
    assert_int_equal(world_say(w, second, "{\"r\":3}", NULL), 410);
    assert_int_equal(world_count_late(w, task), RV_LATE_REPLIES_MAX + 2);
    world_restart(w, 100);
    assert_int_equal(world_say(w, first, NULL, "{\"type\":\"busy\"}"), 410);
    assert_int_equal(world_count_late(w, task), RV_LATE_REPLIES_MAX + 2);
}

/* The answer to a late reply says whether it is kept. */
static void the_late_reply_too_many_is_answered_as_not_kept(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    world_pass(w, 22000);
    for (int i = 0; i <= RV_LATE_REPLIES_MAX; i++) {
        char error[40];
        snprintf(error, sizeof error, "{\"type\":\"busy-%d\"}", i);
        struct rv_call *reply = world_call(w, RV_CALL_REPLIES);
        struct rv_reply_item item = {
            .step = request.step,
            .token = request.token,
            .reply = {.error = rv_str_of(error), .effect = RV_EFFECT_UNKNOWN}};
        reply->u.replies.items = &item;
        reply->u.replies.count = 1;
        assert_true(world_run(w, reply));
        assert_int_equal(item.status, 410);
        bool keeps = world_count_late(w, task) == (uint32_t)i + 1;
        assert_non_null(
            strstr(item.message.at, keeps ? "is kept for the operator" : "is not kept"));
        assert_int_equal(keeps, i < RV_LATE_REPLIES_MAX - 1);
    }
}

/* Also where the same is said twice in a call. */
static void the_ledger_keeps_what_a_call_says_twice_once(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    world_pass(w, 10000);
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item items[3];
    for (size_t i = 0; i < 3; i++)
        items[i] = (struct rv_reply_item){.step = request.step,
                                          .token = request.token,
                                          .reply = {.output = i == 1 ? RV_STR("2") : RV_STR("1")}};
    call->u.replies.items = items;
    call->u.replies.count = 3;
    assert_true(world_run(w, call));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(items[i].status, 410);
    assert_int_equal(world_count_late(w, task), 2);
}

/* ---- leases and findings that the store does not take ---- */

static void a_renewal_that_does_not_pass_is_decided_again(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    struct rv_call *call = renewal(w, request);
    faults.drops_per_1000 = 1000;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &call, 1, w->mono), RV_OK);
    assert_false(world_finished(call));
    faults.drops_per_1000 = 0;
    world_settle(w);
    assert_true(world_finished(call));
    assert_int_equal(call->u.leases.items[0].status, 200);
    assert_false(call->u.leases.items[0].cancel);
    assert_int_equal(call->u.leases.items[0].complete_by, request.complete_by);
}

static void a_renewal_of_an_offender_is_answered(void **state)
{
    struct world *w = *state;
    struct rv_task_id bad = world_submit(w, "order", "{}");
    struct rv_call *call = renewal(w, world_take(w, "inventory", "i1"));
    faults.offender = bad;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(call->u.leases.items[0].status, 503);
    assert_false(call->u.leases.items[0].cancel);
    assert_state(w, bad, "error");
}

/* A second refusal finds the task parked already: it stays as it is, and its operator hears so. */
static void an_offender_that_is_parked_stays_parked(void **state)
{
    struct world *w = *state;
    struct rv_task_id bad = world_submit(w, "patient", "{}");
    world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_UNKNOWN);
    assert_state(w, bad, "error");
    int64_t revision = world_task(w, bad)->revision;
    faults.offender = bad;
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, bad), RV_ERR_REFUSED);
    assert_state(w, bad, "error");
    assert_int_equal(world_task(w, bad)->revision, revision);
    assert_int_equal(world_count_alerts(w, bad, RV_ALERT_OFFENDER), 0);
    faults.offender = (struct rv_task_id){0};
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, bad), RV_OK);
}

/* RULES 8: what a deposed supervisor found is refused, and counts once when found again. */
static void a_finding_of_a_deposed_supervisor_counts_once(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "i1");
    world_pass(w, 9999);
    w->now += 1;
    w->mono += 1;
    faults.drops = 2; /* the third outcome: DEPOSED */
    faults.drops_per_1000 = 1000;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, NULL, 0, w->mono), RV_OK);
    assert_int_equal(faults.drops, 3);
    faults.drops_per_1000 = 0;
    assert_step(w, task, 1, "processing");
    world_settle(w);
    assert_step(w, task, 1, "pending");
    assert_int_equal(world_step(w, task, 1)->failure_count, 1);
    world_pass(w, 1300);
    assert_int_equal(world_take(w, "inventory", "i1").attempt, 2);
}

/* ---- undo and ladder ---- */

static void a_compensation_that_fails_outside_of_a_call_starts_over(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "fragile", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    world_fail(w, world_take(w, "two", "i1"), false, RV_EFFECT_NONE);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{\"bad\":true}"), 200);
    assert_state(w, task, "error");
    assert_int_equal(world_task(w, task)->direction, RV_UNDO);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNDO_FAILED), 1);
    assert_false(world_step(w, task, 1)->undone);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    struct rv_assignment again = world_take(w, "one", "i1");
    assert_string_equal(again.input.at, "{\"undo\":\"a\"}");
    assert_int_equal(world_done(w, again, "{\"bad\":false}"), 200);
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 1)->undone);
}

static void a_long_undo_goes_on_by_itself(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "chain", "{}");
    for (int i = 0; i < 40; i++)
        assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    world_fail(w, world_take(w, "two", "i1"), false, RV_EFFECT_NONE);
    world_settle(w);
    assert_state(w, task, "compensated");
    assert_int_equal(world_task(w, task)->undo_head, 0);
}

static void the_delay_doubles_up_to_the_cool_down(void **state)
{
    struct world *w = *state;
    static const int64_t delays[] = {4000, 8000, 10000, 10000};
    struct rv_task_id task = world_submit(w, "patient", "{}");
    for (size_t i = 0; i < 4; i++) {
        world_fail(w, world_take(w, "one", "i1"), true, RV_EFFECT_NONE);
        int64_t wait = world_step(w, task, 1)->ready_at - w->now;
        assert_in_range(wait, delays[i], delays[i] + delays[i] / 4);
        world_pass(w, wait);
    }
}

static void what_a_step_exports_later_steps_see(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "remembers", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{\"n\":12}"), 200);
    assert_string_equal(world_task(w, task)->context.at, "{\"seen\":12}");
    world_restart(w, 100);
    assert_string_equal(world_take(w, "two", "i1").input.at, "{\"context\":12}");
}

/* ---- pages, and answers that never left ---- */

static void the_attempts_of_one_step_are_a_page_of_their_own(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    world_fail(w, world_take(w, "inventory", "i1"), true, RV_EFFECT_NONE);
    world_pass(w, 1300);
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    (void)world_take(w, "payment", "p1");
    struct rv_call *call = world_call(w, RV_CALL_ATTEMPTS);
    call->u.list.task = task;
    call->u.list.step = 1;
    assert_true(world_run(w, call));
    assert_int_equal(call->u.list.count, 1); /* the one that has ended without its result ... */
    assert_int_equal(call->u.list.attempts[0].step.number, 1);
    assert_int_equal(call->u.list.attempts[0].number, 1);
    assert_int_equal(call->u.list.steps_count, 1); /* ... and the newest, in the step's row */
    assert_int_equal(call->u.list.steps[0].number, 1);
    assert_int_equal(call->u.list.steps[0].attempt, 2);
}

static void only_the_answer_that_did_not_leave_is_taken_back(void **state)
{
    struct world *w = *state;
    struct rv_task_id a = world_submit(w, "order", "{}");
    struct rv_task_id b = world_submit(w, "order", "{}");
    (void)world_poll(w, "inventory", "i1", 1);
    struct rv_call *second = world_poll(w, "inventory", "i1", 1);
    world_undelivered(w, second);
    assert_step(w, a, 1, "processing");
    assert_step(w, b, 1, "pending");
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_published_version_never_changes),
        SCENARIO(two_publications_of_one_batch_are_one),
        SCENARIO(a_definition_that_cannot_be_read_starts_nothing),
        SCENARIO(the_same_key_waits_for_the_same_task),
        SCENARIO(a_submission_that_the_store_refuses_is_told),
        SCENARIO(a_change_that_does_not_pass_is_decided_again),
        SCENARIO(a_stop_answers_what_it_did_not_decide),
        SCENARIO(what_is_not_there_is_told),
        SCENARIO(an_alert_from_outside_is_raised_once),
        SCENARIO(the_ledger_keeps_what_is_said_once),
        SCENARIO(the_late_reply_too_many_is_answered_as_not_kept),
        SCENARIO(the_ledger_keeps_what_a_call_says_twice_once),
        SCENARIO(a_renewal_that_does_not_pass_is_decided_again),
        SCENARIO(a_renewal_of_an_offender_is_answered),
        SCENARIO(an_offender_that_is_parked_stays_parked),
        SCENARIO(a_finding_of_a_deposed_supervisor_counts_once),
        SCENARIO(a_compensation_that_fails_outside_of_a_call_starts_over),
        SCENARIO(a_long_undo_goes_on_by_itself),
        SCENARIO(the_delay_doubles_up_to_the_cool_down),
        SCENARIO(what_a_step_exports_later_steps_see),
        SCENARIO(the_attempts_of_one_step_are_a_page_of_their_own),
        SCENARIO(only_the_answer_that_did_not_leave_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
