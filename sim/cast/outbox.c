/* The application's database as a model behind the relay's own outbox.h. Like SQLite it lets nobody
 * read what is not committed, lets one write at a time, gives the number of a row that was rolled
 * back to the next one, and keeps the application's commits for ever (it syncs). What the relay
 * writes is not synced: it is lost with the power, unless the application has committed since. */
#include "sim/cast/outbox.h"

#include "base/assert.h"
#include "base/time.h"
#include "relay/outbox.h"
#include "sim/cast/relay.h"
#include "sim/cast/workload.h"
#include "sim/check/check.h"
#include "sim/world/fault.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ORDERS_MIN = 5,
    ORDERS_MORE = 36, /* and up to so many more, less one */
    AT_ONCE_MAX = 3,  /* orders in one transaction */
    PACE_MS = 500,
    OPEN_MS = 20,
    OPEN_LONG_MS = 6000,
    STALE_WITHIN_MS = 20000
};

/* What a row was before the relay wrote it. */
struct undo {
    size_t place;
    enum outbox_state was;
    bool first; /* of its transaction */
};

struct outbox {
    struct outbox_row *rows; /* owned */
    size_t count;
    size_t room;
    uint32_t orders; /* that there are to be */
    uint32_t next;
    bool made; /* the table is there */
    bool open; /* the application has a transaction under way */
    size_t open_from;
    uint64_t commits;
    struct undo *undo; /* owned: since the last sync */
    size_t undo_count;
    size_t undo_room;
};

/* A relay's connection. */
struct rv_outbox {
    struct world *world;
    uint64_t seen; /* commits when it last asked */
    bool asked;
};

int64_t outbox_wall(const struct world *w)
{
    return INT64_C(1795000000000) + w->now;
}

/* ---- the application ---- */

void outbox_new(struct world *w)
{
    w->outbox = calloc(1, sizeof *w->outbox);
    rv_assert(w->outbox != NULL);
    w->outbox->orders = ORDERS_MIN + (uint32_t)world_roll(w, STREAM_OUTBOX, ORDERS_MORE);
    world_at(w, w->now + 1, EVENT_OUTBOX, 0, 0);
}

void outbox_free(struct world *w)
{
    if (w->outbox == NULL)
        return;
    free(w->outbox->rows);
    free(w->outbox->undo);
    free(w->outbox);
}

/* Half of the stale rows become too old while they wait. */
static int64_t created_at(struct world *w)
{
    int64_t age_ms = 0;
    if (fault_strikes(w, FAULT_STALE, ACTOR_RELAY))
        age_ms = fault_roll(w, 2) == 0
                     ? RV_ROW_AGE_MS_MAX + RV_DAY_MS
                     : RV_ROW_AGE_MS_MAX - (int64_t)fault_roll(w, STALE_WITHIN_MS);
    return (outbox_wall(w) - age_ms) / RV_SECOND_MS;
}

/* An application may give its rows any ids. */
static int64_t id_next(const struct outbox *o)
{
    enum { FIRST_ID = -3 };
    for (size_t i = o->count; i > 0; i--)
        if (o->rows[i - 1].state != OUTBOX_UNDONE)
            return o->rows[i - 1].id + 1;
    return FIRST_ID;
}

static void row_insert(struct world *w, uint32_t order)
{
    struct outbox *o = w->outbox;
    if (o->count == o->room) {
        o->room = o->room ? 2 * o->room : 32;
        o->rows = realloc(o->rows, o->room * sizeof *o->rows);
        rv_assert(o->rows != NULL);
    }
    int64_t id = id_next(o);
    struct outbox_row *row = &o->rows[o->count++];
    *row = (struct outbox_row){.id = id, .order = order, .state = OUTBOX_OPEN};
    row->created_at = created_at(w);
    row->own_key = world_chance(w, STREAM_OUTBOX, 300);
    if (row->own_key)
        snprintf(row->key, sizeof row->key, "shop-%u", order);
    else
        snprintf(row->key, sizeof row->key, "outbox-%016llx%016llx",
                 (unsigned long long)rv_prng_next(&w->dice[STREAM_OUTBOX]),
                 (unsigned long long)rv_prng_next(&w->dice[STREAM_OUTBOX]));
    world_say(w, "shop", "writes order %u as row %lld, key %s", order, (long long)id, row->key);
}

static void transaction_begin(struct world *w)
{
    struct outbox *o = w->outbox;
    uint64_t most = 1 + world_roll(w, STREAM_OUTBOX, AT_ONCE_MAX);
    o->open = true;
    o->open_from = o->count;
    for (; most > 0 && o->next < o->orders; o->next++)
        if (part_stays(w, PART_ORDER, 0, OUTBOX_FIRST + o->next)) {
            row_insert(w, OUTBOX_FIRST + o->next);
            most--;
        }
    bool lasts = !w->healed && world_chance(w, STREAM_OUTBOX, 50);
    world_at(w, w->now + 1 + world_spread(w, STREAM_OUTBOX, lasts ? OPEN_LONG_MS : OPEN_MS),
             EVENT_OUTBOX, 0, 0);
}

