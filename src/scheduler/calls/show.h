/* show.h - a task as it stands, or when it has changed. */
#ifndef RV_SCHEDULER_CALLS_SHOW_H
#define RV_SCHEDULER_CALLS_SHOW_H

struct call_ops;

extern const struct call_ops show_ops;

#endif
