#include "sim/check/check.h"

#include "base/time.h"
#include "sim/check/bound.h"
#include "sim/store/database.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

/* Looked at by the supervisor in a second (src/scheduler/duties/overdue.c). */
enum { ROWS_PER_SECOND = 1000 };

/* Beside the bound of all that is owed: until the supervisor looks, two leases after whatever has
 * kept it, a takeover among that; and until it has looked at all tasks. */
static int64_t look_ms(const struct world *w)
{
    const struct knobs *k = &w->knobs;
    int64_t rows = k->scan_ms < RV_SECOND_MS ? (int64_t)k->scan_ms * ROWS_PER_SECOND / RV_SECOND_MS
                                             : ROWS_PER_SECOND;
    int64_t pieces = w->history->open / rows + 2;
    return 4 * (int64_t)k->role_ms + RV_LEASE_MARGIN_MS + pieces * k->scan_ms;
}

/* I-54: an attempt with a silent agent ends even if the owner of its task has lost the timer. The
 * supervisor finds it two leases after its end. (Checked only after faults have stopped: before
 * that, the time of the supervisor's search is not bounded.) */
void check_looked_at(struct world *w, const struct server *s, struct step_past *step)
{
    const struct rv_step *row = &step->row;
    int64_t at = row->attempt_state == RV_ATTEMPT_REVOKED ? row->complete_by : row->lease_until;
    if (row->deadline > at && row->deadline <= s->attention.seen_at)
        at = row->deadline;
    bool leads = database_shared(w) && w->healed && w->now > w->database->slow_until &&
                 history_supervises(w, s);
    bool left = leads && rv_attempt_state_live(row->attempt_state) &&
                at + 2 * (int64_t)w->knobs.role_ms < s->attention.heard_at;
    if (bound_lasts(w, s, left, &step->left[s->number], look_ms(w)))
        world_violate(w, "I-54", "step %u: attempt %u should have ended %lld ms ago, and %s leads",
                      row->number, row->attempt, (long long)(s->attention.seen_at - at), s->name);
}
