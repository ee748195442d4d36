/* hash.h - a seeded 64-bit hash for tables whose keys strangers choose. */
#ifndef RV_BASE_HASH_H
#define RV_BASE_HASH_H

#include "base/str.h"

#include <stdint.h>

/* SipHash-1-3 under a 128-bit key (Aumasson and Bernstein): fast, and without the key nobody can
 * make keys collide. Not for signatures. */
struct rv_hash_key {
    uint64_t k0;
    uint64_t k1;
};

uint64_t rv_hash(struct rv_hash_key key, struct rv_str bytes);

/* A good mix of one integer, for tables keyed by our own ids. */
static inline uint64_t rv_hash_int(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

#endif
