/* Polls: an instance asks for work and, with it, tells what it knows. Admission ends what a new
 * boot or a lost answer has ended; hand_out.c assigns ready steps to polls in the same transaction;
 * after the commit the answers are filled from the rows (docs/guide/agents.md). */
#include "scheduler/calls/polls.h"

#include "base/assert.h"
#include "base/limits.h"
#include "core/trace.h"
#include "dispatch/agents.h"
#include "dispatch/held.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "dispatch/limits.h"
#include "dispatch/seeker.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/left.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"

/* Of attempts, that a batch decides or begins to evaluate; that are evaluated at a time by what one
 * poll tells. */
enum { ENDS_MAX = 64 };

/* How an attempt has ended, as an agent tells. */
struct ending {
    enum rv_attempt_state how;
    enum rv_effect effect;
    bool excused;
};

static enum rv_err end_decide(struct rv_scheduler *s, const struct held *held,
                              const struct ending *ending, bool *ret_waits)
{
    struct work *work;
    struct rv_step_id id = held->step;
    enum rv_err err = work_get(s, id.task, &work);
    if (err != RV_OK || work->task == NULL)
        return err;
    err = work_step_load(s, work, id.number);
    if (err != RV_OK)
        return err == RV_ERR_NOT_FOUND ? RV_OK : err;
    struct rv_command command = {.kind = RV_COMMAND_END,
                                 .seed = rv_prng_next(&s->prng),
                                 .step = id.number,
                                 .token = held->token};
    command.u.end.how = ending->how;
    command.u.end.effect = ending->effect;
    command.u.end.excused = ending->excused;
    struct asker asker = {.a = ASKER_END, .b = held->token};
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    err = plan ? work_decide(s, work, &command, &asker, plan) : RV_ERR_MEMORY;
    *ret_waits = work->waits;
    return err;
}

/* What is beyond the bounds of a batch is a later one's. */
static enum rv_err end_begin(struct rv_scheduler *s, struct held *held, const struct ending *ending,
                             struct ends *ends)
{
    struct asker asker = {.a = ASKER_END, .b = held->token};
    size_t most = s->options.findings_max < ENDS_MAX ? s->options.findings_max : ENDS_MAX;
    enum share share = s->batch.share;
    bool waits = evaluation_find(s, &asker) != NULL;
    enum rv_err err = RV_OK;
    if (evaluations_reply(s, held->step, held->token))
        return RV_OK; /* its reply came before */
    share_enter(s, SHARE_ENDS);
    ends->left = !waits && (s->batch.ends >= most || share_used(s));
    if (!waits && !ends->left) {
        s->batch.ends++;
        err = end_decide(s, held, ending, &waits);
        ends->decided = ends->decided || !waits;
        uint64_t over_in = err == RV_OK && !waits ? s->batch.turn : 0;
        held->over_in[ending_kind(ending->how, ending->effect)] = over_in;
    }
    share_enter(s, share);
    ends->evaluated += waits;
    if (waits)
        ends->task = held->step.task;
    return err;
}

/* The call tells that an attempt has ended. Until all ends that it tells of are decided it comes
 * back, and asks for each of them once: an end may come to nothing. What another call has told
 * counts only if it was the same. */
static enum rv_err attempt_over(struct rv_scheduler *s, struct pending *p, struct held *held,
                                struct ending ending)
{
    uint64_t over_in = held->over_in[ending_kind(ending.how, ending.effect)];
    rv_assert(over_in <= s->batch.turn);
    rv_assert(p->ends_from <= s->batch.turn);
    bool decided = p->ends_from != 0 && over_in >= p->ends_from;
    if (decided || p->ends.left || p->ends.evaluated >= ENDS_MAX) {
        p->ends.decided = p->ends.decided || over_in == s->batch.turn;
        return RV_OK;
    }
    p->ends_from = p->ends_from != 0 ? p->ends_from : s->batch.turn;
    return end_begin(s, held, &ending, &p->ends);
}

