/* All servers of a world. */
#include "sim/store/storage.h"
#include "sim/store/tap.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

void servers_failed_over(struct world *w, uint64_t number)
{
    for (uint32_t i = 0; i < w->knobs.servers; i++)
        tap_failed_over(&w->servers[i], number);
}

void servers_cut(struct world *w)
{
    storage_cut(w);
    for (uint32_t i = 0; i < w->knobs.servers; i++)
        server_kill(&w->servers[i], "killed at the end");
    for (uint32_t i = 0; i < w->knobs.servers; i++)
        server_start(&w->servers[i]);
}

struct rv_store *servers_store(struct world *w)
{
    for (uint32_t i = 0; i < w->knobs.servers; i++)
        if (w->servers[i].up)
            return w->servers[i].store;
    return NULL;
}
