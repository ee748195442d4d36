/* Decisions that take longer than their turn. What a decision gives depends on its rows, its
 * command and nothing else, so it need not be made within one batch: it runs on rows and memory of
 * its own, a slice at a time after the batches, and its plan is taken in a later batch if its
 * task is as it was. Nothing of it is recorded before: after a crash it is evaluated again.
 *
 * Each has a state (evaluations_priv.h). QUEUED ones have no memory but what they were asked with;
 * the others have a place, with an arena that holds their rows. A few are PAUSED in their middle,
 * with a stack. The one whose workflow, then whose task owes least goes first (accounts.c). */
#include "scheduler/batch/evaluations.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/time.h"
#include "dispatch/agents.h"
#include "dispatch/held.h"
#include "scheduler/batch/accounts.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/commit.h"
#include "scheduler/batch/evaluation_priv.h"
#include "scheduler/batch/left.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/own.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/wake.h"
#include "scheduler/batch/work.h"

#include <stdlib.h>

enum { OWNERLESS_MAX = 1000, TAKE_MS = 25 };

void evaluations_init(struct evaluations *evaluations)
{
    *evaluations = (struct evaluations){.placed_count = 0};
    rv_map_init(&evaluations->by_asker);
    rv_map_init(&evaluations->by_task);
}

/* ---- who is there ---- */

struct evaluation *evaluation_find(const struct rv_scheduler *s, const struct asker *asker)
{
    const uint64_t *found = rv_map_find(&s->evaluations.by_asker, asker->a, asker->b);
    return found != NULL ? (struct evaluation *)(uintptr_t)*found : NULL;
}

bool evaluation_over(const struct evaluation *e)
{
    return e->state == EVALUATION_OVER;
}

bool evaluation_waits(const struct rv_scheduler *s, const struct asker *asker)
{
    const struct evaluation *e = evaluation_find(s, asker);
    return e != NULL && !evaluation_over(e);
}

struct rv_task_id evaluation_task(const struct evaluation *e)
{
    return e->task;
}

int64_t evaluations_rest(struct rv_scheduler *s)
{
    int64_t soon = rv_time_add(s->batch.now, RV_SECOND_MS);
    int64_t after = rv_time_add(s->evaluations.rest_until, 1);
    s->evaluations.rest_until = soon > after ? soon : after;
    return s->evaluations.rest_until;
}

bool evaluations_full(const struct rv_scheduler *s)
{
    return s->evaluations.ownerless >= OWNERLESS_MAX;
}

static struct evaluation *first_of(const struct rv_scheduler *s, struct rv_task_id task)
{
    const uint64_t *found = rv_map_find(&s->evaluations.by_task, (uint64_t)task.value, 0);
    return found != NULL ? (struct evaluation *)(uintptr_t)*found : NULL;
}

bool evaluations_of(const struct rv_scheduler *s, struct rv_task_id task)
{
    return s->evaluations.by_task.count > 0 && first_of(s, task) != NULL;
}

bool evaluations_reply(const struct rv_scheduler *s, struct rv_step_id step, uint64_t token)
{
    if (s->evaluations.by_task.count == 0)
        return false;
    for (const struct evaluation *e = first_of(s, step.task); e != NULL; e = e->same_task)
        if (e->command.kind == RV_COMMAND_REPLY && e->command.step == step.number &&
            e->command.token == token)
            return true;
    return false;
}

void evaluations_hold(struct rv_scheduler *s, struct pending *caller)
{
    /* What it awaits may have been taken in this batch, which may not have been committed: it comes
     * back behind that (evaluations_awaited). */
    caller->aside = caller->awaits.value != 0 ||
                    (caller->evaluating > 0 && caller->evaluating == caller->evaluations &&
                     !caller->bounded);
    if (caller->aside && s->evaluations.aside >= s->options.polls_parked_max) {
        caller->aside = false;
        pending_finish(
            s, caller, RV_ERR_BUSY,
            RV_STR("too many expressions are being evaluated: send the request again later"));
        return;
    }
    rv_assert(caller->evaluating <= caller->evaluations);
    s->evaluations.aside += caller->aside;
    pending_append(caller->aside ? &s->evaluations.calls : &s->carried, caller);
}

void evaluations_unhold(struct rv_scheduler *s, struct pending *caller)
{
    rv_assert(caller->aside);
    rv_assert(s->evaluations.aside > 0);
    caller->aside = false;
    s->evaluations.aside--;
    pending_unlink(&s->evaluations.calls, caller);
}

