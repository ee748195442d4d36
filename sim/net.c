/* A request may be lost, arrive twice, or late and out of order; so may its answer. A broken
 * connection is mostly seen at once, sometimes only by a timeout. What arrives is whole: TCP and
 * the HTTP parser see to that, and they are tested elsewhere. */
#include "sim/net.h"

#include "base/assert.h"
#include "sim/agent.h"
#include "sim/client.h"
#include "sim/crossing.h"
#include "sim/fault.h"
#include "sim/history.h"
#include "sim/operator.h"
#include "sim/scenario.h"
#include "sim/server.h"
#include "sim/world.h"

#include <stdlib.h>

enum { HEALED_DELAY_MS = 3 }; /* shorter than the shortest lease */

/* Whose a message is, for its faults and its dice. */
static uint32_t owner(const struct exchange *x)
{
    switch (x->peer) {
    case PEER_AGENT:
        return ACTOR_AGENT + x->actor;
    case PEER_CLIENT:
        return ACTOR_CLIENT + x->actor;
    case PEER_OPERATOR:
    case PEER_SCRIPT:
        return ACTOR_OPERATOR;
    case PEER_NOBODY:
        break;
    }
    return ACTOR_NOBODY;
}

static int64_t delay(struct world *w, const struct exchange *x)
{
    unsigned stream = STREAM_NET + owner(x);
    if (w->healed)
        return 1 + world_spread(w, stream, HEALED_DELAY_MS);
    int64_t ms = 1 + world_spread(w, stream, w->knobs.delay_ms);
    if (fault_strikes(w, FAULT_TAIL, owner(x)))
        ms += 1000 + (int64_t)fault_roll(w, 60000);
    return ms;
}

static void plan(struct world *w, const struct exchange *x, enum event_kind kind)
{
    world_at(w, w->now + delay(w, x), kind, 0, x->number);
}

/* The message itself, or the news that it is lost, or nothing at all. */
static void travel(struct world *w, const struct exchange *x, enum event_kind kind)
{
    if (!fault_strikes(w, FAULT_LOSS, owner(x)))
        plan(w, x, kind);
    else if (!fault_strikes(w, FAULT_SILENCE, owner(x)))
        plan(w, x, EVENT_LOST);
}

static struct exchange *exchange_new(struct world *w)
{
    struct net *net = w->net;
    if (net->count == net->room) {
        size_t room = net->room ? net->room * 2 : 256;
        struct exchange **all = realloc(net->all, room * sizeof(struct exchange *));
        rv_assert(all != NULL);
        net->all = all;
        net->room = room;
    }
    struct exchange *x = RV_NEW(&w->arena, struct exchange);
    rv_assert(x != NULL);
    x->number = net->count;
    net->all[net->count++] = x;
    return x;
}

/* A proxy or a library repeats the request on another connection; `left`: which was given up before
 * its answer left. */
static void request_repeat(struct world *w, const struct exchange *x, bool left)
{
    struct exchange *ghost = exchange_new(w);
    uint64_t own = ghost->number;
    *ghost = *x;
    ghost->number = own;
    ghost->peer = PEER_NOBODY;
    ghost->served = NULL;
    ghost->waits = false;
    ghost->left = left;
    plan(w, ghost, EVENT_ARRIVE);
}

struct exchange *net_ask(struct world *w, enum peer peer, uint32_t actor, uint32_t life,
                         uint32_t tag, const char *method, struct rv_str target, struct rv_str body,
                         int64_t timeout_ms)
{
    struct exchange *x = exchange_new(w);
    x->peer = peer;
    x->actor = actor;
    x->life = life;
    x->tag = tag;
    x->waits = peer != PEER_NOBODY;
    x->method = rv_str_of(method);
    x->target = rv_arena_str(&w->arena, target);
    x->body = rv_arena_str(&w->arena, body);
    world_trace(w, body.len);
    travel(w, x, EVENT_ARRIVE);
    if (fault_strikes(w, FAULT_DUPLICATE, owner(x)))
        request_repeat(w, x, fault_roll(w, 2) == 0);
    if (x->waits)
        world_at(w, w->now + timeout_ms, EVENT_LOST, 1, x->number);
    return x;
}

void net_arrive(struct world *w, uint64_t exchange)
{
    struct exchange *x = w->net->all[exchange];
    enum twist twist = crossing(w, BOUNDARY_ARRIVE);
    if (twist == TWIST_UNKNOWN_NOT_DONE) {
        net_reset(w, x);
        return;
    }
    if (twist == TWIST_BEFORE)
        server_kill(&w->servers[x->server], "dies before the request arrives");
    server_receive(w, x);
    if (twist == TWIST_AFTER)
        crossing_die(&w->servers[x->server]);
    if (twist == TWIST_UNKNOWN_DONE)
        net_reset(w, x);
    if (twist == TWIST_TWICE)
        request_repeat(w, x, false);
}

void net_answer(struct world *w, struct exchange *x, int status, int64_t retry_after_ms,
                struct rv_str body)
{
    if (!x->waits)
        return;
    enum twist twist = crossing(w, BOUNDARY_ANSWER);
    if (twist == TWIST_BEFORE || twist == TWIST_AFTER)
        crossing_die(&w->servers[x->server]);
    if (twist == TWIST_BEFORE || twist == TWIST_UNKNOWN_DONE) {
        net_reset(w, x);
        return;
    }
    x->status = status;
    x->retry_after_ms = retry_after_ms;
    x->answer = rv_arena_str(&w->arena, body);
    world_trace(w, (uint64_t)status ^ history_hash(body));
    world_trace(w, (uint64_t)status << 32 ^ body.len);
    travel(w, x, EVENT_ANSWER);
}

void net_reset(struct world *w, struct exchange *x)
{
    if (x->waits && !fault_strikes(w, FAULT_SILENCE, owner(x)))
        plan(w, x, EVENT_LOST);
}

void net_leave(struct world *w, struct exchange *x)
{
    if (!x->waits)
        return;
    x->waits = false;
    if (!fault_strikes(w, FAULT_SILENCE, owner(x)))
        plan(w, x, EVENT_LEFT);
}

void net_answered(struct world *w, uint64_t exchange)
{
    struct exchange *x = w->net->all[exchange];
    if (!x->waits)
        return;
    x->waits = false;
    switch (x->peer) {
    case PEER_AGENT:
        agent_answered(w, x);
        return;
    case PEER_CLIENT:
        client_answered(w, x);
        return;
    case PEER_OPERATOR:
        operator_answered(w, x);
        return;
    case PEER_SCRIPT:
        script_answered(w, x);
        return;
    case PEER_NOBODY:
        return;
    }
}

void net_lost(struct world *w, uint64_t exchange)
{
    struct exchange *x = w->net->all[exchange];
    if (!x->waits)
        return;
    net_leave(w, x);
    switch (x->peer) {
    case PEER_AGENT:
        agent_lost(w, x);
        return;
    case PEER_CLIENT:
        client_lost(w, x);
        return;
    case PEER_OPERATOR:
        operator_lost(w, x);
        return;
    case PEER_SCRIPT:
        script_lost(w, x);
        return;
    case PEER_NOBODY:
        return;
    }
}

void net_left(struct world *w, uint64_t exchange)
{
    struct exchange *x = w->net->all[exchange];
    x->left = true;
    server_left(w, x);
}
