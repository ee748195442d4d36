/* The records of limits are read again: at the start, and once one of them was changed, which may
 * have been said to another server. */
#include "base/assert.h"
#include "base/limits.h"
#include "core/agent_limit.h"
#include "dispatch/agents.h"
#include "dispatch/kind.h"
#include "dispatch/limits.h"
#include "scheduler/batch/registered.h"
#include "scheduler/batch/state.h"
#include "scheduler/duties/duty.h"

static enum rv_err page_learn(struct rv_scheduler *s, const struct rv_record *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct rv_agent_limit limit;
        /* One that cannot be read lets nothing through until an operator has set it anew. */
        enum rv_err err = rv_agent_limit_read(s->batch.arena, &rows[i], &limit);
        if (err != RV_OK && err != RV_ERR_INVALID)
            return err;
        struct agent_kind *kind = agents_kind(&s->agents, limit.agent);
        if (kind == NULL)
            return RV_ERR_MEMORY;
        limit_learn(kind, &limit, s->batch.now);
        rv_assert(kind->limit.read_in <= s->batch.turn);
        kind->limit.read_in = s->batch.turn;
    }
    return RV_OK;
}

static enum rv_err limits_load(struct rv_scheduler *s)
{
    if (!registered_changed(&s->registered, RV_REGISTRY_AGENT_LIMITS))
        return RV_OK;
    struct rv_record *rows = rv_arena_take(s->batch.arena, RV_PAGE_ROWS_MAX * sizeof *rows);
    if (rows == NULL)
        return RV_ERR_MEMORY;
    struct rv_str after = RV_STR_NONE;
    size_t count;
    do {
        enum rv_err err = s->store->ops->list_records(s->store, s->batch.arena,
                                                      RV_STR(RV_RECORD_AGENT_LIMIT), RV_STR_NONE,
                                                      after, RV_PAGE_ROWS_MAX, rows, &count);
        if (err != RV_OK)
            return err;
        rv_assert(count <= RV_PAGE_ROWS_MAX);
        RV_TRY(page_learn(s, rows, count));
        if (count > 0)
            after = rows[count - 1].key;
    } while (count == RV_PAGE_ROWS_MAX);
    for (struct agent_kind *kind = s->agents.kinds; kind != NULL; kind = kind->next)
        if (kind_is_limited(kind) && kind->limit.read_in != s->batch.turn)
            limit_learn(kind, &(struct rv_agent_limit){.at = 0}, s->batch.now);
    registered_know(&s->registered, RV_REGISTRY_AGENT_LIMITS);
    return RV_OK;
}

static int64_t limits_next_at(const struct rv_scheduler *s)
{
    return s->agents.limits_wake_at;
}

const struct duty limits_duty = {.hand_out = limits_load, .next_at = limits_next_at};
