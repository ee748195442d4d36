/* explain.h - what a task waits for, and what has happened to it. */
#ifndef RV_SCHEDULER_QUERIES_EXPLAIN_H
#define RV_SCHEDULER_QUERIES_EXPLAIN_H

#include "base/err.h"

#include <stdint.h>

struct query;
struct rv_call;
struct rv_arena;
struct rv_call_explain;

/* The newest attempts of a step before its newest one. */
RV_CHECK enum rv_err explain_attempts(const struct query *q, struct rv_call_explain *out,
                                      struct rv_arena *arena, uint32_t step, uint32_t newest);
/* What has happened to the task, beside what explain.c reports (explain_past.c). */
RV_CHECK enum rv_err explain_past(const struct query *q, struct rv_call_explain *out,
                                  struct rv_arena *arena);

/* The call's answer, onto its arena. */
RV_CHECK enum rv_err explain_read(const struct query *q, struct rv_call *call);

#endif
