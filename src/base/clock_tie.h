/* clock_tie.h - what another's clock shows, by the monotonic clock of this process; pure. */
#ifndef RV_BASE_CLOCK_TIE_H
#define RV_BASE_CLOCK_TIE_H

#include <stdbool.h>
#include <stdint.h>

/* Who asks for another's time gets it some time after it was read: it was read between the question
 * and the answer. How far that clock is ahead of the own one changes slowly (base/slew.h), so the
 * quickest answers so far bound it closely, also when an answer takes long. Milliseconds. */
struct rv_clock_tie {
    bool tied;
    int64_t most; /* it is ahead by so much at most, */
    int64_t most_at;
    int64_t least; /* and by so much at least: as it was measured at that instant */
    int64_t least_at;
};

/* Asked at `before`, the other's clock was said at `after` to show `now`. It showed that not before
 * *ret_first, and not after *ret_last; both lie between `before` and `after`. A clock that was set
 * is measured anew. */
void rv_clock_tie_look(struct rv_clock_tie *tie, int64_t now, int64_t before, int64_t after,
                       int64_t *ret_first, int64_t *ret_last);

#endif
