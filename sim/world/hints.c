#include "sim/world/hints.h"

#include "base/assert.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

#include <stdlib.h>

/* Of a thousand. Nobody repeats a hint. */
enum { LOST_PERMILLE = 100 };

struct hint {
    uint32_t starts;             /* of the process that it is for */
    const struct rv_str *agents; /* in the world's arena */
    size_t count;
};

struct hints {
    struct hint *all; /* owned; by number, never used again */
    size_t count;
    size_t room;
};

void hints_new(struct world *w)
{
    w->hints = calloc(1, sizeof *w->hints);
    rv_assert(w->hints != NULL);
}

void hints_free(struct world *w)
{
    if (w->hints != NULL)
        free(w->hints->all);
    free(w->hints);
    w->hints = NULL;
}

static uint64_t hint_add(struct hints *hints, struct hint hint)
{
    if (hints->count == hints->room) {
        hints->room = hints->room ? hints->room * 2 : 64;
        hints->all = realloc(hints->all, hints->room * sizeof *hints->all);
        rv_assert(hints->all != NULL);
    }
    hints->all[hints->count] = hint;
    return hints->count++;
}

static const struct rv_str *agents_copy(struct world *w, const struct rv_batch *batch)
{
    struct rv_str *agents = RV_NEW_ARRAY(&w->arena, struct rv_str, batch->ready_count);
    rv_assert(agents != NULL);
    for (size_t i = 0; i < batch->ready_count; i++) {
        agents[i] = rv_arena_str(&w->arena, batch->ready[i]);
        rv_assert(agents[i].at != NULL);
    }
    return agents;
}

void hints_sent(struct world *w, uint32_t server, const struct rv_batch *batch)
{
    const struct rv_str *agents = batch->ready_count > 0 ? agents_copy(w, batch) : NULL;
    for (uint32_t i = 0; agents != NULL && i < w->knobs.servers; i++) {
        if (i == server || !w->servers[i].up ||
            (!w->healed && world_chance(w, STREAM_HINT, LOST_PERMILLE)))
            continue;
        uint64_t number = hint_add(w->hints,
                                   (struct hint){w->servers[i].starts, agents, batch->ready_count});
        world_at(w, w->now + 1 + world_spread(w, STREAM_HINT, w->knobs.store_ms), EVENT_HINT, i,
                 number);
    }
}

void hint_arrives(struct world *w, uint32_t server, uint64_t number)
{
    const struct hint *hint = &w->hints->all[number];
    rv_assert(number < w->hints->count);
    server_hinted(w, server, hint->starts, hint->agents, hint->count);
}
