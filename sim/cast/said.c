#include "sim/cast/said.h"

#include "base/assert.h"
#include "sim/check/check.h"
#include "sim/world/history.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

#include <stdlib.h>

void said_new(struct world *w)
{
    w->said = calloc(1, sizeof *w->said);
    rv_assert(w->said != NULL);
    rv_map_init(&w->said->done);
    rv_map_init(&w->said->confirmed);
    rv_map_init(&w->said->confirming);
    rv_map_init(&w->said->newest);
    rv_map_init(&w->said->left);
    rv_map_init(&w->said->tried);
    rv_map_init(&w->said->named);
    rv_map_init(&w->said->shut);
}

void said_free(struct world *w)
{
    if (w->said == NULL)
        return;
    rv_map_done(&w->said->done);
    rv_map_done(&w->said->confirmed);
    rv_map_done(&w->said->confirming);
    rv_map_done(&w->said->newest);
    rv_map_done(&w->said->left);
    rv_map_done(&w->said->tried);
    rv_map_done(&w->said->named);
    rv_map_done(&w->said->shut);
    free(w->said);
}

static void note(struct rv_map *map, uint64_t a, uint64_t b, int64_t value)
{
    enum rv_err err = rv_map_put(map, a, b, (uint64_t)value);
    rv_assert(err == RV_OK);
}

void said_arrived(struct world *w, const struct rv_call *call)
{
    if (call->kind != RV_CALL_REPLIES)
        return;
    for (size_t i = 0; i < call->u.replies.count; i++) {
        const struct rv_reply_item *item = &call->u.replies.items[i];
        if (!item->failed && item->refused == 0)
            note(&w->said->done, (uint64_t)item->step.task.value, item->step.number, w->now);
        if (item->failed && item->reply.target.at != NULL)
            note(&w->said->named, item->token, 0, (int64_t)history_hash(item->reply.target));
    }
}

/* -1: nothing is noted. */
static int64_t noted(const struct rv_map *map, uint64_t a, uint64_t b)
{
    const uint64_t *found = rv_map_find(map, a, b);
    return found != NULL ? (int64_t)*found : -1;
}

void said_taken(const struct server *s, const struct served *served)
{
    struct said *said = s->world->said;
    const struct rv_poll *poll = call_poll(&served->call);
    if (poll == NULL)
        return;
    uint64_t holder = history_holder(poll->agent, poll->instance);
    int64_t sent_at = served->x != NULL ? served->x->sent_at : s->world->now;
    if (noted(&said->newest, holder, s->number) < sent_at)
        note(&said->newest, holder, s->number, sent_at);
    for (size_t i = 0; i < poll->confirm_count; i++) {
        uint64_t confirmed = history_hash(poll->confirm[i]);
        note(&said->confirmed, holder, confirmed, s->world->now);
        int64_t first_at = noted(&said->confirming, holder, confirmed);
        if (first_at < 0 || sent_at < first_at)
            note(&said->confirming, holder, confirmed, sent_at);
    }
}

void said_left(struct world *w, const struct rv_poll *poll)
{
    for (size_t i = 0; i < poll->requests_count; i++)
        note(&w->said->left, poll->requests[i].token, 0, w->now);
}

void said_tried(struct world *w, struct rv_str token)
{
    note(&w->said->tried, check_token(token), 0, w->now);
}

bool said_was_tried(const struct world *w, uint64_t token)
{
    return rv_map_find(&w->said->tried, token, 0) != NULL;
}

void said_shut(struct world *w, uint64_t agent, uint64_t target, int64_t until)
{
    if (until > noted(&w->said->shut, agent, target))
        note(&w->said->shut, agent, target, until);
}

uint64_t said_target(const struct world *w, uint64_t token)
{
    const uint64_t *found = rv_map_find(&w->said->named, token, 0);
    return found != NULL ? *found : 0;
}

void said_shut_no_more(struct world *w, uint64_t agent, uint64_t target)
{
    note(&w->said->shut, agent, target, -1);
}

int64_t said_shut_until(const struct world *w, uint64_t agent, uint64_t target)
{
    return noted(&w->said->shut, agent, target);
}

