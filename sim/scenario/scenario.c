/* A scenario's world: the actors of worlds from seeds, with every chance taken out, its people, and
 * services with habits. What is drawn still comes from streams of a seed that is always the same,
 * so that up to the first crash each run is the undisturbed one to the letter. */
#include "sim/scenario/scenario.h"

#include "base/assert.h"
#include "base/limits.h"
#include "sim/check/check.h"
#include "sim/scenario/flows.h"
#include "sim/cast/hook.h"
#include "sim/run/story.h"
#include "sim/scenario/script.h"
#include "sim/store/storage.h"
#include "sim/world/server.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"
#include "yaml/yaml.h"

#include <string.h>

enum { SEED = 1, PUBLISH_MS = 50, SLICE_MS = 20, QUIET_MS = 1500 };
enum { PLACES = 4, WAIT_MS = 20000, PAUSE_MS = 20, PAUSE_MS_MAX = 100, CIRCUIT_OPEN_MS = 300 };
enum { SCAN_MS = 1000, ROLE_MS = 5000, LASTS_MS = 4 };
/* Until an agent asks again that was told nothing, or that the server is busy; the complete-by of
 * an attempt that nobody ends before; how many of them die at once. */
enum { AGAIN_MS = 100, BUSY_MS = 1100 + SLICE_MS, COMPLETE_BY_MS = 2000, HELD_MAX = 2 };

#define SUBMIT(number)                                                                             \
    {                                                                                              \
        .verb = VERB_SUBMIT, .task = (number)                                                      \
    }
#define SUBMIT_WHEN(number, step)                                                                  \
    {                                                                                              \
        .verb = VERB_SUBMIT, .task = (number), .when = CUE_WORK, .at = (step)                      \
    }
#define SUBMIT_OTHER(number)                                                                       \
    {                                                                                              \
        .verb = VERB_SUBMIT_OTHER, .task = (number)                                                \
    }
#define RESUBMIT(number)                                                                           \
    {                                                                                              \
        .verb = VERB_RESUBMIT, .task = (number), .when = CUE_PARKED                                \
    }
#define SETTLE(number)                                                                             \
    {                                                                                              \
        .verb = VERB_SETTLE, .task = (number), .when = CUE_PARKED                                  \
    }
#define CANCEL(number, step)                                                                       \
    {                                                                                              \
        .verb = VERB_CANCEL, .task = (number), .when = CUE_WORK, .at = (step)                      \
    }
#define ABANDON(number, step)                                                                      \
    {                                                                                              \
        .verb = VERB_ABANDON, .task = (number), .when = CUE_WORK, .at = (step)                     \
    }

static const struct scenario scenarios[] = {
#define SCENARIO(called, modes, ...) {.name = called, .shows = modes, __VA_ARGS__},
#include "sim/scenario/scenarios.def"
#undef SCENARIO
};

size_t scenarios_count(void)
{
    return sizeof scenarios / sizeof *scenarios;
}

const struct scenario *scenario_at(size_t i)
{
    return &scenarios[i];
}

const struct scenario *scenario_find(const char *name)
{
    for (size_t i = 0; i < scenarios_count(); i++)
        if (strcmp(scenarios[i].name, name) == 0)
            return &scenarios[i];
    return NULL;
}

/* ---- services and agents ---- */

void scenario_agent(const struct world *w, struct rv_runtime_options *options)
{
    const struct scenario *s = w->scenario;
    options->session.max = PLACES;
    options->session.wait_ms = WAIT_MS;
    options->tries_max = s->tries ? s->tries : 1;
    options->retry_base_ms = PAUSE_MS;
    options->retry_cap_ms = PAUSE_MS_MAX;
    options->circuit_failures = s->circuit;
    options->circuit_open_ms = CIRCUIT_OPEN_MS;
}

static struct rv_str last_part(struct rv_str reference)
{
    size_t from = reference.len;
    while (from > 0 && reference.at[from - 1] != '/')
        from--;
    return (struct rv_str){reference.at + from, reference.len - from};
}

static uint32_t called_before(struct script *script, struct rv_str key, bool undo)
{
    for (uint32_t i = 0; i < script->called_count; i++)
        if (script->called[i].undo == undo && rv_str_is(key, script->called[i].key))
            return script->called[i].times++;
    rv_assert(script->called_count < SCRIPT_KEYS_MAX && key.len < LEDGER_KEY_BYTES);
    struct called *called = &script->called[script->called_count++];
    memcpy(called->key, key.at, key.len);
    called->undo = undo;
    called->times = 1;
    return 0;
}

struct habit scenario_habit(struct world *w, struct rv_str reference, struct rv_str key, bool undo)
{
    const struct scenario *s = w->scenario;
    struct script *script = w->script;
    struct rv_str step = last_part(reference);
    struct habit found = {.deed = DEED_DONE};
    uint32_t before = called_before(script, key, undo), times = 0;
    for (uint32_t i = 0; i < s->acts_count; i++)
        if (s->acts[i].when == CUE_WORK && rv_str_is(step, s->acts[i].at))
            script->worked[i] = true;
    for (size_t i = 0; i < SCENARIO_HABITS_MAX && s->habits[i].step != NULL; i++) {
        const struct habit *habit = &s->habits[i];
        if (!rv_str_is(step, habit->step))
            continue;
        times += habit->times;
        bool applies = habit->until != 0 ? script->begun < habit->until
                                         : habit->times == 0 || before < times;
        if (applies) {
            found = *habit;
            break;
        }
    }
    if (found.lasts_ms == 0)
        found.lasts_ms = LASTS_MS;
    return found;
}

