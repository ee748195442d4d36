/* status.h - what an operator asks first. */
#ifndef RV_SCHEDULER_QUERIES_STATUS_H
#define RV_SCHEDULER_QUERIES_STATUS_H

#include "base/err.h"
#include "scheduler/call.h"

#include <stdbool.h>
#include <stddef.h>

struct call_ops;
struct pending;
struct rv_alert;
struct rv_alert_facts;
struct rv_alert_groups;
struct rv_arena;
struct rv_scheduler;

extern const struct call_ops status_ops;
/* What the alerts are about, one for each; reads their tasks and steps. */
RV_CHECK enum rv_err alerts_facts(struct rv_scheduler *s, struct rv_arena *arena,
                                  const struct rv_alert *alerts, size_t count,
                                  struct rv_alert_facts **ret_facts);
RV_CHECK enum rv_err alerts_group(struct rv_arena *arena, const struct rv_alert *alerts,
                                  const struct rv_alert_facts *facts, size_t count,
                                  struct rv_alert_groups *ret_groups);
void store_problems(const struct rv_scheduler *s, bool has[static RV_STORE_PROBLEMS]);

#endif
