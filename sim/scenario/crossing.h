/* crossing.h - the boundaries that a scenario crosses, and what can befall it at each of them. */
#ifndef RV_SIM_CROSSING_H
#define RV_SIM_CROSSING_H

#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world;
struct server;

/* Whoever acts at a boundary (the server at its store and its connections, an agent at its work)
 * dies before or after it, or what it asked for fails in one of these ways. */
enum twist {
    TWIST_NONE,
    TWIST_BEFORE,           /* the actor dies, nothing was done */
    TWIST_AFTER,            /* the actor dies, it was done */
    TWIST_UNKNOWN_DONE,     /* it was done, but the one who asked never hears */
    TWIST_UNKNOWN_NOT_DONE, /* it was not, and the one who asked cannot know */
    TWIST_REFUSED,          /* it was not, and the one who asked is told */
    TWIST_TWICE,            /* it is done twice */
    TWIST_COUNT
};

enum boundary {
#define BOUNDARY(name, text, twists) BOUNDARY_##name,
#include "sim/scenario/boundary.def"
#undef BOUNDARY
    BOUNDARY_COUNT
};

/* Every boundary that is crossed has a number, from 1 on. One bit for each twist that makes sense
 * there. */
uint32_t boundary_twists(enum boundary boundary);
const char *boundary_text(enum boundary boundary);
/* An agent dies there, not a server. */
bool boundary_of_agent(enum boundary boundary);
const char *twist_text(enum twist twist);
/* TWIST_NONE: there is none of that name. */
enum twist twist_find(const char *text);

struct crash {
    uint32_t number;
    enum twist twist;
};
enum { CRASHES_MAX = 2, GATES_MAX = 3 };

/* Between a server's scheduler and its store. */
struct gate {
    struct rv_store store; /* first: what the scheduler holds */
    struct rv_store *inner;
    struct server *server;
    bool dead; /* it has died in the midst of something, and does nothing more */
};

/* Of one run; the kinds outlive it, so that the next runs know what there is. */
struct crossings {
    struct gate gates[GATES_MAX]; /* by server */
    bool counting;
    struct crash planned[CRASHES_MAX];
    uint32_t planned_count;
    uint32_t met; /* of the planned ones */
    uint32_t count;
    uint8_t *kinds; /* owned: kinds[number - 1] */
    size_t room;
};

/* Forgets an earlier run, keeps its memory. */
void crossings_begin(struct crossings *crossings);
void crossings_done(struct crossings *crossings);

/* The world is at a boundary: what befalls it there. Worlds from seeds have no crossings. */
enum twist crossing(struct world *w, enum boundary boundary);
/* The server is dead from here on; the end of the event buries it. */
void crossing_die(struct server *s);
bool crossing_dead(const struct server *s);
/* After each event. */
void crossing_settle(struct world *w);
/* The store with its boundaries; in a world without crossings the store itself. */
struct rv_store *crossing_open(struct server *s, struct rv_store *inner);

#endif