bool said_done(const struct world *w, struct rv_task_id task, uint32_t step)
{
    return rv_map_find(&w->said->done, (uint64_t)task.value, step) != NULL;
}

bool said_has_left(const struct world *w, uint64_t token)
{
    return rv_map_find(&w->said->left, token, 0) != NULL;
}

int64_t said_confirmed_at(const struct server *s, uint64_t holder, uint64_t poll)
{
    const struct said *said = s->world->said;
    bool told = noted(&said->newest, holder, s->number) >= noted(&said->confirming, holder, poll);
    return told ? noted(&said->confirmed, holder, poll) : -1;
}

/* ---- in hand ---- */

static bool same(const struct rv_step_id *a, const struct rv_step_id *b)
{
    return a->task.value == b->task.value && a->number == b->number;
}

bool said_knows(const struct world *w)
{
    return w->committing != NULL;
}

const struct rv_reply_item *said_in_hand(const struct server *s, const struct rv_step_id *step,
                                         uint64_t token, int64_t *ret_age_ms)
{
    const struct rv_reply_item *found = NULL;
    for (const struct served *served = s ? s->out : NULL; served != NULL; served = served->next) {
        const struct rv_call *call = &served->call;
        if (!served->taken || call->kind != RV_CALL_REPLIES)
            continue;
        for (size_t i = 0; i < call->u.replies.count; i++) {
            const struct rv_reply_item *item = &call->u.replies.items[i];
            int64_t age_ms = s->begun_at - call->mono_at;
            if (item->refused != 0 || item->token != token || !same(&item->step, step) ||
                (found != NULL && *ret_age_ms > age_ms))
                continue;
            found = item;
            *ret_age_ms = age_ms;
        }
    }
    return found;
}

const struct rv_reply_item *said_reply(const struct world *w, const struct rv_step_id *step,
                                       uint64_t token, int64_t *ret_age_ms)
{
    return said_in_hand(w->committing, step, token, ret_age_ms);
}

bool said_renewal(const struct world *w, const struct rv_step_id *step, uint64_t token,
                  int64_t *ret_age_ms)
{
    const struct server *s = w->committing;
    bool found = false;
    for (const struct served *served = s ? s->out : NULL; served != NULL; served = served->next) {
        const struct rv_call *call = &served->call;
        if (!served->taken || call->kind != RV_CALL_LEASES)
            continue;
        for (size_t i = 0; i < call->u.leases.count; i++) {
            const struct rv_lease_item *item = &call->u.leases.items[i];
            int64_t age_ms = s->begun_at - call->mono_at;
            if (item->token != token || !same(&item->step, step) || (found && *ret_age_ms > age_ms))
                continue;
            found = true;
            *ret_age_ms = age_ms;
        }
    }
    return found;
}

/* ---- arrived, not in a batch yet ---- */

static bool tells_of(const struct rv_call *call, const struct rv_step_id *step, uint64_t token)
{
    for (size_t i = 0; call->kind == RV_CALL_REPLIES && i < call->u.replies.count; i++) {
        const struct rv_reply_item *item = &call->u.replies.items[i];
        if (item->refused == 0 && item->token == token && same(&item->step, step))
            return true;
    }
    for (size_t i = 0; call->kind == RV_CALL_LEASES && i < call->u.leases.count; i++) {
        const struct rv_lease_item *item = &call->u.leases.items[i];
        if (item->token == token && same(&item->step, step))
            return true;
    }
    return false;
}

bool said_waits(const struct world *w, const struct rv_step_id *step, uint64_t token,
                int64_t *ret_age_ms)
{
    const struct server *s = w->committing;
    bool found = false;
    for (const struct served *served = s ? s->out : NULL; served != NULL; served = served->next) {
        int64_t age_ms = s->begun_at - served->call.mono_at;
        if (served->taken || !tells_of(&served->call, step, token) ||
            (found && *ret_age_ms > age_ms))
            continue;
        found = true;
        *ret_age_ms = age_ms;
    }
    return found;
}