static bool ends_wait(const struct pending *p)
{
    return p->ends.left || p->ends.evaluated > 0;
}

/* With the next batch, or once an evaluation that it waits for is over. */
static void ends_carry(struct rv_scheduler *s, struct pending *p)
{
    p->awaits = (struct rv_task_id){p->ends.left ? 0 : p->ends.task.value};
    evaluations_hold(s, p);
}

/* Is this a late poll of a process that is gone? */
static bool boot_is_gone(struct agent_instance *instance, uint64_t boot, uint64_t poll)
{
    for (size_t i = 0; boot != instance->boot && i < BOOTS_LEFT; i++) {
        struct boot_left *left = &instance->boots_left[i];
        if (left->boot != boot)
            continue;
        if (left->poll == 0)
            left->poll = poll;
        if (left->poll == poll)
            return true;
        left->boot = 0;
        return false;
    }
    return false;
}

static void boot_leave(struct agent_instance *instance)
{
    memmove(instance->boots_left + 1, instance->boots_left,
            (BOOTS_LEFT - 1) * sizeof instance->boots_left[0]);
    instance->boots_left[0] = (struct boot_left){.boot = instance->boot};
}

/* The polls of other processes of the instance that are parked here: if one of these lives after
 * all, its next poll says so, and meanwhile they are given nothing. */
static void parked_leave(struct rv_scheduler *s, const struct pending *p)
{
    struct seeker *next;
    for (struct seeker *other = p->seeker.instance->parked.first; other != NULL; other = next) {
        next = other->its_next;
        if (other->boot != p->seeker.boot)
            pending_finish(s, pending_of(other), RV_OK, RV_STR_NONE);
    }
}

/* Whether a reply or a renewal that the life before has sent is not decided yet: it may be in time,
 * and until then its attempt is open. What takes long to decide is not waited for. */
static bool boot_is_undecided(const struct rv_scheduler *s, const struct pending *p)
{
    for (const struct held *h = p->seeker.instance->held; h != NULL; h = h->next)
        if (h->boot != p->seeker.boot && left_has(s, h->token, h->step.number) &&
            !evaluations_reply(s, h->step, h->token))
            return true;
    return false;
}

/* A new boot id: the process that held these attempts is no more. Each attempt is asked for the
 * boot that took it, since a batch that noted the new one may have been refused. What the agent
 * inside the server held was lost with the server: its absence is nobody's failure. */
static enum rv_err poll_boot(struct rv_scheduler *s, struct pending *p, bool *ret_waits)
{
    struct agent_instance *instance = p->seeker.instance;
    p->seeker.boot = rv_hash(s->agents.hash_key, p->poll->boot);
    instance->learned_before = false;
    *ret_waits = false;
    if (boot_is_gone(instance, p->seeker.boot, rv_hash(s->agents.hash_key, p->poll->poll)))
        return RV_OK;
    if (p->seeker.boot == instance->boot && instance->held_before == 0)
        return RV_OK;
    if (instance->boot != p->seeker.boot) {
        instance->overlaps = false;
        boot_leave(instance);
        parked_leave(s, p);
    }
    instance_boots(instance, p->seeker.boot);
    rv_assert(instance->boot == p->seeker.boot);
    *ret_waits = boot_is_undecided(s, p);
    if (*ret_waits)
        return RV_OK;
    for (struct held *h = instance->held; h != NULL; h = h->next) {
        rv_assert(h->instance == instance);
        if (h->boot == p->seeker.boot)
            continue;
        struct ending lost = {RV_ATTEMPT_LOST, RV_EFFECT_UNKNOWN, p->poll->inside};
        enum rv_err err = attempt_over(s, p, h, lost);
        if (err != RV_OK)
            return err;
    }
    *ret_waits = ends_wait(p);
    return RV_OK;
}

static bool poll_is_seen(const struct agent_instance *instance, uint64_t poll)
{
    for (size_t i = 0; i < POLLS_SEEN; i++)
        if (instance->polls_seen[i] == poll)
            return true;
    return false;
}

