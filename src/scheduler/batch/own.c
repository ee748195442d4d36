/* Where several servers share a store each task has one owner, and any of them may decide on it:
 * whoever commits a change owns the task from then on. The one before finds out when it loads the
 * task for whatever reason, and forgets it then. */
#include "scheduler/batch/own.h"

#include "base/assert.h"
#include "dispatch/agents.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "store/store.h"

/* A task that another transaction has claimed is looked at again after this. */
enum { SKIPPED_MS = 100 };

bool task_is_own(const struct rv_scheduler *s, const struct rv_task *task)
{
    return !s->enlistment.shared || task->locked_by == s->enlistment.instance;
}

bool work_is_own(const struct rv_scheduler *s, const struct work *work)
{
    return work->stored == NULL || work->orphan || task_is_own(s, work->stored);
}

enum rv_err work_own(struct rv_scheduler *s, struct work *work)
{
    rv_assert(work->task != NULL);
    rv_assert(!work->changed);
    struct rv_task *task = RV_NEW(s->batch.arena, struct rv_task);
    if (task == NULL)
        return RV_ERR_MEMORY;
    *task = *work->task;
    task->revision = work->revision_before + 1;
    task->locked_by = s->enlistment.instance;
    work->task = task;
    work->changed = true;
    return RV_OK;
}

bool own_skipped(struct rv_scheduler *s, struct rv_task_id id)
{
    bool skipped = rv_map_find(&s->batch.skipped, (uint64_t)id.value, 0) != NULL;
    if (skipped)
        state_look_again(s, id, s->batch.now + SKIPPED_MS);
    return skipped;
}

/* What this batch has decided of it is not written. */
void own_forget(struct rv_scheduler *s, const struct work *work)
{
    for (size_t i = 0; i < work->steps_count; i++) {
        const struct work_step *step = &work->steps[i];
        agents_leave(&s->agents, work->id, step->stored != NULL ? step->stored : step->row);
    }
    rv_map_remove(&s->owned, (uint64_t)work->id.value, 0);
    rv_map_remove(&s->suspended, (uint64_t)work->id.value, 0);
    state_look_again(s, work->id, 0);
}

/* The revision that the caches know, and the round of the walk that has met the task last. */
enum { ROUND_BITS = 16 };

static uint64_t round_mark(uint64_t round)
{
    return round & ((UINT64_C(1) << ROUND_BITS) - 1);
}

static uint64_t owned_as(const struct rv_scheduler *s, int64_t revision)
{
    return (uint64_t)revision << ROUND_BITS | round_mark(s->supervisor.rounds);
}

enum rv_err own_note(struct rv_scheduler *s, const struct rv_task *task)
{
    uint64_t id = (uint64_t)task->id.value;
    rv_assert(task_is_own(s, task));
    if (!s->enlistment.shared)
        return RV_OK;
    if (rv_task_state_open(task->state))
        return rv_map_put(&s->owned, id, 0, owned_as(s, task->revision));
    rv_map_remove(&s->owned, id, 0);
    return RV_OK;
}

bool own_meet(struct rv_scheduler *s, const struct rv_scanned *row)
{
    uint64_t *owned = rv_map_find(&s->owned, (uint64_t)row->id.value, 0);
    rv_assert(s->enlistment.shared);
    if (owned == NULL)
        return false;
    uint64_t revision = *owned >> ROUND_BITS;
    *owned = owned_as(s, (int64_t)revision);
    return revision == (uint64_t)row->revision;
}

/* No row has revision 0. */
void own_doubt(struct rv_scheduler *s, struct rv_task_id id)
{
    uint64_t *owned = rv_map_find(&s->owned, (uint64_t)id.value, 0);
    if (owned != NULL)
        *owned = round_mark(*owned);
}

static bool is_owned(const void *self, struct rv_task_id id)
{
    return rv_map_find(&((const struct rv_scheduler *)self)->owned, (uint64_t)id.value, 0) != NULL;
}

/* What is taken out of the map moves others towards the slot that is looked at. */
void own_sweep(struct rv_scheduler *s, uint64_t round)
{
    const uint64_t met = round_mark(round), mask = (UINT64_C(1) << ROUND_BITS) - 1;
    struct rv_map *owned = &s->owned;
    for (size_t i = 0; i < owned->room; i++) {
        while (owned->slots[i].used && (owned->slots[i].value & mask) != met) {
            struct rv_task_id id = {(int64_t)owned->slots[i].a};
            rv_map_remove(&s->suspended, (uint64_t)id.value, 0);
            state_look_again(s, id, 0);
            rv_map_remove(owned, (uint64_t)id.value, 0);
        }
    }
    agents_keep(&s->agents, is_owned, s);
}
