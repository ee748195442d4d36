/* load.h - the tasks that a batch touches, loaded and decided. */
#ifndef RV_SCHEDULER_BATCH_LOAD_H
#define RV_SCHEDULER_BATCH_LOAD_H

#include "base/err.h"
#include "base/id.h"
#include "core/decide.h"

#include <stddef.h>
#include <stdint.h>

struct asker;
struct rv_wants;
struct rv_scheduler;
struct work;
struct workflow_entry;

/* The task's work in this batch, loaded when it is new; ->task NULL when there is none. */
RV_CHECK enum rv_err work_get(struct rv_scheduler *s, struct rv_task_id id, struct work **ret_work);
/* The work for a task that begins; no row has its id. */
RV_CHECK enum rv_err work_new(struct rv_scheduler *s, struct rv_task_id id,
                              struct workflow_entry *workflow, struct work **ret_work);
/* Loads the step into the work, which may turn out to be broken; NOT_FOUND when there is none. */
RV_CHECK enum rv_err work_step_load(struct rv_scheduler *s, struct work *work, uint32_t number);
/* Notes the rule that the rows of the work break, if they do. */
RV_CHECK enum rv_err work_check(struct rv_scheduler *s, struct work *work);
/* Decides the command on the work and takes the plan over. The plan's answer fields are in
 * *ret_plan. With an asker the decision may take longer than its turn: work->waits says that
 * nothing is decided yet, and the same asker asks again in a later batch. */
RV_CHECK enum rv_err work_decide(struct rv_scheduler *s, struct work *work,
                                 struct rv_command *command, const struct asker *asker,
                                 struct rv_plan *ret_plan);
/* For evaluations: a work of no batch. Its task and open steps, if it is there; rows that a
 * decision has asked for; what it sees. */
RV_CHECK enum rv_err work_read(struct rv_scheduler *s, struct work *work);
RV_CHECK enum rv_err work_load_more(struct rv_scheduler *s, struct work *work,
                                    const struct rv_command *command, enum rv_verdict verdict,
                                    const struct rv_plan *plan);
RV_CHECK enum rv_err work_view(struct rv_scheduler *s, const struct work *work, uint32_t step,
                               uint64_t token, struct rv_view *ret_view);
/* Steps of the work that wait for an agent go into the ready queues. */
void work_offer(struct rv_scheduler *s, struct work *work);
/* The work's change was not committed: the caches learn its steps as they were loaded. */
void work_withdraw(struct rv_scheduler *s, const struct work *work);
/* A load begins: its tasks are named once. */
void work_load_begin(struct rv_scheduler *s);
/* The tasks of these steps that the batch does not have yet, and this load has not named; `ret_ids`
 * has room for `count`. Gives their number. */
size_t work_load_name(struct rv_scheduler *s, const struct rv_step_id *ids, size_t count,
                      struct rv_task_id *ret_ids);
/* What was loaded becomes part of the batch. */
RV_CHECK enum rv_err work_load_take(struct rv_scheduler *s, const struct rv_wants *load);
/* Loads tasks that the batch will ask for, many in one go, until the share of the part that is
 * under way is used: the first one always, if `count` is not 0. */
RV_CHECK enum rv_err work_prefetch(struct rv_scheduler *s, const struct rv_step_id *ids,
                                   size_t count);
/* The same, of tasks that only one server need decide; own_skipped tells what others have. */
RV_CHECK enum rv_err work_claim(struct rv_scheduler *s, const struct rv_step_id *ids, size_t count);

#endif
