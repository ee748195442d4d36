#include "sim/check/check.h"

#include "base/assert.h"
#include "base/limits.h"
#include "core/cure.h"
#include "sim/cast/operator.h"
#include "sim/world/fault.h"
#include "sim/world/world.h"

#include <string.h>

static bool is_open(const struct rv_task *task, uint32_t number)
{
    for (uint32_t i = 0; i < task->open_count; i++)
        if (task->open[i] == number)
            return true;
    return false;
}

static bool handed_out(const struct step_past *past, const struct rv_step *step)
{
    return step->attempt != (past != NULL ? past->row.attempt : 0);
}

/* One commit may hold a resume and a suspension after it, both in the millisecond of the first
 * suspension: the times do not tell, the words in the history do. */
static bool still_suspended(const struct transition *t)
{
    for (size_t i = 0; i < t->change->history_count; i++)
        if (t->change->history[i].verb == RV_OPERATOR_RESUME)
            return false;
    return t->past->row.suspended_at != 0 && t->past->row.suspended_at == t->task->suspended_at;
}

/* O-01: nothing of a suspended task is handed out, and its timers stand still; what fell due
 * meanwhile runs at its resume, be it that one batch resumes and suspends it. */
static void check_suspended(const struct transition *t, const struct step_past *past,
                            const struct rv_step *step)
{
    if (t->past->row.suspended_at == 0)
        return;
    bool suspended = t->task->suspended_at != 0;
    bool still = still_suspended(t);
    bool waited = past != NULL && past->row.kind == RV_KIND_WAIT &&
                  past->row.state == RV_STEP_PROCESSING;
    if (suspended && handed_out(past, step))
        world_violate(t->w, "O-01", "step %u of a suspended task is handed out", step->number);
    if (still && waited && step->state == RV_STEP_PROCESSED)
        world_violate(t->w, "O-01", "timer %u of a suspended task runs", step->number);
    /* One that was parked besides goes on when it is resubmitted: with that its timers are due. */
    bool parked = t->past->row.state == RV_TASK_ERROR || t->task->state == RV_TASK_ERROR;
    bool goes_on = !still && !parked && rv_task_state_open(t->task->state);
    /* Whether a timeout that is over fires, the next wake decides: it knows of absences. */
    bool over = step->deadline != 0 && step->deadline <= t->now;
    if (goes_on && waited && !over && step->state == RV_STEP_PROCESSING && step->wake_at <= t->now)
        world_violate(t->w, "O-01", "timer %u was due at the resume of its task and does not run",
                      step->number);
}

/* O-01: what an operator decides about a suspended task leaves its alerts to the resume.
 * P-02: what leaves a task in error leaves the alert that says why, or raises one. */
static void check_calls(const struct transition *t)
{
    const struct rv_task *before = &t->past->row;
    bool still = still_suspended(t);
    bool left = before->state == RV_TASK_ERROR && t->task->state != RV_TASK_ERROR;
    if (still && left && rv_task_state_open(t->task->state) && t->change->close_alerts)
        world_violate(t->w, "O-01", "a suspended task goes on, and nothing calls an operator");
    bool parked = before->state == RV_TASK_ERROR && t->task->state == RV_TASK_ERROR;
    if (parked && t->change->close_alerts && t->change->alerts_count == 0)
        world_violate(t->w, "P-02", "a task stays in error, and its alerts are closed");
}

/* P-02: a step that counts as one for which an operator was called has an open alert. */
static void check_still_called(const struct transition *t, const struct rv_step *step)
{
    bool goes_on = rv_task_state_open(t->task->state) && t->task->state != RV_TASK_ERROR;
    bool called = step->called && is_open(t->task, step->number);
    if (!goes_on || !called || !t->change->close_alerts)
        return;
    for (size_t i = 0; i < t->change->alerts_count; i++)
        if (t->change->alerts[i].step == step->number)
            return;
    world_violate(t->w, "P-02", "the alert of step %u is closed, and it calls nobody again",
                  step->number);
}