/* It says COMMIT, or ROLLBACK, or dies, which is the same. */
static void transaction_end(struct world *w)
{
    struct outbox *o = w->outbox;
    bool undone = fault_strikes(w, FAULT_ROLLBACK, ACTOR_RELAY);
    for (size_t i = o->open_from; i < o->count; i++) {
        struct outbox_row *row = &o->rows[i];
        row->state = undone ? OUTBOX_UNDONE : OUTBOX_WAITS;
        world_say(w, "shop", "order %u is %s", row->order, undone ? "rolled back" : "committed");
    }
    o->open = false;
    if (!undone) {
        o->commits++;
        o->undo_count = 0;
    }
    if (o->next < o->orders)
        world_at(w, w->now + 1 + world_spread(w, STREAM_OUTBOX, PACE_MS), EVENT_OUTBOX, 0, 0);
}

void outbox_turn(struct world *w)
{
    if (w->outbox->open)
        transaction_end(w);
    else
        transaction_begin(w);
}

void outbox_power(struct world *w)
{
    struct outbox *o = w->outbox;
    size_t kept = (size_t)fault_roll(w, o->undo_count + 1);
    while (kept < o->undo_count && !o->undo[kept].first)
        kept++; /* a transaction is undone as a whole */
    while (o->undo_count > kept) {
        const struct undo *undo = &o->undo[--o->undo_count];
        world_say(w, "shop", "row %lld is again what it was", (long long)o->rows[undo->place].id);
        o->rows[undo->place].state = undo->was;
    }
    o->commits++;
}

/* ---- what the world asks ---- */

bool outbox_settled(const struct world *w)
{
    const struct outbox *o = w->outbox;
    if (o == NULL)
        return true;
    bool settled = !o->open && o->next == o->orders;
    for (size_t i = 0; settled && i < o->count; i++)
        settled = o->rows[i].state != OUTBOX_WAITS;
    return settled;
}

uint64_t outbox_commits(const struct world *w)
{
    return w->outbox != NULL ? w->outbox->commits : 0;
}

struct outbox_row *outbox_row_at(struct world *w, size_t place)
{
    return w->outbox != NULL && place < w->outbox->count ? &w->outbox->rows[place] : NULL;
}

struct outbox_row *outbox_order(struct world *w, int64_t order)
{
    struct outbox_row *row;
    for (size_t i = 0; (row = outbox_row_at(w, i)) != NULL; i++)
        if (row->order == order)
            return row;
    return NULL;
}

/* ---- the relay's side: outbox.h of src/relay ---- */

static enum rv_err gone(struct rv_relay_fault *fault)
{
    snprintf(fault->message, sizeof fault->message, "the relay is dead");
    return RV_ERR_IO;
}

const char *rv_outbox_sql(void)
{
    return "the table of the simulated shop";
}

enum rv_err rv_outbox_make(const char *path, bool *ret_new_file, struct rv_relay_fault *fault)
{
    struct world *w = relay_world(path);
    (void)fault;
    *ret_new_file = !w->outbox->made;
    w->outbox->made = true;
    return RV_OK;
}

enum rv_err rv_outbox_open(const char *path, struct rv_outbox **ret_outbox,
                           struct rv_relay_fault *fault)
{
    struct world *w = relay_world(path);
    if (relay_dead())
        return gone(fault);
    if (!w->outbox->made) {
        snprintf(fault->message, sizeof fault->message, "%s has no table reeve_outbox", path);
        return RV_ERR_INVALID;
    }
    struct rv_outbox *outbox = calloc(1, sizeof *outbox);
    rv_assert(outbox != NULL);
    outbox->world = w;
    *ret_outbox = outbox;
    return RV_OK;
}

void rv_outbox_close(struct rv_outbox *outbox)
{
    free(outbox);
}

static void row_read(struct world *w, struct rv_arena *arena, const struct outbox_row *from,
                     struct rv_row *row)
{
    *row = (struct rv_row){.id = from->id};
    row->created_at = from->created_at * RV_SECOND_MS;
    row->item.priority = -1;
    row->item.key = rv_arena_str(arena, rv_str_of(from->key));
    row->item.workflow = rv_arena_printf(arena, "sim/w%u", from->order % w->workload->count);
    row->item.input = rv_arena_printf(arena,
                                      "{\"number\":%u,\"roll\":%u,\"secret\":\"" SIM_CANARY "\"}",
                                      from->order, from->order * 7 % 10);
}

