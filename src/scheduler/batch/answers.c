/* How calls are answered that need nothing else after the commit. */
#include "scheduler/batch/answers.h"

#include "base/assert.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/commit.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"

enum rv_err call_decide(struct rv_scheduler *s, struct pending *p)
{
    rv_assert(!p->parked);
    rv_assert(!p->aside);
    share_enter(s, p->large ? SHARE_LARGE : SHARE_SMALL);
    return p->ops->decide(s, p);
}

enum rv_err answers_later_decide(struct rv_scheduler *s, struct pending *p)
{
    (void)s;
    (void)p;
    return RV_OK;
}

void answers_finish_act(struct rv_scheduler *s, struct pending *p)
{
    pending_unlink(&s->batch.calls, p);
    pending_finish(s, p, p->call->err, p->call->message);
}

/* Where it was not written it is looked at anew: what it said of others in its batch is void. */
void answers_taskless_act(struct rv_scheduler *s, struct pending *p)
{
    pending_unlink(&s->batch.calls, p);
    if (commit_taskless_holds(s)) {
        if (p->call->err == RV_OK && p->ops->log != NULL)
            p->ops->log(s, p->call);
        pending_finish(s, p, p->call->err, p->call->message);
        return;
    }
    p->call->err = RV_OK;
    p->call->message = RV_STR_NONE;
    if (!parking_carry_again(s, p))
        pending_finish(s, p, RV_ERR_BUSY, NOT_TAKEN);
}

bool record_turn(struct rv_scheduler *s, struct pending *p)
{
    if (!p->waits_turn)
        return true;
    rv_assert(p->changes);
    p->waits_turn = false;
    pending_unlink(&s->batch.calls, p);
    pending_append(&s->carried, p);
    return false;
}

void record_act(struct rv_scheduler *s, struct pending *p)
{
    if (record_turn(s, p))
        answers_taskless_act(s, p);
}
