#include "observe/otlp.h"

#include "json/json.h"

#ifndef RV_VERSION
#error "RV_VERSION is not defined: build with meson"
#endif

enum { KIND_INTERNAL = 1, KIND_CLIENT = 3, STATUS_OK = 1, STATUS_ERROR = 2 };

/* ---- attributes ---- */

static void name_put(struct rv_buf *buf, const char *name)
{
    char last = buf->len > 0 ? buf->at[buf->len - 1] : '[';
    rv_buf_printf(buf, "%s{\"key\":\"%s\",\"value\":", last == '[' ? "" : ",", name);
}

static void text_put(struct rv_buf *buf, const char *name, struct rv_str text)
{
    if (text.len == 0)
        return;
    name_put(buf, name);
    rv_buf_lit(buf, "{\"stringValue\":");
    rv_json_write_string(buf, text);
    rv_buf_lit(buf, "}}");
}

static void int_put(struct rv_buf *buf, const char *name, int64_t number)
{
    if (number == 0)
        return;
    name_put(buf, name);
    rv_buf_printf(buf, "{\"intValue\":\"%lld\"}}", (long long)number);
}

static void true_put(struct rv_buf *buf, const char *name, bool truth)
{
    if (!truth)
        return;
    name_put(buf, name);
    rv_buf_lit(buf, "{\"boolValue\":true}}");
}

/* Title and detail may hold what the task's data hold: they are for the operator alone. */
static struct rv_str error_type(struct rv_arena *arena, struct rv_str error)
{
    struct rv_json value;
    rv_arena_reset(arena);
    if (error.len == 0 || rv_json_parse(arena, error, RV_JSON_NESTING_MAX, &value, NULL) != RV_OK)
        return RV_STR_NONE;
    return rv_json_str(rv_json_get(&value, RV_STR("type")));
}

static void attributes_put(struct rv_buf *buf, const struct rv_span *span, struct rv_str error)
{
    char task[RV_ID_TEXT_BYTES], step[RV_STEP_TEXT_BYTES];
    rv_buf_lit(buf, "\"attributes\":[");
    text_put(buf, "reeve.task", rv_task_text(span->step.task, task));
    if (span->step.number != 0)
        text_put(buf, "reeve.step", rv_step_text(span->step, step));
    int_put(buf, "reeve.attempt", span->attempt);
    text_put(buf, "reeve.workflow", span->workflow);
    text_put(buf, "reeve.correlation_id", span->correlation);
    text_put(buf, "reeve.reference", span->reference);
    text_put(buf, "reeve.iteration", span->iteration);
    text_put(buf, "reeve.kind", rv_str_of(span->step_kind));
    text_put(buf, "reeve.agent", span->agent);
    text_put(buf, "reeve.instance", span->instance);
    text_put(buf, "reeve.state", rv_str_of(span->state));
    text_put(buf, "reeve.effect", rv_str_of(span->effect));
    true_put(buf, "reeve.compensation", span->compensation);
    int_put(buf, "reeve.undoes", span->undoes);
    text_put(buf, "error.type", error);
    rv_buf_lit(buf, "]");
}

/* ---- spans ---- */

/* Names are few: what a task is about stands in the attributes. */
static void span_name_put(struct rv_buf *buf, const struct rv_span *span)
{
    struct rv_str name = span->workflow.len > 0 ? span->workflow : RV_STR("task");
    if (span->kind == RV_SPAN_ATTEMPT)
        name = span->agent;
    if (span->kind == RV_SPAN_STEP) {
        name = span->reference.len > 0 ? span->reference : rv_str_of(span->step_kind);
        for (size_t i = name.len; i > 0; i--) {
            if (name.at[i - 1] != '/')
                continue;
            name = (struct rv_str){name.at + i, name.len - i};
            break;
        }
    }
    rv_buf_lit(buf, "\"name\":");
    rv_json_write_string(buf, name);
}

static void ids_put(struct rv_buf *buf, const struct rv_span *span)
{
    char trace[RV_TRACE_ID_BYTES];
    rv_buf_printf(buf, "\"traceId\":\"%s\",\"spanId\":\"%016llx\"",
                  rv_trace_id_text(&span->trace, trace).at, (unsigned long long)span->id);
    if (span->parent != 0)
        rv_buf_printf(buf, ",\"parentSpanId\":\"%016llx\"", (unsigned long long)span->parent);
    if (span->tracestate.len > 0) {
        rv_buf_lit(buf, ",\"traceState\":");
        rv_json_write_string(buf, span->tracestate);
    }
}

static void span_put(struct rv_buf *buf, struct rv_arena *arena, const struct rv_span *span)
{
    struct rv_str error = error_type(arena, span->error);
    rv_buf_lit(buf, "{");
    ids_put(buf, span);
    rv_buf_lit(buf, ",");
    span_name_put(buf, span);
    rv_buf_printf(buf,
                  ",\"kind\":%d,\"startTimeUnixNano\":\"%lld000000\","
                  "\"endTimeUnixNano\":\"%lld000000\",",
                  span->kind == RV_SPAN_ATTEMPT ? KIND_CLIENT : KIND_INTERNAL,
                  (long long)span->begun_at, (long long)span->ended_at);
    attributes_put(buf, span, error);
    rv_buf_lit(buf, ",\"status\":{");
    if (span->outcome == RV_SPAN_GOOD)
        rv_buf_printf(buf, "\"code\":%d", STATUS_OK);
    if (span->outcome == RV_SPAN_FAILED) {
        rv_buf_printf(buf, "\"code\":%d,\"message\":", STATUS_ERROR);
        rv_json_write_string(buf, error.len > 0 ? error : rv_str_of(span->state));
    }
    rv_buf_lit(buf, "}}");
}

void rv_otlp_write(struct rv_buf *buf, struct rv_arena *arena, struct rv_str instance,
                   struct rv_span *const *spans, size_t count)
{
    rv_buf_lit(buf, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    text_put(buf, "service.name", RV_STR("reeve"));
    text_put(buf, "service.version", RV_STR(RV_VERSION));
    text_put(buf, "service.instance.id", instance);
    rv_buf_lit(buf, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"reeve\",\"version\":\"" RV_VERSION
                    "\"},\"spans\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            rv_buf_lit(buf, ",");
        span_put(buf, arena, spans[i]);
    }
    rv_buf_lit(buf, "]}]}]}");
}
