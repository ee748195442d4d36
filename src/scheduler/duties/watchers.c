/* Calls that wait for a task: a submission or a look until its end, a stream for its next message.
 * Where others write, too, any of them may commit what is waited for: this server looks at these
 * tasks four times a second, little of each, and loads those that have changed. Retention may have
 * removed one before its end was seen here: then there is nothing to wait for. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/map.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/duties/duty.h"

#include <stdlib.h>

enum { LOOK_MS = 250, LOOKS_MAX = 10000 };

struct watchers {
    struct rv_map seen; /* task that is waited for -> its revision, as its waiters know it */
    int64_t look_at;
    size_t from;             /* slot of the waiters at which the next look begins */
    struct rv_task_id *gone; /* in the batch's arena: tasks that retention removed */
    size_t gone_count;
};

static enum rv_err watchers_open(struct rv_scheduler *s)
{
    s->watchers = calloc(1, sizeof *s->watchers);
    if (s->watchers == NULL)
        return RV_ERR_MEMORY;
    rv_map_init(&s->watchers->seen);
    return RV_OK;
}

static void watchers_close(struct rv_scheduler *s)
{
    if (s->watchers != NULL)
        rv_map_done(&s->watchers->seen);
    free(s->watchers);
}

/* Nobody was told, or what is remembered may never have been: all is looked at again. */
static void watchers_forget(struct rv_scheduler *s)
{
    rv_map_clear(&s->watchers->seen);
    s->watchers->gone = NULL;
    s->watchers->gone_count = 0;
}

/* Some of those that are waited for: as many as there is room for, from another one each time. */
static size_t waited_for(struct rv_scheduler *s, struct rv_task_id *ids)
{
    const struct rv_map *waiters = &s->waiters;
    size_t count = 0, looked = 0;
    for (; looked < waiters->room && count < LOOKS_MAX; looked++) {
        const struct rv_map_slot *slot =
            &waiters->slots[(s->watchers->from + looked) % waiters->room];
        if (slot->used)
            ids[count++] = (struct rv_task_id){(int64_t)slot->a};
    }
    s->watchers->from += looked;
    return count;
}

/* Those whose rows are not as their waiters know them; notes those that have none any more. */
static size_t changed_of(struct rv_scheduler *s, const struct rv_task_id *ids,
                         const struct rv_task *const *rows, size_t count,
                         struct rv_step_id *ret_changed)
{
    struct watchers *w = s->watchers;
    size_t changed = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t *seen = rv_map_find(&w->seen, (uint64_t)ids[i].value, 0);
        if (rows[i] == NULL)
            w->gone[w->gone_count++] = ids[i];
        else if (seen == NULL || *seen != (uint64_t)rows[i]->revision)
            ret_changed[changed++] = (struct rv_step_id){ids[i], 0};
    }
    return changed;
}

/* Waiters hear of every task that the batch has loaded. */
static enum rv_err changed_load(struct rv_scheduler *s, const struct rv_step_id *ids, size_t count)
{
    share_enter(s, SHARE_WATCHED);
    enum rv_err err = work_prefetch(s, ids, count);
    share_enter(s, SHARE_NONE);
    for (size_t i = 0; err == RV_OK && i < count; i++) {
        const struct work *work = work_find(s, ids[i].task);
        if (work == NULL)
            s->watchers->look_at = s->batch.now; /* the rest comes with the next batch */
        else if (work->task != NULL)
            err = rv_map_put(&s->watchers->seen, (uint64_t)work->id.value, 0,
                             (uint64_t)work->task->revision);
    }
    return err;
}

static enum rv_err watchers_plan(struct rv_scheduler *s)
{
    struct watchers *w = s->watchers;
    if (!s->enlistment.shared || s->waiters.count == 0) {
        if (w->seen.count > 0)
            rv_map_clear(&w->seen);
        return RV_OK;
    }
    if (s->batch.now < w->look_at)
        return RV_OK;
    w->look_at = s->batch.now + LOOK_MS;
    if (w->seen.count > 2 * s->waiters.count) /* most of them are not waited for any more */
        rv_map_clear(&w->seen);
    size_t room = s->waiters.count < LOOKS_MAX ? s->waiters.count : LOOKS_MAX;
    struct rv_task_id *ids = RV_NEW_ARRAY(s->batch.arena, struct rv_task_id, room);
    const struct rv_task **rows = RV_NEW_ARRAY(s->batch.arena, const struct rv_task *, room);
    struct rv_step_id *changed = RV_NEW_ARRAY(s->batch.arena, struct rv_step_id, room);
    w->gone = RV_NEW_ARRAY(s->batch.arena, struct rv_task_id, room);
    w->gone_count = 0;
    if (ids == NULL || rows == NULL || changed == NULL || w->gone == NULL)
        return RV_ERR_MEMORY;
    size_t count = waited_for(s, ids);
    rv_assert(count <= room);
    RV_TRY(s->store->ops->load_tasks(s->store, s->batch.arena, RV_COLUMNS_PLAIN, ids, count, rows));
    return changed_load(s, changed, changed_of(s, ids, rows, count, changed));
}

static void watchers_act(struct rv_scheduler *s)
{
    struct watchers *w = s->watchers;
    for (size_t i = 0; i < w->gone_count; i++)
        parking_waiters_end(s, w->gone[i]);
    w->gone = NULL;
    w->gone_count = 0;
}

static int64_t watchers_next_at(const struct rv_scheduler *s)
{
    return s->enlistment.shared && s->waiters.count > 0 ? s->watchers->look_at : INT64_MAX;
}

const struct duty watchers_duty = {.open = watchers_open,
                                   .plan = watchers_plan,
                                   .act = watchers_act,
                                   .fail = watchers_forget,
                                   .next_at = watchers_next_at,
                                   .forget = watchers_forget,
                                   .close = watchers_close};
