/* answers.h - how calls are answered that need nothing else after the commit. */
#ifndef RV_SCHEDULER_BATCH_ANSWERS_H
#define RV_SCHEDULER_BATCH_ANSWERS_H

#include "base/err.h"

#include <stdbool.h>

struct pending;
struct rv_scheduler;

/* What the call asks for, before the commit. */
RV_CHECK enum rv_err call_decide(struct rv_scheduler *s, struct pending *p);
/* For calls that are decided when all others are, or only after the commit. */
RV_CHECK enum rv_err answers_later_decide(struct rv_scheduler *s, struct pending *p);
/* As it was decided. */
void answers_finish_act(struct rv_scheduler *s, struct pending *p);
/* What belongs to no task (a publication, an acknowledgement, an alert from outside, records) is
 * written by itself where the batch was refused. */
void answers_taskless_act(struct rv_scheduler *s, struct pending *p);
/* A call that changes records. False: another came first, and it is decided in the next batch. */
bool record_turn(struct rv_scheduler *s, struct pending *p);
void record_act(struct rv_scheduler *s, struct pending *p);

#endif
