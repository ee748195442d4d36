/* A request may be lost, arrive twice, or late and out of order; so may its answer. A broken
 * connection is mostly seen at once, sometimes only by a timeout. What the server reads of it, it
 * reads from bytes (wire.h). */
#include "sim/world/net.h"

#include "base/assert.h"
#include "sim/cast/agent.h"
#include "sim/cast/author.h"
#include "sim/cast/client.h"
#include "sim/check/check.h"
#include "sim/scenario/crossing.h"
#include "sim/world/fault.h"
#include "sim/world/history.h"
#include "sim/cast/operator.h"
#include "sim/world/partition.h"
#include "sim/cast/relay.h"
#include "sim/scenario/scenario.h"
#include "sim/world/server.h"
#include "sim/cast/shell.h"
#include "sim/world/wire.h"
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

enum { HEALED_DELAY_MS = 3 }; /* shorter than the shortest lease */
enum { ASK_AT_WAIT_MS = 10000 };
/* Of a thousand requests so many go to any server. */
enum { STRAYS = 50 };

/* Whose a message is, for its faults and its dice. */
static uint32_t owner(const struct exchange *x)
{
    switch (x->peer) {
    case PEER_AGENT:
        return ACTOR_AGENT + x->actor;
    case PEER_SHELL:
        return ACTOR_SHELL + x->actor;
    case PEER_CLIENT:
        return ACTOR_CLIENT + x->actor;
    case PEER_OPERATOR:
    case PEER_LIMITER:
    case PEER_SCRIPT:
        return ACTOR_OPERATOR;
    case PEER_AUTHOR:
        return ACTOR_AUTHOR;
    case PEER_RELAY:
        return ACTOR_RELAY + x->actor;
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

static void note_arrival(struct world *w, int64_t at)
{
    if (!w->healed && at > w->net->late_until)
        w->net->late_until = at;
}

/* When it will be there; 0: never, the link is cut. */
static int64_t plan(struct world *w, const struct exchange *x, enum event_kind kind)
{
    enum way way = kind == EVENT_ARRIVE || kind == EVENT_LEFT ? WAY_TO_SERVER : WAY_BACK;
    int64_t at = w->now + delay(w, x);
    if (!partition_passes(w, partition_link(w, x->peer, x->actor, x->server), way, owner(x), &at))
        return 0;
    if (kind == EVENT_ARRIVE)
        note_arrival(w, at);
    world_at(w, at, kind, 0, x->number);
    return at;
}

/* The message itself, or the news that it is lost, or nothing at all. When the message will be
 * there; 0: never. */
static int64_t travel(struct world *w, const struct exchange *x, enum event_kind kind)
{
    if (!fault_strikes(w, FAULT_LOSS, owner(x)))
        return plan(w, x, kind);
    if (kind == EVENT_ARRIVE && w->servers[x->server].up)
        wire_break(w, x);
    if (!fault_strikes(w, FAULT_SILENCE, owner(x)))
        world_at(w, w->now + delay(w, x), EVENT_LOST, 0, x->number);
    return 0;
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
    ghost->served = NULL;
    ghost->waits = false;
    ghost->left = left;
    plan(w, ghost, EVENT_ARRIVE);
    /* A copy may be copied once more (PEER_NOBODY). */
    if (x->peer == PEER_OPERATOR || x->peer == PEER_SCRIPT || x->peer == PEER_NOBODY)
        check_command_repeated(w, x->body);
    ghost->peer = PEER_NOBODY;
}

/* Where there are several servers an actor stays with one, mostly, as behind a balancer, and wholly
 * once nothing fails any more; from one that does not answer, or is busy, it goes to the next. */
static uint32_t home_of(struct world *w, const struct exchange *x)
{
    uint32_t *home = &w->net->homes[x->peer][x->actor];
    if (w->knobs.servers > 1 && !w->healed && world_chance(w, STREAM_NET + owner(x), STRAYS))
        *home = (uint32_t)world_roll(w, STREAM_NET + owner(x), w->knobs.servers);
    return *home;
}

static void home_leave(struct world *w, const struct exchange *x)
{
    w->net->homes[x->peer][x->actor] = (x->server + 1) % w->knobs.servers;
}

void net_homes(struct world *w)
{
    for (unsigned peer = 0; peer < PEER_NOBODY; peer++)
        for (uint32_t actor = 0; actor < SIM_AGENTS_MAX; actor++)
            w->net->homes[peer][actor] = actor % w->knobs.servers;
}

static struct exchange *exchange_make(struct world *w, enum peer peer, uint32_t actor,
                                      const char *method, struct rv_str target, struct rv_str body)
{
    struct exchange *x = exchange_new(w);
    x->peer = peer;
    x->actor = actor;
    x->server = home_of(w, x);
    x->sent_at = w->now;
    x->waits = true;
    x->method = rv_str_of(method);
    x->target = rv_arena_str(&w->arena, target);
    x->body = rv_arena_str(&w->arena, body);
    world_trace(w, body.len);
    return x;
}

/* Something will happen to the task that the reply names first, just when it arrives. */
static void beside_reply(struct world *w, const struct exchange *x, int64_t at)
{
    static const char before[] = "{\"replies\":[{\"step\":\"";
    struct rv_task_id task;
    struct rv_str id = {x->body.at + sizeof before - 1, RV_ID_TEXT_BYTES - 1};
    if (x->body.len > sizeof before + id.len &&
        memcmp(x->body.at, before, sizeof before - 1) == 0 && rv_task_parse(id, &task) == RV_OK &&
        history_task(w, task) != NULL)
        operator_beside(w, task, at);
}

struct exchange *net_ask(struct world *w, enum peer peer, uint32_t actor, uint32_t life,
                         uint32_t tag, const char *method, struct rv_str target, struct rv_str body,
                         int64_t timeout_ms)
{
    struct exchange *x = exchange_make(w, peer, actor, method, target, body);
    x->life = life;
    x->tag = tag;
    int64_t at = travel(w, x, EVENT_ARRIVE);
    if (at != 0 && rv_str_is(x->target, "/v1/replies"))
        beside_reply(w, x, at);
    if (fault_strikes(w, FAULT_DUPLICATE, owner(x)))
        request_repeat(w, x, fault_roll(w, 2) == 0);
    world_at(w, w->now + timeout_ms, EVENT_LOST, 1, x->number);
    return x;
}

void net_ask_at(struct world *w, enum peer peer, uint32_t tag, const char *method,
                struct rv_str target, struct rv_str body, int64_t arrive_at)
{
    struct exchange *x = exchange_make(w, peer, 0, method, target, body);
    x->tag = tag;
    if (arrive_at <= w->now)
        arrive_at = w->now + 1;
    world_at(w, arrive_at + ASK_AT_WAIT_MS, EVENT_LOST, 1, x->number);
    if (!partition_passes(w, partition_link(w, peer, 0, x->server), WAY_TO_SERVER, owner(x),
                          &arrive_at))
        return;
    note_arrival(w, arrive_at);
    world_at(w, arrive_at, EVENT_ARRIVE, 0, x->number);
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
    wire_answer(w, x, status, retry_after_ms, body);
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
    if (x->status == 503)
        home_leave(w, x);
    switch (x->peer) {
    case PEER_AGENT:
        agent_answered(w, x);
        return;
    case PEER_SHELL:
        shell_answered(w, x);
        return;
    case PEER_CLIENT:
        client_answered(w, x);
        return;
    case PEER_OPERATOR:
        operator_answered(w, x);
        return;
    case PEER_LIMITER:
        limiter_answered(w, x);
        return;
    case PEER_RELAY:
        relay_answered(w, x);
        return;
    case PEER_SCRIPT:
        script_answered(w, x);
        return;
    case PEER_AUTHOR:
        author_answered(w, x);
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
    home_leave(w, x);
    switch (x->peer) {
    case PEER_AGENT:
        agent_lost(w, x);
        return;
    case PEER_SHELL:
        shell_lost(w, x);
        return;
    case PEER_CLIENT:
        client_lost(w, x);
        return;
    case PEER_OPERATOR:
        operator_lost(w, x);
        return;
    case PEER_LIMITER:
        limiter_lost(w, x);
        return;
    case PEER_RELAY:
        relay_lost(w, x);
        return;
    case PEER_SCRIPT:
        script_lost(w, x);
        return;
    case PEER_AUTHOR:
        author_lost(w, x);
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