static void poll_note(struct agent_instance *instance, uint64_t poll, bool heard)
{
    rv_assert(instance->polls_next < POLLS_SEEN);
    instance->polls_seen[instance->polls_next] = poll;
    instance->polls_heard[instance->polls_next] = heard;
    instance->polls_next = (instance->polls_next + 1) % POLLS_SEEN;
}

/* Is it an earlier poll once more, come after a later one? Then what it does not confirm tells
 * nothing: the answers to later polls it cannot know. */
static bool poll_is_overtaken(struct agent_instance *instance, uint64_t poll)
{
    size_t newest = (instance->polls_next + POLLS_SEEN - 1) % POLLS_SEEN;
    if (instance->polls_seen[newest] == poll)
        return false;
    if (poll_is_seen(instance, poll))
        return true;
    poll_note(instance, poll, false);
    return false;
}

static bool poll_is_heard(const struct agent_instance *instance, uint64_t poll)
{
    for (size_t i = 0; i < POLLS_SEEN; i++)
        if (instance->polls_seen[i] == poll)
            return instance->polls_heard[i];
    return false;
}

static struct pending *parked_copy(const struct rv_scheduler *s, const struct pending *p,
                                   struct rv_str poll)
{
    if (p->seeker.instance->parked_count == 0)
        return NULL;
    const uint64_t *found = rv_map_find(&s->parked_polls, (uint64_t)(uintptr_t)p->seeker.instance,
                                        rv_hash(s->agents.hash_key, poll));
    struct pending *other = found ? (struct pending *)(uintptr_t)*found : NULL;
    rv_assert(other == NULL || other->parked);
    rv_assert(other == NULL || other->seeker.instance == p->seeker.instance);
    return other && rv_str_eq(other->poll->poll, poll) ? other : NULL;
}

/* It has the answer to a poll that never came here: it was with another server in between, which it
 * has told what it had from here. What it does not repeat now was not lost (decision 006). */
static void poll_elsewhere(struct pending *p, uint64_t poll)
{
    struct delivery *next;
    for (struct delivery *d = p->seeker.instance->unconfirmed; d != NULL; d = next) {
        next = d->next;
        if (!rv_str_is(p->poll->poll, d->poll))
            delivery_confirm(d);
    }
    poll_note(p->seeker.instance, poll, true);
}

/* The instance has the answer to that poll. A copy of it that is parked here, or comes yet over
 * another connection, is nobody's: what it took would lie there until its complete-by. */
static void poll_hear(struct rv_scheduler *s, struct pending *p, struct rv_str poll)
{
    uint64_t hash = rv_hash(s->agents.hash_key, poll);
    if (rv_str_eq(poll, p->poll->poll))
        return; /* an agent that gives all its polls one name */
    if (s->enlistment.shared && !poll_is_seen(p->seeker.instance, hash))
        poll_elsewhere(p, hash);
    for (size_t i = 0; i < POLLS_SEEN; i++)
        if (p->seeker.instance->polls_seen[i] == hash)
            p->seeker.instance->polls_heard[i] = true;
    struct pending *copy = parked_copy(s, p, poll);
    if (copy != NULL)
        pending_finish(s, copy, RV_OK, RV_STR_NONE);
}

/* What this poll confirms: at any time, and whichever process of the instance has sent it. */
static void poll_confirm(const struct pending *p)
{
    for (size_t i = 0; i < p->poll->confirm_count; i++) {
        struct delivery *delivery = delivery_find(p->seeker.instance, p->poll->confirm[i]);
        if (delivery != NULL)
            delivery_confirm(delivery);
    }
}

static void poll_heed(const struct rv_scheduler *s, struct pending *p)
{
    const struct agent_kind *kind = p->poll ? agents_kind_find(&s->agents, p->poll->agent) : NULL;
    if (kind == NULL)
        return;
    p->seeker.instance = agents_instance_find(&s->agents, kind, p->poll->instance);
    if (p->seeker.instance != NULL)
        poll_confirm(p);
}

