/* store.h - the state store in the words of the pattern; every backend keeps this contract. */
#ifndef RV_STORE_STORE_H
#define RV_STORE_STORE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/time.h"
#include "core/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One thread uses a store. Work happens between begin and commit or rollback; lists may also be
 * called outside. Rows that are read are built on the arena of the call; all reads see what is
 * committed, those of one transaction the same state of it. Where several instances write, what was
 * read may have changed by the time of the commit: its guards tell. Errors of every call: BUSY, IO,
 * FULL, MEMORY (try again), CORRUPT (exit), LIMIT (the arena is full).
 *
 * A row in which one value is lost, or is none that it can have (somebody edited the file, a bit
 * has flipped) is no error: a task or step comes as `unreadable`, with 0 for that value, any other
 * row with an enum outside of its table. Only its id is to be relied on. An unreadable task that is
 * written keeps every column but revision, process_state, ended_at, locked_by and the errors, so
 * that it can be mended by hand; an error that is lost stays so until another is written in its
 * place. An unreadable step is never written. */

/* All that one batch changes in one task. Guarded: the task row must have `revision_before` (0: it
 * must not exist), `key` must be free, `epoch` (0: none) must be that of the supervisor's role;
 * looked at in the order epoch, revision, key. A change that does not pass its guard writes nothing
 * at all and says why in `outcome`; the others go on. Changes apply in their order: a later one
 * sees those before it, so one task may change twice in a batch. */
struct rv_change {
    const struct rv_task *task; /* as it shall be; its revision is revision_before + 1 */
    int64_t revision_before;
    int64_t at; /* when it was decided, by the store's clock */
    /* The row as it was loaded, with all columns and that revision; NULL: not known, and of an
     * insert. Only for speed: a store need not write a text again that is equal in both rows, and
     * writes everything where the row before is not known. A change that passes its guard finds
     * this row stored, since a task's rows change with its revision alone; a store relies on that.
     * Another row could leave a stored text in place of the new one, and do nothing else. The
     * memory store compares. */
    const struct rv_task *task_before;
    int64_t epoch;
    const struct rv_key_row *key;   /* NULL: none */
    const struct rv_record *record; /* written over what is there; NULL: none */
    const struct rv_step *const *steps;
    const bool *steps_new; /* steps_new[i]: insert, else replace */
    /* steps_before[i]: as task_before, and NULL likewise; loaded with the task or after it. NULL:
     * none is known. */
    const struct rv_step *const *steps_before;
    size_t steps_count;
    const struct rv_attempt *attempts; /* all inserts */
    size_t attempts_count;
    const struct rv_late_reply *late_replies;
    size_t late_replies_count;
    const struct rv_alert *alerts;
    size_t alerts_count;
    const struct rv_delivery *alerts_to; /* where they go (texts alone count); NULL: nowhere */
    /* Closes the task's open alerts before the new ones are raised; but not UNDELIVERABLE, and
     * LATE_DONE only of the steps `late_over`. */
    bool close_alerts;
    const uint32_t *late_over;
    size_t late_over_count;
    const struct rv_message *messages; /* all inserts */
    size_t messages_count;
    const struct rv_history_row *history; /* all inserts */
    size_t history_count;
    /* With messages, NULL: they go to no webhook. Inserted as it is when the task has none; else
     * `last` moves on, and `since` and `due_at` are taken over if nothing was waiting. */
    const struct rv_delivery *delivery;
    enum rv_err outcome; /* set by commit: OK, CONFLICT, DUPLICATE (key), DEPOSED */
};

/* What a batch changes beside tasks. */
struct rv_ack {
    int64_t alert;
    int64_t at;
    struct rv_str by;
    enum rv_err outcome; /* set by commit: OK (also when it was acknowledged before) or NOT_FOUND */
};

/* The row with which an alert begins its way. */
static inline struct rv_delivery rv_delivery_of_alert(const struct rv_alert *alert,
                                                      const struct rv_delivery *to)
{
    return (struct rv_delivery){.task = {alert->id},
                                .next = 1,
                                .last = 1,
                                .since = alert->raised_at,
                                .due_at = alert->raised_at,
                                .destination = to->destination,
                                .url = to->url,
                                .alert = true};
}

/* An alert of no task, raised unless one of its source is open. */
struct rv_raise {
    struct rv_alert alert;
    const struct rv_delivery *to; /* as alerts_to of a change */
    enum rv_err outcome;          /* set by commit: OK or DUPLICATE */
};

