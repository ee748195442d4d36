#include "api/body.h"
#include "api/parse.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/tags.h"

static const char *const no_query[] = {NULL};
static const char *const operate_names[] = {"by", "reason", NULL};
static const char *const undo_names[] = {"by", "reason", "byHand", "lateSeen", NULL};
static const char *const cancel_names[] = {"by", "reason", "abandon", "byHand", NULL};
static const char *const resubmit_names[] = {"by",       "reason",        "input",     "step",
                                             "lateSeen", "assumeNotDone", "undoFirst", NULL};
static const char *const settle_names[] = {"by",     "reason",   "step", "finding",
                                           "output", "lateSeen", NULL};
const char *const rv_finding_texts[] = {[RV_FINDING_DONE] = "done",
                                        [RV_FINDING_UNDONE] = "undone",
                                        [RV_FINDING_NOTHING] = "nothing-happened",
                                        NULL};

static bool task_read(struct rv_parser *parser, struct rv_str text, struct rv_task_id *ret)
{
    if (rv_task_parse(text, ret) == RV_OK)
        return true;
    return rv_refuse_http(
        parser, 404, "\"%.*s\" is not a task id; an id has 13 characters, such as 06DWX3T9H2K4Q",
        RV_STR_FMT(text));
}

bool rv_parse_nothing(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call)
{
    (void)call;
    return rv_args_only(parser, request, no_query);
}

/* What all of them have; *ret_body is for what one of them has besides. */
static bool operate_read(struct rv_parser *parser, const struct rv_request_line *request,
                         enum rv_command_kind verb, const char *const *names, struct rv_call *call,
                         struct rv_body *ret_body)
{
    rv_assert(call->kind == RV_CALL_OPERATE);
    rv_assert(request->params_count == 1);
    struct rv_call_operate *operate = &call->u.operate;
    operate->verb = verb;
    return rv_args_only(parser, request, no_query) &&
           task_read(parser, request->params[0], &operate->task) &&
           rv_body_read(parser, request->body, true, names, ret_body) &&
           rv_body_by(parser, ret_body, &operate->by) &&
           rv_body_text(parser, ret_body, "reason", RV_REASON_BYTES_MAX, &operate->reason);
}

static bool seen_read(struct rv_parser *parser, const struct rv_body *body,
                      struct rv_call_operate *operate)
{
    int64_t seen = 0;
    if (!rv_body_int(parser, body, "lateSeen", 0, UINT32_MAX, &seen))
        return false;
    operate->late_seen = (uint32_t)seen;
    return true;
}

/* Number of a step, and how much of the ledger was seen. */
static bool step_read(struct rv_parser *parser, const struct rv_body *body,
                      struct rv_call_operate *operate)
{
    int64_t step = 0;
    if (!rv_body_int(parser, body, "step", 1, UINT32_MAX, &step))
        return false;
    operate->step = (uint32_t)step;
    return seen_read(parser, body, operate);
}

bool rv_parse_resubmit(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_call *call)
{
    struct rv_call_operate *operate = &call->u.operate;
    struct rv_body body;
    if (!operate_read(parser, request, RV_COMMAND_RESUBMIT, resubmit_names, call, &body) ||
        !rv_body_payload(parser, &body, "input", &operate->input) ||
        !step_read(parser, &body, operate) ||
        !rv_body_bool(parser, &body, "assumeNotDone", &operate->assume_not_done) ||
        !rv_body_bool(parser, &body, "undoFirst", &operate->undo_first))
        return false;
    if (operate->input.at == NULL &&
        (operate->assume_not_done || operate->undo_first || operate->step != 0))
        return rv_refuse(parser, RV_ERR_INVALID,
                         "\"step\", \"assumeNotDone\" and \"undoFirst\" need \"input\" (--step, "
                         "--assume-not-done and --undo-first need --input JSON): without input, "
                         "the same request is repeated");
    if (operate->assume_not_done && operate->undo_first)
        return rv_refuse(parser, RV_ERR_INVALID,
                         "\"assumeNotDone\" (--assume-not-done) and \"undoFirst\" (--undo-first) "
                         "cannot be combined; give one");
    return true;
}

