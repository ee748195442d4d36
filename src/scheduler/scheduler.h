/* scheduler.h - the cycle: load, decide, commit, act, for a batch of calls at a time. */
#ifndef RV_SCHEDULER_SCHEDULER_H
#define RV_SCHEDULER_SCHEDULER_H

#include "base/err.h"
#include "base/fiber.h"
#include "base/hash.h"
#include "base/log_field.h"
#include "base/log_level.h"
#include "base/str.h"
#include "scheduler/call.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pure but for the store that it is given: no clock, no thread, no I/O of its own. One thread calls
 * it. The monotonic instants come from the caller, so a simulator can run it in virtual time. */
struct rv_scheduler;

/* Lines worth an operator's eye: alerts, absences, refused batches. The fields live as long as
 * the call. */
struct rv_scheduler_log {
    void (*write)(void *self, enum rv_log_level level, const char *event,
                  const struct rv_log_field *fields, size_t count);
    void *self;
};

/* The monotonic clock; without it, it shows what a batch is begun with. */
struct rv_scheduler_mono {
    int64_t (*now)(void *self);
    int64_t (*now_us)(void *self); /* for measuring alone; NULL: nothing is measured */
    void *self;
};

/* Where messages leave for their webhooks. */
struct rv_scheduler_outlet {
    /* Whether a webhook may be called. OK: its destination (scheme, host and port) is in
     * `ret_text`, ended by a NUL. Else what is wrong and the cure. */
    enum rv_err (*check)(void *self, struct rv_str url, char *ret_text, size_t text_bytes);
    /* Takes the notice over; what came of it comes back in a call DELIVERED. */
    void (*send)(void *self, struct rv_notice *notice);
    void *self;
};

/* Where copies of the store come from, for backups. */
struct rv_scheduler_copies {
    /* Between two batches: the store as the last of them has left it. */
    enum rv_err (*open)(void *self, struct rv_copy **ret_copy);
    void *self;
};

/* Who watches traces: told of a task, step or attempt once its end is committed. It must be quick:
 * what it cannot take at once it does without. Texts are borrowed for the call. */
struct rv_span;
struct rv_scheduler_spans {
    void (*take)(void *self, const struct rv_span *span);
    void *self;
};

/* The bytes of the store's files. */
struct rv_scheduler_size {
    int64_t (*bytes)(void *self);
    void *self;
};

/* Whether the store's files are where a start would find them. Asked between batches, once in a
 * scan interval. FULL: not ready. DISPLACED: nor is new work taken; *ret_why, which lives as long
 * as the scheduler, says why and what to do. Others end the process. */
struct rv_scheduler_files {
    enum rv_err (*look)(void *self, const char **ret_why);
    void *self;
};

/* Called after calls were finished, once for all of them: whoever waits for them is woken once. */
struct rv_scheduler_finished {
    void (*tell)(void *self);
    void *self;
};

/* Who sees to the calls that no batch has taken while the scheduler's thread waits for a shared
 * store. Told that it waits: after the monotonic instant `until`, about half a second longer than
 * the scan interval, these calls are refused (rv_call_refuse_away); INT64_MAX: it is answered. */
struct rv_scheduler_waits {
    void (*tell)(void *self, int64_t until);
    void *self;
};

/* Who lets callers in, and keeps the API keys in memory. Told of all of them at the start, and once
 * the store has others than this server has seen. `changes`: as rv_call_key.changes, it contains
 * all changes up to this one. The records live as long as the call. MEMORY: the batch is refused,
 * and the next one tells it again. */
struct rv_scheduler_keys {
    enum rv_err (*learn)(void *self, const struct rv_record *rows, size_t count, uint64_t changes);
    void *self;
};

