/* hand_out.h - steps that are ready are handed to polls. */
#ifndef RV_SCHEDULER_CALLS_HAND_OUT_H
#define RV_SCHEDULER_CALLS_HAND_OUT_H

#include "base/err.h"

struct rv_scheduler;

/* To polls of the batch and to those that are parked, within this transaction. */
RV_CHECK enum rv_err hand_out_match(struct rv_scheduler *s);

#endif
