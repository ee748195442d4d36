/* A `done` that comes when its task has ended, and took the step for one that did nothing: its
 * effect is left, and an operator is called (RULES 6). */
#include "../lib/workflow.h"
#include "../lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int open_world(void **state)
{
    return world_setup(state, NULL,
                       WORLD_FILES("late_done/alone", "late_done/passing", "late_done/two"));
}

static enum rv_err finds_nothing(struct world *w, struct rv_task_id task, uint32_t step)
{
    return world_settle_seen(w, task, step, RV_FINDING_NOTHING, NULL, 0);
}

static void found_to_be_nothing(struct world *w, struct rv_task_id task)
{
    assert_int_equal(finds_nothing(w, task, 1), RV_OK);
}

static void resubmit_edited(struct world *w, struct rv_task_id task, bool undo_first)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate = (struct rv_call_operate){.verb = RV_COMMAND_RESUBMIT,
                                               .task = task,
                                               .input = RV_STR("{\"n\":2}"),
                                               .undo_first = undo_first,
                                               .assume_not_done = !undo_first};
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
}

static struct rv_alert open_alert(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_ALERTS);
    call->u.list.open_only = true;
    assert_true(world_run(w, call));
    assert_int_equal(call->u.list.count, 1);
    return call->u.list.alerts[0];
}

/* The late `done` calls an operator: its alert. */
static struct rv_alert calls(struct world *w, struct rv_assignment request, const char *output)
{
    assert_int_equal(world_done(w, request, output), 410);
    struct rv_alert alert = open_alert(w);
    assert_int_equal(alert.kind, RV_ALERT_LATE_DONE);
    return alert;
}

static void calls_nobody(struct world *w, struct rv_assignment request)
{
    assert_int_equal(world_done(w, request, "{\"was\":1}"), 410);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* The alert is raised while the task continues, and stays open after the last step is done. */
static void calls_before_the_end(struct world *w, struct rv_task_id task,
                                 struct rv_assignment request, struct rv_assignment last)
{
    assert_int_equal(calls(w, request, "{}").step, request.step.number);
    assert_int_equal(world_done(w, last, "{}"), 200);
    assert_state(w, task, "processed");
    assert_int_equal(open_alert(w).step, request.step.number);
}

static void undo_ends(struct world *w, struct rv_task_id task)
{
    world_complete(w, "one");
    assert_state(w, task, "compensated");
    assert_int_equal(world_count_open_alerts(w), 0);
}

static struct rv_call *undo_by_hand(struct world *w, struct rv_task_id task)
{
    struct rv_call *undo = world_call(w, RV_CALL_OPERATE);
    undo->u.operate = (struct rv_call_operate){
        .verb = RV_COMMAND_UNDO, .task = task, .by_hand = true, .late_seen = 1};
    assert_true(world_run(w, undo));
    return undo;
}

/* Of a workflow that only few tests need. */
static struct rv_task_id submit_extra(struct world *w, const char *name)
{
    char file[64];
    snprintf(file, sizeof file, "late_done/%s", name);
    world_publish(w, workflow_file(file));
    return world_submit(w, name, "{}");
}

/* A task whose first attempt runs out of time; the request of that attempt. */
static struct rv_assignment expired(struct world *w, const char *name, struct rv_task_id *ret_task)
{
    *ret_task = world_submit(w, name, "{}");
    struct rv_assignment request = world_take(w, "one", "i1");
    world_pass(w, 10000);
    return request;
}

/* The same of a task whose first step was done. */
static struct rv_assignment second_expired(struct world *w, const char *name,
                                           struct rv_task_id *ret_task)
{
    *ret_task = world_submit(w, name, "{}");
    world_complete(w, "one");
    struct rv_assignment request = world_take(w, "one", "i1");
    world_pass(w, 10000);
    return request;
}

/* A finding that was wrong, and nothing of the task is left to tell: an operator is called, once,
 * until he says that he has seen to it. */
static void a_late_done_after_an_undo_calls_an_operator(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment first = expired(w, "alone", &task);
    assert_state(w, task, "error");
    found_to_be_nothing(w, task);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "cancelled");
    assert_int_equal(world_count_open_alerts(w), 0);
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    struct rv_alert alert = calls(w, first, "{\"was\":2}");
    assert_int_equal(alert.step, 1);
    assert_string_equal(alert.message.at,
                        "the task is cancelled and counts /do/0/a as not done, but a late reply "
                        "reports that attempt 1 of step 1 was done, with the output {\"was\":1}");
    world_restart(w, 1000);
    struct rv_call *ack = world_call(w, RV_CALL_ACK);
    ack->u.ack = (struct rv_call_ack){.alert = open_alert(w).id, .by = RV_STR("me")};
    assert_true(world_run(w, ack));
    assert_int_equal(ack->err, RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* Said of the step while its undo was under way. */
static void a_late_done_of_what_needed_no_undo_calls_an_operator(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment first = expired(w, "alone", &task);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_state(w, task, "compensating");
    found_to_be_nothing(w, task);
    assert_state(w, task, "compensated");
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    (void)calls(w, first, "{\"was\":2}");
}

/* What was undone is undone, whatever comes of the attempt later. */
static void a_late_done_of_what_was_undone_calls_nobody(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment first = expired(w, "alone", &task);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    undo_ends(w, task);
    calls_nobody(w, first);
}

/* Left on purpose. */
static void a_late_done_of_an_abandoned_task_calls_nobody(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment first = expired(w, "alone", &task);
    found_to_be_nothing(w, task);
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate = (struct rv_call_operate){
        .verb = RV_COMMAND_CANCEL, .task = task, .abandon = true, .reason = RV_STR("old")};
    assert_true(world_run(w, call));
    assert_state(w, task, "cancelled");
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_int_equal(world_count_late(w, task), 1);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* The finding about `b` was wrong, and the undo is at work on `a`: `b` is undone after all. */
static void a_late_done_while_the_undo_goes_on_is_undone(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment b = second_expired(w, "two", &task);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(finds_nothing(w, task, 2), RV_OK);
    struct rv_assignment undo = world_take(w, "one", "i1");
    assert_string_equal(undo.input.at, "{\"undo\":\"a\"}");
    assert_int_equal(world_done(w, b, "{\"was\":1}"), 410);
    assert_false(world_step(w, task, 2)->undone);
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, task, "compensating");
    undo = world_take(w, "one", "i1");
    assert_string_equal(undo.input.at, "{\"undo\":\"completed\"}");
    assert_int_equal(world_done(w, b, "{\"was\":2}"), 410);
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, 2)->undone);
    assert_int_equal(world_done(w, b, "{\"was\":3}"), 410);
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* Nor is it settled as one that did nothing, once its `done` is known. */
static void what_was_done_late_is_not_settled_as_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment b = second_expired(w, "two", &task);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(world_done(w, b, "{\"was\":1}"), 410);
    assert_int_equal(finds_nothing(w, task, 2), RV_ERR_REFUSED);
    world_pass(w, 10000);
    assert_int_equal(finds_nothing(w, task, 2), RV_ERR_REFUSED);
}

