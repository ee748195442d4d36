/* Each process of the pool takes every so-many-th seed and notes in shared memory what it does. The
 * parent watches: it tells of each failure, by running the world again with its transcript, and
 * puts a new process where one has died, past the seed that it died of. */
#include "sim/run/seeds.h"

#include "sim/run/coverage.h"
#include "sim/run/run.h"
#include "sim/run/transcript.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FAILURES_TOLD = 8, LINES_TOLD = 60, TWICE_EVERY = 100, HANGS_AFTER_S = 120 };

struct failure {
    uint64_t seed;
    bool twice; /* two runs of it differ: the same world again, or its twin on the other store */
};

/* One process of the pool. */
struct hand {
    uint64_t next; /* the seed under way, counted from the first */
    uint64_t passed;
    uint64_t failed;
    uint64_t events;
    uint64_t commits;
    uint64_t twice; /* worlds that were run twice */
    struct failure failures[FAILURES_TOLD];
    struct coverage coverage;
};

struct process_pool {
    const struct options *options;
    struct hand *hands; /* shared */
    pid_t pids[JOBS_MAX];
    uint64_t told[JOBS_MAX];   /* failures of each */
    uint64_t seen[JOBS_MAX];   /* its seed when it was looked at last */
    double moved_at[JOBS_MAX]; /* what it had computed when it was another one for the last time */
    const char *before;        /* each line of ours */
    double begun_at;
    uint64_t told_in_full;
};

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What the process has computed: one that a slow machine keeps waiting does not hang. */
static double seconds_of(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0; /* it has just ended */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- a process of the pool ---- */

static void failed(struct hand *hand, struct failure failure)
{
    if (hand->failed < FAILURES_TOLD)
        hand->failures[hand->failed] = failure;
    hand->failed++;
}

static const struct with *twin_of(const struct options *o)
{
    return o->differential ? &o->twin : &o->with;
}

static void world_do(const struct options *o, struct hand *hand, uint64_t seed)
{
    struct world_setup setup = {.seed = seed, .with = &o->with, .coverage = &hand->coverage};
    struct outcome outcome, again;
    run_here(&setup, &outcome);
    hand->events += outcome.events;
    hand->commits += outcome.commits;
    if (!outcome.passed) {
        failed(hand, (struct failure){.seed = seed});
        return;
    }
    if (seed % TWICE_EVERY == 0 || o->differential) {
        setup.with = twin_of(o);
        run_here(&setup, &again);
        hand->twice++;
        if (!outcome_same(&outcome, &again)) {
            failed(hand, (struct failure){.seed = seed, .twice = true});
            return;
        }
    }
    hand->passed++;
}

static _Noreturn void hand_work(const struct options *o, struct hand *hand)
{
    for (; hand->next < o->seeds; hand->next += o->jobs)
        world_do(o, hand, o->start + hand->next);
    fflush(stdout);
    exit(0);
}

static void hand_start(struct process_pool *pool, uint64_t number)
{
    pool->moved_at[number] = 0;
    pool->pids[number] = run_fork();
    if (pool->pids[number] < 0) {
        perror("reeve-sim: fork");
        exit(1);
    }
    if (pool->pids[number] == 0)
        hand_work(pool->options, &pool->hands[number]);
}

/* ---- telling ---- */

static FILE *transcript_of(const struct with *with, uint64_t seed, struct outcome *ret)
{
    FILE *file = tmpfile();
    if (file == NULL) {
        perror("reeve-sim: a temporary file");
        exit(1);
    }
    struct world_setup setup = {.seed = seed, .with = with, .transcript = file};
    run_apart(&setup, ret);
    return file;
}

static void replay_say(const struct process_pool *pool, uint64_t seed)
{
    struct rv_buf with;
    rv_buf_init(&with, WITH_BYTES_MAX);
    with_write(&pool->options->with, &with);
    printf("%s  for all of it: reeve-sim --seed %llu%s%.*s\n", pool->before,
           (unsigned long long)seed, with.len > 0 ? " --with " : "", RV_STR_FMT(rv_buf_str(&with)));
    rv_buf_done(&with);
}

static void tell_twice(const struct process_pool *pool, uint64_t seed)
{
    struct outcome first, second;
    const struct options *o = pool->options;
    FILE *a = transcript_of(&o->with, seed, &first);
    FILE *b = transcript_of(twin_of(o), seed, &second);
    printf("%sseed %llu FAILED %s differ\n", pool->before, (unsigned long long)seed,
           o->differential ? "D-02: the worlds of the two stores" : "D-01: two runs of it");
    if (!second.passed)
        printf("%s  the second one fails %s: %s\n", pool->before, second.invariant, second.detail);
    if (transcript_same(a, b, o->differential ? TRANSCRIPT_HEAD : 0, pool->before, stdout))
        printf("%s  their transcripts do not\n", pool->before);
    fclose(a);
    fclose(b);
}

static void tell(struct process_pool *pool, struct failure failure)
{
    if (pool->told_in_full++ >= FAILURES_TOLD) {
        printf("%sseed %llu FAILED\n", pool->before, (unsigned long long)failure.seed);
        return;
    }
    if (failure.twice) {
        tell_twice(pool, failure.seed);
        return;
    }
    char before[16];
    struct outcome outcome;
    FILE *transcript = transcript_of(&pool->options->with, failure.seed, &outcome);
    if (outcome.passed)
        printf("%sseed %llu FAILED D-01: and passed when it was run again\n", pool->before,
               (unsigned long long)failure.seed);
    else
        printf("%sseed %llu FAILED %s: %s\n", pool->before, (unsigned long long)failure.seed,
               outcome.invariant, outcome.detail);
    replay_say(pool, failure.seed);
    printf("%s  its last lines%s%s:\n", pool->before,
           outcome.task[0] ? " about all tasks or task " : "", outcome.task);
    snprintf(before, sizeof before, "%s  ", pool->before);
    transcript_tail(transcript, outcome.task, LINES_TOLD, before, stdout);
    fclose(transcript);
    fflush(stdout);
}

static void coverage_of(const struct process_pool *pool, struct coverage *ret)
{
    *ret = (struct coverage){.edges = {0}};
    for (uint64_t i = 0; i < pool->options->jobs; i++)
        coverage_add(ret, &pool->hands[i].coverage);
}

static void progress(const struct process_pool *pool)
{
    const struct options *o = pool->options;
    uint64_t done = 0, bad = 0, events = 0;
    double seconds = seconds_now() - pool->begun_at + 0.001;
    for (uint64_t i = 0; i < o->jobs; i++) {
        done += pool->hands[i].passed + pool->hands[i].failed;
        bad += pool->hands[i].failed;
        events += pool->hands[i].events;
    }
    static struct coverage coverage; /* too large for the stack */
    coverage_of(pool, &coverage);
    struct coverage_sum sum = coverage_sum(&coverage);
    fprintf(stderr,
            "\r%llu of %llu seeds, %.0f/s, %.1f M events, %.0f %% of edges, %.1f %% of pairs, "
            "%llu failed ",
            (unsigned long long)done, (unsigned long long)o->seeds, (double)done / seconds,
            (double)events / 1e6, 100.0 * sum.edges_met / sum.edges,
            sum.pairs ? 100.0 * sum.pairs_met / sum.pairs : 0, (unsigned long long)bad);
}

/* ---- the parent ---- */

/* A process that has died has found something too: it counts against the seed under way. */
static void hand_ended(struct process_pool *pool, uint64_t number, int status)
{
    struct hand *hand = &pool->hands[number];
    pool->pids[number] = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (hand->next >= pool->options->seeds) {
        /* Past its last seed: a sanitizer reports leaks at the end. */
        printf("%sFAILED crash: a process of the pool ended unhappily after its last seed\n",
               pool->before);
        hand->failed++;
        return;
    }
    failed(hand, (struct failure){.seed = pool->options->start + hand->next});
    hand->next += pool->options->jobs;
    hand_start(pool, number);
}

static void hands_watch(struct process_pool *pool)
{
    for (uint64_t i = 0; i < pool->options->jobs; i++) {
        struct hand *hand = &pool->hands[i];
        double now = pool->pids[i] != 0 ? seconds_of(pool->pids[i]) : 0;
        for (; pool->told[i] < hand->failed && pool->told[i] < FAILURES_TOLD; pool->told[i]++)
            tell(pool, hand->failures[pool->told[i]]);
        if (hand->next != pool->seen[i])
            pool->moved_at[i] = now;
        pool->seen[i] = hand->next;
        if (pool->pids[i] != 0 && now - pool->moved_at[i] > HANGS_AFTER_S)
            kill(pool->pids[i], SIGKILL);
    }
}

static void crew_wait(struct process_pool *pool)
{
    double said_at = pool->begun_at;
    uint64_t left = pool->options->jobs;
    while (left > 0) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        for (uint64_t i = 0; pid > 0 && i < pool->options->jobs; i++) {
            if (pool->pids[i] != pid)
                continue;
            hand_ended(pool, i, status);
            left -= pool->pids[i] == 0;
        }
        hands_watch(pool);
        if (!pool->options->quiet && seconds_now() - said_at > 1) {
            said_at = seconds_now();
            progress(pool);
        }
        if (pid <= 0)
            nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    if (!pool->options->quiet) {
        progress(pool);
        fputc('\n', stderr);
    }
}

static void coverage_say(const struct process_pool *pool)
{
    static struct coverage coverage;
    coverage_of(pool, &coverage);
    struct coverage_sum sum = coverage_sum(&coverage);
    printf("%sedges %u of %u, pairs of an edge and one of %u faults before it %u of %u (%.1f %%)\n",
           pool->before, sum.edges_met, sum.edges, sum.faults, sum.pairs_met, sum.pairs,
           sum.pairs ? 100.0 * sum.pairs_met / sum.pairs : 0);
    coverage_rounds(&coverage, pool->before, stdout);
    if (pool->options->coverage)
        coverage_missing(&coverage, pool->before, stdout);
}

static int crew_result(const struct process_pool *pool)
{
    const struct options *o = pool->options;
    uint64_t passed = 0, bad = 0, twice = 0;
    for (uint64_t i = 0; i < o->jobs; i++) {
        passed += pool->hands[i].passed;
        bad += pool->hands[i].failed;
        twice += pool->hands[i].twice;
    }
    printf("%s%llu seeds from %llu on, %llu of them run twice, in %.1f s\n", pool->before,
           (unsigned long long)o->seeds, (unsigned long long)o->start, (unsigned long long)twice,
           seconds_now() - pool->begun_at);
    coverage_say(pool);
    if (o->tap)
        printf("1..1\n%sok 1 - %llu worlds from seed %llu on\n", bad ? "not " : "",
               (unsigned long long)o->seeds, (unsigned long long)o->start);
    else
        printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)bad);
    return bad ? 1 : 0;
}

int seeds_run(const struct options *options)
{
    struct process_pool pool = {
        .options = options,
        .before = options->tap ? "# " : "",
        .begun_at = seconds_now(),
    };
    size_t bytes = options->jobs * sizeof *pool.hands;
    pool.hands = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pool.hands == MAP_FAILED) {
        perror("reeve-sim: mmap");
        return 1;
    }
    for (uint64_t i = 0; i < options->jobs; i++) {
        pool.hands[i].next = i;
        hand_start(&pool, i);
    }
    crew_wait(&pool);
    return crew_result(&pool);
}