static bool finding_read(struct rv_parser *parser, const struct rv_body *body,
                         enum rv_finding *ret_finding)
{
    struct rv_str text = RV_STR_NONE;
    if (!rv_body_text(parser, body, "finding", RV_NAME_BYTES_MAX, &text) ||
        !rv_body_need(parser, body, "finding", text))
        return false;
    for (unsigned i = 0; rv_finding_texts[i] != NULL; i++) {
        if (rv_str_is(text, rv_finding_texts[i])) {
            *ret_finding = (enum rv_finding)i;
            return true;
        }
    }
    rv_buf_reset(&parser->scratch);
    rv_suggest_to(parser, text, rv_finding_texts);
    return rv_refuse(parser, RV_ERR_INVALID, "\"finding\": \"%.*s\" is not a finding; %.*s",
                     RV_STR_FMT(text), RV_STR_FMT(rv_buf_str(&parser->scratch)));
}

bool rv_parse_settle(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call)
{
    struct rv_call_operate *operate = &call->u.operate;
    struct rv_body body;
    return operate_read(parser, request, RV_COMMAND_SETTLE, settle_names, call, &body) &&
           step_read(parser, &body, operate) &&
           rv_body_payload(parser, &body, "output", &operate->output) &&
           finding_read(parser, &body, &operate->finding);
}

bool rv_parse_undo(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call)
{
    struct rv_call_operate *operate = &call->u.operate;
    struct rv_body body;
    return operate_read(parser, request, RV_COMMAND_UNDO, undo_names, call, &body) &&
           rv_body_bool(parser, &body, "byHand", &operate->by_hand) &&
           seen_read(parser, &body, operate);
}

bool rv_parse_suspend(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call)
{
    struct rv_body body;
    return operate_read(parser, request, RV_COMMAND_SUSPEND, operate_names, call, &body);
}

bool rv_parse_try_now(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call)
{
    struct rv_body body;
    return operate_read(parser, request, RV_COMMAND_RETRY, operate_names, call, &body);
}

bool rv_parse_resume(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call)
{
    struct rv_body body;
    return operate_read(parser, request, RV_COMMAND_RESUME, operate_names, call, &body);
}

bool rv_parse_cancel(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call)
{
    struct rv_call_operate *operate = &call->u.operate;
    struct rv_body body;
    return operate_read(parser, request, RV_COMMAND_CANCEL, cancel_names, call, &body) &&
           rv_body_bool(parser, &body, "abandon", &operate->abandon) &&
           rv_body_bool(parser, &body, "byHand", &operate->by_hand) &&
           (!operate->abandon || rv_body_need(parser, &body, "reason", operate->reason));
}

static bool alert_read(struct rv_parser *parser, struct rv_str text, int64_t *ret)
{
    struct rv_task_id id;
    if (rv_task_parse(text, &id) != RV_OK)
        return rv_refuse_http(
            parser, 404,
            "\"%.*s\" is not an alert id; GET /v1/alerts or `reeve alerts` lists the alerts",
            RV_STR_FMT(text));
    *ret = id.value;
    return true;
}

bool rv_parse_ack(struct rv_parser *parser, const struct rv_request_line *request,
                  struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_ACK);
    rv_assert(request->params_count == 1);
    struct rv_body body;
    return rv_args_only(parser, request, no_query) &&
           alert_read(parser, request->params[0], &call->u.ack.alert) &&
           rv_body_read(parser, request->body, true, operate_names, &body) &&
           rv_body_by(parser, &body, &call->u.ack.by) &&
           rv_body_text(parser, &body, "reason", RV_REASON_BYTES_MAX, &call->u.ack.reason);
}

bool rv_parse_raise(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_RAISE);
    static const char *const names[] = {"source", "message", NULL};
    struct rv_call_raise *raise = &call->u.raise;
    struct rv_body body;
    return rv_args_only(parser, request, no_query) &&
           rv_body_read(parser, request->body, false, names, &body) &&
           rv_body_text(parser, &body, "source", RV_ALERT_SOURCE_BYTES_MAX, &raise->source) &&
           rv_body_need(parser, &body, "source", raise->source) &&
           rv_body_text(parser, &body, "message", RV_ALERT_MESSAGE_BYTES_MAX, &raise->message) &&
           rv_body_need(parser, &body, "message", raise->message);
}

bool rv_parse_retry(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_RETRY);
    rv_assert(request->params_count == 1);
    struct rv_body body;
    return rv_args_only(parser, request, no_query) &&
           alert_read(parser, request->params[0], &call->u.retry.alert) &&
           rv_body_read(parser, request->body, true, operate_names, &body) &&
           rv_body_by(parser, &body, &call->u.retry.by) &&
           rv_body_text(parser, &body, "reason", RV_REASON_BYTES_MAX, &call->u.retry.reason);
}

