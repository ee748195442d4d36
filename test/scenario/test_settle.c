/* No parked task is a dead end: from each state a command leads on that is not abandonment, it is
 * named, and it is accepted (RULES 6, 14). */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/time.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define PARKS "completeBy: PT10S, failures: {threshold: 1, rounds: 0, then: error}"
#define UNDO(agent)                                                                                \
    "compensate: [{undo: {call: " agent ", with: {key: '${ $undo.idempotencyKey }'}}}]"

/* Each scope keeps its input, and with that of the step that raises they are over what frames may
 * be. */
#define TRY(step) "{try: [" step "], catch: {errors: {with: {status: 1}}}}"
#define FAILS "{bad: {set: '${ error(\"no\") }'}}"
static const char *const large = DOCUMENT(
    "large") "do:\n"
             "  - p: {call: one, metadata: {reeve: {" PARKS ", pivot: true}}}\n"
             "  - t: " TRY("{t: " TRY("{t: " TRY("{t: " TRY("{t: " TRY(
                 FAILS) "}") "}") "}") "}") "\n"
                                            "  - c: {call: two, metadata: {reeve: {" PARKS "}}}\n";

static int open_world(void **state)
{
    static struct world w;
    const char *const all[] = {workflow_file("settle/undeclared"),
                               workflow_file("settle/failing"),
                               workflow_file("settle/raising"),
                               workflow_file("settle/ending"),
                               workflow_file("settle/timed"),
                               workflow_file("settle/pivot"),
                               large,
                               workflow_file("settle/heavy")};
    world_open(&w);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        world_publish(&w, all[i]);
    *state = &w;
    return 0;
}

static struct rv_call *undo(struct world *w, struct rv_task_id task, bool by_hand)
{
    struct rv_command command = {.kind = RV_COMMAND_UNDO};
    command.u.operate.by_hand = by_hand;
    return world_give(w, task, command);
}

/* Each cure says how many late replies there are, and is accepted with that number alone. */
static void assert_late_seen(struct world *w, struct rv_task_id task, uint32_t late)
{
    struct rv_call *call = world_call(w, RV_CALL_EXPLAIN);
    char line[RV_CURE_LINE_BYTES], wanted[32];
    call->u.explain.task = task;
    assert_true(world_run(w, call));
    snprintf(wanted, sizeof wanted, " --late-seen %u", late);
    for (size_t i = 0; i < call->u.explain.cures_count; i++) {
        const struct rv_cure *cure = &call->u.explain.cures[i];
        bool asks = rv_cure_needs_ledger(cure->kind);
        assert_int_equal(cure->late_seen, asks ? late : 0);
        (void)rv_cure_line(task, cure, line);
        assert_int_equal(strstr(line, wanted) != NULL, asks);
    }
    assert_int_equal(call->u.explain.late_replies_count, late);
    for (uint32_t seen = 0; seen < late + 2; seen++) {
        if (seen == late)
            continue;
        struct rv_call *refused = world_call(w, RV_CALL_OPERATE);
        refused->u.operate.verb = RV_COMMAND_RESUBMIT;
        refused->u.operate.task = task;
        refused->u.operate.late_seen = seen;
        assert_true(world_run(w, refused));
        assert_int_equal(refused->err, RV_ERR_REFUSED);
        assert_non_null(memmem(refused->message.at, refused->message.len, wanted, strlen(wanted)));
    }
}

static void done(struct world *w, const char *agent)
{
    assert_int_equal(world_done(w, world_take(w, agent, "i1"), "{\"n\":1}"), 200);
}

static void assert_refused(const struct rv_call *call, const char *part)
{
    assert_int_equal(call->err, RV_ERR_REFUSED);
    assert_non_null(memmem(call->message.at, call->message.len, part, strlen(part)));
}

static void an_undo_across_a_step_undone_by_hand(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "undeclared", "{}");
    done(w, "one");
    done(w, "two");
    world_fail(w, world_take(w, "three", "i1"), false, RV_EFFECT_NONE);
    world_assert_cures(w, task, "resubmit settle-done:3 undo-by-hand abandon");
    assert_refused(undo(w, task, false), "step 2, /do/1/b");
    assert_state(w, task, "error");
    assert_int_equal(undo(w, task, true)->err, RV_OK);
    assert_state(w, task, "error");
    world_assert_cures(w, task, "settle-undone:2 settle-all-undone abandon");
    assert_refused(world_give(w, task, (struct rv_command){.kind = RV_COMMAND_RESUBMIT}),
                   "2 --undone`");
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    done(w, "one");
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 2)->undone);
}

