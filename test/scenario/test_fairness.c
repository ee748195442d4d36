/* Work that takes long: others go first, and what it gives is the same (RULES 11). */
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
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Ten million nanoseconds of an expression, or about. */
static const char *const no_end = DOCUMENT("no-end") "do:\n  - a: {set: {n: '${ def f: f; f }'}}\n";
static const char *const to_itself = DOCUMENT(
    "to-itself") "do:\n  - a: {set: {n: '${ [range(60000)] | length }'}, then: a}\n";
static const char *const heavy_steps =
    DOCUMENT("heavy-steps") "do:\n"
                            "  - a: {set: {i: '${ .i + 1 }', n: '${ [range(60000)] | length }'}}\n"
                            "  - b: {switch: [{more: {when: '.i < 20', then: a}}]}\n";
/* The same, by many clients all the time: without debts the newest would always come first. */
static const char *const greedy = DOCUMENT(
    "greedy") "do:\n  - a: {set: {n: '${ [range(12000)] | length }'}}\n";
static const char *const middle = DOCUMENT(
    "middle") "do:\n  - a: {set: {n: '${ [range(12000)] | length }'}}\n";
static const char *const light = DOCUMENT("light") "do:\n  - a: {set: {n: 1}}\n";

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    world_publish(&w, workflow_file("order"));
    world_publish(&w, no_end);
    world_publish(&w, to_itself);
    world_publish(&w, heavy_steps);
    world_publish(&w, workflow_file("fairness/sums"));
    world_publish(&w, greedy);
    world_publish(&w, middle);
    world_publish(&w, light);
    *state = &w;
    return 0;
}

/* Slices so small that everything is interrupted. */
static void slice(struct world *w, int64_t turn_fuel)
{
    w->turn_fuel = turn_fuel;
    world_restart(w, 1);
}

static struct rv_call *submission(struct world *w, const char *workflow)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
    *item = (struct rv_submission){.space = RV_STR("shop"), .name = rv_str_of(workflow)};
    call->u.submit.items = item;
    call->u.submit.count = 1;
    return call;
}

/* So many batches, whatever is left to do. */
static void begin(struct world *w, struct rv_call *call, int batches)
{
    for (int i = 0; i < batches; i++)
        assert_int_equal(
            rv_scheduler_run_batch(w->scheduler, &call, i == 0 && call ? 1 : 0, w->mono), RV_OK);
}

/* Others submit a task each millisecond, and each is answered at once. The offenders, sixteen at a
 * time, get a twentieth of the time: 10 ms of each 200. */
static void offend(struct world *w, const char *workflow)
{
    enum { MS = 4000, OFFENDERS = 16 };
    struct rv_call *offenders[OFFENDERS] = {NULL};
    unsigned ended = 0;
    for (int ms = 0; ms < 600; ms++) { /* so that they are known to be there */
        assert_true(world_run(w, submission(w, "light")));
        world_pass(w, 1);
    }
    for (int ms = 0; ms < MS; ms++) {
        for (int i = 0; i < OFFENDERS; i++) {
            bool over = offenders[i] != NULL && world_finished(offenders[i]);
            ended += over;
            offenders[i] = over ? NULL : offenders[i];
        }
        for (int i = 0; i < OFFENDERS; i++) {
            if (offenders[i] != NULL)
                continue;
            offenders[i] = submission(w, workflow);
            begin(w, offenders[i], 1);
        }
        struct rv_call *call = submission(w, "light");
        assert_true(world_run(w, call));
        assert_int_equal(call->u.submit.items[0].state, RV_TASK_PROCESSED);
        world_pass(w, 1);
    }
    /* 1,000,000 units each, and a twentieth of the time; a few while it was not known yet. */
    assert_in_range(ended, 1, MS / 200 + 10);
}

static void endless_expressions_get_a_twentieth_of_the_time(void **state)
{
    offend(*state, "no-end");
}

/* The first decision of each takes 1 ms or more; all that follow it have no caller. */
static void a_heavy_loop_leaves_the_time_to_others(void **state)
{
    enum { MS = 1000 };
    struct world *w = *state;
    assert_true(world_run(w, submission(w, "light")));
    struct rv_call *first = submission(w, "to-itself");
    assert_true(world_run(w, first));
    struct rv_task_id loop = first->u.submit.items[0].task;
    for (int ms = 0; ms < 2000; ms++) {
        assert_true(world_run(w, submission(w, "light")));
        world_pass(w, 1);
    }
    int64_t before = world_task(w, loop)->revision;
    for (int ms = 0; ms < MS; ms++) {
        struct rv_call *call = submission(w, "light");
        assert_true(world_run(w, call));
        assert_int_equal(call->u.submit.items[0].state, RV_TASK_PROCESSED);
        world_pass(w, 1);
    }
    /* A step of it is written for each millisecond of work. */
    assert_in_range(world_task(w, loop)->revision - before, 2, MS / 20 + 10);
}

