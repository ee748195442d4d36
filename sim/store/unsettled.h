/* unsettled.h - a batch whose commit has no known outcome, kept until the next start tells. */
#ifndef RV_SIM_UNSETTLED_H
#define RV_SIM_UNSETTLED_H

#include "base/arena.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world;

struct unsettled {
    struct rv_arena arena;
    struct rv_change *changes; /* deep copies on the arena; NULL: there is none */
    size_t count;
    int64_t now; /* the store's clock in its transaction */
    int64_t at;  /* its instant in virtual time */
};

void unsettled_init(struct unsettled *u);
void unsettled_done(struct unsettled *u);
/* The commit of this batch had no known outcome, and nobody can be asked. */
void unsettled_take(struct unsettled *u, const struct rv_batch *batch, int64_t now, int64_t at);
/* The store as the next process has it open tells: all of the batch is there, and then it is
 * history as of its own instant, or none. True: it was there. */
bool unsettled_settle(struct unsettled *u, struct world *w, struct rv_store *store);

#endif
