/* rounds.h - the round trips of one batch to a shared store. */
#ifndef RV_SIM_ROUNDS_H
#define RV_SIM_ROUNDS_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

/* A batch begins with one round trip, which loads what it needs, and commits with another; so many
 * are counted as many. */
enum { ROUNDS_FEW = 2, ROUNDS_MANY = 5 };

enum round_of {
#define RV_STORE_OPERATION(name) ROUND_##name,
#include "store/tbl/operation.def"
#undef RV_STORE_OPERATION
    ROUND_OPERATIONS
};

/* Why a batch takes more, in ROUNDS_REASON(name, text); the first one that holds counts. */
#define ROUNDS_REASONS(ROUNDS_REASON)                                                              \
    ROUNDS_REASON(REFUSED, "a transaction that was refused, or whose outcome was unknown")         \
    ROUNDS_REASON(SCAN, "tasks that the repair scan has met")                                      \
    ROUNDS_REASON(RECORDS, "records of keys, limits and selections")                               \
    ROUNDS_REASON(DELIVERIES, "messages to webhooks")                                              \
    ROUNDS_REASON(QUERY, "queries")                                                                \
    ROUNDS_REASON(PAST, "rows of a task beside its open steps, or a second look at its revision")  \
    ROUNDS_REASON(WORKFLOW, "the first use of a workflow, or its publication")                     \
    ROUNDS_REASON(REPEATED, "a key that was submitted before")                                     \
    ROUNDS_REASON(DECISION, "long decisions")                                                      \
    ROUNDS_REASON(UNFORESEEN, "what was not foreseen")

enum rounds_reason {
#define ROUNDS_REASON(name, text) ROUNDS_##name,
    ROUNDS_REASONS(ROUNDS_REASON)
#undef ROUNDS_REASON
        ROUNDS_REASON_COUNT
};

/* Maximum number of tasks claimed by others that are remembered for one batch. */
enum { ROUNDS_HELD = 64 };

/* What was sent since the batch began. */
struct rounds {
    uint32_t sent[ROUND_OPERATIONS];
    uint32_t count;                      /* of all */
    uint32_t newest;                     /* that asked for the newest entry of a history alone */
    uint32_t keys;                       /* ... after the begin for nothing but keys */
    uint32_t decides;                    /* ... for the task of a long decision */
    const struct rv_scan *scan;          /* the piece of the walk that it has read; or NULL */
    uint32_t met;                        /* tasks of that piece that it has loaded after it */
    bool bulk;                           /* it commits a command of a bulk */
    bool repeats;                        /* one of the keys has a task */
    struct rv_task_id held[ROUNDS_HELD]; /* that another transaction had claimed */
    size_t held_count;
};

/* Of all batches of the world. */
struct rounds_sum {
    uint64_t batches;
    uint64_t unforeseen;
    uint64_t bulk;      /* with commands of a bulk, */
    uint64_t bulk_late; /* ... that needed what was not foreseen */
    uint64_t late;      /* that asked for keys or histories after they had begun */
};

struct coverage;
struct rv_batch;
struct rv_scan;
struct rv_wants;
struct server;
struct world;

const char *rounds_reason_text(enum rounds_reason reason);
void round_sent(struct server *s, enum round_of operation);
/* It was sent, and this is what the store has loaded. */
void round_loaded(struct server *s, const struct rv_wants *wants);
/* This is what it commits. */
void round_commits(struct server *s, const struct rv_batch *batch);
/* After each batch that went well. */
void check_rounds(struct world *w, struct server *s);

#endif
