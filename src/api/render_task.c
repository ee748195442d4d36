#include "api/answer.h"
#include "api/put.h"
#include "base/assert.h"
#include "core/trace.h"

/* `whole`: with the payloads, which a list leaves out. `workflow` may be NULL: not known here. */
static void task_put(struct rv_buf *buf, const struct rv_task *task,
                     const struct rv_workflow_row *workflow, bool whole)
{
    rv_put_open(buf, '{');
    rv_put_task(buf, "task", task->id);
    if (workflow != NULL)
        rv_put_workflow(buf, workflow);
    rv_put_text(buf, "state", rv_str_of(rv_task_state_text(task->state)));
    rv_put_text(buf, "direction", rv_str_of(rv_direction_text(task->direction)));
    if (task->cancelling)
        rv_put_bool(buf, "cancelling", true);
    if (task->unreadable)
        rv_put_bool(buf, "unreadable", true);
    rv_put_int(buf, "priority", task->priority);
    rv_put_int(buf, "revision", task->revision);
    rv_put_int(buf, "lockedBy", task->locked_by);
    rv_put_int(buf, "fence", task->fence);
    rv_put_int(buf, "steps", task->last_number);
    rv_put_text_if(buf, "key", task->key);
    rv_put_text_if(buf, "correlationId", task->correlation);
    rv_put_raw_if(buf, "tags", task->tags);
    char id[RV_TRACE_ID_BYTES];
    struct rv_trace trace = rv_trace_of(task);
    rv_put_text(buf, "traceId", rv_trace_id_text(&trace, id));
    if (task->last_message != 0)
        rv_put_int(buf, "messages", task->last_message);
    rv_put_instant_if(buf, "createdAt", task->created_at);
    rv_put_instant_if(buf, "startedAt", task->started_at);
    rv_put_instant_if(buf, "endedAt", task->ended_at);
    rv_put_instant_if(buf, "quietAt", task->quiet_at);
    rv_put_instant_if(buf, "suspendedAt", task->suspended_at);
    if (whole) {
        rv_put_raw_if(buf, "input", task->input);
        rv_put_raw_if(buf, "context", task->context);
        rv_put_raw_if(buf, "output", task->output);
    }
    rv_put_raw_if(buf, "error", task->error);
    rv_put_raw_if(buf, "undoError", task->undo_error);
    rv_buf_add_char(buf, '}');
}

static int submission_status(const struct rv_submission *item)
{
    return item->err != RV_OK ? rv_err_http(item->err) : item->known ? 200 : 201;
}

static void submission_put(struct rv_buf *buf, const struct rv_submission *item)
{
    rv_put_open(buf, '{');
    rv_put_task(buf, "task", item->task);
    rv_put_text(buf, "state", rv_str_of(rv_task_state_text(item->state)));
    rv_put_int(buf, "status", submission_status(item));
    rv_buf_add_char(buf, '}');
}

static struct rv_problem submission_problem(const struct rv_submission *item)
{
    return (struct rv_problem){
        .status = submission_status(item), .err = item->err, .detail = item->message};
}

void rv_render_submit(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_SUBMIT);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_submit *submit = &call->u.submit;
    if (submit->batch) {
        rv_put_open(buf, '{');
        rv_put_open_in(buf, "tasks", '[');
        for (size_t i = 0; i < submit->count; i++) {
            if (submit->items[i].err == RV_OK) {
                submission_put(buf, &submit->items[i]);
                continue;
            }
            struct rv_problem problem = submission_problem(&submit->items[i]);
            rv_put_open(buf, '{');
            rv_put_name(buf, "error");
            rv_problem_write(buf, &problem);
            rv_put_int(buf, "status", problem.status);
            rv_buf_add_char(buf, '}');
        }
        rv_buf_add_char(buf, ']');
        rv_buf_add_char(buf, '}');
        return;
    }
    const struct rv_submission *item = &submit->items[0];
    if (item->err != RV_OK) {
        struct rv_problem problem = submission_problem(item);
        rv_answer_problem(answer, &problem);
        return;
    }
    answer->status = submission_status(item);
    if (answer->status == 201)
        rv_answer_locate_task(answer, "/v1/tasks/", item->task);
    if (submit->task != NULL)
        task_put(buf, submit->task, NULL, true);
    else
        submission_put(buf, item);
}

