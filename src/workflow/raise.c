/* Errors: how they are made (RFC 7807, DSL reference, Error), who catches them, what is retried. */
#include "base/hash.h"
#include "base/time.h"
#include "workflow/flow_priv.h"

#define ERRORS_BASE "https://open-workflow-specification.org/spec/1.0.0/errors/"

static const struct {
    const char *type;
    int status;
} standard_errors[] = {
    [RV_ERROR_EXPRESSION] = {ERRORS_BASE "expression", 400},
    [RV_ERROR_TIMEOUT] = {ERRORS_BASE "timeout", 408},
    [RV_ERROR_RUNTIME] = {ERRORS_BASE "runtime", 500},
    [RV_ERROR_COMMUNICATION] = {ERRORS_BASE "communication", 500},
    [RV_ERROR_VALIDATION] = {ERRORS_BASE "validation", 400},
};

/* An error in the making; absent strings are left out. */
struct problem {
    size_t bytes_max; /* as JSON; 0: what the scratch buffer takes */
    struct rv_str type;
    int64_t status;
    struct rv_str title;
    struct rv_str detail;
    struct rv_str instance;
};

static void write_member(struct rv_buf *buf, const char *key, struct rv_str text)
{
    if (text.at == NULL)
        return;
    rv_buf_printf(buf, ",\"%s\":", key);
    rv_json_write_string(buf, text);
}

/* The place that an error of the workflow itself names is what raised it in the definition. */
static struct rv_str instance_of(const struct rv_flow *flow, uint32_t node,
                                 enum rv_standard_error kind)
{
    if (node != 0)
        return rv_flow_node(flow, node)->reference;
    return kind == RV_ERROR_TIMEOUT ? RV_STR("/timeout") : RV_STR("");
}

/* What a definition can make it say of itself always has room: this error is never too large. */
static enum rv_err raise_too_large(struct rv_flow *flow, uint32_t node, size_t bytes_max)
{
    rv_buf_reset(&flow->text);
    rv_buf_printf(
        &flow->text,
        "the error's type, title, detail and instance exceed %zu bytes as JSON: shorten them",
        bytes_max != 0 ? bytes_max : flow->text.bytes_max);
    struct rv_str detail;
    enum rv_err err = rv_flow_take_text(flow, &detail);
    return err != RV_OK ? err
                        : rv_flow_raise_standard(flow, RV_ERROR_RUNTIME, node,
                                                 "The error exceeds a limit", detail);
}

static enum rv_err raise(struct rv_flow *flow, uint32_t node, const struct problem *problem)
{
    struct rv_buf *buf = &flow->text;
    rv_assert(flow->top != NULL);
    rv_buf_reset(buf);
    rv_buf_lit(buf, "{\"type\":");
    rv_json_write_string(buf, problem->type);
    rv_buf_lit(buf, ",\"status\":");
    rv_buf_add_int(buf, problem->status);
    write_member(buf, "title", problem->title);
    if (problem->detail.len <= RV_ERROR_DETAIL_BYTES_MAX)
        write_member(buf, "detail", problem->detail);
    write_member(buf, "instance", problem->instance);
    rv_buf_add_char(buf, '}');
    struct rv_str text;
    if (buf->failed == RV_ERR_LIMIT || (problem->bytes_max != 0 && buf->len > problem->bytes_max))
        return raise_too_large(flow, node, problem->bytes_max);
    enum rv_err err = rv_flow_take_text(flow, &text);
    if (err != RV_OK)
        return err;
    flow->error = rv_payload_of(text);
    flow->error_node = node;
    flow->raised = flow->top;
    flow->timed_out = false;
    flow->next = RV_NEXT_RAISE;
    flow->raw_output = flow->output = (struct rv_payload){0};
    return RV_ERR_INVALID;
}

enum rv_err rv_flow_raise_standard(struct rv_flow *flow, enum rv_standard_error kind, uint32_t node,
                                   const char *title, struct rv_str detail)
{
    return raise(flow, node,
                 &(struct problem){.type = rv_str_of(standard_errors[kind].type),
                                   .status = standard_errors[kind].status,
                                   .title = rv_str_of(title),
                                   .detail = detail,
                                   .instance = instance_of(flow, node, kind)});
}

/* A string of the error, computed; other values are shown as JSON. */
static enum rv_err compute_text(struct rv_flow *flow, const struct rv_template *template,
                                struct rv_str *ret_text)
{
    if (template == NULL)
        return RV_OK;
    struct rv_payload value;
    struct rv_json tree;
    RV_TRY(rv_flow_evaluate(flow, template, &flow->value, &value));
    RV_TRY(rv_flow_tree(flow, &value, &tree));
    if (tree.type != RV_JSON_STRING)
        return rv_flow_payload_text(flow, &value, ret_text);
    *ret_text = rv_json_str(&tree);
    return RV_OK;
}