/* `b` was done by an operator's word, then by his word it was not. */
static void a_late_done_of_what_a_person_took_back_is_undone(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment b = second_expired(w, "two", &task);
    assert_int_equal(world_settle_seen(w, task, 2, RV_FINDING_DONE, NULL, 0), RV_OK);
    assert_state(w, task, "processed");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(finds_nothing(w, task, 2), RV_OK);
    struct rv_assignment undo = world_take(w, "one", "i1");
    assert_int_equal(world_done(w, b, "{\"was\":1}"), 410);
    assert_int_equal(world_done(w, undo, "{}"), 200);
    undo_ends(w, task);
}

/* It was to be undone before another request leaves; the task has been processed since. */
static void a_late_done_of_a_replaced_request_is_undone_with_the_rest(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment first = expired(w, "alone", &task);
    resubmit_edited(w, task, true);
    found_to_be_nothing(w, task);
    struct rv_assignment second = world_take(w, "one", "i1");
    assert_int_equal(world_done(w, second, "{}"), 200);
    assert_state(w, task, "processed");
    (void)calls(w, first, "{\"was\":1}");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    world_complete(w, "one");
    undo_ends(w, task);
}

/* The pivot has been carried out, says its late reply; its definition cannot be read just then. */
static void a_pivot_that_was_done_late_is_known_while_its_definition_is_lost(void **state)
{
    struct world *w = *state;
    struct rv_call *lost = world_call(w, RV_CALL_PUBLISH);
    lost->u.publish.row = (struct rv_workflow_row){.space = RV_STR("shop"),
                                                   .name = RV_STR("lost"),
                                                   .version = RV_STR("1.0.0"),
                                                   .hash = RV_STR("aa"),
                                                   .source = RV_STR("{}")};
    assert_true(world_run(w, lost));
    struct rv_task_id task = world_submit(w, "passing", "{}");
    int64_t workflow = world_task(w, task)->workflow;
    world_complete(w, "one");
    struct rv_assignment b = world_take(w, "one", "i1");
    world_pass(w, 10000);
    resubmit_edited(w, task, false);
    world_pin(w, task, lost->u.publish.row.id);
    assert_int_equal(world_done(w, b, "{}"), 410);
    world_pin(w, task, workflow); /* it is mended */
    struct rv_call *undo = undo_by_hand(w, task);
    assert_int_equal(undo->err, RV_ERR_REFUSED);
    assert_non_null(strstr(undo->message.at, "is a pivot (point of no return) and was passed"));
}

