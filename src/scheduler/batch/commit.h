/* commit.h - the transaction of a batch. */
#ifndef RV_SCHEDULER_BATCH_COMMIT_H
#define RV_SCHEDULER_BATCH_COMMIT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_scheduler;
struct rv_wants;

/* The store's begin; what it says of lost history is kept for the next batch. */
/* The batch's first: its instant, by both clocks. */
RV_CHECK enum rv_err commit_first_begin(struct rv_scheduler *s, struct rv_wants *wants);
RV_CHECK enum rv_err commit_transaction_begin(struct rv_scheduler *s, struct rv_wants *wants,
                                              int64_t *ret_now);
RV_CHECK enum rv_err batch_commit(struct rv_scheduler *s);
/* Nothing has to be written; nothing but alerts of the server's own. */
bool batch_only_reads(const struct rv_scheduler *s);
bool batch_only_asks(const struct rv_scheduler *s);
/* Of what calls without a task were told nothing is void: it was written, or nothing was to be. */
bool commit_taskless_holds(const struct rv_scheduler *s);

#endif
