#include "base/clock_tie.h"

#include "base/assert.h"
#include "base/slew.h"

/* How far the clocks may have drifted apart since. */
static int64_t drift(int64_t since, int64_t at)
{
    return at > since ? (at - since) / RV_SLEW_DIVISOR : 0;
}

void rv_clock_tie_look(struct rv_clock_tie *tie, int64_t now, int64_t before, int64_t after,
                       int64_t *ret_first, int64_t *ret_last)
{
    rv_assert(before <= after);
    int64_t most = tie->most + drift(tie->most_at, after);
    int64_t least = tie->least - drift(tie->least_at, after);
    bool fits = tie->tied && now - after <= most + 1 && now - before >= least - 1;
    if (!fits || now - before <= most) {
        tie->most = most = now - before;
        tie->most_at = before;
    }
    if (!fits || now - after >= least) {
        tie->least = least = now - after;
        tie->least_at = before;
    }
    tie->tied = true;
    /* Both clocks, and the drift, are in whole milliseconds. */
    int64_t first = now - most - 1, last = now - least + 1;
    *ret_first = first < before ? before : first > after ? after : first;
    *ret_last = last < *ret_first ? *ret_first : last > after ? after : last;
}
