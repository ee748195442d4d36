/* health.h - how well an instance of an agent has done lately, in one number. */
#ifndef RV_DISPATCH_HEALTH_H
#define RV_DISPATCH_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

/* The share of failures among its last few attempts, from 0 to HEALTH_WORST: each outcome counts a
 * quarter, all before it three. It halves in every HEALTH_HALF_MS, so that whoever gets nothing
 * more is tried again after half a minute at most. Pure arithmetic, kept in memory alone. */
struct health {
    int64_t at;
    int32_t failing;
};

enum { HEALTH_WORST = 1024, HEALTH_HALF_MS = 10000 };

void health_note(struct health *health, bool done, int64_t now);
/* At `now`. */
int32_t health_failing(const struct health *health, int64_t now);
/* 0: well; 1: it has failed lately; 2: most of what it had has failed. */
int health_class(const struct health *health, int64_t now);

#endif
