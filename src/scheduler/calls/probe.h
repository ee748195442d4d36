/* probe.h - the choice of the step that a close-circuit tries. */
#ifndef RV_SCHEDULER_CALLS_PROBE_H
#define RV_SCHEDULER_CALLS_PROBE_H

#include "base/err.h"

struct rv_call;
struct rv_scheduler;

/* Chooses task and step of a close-circuit. */
RV_CHECK enum rv_err probe_choose(struct rv_scheduler *s, struct rv_call *call);

#endif
