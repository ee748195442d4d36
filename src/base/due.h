/* due.h - a heap of what is due at an instant, the earliest first, each in it once at most. */
#ifndef RV_BASE_DUE_H
#define RV_BASE_DUE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Unlike in heap.h an entry can be moved and taken out, so nothing stale gathers. It is a member of
 * what is due, which is zeroed at first, stays where it is while in the heap, and is taken out
 * before it is freed. */
struct rv_due {
    int64_t at;
    size_t place; /* in the heap, from 1; 0: not in it */
    void *owner;  /* borrowed: the one that is due */
};

struct rv_dues {
    struct rv_due **entries; /* owned; what they point at is not */
    size_t count;
    size_t room;
};

void rv_dues_init(struct rv_dues *dues);
void rv_dues_done(struct rv_dues *dues);
/* Room for so many entries in all, so that rv_due_set needs no memory. */
RV_CHECK enum rv_err rv_dues_reserve(struct rv_dues *dues, size_t count);
/* Puts it in, or moves it. There is room. */
void rv_due_set(struct rv_dues *dues, struct rv_due *due, int64_t at);
/* Takes it out if it is in. */
void rv_due_clear(struct rv_dues *dues, struct rv_due *due);
/* The earliest, or NULL. */
struct rv_due *rv_dues_first(const struct rv_dues *dues);

#endif
