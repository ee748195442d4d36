/* Undo (RULES 6). What may have had an effect stands on a chain through the steps' rows: the
 * task's undo_head names the newest, each step's undo_prev the one before. So the undo of a task of
 * a million steps reads one row at a time, in reverse order of completion, and branches will each
 * have a chain that is joined where they join.
 *
 * First everything that is under way is revoked. Nothing is compensated until each revoked attempt
 * has replied or its complete-by has passed, and until the task's quiet_at: an attempt that ended
 * unheard may be at work until then, also one that a later attempt has taken the place of. A step
 * leaves the chain when its compensation starts. */
#include "core/plan_priv.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/time.h"
#include "json/json.h"

/* One decision pops at most so many steps, whose compensations may end within it; each changes a
 * few rows. The rest is due at once. */
enum { UNDO_POPS_MAX = 32, UNDO_POP_STEPS = 4, UNDO_MEMORY_PART = 4 };

/* Where the definition cannot be read, the step has kept what it said when the attempt was recorded
 * whose late reply is taken now. One of an older version did not: it counts as one that a person
 * undoes. */
static enum rv_undo_way way_known(const struct draft *d, const struct rv_step *step)
{
    const struct rv_definition *definition = d->view->definition;
    if (definition != NULL)
        return rv_definition_undo_way(definition, step->node);
    return step->undo_way != 0 ? (enum rv_undo_way)(step->undo_way - 1) : RV_UNDO_UNDECLARED;
}

void undo_chain(struct draft *d, struct rv_step *step)
{
    struct rv_task *task = &d->plan->task;
    rv_assert(!step->chained);
    rv_assert(step->direction == RV_FORWARD);
    step->chained = true;
    step->called = false; /* from now on: that its undo waits */
    step->undo_prev = task->undo_head;
    task->undo_head = step->number;
    switch (way_known(d, step)) {
    case RV_UNDO_UNDECLARED:
        if (task->undo_blocker == 0)
            task->undo_blocker = step->number;
        break;
    case RV_UNDO_PIVOT:
        if (task->pivot == 0)
            task->pivot = step->number;
        break;
    case RV_UNDO_NOTHING:
    case RV_UNDO_STEPS:
        break;
    }
}

/* Its row changes only if there is something to undo. */
enum rv_verdict undo_chain_left(struct draft *d, uint32_t number)
{
    const struct rv_step *seen;
    struct rv_step *step;
    RV_TRY(draft_look(d, number, &seen));
    if (seen->effect == RV_EFFECT_NONE || seen->chained || seen->direction != RV_FORWARD)
        return RV_DECIDED;
    RV_TRY(draft_step(d, number, &step));
    undo_chain(d, step);
    late_left(d, step);
    return RV_DECIDED;
}

enum rv_verdict undo_chain_abandoned(struct draft *d, const struct rv_flow_stop *stop,
                                     const struct rv_step *raiser)
{
    RV_TRY(draft_want(d, stop->abandoned, stop->abandoned_count));
    for (uint32_t i = 0; i < stop->abandoned_count; i++) {
        if (raiser != NULL && raiser->number == stop->abandoned[i])
            continue;
        RV_TRY(undo_chain_left(d, stop->abandoned[i]));
    }
    return RV_DECIDED;
}

struct rv_str undo_facts(struct draft *d, const struct rv_step *step)
{
    char key[RV_STEP_TEXT_BYTES];
    rv_step_text((struct rv_step_id){d->plan->task.id, step->number}, key);
    bool known = step->effect == RV_EFFECT_DONE;
    struct rv_str output = known && step->output.at ? step->output : RV_STR("null");
    return rv_arena_printf(d->arena,
                           "{\"outcome\":\"%s\",\"input\":%.*s,\"output\":%.*s,"
                           "\"idempotencyKey\":\"%s\",\"fence\":%u}",
                           known ? "completed" : "unknown", RV_STR_FMT(step->input),
                           RV_STR_FMT(output), key, step->fence);
}

