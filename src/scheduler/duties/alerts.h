/* alerts.h - alerts on their way to the operators' webhook. */
#ifndef RV_SCHEDULER_DUTIES_ALERTS_H
#define RV_SCHEDULER_DUTIES_ALERTS_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_alert;
struct rv_scheduler;

/* What the webhook is told. NOT_FOUND: the alert is gone. */
RV_CHECK enum rv_err alert_body(struct rv_scheduler *s, int64_t id, struct rv_str *ret_body);
/* The alert that tells of alerts that the webhook does not take; NULL: there is one already that
 * stands. */
RV_CHECK enum rv_err alert_unheard(struct rv_scheduler *s, int64_t unheard, struct rv_str why,
                                   const struct rv_alert **ret_alert);
bool alert_is_unheard(const struct rv_alert *alert);
/* It is written: logged, and on its way if there is one. */
void alert_act(struct rv_scheduler *s, const struct rv_alert *alert);

#endif