/* A record to be written over what is there under its kind and key, or to be taken away. Guarded by
 * `epoch` as a change is. They apply in their order. */
struct rv_record_change {
    struct rv_record row; /* gone: kind and key alone count */
    bool gone;            /* also when there is none */
    int64_t epoch;
    /* What was read of the other records of its kind has decided it: the version of that kind has
     * to be `registry_before` still (rv_wants). An embedded store does not look at that. */
    bool guarded;
    int64_t registry_before;
    enum rv_err outcome; /* set by commit: OK, DEPOSED, or CONFLICT with that version */
};

/* What came of a delivery, or of an operator's word about it. Guarded by `epoch` as a change is,
 * and by the number and the failures of the message that it is about. Looked at after the changes
 * of its batch. */
struct rv_delivery_change {
    struct rv_delivery row; /* next, failures, since, due_at and given_up are written */
    uint32_t next_before;
    uint32_t failures_before;
    int64_t epoch;
    const struct rv_alert *alert;       /* raised; NULL: none */
    const struct rv_delivery *alert_to; /* as alerts_to of a change */
    bool all_alerts;     /* no row: all alerts given up wait again; `epoch` guards alone */
    bool close_alert;    /* closes the task's open alerts UNDELIVERABLE */
    enum rv_err outcome; /* set by commit: OK, CONFLICT (also when it is gone), DEPOSED */
};

/* A piece of the retention rule, which walks over the tasks and over the keys in turn. Tasks are
 * looked at by ascending id; one that has ended at `ended_by` or before, and of whose messages none
 * waits for its delivery, is deleted with all that hangs on it. Its key stays, and is deleted by
 * the id of the task: when the task is not there any more and was made at `keys_by` or before. The
 * walk over the keys follows that over the tasks and never passes it. With the first piece go
 * alerts of no task that were acknowledged at `ended_by` or before. Looked at after all else of the
 * batch, so that what the batch has opened again stays. */
struct rv_sweep {
    int64_t ended_by;
    int64_t keys_by;
    size_t
        rows_max; /* of each walk, that are looked at or deleted; the rows of a task go together */
    int64_t us_max; /* of both walks, by now_us; each takes one step however long that is */
    int64_t (*now_us)(void *self); /* NULL: not measured */
    void *self;
    int64_t epoch; /* guards all of it as that of a change does */
    /* Where the next piece goes on, set by commit. All none: from the beginning. */
    struct rv_task_id tasks_after;
    struct rv_task_id keys_after;
    bool tasks_over;
    bool keys_over;
    int64_t took_us;   /* set by commit; 0: not measured */
    size_t tasks_gone; /* set by commit */
    size_t keys_gone;
    size_t alerts_gone;  /* of no task */
    enum rv_err outcome; /* set by commit: OK or DEPOSED */
};

static inline bool rv_sweep_begins(const struct rv_sweep *sweep)
{
    return sweep->tasks_after.value == 0 && sweep->keys_after.value == 0 && !sweep->tasks_over &&
           !sweep->keys_over;
}

struct rv_batch {
    struct rv_change *changes;
    size_t changes_count;
    const struct rv_workflow_row *workflows; /* inserts; the caller looked for the name first */
    size_t workflows_count;
    struct rv_ack *acks;
    size_t acks_count;
    struct rv_raise *raises;
    size_t raises_count;
    struct rv_record_change *records;
    size_t records_count;
    struct rv_delivery_change *deliveries;
    size_t deliveries_count;
    struct rv_sweep *sweep; /* NULL: none */
    /* Agents of which steps wait here from now on, and none did before. The other servers are told
     * when all is written, perhaps late, perhaps never; a store of one server tells nobody. */
    const struct rv_str *ready;
    size_t ready_count;
    bool renew; /* the instance's lease begins anew, or ends now with `resign` */
    bool resign;
    int64_t number; /* written into the instance's row; counts up by one per instance */
};

/* Who uses the store. Filled by enlist, but for the lease. */
struct rv_enlistment {
    int64_t lease_ms; /* asked for: who does not renew it for so long, where others write, too, is
                         deposed, and loses its tasks */
    uint8_t instance; /* number of this instance, part of its ids */
    int64_t last_alive_at; /* when any instance last committed or renewed a role, or the first one
                              enlisted; 0: new store */
    int64_t open_tasks;
    int64_t open_by_state[RV_TASK_STATE_COUNT];
    bool created; /* the store is new */
    bool copied;  /* it was a copy (copy.h) of a store that may have gone on after last_alive_at */
    bool shared;  /* others may write at any time */
};

