/* shares.h - parts of the agents' limits, where several servers share a store. */
#ifndef RV_SCHEDULER_DUTIES_SHARES_H
#define RV_SCHEDULER_DUTIES_SHARES_H

struct rv_scheduler;
struct rv_wants;

/* Before the transaction: whoever divides limits asks who lives. */
void shares_name(struct rv_scheduler *s, struct rv_wants *wants);

#endif
