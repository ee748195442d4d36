/* From a stop of the interpreter to rows: the next call, a timer, the end, or an error. */
#include "core/plan_priv.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"

enum rv_verdict advance_error(enum rv_err err)
{
    if (err == RV_OK)
        return RV_DECIDED;
    if (err == RV_ERR_BUSY)
        return RV_GIVEN_UP;
    if (err == RV_ERR_MEMORY)
        return RV_NO_ROOM;
    return err == RV_ERR_LIMIT ? RV_OVER_LIMIT : RV_UNREADABLE;
}

enum rv_verdict advance_env(struct draft *d, enum rv_direction direction, uint32_t undoes,
                            struct rv_flow_env *ret_env)
{
    if (d->view->definition == NULL)
        return RV_UNREADABLE;
    const struct rv_task *task = &d->plan->task;
    char text[RV_ID_TEXT_BYTES];
    struct rv_str id = rv_arena_str(d->arena, rv_task_text(task->id, text));
    if (id.at == NULL)
        return RV_NO_ROOM;
    *ret_env = (struct rv_flow_env){
        .definition = d->view->definition,
        .arena = d->arena,
        .now = d->command->now,
        .task = id,
        .started_at = task->created_at,
        .workflow_input = task->input,
        .context = task->context,
        .fuel = RV_FUEL_PER_COMMAND,
        .inline_steps = RV_INLINE_STEPS_PER_COMMAND,
        .memory_max = d->command->memory_max,
        .pace = d->command->pace,
    };
    if (direction == RV_UNDO) {
        const struct rv_step *forward;
        RV_TRY(draft_look(d, undoes, &forward));
        ret_env->undo = undo_facts(d, forward);
        if (ret_env->undo.at == NULL)
            return RV_NO_ROOM;
    }
    return RV_DECIDED;
}

struct rv_str step_data(const struct draft *d, const struct rv_step *step)
{
    return step->data.at != NULL ? step->data : d->plan->task.input;
}

void step_data_keep(const struct draft *d, struct rv_step *step, struct rv_str data)
{
    step->data = rv_str_eq(data, d->plan->task.input) ? RV_STR_NONE : data;
}

/* A step has one key, and its key one request: a call that asks for something else than the step
 * that a retry kept for it is another step. NULL in *ret_step; the kept one is left for good. */
static enum rv_verdict advance_reopen(struct draft *d, const struct rv_flow_stop *stop,
                                      struct rv_step **ret_step)
{
    const struct rv_step *kept;
    struct rv_step *step;
    *ret_step = NULL;
    RV_TRY(draft_look(d, stop->reopen, &kept));
    if (kept->state != RV_STEP_ERROR || kept->node != stop->node || draft_open_has(d, kept->number))
        return RV_UNREADABLE;
    if (!rv_str_eq(kept->agent, stop->agent) || !rv_str_eq(kept->input, stop->input))
        return undo_chain_left(d, kept->number);
    RV_TRY(draft_step(d, kept->number, &step));
    step->failure_count = 0;
    step->round = 0;
    step->ended_at = 0;
    *ret_step = step;
    return RV_DECIDED;
}

static enum rv_verdict advance_call(struct draft *d, enum rv_direction direction, uint32_t undoes,
                                    const struct rv_flow_stop *stop)
{
    struct rv_step *step = NULL;
    struct rv_flow_stop anew = {.frames = stop->frames, .visit = stop->visit};
    rv_assert(stop->kind == RV_FLOW_CALL);
    if (stop->reopen != 0)
        RV_TRY(advance_reopen(d, stop, &step));
    if (step == NULL && stop->reopen != 0) {
        struct rv_flow_env env;
        RV_TRY(advance_env(d, direction, undoes, &env));
        RV_TRY(advance_error(rv_flow_visit_anew(&env, stop->frames, &anew)));
    }
    if (step == NULL) {
        RV_TRY(draft_step_new(d, &step));
        step->kind = RV_KIND_CALL;
        step->direction = direction;
        step->undoes = undoes;
        step->node = stop->node;
        step->visit = anew.visit;
        step->reference = stop->reference;
        step->iteration = stop->iteration;
        step->agent = stop->agent;
    }
    step->deadline = stop->deadline;
    step->frames = anew.frames;
    step_data_keep(d, step, stop->data);
    step->input = stop->input;
    step->stale = false;
    ladder_repeat(step, d->command->now);
    rv_assert(step->state == RV_STEP_PENDING);
    draft_open_add(d, step->number);
    return RV_DECIDED;
}

/* A row of inline steps names the first that ran, and what came next only where nothing ran. */
static struct rv_str run_reference(const struct rv_flow_stop *stop)
{
    bool ran = stop->kind != RV_FLOW_RAISED && stop->inline_first.at != NULL;
    return ran ? stop->inline_first : stop->reference;
}

