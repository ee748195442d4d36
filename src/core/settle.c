/* What a person found out about a step, outside of Reeve, and how the task goes on with it.
 *
 * DONE, or any finding with an output: control continues behind the step with that output. UNDONE
 * and NOTHING of a forward step without an output leave the task escalated: nothing of the step is
 * left, an undo passes it, and a resubmission sends it again. Of a step that is being undone they
 * end its undo. */
#include "core/plan_priv.h"

#include "base/assert.h"
#include "base/time.h"

static const char *const titles[] = {
    [RV_FINDING_DONE] = "An operator settled the step as done",
    [RV_FINDING_UNDONE] = "An operator settled the step as undone",
    [RV_FINDING_NOTHING] = "An operator settled the step as without effect",
};

bool finding_is_nothing(const struct rv_step *step)
{
    return operate_error_is(step->error, "settled", titles[RV_FINDING_NOTHING]);
}

bool finding_is_done(const struct rv_step *step)
{
    return operate_error_is(step->error, "settled", titles[RV_FINDING_DONE]);
}

/* What of the step is on record, for whoever reads the row. */
static enum rv_verdict finding_note(struct draft *d, struct rv_step *step)
{
    rv_assert(d->command->kind == RV_COMMAND_SETTLE);
    rv_assert(d->command->u.operate.finding <= RV_FINDING_NOTHING);
    draft_error(step, operate_error(d, "settled", titles[d->command->u.operate.finding]));
    return step->error.at != NULL ? RV_DECIDED : RV_NO_ROOM;
}

static void finding_take(struct draft *d, struct rv_step *step)
{
    switch (d->command->u.operate.finding) {
    case RV_FINDING_DONE:
        step->effect = RV_EFFECT_DONE;
        step->undone = false;
        break;
    case RV_FINDING_UNDONE:
        step->effect = RV_EFFECT_DONE;
        step->undone = true;
        late_over(d, step);
        break;
    case RV_FINDING_NOTHING:
        step->effect = RV_EFFECT_NONE;
        step->undone = false;
        break;
    }
}

/* ---- the task goes on behind the step ---- */

static enum rv_verdict settle_call(struct draft *d, struct rv_step *step,
                                   struct rv_flow_stop *ret_stop)
{
    struct rv_flow_env env;
    RV_TRY(resubmit_time_again(d, step));
    finding_take(d, step);
    if (step->direction == RV_FORWARD && step->effect != RV_EFFECT_NONE && !step->undone)
        undo_chain(d, step);
    RV_TRY(advance_env(d, step->direction, step->undoes, &env));
    return advance_error(
        rv_flow_complete(&env, step->frames, step_data(d, step), step->output, ret_stop));
}

static enum rv_verdict settle_inline(struct draft *d, struct rv_step *step,
                                     struct rv_flow_stop *ret_stop)
{
    struct rv_flow_env env;
    RV_TRY(resubmit_time_again(d, step));
    step->wake_at = 0;
    RV_TRY(advance_env(d, step->direction, step->undoes, &env));
    return advance_error(rv_flow_settle(&env, step->frames, step->output, ret_stop));
}

static enum rv_verdict settle_past(struct draft *d, uint32_t number)
{
    struct rv_task *task = &d->plan->task;
    rv_assert(draft_open_has(d, number));
    struct rv_step *step;
    struct rv_flow_stop stop;
    RV_TRY(operate_accept(d));
    RV_TRY(draft_step(d, number, &step));
    if (task->state == RV_TASK_ERROR)
        task_go_on(d);
    else if (task->state == RV_TASK_PENDING)
        draft_task_move(d, RV_TASK_PROCESSING);
    d->plan->close_alerts = true;
    step->output = d->command->u.operate.output;
    if (step->output.at == NULL)
        step->output = RV_STR("null");
    RV_TRY(finding_note(d, step));
    step->ended_at = d->command->now;
    step->wake_at = 0;
    rv_step_move(&step->state, RV_STEP_SKIPPED);
    draft_open_remove(d, number);
    if (step->kind == RV_KIND_CALL)
        RV_TRY(settle_call(d, step, &stop));
    else
        RV_TRY(settle_inline(d, step, &stop));
    return advance(d, step->direction, step->undoes, step, &stop);
}

/* ---- the task stays where it is, or its undo goes on ---- */

/* Parked on its way forward: it may be resubmitted or, now perhaps, undone. */
static enum rv_verdict settle_parked(struct draft *d, uint32_t number)
{
    struct rv_step *step;
    rv_assert(d->plan->task.state == RV_TASK_ERROR);
    rv_assert(draft_open_has(d, number));
    RV_TRY(operate_accept(d));
    RV_TRY(draft_step(d, number, &step));
    rv_assert(!step->undone);
    if (step->state != RV_STEP_ERROR) /* its task was escalated for another cause */
        rv_step_move(&step->state, RV_STEP_ERROR);
    step->ended_at = d->command->now;
    step->wake_at = 0;
    finding_take(d, step);
    return finding_note(d, step);
}

