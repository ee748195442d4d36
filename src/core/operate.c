/* What an operator may do with a task as a whole: undo it, cancel it, suspend and resume it. */
#include "core/plan_priv.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/time.h"
#include "json/json.h"

#include <stdio.h>

#define ERROR_HEAD "{\"type\":\"%s\",\"status\":409,\"title\":\"%s\""

enum rv_verdict operate_refuse(struct draft *d, struct rv_str message)
{
    rv_assert(!d->plan->changed); /* a command is refused before it changes anything */
    rv_assert(d->plan->err == RV_OK);
    d->plan->err = RV_ERR_REFUSED;
    d->plan->message = message;
    return RV_DECIDED;
}

enum rv_verdict operate_refuse_state(struct draft *d, const char *verb, const char *cure)
{
    enum rv_task_state state = d->plan->task.state;
    return operate_refuse(d, rv_arena_printf(d->arena, "the task is %s%s and cannot be %s: %s",
                                             state == RV_TASK_ERROR ? "in " : "",
                                             rv_task_state_text(state), verb, cure));
}

/* Where control stands: the row and its frames. */
static enum rv_verdict stand_readable(struct draft *d, uint32_t number)
{
    const struct rv_step *step, *forward;
    struct rv_flow_env env;
    uint32_t *kept;
    uint32_t count;
    RV_TRY(draft_look(d, number, &step));
    if (step->direction == RV_UNDO)
        RV_TRY(draft_look(d, step->undoes, &forward));
    if (step->frames.at == NULL)
        return RV_DECIDED;
    RV_TRY(advance_env(d, RV_FORWARD, 0, &env));
    return advance_error(rv_flow_unfinished(&env, step->frames, &kept, &count));
}

enum rv_verdict operate_accept(struct draft *d)
{
    const struct rv_task *task = &d->plan->task;
    enum rv_command_kind kind = d->command->kind;
    bool undoes = task->direction == RV_UNDO || kind == RV_COMMAND_UNDO ||
                  kind == RV_COMMAND_CANCEL;
    bool goes_on = undoes || kind == RV_COMMAND_SETTLE || kind == RV_COMMAND_RESUBMIT;
    bool abandons = kind == RV_COMMAND_CANCEL && d->command->u.operate.abandon;
    const struct rv_step *head;
    for (uint32_t i = 0; i < task->open_count && goes_on && !abandons; i++)
        RV_TRY(stand_readable(d, task->open[i]));
    if (undoes && !abandons && task->undo_head != 0)
        RV_TRY(undo_head_look(d, &head));
    return d->command->asks ? RV_ACCEPTED : RV_DECIDED;
}

/* An undo that cannot get through is refused before it closes the way forward. */
static enum rv_verdict refuse_hindered(struct draft *d)
{
    const struct rv_task *task = &d->plan->task;
    const struct rv_step *step;
    enum undo_hindrance how;
    uint32_t number;
    RV_TRY(undo_hindered(d, &how, &number));
    if (how == UNDO_FREE || (how == UNDO_BY_HAND && d->command->u.operate.by_hand))
        return RV_DECIDED;
    RV_TRY(draft_look(d, number, &step));
    if (how == UNDO_NEVER)
        return operate_refuse(
            d,
            rv_arena_printf(
                d->arena,
                "step %u, %.*s, is a pivot (point of no return) and %s: the task cannot be undone",
                number, RV_STR_FMT(step->reference),
                number == task->pivot ? "was passed" : "may have been carried out"));
    return operate_refuse(
        d, rv_arena_printf(
               d->arena,
               "step %u, %.*s, may have had an effect and declares no compensation: with --by-hand "
               "the undo stops at this step until you have undone the step by hand and settled it",
               number, RV_STR_FMT(step->reference)));
}

/* Under way: the same command once more; where it was one step's alone, it is the task's now. */
static enum rv_verdict undo_whole(struct draft *d)
{
    const struct rv_task *task = &d->plan->task;
    const struct rv_step *next;
    if (task->redo == 0)
        return RV_DECIDED;
    RV_TRY(refuse_hindered(d));
    if (d->plan->err != RV_OK)
        return RV_DECIDED;
    RV_TRY(draft_look(d, task->redo, &next));
    RV_TRY(operate_accept(d));
    RV_TRY(undo_chain_unfinished(d, next));
    return resubmit_redo_drop(d);
}

enum rv_verdict operate_undo(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    if (task->state == RV_TASK_COMPENSATING)
        return undo_whole(d);
    if (task->state == RV_TASK_COMPENSATED || task->state == RV_TASK_CANCELLED)
        return operate_refuse_state(d, "undone", "only an open or a processed task can be undone");
    if (task->direction == RV_UNDO)
        return operate_refuse_state(d, "undone", "its undo has already begun, and has stopped");
    RV_TRY(refuse_hindered(d));
    if (d->plan->err != RV_OK)
        return RV_DECIDED;
    RV_TRY(operate_accept(d));
    return undo_begin(d);
}

