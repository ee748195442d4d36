/* patience.h - how long calls wait for a store that does not answer the scheduler's thread. */
#ifndef RV_SERVER_PATIENCE_H
#define RV_SERVER_PATIENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One thread tells (rv_scheduler_waits), others ask. */
struct rv_patience {
    atomic_llong until; /* monotonic, ms; INT64_MAX: nobody waits */
};

void rv_patience_init(struct rv_patience *patience);
/* `self` is a struct rv_patience. */
void rv_patience_tell(void *self, int64_t until);
bool rv_patience_over(void *self);

#endif
