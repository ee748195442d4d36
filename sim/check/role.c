#include "sim/check/check.h"

#include "sim/store/database.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

/* The supervisor's role, as its committed claims tell. */

/* I-11: once another process has taken the supervisor's role, with the next epoch, nothing that the
 * one before has found is committed any more: what expires is the holder's finding. */
void check_role(const struct transition *t)
{
    const struct history *h = t->w->history;
    const struct server *s = t->w->committing;
    if (s == NULL || h->held_by == 0 || history_supervises(t->w, s))
        return;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        if (past != NULL && rv_attempt_state_live(past->row.attempt_state) &&
            check_state_now(t, past, &t->steps[i]) == RV_ATTEMPT_EXPIRED)
            world_violate(t->w, "I-11",
                          "step %u: attempt %u is expired by a server that is not the supervisor",
                          t->steps[i].number, past->row.attempt);
    }
}

/* Once faults have stopped: until when whoever was about to do something has done it. */
static int64_t role_settled_at(const struct world *w)
{
    return w->healed_at + 2 * (int64_t)w->knobs.role_ms;
}

/* I-22: two leases after faults have stopped, and what was under way then has arrived, there is a
 * leader, and from then on always. */
static void check_led(struct world *w)
{
    const struct history *h = w->history;
    int64_t since = h->held_at > w->healed_at ? h->held_at : w->healed_at;
    if (w->database->slow_until > since)
        since = w->database->slow_until;
    int64_t allowed = 2 * (int64_t)w->knobs.role_ms + w->knobs.scan_ms;
    if (w->now - since > allowed)
        world_violate(w, "I-22", "for %lld ms nobody has taken or renewed the supervisor's role",
                      (long long)(w->now - since));
}

/* I-22: among healthy servers the role changes its holder once in ten leases at most. */
static void check_rests(struct world *w)
{
    struct history *h = w->history;
    if (w->now < role_settled_at(w))
        return;
    if (h->changed_at != 0 && w->now - h->changed_at < 10 * (int64_t)w->knobs.role_ms)
        world_violate(w, "I-22",
                      "the supervisor's role goes round among healthy servers, after "
                      "%lld ms",
                      (long long)(w->now - h->changed_at));
    h->changed_at = w->now;
}

void check_claimed(struct world *w, bool another)
{
    struct history *h = w->history;
    if (w->healed && w->healed_at != 0 && !h->role_over) {
        check_led(w);
        if (another)
            check_rests(w);
    }
    h->held_at = w->now;
}

void check_role_end(struct world *w)
{
    check_led(w);
    w->history->role_over = true;
}
