/* A task as it stands, or when it has changed: the call may be parked until then. */

#include "base/assert.h"
#include "core/rows.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/calls/reads.h"
#include "scheduler/queries/queries.h"

static bool show_waits(const struct rv_scheduler *s, const struct pending *p,
                       const struct rv_task *task)
{
    const struct rv_call_show *show = &p->call->u.show;
    return show->wait_ms > 0 && !p->waited && task->revision <= show->after_revision &&
           rv_task_state_open(task->state) && !s->draining;
}

/* One that will wait for its task needs no payloads until then. Without memory for this look it is
 * read whole in its turn, and answered with what comes of that. */
static enum rv_err show_plain(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_show *show = &p->call->u.show;
    const struct rv_task *task = NULL;
    struct rv_arena *arena = &p->call->arena;
    struct rv_arena_mark mark = rv_arena_mark(arena);
    enum rv_err err = s->store->ops->load_tasks(s->store, arena, RV_COLUMNS_PLAIN, &show->task, 1,
                                                &task);
    if (arena->refused != RV_OK) {
        rv_arena_release(arena, mark);
        return RV_OK;
    }
    if (err != RV_OK || task == NULL || !show_waits(s, p, task))
        return err;
    show->found = task;
    p->plain = true;
    p->read = READ_DECIDED;
    return RV_OK;
}

static void show_act(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_show *show = &p->call->u.show;
    rv_assert(!p->parked);
    pending_unlink(&s->batch.calls, p);
    /* It was read before the commit: what this very batch has changed, nobody would tell it. */
    const struct work *work = work_find(s, show->task);
    if (show->found != NULL && work != NULL && work->changed && !work->dropped) {
        const struct rv_task *after = rv_row_copy(&rv_row_task,
                                                  p->plain ? RV_COLUMNS_PLAIN : RV_COLUMNS_ALL,
                                                  &p->call->arena, work->task);
        show->found = after ? after : show->found;
    }
    if (show->found != NULL && show_waits(s, p, show->found))
        pending_park_waiter(s, p, show->task, show->wait_ms);
    else if (p->plain)
        pending_read_again(s, p);
    else
        pending_finish(s, p, p->call->err, p->call->message);
}

static bool show_unread(struct rv_call *call)
{
    call->u.show.found = NULL;
    return false;
}

static struct rv_task_id show_waits_for(const struct rv_call *call)
{
    return call->u.show.task;
}

static void show_tell(struct rv_scheduler *s, struct pending *p, const struct work *work)
{
    const struct rv_task *task = work->task;
    struct rv_call_show *show = &p->call->u.show;
    rv_assert(p->parked);
    rv_assert(work->id.value == show->task.value);
    bool ended = !rv_task_state_open(task->state) || task->state == RV_TASK_ERROR;
    pending_waiter_answer(s, p, task, ended || task->revision > show->after_revision, &show->found);
}

const struct call_ops show_ops = {.decide = read_decide,
                                  .act = show_act,
                                  .read = query_show,
                                  .unread = show_unread,
                                  .read_plain = show_plain,
                                  .waits_for = show_waits_for,
                                  .tell = show_tell,
                                  .waits = true};
