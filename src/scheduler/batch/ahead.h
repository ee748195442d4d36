/* ahead.h - what a batch will need is loaded as it begins, in one round trip. */
#ifndef RV_SCHEDULER_BATCH_AHEAD_H
#define RV_SCHEDULER_BATCH_AHEAD_H

#include "base/err.h"
#include "base/id.h"

#include <stddef.h>

struct rv_scheduler;
struct rv_wants;

/* What the duties will need (duties/duty.h). */
typedef size_t ahead_duties_fn(const struct rv_scheduler *s, struct rv_step_id *ids, size_t room);
/* Names what the calls of the batch are about, the tasks that are due, those that the duties and
 * long decisions will need, and the steps that come next
 * in the ready queues for which its polls ask. A guess: what is missing is loaded when it is asked
 * for, and what was not needed is looked at and left as it is. */
RV_CHECK enum rv_err ahead_name(struct rv_scheduler *s, ahead_duties_fn *duties_want,
                                struct rv_wants *ret_wants);
/* It was loaded: it becomes part of the batch. */
RV_CHECK enum rv_err ahead_take(struct rv_scheduler *s, const struct rv_wants *wants);
/* What the calls are about and that load had no room for, as far as their shares have it. */
RV_CHECK enum rv_err ahead_load_rest(struct rv_scheduler *s);

#endif
