/* Steps that are ready are handed to polls, in the transaction that decides the rest of the batch:
 * dispatch/routing.c says which poll gets which, and here the attempt begins. */
#include "scheduler/calls/hand_out.h"

#include "base/assert.h"
#include "base/heap.h"
#include "base/prng.h"
#include "core/decide.h"
#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "dispatch/held.h"
#include "dispatch/kind.h"
#include "dispatch/limits.h"
#include "dispatch/routing.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/own.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/wake.h"
#include "scheduler/batch/work.h"
#include "scheduler/calls/polls.h"

static bool desk_has(void *self, struct rv_task_id task)
{
    return work_find(self, task) != NULL;
}

/* What others had claimed as the batch began they have still, most likely. */
static enum rv_err desk_load(void *self, const struct rv_step_id *ids, size_t count)
{
    struct rv_step_id mine[RV_HEAP_LEAST_MAX];
    size_t mine_count = 0;
    rv_assert(count <= RV_HEAP_LEAST_MAX);
    for (size_t i = 0; i < count; i++)
        if (!own_skipped(self, ids[i].task))
            mine[mine_count++] = ids[i];
    return work_claim(self, mine, mine_count);
}

/* The hint is believed only if the row says so. The owner escalates a task whose definition cannot
 * be read. Another transaction that hands out a step of the task may come to nothing: it is looked
 * at again. */
static enum rv_err desk_verify(void *self, const struct agent_kind *kind, struct rv_step_id id,
                               const struct rv_task **ret_task, const struct rv_step **ret_step)
{
    struct rv_scheduler *s = self;
    struct work *work;
    *ret_task = NULL;
    if (own_skipped(s, id.task))
        return RV_OK;
    enum rv_err err = work_get(s, id.task, &work);
    if (err != RV_OK || work->task == NULL || work->task->state == RV_TASK_ERROR)
        return err;
    bool own = task_is_own(s, work->task);
    if (!own && !work->stolen)
        return RV_OK;
    const struct rv_step *step = work_step(work, id.number);
    bool ready = step != NULL && rv_step_ready(work->task, step, work->now) &&
                 rv_str_is(step->agent, kind->name) &&
                 (step->deadline == 0 || step->deadline > work->now);
    if (ready && work->workflow != NULL && work->workflow->definition != NULL) {
        *ret_task = work->task;
        *ret_step = step;
    }
    if (!ready || *ret_task != NULL || !work_is_own(s, work))
        return RV_OK;
    struct rv_command command = {.kind = RV_COMMAND_WAKE, .seed = rv_prng_next(&s->prng)};
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    if (!wake_know(s, work, &command))
        return RV_OK;
    err = plan ? work_decide(s, work, &command, NULL, plan) : RV_ERR_MEMORY;
    if (err == RV_OK && plan->changed)
        work->found = true;
    return err;
}

static enum rv_err desk_give(void *self, struct seeker *seeker, struct rv_step_id id,
                             int64_t *ret_given_at)
{
    struct rv_scheduler *s = self;
    struct pending *p = pending_of(seeker);
    struct work *work = work_find(s, id.task);
    rv_assert(work != NULL); /* desk_verify has loaded it */
    rv_assert(p->admitted);
    rv_assert(seeker->given < seeker->max);
    struct rv_command command = {.kind = RV_COMMAND_ASSIGN,
                                 .seed = p->call->seed ^ rv_prng_next(&s->prng),
                                 .step = id.number};
    command.u.assign.instance = rv_arena_str(s->batch.arena, p->poll->instance);
    command.u.assign.boot = rv_arena_str(s->batch.arena, p->poll->boot);
    command.u.assign.poll = rv_arena_str(s->batch.arena, p->poll->poll);
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    if (plan == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = work_decide(s, work, &command, NULL, plan);
    *ret_given_at = err == RV_OK && plan->changed ? work->now : 0;
    if (*ret_given_at == 0)
        return err;
    work_step_of(work, id.number)->assigned = true;
    return polls_match_add(s, p, work, id.number, false);
}

static bool desk_enough(void *self)
{
    return batch_handed_enough(self);
}

/* Attempts that are out and that the caches hear of with this very batch: an operator takes their
 * task out of its error. They are as good as given. */
static void unknown_count(struct rv_scheduler *s, const struct work *work)
{
    bool counts = work->task != NULL && work->task->state != RV_TASK_ERROR;
    for (size_t i = 0; counts && i < work->steps_count; i++) {
        const struct rv_step *row = work->steps[i].row;
        bool out = row->kind == RV_KIND_CALL && rv_attempt_state_live(row->attempt_state) &&
                   held_find(&s->agents, (struct rv_step_id){work->id, row->number}) == NULL;
        struct agent_kind *kind = out ? agents_kind_find(&s->agents, row->agent) : NULL;
        if (kind != NULL) {
            kind->limit.given++;
            kind_stir(kind);
        }
    }
}

enum rv_err hand_out_match(struct rv_scheduler *s)
{
    struct desk desk = {.agents = &s->agents,
                        .now = s->batch.now,
                        .turn = s->batch.turn,
                        .load_max = share_load(s),
                        .has = desk_has,
                        .load = desk_load,
                        .verify = desk_verify,
                        .give = desk_give,
                        .enough = desk_enough,
                        .self = s};
    bool any = s->agents.concurrents > 0 && !s->agents.divides;
    limits_begin(&s->agents);
    for (const struct work *w = s->batch.works; any && w != NULL; w = w->next)
        unknown_count(s, w);
    if (s->agents.recovering || s->draining)
        return RV_OK;
    circuits_tick(&s->agents, s->batch.now);
    routing_begin(&s->agents);
    for (struct pending *p = s->batch.calls.last; p != NULL; p = p->prev)
        if (p->poll != NULL && p->admitted)
            routing_ask(&p->seeker);
    return routing_match(&desk);
}
