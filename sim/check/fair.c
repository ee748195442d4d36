/* I-42: a server that can do nothing sleeps until something happens. Batches of one instant that
 * take no call, commit nothing and evaluate nothing are few: what one leaves for the next one is
 * done there, and the clock would not end a longer row of them.
 *
 * I-37: what takes long delays strangers for a bounded time. Beside one batch no more is granted to
 * long decisions than a turn of them, however many there are; and a submission whose expressions
 * are short is decided without them: it waits for no turn at all.
 *
 * What a turn takes of the clock is not seen here, where computing takes no time; nor who of those
 * that take long goes first: test_fairness and test/bench/fairness show that. */
#include "sim/check/check.h"

#include "scheduler/counts.h"
#include "sim/cast/workload.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

/* One piece of work is not interrupted; a submission is carried by batches that its own are not. */
enum { PIECE_FUEL = 20000, TURN_FUEL = 100000, CARRIED_MAX = 12 };
/* Rows that are read in pieces, and walks over tasks of which nothing is due, take some batches. */
enum { STILL_MAX = 500 };

static void check_still(struct world *w, struct server *s)
{
    const struct rv_counts *counts = rv_scheduler_counts(s->scheduler);
    uint64_t done = counts->calls + counts->fuel_in_batches + counts->fuel_beside + w->commits;
    s->still = done == s->done && w->now == s->still_at ? s->still + 1 : 0;
    s->done = done;
    s->still_at = w->now;
    if (s->still > STILL_MAX)
        world_violate(w, "I-42", "%s runs %u batches at one instant in which it does nothing",
                      s->name, s->still);
}

static void check_turn(struct world *w, struct server *s)
{
    uint64_t beside = rv_scheduler_counts(s->scheduler)->fuel_beside;
    uint64_t granted = beside - s->fuel_beside;
    s->fuel_beside = beside;
    if (granted > w->knobs.turn_fuel + PIECE_FUEL)
        world_violate(w, "I-37", "%s grants %llu units of fuel beside one batch, and a turn is %u",
                      s->name, (unsigned long long)granted, w->knobs.turn_fuel);
}

static bool is_short(const struct world *w, const struct rv_call_submit *submit)
{
    for (size_t i = 0; i < submit->count; i++)
        if (workload_is_heavy(w, submit->items[i].name) || submit->items[i].task.value != 0 ||
            submit->items[i].err != RV_OK)
            return false;
    return true;
}

void check_fair(struct world *w, struct server *s)
{
    const struct knobs *k = &w->knobs;
    check_still(w, s);
    check_turn(w, s);
    /* Where inputs are large, or the walk after a start is long, these delay it. */
    if (w->scenario != NULL || k->turn_fuel < TURN_FUEL || k->payload > 0 || check_few_bytes(w) ||
        k->scan_rows < (uint32_t)w->history->open)
        return;
    for (const struct served *served = s->out; served != NULL; served = served->next)
        if (served->taken && served->call.kind == RV_CALL_SUBMIT &&
            s->went_well - served->taken_in > CARRIED_MAX && is_short(w, &served->call.u.submit))
            world_violate(w, "I-37", "%s has not decided a submission in %llu batches", s->name,
                          (unsigned long long)(s->went_well - served->taken_in));
}
