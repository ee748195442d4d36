/* What an operator allows the agents of one name. A server knows what was committed before its
 * batch began: where several share a store, what begins in a batch that was under way by then is
 * left out. */
#include "sim/check/check.h"

#include "sim/store/database.h"
#include "sim/world/server.h"
#include "sim/cast/limiter.h"
#include "sim/world/world.h"

static uint32_t live_count(const struct rv_step *row, uint64_t its_agent, uint64_t agent)
{
    return rv_attempt_state_live(row->attempt_state) && its_agent == agent;
}

/* Open attempts of the kind. Of a task in error nobody counts what is open: whether its agent is at
 * work is not known. */
static uint32_t open_attempts(const struct world *w, uint64_t agent)
{
    const struct history *h = w->history;
    uint32_t count = 0;
    for (size_t i = 0; i < h->count; i++) {
        const struct task_past *task = h->all[i];
        if (task->row.state == RV_TASK_ERROR)
            continue;
        for (uint32_t n = 1; n < task->room; n++)
            count += live_count(&task->steps[n].row, task->steps[n].agent, agent);
    }
    return count;
}

/* where an attempt has begun no more are open than the limit allowed then. Looked at once the
 * commit is seen as a whole, by the first change of the next one: one of its changes may begin an
 * attempt, and another end one. */
static void check_open(struct world *w, struct limited *kind)
{
    if (kind->begun_in == 0 || kind->begun_in == w->commits)
        return;
    uint32_t open = open_attempts(w, kind->agent);
    kind->begun_in = 0;
    if (open > kind->begun_most)
        world_violate(w, "R-01", "%u attempts are open, %u may be", open, kind->begun_most);
}

/* in no window of time more attempts begin than its length and one second allow. */
static void check_rate(const struct transition *t, struct limited *kind)
{
    int64_t rate = kind->limit.per_second;
    if (rate == 0)
        return;
    if (t->now > kind->counted_at) {
        kind->room += (t->now - kind->counted_at) * rate;
        kind->counted_at = t->now;
    }
    if (kind->room > rate * 1000)
        kind->room = rate * 1000;
    kind->room -= 1000;
    if (kind->room < 0)
        world_violate(t->w, "R-02", "more attempts begin than %lld a second", (long long)rate);
}

static void check_begun(const struct transition *t, struct limited *kind)
{
    uint32_t most = kind->limit.concurrent;
    /* nothing is handed out while the kind is paused. */
    if (kind->limit.paused)
        world_violate(t->w, "R-03", "an attempt begins while its agent is paused");
    check_rate(t, kind);
    kind->begun_in = most > 0 ? t->w->commits : 0;
    kind->begun_most = most;
}

/* The server knows what is allowed, or should. */
static bool is_told(const struct world *w, const struct limited *kind)
{
    const struct server *s = w->committing;
    return !database_shared(w) || (s != NULL && s->begun_at > kind->changed_at);
}

void check_limits(const struct transition *t)
{
    struct limiter *l = &t->w->limiter;
    if (t->w->knobs.limits == 0 || l->unknown)
        return;
    for (size_t k = 0; k < SIM_KINDS_MAX; k++)
        check_open(t->w, &l->kinds[k]);
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        const struct step_past *past = history_step(t->past, step->number);
        bool begun = step->kind == RV_KIND_CALL && step->attempt_state == RV_ATTEMPT_OPEN &&
                     (past == NULL || past->row.token != step->token);
        for (size_t k = 0; begun && k < SIM_KINDS_MAX; k++)
            if (l->kinds[k].agent == history_hash(step->agent) && is_told(t->w, &l->kinds[k]))
                check_begun(t, &l->kinds[k]);
    }
}
