/* reeve-sim: worlds from seeds. */
#include "sim/scenario/enumerate.h"
#include "sim/run/options.h"
#include "sim/run/run.h"
#include "sim/run/search.h"
#include "sim/run/seeds.h"
#include "sim/run/shrink.h"
#include "sim/run/sums.h"
#include "sim/run/transcript.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    bool same = transcript_same(wanted, got, 0, "", stderr);
    if (!same)
        fprintf(stderr, "reeve-sim: seed %llu does not replay as in %s\n",
                (unsigned long long)o->seed, o->transcript);
    fclose(wanted);
    fclose(got);
    result_say(stdout, o->seed, &outcome);
    return same ? !outcome.passed : EXIT_USAGE;
}

/* The world on each of the two stores. */
static int run_differential(const struct options *o)
{
    const struct with *withs[] = {&o->with, &o->twin};
    struct outcome outcomes[2];
    FILE *files[2];
    for (int i = 0; i < 2; i++) {
        files[i] = file_or_exit(tmpfile(), "a temporary file");
        struct world_setup setup = {.seed = o->seed, .with = withs[i], .transcript = files[i]};
        run_apart(&setup, &outcomes[i]);
        result_say(stdout, o->seed, &outcomes[i]);
    }
    bool same = outcome_same(&outcomes[0], &outcomes[1]);
    if (!same && transcript_same(files[0], files[1], TRANSCRIPT_HEAD, "", stdout))
        printf("the two differ, but not in what they say\n");
    fclose(files[0]);
    fclose(files[1]);
    return same && outcomes[0].passed ? 0 : 1;
}

static int run_one(const struct options *o)
{
    if (o->differential)
        return run_differential(o);
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

/* What must be found out, and by which of the invariants. */
static const struct canary {
    const char *what;
    const char *with;
    const char *invariants; /* NULL: any */
} canaries[] = {
    {"services forget what they did", "canary=1", NULL},
    {"a disk whose syncs do nothing", "store=1,lying_disk=1", "I-01 I-02"},
};
enum { CANARIES = sizeof canaries / sizeof canaries[0] };

static bool canary_dies(const struct canary *canary)
{
    bool found = false;
    struct with with;
    struct rv_buf why;
    with_init(&with);
    rv_buf_init(&why, WITH_BYTES_MAX);
    bool good = with_read(&with, rv_str_of(canary->with), &why);
    for (uint64_t seed = 1; good && seed <= CANARY_SEEDS && !found; seed++) {
        struct world_setup setup = {.seed = seed, .with = &with};
        struct outcome outcome;
        run_apart(&setup, &outcome);
        found = !outcome.passed && (canary->invariants == NULL ||
                                    strstr(canary->invariants, outcome.invariant) != NULL);
        if (!outcome.passed)
            printf("# canary: seed %llu with %s fails%s: %s: %s\n", (unsigned long long)seed,
                   canary->with, found ? " as it must" : "", outcome.invariant, outcome.detail);
    }
    rv_buf_done(&why);
    with_done(&with);
    return found;
}

static int run_canaries(const struct options *o)
{
    int blind = 0;
    if (o->tap)
        printf("1..%d\n", CANARIES);
    for (int i = 0; i < CANARIES; i++) {
        bool dies = canary_dies(&canaries[i]);
        blind += !dies;
        if (o->tap)
            printf("%sok %d - %s\n", dies ? "" : "not ", i + 1, canaries[i].what);
        else if (!dies)
            printf("%s: not found in %d seeds: the checkers are blind\n", canaries[i].what,
                   CANARY_SEEDS);
    }
    return blind > 0;
}

int main(int argc, char **argv)
{
    (void)argc;
    if (enumerate_wants(argv))
        return enumerate_main(argv);
    struct options o = options_read(argv);
    int code = o.canary        ? run_canaries(&o)
               : o.shrink      ? shrink_run(&o)
               : o.one         ? run_one(&o)
               : o.until_found ? search_run(&o)
               : o.sums        ? sums_run(&o)
                               : seeds_run(&o);
    options_done(&o);
    return code;
}
