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

static const void *row_keep(struct unsettled *u, const struct rv_row_kind *kind, const void *of)
{
    const void *copy = rv_row_copy(kind, RV_COLUMNS_ALL, &u->arena, of);
    rv_assert(copy != NULL);
    return copy;
}

static const void *rows_keep(struct unsettled *u, const struct rv_row_kind *kind, const void *rows,
                             size_t count)
{
    char *copies = rv_arena_room(&u->arena, count + 1, kind->bytes);
    rv_assert(copies != NULL);
    for (size_t i = 0; i < count; i++) {
        enum rv_err err = rv_row_read(kind, RV_COLUMNS_ALL, &u->arena,
                                      (const char *)rows + i * kind->bytes,
                                      copies + i * kind->bytes);
        rv_assert(err == RV_OK);
    }
    return copies;
}

static void *array_keep(struct unsettled *u, const void *of, size_t count, size_t bytes)
{
    void *copy = rv_arena_room(&u->arena, count + 1, bytes);
    rv_assert(copy != NULL);
    if (count > 0)
        memcpy(copy, of, count * bytes);
    return copy;
}

static struct rv_change change_keep(struct unsettled *u, const struct rv_change *of)
{
    struct rv_change change = *of;
    change.task = row_keep(u, &rv_row_task, of->task);
    const struct rv_step **steps = array_keep(u, of->steps, of->steps_count, sizeof *steps);
    for (size_t i = 0; i < of->steps_count; i++)
        steps[i] = row_keep(u, &rv_row_step, of->steps[i]);
    change.steps = steps;
    change.steps_new = array_keep(u, of->steps_new, of->steps_count, sizeof(bool));
    change.task_before = NULL;
    change.steps_before = NULL;
    change.attempts = rows_keep(u, &rv_row_attempt, of->attempts, of->attempts_count);
    change.late_replies = rows_keep(u, &rv_row_late_reply, of->late_replies,
                                    of->late_replies_count);
    change.alerts = rows_keep(u, &rv_row_alert, of->alerts, of->alerts_count);
    change.messages = rows_keep(u, &rv_row_message, of->messages, of->messages_count);
    change.history = rows_keep(u, &rv_row_history, of->history, of->history_count);
    change.delivery = NULL;
    change.key = NULL;
    return change;
}

void unsettled_take(struct unsettled *u, const struct rv_batch *batch, int64_t now, int64_t at)
{
    rv_assert(u->changes == NULL);
    rv_arena_reset(&u->arena);
    u->changes = array_keep(u, batch->changes, batch->changes_count, sizeof *u->changes);
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
            history_committed(
                w, store, &u->changes[i],
                &(struct committed){.now = u->now, .batch_now = u->now, .begun_at = u->at});
    w->now = now;
    u->changes = NULL;
    u->count = 0;
    return there != 0;
}
