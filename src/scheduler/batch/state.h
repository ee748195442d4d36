/* state.h - all that a scheduler has between batches. */
#ifndef RV_SCHEDULER_BATCH_STATE_H
#define RV_SCHEDULER_BATCH_STATE_H

#include "base/arena.h"
#include "base/clock_tie.h"
#include "base/err.h"
#include "base/heap.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/prng.h"
#include "core/rows.h"
#include "dispatch/agents.h"
#include "scheduler/batch/absence.h"
#include "scheduler/batch/accounts.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/pending_list.h"
#include "scheduler/batch/registered.h"
#include "scheduler/batch/workflows.h"
#include "scheduler/counts.h"
#include "scheduler/scheduler.h"
#include "store/store.h"
#include "supervisor/supervisor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_call;

/* The newest look at the store's files. */
struct place {
    enum rv_err err; /* FULL, DISPLACED */
    const char *why; /* DISPLACED: borrowed from the store */
    bool untold;     /* no alert was raised for it yet */
    int64_t look_at; /* monotonic, as the other */
    int64_t tell_at; /* not before it */
};

/* Of the duties and of the watch, each known to its own files. */
struct bulks;
struct deliveries;
struct failures;
struct overdue;
struct steals;
struct watchers;
struct retention;

struct rv_scheduler {
    struct rv_scheduler_options options;
    struct rv_store *store; /* borrowed */
    char *boot;             /* owned */
    struct rv_enlistment enlistment;
    struct rv_id_maker ids;
    struct rv_prng prng;
    struct rv_arena arena; /* of the batch */
    struct batch batch;
    int64_t batch_number;
    int64_t lease_at;              /* when the instance's lease is renewed */
    bool unlisted;                 /* the instance was deposed, and is not enlisted again yet */
    int64_t last_now;              /* the store's clock at the last look */
    bool looked;                   /* this process has looked at it */
    int64_t first_now;             /* ... for the first time */
    int64_t moved_mono;            /* when it was seen to move, by the monotonic clock */
    struct rv_clock_tie clock_tie; /* between the two */
    int64_t wall_ahead_ms;         /* of the store's clock, when a jump of it was noted last */
    bool clock_alert;              /* nobody was called for it yet, */
    int64_t clock_alert_at;        /* nor shall be before, by the monotonic clock */
    bool full;                     /* the newest write found the disk full */
    bool unwritable;               /* ... or was refused for another reason that passes, or lost */
    int64_t unwritable_from;       /* the last look before that */
    int64_t damaged_at;            /* when damaged data was met last; 0: never */
    struct place place;
    struct shortage shortage;
    bool history_lost; /* the store does not have any more what was committed */
    struct absence absences[ABSENCES_MAX];
    size_t absences_count;
    struct registered registered;
    struct workflow_cache workflows;
    struct rv_supervisor supervisor;
    struct accounts accounts;
    struct evaluations evaluations;
    struct steals *steals;
    struct overdue *overdue;
    int64_t shares_at;   /* limits are divided, and read again */
    size_t shares_from;  /* slot of the held attempts from which on those of others' tasks are
                            looked for */
    int64_t takeover_at; /* tasks without a live owner are looked for */
    struct watchers *watchers;
    struct retention *retention;
    struct bulks *bulks;
    struct deliveries *deliveries;
    struct rv_delivery alerts_to; /* where alerts go: texts alone; url absent: nowhere */
    char alerts_destination[RV_URL_BYTES_MAX + 1];
    struct agents agents;
    struct rv_map waiters;       /* task -> struct pending_list *, owned: parked SHOW and SUBMIT */
    struct rv_heap parked_until; /* (monotonic instant, serial) of parked calls */
    struct rv_map owned;     /* open tasks that this server owns, where others write, too (own.c) */
    struct rv_map suspended; /* tasks that are, as far as they were looked at */
    struct rv_map parked_by_serial; /* serial -> struct pending *, owned */
    struct rv_map parked_polls;     /* (instance, hash of the poll) -> struct pending * */
    struct rv_call *finished;       /* answered in this batch, given back at its end */
    struct rv_call *finished_last;
    struct pending_list reads;    /* large ones, that wait for room */
    struct pending_list carried;  /* to be decided again in the next batch */
    uint64_t key_changes;         /* of the API keys since the start, from 1 */
    uint64_t key_changes_others;  /* the newest that was seen in the store: perhaps another's */
    uint64_t key_changes_checked; /* those after which calls aside were checked */
    bool more_due;                /* the next batch has work already */
    bool refused;                 /* the store refused the last batch */
    bool query_damaged;           /* because a query alone has met damaged data */
    bool lost;                    /* the store has nothing of the last batch, as it turned out */
    bool draining;
    struct rv_map refused_at_stop; /* (token, step): a reply whose decision takes long */
    struct rv_counts counts;
    struct failures *failures;
};

/* A refused batch is tried again after this part of the scan interval. */
enum { REFUSED_REST_PART = 4 };
/* When what could not be done now is done again. */
int64_t state_again_at(const struct rv_scheduler *s);
/* The task is looked at again at `at`. Without memory to note that, nothing is noted of it at all,
 * and the repair scan finds it. */
void state_look_again(struct rv_scheduler *s, struct rv_task_id id, int64_t at);
/* The monotonic clock; `otherwise` where nothing but the calls of run_batch shows it. */
int64_t state_mono_now(const struct rv_scheduler *s, int64_t otherwise);
/* For measuring; 0 if nothing is measured. */
int64_t counts_clock(const struct rv_scheduler *s);
/* For the changes that raise alerts; NULL: there is no webhook for them. */
const struct rv_delivery *state_alerts_to(const struct rv_scheduler *s);

/* For whoever is refused as DISPLACED: which file, and what to do. */
struct rv_str place_why(const struct rv_scheduler *s);

#endif
