/* counts.h - the numbers, learned from what a batch has changed. */
#ifndef RV_SCHEDULER_WATCH_COUNTS_H
#define RV_SCHEDULER_WATCH_COUNTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_call_replies;
struct rv_call_submit;
struct rv_scheduler;
struct work;

/* The task's change is committed. */
void counts_learn(struct rv_scheduler *s, struct work *work);
/* The calls that are answered for good. */
void counts_submissions(struct rv_scheduler *s, const struct rv_call_submit *submit);
void counts_replies(struct rv_scheduler *s, const struct rv_call_replies *replies);
void counts_batch(struct rv_scheduler *s, size_t calls, int64_t begun_us, bool refused);

#endif