/* With what the replies of this batch add, which are decided before commands. */
static uint32_t ledger_before(const struct transition *t)
{
    uint32_t late = (uint32_t)t->change->late_replies_count;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        late += past != NULL ? past->late : 0;
    }
    return late;
}

bool check_settled(const struct rv_step *step)
{
    return step->error.at != NULL &&
           memmem(step->error.at, step->error.len, "\"settled\"", strlen("\"settled\"")) != NULL;
}

bool check_found(const struct rv_step *step, enum rv_finding finding)
{
    static const char *const titles[] = {
        [RV_FINDING_DONE] = "the step as done\"",
        [RV_FINDING_UNDONE] = "the step as undone\"",
        [RV_FINDING_NOTHING] = "the step as without effect\"",
    };
    const char *title = titles[finding];
    return check_settled(step) &&
           memmem(step->error.at, step->error.len, title, strlen(title)) != NULL;
}

bool check_found_now(const struct transition *t, const struct rv_step *step,
                     enum rv_finding finding)
{
    static const char *const words[] = {[RV_FINDING_DONE] = "done",
                                        [RV_FINDING_UNDONE] = "undone",
                                        [RV_FINDING_NOTHING] = "nothing-happened"};
    const char *word = words[finding];
    size_t len = strlen(word);
    for (size_t i = 0; i < t->change->history_count; i++) {
        const struct rv_history_row *row = &t->change->history[i];
        bool first = row->options.len >= len && memcmp(row->options.at, word, len) == 0 &&
                     (row->options.len == len || row->options.at[len] == ' ');
        if (row->verb == RV_OPERATOR_SETTLE && row->step == step->number && first)
            return true;
    }
    return check_found(step, finding);
}

bool check_assumed_now(const struct transition *t)
{
    static const char word[] = "assume-not-done";
    for (size_t i = 0; i < t->change->history_count; i++) {
        const struct rv_history_row *row = &t->change->history[i];
        if (row->verb == RV_OPERATOR_RESUBMIT && row->options.at != NULL &&
            memmem(row->options.at, row->options.len, word, sizeof word - 1) != NULL)
            return true;
    }
    return false;
}

/* O-02: that a step did nothing is not taken where its agent said in time that it was done. */
static void check_nothing(const struct transition *t, const struct step_past *past,
                          const struct rv_step *step)
{
    bool done = past != NULL && past->row.state == RV_STEP_PROCESSED;
    if (done && past->row.effect == RV_EFFECT_DONE &&
        check_found_now(t, step, RV_FINDING_NOTHING) &&
        !check_found(&past->row, RV_FINDING_NOTHING))
        world_violate(t->w, "O-02", "step %u was done, and is settled as one that did nothing",
                      step->number);
}

/* O-02: a step is passed over by one who knew of its late replies, while nobody is at work on it;
 * its output is the given one, for good. */
static void check_passed(const struct transition *t, const struct step_past *past,
                         const struct rv_step *step)
{
    if (step->state != RV_STEP_SKIPPED)
        return;
    bool blind = rv_str_is(step->output, OPERATOR_SETTLES_BLINDLY);
    if (!blind && !rv_str_is(step->output, OPERATOR_SETTLES_SEEING))
        world_violate(t->w, "O-02", "step %u was settled with an output that nobody gave",
                      step->number);
    if (past == NULL || past->row.state == RV_STEP_SKIPPED)
        return;
    if (rv_attempt_state_live(check_state_now(t, past, step)))
        world_violate(t->w, "O-02", "step %u is settled while its agent is at work", step->number);
    if (blind && ledger_before(t) > 0)
        world_violate(t->w, "O-02", "step %u is settled by one who knew of no late reply",
                      step->number);
}

/* O-02: a step counts as undone by hand when somebody says so, of it or of all that its undo comes
 * to. */
