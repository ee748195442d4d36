/* Which evaluations have a place and run: rows are loaded within a batch, slices run after it. */
#include "scheduler/batch/accounts.h"
#include "scheduler/batch/evaluation_priv.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/wake.h"
#include "scheduler/batch/work.h"
#include "scheduler/batch/workflows.h"

#include "base/assert.h"

enum {
    PLACES_MAX = 64,
    PLACES_OF_ONE_MAX = 16,
    PAUSED_OF_ONE_MAX = 2, /* of one workflow: others find a place, whatever it does */
    PLACED_BYTES_MAX = 128 * 1024 * 1024, /* of all of them, before one more is loaded */
    SLICES = 4,                           /* of a turn: some of them have one */
    LOOKED_AT_MAX = 64
};

/* ---- rows ---- */

static int64_t owes(const struct evaluation *e)
{
    return account_debt(e->s, ACCOUNT_TASK, e->task.value) + e->used;
}

/* The store shows rows as they were before this batch. */
static bool touched(const struct rv_scheduler *s, const struct evaluation *e)
{
    const struct work *work = work_find(s, e->task);
    return work != NULL && work->changed;
}

static struct evaluation *queue_next(const struct rv_scheduler *s, const struct debtor *debtor)
{
    struct evaluation *least = NULL;
    unsigned looked_at = 0;
    if (debtor->placed >= PLACES_OF_ONE_MAX)
        return NULL;
    for (struct evaluation *e = debtor->first; e != NULL && looked_at < LOOKED_AT_MAX;
         e = e->next) {
        looked_at++;
        if (!touched(s, e) && (least == NULL || owes(e) < owes(least)))
            least = e;
    }
    return least;
}

static struct evaluation *queued_next(const struct rv_scheduler *s)
{
    struct evaluation *least = NULL;
    int64_t least_debt = 0;
    for (const struct debtor *debtor = s->evaluations.debtors; debtor; debtor = debtor->next) {
        int64_t debt = account_debt(s, ACCOUNT_WORKFLOW, debtor->workflow);
        if (least != NULL && debt >= least_debt)
            continue;
        struct evaluation *e = queue_next(s, debtor);
        least = e != NULL ? e : least;
        least_debt = e != NULL ? debt : least_debt;
    }
    return least;
}

/* The rows of its task as they are now, on its own arena. */
static enum rv_err rows_load(struct rv_scheduler *s, struct evaluation *e)
{
    rv_assert(s->batch.arena != &e->arena);
    rv_assert(e->state == EVALUATION_QUEUED);
    struct rv_arena *arena = s->batch.arena;
    s->batch.arena = &e->arena;
    e->work = (struct work){.id = e->task, .now = s->batch.now};
    enum rv_err err = e->command.kind == RV_COMMAND_SUBMIT
                          ? workflow_by_id(&s->workflows, e->debtor->workflow, &e->work.workflow)
                          : work_read(s, &e->work);
    if (err == RV_OK && e->work.task != NULL && e->command.step != 0)
        err = work_step_load(s, &e->work, e->command.step);
    if (err == RV_OK)
        e->plan = RV_ROOM(&e->arena, struct rv_plan, 1);
    if (err == RV_OK && e->plan == NULL)
        err = RV_ERR_MEMORY;
    s->batch.arena = arena;
    return err == RV_ERR_NOT_FOUND ? RV_OK : err;
}

static enum rv_err view_ready(struct rv_scheduler *s, struct evaluation *e)
{
    struct rv_arena *arena = s->batch.arena;
    s->batch.arena = &e->arena;
    enum rv_err err = work_view(s, &e->work, e->command.step, e->command.token, &e->view);
    s->batch.arena = arena;
    e->state = EVALUATION_READY;
    return err;
}

static enum rv_err rows_more(struct rv_scheduler *s, struct evaluation *e)
{
    rv_assert(e->state == EVALUATION_NEEDS);
    rv_assert(e->work.task != NULL);
    struct rv_arena *arena = s->batch.arena;
    const struct rv_task *task;
    enum rv_err err = s->store->ops->load_tasks(s->store, arena, RV_COLUMNS_PLAIN, &e->task, 1,
                                                &task);
    if (err != RV_OK)
        return err;
    if (task == NULL || task->revision != e->work.task->revision) {
        evaluation_restart(e);
        return RV_OK;
    }
    s->batch.arena = &e->arena;
    err = work_load_more(s, &e->work, &e->command, e->verdict, e->plan);
    s->batch.arena = arena;
    if (err == RV_OK)
        err = view_ready(s, e);
    if (err == RV_ERR_NOT_FOUND) {
        e->verdict = RV_UNREADABLE; /* it wanted a row that is not there */
        evaluation_end(e);
        return RV_OK;
    }
    if (err != RV_OK)
        evaluation_restart(e);
    return err;
}