/* Both attempts were done, and an operator found that nothing had happened. */
static void a_finding_that_was_disproved_is_not_believed_again(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "two", "{}");
    world_complete(w, "one");
    struct rv_assignment first = world_take(w, "one", "i1");
    world_pass(w, 20000);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    struct rv_assignment second = world_take(w, "one", "i1");
    assert_int_equal(first.step.number, second.step.number);
    world_pass(w, 20000);
    assert_state(w, task, "error");
    assert_int_equal(finds_nothing(w, task, 2), RV_OK);
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    world_complete(w, "one");
    assert_true(world_step(w, task, 2)->undone);
    struct rv_assignment undo = world_take(w, "one", "i1");
    assert_int_equal(world_done(w, second, "{\"was\":1}"), 410);
    assert_true(world_step(w, task, 2)->undone);
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, task, "compensated");
}

static void an_undo_that_would_be_refused_is_not_named(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = submit_extra(w, "caught");
    struct rv_assignment first = world_take(w, "one", "i1");
    assert_int_equal(world_fail(w, first, false, RV_EFFECT_NONE), 200);
    assert_state(w, task, "processed");
    assert_int_equal(world_done(w, first, "{\"was\":1}"), 410);
    assert_null(strstr(open_alert(w).message.at, "reeve undo"));
}

/* ---- the step was caught, and its task goes on ---- */

struct caught {
    struct rv_task_id task;
    struct rv_assignment b, e;
};

/* `b` fails, and its agent says that it did nothing; control stands at `e`. */
static struct caught caught_before(struct world *w, const char *name)
{
    struct caught caught = {.task = submit_extra(w, name), .b = world_take(w, "one", "i1")};
    assert_int_equal(world_fail(w, caught.b, false, RV_EFFECT_NONE), 200);
    caught.e = world_take(w, "one", "i1");
    return caught;
}

static void what_was_caught_and_done_late_is_undone_with_its_task(void **state)
{
    struct world *w = *state;
    struct caught c = caught_before(w, "trying");
    assert_int_equal(world_done(w, c.b, "{\"was\":1}"), 410);
    struct rv_alert alert = open_alert(w);
    assert_int_equal(alert.kind, RV_ALERT_LATE_DONE);
    assert_string_equal(alert.message.at,
                        "the task continued without /do/0/t/try/0/b, but a late reply reports that "
                        "attempt 1 of step 2 was done, with the output {\"was\":1}; an undo of the "
                        "task will undo this step, too");
    assert_int_equal(world_done(w, c.b, "{\"was\":2}"), 410);
    assert_int_equal(open_alert(w).id, alert.id);
    assert_int_equal(world_fail(w, c.e, false, RV_EFFECT_NONE), 200);
    assert_state(w, c.task, "compensating");
    struct rv_assignment undo = world_take(w, "one", "i1");
    assert_string_equal(undo.input.at, "{\"undo\":2}");
    assert_int_equal(open_alert(w).id, alert.id);
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, c.task, "compensated");
    assert_int_equal(world_count_open_alerts(w), 0);
}

static void what_was_caught_and_done_late_calls_when_its_task_ends_well(void **state)
{
    struct world *w = *state;
    struct caught c = caught_before(w, "trying");
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, c.task), RV_OK);
    assert_int_equal(world_done(w, c.b, "{\"was\":1}"), 410);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, c.task), RV_OK);
    world_restart(w, 1000);
    assert_int_equal(world_done(w, c.e, "{}"), 200);
    assert_state(w, c.task, "processed");
    assert_int_equal(open_alert(w).kind, RV_ALERT_LATE_DONE);
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, c.task), RV_OK);
    assert_int_equal(open_alert(w).kind, RV_ALERT_LATE_DONE);
    undo_ends(w, c.task);
}

