/* A request may be lost, arrive twice, or late and out of order; so may its answer. A broken
 * connection is mostly seen at once, sometimes only by a timeout. What arrives is whole: TCP and
 * the HTTP parser see to that, and they are tested elsewhere. */
#include "sim/net.h"

#include "base/assert.h"
#include "sim/agent.h"
#include "sim/client.h"
#include "sim/operator.h"
#include "sim/server.h"
#include "sim/world.h"

#include <stdlib.h>

enum { HEALED_DELAY_MS = 3 }; /* shorter than the shortest lease */

static int64_t delay(struct world *w)
{
    const struct knobs *k = &w->knobs;
    if (w->healed)
        return 1 + world_spread(w, STREAM_NET, HEALED_DELAY_MS);
    int64_t ms = 1 + world_spread(w, STREAM_NET, k->delay_ms);
    if (world_chance(w, STREAM_NET, k->tail))
        ms += 1000 + (int64_t)world_roll(w, STREAM_NET, 60000);
    return ms;
}

static bool befalls(struct world *w, uint32_t permille)
{
    return !w->healed && world_chance(w, STREAM_NET, permille);
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
    if (!befalls(w, w->knobs.loss))
        world_at(w, w->now + delay(w), EVENT_ARRIVE, 0, x->number);
    else if (!befalls(w, w->knobs.silence))
        world_at(w, w->now + delay(w), EVENT_LOST, 0, x->number);
    if (befalls(w, w->knobs.duplicate)) {
        /* A proxy or a library repeats the request on another connection. */
        struct exchange *ghost = exchange_new(w);
        uint64_t own = ghost->number;
        *ghost = *x;
        ghost->number = own;
        ghost->peer = PEER_NOBODY;
        ghost->waits = false;
        ghost->left = befalls(w, 500); /* that connection was given up before its answer left */
        world_at(w, w->now + delay(w), EVENT_ARRIVE, 0, own);
    }
    if (x->waits)
        world_at(w, w->now + timeout_ms, EVENT_LOST, 1, x->number);
    return x;
}

void net_arrive(struct world *w, uint64_t exchange)
{
    server_receive(w, w->net->all[exchange]);
}

void net_answer(struct world *w, struct exchange *x, int status, int64_t retry_after_ms,
                struct rv_str body)
{
    if (!x->waits)
        return;
    x->status = status;
    x->retry_after_ms = retry_after_ms;
    x->answer = rv_arena_str(&w->arena, body);
    if (!befalls(w, w->knobs.loss))
        world_at(w, w->now + delay(w), EVENT_ANSWER, 0, x->number);
    else if (!befalls(w, w->knobs.silence))
        world_at(w, w->now + delay(w), EVENT_LOST, 0, x->number);
}

void net_reset(struct world *w, struct exchange *x)
{
    if (x->waits && !befalls(w, w->knobs.silence))
        world_at(w, w->now + delay(w), EVENT_LOST, 0, x->number);
}

void net_leave(struct world *w, struct exchange *x)
{
    if (!x->waits)
        return;
    x->waits = false;
    if (!befalls(w, w->knobs.silence))
        world_at(w, w->now + delay(w), EVENT_LEFT, 0, x->number);
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
