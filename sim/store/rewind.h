/* rewind.h - what the history was before each of the newest commits: a store may lose them. */
#ifndef RV_SIM_REWIND_H
#define RV_SIM_REWIND_H

#include "sim/world/history.h"

#include <stdint.h>

struct world;

/* Transactions that a store may lose when a standby takes over. */
enum { REWIND_MAX = 24 };

void rewind_new(struct world *w);
void rewind_free(struct world *w);
/* Before the history takes a change of this task, in the store's transaction `number`. */
void rewind_note(struct world *w, const struct task_past *past, uint64_t number);
/* The store has lost all after its transaction `number`: so has the history. */
void rewind_to(struct world *w, uint64_t number);
/* True: a task of this id was committed, and lost with the store's newest transactions. */
bool rewind_lost(const struct world *w, struct rv_task_id task);
/* Any task was. */
bool rewind_any(const struct world *w);

#endif