void rv_render_operate(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_OPERATE);
    if (call->u.operate.after != NULL)
        task_put(&answer->body, call->u.operate.after, NULL, true);
    else
        rv_buf_lit(&answer->body, "{}");
}

void rv_render_show(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_SHOW);
    task_put(&answer->body, call->u.show.found, call->u.show.workflow, true);
}

void rv_render_tasks(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_TASKS);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_list *list = &call->u.list;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "tasks", '[');
    for (size_t i = 0; i < list->count; i++)
        task_put(buf, &list->tasks[i], list->task_workflows ? list->task_workflows[i] : NULL,
                 false);
    rv_buf_add_char(buf, ']');
    /* A page ends where it is full, or where the store stopped looking. */
    if (list->count == list->limit)
        rv_put_task(buf, "next", list->tasks[list->count - 1].id);
    else if (list->next.value != 0)
        rv_put_task(buf, "next", list->next);
    rv_buf_add_char(buf, '}');
}

/* The token stays between server and agent: who has it can answer for the step. */
static void step_put(struct rv_buf *buf, struct rv_task_id task, const struct rv_step *step)
{
    rv_put_open(buf, '{');
    rv_put_step(buf, "step", (struct rv_step_id){task, step->number});
    rv_put_int(buf, "number", step->number);
    rv_put_text(buf, "reference", step->reference);
    if (step->iteration.len > 0)
        rv_put_text(buf, "iteration", step->iteration);
    rv_put_int(buf, "visit", step->visit);
    rv_put_text(buf, "kind", rv_str_of(rv_step_kind_text(step->kind)));
    rv_put_text(buf, "state", rv_str_of(rv_step_state_text(step->state)));
    rv_put_text(buf, "direction", rv_str_of(rv_direction_text(step->direction)));
    if (step->undoes != 0)
        rv_put_int(buf, "undoes", step->undoes);
    if (step->replaces != 0)
        rv_put_int(buf, "replaces", step->replaces);
    rv_put_bool(buf, "undone", step->undone);
    if (step->undo_way == 1 + (uint32_t)RV_UNDO_NOTHING)
        rv_put_bool(buf, "noUndoNeeded", true);
    if (rv_step_undo_by_hand(step))
        rv_put_bool(buf, "undoByHand", true);
    if (step->unreadable)
        rv_put_bool(buf, "unreadable", true);
    rv_put_text(buf, "effect", rv_str_of(rv_effect_text(step->effect)));
    if (step->agent.len > 0)
        rv_put_text(buf, "agent", step->agent);
    rv_put_int(buf, "attempt", step->attempt);
    rv_put_text(buf, "attemptState", rv_str_of(rv_attempt_state_text(step->attempt_state)));
    if (step->instance.len > 0)
        rv_put_text(buf, "instance", step->instance);
    rv_put_int(buf, "failureCount", step->failure_count);
    rv_put_int(buf, "round", step->round);
    rv_put_instant_if(buf, "createdAt", step->created_at);
    rv_put_instant_if(buf, "readyAt", step->ready_at);
    rv_put_instant_if(buf, "attemptAt", step->attempt_at);
    rv_put_instant_if(buf, "completeBy", step->complete_by);
    rv_put_instant_if(buf, "leaseUntil", step->lease_until);
    rv_put_instant_if(buf, "deadline", step->deadline);
    rv_put_instant_if(buf, "wakeAt", step->wake_at);
    rv_put_instant_if(buf, "endedAt", step->ended_at);
    rv_put_raw_if(buf, "input", step->input);
    rv_put_raw_if(buf, "output", step->output);
    rv_put_raw_if(buf, "error", step->error);
    rv_buf_add_char(buf, '}');
}

void rv_render_steps(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_STEPS);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_list *list = &call->u.list;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "steps", '[');
    for (size_t i = 0; i < list->count; i++)
        step_put(buf, list->task, &list->steps[i]);
    rv_buf_add_char(buf, ']');
    if (list->count == list->limit)
        rv_put_int(buf, "next", list->steps[list->count - 1].number);
    rv_buf_add_char(buf, '}');
}

