/* rows.h - rows as numbers: equal numbers, equal rows. What two stores are compared by. */
#ifndef RV_SIM_ROWS_H
#define RV_SIM_ROWS_H

#include "core/rows.h"
#include "store/store.h"

#include <stdint.h>

struct world;

uint64_t rows_task(const struct rv_task *task);
uint64_t rows_step(const struct rv_step *step);
/* All that the store gives of the world's tasks, through its lists. */
uint64_t rows_all(struct world *w, struct rv_store *store);

#endif