/* ---- the run ---- */

static void flow_add(struct world *w, const char *flow)
{
    struct rv_json document;
    struct rv_yaml_fault where;
    enum rv_err err = rv_yaml_parse(&w->arena, rv_str_of(flow), RV_DEFINITION_BYTES_MAX, &document,
                                    &where);
    if (err != RV_OK) {
        world_violate(w, "W-01", "a scenario's workflow is refused: %u:%u: %.*s", where.line,
                      where.column, RV_STR_FMT(where.message));
        return;
    }
    struct rv_buf text;
    rv_buf_init(&text, RV_DEFINITION_BYTES_MAX);
    rv_json_write_canonical(&text, &document);
    const struct rv_json *head = rv_json_get(&document, RV_STR("document"));
    workload_add(w, rv_json_str(rv_json_get(head, RV_STR("name"))),
                 rv_arena_str(&w->arena, rv_buf_str(&text)));
    rv_buf_done(&text);
}

static void world_set_up(struct world *w, const struct scenario *s)
{
    w->scenario = s;
    w->orders = s->tasks;
    w->knobs = (struct knobs){
        .servers = s->servers > 1 ? s->servers : 1,
        .store = s->servers > 1 ? STORE_SHARED : STORE_MEMORY,
        .kinds = s->kinds,
        .agents = s->kinds,
        .down_ms = (uint32_t)s->down_ms,
        .batch_max = 1000,
        .scan_ms = SCAN_MS,
        .role_ms = ROLE_MS,
        .hooks = s->hooks,
    };
    world_open(w);
    for (uint32_t i = 0; i < s->tasks && w->violated == NULL; i++)
        flow_add(w, s->flows[i]);
    world_pass(w, w->now + PUBLISH_MS, NULL);
}

static uint32_t attempts_count(const struct world *w)
{
    uint32_t count = 0;
    for (size_t i = 0; i < w->history->count; i++)
        for (uint32_t n = 1; n < w->history->all[i]->room; n++)
            count += w->history->all[i]->steps[n].row.attempt;
    return count;
}

void scenario_run(struct world *w, const struct scenario *s, struct crossings *crossings,
                  const struct run *run, struct ran *ret)
{
    struct world_setup setup = {.seed = SEED, .transcript = run->transcript};
    world_init(w, &setup);
    if (run->plain)
        story_new(w);
    crossings_begin(crossings);
    w->crossings = crossings;
    for (uint32_t i = 0; i < run->crashes_count; i++)
        crossings->planned[crossings->planned_count++] = run->crashes[i];
    world_set_up(w, s);
    if (w->violated == NULL) {
        crossings->counting = true;
        agents_new(w);
        script_new(w);
    }
    while (w->violated == NULL && !(script_over(w) && hooks_settled(w)) && w->now < run->until)
        world_pass(w, w->now + SLICE_MS, NULL);
    if (w->violated == NULL && !(script_over(w) && hooks_settled(w)))
        world_violate(w, "I-20", "after %lld ms not every task has ended as it should",
                      (long long)w->now);
    ret->over = w->now;
    world_pass(w, w->now + QUIET_MS, NULL);
    crossings->counting = false;
    servers_heal(w);
    if (run->forget)
        ledger_forget(w);
    if (w->violated == NULL)
        check_end(w);
    if (w->violated == NULL)
        check_heard(w);
    if (w->violated == NULL)
        scenario_check(w);
    ret->attempts = attempts_count(w);
    if (run->attempts_max != 0 && ret->attempts > run->attempts_max)
        world_violate(w, "E-05", "there were %u attempts, %u should have been enough",
                      ret->attempts, run->attempts_max);
}

/* A server that dies, a store that refuses and a message that is lost cost no attempt: the poll is
 * repeated and gets what it got, the reply is repeated and counts once. Only an agent that dies
 * takes its attempts with it. */
struct due scenario_due(const struct scenario *s, enum boundary boundary, enum twist twist)
{
    struct due due = {.late_ms = s->spare_ms, .attempts = s->spare};
    switch (twist) {
    case TWIST_NONE:
    case TWIST_COUNT:
        break;
    case TWIST_BEFORE:
    case TWIST_AFTER:
        if (boundary_of_agent(boundary)) {
            due.late_ms += COMPLETE_BY_MS + AGAIN_MS;
            due.attempts += HELD_MAX;
        } else {
            due.late_ms += 2 * s->down_ms + AGAIN_MS; /* agents ask again more and more slowly */
        }
        break;
    case TWIST_UNKNOWN_DONE:
    case TWIST_UNKNOWN_NOT_DONE:
        due.late_ms += AGAIN_MS;
        break;
    case TWIST_TWICE:
        /* What is handed to a copy of a poll, which nobody reads, lies there to its complete-by. */
        due.late_ms += COMPLETE_BY_MS + AGAIN_MS;
        due.attempts += 1;
        break;
    case TWIST_REFUSED:
        due.late_ms += BUSY_MS;
        break;
    }
    return due;
}
