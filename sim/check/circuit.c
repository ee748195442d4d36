/* Circuits: what an open one may hold back, and for how long. What is in force is read from the
 * rows: a step that was parked says until when, and a failure that names its target says that the
 * agent leaves it alone for as long as its circuit may stay open. */
#include "sim/check/check.h"

#include "agent/circuit.h"
#include "base/limits.h"
#include "base/time.h"
#include "sim/cast/said.h"
#include "sim/store/database.h"
#include "sim/world/fault.h"
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
                 check_state_now(t, past, step) == RV_ATTEMPT_CIRCUIT_OPEN;
    if (parks && said_was_tried(t->w, past->row.token))
        world_violate(t->w, "L-05", "step %u: attempt %u was tried, and its failure not counted",
                      step->number, past->row.attempt);
}

static uint64_t whole_agent(void)
{
    return history_hash(RV_STR(""));
}

/* A probe that is done closes its circuit. Of several servers each has circuits of its own. */
static void probe_ended(const struct transition *t, const struct step_past *past,
                        const struct rv_step *step)
{
    uint64_t target = past->gate_whole ? whole_agent() : past->gate;
    bool done = past->row.attempt_state == RV_ATTEMPT_OPEN &&
                check_state_now(t, past, step) == RV_ATTEMPT_DONE;
    if (done && past->gate_sure && t->w->knobs.servers == 1 &&
        !fault_happened(t->w, FAULT_FAILOVER) &&
        said_shut_until(t->w, past->agent, target) < past->row.attempt_at)
        said_shut_no_more(t->w, past->agent, target);
}

/* It waits as its failure made it wait, for no less than its agent said. Else it was resubmitted,
 * or begun anew, in the same commit. */
static bool waits_on(const struct step_past *past, const struct rv_step *step)
{
    bool next_try = step->round == past->row.round &&
                    step->failure_count == past->row.failure_count + 1;
    bool next_round = step->round == past->row.round + 1 && step->failure_count == 0;
    return step->attempt_state == RV_ATTEMPT_CIRCUIT_OPEN || next_try || next_round;
}

/* The target that its reply named, whose attempt has ended in a commit in which its row has begun
 * anew; 0: none. */
static uint64_t target_before(const struct transition *t, const struct step_past *past,
                              const struct rv_step *step)
{
    enum rv_attempt_state how = check_state_now(t, past, step);
    uint64_t named = how == RV_ATTEMPT_FAILED || how == RV_ATTEMPT_CIRCUIT_OPEN
                         ? said_target(t->w, past->row.token)
                         : 0;
    return named == 0 && how == RV_ATTEMPT_CIRCUIT_OPEN ? whole_agent() : named;
}

/* Which circuit lets it through as a probe, if it is there: that of the whole agent, else that of
 * its target. One that did not wait was resubmitted in the same commit, with the target of its last
 * attempt; one whose attempt ended in that commit remains a probe if it was one. */
void check_circuit_begins(const struct transition *t, struct step_past *past,
                          const struct rv_step *step)
{
    int64_t whole = said_shut_until(t->w, past->agent, whole_agent());
    if (rv_attempt_state_live(past->row.attempt_state)) {
        uint64_t target = target_before(t, past, step);
        past->gate = target != 0 ? target : past->gate;
        past->gate_sure = past->gate_sure && target == 0;
        return;
    }
    bool waited = past->row.state == RV_STEP_PENDING;
    int64_t its = past->target != 0 ? said_shut_until(t->w, past->agent, past->target) : -1;
    past->gate_whole = whole >= 0;
    past->gate = its >= 0 ? past->target : 0;
    past->gate_sure = waited && !step->insist && (whole >= 0 || its >= 0) &&
                      (whole >= 0 ? whole : its) < step->attempt_at;
}

/* A step that was sent back opens the circuit whenever a server reads it before its instant; a
 * failure that names its target, once. */
