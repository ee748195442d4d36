/* tap_priv.h - one tap, for the two files that know it. */
#ifndef RV_SIM_TAP_PRIV_H
#define RV_SIM_TAP_PRIV_H

#include "base/err.h"
#include "sim/store/tap.h"
#include "sim/world/partition.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct world;

enum fate {
    FATE_NONE,
    FATE_BUSY,
    FATE_CONFLICT,
    FATE_FULL,
    FATE_DIES_BEFORE,
    FATE_DIES_AFTER,
    FATE_UNKNOWN_NO,
    FATE_UNKNOWN
};

struct tap {
    struct rv_store store; /* first: what the scheduler holds */
    struct rv_store *inner;
    struct world *world;
    enum fate fate;     /* of the next commit */
    uint32_t actor;     /* for its faults */
    bool misread;       /* what the process has in memory is not what the store has */
    bool dies;          /* ... in this commit: nothing can be asked any more */
    bool dead;          /* ... and has died: nothing is answered any more */
    int64_t now;        /* of the open transaction */
    int64_t newest;     /* latest store time that the process has received */
    int64_t looked;     /* what the store's clock showed at the newest begin; 0: none yet, */
    int64_t looked_at;  /* and when, in virtual time */
    bool decided;       /* the batch has its instant, that of its first transaction: */
    int64_t decided_at; /* what is decided is decided then, also where it is written in pieces */
    int64_t begun_at;   /* ... in virtual time */
    int64_t claimed;    /* the epoch that it claims; 0: none */
    int64_t full_until; /* virtual time */
    int64_t asked_at;   /* ... of the newest question that may take long; INT64_MAX: of another */
    struct server *server;
    bool inside;           /* a transaction is open, */
    uint64_t connection;   /* ... that came over this one */
    uint64_t sent;         /* number of its newest transaction */
    uint64_t heard;        /* number of the newest transaction that the process knows to be there */
    bool owes_alarm;       /* one that it knew to be there is lost */
    struct rv_batch *late; /* borrowed: still on its way, and its sender waits no longer; or NULL */
    int64_t late_at;       /* ... virtual time at which it arrives */
};

/* To the store, or back from it. BUSY: nobody answers. CORRUPT: the process is dead. */
enum rv_err tap_travel(struct tap *tap, enum way way);
/* What a load has given: the clock, and rows that checkers look at. */
void tap_wants_read(struct tap *tap, const struct rv_wants *wants);

/* The operations of store.h. */
#define RV_STORE_OPERATION(name) rv_store_##name##_fn tap_op_##name;
#include "store/tbl/operation.def"
#undef RV_STORE_OPERATION

#endif
