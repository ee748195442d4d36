/* The repair scan. With a store of its own a server loads what has no instant noted. On a shared
 * one others write, too: there each round walks all open rows, and every task whose revision is
 * another than the one that the caches know is loaded, so that instants, ready steps and held
 * attempts are known here one round after another server has committed them. What was known and is
 * not among the open rows any more has ended elsewhere, and is loaded for the last time. */
#include "scheduler/duties/scan.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/map.h"
#include "dispatch/held.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/duties/duty.h"

#include <stdlib.h>

enum { ROUND_BITS = 16 };

/* What is known of the tasks that several servers move on one store. */
struct peers {
    struct rv_map known;  /* open task -> the revision that the caches know, and the round of the
                           * scan that met it last */
    struct rv_map missed; /* tasks to be loaded in the next batch: another server was faster */
};

static uint64_t round_of(const struct rv_scheduler *s)
{
    return s->supervisor.rounds & ((UINT64_C(1) << ROUND_BITS) - 1);
}

static uint64_t known_value(const struct rv_scheduler *s, int64_t revision)
{
    return (uint64_t)revision << ROUND_BITS | round_of(s);
}

static enum rv_err scan_open(struct rv_scheduler *s)
{
    rv_assert(s->peers == NULL);
    s->peers = calloc(1, sizeof *s->peers);
    if (s->peers == NULL)
        return RV_ERR_MEMORY;
    rv_map_init(&s->peers->known);
    rv_map_init(&s->peers->missed);
    return RV_OK;
}

static void scan_forget(struct rv_scheduler *s)
{
    rv_map_done(&s->peers->known);
    rv_map_done(&s->peers->missed);
    rv_map_init(&s->peers->known);
    rv_map_init(&s->peers->missed);
}

static void scan_close(struct rv_scheduler *s)
{
    if (s->peers == NULL)
        return;
    rv_map_done(&s->peers->known);
    rv_map_done(&s->peers->missed);
    free(s->peers);
}

enum rv_err peers_note(struct rv_scheduler *s, struct rv_task_id id, const struct rv_task *task)
{
    if (!s->enlistment.shared)
        return RV_OK;
    if (task != NULL && rv_task_state_open(task->state))
        return rv_map_put(&s->peers->known, (uint64_t)id.value, 0, known_value(s, task->revision));
    rv_map_remove(&s->peers->known, (uint64_t)id.value, 0);
    return RV_OK;
}

void peers_lose(struct rv_scheduler *s, struct rv_task_id id)
{
    rv_map_remove(&s->peers->known, (uint64_t)id.value, 0);
}

void peers_miss(struct rv_scheduler *s, struct rv_task_id id)
{
    /* Without memory for that the next round finds it: its revision is not known. */
    peers_lose(s, id);
    if (rv_map_put(&s->peers->missed, (uint64_t)id.value, 0, 0) == RV_OK)
        s->more_due = true;
}

/* Whether the task is another than the caches know. */
static bool has_changed(struct rv_scheduler *s, const struct rv_task *task)
{
    uint64_t *known = rv_map_find(&s->peers->known, (uint64_t)task->id.value, 0);
    if (known == NULL || *known >> ROUND_BITS != (uint64_t)task->revision)
        return true;
    *known = known_value(s, task->revision);
    return false;
}

/* Whether the scan loads the task. The first walk after a start loads all. */
static bool scan_wants(struct rv_scheduler *s, const struct rv_task *task, bool first)
{
    if (first)
        return true;
    if (s->enlistment.shared)
        return has_changed(s, task);
    return task->state != RV_TASK_ERROR && !rv_supervisor_knows(&s->supervisor, task->id);
}

/* At the end of a round: what it has not met. */
static size_t ended_elsewhere(struct rv_scheduler *s, uint64_t round, struct rv_step_id *ids,
                              size_t room)
{
    const struct rv_map *known = &s->peers->known;
    const uint64_t mask = (UINT64_C(1) << ROUND_BITS) - 1;
    size_t count = 0;
    for (size_t i = 0; i < known->room && count < room; i++)
        if (known->slots[i].used && (known->slots[i].value & mask) != round)
            ids[count++] = (struct rv_step_id){{(int64_t)known->slots[i].a}, 0};
    return count;
}

