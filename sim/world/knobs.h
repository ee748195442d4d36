/* knobs.h - what a seed draws for its world: who is there, and which faults occur how often. */
#ifndef RV_SIM_KNOBS_H
#define RV_SIM_KNOBS_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_AGENTS_MAX = 8,
    SIM_CLIENTS_MAX = 4,
    SIM_SHELLS_MAX = 4,
    SIM_SERVERS_MAX = 5,
    SIM_SERVERS_FIRST = 3, /* of these the dice and faults stand among those of others */
    SIM_RELAYS_MAX = 2,
    SIM_VERSIONS_MAX = 12,
    SIM_KINDS_MAX = 3,
    SIM_WORKFLOWS_MAX = 4,
    SIM_TASKS_MAX = 300
};

enum fault {
#define SIM_FAULT(name, text, rate, what) FAULT_##name,
#include "sim/world/fault.def"
#undef SIM_FAULT
    FAULT_COUNT
};

struct knobs {
    uint32_t rates[FAULT_COUNT]; /* per mille; 0: this class is off in this world */
#define SIM_KNOB(name, low, high, share, a, b, c, d) uint32_t name;
#include "sim/world/knob.def"
#undef SIM_KNOB
};

/* Each is drawn from the seed and its own name, so that a new one does not change the others. */
void knobs_draw(struct knobs *knobs, uint64_t seed);
/* After some were set by hand: nobody waits for an agent of a kind that has none. */
void knobs_fit(struct knobs *knobs);
/* All that are not off, as text. */
void knobs_say(const struct knobs *knobs, struct rv_buf *out);

/* All by name, rates first. */
enum {
    KNOBS_COUNT = FAULT_COUNT
#define SIM_KNOB(name, low, high, share, a, b, c, d) +1
#include "sim/world/knob.def"
#undef SIM_KNOB
};

/* The index of a knob; KNOBS_COUNT: there is none of this name. */
size_t knob_find(struct rv_str name);
const char *knob_name(size_t knob);
/* Names of all, ended by NULL, for suggestions. */
const char *const *knob_names(void);
uint32_t knob_low(size_t knob);
uint32_t knob_high(size_t knob);
/* What a world has that is as plain as can be. */
uint32_t knob_plain(size_t knob);
uint32_t knob_get(const struct knobs *knobs, size_t knob);
void knob_set(struct knobs *knobs, size_t knob, uint32_t value);

#endif