/* Filter and place of a list; lists are keyset pages, newest first. All that is given must hold.
 * The index that fits best is walked, and what else is asked for is looked at there. */
struct rv_task_filter {
    bool by_state;
    enum rv_task_state state;
    bool suspended;           /* only those that are, in whatever state */
    struct rv_str workflow;   /* "namespace/name" or "namespace/name:version"; absent: any */
    struct rv_task_id before; /* only older ones; none: from the newest */
    struct rv_task_id from;   /* not older than this one; none: to the oldest */
    struct rv_str agent;      /* open tasks that stand at a step of this agent: one that has no end,
                                 or any where the task is in error */
    struct rv_str error_type; /* of rv_task_error: its whole type, or what follows a slash */
    struct rv_str tag;        /* as rv_tag_needle has it, of tag_name and tag_value */
    struct rv_str tag_name;
    struct rv_str tag_value;
};

/* Little of an open task: enough to see whether what is known of it is as old as its row. */
struct rv_scanned {
    struct rv_task_id id;
    int64_t revision;
    enum rv_task_state state; /* of an unreadable task perhaps 0 */
};

/* A piece of the walk over the open tasks that this instance owns (locked_by; in an embedded store
 * these are all), by ascending id, for the start and the repair scan. */
struct rv_scan {
    struct rv_task_id after;
    size_t rows_max;
    bool whole; /* the tasks are loaded as well, from the first one on, as far as bytes_max goes */
    struct rv_scanned *rows; /* has room for rows_max */
    size_t count;            /* set by the store; less than rows_max: there are no more */
};

/* Records of one kind, by ascending key (order of the bytes). */
struct rv_record_list {
    struct rv_str kind;
    struct rv_str after;    /* those that come after this key; absent: from the first one on */
    size_t most;            /* 0: all of them */
    struct rv_record *rows; /* set by the store, on the arena of the load */
    size_t count;
};

/* The role whose epoch guards changes. */
#define RV_ROLE_SUPERVISOR "supervisor"

enum { RV_LOAD_PIECE = 8 };

/* How a load has come to a task. */
enum rv_loaded_how {
    RV_LOADED_ASKED,
    RV_LOADED_SKIPPED, /* asked for as a claim, but another transaction has it: it is not loaded */
    RV_LOADED_STOLEN,  /* a step of it waits for an agent; claimed */
    RV_LOADED_ORPHAN,  /* it has no live owner; claimed */
    RV_LOADED_OVERDUE, /* a look has found it; claimed */
    RV_LOADED_MET      /* the walk has met it */
};

/* A task and its open steps, as one instant has them. */
struct rv_loaded {
    struct rv_task_id id;
    enum rv_loaded_how how;
    const struct rv_task *task;   /* NULL: there is none */
    uint32_t history_last;        /* the newest number of its history; 0: none, or not asked for */
    const struct rv_step **steps; /* in the order of task->open, without those that are missing */
    size_t steps_count;
};

/* How far the steps that wait for an agent were looked at: for each priority the newest that was
 * found. All zero: from the first one on. */
struct rv_waiting_place {
    int64_t since[RV_PRIORITIES]; /* it waits since then */
    struct rv_task_id task[RV_PRIORITIES];
};

/* A look for steps that wait for an agent, whoever owns their tasks: those with the first places in
 * line, a level of priority being worth RV_PRIORITY_WORTH_MS of waiting. Steps whose timeout has
 * passed are left to the owners of their tasks, which would find them claimed. */
struct rv_steal {
    struct rv_str agent;
    size_t most;                    /* tasks */
    struct rv_waiting_place *place; /* the look begins after it, and moves it */
};

/* An instance whose lease has been over for so long may be deposed. */
enum { RV_LEASE_MARGIN_MS = 1000 };

/* A server that lives, or the owner of an open task. */
struct rv_server {
    uint8_t number;
    bool lives; /* it is enlisted, and not deposed */
};

/* Of a workflow; `version` none: the newest one. */
struct rv_workflow_name {
    struct rv_str space;
    struct rv_str name;
    struct rv_str version;
};

/* What every server keeps in memory until it changes. Each has a version: a transaction that writes
 * or deletes a record of API keys or of agents' limits, or publishes a workflow, raises it, and one
 * that is lost takes that back. An embedded store reports 0 for all of them: its one server makes
 * every change itself. */
