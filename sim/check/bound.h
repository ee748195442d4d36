/* bound.h - how long things may take, reckoned in time in which a server was there for them. */
#ifndef RV_SIM_BOUND_H
#define RV_SIM_BOUND_H

#include <stdbool.h>
#include <stdint.h>

struct world;
struct server;

/* A reading of how much was attended to so far. */
struct reading {
    int64_t ms;       /* of the store's clock, between batches that followed each other well */
    uint64_t batches; /* that went well; 0: nothing was read */
};

/* How a server has attended to what is owed. */
struct attention {
    struct reading attended;
    struct reading started; /* at the newest bound_start */
    int64_t seen_at;        /* the store's clock in its newest batch; 0: it did not go well */
    int64_t heard_at;       /* ... and what it showed when the oldest call that stayed arrived */
    uint64_t behind;   /* calls and requests that take turns before what is owed, one in a batch */
    int64_t looked_at; /* virtual time of the last check of all open steps */
};

struct bounds {
    int64_t seen_at; /* the store's clock in the newest batch of any server; 0: not well */
    uint64_t claims; /* of the supervisor's role, committed */
    uint64_t writes; /* other commits that wrote */
};

/* A server has started, or has to learn anew what the store has, or what it has done was in vain:
 * what is owed is owed from now on. */
void bound_start(struct world *w);
/* Whether what is so since `since` (set here) lasts for longer than the bound and `more_ms`. */
bool bound_lasts(struct world *w, const struct server *s, bool is_so, struct reading *since,
                 int64_t more_ms);
/* A batch of the server is over; `good`: the store refused nothing of it. */
void bound_batch(struct world *w, struct server *s, bool good);

#endif
