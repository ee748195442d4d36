/* cures.h - the commands that a task accepts. */
#ifndef RV_SCHEDULER_QUERIES_CURES_H
#define RV_SCHEDULER_QUERIES_CURES_H

#include "base/err.h"
#include "base/id.h"
#include "core/cure.h"

#include <stddef.h>
#include <stdint.h>

struct rv_arena;
struct rv_scheduler;
struct rv_str;
struct rv_task;
struct work;
struct workflow_entry;

/* What leads a task in error on, by its rows as `work` has them (NULL: as stored). */
RV_CHECK enum rv_err cures_find(struct rv_scheduler *s, const struct rv_task *task,
                                const struct workflow_entry *entry, const struct work *work,
                                struct rv_cure ret_cures[static RV_CURES_MAX], size_t *ret_count);
/* How many late replies the task has, with those that this batch adds; of the stored ones at most
 * `limit` are counted. */
RV_CHECK enum rv_err ledger_count(struct rv_scheduler *s, struct rv_task_id task,
                                  const struct work *work, size_t limit, uint32_t *ret_count);
/* Adds them to a refusal. */
RV_CHECK enum rv_err cures_add(struct rv_scheduler *s, struct rv_arena *arena,
                               const struct work *work, struct rv_str *message);

#endif