enum rv_registry {
    RV_REGISTRY_API_KEYS,
    RV_REGISTRY_AGENT_LIMITS,
    RV_REGISTRY_WORKFLOWS,
    RV_REGISTRY_COUNT
};

/* A piece of a look at all open tasks, whoever owns them, by ascending id. It finds those in which
 * something should have happened by `before`: an open step has an instant (wake_at, deadline) that
 * is not later, or it is compensated, no step is open, and quiet_at is not later. Not those in
 * error. */
struct rv_look {
    struct rv_task_id after;
    size_t rows_max; /* that are looked at */
    size_t most;     /* that are found: the look ends with them */
    int64_t before;
    struct rv_task_id next; /* set by the store: where it goes on; none: there are no more tasks */
};

/* What a batch asks for together: one round trip to the store. A claimed task is this transaction's
 * until its end: others that claim it, too, pass it over. Their changes of it, however, meet the
 * guards alone. A transaction that has been silent for as long as a lease is over: a server that is
 * frozen in the middle of it keeps nothing. */
struct rv_wants {
    struct rv_arena *arena; /* of the results, the arrays included */
    const struct rv_task_id *ids;
    size_t count;
    size_t claims;    /* the last so many of the ids are claimed */
    size_t bytes_max; /* of the arena: with this much taken, no more tasks are loaded. The first one
                         always is, and the last ones, RV_LOAD_PIECE at most, may exceed it */
    const struct rv_str *keys; /* of submissions */
    size_t keys_count;
    const struct rv_workflow_name *names; /* which workflows they mean, as find_workflow says */
    size_t names_count;
    bool histories;                /* the newest number of each task's history as well */
    const struct rv_steal *steals; /* in an embedded store there is nothing to steal, */
    size_t steals_count;
    size_t orphans_max; /* ... and nobody's tasks. Else: the transaction deposes the instances whose
                           lease and margin are over, and so many open tasks are given whose owner
                           is deposed, or was never there */
    struct rv_look *look; /* NULL: none. An embedded store does not look */
    struct rv_scan *scan; /* NULL: none */
    struct rv_record_list *records;
    size_t records_count;
    bool servers_wanted;
    /* Set by the store. */
    struct rv_server *servers; /* by ascending number; NULL: not asked for */
    size_t servers_count;
    struct rv_loaded *tasks; /* for the ids in their order, then what was found beside */
    size_t tasks_count;
    bool cut;                            /* there were more, beyond the bytes */
    struct rv_key_row *key_rows;         /* for each key; `task` 0 where it is free */
    int64_t *name_ids;                   /* for each name; 0: there is no such workflow */
    int64_t registry[RV_REGISTRY_COUNT]; /* versions, not newer than what is read after this */
    int64_t now;         /* what the store's clock showed then: no row was changed after it */
    int64_t deposed_at;  /* when the one of those now deposed was alive that lived the longest; 0:
                           none is. Else the transaction is to be committed */
    int64_t orphaned_at; /* the same of the owners of the orphans that it has found, whoever has
                            deposed them; 0: it has found none, or nobody knows */
};

struct rv_store;

typedef void rv_store_close_fn(struct rv_store *store);

/* Takes a number for this process (its row: boot id, pid, host) and reads when the store was last
 * alive. Called first, and again by an instance that was deposed, or does not know whether it is
 * enlisted. Embedded stores have one instance: any other row is dead. A shared store gives a number
 * again when its row has been still for long and no open task is owned by it, or else that of the
 * row that has been still the longest, if its lease is over; BUSY: all numbers live. */
typedef enum rv_err rv_store_enlist_fn(struct rv_store *store, struct rv_str boot, int64_t pid,
                                       struct rv_enlistment *ret_enlistment);

/* Opens a transaction, looks at the instance's own row, loads what is asked for (NULL: nothing), as
 * rv_store_load_fn does, in the same round trip, and reads the store's clock, which never goes
 * back, also not over a restart (a floor is recorded with each batch), and does not jump with the
 * wall clock while the store is open (RULES 9; `wall_ahead_ms`). DEPOSED: the row is another's, or
 * gone: the instance enlists again. WENT_BACK, once to each instance: a standby has taken over,
 * perhaps without the newest of what was committed, by this instance or by another whose rows it
 * has read; nothing that was remembered is worth anything, for the number of a lost revision is
 * given again. No transaction is open after an error. */