/* What this server's change has met as another's: it is looked at again at once. */
static size_t missed_take(struct rv_scheduler *s, struct rv_step_id *ids, size_t room)
{
    struct rv_map *missed = &s->peers->missed;
    size_t count = 0;
    for (size_t i = 0; i < missed->room && count < room; i++)
        if (missed->slots[i].used)
            ids[count++] = (struct rv_step_id){{(int64_t)missed->slots[i].a}, 0};
    for (size_t i = 0; i < count; i++) {
        bool was_missed = rv_map_remove(missed, (uint64_t)ids[i].task.value, 0);
        rv_assert(was_missed);
    }
    rv_assert(count <= room);
    return count;
}

/* Attempts whose task has moved on elsewhere without them. */
static void held_sweep(struct rv_scheduler *s, struct agent_instance *instance)
{
    struct held *next;
    for (struct held *held = instance->held; held != NULL; held = next) {
        next = held->next;
        rv_assert(held->instance == instance);
        const uint64_t *known = rv_map_find(&s->peers->known, (uint64_t)held->step.task.value, 0);
        bool same = known != NULL && *known >> ROUND_BITS == (uint64_t)held->revision;
        if (same || work_find(s, held->step.task) != NULL)
            continue;
        held_remove(&s->agents, held);
    }
}

static void agents_sweep(struct rv_scheduler *s)
{
    for (struct agent_kind *kind = s->agents.kinds; kind != NULL; kind = kind->next)
        for (struct agent_instance *i = kind->instances; i != NULL; i = i->next) {
            rv_assert(i->kind == kind);
            held_sweep(s, i);
        }
}

/* Loads as many as the share has room for, from the first on, and at least one. */
static enum rv_err scan_load(struct rv_scheduler *s, enum share share, const struct rv_step_id *ids,
                             size_t count, size_t *ret_loaded)
{
    share_enter(s, share);
    enum rv_err err = work_prefetch(s, ids, count);
    share_enter(s, SHARE_NONE);
    size_t i = 0;
    for (; err == RV_OK && i < count; i++) {
        struct work *work = work_find(s, ids[i].task);
        if (work == NULL)
            break;
        if (work->task != NULL && work->task->state != RV_TASK_ERROR)
            work_offer(s, work);
    }
    *ret_loaded = i;
    return err;
}

static enum rv_err scan_plan(struct rv_scheduler *s)
{
    const struct rv_task **tasks = rv_arena_take(s->batch.arena,
                                                 RV_SCAN_ROWS_MAX * sizeof(struct rv_task *));
    struct rv_step_id *ids = rv_arena_take(s->batch.arena, RV_SCAN_ROWS_MAX * sizeof *ids);
    if (tasks == NULL || ids == NULL)
        return RV_ERR_MEMORY;
    size_t count = 0, loaded = 0, wanted = missed_take(s, ids, RV_SCAN_ROWS_MAX);
    enum rv_err err = scan_load(s, SHARE_MISSED, ids, wanted, &loaded);
    for (size_t i = err == RV_OK ? loaded : 0; i < wanted; i++)
        peers_miss(s, ids[i].task);
    if (err != RV_OK)
        return err;
    bool first = s->supervisor.scan_first;
    uint64_t round = round_of(s);
    err = rv_supervisor_scan(&s->supervisor, s->batch.arena, s->batch.now, tasks, &count);
    if (err != RV_OK)
        return err;
    rv_assert(count <= RV_SCAN_ROWS_MAX);
    wanted = 0;
    for (size_t i = 0; i < count; i++)
        if (scan_wants(s, tasks[i], first))
            ids[wanted++] = (struct rv_step_id){tasks[i]->id, 0};
    if (s->enlistment.shared && round != round_of(s)) {
        agents_sweep(s);
        wanted = ended_elsewhere(s, round, ids, RV_SCAN_ROWS_MAX);
    }
    err = scan_load(s, SHARE_SCAN, ids, wanted, &loaded);
    if (err == RV_OK && loaded < wanted && count > 0)
        rv_supervisor_scan_on(&s->supervisor, s->batch.now, ids[loaded - 1].task);
    return err;
}

const struct duty scan_duty = {
    .open = scan_open, .plan = scan_plan, .forget = scan_forget, .close = scan_close};
