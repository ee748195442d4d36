/* submit.h - submissions: many tasks in a call, each with its own result. */
#ifndef RV_SCHEDULER_CALLS_SUBMIT_H
#define RV_SCHEDULER_CALLS_SUBMIT_H

struct call_ops;

extern const struct call_ops submit_ops;

#endif
