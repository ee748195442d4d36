#include "sim/store/unsettled.h"

#include "base/assert.h"
#include "sim/world/history.h"
#include "sim/world/world.h"

#include <string.h>

void unsettled_init(struct unsettled *u)
{
    *u = (struct unsettled){.count = 0};
    rv_arena_init(&u->arena, 0);
}

void unsettled_done(struct unsettled *u)
{
    rv_arena_done(&u->arena);
}

/* ---- deep copies ---- */

static void keep(struct unsettled *u, struct rv_str *text)
{
    if (text->at != NULL)
        *text = rv_arena_str(&u->arena, *text);
}

static const struct rv_task *task_keep(struct unsettled *u, const struct rv_task *of)
{
    struct rv_task *task = RV_NEW(&u->arena, struct rv_task);
    rv_assert(task != NULL);
    *task = *of;
    keep(u, &task->key);
    keep(u, &task->correlation);
    keep(u, &task->tags);
    keep(u, &task->reply_url);
    keep(u, &task->trace);
    keep(u, &task->tracestate);
    keep(u, &task->input);
    keep(u, &task->context);
    keep(u, &task->output);
    keep(u, &task->error);
    return task;
}

static const struct rv_step *step_keep(struct unsettled *u, const struct rv_step *of)
{
    struct rv_step *step = RV_NEW(&u->arena, struct rv_step);
    rv_assert(step != NULL);
    *step = *of;
    struct rv_str *const texts[] = {
        &step->reference, &step->iteration, &step->agent,         &step->target, &step->instance,
        &step->boot,      &step->poll,      &step->frames,        &step->data,   &step->input,
        &step->output,    &step->error,     &step->attempt_error,
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        keep(u, texts[i]);
    return step;
}

static void *rows_keep(struct unsettled *u, const void *rows, size_t count, size_t bytes)
{
    void *copy = rv_arena_zero(&u->arena, count + 1, bytes);
    rv_assert(copy != NULL);
    if (count > 0)
        memcpy(copy, rows, count * bytes);
    return copy;
}

static struct rv_change change_keep(struct unsettled *u, const struct rv_change *of)
{
    struct rv_change change = *of;
    change.task = task_keep(u, of->task);
    const struct rv_step **steps = rows_keep(u, of->steps, of->steps_count,
                                             sizeof(struct rv_step *));
    for (size_t i = 0; i < of->steps_count; i++)
        steps[i] = step_keep(u, of->steps[i]);
    change.steps = steps;
    change.steps_new = rows_keep(u, of->steps_new, of->steps_count, sizeof(bool));
    struct rv_attempt *attempts = rows_keep(u, of->attempts, of->attempts_count, sizeof *attempts);
    for (size_t i = 0; i < of->attempts_count; i++) {
        keep(u, &attempts[i].instance);
        keep(u, &attempts[i].error);
    }
    change.attempts = attempts;
    struct rv_late_reply *late = rows_keep(u, of->late_replies, of->late_replies_count,
                                           sizeof *late);
    for (size_t i = 0; i < of->late_replies_count; i++) {
        keep(u, &late[i].output);
        keep(u, &late[i].error);
    }
    change.late_replies = late;
    struct rv_alert *alerts = rows_keep(u, of->alerts, of->alerts_count, sizeof *alerts);
    for (size_t i = 0; i < of->alerts_count; i++) {
        keep(u, &alerts[i].acked_by);
        keep(u, &alerts[i].message);
        keep(u, &alerts[i].source);
    }
    change.alerts = alerts;
    struct rv_message *messages = rows_keep(u, of->messages, of->messages_count, sizeof *messages);
    for (size_t i = 0; i < of->messages_count; i++)
        keep(u, &messages[i].body);
    change.messages = messages;
    struct rv_history_row *history = rows_keep(u, of->history, of->history_count, sizeof *history);
    for (size_t i = 0; i < of->history_count; i++) {
        keep(u, &history[i].options);
        keep(u, &history[i].by);
        keep(u, &history[i].reason);
    }
    change.history = history;
    change.delivery = NULL;
    change.key = NULL;
    return change;
}

void unsettled_take(struct unsettled *u, const struct rv_batch *batch, int64_t now, int64_t at)
{
    rv_assert(u->changes == NULL);
    rv_arena_reset(&u->arena);
    u->changes = rows_keep(u, batch->changes, batch->changes_count, sizeof *u->changes);
    u->count = batch->changes_count;
    u->now = now;
    u->at = at;
    for (size_t i = 0; i < u->count; i++)
        u->changes[i] = change_keep(u, &batch->changes[i]);
}

/* ---- settling ---- */

static int64_t revision_of(struct unsettled *u, struct rv_store *store, struct rv_task_id id)
{
    const struct rv_task *task = NULL;
    enum rv_err err = store->ops->load_tasks(store, &u->arena, RV_COLUMNS_ALL, &id, 1, &task);
    return err == RV_OK && task != NULL ? task->revision : 0;
}

/* A change with another outcome than OK writes nothing, whatever became of its batch. Where the
 * commit did not come so far, outcomes say nothing, but then nothing is there either. */
bool unsettled_settle(struct unsettled *u, struct world *w, struct rv_store *store)
{
    size_t there = 0, wanted = 0;
    for (size_t i = 0; i < u->count; i++) {
        const struct rv_task *task = u->changes[i].task;
        if (u->changes[i].outcome != RV_OK)
            continue;
        int64_t revision = revision_of(u, store, task->id);
        if (revision == 0 && history_may_be_gone(w, task))
            continue; /* whether or not this was written */
        wanted++;
        there += revision == task->revision;
    }
    if (there != 0 && there != wanted)
        world_violate(w, "I-03", "of a batch of %zu changes %zu are in the store", wanted, there);
    int64_t now = w->now;
    w->now = u->at;
    for (size_t i = 0; i < u->count && there != 0; i++)
        if (u->changes[i].outcome == RV_OK)
            history_committed(w, store, &u->changes[i],
                              &(struct committed){.now = u->now, .begun_at = u->at});
    w->now = now;
    u->changes = NULL;
    u->count = 0;
    return there != 0;
}
