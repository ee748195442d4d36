/* Somebody looks after an alert, and programs outside of the server raise some. The latter are of
 * no task; what such an alert is about is its source, and one of each is open at a time, so that
 * whoever is not sure whether it was raised raises it again. */
#include "scheduler/calls/alerts.h"

#include "base/assert.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/refuse.h"
#include "scheduler/batch/state.h"

enum rv_err alert_source_find(struct rv_scheduler *s, struct rv_str source, int64_t *ret_alert)
{
    struct rv_alert open;
    bool found = false;
    enum rv_err err = s->store->ops->find_alert(s->store, s->batch.arena, source, &open, &found);
    for (size_t i = 0; err == RV_OK && found && i < s->batch.acks_count; i++)
        found = s->batch.acks[i].alert != open.id;
    *ret_alert = err == RV_OK && found ? open.id : 0;
    return err;
}

static enum rv_err ack_decide(struct rv_scheduler *s, struct pending *p)
{
    s->batch.acks[s->batch.acks_count++] = (struct rv_ack){
        .alert = p->call->u.ack.alert, .at = s->batch.now, .by = p->call->u.ack.by};
    p->number = s->batch.acks_count;
    return RV_OK;
}

static void ack_act(struct rv_scheduler *s, struct pending *p)
{
    bool written = s->batch.taskless == RV_OK;
    rv_assert(p->number > 0);
    rv_assert(p->number <= s->batch.acks_count);
    if (written && s->batch.acks[p->number - 1].outcome == RV_ERR_NOT_FOUND) {
        p->call->err = RV_ERR_NOT_FOUND;
        p->call->message = refuse_no_alert(p->call, p->call->u.ack.alert);
    }
    answers_taskless_act(s, p);
}

/* ---- alerts from outside ---- */

static enum rv_err raise_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_raise *raise = &p->call->u.raise;
    p->number = 0;
    raise->known = false;
    for (size_t i = 0; i < s->batch.raises_count; i++) {
        if (!rv_str_eq(s->batch.raises[i].alert.source, raise->source))
            continue;
        p->number = i + 1; /* what becomes of that one becomes of this */
        raise->known = true;
        raise->alert = s->batch.raises[i].alert.id;
        return RV_OK;
    }
    enum rv_err err = alert_source_find(s, raise->source, &raise->alert);
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
        .to = state_alerts_to(s)};
    p->number = s->batch.raises_count;
    return RV_OK;
}

static void raise_act(struct rv_scheduler *s, struct pending *p)
{
    bool raised = p->number != 0 && s->batch.taskless == RV_OK;
    /* Another server was faster: it is known now. */
    if (raised && s->batch.raises[p->number - 1].outcome == RV_ERR_DUPLICATE) {
        pending_unlink(&s->batch.calls, p);
        if (!parking_carry_again(s, p))
            pending_finish(s, p, RV_ERR_BUSY, NOT_TAKEN);
        return;
    }
    answers_taskless_act(s, p);
}

static void ack_log(struct rv_scheduler *s, const struct rv_call *call)
{
    char id[RV_ID_TEXT_BYTES];
    struct log_fields line;
    log_command_begin(&line, "ack");
    log_text(&line, "alert", rv_task_text((struct rv_task_id){call->u.ack.alert}, id));
    log_command_end(s, &line, call->u.ack.by, call->u.ack.reason);
}

const struct call_ops ack_ops = {.decide = ack_decide, .act = ack_act, .log = ack_log};
const struct call_ops raise_ops = {.decide = raise_decide, .act = raise_act};
