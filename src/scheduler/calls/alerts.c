/* Alerts: where they are sent, somebody looks after one, and those that programs outside of the
 * server raise. The latter are of no task; what such an alert is about is its source, and one of
 * each is open at a time, so that whoever is not sure whether it was raised raises it again.
 *
 * An alert goes to the operators' webhook as messages go to those of submitters (deliveries.c): the
 * row in which it waits is written with it. One that is given up raises an alert that goes nowhere
 * but into the list, and no second one while that stands: a webhook that is dead calls once. */
#include "scheduler/batch/state.h"

#include "base/time.h"
#include "json/json.h"

#define UNHEARD_SOURCE "alert-webhook"

enum rv_err alerts_init(struct rv_scheduler *s)
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

const struct rv_delivery *alerts_to(const struct rv_scheduler *s)
{
    return s->alerts_to.url.at != NULL ? &s->alerts_to : NULL;
}

static enum rv_err alert_find(struct rv_scheduler *s, int64_t id, struct rv_alert *ret_alert)
{
    size_t count = 0;
    enum rv_err err = s->store->ops->list_alerts(s->store, s->batch.arena, (struct rv_task_id){0},
                                                 false, id + 1, 1, ret_alert, &count);
    if (err != RV_OK)
        return err;
    return count > 0 && ret_alert->id == id ? RV_OK : RV_ERR_NOT_FOUND;
}

static void member_put(struct rv_buf *body, const char *name, struct rv_str text)
{
    if (text.at == NULL)
        return;
    rv_buf_printf(body, ",\"%s\":", name);
    rv_json_write_string(body, text);
}

/* The message may quote an error of a step, as large as a payload, and is escaped. */
enum { BODY_BYTES_MAX = 16 * RV_PAYLOAD_BYTES_MAX };

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

/* Whether an alert of that source is open, and no call of the batch acknowledges it. */
static enum rv_err source_find(struct rv_scheduler *s, struct rv_str source, int64_t *ret_alert)
{
    struct rv_alert open;
    bool found = false;
    enum rv_err err = s->store->ops->find_alert(s->store, s->batch.arena, source, &open, &found);
    for (size_t i = 0; err == RV_OK && found && i < s->batch.acks_count; i++)
        found = s->batch.acks[i].alert != open.id;
    *ret_alert = err == RV_OK && found ? open.id : 0;
    return err;
}

enum rv_err alert_unheard(struct rv_scheduler *s, int64_t unheard, struct rv_str why,
                          const struct rv_alert **ret_alert)
{
    int64_t open;
    char id[RV_ID_TEXT_BYTES];
    *ret_alert = NULL;
    if (s->batch.unheard)
        return RV_OK;
    enum rv_err err = source_find(s, RV_STR(UNHEARD_SOURCE), &open);
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
    if (alerts_to(s) != NULL && !alert_is_unheard(alert))
        deliveries_learn_alert(s, alert);
}

/* ---- somebody looks after one ---- */

enum rv_err ack_decide(struct rv_scheduler *s, struct pending *p)
{
    s->batch.acks[s->batch.acks_count++] = (struct rv_ack){
        .alert = p->call->u.ack.alert, .at = s->batch.now, .by = p->call->u.ack.by};
    p->ack = s->batch.acks_count;
    return RV_OK;
}

void ack_act(struct rv_scheduler *s, struct pending *p)
{
    bool written = s->batch.taskless == RV_OK;
    if (written && s->batch.acks[p->ack - 1].outcome == RV_ERR_NOT_FOUND) {
        p->call->err = RV_ERR_NOT_FOUND;
        p->call->message = RV_STR("there is no such alert; `reeve alerts` lists them");
    }
    taskless_act(s, p);
}

/* ---- alerts from outside ---- */

enum rv_err raise_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_raise *raise = &p->call->u.raise;
    p->raise = 0;
    raise->known = false;
    for (size_t i = 0; i < s->batch.raises_count; i++) {
        if (!rv_str_eq(s->batch.raises[i].alert.source, raise->source))
            continue;
        p->raise = i + 1; /* what becomes of that one becomes of this */
        raise->known = true;
        raise->alert = s->batch.raises[i].alert.id;
        return RV_OK;
    }
    enum rv_err err = source_find(s, raise->source, &raise->alert);
    raise->known = err == RV_OK && raise->alert != 0;
    if (err != RV_OK || raise->known)
        return err;
    raise->alert = rv_id_make(&s->ids, s->batch.now).value;
    s->batch.raises[s->batch.raises_count++] = (struct rv_raise){
        .alert = {.id = raise->alert,
                  .kind = RV_ALERT_REPORTED,
                  .raised_at = s->batch.now,
                  .message = raise->message,
                  .source = raise->source},
        .to = alerts_to(s)};
    p->raise = s->batch.raises_count;
    return RV_OK;
}

void raise_act(struct rv_scheduler *s, struct pending *p)
{
    bool raised = p->raise != 0 && s->batch.taskless == RV_OK;
    /* Another server was faster: it is known now. */
    if (raised && s->batch.raises[p->raise - 1].outcome == RV_ERR_DUPLICATE) {
        pending_unlink(&s->batch.calls, p);
        if (!carry_again(s, p))
            finish(s, p, RV_ERR_BUSY, NOT_TAKEN);
        return;
    }
    taskless_act(s, p);
}

void raises_act(struct rv_scheduler *s)
{
    clock_act(s);
    place_act(s);
    for (size_t i = 0; i < s->batch.raises_count && s->batch.taskless == RV_OK; i++) {
        const struct rv_raise *raise = &s->batch.raises[i];
        if (raise->outcome != RV_OK)
            continue;
        s->counts.alerts[raise->alert.kind]++;
        alert_act(s, &raise->alert);
    }
}