enum rv_verdict undo_chain_unfinished(struct draft *d, const struct rv_step *step)
{
    if (step->frames.at == NULL || step->direction != RV_FORWARD)
        return RV_DECIDED;
    struct rv_flow_env env;
    uint32_t *numbers;
    uint32_t count;
    RV_TRY(advance_env(d, RV_FORWARD, 0, &env));
    RV_TRY(advance_error(rv_flow_unfinished(&env, step->frames, &numbers, &count)));
    RV_TRY(draft_want(d, numbers, count));
    for (uint32_t i = 0; i < count; i++) {
        const struct rv_step *other;
        if (numbers[i] == step->number)
            continue;
        RV_TRY(draft_look(d, numbers[i], &other));
        if (other->direction != RV_FORWARD)
            return RV_UNREADABLE;
        RV_TRY(undo_chain_left(d, numbers[i]));
    }
    return RV_DECIDED;
}

/* Whether anything of it is to be undone. */
static bool may_have_effect(const struct rv_step *step)
{
    return step->effect == RV_EFFECT_DONE || step->effect == RV_EFFECT_UNKNOWN;
}

static enum rv_verdict step_leave(struct draft *d, struct rv_step *step)
{
    RV_TRY(undo_chain_unfinished(d, step));
    if (rv_step_may_move(step->state, RV_STEP_CANCELLED))
        rv_step_move(&step->state, RV_STEP_CANCELLED);
    step->ended_at = d->command->now;
    step->wake_at = 0;
    draft_open_remove(d, step->number);
    if (step->direction == RV_FORWARD && step->kind == RV_KIND_CALL && may_have_effect(step) &&
        !step->undone && !step->chained)
        undo_chain(d, step);
    return RV_DECIDED;
}

static enum rv_verdict step_revoke(struct draft *d, uint32_t number)
{
    struct rv_step *step;
    RV_TRY(draft_step(d, number, &step));
    bool live = step->state == RV_STEP_PROCESSING && step->attempt_state == RV_ATTEMPT_OPEN;
    if (!live)
        return step_leave(d, step);
    rv_attempt_move(&step->attempt_state, RV_ATTEMPT_REVOKED);
    step->called = false; /* undo_begin has closed the alerts */
    attempt_revoked_watch(d, step);
    return RV_DECIDED;
}

static void undo_finish(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    d->plan->changed = true;
    draft_task_move(d, task->cancelling ? RV_TASK_CANCELLED : RV_TASK_COMPENSATED);
    task->ended_at = d->command->now;
    d->plan->close_alerts = true;
}

enum rv_verdict undo_begin(struct draft *d)
{
    struct rv_task *task = &d->plan->task;
    uint32_t open[RV_OPEN_STEPS_MAX];
    uint32_t count = task->open_count;
    memcpy(open, task->open, sizeof open);
    task->direction = RV_UNDO;
    task->by_hand = 0;
    task->ended_at = 0;
    task->output = RV_STR_NONE;
    d->plan->close_alerts = true;
    d->plan->changed = true;
    bool begun = task->state != RV_TASK_PENDING;
    if (begun)
        draft_task_move(d, RV_TASK_COMPENSATING);
    for (uint32_t i = 0; i < count; i++)
        RV_TRY(step_revoke(d, open[i]));
    if (begun)
        return undo_next(d);
    undo_finish(d); /* nothing was handed out: there is nothing to wait for, and nothing to undo */
    return RV_DECIDED;
}

void undo_withdraw(struct draft *d, struct rv_step *step)
{
    rv_assert(!rv_attempt_state_live(step->attempt_state));
    rv_step_move(&step->state, RV_STEP_ERROR);
    step->ended_at = d->command->now;
    step->wake_at = 0;
    d->plan->task.direction = RV_FORWARD;
    d->plan->task.cancelling = false;
    d->plan->task.undo_error = RV_STR_NONE;
}

/* The undo came when the point of no return had perhaps been passed. Nothing was compensated yet:
 * the task is escalated where it stood, on its way forward. */
static void undo_taken_back(struct draft *d, struct rv_step *step)
{
    struct rv_task *task = &d->plan->task;
    undo_withdraw(d, step);
    if (step->error.at == NULL) /* its attempt did not fail */
        draft_error(
            step, RV_STR("{\"type\":\"taken-back\",\"status\":409,\"title\":"
                         "\"The pivot may have been carried out before the undo was requested\"}"));
    task->error = step->error;
    fail_escalate(d, RV_FORWARD, step->number, RV_ALERT_FAILED,
                  rv_arena_printf(d->arena,
                                  "the pivot %.*s may have been carried out before the undo was "
                                  "requested: the undo is withdrawn",
                                  RV_STR_FMT(step->reference)));
}

