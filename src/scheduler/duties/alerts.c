/* Alerts on their way to the operators' webhook, as messages go to those of submitters
 * (deliveries.c): the row in which one waits is written with it. One that is given up raises an
 * alert that goes nowhere but into the list, and no second one while that stands: a webhook that is
 * dead calls once. */
#include "scheduler/duties/alerts.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/cure.h"
#include "json/json.h"
#include "scheduler/batch/state.h"
#include "scheduler/calls/alerts.h"
#include "scheduler/duties/deliveries.h"
#include "scheduler/duties/duty.h"
#include "scheduler/watch/log.h"

#define UNHEARD_SOURCE "alert-webhook"

/* The message may quote an error of a step, as large as a payload, and is escaped. */
enum { BODY_BYTES_MAX = 16 * RV_PAYLOAD_BYTES_MAX };

static enum rv_err alerts_init(struct rv_scheduler *s)
{
    const struct rv_scheduler_outlet *outlet = &s->options.outlet;
    if (s->options.alert_url.at == NULL)
        return RV_OK;
    enum rv_err err = outlet->check(outlet->self, s->options.alert_url, s->alerts_destination,
                                    sizeof s->alerts_destination);
    s->alerts_to = (struct rv_delivery){.destination = rv_str_of(s->alerts_destination),
                                        .url = s->options.alert_url};
    return err;
}

static enum rv_err alert_find(struct rv_scheduler *s, int64_t id, struct rv_alert *ret_alert)
{
    size_t count = 0;
    enum rv_err err = s->store->ops->list_alerts(s->store, s->batch.arena, (struct rv_task_id){0},
                                                 false, id + 1, 1, ret_alert, &count);
    if (err != RV_OK)
        return err;
    rv_assert(count <= 1);
    return count > 0 && ret_alert->id == id ? RV_OK : RV_ERR_NOT_FOUND;
}

static void member_put(struct rv_buf *body, const char *name, struct rv_str text)
{
    if (text.at == NULL)
        return;
    rv_buf_printf(body, ",\"%s\":", name);
    rv_json_write_string(body, text);
}

enum rv_err alert_body(struct rv_scheduler *s, int64_t id, struct rv_str *ret_body)
{
    struct rv_alert alert;
    struct rv_buf body;
    char task[RV_ID_TEXT_BYTES], at[RV_INSTANT_TEXT_BYTES], cure[RV_ALERT_CURE_BYTES];
    enum rv_err err = alert_find(s, id, &alert);
    if (err != RV_OK)
        return err;
    rv_buf_init(&body, BODY_BYTES_MAX);
    rv_buf_printf(&body, "{\"alert\":\"%s\",\"kind\":\"%s\",\"raisedAt\":\"%s\"",
                  rv_task_text((struct rv_task_id){id}, task).at, rv_alert_kind_text(alert.kind),
                  rv_instant_text(alert.raised_at, at).at);
    if (alert.task.value != 0)
        member_put(&body, "task", rv_task_text(alert.task, task));
    if (alert.step != 0)
        rv_buf_printf(&body, ",\"step\":\"%s-%u\"", rv_task_text(alert.task, task).at, alert.step);
    member_put(&body, "source", alert.source);
    member_put(&body, "message", alert.message);
    member_put(&body, "cure", rv_alert_cure(&alert, cure));
    rv_buf_lit(&body, "}");
    *ret_body = body.failed == RV_OK ? rv_arena_str(s->batch.arena, rv_buf_str(&body))
                                     : RV_STR_NONE;
    rv_buf_done(&body);
    return ret_body->at != NULL ? RV_OK : RV_ERR_MEMORY;
}

enum rv_err alert_unheard(struct rv_scheduler *s, int64_t unheard, struct rv_str why,
                          const struct rv_alert **ret_alert)
{
    int64_t open;
    char id[RV_ID_TEXT_BYTES];
    *ret_alert = NULL;
    if (s->batch.unheard)
        return RV_OK;
    enum rv_err err = alert_source_find(s, RV_STR(UNHEARD_SOURCE), &open);
    if (err != RV_OK || open != 0)
        return err;
    struct rv_alert *alert = RV_NEW(s->batch.arena, struct rv_alert);
    if (alert == NULL)
        return RV_ERR_MEMORY;
    *alert = (struct rv_alert){
        .id = rv_id_make(&s->ids, s->batch.now).value,
        .kind = RV_ALERT_UNDELIVERABLE,
        .raised_at = s->batch.now,
        .message = rv_arena_printf(
            s->batch.arena, "the alert webhook has not accepted alert %s: %.*s",
            rv_task_text((struct rv_task_id){unheard}, id).at, RV_STR_FMT(why)),
        .source = RV_STR(UNHEARD_SOURCE),
    };
    rv_assert(alert_is_unheard(alert)); /* it goes to no webhook */
    s->batch.unheard = true;
    *ret_alert = alert;
    return alert->message.at != NULL ? RV_OK : RV_ERR_MEMORY;
}

bool alert_is_unheard(const struct rv_alert *alert)
{
    return alert->kind == RV_ALERT_UNDELIVERABLE && alert->task.value == 0;
}

void alert_act(struct rv_scheduler *s, const struct rv_alert *alert)
{
    log_alert(s, alert);
    if (state_alerts_to(s) != NULL && !alert_is_unheard(alert))
        deliveries_learn_alert(s, alert);
}

static void raises_act(struct rv_scheduler *s)
{
    for (size_t i = 0; i < s->batch.raises_count && s->batch.taskless == RV_OK; i++) {
        const struct rv_raise *raise = &s->batch.raises[i];
        if (raise->outcome != RV_OK)
            continue;
        rv_assert(raise->alert.kind < RV_ALERT_KIND_COUNT);
        rv_assert(raise->alert.task.value == 0);
        s->counts.alerts[raise->alert.kind]++;
        alert_act(s, &raise->alert);
    }
}

const struct duty alerts_duty = {.open = alerts_init, .act = raises_act};
