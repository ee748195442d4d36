/* The undisturbed run of a scenario tells which boundaries there are; nobody writes them down. Each
 * is then crashed at in a run of its own, in each way that makes sense there. A pair's second crash
 * is at any later boundary of the run with the first. */
#include "sim/scenario/enumerate.h"

#include "base/assert.h"
#include "sim/run/options.h"
#include "sim/run/run.h"
#include "sim/scenario/scenario.h"
#include "sim/world/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SCENARIOS_MAX = 32, PAIRED = 8, TOLD_MAX = 1000, WITHIN_S = 30 };
enum { CLEAN_UNTIL_MS = 60 * 1000, PAIR_MS = 3000, PAIR_ATTEMPTS = 2 };

const char enumerate_usage[] =
    "       reeve-sim --scenarios [--jobs J]   crashes at every boundary of every scenario\n"
    "       reeve-sim --scenarios --canary     ... which must be found out; exit 0 when they are\n"
    "       reeve-sim --scenario NAME [--crash K:HOW]   one of them, with its transcript; the\n"
    "                                      K-th boundary, HOW: before, after, unknown-done,\n"
    "                                      unknown-not-done, refused or twice; --crash at most\n"
    "                                      twice; --plain: the transcript in sentences,\n"
    "                                      without boundaries, ids and bodies\n"
    "       reeve-sim --pairs [--jobs J]   all pairs of crashes of the smallest scenarios\n"
    "                                      (./dev sim --mutant NAME plants a mistake before)\n";

struct wanted {
    bool all, pairs, canary, tap, quiet, plain;
    uint64_t jobs;
    const struct scenario *one;
    struct crash crashes[CRASHES_MAX];
    uint32_t crashes_count;
};

/* What the workers share with their parent. */
struct board {
    struct {
        const struct scenario *scenario; /* under way */
        struct crash crashes[CRASHES_MAX];
        uint32_t crashes_count;
        uint64_t points;
        uint64_t passed;
    } workers[JOBS_MAX];
};

/* ---- options ---- */

static void complain(const char *before, const char *what, const char *after)
{
    fprintf(stderr, "reeve-sim: %s%s%s\nusage:\n%s", before, what, after, enumerate_usage);
    exit(EXIT_USAGE);
}

static uint64_t number_of(const char *option, const char *text, const char *end, uint64_t max)
{
    char *stop;
    errno = 0;
    unsigned long long number = strtoull(text, &stop, 10);
    if (text[0] < '0' || text[0] > '9' || stop != end || errno != 0 || number < 1 || number > max)
        complain("\"", text, option);
    return number;
}

static struct crash crash_read(const char *text)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL)
        complain("\"", text, "\" is no crash: write K:HOW, as 17:after");
    enum twist twist = twist_find(colon + 1);
    if (twist == TWIST_NONE)
        complain("\"", colon + 1,
                 "\" is no way to crash: before, after, unknown-done, "
                 "unknown-not-done, refused, twice");
    uint64_t number = number_of("\": the number of a boundary is a whole number from 1 on", text,
                                colon, UINT32_MAX);
    return (struct crash){(uint32_t)number, twist};
}

static const struct scenario *scenario_read(const char *name)
{
    const struct scenario *found = scenario_find(name);
    if (found != NULL)
        return found;
    fprintf(stderr, "reeve-sim: there is no scenario \"%s\"; there are:\n", name);
    for (size_t i = 0; i < scenarios_count(); i++)
        fprintf(stderr, "  %-18s %s\n", scenario_at(i)->name, scenario_at(i)->tells);
    exit(EXIT_USAGE);
}

static const char *value_of(char **argv, int i)
{
    if (argv[i + 1] == NULL)
        complain("", argv[i], " needs a value");
    return argv[i + 1];
}

static void wanted_check(const struct wanted *o)
{
    if (o->all + o->pairs + (o->one != NULL) != 1)
        complain("give one of ", "--scenarios, --scenario and --pairs", "");
    if (o->crashes_count > 0 && o->one == NULL)
        complain("", "--crash", " goes with --scenario NAME");
    if (o->plain && o->one == NULL)
        complain("", "--plain", " goes with --scenario NAME");
    if (o->canary && !o->all)
        complain("", "--canary", " goes with --scenarios");
    if (o->crashes_count == 2 && o->crashes[0].number >= o->crashes[1].number)
        complain("the second ", "--crash", " has to come after the first");
}

