/* Limits: what an operator allows the agents of one name. They are records of the store, so that
 * they survive a restart and hold on every server; the caches have them by kind. Steps that a limit
 * holds back stay in the ready queue, and wait for a named event: the end of an attempt, the next
 * token of the bucket, the operator's word. Whoever brings it about has the polls looked at again.
 *
 * A server of a shared store hears within a scan interval what was said to another one, and counts
 * the attempts of all servers as its scan knows them, the tokens of its bucket by itself. */
#include "scheduler/batch/state.h"

#include "base/limits.h"
#include "base/time.h"

#include <stdlib.h>

static char *text_new(struct rv_str text)
{
    char *copy = text.at != NULL ? malloc(text.len + 1) : NULL;
    if (copy == NULL)
        return NULL;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return copy;
}

bool kind_is_limited(const struct agent_kind *kind)
{
    const struct kind_limit *limit = &kind->limit;
    return limit->concurrent != 0 || limit->bucket.per_second != 0 || limit->paused;
}

static void limit_learn(struct agent_kind *kind, const struct rv_agent_limit *row, int64_t now)
{
    struct kind_limit *limit = &kind->limit;
    free(limit->by);
    limit->by = text_new(row->by); /* without memory it is not told */
    limit->at = row->at;
    kind->agents->concurrents -= limit->concurrent != 0;
    kind->agents->concurrents += row->concurrent != 0;
    limit->concurrent = row->concurrent;
    limit->paused = row->paused;
    rv_bucket_set(&limit->bucket, row->per_second, now);
}

/* ---- what holds a step back ---- */

enum limit_hold limit_holds(const struct agent_kind *kind, int64_t now, int64_t *ret_until)
{
    const struct kind_limit *limit = &kind->limit;
    *ret_until = 0;
    if (limit->paused)
        return LIMIT_PAUSED;
    if (limit->concurrent != 0 && kind->held_count + limit->given >= limit->concurrent)
        return LIMIT_CONCURRENT;
    int64_t next_at = rv_bucket_next_at(&limit->bucket, now);
    if (next_at <= now)
        return LIMIT_NONE;
    *ret_until = next_at;
    return LIMIT_RATE;
}

bool limit_lets(const struct rv_scheduler *s, struct agent_kind *kind)
{
    int64_t until;
    struct kind_limit *limit = &kind->limit;
    /* What is being changed is not known before the commit: the next batch goes by it. */
    bool changes = limit->changed_in == s->batch.turn;
    limit->holds = changes || limit_holds(kind, s->batch.now, &until) != LIMIT_NONE;
    return !limit->holds;
}

void limit_take(const struct rv_scheduler *s, struct agent_kind *kind)
{
    kind->limit.given++;
    /* The caller has asked whether there is a token. */
    (void)rv_bucket_take(&kind->limit.bucket, s->batch.now);
}

/* Attempts that are out and that the caches hear of with this very batch: an operator takes their
 * task out of its error, or another server has handed them out. They are as good as given. */
static void unknown_count(struct rv_scheduler *s, const struct work *work)
{
    bool counts = work->task != NULL && work->task->state != RV_TASK_ERROR;
    for (size_t i = 0; counts && i < work->steps_count; i++) {
        const struct rv_step *row = work->steps[i].row;
        bool out = row->kind == RV_KIND_CALL && rv_attempt_state_live(row->attempt_state) &&
                   held_find(&s->agents, (struct rv_step_id){work->id, row->number}) == NULL;
        struct agent_kind *kind = out ? agents_kind_find(&s->agents, row->agent) : NULL;
        if (kind != NULL) {
            kind->limit.given++;
            kind_stir(kind);
        }
    }
}

void limits_begin(struct rv_scheduler *s)
{
    for (struct agent_kind *kind = s->agents.stirring; kind != NULL; kind = kind->stirs_next) {
        kind->limit.given = 0;
        kind->limit.holds = false;
    }
    bool any = s->agents.concurrents > 0;
    for (const struct work *w = s->batch.works; any && w != NULL; w = w->next)
        unknown_count(s, w);
}

void limits_again(struct rv_scheduler *s)
{
    s->agents.limits_wake_at = INT64_MAX;
    for (struct agent_kind *kind = s->agents.stirring; kind != NULL; kind = kind->stirs_next) {
        int64_t until;
        kind->limit.given = 0; /* they are held now, or were not handed out */
        if (!kind->limit.holds)
            continue;
        enum limit_hold hold = limit_holds(kind, s->batch.now, &until);
        s->more_due = s->more_due || hold == LIMIT_NONE;
        if (until != 0 && until < s->agents.limits_wake_at)
            s->agents.limits_wake_at = until;
    }
}

/* ---- the records ---- */

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
        kind->limit.read_in = s->batch.turn;
    }
    return RV_OK;
}

enum rv_err limits_load(struct rv_scheduler *s)
{
    if (s->batch.now < s->agents.limits_next_at)
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
        if (err == RV_OK)
            err = page_learn(s, rows, count);
        if (err != RV_OK)
            return err;
        if (count > 0)
            after = rows[count - 1].key;
    } while (count == RV_PAGE_ROWS_MAX);
    for (struct agent_kind *kind = s->agents.kinds; kind != NULL; kind = kind->next)
        if (kind_is_limited(kind) && kind->limit.read_in != s->batch.turn)
            limit_learn(kind, &(struct rv_agent_limit){.at = 0}, s->batch.now);
    /* Alone on its store a server hears of every change, since it makes it. */
    s->agents.limits_next_at = s->enlistment.shared
                                   ? rv_time_add(s->batch.now, s->options.scan_interval_ms)
                                   : INT64_MAX;
    return RV_OK;
}

/* ---- the operator's word ---- */

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

enum rv_err limit_decide(struct rv_scheduler *s, struct pending *p)
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
        p->call->message = RV_STR("the maximum number of agents with limits is reached: remove "
                                  "unused limits (`reeve agents` lists them)");
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
    kind->limit.changed_in = s->batch.turn;
    asked->after = limit;
    return found || rv_agent_limit_any(&limit) ? record_write(s, &limit) : RV_OK;
}

void limit_act(struct rv_scheduler *s, struct pending *p)
{
    const struct rv_call_limit *asked = &p->call->u.limit;
    struct agent_kind *kind = agents_kind_find(&s->agents, asked->row.agent);
    if (p->call->err == RV_OK && s->batch.taskless == RV_OK && kind != NULL)
        limit_learn(kind, &asked->after, s->batch.now);
}
