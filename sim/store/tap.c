/* Every operation goes through to the store below. A commit may be refused, may end the process
 * just before or just after it, or have an outcome that is not known but can be asked for. What was
 * committed is shown to the history, which checks it against all that was there before. */
#include "sim/store/tap.h"

#include "base/assert.h"
#include "base/slew.h"
#include "sim/check/check.h"
#include "sim/check/conflict.h"
#include "sim/check/rounds.h"
#include "sim/store/database.h"
#include "sim/store/tap_priv.h"
#include "sim/world/fault.h"
#include "sim/world/fiber.h"
#include "sim/world/hints.h"
#include "sim/world/history.h"
#include "sim/world/partition.h"
#include "sim/world/server.h"
#include "sim/store/storage.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

/* A statement that takes longer is given up. */
enum { STORE_WITHIN_MS = 3000 };
/* What became of a commit is asked again after so long, and then after twice as long. */
enum { ASK_AGAIN_MS_MIN = 100, ASK_AGAIN_MS_MAX = 2000 };

static struct rv_store *inner_of(struct rv_store *store)
{
    return ((struct tap *)store)->inner;
}

void tap_op_close(struct rv_store *store)
{
    (void)store; /* tap_close does it: a crash asks nobody */
}

/* ---- the way to a shared store ---- */

/* Until then others go on. False: the process has died meanwhile. */
static bool pause_for(struct tap *tap, int64_t ms)
{
    struct server *s = tap->server;
    if (!tap->dead && ms > 0 && fiber_inside(s->fiber)) {
        server_go_on_at(s, tap->world->now + ms);
        fiber_pause(s->fiber);
    }
    return !tap->dead;
}

static void late_arrives(struct tap *tap);

/* A commit that is still on its way may arrive meanwhile. */
static bool wait(struct tap *tap, int64_t ms)
{
    struct world *w = tap->world;
    int64_t until = w->now + ms;
    if (tap->late != NULL && tap->late_at < until) {
        database_slow(w, until);
        bool lives = pause_for(tap, tap->late_at - w->now);
        database_slow(w, until);
        if (lives)
            late_arrives(tap);
    }
    return pause_for(tap, until - w->now);
}

static int64_t half_way(struct tap *tap)
{
    struct world *w = tap->world;
    unsigned stream = stream_store(tap->server->number);
    int64_t ms = world_spread(w, stream, w->healed ? 1 : w->knobs.store_ms) / 2;
    if (fault_strikes(w, FAULT_SLOW_STORE, tap->actor))
        ms += (int64_t)fault_roll(w, 5000);
    return ms;
}

/* To the store, or back from it. OK: it is there. BUSY: it is not, and nobody waits any longer; it
 * arrives at *ret_late_at all the same, 0: it is lost. CORRUPT: the process is dead, nobody is
 * answered (scheduler.h). */
static enum rv_err travel_late(struct tap *tap, enum way way, int64_t *ret_late_at)
{
    struct world *w = tap->world;
    *ret_late_at = 0;
    if (tap->dead)
        return RV_ERR_CORRUPT;
    if (!database_shared(w))
        return RV_OK;
    int64_t at = w->now + half_way(tap);
    struct link *link = partition_store_link(w, tap->server->number);
    bool passes = partition_passes(w, link, way, tap->actor, &at);
    bool comes = passes && at - w->now <= STORE_WITHIN_MS;
    *ret_late_at = passes && !comes ? at : 0;
    if (!wait(tap, comes ? at - w->now : STORE_WITHIN_MS))
        return RV_ERR_CORRUPT;
    bool answers = !w->healed && w->now < w->database->down_until ? false : comes;
    return answers ? RV_OK : RV_ERR_BUSY;
}

enum rv_err tap_travel(struct tap *tap, enum way way)
{
    int64_t late_at;
    return travel_late(tap, way, &late_at);
}

static bool read_only(const struct world *w)
{
    return !w->healed && w->now < w->database->read_only_until;
}

