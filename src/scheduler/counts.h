/* counts.h - what the scheduler has done since its start, in plain numbers. */
#ifndef RV_SCHEDULER_COUNTS_H
#define RV_SCHEDULER_COUNTS_H

#include "base/histogram.h"
#include "core/state.h"

#include <stdint.h>

/* Counted as batches are committed: nothing is ever scanned for a number here. */
struct rv_counts {
    size_t circuits; /* known now, idle ones included */
    uint64_t submissions_accepted;
    uint64_t submissions_known; /* by their keys */
    uint64_t submissions_refused;
    uint64_t tasks_ended[RV_TASK_STATE_COUNT]; /* by the state in which they ended */
    uint64_t attempts_begun;
    uint64_t attempts_ended[RV_ATTEMPT_STATE_COUNT];
    uint64_t failures_transient; /* of the attempts that failed by their agent's word */
    uint64_t failures_permanent;
    uint64_t replies_taken;   /* 200 */
    uint64_t replies_refused; /* any other status */
    uint64_t alerts[RV_ALERT_KIND_COUNT];
    uint64_t findings; /* tasks that the supervisor moved on: expiries, retries, timers */
    uint64_t batches;
    uint64_t batches_refused; /* by the store, for now */
    uint64_t calls;           /* in all batches */
    int64_t open_tasks;       /* as far as this instance has heard */
    int64_t open_by_state[RV_TASK_STATE_COUNT];
    int64_t suspended; /* of these, in whatever state, once the walk after the start is over */
    uint64_t long_decisions;           /* that went on beside the batches */
    uint64_t long_decisions_us;        /* the time that they had there */
    uint64_t long_decisions_open;      /* now */
    uint64_t fuel_in_batches;          /* of expressions, in units of about 10 ns */
    uint64_t fuel_beside;              /* the same, of long decisions */
    struct rv_histogram hand_out_wait; /* from when a step was ready to its attempt */
    struct rv_histogram attempt;
    struct rv_histogram batch;
    struct rv_histogram commit;
};

#endif
