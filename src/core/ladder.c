/* The failure ladder (RULES 5). Its first rung, the retries inside complete-by, is the agent's.
 * Here are the others: repeat after a delay, cool down and start over, raise. */
#include "core/plan_priv.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"

enum { DELAY_JITTER_PART = 4, COOLDOWN_JITTER_PART = 10 };
/* Postponed beyond so many times its complete-by, a step calls an operator. */
enum { POSTPONED_PARTS = 10 };

void ladder_repeat(struct rv_step *step, int64_t ready_at)
{
    step->waits_since = ready_at;
    step->called = step->insist = false;
    ladder_back(step, ready_at);
}

void ladder_back(struct rv_step *step, int64_t ready_at)
{
    if (step->state != RV_STEP_PENDING)
        rv_step_move(&step->state, RV_STEP_PENDING);
    step->ready_at = ready_at;
    step->wake_at = step->called ? 0 : rv_time_add(step->waits_since, RV_NO_AGENT_ALERT_MS);
}

void ladder_watch(struct rv_step *step, int64_t now)
{
    rv_assert(step->state == RV_STEP_PENDING);
    step->wake_at = rv_time_add(step->ready_at > now ? step->ready_at : now, RV_NO_AGENT_ALERT_MS);
}

/* The word of a remote service that is far beyond what the workflow's author has planned for. */
static void postponed_tell(struct draft *d, struct rv_step *step, int64_t wait_ms)
{
    const struct rv_policy *policy = rv_definition_policy(d->view->definition, step->node);
    char at[RV_INSTANT_TEXT_BYTES];
    if (step->called || wait_ms / POSTPONED_PARTS < policy->complete_by_ms)
        return;
    rv_instant_text(step->ready_at, at);
    draft_alert(d, step->number, RV_ALERT_POSTPONED,
                rv_arena_printf(d->arena, "agent %.*s postponed %.*s until %s%s%.*s",
                                RV_STR_FMT(step->agent), RV_STR_FMT(step->reference), at,
                                step->target.len > 0 ? " at the request of " : "",
                                RV_STR_FMT(step->target)));
    step->called = true;
}

void ladder_circuit_open(struct draft *d, struct rv_step *step, int64_t wait_ms)
{
    rv_assert(step->attempt_state == RV_ATTEMPT_CIRCUIT_OPEN);
    rv_assert(step->target.at != NULL);
    ladder_back(step, rv_time_add(d->command->now, wait_ms));
    postponed_tell(d, step, wait_ms);
}

static int64_t delay_of(const struct rv_policy *policy, uint32_t failure_count)
{
    int64_t delay = policy->delay_ms;
    for (uint32_t i = 1; i < failure_count && delay < policy->cooldown_ms; i++)
        delay = rv_time_add(delay, delay);
    if (policy->cooldown_ms > policy->delay_ms && delay > policy->cooldown_ms)
        delay = policy->cooldown_ms;
    return delay;
}

static bool below_threshold(const struct rv_policy *policy, uint32_t failure_count)
{
    return failure_count < policy->threshold;
}

static bool rounds_left(const struct rv_policy *policy, uint32_t round)
{
    return round < policy->rounds;
}

enum rv_verdict ladder_fail(struct draft *d, struct rv_step *step, struct rv_str error,
                            int64_t retry_after_ms)
{
    const struct rv_policy *policy = rv_definition_policy(d->view->definition, step->node);
    rv_assert(!rv_attempt_state_live(step->attempt_state));
    step->error = error;
    step->failure_count++;
    int64_t wait;
    if (below_threshold(policy, step->failure_count)) {
        wait = draft_jitter(d, delay_of(policy, step->failure_count), DELAY_JITTER_PART);
    } else if (rounds_left(policy, step->round)) {
        step->round++;
        step->failure_count = 0;
        wait = draft_jitter(d, policy->cooldown_ms, COOLDOWN_JITTER_PART);
    } else {
        return ladder_raise(d, step, error);
    }
    ladder_repeat(step,
                  rv_time_add(d->command->now, wait < retry_after_ms ? retry_after_ms : wait));
    if (wait < retry_after_ms)
        postponed_tell(d, step, retry_after_ms);
    return RV_DECIDED;
}

enum rv_verdict ladder_raise(struct draft *d, struct rv_step *step, struct rv_str error)
{
    rv_assert(!rv_attempt_state_live(step->attempt_state));
    step->error = error;
    step->ended_at = d->command->now;
    step->wake_at = 0;
    rv_step_move(&step->state, RV_STEP_ERROR);
    draft_open_remove(d, step->number);
    struct rv_flow_env env;
    RV_TRY(advance_env(d, step->direction, step->undoes, &env));
    struct rv_flow_stop stop;
    RV_TRY(advance_error(rv_flow_raise(&env, step->frames, step->number, error, &stop)));
    return advance(d, step->direction, step->undoes, step, &stop);
}

void ladder_poison_call(struct draft *d, const struct rv_step *step)
{
    draft_alert(
        d, step->number, RV_ALERT_POISON,
        rv_arena_printf(
            d->arena,
            "%u times, an instance of agent %.*s crashed or hung while it executed step %.*s",
            step->deaths, RV_STR_FMT(step->agent), RV_STR_FMT(step->reference)));
}

void ladder_count_death(struct draft *d, struct rv_step *step)
{
    step->deaths++;
    if (step->deaths == RV_POISON_DEATHS)
        ladder_poison_call(d, step);
}