struct rv_scheduler_options {
    struct rv_store *store; /* borrowed */
    struct rv_str boot;     /* random id of this process */
    int64_t pid;
    uint64_t seed; /* for what no call brings a seed for */
    struct rv_hash_key hash_key;
    int64_t scan_interval_ms; /* of the repair scan; 0: 1,000 */
    int64_t role_lease_ms;    /* of the supervisor's role; 0: 5,000 */
    size_t polls_parked_max;  /* 0: RV_POLLS_PARKED_MAX */
    size_t batch_bytes_max;   /* of the large calls that one batch decides; 0: RV_BATCH_BYTES_MAX */
    size_t findings_max;      /* due tasks decided in one batch; 0, and at most, RV_FINDINGS_MAX */
    size_t scan_rows_max;     /* of a piece of the scan; 0, and at most, RV_SCAN_ROWS_MAX */
    size_t circuits_max;      /* targets of one agent that are known; 0: RV_AGENT_CIRCUITS_MAX */
    int64_t retain_ms;        /* finished tasks are kept for so long; 0: for ever */
    int64_t postpone_ms_max;  /* a remote service postpones a step by so much; 0: 1 h */
    int64_t circuit_ms_max;   /* an agent's word keeps a circuit open so long; 0: 5 min */
    struct rv_scheduler_mono mono; /* asked when the store's clock is; NULL: never */
    struct rv_scheduler_log log;
    struct rv_scheduler_size size;         /* bytes NULL: not known */
    struct rv_scheduler_files files;       /* look NULL: nobody looks */
    struct rv_scheduler_finished finished; /* tell NULL: nobody waits */
    struct rv_scheduler_waits waits;       /* tell NULL: nobody does */
    struct rv_scheduler_keys keys;         /* learn NULL: nobody keeps them */
    struct rv_scheduler_copies copies;     /* open NULL: this store has none */
    struct rv_scheduler_outlet outlet;     /* send NULL: this server has no webhooks */
    struct rv_str alert_url;           /* borrowed: the webhook that alerts go to; absent: none */
    struct rv_scheduler_spans spans;   /* take NULL: nobody watches */
    const struct rv_fiber_ops *fibers; /* for evaluations; NULL: each runs to its end in one turn */
    int64_t turn_fuel;         /* of evaluations after a batch; 0: as much as takes about 1 ms */
    size_t decision_bytes_max; /* of memory of its expressions; 0: RV_DECISION_BYTES_MAX */
};

/* Takes its place in the store. Errors of the store pass through, and those of the outlet about
 * `alert_url`. */
RV_CHECK enum rv_err rv_scheduler_open(const struct rv_scheduler_options *options,
                                       struct rv_scheduler **ret_scheduler);
/* Finishes every parked call (RV_ERR_BUSY: the server is stopping) and forgets the rest. */
void rv_scheduler_close(struct rv_scheduler *scheduler);

/* One batch. What arrived before `mono_now` is among these calls or came with an earlier batch: an
 * attempt that ended later is not decided to have ended. Takes all `count` calls; those that can be
 * answered are finished before it returns, the others are parked or go into the next batch. BUSY,
 * IO, FULL, MEMORY: the store refused for now, the calls that had something to write were finished
 * with that error; FULL also as long as nothing was written since, or there is no room; DISPLACED:
 * the store's files are (`files`), and all else went well. COMMIT_UNKNOWN, CORRUPT, DEPOSED: the
 * caller ends the process and nobody was answered. */
RV_CHECK enum rv_err rv_scheduler_run_batch(struct rv_scheduler *scheduler, struct rv_call **calls,
                                            size_t count, int64_t mono_now);

/* Whether the newest batch was BUSY only because a query has met damaged data. That is logged as
 * `damage`, and says nothing about what is written. */
bool rv_scheduler_query_damaged(const struct rv_scheduler *scheduler);
/* How many milliseconds the two clocks of the newest batch may be apart: a store that is asked over
 * a network has read its own somewhere between the question and the answer. */
int64_t rv_scheduler_unsure_ms(const struct rv_scheduler *scheduler);
/* Milliseconds from mono_now until run_batch must be called, even without calls; 0: at once. */
int64_t rv_scheduler_next_wake(const struct rv_scheduler *scheduler, int64_t mono_now);

/* From now on nothing is parked, and parked calls are answered at once: before a clean stop. */
void rv_scheduler_drain(struct rv_scheduler *scheduler);

/* What it has done so far; the metrics show it. */
const struct rv_counts *rv_scheduler_counts(const struct rv_scheduler *scheduler);
/* The queue of the agent in that place of the list: its steps, and since when the oldest of them
 * waits. False: there are no more agents. The name is valid until the next batch. */
bool rv_scheduler_queue(const struct rv_scheduler *scheduler, size_t place,
                        struct rv_str *ret_agent, size_t *ret_waiting, int64_t *ret_since);
/* Between batches: the rule that its caches break, of those that hold whatever is in the store;
 * NULL: none. A debug build asserts it after each batch. */
const char *rv_scheduler_broken(const struct rv_scheduler *scheduler);
/* What the log line at start says. */
const struct rv_enlistment *rv_scheduler_enlistment(const struct rv_scheduler *scheduler);

#endif
