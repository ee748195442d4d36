/* asked.h - the questions to the store that may take long. */
#ifndef RV_SCHEDULER_BATCH_ASKED_H
#define RV_SCHEDULER_BATCH_ASKED_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_batch;
struct rv_enlistment;
struct rv_scheduler;
struct rv_wants;

/* Each is the operation of that name (store.h). All other reads are within a transaction, and a
 * shared store gives them up after seconds. */
RV_CHECK enum rv_err asked_enlist(struct rv_scheduler *s, struct rv_enlistment *ret_enlistment);
RV_CHECK enum rv_err asked_begin(struct rv_scheduler *s, struct rv_wants *load, int64_t *ret_now);
RV_CHECK enum rv_err asked_load(struct rv_scheduler *s, struct rv_wants *load);
RV_CHECK enum rv_err asked_commit(struct rv_scheduler *s, struct rv_batch *batch);
RV_CHECK enum rv_err asked_committed(struct rv_scheduler *s, int64_t number, bool *ret_committed);

#endif
