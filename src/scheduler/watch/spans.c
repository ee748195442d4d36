/* Spans for whoever watches traces: learned from what a batch has changed, once it is committed, as
 * the numbers are (counts.c). Nothing here waits, and a server without a collector does nothing. */
#include "scheduler/watch/spans.h"

#include "base/assert.h"
#include "core/trace.h"
#include "observe/span.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"

static struct rv_str error_of(struct rv_str error)
{
    return error.len <= RV_SPAN_ERROR_BYTES_MAX ? error : RV_STR_NONE;
}

static void span_tell(struct rv_scheduler *s, struct rv_span *span)
{
    if (span->ended_at == 0)
        span->ended_at = s->batch.now;
    if (span->begun_at == 0 || span->begun_at > span->ended_at)
        span->begun_at = span->ended_at;
    s->options.spans.take(s->options.spans.self, span);
}

/* What the spans of one step have in common. */
static struct rv_span span_of(const struct work *work, const struct rv_trace *trace,
                              const struct rv_step *step)
{
    return (struct rv_span){
        .trace = *trace,
        .step = {work->id, step->number},
        .compensation = step->direction == RV_UNDO,
        .undoes = step->undoes,
        /* Inline steps are many in one row, which has the place behind them. */
        .reference = step->kind == RV_KIND_INLINE ? RV_STR_NONE : step->reference,
        .iteration = step->iteration,
        .agent = step->agent,
        .tracestate = work->task->tracestate,
    };
}

/* `row`: an ended attempt of the step, or NULL: its newest. */
static void attempt_tell(struct rv_scheduler *s, const struct work *work,
                         const struct rv_trace *trace, const struct rv_step *step,
                         const struct rv_attempt *row)
{
    struct rv_span span = span_of(work, trace, step);
    enum rv_attempt_state state = row ? row->state : step->attempt_state;
    span.kind = RV_SPAN_ATTEMPT;
    span.outcome = state == RV_ATTEMPT_DONE ? RV_SPAN_GOOD : RV_SPAN_FAILED;
    span.attempt = row ? row->number : step->attempt;
    span.id = rv_trace_span(work->id, step->number, span.attempt);
    span.parent = rv_trace_span(work->id, step->number, 0);
    span.begun_at = row ? row->attempt_at : step->attempt_at;
    span.ended_at = row ? row->ended_at : step->attempt_ended_at;
    span.state = rv_attempt_state_text(state);
    span.effect = row ? rv_effect_text(row->effect) : NULL;
    span.instance = row ? row->instance : step->instance;
    span.error = state == RV_ATTEMPT_DONE ? RV_STR_NONE : error_of(row ? row->error : step->error);
    span_tell(s, &span);
}

static void step_tell(struct rv_scheduler *s, const struct work *work, const struct rv_trace *trace,
                      const struct rv_step *step)
{
    struct rv_span span = span_of(work, trace, step);
    span.kind = RV_SPAN_STEP;
    span.outcome = step->state == RV_STEP_PROCESSED ? RV_SPAN_GOOD
                   : step->state == RV_STEP_ERROR   ? RV_SPAN_FAILED
                                                    : RV_SPAN_UNSAID;
    span.id = rv_trace_span(work->id, step->number, 0);
    span.parent = rv_trace_span(work->id, 0, 0);
    span.begun_at = step->created_at;
    span.ended_at = step->ended_at;
    span.state = rv_step_state_text(step->state);
    span.effect = rv_effect_text(step->effect);
    span.step_kind = rv_step_kind_text(step->kind);
    span.error = step->state == RV_STEP_PROCESSED ? RV_STR_NONE : error_of(step->error);
    span_tell(s, &span);
}

static void task_tell(struct rv_scheduler *s, const struct work *work, const struct rv_trace *trace)
{
    const struct rv_task *task = work->task;
    const struct rv_workflow_row *workflow = work->workflow ? &work->workflow->row : NULL;
    struct rv_span span = {
        .kind = RV_SPAN_TASK,
        .outcome = task->state == RV_TASK_PROCESSED     ? RV_SPAN_GOOD
                   : task->state == RV_TASK_COMPENSATED ? RV_SPAN_FAILED
                                                        : RV_SPAN_UNSAID,
        .trace = *trace,
        .id = rv_trace_span(work->id, 0, 0),
        .parent = trace->parent,
        .begun_at = task->created_at,
        .ended_at = task->ended_at,
        .step = {work->id, 0},
        .state = rv_task_state_text(task->state),
        .correlation = task->correlation,
        .tracestate = task->tracestate,
        .error = error_of(task->error),
    };
    if (workflow != NULL)
        span.workflow = rv_arena_printf(s->batch.arena, "%.*s/%.*s", RV_STR_FMT(workflow->space),
                                        RV_STR_FMT(workflow->name));
    span_tell(s, &span);
}

void spans_learn(struct rv_scheduler *s, const struct work *work)
{
    if (s->options.spans.take == NULL)
        return;
    rv_assert(work->changed);
    rv_assert(work->task != NULL);
    struct rv_trace trace = rv_trace_of(work->task);
    if (!trace.sampled) /* the caller's word */
        return;
    for (size_t i = 0; i < work->attempts_count; i++) {
        const struct rv_attempt *row = &work->attempts[i];
        const struct work_step *step = work_step_of(work, row->step.number);
        if (step != NULL && attempt_ended_now(step, row->number))
            attempt_tell(s, work, &trace, step->row, row);
    }
    for (size_t i = 0; i < work->steps_count; i++) {
        const struct work_step *step = &work->steps[i];
        const struct rv_step *row = step->row;
        bool over = row->attempt != 0 && !rv_attempt_state_live(row->attempt_state) &&
                    row->attempt_state != RV_ATTEMPT_NONE;
        if (step->dirty && over && attempt_ended_now(step, row->attempt))
            attempt_tell(s, work, &trace, row, NULL);
        if (step->dirty && !step->was_over && step_over(work->task, row))
            step_tell(s, work, &trace, row);
    }
    if (!rv_task_state_open(work->task->state) && (work->was_open || work->revision_before == 0))
        task_tell(s, work, &trace);
}
