/* The owner of a task decides what is due for it. A server may live, renew its lease, and all the
 * same not decide, by a defect or damaged memory: its own walk takes the task for known as long as
 * the revision is. So the supervisor looks at all open tasks, whoever owns them, for what is
 * overdue by more than two leases: an owner that is there has decided it by then, and one that is
 * not has lost its tasks. The supervisor takes the task, and decides it in its next batch as its
 * owner.
 *
 * It looks slowly, at a piece with the load of one batch in a scan interval, and remembers the
 * place. While a store was away, or this server, much becomes overdue at once, and the owners are
 * about to decide it: nobody looks until two leases after that. Two servers that both take
 * themselves for the supervisor do no harm: the look claims what it finds, and the revision guards
 * the change. */
#include "scheduler/duties/overdue.h"

#include "base/time.h"
#include "core/decide.h"
#include "scheduler/batch/absence.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/own.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/duties/duty.h"
#include "store/store.h"

#include <stdlib.h>

enum { ROWS_PER_SECOND = 1000, FOUND_MAX = 100, LEASES = 2 };

struct overdue {
    struct rv_task_id after; /* where the next piece goes on; none: from the first task */
    int64_t look_at;
    bool asked; /* by this batch: */
    struct rv_look look;
};

static enum rv_err overdue_open(struct rv_scheduler *s)
{
    s->overdue = calloc(1, sizeof *s->overdue);
    return s->overdue != NULL ? RV_OK : RV_ERR_MEMORY;
}

static void overdue_close(struct rv_scheduler *s)
{
    free(s->overdue);
}

static int64_t patience_ms(const struct rv_scheduler *s)
{
    return LEASES * s->options.role_lease_ms;
}

static bool looks(const struct rv_scheduler *s)
{
    return s->enlistment.shared && !s->draining && rv_supervisor_holds(&s->supervisor);
}

static int64_t overdue_next_at(const struct rv_scheduler *s)
{
    int64_t calm_at = rv_time_add(absence_calm_since(s), patience_ms(s));
    if (!looks(s))
        return INT64_MAX;
    return s->overdue->look_at > calm_at ? s->overdue->look_at : calm_at;
}

void overdue_name(struct rv_scheduler *s, struct rv_wants *wants)
{
    struct overdue *o = s->overdue;
    int64_t now = s->batch.expected_now, rows = s->options.scan_interval_ms;
    size_t most = FOUND_MAX >> s->shortage.halvings;
    o->asked = looks(s) && !s->agents.recovering && now >= overdue_next_at(s);
    if (!o->asked)
        return;
    rows = rows < RV_SECOND_MS ? rows * ROWS_PER_SECOND / RV_SECOND_MS : ROWS_PER_SECOND;
    o->look = (struct rv_look){.after = o->after,
                               .rows_max = rows > 0 ? (size_t)rows : 1,
                               .most = most > 0 ? most : 1,
                               .before = now - patience_ms(s)};
    wants->look = &o->look;
}

/* The store names a task also for an instant that does not count now: it is suspended, say. */
static enum rv_err is_overdue(struct rv_scheduler *s, const struct work *work, bool *ret_is)
{
    struct rv_view view;
    RV_TRY(work_view(s, work, 0, 0, &view));
    int64_t at = rv_view_wake_at(work->task, view.steps, view.steps_count, work->now);
    *ret_is = at != 0 && (at <= s->overdue->look.before || work->task->open_count == 0);
    return RV_OK;
}

/* A task of this server's own is noted again when the batch is over, since it was loaded. An
 * absence that ends with this batch is known since it has begun. */
static enum rv_err overdue_plan(struct rv_scheduler *s)
{
    int64_t taken = 0;
    s->overdue->asked = s->overdue->asked && s->batch.now >= overdue_next_at(s);
    for (struct work *w = s->batch.works; s->overdue->asked && w != NULL; w = w->next) {
        bool is = false;
        if (!w->overdue || w->changed || w->task == NULL || task_is_own(s, w->task))
            continue;
        RV_TRY(is_overdue(s, w, &is));
        if (!is)
            continue;
        RV_TRY(work_own(s, w));
        work_offer(s, w);
        taken++;
    }
    if (taken > 0)
        log_event_number(s, RV_LOG_WARNING, "overdue", "tasks", taken);
    return RV_OK;
}

/* Of a load that was cut the last tasks are missing: the next piece begins with them. If all are
 * the search goes on, and meets them again in its next round. */
static struct rv_task_id place_after(const struct rv_scheduler *s)
{
    struct rv_task_id last = {0};
    for (const struct work *w = s->batch.works; w != NULL; w = w->next)
        if (w->overdue && w->id.value > last.value)
            last = w->id;
    return s->batch.cut && last.value != 0 ? last : s->overdue->look.next;
}

static void overdue_act(struct rv_scheduler *s)
{
    struct overdue *o = s->overdue;
    if (!o->asked)
        return;
    o->after = place_after(s);
    o->look_at = rv_time_add(s->batch.now, s->options.scan_interval_ms);
}

/* The same piece once more. */
static void overdue_fail(struct rv_scheduler *s)
{
    s->overdue->asked = false;
}

static void overdue_forget(struct rv_scheduler *s)
{
    *s->overdue = (struct overdue){.look_at = 0};
}

const struct duty overdue_duty = {.open = overdue_open,
                                  .plan = overdue_plan,
                                  .act = overdue_act,
                                  .fail = overdue_fail,
                                  .next_at = overdue_next_at,
                                  .forget = overdue_forget,
                                  .close = overdue_close};
