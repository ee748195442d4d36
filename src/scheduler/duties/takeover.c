/* A server keeps a lease on its number. Once that is over any other server may depose it, and takes
 * over its tasks, a piece in each batch, as all others do at the same time. What the dead one's
 * agents do goes on: their attempts are in the rows. */
#include "scheduler/duties/takeover.h"

#include "base/time.h"
#include "scheduler/batch/absence.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/own.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/duties/duty.h"
#include "store/store.h"

enum { PIECE_ORPHANS = 500 };

void takeover_name(struct rv_scheduler *s, struct rv_wants *wants)
{
    bool looks = s->enlistment.shared && !s->draining && s->batch.expected_now >= s->takeover_at;
    size_t most = PIECE_ORPHANS >> s->shortage.halvings;
    wants->orphans_max = looks ? most : 0;
    s->batch.looks_for_orphans = looks;
}

/* They are looked at once in a scan interval, and again at once where there were some. */
static enum rv_err takeover_plan(struct rv_scheduler *s)
{
    int64_t taken = 0;
    if (!s->enlistment.shared)
        return RV_OK;
    s->batch.must_commit = s->batch.must_commit || s->batch.deposes;
    if (s->batch.orphaned_at != 0)
        absence_of_other(s, s->batch.orphaned_at);
    for (struct work *w = s->batch.works; w != NULL; w = w->next) {
        if (!w->orphan || w->task == NULL)
            continue;
        RV_TRY(work_own(s, w));
        if (w->task->state != RV_TASK_ERROR)
            work_offer(s, w);
        taken++;
    }
    if (taken > 0)
        log_event_number(s, RV_LOG_INFO, "takeover", "tasks", taken);
    return RV_OK;
}

/* What could not be written, of whatever kind, may be refused again. Where the load was cut there
 * may be more. */
static void takeover_act(struct rv_scheduler *s)
{
    bool some = s->batch.cut;
    for (const struct work *w = s->batch.works; w != NULL; w = w->next)
        some = some || (w->orphan && w->changed && !w->dropped);
    if (s->batch.looks_for_orphans)
        s->takeover_at = some ? s->batch.now
                              : rv_time_add(s->batch.now, s->options.scan_interval_ms);
}

/* What was taken over was not written. */
static void takeover_again(struct rv_scheduler *s)
{
    s->takeover_at = 0;
}

static int64_t takeover_next_at(const struct rv_scheduler *s)
{
    return s->enlistment.shared && !s->draining ? s->takeover_at : INT64_MAX;
}

const struct duty takeover_duty = {.plan = takeover_plan,
                                   .act = takeover_act,
                                   .fail = takeover_again,
                                   .forget = takeover_again,
                                   .next_at = takeover_next_at};