/* The rest of its compensation is not needed. */
static enum rv_verdict settle_undo(struct draft *d, uint32_t number)
{
    struct rv_task *task = &d->plan->task;
    struct rv_step *step, *other;
    uint32_t open[RV_OPEN_STEPS_MAX];
    uint32_t count = task->open_count;
    RV_TRY(operate_accept(d));
    memcpy(open, task->open, sizeof open);
    for (uint32_t i = 0; i < count; i++) {
        RV_TRY(draft_step(d, open[i], &other));
        d->plan->close_alerts = true; /* that nobody takes it */
        rv_step_move(&other->state, RV_STEP_CANCELLED);
        other->ended_at = d->command->now;
        other->wake_at = 0;
        draft_open_remove(d, other->number);
    }
    rv_assert(task->open_count == 0);
    RV_TRY(draft_step(d, number, &step));
    if (task->undo_head == number)
        undo_unlink(d, step);
    step->wake_at = 0;
    step->undone = true;
    late_over(d, step);
    /* It was `done` by an operator's word alone, which is taken back. */
    if (d->command->u.operate.finding == RV_FINDING_NOTHING && step->effect == RV_EFFECT_DONE)
        step->effect = RV_EFFECT_UNKNOWN;
    if (step->effect != RV_EFFECT_NONE)
        task->cancelling = false; /* there was something that may have had an effect */
    RV_TRY(finding_note(d, step));
    if (task->state == RV_TASK_ERROR)
        task_go_on(d);
    return undo_next(d);
}

/* Of a step whose attempt nobody hears of. */
static enum rv_verdict unheard_take(struct draft *d, struct rv_step *step)
{
    finding_take(d, step);
    step->attempt_effect = step->effect;
    if (d->command->u.operate.finding == RV_FINDING_DONE) {
        step->output = d->command->u.operate.output;
        if (step->output.at == NULL)
            step->output = RV_STR("null");
    }
    return finding_note(d, step);
}

/* The undo waits for a revoked attempt that nobody hears of: it counts as lost, its step as found,
 * and the undo goes on. What its agent says later is in the ledger. A pivot that was carried out
 * leaves only the way forward: nothing was undone yet, and the undo is withdrawn. */
static enum rv_verdict settle_gone(struct draft *d, uint32_t number)
{
    struct rv_step *step;
    RV_TRY(operate_accept(d));
    RV_TRY(draft_step(d, number, &step));
    rv_assert(step->attempt_state == RV_ATTEMPT_REVOKED);
    attempt_close(d, step, RV_ATTEMPT_LOST);
    if (d->command->now < step->lease_until)
        attempt_unheard(d, step);
    bool pivot = rv_definition_undo_way(d->view->definition, step->node) == RV_UNDO_PIVOT;
    if (pivot && d->command->u.operate.finding == RV_FINDING_DONE) {
        undo_withdraw(d, step);
        task_go_on(d);
        return settle_past(d, number);
    }
    RV_TRY(unheard_take(d, step));
    return undo_settle(d, step, RV_EFFECT_NONE);
}

/* The same, where its agent was restarted meanwhile: its attempt is lost already, and its undo
 * waits for the end of the lease. */
static enum rv_verdict settle_lost(struct draft *d, uint32_t number)
{
    struct rv_step *step;
    RV_TRY(operate_accept(d));
    RV_TRY(draft_step(d, number, &step));
    rv_assert(step->effect == RV_EFFECT_UNKNOWN);
    rv_assert(d->plan->task.undo_head == number);
    d->plan->close_alerts = d->plan->close_alerts || step->called;
    step->called = false;
    RV_TRY(unheard_take(d, step));
    return undo_next(d);
}

/* ---- what may be said of which step ---- */

enum rv_verdict settle_refuse_unquiet(struct draft *d)
{
    char at[RV_INSTANT_TEXT_BYTES];
    if (d->command->now >= d->plan->task.quiet_at)
        return RV_DECIDED;
    rv_instant_text(d->plan->task.quiet_at, at);
    return operate_refuse(
        d, rv_arena_printf(d->arena,
                           "an attempt that ended without a reply may still run until "
                           "%s: repeat the command after that time",
                           at));
}

/* A live attempt. A revoked one may still run until its lease is over: what it does after the word
 * of an operator is undone if he found it done, and would remain if he found anything else. */
