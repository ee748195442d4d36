/* A relay is the product's own, thread for thread: relay.c and sender.c of src/relay run on two
 * strands that take turns in virtual time. It dies where it stands: from then on its calls reach
 * nobody, its database gives it nothing and takes nothing, and what is left of it runs to its end
 * unseen, so that it frees what it has. Its lock is free at once, as the system's is. */
#include "sim/cast/relay.h"

#include "base/assert.h"
#include "sim/cast/outbox.h"
#include "sim/cast/relay_priv.h"
#include "sim/check/check.h"
#include "sim/world/fault.h"
#include "sim/world/world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define DATABASE "sqlite:shop.db"

enum { TROUBLE_MS = 1000, AGAIN_MS = 1000, DOWN_MS = 3000, DRAIN_TURNS_MAX = 100000 };
enum { TROUBLE_LOOK, TROUBLE_CLEAR, TROUBLE_START };

struct relays {
    struct relay_actor all[SIM_RELAYS_MAX];
};

struct relay_actor *relay_inside;
struct strand *relay_strand;
static struct world *the_world; /* one at a time in a process */

/* ---- strands ---- */

static void strand_call(void *self)
{
    struct strand *strand = self;
    strand->run(strand->self);
    strand->over = true;
}

static void strand_go_on(struct relay_actor *r, struct strand *strand)
{
    relay_inside = r;
    relay_strand = strand;
    if (!strand->begun) {
        strand->begun = true;
        (void)fiber_run(strand->fiber, strand_call, strand);
    } else {
        (void)fiber_go_on(strand->fiber);
    }
    relay_inside = NULL;
    relay_strand = NULL;
}

void relay_wait(int64_t at)
{
    struct relay_actor *r = relay_inside;
    struct strand *strand = relay_strand;
    strand->turn++;
    if (at >= 0 && !r->dead)
        world_at(r->world, at, EVENT_RELAY, r->number,
                 strand->turn << 1 | (uint64_t)(strand - r->strands));
    fiber_pause(strand->fiber);
}

void relay_wake(struct relay_actor *r, struct strand *strand)
{
    if (!r->dead)
        world_at(r->world, r->world->now, EVENT_RELAY, r->number,
                 strand->turn << 1 | (uint64_t)(strand - r->strands));
}

/* ---- a life ---- */

static void relay_main(void *self)
{
    struct relay_actor *r = self;
    r->err = rv_relay_run(&r->options, &r->counts, &r->fault);
}

static void life_end(struct relay_actor *r)
{
    r->up = r->dead = r->has_lock = false;
    for (int i = 0; i < STRANDS; i++) {
        fiber_free(r->strands[i].fiber);
        r->strands[i].fiber = NULL;
    }
}

/* What it says when it ends by itself. */
static void life_over(struct world *w, struct relay_actor *r)
{
    bool expected = r->err == RV_OK || r->err == RV_ERR_IN_USE || r->err == RV_ERR_BUSY;
    world_say(w, r->name, "has ended: %s %s; %llu accepted, %llu known, %llu refused, %llu old",
              rv_err_text(r->err), r->fault.message, (unsigned long long)r->counts.accepted,
              (unsigned long long)r->counts.known, (unsigned long long)r->counts.refused,
              (unsigned long long)r->counts.old);
    if (!r->options.once || !expected)
        world_violate(w, "X-02", "a relay gives up: %s", r->fault.message);
    life_end(r);
    world_at(w, w->now + AGAIN_MS, EVENT_RELAY_TROUBLE, r->number, TROUBLE_START);
}

void relay_turn(struct world *w, uint32_t relay, uint64_t detail)
{
    struct relay_actor *r = &w->relays->all[relay];
    struct strand *strand = &r->strands[detail & 1];
    bool there = r->up && !r->dead && strand->fiber != NULL && !strand->over;
    if (!there || strand->turn != detail >> 1)
        return;
    strand_go_on(r, strand);
    if (r->dead)
        return;
    if (strand->over && strand != &r->strands[MAIN])
        relay_wake(r, &r->strands[MAIN]); /* which joins it */
    if (r->strands[MAIN].over)
        life_over(w, r);
}

