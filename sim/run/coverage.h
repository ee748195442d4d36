/* coverage.h - which edges of the state tables worlds have taken, and after which faults. */
#ifndef RV_SIM_COVERAGE_H
#define RV_SIM_COVERAGE_H

#include "core/state.h"
#include "sim/check/rounds.h"
#include "sim/world/fault.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    CELLS_TASK = 0,
    CELLS_STEP = CELLS_TASK + RV_TASK_STATE_COUNT * RV_TASK_STATE_COUNT,
    CELLS_ATTEMPT = CELLS_STEP + RV_STEP_STATE_COUNT * RV_STEP_STATE_COUNT,
    CELLS_COUNT = CELLS_ATTEMPT + RV_ATTEMPT_STATE_COUNT * RV_ATTEMPT_STATE_COUNT
};

/* A pair of an edge and a class of faults is met when a commit takes the edge at most five seconds
 * of the world's time after a fault of the class struck its task or an actor of the edge, or was
 * still at work there. Actors are bits by enum fault_actor: the agent that works on the step or did
 * last, the server that began its attempt, the one that commits, the submitter; of a task's edge
 * those of all steps that the commit changes. Faults of the store concern every edge. */
enum { COVERAGE_AFTER_MS = 5000 };

/* Counters by table, from, to; only those of edges that are in a table are ever raised. Faults that
 * no world of the run could have (those of disks, where the store is in memory) make no pairs. */
struct coverage {
    uint64_t edges[CELLS_COUNT];
    uint64_t pairs[CELLS_COUNT][FAULT_COUNT];
    uint64_t worlds[FAULT_COUNT];       /* in which the fault struck */
    uint64_t rounds[ROUNDS_MANY + 1];   /* batches on a shared store, by their round trips */
    uint64_t over[ROUNDS_REASON_COUNT]; /* ... those beyond two, by the reason */
    uint64_t changes;                   /* that were sent there, */
    uint64_t conflicts;                 /* ... and lost their guards */
};

struct coverage_sum {
    unsigned faults; /* that struck */
    unsigned edges;
    unsigned edges_met;
    unsigned pairs;
    unsigned pairs_met;
};

struct rv_step;
/* Whoever works on the step, as actors; `began_by`: the server that began its attempt, from 1; 0:
 * nobody knows. */
uint32_t coverage_actors(const struct rv_step *step, uint32_t began_by);

struct transition;
/* A commit, as seen before the history takes it over. */
void coverage_see(struct coverage *coverage, const struct transition *t);
/* The world is over. */
void coverage_end(struct coverage *coverage, const struct world *w);
void coverage_add(struct coverage *coverage, const struct coverage *more);
struct coverage_sum coverage_sum(const struct coverage *coverage);
/* How many round trips batches needed, and why, and how many changes lost their guards; nothing
 * where no store was shared. */
void coverage_rounds(const struct coverage *coverage, const char *before, FILE *out);
/* One line for each edge that was never taken, and for each that was not after every fault. */
void coverage_missing(const struct coverage *coverage, const char *before, FILE *out);

#endif
