/* batch.h - one turn of the cycle. */
#ifndef RV_SCHEDULER_BATCH_BATCH_H
#define RV_SCHEDULER_BATCH_BATCH_H

#include "base/err.h"
#include "base/id.h"
#include "base/map.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/pending_list.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pending;
struct rv_arena;
struct rv_delivery_queue_pick;
struct rv_key_row;
struct rv_buf;
struct rv_notice;
struct rv_scheduler;
struct rv_workflow_row;
struct work;

/* Lists of records that one load reads. */
enum { BATCH_LISTS_MAX = 3 };

/* One turn of the cycle. */
struct batch {
    uint64_t turn; /* counts the batches of this process */
    int64_t now;
    int64_t expected_now; /* before it has begun: what the store's clock will show */
    int64_t shown_mono;   /* monotonic instant at which it has shown `now` */
    int64_t begin_ms;     /* how long the newest load took with which a batch begins */
    int64_t mono_now;     /* monotonic: the store's clock showed `now` then at the earliest, */
    int64_t mono_last;    /* ... and then at the latest */
    int64_t heard_until;  /* monotonic: replies and renewals that arrived before are decided ... */
    int64_t ends_until;   /* ... the same by the store's clock: what ends by then has ended */
    struct rv_arena *arena;
    struct work *works;        /* every task that the batch touches */
    struct rv_map works_by_id; /* id -> struct work * */
    struct rv_map skipped;     /* tasks that another transaction has claimed */
    struct rv_map named;       /* id -> the load that has named it last, */
    uint64_t loads;            /* ... by its number */
    struct pending_list calls;
    struct pending *damaged;    /* the query that met rows which cannot be read; NULL: none */
    struct pending_list behind; /* large calls whose turn is a later batch's */
    struct rv_map left;         /* (token, step number): when a reply or renewal came that waits */
    struct rv_map by_serial;    /* calls of the batch, once one of them may have left */
    const struct rv_key_row *key_rows; /* that the calls have named; NULL: not looked up */
    struct rv_task_id *due;            /* taken from the supervisor's heap */
    size_t due_count;
    struct rv_workflow_row *publishes;
    size_t publishes_count;
    struct rv_ack *acks;
    size_t acks_count;
    struct rv_raise *raises;
    size_t raises_count;
    struct rv_record_change *records;
    size_t records_count;
    size_t records_room;
    unsigned record_changes; /* calls that change records */
    struct rv_task_id held;  /* the selection of which one of them writes a pause or its end */
    struct rv_delivery_change *deliveries;
    size_t deliveries_count;
    size_t deliveries_room;
    bool place_told; /* the raises have the alert about files that are displaced */
    bool clock_told; /* they raise the alert about a jump of the wall clock */
    bool unheard;    /* they raise the alert about alerts that are not heard */
    struct rv_delivery_queue_pick *picks; /* to be sent once the batch is written */
    struct rv_notice **notices;           /* ... as they leave; owned until then */
    size_t picks_count;
    bool must_commit; /* the role was renewed, or the lease, or somebody is deposed */
    bool renew;       /* the lease is */
    bool renewed;     /* ... and that is written */
    const struct rv_server *servers; /* that live, or own tasks; NULL: not asked for */
    size_t servers_count;
    bool loaded; /* with its begin */
    bool cut;    /* the load had no room for all that was asked for */
    bool scans;  /* it reads this piece of the walk, */
    struct rv_scan scan;
    bool scan_last;                               /* ... which is the last one */
    struct rv_record_list lists[BATCH_LISTS_MAX]; /* that its load reads (records.c): */
    struct rv_record_list *division; /* how limits are divided; NULL: not in this batch */
    struct rv_record_list *reports;  /* what servers report of that; NULL likewise */
    bool looks_for_orphans;          /* the load has asked for tasks without a live owner */
    bool deposes;                    /* servers whose lease is over, with what it writes */
    int64_t orphaned_at;    /* the owners of tasks that it takes over were alive then; 0: none */
    struct rv_sweep *sweep; /* NULL: none in this batch */
    struct rv_str *ready;   /* of rv_batch */
    size_t ready_count;
    bool swept;           /* its transaction was committed */
    bool wrote;           /* a transaction of it was committed */
    bool lost;            /* its commit had an unknown outcome, and the store has nothing of it */
    bool histories;       /* it adds to the histories of tasks, likely */
    bool forgot;          /* the store has lost what batches before it have written */
    enum rv_err refused;  /* OK, or with what the store has refused a piece of it for now */
    enum rv_err taskless; /* OK, or why publishes, acks, raises and records were not written */
    int64_t begun_us;     /* 0: nothing is measured */
    unsigned read_tries;  /* reads that were found to be large */
    bool large_begun;     /* an item of a large call was decided, */
    int64_t large_us;     /* for the first time then */
    size_t large_bytes;   /* of such items */
    size_t handed_bytes;  /* inputs of the requests handed out */
    size_t ends;          /* of attempts, begun by what agents tell */
    enum share share;     /* of the part that is under way */
    size_t share_from;    /* bytes of the arena as it began, or went on */
    size_t shares[SHARE_COUNT]; /* bytes of the arena so far, without those of that part since */
};

/* Room for one more record of the batch; NULL: no memory. It may move those before it. */
struct rv_record_change *batch_record(struct rv_scheduler *s);
/* Gives the batch a record as of now; key and value are copied. MEMORY, also when the value could
 * not be written whole. */
RV_CHECK enum rv_err record_put(struct rv_scheduler *s, struct rv_record_change made,
                                const struct rv_buf *value);
/* Before the batch begins: its load reads this list, which is given back. */
struct rv_record_list *records_name(struct rv_scheduler *s, struct rv_wants *wants,
                                    struct rv_record_list list);
/* In the batch: the list is there, or is read now, if that load had no memory. */
RV_CHECK enum rv_err records_read(struct rv_scheduler *s, struct rv_record_list *list);

#endif