/* What it does not confirm, though it should: those answers were lost. */
static enum rv_err poll_lost(struct rv_scheduler *s, struct pending *p)
{
    struct agent_instance *instance = p->seeker.instance;
    if (!p->poll->confirms)
        return RV_OK;
    int64_t grace = instance->overlaps ? LOST_GRACE_MS : 0;
    for (const struct delivery *d = instance->unconfirmed; d != NULL; d = d->next) {
        if (rv_str_is(p->poll->poll, d->poll) || d->answered_at + grace > s->batch.now)
            continue;
        rv_assert(d->held != NULL);
        for (struct held *h = d->held; h != NULL; h = h->mate_next) {
            rv_assert(h->instance == instance);
            struct ending unheard = {RV_ATTEMPT_UNDELIVERED, RV_EFFECT_UNKNOWN, false};
            enum rv_err err = attempt_over(s, p, h, unheard);
            if (err != RV_OK)
                return err;
        }
    }
    return RV_OK;
}

enum rv_err polls_match_add(struct rv_scheduler *s, struct pending *p, struct work *work,
                            uint32_t step, bool repeat)
{
    if (p->matched == NULL) {
        p->matched = rv_arena_take(s->batch.arena, RV_POLL_REQUESTS_MAX * sizeof *p->matched);
        if (p->matched == NULL)
            return RV_ERR_MEMORY;
    }
    const struct rv_step *row = work_step(work, step);
    rv_assert(row != NULL);
    rv_assert(p->seeker.given < RV_POLL_REQUESTS_MAX);
    p->matched[p->seeker.given++] = (struct matched){work, step, row->token, repeat};
    p->seeker.given_bytes += row->input.len;
    s->batch.handed_bytes += row->input.len;
    if (p->parked)
        agents_news(&s->agents, p->seeker.instance);
    return RV_OK;
}

/* The same poll once more: it gets the open attempts that its first answer took. */
static enum rv_err poll_repeat(struct rv_scheduler *s, struct pending *p)
{
    struct delivery *delivery = delivery_find(p->seeker.instance, p->poll->poll);
    if (delivery == NULL)
        return RV_OK;
    for (const struct held *h = delivery->held; h != NULL; h = h->mate_next) {
        struct work *work;
        rv_assert(h->delivery == delivery);
        if (p->seeker.given == RV_POLL_REQUESTS_MAX)
            break;
        enum rv_err err = work_get(s, h->step.task, &work);
        if (err == RV_OK && work->task != NULL)
            err = work_step_load(s, work, h->step.number);
        const struct rv_step *row = err == RV_OK ? work_step(work, h->step.number) : NULL;
        if (row != NULL && row->token == h->token)
            err = polls_match_add(s, p, work, h->step.number, true);
        if (err != RV_OK && err != RV_ERR_NOT_FOUND)
            return err;
    }
    return RV_OK;
}

/* The same poll twice in one batch: what it asks for, it asks for once. The later one gets it; the
 * earlier one leaves at once, with what an earlier answer took. */
static void poll_twins(struct rv_scheduler *s, struct pending *p)
{
    struct agent_instance *instance = p->seeker.instance;
    p->seeker.asked_before = instance->asks_in == s->batch.turn ? instance->asks : NULL;
    instance->asks = &p->seeker;
    instance->asks_in = s->batch.turn;
    for (struct seeker *before = p->seeker.asked_before; before != NULL;
         before = before->asked_before) {
        struct pending *other = pending_of(before);
        rv_assert(before->instance == instance);
        if (before->name == p->seeker.name && rv_str_eq(other->poll->poll, p->poll->poll))
            other->poll->max = before->max = 0, other->poll->wait_ms = 0;
    }
}

