/* What a poll will need of the store, before it is admitted: the attempts of which it tells that
 * they have ended, and those that it took before and asks for once more. A guess: what is missing
 * is loaded when it is asked for. */
#include "base/assert.h"
#include "dispatch/agents.h"
#include "dispatch/held.h"
#include "dispatch/instance.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/call.h"
#include "scheduler/calls/polls.h"

/* Of one poll. A batch decides about so many ends. */
enum { WANTS_MAX = 256 };

struct wanted {
    struct rv_step_id *ids;
    size_t count;
    size_t room;
};

static bool want(struct wanted *wanted, struct rv_step_id step)
{
    if (wanted->count == wanted->room)
        return false;
    wanted->ids[wanted->count++] = step;
    return true;
}

/* The instance has the answer, or shows it with a reply of the same batch. */
static bool is_heard(const struct rv_scheduler *s, const struct rv_poll *poll,
                     const struct delivery *delivery)
{
    if (delivery->answered_at + LOST_GRACE_MS > s->batch.expected_now)
        return true;
    for (size_t i = 0; i < poll->confirm_count; i++)
        if (rv_str_is(poll->confirm[i], delivery->poll))
            return true;
    return false;
}

static void delivery_wants(const struct delivery *delivery, struct wanted *wanted)
{
    for (const struct held *h = delivery->held; h != NULL; h = h->mate_next)
        if (!want(wanted, h->step))
            return;
}

size_t poll_wants(const struct rv_scheduler *s, const struct pending *p, struct rv_step_id *ids,
                  size_t room)
{
    const struct rv_poll *poll = p->poll;
    struct wanted wanted = {.ids = ids, .room = room < WANTS_MAX ? room : WANTS_MAX};
    const struct agent_kind *kind = poll != NULL && !p->left
                                        ? agents_kind_find(&s->agents, poll->agent)
                                        : NULL;
    const struct agent_instance *instance =
        kind != NULL ? agents_instance_find(&s->agents, kind, poll->instance) : NULL;
    if (instance == NULL || instance->held_count == 0)
        return 0;
    const struct delivery *again = delivery_find(instance, poll->poll);
    if (again != NULL)
        delivery_wants(again, &wanted);
    uint64_t boot = rv_hash(s->agents.hash_key, poll->boot);
    bool boots = boot != instance->boot || instance->held_before > 0;
    for (const struct held *h = boots ? instance->held : NULL; h != NULL; h = h->next)
        if (h->boot != boot && !want(&wanted, h->step))
            break;
    for (const struct delivery *d = poll->confirms ? instance->unconfirmed : NULL; d != NULL;
         d = d->next)
        if (d != again && !is_heard(s, poll, d))
            delivery_wants(d, &wanted);
    rv_assert(wanted.count <= room);
    return wanted.count;
}
