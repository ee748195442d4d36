/* Circuits: what an open one may hold back, and for how long. What is in force is read from the
 * rows: a step that was parked says until when, and a failure that names its target says that the
 * agent leaves it alone for as long as its circuit may stay open. */
#include "sim/check/check.h"

#include "agent/circuit.h"
#include "base/limits.h"
#include "base/time.h"
#include "sim/cast/said.h"
#include "sim/world/world.h"

enum { JITTER_PART = 4, SLACK_MS = 5000 };

/* How long the agents of the simulator leave a target alone at most. */
static int64_t pause_ms_max(void)
{
    return RV_CIRCUIT_OPEN_MS_MAX + RV_CIRCUIT_OPEN_MS_MAX / JITTER_PART + SLACK_MS;
}

/* L-05: a circuit parks only what was not tried. */
static void check_untried(const struct transition *t, const struct step_past *past,
                          const struct rv_step *step)
{
    bool parks = past->row.attempt_state == RV_ATTEMPT_OPEN &&
                 check_state_now(t, past, step) == RV_ATTEMPT_PARKED;
    if (parks && said_was_tried(t->w, past->row.token))
        world_violate(t->w, "L-05", "step %u: attempt %u was tried, and its failure not counted",
                      step->number, past->row.attempt);
}

void check_circuits(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        const struct step_past *past = history_step(t->past, step->number);
        if (step->kind != RV_KIND_CALL || step->agent.at == NULL)
            continue;
        if (past != NULL)
            check_untried(t, past, step);
        uint64_t agent = history_hash(step->agent);
        uint64_t target = history_hash(step->target);
        bool parked = step->attempt_state == RV_ATTEMPT_PARKED;
        bool failed = step->attempt_state == RV_ATTEMPT_FAILED && step->target.at != NULL;
        if (parked && step->state == RV_STEP_PENDING)
            said_shut(t->w, agent, target, step->ready_at);
        else if (parked || failed) /* its row does not say for how long */
            said_shut(t->w, agent, target, step->attempt_ended_at + pause_ms_max());
    }
}

/* Whether an attempt of the kind is out that may be the probe of a circuit. */
static bool probe_is_out(const struct world *w, uint64_t agent)
{
    for (size_t i = 0; i < w->history->count; i++) {
        struct task_past *task = w->history->all[i];
        for (uint32_t n = 0; n < task->row.open_count; n++) {
            const struct step_past *step = history_step(task, task->row.open[n]);
            if (step != NULL && step->agent == agent &&
                rv_attempt_state_live(step->row.attempt_state) &&
                step->row.complete_by >= w->bounds.seen_at)
                return true;
        }
    }
    return false;
}

/* Until when a circuit may hold the step back: its target's, or that of the whole agent; -1:
 * neither was ever open. */
static int64_t shut_until(const struct world *w, const struct step_past *step)
{
    int64_t whole = said_shut_until(w, step->agent, history_hash(RV_STR("")));
    int64_t its = step->target != 0 ? said_shut_until(w, step->agent, step->target) : -1;
    return its > whole ? its : whole;
}

bool check_circuit_known(const struct world *w, const struct step_past *step)
{
    return shut_until(w, step) >= 0;
}

bool check_circuit_holds(const struct world *w, const struct step_past *step)
{
    if (w->knobs.circuit == 0 || !check_circuit_known(w, step))
        return false;
    return shut_until(w, step) >= w->bounds.seen_at || probe_is_out(w, step->agent);
}

/* P-02: what nobody has tried for long calls for an operator. */
void check_waiting_called(struct world *w)
{
    for (size_t i = 0; i < w->history->count; i++) {
        struct task_past *task = w->history->all[i];
        bool goes_on = rv_task_state_open(task->row.state) && task->row.state != RV_TASK_ERROR &&
                       task->row.suspended_at == 0;
        for (uint32_t n = 0; goes_on && n < task->row.open_count; n++) {
            const struct step_past *step = history_step(task, task->row.open[n]);
            if (step == NULL || step->row.state != RV_STEP_PENDING || step->row.called)
                continue;
            int64_t waits_ms = w->bounds.seen_at - step->row.waits_since;
            if (w->bounds.seen_at != 0 && waits_ms > RV_NO_AGENT_ALERT_MS + 2 * pause_ms_max()) {
                w->concerned = task->row.id;
                world_violate(w, "P-02", "step %u waits since %lld ms and calls nobody",
                              step->row.number, (long long)waits_ms);
            }
        }
    }
}