/* Its caller is decided again in the next batch. */
void evaluation_caller_carry(struct rv_scheduler *s, struct pending *caller)
{
    if (caller == NULL || !caller->aside)
        return;
    evaluations_unhold(s, caller);
    pending_insert(&s->carried, caller);
}

void evaluations_awaited(struct rv_scheduler *s)
{
    struct pending *next;
    for (struct pending *p = s->evaluations.left ? s->evaluations.calls.first : NULL; p != NULL;
         p = next) {
        next = p->next;
        if (p->awaits.value != 0 && !evaluations_of(s, p->awaits))
            evaluation_caller_carry(s, p);
    }
    s->evaluations.left = false;
}

/* ---- places ---- */

static void queue_add(struct evaluation *e, bool first)
{
    rv_assert((e->debtor->first == NULL) == (e->debtor->last == NULL));
    struct debtor *debtor = e->debtor;
    e->state = EVALUATION_QUEUED;
    e->next = first ? debtor->first : NULL;
    e->prev = first ? NULL : debtor->last;
    if (e->next != NULL)
        e->next->prev = e;
    else
        debtor->last = e;
    if (e->prev != NULL)
        e->prev->next = e;
    else
        debtor->first = e;
}

static void queue_remove(struct evaluation *e)
{
    rv_assert(e->debtor->first != NULL);
    RV_LIST_REMOVE(e->debtor, e, next, prev);
}

void evaluation_fiber_back(struct evaluation *e)
{
    struct evaluations *all = &e->s->evaluations;
    if (e->fiber == NULL)
        return;
    rv_assert(all->idle_count < EVALUATIONS_PAUSED_MAX);
    all->idle[all->idle_count++] = e->fiber;
    e->fiber = NULL;
}

/* Out of its middle: whatever it holds is given back on the way. */
static void unwind(struct evaluation *e)
{
    struct evaluations *all = &e->s->evaluations;
    if (e->state != EVALUATION_PAUSED)
        return;
    rv_assert(e->fiber != NULL);
    rv_assert(all->paused_count > 0);
    rv_assert(e->debtor->paused > 0);
    e->stops = true;
    while (!e->s->options.fibers->go_on(e->fiber))
        continue;
    e->stops = false;
    evaluation_fiber_back(e);
    all->paused_count--;
    e->debtor->paused--;
}

void evaluation_place(struct evaluation *e)
{
    struct evaluations *all = &e->s->evaluations;
    rv_assert(e->work.workflow != NULL);
    queue_remove(e);
    RV_STACK_PUSH(all->placed, e, next, prev);
    all->placed_count++;
    e->debtor->placed++;
    e->pinned = e->work.workflow;
    e->pinned->pins++;
}

static void place_leave(struct evaluation *e)
{
    struct evaluations *all = &e->s->evaluations;
    unwind(e);
    all->over_count -= e->state == EVALUATION_OVER;
    rv_assert(all->placed_count > 0);
    rv_assert(e->debtor->placed > 0);
    rv_assert(e->pinned->pins > 0);
    all->placed_count--;
    e->debtor->placed--;
    RV_STACK_REMOVE(all->placed, e, next, prev);
    e->pinned->pins--;
}

/* It has its verdict. While others have work it waits for a batch that writes something of theirs:
 * else each of many small results would cost them a transaction. */
void evaluation_end(struct evaluation *e)
{
    struct rv_scheduler *s = e->s;
    rv_assert(e->state != EVALUATION_OVER);
    e->state = EVALUATION_OVER;
    e->over_in = s->batch.turn;
    if (e->asker.caller != NULL) {
        rv_assert(e->asker.caller->evaluating > 0);
        e->asker.caller->evaluating--;
    }
    if (s->evaluations.over_count++ == 0)
        s->evaluations.take_at = s->batch.mono_now + (accounts_idle(s) ? 0 : TAKE_MS);
}

/* As if it had never been begun. */
void evaluation_restart(struct evaluation *e)
{
    rv_assert(e->state != EVALUATION_QUEUED);
    if (e->asker.caller != NULL && e->state == EVALUATION_OVER)
        e->asker.caller->evaluating++;
    place_leave(e);
    rv_arena_done(&e->arena);
    queue_add(e, true);
}

/* ---- from and to askers ---- */

