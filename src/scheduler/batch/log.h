/* log.h - lines worth an operator's eye: events, and commands. */
#ifndef RV_SCHEDULER_BATCH_LOG_H
#define RV_SCHEDULER_BATCH_LOG_H

#include "base/log_level.h"
#include "base/str.h"

struct rv_buf;
struct rv_history_row;
struct rv_scheduler;

void log_event(struct rv_scheduler *s, enum rv_log_level level, const char *event,
               struct rv_str fields);
/* A command for which its task's history has no room. */
void log_operated(struct rv_scheduler *s, const struct rv_history_row *row);
/* A command of an operator that is no task's, written and about to be answered: its fields, who
 * gave it, and why. Those of bulk commands are logged where they are written. */
void log_command_begin(struct rv_buf *fields, const char *command);
void log_command_end(struct rv_scheduler *s, struct rv_buf *fields, struct rv_str by,
                     struct rv_str reason);
/* A field; nothing if the text is absent. */
void log_text(struct rv_buf *fields, const char *name, struct rv_str text);

#endif
