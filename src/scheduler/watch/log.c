/* Lines worth an operator's eye. */
#include "scheduler/watch/log.h"

#include "base/assert.h"
#include "base/limits.h"
#include "core/tags.h"
#include "json/json.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"

void log_alert(struct rv_scheduler *s, const struct rv_alert *alert)
{
    char task[RV_ID_TEXT_BYTES], id[RV_ID_TEXT_BYTES];
    struct log_fields line = {.count = 0};
    rv_assert(alert->kind < RV_ALERT_KIND_COUNT);
    rv_assert(alert->id != 0);
    log_text(&line, "id", rv_task_text((struct rv_task_id){alert->id}, id));
    if (alert->task.value == 0) {
        log_text(&line, "source", alert->source);
    } else {
        log_text(&line, "task", rv_task_text(alert->task, task));
        if (alert->step != 0)
            log_number(&line, "step", alert->step);
    }
    log_text(&line, "alert", rv_str_of(rv_alert_kind_text(alert->kind)));
    log_text(&line, "message", alert->message);
    log_event(s, RV_LOG_WARNING, "alert", &line);
}

void log_ended(struct rv_scheduler *s, const struct work *work, struct rv_str error_type)
{
    char id[RV_ID_TEXT_BYTES];
    const struct rv_task *task = work->task;
    rv_assert(task->state != work->state_before);
    struct rv_arena *arena = s->batch.arena;
    struct rv_json error;
    struct log_fields line = {.count = 0};
    log_text(&line, "task", rv_task_text(task->id, id));
    if (work->workflow != NULL) {
        const struct rv_workflow_row *row = &work->workflow->row;
        log_text(&line, "workflow",
                 rv_arena_printf(arena, "%.*s/%.*s:%.*s", RV_STR_FMT(row->space),
                                 RV_STR_FMT(row->name), RV_STR_FMT(row->version)));
    }
    log_text(&line, "state", rv_str_of(rv_task_state_text(task->state)));
    struct rv_str stands = rv_task_error(task);
    if (stands.at != NULL &&
        rv_json_parse(arena, stands, RV_JSON_DEPTH_MAX, &error, NULL) == RV_OK) {
        struct rv_str step = rv_json_str(rv_json_get(&error, RV_STR("instance")));
        if (step.len > 0)
            log_text(&line, "step", step);
    }
    log_text(&line, "errorType", error_type);
    log_number(&line, "durationMs", s->batch.now - task->created_at);
    log_event(s, task->state == RV_TASK_ERROR ? RV_LOG_WARNING : RV_LOG_INFO, "task", &line);
}
