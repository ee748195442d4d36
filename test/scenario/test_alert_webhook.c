/* Alerts on their way to the operators' webhook: each once, over restarts, and one that is dead
 * calls once. */
#include "../lib/hooks.h"
#include "base/time.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
    world_open_on(&w, (struct world_ground){.outlet = hooks_outlet(&hooks),
                                            .alert_url = RV_STR("https://pager.example/call")});
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

/* A task in error, whose alert may be on its way now. */
static struct rv_task_id park(struct world *w)
{
    struct rv_task_id task = world_submit(w, "single", "{}");
    assert_int_equal(world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_UNKNOWN), 200);
    world_settle(w);
    return task;
}

static bool says(const struct rv_notice *notice, const char *part)
{
    return strstr(notice->body.at, part) != NULL;
}

/* Nobody takes anything for so long. */
static void days_pass(struct world *w, int64_t ms)
{
    for (int64_t gone = 0; gone < ms; gone += RV_MINUTE_MS) {
        hooks_answer(&hooks, w, NULL, HOOK_DEAD);
        world_pass(w, RV_MINUTE_MS);
    }
}

static size_t tell_all(struct world *w)
{
    size_t told = 0;
    for (int i = 0; i < 10; i++) {
        told += hooks_take_all(&hooks, w, NULL);
        world_pass(w, RV_MINUTE_MS);
    }
    return told;
}

/* Open alerts that tell of alerts which are not heard; the newest in *ret_alert. */
static size_t unheard(struct world *w, int64_t *ret_alert)
{
    struct rv_call *list = world_call(w, RV_CALL_ALERTS);
    size_t count = 0;
    list->u.list.open_only = true;
    list->u.list.limit = 50;
    assert_true(world_run(w, list));
    for (size_t i = list->u.list.count; i > 0; i--) {
        const struct rv_alert *alert = &list->u.list.alerts[i - 1];
        if (alert->kind != RV_ALERT_UNDELIVERABLE || alert->task.value != 0)
            continue;
        *ret_alert = alert->id;
        count++;
    }
    return count;
}

static void an_alert_is_sent_and_taken_once(void **state)
{
    struct world *w = *state;
    char text[RV_ID_TEXT_BYTES];
    struct rv_task_id task = park(w);
    assert_int_equal(hooks.count, 1);
    assert_int_equal(hooks.sent[0]->number, 1);
    assert_true(rv_str_is(hooks.sent[0]->url, "https://pager.example/call"));
    assert_true(says(hooks.sent[0], "\"kind\":\"no-compensation\""));
    assert_true(says(hooks.sent[0], rv_task_text(task, text).at));
    assert_true(says(hooks.sent[0], "\"cure\":\"check the effect of the step in the message"));
    assert_int_equal(hooks_take_all(&hooks, w, NULL), 1);
    world_restart(w, RV_MINUTE_MS);
    world_pass(w, RV_HOUR_MS);
    assert_int_equal(hooks.all, 1);
}

static void a_server_that_dies_sends_it_again(void **state)
{
    struct world *w = *state;
    park(w);
    struct rv_call *raise = world_call(w, RV_CALL_RAISE);
    raise->u.raise.source = RV_STR("outbox/1/k");
    raise->u.raise.message = RV_STR("row 1 \"is\" too old");
    assert_true(world_run(w, raise));
    world_settle(w);
    assert_int_equal(hooks.count, 2);
    assert_true(says(hooks.sent[1], "\"source\":\"outbox/1/k\""));
    assert_true(says(hooks.sent[1], "row 1 \\\"is\\\" too old"));
    hooks_drop(&hooks);
    world_restart(w, RV_MINUTE_MS);
    world_pass(w, 2 * RV_MINUTE_MS);
    assert_int_equal(tell_all(w), 2);
}

