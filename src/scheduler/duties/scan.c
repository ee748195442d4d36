/* The repair scan: a walk over the open tasks that this server owns, a piece at a time, which is
 * read as a batch begins. A server with a store of its own loads what has no instant noted. Where
 * others write, too, it loads what it does not know as the row is, and at the end of a walk forgets
 * what it has not met: other servers own that by now. The walk after a start loads every task, with
 * the piece itself where there is memory enough. */
#include "scheduler/duties/scan.h"

#include "base/assert.h"
#include "base/limits.h"
#include "scheduler/batch/asked.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/own.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/duties/duty.h"
#include "store/store.h"

void scan_name(struct rv_scheduler *s, struct rv_wants *wants)
{
    struct rv_scan *scan = &s->batch.scan;
    if (!rv_supervisor_scan_name(&s->supervisor, s->batch.expected_now, scan))
        return; /* and takes no room for its rows */
    scan->rows = rv_arena_take(s->batch.arena, scan->rows_max * sizeof *scan->rows);
    scan->whole = s->supervisor.scan_first && s->shortage.halvings == 0;
    if (scan->rows != NULL)
        wants->scan = scan;
    s->batch.scans = true;
}

/* Whether the scan loads the task. The first walk after a start loads all. */
static bool scan_wants(struct rv_scheduler *s, const struct rv_scanned *row)
{
    bool met = s->enlistment.shared && own_meet(s, row);
    if (s->supervisor.scan_first)
        return true;
    if (s->enlistment.shared)
        return !met;
    return row->state != RV_TASK_ERROR && !rv_supervisor_knows(&s->supervisor, row->id);
}

/* Loads as many as the share has room for, from the first on, and at least one. */
static enum rv_err scan_load(struct rv_scheduler *s, const struct rv_step_id *ids, size_t count,
                             size_t *ret_loaded)
{
    share_enter(s, SHARE_SCAN);
    enum rv_err err = work_prefetch(s, ids, count);
    share_enter(s, SHARE_NONE);
    size_t i = 0;
    for (; err == RV_OK && i < count; i++) {
        struct work *work = work_find(s, ids[i].task);
        if (work == NULL)
            break;
        if (work->task != NULL && work->task->state != RV_TASK_ERROR && task_is_own(s, work->task))
            work_offer(s, work);
    }
    *ret_loaded = i;
    return err;
}

/* The load with which the batch has begun may have had no memory. */
static enum rv_err scan_read(struct rv_scheduler *s)
{
    struct rv_wants alone = {.arena = s->batch.arena, .scan = &s->batch.scan};
    if (s->batch.loaded)
        return RV_OK;
    s->batch.scan.whole = false;
    return asked_load(s, &alone);
}

static enum rv_err scan_plan(struct rv_scheduler *s)
{
    struct rv_scan *scan = &s->batch.scan;
    size_t wanted = 0, loaded = 0;
    if (!s->batch.scans)
        return RV_OK;
    struct rv_step_id *ids = rv_arena_take(s->batch.arena, scan->rows_max * sizeof *ids);
    if (scan->rows == NULL || ids == NULL)
        return RV_ERR_MEMORY;
    RV_TRY(scan_read(s));
    if (!rv_supervisor_scan_take(&s->supervisor, s->batch.now, scan, &s->batch.scan_last))
        return RV_OK;
    for (size_t i = 0; i < scan->count; i++)
        if (scan_wants(s, &scan->rows[i]))
            ids[wanted++] = (struct rv_step_id){scan->rows[i].id, 0};
    if (s->enlistment.shared && s->batch.scan_last)
        own_sweep(s, s->supervisor.rounds);
    RV_TRY(scan_load(s, ids, wanted, &loaded));
    if (loaded < wanted) {
        rv_supervisor_scan_on(&s->supervisor, s->batch.now,
                              loaded > 0 ? ids[loaded - 1].task : s->supervisor.piece_after);
        s->batch.scan_last = false;
    }
    return RV_OK;
}

static void scan_act(struct rv_scheduler *s)
{
    if (s->batch.scan_last)
        rv_supervisor_scan_over(&s->supervisor, s->batch.now);
}

const struct duty scan_duty = {.plan = scan_plan, .act = scan_act};
