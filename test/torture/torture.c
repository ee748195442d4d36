/* torture - fails the N-th of everything, for every N, and looks whether anything was lost.
 *
 * torture [--sample N] [--at HARM N] [--tap] [--canaries] [--jobs N] [PATTERN...]
 *
 * Each scenario is run cleanly first, which says what it comes to and how many calls it makes; then
 * once for each harm and each call. A run must not crash, abort, leak or hang, must come to the
 * same end as the clean one, and every error that a caller was given must be one that invites
 * another try. A scenario runs in a process of its own, so a crash is told like any other failure
 * and the next N goes on from there. */
#include "torture.h"

#include "base/assert.h"
#include "faults.h"
#include "store_faults.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { END_BYTES_MAX = 1 << 20, RUN_SECONDS_MAX = 60, FAILURES_MAX = 4, TRIES_MAX = 3 };
enum { EXIT_RED = 3 };

static const struct {
    const char *text;
    enum rv_err err;
    bool sticky;
    bool commits;
} harms[] = {
#define HARM_ROW(name, text, error, sticky, commits) {text, RV_ERR_##error, sticky, commits},
    HARM_TABLE(HARM_ROW)
#undef HARM_ROW
};

/* What parent and child both see. */
struct progress {
    enum harm harm; /* of the run under way; HARM_COUNT: all are done */
    uint64_t at;
    uint64_t runs;
    struct torture_calls calls; /* of the clean run */
};

static struct progress *progress; /* shared; of the scenario that this process is about */

struct options {
    uint64_t sample; /* runs per harm; 0: what the scenario says */
    uint64_t jobs;   /* scenarios at once */
    bool tap;
    bool canaries;
    bool alone; /* only this harm, at this call */
    enum harm harm;
    uint64_t at;
};

static struct options options;

static bool is_of_heap(enum harm harm)
{
    return ((1u << harm) & HARMS_OF_HEAP) != 0;
}

static bool is_of_changes(enum harm harm)
{
    return harms[harm].err == RV_ERR_CONFLICT;
}

/* ---- for scenarios ---- */

_Noreturn void torture_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "# %s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    fflush(NULL);
    _exit(EXIT_RED); /* what lives now is no leak */
}

