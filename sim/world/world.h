/* world.h - one simulated world: servers, agents, clients and an operator in virtual time. */
#ifndef RV_SIM_WORLD_H
#define RV_SIM_WORLD_H

#include "base/arena.h"
#include "base/heap.h"
#include "base/id.h"
#include "base/map.h"
#include "base/prng.h"
#include "base/str.h"
#include "sim/cast/author.h"
#include "sim/check/bound.h"
#include "sim/check/line.h"
#include "sim/check/conflict.h"
#include "sim/check/rounds.h"
#include "sim/world/fault.h"
#include "sim/world/knobs.h"
#include "sim/cast/limiter.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Everything that happens is an event in one heap, ordered by virtual time and, within a
 * millisecond, by arrival. All chance comes from the seed: faults have dice for each occasion
 * (fault.h), everything else has a stream for each actor; what one draws does not shift what
 * another draws. So a seed replays to the letter, and the trace hash says whether it did. */

enum event_kind {
    EVENT_ARRIVE,        /* detail: exchange: its request reaches the server */
    EVENT_ANSWER,        /* detail: exchange: its answer reaches the peer */
    EVENT_LOST,          /* detail: exchange: the peer learns that no answer comes */
    EVENT_LEFT,          /* detail: exchange: the server learns that the peer has gone */
    EVENT_SERVER,        /* actor: server: its next batch */
    EVENT_STORE,         /* actor: server: its store has done what it waits for */
    EVENT_START,         /* actor: server: it starts again */
    EVENT_CLOCK,         /* the store's wall clock jumps */
    EVENT_AGENT,         /* actor: agent: its session or a handler wants to be looked at */
    EVENT_REVIVE,        /* actor: agent: it starts again, or goes on after a pause */
    EVENT_TROUBLE,       /* actor: agent: something befalls it */
    EVENT_CLIENT,        /* actor: client */
    EVENT_OPERATOR,      /* the operator looks at something */
    EVENT_OUTAGE,        /* actor: server: something befalls it between two batches */
    EVENT_SHELL,         /* actor: shell: what it has in hand wants to be looked at */
    EVENT_SHELL_TROUBLE, /* actor: shell */
    EVENT_AUTHOR,        /* the author may publish */
    EVENT_LIMITER,       /* the operator who sets limits looks at something */
    EVENT_PARTITION,     /* links are cut */
    EVENT_HOOK,          /* detail: flight: a message is at its webhook, or its answer back */
    EVENT_SCRIPT,        /* the people of a scenario look at what is to be done */
    EVENT_RELAY,         /* actor: relay; detail: a strand of it wants to go on */
    EVENT_RELAY_TROUBLE, /* actor: relay; detail: what befalls it */
    EVENT_OUTBOX,        /* the application with the outbox has something to do */
    EVENT_HINT,          /* actor: server: it is told that steps wait at another one */
    EVENT_AWAY           /* actor: server: its store may not have answered for too long */
};

enum stream {
    STREAM_WORKLOAD,
    STREAM_SERVER,
    STREAM_OPERATOR,
    STREAM_CLIENT,
    STREAM_NET = STREAM_CLIENT + SIM_CLIENTS_MAX,
    STREAM_AGENT = STREAM_NET + ACTORS_NET,
    STREAM_STORE = STREAM_AGENT + SIM_AGENTS_MAX,
    STREAM_SHELL = STREAM_STORE + SIM_SERVERS_FIRST,
    STREAM_PARTITION = STREAM_SHELL + SIM_SHELLS_MAX,
    STREAM_HOOK,
    STREAM_LIMITER,
    STREAM_OUTBOX,
    STREAM_RELAY,
    STREAM_HEAVY = STREAM_RELAY + SIM_RELAYS_MAX,
    STREAM_STORE_LATE,
    STREAM_HINT = STREAM_STORE_LATE + SIM_SERVERS_MAX - SIM_SERVERS_FIRST,
    STREAM_COUNT
};

/* Of the store as the server of that number has it. */
static inline unsigned stream_store(uint32_t server)
{
    return server < SIM_SERVERS_FIRST ? STREAM_STORE + server
                                      : STREAM_STORE_LATE + server - SIM_SERVERS_FIRST;
}

