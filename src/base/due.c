#include "base/due.h"

#include "base/assert.h"

#include <stdlib.h>

void rv_dues_init(struct rv_dues *dues)
{
    *dues = (struct rv_dues){.entries = NULL};
}

void rv_dues_done(struct rv_dues *dues)
{
    free(dues->entries);
    rv_dues_init(dues);
}

enum rv_err rv_dues_reserve(struct rv_dues *dues, size_t count)
{
    rv_assert(dues->count <= dues->room);
    if (count <= dues->room)
        return RV_OK;
    size_t room = dues->room ? dues->room * 2 : 64;
    room = room < count ? count : room;
    struct rv_due **entries = realloc(dues->entries, room * sizeof(struct rv_due *));
    if (entries == NULL)
        return RV_ERR_MEMORY;
    dues->entries = entries;
    dues->room = room;
    return RV_OK;
}

static void put(struct rv_dues *dues, struct rv_due *due, size_t place)
{
    rv_assert(place >= 1);
    rv_assert(place <= dues->count);
    dues->entries[place - 1] = due;
    due->place = place;
}

/* To where it belongs, from a place that is free. */
static void sift(struct rv_dues *dues, struct rv_due *due, size_t place)
{
    for (; place > 1 && due->at < dues->entries[place / 2 - 1]->at; place /= 2)
        put(dues, dues->entries[place / 2 - 1], place);
    for (;;) {
        size_t child = 2 * place;
        if (child > dues->count)
            break;
        if (child < dues->count && dues->entries[child]->at < dues->entries[child - 1]->at)
            child++;
        if (due->at <= dues->entries[child - 1]->at)
            break;
        put(dues, dues->entries[child - 1], place);
        place = child;
    }
    put(dues, due, place);
}

void rv_due_set(struct rv_dues *dues, struct rv_due *due, int64_t at)
{
    due->at = at;
    if (due->place == 0) {
        rv_assert(dues->count < dues->room);
        due->place = ++dues->count;
    } else {
        rv_assert(due->place <= dues->count);
        rv_assert(dues->entries[due->place - 1] == due);
    }
    sift(dues, due, due->place);
}

void rv_due_clear(struct rv_dues *dues, struct rv_due *due)
{
    size_t place = due->place;
    if (place == 0)
        return;
    rv_assert(place <= dues->count);
    rv_assert(dues->entries[place - 1] == due);
    struct rv_due *last = dues->entries[--dues->count];
    due->place = 0;
    if (last != due)
        sift(dues, last, place);
}

struct rv_due *rv_dues_first(const struct rv_dues *dues)
{
    return dues->count > 0 ? dues->entries[0] : NULL;
}
