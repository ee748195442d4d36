/* status.h - what an operator asks first. */
#ifndef RV_SCHEDULER_QUERIES_STATUS_H
#define RV_SCHEDULER_QUERIES_STATUS_H

#include "base/err.h"
#include "scheduler/call.h"

#include <stdbool.h>
#include <stddef.h>

struct query;
struct rv_call;
struct rv_alert;
struct rv_alert_facts;
struct rv_alert_groups;
struct rv_arena;

/* What the alerts are about, one for each; reads their tasks and steps. */
RV_CHECK enum rv_err status_alerts_facts(const struct query *q, struct rv_arena *arena,
                                         const struct rv_alert *alerts, size_t count,
                                         struct rv_alert_facts **ret_facts);
RV_CHECK enum rv_err status_alerts_group(struct rv_arena *arena, const struct rv_alert *alerts,
                                         const struct rv_alert_facts *facts, size_t count,
                                         struct rv_alert_groups *ret_groups);

/* The call's answer, onto its arena. */
RV_CHECK enum rv_err status_read(const struct query *q, struct rv_call *call);

#endif
