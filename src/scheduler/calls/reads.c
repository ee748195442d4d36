/* Answers with large rows. What is loaded for them stays in memory until their maker has made its
 * answers of them, and clients that ask at once on many connections would have all of it loaded in
 * one batch. So each read is tried with little memory first, a few in each batch. If that is not
 * enough, it waits in line until the maker has let go of what was loaded before; small reads and
 * all else overtake it there. */
#include "scheduler/calls/reads.h"

#include "base/assert.h"
#include "scheduler/batch/absence.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/queries/explain.h"
#include "scheduler/queries/metrics.h"
#include "scheduler/queries/queries.h"
#include "scheduler/queries/query.h"
#include "scheduler/queries/status.h"

enum {
    READ_BATCH_BYTES = 4 * 1024 * 1024, /* a batch loads no more: others wait for its end */
    READ_TRIES_MAX = 16                 /* found to be large in one batch, for the same reason */
};

bool reads_have_room(const struct rv_scheduler *s)
{
    const struct rv_call_loads *loads = s->reads.first ? s->reads.first->call->loads : NULL;
    return s->reads.first != NULL && (loads == NULL || loads->room(loads->self));
}

/* Files that are displaced may be why nothing is written. */
static struct rv_store_problems problems_of(const struct rv_scheduler *s)
{
    bool displaced = s->place.err == RV_ERR_DISPLACED;
    return (struct rv_store_problems){
        .has = {[RV_STORE_IS_DISPLACED] = displaced,
                [RV_STORE_IS_FULL] = s->full || s->place.err == RV_ERR_FULL,
                [RV_STORE_IS_READ_ONLY] = !s->full && !displaced && absence_lasts(s),
                [RV_STORE_IS_DAMAGED] = s->damaged_at != 0},
        .displaced = displaced ? rv_str_of(s->place.why) : RV_STR_NONE};
}

struct query query_of(struct rv_scheduler *s)
{
    struct query query = {.store = s->store,
                          .now = s->batch.now,
                          .scratch = s->batch.arena,
                          .workflows = &s->workflows,
                          .agents = &s->agents,
                          .counts = &s->counts,
                          .failures = s->failures,
                          .size = &s->options.size,
                          .calls_parked = s->parked_by_serial.count,
                          .problems = problems_of(s)};
    return query;
}

/* An answer for which there is no room is its caller's trouble alone: the batch goes on. After rows
 * that cannot be read the transaction cannot: the others are asked to repeat their calls. */
static enum rv_err read_answer(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call *call = p->call;
    struct query query = query_of(s);
    enum rv_err err = p->ops->read(&query, call);
    if (call->arena.refused == RV_OK) {
        if (err == RV_ERR_CORRUPT)
            s->batch.damaged = p;
        return err;
    }
    if (p->ops->unread != NULL && p->ops->unread(call))
        return RV_OK;
    call->err = call->arena.refused;
    call->message = call->err == RV_ERR_LIMIT
                        ? RV_STR("the response is too large: if the request has the parameter "
                                 "`limit`, request fewer rows")
                        : rv_str_of(rv_err_text(call->err));
    return RV_OK;
}

enum rv_err read_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call *call = p->call;
    struct rv_arena *arena = &call->arena;
    rv_assert(p->ops->read != NULL);
    rv_assert(s->batch.read_tries <= READ_TRIES_MAX);
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
    enum rv_err err = read_answer(s, p);
    arena->bytes_max = before.arena.bytes_max;
    if (err != RV_OK || arena->refused != RV_ERR_LIMIT || !tried_with_less)
        return err;
    rv_arena_release(arena, mark);
    before.arena = *arena;
    *call = before;
    p->read = READ_LARGE;
    s->batch.read_tries++;
    return p->ops->read_plain != NULL ? p->ops->read_plain(s, p) : RV_OK;
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
        err = read_answer(s, p);
        rv_assert(call->arena.bytes_taken >= before);
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
        pending_finish(s, p, err, why);
    }
}

const struct call_ops steps_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = query_steps};
const struct call_ops attempts_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = query_attempts};
const struct call_ops late_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = query_late};
const struct call_ops history_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = query_history};
const struct call_ops tasks_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = query_tasks};
const struct call_ops alerts_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = query_alerts};
const struct call_ops workflows_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = query_workflows};
const struct call_ops agents_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = query_agents};
const struct call_ops status_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = status_read};
const struct call_ops metrics_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = metrics_read};

static bool explain_unread(struct rv_call *call)
{
    call->u.explain.found = NULL;
    return false;
}

const struct call_ops explain_ops = {.decide = read_decide,
                                     .act = answers_finish_act,
                                     .read = explain_read,
                                     .unread = explain_unread};