/* The process stops: nobody listens to its polls that are parked here. */
static void instance_leave(struct rv_scheduler *s, struct pending *p)
{
    struct agent_instance *instance = p->seeker.instance;
    uint64_t boot = rv_hash(s->agents.hash_key, p->poll->boot);
    struct seeker *next;
    if (instance->boot != 0 && instance->boot != boot)
        return; /* another process has followed it */
    instance->left = true;
    for (struct seeker *other = instance->parked.first; other != NULL; other = next) {
        next = other->its_next;
        if (other->boot == boot)
            pending_finish(s, pending_of(other), RV_OK, RV_STR_NONE);
    }
}

enum rv_err poll_admit(struct rv_scheduler *s, struct pending *p)
{
    p->seeker.kind = agents_kind(&s->agents, p->poll->agent);
    p->seeker.instance = p->seeker.kind
                             ? agents_instance(&s->agents, p->seeker.kind, p->poll->instance)
                             : NULL;
    if (p->seeker.instance == NULL)
        return RV_ERR_MEMORY;
    p->seeker.name = rv_hash(s->agents.hash_key, p->poll->poll);
    p->seeker.max = p->left ? 0 : p->poll->max; /* nothing for one whose caller has left */
    p->ends = (struct ends){.left = false};
    poll_twins(s, p);
    if (p->admitted)
        return RV_OK;
    p->seeker.instance->seen_at = s->batch.now;
    p->seeker.instance->left = false;
    if (p->poll->leaving)
        instance_leave(s, p);
    /* The same poll is parked here: its first connection is dead. */
    struct pending *same = parked_copy(s, p, p->poll->poll);
    if (same != NULL)
        pending_finish(s, same, RV_OK, RV_STR_NONE);
    for (size_t i = 0; i < p->poll->confirm_count; i++)
        poll_hear(s, p, p->poll->confirm[i]);
    if (p->seeker.instance->parked_count > 0)
        p->seeker.instance->overlaps = true;
    /* Until the open rows were walked after a start nobody knows what the instance holds. What the
     * batch has no room for is a later one's, too. */
    if (s->agents.recovering || share_used(s))
        return RV_OK;
    poll_confirm(p);
    bool waits;
    enum rv_err err = poll_boot(s, p, &waits);
    if (err != RV_OK || waits)
        return err;
    bool newest = p->seeker.boot ==
                  p->seeker.instance->boot; /* else it comes late, from a process that is gone */
    if (err == RV_OK && newest && !poll_is_overtaken(p->seeker.instance, p->seeker.name))
        err = poll_lost(s, p);
    if (err != RV_OK || ends_wait(p))
        return err;
    p->seeker.heard = poll_is_heard(p->seeker.instance, p->seeker.name);
    /* What it took it gets again even if it seems to be left behind: its attempts are open. */
    err = poll_repeat(s, p);
    p->admitted = err == RV_OK;
    return err;
}

static enum rv_err undelivered_decide(struct rv_scheduler *s, struct pending *p)
{
    const struct rv_call_unsent *u = &p->call->u.unsent;
    p->ends = (struct ends){.left = false};
    for (size_t i = 0; i < u->count; i++) {
        struct held *held = held_find(&s->agents, u->attempts[i].step);
        if (held == NULL || held->token != u->attempts[i].token)
            continue;
        /* Where the poll was repeated, another answer may have carried the same requests, here or
         * from another server: then only what the instance confirms tells. */
        bool perhaps = held->delivery->confirmed || held->delivery->answers > 1 ||
                       s->enlistment.shared;
        if (perhaps)
            continue;
        struct ending unmade = {RV_ATTEMPT_UNDELIVERED, RV_EFFECT_NONE, false};
        enum rv_err err = attempt_over(s, p, held, unmade);
        if (err != RV_OK)
            return err;
    }
    return RV_OK;
}

static void undelivered_act(struct rv_scheduler *s, struct pending *p)
{
    pending_unlink(&s->batch.calls, p);
    if (p->ends.left || (p->ends.evaluated > 0 && !s->draining))
        ends_carry(s, p);
    else
        pending_finish(s, p, RV_OK, RV_STR_NONE);
}

