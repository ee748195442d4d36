/* What an operator does about one step: resubmit it as it was or with another input.
 *
 * Another input is another request: it gets a step of its own, and so another key. What the old
 * request may have done is settled first (RULES 6): it did nothing, or the operator says so, or it
 * is undone before the new one leaves. For that the task turns round for this one step: the old one
 * goes onto the undo chain, the new one waits as the task's `redo`, and when the chain is down to
 * what stood before, the task goes forward again with it. */
#include "core/plan_priv.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"

/* Scopes whose time ended while the task was escalated have it again: the operator's word is above
 * a DSL timeout that has passed. */
enum rv_verdict resubmit_time_again(struct draft *d, struct rv_step *step)
{
    struct rv_flow_env env;
    struct rv_flow_stop stop;
    RV_TRY(advance_env(d, step->direction, step->undoes, &env));
    RV_TRY(advance_error(rv_flow_renew(&env, step->frames, &stop)));
    step->frames = stop.frames;
    step->deadline = stop.deadline;
    if (step->kind != RV_KIND_CALL)
        step->wake_at = rv_time_earlier(step->ready_at, step->deadline);
    return RV_DECIDED;
}

static enum rv_verdict replacement_new(struct draft *d, const struct rv_step *old,
                                       struct rv_step **ret_step)
{
    struct rv_step *step;
    RV_TRY(draft_step_new(d, &step));
    step->kind = RV_KIND_CALL;
    step->direction = old->direction;
    step->undoes = old->undoes;
    step->replaces = old->number;
    step->node = old->node;
    step->visit = old->visit;
    step->reference = old->reference;
    step->iteration = old->iteration;
    step->agent = old->agent;
    step->frames = old->frames;
    step->data = old->data;
    step->input = d->command->u.operate.input.at != NULL ? d->command->u.operate.input : old->input;
    *ret_step = step;
    return RV_DECIDED;
}

/* Undone by hand: the same key would find the request done before, and undone. */
static enum rv_verdict step_anew(struct draft *d, struct rv_step *old)
{
    struct rv_step *step;
    RV_TRY(replacement_new(d, old, &step));
    rv_step_move(&old->state, RV_STEP_CANCELLED);
    old->ended_at = d->command->now;
    draft_open_remove(d, old->number);
    RV_TRY(resubmit_time_again(d, step));
    ladder_repeat(step, d->command->now);
    draft_open_add(d, step->number);
    return RV_DECIDED;
}

static enum rv_verdict step_again(struct draft *d, struct rv_step *step)
{
    rv_assert(step->state == RV_STEP_ERROR);
    if (step->undone)
        return step_anew(d, step);
    step->failure_count = step->round = 0;
    step->deaths = 0;
    step->ended_at = 0;
    RV_TRY(resubmit_time_again(d, step));
    ladder_repeat(step, d->command->now);
    return RV_DECIDED;
}

/* The task was escalated for another cause: the step has not waited for an agent meanwhile. */
static enum rv_verdict step_on(struct draft *d, struct rv_step *step)
{
    int64_t now = d->command->now;
    if (step->deadline != 0 && step->deadline <= now)
        RV_TRY(resubmit_time_again(d, step));
    bool waits = step->kind == RV_KIND_CALL && step->state == RV_STEP_PENDING;
    if (waits && !step->called && step->ready_at < now)
        ladder_watch(step, now);
    return RV_DECIDED;
}

/* An escalated task continues, in the direction in which it was escalated. */
void task_go_on(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    bool undoing = task->direction == RV_UNDO;
    if (!undoing)
        task->error = RV_STR_NONE;
    draft_task_move(d, undoing ? RV_TASK_COMPENSATING : RV_TASK_PROCESSING);
    d->plan->close_alerts = true;
    d->plan->changed = true;
}

/* ---- with another input ---- */

