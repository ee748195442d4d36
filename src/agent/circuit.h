/* circuit.h - circuit breakers: a target that fails is left alone for a while, then probed.
 *
 * Closed, a circuit lets every try through and remembers how the last 16 ended. It opens when at
 * least `failures` and at least half of them failed. Open, it stops every try. After its pause it
 * is half-open: one try, the probe, goes through; its end closes the circuit or opens it again for
 * twice as long. A target without a failure in its window costs no memory worth naming: circuits
 * are reused. */
#ifndef RV_AGENT_CIRCUIT_H
#define RV_AGENT_CIRCUIT_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    RV_CIRCUITS_MAX = 128,
    RV_CIRCUIT_WINDOW = 16,
    RV_CIRCUIT_TARGET_BYTES = 128, /* with its NUL; longer names are cut */
    RV_CIRCUIT_OPEN_MS_MAX = 30000
};

struct rv_circuit {
    char target[RV_CIRCUIT_TARGET_BYTES];
    uint32_t window;    /* one bit per try, the newest lowest; 1: failed */
    uint32_t tries;     /* in the window */
    int64_t open_until; /* 0: closed */
    int64_t open_ms;    /* of the present pause */
    bool probing;
    uint32_t under_way; /* tries that were let through and not yet reported */
    int64_t used_at;
};

struct rv_circuits {
    struct rv_circuit all[RV_CIRCUITS_MAX];
    uint32_t count;
    uint32_t failures; /* that open one; 0: no breaker at all */
    int64_t open_ms;
};

enum rv_circuit_verdict { RV_CIRCUIT_GO, RV_CIRCUIT_PROBE, RV_CIRCUIT_STOP };

void rv_circuits_init(struct rv_circuits *circuits, uint32_t failures, int64_t open_ms);
/* The target's circuit, made if need be: an index that stays its own as long as tries are under way
 * or it is open. UINT32_MAX when all circuits are in trouble at once: then nothing is broken. */
uint32_t rv_circuits_find(struct rv_circuits *circuits, struct rv_str target, int64_t now);
/* May a try go? After GO and PROBE the caller reports its end, exactly once. After STOP
 * *ret_pause_ms says when to ask again. */
enum rv_circuit_verdict rv_circuit_ask(struct rv_circuits *circuits, uint32_t index, int64_t now,
                                       int64_t *ret_pause_ms);
/* Lets a try go as a probe, though the circuit is open. */
void rv_circuit_insist(struct rv_circuits *circuits, uint32_t index);
/* For how long the circuit lets nothing through but a probe; 0: it is closed. */
int64_t rv_circuit_left_ms(const struct rv_circuits *circuits, uint32_t index, int64_t now);
/* How a try ended. `pause_ms`: the target asks for this long a pause, 0 for none. */
void rv_circuit_report(struct rv_circuits *circuits, uint32_t index, int64_t now, bool probe,
                       bool failed, int64_t pause_ms);
/* The try was taken back by whoever wanted it: its end tells nothing of the target. */
void rv_circuit_withdraw(struct rv_circuits *circuits, uint32_t index, bool probe);

#endif
