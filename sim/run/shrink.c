/* Delta debugging (Zeller): the world's parts are recorded, then it is run again and again without
 * some of them, first many at once, then fewer, down to single ones; what the failure does not need
 * stays away. Between that the numbers of the world are made small and plain. It ends when nothing
 * more can be left out, or when its time is over: what it has then fails, too. */
#include "sim/run/shrink.h"

#include "base/assert.h"
#include "sim/run/run.h"
#include "sim/run/transcript.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINES_SHOWN = 400 };

struct shrink {
    const struct options *options;
    struct with best; /* owned */
    struct outcome outcome;
    uint64_t runs;
    double until;
    double said_at;
};

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void progress(struct shrink *s)
{
    double now = seconds_now();
    if (s->options->quiet || now - s->said_at < 1)
        return;
    s->said_at = now;
    fprintf(stderr, "\r%llu runs: %zu parts, %u tasks, %llu events ", (unsigned long long)s->runs,
            s->best.only.count, s->outcome.tasks, (unsigned long long)s->outcome.events);
}

/* ---- one try ---- */

/* The same rule is broken; of assertions, the same one. */
static bool alike(const struct outcome *a, const struct outcome *b)
{
    return !b->passed && strcmp(a->invariant, b->invariant) == 0 &&
           (strcmp(a->invariant, "assertion") != 0 || strcmp(a->detail, b->detail) == 0);
}

/* Takes the candidate over if its world fails as it should; frees it if not. */
static bool adopt(struct shrink *s, struct with *candidate)
{
    struct world_setup setup = {.seed = s->options->seed, .with = candidate};
    struct outcome outcome;
    progress(s);
    if (seconds_now() < s->until) {
        s->runs++;
        run_apart(&setup, &outcome);
        if (alike(&s->outcome, &outcome)) {
            with_done(&s->best);
            s->best = *candidate;
            s->outcome = outcome;
            return true;
        }
    }
    with_done(candidate);
    return false;
}

static bool try_without(struct shrink *s, size_t from, size_t count)
{
    struct with candidate;
    with_copy(&s->best, &candidate);
    struct parts *only = &candidate.only;
    memmove(only->all + from, only->all + from + count,
            (only->count - from - count) * sizeof *only->all);
    only->count -= count;
    return adopt(s, &candidate);
}

static bool try_knob(struct shrink *s, size_t knob, uint32_t value)
{
    struct with candidate;
    with_copy(&s->best, &candidate);
    with_set(&candidate, knob, value);
    return adopt(s, &candidate);
}

/* ---- parts ---- */

/* The parts of a kind stand together: [*ret_from, *ret_from + count). */
static size_t kind_find(const struct shrink *s, unsigned kind, size_t *ret_from)
{
    const struct parts *only = &s->best.only;
    size_t from = 0, count = 0;
    while (from < only->count && only->all[from].kind != kind)
        from++;
    while (from + count < only->count && only->all[from + count].kind == kind)
        count++;
    *ret_from = from;
    return count;
}

/* From the back, since what comes late matters less to what was before it. */
static bool shrink_kind(struct shrink *s, unsigned kind)
{
    size_t from;
    bool smaller = false;
    for (size_t size = kind_find(s, kind, &from); size > 0; size /= 2) {
        size_t at = kind_find(s, kind, &from);
        while (at > 0) {
            size_t piece = at < size ? at : size;
            at -= piece;
            smaller |= try_without(s, from + at, piece);
        }
    }
    return smaller;
}

static bool shrink_parts(struct shrink *s)
{
    bool smaller = shrink_kind(s, PART_ORDER); /* first: fewer tasks make the runs short */
    for (unsigned kind = 0; kind < FAULT_COUNT; kind++) {
        size_t from, count = kind_find(s, kind, &from);
        smaller |= count > 0 && try_without(s, from, count);
    }
    for (unsigned kind = 0; kind < FAULT_COUNT; kind++)
        smaller |= shrink_kind(s, kind);
    return shrink_kind(s, PART_STEP) || smaller;
}

