/* The repair scan: a walk over the open tasks that this server owns, a piece at a time. A server
 * with a store of its own loads what has no instant noted. Where others write, too, it loads what
 * it does not know as the row is, and at the end of a walk forgets what it has not met: other
 * servers own that by now. */
#include "base/assert.h"
#include "base/limits.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/own.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/duties/duty.h"

/* Whether the scan loads the task. The first walk after a start loads all. */
static bool scan_wants(struct rv_scheduler *s, const struct rv_scanned *row, bool first)
{
    if (first)
        return true;
    if (s->enlistment.shared)
        return !own_meet(s, row);
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

static enum rv_err scan_plan(struct rv_scheduler *s)
{
    size_t most = s->supervisor.scan_rows_max, count = 0, wanted = 0, loaded = 0;
    if (!rv_supervisor_scan_begin(&s->supervisor, s->batch.now))
        return RV_OK; /* and takes no room for its rows */
    struct rv_scanned *rows = rv_arena_take(s->batch.arena, most * sizeof *rows);
    struct rv_step_id *ids = rv_arena_take(s->batch.arena, most * sizeof *ids);
    if (rows == NULL || ids == NULL)
        return RV_ERR_MEMORY;
    bool first = s->supervisor.scan_first;
    uint64_t round = s->supervisor.rounds;
    RV_TRY(rv_supervisor_scan(&s->supervisor, s->batch.now, rows, &count));
    rv_assert(count <= most);
    if (s->enlistment.shared && round != s->supervisor.rounds)
        own_sweep(s, round);
    for (size_t i = 0; i < count; i++)
        if (scan_wants(s, &rows[i], first))
            ids[wanted++] = (struct rv_step_id){rows[i].id, 0};
    RV_TRY(scan_load(s, ids, wanted, &loaded));
    if (loaded < wanted)
        rv_supervisor_scan_on(&s->supervisor, s->batch.now,
                              loaded > 0 ? ids[loaded - 1].task : s->supervisor.piece_after);
    return RV_OK;
}

const struct duty scan_duty = {.plan = scan_plan};