/* However much others have asked for before: what owes less goes first. It takes 0.4 ms, for which
 * a twentieth of the time is 8 ms. */
static void a_stranger_goes_before_those_who_owe(void **state)
{
    enum { MS = 3000, EVERY_MS = 250, OFFENDERS = 40, WAITS_MS_MAX = 60 };
    struct world *w = *state;
    struct rv_call *offenders[OFFENDERS] = {NULL};
    struct rv_call *stranger = NULL;
    int since = 0, longest = 0, answers = 0;
    for (int ms = 0; ms < MS; ms++) {
        for (int i = 0; i < OFFENDERS; i++)
            if (offenders[i] == NULL || world_finished(offenders[i]))
                begin(w, offenders[i] = submission(w, "greedy"), 1);
        assert_true(world_run(w, submission(w, "light")));
        if (stranger != NULL && world_finished(stranger)) {
            assert_int_equal(stranger->u.submit.items[0].state, RV_TASK_PROCESSED);
            longest = ms - since > longest ? ms - since : longest;
            stranger = NULL;
            answers++;
        }
        if (ms % EVERY_MS == 0 && stranger == NULL) {
            begin(w, stranger = submission(w, "middle"), 1);
            since = ms;
        }
        world_pass(w, 1);
    }
    assert_in_range(longest, 0, WAITS_MS_MAX);
    assert_true(answers >= MS / EVERY_MS - 1);
}

/* Without other work nothing waits. */
static void who_is_alone_has_all_the_time(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 50; i++) {
        struct rv_call *call = submission(w, "no-end");
        assert_true(world_run(w, call));
        assert_int_equal(call->u.submit.items[0].state, RV_TASK_COMPENSATED);
    }
}

static struct rv_str sums_output(struct world *w, int64_t turn_fuel, char *ret_text, size_t bytes)
{
    slice(w, turn_fuel);
    struct rv_task_id task = world_submit(w, "sums", "{}");
    struct rv_assignment request = world_take(w, "agent", "i1");
    assert_int_equal(world_done(w, request, "{\"n\":9000}"), 200);
    world_settle(w);
    const struct rv_task *row = world_task(w, task);
    assert_int_equal(row->state, RV_TASK_PROCESSED);
    snprintf(ret_text, bytes, "%.*s %.*s", RV_STR_FMT(request.input), RV_STR_FMT(row->output));
    return rv_str_of(ret_text);
}

static void slices_change_no_result(void **state)
{
    static const int64_t turns[] = {7, 64, 500, 4000, 33333};
    struct world *w = *state;
    char whole[256], sliced[256];
    (void)sums_output(w, 1000 * 1000 * 1000, whole, sizeof whole);
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
        (void)sums_output(w, turns[i], sliced, sizeof sliced);
        assert_string_equal(sliced, whole);
    }
}

/* Its attempt does not end meanwhile, and a renewal hears nothing else. */
static void a_reply_in_time_counts_however_long_its_decision_takes(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "sums", "{}");
    struct rv_assignment request = world_take(w, "agent", "i1");
    slice(w, 50);
    world_settle(w);
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item *item = RV_NEW(&call->arena, struct rv_reply_item);
    *item = (struct rv_reply_item){
        .step = request.step, .token = request.token, .reply = {.output = RV_STR("{\"n\":9000}")}};
    call->u.replies.items = item;
    call->u.replies.count = 1;
    begin(w, call, 2);
    assert_false(world_finished(call));
    world_absent(w, 24 * 3600 * 1000);
    assert_true(world_finished(call));
    assert_int_equal(item->status, 200);
    assert_state(w, task, "processed");
}

static void an_operator_need_not_wait_for_an_evaluation(void **state)
{
    struct world *w = *state;
    slice(w, 2000);
    struct rv_call *loop = submission(w, "to-itself");
    begin(w, loop, 200);
    assert_true(world_finished(loop));
    struct rv_task_id task = loop->u.submit.items[0].task;
    begin(w, NULL, 3); /* it goes on */
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate = (struct rv_call_operate){.verb = RV_COMMAND_CANCEL,
                                               .task = task,
                                               .by = RV_STR("me"),
                                               .reason = RV_STR("it does not end"),
                                               .abandon = true};
    begin(w, call, 4);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_OK);
    assert_state(w, task, "cancelled");
}

