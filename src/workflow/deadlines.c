/* The times of open scopes: durations that are computed, deadlines that change while control stays
 * where it is. */
#include "base/time.h"
#include "workflow/flow_priv.h"

enum { VALUE_SHOWN = 80 };

int64_t rv_flow_deadline(const struct rv_flow *flow)
{
    int64_t deadline = 0;
    for (const struct rv_record *record = flow->top; record != NULL; record = record->outer) {
        deadline = rv_time_earlier(deadline, record->deadline);
        deadline = rv_time_earlier(deadline, record->attempt_deadline);
    }
    return deadline;
}

/* A duration as the DSL writes it: an ISO 8601 text, or an object of whole numbers. */
static bool duration_of(const struct rv_json *value, int64_t *ret_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } parts[] = {{"days", RV_DAY_MS},
                 {"hours", RV_HOUR_MS},
                 {"minutes", RV_MINUTE_MS},
                 {"seconds", RV_SECOND_MS},
                 {"milliseconds", 1}};
    enum { PARTS = sizeof parts / sizeof parts[0] };
    int64_t sum = 0;
    if (value->type == RV_JSON_STRING)
        return rv_duration_parse(rv_json_str(value), ret_ms) == RV_OK;
    for (uint32_t i = 0; value->type == RV_JSON_OBJECT && i < value->len; i++) {
        const struct rv_json_member *member = &value->u.members[i];
        struct rv_str key = rv_json_str(&member->key);
        size_t part = 0;
        int64_t number;
        while (part < PARTS && !rv_str_is(key, parts[part].name))
            part++;
        if (part == PARTS || !rv_json_int(&member->value, &number) || number < 0 ||
            number > (RV_DURATION_MS_MAX - sum) / parts[part].ms)
            return false;
        sum += number * parts[part].ms;
        rv_assert(sum <= RV_DURATION_MS_MAX);
    }
    *ret_ms = sum;
    return value->type == RV_JSON_OBJECT && value->len > 0;
}

enum rv_err rv_flow_duration(struct rv_flow *flow, const struct rv_duration *duration,
                             struct rv_payload *dot, int64_t *ret_ms)
{
    struct rv_payload value;
    struct rv_json tree;
    struct rv_str text;
    rv_assert(duration->ms >= 0);
    rv_assert(duration->ms <= RV_DURATION_MS_MAX);
    *ret_ms = duration->ms;
    if (duration->computed == NULL)
        return RV_OK;
    RV_TRY(rv_flow_evaluate(flow, duration->computed, dot, &value));
    RV_TRY(rv_flow_tree(flow, &value, &tree));
    if (duration_of(&tree, ret_ms))
        return RV_OK;
    RV_TRY(rv_flow_payload_text(flow, &value, &text));
    struct rv_str detail = rv_arena_printf(flow->arena,
                                           "%.*s%s is not a duration up to " RV_DURATION_MAX_TEXT
                                           ", such as \"PT30S\" or {\"seconds\": 30}",
                                           (int)(text.len < VALUE_SHOWN ? text.len : VALUE_SHOWN),
                                           text.at, text.len > VALUE_SHOWN ? "..." : "");
    if (detail.at == NULL)
        return rv_flow_full(flow);
    return rv_flow_raise_standard(flow, RV_ERROR_VALIDATION, flow->top->node,
                                  "The duration is not valid", detail);
}

struct shift {
    int64_t from; /* deadlines later than that */
    int64_t by_ms;
};

static void record_renew(const struct rv_flow *flow, struct rv_record *record,
                         const struct shift *shift)
{
    (void)shift;
    int64_t now = flow->env->now;
    const struct rv_node *node = rv_flow_node(flow, record->node);
    if (record->deadline != 0 && record->deadline <= now)
        record->deadline = record->timeout_ms != 0 ? rv_time_add(now, record->timeout_ms) : 0;
    if (record->attempt_deadline == 0 || record->attempt_deadline > now)
        return;
    rv_assert(node->kind == RV_NODE_TRY);
    const struct rv_retry *retry = node->caught->retry;
    bool limited = retry != NULL && retry->attempt_ms != 0;
    record->attempt_deadline = limited ? rv_time_add(now, retry->attempt_ms) : 0;
}

static int64_t postponed(int64_t deadline, const struct shift *shift)
{
    return deadline > shift->from ? rv_time_add(deadline, shift->by_ms) : deadline;
}

static void record_postpone(const struct rv_flow *flow, struct rv_record *record,
                            const struct shift *shift)
{
    (void)flow;
    record->deadline = postponed(record->deadline, shift);
    record->attempt_deadline = postponed(record->attempt_deadline, shift);
}

typedef void record_change_fn(const struct rv_flow *flow, struct rv_record *record,
                              const struct shift *shift);

/* Control stays where it is; the deadlines of all scopes around it change. */
static enum rv_err flow_shift(struct rv_flow *flow, struct rv_str frames, record_change_fn *change,
                              const struct shift *shift)
{
    enum rv_stand stand;
    RV_TRY(rv_frames_read(flow, frames, &stand));
    for (struct rv_record *record = flow->top; record != NULL; record = record->outer)
        change(flow, record, shift);
    const struct rv_payload *value = rv_payload_given(&flow->value) ? &flow->value : NULL;
    RV_TRY(rv_frames_write(flow, stand, value, &flow->stop->frames));
    flow->stop->deadline = rv_flow_deadline(flow);
    return RV_OK;
}

static enum rv_err deadlines_change(struct rv_flow_env *env, struct rv_str frames,
                                    record_change_fn *change, const struct shift *shift,
                                    struct rv_flow_stop *ret_stop)
{
    enum { NUMBERS_BYTES = 4096 };
    struct rv_flow flow;
    rv_flow_init(&flow, env, ret_stop);
    flow.text.bytes_max += NUMBERS_BYTES; /* a later instant may have more digits */
    enum rv_err err = flow_shift(&flow, frames, change, shift);
    rv_buf_done(&flow.text);
    return err;
}

enum rv_err rv_flow_renew(struct rv_flow_env *env, struct rv_str frames,
                          struct rv_flow_stop *ret_stop)
{
    return deadlines_change(env, frames, record_renew, NULL, ret_stop);
}

enum rv_err rv_flow_postpone(struct rv_flow_env *env, struct rv_str frames, int64_t from,
                             int64_t by_ms, struct rv_flow_stop *ret_stop)
{
    struct shift shift = {.from = from, .by_ms = by_ms};
    return deadlines_change(env, frames, record_postpone, &shift, ret_stop);
}
