/* array.h - arrays that grow. */
#ifndef RV_BASE_ARRAY_H
#define RV_BASE_ARRAY_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Makes room for one more item in the array `items`, a pointer that is NULL at first, with `count`
 * items and room for `room` (a size_t). Where there was none, the array moves to a place with twice
 * the room. False: there is no memory, and nothing has changed. The new items are not set; free()
 * frees the array. */
#define RV_ARRAY_ROOM(items, count, room)                                                          \
    rv_array_moved(&(items), rv_array_room((items), (count), &(room), sizeof *(items)))

/* The same on an arena, where the old place stays until the arena is reset. The new items are
 * zeroed. */
#define RV_ARRAY_ROOM_ON(arena, items, count, room)                                                \
    rv_array_moved(&(items),                                                                       \
                   rv_array_room_on((arena), (items), (count), &(room), sizeof *(items)))

/* The macros call these. */
void *rv_array_room(void *items, size_t count, size_t *room, size_t bytes);
void *rv_array_room_on(struct rv_arena *arena, void *items, size_t count, size_t *room,
                       size_t bytes);

static inline bool rv_array_moved(void *pointer, void *items)
{
    if (items == NULL)
        return false;
    memcpy(pointer, &items, sizeof items); /* a pointer to items of any type */
    return true;
}

#endif
