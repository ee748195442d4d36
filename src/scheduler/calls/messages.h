/* messages.h - what a task's submitter has been told. */
#ifndef RV_SCHEDULER_CALLS_MESSAGES_H
#define RV_SCHEDULER_CALLS_MESSAGES_H

struct call_ops;

extern const struct call_ops messages_ops;

#endif
