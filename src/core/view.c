/* What always holds among the rows of one task, and when it must be looked at next. */
#include "core/decide.h"

#include "base/time.h"

#include <string.h>

static const struct rv_step *steps_find(const struct rv_step *const *steps, size_t count,
                                        uint32_t number)
{
    for (size_t i = 0; i < count; i++)
        if (steps[i]->number == number)
            return steps[i];
    return NULL;
}

bool rv_step_named(const struct rv_step *step)
{
    const struct rv_str names[] = {step->agent, step->target, step->instance, step->poll};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].len > 0 && memchr(names[i].at, '\0', names[i].len) != NULL)
            return false;
    return step->agent.at != NULL;
}

static const char *step_broken(const struct rv_task *task, const struct rv_step *step)
{
    if (step->unreadable)
        return "the row of a step has valid values";
    if (step->number == 0 || step->number > task->last_number)
        return "the number of a step is at most the last step number of the task";
    if ((step->direction == RV_UNDO) != (step->undoes != 0))
        return "the steps of a compensation, and no other steps, refer to the step that they undo";
    if (step->number == task->redo && step->state != RV_STEP_PENDING)
        return "the step that waits for an undo is pending";
    if (step->stale && step->direction != RV_UNDO)
        return "only the request of a compensation is made again";
    if (step->kind == RV_KIND_CALL && !rv_step_named(step))
        return "a call has the name of its agent, and its names have no NUL byte";
    if (step->undo_way > 1 + (uint32_t)RV_UNDO_PIVOT)
        return "a step's kind of compensation is valid";
    bool live = rv_attempt_state_live(step->attempt_state);
    if (live && (step->complete_by == 0 || step->lease_until == 0))
        return "a live attempt has a complete-by and a lease";
    if (live && step->lease_until > step->complete_by)
        return "a lease never ends after complete-by";
    bool ended = step->attempt_state != RV_ATTEMPT_NONE && !live;
    if (ended != (step->attempt_ended_at != 0))
        return "an attempt has an end time if and only if it has ended";
    if (live && step->state != RV_STEP_PROCESSING)
        return "a live attempt belongs to a step in processing";
    if (step->kind == RV_KIND_CALL && step->state == RV_STEP_PROCESSING && !live)
        return "a call in processing has a live attempt";
    if (step->state == RV_STEP_PROCESSED && step->kind == RV_KIND_CALL &&
        step->effect != RV_EFFECT_DONE)
        return "a processed call has an effect";
    if (step->fence > task->fence)
        return "the fence of a step is not greater than the fence of its task";
    if (step->attempt_state == RV_ATTEMPT_REVOKED && task->direction != RV_UNDO)
        return "an attempt is revoked only by an undo";
    return NULL;
}

static const char *open_broken(const struct rv_task *task, const struct rv_step *step)
{
    bool escalated = task->state == RV_TASK_ERROR;
    if (!rv_step_state_open(step->state) && !(escalated && step->state == RV_STEP_ERROR))
        return "the current steps of a task are open, or escalated with the task";
    if (rv_step_state_open(step->state) && step->ended_at != 0)
        return "an open step has no end time";
    if (step->frames.at == NULL)
        return "a current step has frames";
    if (task->state == RV_TASK_PENDING && step->state != RV_STEP_PENDING)
        return "a pending task has no step in processing";
    if (step->direction == RV_FORWARD && task->direction == RV_UNDO &&
        step->attempt_state != RV_ATTEMPT_REVOKED)
        return "while a task is undone, a forward step is open only if its attempt is revoked";
    if (step->direction == RV_FORWARD && step->chained)
        return "a current step is not in the undo chain";
    if (step->direction == RV_UNDO && task->direction == RV_FORWARD)
        return "compensations are open only while a task is undone";
    /* Not of one that is over: a step that was undone to be tried with another input is followed
     * by forward attempts, which may end unheard in their turn. */
    if (step->direction == RV_UNDO && step->created_at < task->quiet_at)
        return "a compensation begins after the deadline of each attempt without a reply";
    if (rv_step_state_open(step->state) && step->kind != RV_KIND_CALL && step->wake_at == 0)
        return "an open timer has a due time";
    if (step->kind == RV_KIND_WAIT && step->state != RV_STEP_PROCESSING)
        return "a wait is in processing until it ends";
    return NULL;
}

