/* Lines worth an operator's eye. */
#include "scheduler/scheduler_priv.h"

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
