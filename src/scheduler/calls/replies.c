/* Replies and lease renewals: each item is decided on its own and has its own status. */

#include "base/assert.h"
#include "base/time.h"
#include "dispatch/circuit.h"
#include "dispatch/held.h"
#include "dispatch/instance.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/left.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/calls/polls.h"
#include "scheduler/watch/counts.h"

enum { REPLIES_PIECE = 64 }; /* whose rows are loaded at once, of a large call */
enum { NOT_NOW = 503 };      /* the status of an item that is to be sent again */
enum { POSTPONE_MS_MAX_DEFAULT = 60 * RV_MINUTE_MS, CIRCUIT_MS_MAX_DEFAULT = 5 * RV_MINUTE_MS };

#define REFUSED_BY_STORE "the state store refused the change of the task: see the alert of the task"

static enum rv_err step_for(struct rv_scheduler *s, struct rv_step_id id, struct work **ret_work)
{
    *ret_work = NULL;
    if (id.task.value == 0 || id.number == 0)
        return RV_OK;
    struct work *work;
    enum rv_err err = work_get(s, id.task, &work);
    if (err != RV_OK || work->task == NULL || id.number > work->task->last_number)
        return err;
    err = work_step_load(s, work, id.number);
    if (err == RV_ERR_NOT_FOUND)
        return RV_OK;
    if (err != RV_OK)
        return err;
    rv_assert(work_step(work, id.number) != NULL);
    *ret_work = work;
    return RV_OK;
}

/* Nobody knows whether there is such a step. */
static bool is_too_large(const struct rv_scheduler *s, struct rv_step_id id)
{
    const struct work *work = work_find(s, id.task);
    return work != NULL && work->too_large;
}

static int64_t arrived_at(const struct rv_scheduler *s, const struct rv_call *call)
{
    int64_t age = s->batch.mono_now - call->mono_at;
    return age > 0 ? s->batch.now - age : s->batch.now;
}

/* A key is an agent's own: with it nobody answers for the steps of another. */
/* The answer is that for a step that does not exist: a key must not learn which ids others use. */
static bool others_step(const struct rv_call *call, const struct work *work, uint32_t number)
{
    const struct rv_step *step = work_step(work, number);
    return call->agent_only.at != NULL && !rv_str_eq(step->agent, call->agent_only);
}

/* Whatever the attempt showed, its instance lives, and the delivery came. */
static void delivery_shown(struct rv_scheduler *s, struct rv_step_id id, uint64_t token)
{
    struct held *held = held_find(&s->agents, id);
    if (held == NULL || held->token != token)
        return;
    rv_assert(held->delivery->instance == held->instance);
    held->instance->heard_at = s->batch.now;
    delivery_confirm(held->delivery);
}

/* A failure that was tried tells by its `target` that the circuit stays open. */
static struct circuit_word word_of(const struct rv_scheduler *s, const struct rv_reply *reply)
{
    bool fails = reply->transient || reply->circuit_open;
    struct circuit_word word = {.answers = !fails};
    if (fails && reply->target.at != NULL)
        word.target = reply->target;
    word.until = rv_time_add(s->batch.now, reply->retry_after_ms);
    return word;
}

/* No remote service, and no agent, has the last word on when a step is tried again. */
static void reply_bound(const struct rv_scheduler *s, struct rv_reply *reply)
{
    bool circuit = reply->circuit_open || reply->target.at != NULL;
    int64_t given = circuit ? s->options.circuit_ms_max : s->options.postpone_ms_max;
    int64_t most = circuit ? CIRCUIT_MS_MAX_DEFAULT : POSTPONE_MS_MAX_DEFAULT;
    most = given != 0 ? given : most;
    if (reply->retry_after_ms > most)
        reply->retry_after_ms = most;
}

/* A stop has refused an earlier reply of the same attempt. */
static bool was_refused(const struct rv_scheduler *s, const struct rv_reply_item *item)
{
    return rv_map_find(&s->refused_at_stop, item->token, item->step.number) != NULL;
}

