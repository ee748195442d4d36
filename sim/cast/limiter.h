/* limiter.h - an operator who limits, pauses and resumes agents while tasks run. */
#ifndef RV_SIM_LIMITER_H
#define RV_SIM_LIMITER_H

#include "core/agent_limit.h"
#include "sim/world/knobs.h"
#include "sim/world/net.h"
#include "store/store.h"

struct world;

/* What is committed of one kind of agents, and what has begun since, as the checkers count it. */
struct limited {
    struct rv_agent_limit limit;
    bool limits;        /* there is a record that limits or pauses */
    uint64_t agent;     /* hash of its name */
    int64_t counted_at; /* thousandths of attempts that might begin now, and as of when */
    int64_t room;
    int64_t changed_at; /* virtual time: the limit was committed */
    uint64_t begun_in;  /* the commit in which an attempt began; 0: looked at since */
    uint32_t begun_most;
};

struct limiter {
    struct limited kinds[SIM_KINDS_MAX];
    bool unknown;    /* the records could not be read */
    bool busy;       /* waits for an answer */
    uint32_t asked;  /* the kind that the answer is about */
    uint32_t lifted; /* kinds whose pause and rate are lifted, once faults have stopped */
};

void limiter_new(struct world *w);
/* Every now and then. */
void limiter_turn(struct world *w);
void limiter_answered(struct world *w, struct exchange *x);
void limiter_lost(struct world *w, struct exchange *x);

/* The tap's: the batch is committed, all its tasks were looked at. */
void limiter_committed(struct world *w, const struct rv_batch *batch, int64_t now);
/* The server's: what the records say after a start. */
void limiter_started(struct world *w, struct rv_store *store);
/* The database's: the newest commits are lost, and with them perhaps what they said of limits: what
 * the records say now. */
void limiter_rewind(struct world *w);
/* Whether anything is limited for that kind: what is ready may wait for that. */
bool limiter_limits(const struct world *w, uint64_t agent);

#endif
