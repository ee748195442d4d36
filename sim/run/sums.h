/* sums.h - each world as two numbers: what a refactoring is held against. */
#ifndef RV_SIM_SUMS_H
#define RV_SIM_SUMS_H

#include "sim/run/options.h"

/* One line per seed, in their order, whatever the number of jobs: the seed, the hash of its trace,
 * the hash of the rows at its end; after them what failed, if anything did. Equal lines are equal
 * worlds. The exit code: 1 when a world failed. */
int sums_run(const struct options *options);

#endif