bool rv_parse_messages(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_MESSAGES);
    rv_assert(request->params_count == 1);
    static const char *const names[] = {"after", "limit", "wait", NULL};
    struct rv_call_messages *messages = &call->u.messages;
    int64_t after = 0;
    if (!rv_args_only(parser, request, names) ||
        !task_read(parser, request->params[0], &messages->task) ||
        !rv_arg_int(parser, request, "after", 0, UINT32_MAX, &after) ||
        !rv_arg_limit(parser, request, &messages->limit) ||
        !rv_arg_wait(parser, request, &messages->wait_ms))
        return false;
    messages->after = (uint32_t)after;
    return true;
}

/* The header comes from a reader that has lost its connection, the parameter from one that begins
 * where another has ended. */
bool rv_parse_stream(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_MESSAGES);
    rv_assert(request->params_count == 1);
    static const char *const names[] = {"after", NULL};
    struct rv_call_messages *messages = &call->u.messages;
    int64_t after = 0;
    if (!rv_args_only(parser, request, names) ||
        !task_read(parser, request->params[0], &messages->task) ||
        !rv_arg_int(parser, request, "after", 0, UINT32_MAX, &after))
        return false;
    if (request->seen.at != NULL && (!rv_text_int(request->seen, &after) || after > UINT32_MAX))
        return rv_refuse_http(parser, 400, "Last-Event-ID: %.*s: must be the id of an event",
                              RV_STR_FMT(request->seen));
    messages->after = (uint32_t)after;
    messages->limit = RV_STREAM_MESSAGES_MAX;
    return true;
}

bool rv_parse_show(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_SHOW);
    rv_assert(request->params_count == 1);
    static const char *const names[] = {"wait", "revision", NULL};
    struct rv_call_show *show = &call->u.show;
    return rv_args_only(parser, request, names) &&
           task_read(parser, request->params[0], &show->task) &&
           rv_arg_wait(parser, request, &show->wait_ms) &&
           rv_arg_int(parser, request, "revision", 0, INT64_MAX, &show->after_revision);
}

bool rv_parse_explain(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_EXPLAIN);
    rv_assert(request->params_count == 1);
    return rv_args_only(parser, request, no_query) &&
           task_read(parser, request->params[0], &call->u.explain.task);
}

/* The parameters that every page has: how many, and after what (which the caller reads). */
static bool page_read(struct rv_parser *parser, const struct rv_request_line *request,
                      const char *const *names, struct rv_call_list *list)
{
    return rv_args_only(parser, request, names) && rv_arg_limit(parser, request, &list->limit);
}

bool rv_parse_steps(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_STEPS);
    rv_assert(request->params_count == 1);
    static const char *const names[] = {"after", "limit", NULL};
    int64_t after = 0;
    if (!page_read(parser, request, names, &call->u.list) ||
        !task_read(parser, request->params[0], &call->u.list.task) ||
        !rv_arg_int(parser, request, "after", 0, UINT32_MAX, &after))
        return false;
    call->u.list.after_step = (uint32_t)after;
    return true;
}

/* "<step>.<attempt>", as `next` of the page before said. */
static bool place_read(struct rv_parser *parser, struct rv_str after, struct rv_call_list *list)
{
    const char *dot = after.len ? memchr(after.at, '.', after.len) : NULL;
    struct rv_str before = {after.at, dot ? (size_t)(dot - after.at) : 0};
    struct rv_str behind = {dot ? dot + 1 : after.at, dot ? after.len - before.len - 1 : 0};
    int64_t step = 0;
    int64_t attempt = 0;
    if (!rv_text_int(before, &step) || !rv_text_int(behind, &attempt) || step > UINT32_MAX ||
        attempt > UINT32_MAX)
        return rv_refuse_http(parser, 400,
                              "after=%.*s: must be \"next\" of the previous page, such as 3.2",
                              RV_STR_FMT(after));
    list->after_step = (uint32_t)step;
    list->after = (uint32_t)attempt;
    return true;
}

