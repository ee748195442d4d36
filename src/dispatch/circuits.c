/* Circuits: an agent that answers `circuit-open` has stopped asking a target that fails. Steps for
 * that target wait here, in the order of the ready queue, until its instant; then one of them goes
 * out as a probe. The circuit closes when the target has answered; a probe that fails says nothing
 * better of it, and another one goes out. What was not tried counts no failure (RULES 5). A probe
 * that is replaced by a step on which an operator insists, or whose time is over before its reply
 * is decided, holds nothing back any longer, but its answer closes the circuit all the same.
 *
 * An agent may name ever new targets, so a batch looks only at circuits that are due, and finds one
 * by its target or its probe. One whose instant has passed and for which nobody waits is idle: it
 * is kept for a while, so that what comes next is its probe. A kind has RV_AGENT_CIRCUITS_MAX of
 * them at most: idle ones make room, and a target for which there is none has no circuit, as if
 * memory were out: its steps go by the instants that their own replies named. */
#include "base/assert.h"
#include "base/list.h"
#include "core/rows.h"
#include "core/state.h"
#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "dispatch/held.h"
#include "dispatch/kind.h"
#include "dispatch/ready.h"

#include <stdlib.h>

/* ---- the lists, and what is found by hash ---- */

static struct circuit_list *list_of(struct circuit *circuit)
{
    return circuit->idle ? &circuit->kind->circuits_idle : &circuit->kind->circuits;
}

static void list_add(struct circuit *circuit)
{
    struct circuit_list *list = list_of(circuit);
    RV_LIST_APPEND(list, circuit, next, prev);
    list->count++;
}

static void list_remove(struct circuit *circuit)
{
    struct circuit_list *list = list_of(circuit);
    rv_assert(list->count > 0);
    RV_LIST_REMOVE(list, circuit, next, prev);
    list->count--;
}

/* The next batch looks at it. */
static void circuit_stir(struct circuit *circuit)
{
    rv_due_set(&circuit->kind->agents->circuits_due, &circuit->due, INT64_MIN);
}

/* Something waits for it again, or it is open again. */
static void circuit_wake(struct circuit *circuit)
{
    if (circuit->idle) {
        list_remove(circuit);
        circuit->idle = false;
        list_add(circuit);
    }
    circuit_stir(circuit);
}

static struct circuit *circuit_of_hash(const struct agent_kind *kind, uint64_t hash)
{
    const uint64_t *found = rv_map_find(&kind->circuits_by_target, hash, 0);
    struct circuit *circuit = found != NULL ? (struct circuit *)(uintptr_t)*found : NULL;
    rv_assert(circuit == NULL || circuit->kind == kind);
    rv_assert(circuit == NULL || circuit->hash == hash);
    return circuit;
}

struct circuit *circuit_find(const struct agent_kind *kind, struct rv_str target)
{
    if (kind->circuits_by_target.count == 0)
        return NULL;
    struct circuit *circuit = circuit_of_hash(kind, rv_hash(kind->agents->hash_key, target));
    return circuit != NULL && rv_str_is(target, circuit->target) ? circuit : NULL;
}

static struct probe *probe_find(const struct agents *agents, struct rv_step_id id)
{
    const uint64_t *found = rv_map_find(&agents->probes, (uint64_t)id.task.value, id.number);
    struct probe *probe = found != NULL ? (struct probe *)(uintptr_t)*found : NULL;
    rv_assert(probe == NULL || probe->step.number == id.number);
    return probe;
}

/* ---- a circuit's life ---- */

/* It holds nothing back any longer. */
static void probe_end(struct circuit *circuit)
{
    if (circuit->probe == NULL)
        return;
    rv_assert(circuit->probes != NULL);
    rv_assert(!circuit->idle);
    circuit->probe = NULL;
    circuit_stir(circuit);
}

/* Its attempt has ended, or was not written. */
static void probe_forget(struct probe *probe)
{
    struct circuit *circuit = probe->circuit;
    if (circuit->probe == probe)
        probe_end(circuit);
    RV_STACK_REMOVE(circuit->probes, probe, next, prev);
    bool indexed = rv_map_remove(&circuit->kind->agents->probes, (uint64_t)probe->step.task.value,
                                 probe->step.number);
    rv_assert(indexed);
    free(probe);
}

