/* trace.h - W3C trace context: what a submitter gives, and the spans that are a task's own. */
#ifndef RV_CORE_TRACE_H
#define RV_CORE_TRACE_H

#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_task;

/* https://www.w3.org/TR/trace-context, level 1. What cannot be read is none, and never an error:
 * nobody's task fails for the sake of its trace. */
enum {
    RV_TRACEPARENT_BYTES = 56, /* with the NUL */
    RV_TRACE_ID_BYTES = 33,    /* with the NUL */
    RV_TRACESTATE_BYTES_MAX = 512,
    RV_TRACESTATE_MEMBERS_MAX = 32
};

struct rv_trace {
    uint64_t high; /* the trace id; never all 0 */
    uint64_t low;
    uint64_t parent; /* the caller's span; 0: there was no caller who traces */
    bool sampled;    /* whether the spans are kept, as far as the caller knows */
};

/* A traceparent of version 00, or what a later version has in common with it. */
bool rv_trace_read(struct rv_str traceparent, struct rv_trace *ret_trace);
/* A tracestate as it may be passed on: members over 128 bytes, then the last ones, are left out
 * until the rest has RV_TRACESTATE_BYTES_MAX. Absent when there is none or it is no tracestate. At
 * most as long as `given`, and written to `text`, which may be where `given` stands. */
struct rv_str rv_tracestate_read(struct rv_str given, char *text);

/* Every task has one: its row's, or, where that was written before there were any, or is damaged,
 * one made of its id. */
struct rv_trace rv_trace_of(const struct rv_task *task);
/* What the row of a task has for which nobody gave one: the id alone. Nobody can tell the seed from
 * it, of which tokens are made. */
struct rv_str rv_trace_make(struct rv_task_id task, uint64_t seed,
                            char text[static RV_TRACE_ID_BYTES]);

/* The span of the task (step 0), of a step (attempt 0) or of an attempt: the same whenever it is
 * asked for, so a server that starts again goes on with it. Never 0. */
uint64_t rv_trace_span(struct rv_task_id task, uint32_t step, uint32_t attempt);
/* The traceparent for those who work for that span. */
struct rv_str rv_trace_text(const struct rv_trace *trace, uint64_t span,
                            char text[static RV_TRACEPARENT_BYTES]);
/* The traceparent in the body of a message (message.c), into which it points; absent: it has
 * none. */
struct rv_str rv_trace_of_message(struct rv_str body);
struct rv_str rv_trace_id_text(const struct rv_trace *trace, char text[static RV_TRACE_ID_BYTES]);

#endif
