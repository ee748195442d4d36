/* clock.h - the wall clock's jumps, which are told to an operator and change nothing. */
#ifndef RV_SCHEDULER_DUTIES_CLOCK_H
#define RV_SCHEDULER_DUTIES_CLOCK_H

struct rv_scheduler;

void clock_note(struct rv_scheduler *s);

#endif