const char *rv_view_broken(const struct rv_task *task, const struct rv_step *const *steps,
                           size_t steps_count)
{
    if (task->unreadable)
        return "the row of a task has valid values";
    bool open = rv_task_state_open(task->state);
    if (!open && task->open_count != 0)
        return "a task that has ended has no open steps";
    if (open != (task->ended_at == 0))
        return "a task has an end time if and only if it has ended";
    if (task->state == RV_TASK_PENDING && task->open_count == 0)
        return "a pending task waits at a step";
    if (task->state == RV_TASK_PENDING && task->undo_head != 0)
        return "a pending task has nothing to undo";
    if (task->state == RV_TASK_PROCESSING && task->open_count == 0)
        return "a task in processing has a current step";
    if ((task->state == RV_TASK_COMPENSATING || task->state == RV_TASK_COMPENSATED) &&
        task->direction != RV_UNDO)
        return "a task that is being undone has the direction undo";
    bool forward_only = task->state == RV_TASK_PENDING || task->state == RV_TASK_PROCESSING ||
                        task->state == RV_TASK_PROCESSED;
    if (forward_only && task->direction != RV_FORWARD)
        return "a task that is being undone does not have the direction forward";
    if (task->state == RV_TASK_COMPENSATED && task->undo_head != 0)
        return "a compensated task has nothing left to undo";
    if (task->undo_error.at != NULL && (task->state != RV_TASK_ERROR || task->direction != RV_UNDO))
        return "a task has an undo error only if its undo has stopped";
    if (!open && (task->suspended_at != 0 || task->redo != 0))
        return "a task that has ended is not suspended and waits for nothing";
    if (task->redo != 0 && task->direction != RV_UNDO)
        return "a step waits for the undo of another step only while that undo exists";
    if (task->redo > task->last_number)
        return "the step that waits for an undo belongs to the task";
    if (task->undo_head > task->last_number || task->undo_blocker > task->last_number ||
        task->by_hand > task->last_number)
        return "the undo chain refers to steps of the task";
    bool forward = false, undo = false;
    for (uint32_t i = 0; i < task->open_count; i++) {
        const struct rv_step *step = steps_find(steps, steps_count, task->open[i]);
        if (step == NULL)
            return "every open step exists";
        const char *broken = open_broken(task, step);
        if (broken != NULL)
            return broken;
        if (rv_step_state_open(step->state) && step->direction == RV_UNDO)
            undo = true;
        else if (rv_attempt_state_live(step->attempt_state))
            forward = true;
    }
    if (forward && undo)
        return "no compensation is open while a forward attempt is live";
    for (size_t i = 0; i < steps_count; i++) {
        const char *broken = step_broken(task, steps[i]);
        if (broken != NULL)
            return broken;
    }
    return NULL;
}

static int64_t step_wake_at(const struct rv_task *task, const struct rv_step *step, int64_t now)
{
    bool live = rv_attempt_state_live(step->attempt_state);
    if (!rv_step_state_open(step->state) || (task->suspended_at != 0 && !live))
        return 0;
    int64_t at = step->wake_at;
    if (task->suspended_at != 0)
        return at;
    if (step->attempt_state != RV_ATTEMPT_REVOKED)
        at = rv_time_earlier(at, step->deadline);
    bool pending = step->kind == RV_KIND_CALL && step->state == RV_STEP_PENDING;
    if (pending && step->ready_at > now)
        at = rv_time_earlier(at, step->ready_at);
    if (pending && step->stale)
        at = rv_time_earlier(at, now);
    return at;
}

struct rv_str rv_attempt_error(const struct rv_step *step)
{
    switch (step->attempt_state) {
    case RV_ATTEMPT_FAILED:
    case RV_ATTEMPT_EXPIRED:
    case RV_ATTEMPT_LOST:
    case RV_ATTEMPT_CIRCUIT_OPEN:
        return step->attempt_error.at != NULL ? step->attempt_error : step->error;
    case RV_ATTEMPT_NONE:
    case RV_ATTEMPT_OPEN:
    case RV_ATTEMPT_REVOKED:
    case RV_ATTEMPT_DONE:
    case RV_ATTEMPT_UNDELIVERED:
    case RV_ATTEMPT_STATE_COUNT:
        break;
    }
    return RV_STR_NONE;
}

bool rv_step_undo_by_hand(const struct rv_step *step)
{
    return step->kind == RV_KIND_CALL && step->direction == RV_FORWARD &&
           step->effect != RV_EFFECT_NONE && !step->undone &&
           step->undo_way == 1 + (uint32_t)RV_UNDO_UNDECLARED;
}

struct rv_attempt rv_attempt_newest(struct rv_task_id task, const struct rv_step *step)
{
    return (struct rv_attempt){
        .step = {task, step->number},
        .number = step->attempt,
        .state = step->attempt_state,
        .effect = step->attempt_effect,
        .token = step->token,
        .fence = step->fence,
        .attempt_at = step->attempt_at,
        .complete_by = step->complete_by,
        .ended_at = step->attempt_ended_at,
        .retry_at = step->ready_at,
        .round = step->round,
        .instance = step->instance,
        .error = rv_attempt_error(step),
    };
}

bool rv_step_ready(const struct rv_task *task, const struct rv_step *step, int64_t now)
{
    bool held_back = task->suspended_at != 0 || step->stale;
    return step->kind == RV_KIND_CALL && step->state == RV_STEP_PENDING && step->ready_at <= now &&
           task->redo != step->number && !held_back;
}

/* No step is open: the undo goes on with what is next on its chain, at once, or when nothing can be
 * at work any more. Whether that one waits, its row says (undo.c, undo_waits); without it, the task
 * is looked at. */
static int64_t undo_wake_at(const struct rv_task *task, const struct rv_step *head, int64_t now)
{
    if (task->suspended_at != 0)
        return 0;
    bool waits = head != NULL && head->wake_at == task->quiet_at;
    return waits && task->quiet_at > now ? task->quiet_at : now;
}

int64_t rv_view_wake_at(const struct rv_task *task, const struct rv_step *const *steps,
                        size_t steps_count, int64_t now)
{
    if (!rv_task_state_open(task->state) || task->state == RV_TASK_ERROR)
        return 0;
    if (task->state == RV_TASK_COMPENSATING && task->open_count == 0)
        return undo_wake_at(task, steps_find(steps, steps_count, task->undo_head), now);
    int64_t at = 0;
    for (uint32_t i = 0; i < task->open_count; i++) {
        const struct rv_step *step = steps_find(steps, steps_count, task->open[i]);
        if (step != NULL)
            at = rv_time_earlier(at, step_wake_at(task, step, now));
    }
    return at;
}

const char *rv_view_due_broken(const struct rv_task *task, const struct rv_step *const *steps,
                               size_t steps_count, int64_t now)
{
    int64_t at = rv_view_wake_at(task, steps, steps_count, now);
    return at != 0 && at <= now ? "a task that is due changes when it is decided" : NULL;
}
