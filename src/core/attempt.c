/* One attempt's life: recorded, renewed, answered, or ended without an answer. A reply counts only
 * for the newest open attempt and before its complete-by (RULES 3); everything else that carries
 * a token which was once issued goes to the late-reply ledger. */
#include "core/plan_priv.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"

#define ERROR_TYPE "https://open-workflow-specification.org/spec/1.0.0/errors/"
enum { LEASE_MS_DEFAULT = 15 * RV_SECOND_MS, LEASE_FREE_MS = 30 * RV_SECOND_MS };
enum { CIRCUIT_RETRY_MS_DEFAULT = RV_SECOND_MS };

int64_t attempt_lease(const struct rv_policy *policy)
{
    if (policy->lease_ms != 0)
        return policy->lease_ms;
    return policy->complete_by_ms <= LEASE_FREE_MS ? policy->complete_by_ms : LEASE_MS_DEFAULT;
}

static enum rv_effect effect_max(enum rv_effect a, enum rv_effect b)
{
    return a > b ? a : b;
}

void attempt_close(struct draft *d, struct rv_step *step, enum rv_attempt_state how)
{
    rv_assert(!rv_attempt_state_live(how));
    rv_attempt_move(&step->attempt_state, how);
    step->attempt_ended_at = d->command->now;
    /* What was tried ends the alert that nobody tries it; one of `poison` stands, and so does the
     * one that says why the task is in error: `close_alerts` would close that as well. */
    bool tried = how != RV_ATTEMPT_CIRCUIT_OPEN && how != RV_ATTEMPT_UNDELIVERED;
    bool escalated = d->plan->task.state == RV_TASK_ERROR;
    if (tried && step->called && step->deaths < RV_POISON_DEATHS && !escalated)
        d->plan->close_alerts = true;
    step->called = step->called && !tried;
    step->insist = step->insist && how == RV_ATTEMPT_UNDELIVERED;
}

void attempt_effect(struct rv_step *step, enum rv_effect effect)
{
    rv_assert(effect < RV_EFFECT_COUNT);
    step->attempt_effect = effect_max(step->attempt_effect, effect);
    step->effect = effect_max(step->effect, effect);
}

/* But whoever has it stops at the end of its lease, which is renewed no more. */
void attempt_unheard(struct draft *d, const struct rv_step *step)
{
    struct rv_task *task = &d->plan->task;
    if (step->direction == RV_FORWARD && task->quiet_at < step->lease_until)
        task->quiet_at = step->lease_until;
}

enum rv_verdict attempt_assign(struct draft *d)
{
    const struct rv_command *command = d->command;
    struct rv_task *task = &d->plan->task;
    struct rv_step *step;
    RV_TRY(draft_step(d, command->step, &step));
    rv_assert(rv_step_ready(task, step, command->now));
    if (step->attempt_state != RV_ATTEMPT_NONE)
        draft_archive(d, step);
    step->attempt_state = RV_ATTEMPT_NONE;
    /* Its alert was raised (decide.c, wake_step), and an agent takes it. Where a target that does
     * not answer was the reason, that is known only when the attempt has ended. */
    if (step->wake_at == 0 && step->target.at == NULL && step->deaths < RV_POISON_DEATHS) {
        d->plan->close_alerts = true;
        step->called = false;
    }
    const struct rv_policy *policy = rv_definition_policy(d->view->definition, step->node);
    step->undo_way = 1 + (uint32_t)rv_definition_undo_way(d->view->definition, step->node);
    step->attempt++;
    rv_attempt_move(&step->attempt_state, RV_ATTEMPT_OPEN);
    step->token = rv_prng_next(&d->prng);
    task->fence++;
    step->fence = task->fence;
    step->attempt_at = command->now;
    step->attempt_ended_at = 0;
    step->attempt_effect = RV_EFFECT_NONE;
    step->attempt_error = RV_STR_NONE;
    step->complete_by = rv_time_add(command->now, policy->complete_by_ms);
    step->complete_by = rv_time_earlier(step->complete_by, step->deadline);
    step->lease_ms = attempt_lease(policy);
    step->lease_until = rv_time_earlier(rv_time_add(command->now, step->lease_ms),
                                        step->complete_by);
    step->wake_at = step->lease_until;
    rv_assert(step->lease_until <= step->complete_by);
    step->instance = command->u.assign.instance;
    step->boot = command->u.assign.boot;
    step->poll = command->u.assign.poll;
    step->target = RV_STR_NONE;
    rv_step_move(&step->state, RV_STEP_PROCESSING);
    if (task->state == RV_TASK_PENDING)
        draft_task_move(d, RV_TASK_PROCESSING);
    if (task->started_at == 0)
        task->started_at = command->now;
    return RV_DECIDED;
}