static bool request_fill(struct rv_arena *arena, const struct work *work, uint32_t number,
                         struct rv_assignment *request)
{
    const struct rv_step *step = work_step(work, number);
    struct rv_trace trace = rv_trace_of(work->task);
    char parent[RV_TRACEPARENT_BYTES];
    uint64_t span = rv_trace_span(work->id, number, step->attempt);
    *request = (struct rv_assignment){
        .step = {work->id, number},
        .attempt = step->attempt,
        .fence = step->fence,
        .insist = step->insist,
        .token = step->token,
        .complete_by = step->complete_by,
        .lease_until = step->lease_until,
        .reference = rv_arena_str(arena, step->reference),
        .input = rv_arena_str(arena, step->input),
        .traceparent = rv_arena_str(arena, rv_trace_text(&trace, span, parent)),
        .tracestate = rv_arena_str(arena, work->task->tracestate),
    };
    return request->reference.at != NULL && request->input.at != NULL &&
           request->traceparent.at != NULL &&
           (request->tracestate.at != NULL || work->task->tracestate.at == NULL);
}

/* Tells the instance once per boot which of its attempts shall stop. */
static void cancels_fill(struct pending *p)
{
    struct rv_poll *poll = p->poll;
    poll->cancels = RV_NEW_ARRAY(&p->call->arena, struct rv_cancel_notice,
                                 p->seeker.instance->cancels);
    if (poll->cancels == NULL)
        return;
    for (struct held *h = p->seeker.instance->held; h != NULL; h = h->next) {
        if (!h->revoked || h->cancel_told)
            continue;
        rv_assert(p->seeker.instance->cancels > 0);
        h->cancel_told = true;
        p->seeker.instance->cancels--;
        poll->cancels[poll->cancels_count++] = (struct rv_cancel_notice){h->step, h->token};
    }
    rv_assert(p->seeker.instance->cancels == 0);
}

/* An attempt that this very poll took, and whose request it was not answered with: the caches had
 * no memory for it then. */
static bool was_given(const struct pending *p)
{
    if (p->seeker.instance->held_count == 0 || p->poll->requests_count > 0)
        return false;
    const struct delivery *delivery = delivery_find(p->seeker.instance, p->poll->poll);
    for (const struct held *h = delivery ? delivery->held : NULL; h != NULL; h = h->mate_next)
        if (!h->revoked && h->boot == p->seeker.boot)
            return true;
    return false;
}

/* Whether the end of an attempt that it took before is evaluated: that attempt is not given again,
 * since the end says what the instance has of it. */
static bool repeat_ends(const struct rv_scheduler *s, struct pending *p)
{
    for (size_t i = 0; i < p->seeker.given; i++) {
        const struct matched *m = &p->matched[i];
        struct asker asker = {.a = ASKER_END, .b = m->token};
        if (!m->repeat || evaluation_find(s, &asker) == NULL)
            continue;
        p->ends.evaluated++;
        p->ends.task = m->work->id;
    }
    return p->ends.evaluated > 0;
}

/* What came of its admission (attempts that ended, what it took before) is not written: it is
 * admitted once more, in a later batch, lest it gets new work beside an open attempt of the life
 * before, or not what it took. Where the store has lost the batch, it may have lost what the poll
 * took before, too: the next transaction tells. */
static bool poll_admitted_in_vain(const struct rv_scheduler *s, struct pending *p)
{
    bool vain = repeat_ends(s, p);
    for (const struct work *w = s->batch.works; p->ends.decided && w != NULL; w = w->next)
        vain = vain || (w->dropped && work_again(w));
    for (size_t i = 0; i < p->seeker.given; i++) {
        const struct matched *m = &p->matched[i];
        bool again = m->work->dropped && work_again(m->work);
        vain = vain || (m->repeat && (again || s->batch.lost));
    }
    return vain && p->admitted && !p->parked;
}

