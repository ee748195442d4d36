/* reeve-sim: worlds from seeds. */
#include "base/assert.h"
#include "sim/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS_MAX = 64, FAILED_KEPT = 16, EXIT_USAGE = 2, CANARY_SEEDS = 20 };

static const char usage[] =
    "usage: reeve-sim --seed N             replays one world, with its transcript\n"
    "       reeve-sim --seeds N [--start S] [--jobs J]   runs N worlds from seed S (1) on\n"
    "       reeve-sim --canary             worlds that must fail; exit 0 when they do\n"
    "options: --quiet                      no progress line, no transcript\n"
    "         --tap                        results in TAP\n";

struct options {
    uint64_t seed, seeds, start, jobs;
    bool one, canary, quiet, tap;
};

/* What the workers share with their parent. */
struct board {
    struct {
        uint64_t seed; /* under way; 0: none */
        uint64_t passed;
        uint64_t failed;
        uint64_t events;
        uint64_t commits;
        uint64_t failures[FAILED_KEPT];
    } workers[JOBS_MAX];
};

static void complain(const char *before, const char *what, const char *after)
{
    fprintf(stderr, "reeve-sim: %s%s%s\n%s", before, what, after, usage);
    exit(EXIT_USAGE);
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

static struct options options_read(char **argv)
{
    struct options o = {.start = 1, .jobs = 2};
    for (int i = 1; argv[i] != NULL; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--seed") == 0) {
            o.seed = number_of(option, argv[++i]);
            o.one = true;
        } else if (strcmp(option, "--seeds") == 0) {
            o.seeds = number_of(option, argv[++i]);
        } else if (strcmp(option, "--start") == 0) {
            o.start = number_of(option, argv[++i]);
        } else if (strcmp(option, "--jobs") == 0) {
            o.jobs = number_of(option, argv[++i]);
        } else if (strcmp(option, "--canary") == 0) {
            o.canary = true;
        } else if (strcmp(option, "--quiet") == 0) {
            o.quiet = true;
        } else if (strcmp(option, "--tap") == 0) {
            o.tap = o.quiet = true;
        } else if (strcmp(option, "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        } else {
            complain("unknown option \"", option, "\"");
        }
    }
    if (o.one + (o.seeds != 0) + o.canary != 1)
        complain("give one of ", "--seed, --seeds and --canary", "");
    if (o.jobs < 1 || o.jobs > JOBS_MAX)
        complain("--jobs", " is from 1 to 64", "");
    return o;
}

/* The world of this process, for the last words before an assertion ends it. */
static uint64_t seed_now;

static void assert_failed(const char *condition, const char *file, int line)
{
    fflush(stdout);
    printf("# seed %llu FAILED assertion %s at %s:%d\n", (unsigned long long)seed_now, condition,
           file, line);
    fflush(stdout);
}

static bool world_passes(uint64_t seed, bool verbose, bool canary, struct world *w)
{
    seed_now = seed;
    world_run(w, seed, verbose, canary);
    world_free(w);
    return w->violated == NULL;
}

static int run_one(const struct options *o)
{
    struct world w;
    bool passed = world_passes(o->seed, !o->quiet, false, &w);
    printf("seed %llu: %s%s%s%s, %llu events, %llu commits, trace %016llx\n",
           (unsigned long long)o->seed, passed ? "passed" : "FAILED ", passed ? "" : w.violated,
           passed ? "" : ": ", passed ? "" : w.detail, (unsigned long long)w.events_done,
           (unsigned long long)w.commits, (unsigned long long)w.trace);
    return passed ? 0 : 1;
}

/* A world whose services forget what they did must be found out. */
static int run_canary(const struct options *o)
{
    for (uint64_t seed = 1; seed <= CANARY_SEEDS; seed++) {
        struct world w;
        if (world_passes(seed, false, true, &w))
            continue;
        if (o->tap)
            printf("1..1\nok 1 - a world that must fail fails\n");
        printf("# canary: seed %llu fails as it must: %s: %s\n", (unsigned long long)seed,
               w.violated, w.detail);
        return 0;
    }
    if (o->tap)
        printf("1..1\nnot ok 1 - a world that must fail fails\n");
    printf("# canary: no seed fails: the checkers are blind\n");
    return 1;
}

/* ---- many worlds on all cores ---- */

static void worker(const struct options *o, struct board *board, uint64_t number)
{
    for (uint64_t i = number; i < o->seeds; i += o->jobs) {
        struct world w;
        board->workers[number].seed = o->start + i;
        bool passed = world_passes(o->start + i, false, false, &w);
        board->workers[number].events += w.events_done;
        board->workers[number].commits += w.commits;
        if (passed) {
            board->workers[number].passed++;
            continue;
        }
        printf("%sseed %llu FAILED %s: %s\n", o->tap ? "# " : "",
               (unsigned long long)(o->start + i), w.violated, w.detail);
        fflush(stdout);
        board->workers[number].failed++;
    }
    board->workers[number].seed = 0;
}

static void progress(const struct options *o, const struct board *board, double seconds)
{
    uint64_t done = 0, failed = 0, events = 0, commits = 0;
    for (uint64_t i = 0; i < o->jobs; i++) {
        done += board->workers[i].passed + board->workers[i].failed;
        failed += board->workers[i].failed;
        events += board->workers[i].events;
        commits += board->workers[i].commits;
    }
    fprintf(stderr, "\r%llu of %llu seeds, %.0f/s, %.1f M events, %.1f M commits, %llu failed ",
            (unsigned long long)done, (unsigned long long)o->seeds, (double)done / seconds,
            (double)events / 1e6, (double)commits / 1e6, (unsigned long long)failed);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A worker that dies has found something too: its seed is told. */
static uint64_t workers_wait(const struct options *o, const struct board *board, const pid_t *pids)
{
    double begun = seconds_now(), told = begun;
    uint64_t left = o->jobs, died = 0;
    while (left > 0) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0) {
            nanosleep(&(struct timespec){0, 50000000}, NULL);
            if (!o->quiet && seconds_now() - told > 1) {
                told = seconds_now();
                progress(o, board, told - begun);
            }
            continue;
        }
        left--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        for (uint64_t i = 0; i < o->jobs; i++) {
            if (pids[i] != pid)
                continue;
            printf("%sseed %llu FAILED: the program crashed; seeds after it were not run\n",
                   o->tap ? "# " : "", (unsigned long long)board->workers[i].seed);
            died++;
        }
    }
    if (!o->quiet) {
        progress(o, board, seconds_now() - begun + 0.001);
        fputc('\n', stderr);
    }
    return died;
}

static int run_many(struct options *o)
{
    struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        perror("reeve-sim: mmap");
        return 1;
    }
    pid_t pids[JOBS_MAX];
    fflush(stdout);
    for (uint64_t i = 0; i < o->jobs; i++) {
        pids[i] = fork();
        if (pids[i] < 0) {
            perror("reeve-sim: fork");
            return 1;
        }
        if (pids[i] == 0) {
            worker(o, board, i);
            fflush(stdout);
            exit(0);
        }
    }
    uint64_t failed = workers_wait(o, board, pids), passed = 0;
    for (uint64_t i = 0; i < o->jobs; i++) {
        failed += board->workers[i].failed;
        passed += board->workers[i].passed;
    }
    if (o->tap)
        printf("1..1\n%sok 1 - %llu worlds from seed %llu\n", failed ? "not " : "",
               (unsigned long long)o->seeds, (unsigned long long)o->start);
    else
        printf("%llu passed, %llu failed\n", (unsigned long long)passed,
               (unsigned long long)failed);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    (void)argc;
    struct options o = options_read(argv);
    rv_assert_set_handler(assert_failed);
    if (o.canary)
        return run_canary(&o);
    return o.one ? run_one(&o) : run_many(&o);
}