/* The escalated step that is meant: the one that is named, or the only one. */
static enum rv_verdict parked_find(struct draft *d, const struct rv_step **ret_step)
{
    const struct rv_task *task = &d->plan->task;
    *ret_step = NULL;
    for (uint32_t i = 0; i < task->open_count; i++) {
        const struct rv_step *step;
        RV_TRY(draft_look(d, task->open[i], &step));
        bool meant = d->command->step == 0 || d->command->step == step->number;
        if (step->state != RV_STEP_ERROR || step->kind != RV_KIND_CALL || !meant)
            continue;
        if (*ret_step != NULL)
            return operate_refuse(
                d, RV_STR("several steps are in error: give the number of the step that "
                          "receives the input (--step, \"step\")"));
        *ret_step = step;
    }
    return *ret_step != NULL
               ? RV_DECIDED
               : operate_refuse(
                     d, RV_STR("the task has no matching step that is in error and calls an "
                               "agent: `reeve show` lists the steps"));
}

static enum rv_verdict refuse_undo_first(struct draft *d, const struct rv_step *old)
{
    if (old->effect == RV_EFFECT_NONE || old->undone)
        return operate_refuse(
            d, RV_STR("the step has no effect to undo: resubmit without --undo-first"));
    if (old->direction == RV_UNDO)
        return operate_refuse(
            d, rv_arena_printf(d->arena,
                               "the step is part of the undo of step %u and cannot be "
                               "undone itself: check its effect, then %s",
                               old->undoes,
                               old->effect == RV_EFFECT_DONE
                                   ? "settle it with --done"
                                   : "resubmit with --assume-not-done, or settle it with "
                                     "--done"));
    return operate_refuse(
        d, RV_STR("the step is a pivot or declares no compensation: check the effect of the step, "
                  "undo the effect by hand, settle the step with --undone, then resubmit"));
}

/* What the old request may have done stands in the way, or the operator has said what about it. */
static enum rv_verdict old_outcome(struct draft *d, const struct rv_step *old)
{
    const struct rv_command *command = d->command;
    enum rv_undo_way way = rv_definition_undo_way(d->view->definition, old->node);
    bool undoable = old->direction == RV_FORWARD &&
                    (way == RV_UNDO_STEPS || way == RV_UNDO_NOTHING);
    if (command->u.operate.undo_first && !undoable)
        return refuse_undo_first(d, old);
    if (old->effect == RV_EFFECT_NONE || old->undone || command->u.operate.undo_first)
        return RV_DECIDED;
    if (old->effect == RV_EFFECT_DONE)
        return operate_refuse(
            d, rv_arena_printf(d->arena,
                               "the agent reported that the old request was done: settle "
                               "the step with --done and the reported output%s",
                               old->direction == RV_UNDO ? ""
                               : undoable                ? ", or resubmit with --undo-first"
                                          : ", or undo it by hand and settle it with --undone"));
    if (command->u.operate.assume_not_done)
        return settle_refuse_unquiet(d);
    return operate_refuse(
        d,
        rv_arena_printf(d->arena,
                        "the effect of the old request is unknown, and a new input makes a new "
                        "request: check the service and the late replies. If the old request had "
                        "no effect, resubmit with --assume-not-done; otherwise settle the step%s",
                        undoable ? ", or resubmit with --undo-first" : ""));
}

static enum rv_verdict resubmit_edited(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    const struct rv_step *seen;
    struct rv_step *old, *step;
    RV_TRY(parked_find(d, &seen));
    if (d->plan->err == RV_OK)
        RV_TRY(old_outcome(d, seen));
    if (d->plan->err != RV_OK)
        return RV_DECIDED;
    RV_TRY(operate_accept(d));
    RV_TRY(draft_step(d, seen->number, &old));
    rv_assert(old->kind == RV_KIND_CALL);
    rv_assert(old->state == RV_STEP_ERROR);
    RV_TRY(replacement_new(d, old, &step));
    /* The operator's word counts, until a late `done` says otherwise. */
    if (d->command->u.operate.assume_not_done && !old->undone)
        old->effect = RV_EFFECT_NONE;
    rv_step_move(&old->state, RV_STEP_CANCELLED);
    draft_open_remove(d, old->number);
    bool undo = d->command->u.operate.undo_first && old->effect != RV_EFFECT_NONE && !old->undone;
    if (!undo) {
        task_go_on(d);
        RV_TRY(resubmit_time_again(d, step));
        ladder_repeat(step, d->command->now);
        draft_open_add(d, step->number);
        return RV_DECIDED;
    }
    undo_chain(d, old);
    task->redo = step->number;
    task->direction = RV_UNDO;
    task_go_on(d);
    return undo_next(d);
}

