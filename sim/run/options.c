#include "sim/run/options.h"

#include "sim/scenario/enumerate.h"
#include "sim/store/storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: reeve-sim --seed N             replays one world, with its transcript\n"
    "       reeve-sim --seeds N            runs N worlds from seed --start S (1) on, --jobs J (2)\n"
    "                                      at a time\n"
    "       reeve-sim --sums FROM N        N worlds from seed FROM on, each as a line: seed, hash\n"
    "                                      of its trace, hash of its rows at the end\n"
    "       reeve-sim --canary             worlds that must fail; exit 0 when they do\n"
    "options: --with NAME=NUMBER,...       what is to be otherwise than the seed says; its names\n"
    "                                      are in the second line of each transcript;\n"
    "                                      only=PART+PART leaves everything else out\n"
    "         --store memory|sqlite|shared  where the server keeps its rows: in memory, in SQLite\n"
    "                                      on a disk that fails, or in a shared store that is\n"
    "                                      slow, fenced, and may lose its newest commits\n"
    "         --differential               each world on both stores, the disk sound: what was\n"
    "                                      committed and answered has to be the same\n"
    "         --expect HASH                with --seed: the trace hash that must come out\n"
    "         --transcript FILE            with --seed: what --seed printed, and must again\n"
    "         --shrink                     with --seed: makes the world that fails smaller\n"
    "         --within SECONDS             with --shrink: when it has to end (300)\n"
    "         --coverage                   with --seeds: lists what no world has met\n"
    "         --until-found                with --seeds: one after the other, until a checker\n"
    "                                      reports one; exit 1 when one does\n"
    "         --quiet                      no progress line, no transcript\n"
    "         --tap                        results in TAP\n";

static void complain(const char *before, const char *what, const char *after)
{
    fprintf(stderr, "reeve-sim: %s%s%s\n%s", before, what, after, usage);
    exit(EXIT_USAGE);
}

static const char *value_of(const char *option, const char *text)
{
    if (text == NULL)
        complain("", option, " needs a value");
    return text;
}

static uint64_t number_of(const char *option, const char *text)
{
    char *end;
    if (text == NULL)
        complain("", option, " needs a number");
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
        complain("\"", text, "\" is no whole number");
    return number;
}

static uint64_t hash_of(const char *text)
{
    char *end;
    unsigned long long hash = strtoull(text, &end, 16);
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16 || *end != '\0')
        complain("\"", text, "\" is no trace hash; a result line ends with one");
    return hash;
}

static void knob_of(struct options *o, const char *name, uint32_t value)
{
    with_set(&o->with, knob_find(rv_str_of(name)), value);
    with_set(&o->twin, knob_find(rv_str_of(name)), value);
}

static void store_of(struct options *o, const char *text)
{
    if (strcmp(text, "memory") == 0)
        knob_of(o, "store", STORE_MEMORY);
    else if (strcmp(text, "sqlite") == 0)
        knob_of(o, "store", STORE_SQLITE);
    else if (strcmp(text, "shared") == 0)
        knob_of(o, "store", STORE_SHARED);
    else
        complain("--store is memory, sqlite or shared, not \"", text, "\"");
}

/* The same world on the memory store and on SQLite's, which has one server. What the retention rule
 * deletes first is each store's own affair. */
static void differential_set(struct options *o)
{
    knob_of(o, "retain_ms", 0);
    knob_of(o, "servers", 1);
    knob_of(o, "store", STORE_MEMORY);
    with_set(&o->twin, knob_find(RV_STR("store")), STORE_SQLITE_SOUND);
}

static void with_of(struct with *with, const char *text)
{
    struct rv_buf why;
    rv_buf_init(&why, WITH_BYTES_MAX);
    if (!with_read(with, rv_str_of(text), &why)) {
        rv_buf_add_char(&why, '\0');
        complain("--with: ", why.at, "");
    }
    rv_buf_done(&why);
}

/* Takes one option with its values; gives how many words that were. */
static int option_take(struct options *o, const char *option, char *const *values)
{
    const char *value = values[0];
    if (strcmp(option, "--seed") == 0) {
        o->seed = number_of(option, value);
        o->one = true;
    } else if (strcmp(option, "--seeds") == 0) {
        o->seeds = number_of(option, value);
        o->many = true;
    } else if (strcmp(option, "--sums") == 0) {
        o->start = number_of(option, value);
        o->seeds = number_of(option, values[1]);
        o->sums = true;
        return 3;
    } else if (strcmp(option, "--start") == 0) {
        o->start = number_of(option, value);
    } else if (strcmp(option, "--within") == 0) {
        o->within_s = number_of(option, value);
    } else if (strcmp(option, "--jobs") == 0) {
        o->jobs = number_of(option, value);
    } else if (strcmp(option, "--with") == 0) {
        with_of(&o->with, value_of(option, value));
        with_of(&o->twin, value);
    } else if (strcmp(option, "--store") == 0) {
        store_of(o, value_of(option, value));
    } else if (strcmp(option, "--expect") == 0) {
        o->expected = hash_of(value_of(option, value));
        o->expects = true;
    } else if (strcmp(option, "--transcript") == 0) {
        o->transcript = value_of(option, value);
    } else {
        return 0;
    }
    return 2;
}

static int flag_take(struct options *o, const char *option)
{
    if (strcmp(option, "--canary") == 0) {
        o->canary = true;
    } else if (strcmp(option, "--shrink") == 0) {
        o->shrink = true;
    } else if (strcmp(option, "--coverage") == 0) {
        o->coverage = true;
    } else if (strcmp(option, "--differential") == 0) {
        o->differential = true;
    } else if (strcmp(option, "--until-found") == 0) {
        o->until_found = true;
    } else if (strcmp(option, "--quiet") == 0) {
        o->quiet = true;
    } else if (strcmp(option, "--tap") == 0) {
        o->tap = o->quiet = true;
    } else if (strcmp(option, "--help") == 0) {
        fputs(usage, stdout);
        fputs(enumerate_usage, stdout);
        exit(0);
    } else {
        return 0;
    }
    return 1;
}

struct options options_read(char **argv)
{
    struct options o = {.start = 1, .jobs = 2, .within_s = 300};
    with_init(&o.with);
    with_init(&o.twin);
    for (int i = 1; argv[i] != NULL;) {
        int taken = option_take(&o, argv[i], &argv[i + 1]);
        if (taken == 0)
            taken = flag_take(&o, argv[i]);
        if (taken == 0)
            complain("unknown option \"", argv[i], "\"");
        i += taken;
    }
    if (o.one + o.many + o.canary + o.sums != 1)
        complain("give one of ", "--seed, --seeds, --sums and --canary", "");
    if (o.until_found && (!o.many || o.differential))
        complain("", "--until-found", " goes with --seeds");
    if ((o.many || o.sums) && o.seeds == 0)
        complain("the number of worlds", " is at least 1", "");
    if (o.jobs < 1 || o.jobs > JOBS_MAX)
        complain("--jobs", " is from 1 to 64", "");
    if (!o.many && o.coverage)
        complain("--coverage", " goes with --seeds", "");
    if (!o.one && o.shrink)
        complain("--shrink", " goes with --seed", "");
    if (!o.one && (o.expects || o.transcript != NULL))
        complain("--expect and --transcript", " go with --seed", "");
    if (o.differential && (o.canary || o.sums || o.expects || o.transcript != NULL))
        complain("--differential", " goes with --seed or --seeds alone", "");
    if (o.differential)
        differential_set(&o);
    return o;
}

void options_done(struct options *options)
{
    with_done(&options->with);
    with_done(&options->twin);
}
