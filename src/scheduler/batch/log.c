/* Lines worth an operator's eye: events, and commands. */
#include "scheduler/batch/log.h"

#include "base/assert.h"
#include "scheduler/batch/state.h"

void log_text(struct log_fields *line, const char *name, struct rv_str text)
{
    if (text.at == NULL)
        return;
    rv_assert(line->count < LOG_FIELDS_MAX);
    line->fields[line->count++] = RV_LOG_STR(name, text);
}

void log_number(struct log_fields *line, const char *name, int64_t number)
{
    rv_assert(line->count < LOG_FIELDS_MAX);
    line->fields[line->count++] = RV_LOG_INT(name, number);
}

void log_event(struct rv_scheduler *s, enum rv_log_level level, const char *event,
               const struct log_fields *line)
{
    if (s->options.log.write != NULL)
        s->options.log.write(s->options.log.self, level, event, line->fields, line->count);
}

void log_event_number(struct rv_scheduler *s, enum rv_log_level level, const char *event,
                      const char *name, int64_t number)
{
    struct log_fields line = {.count = 0};
    log_number(&line, name, number);
    log_event(s, level, event, &line);
}

void log_event_text(struct rv_scheduler *s, enum rv_log_level level, const char *event,
                    const char *name, struct rv_str text)
{
    struct log_fields line = {.count = 0};
    log_text(&line, name, text);
    log_event(s, level, event, &line);
}

void log_command_begin(struct log_fields *line, const char *command)
{
    line->count = 0;
    log_text(line, "command", rv_str_of(command));
}

void log_command_end(struct rv_scheduler *s, struct log_fields *line, struct rv_str by,
                     struct rv_str reason)
{
    log_text(line, "by", by);
    log_text(line, "reason", reason);
    log_event(s, RV_LOG_INFO, "command", line);
}

void log_operated(struct rv_scheduler *s, const struct rv_history_row *row)
{
    char task[RV_ID_TEXT_BYTES];
    struct log_fields line;
    log_command_begin(&line, rv_operator_verb_text(row->verb));
    log_text(&line, "task", rv_task_text(row->task, task));
    log_text(&line, "options", row->options);
    log_command_end(s, &line, row->by, row->reason);
}