static struct debtor *debtor_of(struct rv_scheduler *s, int64_t workflow)
{
    struct debtor *debtor = s->evaluations.debtors;
    while (debtor != NULL && debtor->workflow != workflow)
        debtor = debtor->next;
    if (debtor != NULL)
        return debtor;
    debtor = calloc(1, sizeof *debtor);
    if (debtor == NULL)
        return NULL;
    debtor->workflow = workflow;
    debtor->next = s->evaluations.debtors;
    s->evaluations.debtors = debtor;
    return debtor;
}

static void debtor_leave(struct rv_scheduler *s, struct debtor *debtor)
{
    if (debtor->first != NULL || debtor->placed > 0)
        return;
    struct debtor **place = &s->evaluations.debtors;
    rv_assert(debtor->last == NULL);
    rv_assert(debtor->paused == 0);
    while (*place != debtor)
        place = &(*place)->next;
    *place = debtor->next;
    free(debtor);
}

static enum rv_err enter(struct rv_scheduler *s, struct evaluation *e)
{
    struct evaluations *all = &s->evaluations;
    rv_assert(evaluation_find(s, &e->asker) == NULL);
    enum rv_err err = rv_map_put(&all->by_asker, e->asker.a, e->asker.b, (uint64_t)(uintptr_t)e);
    if (err != RV_OK || e->command.kind == RV_COMMAND_SUBMIT)
        return err;
    e->same_task = first_of(s, e->task);
    err = rv_map_put(&all->by_task, (uint64_t)e->task.value, 0, (uint64_t)(uintptr_t)e);
    if (err != RV_OK)
        rv_map_remove(&all->by_asker, e->asker.a, e->asker.b);
    return err;
}

/* Nobody finds it any more. */
static void leave(struct evaluation *e)
{
    struct evaluations *all = &e->s->evaluations;
    rv_assert(e->asker.caller != NULL || all->ownerless > 0);
    rv_assert(e->s->counts.long_decisions_open > 0);
    rv_map_remove(&all->by_asker, e->asker.a, e->asker.b);
    all->ownerless -= e->asker.caller == NULL;
    e->s->counts.long_decisions_open--;
    all->left = true;
    if (e->command.kind == RV_COMMAND_SUBMIT)
        return;
    struct evaluation *first = first_of(e->s, e->task);
    if (first == e && e->same_task == NULL) {
        rv_map_remove(&all->by_task, (uint64_t)e->task.value, 0);
    } else if (first == e) {
        *rv_map_find(&all->by_task, (uint64_t)e->task.value, 0) = (uint64_t)(uintptr_t)e->same_task;
    } else {
        while (first->same_task != e)
            first = first->same_task;
        first->same_task = e->same_task;
    }
    e->same_task = NULL;
}

static void evaluation_free(struct evaluation *e)
{
    rv_arena_done(&e->texts);
    rv_arena_done(&e->arena);
    free(e);
}

/* Nobody has to take what comes of it. */
static bool decides_itself(const struct evaluation *e)
{
    return e->asker.a == ASKER_WAKE || e->asker.a == ASKER_END;
}

/* Bulk commands are the only ones without a caller that bring texts. */
static bool texts_copy(struct evaluation *e)
{
    if (e->asker.caller != NULL || decides_itself(e))
        return true;
    e->command.u.operate.by = rv_arena_str(&e->texts, e->command.u.operate.by);
    e->command.u.operate.reason = rv_arena_str(&e->texts, e->command.u.operate.reason);
    return e->texts.refused == RV_OK;
}

enum rv_err evaluation_new(struct rv_scheduler *s, const struct asker *asker,
                           const struct work *work, const struct rv_command *command, int64_t used)
{
    struct evaluation *e = calloc(1, sizeof *e);
    if (e == NULL)
        return RV_ERR_MEMORY;
    e->s = s;
    e->asker = *asker;
    e->command = *command;
    e->command.pace = &e->pace;
    e->task = work->id;
    e->used = used;
    rv_arena_init(&e->texts, 0);
    rv_arena_init(&e->arena, 0);
    e->debtor = debtor_of(s, work->workflow->row.id);
    if (e->debtor == NULL || !texts_copy(e) || enter(s, e) != RV_OK) {
        if (e->debtor != NULL)
            debtor_leave(s, e->debtor);
        evaluation_free(e);
        return RV_ERR_MEMORY;
    }
    queue_add(e, false);
    s->counts.long_decisions++;
    s->counts.long_decisions_open++;
    if (asker->caller != NULL) {
        asker->caller->evaluating++;
        asker->caller->evaluations++;
    } else {
        s->evaluations.ownerless++;
    }
    return RV_OK;
}

