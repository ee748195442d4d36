#include "sim/check/check.h"

#include "sim/store/database.h"
#include "sim/store/memory/memory.h"
#include "sim/world/fault.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

/* The supervisor's role, as its committed claims tell. */

/* I-11: once another process has taken the supervisor's role, with the next epoch, nothing is
 * committed any more that the one before does for all tasks: bulk commands, deliveries, the
 * retention rule. */
static void check_leads(struct world *w, const struct server *s, const char *what)
{
    if (s != NULL && w->history->held_by != 0 && !history_supervises(w, s))
        world_violate(w, "I-11", "%s by %s, which is not the supervisor", what, s->name);
}

void check_role(const struct transition *t)
{
    if (t->change->record != NULL || t->change->epoch != 0)
        check_leads(t->w, t->w->committing, "a bulk command is carried out");
}

void check_role_batch(struct world *w, const struct server *s, const struct rv_batch *batch)
{
    for (size_t i = 0; i < batch->records_count; i++)
        if (batch->records[i].epoch != 0 && batch->records[i].outcome == RV_OK)
            check_leads(w, s, "a record of the supervisor is written");
    for (size_t i = 0; i < batch->deliveries_count; i++)
        if (batch->deliveries[i].epoch != 0 && batch->deliveries[i].outcome == RV_OK)
            check_leads(w, s, "a delivery is noted");
    if (batch->sweep != NULL && batch->sweep->outcome == RV_OK)
        check_leads(w, s, "the retention rule is carried out");
}

/* I-44: what is due is decided by the owner of the task alone, the server that committed its newest
 * change; or by one that takes it over since that server is not there any more. (A command or a
 * reply, which any server decides, may find that a lease is over, too.) */
void check_owner(const struct transition *t)
{
    const struct world *w = t->w;
    const struct server *s = w->committing;
    bool told = t->change->history_count + t->change->late_replies_count > 0;
    if (s == NULL || !database_shared(w) || t->past->row.revision == 0 || told)
        return;
    uint8_t owner = t->past->row.locked_by;
    bool may = owner == rv_scheduler_enlistment(s->scheduler)->instance ||
               !rv_store_memory_lives(w->database->data, owner, t->now);
    for (size_t i = 0; i < t->steps_count && !may; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        if (past != NULL && rv_attempt_state_live(past->row.attempt_state) &&
            check_state_now(t, past, &t->steps[i]) == RV_ATTEMPT_EXPIRED)
            world_violate(t->w, "I-44",
                          "step %u: attempt %u is expired by %s, and server number %u owns the "
                          "task",
                          t->steps[i].number, past->row.attempt, s->name, owner);
    }
}

/* I-46: a server is deposed only when its lease is over: it was renewed at `leased_at` last. And
 * among healthy servers none is. */
void check_deposed(struct server *s)
{
    struct world *w = s->world;
    bool lost = fault_happened(w, FAULT_FAILOVER); /* and with it perhaps the server's own row */
    int64_t lease_ms = (int64_t)w->knobs.role_ms;
    if (!lost && w->now - s->leased_at < lease_ms)
        world_violate(w, "I-46", "%s is deposed %lld ms after it has renewed its lease of %lld ms",
                      s->name, (long long)(w->now - s->leased_at), (long long)lease_ms);
    int64_t settled_at = w->healed_at > w->database->slow_until ? w->healed_at
                                                                : w->database->slow_until;
    if (w->healed && w->now > settled_at + 2 * lease_ms + RV_LEASE_MARGIN_MS)
        world_violate(w, "I-46", "%s, a healthy server, is deposed", s->name);
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