void poll_unmatch(struct pending *p)
{
    p->matched = NULL;
    p->seeker.given = p->seeker.given_bytes = 0;
}

void poll_unadmit(struct pending *p)
{
    poll_unmatch(p);
    p->admitted = false;
}

bool poll_fill(struct rv_scheduler *s, struct pending *p)
{
    struct rv_poll *poll = p->poll;
    if (poll_admitted_in_vain(s, p))
        poll_unadmit(p);
    /* Answered now, be it with cancels alone, it would miss what it took before. */
    if (!p->admitted && !s->draining)
        return false;
    poll->requests_count = poll->cancels_count = 0;
    if (p->seeker.given > 0)
        poll->requests = RV_NEW_ARRAY(&p->call->arena, struct rv_assignment, p->seeker.given);
    p->unanswerable = p->unanswerable || (p->seeker.given > 0 && poll->requests == NULL);
    for (size_t i = 0; i < p->seeker.given; i++) {
        const struct matched *m = &p->matched[i];
        const struct rv_step *step = work_step(m->work, m->step);
        rv_assert(step != NULL);
        rv_assert(poll->requests_count <= i);
        /* Perhaps it ended in this very batch, and somebody else has the next one. */
        bool over = step->attempt_state != RV_ATTEMPT_OPEN || step->token != m->token;
        if (m->work->dropped || over || p->unanswerable)
            continue;
        if (request_fill(&p->call->arena, m->work, m->step, &poll->requests[poll->requests_count]))
            poll->requests_count++;
        else
            p->unanswerable = true;
    }
    poll_unmatch(p); /* the batch's arena goes */
    if (p->seeker.instance->cancels > 0 && !p->left)
        cancels_fill(p);
    struct delivery *delivery = delivery_find(p->seeker.instance, poll->poll);
    if (delivery != NULL) {
        delivery->answered_at = s->batch.now;
        delivery->answers += poll->requests_count > 0;
    }
    return poll->requests_count > 0 || poll->cancels_count > 0 || p->unanswerable;
}

static void poll_finish(struct rv_scheduler *s, struct pending *p)
{
    pending_finish(s, p, p->unanswerable ? RV_ERR_MEMORY : RV_OK, RV_STR_NONE);
}

static void poll_unname(struct rv_scheduler *s, const struct pending *p)
{
    uint64_t instance = (uint64_t)(uintptr_t)p->seeker.instance;
    const uint64_t *named = rv_map_find(&s->parked_polls, instance, p->seeker.name);
    if (named != NULL && *named == (uint64_t)(uintptr_t)p)
        rv_map_remove(&s->parked_polls, instance, p->seeker.name);
}

/* A parked poll is found by its instance and its own name. */
static enum rv_err poll_name(struct rv_scheduler *s, struct pending *p)
{
    RV_TRY(rv_map_put(&s->parked_polls, (uint64_t)(uintptr_t)p->seeker.instance, p->seeker.name,
                      (uint64_t)(uintptr_t)p));
    enum rv_err err = pending_park(s, p, p->poll->wait_ms);
    if (err != RV_OK)
        poll_unname(s, p);
    return err;
}

static void poll_park(struct rv_scheduler *s, struct pending *p)
{
    rv_assert(p->admitted);
    rv_assert(!p->parked);
    rv_assert(p->seeker.given == 0);
    pending_unlink(&s->batch.calls, p);
    enum rv_err err = poll_name(s, p);
    if (err != RV_OK) {
        struct rv_str many = RV_STR(
            "too many polls are waiting: use fewer connections, and raise `max` instead");
        pending_finish(s, p, err, err == RV_ERR_BUSY ? many : RV_STR_NONE);
        return;
    }
    seeker_park(&p->seeker);
}

static void poll_unpark(struct rv_scheduler *s, struct pending *p)
{
    poll_unname(s, p);
    seeker_unpark(&p->seeker);
}

