/* server.h - the server as a process: the real scheduler on a store, fed with the real bytes. */
#ifndef RV_SIM_SERVER_H
#define RV_SIM_SERVER_H

#include "api/request.h"
#include "api/route.h"
#include "scheduler/call.h"
#include "scheduler/scheduler.h"
#include "sim/net.h"
#include "store/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>

struct world;
struct tap;

enum { SERVER_ABSENCES_MAX = 4096 };

/* A time in which the server did not look at its clock. */
struct server_absence {
    int64_t from; /* on the wall clock */
    int64_t until;
};

/* A call while the server has it. */
struct served {
    struct rv_call call;
    struct world *world;
    struct exchange *x; /* NULL: one of the server's own, or its peer was forgotten */
    const struct rv_route *route;
    struct served *next; /* among all that are out */
    struct served *prev;
};

struct server {
    struct rv_store_memory_data *data; /* owned: survives every crash */
    struct tap *tap;                   /* owned: what stands between scheduler and store */
    struct rv_store *store;            /* open while the server is up */
    struct rv_scheduler *scheduler;
    struct rv_wall_clock clock;
    int64_t wall_ahead; /* of the virtual time */
    bool up;
    bool dying; /* what finishes now is not answered: the process is dead */
    int64_t paused_until;
    int64_t run_at; /* the next batch; INT64_MAX: none planned */
    uint32_t starts;
    uint64_t serial;
    int64_t looked_at; /* wall clock of the last look */
    struct rv_parser parser;
    struct rv_call **queue; /* owned: arrived, not yet in a batch */
    size_t queue_count;
    size_t queue_room;
    struct served *out;  /* all calls that are not freed */
    struct served *pool; /* freed ones, with their arenas */
    struct server_absence *absences;
    size_t absences_count;
    uint64_t batches;
};

void server_new(struct world *w);
void server_free(struct world *w);
int64_t server_wall(const struct world *w);

void server_receive(struct world *w, struct exchange *x);
void server_left(struct world *w, struct exchange *x);
/* A batch is due. */
void server_turn(struct world *w);
void server_start(struct world *w);
/* kill -9; it starts again after a while. */
void server_kill(struct world *w, const char *why);
/* Once a second: what may befall it between two batches. */
void server_outage(struct world *w);
void server_clock(struct world *w);
/* Everything mended: up, not paused. */
void server_heal(struct world *w);
/* True when the instant (wall clock) passed while the server did not look. */
bool server_was_absent(const struct world *w, int64_t at);

/* Publishes the definition without the net; before anything else happens. */
void server_publish(struct world *w, struct rv_str source);

#endif
