/* Every operation goes through to the store below. A commit may be refused, may end the process
 * just before or just after it, or have an outcome that is not known but can be asked for. What was
 * committed is shown to the history, which checks it against all that was there before. */
#include "sim/tap.h"

#include "base/assert.h"
#include "sim/fault.h"
#include "sim/history.h"
#include "sim/server.h"
#include "sim/storage.h"
#include "sim/world.h"

#include <stdlib.h>

enum fate {
    FATE_NONE,
    FATE_BUSY,
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
    enum fate fate;       /* of the next commit */
    uint32_t actor;       /* for its faults */
    bool misread;         /* what the process has in memory is not what the store has */
    bool dead;            /* the process dies in this commit: nothing can be asked any more */
    int64_t now;          /* of the open transaction */
    int64_t begun_at;     /* ... in virtual time */
    int64_t claimed;      /* the epoch that it claims; 0: none */
    int64_t full_until;   /* virtual time */
    int64_t committed_at; /* the highest of the transactions that were committed */
};

static struct rv_store *inner_of(struct rv_store *store)
{
    return ((struct tap *)store)->inner;
}

static void tap_op_close(struct rv_store *store)
{
    (void)store; /* tap_close does it: a crash asks nobody */
}

static enum rv_err tap_op_enlist(struct rv_store *store, struct rv_str boot, int64_t pid,
                                 struct rv_enlistment *ret_enlistment)
{
    return inner_of(store)->ops->enlist(inner_of(store), boot, pid, ret_enlistment);
}

static enum rv_err tap_op_begin(struct rv_store *store, int64_t *ret_now)
{
    struct tap *tap = (struct tap *)store;
    enum rv_err err = tap->inner->ops->begin(tap->inner, ret_now);
    tap->now = *ret_now;
    tap->begun_at = tap->world->now;
    tap->claimed = 0;
    /* I-17: across committed transitions the store's clock never goes back. */
    if (err == RV_OK && tap->now < tap->committed_at)
        world_violate(tap->world, "I-17", "the store's clock went back from %lld to %lld",
                      (long long)tap->committed_at, (long long)tap->now);
    return err;
}

static enum rv_err commit_through(struct tap *tap, struct rv_batch *batch)
{
    enum rv_err err = tap->inner->ops->commit(tap->inner, batch);
    if (err == RV_ERR_COMMIT_UNKNOWN || err == RV_ERR_CORRUPT ||
        (err != RV_OK && storage_dead(tap->world)))
        storage_unknown(tap->world, batch, tap->now);
    if (err != RV_OK)
        return err;
    tap->world->commits++;
    tap->committed_at = tap->now;
    if (tap->claimed != 0)
        history_holds(tap->world, tap->actor, tap->claimed);
    storage_look(tap->world);
    for (size_t i = 0; i < batch->changes_count; i++)
        if (batch->changes[i].outcome == RV_OK)
            history_committed(tap->world, tap->inner, &batch->changes[i], tap->now, tap->begun_at);
    storage_looked(tap->world);
    return RV_OK;
}

static enum rv_err tap_op_commit(struct rv_store *store, struct rv_batch *batch)
{
    struct tap *tap = (struct tap *)store;
    enum fate fate = tap->fate;
    tap->fate = FATE_NONE;
    switch (fate) {
    case FATE_NONE:
        return commit_through(tap, batch);
    case FATE_BUSY:
        tap->inner->ops->rollback(tap->inner);
        world_say(tap->world, "store", "refuses a commit: busy");
        return RV_ERR_BUSY;
    case FATE_FULL:
        fault_felt(tap->world, FAULT_FULL);
        tap->inner->ops->rollback(tap->inner);
        world_say(tap->world, "store", "refuses a commit: the disk is full");
        return RV_ERR_FULL;
    case FATE_DIES_BEFORE:
        tap->inner->ops->rollback(tap->inner);
        tap->dead = true;
        world_say(tap->world, "store", "the process dies before the commit");
        return RV_ERR_COMMIT_UNKNOWN;
    case FATE_UNKNOWN_NO:
        tap->inner->ops->rollback(tap->inner);
        world_say(tap->world, "store", "a commit with an unknown outcome: not done");
        return RV_ERR_COMMIT_UNKNOWN;
    case FATE_DIES_AFTER:
    case FATE_UNKNOWN:
        tap->dead = fate == FATE_DIES_AFTER;
        world_say(tap->world, "store",
                  tap->dead ? "the process dies after the commit"
                            : "a commit with an unknown outcome: done");
        enum rv_err err = commit_through(tap, batch);
        return err == RV_OK ? RV_ERR_COMMIT_UNKNOWN : err;
    }
    return RV_ERR_BUSY;
}

