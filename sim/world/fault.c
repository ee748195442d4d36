#include "sim/world/fault.h"

#include "base/assert.h"
#include "base/hash.h"
#include "sim/world/world.h"

#include <stdlib.h>

static const struct {
    const char *name;
    const char *what;
} table[PART_KINDS] = {
#define SIM_FAULT(name, text, rate, what) {text, what},
#include "sim/world/fault.def"
#undef SIM_FAULT
    {"order", "a submission"},
    {"step", "a step of a workflow"},
};

const char *fault_name(enum fault fault)
{
    return table[fault].name;
}

/* ---- parts ---- */

void parts_add(struct parts *parts, struct part part)
{
    if (parts->count == parts->room) {
        parts->room = parts->room ? parts->room * 2 : 64;
        parts->all = realloc(parts->all, parts->room * sizeof *parts->all);
        rv_assert(parts->all != NULL);
    }
    parts->all[parts->count++] = part;
}

void parts_done(struct parts *parts)
{
    free(parts->all);
    *parts = (struct parts){.all = NULL};
}

static uint64_t part_key(struct part part)
{
    return (uint64_t)part.kind << 48 | (uint64_t)part.actor << 32 | part.number;
}

/* The text up to the mark, which is taken off; all of it where there is no mark. */
static struct rv_str cut(struct rv_str *text, char mark)
{
    struct rv_str head = *text;
    for (size_t i = 0; i < text->len; i++) {
        if (text->at[i] != mark)
            continue;
        head.len = i;
        text->at += i + 1;
        text->len -= i + 1;
        return head;
    }
    text->at += text->len;
    text->len = 0;
    return head;
}

static bool number_read(struct rv_str text, uint32_t max, uint32_t *ret)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || number > max)
            return false;
        number = number * 10 + (uint64_t)(text.at[i] - '0');
    }
    *ret = (uint32_t)number;
    return text.len > 0 && number <= max;
}

static bool part_read(struct rv_str text, struct part *ret)
{
    struct rv_str name = cut(&text, '.'), actor = cut(&text, '.');
    uint32_t kind = 0, whose;
    while (kind < PART_KINDS && !rv_str_is(name, table[kind].name))
        kind++;
    if (kind == PART_KINDS || !number_read(actor, ACTORS_MAX - 1, &whose) ||
        !number_read(text, UINT32_MAX, &ret->number))
        return false;
    ret->kind = (uint16_t)kind;
    ret->actor = (uint16_t)whose;
    return true;
}

bool parts_read(struct rv_str text, struct parts *parts, struct rv_str *ret_wrong)
{
    while (text.len > 0) {
        struct rv_str word = cut(&text, '+');
        struct part part;
        if (!part_read(word, &part)) {
            *ret_wrong = word;
            return false;
        }
        parts_add(parts, part);
    }
    return true;
}

void parts_read_record(FILE *record, struct parts *parts)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    rewind(record);
    while ((len = getline(&line, &room, record)) > 0) {
        struct part part;
        bool whole = line[len - 1] == '\n'; /* a process that dies may leave half a line */
        if (whole && part_read((struct rv_str){line, (size_t)len - 1}, &part))
            parts_add(parts, part);
    }
    free(line);
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = part_key(*(const struct part *)a), y = part_key(*(const struct part *)b);
    return (x > y) - (x < y);
}

void parts_sort(struct parts *parts)
{
    size_t kept = 0;
    if (parts->count > 1)
        qsort(parts->all, parts->count, sizeof *parts->all, by_key);
    for (size_t i = 0; i < parts->count; i++)
        if (kept == 0 || by_key(&parts->all[kept - 1], &parts->all[i]) != 0)
            parts->all[kept++] = parts->all[i];
    parts->count = kept;
}

void part_write(struct part part, struct rv_buf *out)
{
    rv_buf_printf(out, "%s.%u.%u", table[part.kind].name, part.actor, part.number);
}

void parts_write(const struct parts *parts, struct rv_buf *out)
{
    for (size_t i = 0; i < parts->count; i++) {
        if (i > 0)
            rv_buf_lit(out, "+");
        part_write(parts->all[i], out);
    }
}

/* ---- in a world ---- */