enum rv_verdict undo_settle(struct draft *d, struct rv_step *step, enum rv_effect effect)
{
    bool pivot = rv_definition_undo_way(d->view->definition, step->node) == RV_UNDO_PIVOT;
    rv_assert(!rv_attempt_state_live(step->attempt_state));
    attempt_effect(step, effect);
    if (pivot && step->effect != RV_EFFECT_NONE && !step->undone) {
        undo_taken_back(d, step);
        return RV_DECIDED;
    }
    RV_TRY(step_leave(d, step));
    return undo_next(d);
}

enum rv_verdict undo_may_be_taken_back(struct draft *d, bool *ret_may)
{
    const struct rv_task *task = &d->plan->task;
    *ret_may = false;
    for (uint32_t i = 0; i < task->open_count; i++) {
        const struct rv_step *step;
        RV_TRY(draft_look(d, task->open[i], &step));
        bool revoked = step->attempt_state == RV_ATTEMPT_REVOKED;
        *ret_may = *ret_may || (revoked && way_known(d, step) == RV_UNDO_PIVOT);
    }
    return RV_DECIDED;
}

static enum undo_hindrance hindrance_of(const struct draft *d, const struct rv_step *step)
{
    enum rv_undo_way way = rv_definition_undo_way(d->view->definition, step->node);
    return way == RV_UNDO_PIVOT ? UNDO_NEVER : way == RV_UNDO_UNDECLARED ? UNDO_BY_HAND : UNDO_FREE;
}

static void hindered_by(const struct draft *d, const struct rv_step *step, enum undo_hindrance *how,
                        uint32_t *number)
{
    enum undo_hindrance by = hindrance_of(d, step);
    bool counts = step->kind == RV_KIND_CALL && step->direction == RV_FORWARD &&
                  may_have_effect(step) && !step->undone && !step->chained;
    if (!counts || by <= *how)
        return;
    *how = by;
    *number = step->number;
}

/* A step at which control stands, and those that its frames keep. */
static enum rv_verdict hindered_at(struct draft *d, uint32_t number, enum undo_hindrance *how,
                                   uint32_t *ret_step)
{
    const struct rv_step *step, *other;
    struct rv_flow_env env;
    uint32_t *kept;
    uint32_t count;
    RV_TRY(draft_look(d, number, &step));
    hindered_by(d, step, how, ret_step);
    if (step->frames.at == NULL || step->direction != RV_FORWARD)
        return RV_DECIDED;
    RV_TRY(advance_env(d, RV_FORWARD, 0, &env));
    RV_TRY(advance_error(rv_flow_unfinished(&env, step->frames, &kept, &count)));
    RV_TRY(draft_want(d, kept, count));
    for (uint32_t i = 0; i < count; i++) {
        RV_TRY(draft_look(d, kept[i], &other));
        hindered_by(d, other, how, ret_step);
    }
    return RV_DECIDED;
}

/* A step of an older version may have been put on the chain while the definition could not be
 * read. */
static enum rv_verdict hindered_on_chain(struct draft *d, uint32_t number, enum undo_hindrance *how,
                                         uint32_t *ret_step)
{
    const struct rv_step *step;
    RV_TRY(draft_look(d, number, &step));
    enum undo_hindrance by = hindrance_of(d, step);
    if (by == UNDO_FREE)
        return RV_DECIDED;
    *how = by;
    *ret_step = number;
    return RV_DECIDED;
}

enum rv_verdict undo_hindered(struct draft *d, enum undo_hindrance *ret_how, uint32_t *ret_step)
{
    const struct rv_task *task = &d->plan->task;
    *ret_how = task->pivot != 0 ? UNDO_NEVER : UNDO_FREE;
    *ret_step = task->pivot;
    if (task->pivot == 0 && task->undo_blocker != 0)
        RV_TRY(hindered_on_chain(d, task->undo_blocker, ret_how, ret_step));
    for (uint32_t i = 0; i < task->open_count; i++)
        RV_TRY(hindered_at(d, task->open[i], ret_how, ret_step));
    return task->redo != 0 ? hindered_at(d, task->redo, ret_how, ret_step) : RV_DECIDED;
}

