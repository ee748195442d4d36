/* mailbox.h - a queue between threads: many put, one takes all that waits, at once. */
#ifndef RV_BASE_OS_MAILBOX_H
#define RV_BASE_OS_MAILBOX_H

#include "base/os/spin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A thread that stamps items with the instant of their arrival some time before it puts them. */
struct rv_mailbox_maker {
    atomic_llong since; /* no item that it has yet to put arrived before; INT64_MAX: it has none */
    struct rv_mailbox_maker *next;
};

/* Items are structs of one type with a pointer to the next of their kind in them, at `link_offset`;
 * the mailbox uses it while it holds the item, and allocates nothing. First in, first out. */
struct rv_mailbox {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    void *first; /* borrowed */
    void *last;
    size_t count;
    size_t link_offset;
    size_t behind_offset;            /* of an int64_t in the items; 0: arrivals do not matter */
    struct rv_mailbox_maker *makers; /* borrowed */
    int64_t heard_until;             /* as of the newest take */
    bool waiting;                    /* the taker sleeps */
    bool woken;                      /* since it took last */
    bool closed;
    struct rv_spin spin;
};

/* rv_mailbox_init(&box, offsetof(struct rv_call, next)) */
void rv_mailbox_init(struct rv_mailbox *box, size_t link_offset);
/* From now on each take says up to which instant all arrivals were taken. The mailbox keeps in the
 * int64_t at `behind_offset` of an item before which instant nothing behind it can have arrived. */
void rv_mailbox_keep_arrivals(struct rv_mailbox *box, size_t behind_offset);
/* Before anybody puts or takes; the maker lives until the mailbox is closed. */
void rv_mailbox_join(struct rv_mailbox *box, struct rv_mailbox_maker *maker);
/* The arrival, by the monotonic clock in ms, of an item that its maker has yet to put. */
int64_t rv_mailbox_arrive(struct rv_mailbox_maker *maker);
/* What the maker has yet to put arrived at `since` or later; INT64_MAX: it has nothing to put. */
void rv_mailbox_settle(struct rv_mailbox_maker *maker, int64_t since);
/* By the taker: what arrived before this instant was taken by the newest take or by one before. */
int64_t rv_mailbox_heard_until(const struct rv_mailbox *box);
/* Must be empty. */
void rv_mailbox_done(struct rv_mailbox *box);
/* False when the mailbox is closed: the item stays with the caller. */
bool rv_mailbox_put(struct rv_mailbox *box, void *item);
/* Takes up to `max` items; with none there, waits up to `wait_ms` (negative: for ever) for the
 * first. 0 items: time is over, or it is closed and empty, or it was woken. One thread takes. */
size_t rv_mailbox_take(struct rv_mailbox *box, void **ret_items, size_t max, int64_t wait_ms);
/* Takes out up to `max` items for which `goes` is true, the oldest first; the others stay where
 * they are. From any thread, without the taker: what it is told of arrivals includes these. */
size_t rv_mailbox_withdraw(struct rv_mailbox *box, bool (*goes)(const void *item), void **ret_items,
                           size_t max);
/* Ends the wait of the taker, or the next one if it does not wait. */
void rv_mailbox_wake(struct rv_mailbox *box);
/* From now on nothing is taken in; what is there can still be taken. */
void rv_mailbox_close(struct rv_mailbox *box);

#endif