void rv_put_late_replies(struct rv_buf *buf, const struct rv_late_reply *rows, size_t count)
{
    rv_put_open_in(buf, "lateReplies", '[');
    for (size_t i = 0; i < count; i++) {
        const struct rv_late_reply *late = &rows[i];
        rv_put_open(buf, '{');
        rv_put_step(buf, "step", late->step);
        rv_put_int(buf, "attempt", late->attempt);
        rv_put_instant_if(buf, "arrivedAt", late->arrived_at);
        rv_put_text(buf, "reason", rv_str_of(rv_late_reason_text(late->reason)));
        rv_put_raw_if(buf, "output", late->output);
        rv_put_raw_if(buf, "error", late->error);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
}

void rv_render_late(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_LATE);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_list *list = &call->u.list;
    rv_put_open(buf, '{');
    rv_put_late_replies(buf, list->late_replies, list->count);
    if (list->count == list->limit)
        rv_put_int(buf, "next", (int64_t)(list->skip + list->count));
    rv_buf_add_char(buf, '}');
}

void rv_render_history(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_HISTORY);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_list *list = &call->u.list;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "history", '[');
    for (size_t i = 0; i < list->count; i++) {
        const struct rv_history_row *row = &list->history[i];
        rv_put_open(buf, '{');
        rv_put_int(buf, "number", row->number);
        rv_put_text(buf, "command", rv_str_of(rv_operator_verb_text(row->verb)));
        if (row->step != 0)
            rv_put_step(buf, "step", (struct rv_step_id){row->task, row->step});
        rv_put_instant_if(buf, "at", row->at);
        rv_put_text_if(buf, "options", row->options);
        rv_put_text_if(buf, "by", row->by);
        rv_put_text_if(buf, "reason", row->reason);
        if (row->selection.value != 0)
            rv_put_task(buf, "selection", row->selection);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    if (list->count == list->limit)
        rv_put_int(buf, "next", list->history[list->count - 1].number);
    rv_buf_add_char(buf, '}');
}

static void alert_put(struct rv_buf *buf, const struct rv_alert *alert,
                      const struct rv_alert_facts *facts)
{
    char cure[RV_ALERT_CURE_BYTES];
    rv_put_open(buf, '{');
    rv_put_task(buf, "alert", (struct rv_task_id){alert->id});
    if (alert->task.value != 0)
        rv_put_task(buf, "task", alert->task);
    rv_put_text_if(buf, "source", alert->source);
    if (alert->step != 0)
        rv_put_step(buf, "step", (struct rv_step_id){alert->task, alert->step});
    rv_put_text(buf, "kind", rv_str_of(rv_alert_kind_text(alert->kind)));
    rv_put_text_if(buf, "message", alert->message);
    rv_put_text(buf, "cure", rv_alert_cure(alert, cure));
    rv_put_instant_if(buf, "raisedAt", alert->raised_at);
    rv_put_instant_if(buf, "acknowledgedAt", alert->acked_at);
    rv_put_text_if(buf, "acknowledgedBy", alert->acked_by);
    rv_put_instant_if(buf, "closedAt", alert->closed_at);
    if (facts != NULL) {
        rv_put_text(buf, "group", rv_str_of(facts->group));
        rv_put_text_if(buf, "workflow", facts->workflow);
        rv_put_text_if(buf, "reference", facts->reference);
        rv_put_text_if(buf, "errorType", facts->error_type);
    }
    rv_buf_add_char(buf, '}');
}

void rv_put_alert(struct rv_buf *buf, const struct rv_alert *alert)
{
    alert_put(buf, alert, NULL);
}

void rv_render_alerts(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_ALERTS);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_list *list = &call->u.list;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "alerts", '[');
    for (size_t i = 0; i < list->count; i++)
        alert_put(buf, &list->alerts[i], list->alert_facts ? &list->alert_facts[i] : NULL);
    rv_buf_add_char(buf, ']');
    rv_put_alert_groups(buf, &list->groups);
    if (list->count == list->limit)
        rv_put_task(buf, "next", (struct rv_task_id){list->alerts[list->count - 1].id});
    rv_buf_add_char(buf, '}');
}
