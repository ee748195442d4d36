/* instance.h - this server among those that share its store: its number, and its lease on that. */
#ifndef RV_SCHEDULER_BATCH_INSTANCE_H
#define RV_SCHEDULER_BATCH_INSTANCE_H

#include "base/err.h"

struct rv_scheduler;

/* Takes a number in the store. Errors of the store. */
RV_CHECK enum rv_err instance_enlist(struct rv_scheduler *s);
/* In a batch: the lease is renewed with it, if that is due. After its commit. */
void instance_lease_keep(struct rv_scheduler *s);
void instance_lease_learn(struct rv_scheduler *s);

#endif
