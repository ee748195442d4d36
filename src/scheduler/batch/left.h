/* left.h - replies and renewals that wait for a later batch. */
#ifndef RV_SCHEDULER_BATCH_LEFT_H
#define RV_SCHEDULER_BATCH_LEFT_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_call;
struct rv_scheduler;

/* Before the decisions: notes those of large calls whose turn is a later batch's. */
void left_behind_note(struct rv_scheduler *s);
/* After the decisions on calls: notes the replies and renewals that wait for the next batch. */
void left_replies_note(struct rv_scheduler *s);
/* For the calls' `leave`: one about that attempt waits. */
void left_note(struct rv_scheduler *s, const struct rv_call *call, struct rv_step_id id,
               uint64_t token);
/* Until when it is known who has answered in time: batch.ends_until, and left_has. */
void left_ends_know(struct rv_scheduler *s);
/* Whether one about that attempt waits. */
bool left_has(const struct rv_scheduler *s, uint64_t token, uint32_t step);

#endif
