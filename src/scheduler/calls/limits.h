/* limits.h - the operator's word on what the agents of one name may take. */
#ifndef RV_SCHEDULER_CALLS_LIMITS_H
#define RV_SCHEDULER_CALLS_LIMITS_H

struct call_ops;

extern const struct call_ops limit_ops;

#endif