/* The command that is named is accepted, whatever the workflow then evaluates: what needs too much
 * memory is an error of the step that asks for it. */
static void what_follows_an_accepted_command_is_no_refusal(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "heavy", "{}");
    world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_NONE);
    world_assert_cures(w, task, "resubmit settle-done:1 undo abandon");
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate.verb = RV_COMMAND_SETTLE;
    call->u.operate.task = task;
    call->u.operate.step = 1;
    call->u.operate.output = RV_STR("{}");
    bool finished = world_run(w, call);
    for (int i = 0; i < 1000 && !finished; i++) {
        world_pass(w, 10);
        finished = world_finished(call);
    }
    assert_true(finished);
    assert_int_equal(call->err, RV_OK);
    assert_state(w, task, "compensated");
    struct rv_str error = world_task(w, task)->error;
    assert_non_null(memmem(error.at, error.len, "/do/1/b", strlen("/do/1/b")));
    assert_non_null(memmem(error.at, error.len, "memory", strlen("memory")));
}

static void a_task_that_has_ended_is_undone_by_hand_too(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "undeclared", "{}");
    done(w, "one");
    done(w, "two");
    done(w, "three");
    assert_state(w, task, "processed");
    assert_refused(undo(w, task, false), "step 2");
    assert_state(w, task, "processed");
    assert_int_equal(undo(w, task, true)->err, RV_OK);
    assert_refused(world_settle_step(w, task, 3, RV_FINDING_NOTHING, NULL), "the agent reported");
    assert_int_equal(world_settle_step(w, task, 3, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    world_assert_cures(w, task, "settle-undone:2 settle-all-undone abandon");
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    done(w, "one");
    assert_state(w, task, "compensated");
}

/* A step that failed with an unknown effect stands in the way of the undo until somebody looks. */
static void a_parked_step_is_found_to_have_done_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "pivot", "{}");
    done(w, "one");
    world_fail(w, world_take(w, "two", "i1"), false, RV_EFFECT_UNKNOWN);
    world_assert_cures(w, task,
                       "resubmit settle-done:2 settle-undone:2 settle-nothing-happened:2 abandon");
    assert_refused(undo(w, task, true), "may have been carried out");
    assert_state(w, task, "error");
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_NOTHING, NULL)->err, RV_OK);
    assert_state(w, task, "error");
    world_assert_cures(w, task, "resubmit settle-done:2 undo abandon");
    assert_int_equal(undo(w, task, false)->err, RV_OK);
    done(w, "one");
    assert_state(w, task, "compensated");
}

/* What was undone by hand is sent again under another key: under the old one it counts as done. */
static void what_was_undone_by_hand_is_resubmitted_with_another_key(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "pivot", "{\"a\":1}");
    done(w, "one");
    struct rv_assignment first = world_take(w, "two", "i1");
    world_fail(w, first, false, RV_EFFECT_UNKNOWN);
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    assert_refused(world_settle_step(w, task, 2, RV_FINDING_NOTHING, NULL),
                   "is already settled as undone");
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    struct rv_assignment second = world_take(w, "two", "i1");
    assert_int_equal(second.step.number, 3);
    assert_string_equal(second.input.at, first.input.at);
    assert_int_equal(world_done(w, second, "{}"), 200);
    done(w, "three");
    assert_state(w, task, "processed");
}

/* The undo came when the point of no return was at work: once it is known to be passed, the task
 * stands where it stood. */
static void an_undo_that_met_the_pivot_is_taken_back(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "pivot", "{}");
    done(w, "one");
    struct rv_assignment request = world_take(w, "two", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "compensating");
    assert_int_equal(world_done(w, request, "{\"sent\":1}"), 410);
    assert_state(w, task, "error");
    assert_int_equal(world_task(w, task)->direction, RV_FORWARD);
    assert_false(world_task(w, task)->cancelling);
    assert_non_null(world_step(w, task, 2)->error.at);
    /* Its late reply said that it was done. */
    world_assert_cures(w, task, "resubmit settle-done:2 settle-undone:2 abandon");
    assert_late_seen(w, task, 1);
    assert_refused(world_settle_step(w, task, 2, RV_FINDING_NOTHING, NULL), "done");
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_DONE, "{\"sent\":1}")->err, RV_OK);
    done(w, "three");
    assert_state(w, task, "processed");
}