enum rv_err rv_outbox_read(struct rv_outbox *outbox, struct rv_arena *arena, int64_t from,
                           int64_t until, size_t limit, size_t bytes, struct rv_row *ret_rows,
                           size_t *ret_count, struct rv_relay_fault *fault)
{
    struct world *w = outbox->world;
    const struct outbox_row *row;
    size_t taken = arena->bytes_taken;
    *ret_count = 0;
    if (relay_dead())
        return gone(fault);
    for (size_t i = 0; (row = outbox_row_at(w, i)) != NULL; i++)
        if (row->state == OUTBOX_WAITS && row->id >= from && row->id <= until &&
            *ret_count < limit && arena->bytes_taken - taken < bytes)
            row_read(w, arena, row, &ret_rows[(*ret_count)++]);
    return RV_OK;
}

enum rv_err rv_outbox_last(struct rv_outbox *outbox, int64_t *ret_id, struct rv_relay_fault *fault)
{
    const struct outbox_row *row;
    *ret_id = 0;
    if (relay_dead())
        return gone(fault);
    for (size_t i = 0; (row = outbox_row_at(outbox->world, i)) != NULL; i++)
        if (row->state >= OUTBOX_WAITS && row->state != OUTBOX_MOVED)
            *ret_id = row->id;
    return RV_OK;
}

enum rv_err rv_outbox_marked(struct rv_outbox *outbox, uint64_t *ret_old, uint64_t *ret_all,
                             struct rv_relay_fault *fault)
{
    const struct outbox_row *row;
    *ret_old = *ret_all = 0;
    if (relay_dead())
        return gone(fault);
    for (size_t i = 0; (row = outbox_row_at(outbox->world, i)) != NULL; i++) {
        *ret_old += row->state == OUTBOX_OLD;
        *ret_all += row->state == OUTBOX_OLD || row->state == OUTBOX_REFUSED;
    }
    return RV_OK;
}

enum rv_err rv_outbox_changed(struct rv_outbox *outbox, bool *ret_changed,
                              struct rv_relay_fault *fault)
{
    uint64_t commits = outbox->world->outbox->commits;
    if (relay_dead())
        return gone(fault);
    *ret_changed = !outbox->asked || commits != outbox->seen;
    outbox->asked = true;
    outbox->seen = commits;
    return RV_OK;
}

bool rv_outbox_moved(struct rv_outbox *outbox)
{
    (void)outbox; /* the file stays where it is */
    return false;
}

static void row_write(struct outbox *o, size_t place, enum outbox_state state, bool first)
{
    if (o->undo_count == o->undo_room) {
        o->undo_room = o->undo_room ? 2 * o->undo_room : 32;
        o->undo = realloc(o->undo, o->undo_room * sizeof *o->undo);
        rv_assert(o->undo != NULL);
    }
    o->undo[o->undo_count++] = (struct undo){place, o->rows[place].state, first};
    o->rows[place].state = state;
}

/* As the statements DELETE (by number and key) and UPDATE (by number) find it; o->count: there is
 * no such row. */
static size_t row_find(const struct outbox *o, const struct rv_row *row, bool by_key)
{
    size_t place = 0;
    for (; place < o->count; place++) {
        const struct outbox_row *there = &o->rows[place];
        bool is_there = there->state >= OUTBOX_WAITS && there->state != OUTBOX_MOVED;
        if (is_there && there->id == row->id && (!by_key || rv_str_is(row->item.key, there->key)))
            return place;
    }
    return place;
}

static bool row_settle(struct world *w, const struct rv_row *row, bool first)
{
    struct outbox *o = w->outbox;
    bool moved = row->verdict == RV_ROW_ACCEPTED || row->verdict == RV_ROW_KNOWN;
    size_t place = row->verdict == RV_ROW_WAITS ? o->count : row_find(o, row, moved);
    if (place == o->count)
        return false;
    row_write(o, place,
              moved                            ? OUTBOX_MOVED
              : row->verdict == RV_ROW_REFUSED ? OUTBOX_REFUSED
                                               : OUTBOX_OLD,
              first);
    check_row_settled(w, &o->rows[place], row->why);
    return true;
}

enum rv_err rv_outbox_settle(struct rv_outbox *outbox, const struct rv_row *rows, size_t count,
                             struct rv_relay_fault *fault)
{
    struct world *w = outbox->world;
    if (relay_dies())
        return gone(fault);
    if (w->outbox->open) {
        snprintf(fault->message, sizeof fault->message, "the shop keeps a transaction open");
        return RV_ERR_BUSY;
    }
    bool first = true;
    for (size_t i = 0; i < count; i++)
        first = !row_settle(w, &rows[i], first) && first;
    if (!first)
        w->outbox->commits++;
    return relay_dies() ? gone(fault) : RV_OK;
}