void evaluation_drop(struct rv_scheduler *s, struct evaluation *e)
{
    struct pending *caller = e->asker.caller;
    struct debtor *debtor = e->debtor;
    leave(e);
    if (caller != NULL) {
        caller->evaluating -= e->state != EVALUATION_OVER;
        rv_assert(caller->evaluations > 0);
        caller->evaluations--;
        rv_assert(caller->evaluating <= caller->evaluations);
    }
    if (e->state == EVALUATION_QUEUED)
        queue_remove(e);
    else
        place_leave(e);
    debtor_leave(s, debtor);
    /* What was not looked at while this was under way. */
    if (e->command.kind != RV_COMMAND_SUBMIT)
        state_look_again(s, e->task, s->batch.now);
    evaluation_free(e);
}

void evaluations_drop_of(struct rv_scheduler *s, const struct pending *caller)
{
    if (caller->evaluations == 0)
        return;
    struct rv_map *map = &s->evaluations.by_asker;
    for (size_t i = 0; i < map->room;) {
        struct evaluation *e = map->slots[i].used
                                   ? (struct evaluation *)(uintptr_t)map->slots[i].value
                                   : NULL;
        if (e != NULL && e->asker.caller == caller)
            evaluation_drop(s, e); /* another one may have moved into its place */
        else
            i++;
    }
}

void evaluations_forget(struct rv_scheduler *s)
{
    struct rv_map *map = &s->evaluations.by_asker;
    while (s->evaluations.calls.first != NULL) /* in the order in which they came */
        evaluation_caller_carry(s, s->evaluations.calls.first);
    while (map->count > 0) {
        size_t i = 0;
        while (!map->slots[i].used)
            i++;
        struct evaluation *e = (struct evaluation *)(uintptr_t)map->slots[i].value;
        evaluation_drop(s, e);
    }
}

void evaluations_release(struct rv_scheduler *s)
{
    while (s->evaluations.taken != NULL) {
        struct evaluation *e = s->evaluations.taken;
        s->evaluations.taken = e->next;
        evaluation_free(e);
    }
}

void evaluations_done(struct rv_scheduler *s)
{
    struct evaluations *all = &s->evaluations;
    evaluations_forget(s);
    evaluations_release(s);
    while (all->idle_count > 0)
        s->options.fibers->close(all->idle[--all->idle_count]);
    rv_map_done(&all->by_asker);
    rv_map_done(&all->by_task);
}

/* ---- what comes of it ---- */

static bool task_as_it_was(const struct evaluation *e, const struct work *work)
{
    if (e->command.kind == RV_COMMAND_SUBMIT) /* and no new version was published */
        return work->task == NULL && work->workflow->row.id == e->debtor->workflow;
    return work->id.value == e->task.value && work->task != NULL && !work->changed &&
           work->broken == NULL && work->task->revision == e->work.task->revision;
}

/* Steps that were loaded for the decision alone: the batch has them as they are before it. */
static enum rv_err steps_load(struct rv_scheduler *s, const struct evaluation *e, struct work *work)
{
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < e->plan->steps_count; i++)
        if (!e->plan->steps[i].insert)
            err = work_step_load(s, work, e->plan->steps[i].row->number);
    return err;
}

enum rv_err evaluation_take(struct rv_scheduler *s, struct evaluation *e, struct work *work,
                            bool *ret_taken, enum rv_verdict *ret_verdict, struct rv_plan *ret_plan,
                            int64_t *ret_now)
{
    rv_assert(e->state == EVALUATION_OVER);
    enum rv_err err = RV_OK;
    *ret_taken = task_as_it_was(e, work);
    if (*ret_taken && e->verdict == RV_DECIDED && work->task != NULL)
        err = steps_load(s, e, work);
    if (err != RV_OK)
        return err;
    if (!*ret_taken || work->broken != NULL) {
        *ret_taken = false;
        if (e->command.kind == RV_COMMAND_SUBMIT)
            evaluation_drop(s, e);
        else
            evaluation_restart(e);
        return RV_OK;
    }
    rv_assert(e->state == EVALUATION_OVER);
    *ret_verdict = e->verdict;
    *ret_plan = *e->plan;
    *ret_now = e->command.now;
    if (e->asker.caller != NULL)
        e->asker.caller->evaluations--;
    struct debtor *debtor = e->debtor;
    leave(e);
    place_leave(e);
    debtor_leave(s, debtor);
    e->next = s->evaluations.taken; /* its rows are the batch's now */
    s->evaluations.taken = e;
    return RV_OK;
}