static enum rv_err reply_decide(struct rv_scheduler *s, struct pending *p, size_t i)
{
    struct rv_reply_item *item = &p->call->u.replies.items[i];
    struct work *work;
    rv_assert(i < p->call->u.replies.count);
    rv_assert(item->status == 0);
    rv_assert(p->works[i] == NULL);
    enum rv_err err = step_for(s, item->step, &work);
    if (err != RV_OK)
        return err;
    if (work == NULL && is_too_large(s, item->step)) {
        item->status = NOT_NOW;
        item->message = RV_STR(
            "the server has too little memory for the task's rows: see the alert of the task");
        return RV_OK;
    }
    if (work == NULL || others_step(p->call, work, item->step.number)) {
        item->status = 409;
        item->message = p->call->agent_only.at == NULL
                            ? RV_STR("there is no such step: reply with the step of the request")
                            : RV_STR("the agent of this API key has no such step: reply with the "
                                     "step of the request, and with the agent's own key");
        return RV_OK;
    }
    delivery_shown(s, item->step, item->token);
    struct rv_command command = {.kind = RV_COMMAND_REPLY,
                                 .seed = p->call->seed ^ item->token,
                                 .arrived_at = arrived_at(s, p->call),
                                 .step = item->step.number,
                                 .token = item->token};
    reply_bound(s, &item->reply);
    command.u.reply = item->reply;
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    if (plan == NULL)
        return RV_ERR_MEMORY;
    struct asker asker = {.caller = p, .a = p->call->serial, .b = i + 1};
    if (evaluations_reply(s, item->step, item->token) && evaluation_find(s, &asker) == NULL) {
        p->awaits = item->step.task; /* the one that came before is decided first */
        return RV_OK;
    }
    if (s->draining && was_refused(s, item))
        return RV_OK; /* as the one that came before, which is sent again as well */
    err = work_decide(s, work, &command, &asker, plan);
    if (err == RV_OK && work->waits && s->draining)
        err = rv_map_put(&s->refused_at_stop, item->token, item->step.number, 1);
    if (err != RV_OK || work->waits)
        return err;
    if (plan->err != RV_OK) {
        /* Its rows cannot be read: nothing of the reply can be kept. Once they are mended it counts
         * if it is sent again until its complete-by; the other items have their own results. */
        item->status = NOT_NOW;
        item->message = rv_arena_str(&p->call->arena, plan->message);
        return RV_OK;
    }
    p->works[i] = work;
    item->status = plan->status;
    item->counted = plan->changed;
    if (plan->status == 200 && plan->changed && item->reply.output.at == NULL)
        work_step_of(work, item->step.number)->word = word_of(s, &item->reply);
    item->message = rv_arena_str(&p->call->arena, plan->message);
    return RV_OK;
}

static void replies_doubt(struct rv_call *call)
{
    for (size_t i = 0; i < call->u.replies.count; i++)
        call->u.replies.items[i].status = 0;
}

static void leases_doubt(struct rv_call *call)
{
    for (size_t i = 0; i < call->u.leases.count; i++)
        call->u.leases.items[i].status = 0;
}

/* Whether something that came before, about the same attempt, waits for a later batch: a small call
 * comes before large ones, but a reply that is late is not refused before one that was in time. */
static bool waits_for_older(const struct rv_scheduler *s, const struct rv_call *call,
                            const struct rv_reply_item *item)
{
    const uint64_t *left = rv_map_find(&s->batch.left, item->token, item->step.number);
    return left != NULL && *left < (uint64_t)call->mono_at;
}

/* What is to be loaded for the items from `from` on that are not decided yet, of a large call those
 * of one piece. */
static size_t replies_want(const struct pending *p, size_t from, struct rv_step_id *ids,
                           size_t room)
{
    const struct rv_call_replies *replies = &p->call->u.replies;
    size_t count = 0, most = p->large && room > REPLIES_PIECE ? REPLIES_PIECE : room;
    rv_assert(from <= replies->count);
    for (size_t i = from; i < replies->count && count < most; i++)
        if (replies->items[i].status == 0)
            ids[count++] = replies->items[i].step;
    rv_assert(count <= room);
    return count;
}

/* The rows of a large call are loaded in pieces: some of it may be a later batch's. */
static enum rv_err replies_load(struct rv_scheduler *s, const struct pending *p, size_t from)
{
    struct rv_step_id ids[REPLIES_PIECE];
    struct rv_task_id task = p->call->u.replies.items[from].step.task;
    if (task.value == 0 || work_find(s, task) != NULL)
        return RV_OK;
    return work_prefetch(s, ids, replies_want(p, from, ids, REPLIES_PIECE));
}