/* A reply comes too late in the very batch of the command: nobody has seen it. */
static void a_late_reply_of_the_same_batch_was_not_seen(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "pivot", "{}");
    done(w, "one");
    struct rv_assignment request = world_take(w, "two", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    world_fail(w, request, false, RV_EFFECT_UNKNOWN);
    assert_state(w, task, "error");
    uint32_t late = (uint32_t)world_count_late(w, task);
    struct rv_call *reply = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item item = {
        .step = request.step,
        .token = request.token,
        .reply = {.output = RV_STR("{\"sent\":1}"), .effect = RV_EFFECT_DONE}};
    reply->u.replies.items = &item;
    reply->u.replies.count = 1;
    struct rv_call *operate = world_call(w, RV_CALL_OPERATE);
    operate->u.operate.verb = RV_COMMAND_RESUBMIT;
    operate->u.operate.task = task;
    operate->u.operate.late_seen = late;
    struct rv_call *calls[] = {reply, operate};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, 2, w->mono), RV_OK);
    assert_int_equal(item.status, 410);
    assert_int_equal(world_count_late(w, task), late + 1);
    assert_refused(operate, "number of late replies is");
}

static void a_revoked_pivot_that_did_nothing_is_undone(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "pivot", "{}");
    done(w, "one");
    struct rv_assignment request = world_take(w, "two", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    world_fail(w, request, false, RV_EFFECT_NONE);
    done(w, "one");
    assert_state(w, task, "compensated");
}

static void park_failing_undo(struct world *w, struct rv_task_id *ret_task)
{
    *ret_task = world_submit(w, "failing", "{}");
    done(w, "one");
    done(w, "two");
    world_fail(w, world_take(w, "three", "i1"), false, RV_EFFECT_NONE);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, *ret_task), RV_OK);
    done(w, "two");
    assert_state(w, *ret_task, "error");
}

static void a_compensation_whose_expression_fails_is_done_by_hand(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    park_failing_undo(w, &task);
    world_assert_cures(w, task, "resubmit settle-undone:2 abandon");
    assert_refused(world_settle_step(w, task, 2, RV_FINDING_DONE, NULL), "is being undone");
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    done(w, "one");
    assert_state(w, task, "compensated");
}

static void a_compensation_whose_call_fails_is_done_by_hand(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "failing", "{}");
    done(w, "one");
    done(w, "two");
    world_fail(w, world_take(w, "three", "i1"), false, RV_EFFECT_NONE);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    struct rv_assignment part = world_take(w, "two", "i1");
    assert_refused(world_settle_step(w, task, 2, RV_FINDING_UNDONE, NULL), "may still run");
    world_fail(w, part, false, RV_EFFECT_UNKNOWN);
    char cures[128];
    snprintf(cures, sizeof cures, "resubmit settle-done:%u settle-undone:2 abandon",
             part.step.number);
    world_assert_cures(w, task, cures);
    assert_refused(world_settle_step(w, task, part.step.number, RV_FINDING_UNDONE, NULL),
                   "or settle step 2");
    assert_refused(world_settle_step(w, task, 2, RV_FINDING_NOTHING, NULL), "the agent reported");
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    assert_step(w, task, part.step.number, "cancelled");
    done(w, "one");
    assert_state(w, task, "compensated");
}

static struct rv_call *resubmit_edited(struct world *w, struct rv_task_id task, bool undo_first)
{
    return world_give(w, task,
                      (struct rv_command){.kind = RV_COMMAND_RESUBMIT,
                                          .u.operate = {.input = RV_STR("{\"n\":2}"),
                                                        .undo_first = undo_first,
                                                        .assume_not_done = !undo_first}});
}

/* Nothing undoes a compensation, whether it had an effect or not; what the refusal names is taken.
 */
