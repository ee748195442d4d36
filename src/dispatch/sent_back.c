/* Steps that an agent sent back, since it has stopped asking their target. Each waits until the
 * instant that its own reply named, then in the queue, behind the target's circuit if there is one;
 * here an operator's `close-circuit` finds the first of them, whatever it waits for, and the
 * overviews count those that are not in the queue. A step is known from its row as committed, and
 * leaves with the next attempt. */
#include "dispatch/sent_back.h"

#include "base/assert.h"
#include "core/decide.h"
#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "dispatch/kind.h"
#include "dispatch/ready.h"

static void sent_back_remove(struct agent_kind *kind, struct rv_step_id id)
{
    rv_map_remove(&kind->sent_back, (uint64_t)id.task.value, id.number);
    rv_map_remove(&kind->sent_back_ranks, (uint64_t)id.task.value, id.number);
    rv_map_remove(&kind->sent_back_since, (uint64_t)id.task.value, id.number);
    /* A step is in all three, or in none. */
    rv_assert(kind->sent_back_ranks.count == kind->sent_back.count);
    rv_assert(kind->sent_back_since.count == kind->sent_back.count);
}

static enum rv_err sent_back_fill(struct agent_kind *kind, const struct rv_task *task,
                                  const struct rv_step *step)
{
    uint64_t id = (uint64_t)task->id.value;
    struct ready_place place = ready_place(task, step);
    uint64_t target = rv_hash(kind->agents->hash_key, step->target);
    RV_TRY(rv_map_put(&kind->sent_back, id, step->number, target));
    RV_TRY(rv_map_put(&kind->sent_back_ranks, id, step->number, (uint64_t)place.rank));
    return rv_map_put(&kind->sent_back_since, id, step->number, (uint64_t)place.since);
}

static enum rv_err sent_back_put(struct agent_kind *kind, const struct rv_task *task,
                                 const struct rv_step *step)
{
    enum rv_err err = sent_back_fill(kind, task, step);
    if (err != RV_OK)
        sent_back_remove(kind, (struct rv_step_id){task->id, step->number});
    return err;
}

enum rv_err sent_back_see(struct agent_kind *kind, const struct rv_task *task,
                          const struct rv_step *step)
{
    bool waits = rv_task_state_open(task->state) && task->state != RV_TASK_ERROR &&
                 rv_step_ready(task, step, INT64_MAX) &&
                 step->attempt_state == RV_ATTEMPT_CIRCUIT_OPEN && step->target.at != NULL;
    if (waits)
        return sent_back_put(kind, task, step);
    if (kind->sent_back.count > 0)
        sent_back_remove(kind, (struct rv_step_id){task->id, step->number});
    return RV_OK;
}

void sent_back_forget(struct agent_kind *kind, struct rv_step_id step)
{
    sent_back_remove(kind, step);
}

struct rv_step_id sent_back_first(const struct agent_kind *kind, struct rv_str target)
{
    uint64_t hash = target.at != NULL ? rv_hash(kind->agents->hash_key, target) : 0;
    struct rv_step_id first = {.number = 0};
    int64_t first_rank = 0;
    for (size_t i = 0; i < kind->sent_back.room; i++) {
        const struct rv_map_slot *slot = &kind->sent_back.slots[i];
        if (!slot->used || (target.at != NULL && slot->value != hash))
            continue;
        struct rv_step_id id = {{(int64_t)slot->a}, (uint32_t)slot->b};
        const uint64_t *found = rv_map_find(&kind->sent_back_ranks, slot->a, slot->b);
        rv_assert(found != NULL);
        int64_t rank = (int64_t)*found;
        bool before = rank != first_rank ? rank < first_rank : id.task.value < first.task.value;
        if (first.number != 0 && !before)
            continue;
        first = id;
        first_rank = rank;
    }
    return first;
}

/* It waits for its own instant, and is not in the queue. */
static bool slot_waits(const struct agent_kind *kind, const struct rv_map_slot *slot)
{
    return slot->used && rv_map_find(&kind->queued, slot->a, slot->b) == NULL;
}

void kind_waiting(const struct agent_kind *kind, size_t *ret_count, int64_t *ret_since)
{
    int64_t since = INT64_MAX;
    size_t count = kind->queued.count;
    for (size_t i = 0; ret_since != NULL && count > 0 && i < kind->queued.room; i++) {
        const struct rv_map_slot *slot = &kind->queued.slots[i];
        if (slot->used && queued_since(slot->value) < since)
            since = queued_since(slot->value);
    }
    for (size_t i = 0; kind->sent_back_since.count > 0 && i < kind->sent_back_since.room; i++) {
        const struct rv_map_slot *slot = &kind->sent_back_since.slots[i];
        if (!slot_waits(kind, slot))
            continue;
        count++;
        since = (int64_t)slot->value < since ? (int64_t)slot->value : since;
    }
    *ret_count = count;
    if (ret_since != NULL)
        *ret_since = count > 0 ? since : 0;
}

void circuits_count_waiting(struct agent_kind *kind)
{
    for (struct circuit *c = kind->circuits.first; c != NULL; c = c->next)
        c->sent_back = 0;
    for (size_t i = 0; kind->sent_back.count > 0 && i < kind->sent_back.room; i++) {
        const struct rv_map_slot *slot = &kind->sent_back.slots[i];
        const uint64_t *found = slot_waits(kind, slot)
                                    ? rv_map_find(&kind->circuits_by_target, slot->value, 0)
                                    : NULL;
        if (found != NULL)
            ((struct circuit *)(uintptr_t)*found)->sent_back++;
    }
}