static void tap_op_rollback(struct rv_store *store)
{
    inner_of(store)->ops->rollback(inner_of(store));
}

static enum rv_err tap_op_committed(struct rv_store *store, int64_t number, bool *ret_committed)
{
    if (((struct tap *)store)->dead)
        return RV_ERR_IO;
    return inner_of(store)->ops->committed(inner_of(store), number, ret_committed);
}

static enum rv_err tap_op_load_tasks(struct rv_store *store, struct rv_arena *arena,
                                     const struct rv_task_id *ids, size_t count,
                                     const struct rv_task **ret_tasks)
{
    return inner_of(store)->ops->load_tasks(inner_of(store), arena, ids, count, ret_tasks);
}

static enum rv_err tap_op_load_steps(struct rv_store *store, struct rv_arena *arena,
                                     const struct rv_step_id *ids, size_t count,
                                     const struct rv_step **ret_steps)
{
    return inner_of(store)->ops->load_steps(inner_of(store), arena, ids, count, ret_steps);
}

static enum rv_err tap_op_find_keys(struct rv_store *store, struct rv_arena *arena,
                                    const struct rv_str *keys, size_t count,
                                    struct rv_key_row *ret_rows)
{
    return inner_of(store)->ops->find_keys(inner_of(store), arena, keys, count, ret_rows);
}

static enum rv_err tap_op_load_workflow(struct rv_store *store, struct rv_arena *arena, int64_t id,
                                        const struct rv_workflow_row **ret_row)
{
    struct tap *tap = (struct tap *)store;
    enum rv_err err = tap->inner->ops->load_workflow(tap->inner, arena, id, ret_row);
    if (err != RV_OK || *ret_row == NULL ||
        !fault_strikes(tap->world, FAULT_UNREADABLE, tap->actor))
        return err;
    struct rv_workflow_row *damaged = RV_NEW(arena, struct rv_workflow_row);
    rv_assert(damaged != NULL);
    *damaged = **ret_row;
    damaged->source.len /= 2;
    *ret_row = damaged;
    tap->misread = true;
    return RV_OK;
}

static enum rv_err tap_op_find_workflow(struct rv_store *store, struct rv_arena *arena,
                                        struct rv_str space, struct rv_str name,
                                        struct rv_str version,
                                        const struct rv_workflow_row **ret_row)
{
    return inner_of(store)->ops->find_workflow(inner_of(store), arena, space, name, version,
                                               ret_row);
}

static enum rv_err tap_op_scan_open(struct rv_store *store, struct rv_arena *arena,
                                    struct rv_task_id after, size_t limit,
                                    const struct rv_task **ret_tasks, size_t *ret_count)
{
    return inner_of(store)->ops->scan_open(inner_of(store), arena, after, limit, ret_tasks,
                                           ret_count);
}

static enum rv_err tap_op_claim_role(struct rv_store *store, struct rv_str role, int64_t lease_ms,
                                     int64_t *ret_epoch, int64_t *ret_until)
{
    enum rv_err err = inner_of(store)->ops->claim_role(inner_of(store), role, lease_ms, ret_epoch,
                                                       ret_until);
    if (err == RV_OK) {
        history_claimed(((struct tap *)store)->world, *ret_epoch);
        ((struct tap *)store)->claimed = *ret_epoch;
    }
    return err;
}

static enum rv_err tap_op_list_tasks(struct rv_store *store, struct rv_arena *arena,
                                     const struct rv_task_filter *filter, size_t limit,
                                     struct rv_task *ret_tasks, size_t *ret_count,
                                     struct rv_task_id *ret_next)
{
    return inner_of(store)->ops->list_tasks(inner_of(store), arena, filter, limit, ret_tasks,
                                            ret_count, ret_next);
}

static enum rv_err tap_op_list_steps(struct rv_store *store, struct rv_arena *arena,
                                     struct rv_task_id task, uint32_t after, size_t limit,
                                     struct rv_step *ret_steps, size_t *ret_count)
{
    return inner_of(store)->ops->list_steps(inner_of(store), arena, task, after, limit, ret_steps,
                                            ret_count);
}

