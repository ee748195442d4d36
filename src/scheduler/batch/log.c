/* Lines worth an operator's eye: events, and commands. */
#include "scheduler/batch/log.h"

#include "base/buf.h"
#include "base/limits.h"
#include "json/json.h"
#include "scheduler/batch/state.h"

void log_event(struct rv_scheduler *s, enum rv_log_level level, const char *event,
               struct rv_str fields)
{
    if (s->options.log.write != NULL)
        s->options.log.write(s->options.log.self, level, event, fields);
}

void log_text(struct rv_buf *fields, const char *name, struct rv_str text)
{
    if (text.at == NULL)
        return;
    rv_buf_printf(fields, "%s\"%s\":", fields->len > 1 ? "," : "", name);
    rv_json_write_string(fields, text);
}

void log_command_begin(struct rv_buf *fields, const char *command)
{
    rv_buf_init(fields, RV_PAYLOAD_BYTES_MAX);
    rv_buf_lit(fields, "{");
    log_text(fields, "command", rv_str_of(command));
}

void log_command_end(struct rv_scheduler *s, struct rv_buf *fields, struct rv_str by,
                     struct rv_str reason)
{
    log_text(fields, "by", by);
    log_text(fields, "reason", reason);
    rv_buf_lit(fields, "}");
    log_event(s, RV_LOG_INFO, "command", rv_buf_str(fields));
    rv_buf_done(fields);
}

void log_operated(struct rv_scheduler *s, const struct rv_history_row *row)
{
    char task[RV_ID_TEXT_BYTES];
    struct rv_buf fields;
    log_command_begin(&fields, rv_operator_verb_text(row->verb));
    log_text(&fields, "task", rv_task_text(row->task, task));
    log_text(&fields, "options", row->options);
    log_command_end(s, &fields, row->by, row->reason);
}
