/* Circuits: an agent that answers `circuit-open` has stopped asking a target that fails. Steps for
 * that target wait here, in the order of the ready queue, until its instant; then one of them goes
 * out as a probe. The circuit closes when the target has answered; a probe that fails says nothing
 * better of it, and another one goes out. What was not tried counts no failure (RULES 5). */
#include "scheduler/agents_priv.h"

#include <stdlib.h>

static struct circuit *circuit_find(const struct agent_kind *kind, struct rv_str target)
{
    for (struct circuit *c = kind->circuits; c != NULL; c = c->next)
        if (rv_str_is(target, c->target))
            return c;
    return NULL;
}

static struct circuit *circuit_open(struct agent_kind *kind, struct rv_str target)
{
    struct circuit *circuit = circuit_find(kind, target);
    if (circuit != NULL)
        return circuit;
    circuit = calloc(1, sizeof *circuit);
    char *name = malloc(target.len + 1);
    if (circuit == NULL || name == NULL) {
        free(circuit);
        free(name);
        return NULL; /* the step itself still waits for its instant */
    }
    if (target.len > 0)
        memcpy(name, target.at, target.len);
    name[target.len] = '\0';
    rv_heap_init(&circuit->waiting);
    circuit->target = name;
    circuit->next = kind->circuits;
    kind->circuits = circuit;
    kind_stir(kind);
    return circuit;
}

/* One that has left meanwhile, because an operator insisted, is not released. */
static void circuit_release_one(struct agent_kind *kind, struct circuit *circuit)
{
    struct rv_heap_entry entry;
    while (rv_heap_pop(&circuit->waiting, &entry)) {
        struct rv_step_id id = {{(int64_t)entry.value}, (uint32_t)entry.detail};
        const uint64_t *queued = rv_map_find(&kind->queued, entry.value, entry.detail);
        if (queued == NULL || (*queued & QUEUED_BEHIND) == 0)
            continue;
        struct ready_place place = {entry.at, queued_since(*queued)};
        rv_map_remove(&kind->queued, entry.value, entry.detail);
        agents_ready_back(kind, id, place);
        return;
    }
}

static void circuit_close(struct agent_kind *kind, struct circuit *circuit)
{
    struct circuit **at = &kind->circuits;
    while (*at != circuit)
        at = &(*at)->next;
    *at = circuit->next;
    while (circuit->waiting.count > 0)
        circuit_release_one(kind, circuit);
    rv_heap_done(&circuit->waiting);
    free(circuit->target);
    free(circuit);
}

/* Keeps the step with the circuit, known as queued; without memory it goes on as if there were
 * none. */
static bool circuit_keep(struct agent_kind *kind, struct circuit *circuit,
                         const struct rv_task *task, const struct rv_step *step)
{
    uint64_t id = (uint64_t)task->id.value;
    struct ready_place place = ready_place(task, step);
    if (rv_map_put(&kind->queued, id, step->number, queued_mark(place, true)) != RV_OK)
        return false;
    if (rv_heap_push(&circuit->waiting, place.rank, id, step->number) == RV_OK)
        return true;
    rv_map_remove(&kind->queued, id, step->number);
    return false;
}

static bool circuit_gate(struct agent_kind *kind, struct circuit *circuit,
                         const struct rv_task *task, const struct rv_step *step, int64_t now)
{
    bool shut = circuit->until > now || circuit->probe.number != 0;
    if (shut && !step->insist)
        return !circuit_keep(kind, circuit, task, step);
    circuit->probe = (struct rv_step_id){task->id, step->number};
    return true;
}

/* The circuit of the whole agent, else that of the step's target; NULL: there is none. */
static struct circuit *circuit_for(const struct agent_kind *kind, const struct rv_step *step)
{
    struct circuit *whole = kind->circuits != NULL ? circuit_find(kind, RV_STR("")) : NULL;
    if (whole != NULL || kind->circuits == NULL || step->target.at == NULL)
        return whole;
    return circuit_find(kind, step->target);
}