static enum rv_verdict refuse_live(struct draft *d, const struct rv_step *step)
{
    bool done = d->command->u.operate.finding == RV_FINDING_DONE;
    char at[RV_INSTANT_TEXT_BYTES];
    if (step->attempt_state != RV_ATTEMPT_REVOKED)
        return operate_refuse(
            d, rv_arena_printf(d->arena,
                               "instance %.*s may still run attempt %u of the step: suspend "
                               "the task, and settle the step when the attempt has ended",
                               RV_STR_FMT(step->instance), step->attempt));
    if (rv_attempt_is_gone(step, d->command->now) && (done || d->command->now >= step->lease_until))
        return RV_DECIDED;
    rv_instant_text(done ? rv_time_earlier(step->wake_at, step->lease_until) : step->lease_until,
                    at);
    return operate_refuse(
        d, rv_arena_printf(d->arena,
                           "instance %.*s was asked to stop attempt %u of the step, has not "
                           "replied and may still run the attempt: settle the step at or after %s",
                           RV_STR_FMT(step->instance), step->attempt, at));
}

static enum rv_verdict settle_open(struct draft *d, const struct rv_step *step)
{
    const struct rv_task *task = &d->plan->task;
    enum rv_finding finding = d->command->u.operate.finding;
    bool past = finding == RV_FINDING_DONE || d->command->u.operate.output.at != NULL;
    bool gone = rv_attempt_is_gone(step, d->command->now);
    if (rv_attempt_state_live(step->attempt_state))
        RV_TRY(refuse_live(d, step));
    if (d->plan->err != RV_OK)
        return RV_DECIDED;
    if (step->kind != RV_KIND_CALL && step->state != RV_STEP_ERROR)
        return operate_refuse(
            d, RV_STR("a step without an agent can be settled only after it has failed"));
    if (step->kind != RV_KIND_CALL && finding != RV_FINDING_DONE)
        return operate_refuse(
            d, RV_STR("the step has no agent, and so no effect at a service: settle the "
                      "step as done, with the output for the next step"));
    if (finding == RV_FINDING_NOTHING && step->effect == RV_EFFECT_DONE && !step->undone)
        return operate_refuse(
            d,
            step->direction == RV_FORWARD
                ? RV_STR(
                      "the agent reported that the request was done: settle the step with --done "
                      "and the reported output, or with --undone after you have undone the effect")
                : RV_STR("the agent reported that the request was done: settle the step with "
                         "--done and the reported output"));
    if ((past || gone) && finding != RV_FINDING_DONE && step->direction == RV_FORWARD)
        RV_TRY(settle_refuse_unquiet(d));
    if (d->plan->err != RV_OK)
        return RV_DECIDED;
    if (gone)
        return settle_gone(d, step->number);
    if (past)
        return settle_past(d, step->number);
    if (step->direction == RV_UNDO)
        return operate_refuse(
            d, rv_arena_printf(d->arena,
                               "the step is part of the undo of step %u: settle this "
                               "step as done, or settle step %u instead",
                               step->undoes, step->undoes));
    if (task->state != RV_TASK_ERROR)
        return operate_refuse(
            d, RV_STR("the step waits for dispatch, and the task is not in error: to "
                      "continue after the step, give its output (--output, \"output\")"));
    if (step->effect == RV_EFFECT_NONE)
        return operate_refuse(d,
                              RV_STR("the step has had no effect, so there is nothing to record"));
    if (step->undone) /* nor as nothing that happened: its key would be used again */
        return operate_refuse(d, RV_STR("the step is already settled as undone"));
    RV_TRY(settle_refuse_unquiet(d));
    return d->plan->err == RV_OK ? settle_parked(d, step->number) : RV_DECIDED;
}

/* A step whose undo is under way or next: the head of the chain, when nothing is open, or the one
 * that the open step undoes. */
static enum rv_verdict undone_now(struct draft *d, uint32_t number, bool *ret_is)
{
    const struct rv_task *task = &d->plan->task;
    bool under_way = task->direction == RV_UNDO &&
                     (task->state == RV_TASK_ERROR || task->state == RV_TASK_COMPENSATING);
    *ret_is = under_way && task->open_count == 0 && number != 0 && task->undo_head == number;
    for (uint32_t i = 0; under_way && i < task->open_count; i++) {
        const struct rv_step *step;
        RV_TRY(draft_look(d, task->open[i], &step));
        *ret_is = *ret_is || step->undoes == number;
        if (rv_attempt_state_live(step->attempt_state) && step->undoes == number)
            return operate_refuse(
                d, rv_arena_printf(
                       d->arena,
                       "instance %.*s may still run attempt %u of step %u, which undoes this step: "
                       "suspend the task, and settle the step when the attempt has ended",
                       RV_STR_FMT(step->instance), step->attempt, step->number));
    }
    return RV_DECIDED;
}

