/* memory_priv.h - what the files of the memory store share: rows, sorted sets, the data. */
#ifndef RV_STORE_MEMORY_MEMORY_PRIV_H
#define RV_STORE_MEMORY_MEMORY_PRIV_H

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/slew.h"
#include "sim/store/memory/memory.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- sorted.c: rows in the order of two numbers ---- */

struct sorted_entry {
    int64_t a;
    int64_t b;
    void *row;
};

/* Keys mostly come in rising order and leave in it: an insert is mostly an append, and the entries
 * after one that leaves at the front are not moved. */
struct sorted {
    struct sorted_entry *at; /* owned, from `front` before it on; the rows are not */
    size_t count;
    size_t room;  /* from `at` on */
    size_t front; /* entries of room before it */
};

/* Where (a, b) stands or would stand: the first entry that is not before it. */
size_t sorted_place(const struct sorted *set, int64_t a, int64_t b);
/* NULL when it is not there. */
struct sorted_entry *sorted_find(const struct sorted *set, int64_t a, int64_t b);
/* (a, b) must not be there. MEMORY leaves the set as it was. */
RV_CHECK enum rv_err sorted_insert(struct sorted *set, int64_t a, int64_t b, void *row);
void sorted_remove(struct sorted *set, struct sorted_entry *entry);
/* Frees the set, or with its rows. */
void sorted_done(struct sorted *set);
void sorted_free(struct sorted *set);

/* ---- records.c: records in the order of kind and key ---- */

struct records {
    struct rv_record **at; /* owned, and so are the rows */
    size_t count;
    size_t room;
};

/* Where it stands or would stand: the first that is not before it. */
size_t records_place(const struct records *set, struct rv_str kind, struct rv_str key);
/* NULL: there is none. */
struct rv_record *records_find(const struct records *set, struct rv_str kind, struct rv_str key);
/* Takes the place of the one with the same kind and key, which is given back (NULL: there was none,
 * and now there is one more). There is room, as records_reserve or a removal left it. */
struct rv_record *records_put(struct records *set, struct rv_record *row);
RV_CHECK enum rv_err records_reserve(struct records *set);
/* It is the caller's from now on. */
struct rv_record *records_remove(struct records *set, struct rv_str kind, struct rv_str key);
void records_free(struct records *set);

/* ---- memory.c: the data ---- */

/* One task with all that hangs on it. */
struct node {
    struct rv_task *row;    /* owned */
    struct sorted steps;    /* by number */
    struct sorted attempts; /* by step, number */
    struct sorted late;     /* by arrival in the ledger */
    struct sorted messages; /* by number */
    struct sorted history;  /* by number */
    struct sorted delivery; /* at most one row */
    bool queued;            /* stands in data.open, open or not */
};

struct key_node {
    struct rv_key_row *row; /* owned */
    struct key_node *next;  /* owned: another key with the same hash */
};

enum { ROLES_MAX = 4, ROLE_BYTES_MAX = 32 };

enum { INSTANCE_MAX = 255 };

struct role {
    char name[ROLE_BYTES_MAX];
    size_t name_bytes;
    uint64_t boot; /* of the instance that holds it, hashed; 0: nobody ever did */
    int64_t epoch;
    int64_t until;
};

struct instance {
    uint64_t boot;        /* hashed; 0: nobody ever had this number, or it was deposed: */
    uint64_t boot_before; /* ... this one */
    int64_t alive_at;
    int64_t lease_until;
    int64_t batch; /* the newest that it has committed */
};

/* An instance that a transaction deposes. */
struct deposes {
    uint8_t number;
    uint64_t boot;
};

/* The few values that a transaction may change beside rows. */
struct registry {
    struct role roles[ROLES_MAX];
    size_t roles_count;
    struct instance instances[INSTANCE_MAX + 1]; /* by number, from 1 */
    uint8_t newest;                              /* number given out last */
    int64_t enlistments;
    int64_t versions[RV_REGISTRY_COUNT];
    int64_t alive_at; /* when a batch was last committed: the clock's floor */
};

struct rv_store_memory_data {
    struct rv_map ids;   /* task id to node */
    struct sorted tasks; /* nodes, by id */
    struct sorted open;  /* nodes that are open, and some that were, by id */
    size_t open_count;
    int64_t open_by_state[RV_TASK_STATE_COUNT];
    struct sorted alerts;    /* by id */
    struct sorted notices;   /* deliveries of alerts, by their ids */
    struct sorted workflows; /* by id */
    struct records records;
    struct rv_map keys;    /* hash of a key to its key_node */
    struct rv_map claimed; /* task id to the instance whose transaction has it */
    struct registry registry;
    bool shared;
    struct rv_slew slew; /* where it is */
    unsigned opened;     /* stores that have it open */
    struct kept *kept;   /* owned, a ring: the newest transactions */
    size_t kept_first;   /* place of the oldest */
    size_t kept_count;
    size_t kept_room; /* 0: none are kept */
    uint64_t commits;
    uint64_t takeovers;                            /* of standbys: not among what they lose */
    rv_store_memory_wrong_before_fn *wrong_before; /* NULL: an assertion fails */
    void *wrong_before_self;                       /* borrowed */
};