enum rv_err rv_flow_raise_task(struct rv_flow *flow, uint32_t node)
{
    const struct rv_raise_task *raised = rv_flow_node(flow, node)->raised;
    rv_assert(rv_flow_node(flow, node)->kind == RV_NODE_RAISE);
    rv_assert(raised->type != NULL);
    rv_assert(raised->status >= 0);
    rv_assert(raised->status <= 999);
    enum { MEMORY_PART = 4 }; /* where a server gives decisions little memory */
    size_t part = flow->memory_max / MEMORY_PART;
    struct problem problem = {.bytes_max = part < RV_PAYLOAD_BYTES_MAX ? part
                                                                       : RV_PAYLOAD_BYTES_MAX,
                              .status = raised->status,
                              .instance = rv_flow_node(flow, node)->reference};
    RV_TRY(compute_text(flow, raised->type, &problem.type));
    RV_TRY(compute_text(flow, raised->title, &problem.title));
    RV_TRY(compute_text(flow, raised->detail, &problem.detail));
    return raise(flow, node, &problem);
}

static struct rv_str member_or(const struct rv_json *object, const char *key, struct rv_str other)
{
    struct rv_str text = rv_json_str(rv_json_get(object, rv_str_of(key)));
    return text.at != NULL ? text : other;
}

enum rv_err rv_flow_raise_reply(struct rv_flow *flow, struct rv_str error)
{
    struct rv_payload payload = rv_payload_of(error);
    struct rv_json tree;
    rv_assert(rv_flow_node(flow, flow->node)->kind == RV_NODE_CALL);
    RV_TRY(rv_flow_tree(flow, &payload, &tree));
    if (tree.type != RV_JSON_OBJECT)
        return RV_ERR_CORRUPT;
    const struct rv_json *status = rv_json_get(&tree, RV_STR("status"));
    struct problem problem = {
        .type = member_or(&tree, "type", rv_str_of(standard_errors[RV_ERROR_COMMUNICATION].type)),
        .title = member_or(&tree, "title", RV_STR("The agent reported an error")),
        .detail = member_or(&tree, "detail", RV_STR_NONE),
        .instance = member_or(&tree, "instance", rv_flow_node(flow, flow->node)->reference)};
    if (status == NULL || !rv_json_int(status, &problem.status))
        problem.status = standard_errors[RV_ERROR_COMMUNICATION].status;
    return raise(flow, flow->node, &problem);
}

static bool text_matches(struct rv_str filter, const struct rv_json *error, const char *key)
{
    return filter.at == NULL || rv_str_eq(filter, member_or(error, key, RV_STR_NONE));
}

/* The DSL's own documents spell the part before the name in four ways. */
struct rv_str rv_error_standard_name(struct rv_str type)
{
    static const char *const bases[] = {ERRORS_BASE,
                                        "https://open-workflow-specification.org/dsl/errors/types/",
                                        "https://serverlessworkflow.io/spec/1.0.0/errors/",
                                        "https://serverlessworkflow.io/dsl/errors/types/"};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        size_t len = strlen(bases[i]);
        if (type.len > len && memcmp(type.at, bases[i], len) == 0)
            return (struct rv_str){type.at + len, type.len - len};
    }
    return RV_STR_NONE;
}

const char *const *rv_error_standard_names(void)
{
    static const char *const names[] = {"authentication", "authorization", "communication",
                                        "configuration",  "expression",    "runtime",
                                        "timeout",        "validation",    NULL};
    return names;
}

/* A standard type is matched by its name alone, too: `type: timeout`. */
static struct rv_str filter_name(struct rv_str filter)
{
    const char *const *names = rv_error_standard_names();
    while (*names != NULL && !rv_str_is(filter, *names))
        names++;
    return *names != NULL ? filter : rv_error_standard_name(filter);
}

static bool type_matches(struct rv_str filter, const struct rv_json *error)
{
    struct rv_str name = filter_name(filter);
    struct rv_str given = rv_error_standard_name(member_or(error, "type", RV_STR_NONE));
    return text_matches(filter, error, "type") || (name.at != NULL && rv_str_eq(name, given));
}

static bool filter_matches(const struct rv_catch *caught, const struct rv_json *error)
{
    int64_t status;
    const struct rv_json *written = rv_json_get(error, RV_STR("status"));
    if (caught->has_status &&
        (written == NULL || !rv_json_int(written, &status) || status != caught->status))
        return false;
    return type_matches(caught->type, error) && text_matches(caught->instance, error, "instance") &&
           text_matches(caught->title, error, "title") &&
           text_matches(caught->detail, error, "detail");
}

