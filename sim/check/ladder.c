#include "sim/check/check.h"

#include "base/limits.h"
#include "base/time.h"
#include "sim/cast/said.h"
#include "sim/world/world.h"

/* Failures and rounds as they stand after one more failure; exhausted: the step has to raise. */
struct rung {
    uint32_t failures;
    uint32_t round;
    bool exhausted;
};

static struct rung next_rung(const struct rv_policy *policy, const struct rv_step *before)
{
    if (before->failure_count + 1 < policy->threshold)
        return (struct rung){before->failure_count + 1, before->round, false};
    if (before->round < policy->rounds)
        return (struct rung){0, before->round + 1, false};
    return (struct rung){.exhausted = true};
}

/* What the step had before its attempt failed, what it has now, and what the agent said. */
struct fall {
    const struct transition *t;
    const struct rv_policy *policy;
    const struct step_past *past;
    const struct rv_step *step;
    const struct rv_reply *said; /* NULL: it was silent */
    struct rung next;
    bool same;    /* nothing was counted */
    bool counted; /* one failure was */
};

static void wrong(const struct fall *fall, const char *what)
{
    world_violate(fall->t->w, "L-05", "step %u, attempt %u: %s: failures %u/%u after %u/%u",
                  fall->step->number, fall->past->row.attempt, what, fall->step->failure_count,
                  fall->step->round, fall->past->row.failure_count, fall->past->row.round);
}

/* L-05: a transient failure counts one until threshold and rounds are used up, and only then the
 * step raises it; a permanent one is raised and not counted; an open circuit, an answer that was
 * lost, and the server's absence are nobody's failure. */
static void check_count(const struct fall *fall, enum rv_attempt_state how)
{
    bool nobodys = how == RV_ATTEMPT_CIRCUIT_OPEN || how == RV_ATTEMPT_UNDELIVERED ||
                   (how == RV_ATTEMPT_FAILED && fall->said != NULL && fall->said->circuit_open);
    bool permanent = how == RV_ATTEMPT_FAILED && fall->said != NULL && !fall->said->transient;
    bool taken_back = check_taken_back_at(fall->t, fall->step);
    bool raised = fall->step->state == RV_STEP_ERROR &&
                  !check_found_now(fall->t, fall->step, RV_FINDING_UNDONE) &&
                  !check_found_now(fall->t, fall->step, RV_FINDING_NOTHING) && !taken_back;
    if (nobodys && (raised || !fall->same))
        wrong(fall, "what is nobody's failure was counted");
    else if (permanent && !nobodys && !fall->same && fall->counted)
        wrong(fall, "a permanent failure was counted");
    else if (!permanent && !fall->next.exhausted && raised)
        wrong(fall, "it raises before its ladder is exhausted");
    else if (!permanent && !nobodys && !fall->next.exhausted && !fall->same && !fall->counted)
        wrong(fall, "a failure was counted wrongly");
    else if (how == RV_ATTEMPT_LOST && !taken_back && !fall->next.exhausted && fall->same)
        wrong(fall, "a failure was not counted");
}

/* I-09: below the threshold it waits for its delay, which doubles up to the cool-down; at the
 * threshold it cools down. But an operator may want it tried now in the very commit. */
static void check_wait(const struct fall *fall)
{
    const struct rv_policy *policy = fall->policy;
    if (!fall->counted || fall->same || fall->step->state != RV_STEP_PENDING ||
        fall->step->attempt != fall->past->row.attempt || check_wanted_now(fall->t, fall->step))
        return;
    int64_t wait_ms = policy->delay_ms;
    for (uint32_t i = 1; i < fall->step->failure_count && wait_ms < policy->cooldown_ms; i++)
        wait_ms *= 2;
    if (wait_ms > policy->cooldown_ms && policy->delay_ms < policy->cooldown_ms)
        wait_ms = policy->cooldown_ms;
    if (fall->step->round > fall->past->row.round)
        wait_ms = policy->cooldown_ms;
    /* From the decision on, which may be older than its commit. */
    if (fall->step->ready_at < fall->step->attempt_ended_at + wait_ms)
        world_violate(fall->t->w, "I-09", "step %u waits %lld ms after failure %u/%u, not %lld",
                      fall->step->number, (long long)(fall->step->ready_at - fall->t->now),
                      fall->step->failure_count, fall->step->round, (long long)wait_ms);
}

