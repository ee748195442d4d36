/* What a submitter is told, and how it gets there (decision 014). */
#include "../lib/hooks.h"
#include "../lib/workflow.h"
#include "base/time.h"
#include "core/trace.h"
#include "notify/delivery_queue.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct hooks hooks;

/* Its only step does not say how it is undone. */
static const char *const single = DOCUMENT(
    "single") "do:\n"
              "  - a: {call: one, metadata: {reeve: {failures: {threshold: 1, rounds: 0}}}}\n";

static int open_world(void **state)
{
    static struct world w;
    hooks = (struct hooks){.count = 0};
    world_open_on(&w, (struct world_ground){.outlet = hooks_outlet(&hooks)});
    world_publish(&w, workflow_file("order"));
    world_publish(&w, single);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    world_close(*state);
    hooks_drop(&hooks);
    return 0;
}

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"

/* `url` NULL: a stream. */
static struct rv_submission submit(struct world *w, const char *workflow, const char *url)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
    *item = (struct rv_submission){.space = RV_STR("shop"),
                                   .name = rv_str_of(workflow),
                                   .correlation = RV_STR("order-17"),
                                   .reply_stream = url == NULL,
                                   .traceparent = RV_STR("00-" TRACE "-00000000000000aa-01"),
                                   .priority = 5};
    if (url != NULL)
        item->reply_url = rv_str_of(url);
    call->u.submit.items = item;
    call->u.submit.count = 1;
    assert_true(world_run(w, call));
    return *item;
}

static struct rv_call *messages_call(struct world *w, struct rv_task_id task, uint32_t after,
                                     int64_t wait_ms)
{
    struct rv_call *call = world_call(w, RV_CALL_MESSAGES);
    call->u.messages = (struct rv_call_messages){.task = task, .after = after, .wait_ms = wait_ms};
    return call;
}

static const struct rv_call_messages *messages(struct world *w, struct rv_task_id task)
{
    struct rv_call *call = messages_call(w, task, 0, 0);
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    return &call->u.messages;
}

/* "received started ..." and nothing else, numbered from 1. */
static void assert_told(struct world *w, struct rv_task_id task, const char *kinds)
{
    const struct rv_call_messages *told = messages(w, task);
    char text[400] = "";
    size_t len = 0;
    for (size_t i = 0; i < told->count; i++) {
        assert_int_equal(told->rows[i].number, i + 1);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i > 0 ? " " : "",
                                rv_message_kind_text(told->rows[i].kind));
    }
    assert_string_equal(text, kinds);
}

static void step_done(struct world *w, const char *agent)
{
    assert_int_equal(world_done(w, world_take(w, agent, "i1"), "{\"ok\":true}"), 200);
}

static struct rv_task_id process(struct world *w, const char *url)
{
    struct rv_submission item = submit(w, "order", url);
    assert_int_equal(item.err, RV_OK);
    step_done(w, "inventory");
    step_done(w, "payment");
    return item.task;
}

#define ALL_TOLD "received started step-completed step-completed processed"

/* ---- what is told ---- */

static void a_task_tells_its_way(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = process(w, NULL);
    assert_told(w, task, ALL_TOLD);
    const struct rv_call_messages *told = messages(w, task);
    char id[RV_ID_TEXT_BYTES], at[RV_INSTANT_TEXT_BYTES], wanted[500];
    rv_task_text(task, id);
    rv_instant_text(w->now, at);
    uint64_t span = rv_trace_span(task, 0, 0);
    snprintf(wanted, sizeof wanted,
             "{\"task\":\"%s\",\"number\":3,\"kind\":\"step-completed\",\"at\":\"%s\","
             "\"state\":\"processing\",\"correlationId\":\"order-17\","
             "\"traceparent\":\"00-" TRACE "-%016llx-01\",\"step\":{\"number\":1,"
             "\"direction\":\"forward\",\"reference\":\"/do/0/reserve\",\"iteration\":\"\","
             "\"output\":{\"ok\":true}}}",
             id, at, (unsigned long long)span);
    assert_string_equal(told->rows[2].body.at, wanted);
    assert_non_null(strstr(told->rows[4].body.at, "\"state\":\"processed\""));
    assert_true(told->over);
}

