/* I-31: what a server keeps of its callers is bounded, whatever is offered: it parks so many calls
 * as its setting says, refuses the others (503), and carries none from batch to batch for long. So
 * its memory is bounded too, since each call has an arena with a cap.
 *
 * The worlds with few places to park are looked at. Arenas over their cap and the size of answers
 * are the torture's and test_bounds'; the mailbox is the server's room. */
#include "sim/check/check.h"

#include "sim/world/server.h"
#include "sim/world/world.h"

/* A call that is carried is tried so often, or waits for the walk after a start. */
enum { CARRIED_MAX = 12, PARKED_FEW = 100 };

void check_load(struct world *w, const struct server *s)
{
    const struct knobs *k = &w->knobs;
    if (w->scenario != NULL || k->parked_max > PARKED_FEW)
        return;
    uint64_t batches = CARRIED_MAX + (uint64_t)w->history->open / k->scan_rows;
    uint32_t kept = 0;
    for (const struct served *served = s->out; served != NULL; served = served->next)
        kept += served->taken && s->went_well - served->taken_in > batches;
    if (kept > k->parked_max)
        world_violate(w, "I-31", "%s keeps %u calls, and has room for %u", s->name, kept,
                      k->parked_max);
}
