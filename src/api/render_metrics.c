/* Numbers in the text format of Prometheus, version 0.0.4. Names and labels are documented in
 * docs/guide/observe.md; labels come from tables, but for agents' names, which are bounded. */
#include "api/answer.h"
#include "api/counts.h"
#include "api/route.h"
#include "base/assert.h"
#include "base/limits.h"

#ifndef RV_VERSION
#error "RV_VERSION is not defined: build with meson"
#endif

typedef unsigned long long number;

static void head(struct rv_buf *buf, const char *name, const char *type, const char *help)
{
    rv_buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void plain(struct rv_buf *buf, const char *name, const char *type, const char *help,
                  uint64_t value)
{
    head(buf, name, type, help);
    rv_buf_printf(buf, "%s %llu\n", name, (number)value);
}

static void labelled(struct rv_buf *buf, const char *name, const char *label, const char *of,
                     uint64_t value)
{
    rv_buf_printf(buf, "%s{%s=\"%s\"} %llu\n", name, label, of, (number)value);
}

/* Microseconds as seconds. */
static void seconds_add(struct rv_buf *buf, uint64_t us)
{
    rv_buf_printf(buf, "%llu.%06llu", (number)(us / 1000000), (number)(us % 1000000));
}

static void histogram(struct rv_buf *buf, const char *name, const char *help,
                      const struct rv_histogram *from)
{
    uint64_t all = 0;
    head(buf, name, "histogram", help);
    for (unsigned i = 0; i < RV_HISTOGRAM_BOUNDS; i++) {
        all += from->buckets[i];
        rv_buf_printf(buf, "%s_bucket{le=\"", name);
        seconds_add(buf, (uint64_t)rv_histogram_bounds_us[i]);
        rv_buf_printf(buf, "\"} %llu\n", (number)all);
    }
    all += from->buckets[RV_HISTOGRAM_BOUNDS];
    rv_buf_printf(buf, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum ", name, (number)all, name);
    seconds_add(buf, from->sum_us);
    rv_buf_printf(buf, "\n%s_count %llu\n", name, (number)all);
}

static void tasks_put(struct rv_buf *buf, const struct rv_counts *counts)
{
    const char *name = "reeve_submissions_total";
    head(buf, name, "counter",
         "Submissions by result. known: a task with the same idempotency key already existed.");
    labelled(buf, name, "result", "accepted", counts->submissions_accepted);
    labelled(buf, name, "result", "known", counts->submissions_known);
    labelled(buf, name, "result", "refused", counts->submissions_refused);
    name = "reeve_tasks_ended_total";
    head(buf, name, "counter", "Tasks that have ended, by final state.");
    for (unsigned i = 0; i < RV_TASK_STATE_COUNT; i++)
        if (!rv_task_state_open((enum rv_task_state)i))
            labelled(buf, name, "state", rv_task_state_text((enum rv_task_state)i),
                     counts->tasks_ended[i]);
    plain(buf, "reeve_tasks_open", "gauge", "Tasks that have not ended, including tasks in error.",
          counts->open_tasks > 0 ? (uint64_t)counts->open_tasks : 0);
    name = "reeve_alerts_total";
    head(buf, name, "counter", "Alerts raised, by kind.");
    for (unsigned i = 0; i < RV_ALERT_KIND_COUNT; i++)
        labelled(buf, name, "kind", rv_alert_kind_text((enum rv_alert_kind)i), counts->alerts[i]);
}

static void attempts_put(struct rv_buf *buf, const struct rv_counts *counts)
{
    const char *name = "reeve_attempts_ended_total";
    plain(buf, "reeve_attempts_begun_total", "counter", "Steps dispatched to agents.",
          counts->attempts_begun);
    head(buf, name, "counter", "Attempts that have ended, by final state.");
    for (unsigned i = 0; i < RV_ATTEMPT_STATE_COUNT; i++) {
        enum rv_attempt_state state = (enum rv_attempt_state)i;
        if (state != RV_ATTEMPT_NONE && !rv_attempt_state_live(state))
            labelled(buf, name, "outcome", rv_attempt_state_text(state), counts->attempts_ended[i]);
    }
    name = "reeve_failures_total";
    head(buf, name, "counter", "Failures that agents reported, by class.");
    labelled(buf, name, "class", "transient", counts->failures_transient);
    labelled(buf, name, "class", "permanent", counts->failures_permanent);
    name = "reeve_replies_total";
    head(buf, name, "counter",
         "Replies by result. taken: recorded by this call or an earlier call.");
    labelled(buf, name, "result", "taken", counts->replies_taken);
    labelled(buf, name, "result", "refused", counts->replies_refused);
    histogram(buf, "reeve_hand_out_wait_seconds",
              "Time from the readiness of a step to its dispatch.", &counts->hand_out_wait);
    histogram(buf, "reeve_attempt_seconds", "Duration of attempts, from dispatch to end.",
              &counts->attempt);
}

static void batches_put(struct rv_buf *buf, const struct rv_counts *counts)
{
    plain(buf, "reeve_supervisor_findings_total", "counter",
          "Tasks that the supervisor changed because of an expiry, a retry or a timer.",
          counts->findings);
    plain(buf, "reeve_batches_total", "counter", "Non-empty batches.", counts->batches);
    plain(buf, "reeve_batches_refused_total", "counter", "Batches that the store failed to commit.",
          counts->batches_refused);
    plain(buf, "reeve_batch_calls_total", "counter",
          "Requests in all batches. This number divided by the number of batches is the mean batch "
          "size.",
          counts->calls);
    histogram(buf, "reeve_batch_seconds", "Duration of a batch, from load to the last response.",
              &counts->batch);
    histogram(buf, "reeve_commit_seconds", "Duration of a batch's commit.", &counts->commit);
}

static void decisions_put(struct rv_buf *buf, const struct rv_counts *counts)
{
    const char *name = "reeve_long_decisions_seconds_total";
    plain(buf, "reeve_long_decisions_total", "counter",
          "Decisions whose expressions exceeded the time slice of a batch.",
          counts->long_decisions);
    plain(buf, "reeve_long_decisions_open", "gauge",
          "Decisions that exceeded the time slice and are still being evaluated.",
          counts->long_decisions_open);
    head(buf, name, "counter",
         "Time spent outside batches on decisions that exceeded the time slice.");
    rv_buf_printf(buf, "%s ", name);
    seconds_add(buf, counts->long_decisions_us);
    rv_buf_add_char(buf, '\n');
    name = "reeve_expression_fuel_total";
    head(buf, name, "counter", "Work units of expressions, about 10 ns each.");
    labelled(buf, name, "where", "batch", counts->fuel_in_batches);
    labelled(buf, name, "where", "beside", counts->fuel_beside);
}

/* Quotes, backslashes and line ends of a label's value are escaped. */
static void name_add(struct rv_buf *buf, struct rv_str name)
{
    if (name.at == NULL)
        name = RV_STR("(others)");
    for (size_t i = 0; i < name.len; i++) {
        if (name.at[i] == '\n') {
            rv_buf_lit(buf, "\\n");
            continue;
        }
        if (name.at[i] == '"' || name.at[i] == '\\')
            rv_buf_add_char(buf, '\\');
        rv_buf_add_char(buf, name.at[i]);
    }
}

static void by_agent(struct rv_buf *buf, const struct rv_call_metrics *metrics, const char *name,
                     const char *help, size_t offset)
{
    head(buf, name, "gauge", help);
    for (size_t i = 0; i < metrics->agents_count; i++) {
        const struct rv_agent_count *row = &metrics->agents[i];
        rv_buf_printf(buf, "%s{agent=\"", name);
        name_add(buf, row->agent);
        uint64_t value = *(const uint64_t *)(const void *)((const char *)row + offset);
        rv_buf_printf(buf, "\"} %llu\n", (number)value);
    }
}

static void agents_put(struct rv_buf *buf, const struct rv_call_metrics *metrics)
{
#define BY_AGENT(name, member, help)                                                               \
    by_agent(buf, metrics, name, help, offsetof(struct rv_agent_count, member))
    const char *name = "reeve_queue_oldest_seconds";
    BY_AGENT("reeve_queue_depth", waiting,
             "Steps that wait for an agent, including steps behind an open circuit.");
    head(buf, name, "gauge", "Waiting time of the oldest step that waits for an agent.");
    for (size_t i = 0; i < metrics->agents_count; i++) {
        const struct rv_agent_count *row = &metrics->agents[i];
        rv_buf_printf(buf, "%s{agent=\"", name);
        name_add(buf, row->agent);
        rv_buf_lit(buf, "\"} ");
        seconds_add(buf, row->oldest_ms > 0 ? (uint64_t)row->oldest_ms * 1000 : 0);
        rv_buf_add_char(buf, '\n');
    }
    BY_AGENT("reeve_agent_instances", instances, "Connected instances of agents.");
    BY_AGENT("reeve_attempts_open", attempts_open, "Open attempts.");
    BY_AGENT("reeve_polls_parked", polls_parked, "Polls that wait for work.");
    BY_AGENT("reeve_circuits_open", circuits_open, "Targets whose circuit is open.");
    plain(buf, "reeve_calls_parked", "gauge", "Requests that wait for a result, including polls.",
          metrics->calls_parked);
#undef BY_AGENT
}

static void answers_put(struct rv_buf *buf, const struct rv_api_counts *counts)
{
    static const char *const classes[] = {"2xx", "4xx", "5xx"};
    const char *name = "reeve_http_answers_total";
    const struct rv_route *routes = rv_routes();
    head(buf, name, "counter", "HTTP responses by route and status class.");
    for (size_t i = 0; i <= RV_ROUTES_MAX; i++) {
        bool none = i == RV_ROUTES_MAX;
        if (!none && routes[i].method == NULL)
            i = RV_ROUTES_MAX, none = true;
        for (unsigned class = 0; class < RV_ANSWER_CLASSES; class ++)
            if (counts->answers[i][class] > 0)
                rv_buf_printf(buf, "%s{method=\"%s\",route=\"%s\",status=\"%s\"} %llu\n", name,
                              none ? "" : routes[i].method, none ? "" : routes[i].pattern,
                              classes[class], (number)counts->answers[i][class]);
    }
}

static void api_put(struct rv_buf *buf, const struct rv_api_counts *counts)
{
    answers_put(buf, counts);
    plain(buf, "reeve_http_unauthorized_total", "counter", "Requests without a valid API key.",
          counts->unauthorized);
    plain(buf, "reeve_http_connections_total", "counter", "Connections taken.",
          counts->connections_taken);
    plain(buf, "reeve_http_connections", "gauge", "Connections open.", counts->connections);
    plain(buf, "reeve_http_calls", "gauge",
          "Requests in the scheduler, including waiting requests.", counts->calls);
    histogram(
        buf, "reeve_submission_seconds",
        "Time from the last byte of a submission to its response, for submissions without wait.",
        &counts->submission);
    histogram(buf, "reeve_reply_seconds", "Time from the last byte of a reply to its response.",
              &counts->reply);
    plain(buf, "reeve_store_bytes", "gauge", "Size of the state store's files.",
          counts->store_bytes > 0 ? (uint64_t)counts->store_bytes : 0);
    head(buf, "reeve_log_lines_dropped_total", "counter",
         "Log lines that were dropped because the log's reader was slow or the log could not be "
         "written.");
    labelled(buf, "reeve_log_lines_dropped_total", "log", "server", counts->log_dropped);
    if (counts->has_access_log)
        labelled(buf, "reeve_log_lines_dropped_total", "log", "access", counts->access_log_dropped);
    if (!counts->has_spans)
        return;
    head(buf, "reeve_spans_total", "counter",
         "Spans, by result: accepted by the collector, or dropped.");
    labelled(buf, "reeve_spans_total", "result", "sent", counts->spans_sent);
    labelled(buf, "reeve_spans_total", "result", "dropped", counts->spans_dropped);
}

void rv_render_metrics(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_METRICS);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_metrics *metrics = &call->u.metrics;
    answer->content_type = "text/plain; version=0.0.4; charset=utf-8";
    head(buf, "reeve_build_info", "gauge", "The version of the server.");
    labelled(buf, "reeve_build_info", "version", RV_VERSION, 1);
    tasks_put(buf, metrics->counts);
    attempts_put(buf, metrics->counts);
    batches_put(buf, metrics->counts);
    decisions_put(buf, metrics->counts);
    agents_put(buf, metrics);
    if (answer->counts != NULL)
        api_put(buf, answer->counts);
}
