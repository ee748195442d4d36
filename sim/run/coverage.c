#include "sim/run/coverage.h"

#include "sim/cast/client.h"
#include "sim/cast/workload.h"
#include "sim/world/history.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

#include <string.h>

/* One of the tables, for walks over all edges. */
struct table {
    const char *name;
    int cells;
    int states;
    bool (*may_move)(int from, int to);
    const char *(*text)(int state);
};

static bool task_may(int from, int to)
{
    return rv_task_may_move((enum rv_task_state)from, (enum rv_task_state)to);
}

static bool step_may(int from, int to)
{
    return rv_step_may_move((enum rv_step_state)from, (enum rv_step_state)to);
}

static bool attempt_may(int from, int to)
{
    return rv_attempt_may_move((enum rv_attempt_state)from, (enum rv_attempt_state)to);
}

static const char *task_text(int state)
{
    return rv_task_state_text((enum rv_task_state)state);
}

static const char *step_text(int state)
{
    return rv_step_state_text((enum rv_step_state)state);
}

static const char *attempt_text(int state)
{
    return rv_attempt_state_text((enum rv_attempt_state)state);
}

static const struct table tables[] = {
    {"task", CELLS_TASK, RV_TASK_STATE_COUNT, task_may, task_text},
    {"step", CELLS_STEP, RV_STEP_STATE_COUNT, step_may, step_text},
    {"attempt", CELLS_ATTEMPT, RV_ATTEMPT_STATE_COUNT, attempt_may, attempt_text},
};
enum { TASK, STEP, ATTEMPT, TABLES };

static int cell_of(const struct table *table, int from, int to)
{
    return table->cells + from * table->states + to;
}

/* ---- whom an edge concerns ---- */

static uint32_t bit(uint32_t actor)
{
    return UINT32_C(1) << actor;
}

/* The number in a name such as "agent-3"; -1: the name begins otherwise. */
static int number_of(struct rv_str name, const char *kind)
{
    size_t len = strlen(kind);
    if (name.len <= len || memcmp(name.at, kind, len) != 0)
        return -1;
    int number = 0;
    for (size_t i = len; i < name.len && name.at[i] >= '0' && name.at[i] <= '9'; i++)
        number = number * 10 + (name.at[i] - '0');
    return number;
}

uint32_t coverage_actors(const struct rv_step *step, uint32_t began_by)
{
    int agent = number_of(step->instance, "agent-");
    int shell = number_of(step->instance, "shell-");
    return (agent >= 0 ? bit(ACTOR_AGENT + (uint32_t)agent) : 0) |
           (shell >= 0 ? bit(ACTOR_SHELL + (uint32_t)shell) : 0) |
           (began_by != 0 ? bit(actor_server(began_by - 1)) : 0);
}

/* Who sent in the task that this commit makes. */
static uint32_t submitters_of(const struct transition *t)
{
    struct rv_str key = t->change->key != NULL ? t->change->key->key : RV_STR_NONE;
    int order = number_of(key, "order-");
    if (key.at != NULL && order < 0) /* any relay takes any row */
        return bit(ACTOR_RELAY) | bit(ACTOR_RELAY + 1);
    for (uint32_t i = 0; order >= 0 && i < t->w->knobs.clients; i++)
        if (client_submits(t->w, i, (uint32_t)order))
            return bit(ACTOR_CLIENT + i);
    return 0;
}

/* The server that commits, every one where nobody knows which. */
static uint32_t committers(const struct world *w)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < w->knobs.servers; i++)
        all |= bit(actor_server(i));
    return w->committing != NULL ? bit(actor_server(w->committing->number)) : all;
}

/* Republishing concerns the tasks of the workflow. */
static uint32_t author_of(const struct transition *t)
{
    const struct workload_workflow *workflow = t->w->author.workflow;
    for (uint32_t v = 0; workflow != NULL && v < workflow->versions_count; v++)
        if (workflow->versions[v].definition == t->past->definition)
            return bit(ACTOR_AUTHOR);
    return 0;
}

