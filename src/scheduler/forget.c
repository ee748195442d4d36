/* What a server remembers is a cache of the rows. When that may be wrong it is made anew. */
#include "scheduler/forget.h"

#include "base/assert.h"
#include "dispatch/agents.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/registered.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/workflows.h"
#include "scheduler/duties/duty.h"

void supervisor_init(struct rv_scheduler *s)
{
    rv_supervisor_init(&s->supervisor, s->store, s->options.scan_interval_ms,
                       s->options.role_lease_ms);
    if (s->options.scan_rows_max != 0 && s->options.scan_rows_max < RV_SCAN_ROWS_MAX)
        s->supervisor.scan_rows_max = s->options.scan_rows_max;
}

static void duties_forget(struct rv_scheduler *s)
{
#define DUTY(name)                                                                                 \
    if (name##_duty.forget != NULL)                                                                \
        name##_duty.forget(s);
    RV_DUTIES(DUTY)
#undef DUTY
}

/* Whatever is remembered may be of a history that never was, or of tasks that are others' by now.
 * All of it is learned again from the rows, as after a start. */
static void caches_forget(struct rv_scheduler *s)
{
    s->history_lost = false;
    parking_finish_all(s);
    evaluations_forget(s);
    pending_merge(&s->batch.calls, &s->carried);
    agents_done(&s->agents);
    agents_init(&s->agents, s->options.hash_key, s->options.circuits_max);
    s->agents.divides = s->enlistment.shared;
    rv_supervisor_done(&s->supervisor);
    supervisor_init(s);
    rv_map_clear(&s->owned);
    rv_map_clear(&s->suspended);
    registered_forget(&s->registered);
    workflow_cache_done(&s->workflows);
    duties_forget(s);
    workflow_cache_init(&s->workflows, s->store, s->options.hash_key, &s->batch.arena,
                        &s->batch_number);
    s->workflows.shared = s->enlistment.shared;
    for (struct pending *p = s->batch.calls.first; p != NULL; p = p->next) {
        p->seeker.kind = NULL;
        p->seeker.instance = NULL;
        p->admitted = false;
        p->works = NULL;
        if (p->ops->doubt != NULL)
            p->ops->doubt(p->call);
    }
    s->batch.forgot = s->agents.recovering = s->more_due = true;
}

/* A standby took over that had not heard of what was committed. */
void forget_history(struct rv_scheduler *s)
{
    rv_assert(s->history_lost);
    log_event_number(s, RV_LOG_ERROR, "history-lost", "batch", (int64_t)s->batch_number);
    caches_forget(s);
}

/* This instance was away for longer than its lease, and another one has deposed it. Nothing of the
 * batch is written, and its tasks are others' by now. It goes on under another number. */
void forget_deposed(struct rv_scheduler *s)
{
    rv_assert(s->batch.calls.first == NULL);
    log_event_number(s, RV_LOG_WARNING, "deposed", "instance", s->enlistment.instance);
    s->unlisted = true;
    parking_refuse_all(s, RV_ERR_BUSY, DEPOSED);
    caches_forget(s);
    s->carried = s->batch.calls;
    s->batch.calls = (struct pending_list){NULL, NULL};
    s->batch.works = NULL;
    parking_finished_flush(s);
}