bool circuit_waits(const struct agent_kind *kind, const struct rv_step *step)
{
    return circuit_for(kind, step) != NULL;
}

bool circuit_lets(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step,
                  int64_t now)
{
    struct circuit *circuit = circuit_for(kind, step);
    return circuit == NULL || circuit_gate(kind, circuit, task, step, now);
}

static bool is_open(const struct circuit *circuit, int64_t now)
{
    return circuit->until > now || circuit->probe.number != 0 || circuit->waiting.count > 0;
}

const struct circuit *circuit_of(const struct agent_kind *kind, const struct rv_step *step,
                                 int64_t now)
{
    const struct circuit *circuit = circuit_for(kind, step);
    return circuit != NULL && is_open(circuit, now) ? circuit : NULL;
}

static bool is_probe(const struct circuit *circuit, const struct rv_task *task,
                     const struct rv_step *step)
{
    return circuit->probe.number == step->number && circuit->probe.task.value == task->id.value;
}

void circuit_hear(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step,
                  const struct circuit_word *word)
{
    struct circuit *next;
    for (struct circuit *c = kind->circuits; c != NULL && word->answers; c = next) {
        next = c->next;
        if (is_probe(c, task, step))
            circuit_close(kind, c);
    }
    struct circuit *circuit = word->target.at != NULL ? circuit_open(kind, word->target) : NULL;
    if (circuit != NULL && circuit->until < word->until)
        circuit->until = word->until;
}

void circuit_see(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step,
                 int64_t now)
{
    bool out = rv_attempt_state_live(step->attempt_state);
    bool answered = step->attempt_state == RV_ATTEMPT_DONE;
    struct circuit *next;
    for (struct circuit *c = kind->circuits; c != NULL; c = next) {
        next = c->next;
        if (!is_probe(c, task, step) || out)
            continue;
        c->probe.number = 0;
        if (answered)
            circuit_close(kind, c);
    }
    bool parked = step->state == RV_STEP_PENDING && step->attempt_state == RV_ATTEMPT_PARKED;
    if (!parked || step->target.at == NULL || step->ready_at <= now)
        return;
    struct circuit *circuit = circuit_open(kind, step->target);
    if (circuit != NULL && circuit->until < step->ready_at)
        circuit->until = step->ready_at;
}

void circuits_tick(const struct agents *agents, struct agent_kind *kind, int64_t now)
{
    for (struct circuit *c = kind->circuits; c != NULL; c = c->next) {
        /* It was not written, another server has recorded its end, or its time is over. */
        const struct held *held = c->probe.number != 0 ? held_find(agents, c->probe) : NULL;
        if (held == NULL || held->complete_by <= now)
            c->probe.number = 0;
        if (c->until <= now && c->probe.number == 0 && c->waiting.count > 0)
            circuit_release_one(kind, c);
    }
}

struct circuit *circuit_next_open(const struct agent_kind *kind, const struct circuit *circuit,
                                  int64_t now)
{
    struct circuit *next = circuit != NULL ? circuit->next : kind->circuits;
    while (next != NULL && !is_open(next, now))
        next = next->next;
    return next;
}

struct rv_step_id circuit_first(const struct circuit *circuit)
{
    const struct rv_heap_entry *first = rv_heap_first(&circuit->waiting);
    return first != NULL ? (struct rv_step_id){{(int64_t)first->value}, (uint32_t)first->detail}
                         : (struct rv_step_id){.number = 0};
}

void circuit_unprobe(struct agent_kind *kind, struct rv_step_id id)
{
    for (struct circuit *c = kind->circuits; c != NULL; c = c->next)
        if (c->probe.number == id.number && c->probe.task.value == id.task.value)
            c->probe.number = 0;
}

void circuits_forget(struct agent_kind *kind, int64_t before)
{
    struct circuit *next;
    for (struct circuit *c = kind->circuits; c != NULL; c = next) {
        next = c->next;
        if (c->until <= before && c->probe.number == 0 && c->waiting.count == 0)
            circuit_close(kind, c);
    }
}
