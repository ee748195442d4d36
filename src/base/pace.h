/* pace.h - work that is counted in units of fuel (about 10 ns each) and may be interrupted. */
#ifndef RV_BASE_PACE_H
#define RV_BASE_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whoever works takes what it has done from `left` and calls rv_pace_spend. When and how often
 * `pause` is called never changes what the work gives. */
struct rv_pace {
    int64_t left; /* units until `pause` is called */
    /* Comes back when the work may go on, with `left` above 0; false: the work is given up. */
    bool (*pause)(void *self);
    void *self;
    bool given_up;
};

/* False: the work is given up, and whatever it gives is thrown away. NULL: nobody interrupts. */
static inline bool rv_pace_spend(struct rv_pace *pace, int64_t units)
{
    if (pace == NULL)
        return true;
    pace->left -= units;
    if (pace->left < 0 && !pace->given_up)
        pace->given_up = !pace->pause(pace->self);
    return !pace->given_up;
}

#endif