/* `when` and `exceptWhen` of a catch or of a retry policy: `.` is the error (decision 010). */
static enum rv_err test_conditions(struct rv_flow *flow, const struct rv_expression *when,
                                   const struct rv_expression *except_when, bool *ret_holds)
{
    struct rv_payload *error = &flow->top->error;
    bool excepted = false;
    rv_assert(rv_payload_given(error));
    *ret_holds = true;
    if (when != NULL)
        RV_TRY(rv_flow_test(flow, when, error, ret_holds));
    if (*ret_holds && except_when != NULL)
        RV_TRY(rv_flow_test(flow, except_when, error, &excepted));
    *ret_holds = *ret_holds && !excepted;
    return RV_OK;
}

/* The delay before the next attempt. Its jitter comes from the task's id and the attempt, so that a
 * decision made twice is the same twice. */
static int64_t retry_delay(const struct rv_flow *flow, const struct rv_retry *retry, int64_t delay)
{
    const struct rv_record *record = flow->top;
    int64_t times = record->retries + 1;
    rv_assert(times > 0);
    rv_assert(delay >= 0);
    rv_assert(delay <= RV_DURATION_MS_MAX);
    rv_assert(retry->jitter_from_ms <= retry->jitter_to_ms);
    if (retry->backoff == RV_BACKOFF_LINEAR)
        delay = delay > RV_DURATION_MS_MAX / times ? RV_DURATION_MS_MAX : delay * times;
    for (int64_t i = 1; retry->backoff == RV_BACKOFF_EXPONENTIAL && i < times &&
                        delay < RV_DURATION_MS_MAX && delay > 0;
         i++)
        delay *= 2;
    uint64_t span = (uint64_t)(retry->jitter_to_ms - retry->jitter_from_ms) + 1;
    struct rv_hash_key key = {record->node, (uint64_t)times};
    delay += retry->jitter_from_ms + (int64_t)(rv_hash(key, flow->env->task) % span);
    return delay < RV_DURATION_MS_MAX ? delay : RV_DURATION_MS_MAX;
}

/* Whether the try on top is to be retried, and after how long. */
static enum rv_err test_retry(struct rv_flow *flow, const struct rv_retry *retry, bool *ret_retry,
                              int64_t *ret_delay_ms)
{
    struct rv_record *record = flow->top;
    *ret_retry = false;
    if (retry == NULL || (retry->count_max >= 0 && record->retries >= retry->count_max))
        return RV_OK;
    RV_TRY(test_conditions(flow, retry->when, retry->except_when, ret_retry));
    if (!*ret_retry)
        return RV_OK;
    int64_t now = flow->env->now;
    int64_t base_ms;
    RV_TRY(rv_flow_duration(flow, &retry->delay, &record->error, &base_ms));
    *ret_delay_ms = retry_delay(flow, retry, base_ms);
    if (retry->duration_ms != 0 && record->first_at == 0)
        record->first_at = now;
    if (retry->duration_ms != 0 &&
        rv_time_add(now, *ret_delay_ms) > rv_time_add(record->first_at, retry->duration_ms))
        *ret_retry = false;
    return RV_OK;
}

/* What all open scopes keep is settled in one decision when they are left. */
static enum rv_err check_kept(struct rv_flow *flow)
{
    size_t kept = 0;
    for (const struct rv_record *record = flow->top; record != NULL; record = record->outer)
        kept += record->unfinished.count;
    if (kept <= RV_UNFINISHED_STEPS_MAX)
        return RV_OK;
    flow->fatal = true;
    struct rv_str detail = rv_arena_printf(flow->arena,
                                           "more than %d steps have failed in this try and in the "
                                           "tries that enclose it; reduce the number of retries",
                                           RV_UNFINISHED_STEPS_MAX);
    return detail.at == NULL ? rv_flow_full(flow)
                             : rv_flow_raise_standard(flow, RV_ERROR_RUNTIME, flow->top->node,
                                                      "Too many failed steps in a try", detail);
}

static enum rv_err begin_retry(struct rv_flow *flow, int64_t delay_ms)
{
    struct rv_record *record = flow->top;
    rv_assert(rv_flow_node(flow, record->node)->kind == RV_NODE_TRY);
    rv_assert(delay_ms >= 0);
    RV_TRY(rv_flow_keep(flow, &record->unfinished, &flow->pending));
    RV_TRY(check_kept(flow));
    record->retries++;
    record->attempt_deadline = 0;
    record->error = (struct rv_payload){0};
    flow->node = record->node;
    if (delay_ms == 0) {
        rv_flow_begin_try(flow);
        return RV_OK;
    }
    flow->stop->until = rv_time_add(flow->env->now, delay_ms);
    return rv_flow_stop_at(flow, RV_FLOW_WAIT, RV_STAND_RETRY, NULL);
}