typedef enum rv_err rv_store_begin_fn(struct rv_store *store, struct rv_wants *load,
                                      int64_t *ret_now);
/* Writes the whole batch: OK means that everything whose outcome is OK is durable. Any other
 * result: nothing of the batch is written, outcomes are undefined; COMMIT_UNKNOWN: perhaps all of
 * it is, ask `committed`; CORRUPT: perhaps all of it is. INVALID: one of the changes cannot be
 * written (it inserts a step, attempt, alert or workflow that is there, or replaces a step that is
 * not): halve the batch. DEPOSED: the instance's own row is another's: nothing is written, and it
 * enlists again. The transaction is over in every case. A batch in which nothing is to be written
 * leaves no trace, not even its number. */
typedef enum rv_err rv_store_commit_fn(struct rv_store *store, struct rv_batch *batch);
typedef void rv_store_rollback_fn(struct rv_store *store);
/* How long a shared store is waited for. */
enum { RV_STORE_BACK_MS = 60 * RV_SECOND_MS };

/* After COMMIT_UNKNOWN: is the batch of that number in the store? If not, it never will be: a
 * session that is still at work on it is waited for or ended first. A shared store that gives no
 * answer is asked again, with pauses of 100 ms up to 2 s, for RV_STORE_BACK_MS of the monotonic
 * clock. An instance that was deposed meanwhile is answered, too, while nobody has its number. An
 * error: it cannot be asked, and the process ends. DEPOSED: nor later, the instance's own row is
 * another's. SQLite can never be asked after a failed write or sync: it answers IO at once to this
 * and every later call, nobody may be answered, and the restart decides from the file. */
typedef enum rv_err rv_store_committed_fn(struct rv_store *store, int64_t number,
                                          bool *ret_committed);

/* By id, NULL where there is none. */
typedef enum rv_err rv_store_load_tasks_fn(struct rv_store *store, struct rv_arena *arena,
                                           enum rv_columns columns, const struct rv_task_id *ids,
                                           size_t count, const struct rv_task **ret_tasks);
typedef enum rv_err rv_store_load_steps_fn(struct rv_store *store, struct rv_arena *arena,
                                           enum rv_columns columns, const struct rv_step_id *ids,
                                           size_t count, const struct rv_step **ret_steps);
/* Tasks with their open steps, and keys. A task and its steps are of one instant, also where others
 * write at the same time; rows of two loads need not be. */
typedef enum rv_err rv_store_load_fn(struct rv_store *store, struct rv_wants *load);
/* NULL where there is none. By id, or by namespace + name (+ version; absent: the one published
 * last). */
typedef enum rv_err rv_store_load_workflow_fn(struct rv_store *store, struct rv_arena *arena,
                                              int64_t id, const struct rv_workflow_row **ret_row);
typedef enum rv_err rv_store_find_workflow_fn(struct rv_store *store, struct rv_arena *arena,
                                              struct rv_str space, struct rv_str name,
                                              struct rv_str version,
                                              const struct rv_workflow_row **ret_row);

/* The lease on a role ("supervisor"): taken when free, expired or held by a dead instance, with the
 * next epoch; renewed when held by this instance. *ret_epoch 0: another holds it. *ret_until: its
 * end. Outside of a transaction it is one of its own; inside, a part of it. */
typedef enum rv_err rv_store_claim_role_fn(struct rv_store *store, struct rv_str role,
                                           int64_t lease_ms, int64_t *ret_epoch,
                                           int64_t *ret_until);

/* Pages of at most `limit` rows; *ret_count < limit: no more. list_tasks may stop early to bound
 * its work: then *ret_next is where to go on, else it is none. */
typedef enum rv_err rv_store_list_tasks_fn(struct rv_store *store, struct rv_arena *arena,
                                           enum rv_columns columns,
                                           const struct rv_task_filter *filter, size_t limit,
                                           struct rv_task *ret_tasks, size_t *ret_count,
                                           struct rv_task_id *ret_next);
/* Of one task, by ascending number, after `after`. */
typedef enum rv_err rv_store_list_steps_fn(struct rv_store *store, struct rv_arena *arena,
                                           enum rv_columns columns, struct rv_task_id task,
                                           uint32_t after, size_t limit, struct rv_step *ret_steps,
                                           size_t *ret_count);
/* The ended attempts of one task (step.number 0) or one step, by step and number, after the attempt
 * `after` of the step `after_step`. */
