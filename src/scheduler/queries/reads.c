/* Answers with large rows. What is loaded for them stays in memory until their maker has made its
 * answers of them, and clients that ask at once on many connections would have all of it loaded in
 * one batch. So each read is tried with little memory first, a few in each batch. If that is not
 * enough, it waits in line until the maker has let go of what was loaded before; small reads and
 * all else overtake it there. */
#include "scheduler/batch/state.h"

enum {
    READ_SMALL = 128 * 1024,            /* never waits */
    READ_BATCH_BYTES = 4 * 1024 * 1024, /* a batch loads no more: others wait for its end */
    READ_TRIES_MAX = 16                 /* found to be large in one batch, for the same reason */
};

bool reads_have_room(const struct rv_scheduler *s)
{
    const struct rv_call_loads *loads = s->reads.first ? s->reads.first->call->loads : NULL;
    return s->reads.first != NULL && (loads == NULL || loads->room(loads->self));
}

bool read_is_large(const struct rv_task *task)
{
    return task->input.len + task->context.len + task->output.len + task->error.len > READ_SMALL;
}

void read_again(struct rv_scheduler *s, struct pending *p)
{
    unpark(s, p);
    p->plain = false;
    p->waited = true;
    pending_append(&s->carried, p);
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

enum rv_err read_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call *call = p->call;
    struct rv_arena *arena = &call->arena;
    p->read = READ_LATER;
    if (s->batch.read_tries == READ_TRIES_MAX)
        return RV_OK;
    p->read = READ_DECIDED;
    struct rv_call before = *call;
    struct rv_arena_mark mark = rv_arena_mark(arena);
    size_t small = arena->bytes_taken + READ_SMALL;
    bool tried_with_less = arena->bytes_max == 0 || arena->bytes_max > small;
    if (tried_with_less)
        arena->bytes_max = small;
    enum rv_err err = query_answer(s, p);
    arena->bytes_max = before.arena.bytes_max;
    if (err != RV_OK || arena->refused != RV_ERR_LIMIT || !tried_with_less)
        return err;
    rv_arena_release(arena, mark);
    before.arena = *arena;
    *call = before;
    p->read = READ_LARGE;
    s->batch.read_tries++;
    return call->kind == RV_CALL_SHOW ? show_plain(s, p) : RV_OK;
}

static void reads_set_aside(struct rv_scheduler *s)
{
    struct pending *next;
    for (struct pending *p = s->batch.calls.first; p != NULL; p = next) {
        next = p->next;
        if (p->read == READ_DECIDED)
            continue;
        pending_unlink(&s->batch.calls, p);
        pending_append(p->read == READ_LARGE ? &s->reads : &s->carried, p);
        p->read = READ_DECIDED;
    }
}

enum rv_err reads_go_on(struct rv_scheduler *s)
{
    enum rv_err err = RV_OK;
    size_t bytes = 0;
    reads_set_aside(s);
    while (err == RV_OK && bytes < READ_BATCH_BYTES && reads_have_room(s)) {
        struct pending *p = s->reads.first;
        struct rv_call *call = p->call;
        size_t before = call->arena.bytes_taken;
        pending_unlink(&s->reads, p);
        pending_append(&s->batch.calls, p);
        err = query_answer(s, p);
        call->loaded_bytes = call->arena.bytes_taken - before;
        bytes += call->loaded_bytes;
        if (call->loads != NULL)
            call->loads->took(call->loads->self, call->loaded_bytes);
    }
    return err;
}

void reads_end(struct rv_scheduler *s, enum rv_err err, struct rv_str why)
{
    while (s->reads.first != NULL) {
        struct pending *p = s->reads.first;
        pending_unlink(&s->reads, p);
        finish(s, p, err, why);
    }
}
