/* What a task's submitter has been told: a page, or the next ones when they are there. Messages are
 * read after the commit, so that those of the batch itself are among them. */

#include "base/assert.h"
#include "base/limits.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/queries/queries.h"

static enum rv_err messages_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call *call = p->call;
    struct rv_call_messages *messages = &call->u.messages;
    enum rv_err err = s->store->ops->load_tasks(s->store, &call->arena, RV_COLUMNS_PLAIN,
                                                &messages->task, 1, &messages->of);
    if (err != RV_OK)
        return err;
    if (messages->limit == 0 || messages->limit > RV_PAGE_ROWS_MAX)
        messages->limit = RV_PAGE_ROWS_MAX;
    if (messages->of == NULL) {
        query_no_task_text(call, messages->task);
    } else if (messages->of->reply_url.at == NULL && !messages->of->reply_stream) {
        call->err = RV_ERR_REFUSED;
        call->message = RV_STR(
            "this task was submitted without replyTo and has no messages. To wait for this task, "
            "use GET /v1/tasks/{task}?wait=PT20S; to receive messages about further tasks, submit "
            "them with --stream (\"replyTo\": {\"stream\": true})");
    }
    return RV_OK;
}

/* Those after `after`, as committed. */
static enum rv_err messages_read(struct rv_scheduler *s, struct rv_call *call)
{
    struct rv_call_messages *messages = &call->u.messages;
    const struct rv_task *task = messages->of;
    rv_assert(messages->limit > 0);
    rv_assert(messages->limit <= RV_PAGE_ROWS_MAX);
    messages->rows = RV_ROOM(&call->arena, struct rv_message, messages->limit);
    if (messages->rows == NULL)
        return call->arena.refused;
    messages->count = 0;
    enum rv_err err = s->store->ops->list_messages(s->store, &call->arena, messages->task,
                                                   messages->after, messages->limit, messages->rows,
                                                   &messages->count);
    if (err != RV_OK)
        return call->arena.refused != RV_OK ? call->arena.refused : err;
    rv_assert(messages->count <= messages->limit);
    uint32_t newest = messages->count > 0 ? messages->rows[messages->count - 1].number
                                          : messages->after;
    messages->over = !rv_task_state_open(task->state) && newest >= task->last_message;
    if (task->reply_url.at == NULL || messages->wait_ms > 0)
        return RV_OK;
    struct rv_delivery *delivery = RV_NEW(&call->arena, struct rv_delivery);
    size_t count = 0;
    if (delivery == NULL)
        return call->arena.refused;
    err = s->store->ops->list_deliveries(s->store, &call->arena, task->id, RV_STR_NONE,
                                         (struct rv_task_id){0}, 1, delivery, &count);
    messages->delivery = count > 0 ? delivery : NULL;
    return err;
}

static void messages_act(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call *call = p->call;
    struct rv_call_messages *messages = &call->u.messages;
    pending_unlink(&s->batch.calls, p);
    if (call->err != RV_OK) {
        pending_finish(s, p, call->err, call->message);
        return;
    }
    /* It was loaded before the commit. */
    const struct work *work = work_find(s, messages->task);
    if (work != NULL && work->changed && !work->dropped) {
        const struct rv_task *after = rv_row_copy(&rv_row_task, RV_COLUMNS_PLAIN, &call->arena,
                                                  work->task);
        messages->of = after != NULL ? after : messages->of;
    }
    enum rv_err err = messages_read(s, call);
    bool wait = err == RV_OK && messages->count == 0 && !messages->over && messages->wait_ms > 0 &&
                !s->draining;
    if (wait)
        pending_park_waiter(s, p, messages->task, messages->wait_ms);
    else
        pending_finish(s, p, err, err != RV_OK ? rv_str_of(rv_err_text(err)) : RV_STR_NONE);
}

static void messages_tell(struct rv_scheduler *s, struct pending *p, const struct work *work)
{
    struct rv_call_messages *messages = &p->call->u.messages;
    rv_assert(p->parked);
    rv_assert(work->id.value == messages->task.value);
    if (work->task->last_message <= messages->after && rv_task_state_open(work->task->state))
        return;
    messages->of = rv_row_copy(&rv_row_task, RV_COLUMNS_PLAIN, &p->call->arena, work->task);
    enum rv_err err = messages->of != NULL ? messages_read(s, p->call) : RV_ERR_MEMORY;
    pending_finish(s, p, err, err != RV_OK ? rv_str_of(rv_err_text(err)) : RV_STR_NONE);
}

static struct rv_task_id messages_wait_for(const struct rv_call *call)
{
    return call->u.messages.task;
}

/* Who reads a stream would ask again at once. */
const struct call_ops messages_ops = {.decide = messages_decide,
                                      .act = messages_act,
                                      .waits_for = messages_wait_for,
                                      .tell = messages_tell,
                                      .no_place = RV_ERR_BUSY,
                                      .asks = true,
                                      .waits = true};