static void a_failed_compensation_is_not_undone_first(void **state)
{
    static const enum rv_effect effects[] = {RV_EFFECT_NONE, RV_EFFECT_UNKNOWN};
    static const char *const cures[] = {"without --undo-first", "--assume-not-done"};
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        struct rv_task_id task = world_submit(w, "failing", "{}");
        done(w, "one");
        done(w, "two");
        world_fail(w, world_take(w, "three", "i1"), false, RV_EFFECT_NONE);
        assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
        world_fail(w, world_take(w, "two", "i1"), false, effects[i]);
        assert_state(w, task, "error");
        assert_refused(resubmit_edited(w, task, true), cures[i]);
        assert_state(w, task, "error");
        assert_int_equal(resubmit_edited(w, task, false)->err, RV_OK);
        assert_state(w, task, "compensating");
        assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    }
}

static void an_inline_step_that_fails_after_the_pivot_is_settled(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "raising", "{}");
    done(w, "one");
    done(w, "two");
    assert_state(w, task, "error");
    world_assert_cures(w, task, "settle-done:3 abandon");
    assert_refused(world_give(w, task, (struct rv_command){.kind = RV_COMMAND_RESUBMIT}),
                   "3 --done --output null`");
    assert_refused(world_settle_step(w, task, 3, RV_FINDING_NOTHING, NULL),
                   "no effect at a service");
    world_restart(w, 100);
    assert_int_equal(world_settle_step(w, task, 3, RV_FINDING_DONE, "{\"n\":7}")->err, RV_OK);
    struct rv_assignment request = world_take(w, "three", "i1");
    assert_string_equal(request.input.at, "{\"got\":{\"n\":7}}");
    assert_int_equal(world_done(w, request, "{}"), 200);
    assert_state(w, task, "processed");
    assert_step(w, task, 3, "skipped");
}

static void a_workflow_whose_output_fails_is_settled(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "ending", "{}");
    done(w, "one");
    assert_state(w, task, "error");
    world_assert_cures(w, task, "settle-done:2 abandon");
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_DONE, "{\"by\":\"hand\"}")->err,
                     RV_OK);
    assert_state(w, task, "processed");
    assert_memory_equal(world_task(w, task)->output.at, "{\"by\":\"hand\"}", 13);
}

static void a_wait_that_ran_out_of_time_after_the_pivot_is_settled(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "timed", "{}");
    done(w, "one");
    world_pass(w, 5000);
    assert_state(w, task, "error");
    const struct rv_task *row = world_task(w, task);
    assert_int_equal(row->open_count, 1);
    assert_int_equal(world_settle_step(w, task, row->open[0], RV_FINDING_DONE, "5")->err, RV_OK);
    assert_string_equal(world_take(w, "two", "i1").input.at, "{\"got\":5}");
}

/* A task that an older version parked at such a step has no frames either (test/e2e/upgrade). */
static void a_step_that_is_not_on_record_is_settled_with_its_task(void **state)
{
    enum { BYTES = RV_PAYLOAD_BYTES_MAX - 1000 };
    static char output[BYTES + 3];
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "large", "{}");
    memset(output, 'x', BYTES + 2);
    output[0] = output[BYTES + 1] = '"';
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), output), 200);
    assert_state(w, task, "error");
    assert_int_equal(world_task(w, task)->open_count, 0);
    world_assert_cures(w, task, "settle-task abandon");
    struct rv_call *refused = world_give(w, task, (struct rv_command){.kind = RV_COMMAND_RESUBMIT});
    assert_refused(refused, " --done --output null`");
    assert_refused(world_settle_step(w, task, 0, RV_FINDING_UNDONE, NULL), "reeve undo");
    assert_refused(world_settle_step(w, task, 1, RV_FINDING_DONE, NULL),
                   "only a step that is open, in error");
    assert_refused(world_settle_step(w, task, 99, RV_FINDING_DONE, NULL), "there is no step 99");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    assert_int_equal(world_settle_step(w, task, 0, RV_FINDING_DONE, "{\"by\":\"hand\"}")->err,
                     RV_OK);
    assert_state(w, task, "processed");
    assert_memory_equal(world_task(w, task)->output.at, "{\"by\":\"hand\"}", 13);
    assert_null(world_task(w, task)->error.at);
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_refused(world_settle_step(w, task, 0, RV_FINDING_DONE, NULL), "has ended");
    task = world_submit(w, "pivot", "{}");
    assert_refused(world_settle_step(w, task, 0, RV_FINDING_DONE, NULL),
                   "give the number of the step");
}

