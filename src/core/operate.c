/* What an operator may do with a task: resubmit it where it is parked, undo it, cancel it. */
#include "core/plan_priv.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mutant.h"
#include "json/json.h"

static enum rv_verdict refuse(struct draft *d, struct rv_str message)
{
    d->plan->err = RV_ERR_REFUSED;
    d->plan->message = message;
    return RV_DECIDED;
}

static enum rv_verdict refuse_state(struct draft *d, const char *verb, const char *cure)
{
    return refuse(d, rv_arena_printf(d->arena, "the task is %s and cannot be %s: %s",
                                     rv_task_state_text(d->plan->task.state), verb, cure));
}

enum rv_verdict operate_resubmit(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    if (task->state != RV_TASK_ERROR)
        return refuse_state(d, "resubmitted", "only a task in error waits for that");
    bool undoing = task->direction == RV_UNDO && !RV_MUTANT_ON(RESUBMITTED_FORWARD);
    if (task->open_count == 0 && !undoing)
        return refuse(d, RV_STR("the error came from the workflow itself, and the same input and "
                                "definition would raise it again: undo or cancel the task"));
    if (task->open_count == 0 && task->undo_head != 0) {
        const struct rv_step *head;
        RV_TRY(draft_look(d, task->undo_head, &head));
        enum rv_undo_way way = rv_definition_undo_way(d->view->definition, head->node);
        if (way == RV_UNDO_UNDECLARED || way == RV_UNDO_PIVOT)
            return refuse(d, rv_arena_printf(d->arena,
                                             "step %.*s cannot be undone by Reeve, and a "
                                             "resubmission would stop at it again",
                                             RV_STR_FMT(head->reference)));
    }
    d->plan->close_alerts = true;
    d->plan->changed = true;
    if (!undoing)
        task->error = RV_STR_NONE;
    draft_task_move(d, undoing ? RV_TASK_COMPENSATING : RV_TASK_PROCESSING);
    for (uint32_t i = 0; i < task->open_count; i++) {
        struct rv_step *step;
        RV_TRY(draft_step(d, task->open[i], &step));
        if (step->state != RV_STEP_ERROR)
            continue;
        if (!RV_MUTANT_ON(RESUBMITTED_KEEPS_COUNT))
            step->failure_count = step->round = 0;
        step->deaths = 0;
        step->ended_at = 0;
        /* The operator's word is above a DSL timeout that has passed. */
        if (step->deadline <= d->command->now)
            step->deadline = 0;
        ladder_repeat(d, step, d->command->now);
    }
    return undo_next(d);
}

enum rv_verdict operate_undo(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    if (task->state == RV_TASK_COMPENSATING)
        return RV_DECIDED; /* under way: the same command once more */
    if (task->state == RV_TASK_COMPENSATED || task->state == RV_TASK_CANCELLED)
        return refuse_state(d, "undone", "nothing of it is left");
    if (task->direction == RV_UNDO)
        return refuse_state(d, "undone",
                            "its undo is parked, resubmit it to go on, or "
                            "cancel it with abandon to leave what was done");
    if (task->pivot != 0)
        return refuse(d, RV_STR("the task has passed its point of no return (pivot): it can only "
                                "go forward, resubmit it if it is in error, or cancel it with "
                                "abandon to leave what was done"));
    return undo_begin(d);
}

/* Who and why stays with the task. */
static struct rv_str error_cancelled(struct draft *d)
{
    struct rv_buf text;
    rv_buf_init(&text, RV_PAYLOAD_BYTES_MAX);
    rv_buf_printf(&text, "{\"type\":\"cancelled\",\"status\":409,\"title\":\"The task was %s\"",
                  d->command->u.operate.abandon ? "abandoned: what was done stays done"
                                                : "cancelled");
    if (d->command->u.operate.by.len > 0) {
        rv_buf_lit(&text, ",\"by\":");
        rv_json_write_string(&text, d->command->u.operate.by);
    }
    if (d->command->u.operate.reason.len > 0) {
        rv_buf_lit(&text, ",\"detail\":");
        rv_json_write_string(&text, d->command->u.operate.reason);
    }
    rv_buf_lit(&text, "}");
    struct rv_str made = text.failed == RV_OK ? rv_arena_str(d->arena, rv_buf_str(&text))
                                              : RV_STR_NONE;
    rv_buf_done(&text);
    return made;
}

static enum rv_verdict step_abandon(struct draft *d, uint32_t number)
{
    struct rv_step *step;
    enum rv_verdict verdict = draft_step(d, number, &step);
    if (verdict == RV_UNREADABLE) { /* its row stays as it is */
        draft_open_remove(d, number);
        return RV_DECIDED;
    }
    RV_TRY(verdict);
    if (rv_attempt_state_live(step->attempt_state)) {
        attempt_close(d, step, RV_ATTEMPT_LOST);
        if (step->effect == RV_EFFECT_NONE)
            step->effect = RV_EFFECT_UNKNOWN;
    }
    if (rv_step_may_move(step->state, RV_STEP_CANCELLED))
        rv_step_move(&step->state, RV_STEP_CANCELLED);
    step->ended_at = d->command->now;
    step->wake_at = 0;
    draft_open_remove(d, number);
    return RV_DECIDED;
}

/* The way out that is always there: the task ends where it stands, its effects are left (4.7). */
static enum rv_verdict operate_abandon(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    uint32_t open[RV_OPEN_STEPS_MAX];
    uint32_t count = task->open_count;
    memcpy(open, task->open, sizeof open);
    for (uint32_t i = 0; i < count; i++)
        RV_TRY(step_abandon(d, open[i]));
    task->error = error_cancelled(d);
    if (task->error.at == NULL)
        return RV_NO_ROOM;
    draft_task_move(d, RV_TASK_CANCELLED);
    task->ended_at = d->command->now;
    d->plan->close_alerts = true;
    d->plan->changed = true;
    return RV_DECIDED;
}

enum rv_verdict operate_cancel(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    if (task->state == RV_TASK_CANCELLED)
        return RV_DECIDED;
    if (!rv_task_state_open(task->state))
        return refuse_state(d, "cancelled", "it has ended; a processed task can be undone");
    if (d->command->u.operate.abandon)
        return operate_abandon(d);
    if (task->state == RV_TASK_COMPENSATING)
        return RV_DECIDED; /* it is being undone already */
    if (task->direction == RV_UNDO || task->pivot != 0)
        return operate_undo(d);
    task->cancelling = true;
    task->error = error_cancelled(d);
    if (task->error.at == NULL)
        return RV_NO_ROOM;
    return undo_begin(d);
}
