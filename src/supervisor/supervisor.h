/* supervisor.h - finds the tasks whose time has come: election, wake-up heap, repair scan. */
#ifndef RV_SUPERVISOR_SUPERVISOR_H
#define RV_SUPERVISOR_SUPERVISOR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/heap.h"
#include "base/id.h"
#include "base/map.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The supervisor knows nothing of the business: it names tasks that must be looked at, and the
 * scheduler decides them. The heap is a cache; the truth is the rows, which the repair scan walks.
 * Each instance supervises the tasks that it owns. What is done for all of them is done by the
 * leader: its role is a lease row with an epoch, which each such change carries, and the store
 * refuses the change once another instance holds the role (RULES 8). */
struct rv_supervisor {
    struct rv_store *store; /* borrowed */
    int64_t scan_interval_ms;
    int64_t role_lease_ms;
    int64_t epoch; /* 0: another instance is the supervisor */
    bool taking;   /* the role was taken in this transaction, which is not committed */
    int64_t role_until;
    struct rv_heap heap; /* (instant, task) */
    struct rv_map wakes; /* task -> the instant that counts; a heap entry may be earlier */
    struct rv_task_id scan_after;
    struct rv_task_id piece_after; /* where the newest piece of the walk began */
    struct rv_task_id scan_until;  /* a walk leaves out what was made since it began */
    int64_t scan_next_at;
    size_t scan_rows_max; /* of a piece of the walk: RV_SCAN_ROWS_MAX, or less */
    uint64_t rounds;      /* walks over the open rows that came to their end */
    bool scan_first;      /* the first walk over the open rows since the start is under way */
};

/* A piece of the walk is read within one batch, and everybody else waits for it. */
enum { RV_SCAN_ROWS_MAX = 1000, RV_FINDINGS_MAX = 1000 };

void rv_supervisor_init(struct rv_supervisor *supervisor, struct rv_store *store,
                        int64_t scan_interval_ms, int64_t role_lease_ms);
void rv_supervisor_done(struct rv_supervisor *supervisor);

/* Inside a transaction: takes or renews the role when that is due (in its last quarter).
 * *ret_wrote: the transaction must be committed even if nothing else changes. */
RV_CHECK enum rv_err rv_supervisor_campaign(struct rv_supervisor *supervisor, int64_t now,
                                            bool *ret_wrote);
/* Whether this instance held the role before this transaction. One that is taking it must not read
 * yet what the holder of the role alone writes: the one before may still write until the claim is
 * committed. */
bool rv_supervisor_holds(const struct rv_supervisor *supervisor);
/* The claim was not committed, or another instance has taken the role: nothing is held, the next
 * batch asks again. */
void rv_supervisor_unclaim(struct rv_supervisor *supervisor);
/* The walk over the open rows that a start makes begins again, at once. */
void rv_supervisor_walk(struct rv_supervisor *supervisor);
/* What the newest piece of that walk gave was not written: the walk goes on from where it began. (A
 * walk that began anew with each refusal would not end on a store that refuses now and then.) */
void rv_supervisor_walk_piece_again(struct rv_supervisor *supervisor);
/* Whether the next piece of the repair scan is due, and which it is; asked before each batch, since
 * one without a piece has the newest one, too. The piece still needs its room. */
bool rv_supervisor_scan_name(struct rv_supervisor *supervisor, int64_t now,
                             struct rv_scan *ret_scan);
/* In the batch: the piece was read, and the walk moves on. What was made since it began is left out
 * of it. *ret_last: it is the last piece. False: the walk has begun anew since it was named, and
 * the piece is none of it. */
bool rv_supervisor_scan_take(struct rv_supervisor *supervisor, int64_t now, struct rv_scan *scan,
                             bool *ret_last);
/* What the last piece of the walk has given is written. */
void rv_supervisor_scan_over(struct rv_supervisor *supervisor, int64_t now);
/* Of the newest piece of the walk only what came up to this task was looked at: the walk goes on
 * from there, at once. */
void rv_supervisor_scan_on(struct rv_supervisor *supervisor, int64_t now, struct rv_task_id after);
/* Tasks whose instant has come, at most `max`. */
size_t rv_supervisor_due(struct rv_supervisor *supervisor, int64_t now,
                         struct rv_task_id *ret_tasks, size_t max);

/* The same tasks, mostly, which stay to be taken: those that come first, RV_HEAP_LEAST_MAX at most.
 * Gives their number. */
size_t rv_supervisor_next(struct rv_supervisor *supervisor, int64_t now,
                          struct rv_task_id *ret_tasks, size_t max);

/* From now on the task must be looked at at `wake_at`; 0: not by itself, which always succeeds.
 * MEMORY: what was noted before stands. */
RV_CHECK enum rv_err rv_supervisor_note(struct rv_supervisor *supervisor, struct rv_task_id task,
                                        int64_t wake_at);
/* The same, but an instant that is noted and comes before stays. */
RV_CHECK enum rv_err rv_supervisor_note_before(struct rv_supervisor *supervisor,
                                               struct rv_task_id task, int64_t wake_at);
/* Whether an instant is noted for the task. */
bool rv_supervisor_knows(const struct rv_supervisor *supervisor, struct rv_task_id task);
/* The earliest instant at which due or scan or campaign has something to do. */
int64_t rv_supervisor_next_at(const struct rv_supervisor *supervisor);

#endif
