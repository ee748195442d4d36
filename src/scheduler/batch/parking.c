/* Calls that wait: polls for work, submissions and shows for their task. A parked call has an end
 * by the monotonic clock; whoever finishes it first takes it out of every list. */
#include "scheduler/batch/parking.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/list.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/pending_list.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"

#include <stdlib.h>

void pending_append(struct pending_list *list, struct pending *pending)
{
    rv_assert((list->first == NULL) == (list->last == NULL));
    RV_LIST_APPEND(list, pending, next, prev);
}

static bool came_before(const struct rv_call *call, const struct rv_call *other)
{
    return call->mono_at != other->mono_at ? call->mono_at < other->mono_at
                                           : call->serial < other->serial;
}

void pending_insert(struct pending_list *list, struct pending *pending)
{
    rv_assert((list->first == NULL) == (list->last == NULL));
    struct pending *after = list->first;
    while (after != NULL && !came_before(pending->call, after->call))
        after = after->next;
    pending->next = after;
    pending->prev = after != NULL ? after->prev : list->last;
    if (pending->prev != NULL)
        pending->prev->next = pending;
    else
        list->first = pending;
    if (after != NULL)
        after->prev = pending;
    else
        list->last = pending;
}

void pending_unlink(struct pending_list *list, struct pending *pending)
{
    rv_assert(pending->prev != NULL || list->first == pending);
    rv_assert(pending->next != NULL || list->last == pending);
    RV_LIST_REMOVE(list, pending, next, prev);
}

void pending_merge(struct pending_list *list, struct pending_list *other)
{
    rv_assert(list != other);
    struct pending_list into = {NULL, NULL};
    while (list->first != NULL || other->first != NULL) {
        bool is_older = list->first == NULL || (other->first != NULL &&
                                                came_before(other->first->call, list->first->call));
        struct pending_list *from = is_older ? other : list;
        struct pending *p = from->first;
        pending_unlink(from, p);
        pending_append(&into, p);
    }
    *list = into;
}

bool parking_carry_again(struct rv_scheduler *s, struct pending *p)
{
    enum { TRIES_MAX = 8 };
    rv_assert(!p->parked);
    if (++p->tries > TRIES_MAX)
        return false;
    pending_append(&s->carried, p);
    return true;
}

static struct pending_list *waiters_of(struct rv_scheduler *s, struct rv_task_id task)
{
    const uint64_t *found = rv_map_find(&s->waiters, (uint64_t)task.value, 0);
    return found ? (struct pending_list *)(uintptr_t)*found : NULL;
}

/* The instants of calls that were answered before are in the heap until they come: where they are
 * more than the calls, it is made anew. */
static enum rv_err parked_until_trim(struct rv_scheduler *s)
{
    enum { SPARE = 1024 };
    struct rv_heap kept;
    if (s->parked_until.count < 2 * s->parked_by_serial.count + SPARE)
        return RV_OK;
    rv_heap_init(&kept);
    enum rv_err err = RV_OK;
    for (size_t i = 0; i < s->parked_by_serial.room && err == RV_OK; i++) {
        const struct rv_map_slot *slot = &s->parked_by_serial.slots[i];
        const struct pending *p = (const struct pending *)(uintptr_t)slot->value;
        if (slot->used)
            err = rv_heap_push(&kept, p->until, slot->a, 0);
    }
    rv_heap_done(err == RV_OK ? &s->parked_until : &kept);
    if (err == RV_OK)
        s->parked_until = kept;
    return err;
}

enum rv_err pending_park(struct rv_scheduler *s, struct pending *p, int64_t wait_ms)
{
    rv_assert(!p->parked);
    rv_assert(p->ops->unpark != NULL || p->ops->waits_for != NULL);
    rv_assert(s->parked_until.count >= s->parked_by_serial.count);
    if (p->left)
        return RV_ERR_BUSY; /* nobody hears it */
    if (s->parked_by_serial.count >= s->options.polls_parked_max)
        return RV_ERR_BUSY;
    if (wait_ms > RV_WAIT_MS_MAX)
        wait_ms = RV_WAIT_MS_MAX;
    p->until = s->batch.mono_now + wait_ms;
    enum rv_err err = parked_until_trim(s);
    if (err == RV_OK)
        err = rv_map_put(&s->parked_by_serial, p->call->serial, 0, (uint64_t)(uintptr_t)p);
    if (err != RV_OK)
        return err;
    err = rv_heap_push(&s->parked_until, p->until, p->call->serial, 0);
    if (err != RV_OK) {
        rv_map_remove(&s->parked_by_serial, p->call->serial, 0);
        return err;
    }
    p->parked = true;
    return RV_OK;
}

