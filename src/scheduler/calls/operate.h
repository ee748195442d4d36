/* operate.h - the operator's commands, and publications. */
#ifndef RV_SCHEDULER_CALLS_OPERATE_H
#define RV_SCHEDULER_CALLS_OPERATE_H

#include "base/err.h"

#include <stdint.h>

struct asker;
struct rv_call_operate;
struct rv_plan;
struct rv_scheduler;
struct work;

/* The operator's word about the task of the work, which is there. */
RV_CHECK enum rv_err operate_work(struct rv_scheduler *s, const struct rv_call_operate *operate,
                                  uint64_t seed, struct work *work, const struct asker *asker,
                                  struct rv_plan **ret_plan);

#endif