static void circuit_opens(const struct transition *t, const struct step_past *past,
                          const struct rv_step *step)
{
    uint64_t agent = history_hash(step->agent), target = history_hash(step->target);
    bool parked = step->attempt_state == RV_ATTEMPT_CIRCUIT_OPEN;
    bool failed = step->attempt_state == RV_ATTEMPT_FAILED && step->target.at != NULL;
    bool ended_now = past != NULL && rv_attempt_state_live(past->row.attempt_state);
    bool waits = step->state == RV_STEP_PENDING && !step->insist;
    if (!parked && !failed)
        target = ended_now ? target_before(t, past, step) : 0;
    if (target == 0)
        return;
    if (ended_now && !((parked || failed) && waits && waits_on(past, step)))
        said_shut(t->w, agent, target, t->now + pause_ms_max());
    else if (ended_now || (parked && waits && step->ready_at > t->now))
        said_shut(t->w, agent, target, step->ready_at);
}

void check_circuits(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        const struct step_past *past = history_step(t->past, step->number);
        if (step->kind != RV_KIND_CALL || step->agent.at == NULL)
            continue;
        if (past != NULL) {
            check_untried(t, past, step);
            probe_ended(t, past, step);
        }
        circuit_opens(t, past, step);
    }
}

/* Whether an attempt is out that may be the probe of a circuit that holds the step back. */
static bool probe_is_out(const struct world *w, const struct step_past *held)
{
    bool whole = said_shut_until(w, held->agent, whole_agent()) >= 0;
    for (size_t i = 0; i < w->history->count; i++) {
        struct task_past *task = w->history->all[i];
        for (uint32_t n = 0; n < task->row.open_count; n++) {
            const struct step_past *step = history_step(task, task->row.open[n]);
            bool out = step != NULL && step->agent == held->agent &&
                       rv_attempt_state_live(step->row.attempt_state) &&
                       step->row.complete_by >= w->bounds.seen_at;
            bool its = out && held->target != 0 && step->gate == held->target;
            if (its || (out && whole && step->gate_whole))
                return true;
        }
    }
    return false;
}

/* Until when a circuit may hold the step back: its target's, or that of the whole agent; -1:
 * neither was ever open. */
static int64_t shut_until(const struct world *w, const struct step_past *step)
{
    int64_t whole = said_shut_until(w, step->agent, whole_agent());
    int64_t its = step->target != 0 ? said_shut_until(w, step->agent, step->target) : -1;
    return its > whole ? its : whole;
}

bool check_circuit_holds(const struct world *w, const struct step_past *step)
{
    int64_t until = w->knobs.circuit != 0 ? shut_until(w, step) : -1;
    return until >= 0 && (until >= w->bounds.seen_at || probe_is_out(w, step));
}

bool check_circuit_was_open(const struct world *w, const struct step_past *step)
{
    bool sent_back = step->row.attempt_state == RV_ATTEMPT_CIRCUIT_OPEN;
    return w->knobs.circuit != 0 && (sent_back || shut_until(w, step) >= 0);
}

/* P-02: what nobody has tried for long calls for an operator. The server's absence does not count,
 * and agents get the whole time to come back after it (decision 005). */
void check_waiting_called(struct world *w)
{
    int64_t attended = database_attended_since(w);
    for (size_t i = 0; i < w->history->count; i++) {
        struct task_past *task = w->history->all[i];
        bool goes_on = rv_task_state_open(task->row.state) && task->row.state != RV_TASK_ERROR &&
                       task->row.suspended_at == 0;
        for (uint32_t n = 0; goes_on && n < task->row.open_count; n++) {
            const struct step_past *step = history_step(task, task->row.open[n]);
            if (step == NULL || step->row.state != RV_STEP_PENDING || step->row.called)
                continue;
            int64_t since = step->row.waits_since > attended ? step->row.waits_since : attended;
            int64_t waits_ms = w->bounds.seen_at - since;
            if (w->bounds.seen_at != 0 && waits_ms > RV_NO_AGENT_ALERT_MS + 2 * pause_ms_max()) {
                w->concerned = task->row.id;
                world_violate(w, "P-02", "step %u waits since %lld ms and calls nobody",
                              step->row.number, (long long)waits_ms);
            }
        }
    }
}
