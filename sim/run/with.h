/* with.h - what is to be otherwise in a world than its seed says: "--with tasks=3,loss=0". */
#ifndef RV_SIM_WITH_H
#define RV_SIM_WITH_H

#include "base/buf.h"
#include "sim/world/fault.h"
#include "sim/world/knobs.h"

#include <stdbool.h>

enum { WITH_BYTES_MAX = 4 * 1024 * 1024 }; /* as text */

/* Where `chosen`, no part is in the world but those in `only` ("only=loss.3.17+order.0.4"): faults
 * of all other classes and occasions do not strike, whatever their rates. */
struct with {
    bool given[KNOBS_COUNT];
    uint32_t values[KNOBS_COUNT];
    bool chosen;
    struct parts only; /* owned */
};

void with_init(struct with *with);
void with_done(struct with *with);
void with_copy(const struct with *from, struct with *ret);
void with_set(struct with *with, size_t knob, uint32_t value);
/* Adds what the text says. False: it is wrong, and `why` says where and what would be right. */
bool with_read(struct with *with, struct rv_str text, struct rv_buf *why);
/* As with_read() reads it; empty when nothing is given. */
void with_write(const struct with *with, struct rv_buf *out);
void with_apply(const struct with *with, struct knobs *knobs);

#endif