static size_t placed_bytes(const struct rv_scheduler *s)
{
    size_t bytes = 0;
    for (const struct evaluation *e = s->evaluations.placed; e != NULL; e = e->next)
        bytes += e->arena.bytes_taken;
    return bytes;
}

/* It gets a place. What has no task any more, or one that cannot be read, is for who asks. */
static enum rv_err place_take(struct rv_scheduler *s, struct evaluation *e)
{
    rv_assert(e->state == EVALUATION_QUEUED);
    rv_assert(s->evaluations.placed_count < PLACES_MAX);
    rv_arena_init(&e->arena, 0);
    enum rv_err err = rows_load(s, e);
    e->command.now = e->work.now;
    if (err == RV_OK)
        err = view_ready(s, e);
    if (err != RV_OK) {
        rv_arena_done(&e->arena);
        e->state = EVALUATION_QUEUED;
        return err;
    }
    bool there = e->work.task != NULL || e->command.kind == RV_COMMAND_SUBMIT;
    /* Time has passed since it was asked for: more may be due, and not known to be. */
    if (there && e->command.kind == RV_COMMAND_WAKE) {
        there = wake_know(s, &e->work, &e->command);
        struct rv_str *circuit = &e->command.u.wake.circuit;
        *circuit = rv_arena_str(&e->arena, *circuit);
    }
    if (!there || e->work.broken != NULL || e->work.workflow == NULL ||
        e->work.workflow->definition == NULL) {
        e->state = EVALUATION_QUEUED;
        evaluation_caller_carry(s, e->asker.caller);
        evaluation_drop(s, e);
        s->more_due = true;
        return RV_OK;
    }
    evaluation_place(e);
    return RV_OK;
}

enum rv_err evaluations_load(struct rv_scheduler *s)
{
    struct evaluations *all = &s->evaluations;
    enum rv_err err = RV_OK;
    struct evaluation *next;
    for (struct evaluation *e = all->placed; err == RV_OK && e != NULL; e = next) {
        next = e->next;
        if (e->state == EVALUATION_NEEDS && !touched(s, e))
            err = rows_more(s, e);
    }
    while (err == RV_OK && all->placed_count < PLACES_MAX && placed_bytes(s) < PLACED_BYTES_MAX &&
           (next = queued_next(s)) != NULL)
        err = place_take(s, next);
    /* The ones that have a place are over some time, and then there is memory for the next. */
    return err == RV_ERR_MEMORY && all->placed_count > 0 ? RV_OK : err;
}

/* ---- slices ---- */

static bool pace_pause(void *self)
{
    struct evaluation *e = self;
    if (e->fiber == NULL) { /* without a stack of its own it runs to its end */
        e->pace.left += INT64_MAX / 4;
        e->lent += INT64_MAX / 4;
        return true;
    }
    if (!e->stops)
        e->s->options.fibers->pause(e->fiber);
    return !e->stops;
}

static void run_decision(void *self)
{
    struct evaluation *e = self;
    e->verdict = rv_decide(&e->view, &e->command, &e->arena, e->plan);
}

static void fiber_take(struct evaluation *e)
{
    struct evaluations *all = &e->s->evaluations;
    rv_assert(e->fiber == NULL);
    rv_assert(all->idle_count <= EVALUATIONS_PAUSED_MAX);
    if (all->idle_count > 0)
        e->fiber = all->idle[--all->idle_count];
    else if (e->s->options.fibers != NULL)
        e->fiber = e->s->options.fibers->open();
}

static void verdict_given(struct evaluation *e)
{
    bool wants = e->verdict == RV_NEED_STEP || e->verdict == RV_NEED_ATTEMPT ||
                 e->verdict == RV_NEED_LATE;
    if (wants)
        e->state = EVALUATION_NEEDS;
    else
        evaluation_end(e);
}