bool rv_parse_attempts(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_ATTEMPTS);
    rv_assert(request->params_count == 1);
    static const char *const names[] = {"step", "after", "limit", NULL};
    struct rv_call_list *list = &call->u.list;
    int64_t step = 0;
    if (!page_read(parser, request, names, list) ||
        !task_read(parser, request->params[0], &list->task) ||
        !rv_arg_int(parser, request, "step", 1, UINT32_MAX, &step))
        return false;
    list->step = (uint32_t)step;
    struct rv_str after = rv_arg_get(request, "after");
    if (after.at == NULL)
        return true;
    return place_read(parser, after, list);
}

bool rv_parse_late(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_LATE);
    rv_assert(request->params_count == 1);
    static const char *const names[] = {"after", "limit", NULL};
    int64_t skip = 0;
    if (!page_read(parser, request, names, &call->u.list) ||
        !task_read(parser, request->params[0], &call->u.list.task) ||
        !rv_arg_int(parser, request, "after", 0, INT32_MAX, &skip))
        return false;
    call->u.list.skip = (size_t)skip;
    return true;
}

bool rv_parse_history(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_HISTORY);
    rv_assert(request->params_count == 1);
    static const char *const names[] = {"after", "limit", NULL};
    struct rv_call_list *list = &call->u.list;
    return page_read(parser, request, names, list) &&
           task_read(parser, request->params[0], &list->task) &&
           rv_arg_int(parser, request, "after", 1, UINT32_MAX, &list->before);
}

static bool state_read(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_task_filter *filter)
{
    static const char *const states[] = {
#define RV_TASK_STATE(name, text, open, moves) text,
#include "core/tbl/task_state.def"
#undef RV_TASK_STATE
        "suspended", NULL};
    struct rv_str text = rv_arg_get(request, "state");
    if (text.at == NULL)
        return true;
    filter->suspended = rv_str_is(text, "suspended");
    if (filter->suspended)
        return true;
    filter->by_state = true;
    if (rv_task_state_parse(text, &filter->state))
        return true;
    rv_suggest_to(parser, text, states);
    return rv_refuse_http(parser, 400, "state=%.*s: unknown state; %.*s", RV_STR_FMT(text),
                          RV_STR_FMT(rv_buf_str(&parser->scratch)));
}

static bool duration_read(struct rv_parser *parser, const struct rv_request_line *request,
                          const char *name, int64_t *ret_ms)
{
    struct rv_str text = rv_arg_get(request, name);
    if (text.at == NULL)
        return true;
    if (rv_duration_parse(text, ret_ms) == RV_OK && *ret_ms > 0)
        return true;
    return rv_refuse_http(
        parser, 400,
        "%s=%.*s: must be an ISO 8601 duration longer than 0 and up to " RV_DURATION_MAX_TEXT
        ", such as PT1H",
        name, RV_STR_FMT(text));
}

/* tag=NAME=VALUE. */
static bool tag_read(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_task_filter *filter)
{
    struct rv_str text = rv_arg_get(request, "tag");
    if (text.at == NULL)
        return true;
    const char *mark = text.len > 0 ? memchr(text.at, '=', text.len) : NULL;
    size_t len = mark != NULL ? (size_t)(mark - text.at) : 0;
    filter->tag_name = (struct rv_str){text.at, len};
    if (mark == NULL || !rv_tag_name_good(filter->tag_name))
        return rv_refuse_http(
            parser, 400,
            "tag=%.*s: must be NAME=VALUE; a name has 1 to 64 letters, digits, ., - and _",
            RV_STR_FMT(text));
    filter->tag_value = (struct rv_str){mark + 1, text.len - len - 1};
    filter->tag = rv_tag_needle(parser->arena, filter->tag_name, filter->tag_value);
    return filter->tag.at != NULL ||
           rv_refuse_http(parser, 400, "tag=%.*s: a value has at most %d bytes", RV_STR_FMT(text),
                          RV_TAG_VALUE_BYTES_MAX);
}

/* Present, it is a name that somebody may have. */
static bool name_read(struct rv_parser *parser, const struct rv_request_line *request,
                      const char *name, struct rv_str *ret_text)
{
    *ret_text = rv_arg_get(request, name);
    return ret_text->at == NULL || ret_text->len > 0 ||
           rv_refuse_http(parser, 400, "%s=: must not be empty", name);
}

