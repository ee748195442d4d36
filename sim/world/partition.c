/* A cut is silent: nobody hears that what he sent goes nowhere. Half of it is lost, the other half
 * is sent again by the transport until the link is whole, and then arrives long after its time. */
#include "sim/world/partition.h"

#include "sim/world/fault.h"
#include "sim/world/world.h"

#include <string.h>

enum { CUT_MIN_MS = 100, CUT_DOUBLINGS = 10, SWIZZLE_MS = 3000, UNSWIZZLE_MS = 10000 };

static uint32_t end_of(enum peer peer, uint32_t actor)
{
    switch (peer) {
    case PEER_AGENT:
        return actor;
    case PEER_SHELL:
        return SIM_AGENTS_MAX + actor;
    case PEER_CLIENT:
        return SIM_AGENTS_MAX + SIM_SHELLS_MAX + actor;
    case PEER_OPERATOR:
    case PEER_AUTHOR:
    case PEER_LIMITER:
    case PEER_RELAY:
    case PEER_SCRIPT:
    case PEER_NOBODY:
        break;
    }
    return LINK_ENDS - 2;
}

struct link *partition_link(struct world *w, enum peer peer, uint32_t actor, uint32_t server)
{
    return &w->partitions->links[server * LINK_ENDS + end_of(peer, actor)];
}

struct link *partition_store_link(struct world *w, uint32_t server)
{
    return &w->partitions->links[server * LINK_ENDS + LINK_ENDS - 1];
}

bool partition_passes(struct world *w, const struct link *link, enum way way, uint32_t actor,
                      int64_t *at)
{
    int64_t until = link->cut_until[way];
    bool clogged = *at >= link->clogged_from && *at < link->clogged_until &&
                   until < link->clogged_until;
    if (clogged)
        until = link->clogged_until;
    if (w->healed || *at >= until)
        return true;
    fault_felt(w, clogged ? FAULT_SWIZZLE : FAULT_CUT, actor);
    if (world_chance(w, STREAM_PARTITION, 500))
        return false;
    *at = until + world_spread(w, STREAM_PARTITION, 200);
    return true;
}

/* 0.1 s to 120 s, each order of magnitude as likely as the others. */
static int64_t cut_ms(struct world *w)
{
    int64_t low = (int64_t)CUT_MIN_MS << fault_roll(w, CUT_DOUBLINGS + 1);
    int64_t ms = low + (int64_t)fault_roll(w, (uint64_t)low);
    return ms < 120000 ? ms : 120000;
}

static void link_cut(struct world *w, struct link *link)
{
    uint64_t ways = 1 + fault_roll(w, 3);
    int64_t until = w->now + cut_ms(w);
    world_say(w, "net", "link %u of server-%u is cut %s for %lld ms",
              (unsigned)((link - w->partitions->links) % LINK_ENDS),
              (unsigned)((link - w->partitions->links) / LINK_ENDS),
              ways == 1   ? "on the way there"
              : ways == 2 ? "on the way back"
                          : "both ways",
              (long long)(until - w->now));
    if (ways & 1)
        link->cut_until[WAY_TO_SERVER] = until;
    if (ways & 2)
        link->cut_until[WAY_BACK] = until;
}

static void swizzle(struct world *w, uint32_t links)
{
    world_say(w, "net", "half of the links are clogged one by one");
    for (uint32_t i = 0; i < links; i++) {
        struct link *link = &w->partitions->links[i];
        if (fault_roll(w, 2) == 0)
            continue;
        link->clogged_from = w->now + (int64_t)fault_roll(w, SWIZZLE_MS);
        link->clogged_until = w->now + SWIZZLE_MS + (int64_t)fault_roll(w, UNSWIZZLE_MS);
    }
    w->partitions->swizzled_until = w->now + SWIZZLE_MS + UNSWIZZLE_MS;
}

void partition_turn(struct world *w)
{
    uint32_t links = LINK_ENDS * w->knobs.servers;
    if (w->healed)
        return;
    for (uint32_t i = 0; i < links; i++)
        if (fault_strikes(w, FAULT_CUT, i % LINK_ENDS))
            link_cut(w, &w->partitions->links[i]);
    if (w->now >= w->partitions->swizzled_until && fault_strikes(w, FAULT_SWIZZLE, ACTOR_NOBODY))
        swizzle(w, links);
    world_at(w, w->now + 1000, EVENT_PARTITION, 0, 0);
}

void partition_heal(struct world *w)
{
    memset(w->partitions, 0, sizeof *w->partitions);
}
