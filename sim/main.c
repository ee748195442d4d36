/* reeve-sim: worlds from seeds. */
#include "sim/options.h"
#include "sim/run.h"
#include "sim/seeds.h"
#include "sim/transcript.h"

#include <stdio.h>
#include <stdlib.h>

enum { CANARY_SEEDS = 20 };

static void result_say(FILE *out, uint64_t seed, const struct outcome *outcome)
{
    fprintf(out, "seed %llu: %s%s%s%s, %u tasks, %llu events, %llu commits, trace %016llx\n",
            (unsigned long long)seed, outcome->passed ? "passed" : "FAILED ", outcome->invariant,
            outcome->passed ? "" : ": ", outcome->detail, outcome->tasks,
            (unsigned long long)outcome->events, (unsigned long long)outcome->commits,
            (unsigned long long)outcome->trace);
}

static FILE *file_or_exit(FILE *file, const char *name)
{
    if (file == NULL) {
        fprintf(stderr, "reeve-sim: ");
        perror(name);
        exit(EXIT_USAGE);
    }
    return file;
}

/* The transcript goes into a file of its own first, and from there to the reader. */
static int run_compared(const struct options *o)
{
    FILE *wanted = file_or_exit(fopen(o->transcript, "r"), o->transcript);
    FILE *got = file_or_exit(tmpfile(), "a temporary file");
    struct world_setup setup = {.seed = o->seed, .with = &o->with, .transcript = got};
    struct outcome outcome;
    run_apart(&setup, &outcome);
    fseek(got, 0, SEEK_END);
    result_say(got, o->seed, &outcome);
    bool same = transcript_same(wanted, got, "", stderr);
    if (!same)
        fprintf(stderr, "reeve-sim: seed %llu does not replay as in %s\n",
                (unsigned long long)o->seed, o->transcript);
    fclose(wanted);
    fclose(got);
    result_say(stdout, o->seed, &outcome);
    return same ? !outcome.passed : EXIT_USAGE;
}

static int run_one(const struct options *o)
{
    if (o->transcript != NULL)
        return run_compared(o);
    struct world_setup setup = {
        .seed = o->seed, .with = &o->with, .transcript = o->quiet ? NULL : stdout};
    struct outcome outcome;
    run_apart(&setup, &outcome);
    result_say(stdout, o->seed, &outcome);
    if (o->expects && outcome.trace != o->expected) {
        fprintf(stderr, "reeve-sim: seed %llu has trace %016llx, not %016llx: another world\n",
                (unsigned long long)o->seed, (unsigned long long)outcome.trace,
                (unsigned long long)o->expected);
        return EXIT_USAGE;
    }
    return outcome.passed ? 0 : 1;
}

/* A world whose services forget what they did must be found out. */
static int run_canary(struct options *o)
{
    with_set(&o->with, knob_find(RV_STR("canary")), 1);
    if (o->tap)
        printf("1..1\n");
    for (uint64_t seed = 1; seed <= CANARY_SEEDS; seed++) {
        struct world_setup setup = {.seed = seed, .with = &o->with};
        struct outcome outcome;
        run_apart(&setup, &outcome);
        if (outcome.passed)
            continue;
        if (o->tap)
            printf("ok 1 - a world that must fail fails\n");
        printf("# canary: seed %llu fails as it must: %s: %s\n", (unsigned long long)seed,
               outcome.invariant, outcome.detail);
        return 0;
    }
    if (o->tap)
        printf("not ok 1 - a world that must fail fails\n");
    printf("# canary: no seed fails: the checkers are blind\n");
    return 1;
}

int main(int argc, char **argv)
{
    (void)argc;
    struct options o = options_read(argv);
    int code = o.canary ? run_canary(&o) : o.one ? run_one(&o) : seeds_run(&o);
    options_done(&o);
    return code;
}
