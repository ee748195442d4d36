/* The numbers as a snapshot, with a row for each agent. */
#include "scheduler/queries/metrics.h"

#include "base/assert.h"
#include "base/limits.h"
#include "dispatch/agents.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "scheduler/call.h"
#include "scheduler/queries/query.h"
#include "store/store.h"

/* A row for each agent, and one for all those beyond the bound: who watches must not be flooded by
 * names. */
static void agent_count(const struct agent_kind *kind, int64_t now, struct rv_agent_count *row)
{
    size_t waiting;
    int64_t since;
    kind_waiting(kind, &waiting, &since);
    int64_t age = since != 0 ? now - since : 0;
    row->waiting += waiting;
    row->oldest_ms = age > row->oldest_ms ? age : row->oldest_ms;
    row->polls_parked += kind->parked_count;
    row->circuits_open += kind->circuits.count;
    for (const struct agent_instance *i = kind->instances; i != NULL; i = i->next) {
        row->instances += instance_connected(i, now);
        row->attempts_open += i->held_count;
    }
}

enum rv_err metrics_read(const struct query *q, struct rv_call *call)
{
    struct rv_call_metrics *out = &call->u.metrics;
    struct rv_arena *arena = &call->arena;
    struct rv_counts *counts = RV_NEW(arena, struct rv_counts);
    out->agents = RV_NEW_ARRAY(arena, struct rv_agent_count, RV_METRICS_AGENTS_MAX + 1);
    if (counts == NULL || out->agents == NULL)
        return RV_ERR_MEMORY;
    *counts = *q->counts;
    out->counts = counts;
    out->calls_parked = q->calls_parked;
    for (const struct agent_kind *kind = q->agents->kinds; kind != NULL; kind = kind->next) {
        bool others = out->agents_count >= RV_METRICS_AGENTS_MAX;
        struct rv_agent_count *row =
            &out->agents[others ? RV_METRICS_AGENTS_MAX : out->agents_count];
        if (!others)
            row->agent = rv_arena_str(arena, rv_str_of(kind->name));
        out->agents_count += out->agents_count <= RV_METRICS_AGENTS_MAX;
        agent_count(kind, q->now, row);
    }
    rv_assert(out->agents_count <= RV_METRICS_AGENTS_MAX + 1);
    return RV_OK;
}