struct memory {
    struct rv_store store;             /* first: what the callers hold */
    struct rv_store_memory_data *data; /* borrowed */
    struct rv_wall_clock clock;
    struct rv_slew slew; /* the store's clock, where the data is not shared */
    int64_t now;         /* what it showed last */
    uint8_t instance;    /* 0 before enlist */
    uint64_t boot;       /* hashed */
    uint64_t takeovers;  /* of the data, as this process knows of them */
    int64_t lease_ms;
    bool in_transaction;
    struct deposes deposes[INSTANCE_MAX]; /* with the open transaction */
    size_t deposes_count;
    struct claim {
        bool made;
        struct role before;
        struct role after;
    } claims[ROLES_MAX]; /* of the open transaction, by role */
};

/* A row with its texts in one block, to be freed with free; NULL: no memory. */
void *memory_row_copy(const struct rv_row_kind *kind, const void *row);
struct node *memory_node_find(const struct rv_store_memory_data *data, struct rv_task_id id);
uint64_t memory_key_hash(struct rv_str key);
const struct rv_key_row *memory_key_find(const struct rv_store_memory_data *data,
                                         struct rv_str key);
/* Of the task, or of the alert of that id, and the set in which it stands; NULL: there is none. */
const struct rv_delivery *memory_delivery_find(struct rv_store_memory_data *data,
                                               struct rv_task_id id, struct sorted **ret_set);
/* The newest of the source; NULL: there is none. */
const struct rv_alert *memory_alert_find(const struct rv_store_memory_data *data,
                                         struct rv_str source);
/* NULL: nobody ever had it. */
const struct role *memory_role_find(const struct registry *registry, struct rv_str name);
int64_t memory_clock_read(struct memory *store);
/* The row of the store's number is that of another process. */
bool memory_deposed(const struct memory *store);
/* Forgets what the transaction has claimed; whether that was anything. */
bool memory_claims_end(struct memory *store);

/* ---- commit.c ---- */

enum undo_kind {
    UNDO_NODE,  /* a task is new */
    UNDO_TASK,  /* a task's row was replaced */
    UNDO_ROW,   /* a row of a set was replaced, or is new (old: NULL) */
    UNDO_KEY,   /* a key is new */
    UNDO_TAKEN, /* a row was taken out of a set */
    UNDO_GONE,  /* a task was deleted: its node is the log's */
    UNDO_UNKEY, /* a key was deleted: it is the log's */
    UNDO_RECORD /* a record was replaced, is new (old: NULL) or gone (record: NULL) */
};

struct undo {
    enum undo_kind kind;
    struct node *node;
    struct sorted *set;
    int64_t a;
    int64_t b;
    void *old; /* owned */
    struct key_node *key;
    const struct rv_record *record; /* borrowed: stands in its set */
};

/* Frees the log and what is its own, once nothing of it will be taken back. */
void memory_log_free(struct undo *log, size_t count);
/* A node that stands nowhere any more. */
void memory_node_free(struct node *node);
/* Takes the writes back, the newest first. */
void memory_undo(struct rv_store_memory_data *data, const struct undo *log, size_t count);

/* ---- before.c ---- */

/* Of a change that passes its guards, before anything of it is written; its task's node, NULL: it
 * has none. */
void memory_befores_check(const struct rv_store_memory_data *data, const struct node *node,
                          const struct rv_change *change);

/* ---- keep.c ---- */

/* A transaction is about to be signed: takes its log over (owned, may be NULL), and the registry as
 * it was before. */
void memory_keep(struct rv_store_memory_data *data, struct undo *log, size_t count,
                 const struct registry *before);
void memory_kept_free(struct rv_store_memory_data *data);

/* ---- owners.c ---- */

/* The tasks of the load, those that it claims, steals and takes over among them. */
RV_CHECK enum rv_err memory_load_owned(struct memory *store, struct rv_wants *load);
/* The transaction is over: nothing is claimed by it. */
void memory_unclaim(struct memory *store);
/* It is about to be written: whom it deposes is deposed. False: one has renewed its lease. */
bool memory_depose(struct memory *store);

/* ---- memory.c, commit.c, read.c ---- */

/* The operations of store.h. */
#define RV_STORE_OPERATION(name) rv_store_##name##_fn memory_##name;
#include "store/tbl/operation.def"
#undef RV_STORE_OPERATION

/* ---- commit.c: a batch under way; sweep.c: the retention rule in it ---- */

struct commit {
    struct memory *store;
    struct rv_store_memory_data *data;
    struct undo *log; /* owned */
    size_t count;
    size_t room;
};

/* Room for one more entry must be there before the write that it stands for; NULL: no memory. */
struct undo *memory_log_next(struct commit *commit);
/* Out of its lists. */
void memory_node_unlink(struct rv_store_memory_data *data, struct node *node);
void memory_key_unlink(struct rv_store_memory_data *data, struct key_node *key);
/* Whether that epoch of the supervisor's role still holds. */
bool memory_supervises(const struct memory *store, int64_t epoch);
RV_CHECK enum rv_err memory_sweep(struct commit *commit, struct rv_sweep *sweep);

#endif
