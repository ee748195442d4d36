#include "sim/check/check.h"

#include "base/limits.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

static bool forward_call(const struct rv_step *step)
{
    return step->direction == RV_FORWARD && step->kind == RV_KIND_CALL;
}

static enum rv_undo_way way_of(const struct transition *t, const struct rv_step *step)
{
    return rv_definition_undo_way(t->past->definition, step->node);
}

/* I-12: once a task is being undone no forward step begins, opens again or completes. */
static void check_no_way_forward(const struct transition *t)
{
    if (t->past->row.direction != RV_UNDO || t->past->row.revision == 0 || check_redone(t) ||
        check_taken_back(t))
        return;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        const struct step_past *past = history_step(t->past, step->number);
        if (step->direction != RV_FORWARD)
            continue;
        bool opened = past != NULL && !rv_step_state_open(past->row.state) &&
                      rv_step_state_open(step->state);
        bool handed = past != NULL && past->row.attempt != step->attempt;
        bool completed = past != NULL && past->row.state != RV_STEP_PROCESSED &&
                         step->state == RV_STEP_PROCESSED;
        if (past == NULL || opened || handed || completed)
            world_violate(t->w, "I-12", "forward step %u goes on while its task is undone",
                          step->number);
    }
}

/* I-14: no compensation is open while a forward attempt of the task may still be at work. */
static void check_not_beside(const struct transition *t)
{
    const struct rv_step *undo = NULL, *forward = NULL;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        if (step->direction == RV_UNDO && rv_step_state_open(step->state))
            undo = step;
        if (forward_call(step) && rv_attempt_state_live(step->attempt_state))
            forward = step;
    }
    if (undo != NULL && forward != NULL)
        world_violate(t->w, "I-14", "compensation %u is open beside forward step %u", undo->number,
                      forward->number);
}

/* This commit has a late `done` of the step. */
static bool told_late(const struct transition *t, const struct rv_step *step)
{
    for (size_t i = 0; i < t->change->late_replies_count; i++)
        if (t->change->late_replies[i].step.number == step->number &&
            t->change->late_replies[i].output.at != NULL)
            return true;
    return false;
}

/* I-13: what is compensated may have had an effect and was not undone before; and before a step
 * that completed is undone, everything that began after it has been. (A step that failed and that a
 * DSL retry kept for later ends when the flow gives it up, perhaps after steps that began later.)
 */
static void check_order(const struct transition *t, const struct rv_step *step)
{
    const struct rv_step *undone = &t->steps[step->undoes - 1];
    const struct step_past *past = history_step(t->past, step->undoes);
    bool again = check_found_now(t, undone, RV_FINDING_DONE) && undone->state == RV_STEP_SKIPPED &&
                 past != NULL &&
                 past->row.state != RV_STEP_SKIPPED; /* undone by hand, and done by hand since */
    bool needless = past != NULL && past->row.undone && !again;
    if (!forward_call(undone) || undone->effect == RV_EFFECT_NONE || needless)
        world_violate(t->w, "I-13", "step %u is compensated without need", undone->number);
    if (past == NULL || past->row.state != RV_STEP_PROCESSED)
        return;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *later = &t->steps[i];
        const struct step_past *seen = history_step(t->past, later->number);
        bool depends = seen == NULL || seen->created_in >= past->left_in;
        /* Its agent denied that, and this commit may know better only after it began the undo. */
        bool denied = seen != NULL && seen->row.effect == RV_EFFECT_NONE && told_late(t, later);
        if (forward_call(later) && later->number > undone->number && depends && !denied &&
            later->effect != RV_EFFECT_NONE && !later->undone &&
            way_of(t, later) != RV_UNDO_NOTHING)
            world_violate(t->w, "I-13", "step %u is compensated before step %u, which came after",
                          undone->number, later->number);
    }
}

/* I-13: one step is undone at a time. */
static void check_one_by_one(const struct transition *t)
{
    uint32_t undoes = 0;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        if (step->direction != RV_UNDO || !rv_step_state_open(step->state))
            continue;
        if (undoes != 0 && undoes != step->undoes)
            world_violate(t->w, "I-13", "steps %u and %u are undone at once", undoes, step->undoes);
        undoes = step->undoes;
    }
}

/* I-13: what stands in the way of an undo is still to be undone. */
static void check_hindrance(const struct transition *t, uint32_t number)
{
    if (number != 0 && (!t->steps[number - 1].chained || t->steps[number - 1].undone))
        world_violate(t->w, "I-13", "step %u prevents an undo, which has passed it", number);
}