/* NULL: no memory. */
static struct probe *probe_new(struct circuit *circuit, struct rv_step_id id)
{
    struct probe *probe = malloc(sizeof *probe);
    if (probe == NULL || rv_map_put(&circuit->kind->agents->probes, (uint64_t)id.task.value,
                                    id.number, (uint64_t)(uintptr_t)probe) != RV_OK) {
        free(probe);
        return NULL;
    }
    *probe = (struct probe){.step = id, .circuit = circuit};
    RV_STACK_PUSH(circuit->probes, probe, next, prev);
    return probe;
}

/* A step is the probe of one circuit at most. Without memory it goes out, and is nobody's probe. */
static void probe_begin(struct circuit *circuit, struct rv_step_id id)
{
    struct probe *before = probe_find(circuit->kind->agents, id);
    if (before != NULL)
        probe_forget(before);
    circuit->probe = probe_new(circuit, id);
    circuit_wake(circuit);
}

/* Attempts that were not written, or whose end another server has recorded, end nowhere here. */
static void circuit_rest(struct circuit *circuit, int64_t now)
{
    rv_assert(!circuit->idle);
    rv_assert(circuit->probe == NULL);
    rv_assert(circuit->waiting.count == 0);
    const struct agents *agents = circuit->kind->agents;
    struct probe *next;
    for (struct probe *probe = circuit->probes; probe != NULL; probe = next) {
        next = probe->next;
        if (held_find(agents, probe->step) == NULL)
            probe_forget(probe);
    }
    list_remove(circuit);
    circuit->idle = true;
    circuit->idle_since = now;
    list_add(circuit);
    rv_due_clear(&circuit->kind->agents->circuits_due, &circuit->due);
}

void circuit_free(struct circuit *circuit)
{
    circuit->probe = NULL;
    while (circuit->probes != NULL)
        probe_forget(circuit->probes);
    rv_heap_done(&circuit->waiting);
    free(circuit->target);
    free(circuit);
}

/* The first of those that wait; false: none does. One that has left meanwhile, because an operator
 * insisted, waits no more. */
static bool waiting_first(struct circuit *circuit, struct rv_step_id *ret_id,
                          struct ready_place *ret_place)
{
    const struct rv_heap_entry *first;
    while ((first = rv_heap_first(&circuit->waiting)) != NULL) {
        struct rv_heap_entry gone;
        const uint64_t *queued = rv_map_find(&circuit->kind->queued, first->value, first->detail);
        if (queued != NULL && (*queued & QUEUED_BEHIND) != 0) {
            *ret_id = (struct rv_step_id){{(int64_t)first->value}, (uint32_t)first->detail};
            *ret_place = (struct ready_place){first->at, queued_since(*queued)};
            return true;
        }
        (void)rv_heap_pop(&circuit->waiting, &gone);
    }
    return false;
}

static void circuit_release_one(struct circuit *circuit)
{
    struct agent_kind *kind = circuit->kind;
    struct rv_step_id id;
    struct ready_place place;
    struct rv_heap_entry first;
    if (!waiting_first(circuit, &id, &place))
        return;
    (void)rv_heap_pop(&circuit->waiting, &first);
    rv_assert(first.value == (uint64_t)id.task.value);
    rv_assert(first.detail == id.number);
    rv_map_remove(&kind->queued, first.value, first.detail);
    agents_ready_back(kind, id, place);
}

static void circuit_close(struct circuit *circuit)
{
    struct agent_kind *kind = circuit->kind;
    probe_end(circuit);
    rv_due_clear(&kind->agents->circuits_due, &circuit->due);
    rv_assert(kind->agents->circuits_count > 0);
    kind->agents->circuits_count--;
    list_remove(circuit);
    bool indexed = rv_map_remove(&kind->circuits_by_target, circuit->hash, 0);
    rv_assert(indexed);
    while (circuit->waiting.count > 0)
        circuit_release_one(circuit);
    /* What is freed is due no more. */
    rv_assert(circuit->due.place == 0);
    rv_assert(circuit->probe == NULL);
    circuit_free(circuit);
}

/* That of the whole agent always finds room, and is none of those that make it. */
static bool room_make(struct agent_kind *kind, struct rv_str target)
{
    const struct circuit *whole = circuit_find(kind, RV_STR(""));
    rv_assert(whole == NULL || kind->circuits_by_target.count > 0);
    size_t named = kind->circuits_by_target.count - (whole != NULL);
    if (target.len == 0 || named < kind->agents->circuits_max)
        return true;
    struct circuit *oldest = kind->circuits_idle.first;
    if (oldest != NULL && oldest == whole)
        oldest = oldest->next;
    rv_assert(oldest == NULL || oldest->idle);
    if (oldest != NULL)
        circuit_close(oldest);
    return oldest != NULL;
}

