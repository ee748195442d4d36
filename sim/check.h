/* check.h - the invariants of the pattern, each a function with its sentence on top. */
#ifndef RV_SIM_CHECK_H
#define RV_SIM_CHECK_H

#include "sim/history.h"
#include "sim/ledger.h"

/* All that hold between the rows of a task before and after one commit. */
void check_transition(const struct transition *t);
/* Families of it: check_state.c, check_attempt.c, check_undo.c. */
void check_state(const struct transition *t);
void check_attempts(const struct transition *t);
void check_undo(const struct transition *t);

/* check_promise.c: what was said to the outside is so. */
void check_handed_out(struct world *w, const struct rv_request *request);
void check_submitted(struct world *w, struct rv_str task, const char *client);
/* The bodies of a reply call and of its answer. */
void check_replied(struct world *w, struct rv_str request, struct rv_str answer);
void check_operated(struct world *w, struct rv_str verb, struct rv_task_id task);
void check_all_there(struct world *w, struct rv_store *store);

/* check_effect.c: what was done outside fits. */
void check_effect_after_undo(struct world *w, const struct effect *effect, bool zombie);
void check_undo_beside_work(struct world *w, const struct effect *effect);
void check_ledger(struct world *w);

/* check_end.c: what must have come to pass once faults have stopped. */
bool check_all_settled(struct world *w);
void check_end(struct world *w);

#endif