/* Nobody knows what it did, and its undo has not begun: an attempt may be at work. */
static bool undo_waits_for(const struct draft *d, const struct rv_step *step)
{
    const struct rv_task *task = &d->plan->task;
    return task->state == RV_TASK_COMPENSATING && task->open_count == 0 &&
           task->undo_head == step->number && d->command->now < task->quiet_at &&
           step->effect == RV_EFFECT_UNKNOWN;
}

/* ---- the task as a whole ---- */

/* It may not be on record at which node the workflow stopped: the frames were over their limit, or
 * an older version did not write them. Nothing can continue behind it then: what was left of the
 * task is done by hand, and the task ends. */
static enum rv_verdict settle_task(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    if (task->state != RV_TASK_ERROR || task->direction == RV_UNDO || task->open_count != 0)
        return operate_refuse(
            d,
            RV_STR(
                "give the number of the step: without it, --done is accepted only if the task is "
                "in error and the store has no record of the step at which the task stopped"));
    if (d->command->u.operate.finding != RV_FINDING_DONE)
        return operate_refuse(
            d,
            RV_STR(
                "a whole task can only be settled as done; to undo its effects, use `reeve undo`"));
    RV_TRY(operate_accept(d));
    task_go_on(d);
    task->output = d->command->u.operate.output;
    if (task->output.at == NULL)
        task->output = RV_STR("null");
    task->ended_at = d->command->now;
    draft_task_move(d, RV_TASK_PROCESSED);
    return RV_DECIDED;
}

/* The undo stands at a step that does not declare it: that one, and all like it that come after,
 * are undone by hand; what declares its undo is undone in its place. A step whose `done` arrives
 * later comes before them, and is not meant. */
static enum rv_verdict settle_chain(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    const struct rv_step *head;
    bool stands = task->state == RV_TASK_ERROR && task->open_count == 0 && task->undo_head != 0;
    if (stands)
        RV_TRY(draft_look(d, task->undo_head, &head));
    if (!stands || rv_definition_undo_way(d->view->definition, head->node) != RV_UNDO_UNDECLARED)
        return operate_refuse(
            d, RV_STR("give the number of the step: without it, --undone is accepted "
                      "only if the undo has stopped at a step without a compensation"));
    RV_TRY(settle_refuse_unquiet(d));
    if (d->plan->err != RV_OK)
        return RV_DECIDED;
    RV_TRY(operate_accept(d));
    task->by_hand = task->undo_head;
    task_go_on(d);
    return undo_next(d);
}

enum rv_verdict settle_decide(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    uint32_t number = d->command->step;
    const struct rv_step *step;
    bool is;
    if (!rv_task_state_open(task->state))
        return operate_refuse_state(d, "settled", "it has ended");
    if (number == 0 && task->direction == RV_UNDO &&
        d->command->u.operate.finding == RV_FINDING_UNDONE)
        return settle_chain(d);
    if (number == 0)
        return settle_task(d);
    if (draft_open_has(d, number)) {
        RV_TRY(draft_look(d, number, &step));
        return settle_open(d, step);
    }
    RV_TRY(undone_now(d, number, &is));
    if (d->plan->err != RV_OK)
        return RV_DECIDED;
    if (!is && number > task->last_number)
        return operate_refuse(
            d,
            rv_arena_printf(d->arena, "there is no step %u: `reeve show` lists the steps", number));
    if (!is)
        return operate_refuse(d, RV_STR("only a step that is open, in error or being undone can be "
                                        "settled: `reeve show` lists the steps"));
    RV_TRY(draft_look(d, number, &step));
    if (d->command->u.operate.finding == RV_FINDING_DONE)
        return undo_waits_for(d, step)
                   ? settle_lost(d, number)
                   : operate_refuse(
                         d, RV_STR("the step is being undone: settle it with --undone after you "
                                   "have undone its effect"));
    /* An operator may take back his own word, not that of the agent. */
    bool own = step->state == RV_STEP_SKIPPED && finding_is_done(step) &&
               step->attempt_effect != RV_EFFECT_DONE;
    if (d->command->u.operate.finding == RV_FINDING_NOTHING && step->effect == RV_EFFECT_DONE &&
        !own)
        return operate_refuse(
            d, RV_STR("the agent reported that the request was done: settle the step "
                      "with --undone after you have undone its effect"));
    RV_TRY(settle_refuse_unquiet(d));
    return d->plan->err == RV_OK ? settle_undo(d, number) : RV_DECIDED;
}
