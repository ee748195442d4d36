/* run.h - one world from its setup to its outcome. */
#ifndef RV_SIM_RUN_H
#define RV_SIM_RUN_H

#include "base/id.h"
#include "sim/world/world.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct outcome {
    bool passed;
    char invariant[16]; /* that does not hold; "assertion" or "crash": the program has ended */
    char detail[512];
    char task[RV_ID_TEXT_BYTES]; /* the one concerned; empty: none */
    uint32_t tasks;
    uint64_t events;
    uint64_t commits;
    uint64_t trace;
    uint64_t rows; /* at the end; 0: it did not come to it */
};

/* In this process: an assertion that fails ends it. */
void run_here(const struct world_setup *setup, struct outcome *ret);
/* In a process of its own: an assertion or a crash is an outcome like any other, and a world that
 * does not come to its end is ended. What it wrote of the transcript is there. */
void run_apart(const struct world_setup *setup, struct outcome *ret);
bool outcome_same(const struct outcome *a, const struct outcome *b);

/* fork(), with what was printed written before; the child ends when this process ends, however. */
pid_t run_fork(void);
/* Ends this process by a signal when it has computed for so long from now on: it hangs. A slow or
 * suspended machine does not count. */
void run_bound(int seconds);

#endif
