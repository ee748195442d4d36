/* selections.h - selections of tasks, for bulk commands. */
#ifndef RV_SCHEDULER_CALLS_SELECTIONS_H
#define RV_SCHEDULER_CALLS_SELECTIONS_H

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_call;
struct rv_arena;
struct rv_scheduler;
struct rv_selection;
struct rv_store;

RV_CHECK enum rv_err selection_put(struct rv_scheduler *s, const struct rv_selection *selection,
                                   int64_t epoch);
/* As the store has it; *ret_found false: it has none. */
RV_CHECK enum rv_err selection_load(struct rv_store *store, struct rv_arena *arena,
                                    struct rv_task_id id, bool *ret_found,
                                    struct rv_selection *ret_selection);
/* How many outcomes of each kind are known to the store. */
RV_CHECK enum rv_err selection_outcomes(struct rv_store *store, struct rv_arena *arena,
                                        struct rv_selection *selection);
/* NOT_FOUND and unreadable ones are the call's refusal. */
RV_CHECK enum rv_err selection_find(struct rv_store *store, struct rv_call *call,
                                    struct rv_task_id id, struct rv_selection *ret_selection);
/* How many selections there are, and with how many of them a bulk command is under way. */
RV_CHECK enum rv_err selections_count(struct rv_scheduler *s, size_t *ret_all, size_t *ret_open);
#endif