static void a_dead_webhook_calls_once(void **state)
{
    struct world *w = *state;
    int64_t alert = 0, again = 0;
    for (int i = 0; i < 5; i++)
        park(w);
    days_pass(w, 23 * RV_HOUR_MS);
    assert_int_equal(unheard(w, &alert), 0);
    days_pass(w, 3 * RV_HOUR_MS);
    assert_int_equal(unheard(w, &alert), 1);
    park(w);
    days_pass(w, 26 * RV_HOUR_MS);
    assert_int_equal(unheard(w, &again), 1);
    assert_true(again == alert);
    assert_int_equal(world_count_open_alerts(w), 7);
    size_t tried = hooks.all;
    days_pass(w, 3 * RV_HOUR_MS);
    assert_int_equal(hooks.all, tried);

    struct rv_call *retry = world_call(w, RV_CALL_RETRY);
    retry->u.retry.alert = alert;
    assert_true(world_run(w, retry));
    assert_int_equal(retry->err, RV_OK);
    assert_int_equal(unheard(w, &again), 0);
    assert_int_equal(tell_all(w), 6); /* and nothing of the webhook itself */
    retry = world_call(w, RV_CALL_RETRY);
    retry->u.retry.alert = alert;
    assert_true(world_run(w, retry));
    assert_int_equal(retry->err, RV_ERR_REFUSED);
}

static void one_that_was_seen_may_call_again(void **state)
{
    struct world *w = *state;
    int64_t alert = 0, again = 0;
    park(w);
    days_pass(w, 26 * RV_HOUR_MS);
    assert_int_equal(unheard(w, &alert), 1);
    struct rv_call *ack = world_call(w, RV_CALL_ACK);
    ack->u.ack.alert = alert;
    assert_true(world_run(w, ack));
    park(w);
    days_pass(w, 26 * RV_HOUR_MS);
    assert_int_equal(unheard(w, &again), 1);
    assert_true(again > alert);
}

static void a_dead_webhook_delays_no_submitter(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 20; i++)
        park(w);
    days_pass(w, 10 * RV_MINUTE_MS);
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
    *item = (struct rv_submission){.space = RV_STR("shop"),
                                   .name = RV_STR("single"),
                                   .reply_url = RV_STR("https://shop.example/hook"),
                                   .priority = 5};
    call->u.submit.items = item;
    call->u.submit.count = 1;
    assert_true(world_run(w, call));
    world_settle(w);
    assert_int_equal(hooks_answer(&hooks, w, "https://shop.example", HOOK_TAKES), 1);
}

static struct rv_call *report(struct world *w)
{
    struct rv_call *raise = world_call(w, RV_CALL_RAISE);
    raise->u.raise.source = RV_STR("billing");
    raise->u.raise.message = RV_STR("an invoice was not printed");
    return raise;
}

static void assert_raised_anew(struct world *w, const struct rv_call *raise, int64_t before)
{
    assert_int_equal(raise->err, RV_OK);
    assert_false(raise->u.raise.known);
    assert_true(raise->u.raise.alert != before);
    assert_int_equal(world_count_open_alerts(w), 1);
}

/* Somebody has looked after the one before, perhaps in the same batch: this is something new. */
static void an_alert_is_raised_anew_after_it_was_acknowledged(void **state)
{
    struct world *w = *state;
    struct rv_call *first = report(w), *ack = world_call(w, RV_CALL_ACK);
    assert_true(world_run(w, first));
    ack->u.ack.alert = first->u.raise.alert;
    struct rv_call *batch[] = {report(w), ack, report(w), report(w)};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, batch, 4, w->mono), RV_OK);
    assert_true(batch[0]->u.raise.alert == first->u.raise.alert);
    assert_raised_anew(w, batch[2], first->u.raise.alert);
    assert_true(batch[3]->u.raise.alert == batch[2]->u.raise.alert);
    ack = world_call(w, RV_CALL_ACK);
    ack->u.ack.alert = batch[2]->u.raise.alert;
    assert_true(world_run(w, ack));
    struct rv_call *third = report(w);
    assert_true(world_run(w, third));
    assert_raised_anew(w, third, batch[2]->u.raise.alert);
    world_settle(w);
    assert_int_equal(tell_all(w), 3); /* each calls */
}

#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENARIO(an_alert_is_sent_and_taken_once),
        SCENARIO(a_server_that_dies_sends_it_again),
        SCENARIO(a_dead_webhook_calls_once),
        SCENARIO(one_that_was_seen_may_call_again),
        SCENARIO(a_dead_webhook_delays_no_submitter),
        SCENARIO(an_alert_is_raised_anew_after_it_was_acknowledged),
    };
    return cmocka_run_group_tests_name("alert_webhook", tests, NULL, NULL);
}
