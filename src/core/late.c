/* What a reply that does not count still tells: its attempt was done (RULES 6). If the task has
 * gone past the step as one that was not done, the step goes onto the undo chain, and an operator
 * is called: the task may end well, and the effect would be left. The alert closes when the step is
 * undone. While the task is being undone nobody is called: the step is undone with the rest. */
#include "core/plan_priv.h"

#include "base/assert.h"

/* A task that goes forward keeps the step for a DSL retry: it may open again. Where that cannot be
 * read it may, too, and the step is not put on the undo chain; but the reply is kept, and what it
 * tells of the effect. */
static enum rv_verdict kept_by(struct draft *d, uint32_t open, uint32_t number, bool *ret_kept)
{
    const struct rv_step *step;
    bool kept = false;
    enum rv_verdict verdict = draft_look(d, open, &step);
    if (verdict == RV_DECIDED && step->direction == RV_FORWARD && step->frames.at != NULL)
        verdict = advance_error(rv_flow_keeps(d->arena, step->frames, number, &kept));
    bool damage = verdict == RV_UNREADABLE;
    *ret_kept = *ret_kept || kept || damage;
    return damage ? RV_DECIDED : verdict;
}

/* Control has gone past it, and it has no result. */
static enum rv_verdict is_past(struct draft *d, const struct rv_step *step, bool *ret_past)
{
    const struct rv_task *task = &d->plan->task;
    bool kept = false;
    *ret_past = false;
    if (step->direction != RV_FORWARD || rv_step_state_open(step->state) ||
        step->state == RV_STEP_PROCESSED || draft_open_has(d, step->number))
        return RV_DECIDED;
    for (uint32_t i = 0; step->state == RV_STEP_ERROR && i < task->open_count; i++)
        RV_TRY(kept_by(d, task->open[i], step->number, &kept));
    if (step->state == RV_STEP_ERROR && task->redo != 0)
        RV_TRY(kept_by(d, task->redo, step->number, &kept));
    *ret_past = !kept;
    return RV_DECIDED;
}

/* The step is undone without anybody's word, because the task is, or because another request takes
 * its place. */
static enum rv_verdict is_undone_anyway(struct draft *d, const struct rv_step *step, bool *ret_is)
{
    const struct rv_task *task = &d->plan->task;
    const struct rv_step *next;
    *ret_is = rv_task_state_open(task->state) && task->direction == RV_UNDO;
    if (!*ret_is)
        return RV_DECIDED;
    if (task->redo != 0) {
        RV_TRY(draft_look(d, task->redo, &next));
        *ret_is = next->replaces == step->number;
        return RV_DECIDED;
    }
    bool back;
    RV_TRY(undo_may_be_taken_back(d, &back));
    *ret_is = !back;
    return RV_DECIDED;
}

/* What the task does about it. */
static struct rv_str way_on(const struct draft *d, const struct rv_step *step)
{
    const struct rv_task *task = &d->plan->task;
    bool undoable = task->pivot == 0 && task->undo_blocker == 0 && step->chained;
    char id[RV_ID_TEXT_BYTES];
    if (rv_task_state_open(task->state))
        return undoable ? RV_STR("; an undo of the task will undo this step, too")
                        : RV_STR("; an undo of the task will not undo this step");
    if (task->state != RV_TASK_PROCESSED || !undoable)
        return RV_STR("");
    return rv_arena_printf(d->arena,
                           "; you can undo the task: `reeve show %s` lists the late replies; give "
                           "their number to `reeve undo` with --late-seen",
                           rv_task_text(task->id, id).at);
}

static void late_call(struct draft *d, const struct rv_step *step, struct rv_str attempt,
                      struct rv_str output)
{
    enum { OUTPUT_SHOWN = 200 };
    const struct rv_task *task = &d->plan->task;
    bool shown = output.len <= OUTPUT_SHOWN;
    struct rv_str way = way_on(d, step);
    struct rv_str head = rv_task_state_open(task->state)
                             ? rv_arena_printf(d->arena, "the task continued without %.*s",
                                               RV_STR_FMT(step->reference))
                             : rv_arena_printf(
                                   d->arena, "the task is %s and counts %.*s as not done",
                                   rv_task_state_text(task->state), RV_STR_FMT(step->reference));
    draft_alert(
        d, step->number, RV_ALERT_LATE_DONE,
        rv_arena_printf(
            d->arena, "%.*s, but a late reply reports that %.*s of step %u was done%s%.*s%.*s",
            RV_STR_FMT(head), RV_STR_FMT(attempt), step->number, shown ? ", with the output " : "",
            shown ? (int)output.len : 0, output.at, RV_STR_FMT(way)));
}