/* Every command that is named for a task that waits is accepted as it stands. */
static void what_is_named_for_a_waiting_task_is_accepted(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "pivot", "{}");
    world_assert_cures(w, task, "settle-done:1 cancel");
    done(w, "one");
    world_assert_cures(w, task, "settle-done:2 cancel");
    done(w, "two");
    world_pass(w, RV_NO_AGENT_ALERT_MS + 1000);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_AGENT), 1);
    world_assert_cures(w, task, "settle-done:3 abandon");
    assert_refused(world_give(w, task, (struct rv_command){.kind = RV_COMMAND_CANCEL}), "3 --done");
    assert_int_equal(world_operate(w, RV_COMMAND_RETRY, task), RV_OK);
    struct rv_assignment request = world_take(w, "three", "i1");
    world_assert_cures(w, task, "abandon");
    assert_int_equal(world_done(w, request, "{}"), 200);
    assert_state(w, task, "processed");
    world_assert_cures(w, task, "");
    task = world_submit(w, "undeclared", "{}");
    done(w, "one");
    done(w, "two");
    world_assert_cures(w, task, "settle-done:3 cancel-by-hand");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    world_assert_cures(w, task, "resume settle-done:3 cancel-by-hand");
    assert_refused(world_give(w, task, (struct rv_command){.kind = RV_COMMAND_RETRY}),
                   "reeve resume");
}

/* Nothing of the task goes on before the resume: until then an operator is called. */
static void a_suspended_task_keeps_its_alert_until_the_resume(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "undeclared", "{}");
    done(w, "one");
    done(w, "two");
    world_fail(w, world_take(w, "three", "i1"), false, RV_EFFECT_NONE);
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, task), RV_OK);
    world_assert_cures(w, task, "resume resubmit settle-done:3 undo-by-hand abandon");
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    assert_state(w, task, "processing");
    assert_int_equal(world_count_open_alerts(w), 1);
    world_assert_cures(w, task, "resume settle-done:3 cancel-by-hand");
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, task), RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
    done(w, "three");
    assert_state(w, task, "processed");
}

/* One word for all that a retried `try` and the steps before it did; what declares its undo is
 * undone in its place, and what is known later is not meant. */
static void many_steps_are_undone_by_hand_at_once(void **state)
{
    enum { STEPS = 70 };
    struct world *w = *state;
    char text[8192];
    int len = snprintf(text, sizeof text, "%s%s", DOCUMENT("many"), "do:\n");
    for (int i = 0; i < STEPS; i++)
        len += snprintf(text + len, sizeof text - (size_t)len,
                        "  - s%d: {call: one, metadata: {reeve: {%s%s}}}\n", i, PARKS,
                        i == 40 ? ", " UNDO("two") : "");
    world_publish(w, text);
    struct rv_task_id task = world_submit(w, "many", "{}");
    for (int i = 0; i < STEPS; i++)
        done(w, "one");
    assert_state(w, task, "processed");
    assert_refused(world_settle_step(w, task, 0, RV_FINDING_UNDONE, NULL), "has ended");
    assert_int_equal(undo(w, task, true)->err, RV_OK);
    world_assert_cures(w, task, "settle-undone:70 settle-all-undone abandon");
    assert_int_equal(world_settle_step(w, task, 0, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    world_pass(w, 10);
    assert_state(w, task, "compensating");
    assert_int_equal(world_count_open_alerts(w), 0);
    world_restart(w, 100);
    done(w, "two");
    world_pass(w, 10);
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 1)->undone);
    assert_non_null(world_step(w, task, 1)->error.at);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_NO_UNDO), 1);
}

/* An alert is pasted as it stands. */
static void an_alert_has_its_ids(void **state)
{
    struct rv_alert alert = {.id = 77, .task = {1234}};
    char text[RV_ALERT_CURE_BYTES], id[RV_ID_TEXT_BYTES];
    (void)state;
    for (int kind = 0; kind < RV_ALERT_KIND_COUNT; kind++) {
        alert.kind = (enum rv_alert_kind)kind;
        struct rv_str cure = rv_alert_cure(&alert, text);
        assert_null(memmem(cure.at, cure.len, "TASK", 4));
        assert_null(memmem(cure.at, cure.len, "ALERT", 5));
    }
    alert.kind = RV_ALERT_UNDELIVERABLE;
    struct rv_str cure = rv_alert_cure(&alert, text);
    rv_task_text((struct rv_task_id){77}, id);
    assert_non_null(memmem(cure.at, cure.len, id, strlen(id)));
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, open_world, world_teardown)

