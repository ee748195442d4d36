/* operator.h - somebody who resubmits, undoes and cancels tasks, at any moment. */
#ifndef RV_SIM_OPERATOR_H
#define RV_SIM_OPERATOR_H

#include "sim/net.h"

struct world;

void operator_new(struct world *w);
/* Once a second. */
void operator_turn(struct world *w);
void operator_answered(struct world *w, struct exchange *x);
void operator_lost(struct world *w, struct exchange *x);

#endif
