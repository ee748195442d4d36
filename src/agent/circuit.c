#include "agent/circuit.h"

#include "base/assert.h"

#include <string.h>

void rv_circuits_init(struct rv_circuits *circuits, uint32_t failures, int64_t open_ms)
{
    circuits->count = 0; /* each is made when its target is first met */
    circuits->failures = failures;
    circuits->open_ms = open_ms;
}

static struct rv_str target_cut(struct rv_str target)
{
    if (target.len >= RV_CIRCUIT_TARGET_BYTES)
        target.len = RV_CIRCUIT_TARGET_BYTES - 1;
    return target;
}

static unsigned window_failures(const struct rv_circuit *circuit)
{
    unsigned n = 0;
    for (uint32_t bits = circuit->window; bits != 0; bits &= bits - 1)
        n++;
    return n;
}

/* The longest unused circuit that has nothing to remember. */
static uint32_t circuit_reusable(const struct rv_circuits *circuits)
{
    uint32_t oldest = UINT32_MAX;
    for (uint32_t i = 0; i < circuits->count; i++) {
        const struct rv_circuit *circuit = &circuits->all[i];
        bool quiet = circuit->open_until == 0 && circuit->window == 0 && circuit->under_way == 0;
        if (quiet && (oldest == UINT32_MAX || circuit->used_at < circuits->all[oldest].used_at))
            oldest = i;
    }
    return oldest;
}

uint32_t rv_circuits_find(struct rv_circuits *circuits, struct rv_str target, int64_t now)
{
    target = target_cut(target);
    if (circuits->failures == 0)
        return UINT32_MAX;
    for (uint32_t i = 0; i < circuits->count; i++) {
        if (rv_str_is(target, circuits->all[i].target)) {
            circuits->all[i].used_at = now;
            return i;
        }
    }
    rv_assert(circuits->count <= RV_CIRCUITS_MAX);
    uint32_t i = circuits->count;
    if (i < RV_CIRCUITS_MAX)
        circuits->count++;
    else
        i = circuit_reusable(circuits);
    if (i == UINT32_MAX)
        return i;
    circuits->all[i] = (struct rv_circuit){.used_at = now};
    if (target.len > 0)
        memcpy(circuits->all[i].target, target.at, target.len);
    return i;
}

void rv_circuit_insist(struct rv_circuits *circuits, uint32_t index)
{
    rv_assert(index < circuits->count);
    rv_assert(circuits->all[index].open_until != 0);
    circuits->all[index].under_way++;
    circuits->all[index].probing = true;
}

int64_t rv_circuit_left_ms(const struct rv_circuits *circuits, uint32_t index, int64_t now)
{
    if (index == UINT32_MAX)
        return 0;
    rv_assert(index < circuits->count);
    if (circuits->all[index].open_until == 0)
        return 0;
    int64_t left = circuits->all[index].open_until - now;
    return left > 0 ? left : circuits->open_ms;
}

enum rv_circuit_verdict rv_circuit_ask(struct rv_circuits *circuits, uint32_t index, int64_t now,
                                       int64_t *ret_pause_ms)
{
    if (index == UINT32_MAX)
        return RV_CIRCUIT_GO;
    rv_assert(index < circuits->count);
    struct rv_circuit *circuit = &circuits->all[index];
    if (circuit->open_until == 0) {
        circuit->under_way++;
        return RV_CIRCUIT_GO;
    }
    if (now >= circuit->open_until && !circuit->probing) {
        circuit->under_way++;
        circuit->probing = true;
        return RV_CIRCUIT_PROBE;
    }
    *ret_pause_ms = rv_circuit_left_ms(circuits, index, now);
    return RV_CIRCUIT_STOP;
}

static void circuit_open(struct rv_circuit *circuit, int64_t now, int64_t open_ms, int64_t pause_ms)
{
    if (open_ms < pause_ms)
        open_ms = pause_ms;
    if (open_ms > RV_CIRCUIT_OPEN_MS_MAX)
        open_ms = RV_CIRCUIT_OPEN_MS_MAX;
    circuit->open_ms = open_ms;
    circuit->open_until = now + open_ms;
}

void rv_circuit_withdraw(struct rv_circuits *circuits, uint32_t index, bool probe)
{
    if (index == UINT32_MAX)
        return;
    rv_assert(index < circuits->count);
    rv_assert(circuits->all[index].under_way > 0);
    circuits->all[index].under_way--;
    if (probe)
        circuits->all[index].probing = false;
}

void rv_circuit_report(struct rv_circuits *circuits, uint32_t index, int64_t now, bool probe,
                       bool failed, int64_t pause_ms)
{
    if (index == UINT32_MAX)
        return;
    rv_assert(index < circuits->count);
    struct rv_circuit *circuit = &circuits->all[index];
    rv_assert(circuit->under_way > 0);
    circuit->under_way--;
    if (circuit->open_until != 0 && !probe)
        return; /* began before the circuit opened, and says nothing new */
    if (probe) {
        circuit->probing = false;
        if (failed) {
            circuit_open(circuit, now, circuit->open_ms * 2, pause_ms);
        } else {
            circuit->open_until = 0;
            circuit->window = 0;
            circuit->tries = 0;
        }
        return;
    }
    circuit->window = ((circuit->window << 1) | failed) & ((1u << RV_CIRCUIT_WINDOW) - 1);
    if (circuit->tries < RV_CIRCUIT_WINDOW)
        circuit->tries++;
    unsigned failures = window_failures(circuit);
    if (failed && failures >= circuits->failures && failures * 2 >= circuit->tries)
        circuit_open(circuit, now, circuits->open_ms, pause_ms);
}
