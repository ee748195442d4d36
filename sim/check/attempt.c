#include "sim/check/check.h"

#include "base/time.h"
#include "sim/store/database.h"
#include "sim/world/world.h"

static const struct step_past nothing;

static bool live(enum rv_attempt_state state)
{
    return state == RV_ATTEMPT_OPEN || state == RV_ATTEMPT_REVOKED;
}

static const struct rv_attempt *ended_now(const struct transition *t, uint32_t step,
                                          uint32_t number)
{
    for (size_t i = 0; i < t->change->attempts_count; i++)
        if (t->change->attempts[i].step.number == step && t->change->attempts[i].number == number)
            return &t->change->attempts[i];
    return NULL;
}

enum rv_attempt_state check_state_now(const struct transition *t, const struct step_past *past,
                                      const struct rv_step *step)
{
    if (step->attempt == past->row.attempt)
        return step->attempt_state;
    const struct rv_attempt *ended = ended_now(t, step->number, past->row.attempt);
    return ended ? ended->state : RV_ATTEMPT_NONE;
}

/* I-07: attempt numbers rise one by one, and no token is ever issued twice. */
static void check_token_new(const struct transition *t, const struct step_past *past,
                            const struct rv_step *step)
{
    if (step->attempt != past->row.attempt + 1)
        world_violate(t->w, "I-07", "step %u went from attempt %u to %u", step->number,
                      past->row.attempt, step->attempt);
    if (rv_map_find(&t->w->history->tokens, step->token, 0) != NULL)
        world_violate(t->w, "I-07", "a token was issued twice");
}

/* I-08: at most one attempt of a step is open: the one before has ended, and has a row that says
 * how. */
static void check_one_open(const struct transition *t, const struct step_past *past,
                           const struct rv_step *step)
{
    if (past->row.attempt == 0)
        return;
    const struct rv_attempt *ended = ended_now(t, step->number, past->row.attempt);
    if (ended == NULL || live(ended->state))
        world_violate(t->w, "I-08", "step %u: attempt %u begins while attempt %u has not ended",
                      step->number, step->attempt, past->row.attempt);
}

/* I-08: it may complete as long as its policy says, and never past the workflow's own timeout. */
static void check_complete_by(const struct transition *t, const struct rv_step *step)
{
    const struct rv_policy *policy = rv_definition_policy(t->past->definition, step->node);
    int64_t until = rv_time_earlier(t->now + policy->complete_by_ms, step->deadline);
    if (step->complete_by > until)
        world_violate(t->w, "I-08", "step %u: attempt %u may complete %lld ms too late",
                      step->number, step->attempt, (long long)(step->complete_by - until));
}

/* I-08, I-15: an attempt has a complete-by; its fence is above all that the task gave out. */
static void check_attempt_whole(const struct transition *t, const struct rv_step *step)
{
    if (step->complete_by <= t->now || step->lease_until > step->complete_by ||
        step->instance.at == NULL)
        world_violate(t->w, "I-08", "step %u: attempt %u is not whole", step->number,
                      step->attempt);
    if (step->fence <= t->past->row.fence)
        world_violate(t->w, "I-15", "step %u: fence %u is not above %u", step->number, step->fence,
                      t->past->row.fence);
}

/* I-09: a repeated attempt waits for its instant; but when the time that the DSL's own timeout
 * gives a step is over, what was planned for it is too, and a DSL retry may begin it anew. What an
 * operator wants tried now may leave with his word. */
static void check_not_early(const struct transition *t, const struct step_past *past,
                            const struct rv_step *step)
{
    bool over = past->row.deadline != 0 && t->now >= past->row.deadline;
    bool early = past->row.state == RV_STEP_PENDING && t->now < past->row.ready_at;
    if (early && !over && !check_wanted_now(t, step))
        world_violate(t->w, "I-09", "step %u: attempt %u %lld ms before its time", step->number,
                      step->attempt, (long long)(past->row.ready_at - t->now));
}

/* I-09: no step is tried more often than its policy says. */
static void check_within_policy(const struct transition *t, const struct rv_step *step)
{
    if (step->kind != RV_KIND_CALL || !rv_step_state_open(step->state))
        return;
    const struct rv_policy *policy = rv_definition_policy(t->past->definition, step->node);
    if (step->failure_count >= policy->threshold || step->round > policy->rounds)
        world_violate(t->w, "I-09", "step %u goes on after %u failures in round %u", step->number,
                      step->failure_count, step->round);
}

/* I-06: an accepted result is of the newest attempt, was said by its agent with these very bytes,
 * and arrived before complete-by. */
static void check_result_newest(const struct transition *t, const struct step_past *past,
                                const struct rv_step *step)
{
    if (step->kind != RV_KIND_CALL || step->state != RV_STEP_PROCESSED ||
        past->row.state == RV_STEP_PROCESSED)
        return;
    if (past->row.attempt_state != RV_ATTEMPT_OPEN || past->row.token != step->token)
        world_violate(t->w, "I-06", "step %u: a result was taken for attempt %u, which was %s",
                      step->number, step->attempt, rv_attempt_state_text(past->row.attempt_state));
    const struct told *told = history_told(t->w, (struct rv_step_id){t->task->id, step->number},
                                           step->token);
    bool said = false;
    for (uint32_t i = 0; told != NULL && i < told->outputs_count; i++)
        said |= told->outputs[i] == history_hash(step->output);
    if (!said)
        world_violate(t->w, "I-28", "step %u has an output that no agent sent", step->number);
    if (said && database_clock_good(t->w) && told->done_at >= past->row.complete_by)
        world_violate(t->w, "I-06", "step %u: a result was taken %lld ms after complete-by",
                      step->number, (long long)(told->done_at - past->row.complete_by));
}

