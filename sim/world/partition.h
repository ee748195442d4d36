/* partition.h - links between actors and servers that are cut for a while, in one way or both. */
#ifndef RV_SIM_PARTITION_H
#define RV_SIM_PARTITION_H

#include "sim/world/knobs.h"
#include "sim/world/net.h"

#include <stdbool.h>
#include <stdint.h>

struct world;

/* A link joins one actor, or a server's connection to the database, with one server. */
enum {
    LINK_ENDS = SIM_AGENTS_MAX + SIM_SHELLS_MAX + SIM_CLIENTS_MAX + 2,
    LINKS_MAX = LINK_ENDS * SIM_SERVERS_MAX
};

enum way { WAY_TO_SERVER, WAY_BACK, WAYS };

struct link {
    int64_t cut_until[WAYS];
    int64_t clogged_from; /* swizzle: the links of a set go one by one, and come back likewise */
    int64_t clogged_until;
};

struct partitions {
    struct link links[LINKS_MAX];
    int64_t swizzled_until;
};

/* The link between an actor and a server. */
struct link *partition_link(struct world *w, enum peer peer, uint32_t actor, uint32_t server);
/* The link between a server and its database. */
struct link *partition_store_link(struct world *w, uint32_t server);
/* False: what is sent at *at over the link that way is lost. True: it arrives, perhaps not before
 * the link is whole again; then *at is put off. */
bool partition_passes(struct world *w, const struct link *link, enum way way, uint32_t actor,
                      int64_t *at);
/* Once a second: which links are cut. */
void partition_turn(struct world *w);
/* All links are whole. */
void partition_heal(struct world *w);

#endif