void undo_unlink(struct draft *d, const struct rv_step *step)
{
    struct rv_task *task = &d->plan->task;
    rv_assert(task->undo_head == step->number);
    task->undo_head = step->undo_prev;
    /* Each is the oldest of its kind on the chain: with it the last one has left. */
    if (task->undo_blocker == step->number)
        task->undo_blocker = 0;
    if (task->pivot == step->number)
        task->pivot = 0;
    if (task->by_hand == step->number)
        task->by_hand = step->undo_prev;
}

static void undo_pop(struct draft *d, struct rv_step *step)
{
    undo_unlink(d, step);
    d->plan->task.cancelling = false; /* there was something that may have had an effect */
}

/* The word of an operator about many steps; who and why is in the task's history. */
#define UNDONE_BY_HAND                                                                             \
    "{\"type\":\"settled\",\"status\":409,\"title\":\"An operator settled the step as "            \
    "undone\"}"

/* The error of an undo that stops at a step which nothing undoes. */
static enum rv_verdict stuck_error(struct draft *d, const struct rv_step *step,
                                   enum rv_undo_way way)
{
    struct rv_buf error;
    rv_assert(way == RV_UNDO_PIVOT || way == RV_UNDO_UNDECLARED);
    rv_buf_init(&error, RV_PAYLOAD_BYTES_MAX);
    rv_buf_printf(&error, "{\"type\":\"%s\",\"status\":409,\"title\":\"%s\",\"instance\":",
                  rv_alert_kind_text(RV_ALERT_NO_UNDO),
                  way == RV_UNDO_PIVOT ? "A pivot is never undone"
                                       : "The step declares no compensation");
    rv_json_write_string(&error, step->reference);
    rv_buf_add_char(&error, '}');
    if (error.failed == RV_OK)
        d->plan->task.undo_error = rv_arena_str(d->arena, rv_buf_str(&error));
    rv_buf_done(&error);
    return d->plan->task.undo_error.at != NULL ? RV_DECIDED : RV_NO_ROOM;
}

static enum rv_verdict undo_stuck(struct draft *d, const struct rv_step *step, enum rv_undo_way way)
{
    RV_TRY(stuck_error(d, step, way));
    fail_escalate(d, RV_UNDO, step->number, RV_ALERT_NO_UNDO,
                  rv_arena_printf(d->arena, "step %u, %.*s, %s", step->number,
                                  RV_STR_FMT(step->reference),
                                  way == RV_UNDO_PIVOT
                                      ? "is a pivot (point of no return) and is never undone"
                                      : "declares no compensation: undo it by hand, then settle it "
                                        "as undone"));
    return RV_DECIDED;
}

/* The row of the replaced step says whether it was undone. The chain cannot: a late `done` may have
 * put an older step on top of it. */
static enum rv_verdict redo_may_begin(struct draft *d, bool *ret_begins)
{
    const struct rv_step *next, *replaced;
    rv_assert(d->plan->task.redo != 0);
    RV_TRY(draft_look(d, d->plan->task.redo, &next));
    RV_TRY(draft_look(d, next->replaces, &replaced));
    *ret_begins = replaced->undone;
    return RV_DECIDED;
}

/* Where the undo goes on at once, it needs as many rows again: a decision that begins anew for each
 * of them would evaluate what comes before them as often. */
enum rv_verdict undo_head_look(struct draft *d, const struct rv_step **ret_head)
{
    rv_assert(d->plan->task.undo_head != 0);
    d->plan->chain = d->undo.pops;
    RV_TRY(draft_look(d, d->plan->task.undo_head, ret_head));
    d->plan->chain = 0;
    const struct rv_step *head = *ret_head;
    return head->chained && !head->undone && head->direction == RV_FORWARD ? RV_DECIDED
                                                                           : RV_UNREADABLE;
}

