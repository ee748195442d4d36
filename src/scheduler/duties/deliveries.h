/* deliveries.h - messages on their way to webhooks. */
#ifndef RV_SCHEDULER_DUTIES_DELIVERIES_H
#define RV_SCHEDULER_DUTIES_DELIVERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_alert;
struct rv_delivery;
struct rv_scheduler;
struct work;

/* The alert was written, with a row in which it waits. */
void deliveries_learn_alert(struct rv_scheduler *s, const struct rv_alert *alert);

#endif
