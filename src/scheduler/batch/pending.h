/* pending.h - a call while the scheduler has it. */
#ifndef RV_SCHEDULER_BATCH_PENDING_H
#define RV_SCHEDULER_BATCH_PENDING_H

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "dispatch/seeker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call_ops;
struct pending_list;
struct rv_call;
struct rv_poll;
struct work;

/* A poll in this batch (alone, behind replies, or parked since an earlier one) and what it gets. */
struct matched {
    struct work *work;
    uint32_t step;
    uint64_t token; /* of its attempt */
    bool repeat;    /* handed out before, the answer was asked for again */
};

/* Where a read stands in a batch. */
enum read_turn {
    READ_DECIDED,
    READ_LATER, /* it comes with the next batch */
    READ_LARGE  /* it waits for room */
};

/* What has become, in this batch, of the ends of attempts that a poll tells of. */
struct ends {
    bool decided;           /* some are */
    bool left;              /* some are for a later batch */
    size_t evaluated;       /* so many are evaluated beside the batches, */
    struct rv_task_id task; /* ... one of them of this task */
};

/* A call while the scheduler has it. */
struct pending {
    struct rv_call *call;
    const struct call_ops *ops; /* of its kind, */
    bool changes;               /* as scheduler/tbl/call.def has it */
    struct rv_poll *poll;       /* POLL, or REPLIES with next: what it asks */
    struct seeker seeker;       /* the poll, once admitted */
    struct ends ends;           /* ... before it is */
    struct matched *matched;    /* on the batch's arena */
    struct work **works;        /* per item, on the batch's arena */
    int64_t until;              /* parked: monotonic instant of its end */
    struct rv_arena_mark mark;  /* parked for a task: before the newest answer that may leave */
    bool parked;
    bool admitted;            /* its boot, confirmations and repeats were looked at */
    uint64_t ends_from;       /* the batch in which the first end was asked for; 0: none was */
    uint64_t keys_in;         /* the batch that has looked up its keys with all others, */
    size_t keys_from;         /* ... from this one on, */
    size_t keys_count;        /* ... so many */
    bool large;               /* may wait for the next batch */
    bool bounded;             /* some of it does */
    bool left;                /* its caller has left: it takes nothing and does not wait */
    bool waits_turn;          /* another change of records comes first, or it is not whole */
    size_t number;            /* ACK, RAISE, RETRY: of its row among the batch's, from 1; 0: none */
    bool unanswerable;        /* the poll: no memory for what it was given */
    size_t evaluations;       /* of its decisions */
    size_t evaluating;        /* of these, under way */
    bool counted;             /* SUBMIT: it waits for its task, and all of it is counted */
    bool waits;               /* OPERATE: its decision is among these */
    struct rv_task_id awaits; /* an evaluation that is not its own, of this task; none: none */
    bool aside;               /* among those that wait for evaluations */
    enum read_turn read;      /* a read that is larger than others wait for */
    bool plain;               /* SHOW, SUBMIT: it waits without payloads, and is read then */
    bool waited;              /* SHOW, SUBMIT: what it waited for has come: it is read */
    unsigned tries;           /* batches in which a decision of it did not pass */
    struct pending *next;     /* in the batch, or among the parked of its task */
    struct pending *prev;
};

static inline struct pending *pending_of(struct seeker *seeker)
{
    return (struct pending *)(void *)((char *)seeker - offsetof(struct pending, seeker));
}

void pending_append(struct pending_list *list, struct pending *pending);
/* Before all that came later. */
void pending_insert(struct pending_list *list, struct pending *pending);
void pending_unlink(struct pending_list *list, struct pending *pending);
/* Moves all of `other` among those of the list, each before all that came later. */
void pending_merge(struct pending_list *list, struct pending_list *other);

#endif
