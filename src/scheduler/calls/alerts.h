/* alerts.h - who looks after an alert, and alerts from outside. */
#ifndef RV_SCHEDULER_CALLS_ALERTS_H
#define RV_SCHEDULER_CALLS_ALERTS_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct rv_scheduler;

/* Whether an alert of that source is open, and no call of the batch acknowledges it. */
RV_CHECK enum rv_err alert_source_find(struct rv_scheduler *s, struct rv_str source,
                                       int64_t *ret_alert);

#endif
