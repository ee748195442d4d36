/* mailbox.h - a queue between threads: many put, one takes all that waits, at once. */
#ifndef RV_BASE_OS_MAILBOX_H
#define RV_BASE_OS_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Items are structs of one type with a pointer to the next of their kind in them, at `link_offset`;
 * the mailbox uses it while it holds the item, and allocates nothing. First in, first out. */
struct rv_mailbox {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    void *first; /* borrowed */
    void *last;
    size_t count;
    size_t link_offset;
    bool waiting; /* the taker sleeps */
    bool woken;   /* since it took last */
    bool closed;
};

/* rv_mailbox_init(&box, offsetof(struct rv_call, next)) */
void rv_mailbox_init(struct rv_mailbox *box, size_t link_offset);
/* Must be empty. */
void rv_mailbox_done(struct rv_mailbox *box);
/* False when the mailbox is closed: the item stays with the caller. */
bool rv_mailbox_put(struct rv_mailbox *box, void *item);
/* Takes up to `max` items; with none there, waits up to `wait_ms` (negative: for ever) for the
 * first. 0 items: time is over, or it is closed and empty, or it was woken. One thread takes. */
size_t rv_mailbox_take(struct rv_mailbox *box, void **ret_items, size_t max, int64_t wait_ms);
/* Ends the wait of the taker, or the next one if it does not wait. */
void rv_mailbox_wake(struct rv_mailbox *box);
/* From now on nothing is taken in; what is there can still be taken. */
void rv_mailbox_close(struct rv_mailbox *box);

#endif