static bool workflow_read(struct rv_parser *parser, const struct rv_request_line *request,
                          struct rv_task_filter *filter)
{
    struct rv_str text = filter->workflow = rv_arg_get(request, "workflow");
    if (text.at == NULL || (text.len > 0 && memchr(text.at, '/', text.len) != NULL))
        return true;
    return rv_refuse_http(parser, 400,
                          "workflow=%.*s: must be namespace/name or namespace/name:version",
                          RV_STR_FMT(text));
}

/* What goes together: each filter has an index to be walked, or stands beside one that has. */
static bool filters_fit(struct rv_parser *parser, const struct rv_request_line *request,
                        const struct rv_call_list *list)
{
    const struct rv_task_filter *filter = &list->filter;
    size_t paging = rv_arg_get(request, "limit").at != NULL;
    if (list->key.at != NULL && request->args_count > 1 + paging)
        return rv_refuse_http(parser, 400,
                              "key= selects one task and cannot be combined with other filters or "
                              "with after=; omit the other parameters");
    if (filter->agent.at != NULL && filter->by_state && !rv_task_state_open(filter->state))
        return rv_refuse_http(
            parser, 400,
            "agent= selects open tasks: state= must be a state of open tasks (pending, processing, "
            "compensating, error), suspended, or omitted");
    return true;
}

static bool filter_read(struct rv_parser *parser, const struct rv_request_line *request,
                        struct rv_call_list *list)
{
    return state_read(parser, request, &list->filter) &&
           workflow_read(parser, request, &list->filter) &&
           duration_read(parser, request, "olderThan", &list->older_ms) &&
           duration_read(parser, request, "newerThan", &list->newer_ms) &&
           name_read(parser, request, "key", &list->key) &&
           name_read(parser, request, "agent", &list->filter.agent) &&
           name_read(parser, request, "errorType", &list->filter.error_type) &&
           tag_read(parser, request, &list->filter) && filters_fit(parser, request, list);
}

bool rv_parse_task_filter(struct rv_parser *parser, const struct rv_request_line *request,
                          struct rv_call_list *list)
{
    static const char *const names[] = {"workflow",  "state", "agent", "errorType", "olderThan",
                                        "newerThan", "key",   "tag",   NULL};
    return rv_args_only(parser, request, names) && filter_read(parser, request, list);
}

bool rv_parse_tasks(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_TASKS);
    static const char *const names[] = {"workflow",  "state",     "agent", "errorType",
                                        "olderThan", "newerThan", "key",   "tag",
                                        "after",     "limit",     NULL};
    struct rv_call_list *list = &call->u.list;
    return page_read(parser, request, names, list) && filter_read(parser, request, list) &&
           rv_arg_after(parser, request, &list->filter.before);
}

bool rv_parse_alerts(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_ALERTS);
    static const char *const names[] = {"open", "task", "after", "limit", NULL};
    struct rv_call_list *list = &call->u.list;
    list->open_only = true;
    if (!page_read(parser, request, names, list) ||
        !rv_arg_bool(parser, request, "open", &list->open_only))
        return false;
    struct rv_str task = rv_arg_get(request, "task");
    struct rv_task_id before = {0};
    if (task.at != NULL && rv_task_parse(task, &list->task) != RV_OK)
        return rv_refuse_http(parser, 400, "task=%.*s: must be a task id", RV_STR_FMT(task));
    bool read = rv_arg_after(parser, request, &before);
    list->before = before.value;
    return read;
}

bool rv_parse_workflows(struct rv_parser *parser, const struct rv_request_line *request,
                        struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_WORKFLOWS);
    static const char *const names[] = {"after", "limit", NULL};
    int64_t skip = 0;
    if (!page_read(parser, request, names, &call->u.list) ||
        !rv_arg_int(parser, request, "after", 0, INT32_MAX, &skip))
        return false;
    call->u.list.skip = (size_t)skip;
    return true;
}

bool rv_parse_workflow(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_WORKFLOWS);
    rv_assert(request->params_count == 2);
    static const char *const names[] = {"version", NULL};
    struct rv_call_list *list = &call->u.list;
    if (!rv_args_only(parser, request, names))
        return false;
    struct rv_str version = rv_arg_get(request, "version");
    list->limit = 1;
    list->filter.workflow = rv_arena_printf(
        parser->arena, "%.*s/%.*s%s%.*s", RV_STR_FMT(request->params[0]),
        RV_STR_FMT(request->params[1]), version.at ? ":" : "", RV_STR_FMT(version));
    return list->filter.workflow.at != NULL ||
           rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
}