static struct wanted wanted_read(char **argv)
{
    struct wanted o = {.jobs = 2};
    for (int i = 1; argv[i] != NULL; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--scenarios") == 0) {
            o.all = true;
        } else if (strcmp(option, "--pairs") == 0) {
            o.pairs = true;
        } else if (strcmp(option, "--scenario") == 0) {
            o.one = scenario_read(value_of(argv, i++));
        } else if (strcmp(option, "--crash") == 0) {
            struct crash crash = crash_read(value_of(argv, i++));
            if (o.crashes_count == CRASHES_MAX)
                complain("", "--crash", " may be given twice");
            o.crashes[o.crashes_count++] = crash;
        } else if (strcmp(option, "--jobs") == 0) {
            const char *text = value_of(argv, i++);
            o.jobs = number_of("\": --jobs is from 1 to 64", text, text + strlen(text), JOBS_MAX);
        } else if (strcmp(option, "--canary") == 0) {
            o.canary = true;
        } else if (strcmp(option, "--tap") == 0) {
            o.tap = o.quiet = true;
        } else if (strcmp(option, "--quiet") == 0) {
            o.quiet = true;
        } else if (strcmp(option, "--plain") == 0) {
            o.plain = true;
        } else {
            complain("unknown option \"", option, "\"");
        }
    }
    wanted_check(&o);
    return o;
}

bool enumerate_wants(char **argv)
{
    static const char *const ours[] = {"--scenarios", "--scenario", "--pairs", "--crash"};
    for (int i = 1; argv[i] != NULL; i++)
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
            if (strcmp(argv[i], ours[k]) == 0)
                return true;
    return false;
}

/* ---- one run ---- */

static void crashes_print(const struct scenario *s, const struct crash *crashes, uint32_t count)
{
    printf("--scenario %s", s->name);
    for (uint32_t i = 0; i < count; i++)
        printf(" --crash %u:%s", crashes[i].number, twist_text(crashes[i].twist));
}

/* The run under way, for the last words before an assertion ends it. */
static const struct scenario *scenario_now;
static struct run run_now;

static void assert_failed(const char *condition, const char *file, int line)
{
    printf("# ");
    crashes_print(scenario_now, run_now.crashes, run_now.crashes_count);
    printf(" FAILED assertion %s at %s:%d\n", condition, file, line);
    fflush(stdout);
}

static bool run_passes(struct world *w, const struct scenario *s, struct crossings *c,
                       const struct run *run, struct ran *ret)
{
    scenario_now = s;
    run_now = *run;
    scenario_run(w, s, c, run, ret);
    world_free(w);
    return w->violated == NULL;
}

/* Two crashes in a row may cost more than each by itself. */
static struct run run_with(const struct crash *crashes, uint32_t count, const struct ran *clean,
                           const struct due *due)
{
    bool pair = count > 1;
    return (struct run){.crashes = crashes,
                        .crashes_count = count,
                        .until = clean->over + due->late_ms + (pair ? PAIR_MS : 0),
                        .attempts_max = clean->attempts + due->attempts +
                                        (pair ? PAIR_ATTEMPTS : 0)};
}

static void due_add(struct due *due, const struct scenario *s, const struct crossings *c,
                    struct crash crash)
{
    struct due more = scenario_due(s, c->kinds[crash.number - 1], crash.twist);
    due->late_ms += more.late_ms;
    due->attempts += more.attempts;
}

