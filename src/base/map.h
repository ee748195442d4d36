/* map.h - a hash map from two 64-bit numbers (an id, a number) to a 64-bit value. */
#ifndef RV_BASE_MAP_H
#define RV_BASE_MAP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Open addressing with deletion by shifting back, so it never fills with tombstones. Keys are our
 * own ids; texts that strangers choose are hashed with a secret first (hash.h). */
struct rv_map_slot {
    uint64_t a;
    uint64_t b;
    uint64_t value;
    bool used;
};

struct rv_map {
    struct rv_map_slot *slots; /* owned */
    size_t room;               /* a power of two, or 0 */
    size_t count;
};

void rv_map_init(struct rv_map *map);
void rv_map_done(struct rv_map *map);
/* Sets the value of (a, b), new or not. MEMORY leaves the map as it was. */
RV_CHECK enum rv_err rv_map_put(struct rv_map *map, uint64_t a, uint64_t b, uint64_t value);
/* NULL when absent. Valid until the next put or remove; may be written through. */
uint64_t *rv_map_find(const struct rv_map *map, uint64_t a, uint64_t b);
/* False when it was not there. */
bool rv_map_remove(struct rv_map *map, uint64_t a, uint64_t b);
void rv_map_clear(struct rv_map *map);

#endif