typedef enum rv_err rv_store_list_attempts_fn(struct rv_store *store, struct rv_arena *arena,
                                              struct rv_step_id step, uint32_t after_step,
                                              uint32_t after, size_t limit,
                                              struct rv_attempt *ret_attempts, size_t *ret_count);
/* The ended attempt of a step that has this token, without reading the step's others; *ret_found
 * false: there is none. */
typedef enum rv_err rv_store_find_attempt_fn(struct rv_store *store, struct rv_arena *arena,
                                             struct rv_step_id step, uint64_t token,
                                             struct rv_attempt *ret_attempt, bool *ret_found);
/* In the order in which they came, without the first `skip`: of one task (step.number 0) or of one
 * attempt of a step. */
typedef enum rv_err rv_store_list_late_replies_fn(struct rv_store *store, struct rv_arena *arena,
                                                  enum rv_columns columns, struct rv_step_id step,
                                                  uint32_t attempt, size_t skip, size_t limit,
                                                  struct rv_late_reply *ret_rows,
                                                  size_t *ret_count);
/* Newest first, older than `before` (0: from the newest); `open_only`: neither acknowledged nor
 * closed; `task` none: of all. */
typedef enum rv_err rv_store_list_alerts_fn(struct rv_store *store, struct rv_arena *arena,
                                            struct rv_task_id task, bool open_only, int64_t before,
                                            size_t limit, struct rv_alert *ret_alerts,
                                            size_t *ret_count);
/* The newest open one of a source, neither acknowledged nor closed; *ret_found false: there is
 * none. */
typedef enum rv_err rv_store_find_alert_fn(struct rv_store *store, struct rv_arena *arena,
                                           struct rv_str source, struct rv_alert *ret_alert,
                                           bool *ret_found);
/* Of one task, by ascending number, after `after`. */
typedef enum rv_err rv_store_list_messages_fn(struct rv_store *store, struct rv_arena *arena,
                                              struct rv_task_id task, uint32_t after, size_t limit,
                                              struct rv_message *ret_messages, size_t *ret_count);
/* Of one task, newest first, below the number `before` (0: from the newest). */
typedef enum rv_err rv_store_list_history_fn(struct rv_store *store, struct rv_arena *arena,
                                             struct rv_task_id task, uint32_t before, size_t limit,
                                             struct rv_history_row *ret_rows, size_t *ret_count);
/* Those in which a message waits and which are not given up, by destination and task, after the
 * place `after_destination`, `after` (absent: from the first). Or `task` alone: its row. */
typedef enum rv_err rv_store_list_deliveries_fn(struct rv_store *store, struct rv_arena *arena,
                                                struct rv_task_id task,
                                                struct rv_str after_destination,
                                                struct rv_task_id after, size_t limit,
                                                struct rv_delivery *ret_rows, size_t *ret_count);
/* By namespace, name, publication (newest first). */
typedef enum rv_err rv_store_list_workflows_fn(struct rv_store *store, struct rv_arena *arena,
                                               size_t skip, size_t limit,
                                               struct rv_workflow_row *ret_rows, size_t *ret_count);
/* Of one kind, by ascending key (order of the bytes): those whose keys begin with `prefix` and come
 * after `after`; either may be absent. The record of one key: its key as the prefix. */
typedef enum rv_err rv_store_list_records_fn(struct rv_store *store, struct rv_arena *arena,
                                             struct rv_str kind, struct rv_str prefix,
                                             struct rv_str after, size_t limit,
                                             struct rv_record *ret_rows, size_t *ret_count);

/* At most 25 operations (docs/decisions/014-reply-queues.md); a row of tbl/operation.def each. */
struct rv_store_ops {
#define RV_STORE_OPERATION(name) rv_store_##name##_fn *name;
#include "store/tbl/operation.def"
#undef RV_STORE_OPERATION
};

struct rv_store {
    const struct rv_store_ops *ops;
    int64_t wall_ahead_ms; /* at the newest `begin`: the wall clock minus the store's */
};

/* Where a store gets the wall clock from: the server's, or the simulator's. Milliseconds. */
struct rv_wall_clock {
    int64_t (*now)(void *self);
    void *self; /* borrowed */
    /* That of the machine, which no jump of the wall clock moves, but its being suspended does:
     * what the store's clock goes on by (base/slew.h). NULL: it goes with the wall clock, and
     * stands where that goes back. */
    int64_t (*mono)(void *self);
};

#endif
