/* mutants.h - planted mistakes, each of which a checker must find by itself. */
#ifndef RV_SIM_MUTANTS_H
#define RV_SIM_MUTANTS_H

#include "sim/run/options.h"

/* Makes the mistake of that name from now on; false: there is none, or this program has none. */
bool mutant_make(const char *name);

/* Runs the worlds of each mistake (or of the one asked for) until one is found out. The exit code:
 * 0 when all are. */
int mutants_run(const struct options *options);

#endif