static void check_by_hand(const struct transition *t, const struct step_past *past,
                          const struct rv_step *step)
{
    bool declared = t->past->row.by_hand != 0;
    bool now = past != NULL && !past->row.undone && step->undone &&
               check_found(step, RV_FINDING_UNDONE) && !check_found(&past->row, RV_FINDING_UNDONE);
    for (size_t i = 0; now && i < t->change->history_count; i++) {
        const struct rv_history_row *row = &t->change->history[i];
        declared = declared || (row->verb == RV_OPERATOR_SETTLE &&
                                (row->step == 0 || row->step == step->number));
    }
    if (now && !declared)
        world_violate(t->w, "O-02", "step %u counts as undone by hand, and nobody said so",
                      step->number);
}

/* What the operator says is true once it is committed: he has hands in the services. */
static void settled(const struct transition *t, const struct step_past *past,
                    const struct rv_step *step)
{
    struct rv_step_id id = {t->task->id, step->direction == RV_UNDO ? step->undoes : step->number};
    if (step->kind != RV_KIND_CALL || past == NULL || !check_settled(step))
        return;
    bool passed = step->state == RV_STEP_SKIPPED && past->row.state != RV_STEP_SKIPPED;
    /* The undo waited for its agent, which is gone. */
    passed = passed || (rv_attempt_state_live(past->row.attempt_state) &&
                        step->attempt_state == RV_ATTEMPT_LOST);
    /* ... or for the end of the lease that it had. */
    passed = passed || (past->row.effect != RV_EFFECT_DONE && step->effect == RV_EFFECT_DONE &&
                        check_found(step, RV_FINDING_DONE));
    if ((step->undone && !past->row.undone) || (passed && step->direction == RV_UNDO))
        operator_settled(t->w, id, false);
    else if (passed && step->effect != RV_EFFECT_NONE && !step->undone)
        operator_settled(t->w, id, true);
}

/* O-03: another input goes out once what the old request may have done is undone, or it did
 * nothing, as the operator says where nobody knows. */
static void check_edited(const struct transition *t, const struct step_past *past,
                         const struct rv_step *step)
{
    if (step->replaces == 0)
        return;
    const struct rv_step *old = &t->steps[step->replaces - 1];
    const struct step_past *was = history_step(t->past, step->replaces);
    bool waited = t->past->row.redo == step->number;
    bool waits = t->task->redo == step->number;
    bool assumed = rv_str_is(step->input, OPERATOR_EDITS_ASSUMING);
    bool needs = past == NULL && was != NULL && was->row.effect != RV_EFFECT_NONE &&
                 ((!assumed && !check_found_now(t, old, RV_FINDING_NOTHING)) ||
                  was->row.effect == RV_EFFECT_DONE);
    if (needs && !waits && step->state != RV_STEP_CANCELLED && !old->undone)
        world_violate(t->w, "O-03",
                      "step %u goes out with another input, and what step %u did "
                      "is not known",
                      step->number, old->number);
    if (waits && handed_out(past, step))
        world_violate(t->w, "O-03", "step %u is handed out before step %u is undone", step->number,
                      old->number);
    if (waited && !waits && step->state != RV_STEP_CANCELLED && !old->undone)
        world_violate(t->w, "O-03", "step %u goes on, and step %u was not undone", step->number,
                      old->number);
}

/* O-04: who resubmits a step gives it time, also one that has not failed and waits in a task that
 * was parked for another cause. */
static void check_time(const struct transition *t, const struct step_past *past,
                       const struct rv_step *step)
{
    bool goes_on = t->task->state == RV_TASK_PROCESSING || t->task->state == RV_TASK_COMPENSATING;
    bool live = step->state == RV_STEP_PROCESSING &&
                step->attempt_state != RV_ATTEMPT_REVOKED; /* it was not undone since */
    bool again = past != NULL && t->past->row.state == RV_TASK_ERROR && goes_on &&
                 (step->state == RV_STEP_PENDING || live);
    if (again && step->deadline != 0 && step->deadline <= t->now)
        world_violate(t->w, "O-04", "step %u is resubmitted, and its time was over %lld ms ago",
                      step->number, (long long)(t->now - step->deadline));
}

