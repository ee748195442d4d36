/* fault.h - all that befalls a world, one occasion after the other, and what it can do without. */
#ifndef RV_SIM_FAULT_H
#define RV_SIM_FAULT_H

#include "base/buf.h"
#include "base/id.h"
#include "base/map.h"
#include "base/prng.h"
#include "sim/world/knobs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct world;

/* A *part* is what a world can be without: a single fault, a submission, a step of a workflow. It
 * is named by what it is, whose it is, and its number: "loss.3.17" is the 17th message of actor 3
 * that might have been lost, and was. The dice of each occasion come from the seed and this name
 * alone: where one part is left out, the others stay what they were. */
enum part_kind {
    PART_ORDER = FAULT_COUNT, /* of client: the submission of this number */
    PART_STEP,                /* of workflow: the step of this name */
    PART_KINDS
};

/* Whose a fault is: agents first, then the others. */
enum fault_actor {
    ACTOR_AGENT = 0,
    ACTOR_CLIENT = ACTOR_AGENT + SIM_AGENTS_MAX,
    ACTOR_OPERATOR = ACTOR_CLIENT + SIM_CLIENTS_MAX,
    ACTOR_NOBODY, /* a connection whose peer has gone */
    ACTOR_SERVER, /* servers and their stores */
    ACTOR_SHELL = ACTOR_SERVER + SIM_SERVERS_FIRST,
    ACTOR_AUTHOR = ACTOR_SHELL + SIM_SHELLS_MAX,
    ACTOR_RELAY,     /* and its shop */
    ACTORS_NET = 24, /* whose messages travel */
    ACTOR_SERVER_LATE = ACTORS_NET,
    ACTORS_MAX = ACTOR_SERVER_LATE + SIM_SERVERS_MAX - SIM_SERVERS_FIRST
};

/* The server of that number, and the other way round. */
static inline uint32_t actor_server(uint32_t number)
{
    return number < SIM_SERVERS_FIRST ? ACTOR_SERVER + number
                                      : ACTOR_SERVER_LATE + number - SIM_SERVERS_FIRST;
}

static inline uint32_t actor_server_number(uint32_t actor)
{
    return actor < ACTOR_SERVER_LATE ? actor - ACTOR_SERVER
                                     : actor - ACTOR_SERVER_LATE + SIM_SERVERS_FIRST;
}

struct part {
    uint16_t kind; /* enum fault or enum part_kind */
    uint16_t actor;
    uint32_t number;
};

struct parts {
    struct part *all; /* owned */
    size_t count;
    size_t room;
};

void parts_add(struct parts *parts, struct part part);
void parts_done(struct parts *parts);
/* "loss.3.17+order.0.4"; false: the text is no such list, and `ret_wrong` is what is wrong. */
bool parts_read(struct rv_str text, struct parts *parts, struct rv_str *ret_wrong);
/* What a world has recorded. */
void parts_read_record(FILE *record, struct parts *parts);
/* By kind, actor and number; none twice. */
void parts_sort(struct parts *parts);
void parts_write(const struct parts *parts, struct rv_buf *out);
void part_write(struct part part, struct rv_buf *out);

struct faults {
    uint32_t occasions[FAULT_COUNT][ACTORS_MAX]; /* so far */
    int64_t struck_at[FAULT_COUNT];              /* or was felt at last; -1: none so far */
    int64_t hit_at[FAULT_COUNT][ACTORS_MAX];     /* the same, by actor */
    bool any;                                    /* one has struck */
    struct rv_map hits;                          /* (class, task): when one hit that task */
    struct rv_prng dice;                         /* of the fault that struck last */
    bool chosen;                                 /* only parts in `kept` are in this world */
    struct rv_map kept;
    FILE *record; /* borrowed: gets all parts that there were, a line each; NULL: nobody asks */
};

void faults_new(struct world *w, const struct parts *only, FILE *record);
void faults_free(struct world *w);

/* Whether the fault happens on this occasion; never once the world is healed. */
bool fault_strikes(struct world *w, enum fault fault, uint32_t actor);
/* The nature of the fault that has just struck: 0 .. bound-1; around a mean. */
uint64_t fault_roll(struct world *w, uint64_t bound);
int64_t fault_spread(struct world *w, int64_t mean_ms);
/* One that lasts is still at work on that actor. */
void fault_felt(struct world *w, enum fault fault, uint32_t actor);
/* A fault of the class has hit that task. */
void fault_hits(struct world *w, enum fault fault, struct rv_task_id task);
/* Whether a fault of the class has hit that task, or one of the actors (a bit each), in the last
 * `within_ms` of virtual time, or was felt by one of them. */
bool fault_is_recent(const struct world *w, enum fault fault, struct rv_task_id task,
                     uint32_t actors, int64_t within_ms);
/* Whether a fault of the class has struck in this world. */
bool fault_happened(const struct world *w, enum fault fault);
/* ... or any fault at all. */
bool fault_happened_any(const struct world *w);
/* False: this world is to be without that submission, or step. */
bool part_stays(struct world *w, enum part_kind kind, uint32_t actor, uint32_t number);

const char *fault_name(enum fault fault);

#endif
