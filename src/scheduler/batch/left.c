/* Replies and renewals that wait for a later batch: until they are decided, nothing else ends the
 * attempts that they are about (RULES 3). */
#include "scheduler/batch/left.h"

#include "dispatch/agents.h"
#include "dispatch/held.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"

/* The attempt has answered, or wants to go on: nothing else ends it before that is decided. */
void left_note(struct rv_scheduler *s, const struct rv_call *call, struct rv_step_id id,
               uint64_t token)
{
    struct held *held = held_find(&s->agents, id);
    if (held != NULL && held->token == token)
        delivery_confirm(held->delivery);
    const uint64_t *left = rv_map_find(&s->batch.left, token, id.number);
    bool older = left == NULL || (uint64_t)call->mono_at < *left;
    /* Without memory for it no end is known. */
    if (older && rv_map_put(&s->batch.left, token, id.number, (uint64_t)call->mono_at) != RV_OK)
        s->batch.heard_until = INT64_MIN / 2;
}

static void calls_left_note(struct rv_scheduler *s, const struct pending_list *list)
{
    for (const struct pending *p = list->first; p != NULL; p = p->next)
        if (p->ops->leave != NULL)
            p->ops->leave(s, p->call);
}

void left_behind_note(struct rv_scheduler *s)
{
    calls_left_note(s, &s->batch.behind);
}

void left_replies_note(struct rv_scheduler *s)
{
    calls_left_note(s, &s->batch.calls);
    calls_left_note(s, &s->carried);
    calls_left_note(s, &s->batch.behind);
    calls_left_note(s, &s->evaluations.calls);
}

bool left_has(const struct rv_scheduler *s, uint64_t token, uint32_t step)
{
    return (s->batch.left.count > 0 && rv_map_find(&s->batch.left, token, step) != NULL) ||
           (s->draining && rv_map_find(&s->refused_at_stop, token, step) != NULL);
}

/* Up to which instant it is known who has answered in time (RULES 3): a reply that came before some
 * end may still be in the mailbox, or on its way there. What is left for the next batch is known by
 * its attempt (left_has). */
void left_ends_know(struct rv_scheduler *s)
{
    left_replies_note(s);
    int64_t age = s->batch.mono_last - s->batch.heard_until;
    s->batch.ends_until = age > 0 ? s->batch.now - age : s->batch.now;
}