void pending_park_waiter(struct rv_scheduler *s, struct pending *p, struct rv_task_id task,
                         int64_t wait_ms)
{
    rv_assert(p->ops->tell != NULL);
    rv_assert(p->ops->waits_for(p->call).value == task.value);
    struct pending_list *list = waiters_of(s, task);
    enum rv_err err = RV_OK;
    if (list == NULL) {
        list = calloc(1, sizeof *list);
        err = list ? rv_map_put(&s->waiters, (uint64_t)task.value, 0, (uint64_t)(uintptr_t)list)
                   : RV_ERR_MEMORY;
    }
    if (err == RV_OK)
        err = pending_park(s, p, wait_ms);
    if (err == RV_OK) {
        p->mark = rv_arena_mark(&p->call->arena);
        pending_append(list, p);
        return;
    }
    if (list != NULL && list->first == NULL) {
        rv_map_remove(&s->waiters, (uint64_t)task.value, 0);
        free(list);
    }
    /* Answered as it stands: waiting is a courtesy. But who reads a stream would ask at once. */
    if (p->plain)
        pending_read_again(s, p);
    else
        pending_finish(s, p, p->ops->no_place, RV_STR_NONE);
}

void pending_unpark(struct rv_scheduler *s, struct pending *p)
{
    if (!p->parked)
        return;
    rv_assert(rv_map_find(&s->parked_by_serial, p->call->serial, 0) != NULL);
    p->parked = false;
    rv_map_remove(&s->parked_by_serial, p->call->serial, 0);
    if (p->ops->unpark != NULL) {
        p->ops->unpark(s, p);
        return;
    }
    struct rv_task_id task = p->ops->waits_for(p->call);
    struct pending_list *list = waiters_of(s, task);
    rv_assert(list != NULL);
    pending_unlink(list, p);
    if (list->first == NULL) {
        rv_map_remove(&s->waiters, (uint64_t)task.value, 0);
        free(list);
    }
}

void pending_finish(struct rv_scheduler *s, struct pending *p, enum rv_err err,
                    struct rv_str message)
{
    struct rv_call *call = p->call;
    pending_unpark(s, p);
    evaluations_drop_of(s, p);
    rv_assert(!p->aside);
    rv_assert(p->evaluations == 0);
    if (err != RV_OK && p->ops->refuse != NULL && p->ops->refuse(s, p, err, message)) {
        err = RV_OK;
        message = RV_STR_NONE;
    }
    if (err != RV_OK || call->err == RV_OK) {
        call->err = err;
        if (message.at != NULL)
            call->message = message;
    }
    call->now = s->batch.now;
    call->mono_now = s->batch.mono_now;
    free(p);
    parking_finished_add(s, call);
}

void parking_finished_add(struct rv_scheduler *s, struct rv_call *call)
{
    rv_assert(call->finish != NULL);
    rv_assert((s->finished == NULL) == (s->finished_last == NULL));
    call->next = NULL;
    if (s->finished_last != NULL)
        s->finished_last->next = call;
    else
        s->finished = call;
    s->finished_last = call;
}

void parking_finished_flush(struct rv_scheduler *s)
{
    const struct rv_scheduler_finished *finished = &s->options.finished;
    struct rv_call *call = s->finished;
    bool some = call != NULL;
    s->finished = s->finished_last = NULL;
    while (call != NULL) {
        struct rv_call *next = call->next;
        call->finish(call);
        call = next;
    }
    if (some && finished->tell != NULL)
        finished->tell(finished->self);
}

/* It is answered with what there is. */
static void parked_end(struct rv_scheduler *s, struct pending *p)
{
    rv_assert(p->parked);
    if (p->plain)
        pending_read_again(s, p);
    else
        pending_finish(s, p, RV_OK, RV_STR_NONE);
}

void parking_expire(struct rv_scheduler *s)
{
    const struct rv_heap_entry *first;
    struct rv_heap_entry entry;
    while ((first = rv_heap_first(&s->parked_until)) != NULL && first->at <= s->batch.mono_now) {
        rv_heap_pop(&s->parked_until, &entry);
        const uint64_t *found = rv_map_find(&s->parked_by_serial, entry.value, 0);
        if (found != NULL)
            parked_end(s, (struct pending *)(uintptr_t)*found);
    }
}

