#include "core/plan_priv.h"

#include "base/assert.h"
#include "base/time.h"
#include "core/trace.h"

/* A tracestate belongs to its traceparent, and is nothing without it. */
static void trace_take(struct draft *d)
{
    const struct rv_command *command = d->command;
    struct rv_str state = command->u.submit.tracestate;
    struct rv_task *task = &d->plan->task;
    struct rv_trace trace;
    char text[RV_TRACEPARENT_BYTES];
    if (!rv_trace_read(command->u.submit.traceparent, &trace)) {
        task->trace = rv_arena_str(d->arena, rv_trace_make(task->id, command->seed, text));
        return;
    }
    task->trace = rv_arena_str(d->arena, rv_trace_text(&trace, trace.parent, text));
    char *room = state.len > 0 ? rv_arena_bytes(d->arena, state.len) : NULL;
    if (room != NULL)
        task->tracestate = rv_tracestate_read(state, room);
}

static enum rv_verdict decide_submit(struct draft *d)
{
    const struct rv_command *command = d->command;
    struct rv_task *task = &d->plan->task;
    rv_assert(command->u.submit.task.value > 0);
    *task = (struct rv_task){
        .id = command->u.submit.task,
        .workflow = command->u.submit.workflow,
        .state = RV_TASK_PENDING,
        .direction = RV_FORWARD,
        .priority = command->u.submit.priority,
        .locked_by = command->u.submit.instance,
        .created_at = command->now,
        .key = command->u.submit.key,
        .correlation = command->u.submit.correlation,
        .tags = command->u.submit.tags,
        .input = command->u.submit.input,
        .reply_url = command->u.submit.reply_url,
        .reply_stream = command->u.submit.reply_stream,
    };
    d->plan->changed = true;
    trace_take(d);
    message_received(d);
    struct rv_flow_env env;
    struct rv_flow_stop stop;
    RV_TRY(advance_env(d, RV_FORWARD, 0, &env));
    RV_TRY(advance_error(rv_flow_start(&env, task->input, &stop)));
    return advance(d, RV_FORWARD, 0, NULL, &stop);
}

/* A timeout of the DSL was over while the server was absent (RULES 9): all timeouts around the step
 * have the time that they had left, from now on; up to a lease more, so that not all tasks come to
 * their ends at once. */
static enum rv_verdict deadline_postpone(struct draft *d, struct rv_step *step)
{
    const struct rv_command *command = d->command;
    struct rv_flow_env env;
    struct rv_flow_stop stop;
    rv_assert(command->kind == RV_COMMAND_WAKE);
    rv_assert(command->u.wake.absent_from != 0);
    RV_TRY(advance_env(d, step->direction, step->undoes, &env));
    const struct rv_policy *policy = rv_definition_policy(d->view->definition, step->node);
    uint64_t lease_ms = (uint64_t)attempt_lease(policy);
    d->spread_ms = 1 + (int64_t)rv_prng_below(&d->prng, lease_ms);
    int64_t by_ms = command->now - command->u.wake.absent_from + d->spread_ms;
    RV_TRY(advance_error(
        rv_flow_postpone(&env, step->frames, command->u.wake.absent_from, by_ms, &stop)));
    step->frames = stop.frames;
    step->deadline = stop.deadline;
    if (step->kind != RV_KIND_CALL)
        step->wake_at = rv_time_earlier(step->ready_at, step->deadline);
    return RV_DECIDED;
}

/* The deadline that the DSL's own timeout set has passed. The attempt's complete-by was never
 * later, so no agent is at work on it any more. */
static enum rv_verdict wake_deadline(struct draft *d, struct rv_step *step)
{
    bool attempted = step->attempt_state == RV_ATTEMPT_OPEN;
    rv_assert(step->attempt_state != RV_ATTEMPT_REVOKED);
    rv_assert(step->deadline != 0);
    rv_assert(d->command->now >= step->deadline);
    if (attempted) {
        attempt_close(d, step, RV_ATTEMPT_EXPIRED);
        attempt_effect(step, RV_EFFECT_UNKNOWN);
    }
    bool call = step->kind == RV_KIND_CALL;
    rv_step_move(&step->state, call ? RV_STEP_ERROR : RV_STEP_CANCELLED);
    step->ended_at = d->command->now;
    step->wake_at = 0;
    draft_open_remove(d, step->number);
    struct rv_flow_env env;
    struct rv_flow_stop stop;
    RV_TRY(advance_env(d, step->direction, step->undoes, &env));
    RV_TRY(advance_error(rv_flow_expire(&env, step->frames, call ? step->number : 0, &stop)));
    if (attempted)
        step->error = stop.raised; /* the attempt's, too */
    draft_error(step, stop.raised);
    return advance(d, step->direction, step->undoes, step, &stop);
}