static enum rv_verdict reply_done(struct draft *d, struct rv_step *step)
{
    rv_assert(d->view->definition != NULL);
    attempt_close(d, step, RV_ATTEMPT_DONE);
    attempt_effect(step, RV_EFFECT_DONE);
    step->output = d->command->u.reply.output;
    step->error = RV_STR_NONE;
    step->ended_at = d->command->now;
    step->wake_at = 0;
    rv_step_move(&step->state, RV_STEP_PROCESSED);
    message_completed(d, step);
    draft_open_remove(d, step->number);
    if (step->direction == RV_FORWARD)
        undo_chain(d, step);
    struct rv_flow_env env;
    RV_TRY(advance_env(d, step->direction, step->undoes, &env));
    struct rv_flow_stop stop;
    RV_TRY(advance_error(
        rv_flow_complete(&env, step->frames, step_data(d, step), step->output, &stop)));
    return advance(d, step->direction, step->undoes, step, &stop);
}

static enum rv_verdict reply_failed(struct draft *d, struct rv_step *step)
{
    const struct rv_reply *reply = &d->command->u.reply;
    /* What may have had an effect was tried, whatever else the agent says of it. */
    bool untried = reply->circuit_open && reply->effect == RV_EFFECT_NONE;
    rv_assert(step->attempt_state == RV_ATTEMPT_OPEN);
    rv_assert(d->view->definition != NULL);
    attempt_effect(step, reply->effect);
    if (untried) {
        attempt_close(d, step, RV_ATTEMPT_CIRCUIT_OPEN);
        step->error = reply->error;
        step->target = reply->target.at ? reply->target : RV_STR("");
        ladder_circuit_open(
            d, step, reply->retry_after_ms ? reply->retry_after_ms : CIRCUIT_RETRY_MS_DEFAULT);
        return RV_DECIDED;
    }
    attempt_close(d, step, RV_ATTEMPT_FAILED);
    step->target = reply->target;
    if (reply->transient || reply->circuit_open)
        return ladder_fail(d, step, reply->error, reply->retry_after_ms);
    return ladder_raise(d, step, reply->error);
}

/* The ledger keeps equal late replies of an attempt once. */
static bool late_is_kept(const struct draft *d)
{
    const struct rv_view *view = d->view;
    const struct rv_reply *reply = &d->command->u.reply;
    for (size_t i = 0; i < view->late_count; i++)
        if (rv_str_eq(view->late[i].output, reply->output) &&
            rv_str_eq(view->late[i].error, reply->error))
            return true;
    return false;
}

/* The ledger keeps a limited number of an attempt. The last place is for a `done`. */
static bool late_has_room(const struct draft *d)
{
    bool done = d->command->u.reply.output.at != NULL;
    return d->view->late_count < (done ? RV_LATE_REPLIES_MAX : RV_LATE_REPLIES_MAX - 1);
}

