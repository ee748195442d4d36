/* takeover.h - tasks of servers that are not there any more. */
#ifndef RV_SCHEDULER_DUTIES_TAKEOVER_H
#define RV_SCHEDULER_DUTIES_TAKEOVER_H

struct rv_scheduler;
struct rv_wants;

/* Before the transaction: whether it looks for tasks without a live owner. */
void takeover_name(struct rv_scheduler *s, struct rv_wants *wants);

#endif
