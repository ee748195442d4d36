#include "sim/check/check.h"

#include "sim/cast/operator.h"
#include "sim/world/fault.h"
#include "sim/world/world.h"

#include <string.h>

void check_transition(const struct transition *t)
{
    check_state(t);
    check_attempts(t);
    check_leases(t);
    check_ladder(t);
    check_caught(t);
    check_circuits(t);
    check_late(t);
    check_delivery(t);
    check_role(t);
    check_owner(t);
    check_limits(t);
    check_in_line(t);
    check_undo(t);
    check_record(t);
    check_secrets(t);
    check_messages(t);
    check_operator(t);
    check_history(t);
}

/* I-03, I-04: the history of a task has no gaps: each commit starts from what the last one left and
 * raises the revision by one. */
static void check_revision(const struct transition *t)
{
    if (t->change->revision_before != t->past->row.revision)
        world_violate(t->w, "I-03", "a change from revision %lld was taken at revision %lld",
                      (long long)t->change->revision_before, (long long)t->past->row.revision);
    if (t->task->revision != t->past->row.revision + 1)
        world_violate(t->w, "I-04", "the revision went from %lld to %lld",
                      (long long)t->past->row.revision, (long long)t->task->revision);
}

bool check_redone(const struct transition *t)
{
    return t->past->row.redo != 0 && t->task->redo == 0 && t->task->direction == RV_FORWARD;
}

/* I-04: a task only ever moves along the published table. One commit may take several edges, but
 * what has begun is never pending again, what is being undone never goes forward again, and what
 * was undone stays so. */
static void check_task_edges(const struct transition *t)
{
    enum rv_task_state from = t->past->row.state, to = t->task->state;
    if (t->past->row.revision == 0 || from == to)
        return;
    bool over = from == RV_TASK_COMPENSATED || from == RV_TASK_CANCELLED;
    bool undoing = t->past->row.direction == RV_UNDO && !check_redone(t) && !check_taken_back(t);
    bool forward = to == RV_TASK_PENDING || to == RV_TASK_PROCESSING || to == RV_TASK_PROCESSED;
    bool cancelled = to == RV_TASK_CANCELLED && !history_abandons(t->task);
    bool reopened = from == RV_TASK_PROCESSED && (forward || cancelled);
    if (over || to == RV_TASK_PENDING || (undoing && forward) || reopened)
        world_violate(t->w, "I-04", "a task went from %s to %s", rv_task_state_text(from),
                      rv_task_state_text(to));
}

static bool is_pivot(const struct transition *t, const struct rv_step *step)
{
    return step->direction == RV_FORWARD &&
           rv_definition_undo_way(t->past->definition, step->node) == RV_UNDO_PIVOT;
}

/* Was at work, and was perhaps carried out, while the undo of an earlier commit waited for it. */
static bool undo_met(const struct transition *t, const struct rv_step *step)
{
    const struct step_past *past = history_step(t->past, step->number);
    return t->past->row.direction == RV_UNDO && t->task->direction == RV_FORWARD && past != NULL &&
           rv_attempt_state_live(past->row.attempt_state) && step->effect != RV_EFFECT_NONE &&
           is_pivot(t, step);
}

bool check_pivot_met(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++)
        if (t->steps[i].effect != RV_EFFECT_NONE && is_pivot(t, &t->steps[i]))
            return true;
    return false;
}

bool check_taken_back(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++)
        if (undo_met(t, &t->steps[i]))
            return true;
    return false;
}

bool check_taken_back_at(const struct transition *t, const struct rv_step *step)
{
    static const char words[] = "the undo is withdrawn";
    bool told = false;
    for (size_t i = 0; i < t->change->alerts_count; i++) {
        const struct rv_alert *alert = &t->change->alerts[i];
        told = told || (alert->step == step->number && alert->message.at != NULL &&
                        memmem(alert->message.at, alert->message.len, words, strlen(words)));
    }
    return undo_met(t, step) || (told && is_pivot(t, step));
}

/* I-12: the direction of a task turns to undo once and never back; but for an undo that met the
 * point of no return, and for a task that had one step undone so that it can be tried with another
 * input (RULES 6). */
static void check_direction(const struct transition *t)
{
    if (t->past->row.direction == RV_UNDO && t->task->direction == RV_FORWARD && !check_redone(t) &&
        !check_taken_back(t))
        world_violate(t->w, "I-12", "a task that was being undone goes forward");
}

/* I-17: from commit to commit a task's time never goes back. */
static void check_clock(const struct transition *t)
{
    if (t->now < t->past->now)
        world_violate(t->w, "I-17", "a task was changed at %lld, after it was at %lld",
                      (long long)t->now, (long long)t->past->now);
}

/* I-18: a task keeps the definition that it started with. */
static void check_pinned(const struct transition *t)
{
    if (t->past->row.revision != 0 && t->past->row.workflow != t->task->workflow)
        world_violate(t->w, "I-18", "a task changed its workflow");
}

/* P2: what is parked has an alert that calls for an operator, and what is not parked waits for
 * something that has an instant or a name: never silently stuck. */