/* Its decision is under way beside the batches, and takes nothing of what this batch may decide:
 * else the items behind it would never have their turn. A stop looks at it once more, to refuse. */
static bool item_waits(const struct rv_scheduler *s, const struct pending *p, size_t i)
{
    struct asker asker = {.a = p->call->serial, .b = i + 1};
    return p->evaluating > 0 && evaluation_waits(s, &asker);
}

static enum rv_err replies_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_replies *replies = &p->call->u.replies;
    p->works = RV_NEW_ARRAY(s->batch.arena, struct work *, replies->count + 1);
    if (p->works == NULL)
        return RV_ERR_MEMORY;
    p->awaits.value = 0;
    p->bounded = false;
    for (size_t i = 0; i < replies->count; i++) {
        const struct rv_reply_item *item = &replies->items[i];
        if (item->status != 0 || (item_waits(s, p, i) && !s->draining))
            continue;
        if (!batch_has_room(s, p) || !share_lets(s, p, item->step.task) ||
            waits_for_older(s, p->call, item)) {
            left_note(s, p->call, item->step, item->token);
            p->bounded = true;
            continue;
        }
        batch_spends(s, p, item->reply.output.len + item->reply.error.len);
        RV_TRY(replies_load(s, p, i));
        RV_TRY(reply_decide(s, p, i));
    }
    return RV_OK;
}

static void replies_act(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_replies *replies = &p->call->u.replies;
    bool again = false, left = false;
    rv_assert(p->works != NULL);
    for (size_t i = 0; i < replies->count; i++) {
        if (p->works[i] != NULL && p->works[i]->dropped) {
            bool repeats = work_again(p->works[i]);
            again = again || repeats;
            replies->items[i].status = repeats ? 0 : NOT_NOW;
            replies->items[i].counted = false;
            if (!repeats)
                replies->items[i].message = RV_STR(REFUSED_BY_STORE);
        }
        left = left || replies->items[i].status == 0;
    }
    bool poll_waits = false;
    if (p->poll != NULL && p->call->err == RV_OK && (again || left))
        poll_unadmit(p);
    else if (p->poll != NULL)
        poll_waits = !poll_fill(s, p) && !p->admitted && !s->draining;
    if (p->unanswerable)
        p->call->err = RV_ERR_MEMORY;
    if (poll_waits) {
        poll_carry(s, p);
        return;
    }
    pending_unlink(&s->batch.calls, p);
    if (p->call->err == RV_OK && again) {
        if (!parking_carry_again(s, p))
            pending_finish(s, p, RV_ERR_BUSY, NOT_TAKEN);
    } else if (p->call->err == RV_OK && left && s->draining && !p->bounded) {
        pending_finish(s, p, RV_ERR_BUSY, STOPPING);
    } else if (p->call->err == RV_OK && left) {
        evaluations_hold(s, p);
    } else {
        counts_replies(s, replies);
        pending_finish(s, p, p->call->err, p->call->message);
    }
}

static enum rv_err lease_decide(struct rv_scheduler *s, struct pending *p, size_t i)
{
    struct rv_lease_item *item = &p->call->u.leases.items[i];
    struct work *work;
    rv_assert(i < p->call->u.leases.count);
    rv_assert(item->status == 0);
    item->cancel = true;
    enum rv_err err = step_for(s, item->step, &work);
    if (err != RV_OK)
        return err;
    if (work == NULL && is_too_large(s, item->step)) {
        item->cancel = false;
        item->status = NOT_NOW;
        return RV_OK;
    }
    if (work == NULL || others_step(p->call, work, item->step.number)) {
        item->status = 409;
        return RV_OK;
    }
    delivery_shown(s, item->step, item->token);
    /* It has replied: its lease does not end meanwhile. */
    if (evaluations_reply(s, item->step, item->token)) {
        p->works[i] = work;
        item->status = 200;
        return RV_OK;
    }
    struct rv_command command = {.kind = RV_COMMAND_RENEW,
                                 .seed = p->call->seed,
                                 .arrived_at = arrived_at(s, p->call),
                                 .step = item->step.number,
                                 .token = item->token};
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    if (plan == NULL)
        return RV_ERR_MEMORY;
    err = work_decide(s, work, &command, NULL, plan);
    if (err != RV_OK)
        return err;
    item->status = plan->err == RV_OK ? plan->status : NOT_NOW;
    if (work_step(work, item->step.number)->unreadable)
        item->cancel = false; /* nobody knows: the attempt goes on */
    else
        p->works[i] = work;
    return RV_OK;
}