bool check_wanted_now(const struct transition *t, const struct rv_step *step)
{
    for (size_t i = 0; i < t->change->history_count; i++) {
        const struct rv_history_row *row = &t->change->history[i];
        if (row->verb == RV_OPERATOR_RETRY && (row->step == 0 || row->step == step->number))
            return true;
    }
    return false;
}

/* O-06: what an operator wants tried now is ready in the commit of his word, and is handed out
 * whatever circuit is open (I-23). */
static void check_insisted(const struct transition *t, const struct step_past *past,
                           const struct rv_step *step)
{
    /* A step that waits for the undo of another one is not open, nor was it when his word came if
     * another word of the same commit opened it. */
    bool meant = is_open(t->task, step->number) && is_open(&t->past->row, step->number) &&
                 check_wanted_now(t, step);
    bool waits = past != NULL && past->row.state == RV_STEP_PENDING &&
                 step->state == RV_STEP_PENDING && step->kind == RV_KIND_CALL &&
                 !handed_out(past, step) && rv_task_state_open(t->task->state) &&
                 t->task->state != RV_TASK_ERROR;
    if (meant && waits && (!step->insist || step->ready_at > t->now))
        world_violate(t->w, "O-06", "step %u is to be tried now, and waits", step->number);
}

/* A search of each commit would take most of a world's time. */
enum { CURES_SOUGHT = 8 };

/* The undo waits for an agent that is gone, perhaps for days. */
static bool waits_in_vain(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++)
        if (rv_attempt_is_gone(&t->steps[i], t->now))
            return true;
    return false;
}

static bool cures_sought(const struct transition *t)
{
    const struct rv_task *task = t->task;
    bool stands = task->state == RV_TASK_ERROR || task->suspended_at != 0 || waits_in_vain(t);
    if (task->state == RV_TASK_PROCESSED)
        return true;
    return rv_task_state_open(task->state) && (stands || task->revision % CURES_SOUGHT == 0);
}

static bool evaluates(void *self)
{
    *(bool *)self = true;
    return false;
}

/* O-05: whether a command is accepted is known before anything of the workflow is evaluated. */
static void check_asking(const struct transition *t, const struct rv_view *view,
                         const struct rv_cure *cures, size_t count)
{
    struct rv_plan plan;
    for (size_t i = 0; i < count; i++) {
        bool evaluated = false;
        struct rv_pace pace = {.left = 0, .pause = evaluates, .self = &evaluated};
        struct rv_command command = rv_cure_command(&cures[i]);
        command.asks = true;
        command.pace = &pace;
        command.now = command.arrived_at = t->now;
        if (rv_decide(view, &command, &t->w->history->scratch, &plan) != RV_ACCEPTED || evaluated)
            world_violate(t->w, "O-05", "%s is named for a task that is %s after an evaluation",
                          rv_cure_text(cures[i].kind), rv_task_state_text(t->task->state));
    }
}

static bool undo_is_taken(const struct transition *t, const struct rv_view *view)
{
    struct rv_plan plan;
    struct rv_command undo = {.kind = RV_COMMAND_UNDO, .asks = true, .now = t->now};
    undo.arrived_at = t->now;
    undo.u.operate.by_hand = true;
    return rv_decide(view, &undo, &t->w->history->scratch, &plan) == RV_ACCEPTED;
}

/* O-05: every command that is named for a task is taken and changes it, one that was processed can
 * be undone if the command is taken, a suspended one can be resumed, and from a parked one, or one
 * whose undo waits for an agent that is gone, a command leads on that is not abandonment. Not where
 * the rows cannot be read: they have to be restored first. */
