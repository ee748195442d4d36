/* Limits of agents, where several servers share a store. Once in a scan interval each server reads
 * its part of every limit, and reports what it makes of it; the one that holds the supervisor's
 * role divides the limits anew from these reports (core/agent_share.h). */
#include "scheduler/duties/shares.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/agent_share.h"
#include "dispatch/agents.h"
#include "dispatch/held.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "dispatch/limits.h"
#include "dispatch/routing.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/duties/duty.h"

/* Attempts that count here, of tasks that others own, that are looked at in one batch. */
enum { LOOKS_MAX = 256 };

void shares_name(struct rv_scheduler *s, struct rv_wants *wants)
{
    bool due = s->enlistment.shared && s->batch.expected_now >= s->shares_at;
    bool divides = due && rv_supervisor_holds(&s->supervisor) && !s->draining;
    const struct rv_record_list shares = {.kind = RV_STR(RV_RECORD_AGENT_SHARES)};
    const struct rv_record_list uses = {.kind = RV_STR(RV_RECORD_AGENT_USE)};
    s->batch.division = due ? records_name(s, wants, shares) : NULL;
    s->batch.reports = divides ? records_name(s, wants, uses) : NULL;
    wants->servers_wanted = divides;
}

/* ---- attempts that count here, of tasks that others own ---- */

static bool is_away(const struct rv_scheduler *s, const struct held *held)
{
    return held->instance->kind->limit.concurrent != 0 &&
           rv_map_find(&s->owned, (uint64_t)held->step.task.value, 0) == NULL;
}

static size_t away_find(struct rv_scheduler *s, struct rv_step_id *ids)
{
    const struct rv_map *all = &s->agents.held;
    size_t count = 0, from = s->shares_from;
    for (size_t i = 0; i < all->room && count < LOOKS_MAX; i++) {
        const struct rv_map_slot *slot = &all->slots[(from + i) % all->room];
        s->shares_from = (from + i + 1) % all->room;
        if (!slot->used)
            continue;
        const struct held *held = (const struct held *)(uintptr_t)slot->value;
        if (is_away(s, held))
            ids[count++] = held->step;
    }
    return count;
}

/* Those that are over do not count any more. Of the others the rows are learned with the batch. */
static enum rv_err away_look(struct rv_scheduler *s)
{
    struct rv_step_id *ids = rv_arena_take(s->batch.arena, LOOKS_MAX * sizeof *ids);
    if (ids == NULL)
        return RV_ERR_MEMORY;
    size_t count = away_find(s, ids);
    share_enter(s, SHARE_SCAN);
    enum rv_err err = work_prefetch(s, ids, count);
    share_enter(s, SHARE_NONE);
    for (size_t i = 0; err == RV_OK && i < count; i++) {
        const struct work *work = work_find(s, ids[i].task);
        struct held *held = held_find(&s->agents, ids[i]);
        bool whole = work != NULL && !work->too_large;
        if (whole && held != NULL && work_step(work, ids[i].number) == NULL)
            held_remove(&s->agents, held);
    }
    return err;
}

static enum rv_err shares_plan(struct rv_scheduler *s)
{
    return s->batch.division != NULL && s->agents.concurrents > 0 ? away_look(s) : RV_OK;
}

/* ---- what this server reports ---- */

/* What an owner learns of a task it reports with its next look, or it is taken for dead and looked
 * for at last. */
static uint32_t older_of(const struct rv_scheduler *s, struct agent_kind *kind)
{
    int64_t scan_ms = s->options.scan_interval_ms;
    int64_t keep_ms = s->options.role_lease_ms + RV_LEASE_MARGIN_MS + 4 * scan_ms;
    return kind_older(kind, kind->limit.share.since, s->batch.now, keep_ms);
}

/* More than the limit is as good as the limit: a backlog that grows is no news. */
static void wanted_set(const struct rv_scheduler *s, struct agent_kind *kind,
                       struct rv_agent_use *use)
{
    kind_sweep(kind);
    size_t room = routing_room(kind, s->batch.turn), ready = kind->ready.count;
    size_t wanted = ready < room ? ready : room, most = kind->limit.concurrent;
    if (most < kind->limit.per_second)
        most = kind->limit.per_second;
    use->wanted = (uint32_t)wanted;
    use->waiting = (uint32_t)(ready - wanted < most ? ready - wanted : most);
    use->idle = (uint32_t)(room - wanted < most ? room - wanted : most);
}

