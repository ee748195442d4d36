/* log.h - lines worth an operator's eye. */
#ifndef RV_SCHEDULER_WATCH_LOG_H
#define RV_SCHEDULER_WATCH_LOG_H

#include "base/str.h"

struct rv_alert;
struct rv_scheduler;
struct work;

void log_alert(struct rv_scheduler *s, const struct rv_alert *alert);
/* The task has ended without success, or stopped in error. */
void log_ended(struct rv_scheduler *s, const struct work *work, struct rv_str error_type);

#endif