static void an_undone_task_tells_what_was_undone(void **state)
{
    struct world *w = *state;
    struct rv_submission item = submit(w, "order", NULL);
    step_done(w, "inventory");
    assert_int_equal(world_fail(w, world_take(w, "payment", "i1"), false, RV_EFFECT_NONE), 200);
    step_done(w, "inventory");
    assert_told(w, item.task,
                "received started step-completed compensating step-completed compensated");
    const struct rv_call_messages *told = messages(w, item.task);
    assert_non_null(strstr(told->rows[4].body.at, "\"direction\":\"undo\""));
    assert_non_null(strstr(told->rows[5].body.at, "\"error\":{"));
}

static void a_parked_task_names_its_alert(void **state)
{
    struct world *w = *state;
    struct rv_submission item = submit(w, "single", NULL);
    assert_int_equal(world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_UNKNOWN), 200);
    assert_told(w, item.task, "received started error");
    const struct rv_call_messages *told = messages(w, item.task);
    assert_non_null(strstr(told->rows[2].body.at, "\"alert\":{\"kind\":\"no-compensation\""));
    assert_false(told->over);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, item.task), RV_OK);
    step_done(w, "one");
    assert_told(w, item.task, "received started error resumed step-completed processed");
}

static void a_task_that_never_began_tells_its_end(void **state)
{
    struct world *w = *state;
    struct rv_submission item = submit(w, "order", NULL);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, item.task), RV_OK);
    assert_told(w, item.task, "received cancelled");
}

static void who_does_not_ask_is_not_told(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    step_done(w, "inventory");
    struct rv_call *call = messages_call(w, task, 0, 0);
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_ERR_REFUSED);
    assert_non_null(strstr(call->message.at, "replyTo"));
    assert_int_equal(world_task(w, task)->last_message, 0);
    call = messages_call(w, (struct rv_task_id){4711}, 0, 0);
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_ERR_NOT_FOUND);
}

/* ---- who waits for it ---- */

static void who_waits_hears_at_once(void **state)
{
    struct world *w = *state;
    struct rv_submission item = submit(w, "order", NULL);
    struct rv_call *call = messages_call(w, item.task, 1, 20000);
    assert_false(world_run(w, call));
    struct rv_assignment request = world_take(w, "inventory", "i1");
    assert_true(world_finished(call));
    assert_int_equal(call->u.messages.count, 1);
    assert_int_equal(call->u.messages.rows[0].kind, RV_MESSAGE_STARTED);
    call = messages_call(w, item.task, 2, 20000);
    assert_false(world_run(w, call));
    world_pass(w, 5000);
    assert_false(world_finished(call));
    assert_int_equal(world_done(w, request, "1"), 200);
    assert_true(world_finished(call));
    call = messages_call(w, item.task, 3, 3000);
    assert_false(world_run(w, call));
    world_pass(w, 3001);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(call->u.messages.count, 0);
    step_done(w, "payment");
    call = messages_call(w, item.task, 5, 20000);
    assert_true(world_run(w, call)); /* there is nothing to wait for */
    assert_true(call->u.messages.over);
}

/* ---- how it gets there ---- */

