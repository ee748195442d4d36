#include "base/os/clock.h"

#include "base/assert.h"

#include <time.h>

static int64_t clock_us(clockid_t which)
{
    struct timespec t;
    int failed = clock_gettime(which, &t);
    rv_assert(failed == 0);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t rv_clock_wall_ms(void)
{
    return clock_us(CLOCK_REALTIME) / 1000;
}

int64_t rv_clock_mono_ms(void)
{
    return clock_us(CLOCK_MONOTONIC) / 1000;
}

int64_t rv_clock_mono_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

int64_t rv_clock_boot_ms(void)
{
    return clock_us(CLOCK_BOOTTIME) / 1000;
}