/* A late `done` supplies the output that the compensation of an unknown outcome works with. */
static enum rv_verdict late_learn(struct draft *d, struct rv_step *step, uint32_t attempt,
                                  bool past)
{
    const struct rv_reply *reply = &d->command->u.reply;
    enum rv_task_state state = d->plan->task.state;
    rv_assert(reply->output.at != NULL);
    /* A person found that nothing had happened: control went on with his output, which stays. */
    bool passed = step->state == RV_STEP_SKIPPED && step->effect == RV_EFFECT_NONE;
    bool settled = step->state == RV_STEP_PROCESSED || (step->state == RV_STEP_SKIPPED && !passed);
    /* A processed task may be undone later. */
    bool may_be_undone = rv_task_state_open(state) || state == RV_TASK_PROCESSED;
    /* Its undo ended by an operator's word, which was wrong: there is something to undo. */
    bool undone_again = may_be_undone && step->direction == RV_FORWARD && step->undone &&
                        finding_is_nothing(step);
    if (undone_again) {
        step->undone = step->chained = false;
        passed = step->state == RV_STEP_SKIPPED;
        settled = false;
    }
    if (step->state == RV_STEP_SKIPPED && attempt == step->attempt)
        step->attempt_effect = RV_EFFECT_DONE; /* what an operator said is now the agent's word */
    if (settled || step->undone)
        return RV_DECIDED;
    bool news = step->effect != RV_EFFECT_DONE || !rv_str_eq(step->output, reply->output);
    step->effect = RV_EFFECT_DONE;
    if (finding_is_nothing(step)) /* it was wrong, and what comes later does not go by it */
        step->error = step->attempt_error;
    if (attempt == step->attempt)
        step->attempt_effect = RV_EFFECT_DONE;
    if (!passed)
        step->output = reply->output;
    if (news)
        RV_TRY(undo_learn(d, step->number));
    if (past && !step->chained && may_be_undone)
        undo_chain(d, step);
    return RV_DECIDED;
}

enum rv_verdict late_effect(struct draft *d, struct rv_step *step, uint32_t attempt)
{
    struct rv_str output = d->command->u.reply.output;
    bool past, undone;
    rv_assert(d->command->kind == RV_COMMAND_REPLY);
    rv_assert(step->number == d->command->step);
    if (output.at == NULL)
        return RV_DECIDED;
    RV_TRY(is_past(d, step, &past));
    enum rv_verdict verdict = is_undone_anyway(d, step, &undone);
    if (verdict == RV_UNREADABLE)
        undone = false;
    else
        RV_TRY(verdict);
    bool not_done = step->effect == RV_EFFECT_NONE ||
                    (step->effect != RV_EFFECT_DONE &&
                     (finding_is_nothing(step) ||
                      (!step->undone && step->state != RV_STEP_SKIPPED)));
    bool left = past && not_done && !undone && !task_is_abandoned(&d->plan->task);
    if (left && step->undone)
        step->effect = RV_EFFECT_DONE; /* known from now on: one call is enough */
    RV_TRY(late_learn(d, step, attempt, past));
    if (left)
        late_call(d, step, rv_arena_printf(d->arena, "attempt %u", attempt), output);
    return RV_DECIDED;
}

void late_left(struct draft *d, const struct rv_step *step)
{
    const struct rv_task *task = &d->plan->task;
    rv_assert(step->chained);
    if (step->effect == RV_EFFECT_DONE && step->state != RV_STEP_PROCESSED && !step->undone &&
        task->direction == RV_FORWARD)
        late_call(d, step, RV_STR("an attempt"), step->output.at ? step->output : RV_STR("null"));
}

void late_over(struct draft *d, const struct rv_step *step)
{
    struct rv_plan *plan = d->plan;
    rv_assert(step->undone);
    rv_assert(plan->late_over_count <= RV_PLAN_LATE_OVER_MAX);
    if (step->direction != RV_FORWARD || step->state == RV_STEP_PROCESSED ||
        step->effect != RV_EFFECT_DONE)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < plan->alerts_count; i++)
        if (plan->alerts[i].kind != RV_ALERT_LATE_DONE || plan->alerts[i].step != step->number)
            plan->alerts[kept++] = plan->alerts[i];
    plan->alerts_count = kept;
    if (plan->late_over_count == RV_PLAN_LATE_OVER_MAX)
        d->outgrown = true;
    else
        plan->late_over[plan->late_over_count++] = step->number;
}
