/* operator.h - somebody who resubmits, undoes and cancels tasks, at any moment. */
#ifndef RV_SIM_OPERATOR_H
#define RV_SIM_OPERATOR_H

#include "base/id.h"
#include "sim/world/net.h"

/* What the sim's operator gives for a step that he skips: having looked at no late replies, or at
 * all that there are. */
#define OPERATOR_SKIPS_BLINDLY "{\"skipped\":\"blindly\"}"
/* The other inputs that he gives: he has looked and takes the old request for not done (he may be
 * wrong, as a late `done` then tells), or he has not. */
#define OPERATOR_EDITS_ASSUMING "{\"edited\":\"assuming\"}"
#define OPERATOR_EDITS "{\"edited\":true}"
#define OPERATOR_SKIPS_SEEING "{\"skipped\":\"seeing\"}"

struct world;

void operator_new(struct world *w);
/* Something will happen to the task at that instant: perhaps several commands just then. */
void operator_beside(struct world *w, struct rv_task_id task, int64_t at);
/* Once a second. */
void operator_turn(struct world *w);
void operator_answered(struct world *w, struct exchange *x);
void operator_lost(struct world *w, struct exchange *x);

#endif