enum rv_err tap_op_enlist(struct rv_store *store, struct rv_str boot, int64_t pid,
                          struct rv_enlistment *ret_enlistment)
{
    struct tap *tap = (struct tap *)store;
    tap->asked_at = tap->world->now;
    enum rv_err err = tap_travel(tap, WAY_TO_SERVER);
    if (err == RV_OK && read_only(tap->world))
        err = RV_ERR_BUSY;
    if (err == RV_OK)
        err = tap->inner->ops->enlist(tap->inner, boot, pid, ret_enlistment);
    if (err == RV_OK)
        tap->server->leased_at = tap->world->now;
    /* It knows of no transaction yet, or not any more. */
    tap->heard = tap->sent = 0;
    tap->owes_alarm = false;
    tap->looked = 0; /* the wall clock may have been set while no process was there */
    return err == RV_OK ? tap_travel(tap, WAY_BACK) : err;
}

/* C-01: while a process has its store open the store's clock goes on as time does, whatever the
 * wall clock does: it neither jumps nor stands. */
static void check_goes_on(struct tap *tap, int64_t now)
{
    int64_t gone = tap->world->now - tap->looked_at, shown = now - tap->looked;
    int64_t slack = gone / RV_SLEW_DIVISOR + 2;
    if (tap->looked != 0 && (shown < gone - slack || shown > gone + slack))
        world_violate(tap->world, "C-01", "in %lld ms the store's clock went on by %lld ms",
                      (long long)gone, (long long)shown);
    tap->looked = now;
    tap->looked_at = tap->world->now;
}

enum rv_err tap_op_begin(struct rv_store *store, struct rv_wants *wants, int64_t *ret_now)
{
    struct tap *tap = (struct tap *)store;
    struct world *w = tap->world;
    round_sent(tap->server, ROUND_begin);
    tap->asked_at = w->now;
    enum rv_err err = tap_travel(tap, WAY_TO_SERVER);
    if (err != RV_OK)
        return err;
    tap->connection = w->database->connections;
    err = tap->inner->ops->begin(tap->inner, wants, ret_now);
    if (err != RV_OK)
        return err;
    store->wall_ahead_ms = tap->inner->wall_ahead_ms;
    check_goes_on(tap, *ret_now);
    tap->now = tap->newest = *ret_now;
    if (!tap->decided) {
        tap->decided = true;
        tap->decided_at = tap->server->store_now = *ret_now;
        tap->begun_at = tap->server->begun_at = w->now;
    }
    tap->claimed = 0;
    /* I-17: across committed transitions the store's clock never goes back. */
    if (tap->now < w->database->committed_at)
        world_violate(w, "I-17", "the store's clock went back from %lld to %lld",
                      (long long)w->database->committed_at, (long long)tap->now);
    if (tap->server->looks_first)
        database_found(tap->server, tap->now);
    tap->server->looks_first = false;
    database_look(w, tap->now, w->knobs.scan_ms + 501);
    if (wants != NULL)
        tap_wants_read(tap, wants);
    err = tap_travel(tap, WAY_BACK);
    tap->inside = err == RV_OK;
    if (err != RV_OK)
        tap->inner->ops->rollback(tap->inner);
    return err;
}

static enum rv_err commit_below(struct tap *tap, struct rv_batch *batch)
{
    if (batch->sweep != NULL)
        history_swept(tap->server, batch->sweep, tap->decided_at);
    enum rv_err err = tap->inner->ops->commit(tap->inner, batch);
    if (err == RV_ERR_COMMIT_UNKNOWN || err == RV_ERR_CORRUPT ||
        (err != RV_OK && storage_dead(tap->world)))
        storage_unknown(tap->world, batch, tap->decided_at);
    return err;
}

static enum rv_err commit_through(struct tap *tap, struct rv_batch *batch)
{
    struct world *w = tap->world;
    uint64_t before = database_number(w);
    enum rv_err err = commit_below(tap, batch);
    if (err != RV_OK)
        return err;
    struct committed by = {
        .batch_now = tap->decided_at, .begun_at = tap->begun_at, .number = database_number(w)};
    check_conflicts(w, tap->server, batch);
    if (by.number > before)
        tap->sent = by.number;
    w->commits++;
    if (batch->renew)
        tap->server->leased_at = batch->resign ? INT64_MIN / 2 : w->now;
    bool role_only = batch->workflows_count + batch->acks_count + batch->changes_count == 0;
    w->bounds.claims += tap->claimed != 0;
    w->bounds.writes += !role_only;
    database_committed(w, batch, tap->claimed != 0, tap->now);
    if (tap->claimed != 0)
        history_holds(w, tap->actor, tap->claimed);
    for (size_t i = 0; i < batch->workflows_count; i++)
        workload_published(w, batch->workflows[i].name, batch->workflows[i].version);
    storage_look(w);
    check_batch_bytes(w, batch, tap->decided_at);
    check_role_batch(w, tap->server, batch);
    w->committing = tap->server->at_work ? tap->server : NULL;
    for (size_t i = 0; i < batch->changes_count; i++) {
        by.now = batch->changes[i].at;
        if (by.now < tap->decided_at || by.now > tap->newest)
            world_violate(w, "I-17", "a change was decided at %lld, in a batch from %lld to %lld",
                          (long long)by.now, (long long)tap->decided_at, (long long)tap->newest);
        if (batch->changes[i].outcome == RV_OK)
            history_committed(w, tap->inner, &batch->changes[i], &by);
    }
    w->committing = NULL;
    limiter_committed(w, batch, tap->decided_at);
    hints_sent(w, tap->server->number, batch);
    storage_looked(w);
    return RV_OK;
}