/* Nobody knew what came of `b` when its time was over. */
static void what_was_caught_as_unknown_and_done_late_calls(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = submit_extra(w, "trying");
    struct rv_assignment b = world_take(w, "one", "i1");
    world_pass(w, 10000);
    world_complete(w, "one");
    assert_state(w, task, "processed");
    assert_int_equal(world_count_open_alerts(w), 0);
    (void)calls(w, b, "{\"was\":1}");
}

static void what_a_timeout_ended_and_was_done_late_calls(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = submit_extra(w, "hurried");
    struct rv_assignment b = world_take(w, "one", "i1");
    world_pass(w, 3000);
    struct rv_assignment e = world_take(w, "one", "i1");
    calls_before_the_end(w, task, b, e);
}

/* `b` fails, and its late `done` calls nobody while its retry is kept; the retry is due. */
static struct rv_assignment retried(struct world *w, struct rv_task_id *ret_task)
{
    *ret_task = submit_extra(w, "retried");
    world_complete(w, "one");
    struct rv_assignment b = world_take(w, "one", "i1");
    assert_int_equal(world_fail(w, b, false, RV_EFFECT_NONE), 200);
    calls_nobody(w, b);
    world_pass(w, 5000);
    return b;
}

/* Kept for a retry, a step is not given up: the retry sends it again, with its key. */
static void what_a_retry_keeps_calls_when_it_is_given_up(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment b = retried(w, &task);
    world_complete(w, "one");
    struct rv_assignment again = world_take(w, "one", "i1");
    assert_int_equal(again.step.number, b.step.number);
    assert_int_equal(world_fail(w, again, false, RV_EFFECT_NONE), 200);
    struct rv_assignment e = world_take(w, "one", "i1");
    struct rv_alert alert = open_alert(w);
    assert_int_equal(alert.step, b.step.number);
    assert_non_null(strstr(alert.message.at, "a late reply reports that an attempt of step 3 "
                                             "was done, with the output {\"was\":1}"));
    assert_int_equal(world_fail(w, e, false, RV_EFFECT_NONE), 200);
    struct rv_assignment undo = world_take(w, "one", "i1");
    assert_string_equal(undo.input.at, "{\"undo\":\"b\"}");
    assert_int_equal(world_done(w, undo, "{}"), 200);
    assert_state(w, task, "compensated");
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* The retry brought its result: nothing was contradicted. */
static void what_a_retry_brought_to_its_result_calls_nobody(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    (void)retried(w, &task);
    for (int i = 0; i < 3; i++)
        world_complete(w, "one");
    assert_state(w, task, "processed");
    assert_int_equal(world_count_open_alerts(w), 0);
}

static void each_turn_of_a_loop_calls_for_itself(void **state)
{
    struct world *w = *state;
    struct rv_assignment b[2];
    struct rv_task_id task = submit_extra(w, "looping");
    for (int i = 0; i < 2; i++) {
        b[i] = world_take(w, "one", "i1");
        assert_int_equal(world_fail(w, b[i], false, RV_EFFECT_NONE), 200);
    }
    struct rv_assignment e = world_take(w, "one", "i1");
    for (int i = 0; i < 2; i++)
        assert_int_equal(world_done(w, b[i], "{}"), 410);
    assert_int_equal(world_count_open_alerts(w), 2);
    assert_int_equal(world_fail(w, e, false, RV_EFFECT_NONE), 200);
    world_complete(w, "one");
    assert_int_equal(world_count_open_alerts(w), 1);
    undo_ends(w, task);
}

/* It does not declare its undo: the failure of its task parks it, and a person undoes it. */
static void what_was_done_late_and_is_undone_by_hand_stops_the_undo(void **state)
{
    struct world *w = *state;
    struct caught c = caught_before(w, "byhand");
    assert_int_equal(world_done(w, c.b, "{}"), 410);
    assert_non_null(
        strstr(open_alert(w).message.at, "; an undo of the task will not undo this step"));
    assert_int_equal(world_fail(w, c.e, false, RV_EFFECT_NONE), 200);
    assert_state(w, c.task, "error");
    assert_int_equal(undo_by_hand(w, c.task)->err, RV_OK);
    assert_state(w, c.task, "error");
    uint32_t step = c.b.step.number;
    assert_int_equal(world_settle_seen(w, c.task, step, RV_FINDING_UNDONE, NULL, 1), RV_OK);
    assert_state(w, c.task, "compensated");
    assert_int_equal(world_count_open_alerts(w), 0);
}

/* The operator was wrong, and the task has not ended yet. */
static void a_wrong_finding_calls_before_the_end(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment first = expired(w, "two", &task);
    assert_int_equal(world_settle_seen(w, task, 1, RV_FINDING_NOTHING, "{}", 0), RV_OK);
    struct rv_assignment b = world_take(w, "one", "i1");
    assert_int_equal(first.step.number, 1);
    calls_before_the_end(w, task, first, b);
}

/* The agent's word is on record: it is not settled away while the step is undone, also where an
 * operator had said the same before. */
static void a_late_done_is_not_settled_as_nothing(void **state)
{
    static const struct {
        const char *name;
        enum rv_finding before;
    } rows[] = {{"said the same before", RV_FINDING_NOTHING},
                {"said before that it was done", RV_FINDING_DONE}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = *state;
        struct rv_task_id task;
        print_message("# %s\n", rows[i].name);
        struct rv_assignment first = expired(w, "two", &task);
        assert_int_equal(world_settle_seen(w, task, 1, rows[i].before, "{}", 0), RV_OK);
        (void)world_take(w, "one", "i1");
        assert_int_equal(world_done(w, first, "{}"), 410);
        assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
        assert_int_equal(world_settle_seen(w, task, 1, RV_FINDING_NOTHING, NULL, 1),
                         RV_ERR_REFUSED);
    }
}

static void a_wrong_assumption_calls_before_the_end(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_assignment first = expired(w, "alone", &task);
    resubmit_edited(w, task, false);
    struct rv_assignment second = world_take(w, "one", "i1");
    assert_int_equal(first.step.number, 1);
    calls_before_the_end(w, task, first, second);
}

/* The undo undoes it without anybody's help. */
static void what_is_done_late_in_an_undo_calls_nobody(void **state)
{
    struct world *w = *state;
    struct caught c = caught_before(w, "trying");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, c.task), RV_OK);
    calls_nobody(w, c.b);
    assert_int_equal(world_fail(w, c.e, false, RV_EFFECT_NONE), 410);
    undo_ends(w, c.task);
}

