/* What the submitter is told, if the task has a reply queue. Messages are part of the plan, so they
 * are written with what they tell or not at all, and their text is made once: whoever reads one
 * again, or gets it twice, reads the same bytes. */
#include "core/plan_priv.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/trace.h"
#include "json/json.h"

/* Around the payloads stand a correlation id and names from the definition: fewer bytes than it
 * has, each of them six at most when it is escaped, twice. */
enum { BODY_BYTES_MAX = 16 * RV_DEFINITION_BYTES_MAX };

static bool wanted(const struct draft *d)
{
    const struct rv_task *task = &d->plan->task;
    const struct rv_command *command = d->command;
    /* What cannot be read cannot be counted on; and a message may be what the store refused. */
    bool offender = command->kind == RV_COMMAND_ESCALATE &&
                    command->u.escalate.alert == RV_ALERT_OFFENDER;
    return (task->reply_url.at != NULL || task->reply_stream) && !task->unreadable && !offender;
}

static void text_put(struct rv_buf *body, const char *name, struct rv_str text)
{
    if (text.at == NULL)
        return;
    rv_buf_printf(body, ",\"%s\":", name);
    rv_json_write_string(body, text);
}

/* A payload that is too large for a message is asked for where it is kept. */
static void payload_put(struct rv_buf *body, const char *name, struct rv_str json)
{
    if (json.at == NULL)
        return;
    if (json.len > RV_MESSAGE_PAYLOAD_BYTES_MAX)
        rv_buf_printf(body, ",\"%sOmitted\":true", name);
    else
        rv_buf_printf(body, ",\"%s\":%.*s", name, RV_STR_FMT(json));
}

static void head_put(struct draft *d, struct rv_buf *body, enum rv_message_kind kind)
{
    const struct rv_task *task = &d->plan->task;
    char id[RV_ID_TEXT_BYTES], at[RV_INSTANT_TEXT_BYTES];
    rv_buf_printf(body, "{\"task\":\"%s\",\"number\":%u,\"kind\":\"%s\",\"at\":\"%s\"",
                  rv_task_text(task->id, id).at, task->last_message, rv_message_kind_text(kind),
                  rv_instant_text(d->command->now, at).at);
    rv_buf_printf(body, ",\"state\":\"%s\"", rv_task_state_text(task->state));
    text_put(body, "correlationId", task->correlation);
    char parent[RV_TRACEPARENT_BYTES];
    struct rv_trace trace = rv_trace_of(task);
    text_put(body, "traceparent", rv_trace_text(&trace, rv_trace_span(task->id, 0, 0), parent));
}

static void say(struct draft *d, enum rv_message_kind kind, uint32_t step, struct rv_buf *body)
{
    struct rv_plan *plan = d->plan;
    if (plan->messages == NULL)
        plan->messages = RV_NEW_ARRAY(d->arena, struct rv_message, RV_PLAN_MESSAGES_MAX);
    rv_assert(body->failed != RV_ERR_LIMIT);
    rv_assert(plan->messages_count <= RV_PLAN_MESSAGES_MAX);
    struct rv_str made = body->failed == RV_OK ? rv_arena_str(d->arena, rv_buf_str(body))
                                               : RV_STR_NONE;
    d->starved = d->starved || body->failed != RV_OK;
    rv_buf_done(body);
    d->outgrown = d->outgrown || plan->messages_count == RV_PLAN_MESSAGES_MAX;
    if (plan->messages == NULL || made.at == NULL || d->outgrown)
        return;
    plan->messages[plan->messages_count++] = (struct rv_message){
        .task = plan->task.id,
        .number = plan->task.last_message,
        .kind = kind,
        .step = step,
        .at = d->command->now,
        .body = made,
    };
}

static enum rv_message_kind kind_of(enum rv_task_state from, enum rv_task_state to)
{
    switch (to) {
    case RV_TASK_PROCESSING:
        return from == RV_TASK_PENDING ? RV_MESSAGE_STARTED : RV_MESSAGE_RESUMED;
    case RV_TASK_COMPENSATING:
        return RV_MESSAGE_COMPENSATING;
    case RV_TASK_ERROR:
        return RV_MESSAGE_ERROR;
    case RV_TASK_PROCESSED:
        return RV_MESSAGE_PROCESSED;
    case RV_TASK_COMPENSATED:
        return RV_MESSAGE_COMPENSATED;
    case RV_TASK_CANCELLED:
        return RV_MESSAGE_CANCELLED;
    case RV_TASK_PENDING:
    case RV_TASK_STATE_COUNT:
        break;
    }
    return RV_MESSAGE_RECEIVED;
}

/* False: nobody wants one. */
static bool begin(struct draft *d, struct rv_buf *body, enum rv_message_kind kind)
{
    if (!wanted(d))
        return false;
    d->plan->task.last_message++;
    rv_buf_init(body, BODY_BYTES_MAX);
    head_put(d, body, kind);
    return true;
}

static void message_state(struct draft *d, enum rv_message_kind kind, const struct rv_alert *alert)
{
    struct rv_task *task = &d->plan->task;
    struct rv_buf body;
    rv_assert(alert == NULL || kind == RV_MESSAGE_ERROR);
    if (!begin(d, &body, kind))
        return;
    payload_put(&body, "output", task->output);
    payload_put(&body, "error", task->error);
    if (alert != NULL) {
        rv_buf_printf(&body, ",\"alert\":{\"kind\":\"%s\"", rv_alert_kind_text(alert->kind));
        if (alert->message.len > RV_MESSAGE_PAYLOAD_BYTES_MAX / 2)
            rv_buf_lit(&body, ",\"messageOmitted\":true");
        else
            text_put(&body, "message", alert->message);
        rv_buf_lit(&body, "}");
    }
    rv_buf_lit(&body, "}");
    say(d, kind, alert != NULL ? alert->step : 0, &body);
}

void message_received(struct draft *d)
{
    message_state(d, RV_MESSAGE_RECEIVED, NULL);
}

void message_escalated(struct draft *d, const struct rv_alert *alert)
{
    message_state(d, RV_MESSAGE_ERROR, alert);
}

void draft_task_move(struct draft *d, enum rv_task_state to)
{
    struct rv_task *task = &d->plan->task;
    enum rv_message_kind kind = kind_of(task->state, to);
    rv_task_move(&task->state, to);
    task->undo_error = RV_STR_NONE;
    message_state(d, kind, NULL);
}

void message_completed(struct draft *d, const struct rv_step *step)
{
    struct rv_buf body;
    if (!begin(d, &body, RV_MESSAGE_STEP_COMPLETED))
        return;
    rv_assert(step->state == RV_STEP_PROCESSED);
    rv_buf_printf(&body, ",\"step\":{\"number\":%u,\"direction\":\"%s\"", step->number,
                  rv_direction_text(step->direction));
    text_put(&body, "reference", step->reference);
    text_put(&body, "iteration", step->iteration);
    payload_put(&body, "output", step->output);
    rv_buf_lit(&body, "}}");
    say(d, RV_MESSAGE_STEP_COMPLETED, step->number, &body);
}