/* An operator's word ended the compensation in the middle; it was wrong, and all was done anew. */
static bool carried_out_anew(const struct transition *t, const struct rv_step *step)
{
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *later = &t->steps[i];
        bool over = later->state == RV_STEP_PROCESSED || later->state == RV_STEP_SKIPPED;
        if (later->undoes == step->undoes && later->number > step->number && over &&
            rv_str_eq(later->reference, step->reference))
            return true;
    }
    return false;
}

/* A compensation of the workloads calls an agent, perhaps after a wait; where its definition says
 * that it calls nobody, it is done when its last step is. */
static bool check_compensated(const struct transition *t, const struct rv_step *forward)
{
    bool inside = workload_undone_inside(t->past->definition, forward->node), done = false;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        if (step->undoes != forward->number)
            continue;
        bool over = step->state == RV_STEP_PROCESSED || step->state == RV_STEP_SKIPPED;
        bool last = inside ? workload_is_undo_end(step->reference) : step->kind == RV_KIND_CALL;
        done = done || (last && over);
        if (rv_step_state_open(step->state) ||
            (step->state == RV_STEP_CANCELLED && !carried_out_anew(t, step)))
            return false;
    }
    return done;
}

/* I-16: a step counts as undone when all of its compensation is done, nothing is needed, or an
 * operator says that he has undone it. */
static void check_undone(const struct transition *t, const struct rv_step *forward)
{
    const struct step_past *past = history_step(t->past, forward->number);
    if (!forward->undone || (past != NULL && past->row.undone))
        return;
    if (way_of(t, forward) == RV_UNDO_NOTHING || check_found_now(t, forward, RV_FINDING_UNDONE) ||
        check_found_now(t, forward, RV_FINDING_NOTHING))
        return;
    if (!check_compensated(t, forward))
        world_violate(t->w, "I-16", "step %u counts as undone, but its compensation is not done",
                      forward->number);
}

/* An operator is called, in this very commit, since the step's service says that it was done: the
 * task had ended without the step when that was decided (decision 025). */
static bool told_after_end(const struct transition *t, const struct rv_step *step)
{
    bool called = false;
    for (size_t i = 0; i < t->change->alerts_count; i++)
        called |= t->change->alerts[i].kind == RV_ALERT_LATE_DONE &&
                  t->change->alerts[i].step == step->number;
    return called && told_late(t, step);
}

static bool was_replaced(const struct transition *t, uint32_t number)
{
    for (size_t i = 0; i < t->steps_count; i++)
        if (t->steps[i].replaces == number)
            return true;
    return false;
}

/* I-16: a compensated task has undone every step that may have had an effect; a cancelled one had
 * none, or none but what an operator had undone before, if it was not given up on purpose; a
 * processed one was never compensated in any part, but for what was tried with another input
 * afterwards. */
static void check_ends(const struct transition *t)
{
    enum rv_task_state state = t->task->state;
    if (t->past->row.revision != 0 && state == t->past->row.state)
        return;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        bool effect = forward_call(step) && step->effect != RV_EFFECT_NONE &&
                      !told_after_end(t, step);
        if (state == RV_TASK_COMPENSATED && effect && !step->undone)
            world_violate(t->w, "I-16", "the task is compensated, but step %u is not undone",
                          step->number);
        if (state == RV_TASK_CANCELLED && effect && !history_abandons(t->task) &&
            !was_replaced(t, step->number) &&
            !(step->undone && check_found(step, RV_FINDING_UNDONE)))
            world_violate(t->w, "I-16", "the task is cancelled, but step %u may have had an effect",
                          step->number);
        if (state == RV_TASK_PROCESSED && step->direction == RV_UNDO &&
            !was_replaced(t, step->undoes))
            world_violate(t->w, "I-16", "the task is processed, but step %u compensates",
                          step->number);
        bool over = state == RV_TASK_COMPENSATED || state == RV_TASK_CANCELLED ||
                    state == RV_TASK_PROCESSED;
        if (over && (rv_step_state_open(step->state) || rv_attempt_state_live(step->attempt_state)))
            world_violate(t->w, "I-16", "the task is %s, but step %u is %s",
                          rv_task_state_text(state), step->number, rv_step_state_text(step->state));
    }
}

/* L-06: what has passed its point of no return is never undone; but one step of it may be, to be
 * tried with another input, or when an operator says that he has undone it. */