/* Is there such a boundary in the run so far, and such a way to crash at it? */
static bool crash_there(const struct scenario *s, const struct crossings *c, struct crash crash)
{
    if (crash.number > c->count) {
        fprintf(stderr, "reeve-sim: %s has %u boundaries here, there is no number %u\n", s->name,
                c->count, crash.number);
        return false;
    }
    enum boundary boundary = c->kinds[crash.number - 1];
    if ((boundary_twists(boundary) & 1u << crash.twist) != 0)
        return true;
    fprintf(stderr, "reeve-sim: boundary %u is \"%s\", which can be crashed at", crash.number,
            boundary_text(boundary));
    for (enum twist twist = TWIST_NONE + 1; twist < TWIST_COUNT; twist++)
        if ((boundary_twists(boundary) & 1u << twist) != 0)
            fprintf(stderr, " %s", twist_text(twist));
    fprintf(stderr, ", not %s\n", twist_text(crash.twist));
    return false;
}

static int run_one(const struct wanted *o)
{
    struct world w;
    struct crossings crossings = {.count = 0};
    struct run run = {.until = CLEAN_UNTIL_MS};
    struct ran clean, ran;
    struct due due = {.late_ms = 0};
    for (uint32_t i = 0; i < o->crashes_count; i++) {
        (void)run_passes(&w, o->one, &crossings, &run, i == 0 ? &clean : &ran);
        if (!crash_there(o->one, &crossings, o->crashes[i])) {
            crossings_done(&crossings);
            return EXIT_USAGE;
        }
        due_add(&due, o->one, &crossings, o->crashes[i]);
        run = run_with(o->crashes, i + 1, &clean, &due);
    }
    run.transcript = o->quiet ? NULL : stdout;
    run.plain = o->plain && !o->quiet;
    if (run.plain)
        printf("%s: %s\n", o->one->name, o->one->tells);
    bool passed = run_passes(&w, o->one, &crossings, &run, &ran);
    if (run.plain && passed) {
        printf("passed: all tasks had ended by %lld.%03lld s, after %u attempts\n",
               (long long)(ran.over / 1000), (long long)(ran.over % 1000), ran.attempts);
        crossings_done(&crossings);
        return 0;
    }
    crashes_print(o->one, o->crashes, o->crashes_count);
    printf(": %s%s%s%s, %u boundaries, %u attempts, over at %lld ms, trace %016llx\n",
           passed ? "passed" : "FAILED ", passed ? "" : w.violated, passed ? "" : ": ",
           passed ? "" : w.detail, crossings.count, ran.attempts, (long long)ran.over,
           (unsigned long long)w.trace);
    crossings_done(&crossings);
    return passed ? 0 : 1;
}

/* ---- all of them ---- */

struct worker {
    const struct wanted *wanted;
    struct board *board;
    uint64_t number;
    uint64_t turn; /* crashes are dealt out to the workers in turn */
    uint64_t told;
    const struct scenario *scenario;
    struct ran clean;
};

static void tell_failure(struct worker *me, const struct world *w, const struct crash *crashes,
                         uint32_t count)
{
    if (me->told++ >= TOLD_MAX)
        return;
    printf("%s", me->wanted->tap ? "# " : "");
    crashes_print(me->scenario, crashes, count);
    printf(" FAILED %s: %s\n", w->violated, w->detail);
    fflush(stdout);
}

static bool crash_once(struct worker *me, struct crossings *c, const struct crash *crashes,
                       uint32_t count, const struct due *due)
{
    struct world w;
    struct ran ran;
    struct run run = run_with(crashes, count, &me->clean, due);
    me->board->workers[me->number].scenario = me->scenario;
    me->board->workers[me->number].crashes_count = count;
    for (uint32_t i = 0; i < count; i++)
        me->board->workers[me->number].crashes[i] = crashes[i];
    run_bound(WITHIN_S); /* a run without end ends its worker, and is told */
    bool passed = run_passes(&w, me->scenario, c, &run, &ran);
    me->board->workers[me->number].points++;
    me->board->workers[me->number].passed += passed;
    if (!passed)
        tell_failure(me, &w, crashes, count);
    return passed;
}

