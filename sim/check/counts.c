/* I-25: a server counts as many open tasks of each state as there are. The counters change with
 * each commit: a change that one of them misses stays wrong until the server starts again.
 *
 * Stores that several servers may share are left out: commits of others are learned later, and a
 * standby may lack the newest ones. So are stores that have lost transactions. */
#include "sim/check/check.h"

#include "scheduler/counts.h"
#include "scheduler/scheduler.h"
#include "sim/store/rewind.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

enum { EACH_BATCHES = 16 };

void check_counts(struct world *w, const struct server *s)
{
    bool ends = w->history->open == 0;
    if (rv_scheduler_enlistment(s->scheduler)->shared || rewind_any(w) ||
        (!ends && s->went_well % EACH_BATCHES != 0))
        return;
    const struct rv_counts *counts = rv_scheduler_counts(s->scheduler);
    int64_t there[RV_TASK_STATE_COUNT] = {0};
    for (size_t i = 0; i < w->history->count; i++)
        there[w->history->all[i]->row.state] += w->history->all[i]->row.revision != 0;
    for (unsigned i = 0; i < RV_TASK_STATE_COUNT; i++) {
        enum rv_task_state state = (enum rv_task_state)i;
        if (!rv_task_state_open(state) || counts->open_by_state[i] == there[i])
            continue;
        world_violate(w, "I-25", "%s counts %lld tasks that are %s, there are %lld", s->name,
                      (long long)counts->open_by_state[i], rv_task_state_text(state),
                      (long long)there[i]);
        return;
    }
}
