/* server.h - servers as processes: the real scheduler on a store, fed with the real bytes. */
#ifndef RV_SIM_SERVER_H
#define RV_SIM_SERVER_H

#include "api/request.h"
#include "api/route.h"
#include "base/map.h"
#include "scheduler/call.h"
#include "scheduler/scheduler.h"
#include "sim/check/bound.h"
#include "sim/check/rounds.h"
#include "sim/world/net.h"

#include <stdbool.h>
#include <stdint.h>

struct world;
struct tap;
struct fiber;

/* A call while the server has it. */
struct served {
    struct rv_call call;
    struct server *server;
    bool taken;         /* into a batch */
    bool looks;         /* server_look: the answer is read by checkers alone */
    uint64_t taken_in;  /* ... after so many that went well */
    struct exchange *x; /* NULL: one of the server's own, or its peer was forgotten */
    const struct rv_route *route;
    uint64_t behind;     /* calls that the server had then */
    uint64_t turns;      /* ... that change records, with this one: one in a batch */
    struct reading over; /* when what it waits for was first seen to have come */
    struct served *next; /* among all that are out */
    struct served *prev;
};

struct server {
    struct world *world;
    uint32_t number; /* in the world */
    char name[24];
    struct tap *tap;        /* owned: what stands between scheduler and store */
    struct rv_store *store; /* open while the server is up */
    struct rv_scheduler *scheduler;
    struct fiber *fiber; /* owned: its batches, where the store takes its time; else NULL */
    bool up;
    bool stopping; /* cleanly, when the batch is over */
    bool dying;    /* what finishes now is not answered: the process is dead */
    struct attention attention;
    int64_t paused_until;
    int64_t patient_until; /* so long calls wait for its store */
    int64_t go_on_at;      /* when what its batch waits for at the store is there */
    int64_t run_at;        /* the next batch; INT64_MAX: none planned */
    uint32_t starts;
    int64_t started_at; /* virtual time */
    uint64_t serial;
    struct rv_parser parser;
    struct rv_call **queue; /* owned: arrived, not yet in a batch */
    size_t queue_count;
    size_t queue_room;
    struct served *out;  /* all calls that are not freed */
    struct served *lost; /* those of a process that died: its last batch was made of them */
    struct served *pool; /* freed ones, with their arenas */
    uint64_t batches;
    uint64_t went_well;  /* of those: the store refused nothing as a whole */
    bool at_work;        /* a batch is under way */
    int64_t taken_at;    /* virtual time: its calls came before */
    int64_t heard_until; /* ... and so did all that arrived before this */
    int64_t begun_at;    /* ... and when it read the store's clock */
    bool looks_first;    /* it has not read it since its start, when the store was last alive at: */
    int64_t found_alive_at;
    int64_t leased_at;     /* virtual time at which its lease was renewed last, or begun */
    int64_t store_now;     /* ... and what that showed */
    int64_t first_now;     /* ... the first time after its start */
    int64_t holds_until;   /* it deletes nothing before (decision 019) */
    uint64_t fuel_beside;  /* granted to long decisions by its process, until the last batch */
    uint64_t done;         /* by its process, until the last batch */
    int64_t still_at;      /* virtual time of that batch */
    uint32_t still;        /* batches of that time after which it was the same */
    size_t calls_taken;    /* by batches at `read_at` */
    int64_t read_at;       /* virtual time of `reads`: (task, revision) -> how often it was read */
    struct rv_map reads;   /* (check/due.c) */
    struct rv_map replied; /* (token, step number) of replies that its newest batch has answered */
    uint64_t counts_from; /* of those that went well: until some later its queues may lack steps, */
    struct rounds rounds; /* of the batch under way */
    int64_t counts_bad;   /* and the virtual time at which the store last refused one; 0: never */
};

/* What the call asks for as a poll; NULL: nothing. */
const struct rv_poll *call_poll(const struct rv_call *call);

void servers_new(struct world *w);
void servers_free(struct world *w);

/* What came of a message that the process of that start had sent to a webhook. */
void server_delivered(struct world *w, uint32_t server, uint32_t starts,
                      const struct rv_notice_result *result);
/* The process of that start hears that steps of these agents wait at another server. */
void server_hinted(struct world *w, uint32_t server, uint32_t starts, const struct rv_str *agents,
                   size_t count);
/* At the server that the exchange goes to. */
void server_receive(struct world *w, struct exchange *x);
void server_left(struct world *w, struct exchange *x);
/* A batch is due. */
void server_turn(struct server *s);
/* Its store has done what the batch under way waits for. */
void server_go_on(struct server *s);
/* ... at that instant. */
void server_go_on_at(struct server *s, int64_t at);
/* Its batch waits for the store: whether calls still wait with it. */
void server_away(struct server *s);
/* The store has lost all after its transaction `number`. */
void servers_failed_over(struct world *w, uint64_t number);
void server_start(struct server *s);
/* kill -9; it starts again after a while. */
void server_kill(struct server *s, const char *why);
/* Once a second: what may befall it between two batches. */
void server_outage(struct server *s);
/* All of them die at once, with the power where their store has a disk, and start again. */
void servers_cut(struct world *w);
/* Everything mended: up, not paused. */
void servers_heal(struct world *w);
/* The store as one of the servers that are up has it open, past all faults. */
struct rv_store *servers_store(struct world *w);

/* Whether a server goes on with a store that gave this error (src/server/server.c). */
bool server_goes_on(enum rv_err err);

/* Asks without the net, as somebody does who may see everything but secrets. */
void server_look(struct server *s, const char *target);
/* Publishes the definition without the net; before anything else happens. */
void server_publish(struct server *s, struct rv_str source);

#endif