/* Every way at this boundary of the run with the first crash, as the second one. */
static void crash_after(struct worker *me, const struct crossings *c, struct crossings *scratch,
                        struct crash first, const struct due *due_first, uint32_t number)
{
    for (enum twist twist = TWIST_NONE + 1; twist < TWIST_COUNT; twist++) {
        if ((boundary_twists(c->kinds[number - 1]) & 1u << twist) == 0)
            continue;
        struct crash both[CRASHES_MAX] = {first, {number, twist}};
        struct due due = *due_first;
        due_add(&due, me->scenario, c, both[1]);
        (void)crash_once(me, scratch, both, 2, &due);
    }
}

static void crash_at(struct worker *me, const struct crossings *clean, struct crossings *one,
                     struct crossings *two, struct crash first)
{
    struct due due = {.late_ms = 0};
    due_add(&due, me->scenario, clean, first);
    bool passed = crash_once(me, one, &first, 1, &due);
    if (!me->wanted->pairs || !passed)
        return;
    for (uint32_t n = first.number + 1; n <= one->count; n++)
        crash_after(me, one, two, first, &due, n);
}

/* False: even undisturbed it does not end as it should. */
static bool scenario_crash(struct worker *me, const struct scenario *s)
{
    struct world w;
    struct crossings clean = {.count = 0}, one = clean, two = clean;
    struct run run = {.until = CLEAN_UNTIL_MS};
    me->scenario = s;
    bool passed = run_passes(&w, s, &clean, &run, &me->clean);
    if (!passed && me->number == 0)
        tell_failure(me, &w, NULL, 0);
    for (uint32_t n = 1; n <= clean.count && passed; n++)
        for (enum twist twist = TWIST_NONE + 1; twist < TWIST_COUNT; twist++)
            if ((boundary_twists(clean.kinds[n - 1]) & 1u << twist) != 0 &&
                me->turn++ % me->wanted->jobs == me->number)
                crash_at(me, &clean, &one, &two, (struct crash){n, twist});
    crossings_done(&clean);
    crossings_done(&one);
    crossings_done(&two);
    return passed;
}

/* The scenarios that are paired: those with the fewest boundaries. */
static void choose_smallest(bool *chosen)
{
    uint32_t counts[SCENARIOS_MAX] = {0};
    rv_assert(scenarios_count() <= SCENARIOS_MAX);
    for (size_t i = 0; i < scenarios_count(); i++) {
        struct world w;
        struct crossings c = {.count = 0};
        struct run run = {.until = CLEAN_UNTIL_MS};
        struct ran ran;
        (void)run_passes(&w, scenario_at(i), &c, &run, &ran);
        counts[i] = c.count;
        crossings_done(&c);
    }
    for (int k = 0; k < PAIRED; k++) {
        size_t least = SCENARIOS_MAX;
        for (size_t i = 0; i < scenarios_count(); i++)
            if (!chosen[i] && (least == SCENARIOS_MAX || counts[i] < counts[least]))
                least = i;
        chosen[least] = true;
    }
}

static int worker(const struct wanted *o, struct board *board, uint64_t number)
{
    struct worker me = {.wanted = o, .board = board, .number = number};
    bool chosen[SCENARIOS_MAX] = {false};
    bool good = true;
    if (o->pairs)
        choose_smallest(chosen);
    for (size_t i = 0; i < scenarios_count(); i++) {
        if (o->pairs && !chosen[i])
            continue;
        good &= scenario_crash(&me, scenario_at(i));
        if (number == 0 && !o->quiet)
            fprintf(stderr, "\r%zu of %zu scenarios, %llu runs ", i + 1, scenarios_count(),
                    (unsigned long long)(board->workers[0].points * o->jobs));
    }
    if (number == 0 && !o->quiet)
        fputc('\n', stderr);
    return good ? 0 : 1;
}

/* A worker that dies has found something too. */
static bool workers_wait(const struct wanted *o, const struct board *board, const pid_t *pids)
{
    bool good = true;
    for (uint64_t i = 0; i < o->jobs; i++) {
        int status;
        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            ;
        good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (WIFEXITED(status))
            continue;
        printf("%s", o->tap ? "# " : "");
        if (board->workers[i].scenario != NULL)
            crashes_print(board->workers[i].scenario, board->workers[i].crashes,
                          board->workers[i].crashes_count);
        printf(" FAILED: the program crashed; what was expected after it was not run\n");
    }
    return good;
}

