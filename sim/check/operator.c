#include "sim/check/check.h"

#include "sim/cast/operator.h"
#include "sim/world/world.h"

static bool handed_out(const struct step_past *past, const struct rv_step *step)
{
    return step->attempt != (past != NULL ? past->row.attempt : 0);
}

/* O-01: nothing of a suspended task is handed out, and its timers stand still; what fell due
 * meanwhile runs at its resume, be it that one batch resumes and suspends it. */
static void check_suspended(const struct transition *t, const struct step_past *past,
                            const struct rv_step *step)
{
    if (t->past->row.suspended_at == 0)
        return;
    bool suspended = t->task->suspended_at != 0;
    bool still = suspended && t->task->suspended_at == t->past->row.suspended_at;
    bool waited = past != NULL && past->row.kind == RV_KIND_WAIT &&
                  past->row.state == RV_STEP_PROCESSING;
    if (suspended && handed_out(past, step))
        world_violate(t->w, "O-01", "step %u of a suspended task is handed out", step->number);
    if (still && waited && step->state == RV_STEP_PROCESSED)
        world_violate(t->w, "O-01", "timer %u of a suspended task runs", step->number);
    /* One that was parked besides goes on when it is resubmitted: with that its timers are due. */
    bool parked = t->past->row.state == RV_TASK_ERROR || t->task->state == RV_TASK_ERROR;
    bool goes_on = !still && !parked && rv_task_state_open(t->task->state);
    if (goes_on && waited && step->state == RV_STEP_PROCESSING && step->wake_at <= t->now)
        world_violate(t->w, "O-01", "timer %u was due at the resume of its task and does not run",
                      step->number);
}

static uint32_t ledger_before(const struct transition *t)
{
    uint32_t late = 0;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        late += past != NULL ? past->late : 0;
    }
    return late;
}

/* O-02: a step is skipped by one who knew of its late replies, while nobody is at work on it; its
 * output is the given one, for good. */
static void check_skipped(const struct transition *t, const struct step_past *past,
                          const struct rv_step *step)
{
    if (step->state != RV_STEP_SKIPPED)
        return;
    bool blind = rv_str_is(step->output, OPERATOR_SKIPS_BLINDLY);
    if (!blind && !rv_str_is(step->output, OPERATOR_SKIPS_SEEING))
        world_violate(t->w, "O-02", "step %u was skipped with an output that nobody gave",
                      step->number);
    if (past == NULL || past->row.state == RV_STEP_SKIPPED)
        return;
    if (rv_attempt_state_live(check_state_now(t, past, step)))
        world_violate(t->w, "O-02", "step %u is skipped while its agent is at work", step->number);
    if (blind && ledger_before(t) > 0)
        world_violate(t->w, "O-02", "step %u is skipped by one who knew of no late reply",
                      step->number);
}

/* O-03: another input goes out once what the old request may have done is undone, or it did
 * nothing, as the operator says where nobody knows. */
static void check_edited(const struct transition *t, const struct step_past *past,
                         const struct rv_step *step)
{
    if (step->replaces == 0)
        return;
    const struct rv_step *old = &t->steps[step->replaces - 1];
    const struct step_past *was = history_step(t->past, step->replaces);
    bool waited = t->past->row.redo == step->number;
    bool waits = t->task->redo == step->number;
    bool assumed = rv_str_is(step->input, OPERATOR_EDITS_ASSUMING);
    bool needs = past == NULL && was != NULL && was->row.effect != RV_EFFECT_NONE &&
                 (!assumed || was->row.effect == RV_EFFECT_DONE);
    if (needs && !waits && step->state != RV_STEP_CANCELLED && !old->undone)
        world_violate(t->w, "O-03",
                      "step %u goes out with another input, and what step %u did "
                      "is not known",
                      step->number, old->number);
    if (waits && handed_out(past, step))
        world_violate(t->w, "O-03", "step %u is handed out before step %u is undone", step->number,
                      old->number);
    if (waited && !waits && step->state != RV_STEP_CANCELLED && !old->undone)
        world_violate(t->w, "O-03", "step %u goes on, and step %u was not undone", step->number,
                      old->number);
}

/* O-04: who resubmits a step gives it time. */
static void check_time(const struct transition *t, const struct step_past *past,
                       const struct rv_step *step)
{
    bool again = past != NULL && past->row.state == RV_STEP_ERROR &&
                 step->state == RV_STEP_PENDING && t->past->row.state == RV_TASK_ERROR;
    if (again && step->deadline != 0 && step->deadline <= t->now)
        world_violate(t->w, "O-04", "step %u is resubmitted, and its time was over %lld ms ago",
                      step->number, (long long)(t->now - step->deadline));
}

void check_operator(const struct transition *t)
{
    if (t->past->row.revision == 0)
        return;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        check_suspended(t, past, &t->steps[i]);
        check_skipped(t, past, &t->steps[i]);
        check_edited(t, past, &t->steps[i]);
        check_time(t, past, &t->steps[i]);
    }
}