static void check_parked(const struct transition *t)
{
    bool parks = t->task->state == RV_TASK_ERROR &&
                 (t->past->row.revision == 0 || t->past->row.state != RV_TASK_ERROR);
    bool damaged = fault_happened(t->w, FAULT_UNREADABLE);
    for (size_t i = 0; i < t->change->alerts_count && !damaged; i++)
        if (t->change->alerts[i].kind == RV_ALERT_UNREADABLE)
            world_violate(t->w, "I-28", "sound rows are taken for damaged: %.*s",
                          RV_STR_FMT(t->change->alerts[i].message));
    if (parks && t->change->alerts_count == 0)
        world_violate(t->w, "P-02", "a task was parked without an alert");
    bool stands = t->task->state == RV_TASK_PROCESSING || t->task->state == RV_TASK_PENDING;
    if (stands && t->task->open_count == 0)
        world_violate(t->w, "P-02", "a task is %s and stands at no step",
                      rv_task_state_text(t->task->state));
}

/* P-02: an undo that has stopped has an error, by which operators find its task. One that continues
 * has none. */
static void check_stopped(const struct transition *t)
{
    const struct rv_task *task = t->task;
    bool stopped = task->state == RV_TASK_ERROR && task->direction == RV_UNDO;
    bool now = stopped && (t->past->row.revision == 0 || t->past->row.state != RV_TASK_ERROR);
    for (size_t i = 0; i < t->change->alerts_count && now; i++) {
        enum rv_alert_kind kind = t->change->alerts[i].kind;
        bool tells = kind == RV_ALERT_UNDO_FAILED || kind == RV_ALERT_NO_UNDO;
        if (tells && task->undo_error.at == NULL)
            world_violate(t->w, "P-02", "an undo stopped without an error");
    }
    if (!stopped && task->undo_error.at != NULL)
        world_violate(t->w, "P-02", "a task is %s with the error of a stopped undo",
                      rv_task_state_text(task->state));
}

/* I-05: a step's accepted result is never replaced, and the step never opens again. */
static void check_result_stays(const struct transition *t, const struct step_past *past,
                               const struct rv_step *step)
{
    if (past->row.state != RV_STEP_PROCESSED || past->row.kind != RV_KIND_CALL)
        return;
    if (step->state != RV_STEP_PROCESSED || step->token != past->row.token ||
        step->attempt != past->row.attempt || history_hash(step->output) != past->output_hash)
        world_violate(t->w, "I-05", "the accepted result of step %u was changed", step->number);
}

/* An operator says that the request was not carried out, and has another sent in its place: of what
 * nobody knows, his word counts. */
static bool check_assumed(const struct transition *t, const struct rv_step *step)
{
    const struct step_past *past = history_step(t->past, step->number);
    for (size_t i = 0; i < t->steps_count; i++)
        if (t->steps[i].replaces == step->number &&
            history_step(t->past, t->steps[i].number) == NULL &&
            past->row.effect == RV_EFFECT_UNKNOWN &&
            rv_str_is(t->steps[i].input, OPERATOR_EDITS_ASSUMING))
            return true;
    return false;
}

/* I-04: a step moves along its table too; what was cancelled or skipped stays so. What it may have
 * done is forgotten at an operator's word alone. */
static void check_step_edges(const struct transition *t, const struct step_past *past,
                             const struct rv_step *step)
{
    enum rv_step_state from = past->row.state;
    bool ended = from == RV_STEP_CANCELLED || from == RV_STEP_SKIPPED;
    if (ended && step->state != from)
        world_violate(t->w, "I-04", "step %u went from %s to %s", step->number,
                      rv_step_state_text(from), rv_step_state_text(step->state));
    if (past->row.effect > step->effect && !check_assumed(t, step) &&
        !check_found_now(t, step, RV_FINDING_NOTHING))
        world_violate(t->w, "I-04", "step %u forgot its effect: from %s to %s", step->number,
                      rv_effect_text(past->row.effect), rv_effect_text(step->effect));
}

/* I-05: a step has one result, and so one row: what is tried again is the same step, unless an
 * operator gave it another input. */
static void check_identity(const struct transition *t, const struct rv_step *step)
{
    for (size_t i = 0; i + 1 < step->number; i++) {
        const struct rv_step *other = &t->steps[i];
        if (step->kind == RV_KIND_CALL && step->direction == RV_FORWARD &&
            other->kind == RV_KIND_CALL && other->direction == RV_FORWARD &&
            other->node == step->node && other->visit == step->visit &&
            rv_str_eq(other->iteration, step->iteration) &&
            (step->replaces == 0 || other->state != RV_STEP_CANCELLED))
            world_violate(t->w, "I-05", "steps %u and %u are the same visit of %.*s", other->number,
                          step->number, RV_STR_FMT(step->reference));
    }
}

void check_state(const struct transition *t)
{
    check_revision(t);
    check_task_edges(t);
    check_direction(t);
    check_pinned(t);
    check_clock(t);
    check_parked(t);
    check_stopped(t);
    if (t->steps_count != t->task->last_number)
        world_violate(t->w, "I-03", "the task has %zu steps and gave out %u numbers",
                      t->steps_count, t->task->last_number);
    for (size_t i = 0; i < t->steps_count; i++) {
        struct step_past *past = history_step(t->past, t->steps[i].number);
        if (past == NULL)
            check_identity(t, &t->steps[i]);
        if (past == NULL)
            continue;
        check_result_stays(t, past, &t->steps[i]);
        check_step_edges(t, past, &t->steps[i]);
    }
}
