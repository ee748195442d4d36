#include "sim/check/check.h"

#include "sim/cast/said.h"
#include "sim/world/world.h"

/* I-17: a lease never ends after complete-by. */
static void check_inside(const struct transition *t, const struct rv_step *step)
{
    if (rv_attempt_state_live(step->attempt_state) && step->lease_until > step->complete_by)
        world_violate(t->w, "I-17", "step %u: the lease of attempt %u outlives complete-by",
                      step->number, step->attempt);
}

/* I-17: a lease only grows, and only when the agent that holds this very attempt has asked for it
 * while it was running. */
static void check_renewed(const struct transition *t, const struct step_past *past,
                          const struct rv_step *step)
{
    int64_t age_ms;
    struct rv_step_id id = {t->task->id, step->number};
    if (step->token != past->row.token || !rv_attempt_state_live(past->row.attempt_state))
        return;
    if (step->complete_by != past->row.complete_by)
        world_violate(t->w, "I-17", "step %u: complete-by of attempt %u moved", step->number,
                      step->attempt);
    if (step->lease_until == past->row.lease_until)
        return;
    if (past->row.attempt_state != RV_ATTEMPT_OPEN || step->lease_until < past->row.lease_until)
        world_violate(t->w, "I-17", "step %u: the lease of attempt %u, which was %s, moved by %lld",
                      step->number, step->attempt, rv_attempt_state_text(past->row.attempt_state),
                      (long long)(step->lease_until - past->row.lease_until));
    else if (!said_knows(t->w))
        return;
    else if (!said_renewal(t->w, &id, step->token, &age_ms))
        world_violate(t->w, "I-17", "step %u: the lease of attempt %u was renewed by nobody",
                      step->number, step->attempt);
    else if (t->batch_now - age_ms >= past->row.lease_until)
        world_violate(t->w, "I-17", "step %u: the lease of attempt %u was renewed after its end",
                      step->number, step->attempt);
}

void check_leases(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        check_inside(t, &t->steps[i]);
        if (past != NULL)
            check_renewed(t, past, &t->steps[i]);
    }
}
