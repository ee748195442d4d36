/* log.h - lines worth an operator's eye: events, and commands. */
#ifndef RV_SCHEDULER_BATCH_LOG_H
#define RV_SCHEDULER_BATCH_LOG_H

#include "base/log_field.h"
#include "base/log_level.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

struct rv_history_row;
struct rv_scheduler;

enum { LOG_FIELDS_MAX = 12 };

/* A line under way; begins as {.count = 0}. Its texts are borrowed until it is written. */
struct log_fields {
    struct rv_log_field fields[LOG_FIELDS_MAX];
    size_t count;
};

/* A field; nothing if the text is absent. */
void log_text(struct log_fields *line, const char *name, struct rv_str text);
void log_number(struct log_fields *line, const char *name, int64_t number);
void log_event(struct rv_scheduler *s, enum rv_log_level level, const char *event,
               const struct log_fields *line);
/* The same for one field, which is a number or a text. */
void log_event_number(struct rv_scheduler *s, enum rv_log_level level, const char *event,
                      const char *name, int64_t number);
void log_event_text(struct rv_scheduler *s, enum rv_log_level level, const char *event,
                    const char *name, struct rv_str text);

/* A command for which its task's history has no room. */
void log_operated(struct rv_scheduler *s, const struct rv_history_row *row);
/* A command of an operator that is no task's, written and about to be answered: its fields, who
 * gave it, and why. Those of bulk commands are logged where they are written. */
void log_command_begin(struct log_fields *line, const char *command);
void log_command_end(struct rv_scheduler *s, struct log_fields *line, struct rv_str by,
                     struct rv_str reason);

#endif
