/* place.h - whether the store's files are where they were. */
#ifndef RV_SCHEDULER_DUTIES_PLACE_H
#define RV_SCHEDULER_DUTIES_PLACE_H

#include "base/err.h"

struct rv_scheduler;

RV_CHECK enum rv_err place_look(struct rv_scheduler *s);
void place_refuse(struct rv_scheduler *s);
/* What came of a batch, which the store may have refused as DISPLACED. Errors: that, or as from a
 * look. */
RV_CHECK enum rv_err place_learn(struct rv_scheduler *s, enum rv_err err);
/* What a batch returns that went well or was refused for now. */
enum rv_err place_heed(const struct rv_scheduler *s, enum rv_err err);

#endif
