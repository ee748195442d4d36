#include "client/jitter.h"

int64_t rv_jitter_ms(struct rv_prng *prng, int64_t base_ms, int64_t cap_ms, unsigned failures)
{
    int64_t top = base_ms;
    for (unsigned i = 0; i < failures && top < cap_ms; i++)
        top *= 2;
    if (top > cap_ms)
        top = cap_ms;
    return top <= 0 ? 0 : (int64_t)rv_prng_below(prng, (uint64_t)top + 1);
}
