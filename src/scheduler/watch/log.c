/* Lines worth an operator's eye. */
#include "scheduler/batch/state.h"

#include "base/buf.h"
#include "base/limits.h"
#include "json/json.h"

void log_event(struct rv_scheduler *s, enum rv_log_level level, const char *event,
               struct rv_str fields)
{
    if (s->options.log.write != NULL)
        s->options.log.write(s->options.log.self, level, event, fields);
}

void log_alert(struct rv_scheduler *s, const struct rv_alert *alert)
{
    char task[RV_ID_TEXT_BYTES];
    struct rv_buf fields;
    rv_buf_init(&fields, RV_PAYLOAD_BYTES_MAX);
    if (alert->task.value == 0) {
        rv_buf_lit(&fields, "{\"source\":");
        rv_json_write_string(&fields, alert->source);
    } else {
        rv_buf_printf(&fields, "{\"task\":\"%s\",\"step\":%u", rv_task_text(alert->task, task).at,
                      alert->step);
    }
    rv_buf_printf(&fields, ",\"alert\":\"%s\",\"message\":", rv_alert_kind_text(alert->kind));
    rv_json_write_string(&fields, alert->message);
    rv_buf_lit(&fields, "}");
    log_event(s, RV_LOG_WARNING, "alert", rv_buf_str(&fields));
    rv_buf_done(&fields);
}

static void text_add(struct rv_buf *fields, const char *name, struct rv_str text)
{
    if (text.at == NULL)
        return;
    rv_buf_printf(fields, "%s\"%s\":", fields->len > 1 ? "," : "", name);
    rv_json_write_string(fields, text);
}

void log_ended(struct rv_scheduler *s, const struct work *work, struct rv_str error_type)
{
    char id[RV_ID_TEXT_BYTES];
    const struct rv_task *task = work->task;
    struct rv_arena *arena = s->batch.arena;
    struct rv_json error;
    struct rv_buf fields;
    rv_buf_init(&fields, RV_PAYLOAD_BYTES_MAX);
    rv_buf_lit(&fields, "{");
    text_add(&fields, "task", rv_task_text(task->id, id));
    if (work->workflow != NULL) {
        const struct rv_workflow_row *row = &work->workflow->row;
        text_add(&fields, "workflow",
                 rv_arena_printf(arena, "%.*s/%.*s:%.*s", RV_STR_FMT(row->space),
                                 RV_STR_FMT(row->name), RV_STR_FMT(row->version)));
    }
    text_add(&fields, "state", rv_str_of(rv_task_state_text(task->state)));
    if (task->error.at != NULL &&
        rv_json_parse(arena, task->error, RV_JSON_DEPTH_MAX, &error, NULL) == RV_OK) {
        struct rv_str step = rv_json_str(rv_json_get(&error, RV_STR("instance")));
        if (step.len > 0)
            text_add(&fields, "step", step);
    }
    text_add(&fields, "errorType", error_type);
    rv_buf_printf(&fields, ",\"durationMs\":%lld}", (long long)(s->batch.now - task->created_at));
    log_event(s, task->state == RV_TASK_ERROR ? RV_LOG_WARNING : RV_LOG_INFO, "task",
              rv_buf_str(&fields));
    rv_buf_done(&fields);
}

static void command_end(struct rv_scheduler *s, struct rv_buf *fields, struct rv_str by,
                        struct rv_str reason)
{
    text_add(fields, "by", by);
    text_add(fields, "reason", reason);
    rv_buf_lit(fields, "}");
    log_event(s, RV_LOG_INFO, "command", rv_buf_str(fields));
    rv_buf_done(fields);
}

void log_operated(struct rv_scheduler *s, const struct rv_history_row *row)
{
    char task[RV_ID_TEXT_BYTES];
    struct rv_buf fields;
    rv_buf_init(&fields, RV_PAYLOAD_BYTES_MAX);
    rv_buf_lit(&fields, "{");
    text_add(&fields, "command", rv_str_of(rv_operator_verb_text(row->verb)));
    text_add(&fields, "task", rv_task_text(row->task, task));
    text_add(&fields, "options", row->options);
    command_end(s, &fields, row->by, row->reason);
}

static void limit_add(struct rv_buf *fields, const struct rv_call_limit *limit)
{
    const char *command = !limit->sets_paused ? "limit" : limit->row.paused ? "pause" : "resume";
    text_add(fields, "command", rv_str_of(command));
    text_add(fields, "agent", limit->row.agent);
    if (limit->sets_concurrent)
        rv_buf_printf(fields, ",\"concurrent\":%u", limit->row.concurrent);
    if (limit->sets_rate)
        rv_buf_printf(fields, ",\"rate\":%u", limit->row.per_second);
}

static void key_add(struct rv_buf *fields, const struct rv_api_key *key, bool made)
{
    text_add(fields, "command", made ? RV_STR("add-key") : RV_STR("revoke-key"));
    text_add(fields, "key", key->id);
    if (key->role < RV_ROLE_COUNT)
        text_add(fields, "role", rv_str_of(rv_role_text(key->role)));
    text_add(fields, "agent", key->agent);
    text_add(fields, "name", key->name);
}

static void alert_add(struct rv_buf *fields, const char *command, int64_t alert)
{
    char id[RV_ID_TEXT_BYTES];
    text_add(fields, "command", rv_str_of(command));
    text_add(fields, "alert", rv_task_text((struct rv_task_id){alert}, id));
}

void log_command(struct rv_scheduler *s, const struct rv_call *call)
{
    struct rv_str by = call->by, reason = RV_STR_NONE;
    struct rv_buf fields;
    rv_buf_init(&fields, RV_PAYLOAD_BYTES_MAX);
    rv_buf_lit(&fields, "{");
    if (call->kind == RV_CALL_LIMIT) {
        limit_add(&fields, &call->u.limit);
        by = call->u.limit.row.by;
        reason = call->u.limit.reason;
    } else if (call->kind == RV_CALL_KEY_ADD || call->kind == RV_CALL_KEY_REVOKE) {
        key_add(&fields, &call->u.key.row, call->kind == RV_CALL_KEY_ADD);
    } else if (call->kind == RV_CALL_ACK) {
        alert_add(&fields, "ack", call->u.ack.alert);
        by = call->u.ack.by;
    } else if (call->kind == RV_CALL_RETRY) {
        alert_add(&fields, "retry-delivery", call->u.retry.alert);
    } else {
        rv_buf_done(&fields);
        return;
    }
    command_end(s, &fields, by, reason);
}