/* Somebody else was faster with one of the tasks. */
static enum rv_err commit_conflicting(struct tap *tap, struct rv_batch *batch)
{
    size_t count = batch->changes_count;
    if (count == 0)
        return commit_through(tap, batch);
    size_t loser = (size_t)world_roll(tap->world, stream_store(tap->server->number), count);
    struct rv_change *all = batch->changes, *rest = malloc(count * sizeof *rest);
    rv_assert(rest != NULL);
    memcpy(rest, all, loser * sizeof *rest);
    memcpy(rest + loser, all + loser + 1, (count - loser - 1) * sizeof *rest);
    struct rv_batch others = *batch;
    others.changes = rest;
    others.changes_count = count - 1;
    world_say(tap->world, "store", "a change loses its guard");
    enum rv_err err = commit_through(tap, &others);
    for (size_t i = 0; i < count; i++)
        if (i == loser)
            all[i].outcome = RV_ERR_CONFLICT;
        else
            all[i].outcome = rest[i < loser ? i : i - 1].outcome;
    free(rest);
    return err;
}

/* Of a commit that has reached the store. */
static enum rv_err commit_fated(struct tap *tap, struct rv_batch *batch, enum fate fate)
{
    if (fate == FATE_CONFLICT || fate == FATE_UNKNOWN_NO)
        bound_start(tap->world); /* what was in it stands in line again */
    switch (fate) {
    case FATE_NONE:
        return commit_through(tap, batch);
    case FATE_CONFLICT:
        return commit_conflicting(tap, batch);
    case FATE_BUSY:
        tap->inner->ops->rollback(tap->inner);
        world_say(tap->world, "store", "refuses a commit: busy");
        return RV_ERR_BUSY;
    case FATE_FULL:
        fault_felt(tap->world, FAULT_FULL, tap->actor);
        tap->inner->ops->rollback(tap->inner);
        world_say(tap->world, "store", "refuses a commit: the disk is full");
        return RV_ERR_FULL;
    case FATE_DIES_BEFORE:
        tap->inner->ops->rollback(tap->inner);
        tap->dies = true;
        world_say(tap->world, "store", "the process dies before the commit");
        return RV_ERR_COMMIT_UNKNOWN;
    case FATE_UNKNOWN_NO:
        tap->server->counts_bad = tap->world->now; /* as after a refusal: nothing was written */
        tap->inner->ops->rollback(tap->inner);
        world_say(tap->world, "store", "a commit with an unknown outcome: not done");
        return RV_ERR_COMMIT_UNKNOWN;
    case FATE_DIES_AFTER:
    case FATE_UNKNOWN:
        tap->dies = fate == FATE_DIES_AFTER;
        world_say(tap->world, "store",
                  tap->dies ? "the process dies after the commit"
                            : "a commit with an unknown outcome: done");
        enum rv_err err = commit_through(tap, batch);
        return err == RV_OK ? RV_ERR_COMMIT_UNKNOWN : err;
    }
    return RV_ERR_BUSY;
}

/* It may be on its way while its process dies: then it is done or not; and not, when what it was on
 * its way to has been replaced by a standby. */
static enum rv_err commit_orphaned(struct tap *tap, struct rv_batch *batch)
{
    bool done = world_roll(tap->world, stream_store(tap->server->number), 2) == 0 &&
                !tap->world->over && tap->connection == tap->world->database->connections;
    if (done && commit_through(tap, batch) == RV_OK)
        world_say(tap->world, "store", "a commit outlives its process");
    else if (!done)
        tap->inner->ops->rollback(tap->inner);
    return RV_ERR_COMMIT_UNKNOWN;
}

