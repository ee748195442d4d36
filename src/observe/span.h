/* span.h - what a task, a step or an attempt was, once it has ended, for whoever watches traces. */
#ifndef RV_OBSERVE_SPAN_H
#define RV_OBSERVE_SPAN_H

#include "base/id.h"
#include "base/str.h"
#include "core/state.h"
#include "core/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rv_span_kind { RV_SPAN_TASK, RV_SPAN_STEP, RV_SPAN_ATTEMPT };
enum rv_span_outcome { RV_SPAN_UNSAID, RV_SPAN_GOOD, RV_SPAN_FAILED };

enum { RV_SPAN_ERROR_BYTES_MAX = 4096 };

/* Absent texts and numbers of 0 are not reported. */
struct rv_span {
    enum rv_span_kind kind;
    enum rv_span_outcome outcome;
    struct rv_trace trace;
    uint64_t id;
    uint64_t parent; /* 0: none */
    int64_t begun_at;
    int64_t ended_at;
    struct rv_step_id step; /* number 0: the task */
    uint32_t attempt;
    uint32_t undoes;   /* the step whose effect this one undoes */
    const char *state; /* static: the word of the table */
    const char *effect;
    const char *step_kind;
    bool compensation;
    struct rv_str workflow;
    struct rv_str reference;
    struct rv_str iteration;
    struct rv_str agent;
    struct rv_str instance;
    struct rv_str correlation;
    struct rv_str tracestate;
    struct rv_str error;  /* JSON, at most RV_SPAN_ERROR_BYTES_MAX; only its type is reported */
    struct rv_span *next; /* link of whoever owns it at the time */
};

/* The bytes of a copy. */
size_t rv_span_bytes(const struct rv_span *span);
/* In one block, to be freed with free; NULL: no memory. */
struct rv_span *rv_span_copy(const struct rv_span *span);

#endif