/* A store that servers share, its clock and its disk concern every edge. */
static bool is_of_store(enum fault fault)
{
    return fault == FAULT_CLOCK_JUMP || fault == FAULT_READ_ONLY || fault == FAULT_FAILOVER ||
           fault == FAULT_POWER || fault == FAULT_ROT ||
           (fault >= FAULT_DISK_BIRTH && fault <= FAULT_DISK_SYNC);
}

/* A command that many tasks get is drawn before anybody knows which. */
static void note_bulk(const struct transition *t)
{
    for (size_t i = 0; i < t->change->history_count; i++)
        if (t->change->history[i].selection.value != 0)
            fault_hits(t->w, FAULT_BULK, t->task->id);
}

/* ---- seeing ---- */

static void take(struct coverage *coverage, const struct transition *t, uint32_t actors, int number,
                 int from, int to)
{
    const struct table *table = &tables[number];
    if (from == to || !table->may_move(from, to))
        return; /* a commit may take several edges at once */
    int cell = cell_of(table, from, to);
    coverage->edges[cell]++;
    for (int f = 0; f < FAULT_COUNT; f++) {
        uint32_t whom = actors | (is_of_store((enum fault)f) ? bit(ACTOR_SERVER) : 0);
        if (fault_is_recent(t->w, (enum fault)f, t->task->id, whom, COVERAGE_AFTER_MS))
            coverage->pairs[cell][f]++;
    }
}

/* How the step's newest attempt of before ended, if a new one has begun. */
static enum rv_attempt_state archived(const struct transition *t, const struct rv_step *was)
{
    for (size_t i = 0; i < t->change->attempts_count; i++) {
        const struct rv_attempt *attempt = &t->change->attempts[i];
        if (attempt->step.number == was->number && attempt->number == was->attempt)
            return attempt->state;
    }
    return was->attempt_state;
}

static void see_step(struct coverage *coverage, const struct transition *t,
                     const struct rv_step *step, uint32_t actors)
{
    static const struct rv_step none;
    const struct step_past *past = history_step(t->past, step->number);
    const struct rv_step *was = past ? &past->row : &none;
    if (past != NULL)
        take(coverage, t, actors, STEP, (int)was->state, (int)step->state);
    if (step->attempt == was->attempt) {
        take(coverage, t, actors, ATTEMPT, (int)was->attempt_state, (int)step->attempt_state);
        return;
    }
    take(coverage, t, actors, ATTEMPT, (int)was->attempt_state, (int)archived(t, was));
    take(coverage, t, actors, ATTEMPT, RV_ATTEMPT_NONE, (int)step->attempt_state);
}

void coverage_see(struct coverage *coverage, const struct transition *t)
{
    if (coverage == NULL)
        return;
    if (t->past->row.revision == 0)
        t->past->submitters = submitters_of(t);
    note_bulk(t);
    uint32_t around = t->past->submitters | committers(t->w) | author_of(t);
    uint32_t all = around;
    for (size_t i = 0; i < t->change->steps_count; i++) {
        const struct rv_step *step = t->change->steps[i];
        const struct step_past *past = history_step(t->past, step->number);
        uint32_t actors = around | coverage_actors(step, 0) | (past != NULL ? past->actors : 0);
        all |= actors;
        see_step(coverage, t, step, actors);
    }
    if (t->past->row.revision != 0)
        take(coverage, t, all, TASK, (int)t->past->row.state, (int)t->task->state);
}

/* ---- telling ---- */

void coverage_end(struct coverage *coverage, const struct world *w)
{
    for (int f = 0; coverage != NULL && f < FAULT_COUNT; f++)
        coverage->worlds[f] += w->faults->struck_at[f] >= 0;
}

void coverage_add(struct coverage *coverage, const struct coverage *more)
{
    for (int f = 0; f < FAULT_COUNT; f++)
        coverage->worlds[f] += more->worlds[f];
    for (int i = 0; i <= ROUNDS_MANY; i++)
        coverage->rounds[i] += more->rounds[i];
    for (int i = 0; i < ROUNDS_REASON_COUNT; i++)
        coverage->over[i] += more->over[i];
    coverage->changes += more->changes;
    coverage->conflicts += more->conflicts;
    for (int cell = 0; cell < CELLS_COUNT; cell++) {
        coverage->edges[cell] += more->edges[cell];
        for (int f = 0; f < FAULT_COUNT; f++)
            coverage->pairs[cell][f] += more->pairs[cell][f];
    }
}

