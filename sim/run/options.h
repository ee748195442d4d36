/* options.h - the command line of reeve-sim. */
#ifndef RV_SIM_OPTIONS_H
#define RV_SIM_OPTIONS_H

#include "sim/run/with.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOBS_MAX = 64, EXIT_USAGE = 2 };

struct options {
    bool one;    /* --seed */
    bool many;   /* --seeds */
    bool canary; /* --canary */
    bool sums;   /* --sums: FROM is start, N is seeds */
    uint64_t seed;
    uint64_t seeds;
    uint64_t start;
    uint64_t jobs;
    bool expects; /* the trace hash that the world must have */
    uint64_t expected;
    const char *transcript; /* a file with the transcript that the world must have; NULL: none */
    bool shrink;            /* makes the world smaller that fails */
    uint64_t within_s;      /* for that */
    bool coverage;          /* lists what was never met */
    bool differential;      /* each world on both stores; they have to be the same */
    bool until_found;       /* ends with the first world that a checker reports */
    bool quiet;
    bool tap;
    struct with with; /* owned */
    struct with twin; /* owned; differential: the other store's */
};

/* Ends the program where the line is wrong, or asks for help. */
struct options options_read(char **argv);
void options_done(struct options *options);

#endif