/* I-17: an attempt expires by the store's clock, never before its lease or complete-by; one that
 * was revoked never before its complete-by. */
static void check_expiry(const struct transition *t, const struct step_past *past,
                         const struct rv_step *step)
{
    if (!live(past->row.attempt_state) || check_state_now(t, past, step) != RV_ATTEMPT_EXPIRED)
        return;
    bool revoked = past->row.attempt_state == RV_ATTEMPT_REVOKED;
    int64_t at = revoked ? past->row.complete_by
                         : rv_time_earlier(past->row.lease_until, past->row.deadline);
    if (t->now < at)
        world_violate(t->w, "I-17", "step %u: attempt %u expired %lld ms early", step->number,
                      past->row.attempt, (long long)(at - t->now));
}

/* P-09: the server's own absence is nobody's failure: what expired while it did not look burns no
 * failure count. A renewal that came before the absence may have been decided with the expiry: then
 * the attempt ended where its new lease ended. So may an undo, which is taken back where the point
 * of no return was perhaps passed: the step is in error, and no failure was counted. */
static void check_absence(const struct transition *t, const struct step_past *past,
                          const struct rv_step *step)
{
    if (past->row.attempt_state != RV_ATTEMPT_OPEN || past->row.deadline != 0 ||
        check_state_now(t, past, step) != RV_ATTEMPT_EXPIRED)
        return;
    int64_t until = past->row.lease_until;
    if (step->attempt == past->row.attempt && step->lease_until > until)
        until = step->lease_until;
    int64_t at = rv_time_earlier(until, past->row.complete_by);
    bool counted = step->failure_count > past->row.failure_count || step->round > past->row.round ||
                   (step->state == RV_STEP_ERROR && !check_taken_back_at(t, step));
    if (counted && database_was_alone(t->w, at))
        world_violate(t->w, "P-09",
                      "step %u: attempt %u ended at %lld, in the server's absence, and was "
                      "counted as a failure at %lld",
                      step->number, past->row.attempt, (long long)at, (long long)t->now);
}

/* P-09: nor does a timeout of the DSL fire that was over while the server did not look. (A step
 * that was never handed out is in error only by a timeout, or at an operator's word. A timeout
 * counts no failure: where one was counted, the attempt ended before, and the step failed by its
 * ladder.) */
static void check_timeout_absence(const struct transition *t, const struct step_past *past,
                                  const struct rv_step *step)
{
    bool open = past->row.state == RV_STEP_PENDING || past->row.state == RV_STEP_PROCESSING;
    bool expired = past->row.attempt_state == RV_ATTEMPT_OPEN
                       ? check_state_now(t, past, step) == RV_ATTEMPT_EXPIRED
                       : past->row.state == RV_STEP_PENDING;
    if (step->kind == RV_KIND_CALL && open && expired && step->state == RV_STEP_ERROR &&
        step->failure_count == past->row.failure_count && past->row.deadline != 0 &&
        t->now >= past->row.deadline && t->past->row.suspended_at == 0 &&
        !check_found_now(t, step, RV_FINDING_UNDONE) &&
        !check_found_now(t, step, RV_FINDING_NOTHING) && !check_taken_back_at(t, step) &&
        database_was_alone(t->w, past->row.deadline))
        world_violate(t->w, "P-09",
                      "step %u: a timeout that was over at %lld, in the server's absence, has "
                      "fired at %lld",
                      step->number, (long long)past->row.deadline, (long long)t->now);
}

/* I-14: an attempt leaves the open state only by a reply, an expiry, a new boot or a lost answer;
 * one that was revoked may still be at work and is never just forgotten. */
static void check_not_forgotten(const struct transition *t, const struct step_past *past,
                                const struct rv_step *step)
{
    if (past->row.attempt_state != RV_ATTEMPT_REVOKED)
        return;
    enum rv_attempt_state now = check_state_now(t, past, step);
    if (now == RV_ATTEMPT_OPEN || now == RV_ATTEMPT_NONE)
        world_violate(t->w, "I-14", "step %u: a revoked attempt is %s", step->number,
                      rv_attempt_state_text(now));
}

void check_attempts(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        const struct step_past *past = history_step(t->past, step->number);
        if (past == NULL)
            past = &nothing;
        bool begins = step->attempt != past->row.attempt || step->token != past->row.token ||
                      step->attempt_at != past->row.attempt_at;
        if (step->attempt != 0 && begins) {
            check_token_new(t, past, step);
            check_one_open(t, past, step);
            check_attempt_whole(t, step);
            check_complete_by(t, step);
            check_not_early(t, past, step);
        }
        check_within_policy(t, step);
        check_result_newest(t, past, step);
        check_expiry(t, past, step);
        check_absence(t, past, step);
        check_timeout_absence(t, past, step);
        check_not_forgotten(t, past, step);
    }
}