/* That undo may be taken back, and then nothing undoes the step. */
static void what_is_done_late_in_an_undo_that_is_taken_back_calls(void **state)
{
    struct world *w = *state;
    struct caught c = caught_before(w, "pivoting");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, c.task), RV_OK);
    (void)calls(w, c.b, "{\"was\":1}");
    world_pass(w, 10000);
    assert_state(w, c.task, "error");
    assert_int_equal(world_count_alerts(w, c.task, RV_ALERT_LATE_DONE), 1);
    assert_int_equal(world_count_open_alerts(w), 2);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_late_done_after_an_undo_calls_an_operator),
        SCENARIO(a_late_done_of_what_needed_no_undo_calls_an_operator),
        SCENARIO(a_late_done_of_what_was_undone_calls_nobody),
        SCENARIO(a_late_done_while_the_undo_goes_on_is_undone),
        SCENARIO(what_was_done_late_is_not_settled_as_nothing),
        SCENARIO(a_late_done_of_what_a_person_took_back_is_undone),
        SCENARIO(a_late_done_of_a_replaced_request_is_undone_with_the_rest),
        SCENARIO(a_pivot_that_was_done_late_is_known_while_its_definition_is_lost),
        SCENARIO(a_late_done_of_an_abandoned_task_calls_nobody),
        SCENARIO(a_finding_that_was_disproved_is_not_believed_again),
        SCENARIO(an_undo_that_would_be_refused_is_not_named),
        SCENARIO(what_was_caught_and_done_late_is_undone_with_its_task),
        SCENARIO(what_was_caught_and_done_late_calls_when_its_task_ends_well),
        SCENARIO(what_was_caught_as_unknown_and_done_late_calls),
        SCENARIO(what_a_timeout_ended_and_was_done_late_calls),
        SCENARIO(what_a_retry_keeps_calls_when_it_is_given_up),
        SCENARIO(what_a_retry_brought_to_its_result_calls_nobody),
        SCENARIO(each_turn_of_a_loop_calls_for_itself),
        SCENARIO(what_was_done_late_and_is_undone_by_hand_stops_the_undo),
        SCENARIO(a_wrong_finding_calls_before_the_end),
        SCENARIO(a_late_done_is_not_settled_as_nothing),
        SCENARIO(a_wrong_assumption_calls_before_the_end),
        SCENARIO(what_is_done_late_in_an_undo_calls_nobody),
        SCENARIO(what_is_done_late_in_an_undo_that_is_taken_back_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
