#include "base/prng.h"

#include "base/assert.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void rv_prng_init(struct rv_prng *prng, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        prng->s[i] = splitmix(&seed);
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

uint64_t rv_prng_next(struct rv_prng *prng)
{
    uint64_t *s = prng->s;
    rv_assert((s[0] | s[1] | s[2] | s[3]) != 0); /* xoshiro gives only zeros from this state */
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t rv_prng_below(struct rv_prng *prng, uint64_t bound)
{
    rv_assert(bound > 0);
    uint64_t skew = (0 - bound) % bound; /* numbers below it would favour the small results */
    uint64_t x;
    do
        x = rv_prng_next(prng);
    while (x < skew);
    return x % bound;
}

double rv_prng_unit(struct rv_prng *prng)
{
    return (double)(rv_prng_next(prng) >> 11) * 0x1.0p-53;
}