static bool use_is(const struct rv_agent_use *a, const struct rv_agent_use *b)
{
    return a->version == b->version && a->limit_at == b->limit_at && a->open == b->open &&
           a->older == b->older && a->counts_since == b->counts_since && a->wanted == b->wanted &&
           a->waiting == b->waiting && a->idle == b->idle;
}

static enum rv_err use_report(struct rv_scheduler *s, struct agent_kind *kind)
{
    struct rv_buf value, key;
    struct rv_agent_use use = {.server = s->enlistment.instance,
                               .version = kind->limit.share.version,
                               .limit_at = kind->limit.at,
                               .open = kind->ours_count,
                               .older = older_of(s, kind),
                               .counts_since = kind->limit.counts_since};
    wanted_set(s, kind, &use);
    if (kind->limit.reported.server == use.server && use_is(&kind->limit.reported, &use))
        return RV_OK;
    rv_buf_init(&value, RV_PAYLOAD_BYTES_MAX);
    rv_buf_init(&key, RV_PAYLOAD_BYTES_MAX);
    rv_agent_use_write(&value, &use);
    rv_buf_printf(&key, "%u/%s", use.server, kind->name);
    enum rv_err err = key.failed;
    if (err == RV_OK)
        err = record_put(s,
                         (struct rv_record_change){
                             .row = {.kind = RV_STR(RV_RECORD_AGENT_USE), .key = rv_buf_str(&key)}},
                         &value);
    rv_buf_done(&value);
    rv_buf_done(&key);
    kind->limit.reporting = use;
    kind->limit.reports_in = s->batch.turn;
    return err;
}

/* ---- what is read ---- */

/* Shares of the agent; none: version 0. Those that cannot be read are made anew. */
static enum rv_err shares_of(struct rv_scheduler *s, const struct rv_record_list *all,
                             struct rv_str agent, struct rv_agent_shares *ret_shares)
{
    *ret_shares = (struct rv_agent_shares){.version = 0};
    for (size_t i = 0; i < all->count; i++) {
        if (!rv_str_eq(all->rows[i].key, agent))
            continue;
        enum rv_err err = rv_agent_shares_read(s->batch.arena, &all->rows[i], ret_shares);
        return err == RV_ERR_INVALID ? RV_OK : err;
    }
    return RV_OK;
}

static enum rv_err kinds_learn(struct rv_scheduler *s, const struct rv_record_list *all)
{
    for (struct agent_kind *kind = s->agents.kinds; kind != NULL; kind = kind->next) {
        struct rv_agent_shares shares;
        if (!kind_is_limited(kind))
            continue;
        RV_TRY(shares_of(s, all, rv_str_of(kind->name), &shares));
        limit_share(kind, &shares, rv_agent_shares_part(&shares, s->enlistment.instance),
                    s->batch.now);
        if (!s->agents.recovering) /* else it does not know all of its tasks */
            RV_TRY(use_report(s, kind));
    }
    return RV_OK;
}

/* ---- the division, by the holder of the role ---- */

static enum rv_err record_gone(struct rv_scheduler *s, struct rv_str kind, struct rv_str key)
{
    struct rv_record_change *change = batch_record(s);
    if (change == NULL)
        return RV_ERR_MEMORY;
    *change = (struct rv_record_change){
        .row = {.kind = kind, .key = key}, .gone = true, .epoch = s->supervisor.epoch};
    return RV_OK;
}

static enum rv_err shares_put(struct rv_scheduler *s, struct rv_str agent,
                              const struct rv_agent_shares *shares)
{
    struct rv_buf value;
    rv_buf_init(&value, RV_PAYLOAD_BYTES_MAX);
    rv_agent_shares_write(&value, shares);
    struct rv_record_change made = {.row = {.kind = RV_STR(RV_RECORD_AGENT_SHARES), .key = agent},
                                    .epoch = s->supervisor.epoch};
    enum rv_err err = record_put(s, made, &value);
    rv_buf_done(&value);
    return err;
}

/* The reports about the agent. */
static enum rv_err uses_of(struct rv_scheduler *s, const struct rv_record_list *all,
                           struct rv_str agent, struct rv_agent_division *division)
{
    struct rv_agent_use *uses = RV_NEW_ARRAY(s->batch.arena, struct rv_agent_use, RV_SERVERS_MAX);
    if (uses == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < all->count && division->uses_count < RV_SERVERS_MAX; i++) {
        struct rv_str its;
        if (!rv_agent_use_is_of(&all->rows[i], agent))
            continue;
        enum rv_err err = rv_agent_use_read(s->batch.arena, &all->rows[i],
                                            &uses[division->uses_count], &its);
        if (err == RV_ERR_MEMORY)
            return err;
        division->uses_count += err == RV_OK;
    }
    division->uses = uses;
    return RV_OK;
}