static enum rv_verdict reply_late(struct draft *d, uint32_t attempt, enum rv_late_reason reason)
{
    if (d->view->late_of != attempt) {
        d->plan->wanted = attempt;
        return RV_NEED_LATE;
    }
    bool kept = late_is_kept(d);
    bool keeps = !kept && late_has_room(d);
    d->plan->status = 410;
    d->plan->message = rv_arena_printf(
        d->arena, "the reply does not count: %s; the reply is %s; stop working on this attempt",
        rv_late_reason_text(reason),
        kept || keeps ? "kept for the operator"
                      : "not kept, because the attempt has too many late replies");
    if (!keeps)
        return RV_DECIDED;
    struct rv_step *step;
    RV_TRY(draft_step(d, d->command->step, &step));
    draft_late(d, step, attempt, reason);
    return late_effect(d, step, attempt);
}

static enum rv_verdict reply_to_older(struct draft *d)
{
    if (!d->view->attempt_sought)
        return RV_NEED_ATTEMPT;
    if (d->view->attempt != NULL)
        return reply_late(d, d->view->attempt->number, RV_LATE_SUPERSEDED);
    d->plan->status = 409;
    d->plan->message = RV_STR("no attempt of this step has this token: reply with the step and the "
                              "token of the request");
    return RV_DECIDED;
}

static enum rv_verdict reply_revoked(struct draft *d)
{
    const struct rv_reply *reply = &d->command->u.reply;
    struct rv_step *step;
    RV_TRY(draft_step(d, d->command->step, &step));
    rv_assert(step->attempt_state == RV_ATTEMPT_REVOKED);
    RV_TRY(reply_late(d, step->attempt, RV_LATE_REVOKED));
    bool done = reply->output.at != NULL;
    attempt_close(d, step, done ? RV_ATTEMPT_DONE : RV_ATTEMPT_FAILED);
    step->error = reply->error;
    return undo_settle(d, step, done ? RV_EFFECT_DONE : reply->effect);
}

/* Is this what the attempt's reply said that counted? Another answer is no repetition: to
 * acknowledge it would be to promise what is not on record. */
static bool reply_recorded(const struct rv_step *step, const struct rv_reply *reply)
{
    if (reply->output.at != NULL)
        return step->state == RV_STEP_PROCESSED && rv_str_eq(step->output, reply->output);
    return step->attempt_state != RV_ATTEMPT_DONE &&
           rv_str_eq(rv_attempt_error(step), reply->error);
}

/* Does the token belong to the step's newest attempt? */
static bool token_is_newest(const struct rv_step *step, uint64_t token)
{
    return step->attempt != 0 && step->token == token;
}

/* Did the reply arrive before complete-by? */
static bool reply_in_time(const struct rv_step *step, const struct rv_command *command)
{
    return command->arrived_at < step->complete_by;
}

enum rv_verdict attempt_reply(struct draft *d)
{
    const struct rv_command *command = d->command;
    const struct rv_step *seen;
    RV_TRY(draft_look(d, command->step, &seen));
    if (!token_is_newest(seen, command->token))
        return reply_to_older(d);
    bool in_time = reply_in_time(seen, command);
    struct rv_step *step;
    switch (seen->attempt_state) {
    case RV_ATTEMPT_OPEN:
        if (!in_time)
            return reply_late(d, seen->attempt, RV_LATE_COMPLETE_BY);
        if (d->view->definition == NULL)
            return reply_late(d, seen->attempt, RV_LATE_UNREADABLE);
        d->plan->status = 200;
        RV_TRY(draft_step(d, command->step, &step));
        return command->u.reply.output.at ? reply_done(d, step) : reply_failed(d, step);
    case RV_ATTEMPT_REVOKED:
        if (!in_time)
            return reply_late(d, seen->attempt, RV_LATE_COMPLETE_BY);
        if (d->view->definition == NULL)
            return reply_late(d, seen->attempt, RV_LATE_UNREADABLE);
        return reply_revoked(d);
    case RV_ATTEMPT_DONE:
    case RV_ATTEMPT_FAILED:
    case RV_ATTEMPT_CIRCUIT_OPEN:
        if (reply_recorded(seen, &command->u.reply)) {
            d->plan->status = 200; /* the same reply once more */
            return RV_DECIDED;
        }
        return reply_late(d, seen->attempt,
                          rv_step_state_open(seen->state) ? RV_LATE_SUPERSEDED : RV_LATE_SETTLED);
    case RV_ATTEMPT_EXPIRED:
    case RV_ATTEMPT_UNDELIVERED:
    case RV_ATTEMPT_LOST:
        return reply_late(d, seen->attempt,
                          rv_step_state_open(seen->state) ? RV_LATE_SUPERSEDED : RV_LATE_SETTLED);
    case RV_ATTEMPT_NONE:
    case RV_ATTEMPT_STATE_COUNT:
        break;
    }
    return RV_UNREADABLE;
}