struct rv_str operate_error(struct draft *d, const char *type, const char *title)
{
    struct rv_buf text;
    rv_buf_init(&text, RV_PAYLOAD_BYTES_MAX);
    rv_buf_printf(&text, ERROR_HEAD, type, title);
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

bool operate_error_is(struct rv_str error, const char *type, const char *title)
{
    char head[128];
    int len = snprintf(head, sizeof head, ERROR_HEAD, type, title);
    rv_assert(len > 0);
    rv_assert((size_t)len < sizeof head);
    return error.at != NULL && error.len > (size_t)len && memcmp(error.at, head, (size_t)len) == 0;
}

static const char abandoned[] = "The task was abandoned: its effects remain";

static struct rv_str error_cancelled(struct draft *d)
{
    return operate_error(d, "cancelled",
                         d->command->u.operate.abandon ? abandoned : "The task was cancelled");
}

bool task_is_abandoned(const struct rv_task *task)
{
    return operate_error_is(task->error, "cancelled", abandoned);
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
        attempt_effect(step, RV_EFFECT_UNKNOWN);
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
    RV_TRY(operate_accept(d));
    memcpy(open, task->open, sizeof open);
    for (uint32_t i = 0; i < count; i++)
        RV_TRY(step_abandon(d, open[i]));
    rv_assert(task->open_count == 0);
    enum rv_verdict dropped = resubmit_redo_drop(d);
    if (dropped == RV_UNREADABLE)
        task->redo = 0;
    else
        RV_TRY(dropped);
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
        return operate_refuse_state(d, "cancelled",
                                    task->state == RV_TASK_PROCESSED
                                        ? "it has ended; to undo a processed task use `reeve undo`"
                                        : "it has ended");
    if (d->command->u.operate.abandon)
        return operate_abandon(d);
    if (task->state == RV_TASK_COMPENSATING)
        return undo_whole(d);
    if (task->direction == RV_UNDO)
        return operate_undo(d);
    RV_TRY(refuse_hindered(d));
    if (d->plan->err != RV_OK)
        return RV_DECIDED;
    RV_TRY(operate_accept(d));
    task->cancelling = true;
    task->error = error_cancelled(d);
    if (task->error.at == NULL)
        return RV_NO_ROOM;
    return undo_begin(d);
}

/* The operator's word is above what delays a step: its ladder, a Retry-After, an open circuit. What
 * was counted stays counted. */
static void step_insist(struct draft *d, struct rv_step *step)
{
    rv_assert(step->kind == RV_KIND_CALL);
    if (step->called && step->deaths < RV_POISON_DEATHS)
        d->plan->close_alerts = true;
    step->called = false;
    step->insist = true;
    if (step->ready_at > d->command->now)
        step->ready_at = d->command->now;
    ladder_watch(step, d->command->now);
}

enum rv_verdict operate_retry(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    bool any = false;
    if (!rv_task_state_open(task->state))
        return operate_refuse_state(d, "tried now", "it has ended");
    if (task->state == RV_TASK_ERROR)
        return operate_refuse_state(d, "tried now", "resubmit it");
    if (task->suspended_at != 0)
        return operate_refuse(d, RV_STR("the task is suspended: resume the task first"));
    for (uint32_t i = 0; i < task->open_count; i++) {
        const struct rv_step *seen;
        struct rv_step *step;
        RV_TRY(draft_look(d, task->open[i], &seen));
        bool meant = d->command->step == 0 || d->command->step == seen->number;
        if (!meant || seen->kind != RV_KIND_CALL || seen->state != RV_STEP_PENDING)
            continue;
        if (!any)
            RV_TRY(operate_accept(d));
        RV_TRY(draft_step(d, task->open[i], &step));
        step_insist(d, step);
        any = true;
    }
    return any ? RV_DECIDED
               : operate_refuse(
                     d, RV_STR("no step of the task waits for an attempt: `reeve explain` shows "
                               "what the task waits for"));
}

/* Nothing new is handed out; open attempts finish or expire; timers that fall due run at resume. */
enum rv_verdict operate_suspend(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    if (!rv_task_state_open(task->state))
        return operate_refuse_state(d, "suspended", "it has ended");
    if (task->suspended_at != 0)
        return RV_DECIDED;
    RV_TRY(operate_accept(d));
    task->suspended_at = d->command->now;
    d->plan->changed = true;
    return RV_DECIDED;
}

enum rv_verdict operate_resume(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    if (task->suspended_at == 0)
        return RV_DECIDED;
    int64_t now = d->command->now;
    RV_TRY(operate_accept(d));
    task->suspended_at = 0;
    d->plan->changed = true;
    for (uint32_t i = 0; i < task->open_count; i++) {
        struct rv_step *step;
        RV_TRY(draft_step(d, task->open[i], &step));
        /* It has not waited for an agent meanwhile. */
        bool waits = step->kind == RV_KIND_CALL && step->state == RV_STEP_PENDING;
        if (waits && !step->called && step->ready_at < now)
            ladder_watch(step, now);
    }
    /* What called before is over, or calls anew (decide.c, calls_anew). */
    if (task->state != RV_TASK_ERROR)
        d->plan->close_alerts = true;
    return decide_wake_all(d);
}