static bool unbroken(const struct tap *tap)
{
    const struct world *w = tap->world;
    bool down = !w->healed && w->now < w->database->down_until;
    return tap->connection == w->database->connections && !down && !read_only(w);
}

/* Nobody waits for it any more, but its transaction is still open: it is done, unless its
 * connection has broken. */
static void late_arrives(struct tap *tap)
{
    struct rv_batch *batch = tap->late;
    rv_assert(batch != NULL);
    tap->late = NULL;
    if (!unbroken(tap))
        tap->inner->ops->rollback(tap->inner);
    else if (commit_through(tap, batch) == RV_OK)
        world_say(tap->world, "store", "a commit arrives after its sender has given it up");
}

/* Whoever sent it has died, or has gone on without it. */
static void late_orphaned(struct tap *tap)
{
    struct rv_batch *batch = tap->late;
    tap->late = NULL;
    if (batch != NULL)
        (void)commit_orphaned(tap, batch);
}

/* The question about it has come first: the store waits for the session that it has come to, and
 * is still at work, or ends the session that it would come to. */
static enum rv_err late_settle(struct tap *tap)
{
    int64_t ms = tap->late_at - tap->world->now;
    if (tap->late == NULL)
        return RV_OK;
    bool at_work = world_roll(tap->world, stream_store(tap->server->number), 2) == 0;
    if (at_work && ms < STORE_WITHIN_MS)
        return wait(tap, ms + 1) ? RV_OK : RV_ERR_CORRUPT;
    tap->late = NULL;
    tap->inner->ops->rollback(tap->inner);
    world_say(tap->world, "store", "a commit on its way is refused");
    return RV_OK;
}

static enum rv_err commit_sent(struct tap *tap, struct rv_batch *batch, enum fate fate)
{
    struct world *w = tap->world;
    int64_t late_at;
    round_sent(tap->server, ROUND_commit);
    round_commits(tap->server, batch);
    enum rv_err err = travel_late(tap, WAY_TO_SERVER, &late_at);
    if (err == RV_ERR_CORRUPT)
        return commit_orphaned(tap, batch);
    if (late_at != 0 && tap->connection == w->database->connections) {
        tap->late = batch;
        tap->late_at = late_at;
        world_say(w, "store", "a commit is on its way for too long");
        return RV_ERR_COMMIT_UNKNOWN;
    }
    if (err != RV_OK || tap->connection != w->database->connections) {
        tap->inner->ops->rollback(tap->inner);
        world_say(w, "store", "a commit does not reach it");
        return RV_ERR_COMMIT_UNKNOWN;
    }
    if (read_only(w)) {
        fault_felt(w, FAULT_READ_ONLY, tap->actor);
        tap->inner->ops->rollback(tap->inner);
        world_say(w, "store", "refuses a commit: read only");
        return RV_ERR_BUSY;
    }
    err = commit_fated(tap, batch, fate);
    if (err == RV_ERR_COMMIT_UNKNOWN)
        return err;
    bool heard = tap_travel(tap, WAY_BACK) == RV_OK && tap->connection == w->database->connections;
    if (!heard)
        return RV_ERR_COMMIT_UNKNOWN;
    if (err == RV_OK)
        tap->heard = tap->sent;
    return err;
}

enum rv_err tap_op_commit(struct rv_store *store, struct rv_batch *batch)
{
    struct tap *tap = (struct tap *)store;
    enum fate fate = tap->fate;
    tap->asked_at = tap->world->now;
    tap->inside = false;
    tap->fate = FATE_NONE;
    enum rv_err err = database_shared(tap->world) ? commit_sent(tap, batch, fate)
                                                  : commit_fated(tap, batch, fate);
    /* F-50: a server that knew of what is lost says so before it goes on. */
    if (err == RV_OK && tap->owes_alarm)
        world_violate(tap->world, "F-50",
                      "a transaction that this server knew to be there was lost, and it goes on "
                      "without a word");
    return err;
}

void tap_op_rollback(struct rv_store *store)
{
    ((struct tap *)store)->inside = false;
    inner_of(store)->ops->rollback(inner_of(store));
}

