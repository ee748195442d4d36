#include "sim/check/check.h"

#include "json/json.h"
#include "sim/cast/said.h"
#include "sim/world/world.h"

/* The ledger row tells of another reply than the one in hand. */
static bool of_another(const struct rv_late_reply *late, const struct rv_reply_item *item)
{
    const struct rv_str *output = &item->reply.output;
    return (late->output.at == NULL) != (output->at == NULL) ||
           (output->at != NULL && history_hash(late->output) != history_hash(*output));
}

/* L-03: a reply that arrived before complete-by, for an attempt that was live, counts, however late
 * it is decided: it is not refused as late, and its attempt does not expire in the batch that has
 * the reply in hand. One that is in the ledger was late by the store's clock of that time, which
 * may have gone slower since. An operator who abandons the task ends its attempts at once. */
static void check_in_time(const struct transition *t, const struct step_past *past,
                          const struct rv_step *step)
{
    int64_t age_ms;
    struct rv_step_id id = {t->task->id, step->number};
    const struct rv_reply_item *item = said_reply(t->w, &id, past->row.token, &age_ms);
    if (!rv_attempt_state_live(past->row.attempt_state) ||
        past->late_attempt == past->row.attempt || item == NULL ||
        t->batch_now - age_ms + t->unsure_ms >= past->row.complete_by)
        return;
    enum rv_attempt_state how = check_state_now(t, past, step);
    bool abandoned = how == RV_ATTEMPT_LOST && t->task->state == RV_TASK_CANCELLED;
    if (how == RV_ATTEMPT_EXPIRED || (how == RV_ATTEMPT_LOST && !abandoned))
        world_violate(t->w, "L-03", "step %u: attempt %u %s, and its reply was there in time",
                      step->number, past->row.attempt, rv_attempt_state_text(how));
    for (size_t i = 0; i < t->change->late_replies_count; i++) {
        const struct rv_late_reply *late = &t->change->late_replies[i];
        if (late->step.number == step->number && late->attempt == past->row.attempt &&
            late->reason == RV_LATE_COMPLETE_BY && late->arrived_at != t->batch_now - age_ms &&
            !of_another(late, item))
            world_violate(t->w, "L-03", "step %u: a reply that arrived in time was refused as late",
                          step->number);
    }
}

/* L-03: nor does it expire while a reply or a renewal that arrived before the end of its lease
 * waits for a batch to take it. */
static void check_heard(const struct transition *t, const struct step_past *past,
                        const struct rv_step *step)
{
    int64_t age_ms;
    struct rv_step_id id = {t->task->id, step->number};
    if (rv_attempt_state_live(past->row.attempt_state) &&
        check_state_now(t, past, step) == RV_ATTEMPT_EXPIRED &&
        said_waits(t->w, &id, past->row.token, &age_ms) &&
        t->batch_now - age_ms < past->row.lease_until)
        world_violate(t->w, "L-03",
                      "step %u: attempt %u expired, and what arrived in time was not read yet",
                      step->number, past->row.attempt);
}

/* L-06: a late `done` tells what its attempt has done: from then on the step's effect is done, and
 * its output is there for the compensation; unless the step has its result, or is undone. */
static void check_supplies(const struct transition *t, const struct rv_late_reply *late)
{
    const struct rv_step *step = &t->steps[late->step.number - 1];
    if (late->output.at == NULL || step->state == RV_STEP_PROCESSED ||
        step->state == RV_STEP_SKIPPED || step->undone)
        return;
    if (step->effect != RV_EFFECT_DONE || step->output.at == NULL)
        world_violate(t->w, "L-06", "step %u: a late `done` came, and its effect is %s",
                      step->number, rv_effect_text(step->effect));
}

/* L-06: a step counts as done only when an agent has said so, or an operator. */
static void check_done_was_said(const struct transition *t, const struct step_past *past,
                                const struct rv_step *step)
{
    bool done = step->kind == RV_KIND_CALL && step->effect == RV_EFFECT_DONE;
    bool was = past != NULL && past->row.effect == RV_EFFECT_DONE;
    if (done && !was && !check_found_now(t, step, RV_FINDING_DONE) &&
        !check_found_now(t, step, RV_FINDING_UNDONE) && !said_done(t->w, t->task->id, step->number))
        world_violate(t->w, "L-06", "step %u counts as done, and no agent has said so",
                      step->number);
}

/* L-06: an attempt of a compensation carries what is known of the step that it undoes when the
 * attempt begins, also what a late `done` has told since the one before. What an operator gave as
 * its input is his word. */
static void check_carries(const struct transition *t, const struct step_past *past,
                          const struct rv_step *step)
{
    struct rv_arena *arena = &t->w->history->scratch;
    struct rv_json asked, output;
    bool begun = step->undoes != 0 && step->kind == RV_KIND_CALL &&
                 step->attempt_state == RV_ATTEMPT_OPEN &&
                 (past == NULL || past->row.token != step->token);
    if (!begun || step->replaces != 0 ||
        rv_json_parse(arena, step->input, RV_JSON_DEPTH_MAX, &asked, NULL) != RV_OK)
        return;
    const struct rv_step *undone = &t->steps[step->undoes - 1];
    bool done = undone->effect == RV_EFFECT_DONE;
    struct rv_str outcome = rv_json_str(rv_json_get(&asked, RV_STR("outcome")));
    if (outcome.at != NULL && rv_str_is(outcome, "completed") != done)
        world_violate(t->w, "L-06", "attempt %u of compensation %u is told %.*s, its step is %s",
                      step->attempt, step->number, RV_STR_FMT(outcome),
                      rv_effect_text(undone->effect));
    const struct rv_json *was = rv_json_get(&asked, RV_STR("was"));
    if (was != NULL && done && undone->output.at != NULL &&
        rv_json_parse(arena, undone->output, RV_JSON_DEPTH_MAX, &output, NULL) == RV_OK &&
        !rv_json_equal(was, &output))
        world_violate(t->w, "L-06", "attempt %u of compensation %u is told another output",
                      step->attempt, step->number);
}

