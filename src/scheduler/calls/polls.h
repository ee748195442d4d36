/* polls.h - polls for work. */
#ifndef RV_SCHEDULER_CALLS_POLLS_H
#define RV_SCHEDULER_CALLS_POLLS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pending;
struct rv_step_id;
struct rv_scheduler;
struct work;

/* Looks at the poll's boot, confirmations, repeats; ends what they say has ended. */
RV_CHECK enum rv_err poll_admit(struct rv_scheduler *s, struct pending *p);
/* The steps of the attempts that it tells the end of, or asks for once more: their number. */
size_t poll_wants(const struct rv_scheduler *s, const struct pending *p, struct rv_step_id *ids,
                  size_t room);
/* The poll gets the step's newest attempt; `repeat`: once more. */
RV_CHECK enum rv_err polls_match_add(struct rv_scheduler *s, struct pending *p, struct work *work,
                                     uint32_t step, bool repeat);
/* After the commit: fills the poll's answer; false: nothing for it, it may be parked. True also
 * when it is unanswerable: then it must be refused, since an answer without them would be
 * confirmed; asked again, it gets what it was given. */
bool poll_fill(struct rv_scheduler *s, struct pending *p);
/* It is not admitted yet: the walk after the start is under way, or what it tells is not decided,
 * or not written. It comes back with the next batch, or once an evaluation that it waits for is
 * over. */
void poll_carry(struct rv_scheduler *s, struct pending *p);
/* The poll is admitted anew with a later batch, and gets what it has taken as it is then. */
void poll_unadmit(struct pending *p);
/* Nothing that the batch was to hand out goes to the poll. */
void poll_unmatch(struct pending *p);
/* Nothing of the batch is written, but what the poll confirms (p->poll may be NULL) holds. */
void poll_forget(struct rv_scheduler *s, struct pending *p);
void polls_act_parked(struct rv_scheduler *s);
/* The batch failed: the same for those that are parked. */
void polls_unmatch_parked(struct rv_scheduler *s);

#endif