static void messages_of_a_task_leave_in_order(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = process(w, "https://a.example/hook");
    for (uint32_t number = 1; number <= 5; number++) {
        assert_int_equal(hooks.count, 1);
        assert_int_equal(hooks.sent[0]->number, number);
        assert_int_equal(hooks.sent[0]->task.value, task.value);
        assert_true(rv_str_is(hooks.sent[0]->url, "https://a.example/hook"));
        assert_true(rv_str_is(hooks.sent[0]->destination, "https://a.example"));
        assert_true(rv_str_eq(hooks.sent[0]->body, messages(w, task)->rows[number - 1].body));
        assert_int_equal(hooks_answer(&hooks, w, NULL, HOOK_TAKES), 1);
    }
    assert_int_equal(hooks.count, 0);
    const struct rv_delivery *delivery = messages(w, task)->delivery;
    assert_int_equal(delivery->next, 6);
    world_pass(w, 5 * RV_MINUTE_MS);
    assert_int_equal(hooks.all, 5);
    /* What is told later goes the same way. */
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_int_equal(hooks.count, 1);
    assert_int_equal(hooks.sent[0]->number, 6);
}

static void what_was_not_taken_is_sent_again(void **state)
{
    struct world *w = *state;
    struct rv_submission item = submit(w, "order", "https://a.example/hook");
    int64_t before = 0;
    for (int tries = 0; tries < 6; tries++) {
        assert_int_equal(hooks_answer(&hooks, w, NULL, HOOK_REFUSES), 1);
        assert_int_equal(hooks.count, 0);
        int64_t waited = 0;
        while (hooks.count == 0) {
            world_pass(w, 100);
            waited += 100;
            assert_true(waited <= 64000);
        }
        assert_int_equal(hooks.sent[0]->number, 1);
        assert_true(waited + 200 >= (500 << tries) && waited <= (1000 << tries) + 200);
        assert_true(tries == 0 || waited > before / 4);
        before = waited;
    }
    assert_int_equal(messages(w, item.task)->delivery->failures, 6);
    assert_int_equal(hooks_take_all(&hooks, w, NULL), 1);
    assert_int_equal(messages(w, item.task)->delivery->failures, 0);
}

static void a_day_later_an_operator_is_called(void **state)
{
    struct world *w = *state;
    struct rv_submission item = submit(w, "order", "https://a.example/hook");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, item.task), RV_OK);
    for (int64_t gone = 0; gone < 23 * RV_HOUR_MS; gone += RV_MINUTE_MS) {
        hooks_answer(&hooks, w, NULL, HOOK_DEAD);
        world_pass(w, RV_MINUTE_MS);
    }
    assert_int_equal(world_count_alerts(w, item.task, RV_ALERT_UNDELIVERABLE), 0);
    for (int64_t gone = 0; gone < 2 * RV_HOUR_MS; gone += RV_MINUTE_MS) {
        hooks_answer(&hooks, w, NULL, HOOK_DEAD);
        world_pass(w, RV_MINUTE_MS);
    }
    assert_int_equal(world_count_alerts(w, item.task, RV_ALERT_UNDELIVERABLE), 1);
    assert_int_equal(world_count_open_alerts(w), 1);
    size_t tried = hooks.all;
    world_pass(w, 3 * RV_HOUR_MS);
    assert_int_equal(hooks.all, tried);
    assert_true(messages(w, item.task)->delivery->given_up);

    struct rv_call *list = world_call(w, RV_CALL_ALERTS);
    assert_true(world_run(w, list));
    struct rv_call *retry = world_call(w, RV_CALL_RETRY);
    retry->u.retry.alert = list->u.list.alerts[0].id;
    assert_true(world_run(w, retry));
    assert_int_equal(retry->err, RV_OK);
    assert_int_equal(world_count_open_alerts(w), 0);
    /* The destination still counts as failing: its next probe may be a minute away. */
    world_pass(w, 2 * RV_MINUTE_MS);
    assert_int_equal(hooks_take_all(&hooks, w, NULL), 2);
    retry = world_call(w, RV_CALL_RETRY);
    retry->u.retry.alert = list->u.list.alerts[0].id;
    assert_true(world_run(w, retry));
    assert_int_equal(retry->err, RV_ERR_REFUSED);
}

