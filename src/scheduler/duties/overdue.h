/* overdue.h - what the owners of tasks should have decided, and have not. */
#ifndef RV_SCHEDULER_DUTIES_OVERDUE_H
#define RV_SCHEDULER_DUTIES_OVERDUE_H

struct rv_scheduler;
struct rv_wants;

/* Before the transaction: whether it looks at a piece of all open tasks. */
void overdue_name(struct rv_scheduler *s, struct rv_wants *wants);

#endif