static void check_cures(const struct transition *t)
{
    struct rv_cure cures[RV_CURES_MAX];
    struct rv_plan plan;
    struct rv_arena *arena = &t->w->history->scratch;
    size_t count = 0;
    struct rv_cures_want want;
    bool leads_on = t->task->state != RV_TASK_ERROR &&
                    (!waits_in_vain(t) || t->past->definition == NULL);
    bool resumes = t->task->suspended_at == 0 || t->past->definition == NULL ||
                   t->task->state == RV_TASK_PROCESSED;
    bool undoes = t->task->state != RV_TASK_PROCESSED;
    if (!cures_sought(t))
        return;
    const struct rv_step **rows = RV_NEW_ARRAY(arena, const struct rv_step *, t->steps_count + 1);
    rv_assert(rows != NULL);
    for (size_t i = 0; i < t->steps_count; i++)
        rows[i] = &t->steps[i];
    struct rv_view view = {.task = t->task,
                           .steps = rows,
                           .steps_count = t->steps_count,
                           .definition = t->past->definition};
    enum rv_verdict verdict = rv_cures(&view, t->now, arena, cures, &count, &want);
    rv_assert(verdict != RV_NO_ROOM && verdict != RV_OVER_LIMIT);
    check_asking(t, &view, cures, count);
    for (size_t i = 0; i < count; i++) {
        struct rv_command command = rv_cure_command(&cures[i]);
        command.now = command.arrived_at = t->now;
        verdict = rv_decide(&view, &command, arena, &plan);
        resumes = resumes || cures[i].kind == RV_CURE_RESUME;
        undoes = undoes || cures[i].kind == RV_CURE_UNDO || cures[i].kind == RV_CURE_UNDO_BY_HAND;
        leads_on = leads_on ||
                   (cures[i].kind != RV_CURE_ABANDON && cures[i].kind != RV_CURE_RESUME);
        if (verdict != RV_DECIDED || plan.err != RV_OK || !plan.changed)
            world_violate(t->w, "O-05", "%s is named for a task that is %s and leads nowhere",
                          rv_cure_text(cures[i].kind), rv_task_state_text(t->task->state));
    }
    if (!undoes && undo_is_taken(t, &view))
        world_violate(t->w, "O-05", "nothing undoes a processed task that can be undone");
    if (!resumes)
        world_violate(t->w, "O-05", "nothing resumes a suspended task");
    if (!leads_on)
        world_violate(t->w, "O-05", "nothing but abandonment is named for a task that waits");
}

uint32_t check_late_count(struct task_past *past)
{
    uint32_t late = 0;
    const struct step_past *step;
    for (uint32_t n = 1; n < past->room; n++)
        late += (step = history_step(past, n)) != NULL ? step->late : 0;
    return late;
}

void check_seen(struct world *w, struct rv_task_id task, uint32_t before, int64_t seen)
{
    struct task_past *past = history_task(w, task);
    if (past == NULL || history_lacks(w, task))
        return;
    uint32_t most = before < RV_PAGE_ROWS_MAX ? before : RV_PAGE_ROWS_MAX;
    if (seen < (int64_t)most || seen > (int64_t)check_late_count(past))
        world_violate(w, "O-05", "a cure says that %lld late replies were seen, of %u to %u",
                      (long long)seen, before, check_late_count(past));
}

void check_operator(const struct transition *t)
{
    check_cures(t);
    if (t->past->row.revision == 0)
        return;
    check_calls(t);
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct step_past *past = history_step(t->past, t->steps[i].number);
        check_suspended(t, past, &t->steps[i]);
        check_passed(t, past, &t->steps[i]);
        check_nothing(t, past, &t->steps[i]);
        check_by_hand(t, past, &t->steps[i]);
        settled(t, past, &t->steps[i]);
        check_edited(t, past, &t->steps[i]);
        check_time(t, past, &t->steps[i]);
        check_insisted(t, past, &t->steps[i]);
        check_still_called(t, &t->steps[i]);
    }
}