/* It takes the signals of the process that it is in; the simulator keeps its own. */
static void main_begin(struct relay_actor *r)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    struct sigaction was[NUMBERS];
    for (size_t i = 0; i < NUMBERS; i++)
        sigaction(numbers[i], NULL, &was[i]);
    strand_go_on(r, &r->strands[MAIN]);
    for (size_t i = 0; i < NUMBERS; i++)
        sigaction(numbers[i], &was[i], NULL);
}

static void relay_start(struct world *w, struct relay_actor *r)
{
    if (r->up)
        return;
    r->up = true;
    r->life++;
    r->asked = NULL;
    r->options = (struct rv_relay_options){
        .database = DATABASE,
        .url = r->name,
        .once = world_chance(w, STREAM_RELAY + r->number, 300),
    };
    for (int i = 0; i < STRANDS; i++)
        r->strands[i] = (struct strand){.turn = r->strands[i].turn + 1};
    r->strands[MAIN].fiber = fiber_new();
    r->strands[MAIN].run = relay_main;
    r->strands[MAIN].self = r;
    world_say(w, r->name, "starts, life %u%s", r->life, r->options.once ? ", once" : "");
    main_begin(r);
    if (!r->dead && r->strands[MAIN].over)
        life_over(w, r);
}

/* ---- a death ---- */

static void relay_kill(struct relay_actor *r)
{
    struct world *w = r->world;
    if (!r->up || r->dead)
        return;
    world_say(w, r->name, "is killed");
    r->dead = true;
    r->has_lock = false;
    if (r->asked != NULL)
        net_leave(w, r->asked);
    r->asked = NULL;
    world_at(w, w->now, EVENT_RELAY_TROUBLE, r->number, TROUBLE_CLEAR);
}

/* With the power all relays go, and what the database had not synced. */
static void relay_befalls(struct relay_actor *r)
{
    struct world *w = r->world;
    bool power = fault_strikes(w, FAULT_RELAY_POWER, ACTOR_RELAY + r->number);
    if (power) {
        world_say(w, "shop", "the power goes");
        outbox_power(w);
    }
    for (uint32_t i = 0; i < w->knobs.relay; i++)
        if (power || i == r->number)
            relay_kill(&w->relays->all[i]);
}

/* Strands take turns until the last one has come to its end. */
static void relay_clear(struct relay_actor *r)
{
    int turns = 0;
    while (!r->strands[MAIN].over) {
        rv_assert(++turns < DRAIN_TURNS_MAX);
        for (int i = 0; i < STRANDS; i++)
            if (r->strands[i].fiber != NULL && !r->strands[i].over)
                strand_go_on(r, &r->strands[i]);
    }
    life_end(r);
}

bool relay_dead(void)
{
    return relay_inside != NULL && relay_inside->dead;
}

bool relay_dies(void)
{
    struct relay_actor *r = relay_inside;
    if (!r->dead && fault_strikes(r->world, FAULT_RELAY_CRASH, ACTOR_RELAY + r->number))
        relay_befalls(r);
    return r->dead;
}

void relay_says(const char *event, const char *name, struct rv_str text, int64_t number)
{
    struct relay_actor *r = relay_inside;
    if (r->dead)
        return;
    if (text.at == NULL) {
        world_say(r->world, r->name, "%s %s=%lld", event, name, (long long)number);
        return;
    }
    world_say(r->world, r->name, "%s %s=%.*s", event, name, RV_STR_FMT(text));
    check_no_secret(r->world, text, "the relay's log");
}

/* ---- the world's side ---- */

