/* The operator's word on what the agents of one name may take: a limit, a pause, or its end. It is
 * a record of the store; the caches learn it once it is written. */

#include "base/assert.h"
#include "base/limits.h"
#include "core/agent_limit.h"
#include "dispatch/agents.h"
#include "dispatch/kind.h"
#include "dispatch/limits.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"

static enum rv_err record_find(struct rv_scheduler *s, struct rv_str agent,
                               struct rv_agent_limit *ret_limit, bool *ret_found)
{
    struct rv_record row;
    size_t count;
    *ret_limit = (struct rv_agent_limit){.agent = agent};
    enum rv_err err = s->store->ops->list_records(s->store, s->batch.arena,
                                                  RV_STR(RV_RECORD_AGENT_LIMIT), agent, RV_STR_NONE,
                                                  1, &row, &count);
    *ret_found = err == RV_OK && count > 0 && rv_str_eq(row.key, agent);
    if (*ret_found)
        err = rv_agent_limit_read(s->batch.arena, &row, ret_limit);
    return err == RV_ERR_INVALID ? RV_OK : err;
}

static size_t limits_count(const struct rv_scheduler *s)
{
    size_t count = 0;
    for (const struct agent_kind *kind = s->agents.kinds; kind != NULL; kind = kind->next)
        count += kind_is_limited(kind);
    return count;
}

static enum rv_err record_write(struct rv_scheduler *s, const struct rv_agent_limit *limit)
{
    struct rv_buf value;
    rv_buf_init(&value, RV_PAYLOAD_BYTES_MAX);
    rv_agent_limit_write(&value, limit);
    struct rv_record_change made = {
        .row = {.kind = RV_STR(RV_RECORD_AGENT_LIMIT), .key = limit->agent},
        .gone = !rv_agent_limit_any(limit)};
    enum rv_err err = record_put(s, made, &value);
    rv_buf_done(&value);
    return err;
}

static enum rv_err limit_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_limit *asked = &p->call->u.limit;
    bool found;
    p->waits_turn = s->batch.record_changes++ > 0;
    if (p->waits_turn)
        return RV_OK;
    struct rv_agent_limit limit;
    enum rv_err err = record_find(s, asked->row.agent, &limit, &found);
    if (err != RV_OK)
        return err;
    if (!found && limits_count(s) >= RV_AGENT_LIMITS_MAX) {
        p->call->err = RV_ERR_LIMIT;
        p->call->message = RV_STR(
            "the maximum number of agents with limits or pauses is reached: remove the limits and "
            "pauses of unused agents (`reeve agents` lists the agents)");
        return RV_OK;
    }
    if (asked->sets_concurrent)
        limit.concurrent = asked->row.concurrent;
    if (asked->sets_rate)
        limit.per_second = asked->row.per_second;
    if (asked->sets_paused)
        limit.paused = asked->row.paused;
    limit.agent = asked->row.agent;
    limit.by = asked->row.by;
    limit.at = s->batch.now;
    struct agent_kind *kind = agents_kind(&s->agents, limit.agent);
    if (kind == NULL)
        return RV_ERR_MEMORY;
    rv_assert(kind->limit.changed_in < s->batch.turn); /* one change of records in a batch */
    kind->limit.changed_in = s->batch.turn;
    asked->after = limit;
    return found || rv_agent_limit_any(&limit) ? record_write(s, &limit) : RV_OK;
}

/* It is written, or was not: the caches learn it. */
static void limit_act(struct rv_scheduler *s, struct pending *p)
{
    const struct rv_call_limit *asked = &p->call->u.limit;
    if (!record_turn(s, p))
        return;
    struct agent_kind *kind = agents_kind_find(&s->agents, asked->row.agent);
    if (p->call->err == RV_OK && s->batch.taskless == RV_OK && kind != NULL) {
        rv_assert(kind->limit.changed_in == s->batch.turn);
        rv_assert(asked->after.at == s->batch.now);
        limit_learn(kind, &asked->after, s->batch.now);
    }
    answers_taskless_act(s, p);
}

static void log_limit(struct log_fields *line, const char *name, int64_t most)
{
    if (most > 0)
        log_number(line, name, most);
    else
        log_text(line, name, RV_STR("none"));
}

static void limit_log(struct rv_scheduler *s, const struct rv_call *call)
{
    const struct rv_call_limit *limit = &call->u.limit;
    struct log_fields line;
    log_command_begin(&line, !limit->sets_paused ? "limit"
                             : limit->row.paused ? "pause"
                                                 : "resume");
    log_text(&line, "agent", limit->row.agent);
    if (limit->sets_concurrent)
        log_limit(&line, "concurrent", limit->row.concurrent);
    if (limit->sets_rate)
        log_limit(&line, "rate", limit->row.per_second);
    log_command_end(s, &line, limit->row.by, limit->reason);
}

const struct call_ops limit_ops = {.decide = limit_decide, .act = limit_act, .log = limit_log};
