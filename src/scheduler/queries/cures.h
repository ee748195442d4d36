/* cures.h - the commands that a task accepts. */
#ifndef RV_SCHEDULER_QUERIES_CURES_H
#define RV_SCHEDULER_QUERIES_CURES_H

#include "base/err.h"
#include "base/id.h"
#include "core/cure.h"

#include <stddef.h>
#include <stdint.h>

struct query;
struct rv_arena;
struct rv_str;
struct rv_task;
struct workflow_entry;

/* Rows of a task that a decision has made and that are not stored yet. */
struct newer {
    const struct rv_step *(*step)(const void *self, uint32_t number); /* NULL: it has none */
    const void *self;
    size_t late_count; /* late replies beside the stored ones */
};

/* What leads a task in error on, by its rows as `newer` has them (NULL: as stored). */
RV_CHECK enum rv_err cures_find(const struct query *q, const struct rv_task *task,
                                const struct workflow_entry *entry, const struct newer *newer,
                                struct rv_cure ret_cures[static RV_CURES_MAX], size_t *ret_count);
/* How many late replies the task has, with those that this batch adds; of the stored ones at most
 * `limit` are counted. */
RV_CHECK enum rv_err cures_ledger_count(const struct query *q, struct rv_task_id task,
                                        const struct newer *newer, size_t limit,
                                        uint32_t *ret_count);

#endif
