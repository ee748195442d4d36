/* What a decision about a task that is due is told: what the rows do not say. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "dispatch/held.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "dispatch/limits.h"
#include "scheduler/batch/absence.h"
#include "scheduler/batch/left.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/wake.h"
#include "scheduler/batch/work.h"

static bool end_unknown(const struct rv_scheduler *s, const struct work *work)
{
    bool live = false, due = false;
    for (size_t i = 0; i < work->steps_count; i++) {
        const struct rv_step *step = work->steps[i].row;
        bool its = rv_attempt_state_live(step->attempt_state);
        live = live || its;
        due = due || (its && left_has(s, step->token, step->number)) ||
              (step->wake_at <= work->now && step->wake_at > s->batch.ends_until) ||
              (step->deadline <= work->now && step->deadline > s->batch.ends_until);
    }
    return live && due;
}

/* Its lease lasts until complete-by, so the end of the lease does not show that the instance is
 * gone. An instance counts as gone if it has not polled since it took the attempt. After a restart
 * that is not known. */
static bool is_silent(const struct rv_scheduler *s, const struct work *work,
                      const struct rv_step *step)
{
    const struct held *held = held_find(&s->agents, (struct rv_step_id){work->id, step->number});
    const struct agent_instance *instance = held != NULL ? held->instance : NULL;
    return step->attempt_state == RV_ATTEMPT_OPEN && step->wake_at <= work->now &&
           step->lease_until >= step->complete_by && instance != NULL && instance->seen_at != 0 &&
           instance->seen_at <= step->attempt_at && instance->parked_count == 0;
}

/* A step that nobody has taken for long, but the server was not there for all of that. */
static void wake_tell_call(const struct rv_scheduler *s, const struct work *work,
                           const struct rv_step *step, struct rv_command *command)
{
    if (step->state != RV_STEP_PENDING || step->wake_at == 0 || step->wake_at > work->now)
        return;
    int64_t from = absence_since(s, step->waits_since, step->wake_at);
    int64_t at = from != 0 ? rv_time_add(from, RV_NO_AGENT_ALERT_MS) : 0;
    if (at > command->u.wake.call_at)
        command->u.wake.call_at = at;
}

/* What only the caches know of the instant that has passed. */
static void wake_tell(struct rv_scheduler *s, const struct work *work, const struct rv_step *step,
                      struct rv_command *command)
{
    if (is_silent(s, work, step))
        command->u.wake.silent = step->number;
    if (rv_attempt_state_live(step->attempt_state) && step->wake_at <= work->now &&
        absence_covers(s, step->wake_at)) {
        command->u.wake.excused = true;
        command->u.wake.spread_ms = step->lease_ms;
    }
    /* A step that has ended, and was loaded for a late reply, has no timeout any more. */
    if (rv_step_state_open(step->state) && step->deadline != 0 && step->deadline <= work->now)
        command->u.wake.absent_from = absence_uncounted(s, step->deadline);
    wake_tell_call(s, work, step, command);
    const struct agent_kind *kind = step->state == RV_STEP_PENDING && step->agent.at != NULL
                                        ? agents_kind_find(&s->agents, step->agent)
                                        : NULL;
    const struct circuit *circuit = kind != NULL ? circuit_of(kind, step, s->batch.now) : NULL;
    int64_t until;
    if (circuit != NULL)
        command->u.wake.circuit = rv_str_of(circuit->target);
    command->u.wake.paused = command->u.wake.paused ||
                             (kind != NULL &&
                              limit_holds(kind, s->batch.now, &until) == LIMIT_PAUSED);
}

bool wake_know(struct rv_scheduler *s, struct work *work, struct rv_command *command)
{
    rv_assert(work->task != NULL);
    rv_assert(s->batch.ends_until <= s->batch.now);
    rv_assert(work->now != 0);
    work->waits_to_end = end_unknown(s, work);
    if (absence_between(s, s->batch.now, work->now))
        return false; /* the next batch knows of it */
    command->u.wake.silent = 0;
    command->u.wake.excused = false;
    command->u.wake.spread_ms = 0;
    command->u.wake.absent_from = 0;
    command->u.wake.circuit = RV_STR_NONE;
    command->u.wake.call_at = 0;
    command->u.wake.paused = false;
    for (size_t i = 0; i < work->steps_count; i++)
        wake_tell(s, work, work->steps[i].row, command);
    return !work->waits_to_end;
}
