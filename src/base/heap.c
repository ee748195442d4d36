#include "base/heap.h"

#include "base/array.h"
#include "base/assert.h"

#include <stdlib.h>

void rv_heap_init(struct rv_heap *heap)
{
    *heap = (struct rv_heap){.entries = NULL};
}

void rv_heap_done(struct rv_heap *heap)
{
    free(heap->entries);
    rv_heap_init(heap);
}

static bool entry_before(const struct rv_heap_entry *a, const struct rv_heap_entry *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

enum rv_err rv_heap_push(struct rv_heap *heap, int64_t at, uint64_t value, uint64_t detail)
{
    if (!RV_ARRAY_ROOM(heap->entries, heap->count, heap->room))
        return RV_ERR_MEMORY;
    rv_assert(heap->count < heap->room);
    struct rv_heap_entry entry = {at, heap->order_next++, value, detail};
    size_t i = heap->count++;
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (!entry_before(&entry, &heap->entries[parent]))
            break;
        heap->entries[i] = heap->entries[parent];
        i = parent;
    }
    heap->entries[i] = entry;
    return RV_OK;
}

const struct rv_heap_entry *rv_heap_first(const struct rv_heap *heap)
{
    return heap->count ? &heap->entries[0] : NULL;
}

/* Places in a heap, as a heap of their own: the place of the least entry first. */
struct edge {
    const struct rv_heap *heap;
    size_t count;
    size_t places[RV_HEAP_LEAST_MAX + 1];
};

static bool edge_before(const struct edge *edge, size_t a, size_t b)
{
    return entry_before(&edge->heap->entries[edge->places[a]],
                        &edge->heap->entries[edge->places[b]]);
}

static void edge_swap(struct edge *edge, size_t a, size_t b)
{
    size_t place = edge->places[a];
    edge->places[a] = edge->places[b];
    edge->places[b] = place;
}

static void edge_push(struct edge *edge, size_t place)
{
    rv_assert(edge->count < RV_HEAP_LEAST_MAX + 1);
    size_t i = edge->count++;
    edge->places[i] = place;
    for (; i > 0 && edge_before(edge, i, (i - 1) / 2); i = (i - 1) / 2)
        edge_swap(edge, i, (i - 1) / 2);
}

static size_t edge_pop(struct edge *edge)
{
    rv_assert(edge->count > 0);
    size_t place = edge->places[0], i = 0;
    edge->places[0] = edge->places[--edge->count];
    for (size_t child; (child = 2 * i + 1) < edge->count; i = child) {
        if (child + 1 < edge->count && edge_before(edge, child + 1, child))
            child++;
        if (!edge_before(edge, child, i))
            break;
        edge_swap(edge, i, child);
    }
    return place;
}

/* What comes next is a child of one that was given already: those are looked through. */
size_t rv_heap_least(const struct rv_heap *heap, size_t max, struct rv_heap_entry *ret_entries)
{
    struct edge edge = {.heap = heap};
    size_t count = 0;
    max = max < RV_HEAP_LEAST_MAX ? max : RV_HEAP_LEAST_MAX;
    if (heap->count > 0)
        edge_push(&edge, 0);
    while (count < max && edge.count > 0) {
        size_t place = edge_pop(&edge), child = 2 * place + 1;
        ret_entries[count++] = heap->entries[place];
        for (size_t i = child; i < child + 2 && i < heap->count; i++)
            edge_push(&edge, i);
    }
    return count;
}

/* Moves `entry` down from the free place `i`. */
static void entry_sink(struct rv_heap *heap, size_t i, struct rv_heap_entry entry)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            entry_before(&heap->entries[child + 1], &heap->entries[child]))
            child++;
        if (!entry_before(&heap->entries[child], &entry))
            break;
        heap->entries[i] = heap->entries[child];
        i = child;
    }
    heap->entries[i] = entry;
}

bool rv_heap_pop(struct rv_heap *heap, struct rv_heap_entry *ret_entry)
{
    if (heap->count == 0)
        return false;
    *ret_entry = heap->entries[0];
    struct rv_heap_entry last = heap->entries[--heap->count];
    entry_sink(heap, 0, last);
    rv_assert(heap->count == 0 || !entry_before(&heap->entries[0], ret_entry));
    return true;
}

void rv_heap_filter(struct rv_heap *heap,
                    bool (*keeps)(const struct rv_heap_entry *entry, const void *user),
                    const void *user)
{
    size_t count = 0;
    for (size_t i = 0; i < heap->count; i++)
        if (keeps(&heap->entries[i], user))
            heap->entries[count++] = heap->entries[i];
    heap->count = count;
    for (size_t i = count / 2; i > 0; i--)
        entry_sink(heap, i - 1, heap->entries[i - 1]);
}