static void a_stop_answers_those_who_wait(void **state)
{
    struct world *w = *state;
    slice(w, 50);
    struct rv_call *call = submission(w, "no-end");
    begin(w, call, 3);
    assert_false(world_finished(call));
    rv_scheduler_drain(w->scheduler);
    begin(w, NULL, 1);
    assert_true(world_finished(call));
    assert_int_equal(call->u.submit.items[0].err, RV_ERR_BUSY);
}

/* What was not committed comes again. */
static void a_crash_evaluates_again(void **state)
{
    struct world *w = *state;
    slice(w, 2000);
    struct rv_call *call = submission(w, "heavy-steps");
    begin(w, call, 203);
    assert_true(world_finished(call));
    struct rv_task_id task = call->u.submit.items[0].task;
    world_restart_unlooked(w, 5);
    assert_state(w, task, "processing");
    world_settle(w);
    assert_state(w, task, "processed");
    assert_string_equal(world_task(w, task)->output.at, "{\"i\":20,\"n\":60000}");
}

static struct rv_call *replies_call(struct world *w, struct rv_assignment request,
                                    const char *output)
{
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item *item = RV_NEW(&call->arena, struct rv_reply_item);
    *item = (struct rv_reply_item){
        .step = request.step, .token = request.token, .reply = {.output = rv_str_of(output)}};
    call->u.replies.items = item;
    call->u.replies.count = 1;
    return call;
}

/* In whatever batch it comes, that of the first one's end too. */
static void a_reply_that_comes_again_is_answered(void **state)
{
    enum { BATCHES = 30 };
    struct world *w = *state;
    for (int after = 0; after < BATCHES; after++) {
        struct rv_task_id task = world_submit(w, "sums", "{}");
        struct rv_assignment request = world_take(w, "agent", "i1");
        slice(w, 1000);
        struct rv_call *first = replies_call(w, request, "{\"n\":9000}");
        begin(w, first, 1 + after);
        struct rv_call *again = replies_call(w, request, "{\"n\":1}");
        begin(w, again, 1);
        world_settle(w);
        assert_true(world_finished(first));
        assert_true(world_finished(again));
        assert_int_equal(first->u.replies.items[0].status, 200);
        assert_string_equal(world_task(w, task)->output.at, "{\"n\":9000}");
        slice(w, 0);
    }
}

/* Also where its change does not pass, and it is decided again. */
static void the_first_reply_counts(void **state)
{
    enum { BATCHES = 30 };
    (void)state;
    static struct world w;
    struct store_faults faults = {.drop_at = 0};
    world_open_faulty(&w, &faults);
    world_publish(&w, workflow_file("fairness/sums"));
    for (int after = 0; after < BATCHES; after++) {
        struct rv_task_id task = world_submit(&w, "sums", "{}");
        struct rv_assignment request = world_take(&w, "agent", "i1");
        slice(&w, 1000);
        struct rv_call *first = replies_call(&w, request, "{\"n\":9000}");
        struct rv_call *second = replies_call(&w, request, "{\"n\":1}");
        faults.changes = faults.drops = 0;
        faults.drop_at = 1;
        begin(&w, first, 1 + after);
        begin(&w, second, 1);
        world_pass(&w, 2000);
        assert_true(world_finished(first) && world_finished(second));
        assert_int_equal(faults.drops, 1);
        faults.drop_at = 0;
        assert_int_equal(first->err, RV_OK);
        assert_int_equal(first->u.replies.items[0].status, 200);
        assert_string_equal(world_task(&w, task)->output.at, "{\"n\":9000}");
        slice(&w, 0);
    }
    world_close(&w);
}

/* Refused by a stop, the first reply comes again: neither another one nor the end of its lease is
 * decided before that. */
