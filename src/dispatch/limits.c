/* Limits: what an operator allows the agents of one name. They are records of the store, so that
 * they survive a restart and hold on every server; the caches have them by kind. Steps that a limit
 * holds back stay in the ready queue, and wait for a named event: the end of an attempt, the next
 * token of the bucket, the operator's word. Whoever brings it about has the polls looked at again.
 *
 * Where several servers share a store each has a part of the limit (core/agent_share.h), and counts
 * what it has handed out itself, wherever the tasks are decided since. */
#include "dispatch/limits.h"

#include "base/assert.h"
#include "core/agent_limit.h"
#include "core/agent_share.h"
#include "dispatch/agents.h"
#include "dispatch/kind.h"

#include <stdlib.h>

bool kind_is_limited(const struct agent_kind *kind)
{
    const struct kind_limit *limit = &kind->limit;
    return limit->concurrent != 0 || limit->per_second != 0 || limit->paused;
}

/* Of a limit that is divided nothing is this server's but its part; and that of an older, higher
 * limit is not valid. */
static bool share_holds(const struct agent_kind *kind, uint32_t limit, uint32_t of)
{
    return kind->agents->divides && limit != 0 && (of == 0 || of > limit);
}

static void bucket_set(struct agent_kind *kind, int64_t now)
{
    struct kind_limit *limit = &kind->limit;
    bool none = limit->per_second == 0 ||
                share_holds(kind, limit->per_second, limit->share.of_per_second);
    uint32_t rate = kind->agents->divides ? limit->share.per_second : limit->per_second;
    rv_bucket_set(&limit->bucket, none ? 0 : rate, now);
}

void limit_learn(struct agent_kind *kind, const struct rv_agent_limit *row, int64_t now)
{
    struct kind_limit *limit = &kind->limit;
    free(limit->by);
    limit->by = row->by.at != NULL ? rv_str_dup(row->by) : NULL; /* without memory it is not told */
    limit->at = row->at;
    rv_assert(limit->concurrent == 0 || kind->agents->concurrents > 0);
    kind->agents->concurrents -= limit->concurrent != 0;
    kind->agents->concurrents += row->concurrent != 0;
    if (limit->concurrent == 0 && row->concurrent != 0) {
        limit->counts_since = now;
        limit->share.of_concurrent = 0; /* its share was one of another limit */
    }
    limit->concurrent = row->concurrent;
    limit->per_second = row->per_second;
    limit->paused = row->paused;
    bucket_set(kind, now);
}

void limit_share(struct agent_kind *kind, const struct rv_agent_shares *shares,
                 const struct rv_agent_part *part, int64_t now)
{
    struct kind_limit *limit = &kind->limit;
    bool another = limit->share.version != shares->version;
    bool counts = part != NULL && part->counts_since == limit->counts_since;
    limit->share = (struct kind_share){
        .version = shares->version,
        .since = shares->since,
        .of_concurrent = shares->concurrent,
        .of_per_second = shares->per_second,
        .concurrent = counts ? part->concurrent : 0,
        .per_second = part != NULL ? part->per_second : 0,
    };
    bucket_set(kind, now);
    if (another)
        kind_stir(kind);
}

/* ---- what holds a step back ---- */

static uint32_t counted(const struct agent_kind *kind)
{
    uint32_t open = kind->agents->divides ? kind->ours_count : kind->held_count;
    return open + kind->limit.given;
}

static uint32_t most_open(const struct agent_kind *kind)
{
    return kind->agents->divides ? kind->limit.share.concurrent : kind->limit.concurrent;
}

enum limit_hold limit_holds(const struct agent_kind *kind, int64_t now, int64_t *ret_until)
{
    const struct kind_limit *limit = &kind->limit;
    *ret_until = 0;
    if (limit->paused)
        return LIMIT_PAUSED;
    if (share_holds(kind, limit->concurrent, limit->share.of_concurrent) ||
        (limit->concurrent != 0 && counted(kind) >= most_open(kind)))
        return LIMIT_CONCURRENT;
    if (limit->per_second != 0 && limit->bucket.per_second == 0)
        return LIMIT_RATE;
    int64_t next_at = rv_bucket_next_at(&limit->bucket, now);
    if (next_at <= now)
        return LIMIT_NONE;
    *ret_until = next_at;
    return LIMIT_RATE;
}

size_t limit_room(const struct agent_kind *kind, int64_t now)
{
    const struct kind_limit *limit = &kind->limit;
    size_t room = RV_HEAP_LEAST_MAX, tokens = 0;
    if (limit->paused)
        return 0;
    if (limit->concurrent != 0) {
        uint32_t most = most_open(kind), out = counted(kind);
        if (share_holds(kind, limit->concurrent, limit->share.of_concurrent) || most == 0)
            return 0;
        room = most > out ? most - out : 1;
    }
    struct rv_bucket bucket = limit->bucket;
    while (limit->bucket.per_second != 0 && tokens < RV_HEAP_LEAST_MAX &&
           rv_bucket_take(&bucket, now))
        tokens++;
    if (limit->bucket.per_second != 0 && tokens < room)
        room = tokens > 0 ? tokens : 1;
    return room < RV_HEAP_LEAST_MAX ? room : RV_HEAP_LEAST_MAX;
}

bool limit_lets(struct agent_kind *kind, uint64_t turn, int64_t now)
{
    int64_t until;
    struct kind_limit *limit = &kind->limit;
    /* What is being changed is not known before the commit: the next batch goes by it. */
    bool changes = limit->changed_in == turn;
    limit->holds = changes || limit_holds(kind, now, &until) != LIMIT_NONE;
    return !limit->holds;
}

void limit_take(struct agent_kind *kind, int64_t now, int64_t at)
{
    struct kind_limit *limit = &kind->limit;
    limit->given++;
    rv_assert(limit->concurrent == 0 || counted(kind) <= most_open(kind));
    /* The caller has asked whether there is a token. */
    bool taken = rv_bucket_take(&limit->bucket, now);
    rv_assert(taken);
    rv_assert(at >= now);
    rv_bucket_hold(&limit->bucket, at);
}

void limits_begin(struct agents *agents)
{
    for (struct agent_kind *kind = agents->stirring; kind != NULL; kind = kind->stirs_next) {
        rv_assert(kind->agents == agents);
        kind->limit.given = 0;
        kind->limit.holds = false;
    }
}

bool limits_again(struct agents *agents, int64_t now)
{
    bool again = false;
    agents->limits_wake_at = INT64_MAX;
    for (struct agent_kind *kind = agents->stirring; kind != NULL; kind = kind->stirs_next) {
        int64_t until;
        kind->limit.given = 0; /* they are held now, or were not handed out */
        if (!kind->limit.holds)
            continue;
        enum limit_hold hold = limit_holds(kind, now, &until);
        again = again || hold == LIMIT_NONE;
        rv_assert(until == 0 || until > now);
        if (until != 0 && until < agents->limits_wake_at)
            agents->limits_wake_at = until;
    }
    return again;
}