static int run_all(const struct wanted *o)
{
    struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        perror("reeve-sim: mmap");
        return 1;
    }
    pid_t pids[JOBS_MAX];
    for (uint64_t i = 0; i < o->jobs; i++) {
        pids[i] = run_fork();
        if (pids[i] < 0) {
            perror("reeve-sim: fork");
            return 1;
        }
        if (pids[i] == 0) {
            int code = worker(o, board, i);
            fflush(stdout);
            exit(code);
        }
    }
    bool good = workers_wait(o, board, pids);
    uint64_t points = 0, passed = 0;
    for (uint64_t i = 0; i < o->jobs; i++) {
        points += board->workers[i].points;
        passed += board->workers[i].passed;
    }
    good = good && points > 0 && passed == points;
    char line[160];
    snprintf(line, sizeof line, "%zu scenarios, %llu crash points, %llu passed",
             o->pairs ? (size_t)PAIRED : scenarios_count(), (unsigned long long)points,
             (unsigned long long)passed);
    if (o->tap)
        printf("1..1\n%sok 1 - %s\n", good ? "" : "not ", line);
    else
        printf("%s\n", line);
    return good ? 0 : 1;
}

/* ---- the canary ---- */

static bool found_out(const struct scenario *s, bool forget, struct crash crash)
{
    struct world w;
    struct crossings c = {.count = 0};
    struct ran ran;
    struct run run = {.crashes = &crash,
                      .crashes_count = crash.number != 0,
                      .until = CLEAN_UNTIL_MS,
                      .forget = forget};
    bool passed = run_passes(&w, s, &c, &run, &ran);
    crossings_done(&c);
    return !passed;
}

/* The same scenario, with an end that it does not come to. */
static struct scenario misled(const struct scenario *s)
{
    struct scenario wrong = *s;
    wrong.books[0].stays += 1;
    return wrong;
}

static bool all_found_out(bool forget)
{
    bool all = true;
    for (size_t i = 0; i < scenarios_count(); i++) {
        struct scenario wrong = misled(scenario_at(i));
        all &= found_out(forget ? scenario_at(i) : &wrong, forget, (struct crash){0, TWIST_NONE});
    }
    return all;
}

/* Every crash of the first scenario, with an expectation that is wrong. */
static bool crashes_found_out(uint32_t *ret_count)
{
    struct scenario wrong = misled(scenario_at(0));
    struct crossings clean = {.count = 0};
    struct run run = {.until = CLEAN_UNTIL_MS};
    struct world w;
    struct ran ran;
    bool all = run_passes(&w, scenario_at(0), &clean, &run, &ran);
    *ret_count = clean.count;
    for (uint32_t n = 1; n <= clean.count; n++)
        for (enum twist twist = TWIST_NONE + 1; twist < TWIST_COUNT; twist++)
            if ((boundary_twists(clean.kinds[n - 1]) & 1u << twist) != 0)
                all &= found_out(&wrong, false, (struct crash){n, twist});
    crossings_done(&clean);
    return all && clean.count > 0;
}

static int run_canary(void)
{
    uint32_t count;
    bool crashes = crashes_found_out(&count);
    const struct {
        bool found;
        const char *what;
    } results[] = {
        {all_found_out(true), "services that forget are found out in every scenario"},
        {all_found_out(false), "a wrong expectation is found out in every scenario"},
        {crashes, "a wrong expectation is found out after every crash"},
        {found_out(scenario_at(0), false, (struct crash){count + 100000, TWIST_BEFORE}),
         "a crash that is never come to is found out"},
    };
    bool all = true;
    printf("1..%zu\n", sizeof results / sizeof *results);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        all &= results[i].found;
        printf("%sok %zu - %s\n", results[i].found ? "" : "not ", i + 1, results[i].what);
    }
    return all ? 0 : 1;
}

int enumerate_main(char **argv)
{
    struct wanted o = wanted_read(argv);
    rv_assert_set_handler(assert_failed);
    if (o.canary)
        return run_canary();
    return o.one != NULL ? run_one(&o) : run_all(&o);
}
