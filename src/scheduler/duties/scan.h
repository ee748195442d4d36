/* scan.h - the repair scan: what is learned from the rows that nobody asks for. */
#ifndef RV_SCHEDULER_DUTIES_SCAN_H
#define RV_SCHEDULER_DUTIES_SCAN_H

#include "base/err.h"
#include "base/id.h"

struct rv_scheduler;
struct rv_task;

/* The caches know the task as it is here; NULL: there is none. */
RV_CHECK enum rv_err peers_note(struct rv_scheduler *s, struct rv_task_id id,
                                const struct rv_task *task);
/* Another server has moved the task, or nobody knows whether: the next batch loads it. */
void peers_miss(struct rv_scheduler *s, struct rv_task_id id);
/* Nothing is known of the task: the next round loads it. */
void peers_lose(struct rv_scheduler *s, struct rv_task_id id);

#endif
