/* Records in the order of their kinds and keys. There are few of them, so an array will do. */
#include "sim/store/memory/memory_priv.h"

#include "base/array.h"
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static int record_cmp(const struct rv_record *row, struct rv_str kind, struct rv_str key)
{
    int order = rv_str_cmp(row->kind, kind);
    return order != 0 ? order : rv_str_cmp(row->key, key);
}

size_t records_place(const struct records *set, struct rv_str kind, struct rv_str key)
{
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (record_cmp(set->at[middle], kind, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct rv_record *records_find(const struct records *set, struct rv_str kind, struct rv_str key)
{
    size_t place = records_place(set, kind, key);
    bool there = place < set->count && record_cmp(set->at[place], kind, key) == 0;
    return there ? set->at[place] : NULL;
}

enum rv_err records_reserve(struct records *set)
{
    return RV_ARRAY_ROOM(set->at, set->count, set->room) ? RV_OK : RV_ERR_MEMORY;
}

struct rv_record *records_put(struct records *set, struct rv_record *row)
{
    size_t place = records_place(set, row->kind, row->key);
    struct rv_record **at = &set->at[place];
    if (place < set->count && record_cmp(*at, row->kind, row->key) == 0) {
        struct rv_record *old = *at;
        *at = row;
        return old;
    }
    rv_assert(set->count < set->room);
    memmove(at + 1, at, (set->count - place) * sizeof *at);
    *at = row;
    set->count++;
    return NULL;
}

struct rv_record *records_remove(struct records *set, struct rv_str kind, struct rv_str key)
{
    size_t place = records_place(set, kind, key);
    struct rv_record **at = &set->at[place];
    struct rv_record *row = *at;
    rv_assert(place < set->count && record_cmp(row, kind, key) == 0);
    set->count--;
    memmove(at, at + 1, (set->count - place) * sizeof *at);
    return row;
}

void records_free(struct records *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->at[i]);
    free(set->at);
    *set = (struct records){.at = NULL};
}
