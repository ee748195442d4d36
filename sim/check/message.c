/* What a submitter is told fits what is written with it.
 *
 * N-04: messages are numbered without gaps, and only for tasks that have a reply queue. N-05: each
 * move of a task's state, and each step that an agent has completed, is told in the commit that
 * makes it, and nothing else is. */
#include "sim/check/check.h"

#include "sim/cast/hook.h"
#include "sim/world/world.h"

static void check_numbers(const struct transition *t)
{
    const struct rv_change *change = t->change;
    uint32_t before = t->past->row.last_message;
    bool wanted = t->task->reply_stream || t->task->reply_url.at != NULL;
    if (!wanted && change->messages_count > 0)
        world_violate(t->w, "N-04", "a task without a reply queue tells something");
    for (size_t i = 0; i < change->messages_count; i++)
        if (change->messages[i].number != before + i + 1)
            world_violate(t->w, "N-04", "message %u follows message %zu",
                          change->messages[i].number, before + i);
    if (t->task->last_message != before + change->messages_count)
        world_violate(t->w, "N-04", "%u messages are said to be there, and %zu are",
                      t->task->last_message, before + change->messages_count);
}

static bool tells_state(enum rv_message_kind kind, enum rv_task_state state)
{
    switch (kind) {
    case RV_MESSAGE_RECEIVED:
        return state == RV_TASK_PENDING;
    case RV_MESSAGE_STARTED:
    case RV_MESSAGE_RESUMED:
        return state == RV_TASK_PROCESSING;
    case RV_MESSAGE_PROCESSED:
        return state == RV_TASK_PROCESSED;
    case RV_MESSAGE_COMPENSATING:
        return state == RV_TASK_COMPENSATING;
    case RV_MESSAGE_COMPENSATED:
        return state == RV_TASK_COMPENSATED;
    case RV_MESSAGE_CANCELLED:
        return state == RV_TASK_CANCELLED;
    case RV_MESSAGE_ERROR:
        return state == RV_TASK_ERROR;
    case RV_MESSAGE_STEP_COMPLETED:
    case RV_MESSAGE_KIND_COUNT:
        break;
    }
    return false;
}

/* The newest that tells of a state tells of the one that the task has. */
static void check_states(const struct transition *t)
{
    bool moved = t->past->row.revision == 0 || t->past->row.state != t->task->state;
    const struct rv_message *newest = NULL;
    for (size_t i = 0; i < t->change->messages_count; i++)
        if (t->change->messages[i].kind != RV_MESSAGE_STEP_COMPLETED)
            newest = &t->change->messages[i];
    if (newest == NULL && moved)
        world_violate(t->w, "N-05", "nobody is told that the task is %s",
                      rv_task_state_text(t->task->state));
    if (newest != NULL && !tells_state(newest->kind, t->task->state))
        world_violate(t->w, "N-05", "the task is %s, and its submitter hears %s",
                      rv_task_state_text(t->task->state), rv_message_kind_text(newest->kind));
}

static size_t told_completed(const struct transition *t, uint32_t step)
{
    size_t count = 0;
    for (size_t i = 0; i < t->change->messages_count; i++)
        count += t->change->messages[i].kind == RV_MESSAGE_STEP_COMPLETED &&
                 t->change->messages[i].step == step;
    return count;
}

static void check_steps(const struct transition *t)
{
    size_t told = 0, all = 0;
    for (size_t i = 0; i < t->change->messages_count; i++)
        all += t->change->messages[i].kind == RV_MESSAGE_STEP_COMPLETED;
    for (size_t i = 0; i < t->change->steps_count; i++) {
        const struct rv_step *step = t->change->steps[i];
        const struct step_past *past = history_step(t->past, step->number);
        bool was = past != NULL && past->row.state == RV_STEP_PROCESSED;
        bool completed = step->kind == RV_KIND_CALL && step->state == RV_STEP_PROCESSED && !was;
        size_t count = told_completed(t, step->number);
        told += count;
        if (count != completed)
            world_violate(t->w, "N-05", "step %u %s completed, and that is told %zu times",
                          step->number, completed ? "is" : "is not", count);
    }
    if (told != all)
        world_violate(t->w, "N-05", "a step is told of that did not change");
}

void check_messages(const struct transition *t)
{
    check_numbers(t);
    for (size_t i = 0; i < t->change->messages_count; i++)
        hook_committed(t->w, &t->change->messages[i]);
    if (!t->task->reply_stream && t->task->reply_url.at == NULL)
        return;
    bool offender = false; /* what is told may be what the store refused (core/message.c) */
    for (size_t i = 0; i < t->change->alerts_count; i++)
        offender |= t->change->alerts[i].kind == RV_ALERT_OFFENDER;
    if (!offender)
        check_states(t);
    check_steps(t);
}
