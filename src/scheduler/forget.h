/* forget.h - a server that learns all that it knows from the rows again. */
#ifndef RV_SCHEDULER_FORGET_H
#define RV_SCHEDULER_FORGET_H

struct rv_scheduler;

/* As at the start. */
void supervisor_init(struct rv_scheduler *s);
/* A standby took over that had not heard of what was committed. */
void forget_history(struct rv_scheduler *s);
/* This instance was away for longer than its lease, and another one has deposed it: its tasks are
 * others' by now. Nothing of the batch, which is over, is written. It goes on under another
 * number. */
void forget_deposed(struct rv_scheduler *s);

#endif