enum rv_verdict resubmit_redo_begin(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    struct rv_step *step;
    rv_assert(task->redo != 0);
    rv_assert(task->state == RV_TASK_COMPENSATING);
    RV_TRY(draft_step(d, task->redo, &step));
    task->redo = 0;
    task->by_hand = 0;
    task->direction = RV_FORWARD;
    task->error = RV_STR_NONE;
    draft_task_move(d, RV_TASK_PROCESSING);
    RV_TRY(resubmit_time_again(d, step));
    ladder_repeat(step, d->command->now);
    draft_open_add(d, step->number);
    return RV_DECIDED;
}

enum rv_verdict resubmit_redo_drop(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    const struct rv_step *seen;
    struct rv_step *step;
    if (task->redo == 0)
        return RV_DECIDED;
    RV_TRY(draft_look(d, task->redo, &seen));
    if (seen->state != RV_STEP_PENDING)
        return RV_UNREADABLE;
    RV_TRY(draft_step(d, seen->number, &step));
    rv_step_move(&step->state, RV_STEP_CANCELLED);
    step->ended_at = d->command->now;
    task->redo = 0;
    return RV_DECIDED;
}

/* ---- as it was ---- */

/* Whether the same would only happen again. */
static enum rv_verdict resubmit_hopeless(struct draft *d)
{
    const struct rv_task *task = &d->plan->task;
    bool undoing = task->direction == RV_UNDO;
    bool failed = task->open_count == 0 && !undoing;
    for (uint32_t i = 0; i < task->open_count && !undoing; i++) {
        const struct rv_step *step;
        RV_TRY(draft_look(d, task->open[i], &step));
        failed = failed || (step->kind != RV_KIND_CALL && step->state == RV_STEP_ERROR);
    }
    if (failed)
        return operate_refuse(
            d, RV_STR("the workflow itself raised the error, and would raise it again "
                      "with the same input and definition"));
    if (task->open_count != 0 || task->undo_head == 0)
        return RV_DECIDED;
    const struct rv_step *head;
    RV_TRY(draft_look(d, task->undo_head, &head));
    enum rv_undo_way way = rv_definition_undo_way(d->view->definition, head->node);
    if (way == RV_UNDO_UNDECLARED || way == RV_UNDO_PIVOT)
        return operate_refuse(
            d, rv_arena_printf(d->arena,
                               "step %u, %.*s, is a pivot or declares no compensation: a "
                               "resubmission would stop at this step again",
                               head->number, RV_STR_FMT(head->reference)));
    return RV_DECIDED;
}

enum rv_verdict resubmit_decide(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    if (task->state != RV_TASK_ERROR)
        return operate_refuse_state(d, "resubmitted", "only a task in error can be resubmitted");
    if (d->command->u.operate.input.at != NULL)
        return resubmit_edited(d);
    RV_TRY(resubmit_hopeless(d));
    if (d->plan->err != RV_OK)
        return RV_DECIDED;
    RV_TRY(operate_accept(d));
    task_go_on(d);
    uint32_t open[RV_OPEN_STEPS_MAX];
    uint32_t count = task->open_count;
    memcpy(open, task->open, sizeof open);
    for (uint32_t i = 0; i < count; i++) {
        struct rv_step *step;
        RV_TRY(draft_step(d, open[i], &step));
        if (step->state == RV_STEP_ERROR)
            RV_TRY(step_again(d, step));
        else
            RV_TRY(step_on(d, step));
    }
    return undo_next(d);
}
