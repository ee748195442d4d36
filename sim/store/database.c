#include "sim/store/database.h"
#include "sim/world/fault.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/time.h"
#include "sim/store/rewind.h"
#include "sim/world/server.h"
#include "sim/store/storage.h"
#include "sim/cast/limiter.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"
#include "store/store.h"

#include <stdlib.h>

enum { SWING_MS = 20000, NO_DRIFT = 10000 }; /* of the clock, back and forth */
enum { HOLD_MS_MIN = 3600 * 1000, HOLD_MS_MAX = RV_DAY_MS };
enum { WALL_START_MS = 1000000000, CLOCK_JUMP_MS = 3600 * 1000 };

/* A triangle is as good as a sine, and needs no library's rounding. */
static int64_t swing(int64_t now, int64_t amplitude)
{
    int64_t phase = now % SWING_MS * 4;
    int64_t quarter = phase / SWING_MS;
    int64_t rest = phase % SWING_MS * amplitude / SWING_MS;
    switch (quarter) {
    case 0:
        return rest;
    case 1:
        return amplitude - rest;
    case 2:
        return -rest;
    default:
        return rest - amplitude;
    }
}

/* How far the clock is beside itself at this instant. */
static int64_t clock_error(const struct world *w)
{
    const struct knobs *k = &w->knobs;
    int64_t at = w->healed ? w->healed_at : w->now;
    int64_t drift_ppm = k->clock_drift != 0 ? (int64_t)k->clock_drift - NO_DRIFT : 0;
    int64_t error = at * drift_ppm / 1000000 + swing(at, k->clock_swing_ms);
    if (k->clock_noise_ms != 0 && !w->healed)
        error += (int64_t)(rv_hash_int(w->seed ^ (uint64_t)at) % k->clock_noise_ms);
    return error;
}

int64_t database_wall(const struct world *w)
{
    return w->now + w->database->wall_ahead + clock_error(w);
}

bool database_clock_good(const struct world *w)
{
    const struct knobs *k = &w->knobs;
    return !fault_happened(w, FAULT_CLOCK_JUMP) && k->clock_drift == 0 && k->clock_swing_ms == 0 &&
           k->clock_noise_ms == 0;
}

static int64_t wall_now(void *self)
{
    return database_wall(self);
}

static int64_t mono_now(void *self)
{
    const struct world *w = self;
    return w->now;
}

/* I-49: the rows before of a change that passes its guards are what is stored. A store may leave
 * out what they have already. */
static void wrong_before(void *self, struct rv_task_id task)
{
    char text[RV_ID_TEXT_BYTES];
    world_violate(self, "I-49", "a change of the task %s says that other rows are stored",
                  rv_task_text(task, text).at);
}

void database_new(struct world *w)
{
    struct database *d = calloc(1, sizeof *d);
    rv_assert(d != NULL);
    w->database = d;
    d->wall_ahead = WALL_START_MS;
    d->clock = (struct rv_wall_clock){.now = wall_now, .self = w, .mono = mono_now};
    d->absences = calloc(ABSENCES_KEPT, sizeof *d->absences);
    enum rv_err err = rv_store_memory_data_new(&d->data);
    rv_assert(err == RV_OK && d->absences != NULL);
    rv_store_memory_data_watch(d->data, wrong_before, w);
    storage_new(w);
    if (!database_shared(w))
        return;
    rv_store_memory_data_share(d->data);
    rv_store_memory_data_keep(d->data, REWIND_MAX);
    rewind_new(w);
    err = rv_store_memory_open(d->data, d->clock, &d->reader);
    rv_assert(err == RV_OK);
}

enum rv_err database_open(struct world *w, struct rv_store **ret_store)
{
    if (w->storage != NULL)
        return storage_open(w, w->database->clock, ret_store);
    return rv_store_memory_open(w->database->data, w->database->clock, ret_store);
}

void database_free(struct world *w)
{
    struct database *d = w->database;
    if (d == NULL)
        return;
    storage_free(w);
    if (d->reader != NULL)
        d->reader->ops->close(d->reader);
    rv_store_memory_data_free(d->data);
    free(d->absences);
    free(d);
}

bool database_was_alone(const struct world *w, int64_t at)
{
    const struct database *d = w->database;
    for (size_t i = 0; i < d->absences_count; i++)
        if (at > d->absences[i].from && at <= d->absences[i].until)
            return true;
    return false;
}

static void absence_add(struct database *d, int64_t from, int64_t until)
{
    if (d->absences_count < ABSENCES_KEPT)
        d->absences[d->absences_count++] = (struct absence_seen){from, until};
}

/* Only what is an absence beyond doubt: checkers want to be sure. The wall clock may be behind what
 * the store shows, and catch up with it at once. */
void database_look(struct world *w, int64_t now, int64_t slack_ms)
{
    struct database *d = w->database;
    if (d->looked_at != 0 && now - d->looked_at > slack_ms)
        absence_add(d, d->looked_at, now);
    if (now > d->looked_at)
        d->looked_at = now;
}

/* A look leaves no trace in the store: where nothing was committed while the clock was ahead, the
 * time since then comes once more, for the next process or for another server. */
static void comes_again(struct database *d, int64_t from)
{
    for (size_t i = 0; i < d->absences_count; i++)
        if (d->absences[i].until > from)
            d->absences[i].until = from;
}

/* Decision 019: after an absence of an hour the retention rule waits as long, a day at most. */
static void holds_begin(struct server *s, int64_t now)
{
    struct database *d = s->world->database;
    int64_t gone = s->found_alive_at != 0 ? now - s->found_alive_at : 0;
    /* The store may know of it, also where the process that began it died at once. */
    if (s->holds_until > d->held_until)
        d->held_until = s->holds_until;
    s->holds_until = gone < HOLD_MS_MIN ? 0 : now + (gone < HOLD_MS_MAX ? gone : HOLD_MS_MAX);
}

