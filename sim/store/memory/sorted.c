#include "sim/store/memory/memory_priv.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static int entry_cmp(const struct sorted_entry *entry, int64_t a, int64_t b)
{
    if (entry->a != a)
        return entry->a < a ? -1 : 1;
    return entry->b < b ? -1 : entry->b > b;
}

size_t sorted_place(const struct sorted *set, int64_t a, int64_t b)
{
    if (set->count == 0 || entry_cmp(&set->at[set->count - 1], a, b) < 0)
        return set->count;
    size_t low = 0;
    size_t high = set->count - 1; /* is not before (a, b) */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entry_cmp(&set->at[middle], a, b) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct sorted_entry *sorted_find(const struct sorted *set, int64_t a, int64_t b)
{
    size_t place = sorted_place(set, a, b);
    bool there = place < set->count && entry_cmp(&set->at[place], a, b) == 0;
    return there ? &set->at[place] : NULL;
}

/* Those that went from the front have left room there. */
static void slide_back(struct sorted *set)
{
    struct sorted_entry *at = set->at - set->front;
    memmove(at, set->at, set->count * sizeof *at);
    set->at = at;
    set->room += set->front;
    set->front = 0;
}

static enum rv_err grow(struct sorted *set)
{
    if (set->front > 0 && set->front >= set->count) {
        slide_back(set);
        return RV_OK;
    }
    size_t room = set->room == 0 ? 4 : (set->front + set->room) * 2;
    struct sorted_entry *at = realloc(set->front > 0 ? set->at - set->front : set->at,
                                      room * sizeof *at);
    if (at == NULL && set->front == 0)
        return RV_ERR_MEMORY;
    if (at == NULL) {
        slide_back(set);
        return RV_OK;
    }
    set->at = at + set->front;
    set->room = room - set->front;
    return RV_OK;
}

enum rv_err sorted_insert(struct sorted *set, int64_t a, int64_t b, void *row)
{
    size_t place = sorted_place(set, a, b);
    rv_assert(place == set->count || entry_cmp(&set->at[place], a, b) != 0);
    if (set->front > 0 && place < set->count / 2) {
        set->at--;
        set->front--;
        set->room++;
        memmove(set->at, set->at + 1, place * sizeof *set->at);
    } else {
        enum rv_err err = set->count == set->room ? grow(set) : RV_OK;
        if (err != RV_OK)
            return err;
        memmove(&set->at[place + 1], &set->at[place], (set->count - place) * sizeof *set->at);
    }
    set->at[place] = (struct sorted_entry){a, b, row};
    set->count++;
    return RV_OK;
}

void sorted_remove(struct sorted *set, struct sorted_entry *entry)
{
    size_t place = (size_t)(entry - set->at);
    rv_assert(place < set->count);
    set->count--;
    if (place < set->count / 2) {
        memmove(set->at + 1, set->at, place * sizeof *set->at);
        set->at++;
        set->front++;
        set->room--;
    } else {
        memmove(entry, entry + 1, (set->count - place) * sizeof *entry);
    }
}

void sorted_done(struct sorted *set)
{
    free(set->front > 0 ? set->at - set->front : set->at);
    *set = (struct sorted){.at = NULL};
}

void sorted_free(struct sorted *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->at[i].row);
    sorted_done(set);
}