static enum rv_err tap_op_list_attempts(struct rv_store *store, struct rv_arena *arena,
                                        struct rv_step_id step, uint32_t after_step, uint32_t after,
                                        size_t limit, struct rv_attempt *ret_attempts,
                                        size_t *ret_count)
{
    return inner_of(store)->ops->list_attempts(inner_of(store), arena, step, after_step, after,
                                               limit, ret_attempts, ret_count);
}

static enum rv_err tap_op_list_late(struct rv_store *store, struct rv_arena *arena,
                                    struct rv_task_id task, size_t limit,
                                    struct rv_late_reply *ret_rows, size_t *ret_count)
{
    return inner_of(store)->ops->list_late_replies(inner_of(store), arena, task, limit, ret_rows,
                                                   ret_count);
}

static enum rv_err tap_op_list_alerts(struct rv_store *store, struct rv_arena *arena,
                                      struct rv_task_id task, bool open_only, int64_t before,
                                      size_t limit, struct rv_alert *ret_alerts, size_t *ret_count)
{
    return inner_of(store)->ops->list_alerts(inner_of(store), arena, task, open_only, before, limit,
                                             ret_alerts, ret_count);
}

static enum rv_err tap_op_list_workflows(struct rv_store *store, struct rv_arena *arena,
                                         size_t skip, size_t limit,
                                         struct rv_workflow_row *ret_rows, size_t *ret_count)
{
    return inner_of(store)->ops->list_workflows(inner_of(store), arena, skip, limit, ret_rows,
                                                ret_count);
}

static const struct rv_store_ops ops = {
    .close = tap_op_close,
    .enlist = tap_op_enlist,
    .begin = tap_op_begin,
    .commit = tap_op_commit,
    .rollback = tap_op_rollback,
    .committed = tap_op_committed,
    .load_tasks = tap_op_load_tasks,
    .load_steps = tap_op_load_steps,
    .find_keys = tap_op_find_keys,
    .load_workflow = tap_op_load_workflow,
    .find_workflow = tap_op_find_workflow,
    .scan_open = tap_op_scan_open,
    .claim_role = tap_op_claim_role,
    .list_tasks = tap_op_list_tasks,
    .list_steps = tap_op_list_steps,
    .list_attempts = tap_op_list_attempts,
    .list_late_replies = tap_op_list_late,
    .list_alerts = tap_op_list_alerts,
    .list_workflows = tap_op_list_workflows,
};

struct tap *tap_new(struct server *s)
{
    struct tap *tap = calloc(1, sizeof *tap);
    rv_assert(tap != NULL);
    tap->store.ops = &ops;
    tap->world = s->world;
    tap->actor = ACTOR_SERVER + s->number;
    return tap;
}

void tap_free(struct tap *tap)
{
    free(tap);
}

struct rv_store *tap_open(struct server *s, struct rv_store *inner)
{
    struct tap *tap = s->tap;
    tap->inner = inner;
    tap->fate = FATE_NONE;
    tap->dead = tap->misread = false;
    return &tap->store;
}

void tap_close(struct server *s)
{
    struct tap *tap = s->tap;
    tap->inner->ops->close(tap->inner);
    tap->inner = NULL;
}

void tap_plan(struct server *s)
{
    struct tap *tap = s->tap;
    struct world *w = tap->world;
    static const struct {
        enum fault fault;
        enum fate fate;
    } fates[] = {
        {FAULT_KILL_BEFORE, FATE_DIES_BEFORE},
        {FAULT_KILL_AFTER, FATE_DIES_AFTER},
        {FAULT_BUSY, FATE_BUSY},
        {FAULT_UNKNOWN_DONE, FATE_UNKNOWN},
        {FAULT_UNKNOWN_LOST, FATE_UNKNOWN_NO},
    };
    tap->fate = FATE_NONE;
    if (w->healed)
        return;
    for (size_t i = 0; i < sizeof fates / sizeof fates[0]; i++)
        if (fault_strikes(w, fates[i].fault, tap->actor) && tap->fate == FATE_NONE)
            tap->fate = fates[i].fate;
    if (w->now < tap->full_until)
        tap->fate = FATE_FULL;
}

bool tap_misread(const struct server *s)
{
    return s->tap->misread;
}

void tap_fill(struct server *s, int64_t ms)
{
    if (storage_fill(s->world, ms))
        return;
    s->tap->full_until = s->world->now + ms;
    world_say(s->world, "store", "its disk is full for %lld ms", (long long)ms);
}