struct world *relay_world(const char *path)
{
    (void)path; /* there is one */
    return the_world;
}

bool relay_may_lock(struct relay_actor *r, uint32_t *ret_other)
{
    struct world *w = r->world;
    for (uint32_t i = 0; i < w->knobs.relay; i++) {
        if (i == r->number || !w->relays->all[i].has_lock)
            continue;
        *ret_other = i;
        return fault_strikes(w, FAULT_RELAY_BESIDE, ACTOR_RELAY + r->number);
    }
    return true;
}

int64_t relay_now(void)
{
    return relay_inside->world->now;
}

uint64_t relay_draw(void)
{
    return rv_prng_next(&relay_inside->world->dice[STREAM_RELAY + relay_inside->number]);
}

void relays_new(struct world *w)
{
    if (w->knobs.relay == 0)
        return;
    the_world = w;
    w->relays = calloc(1, sizeof *w->relays);
    rv_assert(w->relays != NULL);
    outbox_new(w);
    struct rv_relay_fault fault;
    bool new_file;
    enum rv_err err = rv_relay_init(DATABASE, &new_file, &fault);
    rv_assert(err == RV_OK && new_file);
    for (uint32_t i = 0; i < w->knobs.relay; i++) {
        struct relay_actor *r = &w->relays->all[i];
        r->world = w;
        r->number = i;
        snprintf(r->name, sizeof r->name, "relay-%u", i % SIM_RELAYS_MAX);
        world_at(w, w->now + 1 + (int64_t)i, EVENT_RELAY_TROUBLE, i, TROUBLE_START);
        world_at(w, w->now + TROUBLE_MS, EVENT_RELAY_TROUBLE, i, TROUBLE_LOOK);
    }
}

void relays_free(struct world *w)
{
    for (uint32_t i = 0; w->relays != NULL && i < w->knobs.relay; i++) {
        struct relay_actor *r = &w->relays->all[i];
        r->dead = true;
        r->asked = NULL;
        if (r->up)
            relay_clear(r);
    }
    free(w->relays);
    outbox_free(w);
}

void relay_trouble(struct world *w, uint32_t relay, uint64_t detail)
{
    struct relay_actor *r = &w->relays->all[relay];
    if (detail == TROUBLE_START) {
        relay_start(w, r);
    } else if (detail == TROUBLE_CLEAR && r->dead) {
        int64_t down_ms = w->healed ? 0 : world_spread(w, STREAM_RELAY + relay, DOWN_MS);
        relay_clear(r);
        world_at(w, w->now + 1 + down_ms, EVENT_RELAY_TROUBLE, relay, TROUBLE_START);
    } else if (detail == TROUBLE_LOOK && !w->healed) {
        if (r->up && !r->dead && fault_strikes(w, FAULT_RELAY_CRASH, ACTOR_RELAY + relay))
            relay_befalls(r);
        world_at(w, w->now + TROUBLE_MS, EVENT_RELAY_TROUBLE, relay, TROUBLE_LOOK);
    }
}

void relays_heal(struct world *w)
{
    for (uint32_t i = 0; w->relays != NULL && i < w->knobs.relay; i++)
        if (!w->relays->all[i].up)
            world_at(w, w->now + 1, EVENT_RELAY_TROUBLE, i, TROUBLE_START);
}

static void exchange_over(struct world *w, const struct exchange *x, bool heard)
{
    struct relay_actor *r = &w->relays->all[x->actor];
    if (r->asked != x)
        return; /* whoever asked is dead */
    r->heard = heard;
    relay_wake(r, &r->strands[SENDER]);
}

void relay_answered(struct world *w, struct exchange *x)
{
    world_say(w, w->relays->all[x->actor].name, "gets %d %.*s", x->status, RV_STR_FMT(x->answer));
    exchange_over(w, x, true);
}

void relay_lost(struct world *w, struct exchange *x)
{
    exchange_over(w, x, false);
}