static void a_stop_lets_no_other_reply_count(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "sums", "{}");
    struct rv_assignment request = world_take(w, "agent", "i1");
    slice(w, 50);
    world_settle(w);
    struct rv_call *first = replies_call(w, request, "{\"n\":9000}");
    struct rv_call *second = replies_call(w, request, "");
    struct rv_reply_item *failure = &second->u.replies.items[0];
    failure->failed = true;
    failure->reply = (struct rv_reply){.error = RV_STR("{\"type\":\"no\"}"),
                                       .effect = RV_EFFECT_UNKNOWN};
    begin(w, first, 2);
    assert_false(world_finished(first));
    rv_scheduler_drain(w->scheduler);
    begin(w, second, 1);
    assert_true(world_finished(first) && world_finished(second));
    assert_int_equal(first->err, RV_ERR_BUSY);
    assert_int_equal(second->err, RV_ERR_BUSY);
    w->mono += 16 * 1000;
    w->now += 16 * 1000;
    begin(w, NULL, 3);
    assert_int_equal(world_step(w, task, request.step.number)->attempt_state, RV_ATTEMPT_OPEN);
    slice(w, 0);
    assert_int_equal(world_done(w, request, "{\"n\":9000}"), 200);
    assert_state(w, task, "processed");
}

/* The end of a lease takes long to decide, and the agent answers meanwhile. */
static void a_reply_goes_before_the_end_of_its_attempt(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("fairness/slow-end"));
    struct rv_task_id task = world_submit(w, "slow-end", "{}");
    struct rv_assignment request = world_take(w, "agent", "i1");
    slice(w, 200);
    world_settle(w);
    world_pass(w, 1995);
    w->now += 10;
    w->mono += 10;
    begin(w, NULL, 10); /* its lease is over, and what follows is being evaluated */
    struct rv_call *call = replies_call(w, request, "{\"n\":9000}");
    begin(w, call, 1);
    world_pass(w, 1000);
    assert_true(world_finished(call));
    assert_int_equal(call->u.replies.items[0].status, 200);
    assert_state(w, task, "processed");
    assert_string_equal(world_task(w, task)->output.at, "{\"n\":9000}");
}

/* There is no room to wait for the second item. What was accepted before is known to who asked:
 * without a key he would submit it again, and have two tasks. */
static void what_was_accepted_is_told_where_the_rest_cannot_wait(void **state)
{
    struct world *w = *state;
    w->polls_parked_max = 1;
    slice(w, 1500);
    struct rv_call *first = submission(w, "no-end");
    begin(w, first, 3);
    assert_false(world_finished(first));
    struct rv_call *call = submission(w, "light");
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, 2);
    items[0] = call->u.submit.items[0];
    items[1] = first->u.submit.items[0];
    items[1].task.value = 0;
    call->u.submit.items = items;
    call->u.submit.count = 2;
    begin(w, call, 1);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(items[0].err, RV_OK);
    assert_state(w, items[0].task, "processed");
    assert_int_equal(items[1].err, RV_ERR_BUSY);
    assert_non_null(strstr(items[1].message.at, "send the request again later"));
    struct rv_call *alone = submission(w, "no-end");
    begin(w, alone, 1);
    assert_int_equal(alone->err, RV_ERR_BUSY);
}

/* The same where the server closes, or its store refuses the batch that has the rest. */
static void what_was_accepted_is_told_where_the_server_closes(void **state)
{
    struct world *w = *state;
    slice(w, 1500);
    struct rv_call *call = submission(w, "light");
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, 2);
    items[0] = call->u.submit.items[0];
    items[1] = items[0];
    items[1].name = RV_STR("no-end");
    call->u.submit.items = items;
    call->u.submit.count = 2;
    begin(w, call, 1);
    assert_false(world_finished(call));
    world_restart(w, 1);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(items[0].err, RV_OK);
    assert_int_not_equal(items[0].task.value, 0);
    assert_int_equal(items[1].err, RV_ERR_BUSY);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(what_was_accepted_is_told_where_the_rest_cannot_wait),
        SCENARIO(what_was_accepted_is_told_where_the_server_closes),
        SCENARIO(endless_expressions_get_a_twentieth_of_the_time),
        SCENARIO(a_heavy_loop_leaves_the_time_to_others),
        SCENARIO(a_stranger_goes_before_those_who_owe),
        SCENARIO(who_is_alone_has_all_the_time),
        SCENARIO(slices_change_no_result),
        SCENARIO(a_reply_in_time_counts_however_long_its_decision_takes),
        SCENARIO(an_operator_need_not_wait_for_an_evaluation),
        SCENARIO(a_stop_answers_those_who_wait),
        SCENARIO(a_crash_evaluates_again),
        SCENARIO(a_reply_that_comes_again_is_answered),
        cmocka_unit_test(the_first_reply_counts),
        SCENARIO(a_stop_lets_no_other_reply_count),
        SCENARIO(a_reply_goes_before_the_end_of_its_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
