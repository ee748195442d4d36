/* delivery_queue.h - which message goes to which webhook next: windows, pauses, giving up. */
#ifndef RV_NOTIFY_DELIVERY_QUEUE_H
#define RV_NOTIFY_DELIVERY_QUEUE_H

#include "base/err.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/prng.h"
#include "core/rows.h"
#include "notify/notice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A cache over the delivery rows, as the supervisor's heap is one over the open steps: it may
 * forget whatever it likes, a walk over the rows brings it back. Pure: no clock, no I/O.
 *
 * A task has at most one message on its way. A destination (scheme, host, port) has a window: how
 * many messages of all its tasks may be on their way at once. Each one taken widens it, each one
 * that the destination itself failed halves it. Three of those in a row and it counts as failing:
 * then one message at a time finds out, with longer and longer pauses, and the first that is taken
 * makes all the others due at once. So a dead destination costs one connection and delays no other;
 * each of its tasks is given up a day after its message could first be sent. */

enum {
    RV_DELIVERY_QUEUE_SENT_MAX = 1024,  /* on their way at once, to all destinations */
    RV_DELIVERY_QUEUE_WINDOW_MAX = 128, /* ... to one */
    RV_DELIVERY_QUEUE_TASKS_MAX =
        4096, /* known of one destination; the others wait in their rows */
    RV_DELIVERY_QUEUE_FAILING_MAX = 64,      /* ... that is failing */
    RV_DELIVERY_QUEUE_ALL_MAX = 1024 * 1024, /* ... of all */
    RV_DELIVERY_QUEUE_DESTINATIONS_MAX = 4096
};

struct rv_delivery_queue_destination;

struct rv_delivery_queue {
    struct rv_prng prng;
    struct rv_hash_key hash_key;
    struct rv_map tasks;                         /* task -> struct queue_entry *, owned */
    struct rv_map destinations;                  /* hash -> the destination */
    struct rv_delivery_queue_destination *first; /* owned: all of them, in a ring */
    struct rv_delivery_queue_destination *turn;  /* whose turn it is */
    size_t sent;
    int64_t next_at; /* nothing is to be picked before */
};

void rv_delivery_queue_init(struct rv_delivery_queue *queue, uint64_t seed,
                            struct rv_hash_key hash_key);
void rv_delivery_queue_done(struct rv_delivery_queue *queue);

/* The row as it is in the store; one of which nothing waits, or that is given up, is forgotten.
 * False: there is no room, or no memory, for another of its destination. */
bool rv_delivery_queue_note(struct rv_delivery_queue *queue, const struct rv_delivery *row,
                            int64_t now);
/* The row as a walk has found it: what is known already is known better, but a message that has
 * been on its way for too long is due again. */
bool rv_delivery_queue_see(struct rv_delivery_queue *queue, const struct rv_delivery *row,
                           int64_t now);
bool rv_delivery_queue_knows(const struct rv_delivery_queue *queue, struct rv_task_id task);
/* The task has a newer message; nothing if the task is not known. */
void rv_delivery_queue_grow(struct rv_delivery_queue *queue, struct rv_task_id task, uint32_t last);
void rv_delivery_queue_forget(struct rv_delivery_queue *queue, struct rv_task_id task);

/* One to be sent now, which from then on counts as on its way; or, `expired`, to be given up. */
struct rv_delivery_queue_pick {
    struct rv_task_id task;
    uint32_t number;
    bool expired;
};
size_t rv_delivery_queue_pick(struct rv_delivery_queue *queue, int64_t now,
                              struct rv_delivery_queue_pick *ret_picks, size_t max);
/* It could not be sent, or what came of it not be written: tried again at `at`. */
void rv_delivery_queue_unpick(struct rv_delivery_queue *queue, struct rv_task_id task, int64_t at);

/* How a task stands after a result. */
struct rv_delivery_queue_verdict {
    struct rv_delivery row; /* next, failures, since, due_at, given_up (task, and no texts) */
    uint32_t next_before;
    uint32_t failures_before;
    struct rv_str destination; /* lives as long as the queue has it */
    bool turned;               /* the destination has begun to fail, or to work again */
    bool failing;
};
/* False: nothing is known of it (any more), the result counts for nothing. The task counts as on
 * its way until the row is noted, or unpicked. */
bool rv_delivery_queue_result(struct rv_delivery_queue *queue,
                              const struct rv_notice_result *result, int64_t now,
                              struct rv_delivery_queue_verdict *ret_verdict);
/* The same for a pick that is expired. */
bool rv_delivery_queue_expire(struct rv_delivery_queue *queue, struct rv_task_id task, int64_t now,
                              struct rv_delivery_queue_verdict *ret_verdict);

/* When something is to be picked; INT64_MAX: not by itself. */
int64_t rv_delivery_queue_next_at(const struct rv_delivery_queue *queue);
/* A destination with more in its rows than was noted, and room again; where to read on is after
 * this place. False: there is none. */
bool rv_delivery_queue_hungry(const struct rv_delivery_queue *queue, struct rv_str *ret_destination,
                              struct rv_task_id *ret_after);
/* Its rows up to there were read; `all`: it has no more. */
void rv_delivery_queue_read(struct rv_delivery_queue *queue, struct rv_str destination,
                            struct rv_task_id after, bool all);

/* The rule that its counts, ring and indexes violate; NULL: none. Walks over all of it. */
const char *rv_delivery_queue_broken(const struct rv_delivery_queue *queue);

#endif
