/* scan.h - the walk over the tasks that this server owns. */
#ifndef RV_SCHEDULER_DUTIES_SCAN_H
#define RV_SCHEDULER_DUTIES_SCAN_H

struct rv_scheduler;
struct rv_wants;

/* The next piece, if it will be due. */
void scan_name(struct rv_scheduler *s, struct rv_wants *wants);

#endif
