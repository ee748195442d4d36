/* Lines worth an operator's eye. */
#include "scheduler/watch/log.h"

#include "base/buf.h"
#include "base/limits.h"
#include "core/tags.h"
#include "json/json.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"

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

void log_ended(struct rv_scheduler *s, const struct work *work, struct rv_str error_type)
{
    char id[RV_ID_TEXT_BYTES];
    const struct rv_task *task = work->task;
    struct rv_arena *arena = s->batch.arena;
    struct rv_json error;
    struct rv_buf fields;
    rv_buf_init(&fields, RV_PAYLOAD_BYTES_MAX);
    rv_buf_lit(&fields, "{");
    log_text(&fields, "task", rv_task_text(task->id, id));
    if (work->workflow != NULL) {
        const struct rv_workflow_row *row = &work->workflow->row;
        log_text(&fields, "workflow",
                 rv_arena_printf(arena, "%.*s/%.*s:%.*s", RV_STR_FMT(row->space),
                                 RV_STR_FMT(row->name), RV_STR_FMT(row->version)));
    }
    log_text(&fields, "state", rv_str_of(rv_task_state_text(task->state)));
    struct rv_str stands = rv_task_error(task);
    if (stands.at != NULL &&
        rv_json_parse(arena, stands, RV_JSON_DEPTH_MAX, &error, NULL) == RV_OK) {
        struct rv_str step = rv_json_str(rv_json_get(&error, RV_STR("instance")));
        if (step.len > 0)
            log_text(&fields, "step", step);
    }
    log_text(&fields, "errorType", error_type);
    rv_buf_printf(&fields, ",\"durationMs\":%lld}", (long long)(s->batch.now - task->created_at));
    log_event(s, task->state == RV_TASK_ERROR ? RV_LOG_WARNING : RV_LOG_INFO, "task",
              rv_buf_str(&fields));
    rv_buf_done(&fields);
}
