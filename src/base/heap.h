/* heap.h - a binary heap of (instant, value) pairs, smallest first, ties in order of arrival. */
#ifndef RV_BASE_HEAP_H
#define RV_BASE_HEAP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RV_HEAP_LEAST_MAX = 256 };

struct rv_heap_entry {
    int64_t at;
    uint64_t order; /* given by the heap */
    uint64_t value;
    uint64_t detail;
};

struct rv_heap {
    struct rv_heap_entry *entries; /* owned */
    size_t count;
    size_t room;
    uint64_t order_next;
};

void rv_heap_init(struct rv_heap *heap);
void rv_heap_done(struct rv_heap *heap);
RV_CHECK enum rv_err rv_heap_push(struct rv_heap *heap, int64_t at, uint64_t value,
                                  uint64_t detail);
/* NULL when empty. Valid until the next push or pop. */
const struct rv_heap_entry *rv_heap_first(const struct rv_heap *heap);
/* The least `max` entries (RV_HEAP_LEAST_MAX at most), in order; gives their number, n, in
 * O(n log n). */
size_t rv_heap_least(const struct rv_heap *heap, size_t max, struct rv_heap_entry *ret_entries);
bool rv_heap_pop(struct rv_heap *heap, struct rv_heap_entry *ret_entry);
/* Removes the entries for which `keeps` is false. The others keep their order. O(count). */
void rv_heap_filter(struct rv_heap *heap,
                    bool (*keeps)(const struct rv_heap_entry *entry, const void *user),
                    const void *user);

#endif
