#include "dispatch/health.h"

#include "base/assert.h"

enum { WEIGHT = 4, WELL_BELOW = HEALTH_WORST / 8, ILL_FROM = HEALTH_WORST / 2 };

/* Halves at each half-life, and along a straight line between two of them. */
int32_t health_failing(const struct health *health, int64_t now)
{
    int64_t ms = now - health->at;
    rv_assert(health->failing >= 0);
    rv_assert(health->failing <= HEALTH_WORST);
    if (ms <= 0)
        return health->failing;
    int64_t halves = ms / HEALTH_HALF_MS;
    if (halves > 10)
        return 0;
    int64_t rest = ms % HEALTH_HALF_MS;
    int64_t failing = health->failing >> halves;
    return (int32_t)(failing - failing * rest / (2 * HEALTH_HALF_MS));
}

void health_note(struct health *health, bool done, int64_t now)
{
    int32_t failing = health_failing(health, now);
    failing -= failing / WEIGHT;
    rv_assert(failing >= 0);
    if (!done)
        failing += HEALTH_WORST / WEIGHT;
    *health = (struct health){now, failing < HEALTH_WORST ? failing : HEALTH_WORST};
}

int health_class(const struct health *health, int64_t now)
{
    int32_t failing = health_failing(health, now);
    if (failing < WELL_BELOW)
        return 0;
    return failing < ILL_FROM ? 1 : 2;
}
