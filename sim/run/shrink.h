/* shrink.h - makes a world that fails smaller, as long as it fails in the same way. */
#ifndef RV_SIM_SHRINK_H
#define RV_SIM_SHRINK_H

#include "sim/run/options.h"

/* Prints the smallest world that was found, the command that replays it, and its transcript. The
 * exit code of the program. */
int shrink_run(const struct options *options);

#endif