static enum rv_verdict wake_line(struct draft *d, struct rv_step *step)
{
    struct rv_flow_env env;
    struct rv_flow_stop stop;
    rv_assert(step->kind != RV_KIND_CALL);
    rv_assert(rv_step_state_open(step->state));
    draft_open_remove(d, step->number);
    if (step->kind == RV_KIND_WAIT) {
        rv_step_move(&step->state, RV_STEP_PROCESSED);
        step->ended_at = d->command->now;
        step->wake_at = 0;
    }
    RV_TRY(advance_env(d, step->direction, step->undoes, &env));
    RV_TRY(advance_error(rv_flow_go_on(&env, step->frames, &stop)));
    return advance(d, step->direction, step->undoes, step, &stop);
}

/* Nobody has tried the step for long: for want of an agent, or because it has stopped asking the
 * target. */
static void wake_call(struct draft *d, struct rv_step *step)
{
    struct rv_str target = d->command->kind == RV_COMMAND_WAKE ? d->command->u.wake.circuit
                                                               : RV_STR_NONE;
    rv_assert(step->kind == RV_KIND_CALL);
    rv_assert(step->state == RV_STEP_PENDING);
    if (target.at == NULL && step->attempt_state == RV_ATTEMPT_CIRCUIT_OPEN)
        target = step->target;
    if (d->command->kind == RV_COMMAND_WAKE && d->command->now < d->command->u.wake.call_at) {
        step->wake_at = d->command->u.wake.call_at;
        return;
    }
    step->wake_at = 0;
    step->called = true;
    bool paused = d->command->kind == RV_COMMAND_WAKE && d->command->u.wake.paused;
    if (target.at == NULL && paused)
        draft_alert(d, step->number, RV_ALERT_NO_AGENT,
                    rv_arena_printf(d->arena,
                                    "an operator has paused agent %.*s, and %.*s waits: `reeve "
                                    "agents resume %.*s` resumes the agent",
                                    RV_STR_FMT(step->agent), RV_STR_FMT(step->reference),
                                    RV_STR_FMT(step->agent)));
    else if (target.at == NULL)
        draft_alert(d, step->number, RV_ALERT_NO_AGENT,
                    rv_arena_printf(d->arena, "no instance of agent %.*s has taken %.*s",
                                    RV_STR_FMT(step->agent), RV_STR_FMT(step->reference)));
    else
        draft_alert(d, step->number, RV_ALERT_TARGET,
                    rv_arena_printf(
                        d->arena, "%s%.*s%sagent %.*s has an open circuit%s: %.*s waits",
                        target.len > 0 ? "calls to " : "", RV_STR_FMT(target),
                        target.len > 0 ? " failed repeatedly, and " : "", RV_STR_FMT(step->agent),
                        target.len > 0 ? "" : ", since its calls failed repeatedly",
                        RV_STR_FMT(step->reference)));
}

static enum rv_verdict wake_step(struct draft *d, uint32_t number)
{
    int64_t now = d->command->now;
    const struct rv_step *seen;
    struct rv_step *step;
    RV_TRY(draft_look(d, number, &seen));
    bool live = rv_attempt_state_live(seen->attempt_state);
    bool revoked = seen->attempt_state == RV_ATTEMPT_REVOKED;
    bool deadline = seen->deadline != 0 && now >= seen->deadline && !revoked;
    /* Whether its end is anybody's failure, only the supervisor knows (WAKE). */
    bool supervised = live || deadline;
    if (!rv_step_state_open(seen->state) || (supervised && d->command->kind != RV_COMMAND_WAKE))
        return RV_DECIDED;
    bool due = seen->wake_at != 0 && now >= seen->wake_at;
    if (d->plan->task.suspended_at != 0) {
        due = due && live; /* it expires as ever; all else runs at resume */
        deadline = false;
    }
    if (!deadline && !due)
        return RV_DECIDED;
    RV_TRY(draft_step(d, number, &step));
    if (deadline && d->command->u.wake.absent_from != 0) {
        RV_TRY(deadline_postpone(d, step));
        if (step->wake_at == 0 || now < step->wake_at)
            return RV_DECIDED;
        deadline = false;
    }
    if (deadline)
        return wake_deadline(d, step);
    if (step->kind != RV_KIND_CALL)
        return wake_line(d, step);
    if (revoked && now < step->complete_by)
        attempt_revoked_call(d, step);
    else if (step->state == RV_STEP_PROCESSING)
        return attempt_expire(d, step);
    else
        wake_call(d, step);
    return RV_DECIDED;
}