static unsigned pairs_met(const struct coverage *coverage, int cell)
{
    unsigned met = 0;
    for (int f = 0; f < FAULT_COUNT; f++)
        met += coverage->pairs[cell][f] != 0;
    return met;
}

struct coverage_sum coverage_sum(const struct coverage *coverage)
{
    struct coverage_sum sum = {0};
    for (int f = 0; f < FAULT_COUNT; f++)
        sum.faults += coverage->worlds[f] != 0;
    for (const struct table *table = tables; table < tables + TABLES; table++)
        for (int from = 0; from < table->states; from++)
            for (int to = 0; to < table->states; to++) {
                if (!table->may_move(from, to))
                    continue;
                int cell = cell_of(table, from, to);
                sum.edges++;
                sum.edges_met += coverage->edges[cell] != 0;
                sum.pairs += sum.faults;
                sum.pairs_met += pairs_met(coverage, cell);
            }
    return sum;
}

void coverage_rounds(const struct coverage *coverage, const char *before, FILE *out)
{
    const uint64_t *rounds = coverage->rounds;
    uint64_t few = 0, all = 0;
    for (int i = 0; i <= ROUNDS_MANY; i++) {
        few += i <= ROUNDS_FEW ? rounds[i] : 0;
        all += rounds[i];
    }
    if (all == 0)
        return;
    fprintf(out,
            "%s%llu batches on shared stores, round trips: at most 2: %llu (%.1f %%), 3: %llu, "
            "4: %llu, more: %llu\n",
            before, (unsigned long long)all, (unsigned long long)few,
            100.0 * (double)few / (double)all, (unsigned long long)rounds[3],
            (unsigned long long)rounds[4], (unsigned long long)rounds[ROUNDS_MANY]);
    for (int i = 0; i < ROUNDS_REASON_COUNT; i++)
        fprintf(out, "%s  more than 2 for %s: %llu\n", before,
                rounds_reason_text((enum rounds_reason)i), (unsigned long long)coverage->over[i]);
    fprintf(out, "%s%llu changes, %llu of them (%.2f %%) lost their guards\n", before,
            (unsigned long long)coverage->changes, (unsigned long long)coverage->conflicts,
            coverage->changes ? 100.0 * (double)coverage->conflicts / (double)coverage->changes
                              : 0);
}

static void missing(const struct coverage *coverage, const struct table *table, int from, int to,
                    unsigned faults, const char *before, FILE *out)
{
    int cell = cell_of(table, from, to);
    if (!table->may_move(from, to) ||
        (coverage->edges[cell] != 0 && pairs_met(coverage, cell) == faults))
        return;
    fprintf(out, "%s%s from %s to %s, %llu times", before, table->name, table->text(from),
            table->text(to), (unsigned long long)coverage->edges[cell]);
    if (coverage->edges[cell] != 0) {
        fprintf(out, ", never after");
        for (int f = 0; f < FAULT_COUNT; f++)
            if (coverage->pairs[cell][f] == 0 && coverage->worlds[f] != 0)
                fprintf(out, " %s", fault_name((enum fault)f));
    }
    fputc('\n', out);
}

void coverage_missing(const struct coverage *coverage, const char *before, FILE *out)
{
    unsigned faults = coverage_sum(coverage).faults;
    for (int f = 0; f < FAULT_COUNT; f++)
        if (coverage->worlds[f] == 0)
            fprintf(out, "%sin no world: %s\n", before, fault_name((enum fault)f));
    for (const struct table *table = tables; table < tables + TABLES; table++)
        for (int from = 0; from < table->states; from++)
            for (int to = 0; to < table->states; to++)
                missing(coverage, table, from, to, faults, before, out);
}
