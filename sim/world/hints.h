/* hints.h - what servers of one store tell each other: that steps of an agent wait. */
#ifndef RV_SIM_HINTS_H
#define RV_SIM_HINTS_H

#include "store/store.h"

#include <stdint.h>

struct world;

void hints_new(struct world *w);
void hints_free(struct world *w);
/* A batch of the server is written: the others hear of what waits there, late or never. */
void hints_sent(struct world *w, uint32_t server, const struct rv_batch *batch);
/* EVENT_HINT */
void hint_arrives(struct world *w, uint32_t server, uint64_t number);

#endif
