/* prng.h - random numbers from a seed: the same seed, the same numbers. */
#ifndef RV_BASE_PRNG_H
#define RV_BASE_PRNG_H

#include <stdint.h>

/* xoshiro256** (Blackman and Vigna), seeded through splitmix64. Unguessable only as far as its
 * seed is; the seeds that make tokens come from the operating system. */
struct rv_prng {
    uint64_t s[4];
};

void rv_prng_init(struct rv_prng *prng, uint64_t seed);
uint64_t rv_prng_next(struct rv_prng *prng);
/* Uniform in [0, bound); bound > 0. */
uint64_t rv_prng_below(struct rv_prng *prng, uint64_t bound);
/* Uniform in [0, 1). */
double rv_prng_unit(struct rv_prng *prng);

#endif