/* The first `done` that this commit has of the step, in the ledger; NULL: none. */
static const struct rv_late_reply *first_late_done(const struct transition *t, uint32_t step)
{
    for (size_t i = 0; i < t->change->late_replies_count; i++)
        if (t->change->late_replies[i].step.number == step &&
            t->change->late_replies[i].output.at != NULL)
            return &t->change->late_replies[i];
    return NULL;
}

/* The task counts the step as not done, its service says that it was done, and nobody has undone it
 * or has said that it was done or undone. */
static bool contradicted(const struct transition *t, const struct rv_step *step)
{
    bool over = step->state == RV_STEP_ERROR || step->state == RV_STEP_CANCELLED ||
                step->state == RV_STEP_SKIPPED;
    for (uint32_t i = 0; i < t->task->open_count; i++)
        over = over && t->task->open[i] != step->number;
    return over && step->kind == RV_KIND_CALL && step->direction == RV_FORWARD && !step->undone &&
           step->effect == RV_EFFECT_DONE && !check_found(step, RV_FINDING_DONE) &&
           !check_found(step, RV_FINDING_UNDONE);
}

/* The same after its undo ended by an operator's word that nothing had happened, and the task had
 * ended: perhaps in this very commit, before the reply. A reply before the end has the step undone
 * again, and takes the operator's word from it. */
static bool contradicts_end(const struct transition *t, const struct step_past *past,
                            const struct rv_step *step)
{
    return first_late_done(t, step->number) != NULL && step->direction == RV_FORWARD &&
           step->undone && past->row.effect == RV_EFFECT_UNKNOWN &&
           check_found_now(t, step, RV_FINDING_NOTHING) && !rv_task_state_open(t->task->state);
}

/* An attempt of the task was live before this commit. */
static bool had_live(const struct task_past *past)
{
    for (uint32_t n = 1; n < past->room; n++)
        if (rv_attempt_state_live(past->steps[n].row.attempt_state))
            return true;
    return false;
}

/* P-02: what a task has gone past as not done, and what its service says was done all the same,
 * calls an operator, once, until it is undone. It is on the undo chain, if it is not kept for a
 * retry, as long as the task may be undone. Nobody is called while the task is undone, nor about
 * one that was given up. */
static void check_left(const struct transition *t, const struct step_past *past,
                       const struct rv_step *step)
{
    uint32_t calls = 0;
    for (size_t i = 0; i < t->change->alerts_count; i++)
        calls += t->change->alerts[i].kind == RV_ALERT_LATE_DONE &&
                 t->change->alerts[i].step == step->number;
    enum rv_task_state is = t->task->state;
    bool is_open = rv_task_state_open(is);
    bool before = past != NULL && past->call_late && (past->row.undone || !step->undone);
    bool left = contradicted(t, step);
    bool again = past != NULL && contradicts_end(t, past, step);
    bool goes_on = t->task->direction == RV_FORWARD && step->chained;
    bool needed = again || (left && (!is_open || goes_on));
    if (needed && !before && calls == 0 && !history_abandons(t->task))
        world_violate(t->w, "P-02",
                      "step %u counts as not done in a task that is %s, its service says that it "
                      "was done, and nobody is called",
                      step->number, rv_task_state_text(is));
    if (left && is == RV_TASK_PROCESSED && !step->chained)
        world_violate(t->w, "P-02", "no undo of the task would undo step %u, which was done late",
                      step->number);
    bool undone = calls > 0 && t->past->row.direction == RV_UNDO && t->task->direction == RV_UNDO &&
                  t->past->row.redo == 0 && is_open && !had_live(t->past);
    if (calls > (needed || (left && !undone)) || (calls > 0 && before))
        world_violate(t->w, "P-02", "an operator is called without need: step %u was done late",
                      step->number);
}

/* P-02: a step that was settled as --nothing-happened during the undo, and that a late `done`
 * proves to be done while its task is open, is put back on the undo chain. */
static void check_put_back(const struct transition *t, const struct step_past *past,
                           const struct rv_step *step)
{
    bool taken = past->row.undone;
    bool goes_on = rv_task_state_open(t->past->row.state) && rv_task_state_open(t->task->state);
    if (taken && goes_on && first_late_done(t, step->number) != NULL && step->undone &&
        check_found(step, RV_FINDING_NOTHING))
        world_violate(t->w, "P-02",
                      "step %u was done, says its service while its task is undone, and nobody "
                      "undoes it",
                      step->number);
}

void check_late(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        if (past != NULL) {
            check_in_time(t, past, &t->steps[i]);
            check_heard(t, past, &t->steps[i]);
            check_put_back(t, past, &t->steps[i]);
        }
        check_left(t, past, &t->steps[i]);
        check_done_was_said(t, past, &t->steps[i]);
        check_carries(t, past, &t->steps[i]);
    }
    for (size_t i = 0; i < t->change->late_replies_count; i++)
        check_supplies(t, &t->change->late_replies[i]);
}
