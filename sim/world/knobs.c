#include "sim/world/knobs.h"

#include "sim/store/storage.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/prng.h"

#include <assert.h>

enum { RATE_MAX = 1000 };

struct range {
    uint32_t low;
    uint32_t high;
};

/* In `share` per mille of the worlds a value from `often`, else one from `seldom`. */
struct row {
    const char *name;
    struct range bounds;
    uint32_t share;
    struct range often;
    struct range seldom;
};

/* Swarm testing: each class of faults is off in half of the worlds, so that the others have room.
 */
static const struct row table[] = {
#define SIM_FAULT(name, text, rate, what) {text, {0, RATE_MAX}, 500, {(rate) > 0, rate}, {0, 0}},
#include "sim/world/fault.def"
#undef SIM_FAULT
#define SIM_KNOB(name, low, high, share, a, b, c, d) {#name, {low, high}, share, {a, b}, {c, d}},
#include "sim/world/knob.def"
#undef SIM_KNOB
};

static_assert(sizeof table / sizeof table[0] == KNOBS_COUNT, "the table has every knob");

static const char *const names[] = {
#define SIM_FAULT(name, text, rate, what) text,
#include "sim/world/fault.def"
#undef SIM_FAULT
#define SIM_KNOB(name, low, high, share, a, b, c, d) #name,
#include "sim/world/knob.def"
#undef SIM_KNOB
    NULL,
};

static const size_t places[] = {
#define SIM_KNOB(name, low, high, share, a, b, c, d) offsetof(struct knobs, name),
#include "sim/world/knob.def"
#undef SIM_KNOB
};

uint32_t knob_get(const struct knobs *knobs, size_t knob)
{
    if (knob < FAULT_COUNT)
        return knobs->rates[knob];
    return *(const uint32_t *)((const char *)knobs + places[knob - FAULT_COUNT]);
}

void knob_set(struct knobs *knobs, size_t knob, uint32_t value)
{
    rv_assert(value >= knob_low(knob) && value <= knob_high(knob));
    if (knob < FAULT_COUNT)
        knobs->rates[knob] = value;
    else
        *(uint32_t *)((char *)knobs + places[knob - FAULT_COUNT]) = value;
}

size_t knob_find(struct rv_str name)
{
    size_t knob = 0;
    while (knob < KNOBS_COUNT && !rv_str_is(name, table[knob].name))
        knob++;
    return knob;
}

const char *knob_name(size_t knob)
{
    return table[knob].name;
}

const char *const *knob_names(void)
{
    return names;
}

uint32_t knob_low(size_t knob)
{
    return table[knob].bounds.low;
}

uint32_t knob_high(size_t knob)
{
    return table[knob].bounds.high;
}

/* Where a seed draws mostly one certain value, that; else the lowest. */
uint32_t knob_plain(size_t knob)
{
    const struct row *row = &table[knob];
    if (row->share < 1000 && row->often.low == row->often.high)
        return row->often.low;
    return row->bounds.low;
}

static uint32_t range_draw(struct rv_prng *dice, const struct range *range)
{
    return range->low + (uint32_t)rv_prng_below(dice, (uint64_t)(range->high - range->low) + 1);
}

void knobs_draw(struct knobs *knobs, uint64_t seed)
{
    for (size_t i = 0; i < KNOBS_COUNT; i++) {
        struct rv_prng dice;
        rv_prng_init(&dice, rv_hash((struct rv_hash_key){seed, 1}, rv_str_of(table[i].name)));
        bool often = rv_prng_below(&dice, 1000) < table[i].share;
        knob_set(knobs, i, range_draw(&dice, often ? &table[i].often : &table[i].seldom));
    }
    if (knobs->agents < knobs->kinds)
        knobs->agents = knobs->kinds;
}

void knobs_fit(struct knobs *knobs)
{
    if (knobs->kinds > knobs->agents)
        knobs->kinds = knobs->agents;
    for (size_t i = 0; knobs->calm && i < FAULT_COUNT; i++)
        knobs->rates[i] = 0;
    if (knobs->store == STORE_SHARED)
        return;
    knobs->servers = 1;               /* the others have one */
    if (knobs->store == STORE_SQLITE) /* it can never be asked for an outcome (store.h) */
        knobs->rates[FAULT_UNKNOWN_DONE] = knobs->rates[FAULT_UNKNOWN_LOST] = 0;
}

void knobs_say(const struct knobs *knobs, struct rv_buf *out)
{
    for (size_t i = 0; i < KNOBS_COUNT; i++)
        if (i >= FAULT_COUNT || knobs->rates[i] != 0)
            rv_buf_printf(out, "%s%s=%u", out->len > 0 ? " " : "", table[i].name,
                          knob_get(knobs, i));
}