enum rv_verdict decide_wake_all(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    if (!rv_task_state_open(task->state) || task->state == RV_TASK_ERROR)
        return RV_DECIDED;
    uint32_t open[RV_OPEN_STEPS_MAX];
    uint32_t count = task->open_count;
    memcpy(open, task->open, sizeof open);
    for (uint32_t i = 0; i < count; i++)
        if (draft_open_has(d, open[i]))
            RV_TRY(wake_step(d, open[i]));
    return undo_next(d);
}

static enum rv_verdict decide_escalate(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    if (!rv_task_state_open(task->state) || task->state == RV_TASK_ERROR)
        return RV_DECIDED;
    fail_escalate(d, task->direction, 0, d->command->u.escalate.alert,
                  d->command->u.escalate.message);
    return RV_DECIDED;
}

static enum rv_verdict decide(struct draft *d)
{
    enum rv_command_kind kind = d->command->kind;
    bool reads_only = kind == RV_COMMAND_REPLY || kind == RV_COMMAND_RENEW ||
                      kind == RV_COMMAND_ESCALATE ||
                      (kind == RV_COMMAND_CANCEL && d->command->u.operate.abandon);
    if (d->view->definition == NULL && !reads_only)
        return RV_UNREADABLE;
    switch (kind) {
    case RV_COMMAND_SUBMIT:
        return decide_submit(d);
    case RV_COMMAND_ASSIGN:
        return attempt_assign(d);
    case RV_COMMAND_REPLY:
        return attempt_reply(d);
    case RV_COMMAND_RENEW:
        return attempt_renew(d);
    case RV_COMMAND_END:
        return attempt_end(d);
    case RV_COMMAND_WAKE:
        return decide_wake_all(d);
    case RV_COMMAND_RESUBMIT:
        return resubmit_decide(d);
    case RV_COMMAND_UNDO:
        return operate_undo(d);
    case RV_COMMAND_CANCEL:
        return operate_cancel(d);
    case RV_COMMAND_SETTLE:
        return settle_decide(d);
    case RV_COMMAND_RETRY:
        return operate_retry(d);
    case RV_COMMAND_SUSPEND:
        return operate_suspend(d);
    case RV_COMMAND_RESUME:
        return operate_resume(d);
    case RV_COMMAND_ESCALATE:
        return decide_escalate(d);
    }
    return RV_UNREADABLE;
}

/* What an operator decides about a suspended task shows at its resume; until then its alerts stay
 * open. So do those of one that leaves `error` without an operator, by a reply or the end of a
 * lease: nothing of it goes on before. */
static bool still_suspended(const struct draft *d)
{
    enum rv_command_kind kind = d->command->kind;
    const struct rv_task *task = &d->plan->task;
    bool operated = kind == RV_COMMAND_RESUBMIT || kind == RV_COMMAND_UNDO ||
                    kind == RV_COMMAND_CANCEL || kind == RV_COMMAND_SETTLE;
    bool recovers = d->view->task != NULL && d->view->task->state == RV_TASK_ERROR &&
                    task->state != RV_TASK_ERROR;
    return (operated || recovers) && task->suspended_at != 0 && rv_task_state_open(task->state);
}

/* A task that has ended calls for nobody, but where it has left what it should not. */
static void alerts_drop(struct rv_plan *plan)
{
    size_t kept = 0;
    for (size_t i = 0; i < plan->alerts_count; i++)
        if (plan->alerts[i].kind == RV_ALERT_LATE_DONE)
            plan->alerts[kept++] = plan->alerts[i];
    plan->alerts_count = kept;
}

static bool raises(const struct rv_plan *plan, uint32_t number, enum rv_alert_kind kind)
{
    for (size_t i = 0; i < plan->alerts_count; i++)
        if (plan->alerts[i].step == number && plan->alerts[i].kind == kind)
            return true;
    return false;
}

static bool calls_since(const struct rv_plan *plan, uint32_t number)
{
    return raises(plan, number, RV_ALERT_NO_AGENT) || raises(plan, number, RV_ALERT_TARGET) ||
           raises(plan, number, RV_ALERT_POSTPONED);
}