static struct circuit *circuit_new(struct agent_kind *kind, struct rv_str target, uint64_t hash)
{
    struct circuit *circuit = calloc(1, sizeof *circuit);
    char *name = rv_str_dup(target);
    if (circuit == NULL || name == NULL ||
        rv_map_put(&kind->circuits_by_target, hash, 0, (uint64_t)(uintptr_t)circuit) != RV_OK) {
        free(circuit);
        free(name);
        return NULL;
    }
    rv_heap_init(&circuit->waiting);
    circuit->target = name;
    circuit->hash = hash;
    circuit->kind = kind;
    circuit->due.owner = circuit;
    list_add(circuit);
    return circuit;
}

/* Found or made, and open until then at least. Where there is no room, or no memory, the step still
 * waits for its own instant. */
static void circuit_open(struct agent_kind *kind, struct rv_str target, int64_t until)
{
    struct agents *agents = kind->agents;
    uint64_t hash = rv_hash(agents->hash_key, target);
    struct circuit *circuit = circuit_of_hash(kind, hash);
    if (circuit == NULL && room_make(kind, target) &&
        rv_dues_reserve(&agents->circuits_due, agents->circuits_count + 1) == RV_OK) {
        circuit = circuit_new(kind, target, hash);
        agents->circuits_count += circuit != NULL;
    }
    if (circuit == NULL || !rv_str_is(target, circuit->target))
        return;
    rv_assert(agents->circuits_count <= agents->circuits_due.room);
    if (circuit->until < until)
        circuit->until = until;
    circuit_wake(circuit);
}

void circuit_expire(struct circuit *circuit, int64_t now)
{
    if (circuit->until <= now)
        return;
    circuit->until = now;
    circuit_wake(circuit);
}

/* ---- the steps ---- */

/* Keeps the step with the circuit, known as queued; without memory it goes on as if there were
 * none. */
static bool circuit_keep(struct circuit *circuit, const struct rv_task *task,
                         const struct rv_step *step)
{
    struct rv_map *queued = &circuit->kind->queued;
    uint64_t id = (uint64_t)task->id.value;
    struct ready_place place = ready_place(task, step);
    if (rv_map_put(queued, id, step->number, queued_mark(place, true)) != RV_OK)
        return false;
    if (rv_heap_push(&circuit->waiting, place.rank, id, step->number) == RV_OK)
        return true;
    rv_map_remove(queued, id, step->number);
    return false;
}

/* Whoever was released last may have had no use for it: then the next one is the probe, not a step
 * with a later place that was never held back. */
static bool circuit_gate(struct circuit *circuit, const struct rv_task *task,
                         const struct rv_step *step, int64_t now)
{
    struct rv_step_id first;
    struct ready_place place;
    bool shut = circuit->until > now || circuit->probe != NULL;
    bool passes = !shut && waiting_first(circuit, &first, &place) &&
                  place.rank < ready_place(task, step).rank;
    if ((shut || passes) && !step->insist) {
        bool kept = circuit_keep(circuit, task, step);
        if (kept && passes)
            circuit_release_one(circuit);
        if (kept || shut)
            return !kept;
    }
    rv_assert(step->insist || !shut);
    probe_begin(circuit, (struct rv_step_id){task->id, step->number});
    return true;
}

/* The circuit of the whole agent, else that of the step's target; NULL: there is none. */
static struct circuit *circuit_for(const struct agent_kind *kind, const struct rv_step *step)
{
    struct circuit *whole = circuit_find(kind, RV_STR(""));
    return whole != NULL || step->target.at == NULL ? whole : circuit_find(kind, step->target);
}

bool circuit_waits(const struct agent_kind *kind, const struct rv_step *step)
{
    return circuit_for(kind, step) != NULL;
}

bool circuit_lets(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step,
                  int64_t now)
{
    struct circuit *circuit = circuit_for(kind, step);
    return circuit == NULL || circuit_gate(circuit, task, step, now);
}

bool circuit_is_open(const struct circuit *circuit, int64_t now)
{
    return circuit->until > now || circuit->probe != NULL || circuit->waiting.count > 0;
}

const struct circuit *circuit_of(const struct agent_kind *kind, const struct rv_step *step,
                                 int64_t now)
{
    const struct circuit *circuit = circuit_for(kind, step);
    return circuit != NULL && circuit_is_open(circuit, now) ? circuit : NULL;
}

