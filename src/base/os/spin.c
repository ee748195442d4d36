#include "base/os/spin.h"

#include "base/os/clock.h"

#include <sched.h>

/* The shorter the look, the more often all who wait for each other are asleep at once. A processor
 * that rests deeply takes half a millisecond to wake, and what it is waited for with then is still
 * worth a look. */
enum {
    LOOK_US = 100,
    SOON_US = 1000,
    MISSES_MAX = 3, /* after so many waits that took longer, none is begun with a look */
    TURN_US = 200   /* after a longer turn, the time that a wake-up takes does not matter */
};

void rv_spin_init(struct rv_spin *spin)
{
    cpu_set_t allowed;
    *spin = (struct rv_spin){.misses = MISSES_MAX};
    spin->never = sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) < 2;
}

int64_t rv_spin_begin(struct rv_spin *spin, int64_t now_us)
{
    bool pays = !spin->never && spin->misses < MISSES_MAX && now_us - spin->ended_us <= TURN_US;
    spin->begun_us = now_us;
    return pays ? now_us + LOOK_US : now_us;
}

bool rv_spin_on(int64_t until_us)
{
    (void)sched_yield();
    return rv_clock_mono_us() < until_us;
}

void rv_spin_end(struct rv_spin *spin, int64_t now_us)
{
    spin->ended_us = now_us;
    if (now_us - spin->begun_us <= SOON_US)
        spin->misses = 0;
    else if (spin->misses < MISSES_MAX)
        spin->misses++;
}