/* A revoked attempt ends by its reply or at complete-by, which may be days away (RULES 6): an
 * operator is called, also where its lease is as long. */
void attempt_revoked_watch(struct draft *d, struct rv_step *step)
{
    int64_t call_at = rv_time_add(d->command->now, RV_NO_AGENT_ALERT_MS);
    rv_assert(step->attempt_state == RV_ATTEMPT_REVOKED);
    step->wake_at = step->complete_by;
    if (!step->called)
        step->wake_at = rv_time_earlier(step->wake_at, call_at);
}

void attempt_revoked_call(struct draft *d, struct rv_step *step)
{
    char at[RV_INSTANT_TEXT_BYTES];
    bool excused = d->command->kind == RV_COMMAND_WAKE && d->command->u.wake.excused;
    if (!excused) { /* else it had nobody to speak to */
        step->called = true;
        rv_instant_text(step->complete_by, at);
        draft_alert(d, step->number, RV_ALERT_NO_AGENT,
                    rv_arena_printf(
                        d->arena,
                        "instance %.*s of agent %.*s was asked to stop %.*s and has not replied: "
                        "the undo waits until the instance replies, or until complete-by, %s. If "
                        "you settle the step as done, the undo waits only until the lease of the "
                        "attempt has ended; the server accepts the other findings after that time",
                        RV_STR_FMT(step->instance), RV_STR_FMT(step->agent),
                        RV_STR_FMT(step->reference), at));
    }
    attempt_revoked_watch(d, step);
}

bool rv_attempt_is_gone(const struct rv_step *step, int64_t now)
{
    return step->attempt_state == RV_ATTEMPT_REVOKED && (now >= step->lease_until || step->called);
}

enum rv_verdict attempt_renew(struct draft *d)
{
    const struct rv_command *command = d->command;
    const struct rv_step *seen;
    RV_TRY(draft_look(d, command->step, &seen));
    bool newest = seen->attempt != 0 && seen->token == command->token;
    bool in_time = command->arrived_at < seen->lease_until;
    bool open = seen->attempt_state == RV_ATTEMPT_OPEN;
    d->plan->status = newest && in_time ? 200 : 410;
    if (!newest || !in_time || !open) {
        if (!rv_attempt_state_live(seen->attempt_state))
            d->plan->status = 410;
        return RV_DECIDED;
    }
    struct rv_step *step;
    RV_TRY(draft_step(d, command->step, &step));
    int64_t until = rv_time_add(command->now, step->lease_ms);
    until = rv_time_earlier(until, step->complete_by);
    if (until > step->lease_until)
        step->lease_until = until;
    step->wake_at = step->lease_until;
    return RV_DECIDED;
}

static struct rv_str error_timeout(struct draft *d, const struct rv_step *step)
{
    char at[RV_INSTANT_TEXT_BYTES];
    bool lease = step->lease_until < step->complete_by;
    rv_instant_text(lease ? step->lease_until : step->complete_by, at);
    return rv_arena_printf(d->arena,
                           "{\"type\":\"" ERROR_TYPE "timeout\",\"status\":408,"
                           "\"title\":\"The agent did not answer in time\","
                           "\"detail\":\"attempt %u: %s %s passed\"}",
                           step->attempt, lease ? "lease end" : "complete-by", at);
}