struct database;
struct storage;
struct server;
struct agent;
struct shell;
struct partitions;
struct hints;
struct rewind;
struct client;
struct operator_;
struct net;
struct wire;
struct ledger;
struct history;
struct said;
struct workload;
struct with;
struct coverage;
struct scenario;
struct script;
struct crossings;
struct hooks;
struct outbox;
struct relays;
struct story;

/* What makes a world: the seed, and what is to be otherwise than the seed says. */
struct world_setup {
    uint64_t seed;
    const struct with *with;   /* NULL: nothing */
    FILE *transcript;          /* NULL: nobody reads it */
    FILE *record;              /* gets the parts of the world, a line each; NULL: nobody asks */
    struct coverage *coverage; /* is added to; NULL: nobody asks */
};

struct world {
    uint64_t seed;
    struct knobs knobs;
    int64_t now; /* virtual milliseconds */
    bool over;   /* it ends: nothing is looked at any more */
    bool healed; /* the second phase: no new faults, progress is owed */
    int64_t healed_at;
    int64_t worked_us; /* all servers */
    struct rv_heap events;
    uint64_t events_done;
    uint64_t commits;
    uint64_t trace;        /* hash of everything that happened */
    uint64_t rows;         /* hash of the rows at its end; 0: it has not come to it */
    struct rv_arena arena; /* lives as long as the world */
    struct rv_prng dice[STREAM_COUNT];
    struct database *database; /* all owned */
    struct storage *storage;   /* NULL: the store is in memory */
    struct server *servers;
    const struct server *committing; /* borrowed: whose batch is just being committed; or NULL */
    struct agent *agents;
    struct shell *shells;
    struct client *clients;
    struct operator_ *operator_;
    uint32_t commands; /* that operators have given */
    struct net *net;
    struct wire *wire;
    struct partitions *partitions;
    struct rewind *rewind; /* NULL: the store loses nothing */
    struct author author;
    struct limiter limiter;
    struct bounds bounds;
    struct lineup lineup;
    struct rounds_sum rounds;
    struct conflicts conflicts;
    struct ledger *ledger;
    struct history *history;
    struct said *said;
    struct workload *workload;
    struct hooks *hooks;
    struct hints *hints;
    struct outbox *outbox; /* NULL: there is none; so are the relays */
    struct relays *relays;
    struct faults *faults;
    struct coverage *coverage;       /* borrowed, or NULL */
    const struct scenario *scenario; /* NULL: a world from a seed; so are the next two */
    struct script *script;           /* on the arena */
    struct crossings *crossings;     /* borrowed */
    uint32_t orders;                 /* to be submitted, by all clients */
    uint32_t orders_anew;            /* that were taken twice, since their keys were forgotten */
    FILE *transcript;                /* borrowed; NULL: nobody reads it */
    struct story *story;             /* the transcript is one (run/story.h); NULL: it is not */
    const char *violated;            /* the invariant, or NULL */
    char detail[512];
    struct rv_task_id concerned; /* the task that is looked at; 0: none in particular */
};

/* Runs the world to its end; afterwards `violated` says how it went. */
void world_run(struct world *w, const struct world_setup *setup);
void world_free(struct world *w);

/* ---- what runs a world in another way uses ---- */

void world_init(struct world *w, const struct world_setup *setup);
/* Books and servers as the knobs say; the servers start. */
void world_open(struct world *w);
/* Runs events up to `until`, or until a commit after which `stop` says that it is enough. */
void world_pass(struct world *w, int64_t until, bool (*stop)(struct world *w));

/* ---- what actors use ---- */

void world_at(struct world *w, int64_t at, enum event_kind kind, uint32_t actor, uint64_t detail);
uint64_t world_roll(struct world *w, unsigned stream, uint64_t bound); /* 0 .. bound-1 */
bool world_chance(struct world *w, unsigned stream, uint32_t permille);
/* Mostly small, sometimes large: exponential with this mean. */
int64_t world_spread(struct world *w, unsigned stream, int64_t mean_ms);
int64_t spread(struct rv_prng *dice, int64_t mean_ms);

/* A line of the transcript. */
void world_say(struct world *w, const char *actor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* ... that a story (run/story.h) leaves out. */
void world_detail(struct world *w, const char *actor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Makes the number part of the trace. */
void world_trace(struct world *w, uint64_t number);
/* The first violation ends the world. */
void world_violate(struct world *w, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
