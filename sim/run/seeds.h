/* seeds.h - many worlds, one after the other, on several cores. */
#ifndef RV_SIM_SEEDS_H
#define RV_SIM_SEEDS_H

#include "sim/run/options.h"

/* The exit code of the program. */
int seeds_run(const struct options *options);

#endif
