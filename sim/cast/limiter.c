/* One change at a time, until it is answered. When faults have stopped pauses and rates are lifted,
 * a limit of what is open at a time stays: with it everything ends all the same (I-20). */
#include "sim/cast/limiter.h"

#include "sim/check/check.h"
#include "sim/cast/workload.h"
#include "sim/store/database.h"
#include "sim/world/world.h"

#include <stdio.h>

/* What is allowed in the end. */
#define LIFTED "{\"concurrent\":16,\"perSecond\":0}"

enum { ANSWER_WITHIN_MS = 10000, TURN_MS = 700, CONCURRENT_MAX = 5, RATE_MAX = 30 };

void limiter_new(struct world *w)
{
    for (uint32_t i = 0; i < SIM_KINDS_MAX; i++)
        w->limiter.kinds[i].agent = history_hash(rv_str_of(workload_agent(i)));
    if (w->knobs.limits > 0)
        world_at(w, w->now + TURN_MS, EVENT_LIMITER, 0, 0);
}

static void say(struct world *w, uint32_t kind, const char *verb, const char *body)
{
    char target[64];
    snprintf(target, sizeof target, "/v1/agents/%s/%s", workload_agent(kind), verb);
    world_say(w, "limiter", "%s %s %s", verb, workload_agent(kind), body);
    w->limiter.busy = true;
    w->limiter.asked = kind;
    net_ask(w, PEER_LIMITER, 0, 0, 0, "POST", rv_str_of(target), rv_str_of(body), ANSWER_WITHIN_MS);
}

static void decide(struct world *w)
{
    char body[96];
    uint32_t kind = (uint32_t)world_roll(w, STREAM_LIMITER, w->knobs.kinds);
    uint64_t what = world_roll(w, STREAM_LIMITER, 6);
    uint64_t concurrent = world_roll(w, STREAM_LIMITER, CONCURRENT_MAX);
    uint64_t rate = world_roll(w, STREAM_LIMITER, RATE_MAX);
    if (what == 0) {
        say(w, kind, "pause", "{\"by\":\"sim\"}");
    } else if (what <= 2) {
        say(w, kind, "resume", "");
    } else {
        snprintf(body, sizeof body, "{\"concurrent\":%llu,\"perSecond\":%llu}",
                 (unsigned long long)concurrent, (unsigned long long)rate);
        say(w, kind, "limit", body);
    }
}

static void lift(struct world *w)
{
    uint32_t kind = w->limiter.lifted / 2;
    if (w->limiter.lifted % 2 == 0)
        say(w, kind, "resume", "");
    else
        say(w, kind, "limit", LIFTED);
}

/* What was said before may arrive once more, and late: it is lifted again. */
static void lift_again(struct world *w)
{
    for (uint32_t i = 0; i < w->knobs.kinds; i++) {
        const struct rv_agent_limit *limit = &w->limiter.kinds[i].limit;
        bool slow = limit->per_second > 0 || (limit->concurrent > 0 && limit->concurrent < 16);
        if (w->limiter.busy || (!limit->paused && !slow))
            continue;
        say(w, i, limit->paused ? "resume" : "limit", limit->paused ? "" : LIFTED);
    }
}

void limiter_turn(struct world *w)
{
    struct limiter *l = &w->limiter;
    world_at(w, w->now + 1 + world_spread(w, STREAM_LIMITER, TURN_MS), EVENT_LIMITER, 0, 0);
    if (l->busy)
        return;
    if (w->healed && l->lifted == 2 * w->knobs.kinds)
        lift_again(w);
    else if (w->healed)
        lift(w);
    else
        decide(w);
}

void limiter_answered(struct world *w, struct exchange *x)
{
    struct limiter *l = &w->limiter;
    l->busy = false;
    world_say(w, "limiter", "gets %d %.*s", x->status, RV_STR_FMT(x->answer));
    if (x->status == 503)
        return;
    if (x->status != 200)
        world_violate(w, "W-02", "a change of limits got %d: %.*s", x->status,
                      RV_STR_FMT(x->answer));
    /* One that was asked for before faults stopped is not the one that lifts. */
    bool lifts = w->healed && l->asked == l->lifted / 2 &&
                 rv_str_eq(x->body, l->lifted % 2 == 0 ? RV_STR("") : RV_STR(LIFTED));
    l->lifted += lifts;
}

void limiter_lost(struct world *w, struct exchange *x)
{
    (void)x;
    world_say(w, "limiter", "gets no answer");
    w->limiter.busy = false;
}

/* ---- what is committed ---- */

/* What is counted is counted from the change on, with a full second's worth. */
static void learn(const struct world *w, struct limited *kind, const struct rv_agent_limit *limit,
                  int64_t now)
{
    kind->changed_at = w->now;
    if (limit->per_second != kind->limit.per_second) {
        kind->counted_at = now;
        kind->room = (int64_t)limit->per_second * 1000;
    }
    kind->limit = *limit;
    kind->limit.agent = kind->limit.by = RV_STR_NONE; /* the row's texts go */
    kind->limits = rv_agent_limit_any(limit);
}

static void learn_record(struct world *w, const struct rv_record *row, bool gone, int64_t now)
{
    uint64_t agent = history_hash(row->key);
    struct rv_agent_limit limit = {.at = now};
    if (!gone && rv_agent_limit_read(&w->history->scratch, row, &limit) != RV_OK)
        world_violate(w, "R-03", "the record of a limit cannot be read: %.*s",
                      RV_STR_FMT(row->value));
    for (size_t i = 0; i < SIM_KINDS_MAX; i++)
        if (w->limiter.kinds[i].agent == agent)
            learn(w, &w->limiter.kinds[i], &limit, now);
}

void limiter_committed(struct world *w, const struct rv_batch *batch, int64_t now)
{
    for (size_t i = 0; i < batch->records_count; i++) {
        const struct rv_record_change *change = &batch->records[i];
        if (change->outcome == RV_OK && rv_str_is(change->row.kind, RV_RECORD_AGENT_LIMIT))
            learn_record(w, &change->row, change->gone, now);
    }
}

void limiter_started(struct world *w, struct rv_store *store)
{
    struct limiter *l = &w->limiter;
    struct rv_record rows[SIM_KINDS_MAX];
    size_t count = 0;
    if (w->knobs.limits == 0)
        return;
    rv_arena_reset(&w->history->scratch);
    enum rv_err err = store->ops->list_records(store, &w->history->scratch,
                                               RV_STR(RV_RECORD_AGENT_LIMIT), RV_STR_NONE,
                                               RV_STR_NONE, SIM_KINDS_MAX, rows, &count);
    l->unknown = err != RV_OK;
    for (size_t k = 0; err == RV_OK && k < SIM_KINDS_MAX; k++) {
        bool found = false;
        for (size_t i = 0; i < count; i++)
            found = found || history_hash(rows[i].key) == l->kinds[k].agent;
        if (!found)
            learn(w, &l->kinds[k], &(struct rv_agent_limit){.at = 0}, 0);
    }
    for (size_t i = 0; err == RV_OK && i < count; i++)
        learn_record(w, &rows[i], false, rows[i].at);
}

void limiter_rewind(struct world *w)
{
    for (size_t k = 0; k < SIM_KINDS_MAX; k++)
        w->limiter.kinds[k].begun_in = 0;
    limiter_started(w, database_reader(w));
}

bool limiter_limits(const struct world *w, uint64_t agent)
{
    for (size_t i = 0; i < SIM_KINDS_MAX; i++)
        if (w->limiter.kinds[i].agent == agent)
            return w->limiter.kinds[i].limits || w->limiter.unknown;
    return false;
}