int64_t database_attended_since(const struct world *w)
{
    const struct database *d = w->database;
    int64_t since = 0;
    for (uint32_t i = 0; i < w->knobs.servers; i++)
        since = w->servers[i].first_now > since ? w->servers[i].first_now : since;
    for (size_t i = 0; i < d->absences_count; i++)
        since = d->absences[i].until > since ? d->absences[i].until : since;
    return since;
}

int64_t database_held_until(const struct world *w)
{
    int64_t until = w->database->held_until;
    for (uint32_t i = 0; i < w->knobs.servers; i++)
        until = w->servers[i].holds_until > until ? w->servers[i].holds_until : until;
    return until;
}

void database_found(struct server *s, int64_t now)
{
    struct world *w = s->world;
    struct database *d = w->database;
    int64_t alive_at = s->found_alive_at;
    s->first_now = now;
    holds_begin(s, now);
    if (w->knobs.servers > 1 && d->looked_at != 0)
        return; /* others look, too */
    comes_again(d, now);
    d->looked_at = now;
    if (alive_at != 0)
        absence_add(d, alive_at, now);
}

struct rv_store *database_reader(struct world *w)
{
    return w->database->reader != NULL ? w->database->reader : servers_store(w);
}

bool database_shared(const struct world *w)
{
    return w->knobs.store == STORE_SHARED;
}

uint64_t database_number(const struct world *w)
{
    return rv_store_memory_data_commits(w->database->data);
}

void database_slow(struct world *w, int64_t until)
{
    if (w->healed && w->database->slow_until < until)
        w->database->slow_until = until;
}

void database_begin(struct world *w)
{
    w->database->base = database_number(w);
    world_at(w, w->now + 1000, EVENT_CLOCK, 0, 0);
}

static bool wrote(const struct rv_batch *batch)
{
    bool any = batch->workflows_count + batch->acks_count > 0;
    for (size_t i = 0; i < batch->changes_count; i++)
        any = any || batch->changes[i].outcome == RV_OK;
    for (size_t i = 0; i < batch->records_count; i++)
        any = any || batch->records[i].outcome == RV_OK;
    for (size_t i = 0; i < batch->raises_count; i++)
        any = any || batch->raises[i].outcome == RV_OK;
    if (batch->sweep != NULL && batch->sweep->outcome == RV_OK)
        any = any ||
              batch->sweep->tasks_gone + batch->sweep->keys_gone + batch->sweep->alerts_gone > 0;
    return any;
}

void database_committed(struct world *w, const struct rv_batch *batch, bool claims, int64_t now)
{
    if ((claims || wrote(batch)) && w->database->committed_at < now)
        w->database->committed_at = now;
}

/* A standby. Every second one is asynchronous: what it had not heard of yet never was, whoever was
 * told of it. */
static void fail_over(struct world *w)
{
    struct database *d = w->database;
    uint64_t number = database_number(w);
    size_t most = rv_store_memory_data_kept(d->data);
    if (most > number - d->base)
        most = number - d->base;
    size_t lost = fault_roll(w, 2) == 0 ? 0 : (size_t)fault_roll(w, most + 1);
    int64_t ms = (int64_t)fault_roll(w, 5000);
    world_say(w, "store", "a standby takes over in %lld ms, without the newest %zu transactions",
              (long long)ms, lost);
    d->lost += lost;
    rv_store_memory_data_lose(d->data, lost);
    rewind_to(w, number - lost);
    bound_start(w);
    workload_rewind(w);
    limiter_rewind(w);
    servers_failed_over(w, number - lost);
    d->down_until = w->now + ms;
    d->connections++;
    d->committed_at = 0;
}

static void clock_jump(struct world *w)
{
    static const int64_t reaches[] = {3000, CLOCK_JUMP_MS, 20 * (int64_t)RV_DAY_MS};
    int64_t reach = reaches[fault_roll(w, 3)];
    int64_t jump = (int64_t)fault_roll(w, (uint64_t)(2 * reach)) - reach;
    /* Somebody sets it right again, as often as not. */
    if (fault_roll(w, 2) == 0 && w->database->wall_ahead != WALL_START_MS)
        jump = WALL_START_MS - w->database->wall_ahead;
    w->database->wall_ahead += jump;
    world_say(w, "store", "its clock jumps by %lld ms", (long long)jump);
}

void database_turn(struct world *w)
{
    struct database *d = w->database;
    if (w->healed)
        return;
    if (fault_strikes(w, FAULT_CLOCK_JUMP, ACTOR_SERVER))
        clock_jump(w);
    if (database_shared(w) && fault_strikes(w, FAULT_READ_ONLY, ACTOR_SERVER)) {
        d->read_only_until = w->now + (int64_t)fault_roll(w, 10000);
        world_say(w, "store", "takes no writes for %lld ms",
                  (long long)(d->read_only_until - w->now));
    }
    if (database_shared(w) && !fault_happened(w, FAULT_FAILOVER) &&
        fault_strikes(w, FAULT_FAILOVER, ACTOR_SERVER))
        fail_over(w);
    world_at(w, w->now + 1000, EVENT_CLOCK, 0, 0);
}

/* The wall clock stays as wrong as it is: the store's time goes on all the same (RULES 9). */
void database_heal(struct world *w)
{
    struct database *d = w->database;
    d->down_until = d->read_only_until = 0;
    storage_heal(w);
}