void poll_carry(struct rv_scheduler *s, struct pending *p)
{
    pending_unlink(&s->batch.calls, p);
    ends_carry(s, p);
}

static void poll_act(struct rv_scheduler *s, struct pending *p)
{
    rv_assert(!p->parked);
    bool filled = poll_fill(s, p);
    if (!p->admitted && !s->draining) {
        poll_carry(s, p);
        return;
    }
    /* One that an earlier process seems to have left behind does not wait either: if that process
     * lives after all, its next poll says so. */
    bool left_behind = p->seeker.boot != p->seeker.instance->boot;
    if (filled || p->poll->wait_ms <= 0 || left_behind || p->seeker.heard || s->draining) {
        pending_unlink(&s->batch.calls, p);
        poll_finish(s, p);
        return;
    }
    poll_park(s, p);
}

/* It was admitted when nothing was known of attempts that a process before it holds: their task was
 * another server's. It is admitted once more, and waits no longer than it asked for. */
static void poll_admit_again(struct rv_scheduler *s, struct pending *p)
{
    int64_t left_ms = p->until - s->batch.mono_now;
    p->poll->wait_ms = left_ms > 0 ? left_ms : 0;
    pending_unpark(s, p);
    poll_unadmit(p);
    pending_append(&s->carried, p);
    s->more_due = true;
}

static void instance_act_parked(struct rv_scheduler *s, struct agent_instance *instance)
{

    struct seeker *next;
    for (struct seeker *seeker = instance->parked.first; seeker != NULL; seeker = next) {
        struct pending *p = pending_of(seeker);
        next = seeker->its_next;
        rv_assert(p->parked);
        rv_assert(p->admitted);
        rv_assert(seeker->instance == instance);
        bool anything = p->seeker.given > 0 || instance->cancels > 0;
        bool filled = anything && poll_fill(s, p);
        p->unanswerable = p->unanswerable || was_given(p);
        if (filled || p->unanswerable)
            poll_finish(s, p);
        else if (instance->learned_before && seeker->boot == instance->boot)
            poll_admit_again(s, p);
    }
}

void polls_act_parked(struct rv_scheduler *s)
{
    struct agent_instance *instance = s->agents.news;
    s->agents.news = NULL;
    while (instance != NULL) {
        struct agent_instance *next = instance->news_next;
        rv_assert(instance->news);
        instance->news = false;
        instance_act_parked(s, instance);
        if (instance->cancels > 0) /* no memory to tell them */
            agents_news(&s->agents, instance);
        instance = next;
    }
    s->more_due = limits_again(&s->agents, s->batch.now) || s->more_due;
    kinds_settle(&s->agents);
}

void polls_unmatch_parked(struct rv_scheduler *s)
{
    for (struct agent_instance *i = s->agents.news; i != NULL; i = i->news_next)
        for (struct seeker *seeker = i->parked.first; seeker != NULL; seeker = seeker->its_next)
            poll_unmatch(pending_of(seeker));
}

void poll_forget(struct rv_scheduler *s, struct pending *p)
{
    poll_unmatch(p);
    poll_heed(s, p);
}

const struct call_ops poll_ops = {.decide = answers_later_decide,
                                  .act = poll_act,
                                  .forget = poll_forget,
                                  .unpark = poll_unpark,
                                  .wants = poll_wants,
                                  .waits = true};

static enum rv_err gone_decide(struct rv_scheduler *s, struct pending *p)
{
    call_left(s, p->call->u.gone.serial);
    return RV_OK;
}

/* That he has left is true all the same. */
static void gone_forget(struct rv_scheduler *s, struct pending *p)
{
    (void)parking_left(s, p->call->u.gone.serial);
}

const struct call_ops gone_ops = {
    .decide = gone_decide, .act = answers_finish_act, .forget = gone_forget};
const struct call_ops unsent_ops = {.decide = undelivered_decide, .act = undelivered_act};
