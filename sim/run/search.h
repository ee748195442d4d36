/* search.h - worlds, one after the other, until a checker finds something. */
#ifndef RV_SIM_SEARCH_H
#define RV_SIM_SEARCH_H

#include "sim/run/options.h"

/* Runs the worlds of the options, each in a process of its own, until a checker that has a name
 * reports one. A world that ends by an assertion or a crash is counted and passed over: it says
 * nothing about the checkers. The exit code: 1 when something was found. */
int search_run(const struct options *options);

#endif
