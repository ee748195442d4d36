#include "base/map.h"

#include "base/assert.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { MAP_ROOM_MIN = 64 };

void rv_map_init(struct rv_map *map)
{
    *map = (struct rv_map){.slots = NULL};
}

void rv_map_done(struct rv_map *map)
{
    free(map->slots);
    rv_map_init(map);
}

void rv_map_clear(struct rv_map *map)
{
    if (map->slots != NULL)
        memset(map->slots, 0, map->room * sizeof *map->slots);
    map->count = 0;
}

static size_t slot_home(const struct rv_map *map, uint64_t a, uint64_t b)
{
    return (size_t)rv_hash_int(a ^ rv_hash_int(b)) & (map->room - 1);
}

static struct rv_map_slot *slot_for(const struct rv_map *map, uint64_t a, uint64_t b)
{
    rv_assert(map->count < map->room); /* so a slot is free, and the search ends */
    size_t i = slot_home(map, a, b);
    while (map->slots[i].used && (map->slots[i].a != a || map->slots[i].b != b))
        i = (i + 1) & (map->room - 1);
    return &map->slots[i];
}

static enum rv_err map_grow(struct rv_map *map)
{
    struct rv_map grown = {.room = map->room ? map->room * 2 : MAP_ROOM_MIN, .count = map->count};
    grown.slots = calloc(grown.room, sizeof *grown.slots);
    rv_assert((grown.room & (grown.room - 1)) == 0);
    if (grown.slots == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < map->room; i++) {
        if (!map->slots[i].used)
            continue;
        struct rv_map_slot *slot = slot_for(&grown, map->slots[i].a, map->slots[i].b);
        rv_assert(!slot->used); /* each key is in one slot only */
        *slot = map->slots[i];
    }
    free(map->slots);
    *map = grown;
    return RV_OK;
}

enum rv_err rv_map_put(struct rv_map *map, uint64_t a, uint64_t b, uint64_t value)
{
    if (map->count + 1 > map->room / 4 * 3) {
        enum rv_err err = map_grow(map);
        if (err != RV_OK)
            return err;
    }
    struct rv_map_slot *slot = slot_for(map, a, b);
    if (!slot->used)
        map->count++;
    *slot = (struct rv_map_slot){a, b, value, true};
    return RV_OK;
}

uint64_t *rv_map_find(const struct rv_map *map, uint64_t a, uint64_t b)
{
    if (map->count == 0)
        return NULL;
    struct rv_map_slot *slot = slot_for(map, a, b);
    return slot->used ? &slot->value : NULL;
}

bool rv_map_remove(struct rv_map *map, uint64_t a, uint64_t b)
{
    if (map->count == 0)
        return false;
    struct rv_map_slot *gone = slot_for(map, a, b);
    if (!gone->used)
        return false;
    size_t mask = map->room - 1;
    size_t hole = (size_t)(gone - map->slots);
    map->slots[hole].used = false;
    map->count--;
    /* Move back every follower whose home lies at or before the hole. */
    for (size_t i = (hole + 1) & mask; map->slots[i].used; i = (i + 1) & mask) {
        size_t home = slot_home(map, map->slots[i].a, map->slots[i].b);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->slots[hole] = map->slots[i];
            map->slots[i].used = false;
            hole = i;
        }
    }
    return true;
}
