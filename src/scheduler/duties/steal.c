/* A server is hungry while polls with room wait at it and none of its own steps is ready for them.
 * Where others write, too, steps may wait at a server at which nobody polls. A hungry server asks
 * the store for them, in the order of the line, at first often, then once in a second; what it
 * hands out it owns from then on. What it finds and cannot hand out it forgets.
 *
 * So that it need not wait for its next look, the server at which steps of an agent begin to wait
 * tells the others, once. A hint that is lost costs them their pause, a second at most. */
#include "scheduler/duties/steal.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/prng.h"
#include "base/time.h"
#include "dispatch/agents.h"
#include "dispatch/kind.h"
#include "dispatch/limits.h"
#include "dispatch/routing.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/call.h"
#include "scheduler/duties/duty.h"

#include <stdlib.h>

/* Between two looks for an agent. */
enum { PAUSE_MS_MIN = 50, PAUSE_MS_MAX = RV_SECOND_MS };
/* Agents for which one batch asks. */
enum { STEALS_MAX = 16 };
/* Agents that one batch names to the other servers. */
enum { READY_MAX = 16 };

/* State of the search for waiting steps of one agent on other servers. */
struct hunger {
    int64_t look_at;
    int64_t pause_ms;              /* 0: what the newest look has found was handed out */
    struct rv_waiting_place place; /* where it goes on */
    size_t most;                   /* the newest has asked for so many */
    bool narrow;                   /* it asks for one at a time: a batch has no room for more */
    uint64_t asked_in;             /* the newest batch that asked; 0: none did */
    bool hinted; /* steps have begun to wait elsewhere since that look was asked */
    bool told;   /* the other servers: that steps of it wait here */
};

/* The agents for which this batch asks, and of which it tells the others. */
struct steals {
    struct agent_kind *kinds[STEALS_MAX]; /* borrowed */
    size_t count;
    int64_t next_at;
    struct agent_kind *told[READY_MAX]; /* borrowed */
};

static enum rv_err steal_open(struct rv_scheduler *s)
{
    s->steals = calloc(1, sizeof *s->steals);
    if (s->steals == NULL)
        return RV_ERR_MEMORY;
    s->steals->next_at = INT64_MAX;
    return RV_OK;
}

static void steal_close(struct rv_scheduler *s)
{
    free(s->steals);
}

static void steal_forget(struct rv_scheduler *s)
{
    *s->steals = (struct steals){.next_at = INT64_MAX};
}

/* Steps that could be handed out from *ret_from on, if any were there; 0: it is not hungry. */
static size_t kind_hungers(const struct rv_scheduler *s, struct agent_kind *kind, int64_t now,
                           int64_t *ret_from)
{
    if (kind_any_ready(kind))
        return 0;
    enum limit_hold hold = limit_holds(kind, now, ret_from);
    if (hold == LIMIT_NONE)
        *ret_from = now;
    return *ret_from != 0 ? routing_room(kind, s->batch.turn) : 0;
}

static struct hunger *hunger_of(struct agent_kind *kind)
{
    if (kind->hunger == NULL)
        kind->hunger = calloc(1, sizeof *kind->hunger);
    return kind->hunger;
}

static bool asks_now(const struct hunger *hunger, int64_t now)
{
    return hunger->hinted || now >= hunger->look_at;
}

/* Those that have asked longest ago come first. */
static void kind_choose(struct steals *steals, struct agent_kind *kind)
{
    uint64_t asked_in = kind->hunger->asked_in;
    size_t at = steals->count;
    if (at == STEALS_MAX && asked_in >= steals->kinds[at - 1]->hunger->asked_in)
        return;
    if (at == STEALS_MAX)
        at--;
    else
        steals->count++;
    for (; at > 0 && asked_in < steals->kinds[at - 1]->hunger->asked_in; at--)
        steals->kinds[at] = steals->kinds[at - 1];
    steals->kinds[at] = kind;
}

/* What a batch may hand out at most, as the limit is, is taken from others at most. */
static struct rv_steal kind_ask(struct rv_scheduler *s, struct agent_kind *kind)
{
    struct hunger *hunger = kind->hunger;
    size_t room = routing_room(kind, s->batch.turn);
    size_t lets = limit_room(kind, s->batch.expected_now);
    room = kind_is_limited(kind) && lets < room ? lets : room;
    hunger->asked_in = s->batch.turn;
    hunger->hinted = false;
    hunger->most = hunger->narrow ? 1 : room < RV_POLL_REQUESTS_MAX ? room : RV_POLL_REQUESTS_MAX;
    return (struct rv_steal){
        .agent = rv_str_of(kind->name), .most = hunger->most, .place = &hunger->place};
}

enum rv_err steal_name(struct rv_scheduler *s, struct rv_wants *wants)
{
    int64_t now = s->batch.expected_now, from;
    s->steals->count = 0;
    if (!s->enlistment.shared || s->draining || s->agents.recovering)
        return RV_OK;
    struct rv_steal *steals = rv_arena_take(s->batch.arena, STEALS_MAX * sizeof *steals);
    if (steals == NULL)
        return RV_ERR_MEMORY;
    for (struct agent_kind *kind = s->agents.kinds; kind != NULL; kind = kind->next) {
        if (kind_hungers(s, kind, now, &from) == 0 || from > now)
            continue;
        const struct hunger *hunger = hunger_of(kind);
        if (hunger != NULL && asks_now(hunger, now))
            kind_choose(s->steals, kind);
    }
    for (size_t i = 0; i < s->steals->count; i++)
        steals[i] = kind_ask(s, s->steals->kinds[i]);
    wants->steals = steals;
    wants->steals_count = s->steals->count;
    return RV_OK;
}