static void who_is_gone_is_not_asked_again(void **state)
{
    struct world *w = *state;
    struct rv_submission item = submit(w, "order", "https://a.example/hook");
    assert_int_equal(hooks_answer(&hooks, w, NULL, HOOK_GONE), 1);
    assert_int_equal(world_count_alerts(w, item.task, RV_ALERT_UNDELIVERABLE), 1);
    world_pass(w, RV_HOUR_MS);
    assert_int_equal(hooks.all, 1);
}

static void only_its_own_alerts_are_retried(void **state)
{
    struct world *w = *state;
    submit(w, "single", NULL);
    assert_int_equal(world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_UNKNOWN), 200);
    struct rv_call *list = world_call(w, RV_CALL_ALERTS);
    assert_true(world_run(w, list));
    struct rv_call *retry = world_call(w, RV_CALL_RETRY);
    retry->u.retry.alert = list->u.list.alerts[0].id;
    assert_true(world_run(w, retry));
    assert_int_equal(retry->err, RV_ERR_REFUSED);
    retry = world_call(w, RV_CALL_RETRY);
    retry->u.retry.alert = 4711;
    assert_true(world_run(w, retry));
    assert_int_equal(retry->err, RV_ERR_NOT_FOUND);
}

static void a_dead_destination_delays_no_other(void **state)
{
    struct world *w = *state;
    enum { TASKS = 200 };
    for (int i = 0; i < TASKS; i++) {
        submit(w, "order", "https://dead.example/hook");
        submit(w, "order", "https://live.example/hook");
    }
    size_t taken = hooks_take_all(&hooks, w, "https://live.example");
    assert_int_equal(taken, TASKS);
    assert_true(hooks.count <= 8); /* of the dead: they wait for an answer that does not come */
    size_t dead = hooks_answer(&hooks, w, "https://dead.example", HOOK_DEAD);
    assert_in_range(dead, 1, 8);
    size_t all = hooks.all;
    for (int i = 0; i < 600; i++) {
        world_pass(w, RV_SECOND_MS);
        assert_true(hooks.count <= 8);
        hooks_answer(&hooks, w, "https://dead.example", HOOK_DEAD);
    }
    assert_in_range(hooks.all - all, 5, 60); /* ten minutes of probes */
    submit(w, "single", "https://live.example/hook");
    step_done(w, "one");
    hooks_answer(&hooks, w, "https://dead.example", HOOK_DEAD);
    assert_int_equal(hooks_take_all(&hooks, w, "https://live.example"), 4);
    /* It is back: nobody waits for the end of a pause of his own. */
    for (int i = 0; i < 60 && hooks.count == 0; i++)
        world_pass(w, RV_SECOND_MS);
    assert_int_equal(hooks_take_all(&hooks, w, NULL), TASKS);
}

static void a_restart_loses_none(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = process(w, "https://a.example/hook");
    assert_int_equal(hooks_answer(&hooks, w, NULL, HOOK_TAKES), 1);
    assert_int_equal(hooks.sent[0]->number, 2);
    hooks_drop(&hooks); /* nobody knows whether it has arrived */
    world_restart(w, 100);
    world_pass(w, RV_SECOND_MS);
    assert_int_equal(hooks.count, 1);
    assert_int_equal(hooks.sent[0]->number, 2);
    assert_int_equal(hooks.sent[0]->task.value, task.value);
    assert_int_equal(hooks_take_all(&hooks, w, NULL), 4);
}

/* A day in which the server was not there is no day of the webhook. */
static void an_absence_does_not_count(void **state)
{
    struct world *w = *state;
    struct rv_submission item = submit(w, "order", "https://a.example/hook");
    hooks_answer(&hooks, w, NULL, HOOK_DEAD);
    world_restart(w, 30 * RV_HOUR_MS);
    world_pass(w, RV_MINUTE_MS);
    assert_int_equal(hooks_answer(&hooks, w, NULL, HOOK_DEAD), 1);
    assert_int_equal(world_count_alerts(w, item.task, RV_ALERT_UNDELIVERABLE), 0);
    world_pass(w, RV_MINUTE_MS);
    assert_int_equal(hooks_take_all(&hooks, w, NULL), 1);
}