/* ---- numbers ---- */

static uint32_t knob_now(const struct shrink *s, size_t knob)
{
    struct knobs knobs;
    knobs_draw(&knobs, s->options->seed);
    with_apply(&s->best, &knobs);
    return knob_get(&knobs, knob);
}

/* The plain value, or as near to it as halving the way leads. */
static bool shrink_knob(struct shrink *s, size_t knob)
{
    uint32_t plain = knob_plain(knob);
    bool smaller = false;
    for (uint32_t now = knob_now(s, knob); now != plain; now = knob_now(s, knob)) {
        if (try_knob(s, knob, plain))
            return true;
        uint32_t half = now > plain ? plain + (now - plain) / 2 : now + (plain - now + 1) / 2;
        if (half == plain || half == now || !try_knob(s, knob, half))
            return smaller;
        smaller = true;
    }
    return smaller;
}

static bool shrink_numbers(struct shrink *s)
{
    bool smaller = false;
    for (size_t knob = FAULT_COUNT; knob < KNOBS_COUNT; knob++)
        smaller |= shrink_knob(s, knob);
    return smaller;
}

/* ---- all of it ---- */

static FILE *temporary(void)
{
    FILE *file = tmpfile();
    if (file == NULL) {
        perror("reeve-sim: a temporary file");
        exit(1);
    }
    return file;
}

/* Runs the world as it is and names all of its parts: without any, it is the same world. */
static bool begin(struct shrink *s)
{
    FILE *record = temporary();
    struct world_setup setup = {
        .seed = s->options->seed, .with = &s->options->with, .record = record};
    struct with all;
    run_apart(&setup, &s->outcome);
    with_copy(&s->options->with, &s->best);
    if (s->outcome.passed) {
        fclose(record);
        return false;
    }
    with_copy(&s->options->with, &all);
    all.only.count = 0;
    parts_read_record(record, &all.only);
    parts_sort(&all.only);
    all.chosen = true;
    fclose(record);
    if (!adopt(s, &all))
        fprintf(stderr,
                "reeve-sim: the world does not fail the same way when its parts are named\n");
    return s->best.chosen;
}

static void tell(const struct shrink *s)
{
    struct rv_buf with;
    rv_buf_init(&with, WITH_BYTES_MAX);
    with_write(&s->best, &with);
    FILE *transcript = temporary();
    struct world_setup setup = {
        .seed = s->options->seed, .with = &s->best, .transcript = transcript};
    struct outcome outcome;
    run_apart(&setup, &outcome);
    transcript_tail(transcript, "", LINES_SHOWN, "", stdout);
    fclose(transcript);
    printf("%s: %s\n", outcome.invariant, outcome.detail);
    printf("%u tasks, %zu parts, %llu events; %llu worlds were tried\n", outcome.tasks,
           s->best.only.count, (unsigned long long)outcome.events, (unsigned long long)s->runs);
    printf("reeve-sim --seed %llu --with %.*s\n", (unsigned long long)s->options->seed,
           RV_STR_FMT(rv_buf_str(&with)));
    rv_buf_done(&with);
}

int shrink_run(const struct options *options)
{
    struct shrink s = {.options = options, .until = seconds_now() + (double)options->within_s};
    if (!begin(&s)) {
        fprintf(stderr, "reeve-sim: seed %llu %s: there is nothing to shrink\n",
                (unsigned long long)options->seed,
                s.outcome.passed ? "passes" : "is not the same twice");
        with_done(&s.best);
        return EXIT_USAGE;
    }
    bool smaller = true;
    while (smaller && seconds_now() < s.until) {
        smaller = shrink_parts(&s);
        smaller |= shrink_numbers(&s);
    }
    if (!options->quiet)
        fputc('\n', stderr);
    tell(&s);
    with_done(&s.best);
    return 0;
}