static void check_fall(const struct transition *t, const struct step_past *past,
                       const struct rv_step *step)
{
    enum rv_attempt_state how = check_state_now(t, past, step);
    bool fell = how == RV_ATTEMPT_FAILED || how == RV_ATTEMPT_EXPIRED || how == RV_ATTEMPT_LOST ||
                how == RV_ATTEMPT_CIRCUIT_OPEN || how == RV_ATTEMPT_UNDELIVERED;
    bool stays = step->state == RV_STEP_PENDING || step->state == RV_STEP_PROCESSING ||
                 step->state == RV_STEP_ERROR;
    bool timeout = past->row.deadline != 0 && t->now >= past->row.deadline;
    /* The timeout was raised, and a retry around the step has begun it anew. */
    bool anew = step->deadline != past->row.deadline && step->failure_count + step->round == 0;
    int64_t age_ms;
    struct rv_step_id id = {t->task->id, step->number};
    if (past->row.attempt_state != RV_ATTEMPT_OPEN || !fell || !stays ||
        (timeout && (anew || step->state != RV_STEP_PENDING)) || !said_knows(t->w))
        return;
    const struct rv_policy *policy = rv_definition_policy(t->past->definition, step->node);
    const struct rv_reply_item *item = said_reply(t->w, &id, past->row.token, &age_ms);
    struct fall fall = {
        .t = t,
        .policy = policy,
        .past = past,
        .step = step,
        .said = item != NULL && item->failed ? &item->reply : NULL,
        .next = next_rung(policy, &past->row),
        .same = step->failure_count == past->row.failure_count && step->round == past->row.round,
    };
    fall.counted = step->failure_count == fall.next.failures && step->round == fall.next.round &&
                   !fall.next.exhausted;
    check_count(&fall, how);
    check_wait(&fall);
}

static bool calls_for_poison(const struct transition *t, uint32_t step)
{
    for (size_t i = 0; i < t->change->alerts_count; i++)
        if (t->change->alerts[i].kind == RV_ALERT_POISON && t->change->alerts[i].step == step)
            return true;
    return false;
}

static bool resubmits(const struct transition *t, uint32_t step)
{
    for (size_t i = 0; i < t->change->history_count; i++) {
        const struct rv_history_row *row = &t->change->history[i];
        if (row->verb == RV_OPERATOR_RESUBMIT && (row->step == 0 || row->step == step))
            return true;
    }
    return false;
}

bool check_resubmitted_now(const struct transition *t, const struct step_past *past,
                           const struct rv_step *step)
{
    bool was_error = past->row.state == RV_STEP_ERROR;
    bool was_open = past->row.attempt_state == RV_ATTEMPT_OPEN;
    if (!rv_step_state_open(step->state) || was_error)
        return was_error && rv_step_state_open(step->state);
    if (!was_open || step->failure_count + step->round > 0 || !resubmits(t, step->number))
        return false;
    enum rv_attempt_state how = check_state_now(t, past, step);
    const struct rv_policy *policy = rv_definition_policy(t->past->definition, step->node);
    bool fell = how == RV_ATTEMPT_EXPIRED || how == RV_ATTEMPT_LOST;
    return how == RV_ATTEMPT_FAILED || (fell && next_rung(policy, &past->row).exhausted);
}

/* L-05: when the third instance has died at a step, somebody is called. */
static void check_poison(const struct transition *t, const struct step_past *past,
                         const struct rv_step *step)
{
    bool died = past->row.attempt_state == RV_ATTEMPT_OPEN &&
                check_state_now(t, past, step) == RV_ATTEMPT_LOST;
    if (died && past->deaths + 1 >= RV_POISON_DEATHS && !past->poison_told &&
        rv_step_state_open(step->state) && !check_resubmitted_now(t, past, step) &&
        !calls_for_poison(t, step->number))
        world_violate(t->w, "L-05", "step %u: %d instances died at it and nobody is called",
                      step->number, RV_POISON_DEATHS);
}

/* P-02: as long as it is tried, the alert of a step at which so many died stays, or comes again. */
static void check_poison_stays(const struct transition *t, const struct rv_step *step)
{
    bool goes_on = rv_task_state_open(t->task->state) && t->task->state != RV_TASK_ERROR;
    bool open = rv_step_state_open(step->state) && step->kind == RV_KIND_CALL;
    if (goes_on && open && step->deaths >= RV_POISON_DEATHS && t->change->close_alerts &&
        !calls_for_poison(t, step->number))
        world_violate(t->w, "P-02", "step %u: %u instances died at it, and its alert is closed",
                      step->number, step->deaths);
}

void check_ladder(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        if (past == NULL || t->steps[i].kind != RV_KIND_CALL)
            continue;
        check_fall(t, past, &t->steps[i]);
        check_poison(t, past, &t->steps[i]);
        check_poison_stays(t, &t->steps[i]);
    }
}