/* Control went on behind the step, whose request was done after all. */
static void a_late_done_of_a_step_that_was_passed_is_undone_with_the_rest(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("settle/passed"));
    struct rv_task_id task = world_submit(w, "passed", "{}");
    struct rv_assignment first = world_take(w, "one", "i1");
    world_pass(w, 10000);
    assert_int_equal(world_settle_step(w, task, 1, RV_FINDING_NOTHING, "{\"x\":1}")->err, RV_OK);
    assert_int_equal(world_done(w, first, "{\"r\":1}"), 410);
    assert_int_equal(world_step(w, task, 1)->effect, RV_EFFECT_DONE);
    assert_string_equal(world_step(w, task, 1)->output.at, "{\"x\":1}");
    assert_int_equal(undo(w, task, false)->err, RV_OK);
    assert_int_equal(world_done(w, world_take(w, "three", "i1"), "{}"), 200);
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 1)->undone);
}

static struct rv_call *poll_of(struct world *w, const char *boot, const char *poll)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){.agent = RV_STR("one"),
                                    .instance = RV_STR("i1"),
                                    .boot = rv_str_of(boot),
                                    .poll = rv_str_of(poll),
                                    .max = 4};
    assert_true(world_run(w, call));
    return call;
}

/* `c` was caught, and done all the same: that is known while `b` waits to be undone for another
 * input, and a person has undone `c`. Then it is in nobody's way. */
static void what_was_undone_by_hand_is_in_no_ones_way(void **state)
{
    static const char *const names[] = {"undeclared-late", "pivot-late"};
    static const char *const boots[][2] = {{"b1", "b2"}, {"b3", "b4"}};
    struct world *w = *state;
    world_publish(w, workflow_file("settle/undeclared-late"));
    world_publish(w, workflow_file("settle/pivot-late"));
    for (int i = 0; i < 2; i++) {
        struct rv_task_id task = world_submit(w, names[i], "{}");
        struct rv_assignment c = world_take(w, "two", "i1");
        assert_int_equal(world_fail(w, c, false, RV_EFFECT_NONE), 200);
        assert_int_equal(poll_of(w, boots[i][0], boots[i][0])->u.poll.requests_count, 1);
        (void)poll_of(w, boots[i][1], boots[i][1]);
        assert_state(w, task, "error");
        struct rv_call *call = world_call(w, RV_CALL_OPERATE);
        call->u.operate = (struct rv_call_operate){.verb = RV_COMMAND_RESUBMIT,
                                                   .task = task,
                                                   .input = RV_STR("{\"n\":2}"),
                                                   .undo_first = true};
        assert_true(world_run(w, call));
        assert_int_equal(world_done(w, c, "{}"), 410);
        world_pass(w, 20000);
        assert_state(w, task, "error");
        assert_int_equal(world_settle_step(w, task, c.step.number, RV_FINDING_UNDONE, NULL)->err,
                         RV_OK);
        assert_int_equal(world_done(w, world_take(w, "three", "i1"), "{}"), 200);
        assert_int_equal(world_done(w, world_take(w, "one", "i2"), "{}"), 200);
        assert_state(w, task, "processing");
        world_fail(w, world_take(w, "two", "i1"), false, RV_EFFECT_NONE);
        assert_state(w, task, "compensating");
        assert_int_equal(world_done(w, world_take(w, "three", "i1"), "{}"), 200);
        assert_state(w, task, "compensated");
    }
}