/* Who has told of this end does not ask for it again, though it may have come to nothing. */
static void end_note(struct rv_scheduler *s, struct rv_task_id task, const struct rv_command *end)
{
    struct held *held = held_find(&s->agents, (struct rv_step_id){task, end->step});
    if (held != NULL && held->token == end->token)
        held->over_in[ending_kind(end->u.end.how, end->u.end.effect)] = s->batch.turn;
}

static enum rv_err ownerless_decide(struct rv_scheduler *s, struct evaluation *e)
{
    struct rv_command command = e->command;
    struct asker asker = e->asker;
    struct work *work;
    enum rv_err err = work_get(s, e->task, &work);
    if (err != RV_OK)
        return err;
    bool wakes = command.kind == RV_COMMAND_WAKE;
    bool stands = work->task != NULL && (!wakes || work_is_own(s, work)) && task_as_it_was(e, work);
    /* A reply that came meanwhile, and is not decided yet, goes before the end of its attempt. */
    bool known = stands &&
                 (wakes ? wake_know(s, work, &command) : !left_has(s, command.token, command.step));
    if (!known) {
        evaluation_drop(s, e); /* if anything is due now, it is decided anew */
        s->more_due = true;
        return RV_OK;
    }
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    if (plan == NULL)
        return RV_ERR_MEMORY;
    err = work_decide(s, work, &command, &asker, plan);
    if (err == RV_OK && !work->waits && plan->changed && wakes)
        work->found = true;
    if (err == RV_OK && !work->waits && !wakes)
        end_note(s, work->id, &command);
    return err;
}

size_t evaluations_want(const struct rv_scheduler *s, struct rv_step_id *ids, size_t room)
{
    size_t count = 0;
    for (const struct evaluation *e = s->evaluations.placed; e != NULL && count < room; e = e->next)
        if (e->state == EVALUATION_OVER && e->command.kind != RV_COMMAND_SUBMIT)
            ids[count++] = (struct rv_step_id){e->task, 0};
    return count;
}

size_t evaluations_over(const struct rv_scheduler *s, uint64_t a, uint64_t *ret_b, size_t room)
{
    size_t count = 0;
    for (const struct evaluation *e = s->evaluations.placed; e != NULL && count < room; e = e->next)
        if (e->state == EVALUATION_OVER && e->asker.caller == NULL && e->asker.a == a)
            ret_b[count++] = e->asker.b;
    return count;
}

/* Somebody who waits for what is over. */
static struct pending *over_caller(const struct rv_scheduler *s)
{
    for (const struct evaluation *e = s->evaluations.placed; e != NULL; e = e->next)
        if (e->state == EVALUATION_OVER && e->asker.caller != NULL && e->asker.caller->aside)
            return e->asker.caller;
    return NULL;
}

enum rv_err evaluations_decide(struct rv_scheduler *s)
{
    struct evaluations *all = &s->evaluations;
    enum rv_err err = RV_OK;
    if (all->over_count == 0)
        return RV_OK;
    struct evaluation *next;
    struct pending *caller;
    bool later = batch_only_reads(s) && s->batch.mono_now < all->take_at;
    while (err == RV_OK && !later && (caller = over_caller(s)) != NULL) {
        evaluations_unhold(s, caller);
        pending_insert(&s->batch.calls, caller); /* where the batch is decided again, in order */
        err = call_decide(s, caller);
    }
    share_enter(s, SHARE_EVALUATIONS);
    for (struct evaluation *e = all->placed; err == RV_OK && e != NULL; e = next) {
        next = e->next;
        const struct pending *its = e->asker.caller;
        if (e->state != EVALUATION_OVER || e->over_in == s->batch.turn)
            continue;
        /* One who is not aside is decided in each batch, and would be without end. */
        if (later && (its == NULL || its->aside))
            continue;
        bool elsewhere = its != NULL ? !its->aside && !its->bounded
                                     : e->asker.wanted == NULL || !e->asker.wanted(s, &e->asker);
        if (decides_itself(e) && share_used(s))
            s->more_due = true; /* its task's rows come with the next batch */
        else if (decides_itself(e))
            err = ownerless_decide(s, e);
        else if (elsewhere)
            evaluation_drop(s, e); /* whoever asked for it has its answer from elsewhere */
    }
    share_enter(s, SHARE_NONE);
    return err;
}
