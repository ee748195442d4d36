/* A mistake is found when a checker that has a name says so, in a world that passes without it. An
 * assertion of the product, a crash or a hang proves nothing about the checkers: such worlds are
 * counted and passed over. */
#include "sim/run/mutants.h"

#include "base/assert.h"
#include "base/mutant.h"
#include "sim/run/run.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SUDDEN_MAX = 2000 }; /* so many worlds that end by an assertion are enough */

static const struct row {
    const char *name;
    const char *room;
    const char *expected;
    const char *what;
} rows[RV_MUTANT_COUNT] = {
    {"", "", "", ""},
#define RV_MUTANT_ROW(name, room, expected, what) {#name, room, expected, what},
#include "base/tbl/mutant.def"
#undef RV_MUTANT_ROW
};

/* How it went with one mistake. */
struct trial {
    bool over;
    bool found;
    uint64_t seed;   /* the one that found it, or the last */
    uint64_t sudden; /* worlds before that ended by an assertion or a crash */
    char invariant[sizeof((struct outcome *)0)->invariant];
    char detail[160];
};

/* What the processes share. */
struct board {
    atomic_uint next;
    struct trial trials[RV_MUTANT_COUNT];
};

static void mutant_set(enum rv_mutant mutant)
{
#ifdef RV_MUTANT
    rv_mutant = mutant;
#else
    rv_assert(mutant == RV_MUTANT_NONE); /* options.c has seen to it */
#endif
}

static enum rv_mutant mutant_find(const char *name)
{
    for (int i = 1; i < RV_MUTANT_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return (enum rv_mutant)i;
    return RV_MUTANT_NONE;
}

bool mutant_make(const char *name)
{
    enum rv_mutant mutant = mutant_find(name);
    if (!RV_MUTANT_BUILD || mutant == RV_MUTANT_NONE)
        return false;
    mutant_set(mutant);
    return true;
}

static bool has_a_name(const struct outcome *outcome)
{
    return strcmp(outcome->invariant, "assertion") != 0 && strcmp(outcome->invariant, "crash") != 0;
}

/* Whether the world is a good one as long as nobody makes a mistake. */
static bool passes_without(const struct world_setup *setup, enum rv_mutant mutant)
{
    struct outcome outcome;
    mutant_set(RV_MUTANT_NONE);
    run_apart(setup, &outcome);
    mutant_set(mutant);
    return outcome.passed;
}

/* Mistakes of the relay need worlds that have one. */
static void with_relay(const struct row *row, struct with *with)
{
    if (strcmp(row->room, "relay") == 0)
        with_set(with, knob_find(RV_STR("relay")), 1);
}

static void trial_run(const struct options *o, enum rv_mutant mutant, struct trial *trial)
{
    struct with with;
    with_copy(&o->with, &with);
    with_relay(&rows[mutant], &with);
    mutant_set(mutant);
    for (uint64_t i = 0; i < o->seeds && !trial->found && trial->sudden < SUDDEN_MAX; i++) {
        struct world_setup setup = {.seed = o->start + i, .with = &with};
        struct outcome outcome;
        run_apart(&setup, &outcome);
        trial->seed = setup.seed;
        if (outcome.passed)
            continue;
        memcpy(trial->invariant, outcome.invariant, sizeof trial->invariant);
        snprintf(trial->detail, sizeof trial->detail, "%.*s", (int)sizeof trial->detail - 1,
                 outcome.detail);
        if (!has_a_name(&outcome))
            trial->sudden++;
        else
            trial->found = passes_without(&setup, mutant);
    }
    with_done(&with);
    trial->over = true;
}

/* ---- all of them ---- */

static void hand_work(const struct options *o, struct board *board)
{
    unsigned mutant;
    while ((mutant = atomic_fetch_add(&board->next, 1)) < RV_MUTANT_COUNT)
        if (o->mutant == NULL || strcmp(o->mutant, rows[mutant].name) == 0)
            trial_run(o, (enum rv_mutant)mutant, &board->trials[mutant]);
    _exit(0);
}

static void board_fill(const struct options *o, struct board *board)
{
    pid_t pids[JOBS_MAX];
    atomic_init(&board->next, 1);
    fflush(NULL);
    for (uint64_t i = 0; i < o->jobs; i++) {
        pids[i] = fork();
        rv_assert(pids[i] >= 0);
        if (pids[i] == 0)
            hand_work(o, board);
    }
    for (uint64_t i = 0; i < o->jobs; i++) {
        pid_t ended = waitpid(pids[i], NULL, 0);
        rv_assert(ended == pids[i]);
    }
}

static void trial_say(const struct row *row, const struct trial *trial, uint64_t start)
{
    if (trial->found)
        printf("%-26s %-9s found by %s at seed %llu, after %llu seeds", row->name, row->expected,
               trial->invariant, (unsigned long long)trial->seed,
               (unsigned long long)(trial->seed - start + 1));
    else
        printf("%-26s %-9s NOT FOUND", row->name, row->expected);
    if (trial->sudden > 0)
        printf(", %llu ended by an assertion", (unsigned long long)trial->sudden);
    printf("%s%s\n", trial->detail[0] ? ": " : "", trial->detail);
}

static const char page_head[] =
    "# Mutants: the mistakes that the simulator must find\n"
    "\n"
    "Written by `./dev sim --mutants --table`. Each row is a slip that a programmer could make in "
    "one\n"
    "place, planted by `RV_MUTANT_ON(NAME)` (`src/base/mutant.h`). Only the simulator is ever "
    "built "
    "with\n"
    "them. A mistake counts as found when a checker that has a name says so, in a world that "
    "passes\n"
    "without the mistake; what ends by an assertion of the product does not count, and the "
    "product's\n"
    "own check of its rows (`rv_view_broken`) is silent in that build. The last two columns say "
    "which\n"
    "checker was the first, and how many worlds, from seed 1 on, that took.\n"
    "\n"
    "| mistake | room | what is wrong | expected | found by | after |\n"
    "|---|---|---|---|---|---|\n";

static void table_write(const struct board *board, uint64_t start)
{
    fputs(page_head, stdout);
    for (int i = 1; i < RV_MUTANT_COUNT; i++) {
        const struct trial *trial = &board->trials[i];
        printf("| `%s` | %s | %s | %s | ", rows[i].name, rows[i].room, rows[i].what,
               rows[i].expected);
        if (trial->found)
            printf("%s | %llu |\n", trial->invariant,
                   (unsigned long long)(trial->seed - start + 1));
        else
            printf("nothing | |\n");
    }
}

int mutants_run(const struct options *o)
{
    struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    rv_assert(board != MAP_FAILED);
    board_fill(o, board);
    unsigned passed = 0, failed = 0;
    for (int i = 1; i < RV_MUTANT_COUNT; i++) {
        const struct trial *trial = &board->trials[i];
        if (o->mutant != NULL && strcmp(o->mutant, rows[i].name) != 0)
            continue;
        passed += trial->found;
        failed += !trial->found;
        if (!o->table)
            trial_say(&rows[i], trial, o->start);
    }
    if (o->table)
        table_write(board, o->start);
    fprintf(o->table ? stderr : stdout, "%u passed, %u failed\n", passed, failed);
    munmap(board, sizeof *board);
    return failed > 0;
}
