/* registered.h - the versions of what all servers know: API keys, limits, workflows (store.h). */
#ifndef RV_SCHEDULER_BATCH_REGISTERED_H
#define RV_SCHEDULER_BATCH_REGISTERED_H

#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/* What differs was changed by another server, or by this one. It is read again in the batch that
 * sees it, before anything is decided by it. */
struct registered {
    int64_t seen[RV_REGISTRY_COUNT];  /* with the begin of this batch; < 0: not known */
    int64_t known[RV_REGISTRY_COUNT]; /* of what is in memory; < 0: nothing is */
};

/* Nothing is known. */
void registered_forget(struct registered *registered);
/* A batch has begun. `wants` NULL: without its load; what may have changed meanwhile counts as
 * changed. */
void registered_see(struct registered *registered, const struct rv_wants *wants, bool shared);
bool registered_changed(const struct registered *registered, enum rv_registry kind);
/* It was read in this batch. */
void registered_know(struct registered *registered, enum rv_registry kind);

#endif
