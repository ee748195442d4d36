/* own.h - whose a task is: the server that has committed its newest change tends it. */
#ifndef RV_SCHEDULER_BATCH_OWN_H
#define RV_SCHEDULER_BATCH_OWN_H

#include "base/err.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_scanned;
struct rv_scheduler;
struct rv_task;
struct work;

/* Whether this server tends the task: it decides what is due for it, and hands out its steps. With
 * a store of its own it tends all. */
bool task_is_own(const struct rv_scheduler *s, const struct rv_task *task);
/* Whether this server decides what is due for the task: it tended it before the batch, begins it,
 * or takes it over. A call that was decided in the batch is no reason. */
bool work_is_own(const struct rv_scheduler *s, const struct work *work);
/* A task without a live owner becomes this server's, with this batch. MEMORY. */
RV_CHECK enum rv_err work_own(struct rv_scheduler *s, struct work *work);
/* Whether the batch has asked for the task as a claim, and another transaction has it: that may
 * come to nothing, and the task is looked at again. */
bool own_skipped(struct rv_scheduler *s, struct rv_task_id id);
/* The task is another server's, or gone: what is remembered of it is forgotten. Its steps are those
 * of the work; what else is known of it the end of a walk finds (duties/scan.c). */
void own_forget(struct rv_scheduler *s, const struct work *work);
/* The caches know the task, which is this server's. MEMORY: they may not, and the walk finds it. */
RV_CHECK enum rv_err own_note(struct rv_scheduler *s, const struct rv_task *task);
/* The walk meets the task: whether the caches know it as its row is. */
bool own_meet(struct rv_scheduler *s, const struct rv_scanned *row);
/* What the caches know of the task may be too little: the walk loads it. */
void own_doubt(struct rv_scheduler *s, struct rv_task_id id);
/* The walk of that round has met all that is this server's: what else is known of tasks is
 * forgotten. */
void own_sweep(struct rv_scheduler *s, uint64_t round);

#endif
