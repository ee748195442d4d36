#include "base/array.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_MIN = 4 };

void *rv_array_room(void *items, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return items;
    rv_assert(count == *room);
    rv_assert((items == NULL) == (*room == 0));
    size_t doubled = *room != 0 ? 2 * *room : ROOM_MIN;
    void *grown = realloc(items, doubled * bytes);
    if (grown != NULL)
        *room = doubled;
    return grown;
}

void *rv_array_room_on(struct rv_arena *arena, void *items, size_t count, size_t *room,
                       size_t bytes)
{
    if (count < *room)
        return items;
    rv_assert(count == *room);
    size_t doubled = *room != 0 ? 2 * *room : ROOM_MIN;
    void *grown = rv_arena_zero(arena, doubled, bytes);
    if (grown == NULL)
        return NULL;
    if (count > 0)
        memcpy(grown, items, count * bytes);
    *room = doubled;
    return grown;
}
