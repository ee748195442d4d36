/* steal.h - steps of other servers' tasks, for polls that wait here with nothing ready. */
#ifndef RV_SCHEDULER_DUTIES_STEAL_H
#define RV_SCHEDULER_DUTIES_STEAL_H

#include "base/err.h"

struct rv_scheduler;
struct rv_wants;

/* Before the transaction: the agents for whose polls the store is asked, whoever owns the steps. */
RV_CHECK enum rv_err steal_name(struct rv_scheduler *s, struct rv_wants *wants);

#endif