void torture_says(struct torture *t, const char *format, ...)
{
    char stack[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(stack, sizeof stack, format, args);
    va_end(args);
    EXPECT(n >= 0 && (size_t)n < sizeof stack, "a line is too long");
    rv_buf_add(&t->end, stack, (size_t)n);
    EXPECT(t->end.failed == RV_OK, "the run says too much");
}

bool torture_allows(const struct torture *t, enum rv_err err)
{
    if (err == RV_OK)
        return true;
    return t->at != 0 && (rv_err_family(err) == RV_FAMILY_RETRY || err == RV_ERR_COMMIT_UNKNOWN);
}

void torture_again(const struct torture *t, enum rv_err err, int tries, const char *what,
                   const char *file, int line)
{
    bool named = !is_of_heap(t->harm) || err == RV_ERR_MEMORY;
    if (!torture_allows(t, err) || !named || tries > TRIES_MAX)
        torture_fail(file, line, "%s: %s", what, rv_err_text(err));
    if (tries + 1 >= TRIES_MAX)
        faults_heal();
}

void torture_arm_store(const struct torture *t, struct store_faults *store)
{
    if (t->at == 0 || is_of_heap(t->harm))
        return;
    store->sticky = harms[t->harm].sticky;
    store->only_commits = harms[t->harm].commits;
    store->fail_with = harms[t->harm].err;
    store->unknown_writes = t->harm != HARM_UNKNOWN_LOST;
    if (is_of_changes(t->harm))
        store->drop_at = t->at;
    else
        store->fail_at = t->at;
}

void torture_disarm_store(struct torture *t, struct store_faults *store)
{
    t->calls.of_store = store->calls;
    t->calls.of_commit = store->commit_calls;
    t->calls.of_change = store->changes;
    if (t->at != 0 && !is_of_heap(t->harm))
        t->hurt = is_of_changes(t->harm) ? store->drops > 0 : store->failed > 0;
    store->fail_at = store->drop_at = 0;
}

static uint64_t calls_of(const struct torture_calls *calls, enum harm harm)
{
    if (is_of_heap(harm))
        return calls->of_heap;
    if (is_of_changes(harm))
        return calls->of_change;
    return harms[harm].commits ? calls->of_commit : calls->of_store;
}

/* ---- one run ---- */

static void run_once(struct torture *t)
{
    progress->harm = t->harm;
    progress->at = t->at;
    t->hurt = false;
    rv_buf_reset(&t->end);
    faults_forget();
    alarm(RUN_SECONDS_MAX);
    bool heap = t->at != 0 && is_of_heap(t->harm);
    faults_arm(heap ? t->at : 0, heap && harms[t->harm].sticky);
    t->scenario->run(t);
    faults_heal();
    t->calls.of_heap = faults.calls;
    if (heap)
        t->hurt = faults.failed;
    progress->runs++;
    if (faults_live() > 0)
        faults_print_live();
    EXPECT(faults_live() == 0, "%zu blocks were not given back", faults_live());
}

static void must_be_the_same(const struct torture *t, const struct rv_buf *clean)
{
    if (rv_str_eq(rv_buf_str(&t->end), rv_buf_str(clean)))
        return;
    fprintf(stderr, "# it came to:\n%.*s# and not to:\n%.*s", RV_STR_FMT(rv_buf_str(&t->end)),
            RV_STR_FMT(rv_buf_str(clean)));
    EXPECT(false, "the end is another one than without the failure");
}

/* The next call to fail. When only some of them shall, they are spread evenly over all, and are not
 * the same ones for each harm. */
static uint64_t call_after(const struct torture *t, uint64_t calls)
{
    uint64_t most = options.sample != 0 ? options.sample : t->scenario->most;
    if (most == 0 || calls <= most)
        return t->at + 1;
    uint64_t shift = (uint64_t)t->harm * 7919 % (calls / most);
    uint64_t next = 0;
    for (uint64_t i = 0; next <= t->at; i++)
        next = i * calls / most + shift + 1;
    return next;
}

static void harm_run(struct torture *t, enum harm harm, uint64_t from, const struct rv_buf *clean)
{
    uint64_t calls = calls_of(&progress->calls, harm);
    t->harm = harm;
    t->hurt = false;
    for (t->at = from; t->at <= calls || t->hurt; t->at = call_after(t, calls)) {
        run_once(t);
        must_be_the_same(t, clean);
        if (options.alone)
            break;
    }
}

static void assert_told(const char *condition, const char *file, int line)
{
    torture_fail(file, line, "assertion failed: %s", condition);
}

/* All that is left of the scenario, from the given run on. In a process of its own. */
static void scenario_run(const struct scenario *scenario, enum harm harm, uint64_t at)
{
    struct torture t = {.scenario = scenario};
    struct rv_buf clean;
    faults_take_sqlite();
    rv_assert_set_handler(assert_told);
    rv_buf_init(&t.end, END_BYTES_MAX);
    rv_buf_init(&clean, END_BYTES_MAX);
    alarm(RUN_SECONDS_MAX);
    /* The first run takes what stays for the life of the process. */
    t.scenario->run(&t);
    run_once(&t);
    rv_buf_add_str(&clean, rv_buf_str(&t.end));
    progress->calls = t.calls;
    for (; harm < HARM_COUNT; harm++, at = 1)
        if ((scenario->harms & (1u << harm)) != 0)
            harm_run(&t, harm, at, &clean);
    progress->harm = HARM_COUNT;
    rv_buf_done(&t.end);
    rv_buf_done(&clean);
}

/* ---- processes ---- */

static bool child_ended_well(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    if (WIFSIGNALED(status))
        fprintf(stderr, "# killed by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* How many of its runs failed; it is given up after FAILURES_MAX. */
static int scenario_in_child(const struct scenario *scenario)
{
    *progress = (struct progress){.harm = options.alone ? options.harm : 0,
                                  .at = options.alone ? options.at : 1};
    int failures = 0;
    while (failures < FAILURES_MAX) {
        fflush(NULL);
        struct progress from = *progress;
        pid_t child = fork();
        if (child == 0) {
            scenario_run(scenario, from.harm, from.at);
            exit(0);
        }
        if (child > 0 && child_ended_well(child) && progress->harm == HARM_COUNT)
            return failures;
        failures++;
        if (progress->harm == HARM_COUNT || progress->at == 0 || options.alone) {
            fprintf(stderr, "# %s: the clean run, or the end of the process\n", scenario->name);
            return failures;
        }
        fprintf(stderr, "# %s: %s %llu\n", scenario->name, harms[progress->harm].text,
                (unsigned long long)progress->at);
        progress->at++;
    }
    return failures;
}

/* ---- the program ---- */

static const struct scenario *const families[] = {
    scenarios_texts,  scenarios_apis, scenarios_agents, scenarios_programs,
    scenarios_stores, scenarios_asks, scenarios_plays};

static bool is_asked_for(const struct scenario *scenario, char **patterns)
{
    if (*patterns == NULL)
        return true;
    for (; *patterns != NULL; patterns++)
        if (strstr(scenario->name, *patterns) != NULL)
            return true;
    return false;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct tally {
    int passed;
    int failed;
};

/* A scenario under way, with the process that looks after it. */
struct job {
    const struct scenario *scenario; /* NULL: the place is free */
    pid_t pid;
    double begun;
    struct progress *progress; /* shared */
};

enum { JOBS_MAX = 16 };

static struct job jobs[JOBS_MAX];

static void job_tell(const struct job *job, bool good, struct tally *tally)
{
    uint64_t allocations = job->progress->calls.of_heap;
    uint64_t calls = job->progress->calls.of_store;
    tally->passed += good;
    tally->failed += !good;
    if (options.tap)
        printf("%sok %d - %s\n", good ? "" : "not ", tally->passed + tally->failed,
               job->scenario->name);
    else
        printf("%-32s %6llu allocations %5llu store calls %6llu runs %6.1f s  %s\n",
               job->scenario->name, (unsigned long long)allocations, (unsigned long long)calls,
               (unsigned long long)job->progress->runs, seconds() - job->begun,
               good ? "passed" : "FAILED");
    fflush(stdout);
}

/* Its exit code says whether a run failed; a canary must have failed. */
static void job_begin(struct job *job, const struct scenario *scenario)
{
    fflush(NULL);
    job->scenario = scenario;
    job->begun = seconds();
    job->pid = fork();
    if (job->pid == 0) {
        progress = job->progress;
        _exit(scenario_in_child(scenario) > 0 ? EXIT_RED : 0);
    }
}

static void job_wait(struct tally *tally)
{
    int status = -1;
    pid_t ended = wait(&status);
    for (size_t i = 0; i < JOBS_MAX; i++) {
        struct job *job = &jobs[i];
        if (job->scenario == NULL || job->pid != ended)
            continue;
        bool red = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        job_tell(job, red == job->scenario->canary, tally);
        job->scenario = NULL;
    }
}

static struct job *job_free(void)
{
    for (size_t i = 0; i < JOBS_MAX && i < options.jobs; i++)
        if (jobs[i].scenario == NULL)
            return &jobs[i];
    return NULL;
}

static void family_run(const struct scenario *family, char **patterns, struct tally *tally)
{
    for (const struct scenario *s = family; s->name != NULL; s++) {
        if (!is_asked_for(s, patterns))
            continue;
        while (job_free() == NULL)
            job_wait(tally);
        job_begin(job_free(), s);
    }
}

static bool jobs_under_way(void)
{
    for (size_t i = 0; i < JOBS_MAX; i++)
        if (jobs[i].scenario != NULL)
            return true;
    return false;
}

static int usage(void)
{
    fprintf(stderr, "usage: torture [--sample N] [--at HARM N] [--tap] [--canaries] [--jobs N] "
                    "[PATTERN...]\nharms:\n");
    for (int h = 0; h < HARM_COUNT; h++)
        fprintf(stderr, "  %2d %s\n", h, harms[h].text);
    return 2;
}

static uint64_t number_of(const char *text)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (end == text || *end != '\0')
        exit(usage());
    return number;
}

/* The first word that is no option. */
static char **options_read(char **words)
{
    for (; *words != NULL && strncmp(*words, "--", 2) == 0; words++) {
        if (strcmp(*words, "--tap") == 0) {
            options.tap = true;
        } else if (strcmp(*words, "--canaries") == 0) {
            options.canaries = true;
        } else if (strcmp(*words, "--sample") == 0 && words[1] != NULL) {
            options.sample = number_of(*++words);
        } else if (strcmp(*words, "--jobs") == 0 && words[1] != NULL) {
            options.jobs = number_of(*++words);
        } else if (strcmp(*words, "--at") == 0 && words[1] != NULL && words[2] != NULL) {
            options.alone = true;
            uint64_t harm = number_of(*++words);
            options.at = number_of(*++words);
            if (harm >= HARM_COUNT || options.at == 0)
                exit(usage());
            options.harm = (enum harm)harm;
        } else {
            exit(usage());
        }
    }
    return words;
}

int main(int count, char **words)
{
    (void)count;
    options.jobs = 1;
    char **patterns = options_read(words + 1);
    struct progress *shared = mmap(NULL, JOBS_MAX * sizeof *shared, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < JOBS_MAX; i++)
        jobs[i].progress = &shared[i];
    struct tally tally = {0, 0};
    if (options.canaries)
        family_run(scenarios_canaries, patterns, &tally);
    for (size_t i = 0; !options.canaries && i < sizeof families / sizeof families[0]; i++)
        family_run(families[i], patterns, &tally);
    while (jobs_under_way())
        job_wait(&tally);
    if (options.tap)
        printf("1..%d\n", tally.passed + tally.failed);
    else
        printf("%d passed, %d failed\n", tally.passed, tally.failed);
    return tally.failed == 0 && tally.passed > 0 ? 0 : 1;
}
