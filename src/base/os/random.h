/* random.h - unguessable numbers from the operating system. */
#ifndef RV_BASE_OS_RANDOM_H
#define RV_BASE_OS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Always fills all of it: a process that cannot get random bytes stops. */
void rv_random_bytes(void *at, size_t bytes);

/* The same, fetched 4 KiB at a time, for one thread. Zeroed is a valid start. A number that was
 * given out is wiped, so a later look at the memory does not tell it. */
struct rv_random {
    uint64_t pool[512];
    size_t left;
};

uint64_t rv_random_next(struct rv_random *random);

#endif
