/* Circuits: an agent that answers `circuit-open` has stopped asking a target that fails. Steps for
 * that target wait here until its instant, then one of them goes out as a probe; what becomes of it
 * closes the circuit or opens it anew. No failure is counted meanwhile (RULES 5). */
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
    circuit->target = name;
    circuit->next = kind->circuits;
    kind->circuits = circuit;
    return circuit;
}

static void circuit_release_one(struct agent_kind *kind, struct circuit *circuit)
{
    struct rv_step_id id = circuit->waiting[--circuit->waiting_count];
    rv_map_remove(&kind->queued, (uint64_t)id.task.value, id.number);
    agents_ready_back(kind, id, circuit->until);
}

static void circuit_close(struct agent_kind *kind, struct circuit *circuit)
{
    struct circuit **at = &kind->circuits;
    while (*at != circuit)
        at = &(*at)->next;
    *at = circuit->next;
    while (circuit->waiting_count > 0)
        circuit_release_one(kind, circuit);
    free(circuit->target);
    free(circuit->waiting);
    free(circuit);
}

/* Keeps the step with the circuit, known as queued; without memory it goes on as if there were
 * none. */
static bool circuit_keep(struct agent_kind *kind, struct circuit *circuit, struct rv_step_id id)
{
    if (circuit->waiting_count == circuit->waiting_room) {
        size_t room = circuit->waiting_room ? circuit->waiting_room * 2 : 16;
        struct rv_step_id *waiting = realloc(circuit->waiting, room * sizeof *waiting);
        if (waiting == NULL)
            return false;
        circuit->waiting = waiting;
        circuit->waiting_room = room;
    }
    if (rv_map_put(&kind->queued, (uint64_t)id.task.value, id.number, 0) != RV_OK)
        return false;
    circuit->waiting[circuit->waiting_count++] = id;
    return true;
}

static bool circuit_gate(struct agent_kind *kind, struct circuit *circuit, struct rv_step_id id,
                         int64_t now)
{
    if (circuit->until > now || circuit->probe.number != 0)
        return !circuit_keep(kind, circuit, id);
    circuit->probe = id;
    return true;
}

bool circuit_lets(struct agent_kind *kind, const struct rv_step *step, struct rv_step_id id,
                  int64_t now)
{
    if (kind->circuits == NULL)
        return true;
    struct circuit *whole = circuit_find(kind, RV_STR(""));
    if (whole != NULL)
        return circuit_gate(kind, whole, id, now);
    struct circuit *own = step->target.at ? circuit_find(kind, step->target) : NULL;
    return own == NULL || circuit_gate(kind, own, id, now);
}

static bool is_probe(const struct circuit *circuit, const struct rv_task *task,
                     const struct rv_step *step)
{
    return circuit->probe.number == step->number && circuit->probe.task.value == task->id.value;
}

void circuit_see(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step,
                 int64_t now)
{
    bool open = step->state == RV_STEP_PENDING && step->target.at != NULL;
    bool out = rv_attempt_state_live(step->attempt_state);
    struct circuit *next;
    for (struct circuit *c = kind->circuits; c != NULL; c = next) {
        next = c->next;
        if (!is_probe(c, task, step) || out)
            continue;
        if (open && rv_str_is(step->target, c->target))
            c->probe.number = 0; /* opened anew below */
        else
            circuit_close(kind, c);
    }
    if (!open || step->ready_at <= now)
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
        if (c->until <= now && c->probe.number == 0 && c->waiting_count > 0)
            circuit_release_one(kind, c);
    }
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
        if (c->until <= before && c->probe.number == 0 && c->waiting_count == 0)
            circuit_close(kind, c);
    }
}