/* Gives the fuel that it has used. */
static int64_t slice_run(struct rv_scheduler *s, struct evaluation *e, int64_t slice)
{
    const struct rv_fiber_ops *fibers = s->options.fibers;
    rv_assert(e->state == EVALUATION_READY || e->state == EVALUATION_PAUSED);
    rv_assert(slice > 0);
    bool begins = e->state == EVALUATION_READY;
    bool done = true;
    e->lent = slice;
    e->pace.left = slice;
    if (begins) {
        e->pace.pause = pace_pause;
        e->pace.self = e;
        e->pace.given_up = false;
        fiber_take(e);
        if (e->fiber != NULL)
            done = fibers->run(e->fiber, run_decision, e);
        else
            run_decision(e);
    } else {
        rv_assert(e->fiber != NULL);
        done = fibers->go_on(e->fiber);
    }
    int64_t used = e->lent - e->pace.left;
    e->used += used;
    s->evaluations.paused_count += begins && !done;
    e->debtor->paused += begins && !done;
    s->evaluations.paused_count -= !begins && done;
    e->debtor->paused -= !begins && done;
    rv_assert(s->evaluations.paused_count <= EVALUATIONS_PAUSED_MAX);
    rv_assert(e->debtor->paused <= PAUSED_OF_ONE_MAX);
    e->state = EVALUATION_PAUSED;
    if (done) {
        evaluation_fiber_back(e);
        verdict_given(e);
    }
    accounts_charge(s, e->debtor->workflow, e->task, used);
    return used;
}

/* Whose workflow owes least, then whose task. */
static struct evaluation *slice_next(const struct rv_scheduler *s)
{
    struct evaluation *least = NULL;
    int64_t least_debt = 0, least_owes = 0;
    for (struct evaluation *e = s->evaluations.placed; e != NULL; e = e->next) {
        bool begins = e->state == EVALUATION_READY &&
                      s->evaluations.paused_count < EVALUATIONS_PAUSED_MAX &&
                      e->debtor->paused < PAUSED_OF_ONE_MAX;
        if (e->state != EVALUATION_PAUSED && !begins)
            continue;
        int64_t debt = account_debt(s, ACCOUNT_WORKFLOW, e->debtor->workflow);
        int64_t its = owes(e);
        if (least == NULL || debt < least_debt || (debt == least_debt && its < least_owes)) {
            least = e;
            least_debt = debt;
            least_owes = its;
        }
    }
    return least;
}

/* What the batch has changed of tasks whose workflows owe nothing. */
static size_t light_changes(const struct rv_scheduler *s)
{
    size_t count = 0;
    for (const struct work *w = s->batch.works; w != NULL; w = w->next)
        count += w->changed && !w->dropped &&
                 !(w->workflow != NULL && account_in_debt(s, w->workflow->row.id));
    return count;
}

void evaluations_run(struct rv_scheduler *s, int64_t batch_us)
{
    evaluations_awaited(s);
    accounts_turn(s, light_changes(s), batch_us);
    int64_t turn = s->evaluations.placed != NULL ? accounts_turn_fuel(s) : 0;
    int64_t slice = turn / SLICES > 0 ? turn / SLICES : 1;
    int64_t used = 0;
    int64_t begun_us = turn > 0 ? counts_clock(s) : 0;
    struct evaluation *e;
    while (used < turn && (e = slice_next(s)) != NULL)
        used += slice_run(s, e, slice < turn - used ? slice : turn - used);
    if (used > 0)
        accounts_took(s, used, counts_clock(s) - begun_us);
}

/* Some are not over, and have a place or find one. */
static bool can_go_on(const struct rv_scheduler *s)
{
    const struct evaluations *all = &s->evaluations;
    rv_assert(all->over_count <= all->placed_count);
    rv_assert(all->paused_count <= all->placed_count);
    bool finds = false;
    for (const struct debtor *debtor = all->debtors; debtor != NULL; debtor = debtor->next)
        finds = finds || (debtor->first != NULL && debtor->placed < PLACES_OF_ONE_MAX);
    return all->placed_count > all->over_count || (finds && all->placed_count < PLACES_MAX);
}

int64_t evaluations_wait_ms(const struct rv_scheduler *s, int64_t mono_now)
{
    const struct evaluations *all = &s->evaluations;
    int64_t take = all->over_count > 0 ? all->take_at - mono_now : INT64_MAX;
    int64_t run = can_go_on(s) ? accounts_wait_ms(s, mono_now) : INT64_MAX;
    return take < run ? take : run;
}