static size_t leases_want(const struct rv_scheduler *s, const struct pending *p,
                          struct rv_step_id *ids, size_t room)
{
    (void)s;
    const struct rv_call_leases *leases = &p->call->u.leases;
    size_t count = 0;
    for (size_t i = 0; i < leases->count && count < room; i++)
        if (leases->items[i].status == 0)
            ids[count++] = leases->items[i].step;
    return count;
}

static enum rv_err leases_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_leases *leases = &p->call->u.leases;
    p->works = RV_NEW_ARRAY(s->batch.arena, struct work *, leases->count + 1);
    if (p->works == NULL)
        return RV_ERR_MEMORY;
    p->bounded = false;
    for (size_t i = 0; i < leases->count; i++) {
        const struct rv_lease_item *item = &leases->items[i];
        if (item->status != 0)
            continue;
        if (share_lets(s, p, item->step.task)) {
            RV_TRY(lease_decide(s, p, i));
        } else {
            left_note(s, p->call, item->step, item->token);
            p->bounded = true;
        }
    }
    return RV_OK;
}

static void leases_act(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_leases *leases = &p->call->u.leases;
    bool again = false;
    for (size_t i = 0; i < leases->count; i++) {
        struct rv_lease_item *item = &leases->items[i];
        const struct work *work = p->works[i];
        if (work == NULL)
            continue;
        if (work->dropped) {
            bool repeats = work_again(work);
            again = again || repeats;
            item->status = repeats ? 0 : NOT_NOW;
            item->cancel = false;
            continue;
        }
        const struct rv_step *step = work_step(work, item->step.number);
        rv_assert(step != NULL);
        item->cancel = step->attempt_state != RV_ATTEMPT_OPEN || step->token != item->token;
        if (item->status == 200) { /* else they are another attempt's */
            item->lease_until = step->lease_until;
            item->complete_by = step->complete_by;
        }
    }
    pending_unlink(&s->batch.calls, p);
    if (again && p->call->err == RV_OK) {
        if (!parking_carry_again(s, p))
            pending_finish(s, p, RV_ERR_BUSY, NOT_TAKEN);
    } else if (p->bounded && p->call->err == RV_OK) {
        evaluations_hold(s, p);
    } else {
        pending_finish(s, p, p->call->err, p->call->message);
    }
}

static size_t replies_wants(const struct rv_scheduler *s, const struct pending *p,
                            struct rv_step_id *ids, size_t room)
{
    size_t count = replies_want(p, 0, ids, room);
    return count + poll_wants(s, p, ids + count, room - count);
}

static size_t replies_commands(const struct rv_call *call)
{
    return call->u.replies.count;
}

static size_t leases_commands(const struct rv_call *call)
{
    return call->u.leases.count;
}

static void replies_leave(struct rv_scheduler *s, const struct rv_call *call)
{
    for (size_t i = 0; i < call->u.replies.count; i++) {
        const struct rv_reply_item *item = &call->u.replies.items[i];
        if (item->status == 0)
            left_note(s, call, item->step, item->token);
    }
}

static void leases_leave(struct rv_scheduler *s, const struct rv_call *call)
{
    for (size_t i = 0; i < call->u.leases.count; i++) {
        const struct rv_lease_item *item = &call->u.leases.items[i];
        if (item->status == 0)
            left_note(s, call, item->step, item->token);
    }
}

/* Decided but for the poll, its results are to be answered. */
static bool replies_are_open(const struct rv_call *call)
{
    for (size_t i = 0; i < call->u.replies.count; i++)
        if (call->u.replies.items[i].status == 0)
            return true;
    return false;
}

const struct call_ops replies_ops = {.decide = replies_decide,
                                     .act = replies_act,
                                     .forget = poll_forget,
                                     .doubt = replies_doubt,
                                     .commands = replies_commands,
                                     .wants = replies_wants,
                                     .leave = replies_leave,
                                     .is_open = replies_are_open,
                                     .first = true};

const struct call_ops leases_ops = {.decide = leases_decide,
                                    .act = leases_act,
                                    .doubt = leases_doubt,
                                    .commands = leases_commands,
                                    .wants = leases_want,
                                    .leave = leases_leave};