/* Nobody can know that a request did nothing while an attempt of it may be at work. */
static void nothing_is_assumed_while_an_attempt_may_be_at_work(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "undeclared", "{}");
    assert_int_equal(poll_of(w, "b1", "p1")->u.poll.requests_count, 1);
    world_pass(w, 1000);
    (void)poll_of(w, "b2", "p2");
    assert_state(w, task, "error");
    int64_t quiet_ms = world_task(w, task)->quiet_at - w->now;
    assert_true(quiet_ms > 0);
    for (int i = 0; i < 2; i++) {
        struct rv_call *call = world_call(w, RV_CALL_OPERATE);
        call->u.operate = (struct rv_call_operate){.verb = RV_COMMAND_RESUBMIT,
                                                   .task = task,
                                                   .input = RV_STR("{\"n\":2}"),
                                                   .assume_not_done = true};
        assert_true(world_run(w, call));
        assert_int_equal(call->err, i == 0 ? RV_ERR_REFUSED : RV_OK);
        world_pass(w, quiet_ms);
    }
}

static void a_reply_that_comes_again_after_a_finding_is_answered_as_before(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "undeclared", "{}");
    struct rv_assignment first = world_take(w, "one", "i1");
    assert_int_equal(world_fail(w, first, false, RV_EFFECT_UNKNOWN), 200);
    assert_int_equal(world_settle_step(w, task, 1, RV_FINDING_NOTHING, NULL)->err, RV_OK);
    assert_int_equal(world_fail(w, first, false, RV_EFFECT_UNKNOWN), 200);
    assert_int_equal(world_count_late(w, task), 0);
}

/* The rest of the scope has its time again, as behind a call. */
static void an_inline_step_in_a_scope_whose_time_is_over_is_settled(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("settle/scoped"));
    struct rv_task_id task = world_submit(w, "scoped", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_state(w, task, "error");
    world_pass(w, 60000);
    uint32_t number = world_task(w, task)->open[0];
    assert_int_equal(world_settle_step(w, task, number, RV_FINDING_DONE, "{}")->err, RV_OK);
    assert_int_equal(world_done(w, world_take(w, "two", "i1"), "{}"), 200);
    assert_state(w, task, "processed");
}

static void the_alert_of_a_compensation_that_is_not_needed_is_closed(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("settle/als"));
    struct rv_task_id task = world_submit(w, "als", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_int_equal(world_done(w, world_take(w, "two", "i1"), "{}"), 200);
    world_fail(w, world_take(w, "four", "i1"), false, RV_EFFECT_NONE);
    assert_state(w, task, "compensating");
    world_pass(w, RV_NO_AGENT_ALERT_MS + 1000);
    assert_int_equal(world_count_open_alerts(w), 1);
    assert_int_equal(world_settle_step(w, task, 2, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENARIO(a_late_done_of_a_step_that_was_passed_is_undone_with_the_rest),
        SCENARIO(nothing_is_assumed_while_an_attempt_may_be_at_work),
        SCENARIO(a_reply_that_comes_again_after_a_finding_is_answered_as_before),
        SCENARIO(an_inline_step_in_a_scope_whose_time_is_over_is_settled),
        SCENARIO(the_alert_of_a_compensation_that_is_not_needed_is_closed),
        SCENARIO(what_was_undone_by_hand_is_in_no_ones_way),
        SCENARIO(what_is_named_for_a_waiting_task_is_accepted),
        SCENARIO(a_suspended_task_keeps_its_alert_until_the_resume),
        SCENARIO(many_steps_are_undone_by_hand_at_once),
        SCENARIO(an_alert_has_its_ids),
        SCENARIO(an_undo_across_a_step_undone_by_hand),
        SCENARIO(what_follows_an_accepted_command_is_no_refusal),
        SCENARIO(a_task_that_has_ended_is_undone_by_hand_too),
        SCENARIO(a_parked_step_is_found_to_have_done_nothing),
        SCENARIO(what_was_undone_by_hand_is_resubmitted_with_another_key),
        SCENARIO(an_undo_that_met_the_pivot_is_taken_back),
        SCENARIO(a_late_reply_of_the_same_batch_was_not_seen),
        SCENARIO(a_revoked_pivot_that_did_nothing_is_undone),
        SCENARIO(a_compensation_whose_expression_fails_is_done_by_hand),
        SCENARIO(a_compensation_whose_call_fails_is_done_by_hand),
        SCENARIO(a_failed_compensation_is_not_undone_first),
        SCENARIO(an_inline_step_that_fails_after_the_pivot_is_settled),
        SCENARIO(a_workflow_whose_output_fails_is_settled),
        SCENARIO(a_step_that_is_not_on_record_is_settled_with_its_task),
        SCENARIO(a_wait_that_ran_out_of_time_after_the_pivot_is_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