static enum rv_err kind_divide(struct rv_scheduler *s, const struct agent_kind *kind,
                               const struct rv_record_list *shares_all,
                               const struct rv_record_list *uses_all,
                               const struct rv_agent_division *known)
{
    struct rv_agent_division division = *known;
    struct rv_agent_shares shares;
    struct rv_str agent = rv_str_of(kind->name);
    struct rv_agent_limit limit = {.agent = agent,
                                   .concurrent = kind->limit.concurrent,
                                   .per_second = kind->limit.per_second,
                                   .at = kind->limit.at};
    bool changed;
    division.limit = &limit;
    RV_TRY(shares_of(s, shares_all, agent, &shares));
    RV_TRY(uses_of(s, uses_all, agent, &division));
    RV_TRY(rv_agent_shares_divide(s->batch.arena, &division, &shares, &changed));
    return changed ? shares_put(s, agent, &shares) : RV_OK;
}

/* Of agents without a limit, and of servers that are gone. */
static enum rv_err records_tidy(struct rv_scheduler *s, const struct rv_record_list *shares,
                                const struct rv_record_list *uses,
                                const struct rv_agent_division *known)
{
    for (size_t i = 0; i < shares->count; i++) {
        const struct agent_kind *kind = agents_kind_find(&s->agents, shares->rows[i].key);
        if (kind == NULL || !kind_is_limited(kind))
            RV_TRY(record_gone(s, RV_STR(RV_RECORD_AGENT_SHARES), shares->rows[i].key));
    }
    for (size_t i = 0; i < uses->count; i++) {
        struct rv_agent_use use;
        struct rv_str agent;
        enum rv_err err = rv_agent_use_read(s->batch.arena, &uses->rows[i], &use, &agent);
        if (err == RV_ERR_MEMORY)
            return err;
        const struct agent_kind *kind = agent.at != NULL ? agents_kind_find(&s->agents, agent)
                                                         : NULL;
        bool lives = false;
        for (size_t k = 0; k < known->servers_count; k++)
            lives = lives || known->servers[k] == use.server;
        if (!lives || kind == NULL || !kind_is_limited(kind))
            RV_TRY(record_gone(s, RV_STR(RV_RECORD_AGENT_USE), uses->rows[i].key));
    }
    return RV_OK;
}

static enum rv_err limits_divide(struct rv_scheduler *s, const struct rv_record_list *shares)
{
    const struct rv_record_list *uses = s->batch.reports;
    uint8_t *servers = rv_arena_take(s->batch.arena, RV_SERVERS_MAX);
    struct rv_agent_division known = {.servers = servers, .adopted = true, .now = s->batch.now};
    if (servers == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < s->batch.servers_count; i++) {
        if (s->batch.servers[i].lives)
            servers[known.servers_count++] = s->batch.servers[i].number;
        else
            known.adopted = false;
    }
    for (const struct agent_kind *kind = s->agents.kinds; kind != NULL; kind = kind->next)
        if (kind_is_limited(kind))
            RV_TRY(kind_divide(s, kind, shares, uses, &known));
    return records_tidy(s, shares, uses, &known);
}

static enum rv_err shares_look(struct rv_scheduler *s)
{
    struct rv_record_list *shares = s->batch.division;
    if (shares == NULL)
        return RV_OK;
    RV_TRY(records_read(s, shares));
    RV_TRY(kinds_learn(s, shares));
    if (s->batch.servers != NULL && rv_supervisor_holds(&s->supervisor))
        RV_TRY(limits_divide(s, shares));
    s->shares_at = rv_time_add(s->batch.now, s->options.scan_interval_ms);
    return RV_OK;
}

/* What was reported is written. */
static void shares_act(struct rv_scheduler *s)
{
    bool written = s->enlistment.shared && s->batch.taskless == RV_OK;
    for (struct agent_kind *kind = s->agents.kinds; written && kind != NULL; kind = kind->next)
        if (kind->limit.reports_in == s->batch.turn)
            kind->limit.reported = kind->limit.reporting;
}

static void shares_again(struct rv_scheduler *s)
{
    s->shares_at = 0;
}

static int64_t shares_next_at(const struct rv_scheduler *s)
{
    return s->enlistment.shared && !s->draining ? s->shares_at : INT64_MAX;
}

const struct duty shares_duty = {.plan = shares_plan,
                                 .hand_out = shares_look,
                                 .act = shares_act,
                                 .fail = shares_again,
                                 .forget = shares_again,
                                 .next_at = shares_next_at};