static void check_pivot(const struct transition *t)
{
    bool was = t->past->row.direction == RV_UNDO && t->past->row.redo == 0;
    bool is = t->task->direction == RV_UNDO && t->task->redo == 0 &&
              t->task->state != RV_TASK_CANCELLED;
    if (was || !is || t->past->row.revision == 0)
        return;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        bool live = past != NULL && rv_attempt_state_live(past->row.attempt_state);
        if (past != NULL && !live && past->row.effect != RV_EFFECT_NONE &&
            t->steps[i].effect != RV_EFFECT_NONE && !past->row.undone &&
            !check_found_now(t, &t->steps[i], RV_FINDING_UNDONE) && forward_call(&t->steps[i]) &&
            way_of(t, &t->steps[i]) == RV_UNDO_PIVOT)
            world_violate(t->w, "L-06", "a task is undone, and may have passed its pivot, step %u",
                          t->steps[i].number);
    }
}

/* L-06: an undo waits for an operator because nobody knows how only where that is so. */
static void check_no_undo(const struct transition *t)
{
    bool called = false, needed = false;
    for (size_t i = 0; i < t->change->alerts_count; i++)
        called |= t->change->alerts[i].kind == RV_ALERT_NO_UNDO;
    for (size_t i = 0; called && i < t->steps_count; i++) {
        enum rv_undo_way way = way_of(t, &t->steps[i]);
        bool settled = check_found_now(t, &t->steps[i], RV_FINDING_UNDONE) ||
                       check_found_now(t, &t->steps[i], RV_FINDING_NOTHING); /* since */
        bool there = t->steps[i].effect != RV_EFFECT_NONE && !t->steps[i].undone;
        needed |= forward_call(&t->steps[i]) && (there || settled) &&
                  (way == RV_UNDO_UNDECLARED || way == RV_UNDO_PIVOT);
    }
    if (called && !needed)
        world_violate(t->w, "L-06", "an operator is called to undo what declares how it is undone");
}

/* I-14: an attempt that left and ended unheard may be at work until the end of its lease: no
 * compensation begins before. */
static void check_quiet(const struct transition *t, const struct rv_step *undo)
{
    if (t->now < t->past->quiet_at)
        world_violate(t->w, "I-14",
                      "compensation %u begins %lld ms before an attempt that ended "
                      "unheard is over",
                      undo->number, (long long)(t->past->quiet_at - t->now));
}

/* The next commit looks at the rest of the chain. */
enum { UNDO_PIECE = 32 };

static bool piece_was_full(const struct transition *t)
{
    uint32_t undone = 0;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        undone += t->steps[i].undone && past != NULL && !past->row.undone;
    }
    return undone >= UNDO_PIECE;
}

/* An operator was called for this wait, and his alert is open. */
static bool was_called(const struct transition *t, uint32_t head)
{
    const struct step_past *past = head != 0 ? history_step(t->past, head) : NULL;
    return past != NULL && past->row.called && past->row.chained && !t->change->close_alerts;
}

/* P-02: what is left of a lease keeps an undo waiting for long: the commit in which the wait
 * begins, or which closes the task's alerts, calls an operator. Who has settled the step as done in
 * this wait knows of it; on the way forward the step would have been skipped. If a late `done` puts
 * another step before the one for which he was called, the next commit calls for that one, too. */
static void check_wait_called(const struct transition *t)
{
    const struct rv_task *task = t->task;
    bool waits = task->state == RV_TASK_COMPENSATING && task->open_count == 0 &&
                 task->undo_head != 0 && task->suspended_at == 0 &&
                 task->quiet_at - t->now > RV_NO_AGENT_ALERT_MS;
    if (!waits)
        return;
    const struct rv_step *head = &t->steps[task->undo_head - 1];
    bool told = was_called(t, head->number) || was_called(t, t->past->row.undo_head);
    for (size_t i = 0; i < t->change->alerts_count; i++)
        told |= t->change->alerts[i].kind == RV_ALERT_NO_AGENT &&
                t->change->alerts[i].step == head->number;
    told |= head->state != RV_STEP_SKIPPED && check_found(head, RV_FINDING_DONE);
    if (!told && way_of(t, head) != RV_UNDO_NOTHING && !piece_was_full(t))
        world_violate(t->w, "P-02", "the undo of step %u waits for %lld ms and calls nobody",
                      head->number, (long long)(task->quiet_at - t->now));
}

void check_undo(const struct transition *t)
{
    check_wait_called(t);
    check_pivot(t);
    check_no_undo(t);
    check_no_way_forward(t);
    check_not_beside(t);
    check_one_by_one(t);
    check_hindrance(t, t->task->undo_blocker);
    check_hindrance(t, t->task->pivot);
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        bool begins = step->direction == RV_UNDO && history_step(t->past, step->number) == NULL;
        if (begins)
            check_quiet(t, step);
        const struct step_past *undone = begins ? history_step(t->past, step->undoes) : NULL;
        if (begins && (undone == NULL || !undone->undo_begun))
            check_order(t, step);
        if (forward_call(step))
            check_undone(t, step);
    }
    check_ends(t);
}