/* BUSY: no answer has come. */
static enum rv_err committed_ask(struct tap *tap, int64_t number, bool *ret_committed)
{
    struct world *w = tap->world;
    round_sent(tap->server, ROUND_committed);
    if (tap->dead || tap->dies)
        return RV_ERR_IO;
    RV_TRY(tap_travel(tap, WAY_TO_SERVER));
    RV_TRY(late_settle(tap));
    /* Asked over a new connection, which breaks like the one before. */
    uint64_t connection = w->database->connections;
    RV_TRY(tap->inner->ops->committed(tap->inner, number, ret_committed));
    RV_TRY(tap_travel(tap, WAY_BACK));
    if (connection != w->database->connections)
        return RV_ERR_BUSY;
    if (*ret_committed)
        tap->heard = tap->sent;
    return RV_OK;
}

enum rv_err tap_op_committed(struct rv_store *store, int64_t number, bool *ret_committed)
{
    struct tap *tap = (struct tap *)store;
    struct world *w = tap->world;
    int64_t until = w->now + RV_STORE_BACK_MS, pause_ms = ASK_AGAIN_MS_MIN;
    tap->asked_at = w->now;
    enum rv_err err = committed_ask(tap, number, ret_committed);
    while (err == RV_ERR_BUSY && w->now + pause_ms <= until) {
        database_slow(w, w->now + pause_ms);
        (void)wait(tap, pause_ms);
        pause_ms = pause_ms * 2 < ASK_AGAIN_MS_MAX ? pause_ms * 2 : ASK_AGAIN_MS_MAX;
        err = committed_ask(tap, number, ret_committed);
    }
    late_orphaned(tap);
    return err == RV_OK || err == RV_ERR_DEPOSED ? err : RV_ERR_IO;
}

enum rv_err tap_op_claim_role(struct rv_store *store, struct rv_str role, int64_t lease_ms,
                              int64_t *ret_epoch, int64_t *ret_until)
{
    if (read_only(((struct tap *)store)->world))
        return RV_ERR_BUSY;
    enum rv_err err = inner_of(store)->ops->claim_role(inner_of(store), role, lease_ms, ret_epoch,
                                                       ret_until);
    if (err == RV_OK)
        ((struct tap *)store)->claimed = *ret_epoch;
    return err;
}

static const struct rv_store_ops ops = {
#define RV_STORE_OPERATION(name) .name = tap_op_##name,
#include "store/tbl/operation.def"
#undef RV_STORE_OPERATION
};

struct tap *tap_new(struct server *s)
{
    struct tap *tap = calloc(1, sizeof *tap);
    rv_assert(tap != NULL);
    tap->store.ops = &ops;
    tap->world = s->world;
    tap->server = s;
    tap->actor = actor_server(s->number);
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
    tap->dead = tap->dies = tap->misread = tap->owes_alarm = tap->inside = false;
    tap->heard = tap->sent = 0;
    tap->late = NULL;
    return &tap->store;
}

void tap_close(struct server *s)
{
    struct tap *tap = s->tap;
    rv_assert(tap->late == NULL);
    tap->inner->ops->close(tap->inner);
    tap->inner = NULL;
}

void tap_die(struct server *s)
{
    s->tap->dead = true;
}

bool tap_dead(const struct server *s)
{
    return s->tap->dead;
}

bool tap_outlived(const struct server *s)
{
    return s->tap->connection != s->world->database->connections;
}

void tap_failed_over(struct server *s, uint64_t number)
{
    struct tap *tap = s->tap;
    if (!s->up || tap->heard <= number)
        return;
    tap->owes_alarm = true;
    tap->heard = number;
}

void tap_alarmed(struct server *s)
{
    s->tap->owes_alarm = false;
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
        {FAULT_CONFLICT, FATE_CONFLICT},
    };
    tap->fate = FATE_NONE;
    tap->decided = false;
    s->rounds = (struct rounds){.count = 0};
    if (w->healed)
        return;
    for (size_t i = 0; i < sizeof fates / sizeof fates[0]; i++)
        if (fault_strikes(w, fates[i].fault, tap->actor) && tap->fate == FATE_NONE)
            tap->fate = fates[i].fate;
    if (w->now < tap->full_until)
        tap->fate = FATE_FULL;
}

int64_t tap_asked_at(const struct server *s)
{
    return s->tap->asked_at;
}

int64_t tap_newest(const struct server *s)
{
    return s->tap->newest;
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