/* The server was absent: the step is repeated, at random within a time, and no failure counted. */
static enum rv_verdict attempt_excuse(struct draft *d, struct rv_step *step, struct rv_str error,
                                      int64_t spread_ms)
{
    step->error = error;
    int64_t spread = d->spread_ms;
    if (spread == 0)
        spread = (int64_t)rv_prng_below(&d->prng, (uint64_t)spread_ms + 1);
    ladder_repeat(step, rv_time_add(d->command->now, spread));
    return RV_DECIDED;
}

enum rv_verdict attempt_expire(struct draft *d, struct rv_step *step)
{
    const struct rv_command *command = d->command;
    bool lease = step->lease_until < step->complete_by;
    bool revoked = step->attempt_state == RV_ATTEMPT_REVOKED;
    rv_assert(rv_attempt_state_live(step->attempt_state));
    attempt_effect(step, RV_EFFECT_UNKNOWN);
    attempt_close(d, step, RV_ATTEMPT_EXPIRED);
    struct rv_str error = error_timeout(d, step);
    if (error.at == NULL)
        return RV_NO_ROOM;
    if (revoked) {
        step->error = error;
        return undo_settle(d, step, RV_EFFECT_UNKNOWN);
    }
    if (command->kind == RV_COMMAND_WAKE && command->u.wake.excused)
        return attempt_excuse(d, step, error, command->u.wake.spread_ms);
    bool silent = command->kind == RV_COMMAND_WAKE && command->u.wake.silent == step->number;
    if (lease || silent)
        ladder_count_death(d, step);
    return ladder_fail(d, step, error, 0);
}

static struct rv_str error_lost(struct draft *d, const struct rv_step *step)
{
    return rv_arena_printf(
        d->arena,
        "{\"type\":\"" ERROR_TYPE
        "communication\",\"status\":503,\"title\":\"The agent instance was restarted, or another "
        "process polls under the same instance name\",\"detail\":\"attempt %u was lost; if several "
        "processes poll under one instance name, give each process its own name (--instance)\"}",
        step->attempt);
}

enum rv_verdict attempt_end(struct draft *d)
{
    const struct rv_command *command = d->command;
    const struct rv_step *seen;
    RV_TRY(draft_look(d, command->step, &seen));
    if (seen->token != command->token || !rv_attempt_state_live(seen->attempt_state))
        return RV_DECIDED; /* it has ended by itself meanwhile */
    struct rv_step *step;
    RV_TRY(draft_step(d, command->step, &step));
    enum rv_attempt_state how = command->u.end.how;
    enum rv_effect effect = command->u.end.effect;
    rv_assert(how == RV_ATTEMPT_UNDELIVERED || how == RV_ATTEMPT_LOST);
    bool revoked = step->attempt_state == RV_ATTEMPT_REVOKED;
    if (revoked && how == RV_ATTEMPT_UNDELIVERED && effect != RV_EFFECT_NONE)
        return RV_DECIDED; /* perhaps it was delivered: its reply or its complete-by decides */
    attempt_close(d, step, how);
    if (effect != RV_EFFECT_NONE)
        attempt_unheard(d, step);
    if (revoked && how == RV_ATTEMPT_LOST)
        step->error = error_lost(d, step);
    if (revoked)
        return undo_settle(d, step, effect);
    attempt_effect(step, effect);
    if (how == RV_ATTEMPT_UNDELIVERED) {
        ladder_back(step, command->now);
        return RV_DECIDED;
    }
    struct rv_str error = error_lost(d, step);
    if (error.at == NULL)
        return RV_NO_ROOM;
    ladder_count_death(d, step);
    const struct rv_policy *policy = rv_definition_policy(d->view->definition, step->node);
    int64_t spread = policy->delay_ms < step->lease_ms ? policy->delay_ms : step->lease_ms;
    /* If the server ends again and again during this step, the step is the likely cause. */
    if (command->u.end.excused && step->deaths < RV_POISON_DEATHS)
        return attempt_excuse(d, step, error, spread);
    return ladder_fail(d, step, error, 0);
}
