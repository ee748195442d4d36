/* slew.h - a clock that follows the wall clock without ever jumping with it; pure. */
#ifndef RV_BASE_SLEW_H
#define RV_BASE_SLEW_H

#include <stdint.h>

/* It goes on with the monotonic clock, and approaches the wall clock by 1 ms in RV_SLEW_DIVISOR:
 * as much as agents allow two clocks to drift apart (decision 009), so no deadline of theirs is cut
 * short. It never goes back: where the wall clock is behind, it is slower by that much, and does
 * not stand. Milliseconds. */
struct rv_slew {
    int64_t shown;     /* no instant below it is ever given again */
    int64_t base;      /* what it showed, */
    int64_t base_mono; /* and when, by the monotonic clock */
};

enum { RV_SLEW_DIVISOR = 2000 };

/* From the wall clock on, or from `floor` where that is later. */
void rv_slew_begin(struct rv_slew *slew, int64_t wall, int64_t mono, int64_t floor);
/* The instant to give out; `wall` minus that is how far it is off. */
int64_t rv_slew_read(struct rv_slew *slew, int64_t wall, int64_t mono);
/* The same where there is no monotonic clock: the wall clock, but never back. */
int64_t rv_slew_follow(struct rv_slew *slew, int64_t wall);

#endif