/* A sender that never tells what came of it. */
static void a_lost_sender_is_not_waited_for(void **state)
{
    struct world *w = *state;
    submit(w, "order", "https://a.example/hook");
    hooks_drop(&hooks);
    world_pass(w, 6 * RV_MINUTE_MS);
    assert_int_equal(hooks.count, 1);
}

static void more_than_the_book_holds_waits_in_the_rows(void **state)
{
    struct world *w = *state;
    enum { TASKS = 5000 };
    for (int i = 0; i < TASKS; i++)
        submit(w, "order", "https://a.example/hook");
    size_t taken = 0;
    for (int i = 0; i < 100 && taken < TASKS; i++) {
        taken += hooks_take_all(&hooks, w, NULL);
        world_pass(w, RV_SECOND_MS);
    }
    assert_int_equal(taken, TASKS);
    assert_int_equal(hooks.all, TASKS);
}

/* What the book had no room for at the start is read when the day is long over. */
static void an_absence_does_not_count_for_what_is_read_late(void **state)
{
    struct world *w = *state;
    enum { TASKS = RV_DELIVERY_QUEUE_TASKS_MAX + 500 };
    static struct rv_task_id tasks[TASKS];
    for (size_t i = 0; i < TASKS; i++)
        tasks[i] = submit(w, "order", "https://a.example/hook").task;
    hooks_drop(&hooks);
    world_restart(w, 30 * RV_HOUR_MS);
    world_pass(w, RV_SECOND_MS);
    size_t taken = 0;
    while (taken < RV_DELIVERY_QUEUE_TASKS_MAX) {
        size_t count = hooks_answer(&hooks, w, NULL, HOOK_TAKES);
        assert_int_not_equal(count, 0);
        taken += count;
    }
    assert_true(hooks_answer(&hooks, w, NULL, HOOK_DEAD) > 0);
    world_pass(w, RV_MINUTE_MS);
    for (size_t i = 0; i < TASKS; i++)
        assert_int_equal(world_count_alerts(w, tasks[i], RV_ALERT_UNDELIVERABLE), 0);
}

static void where_calls_may_not_go_is_refused(void **state)
{
    struct world *w = *state;
    hooks.refuses = "https://bad.example/hook";
    struct rv_submission item = submit(w, "order", "https://bad.example/hook");
    assert_int_equal(item.err, RV_ERR_REFUSED);
    assert_non_null(strstr(item.message.at, "--egress"));
    assert_int_equal(item.task.value, 0);
    w->ground.outlet.send = NULL;
    world_restart(w, 10);
    item = submit(w, "order", "https://a.example/hook");
    assert_int_equal(item.err, RV_ERR_REFUSED);
}

#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENARIO(a_task_tells_its_way),
        SCENARIO(an_undone_task_tells_what_was_undone),
        SCENARIO(a_parked_task_names_its_alert),
        SCENARIO(a_task_that_never_began_tells_its_end),
        SCENARIO(who_does_not_ask_is_not_told),
        SCENARIO(who_waits_hears_at_once),
        SCENARIO(messages_of_a_task_leave_in_order),
        SCENARIO(what_was_not_taken_is_sent_again),
        SCENARIO(a_day_later_an_operator_is_called),
        SCENARIO(who_is_gone_is_not_asked_again),
        SCENARIO(only_its_own_alerts_are_retried),
        SCENARIO(a_dead_destination_delays_no_other),
        SCENARIO(a_restart_loses_none),
        SCENARIO(an_absence_does_not_count),
        SCENARIO(an_absence_does_not_count_for_what_is_read_late),
        SCENARIO(a_lost_sender_is_not_waited_for),
        SCENARIO(more_than_the_book_holds_waits_in_the_rows),
        SCENARIO(where_calls_may_not_go_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