/* The error is taken and its try not retried: what was under way in it is left for good. */
static enum rv_err begin_catch(struct rv_flow *flow)
{
    struct rv_record *record = flow->top;
    const struct rv_node *node = rv_flow_node(flow, record->node);
    const struct rv_catch *caught = node->caught;
    rv_assert(node->kind == RV_NODE_TRY);
    RV_TRY(rv_flow_keep(flow, &flow->abandoned, &flow->pending));
    RV_TRY(rv_flow_keep(flow, &flow->abandoned, &record->unfinished));
    record->retries = 0;
    record->first_at = 0;
    record->attempt_deadline = 0;
    flow->node = record->node;
    if (caught->body != NULL) {
        rv_flow_enter_scope(flow, caught->body, &record->input);
        return RV_OK;
    }
    flow->value = record->input;
    flow->then = caught->has_then ? caught->then : node->then;
    flow->next = RV_NEXT_FINISH;
    return RV_OK;
}

/* A catch with nothing but a retry handles no error: one that is not retried goes onward. */
static bool handles(const struct rv_catch *caught)
{
    return caught->retry == NULL || caught->body != NULL || caught->has_then;
}

/* Offers the error to the try on top. */
static enum rv_err offer(struct rv_flow *flow, bool *ret_taken)
{
    struct rv_record *record = flow->top;
    const struct rv_catch *caught = rv_flow_node(flow, record->node)->caught;
    struct rv_json error;
    rv_assert(caught != NULL);
    rv_assert(!flow->fatal);
    rv_assert(rv_payload_given(&flow->error));
    *ret_taken = false;
    RV_TRY(rv_flow_tree(flow, &flow->error, &error));
    if (!filter_matches(caught, &error))
        return RV_OK;
    record->error = flow->error;
    bool retry = false;
    int64_t delay_ms = 0;
    RV_TRY(test_conditions(flow, caught->when, caught->except_when, ret_taken));
    if (*ret_taken)
        RV_TRY(test_retry(flow, caught->retry, &retry, &delay_ms));
    if (!*ret_taken)
        return RV_OK;
    if (retry)
        return begin_retry(flow, delay_ms);
    *ret_taken = handles(caught);
    return *ret_taken ? begin_catch(flow) : RV_OK;
}

/* Where control stands at the node that raised, so that an operator can say what its output is.
 * What was under way around it is left for good: no scope keeps it. None where the frames would be
 * over their limit. */
static enum rv_err failed_frames(struct rv_flow *flow)
{
    struct rv_record *at = flow->raised;
    while (at != NULL && at->node != flow->error_node)
        at = at->outer;
    flow->top = at != NULL ? at : flow->raised;
    rv_assert(flow->top != NULL);
    flow->node = flow->top->node;
    if (!rv_payload_given(&flow->top->raw))
        flow->top->raw = rv_payload_of(RV_STR("null"));
    if (!rv_payload_given(&flow->top->input))
        flow->top->input = flow->top->raw;
    enum rv_err err = rv_frames_write(flow, RV_STAND_FAILED, NULL, &flow->stop->frames);
    if (flow->text.failed != RV_ERR_LIMIT)
        return err;
    flow->stop->frames = RV_STR_NONE;
    return RV_OK;
}

static enum rv_err raise_out(struct rv_flow *flow)
{
    /* Whatever a stop that did not come about has left behind goes. */
    *flow->stop = (struct rv_flow_stop){
        .kind = RV_FLOW_RAISED,
        .node = flow->error_node,
        .reference = rv_flow_node(flow, flow->error_node)->reference,
        .iteration = RV_STR(""),
        .timed_out = flow->timed_out,
        .inline_count = flow->stop->inline_count,
    };
    flow->next = RV_NEXT_STOP;
    RV_TRY(rv_flow_keep(flow, &flow->abandoned, &flow->pending));
    RV_TRY(rv_flow_payload_text(flow, &flow->error, &flow->stop->error));
    return failed_frames(flow);
}

enum rv_err rv_flow_carry(struct rv_flow *flow)
{
    for (;;) {
        struct rv_record *left = flow->top;
        rv_assert(left != NULL);
        const struct rv_scope *scope = rv_flow_node(flow, left->node)->scope;
        RV_TRY(rv_flow_keep(flow, &flow->pending, &left->unfinished));
        flow->top = left->outer;
        if (scope == NULL || flow->top == NULL)
            return raise_out(flow);
        rv_assert(flow->top->node == scope->owner);
        bool taken = false;
        if (scope->role == RV_ROLE_BODY && !flow->fatal &&
            rv_flow_node(flow, scope->owner)->kind == RV_NODE_TRY)
            RV_TRY(offer(flow, &taken));
        if (taken)
            return RV_OK;
    }
}