/* How many tasks the look has found, and whether a step of them was handed out. */
static size_t found_of(const struct rv_scheduler *s, const struct agent_kind *kind, bool *ret_fed)
{
    size_t found = 0;
    *ret_fed = false;
    for (const struct work *w = s->batch.works; w != NULL; w = w->next) {
        bool its = false;
        for (size_t i = 0; w->stolen && i < w->steps_count; i++) {
            if (!rv_str_is(w->steps[i].row->agent, kind->name))
                continue;
            its = true;
            *ret_fed = *ret_fed || (w->steps[i].assigned && !w->dropped);
        }
        found += its;
    }
    return found;
}

static void hunger_learn(struct rv_scheduler *s, const struct agent_kind *kind)
{
    struct hunger *hunger = kind->hunger;
    bool fed;
    rv_assert(hunger->asked_in == s->batch.turn);
    bool cut = s->batch.cut, all = found_of(s, kind, &fed) < hunger->most && !cut;
    /* What it has passed over it looks at once more, from the first step on: others had claimed it,
     * or it had to wait then, or the load had no room for it. */
    if (all || (cut && !hunger->narrow))
        hunger->place = (struct rv_waiting_place){.since = {0}};
    hunger->narrow = !all && (cut || hunger->narrow);
    if (fed)
        hunger->pause_ms = 0;
    else if (hunger->pause_ms == 0 || !all)
        hunger->pause_ms = PAUSE_MS_MIN;
    else if (hunger->pause_ms < PAUSE_MS_MAX)
        hunger->pause_ms *= 2;
    if (hunger->pause_ms > PAUSE_MS_MAX)
        hunger->pause_ms = PAUSE_MS_MAX;
    /* Several hungry servers do not ask at the same moments. */
    int64_t jitter = hunger->pause_ms > 0
                         ? (int64_t)(rv_prng_next(&s->prng) % (uint64_t)(hunger->pause_ms / 4))
                         : 0;
    hunger->look_at = s->batch.now + hunger->pause_ms - jitter;
}

static enum rv_err steal_plan(struct rv_scheduler *s)
{
    for (struct work *w = s->batch.works; w != NULL; w = w->next)
        if (w->stolen && w->task != NULL)
            work_offer(s, w);
    return RV_OK;
}

/* Steps that nobody has taken here: the others are told with what is written. */
static enum rv_err steal_tell(struct rv_scheduler *s)
{
    if (!s->enlistment.shared)
        return RV_OK;
    struct rv_str *ready = rv_arena_take(s->batch.arena, READY_MAX * sizeof *ready);
    if (ready == NULL)
        return RV_ERR_MEMORY;
    s->batch.ready = ready;
    for (struct agent_kind *kind = s->agents.kinds; kind != NULL; kind = kind->next) {
        struct hunger *hunger = kind->ready.count > 0 ? hunger_of(kind) : kind->hunger;
        if (hunger == NULL || s->batch.ready_count == READY_MAX)
            continue;
        if (!kind_any_ready(kind)) {
            hunger->told = false;
        } else if (!hunger->told) {
            s->steals->told[s->batch.ready_count] = kind;
            ready[s->batch.ready_count++] = rv_str_of(kind->name);
        }
    }
    return RV_OK;
}

/* Hints alone are nothing to write: they go with the next batch that writes. */
static void steal_told(struct rv_scheduler *s)
{
    for (size_t i = 0; s->batch.wrote && i < s->batch.ready_count; i++)
        s->steals->told[i]->hunger->told = true;
}

static void steal_learn(struct rv_scheduler *s)
{
    for (size_t i = 0; i < s->steals->count; i++)
        hunger_learn(s, s->steals->kinds[i]);
    s->steals->count = 0;
}

/* Nothing of the batch was written: nobody was fed. */
static void steal_fail(struct rv_scheduler *s)
{
    for (struct work *w = s->batch.works; w != NULL; w = w->next)
        w->stolen = false;
    steal_learn(s);
}

/* Polls that are parked now. */
static void steal_act(struct rv_scheduler *s)
{
    int64_t next_at = INT64_MAX, from;
    steal_learn(s);
    steal_told(s);
    if (!s->enlistment.shared || s->draining)
        return;
    for (struct agent_kind *kind = s->agents.kinds; kind != NULL; kind = kind->next) {
        if (kind->parked.first == NULL || kind_hungers(s, kind, s->batch.now, &from) == 0)
            continue;
        const struct hunger *hunger = kind->hunger;
        int64_t at = hunger != NULL && !hunger->hinted && hunger->look_at > from ? hunger->look_at
                                                                                 : from;
        next_at = at < next_at ? at : next_at;
    }
    s->steals->next_at = next_at;
}

static int64_t steal_next_at(const struct rv_scheduler *s)
{
    return s->steals->next_at;
}

/* It looks with the next batch, which begins at once. */
static enum rv_err hint_decide(struct rv_scheduler *s, struct pending *p)
{
    const struct rv_call_hint *hint = &p->call->u.hint;
    for (size_t i = 0; i < hint->count; i++) {
        struct agent_kind *kind = agents_kind_find(&s->agents, hint->agents[i]);
        if (kind != NULL && kind->hunger != NULL)
            kind->hunger->hinted = true;
    }
    return RV_OK;
}

const struct call_ops hint_ops = {.decide = hint_decide, .act = answers_finish_act};

const struct duty steal_duty = {.open = steal_open,
                                .plan = steal_plan,
                                .last = steal_tell,
                                .act = steal_act,
                                .fail = steal_fail,
                                .next_at = steal_next_at,
                                .forget = steal_forget,
                                .close = steal_close};
