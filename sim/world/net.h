/* net.h - calls over HTTP between actors and server, and everything that can befall them. */
#ifndef RV_SIM_NET_H
#define RV_SIM_NET_H

#include "base/str.h"
#include "sim/world/knobs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world;
struct served;

enum peer {
    PEER_AGENT,
    PEER_SHELL,
    PEER_CLIENT,
    PEER_OPERATOR,
    PEER_AUTHOR,
    PEER_LIMITER,
    PEER_RELAY,
    PEER_SCRIPT,
    PEER_NOBODY
};

/* One request and its answer. Lives as long as the world. */
struct exchange {
    enum peer peer;
    uint32_t actor;  /* which agent or client */
    uint32_t life;   /* of the actor when it asked: an answer to an earlier life reaches nobody */
    uint32_t tag;    /* the actor's own */
    uint32_t server; /* which one it goes to */
    int64_t sent_at; /* virtual time; of a copy: when the first of them was */
    bool waits;      /* the peer still waits for the answer */
    bool left;       /* the server has seen that the peer has gone */
    uint64_t number;
    struct served *served; /* while the server has it; else NULL */
    struct rv_str method;
    struct rv_str target;
    struct rv_str body;
    int status; /* of the answer under way */
    int64_t retry_after_ms;
    struct rv_str answer;
};

struct net {
    uint32_t homes[PEER_NOBODY][SIM_AGENTS_MAX]; /* which server the actor talks to */
    struct exchange **all;                       /* owned array; exchanges on the world's arena */
    size_t count;
    size_t room;
    int64_t late_until; /* the last request of those sent before faults stopped arrives then */
};

/* Actors choose their servers. */
void net_homes(struct world *w);
/* Sends; texts are copied. Within `timeout_ms` the peer gets an answer or hears that none came. */
struct exchange *net_ask(struct world *w, enum peer peer, uint32_t actor, uint32_t life,
                         uint32_t tag, const char *method, struct rv_str target, struct rv_str body,
                         int64_t timeout_ms);
/* Sends what arrives at this very instant, or as soon after it as the link allows. */
void net_ask_at(struct world *w, enum peer peer, uint32_t tag, const char *method,
                struct rv_str target, struct rv_str body, int64_t arrive_at);
/* The server answers; the text is copied. */
void net_answer(struct world *w, struct exchange *x, int status, int64_t retry_after_ms,
                struct rv_str body);
/* The server's side of the connection is gone (it died, or refuses to talk). */
void net_reset(struct world *w, struct exchange *x);
/* The peer's side is gone. */
void net_leave(struct world *w, struct exchange *x);

void net_arrive(struct world *w, uint64_t exchange);
void net_answered(struct world *w, uint64_t exchange);
void net_lost(struct world *w, uint64_t exchange);
void net_left(struct world *w, uint64_t exchange);

#endif