void faults_new(struct world *w, const struct parts *only, FILE *record)
{
    struct faults *f = calloc(1, sizeof *f);
    rv_assert(f != NULL);
    w->faults = f;
    rv_map_init(&f->kept);
    rv_map_init(&f->hits);
    for (int i = 0; i < FAULT_COUNT; i++) {
        f->struck_at[i] = -1;
        for (int actor = 0; actor < ACTORS_MAX; actor++)
            f->hit_at[i][actor] = -1;
    }
    f->record = record;
    f->chosen = only != NULL;
    for (size_t i = 0; only != NULL && i < only->count; i++) {
        enum rv_err err = rv_map_put(&f->kept, part_key(only->all[i]), 0, 1);
        rv_assert(err == RV_OK);
    }
}

void faults_free(struct world *w)
{
    if (w->faults == NULL)
        return;
    rv_map_done(&w->faults->kept);
    rv_map_done(&w->faults->hits);
    free(w->faults);
}

static void record(const struct faults *f, struct part part)
{
    if (f->record != NULL)
        fprintf(f->record, "%s.%u.%u\n", table[part.kind].name, part.actor, part.number);
}

static bool kept(const struct faults *f, struct part part)
{
    return rv_map_find(&f->kept, part_key(part), 0) != NULL;
}

void fault_felt(struct world *w, enum fault fault, uint32_t actor)
{
    w->faults->struck_at[fault] = w->now;
    w->faults->hit_at[fault][actor] = w->now;
}

void fault_hits(struct world *w, enum fault fault, struct rv_task_id task)
{
    enum rv_err err = rv_map_put(&w->faults->hits, (uint64_t)fault, (uint64_t)task.value,
                                 (uint64_t)w->now);
    rv_assert(err == RV_OK);
}

bool fault_is_recent(const struct world *w, enum fault fault, struct rv_task_id task,
                     uint32_t actors, int64_t within_ms)
{
    const struct faults *f = w->faults;
    int64_t since = w->now - within_ms;
    if (since < 0)
        since = 0; /* -1: it never struck */
    for (uint32_t left = actors; left != 0; left &= left - 1)
        if (f->hit_at[fault][__builtin_ctz(left)] >= since)
            return true;
    const uint64_t *hit = rv_map_find(&f->hits, (uint64_t)fault, (uint64_t)task.value);
    return hit != NULL && (int64_t)*hit >= since;
}

static void strike(struct world *w, struct part part)
{
    struct faults *f = w->faults;
    f->any = true;
    f->struck_at[part.kind] = w->now;
    if (part.kind != FAULT_CUT) /* a link, which is felt by those whose messages take it */
        f->hit_at[part.kind][part.actor] = w->now;
    record(f, part);
    world_say(w, "fault", "%s.%u.%u: %s", table[part.kind].name, part.actor, part.number,
              table[part.kind].what);
}

bool fault_strikes(struct world *w, enum fault fault, uint32_t actor)
{
    struct faults *f = w->faults;
    uint32_t rate = w->knobs.rates[fault];
    rv_assert(actor < ACTORS_MAX);
    if (w->healed || (rate == 0 && !f->chosen))
        return false;
    struct part part = {(uint16_t)fault, (uint16_t)actor, ++f->occasions[fault][actor]};
    struct rv_prng dice;
    rv_prng_init(&dice, rv_hash_int(rv_hash_int(w->seed) + part_key(part)));
    bool drawn = rv_prng_below(&dice, 1000) < rate;
    if (f->chosen ? !kept(f, part) : !drawn)
        return false;
    f->dice = dice;
    strike(w, part);
    return true;
}

uint64_t fault_roll(struct world *w, uint64_t bound)
{
    return bound > 1 ? rv_prng_below(&w->faults->dice, bound) : 0;
}

int64_t fault_spread(struct world *w, int64_t mean_ms)
{
    return spread(&w->faults->dice, mean_ms);
}

bool fault_happened(const struct world *w, enum fault fault)
{
    return w->faults->struck_at[fault] >= 0;
}

bool fault_happened_any(const struct world *w)
{
    return w->faults->any;
}

bool part_stays(struct world *w, enum part_kind kind, uint32_t actor, uint32_t number)
{
    struct faults *f = w->faults;
    struct part part = {(uint16_t)kind, (uint16_t)actor, number};
    if (f->chosen && !kept(f, part))
        return false;
    record(f, part);
    return true;
}
