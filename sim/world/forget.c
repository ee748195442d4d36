/* A server may lose the instant at which it must look at a task, by a defect. Nothing in the store
 * tells so, and its repair scan takes the task for known. The supervisor has to find what is
 * overdue. */
#include "sim/world/forget.h"

#include "scheduler/batch/state.h"
#include "sim/store/database.h"
#include "sim/world/fault.h"
#include "sim/world/fiber.h"
#include "sim/world/history.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

/* The end of the attempt is all that the server waits for. */
static bool waits_for_end(const struct server *s, struct task_past *task)
{
    const struct rv_task *row = &task->row;
    const struct step_past *step = row->open_count == 1 ? history_step(task, row->open[0]) : NULL;
    return rv_task_state_open(row->state) && row->state != RV_TASK_ERROR && !task->unreadable &&
           row->locked_by == rv_scheduler_enlistment(s->scheduler)->instance && step != NULL &&
           step->row.attempt_state == RV_ATTEMPT_OPEN;
}

void server_forget(struct server *s)
{
    struct world *w = s->world;
    const struct history *h = w->history;
    if (!s->up || fiber_paused(s->fiber) || h->count == 0)
        return;
    size_t from = (size_t)fault_roll(w, h->count);
    for (size_t i = 0; i < h->count; i++) {
        struct task_past *task = h->all[(from + i) % h->count];
        if (!waits_for_end(s, task))
            continue;
        enum rv_err err = rv_supervisor_note(&s->scheduler->supervisor, task->row.id, 0);
        rv_assert(err == RV_OK);
        task->forgotten = task->row.revision;
        world_say(w, s->name, "forgets when to look at task %llx",
                  (unsigned long long)task->row.id.value);
        return;
    }
}
