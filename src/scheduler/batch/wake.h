/* wake.h - what a decision about a task that is due is told. */
#ifndef RV_SCHEDULER_BATCH_WAKE_H
#define RV_SCHEDULER_BATCH_WAKE_H

#include <stdbool.h>

struct rv_command;
struct rv_scheduler;
struct work;

/* For a WAKE of the work: what only the caches know of what is due. False: whether all of it is due
 * is not known yet, since replies may have come before. */
bool wake_know(struct rv_scheduler *s, struct work *work, struct rv_command *command);

#endif