/* The row of inline steps that still runs is used on; any other stop gets a row of its own. */
static enum rv_verdict advance_line(struct draft *d, enum rv_direction direction, uint32_t undoes,
                                    struct rv_step *left, const struct rv_flow_stop *stop)
{
    bool wait = stop->kind == RV_FLOW_WAIT;
    rv_assert(wait || stop->kind == RV_FLOW_BUDGET);
    struct rv_step *step = left;
    if (wait || left == NULL || left->kind != RV_KIND_INLINE || left->state != RV_STEP_PROCESSING) {
        RV_TRY(draft_step_new(d, &step));
        step->kind = wait ? RV_KIND_WAIT : RV_KIND_INLINE;
        step->state = RV_STEP_PROCESSING;
        step->direction = direction;
        step->undoes = undoes;
    }
    rv_assert(step->kind != RV_KIND_CALL);
    rv_assert(step->state == RV_STEP_PROCESSING);
    step->node = stop->node;
    step->reference = wait ? stop->reference : run_reference(stop);
    step->iteration = stop->iteration;
    step->frames = stop->frames;
    step->deadline = stop->deadline;
    step->ready_at = wait ? stop->until : d->command->now;
    step->wake_at = rv_time_earlier(step->ready_at, stop->deadline);
    if (!wait && stop->inline_run.at != NULL)
        step->input = stop->inline_run;
    draft_open_add(d, step->number);
    if (direction == RV_FORWARD && d->plan->task.state == RV_TASK_PENDING)
        draft_task_move(d, RV_TASK_PROCESSING);
    return RV_DECIDED;
}

/* A run of inline steps that is over gets one row, which says what ran. */
static enum rv_verdict advance_inline(struct draft *d, enum rv_direction direction, uint32_t undoes,
                                      struct rv_step *left, const struct rv_flow_stop *stop,
                                      struct rv_step **ret_run)
{
    struct rv_step *step = left;
    *ret_run = NULL;
    bool runs_on = left != NULL && left->kind == RV_KIND_INLINE &&
                   left->state == RV_STEP_PROCESSING;
    if (stop->kind == RV_FLOW_BUDGET || (stop->inline_count == 0 && !runs_on))
        return RV_DECIDED;
    if (!runs_on) {
        RV_TRY(draft_step_new(d, &step));
        step->kind = RV_KIND_INLINE;
        step->state = RV_STEP_PROCESSING;
        step->direction = direction;
        step->undoes = undoes;
        step->iteration = stop->iteration;
    }
    rv_assert(step->kind == RV_KIND_INLINE);
    rv_assert(step->state == RV_STEP_PROCESSING);
    if (!runs_on || stop->inline_first.at != NULL)
        step->reference = run_reference(stop);
    if (stop->inline_run.at != NULL)
        step->input = stop->inline_run;
    step->frames = RV_STR_NONE;
    step->ended_at = d->command->now;
    step->wake_at = 0;
    rv_step_move(&step->state, stop->kind == RV_FLOW_RAISED ? RV_STEP_ERROR : RV_STEP_PROCESSED);
    if (stop->kind == RV_FLOW_RAISED)
        step->error = stop->error;
    *ret_run = step;
    return RV_DECIDED;
}

/* The call whose own failure the error is, or that was under way when the time of a scope around it
 * was over; not one that ended well before something else failed. */
static struct rv_step *advance_raiser(struct rv_step *left, const struct rv_flow_stop *stop)
{
    bool own = stop->kind == RV_FLOW_RAISED && left != NULL && left->kind == RV_KIND_CALL &&
               left->state == RV_STEP_ERROR && (left->node == stop->node || stop->timed_out);
    return own ? left : NULL;
}

static enum rv_verdict advance_done(struct draft *d, enum rv_direction direction, uint32_t undoes,
                                    const struct rv_flow_stop *stop)
{
    struct rv_task *task = &d->plan->task;
    if (direction == RV_UNDO)
        return undo_ended(d, undoes);
    task->output = stop->output;
    task->error = RV_STR_NONE;
    task->ended_at = d->command->now;
    draft_task_move(d, RV_TASK_PROCESSED);
    d->plan->close_alerts = true;
    return RV_DECIDED;
}

enum rv_verdict advance(struct draft *d, enum rv_direction direction, uint32_t undoes,
                        struct rv_step *left, const struct rv_flow_stop *stop)
{
    rv_assert(d->view->definition != NULL);
    rv_assert(left == NULL || !draft_open_has(d, left->number));
    d->plan->changed = true;
    if (stop->context.at != NULL)
        d->plan->task.context = stop->context;
    struct rv_step *raiser = advance_raiser(left, stop);
    /* A call whose error nobody took may be resubmitted, and then what a retry around it keeps goes
     * on too: fail_task decides about both. */
    if (raiser == NULL)
        RV_TRY(undo_chain_abandoned(d, stop, NULL));
    struct rv_step *run;
    RV_TRY(advance_inline(d, direction, undoes, left, stop, &run));
    switch (stop->kind) {
    case RV_FLOW_CALL:
        return advance_call(d, direction, undoes, stop);
    case RV_FLOW_WAIT:
    case RV_FLOW_BUDGET:
        return advance_line(d, direction, undoes, left, stop);
    case RV_FLOW_DONE:
        return advance_done(d, direction, undoes, stop);
    case RV_FLOW_RAISED:
        return fail_task(d, direction, undoes, raiser, run, stop);
    }
    return RV_UNREADABLE;
}