static enum rv_err serials_enter(struct rv_scheduler *s, const struct pending_list *calls)
{
    enum rv_err err = RV_OK;
    for (struct pending *p = calls->first; p != NULL && err == RV_OK; p = p->next)
        err = rv_map_put(&s->batch.by_serial, p->call->serial, 0, (uint64_t)(uintptr_t)p);
    return err;
}

bool parking_left(struct rv_scheduler *s, uint64_t serial)
{
    const uint64_t *found = rv_map_find(&s->parked_by_serial, serial, 0);
    if (found != NULL)
        pending_finish(s, (struct pending *)(uintptr_t)*found, RV_OK, RV_STR_NONE);
    return found != NULL;
}

/* It may be in this very batch, or carried into the next one: steps are handed out, and calls are
 * parked, only after this. Without memory to find it, it parks, and nobody hears its answer. */
void call_left(struct rv_scheduler *s, uint64_t serial)
{
    if (parking_left(s, serial))
        return;
    if (s->batch.by_serial.count == 0 &&
        (serials_enter(s, &s->carried) != RV_OK || serials_enter(s, &s->batch.behind) != RV_OK ||
         serials_enter(s, &s->batch.calls) != RV_OK ||
         serials_enter(s, &s->evaluations.calls) != RV_OK))
        return;
    const uint64_t *found = rv_map_find(&s->batch.by_serial, serial, 0);
    if (found != NULL)
        ((struct pending *)(uintptr_t)*found)->left = true;
}

/* What is taken out of the map moves others towards the slot that is looked at, never behind it. */
void parking_finish_all(struct rv_scheduler *s)
{
    struct rv_map *parked = &s->parked_by_serial;
    for (size_t i = 0; parked->count > 0; i++)
        while (parked->slots[i].used)
            parked_end(s, (struct pending *)(uintptr_t)parked->slots[i].value);
}

void parking_refuse_all(struct rv_scheduler *s, enum rv_err err, struct rv_str message)
{
    struct rv_map *parked = &s->parked_by_serial;
    for (size_t i = 0; parked->count > 0; i++)
        while (parked->slots[i].used)
            pending_finish(s, (struct pending *)(uintptr_t)parked->slots[i].value, err, message);
}

bool parking_read_is_large(const struct rv_task *task)
{
    return task->input.len + task->context.len + task->output.len + task->error.len +
               task->undo_error.len >
           READ_SMALL;
}

void pending_read_again(struct rv_scheduler *s, struct pending *p)
{
    pending_unpark(s, p);
    rv_assert(!p->parked);
    p->plain = false;
    p->waited = true;
    pending_append(&s->carried, p);
}

void pending_waiter_answer(struct rv_scheduler *s, struct pending *p, const struct rv_task *task,
                           bool due, const struct rv_task **ret_task)
{
    struct rv_call *call = p->call;
    p->plain = p->plain || parking_read_is_large(task);
    /* Each answer takes the place of the one before: a task may change often while one waits. */
    rv_arena_release(&call->arena, p->mark);
    const struct rv_task *copy =
        p->plain ? NULL : rv_row_copy(&rv_row_task, RV_COLUMNS_ALL, &call->arena, task);
    *ret_task = copy;
    if (p->plain) {
        if (due)
            pending_read_again(s, p);
        return;
    }
    if (copy == NULL) {
        pending_finish(s, p, RV_ERR_MEMORY, RV_STR_NONE);
        return;
    }
    if (due)
        pending_finish(s, p, RV_OK, RV_STR_NONE);
}

void parking_waiters_tell(struct rv_scheduler *s, struct work *work)
{
    struct pending_list *list = waiters_of(s, work->id);
    struct pending *next;
    for (struct pending *p = list ? list->first : NULL; p != NULL; p = next) {
        next = p->next;
        rv_assert(p->parked);
        p->ops->tell(s, p, work);
    }
}

void parking_waiters_end(struct rv_scheduler *s, struct rv_task_id task)
{
    struct pending_list *list = waiters_of(s, task);
    struct pending *next;
    for (struct pending *p = list ? list->first : NULL; p != NULL; p = next) {
        next = p->next; /* the last one takes the list with it */
        parked_end(s, p);
    }
}