void circuit_hear(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step,
                  const struct circuit_word *word)
{
    struct rv_step_id id = {task->id, step->number};
    const struct probe *probe = word->answers ? probe_find(kind->agents, id) : NULL;
    if (probe != NULL)
        circuit_close(probe->circuit);
    if (word->target.at != NULL)
        circuit_open(kind, word->target, word->until);
}

void circuit_see(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step,
                 int64_t now)
{
    struct rv_step_id id = {task->id, step->number};
    struct probe *probe = probe_find(kind->agents, id);
    if (probe != NULL && step->attempt_state == RV_ATTEMPT_DONE)
        circuit_close(probe->circuit);
    else if (probe != NULL && !rv_attempt_state_live(step->attempt_state))
        probe_forget(probe);
    bool held = step->state == RV_STEP_PENDING && step->attempt_state == RV_ATTEMPT_CIRCUIT_OPEN;
    if (held && step->target.at != NULL && step->ready_at > now)
        circuit_open(kind, step->target, step->ready_at);
}

void circuit_unprobe(struct agents *agents, struct rv_step_id id)
{
    const struct probe *probe = probe_find(agents, id);
    if (probe != NULL && probe->circuit->probe == probe)
        probe_end(probe->circuit);
}

/* ---- time ---- */

static void circuit_tick(struct agents *agents, struct circuit *circuit, int64_t now)
{
    struct probe *probe = circuit->probe;
    const struct held *held = probe != NULL ? held_find(agents, probe->step) : NULL;
    if (probe != NULL && held == NULL) /* not written, or another server has recorded its end */
        probe_forget(probe);
    else if (held != NULL && held->complete_by <= now)
        probe_end(circuit);
    if (circuit->probe != NULL) {
        rv_assert(held != NULL);
        rv_due_set(&agents->circuits_due, &circuit->due, held->complete_by);
    } else if (circuit->until > now) {
        rv_due_set(&agents->circuits_due, &circuit->due, circuit->until);
    } else if (circuit->waiting.count > 0) {
        circuit_release_one(circuit);
        circuit_stir(circuit); /* until one has become the probe */
    } else {
        circuit_rest(circuit, now);
    }
}

void circuits_tick(struct agents *agents, int64_t now)
{
    struct circuit *due = NULL, **end = &due;
    const struct rv_due *first;
    while ((first = rv_dues_first(&agents->circuits_due)) != NULL && first->at <= now) {
        struct circuit *circuit = first->owner;
        rv_assert(circuit->kind->agents == agents);
        rv_assert(!circuit->idle);
        rv_due_clear(&agents->circuits_due, &circuit->due);
        circuit->due_next = NULL;
        *end = circuit;
        end = &circuit->due_next;
    }
    for (; due != NULL; due = due->due_next)
        circuit_tick(agents, due, now);
}

void circuits_forget(struct agent_kind *kind, int64_t before)
{
    struct circuit *oldest;
    while ((oldest = kind->circuits_idle.first) != NULL && oldest->idle_since <= before)
        circuit_close(oldest);
}

/* ---- what an operator is shown ---- */

struct rv_step_id circuit_first(const struct circuit *circuit)
{
    const struct rv_heap_entry *first = rv_heap_first(&circuit->waiting);
    return first != NULL ? (struct rv_step_id){{(int64_t)first->value}, (uint32_t)first->detail}
                         : (struct rv_step_id){.number = 0};
}

static bool is_worse(const struct circuit *a, const struct circuit *b)
{
    if ((a->target[0] == '\0') != (b->target[0] == '\0'))
        return a->target[0] == '\0';
    size_t waiting_a = circuit_waiting(a), waiting_b = circuit_waiting(b);
    return waiting_a != waiting_b ? waiting_a > waiting_b : a->until > b->until;
}

size_t circuits_worst(const struct agent_kind *kind, size_t max, const struct circuit **ret_worst)
{
    size_t count = 0;
    for (const struct circuit *c = kind->circuits.first; c != NULL; c = c->next) {
        size_t at = count;
        for (; at > 0 && is_worse(c, ret_worst[at - 1]); at--)
            if (at < max)
                ret_worst[at] = ret_worst[at - 1];
        if (at < max)
            ret_worst[at] = c;
        count += count < max;
    }
    rv_assert(count <= max);
    return count;
}