/* Like a long run of inline steps, an undo whose compensations end at once goes on in pieces. */
static bool piece_is_full(const struct draft *d)
{
    const struct undo_piece *undo = &d->undo;
    const struct rv_plan *plan = d->plan;
    size_t memory = d->command->memory_max != 0 ? d->command->memory_max : RV_DECISION_BYTES_MAX;
    return undo->pops >= UNDO_POPS_MAX || undo->fuel >= RV_FUEL_PER_COMMAND ||
           undo->inline_steps >= RV_INLINE_STEPS_PER_COMMAND ||
           d->arena->bytes_taken - d->bytes_begun > memory / UNDO_MEMORY_PART ||
           plan->steps_count + UNDO_POP_STEPS > RV_PLAN_STEPS_MAX ||
           plan->late_over_count == RV_PLAN_LATE_OVER_MAX;
}

static enum rv_verdict compensate(struct draft *d, const struct rv_step *step)
{
    struct rv_flow_env env;
    struct rv_flow_stop stop;
    RV_TRY(advance_env(d, RV_UNDO, step->number, &env));
    RV_TRY(advance_error(rv_flow_start_undo(&env, step->node, step_data(d, step), &stop)));
    d->undo.fuel += RV_FUEL_PER_COMMAND - env.fuel;
    d->undo.inline_steps += RV_INLINE_STEPS_PER_COMMAND - env.inline_steps;
    return advance(d, RV_UNDO, step->number, NULL, &stop);
}

/* The step is off the chain, and nothing is to be done for it. */
static void undone_at_once(struct draft *d, struct rv_step *step)
{
    rv_assert(step->chained);
    undo_pop(d, step);
    step->undone = true;
    late_over(d, step);
}

/* Its attempt was settled as done while the undo waited for it. One that was settled on the way
 * forward, when nobody knew of a wait, was skipped. */
static bool settled_in_wait(const struct rv_step *step)
{
    return step->state != RV_STEP_SKIPPED && finding_is_done(step);
}

/* Nothing but the end of a lease ends the wait: the row says until when, for the head of the chain
 * may also be one that this decision has not come to (rv_view_wake_at). That is known: an operator
 * is called at once, where a revoked attempt would call one (attempt_revoked_watch), and again when
 * the alert was closed with others. Who has settled the step in this wait knows of it. */
static enum rv_verdict undo_waits(struct draft *d, const struct rv_step *head)
{
    const struct rv_task *task = &d->plan->task;
    bool called = head->called && !d->plan->close_alerts;
    bool soon = task->quiet_at - d->command->now <= RV_NO_AGENT_ALERT_MS;
    bool calls = !called && !soon && !settled_in_wait(head);
    char at[RV_INSTANT_TEXT_BYTES];
    struct rv_step *step;
    rv_assert(d->command->now < task->quiet_at);
    if (!calls && head->wake_at == task->quiet_at)
        return RV_DECIDED;
    RV_TRY(draft_step(d, head->number, &step));
    step->wake_at = task->quiet_at;
    if (!calls)
        return RV_DECIDED;
    step->called = true;
    rv_instant_text(task->quiet_at, at);
    draft_alert(d, step->number, RV_ALERT_NO_AGENT,
                rv_arena_printf(d->arena,
                                "an attempt that ended without a reply may still run until %s: the "
                                "undo of step %u, %.*s, waits until then",
                                at, step->number, RV_STR_FMT(step->reference)));
    return RV_DECIDED;
}

static void wait_over(struct draft *d, struct rv_step *step)
{
    if (step->called)
        d->plan->close_alerts = true;
    step->called = false;
    step->wake_at = 0;
}

/* The step at the head of the chain. *ret_more: the next one may be looked at. */
static enum rv_verdict undo_one(struct draft *d, bool *ret_more)
{
    struct rv_task *task = &d->plan->task;
    const struct rv_step *head;
    struct rv_step *step;
    *ret_more = false;
    RV_TRY(undo_head_look(d, &head));
    enum rv_undo_way way = rv_definition_undo_way(d->view->definition, head->node);
    if (way != RV_UNDO_NOTHING && d->command->now < task->quiet_at)
        return undo_waits(d, head);
    RV_TRY(draft_step(d, head->number, &step));
    wait_over(d, step);
    d->undo.pops++;
    *ret_more = true;
    switch (way) {
    case RV_UNDO_UNDECLARED:
    case RV_UNDO_PIVOT:
        if (way == RV_UNDO_PIVOT || task->by_hand != step->number)
            return undo_stuck(d, step, way);
        undone_at_once(d, step);
        draft_error(step, RV_STR(UNDONE_BY_HAND));
        break;
    case RV_UNDO_NOTHING:
        undone_at_once(d, step);
        break;
    case RV_UNDO_STEPS:
        undo_pop(d, step);
        return compensate(d, step);
    }
    return RV_DECIDED;
}

