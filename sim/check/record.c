/* I-19: what was decided is recorded once, and read from there: no second evaluation changes it.
 * Where a step stands (its place in the definition, its iteration, its agent) never changes. What a
 * call asks for, and how control goes on from it (input, data, frames), stays through all its
 * attempts; only a step that has failed for good may be begun anew, by a retry around it or by an
 * operator, and a compensation that waits asks anew when more is known of what it undoes. Other
 * steps are filled in while control runs on through them, and stay once it has. */
#include "sim/check/check.h"

#include "sim/world/world.h"

static uint64_t mixed(uint64_t sum, uint64_t number)
{
    sum = (sum ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 32;
}

struct record record_of(const struct rv_step *step)
{
    uint64_t place = mixed(mixed(mixed(1, step->kind), step->direction), step->undoes);
    place = mixed(mixed(mixed(place, step->node), step->visit), history_hash(step->reference));
    place = mixed(mixed(place, history_hash(step->iteration)), history_hash(step->agent));
    uint64_t request = mixed(mixed(2, history_hash(step->input)), history_hash(step->data));
    return (struct record){place, request, history_hash(step->frames)};
}

uint64_t record_known(const struct rv_step *undone)
{
    bool done = undone->effect == RV_EFFECT_DONE;
    return mixed(done, done ? history_hash(undone->output) : 0);
}

/* Whether more is known of what it undoes than when it asked last. What has left with an attempt
 * stays as long as that attempt, and what an operator gave for good. */
static bool knows_more(const struct transition *t, const struct step_past *past,
                       const struct rv_step *step)
{
    bool out = rv_attempt_state_live(step->attempt_state) && step->attempt == past->row.attempt;
    return step->undoes != 0 && step->replaces == 0 && !out &&
           past->knew != record_known(&t->steps[step->undoes - 1]);
}

static bool timed_out(const struct transition *t, const struct step_past *past)
{
    return past->row.deadline != 0 && past->row.deadline <= t->now;
}

/* An operator resubmits or settles the step, which gives the scopes around it their time again. */
static bool is_operated(const struct transition *t, uint32_t number)
{
    for (size_t i = 0; i < t->change->history_count; i++) {
        const struct rv_history_row *row = &t->change->history[i];
        if ((row->verb == RV_OPERATOR_RESUBMIT || row->verb == RV_OPERATOR_SETTLE) &&
            (row->step == number || row->step == 0))
            return true;
    }
    return false;
}

/* Whether the step has failed for good, and begins anew, perhaps both in this commit. A failure
 * that the ladder repeats is counted; a timeout of the DSL ends the step whatever it waits for. */
static bool is_anew(const struct transition *t, const struct step_past *past,
                    const struct rv_step *step)
{
    enum rv_attempt_state was = check_state_now(t, past, step);
    bool failed = was == RV_ATTEMPT_FAILED || was == RV_ATTEMPT_EXPIRED || was == RV_ATTEMPT_LOST;
    bool counted = step->failure_count > 0 || step->round > 0;
    bool ended = rv_attempt_state_live(past->row.attempt_state) && failed;
    bool operated = step->state == RV_STEP_SKIPPED || t->past->row.redo == step->number;
    return past->row.state == RV_STEP_ERROR || operated ||
           ((ended || timed_out(t, past)) && !counted);
}

/* I-40: all attempts of a step send the same request under its idempotency key. Exception: a
 * compensation whose step became known as done (decision 022). */
static void check_one_request(const struct transition *t, const struct step_past *past,
                              const struct rv_step *step)
{
    if (past->row.attempt != 0 && history_hash(step->input) != past->input_hash &&
        !knows_more(t, past, step))
        world_violate(t->w, "I-40", "step %u asks for something else under the same key",
                      step->number);
}

static void check_step_record(const struct transition *t, const struct step_past *past,
                              const struct rv_step *step)
{
    bool runs = past->row.kind != RV_KIND_CALL && rv_step_state_open(past->row.state);
    if (runs)
        return;
    if (step->kind == RV_KIND_CALL)
        check_one_request(t, past, step);
    struct record now = record_of(step);
    if (now.place != past->record.place)
        world_violate(t->w, "I-19", "step %u was decided once more: it is another one now",
                      step->number);
    /* Timeouts that were over in the server's absence come later, whatever the step waits for. */
    bool other_way = now.way != past->record.way && !timed_out(t, past) &&
                     !is_operated(t, step->number);
    bool other = now.request != past->record.request && !knows_more(t, past, step);
    if ((other || other_way) && !is_anew(t, past, step))
        world_violate(t->w, "I-19",
                      "step %u, which is %s, was evaluated once more, and asks for something else",
                      step->number, rv_step_state_text(past->row.state));
}

void check_record(const struct transition *t)
{
    for (size_t i = 0; i < t->change->steps_count; i++) {
        const struct rv_step *step = t->change->steps[i];
        const struct step_past *past = history_step(t->past, step->number);
        if (past != NULL)
            check_step_record(t, past, step);
    }
}
