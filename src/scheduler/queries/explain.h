/* explain.h - what a task waits for, and what has happened to it. */
#ifndef RV_SCHEDULER_QUERIES_EXPLAIN_H
#define RV_SCHEDULER_QUERIES_EXPLAIN_H

#include "base/err.h"

#include <stdint.h>

struct call_ops;
struct pending;
struct rv_arena;
struct rv_call_explain;
struct rv_scheduler;

extern const struct call_ops explain_ops;
/* The newest attempts of a step before its newest one. */
RV_CHECK enum rv_err explain_attempts(struct rv_scheduler *s, struct rv_call_explain *out,
                                      struct rv_arena *arena, uint32_t step, uint32_t newest);
/* What has happened to the task, beside what explain.c reports (explain_past.c). */
RV_CHECK enum rv_err explain_past(struct rv_scheduler *s, struct rv_call_explain *out,
                                  struct rv_arena *arena);

#endif
