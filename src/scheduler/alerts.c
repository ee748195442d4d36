/* Alerts: somebody looks after one, and those that programs outside of the server raise. The latter
 * are of no task; what such an alert is about is its source, and there is one for each, so that
 * whoever is not sure whether it was raised raises it again. */
#include "scheduler/scheduler_priv.h"

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
        p->call->message = RV_STR("there is no such alert: see `reeve alerts`");
    }
    taskless_act(s, p);
}

/* ---- alerts from outside ---- */

enum rv_err raise_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_raise *raise = &p->call->u.raise;
    struct rv_alert there;
    bool found = false;
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
    enum rv_err err = s->store->ops->find_alert(s->store, s->batch.arena, raise->source, &there,
                                                &found);
    raise->known = found;
    raise->alert = found ? there.id : 0;
    if (err != RV_OK || found)
        return err;
    raise->alert = rv_id_make(&s->ids, s->batch.now).value;
    s->batch.raises[s->batch.raises_count++] = (struct rv_raise){
        .alert = {.id = raise->alert,
                  .kind = RV_ALERT_REPORTED,
                  .raised_at = s->batch.now,
                  .message = raise->message,
                  .source = raise->source}};
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
    for (size_t i = 0; i < s->batch.raises_count && s->batch.taskless == RV_OK; i++) {
        const struct rv_raise *raise = &s->batch.raises[i];
        if (raise->outcome != RV_OK)
            continue;
        s->counts.alerts[raise->alert.kind]++;
        log_alert(s, &raise->alert);
    }
}
