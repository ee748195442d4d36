#include "sim/check/check.h"

#include "sim/world/fault.h"
#include "sim/world/history.h"
#include "sim/cast/said.h"
#include "sim/store/database.h"
#include "sim/store/tap.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

/* Of a task that could not be read for a while, nobody has kept in mind who holds its attempts:
 * leases end them. are about the others. */

/* Whether the batch has given it anything that no earlier one had: what a poll took it gets again
 * also from a server that takes it for one of a process that is gone. */
static bool gets_new(const struct server *s, const struct rv_poll *poll)
{
    for (size_t i = 0; i < poll->requests_count; i++) {
        const struct rv_assignment *request = &poll->requests[i];
        struct task_past *task = history_task(s->world, request->step.task);
        const struct step_past *step = history_step(task, request->step.number);
        if (step == NULL || step->row.token != request->token || step->began_at >= s->taken_at)
            return true;
    }
    return false;
}

/* what an agent got before it was started again is over before it gets anything new, or its
 * reply is being decided (decision 024), or was in the same batch: that takes as long as its
 * expressions. */
static void check_boot(const struct server *s, struct rv_task_id task, const struct step_past *step,
                       const struct rv_poll *poll)
{
    struct world *w = s->world;
    struct rv_step_id id = {task, step->row.number};
    int64_t age_ms;
    if (step->boot != history_hash(poll->boot) && gets_new(s, poll) &&
        said_in_hand(s, &id, step->row.token, &age_ms) == NULL &&
        rv_map_find(&s->replied, step->row.token, id.number) == NULL)
        world_violate(w, "A-01",
                      "%.*s, started again, gets work from %s while attempt %u of step %u, of "
                      "its life before, is open",
                      RV_STR_FMT(poll->instance), s->name, step->row.attempt, step->row.number);
}

/* the same poll gets the same open attempts, each time that it is answered. (Not when a
 * change loses its guard: then it is decided again, and its poll perhaps answered without it; nor
 * when the store has lost history, and the server forgets all that it knew.) */
static void check_repeat(struct world *w, const struct step_past *step, const struct rv_poll *poll)
{
    bool there = false;
    for (size_t i = 0; i < poll->requests_count; i++)
        there |= poll->requests[i].token == step->row.token;
    bool forgets = fault_happened(w, FAULT_CONFLICT) || fault_happened(w, FAULT_FAILOVER);
    if (!there && !forgets && step->poll == history_hash(poll->poll) &&
        step->boot == history_hash(poll->boot) && step->row.attempt_state == RV_ATTEMPT_OPEN)
        world_violate(w, "A-02",
                      "poll %.*s of %.*s took attempt %u of step %u, and is answered "
                      "without it",
                      RV_STR_FMT(poll->poll), RV_STR_FMT(poll->instance), step->row.attempt,
                      step->row.number);
}

/* Where several servers may share a store, each knows the tasks that it owned before the batch. Not
 * owed is what another one had ended, in commits that the store has lost since: of these only who
 * made them is told. */
static bool is_known(const struct server *s, const struct task_past *task)
{
    if (!database_shared(s->world))
        return true;
    bool its = task->row.locked_by == rv_scheduler_enlistment(s->scheduler)->instance;
    return its && task->owned_at < s->taken_at && !history_lacks(s->world, task->row.id);
}

void check_answered(const struct server *s, const struct rv_poll *poll, bool superseded)
{
    struct world *w = s->world;
    uint64_t holder = history_holder(poll->agent, poll->instance);
    if (w->knobs.servers > 1 && tap_outlived(s))
        return; /* what it knew was of a history that the store has lost */
    for (size_t i = 0; i < w->history->count; i++) {
        struct task_past *task = w->history->all[i];
        for (uint32_t n = 0; n < task->row.open_count && !task->unreadable; n++) {
            const struct step_past *step = history_step(task, task->row.open[n]);
            if (step == NULL || step->holder != holder || !is_known(s, task) ||
                !rv_attempt_state_live(step->row.attempt_state))
                continue;
            w->concerned = task->row.id;
            check_boot(s, task->row.id, step, poll);
            if (!superseded)
                check_repeat(w, step, poll);
        }
    }
}

/* an attempt ends as undelivered only if its agent has not confirmed its answer; and without
 * an effect only if no answer with it has left. What it has told another server alone, nobody can
 * know here until it comes back: a poll from before, that was on its way for long, makes the answer
 * look lost (decision 006, "When it was not lost"). */
static void check_undelivered(const struct transition *t, const struct step_past *past,
                              const struct rv_step *step)
{
    if (!rv_attempt_state_live(past->row.attempt_state) ||
        check_state_now(t, past, step) != RV_ATTEMPT_UNDELIVERED)
        return;
    const struct server *s = t->w->committing;
    /* What comes in the same batch may be decided after the end. */
    int64_t confirmed_at = s != NULL ? said_confirmed_at(s, past->holder, past->poll) : -1;
    /* It may have confirmed another server's answer to the same poll, without the attempt. */
    bool its = t->w->knobs.servers == 1 || said_has_left(t->w, past->row.token);
    if (its && !t->past->unreadable && confirmed_at > past->began_at && confirmed_at < s->taken_at)
        world_violate(t->w, "A-03", "step %u: attempt %u was confirmed and ended as undelivered",
                      step->number, past->row.attempt);
    if (said_has_left(t->w, past->row.token) && step->effect == RV_EFFECT_NONE)
        world_violate(t->w, "A-03", "step %u: attempt %u has left, and counts as if it had not",
                      step->number, past->row.attempt);
}

void check_delivery(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        if (past != NULL)
            check_undelivered(t, past, &t->steps[i]);
    }
}
