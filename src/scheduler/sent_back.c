/* Steps that an agent sent back, since it has stopped asking their target. Each waits until the
 * instant that its own reply named, then behind the target's circuit if there is one; here an
 * operator's `close-circuit` finds the first of them, whatever it waits for. A step is known from
 * its row as committed, and leaves with the next attempt. */
#include "scheduler/agents_priv.h"

static void sent_back_remove(struct agent_kind *kind, struct rv_step_id id)
{
    rv_map_remove(&kind->sent_back, (uint64_t)id.task.value, id.number);
    rv_map_remove(&kind->sent_back_ranks, (uint64_t)id.task.value, id.number);
}

void sent_back_see(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step)
{
    uint64_t id = (uint64_t)task->id.value;
    bool waits = rv_task_state_open(task->state) && task->state != RV_TASK_ERROR &&
                 task->suspended_at == 0 && step->state == RV_STEP_PENDING &&
                 step->attempt_state == RV_ATTEMPT_PARKED && step->target.at != NULL;
    if (!waits && kind->sent_back.count == 0)
        return;
    uint64_t target = waits ? rv_hash(kind->agents->hash_key, step->target) : 0;
    uint64_t rank = (uint64_t)ready_place(task, step).rank;
    /* Without memory it is found by its circuit alone. */
    if (!waits || rv_map_put(&kind->sent_back, id, step->number, target) != RV_OK ||
        rv_map_put(&kind->sent_back_ranks, id, step->number, rank) != RV_OK)
        sent_back_remove(kind, (struct rv_step_id){task->id, step->number});
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
        int64_t rank = (int64_t)*rv_map_find(&kind->sent_back_ranks, slot->a, slot->b);
        bool before = rank != first_rank ? rank < first_rank : id.task.value < first.task.value;
        if (first.number != 0 && !before)
            continue;
        first = id;
        first_rank = rank;
    }
    return first;
}
