#include "sim/run/search.h"

#include "sim/run/run.h"

#include <stdio.h>
#include <string.h>

enum { SUDDEN_MAX = 2000 }; /* worlds that end by an assertion; more of them show nothing new */

static bool has_a_name(const struct outcome *outcome)
{
    return strcmp(outcome->invariant, "assertion") != 0 && strcmp(outcome->invariant, "crash") != 0;
}

int search_run(const struct options *o)
{
    uint64_t sudden = 0, done = 0;
    bool found = false;
    while (done < o->seeds && sudden < SUDDEN_MAX && !found) {
        struct world_setup setup = {.seed = o->start + done++, .with = &o->with};
        struct outcome outcome;
        run_apart(&setup, &outcome);
        found = !outcome.passed && has_a_name(&outcome);
        sudden += !outcome.passed && !found;
        if (found)
            printf("seed %llu FAILED %s: %s\n", (unsigned long long)setup.seed, outcome.invariant,
                   outcome.detail);
    }
    if (sudden > 0)
        printf("%llu worlds ended by an assertion or a crash\n", (unsigned long long)sudden);
    printf("%s after %llu seeds\n", found ? "found" : "nothing found", (unsigned long long)done);
    return found ? 1 : 0;
}
