/* conflict.h - changes that lose their guard to those of other servers. */
#ifndef RV_SIM_CONFLICT_H
#define RV_SIM_CONFLICT_H

#include <stdint.h>

/* Of all that were sent to a shared store. */
struct conflicts {
    uint64_t changes;
    uint64_t lost;
    uint64_t unclaimed; /* ... where one of the two had no claim: it had a call, or was late */
};

struct rv_batch;
struct server;
struct world;

/* Called after the store has checked all guards of the batch. */
void check_conflicts(struct world *w, const struct server *s, const struct rv_batch *batch);

#endif