/* The alerts of the task are closed, and it goes on. What is still so calls anew: at once, that
 * instances died at a step or that a revoked attempt is silent; when nobody has taken a step for as
 * long again, that nobody takes it. The step whose undo waits is not open (undo_waits). */
static enum rv_verdict calls_anew(struct draft *d)
{
    const struct rv_task *task = &d->plan->task;
    bool goes_on = rv_task_state_open(task->state) && task->state != RV_TASK_ERROR;
    for (uint32_t i = 0; goes_on && d->plan->close_alerts && i < task->open_count; i++) {
        const struct rv_step *seen;
        struct rv_step *step;
        RV_TRY(draft_look(d, task->open[i], &seen));
        if (seen->deaths >= RV_POISON_DEATHS && !raises(d->plan, seen->number, RV_ALERT_POISON))
            ladder_poison_call(d, seen);
        if (!seen->called || calls_since(d->plan, seen->number))
            continue;
        RV_TRY(draft_step(d, seen->number, &step));
        step->called = false;
        if (step->attempt_state == RV_ATTEMPT_REVOKED)
            attempt_revoked_call(d, step);
        else if (step->state == RV_STEP_PENDING)
            ladder_watch(step, d->command->now);
    }
    return RV_DECIDED;
}

enum rv_verdict rv_decide(const struct rv_view *view, const struct rv_command *command,
                          struct rv_arena *arena, struct rv_plan *plan)
{
    rv_assert((view->task == NULL) == (command->kind == RV_COMMAND_SUBMIT));
    rv_assert(command->arrived_at <= command->now);
    rv_assert(view->task == NULL || view->task->open_count <= RV_OPEN_STEPS_MAX);
    if (view->task != NULL)
        plan->task = *view->task;
    else
        plan->task = (struct rv_task){.revision = 0};
    plan->changed = false;
    plan->close_alerts = false;
    plan->steps_count = plan->attempts_count = plan->late_count = plan->alerts_count = 0;
    plan->alerts = NULL;
    plan->alerts_room = plan->late_over_count = 0;
    plan->messages = NULL;
    plan->messages_count = 0;
    plan->history = NULL;
    plan->status = 200;
    plan->err = RV_OK;
    plan->message = RV_STR_NONE;
    plan->wanted = 0;
    plan->more_count = 0;
    plan->chain = 0;
    plan->steps = NULL;
    plan->steps_room = 0;
    struct draft d = {.view = view,
                      .command = command,
                      .arena = arena,
                      .plan = plan,
                      .bytes_begun = arena->bytes_taken};
    rv_prng_init(&d.prng, command->seed);
    enum rv_verdict verdict = decide(&d);
    rv_assert(!d.undoing);
    rv_assert(verdict != RV_NEED_STEP || plan->wanted != 0);
    if (command->asks) /* accepted, refused, or there is nothing to change */
        return verdict;
    rv_assert(verdict != RV_ACCEPTED);
    if (verdict == RV_DECIDED)
        verdict = undo_ask_anew(&d);
    if (still_suspended(&d))
        plan->close_alerts = false;
    if (verdict == RV_DECIDED && plan->err == RV_OK)
        verdict = calls_anew(&d);
    if (verdict == RV_DECIDED && plan->err == RV_OK)
        history_note(&d);
    if (verdict == RV_DECIDED && (arena->refused != RV_OK || d.starved))
        verdict = RV_NO_ROOM;
    if (verdict == RV_DECIDED && d.outgrown)
        verdict = RV_OVER_LIMIT;
    if (verdict == RV_NO_ROOM && arena->refused == RV_ERR_LIMIT)
        verdict = RV_OVER_LIMIT;
    if (!rv_task_state_open(plan->task.state)) {
        alerts_drop(plan);
        plan->task.suspended_at = 0;
    }
    if (verdict == RV_DECIDED && (plan->changed || plan->history != NULL))
        plan->task.revision++;
    rv_assert(plan->task.open_count <= RV_OPEN_STEPS_MAX);
    rv_assert(plan->steps_count <= RV_PLAN_STEPS_MAX);
    rv_assert(plan->alerts_count <= RV_PLAN_ALERTS_MAX);
    rv_assert(plan->messages_count <= RV_PLAN_MESSAGES_MAX);
    rv_assert(plan->attempts_count <= RV_PLAN_ATTEMPTS_MAX);
    return verdict;
}