static enum rv_verdict undo_on(struct draft *d, bool *ret_more)
{
    const struct rv_task *task = &d->plan->task;
    rv_assert(d->undoing);
    rv_assert(task->state == RV_TASK_COMPENSATING);
    *ret_more = false;
    if (task->redo != 0) {
        bool begins;
        RV_TRY(redo_may_begin(d, &begins));
        if (begins)
            return resubmit_redo_begin(d);
    }
    if (task->undo_head != 0)
        return undo_one(d, ret_more);
    undo_finish(d);
    return RV_DECIDED;
}

/* A compensation that ends while it begins comes here again, and what is behind it is undone by the
 * loop: how deep the calls go does not depend on how long the chain is. */
enum rv_verdict undo_next(struct draft *d)
{
    const struct rv_task *task = &d->plan->task;
    enum rv_verdict verdict = RV_DECIDED;
    bool more = true;
    if (d->undoing)
        return RV_DECIDED;
    d->undoing = true;
    while (verdict == RV_DECIDED && more && task->state == RV_TASK_COMPENSATING &&
           task->open_count == 0 && !piece_is_full(d))
        verdict = undo_on(d, &more);
    d->undoing = false;
    return verdict; /* when there is more, rv_view_wake_at says when */
}

/* What an operator gave as a step's input is his word, whatever is known (`replaces`). */
enum rv_verdict undo_learn(struct draft *d, uint32_t number)
{
    const struct rv_task *task = &d->plan->task;
    for (uint32_t i = 0; i < task->open_count; i++) {
        const struct rv_step *seen;
        struct rv_step *step;
        RV_TRY(draft_look(d, task->open[i], &seen));
        if (seen->undoes != number || seen->kind != RV_KIND_CALL || seen->replaces != 0)
            continue;
        RV_TRY(draft_step(d, seen->number, &step));
        step->stale = true;
    }
    return RV_DECIDED;
}

/* Its key and where it stands stay: the next attempt is one of the same step. */
static enum rv_verdict step_ask_anew(struct draft *d, struct rv_step *step)
{
    struct rv_flow_env env;
    struct rv_flow_stop stop;
    rv_assert(step->stale);
    rv_assert(step->state == RV_STEP_PENDING);
    RV_TRY(advance_env(d, RV_UNDO, step->undoes, &env));
    RV_TRY(advance_error(
        rv_flow_ask_anew(&env, step->frames, step_data(d, step), step->number, &stop)));
    if (stop.raised.at == NULL) {
        step->input = stop.input;
        step_data_keep(d, step, stop.data);
        step->stale = false;
        return RV_DECIDED;
    }
    draft_error(step, stop.raised);
    step->ended_at = d->command->now;
    step->wake_at = 0;
    rv_step_move(&step->state, RV_STEP_ERROR);
    draft_open_remove(d, step->number);
    return advance(d, RV_UNDO, step->undoes, step, &stop);
}

enum rv_verdict undo_ask_anew(struct draft *d)
{
    const struct rv_task *task = &d->plan->task;
    bool looks = d->plan->changed || d->command->kind == RV_COMMAND_WAKE;
    if (task->state != RV_TASK_COMPENSATING || d->view->definition == NULL || !looks)
        return RV_DECIDED;
    uint32_t open[RV_OPEN_STEPS_MAX];
    uint32_t count = task->open_count;
    memcpy(open, task->open, sizeof open);
    for (uint32_t i = 0; i < count; i++) {
        const struct rv_step *seen;
        struct rv_step *step;
        RV_TRY(draft_look(d, open[i], &seen));
        if (!seen->stale || seen->state != RV_STEP_PENDING)
            continue;
        RV_TRY(draft_step(d, seen->number, &step));
        RV_TRY(step_ask_anew(d, step));
    }
    return RV_DECIDED;
}

enum rv_verdict undo_ended(struct draft *d, uint32_t number)
{
    struct rv_step *step;
    RV_TRY(draft_step(d, number, &step));
    step->undone = true;
    late_over(d, step);
    return undo_next(d);
}
