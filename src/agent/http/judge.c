/* From an answer, or from its absence, to what the step gets. */
#include "agent/http/order.h"

#include "agent/http/order_priv.h"
#include "base/limits.h"

#include <stdio.h>
#include <string.h>

enum { DETAIL_BYTES = 1024 };

/* ---- the effect ---- */

static bool status_listed(const struct rv_json *list, int status)
{
    for (uint32_t i = 0; i < list->len; i++) {
        int64_t listed;
        if (rv_json_int(&list->u.items[i], &listed) && listed == status)
            return true;
    }
    return false;
}

static bool status_did_nothing(const struct rv_http_order *order, int status)
{
    if (order->no_effect != NULL && order->no_effect->type == RV_JSON_ARRAY)
        return status_listed(order->no_effect, status);
    return status >= 400 && status < 500 && status != 408 && status != 409 && status != 425 &&
           status != 429;
}

static bool status_passes(int status)
{
    return status == 408 || status == 425 || status == 429 || status == 500 || status == 502 ||
           status == 503 || status == 504;
}

static enum rv_runtime_effect effect_of(const struct rv_http_order *order,
                                        const struct rv_outbound_answer *answer)
{
    if (!answer->sent || order->safe)
        return RV_RUNTIME_NO_EFFECT;
    if (answer->outcome == RV_OUTCOME_ANSWERED && !answer->other_request &&
        status_did_nothing(order, answer->status))
        return RV_RUNTIME_NO_EFFECT;
    return RV_RUNTIME_UNKNOWN_EFFECT;
}

/* ---- no answer ---- */

/* What each outcome is in the DSL's errors (DSL reference, Standard Error Types). */
static const struct {
    const char *type;
    int status;
    bool transient;
} outcome_errors[RV_OUTCOME_COUNT] = {
    [RV_OUTCOME_ANSWERED] = {ERROR_TYPE "communication", 502, false},
    [RV_OUTCOME_INVALID] = {ERROR_TYPE "validation", 400, false},
    [RV_OUTCOME_REFUSED] = {ERROR_TYPE "authorization", 403, false},
    [RV_OUTCOME_RESOLVE] = {ERROR_TYPE "communication", 503, true},
    [RV_OUTCOME_CONNECT] = {ERROR_TYPE "communication", 503, true},
    [RV_OUTCOME_TLS] = {ERROR_TYPE "communication", 503, true},
    [RV_OUTCOME_TIMEOUT] = {ERROR_TYPE "timeout", 408, true},
    [RV_OUTCOME_LOST] = {ERROR_TYPE "communication", 502, true},
    [RV_OUTCOME_TOO_LARGE] = {ERROR_TYPE "communication", 502, false},
    [RV_OUTCOME_REDIRECTS] = {ERROR_TYPE "communication", 502, false},
    [RV_OUTCOME_CANCELLED] = {"cancelled", 0, true},
    [RV_OUTCOME_MEMORY] = {ERROR_TYPE "communication", 503, true},
};

static void fail(struct rv_http_order *order, const struct rv_outbound_answer *answer,
                 struct rv_str title, struct rv_runtime_failure *failure)
{
    *failure = (struct rv_runtime_failure){.type = rv_str_of(outcome_errors[answer->outcome].type),
                                           .title = title,
                                           .status = outcome_errors[answer->outcome].status,
                                           .transient = outcome_errors[answer->outcome].transient,
                                           .effect = effect_of(order, answer)};
}

static void fail_unanswered(struct rv_http_order *order, const struct rv_outbound_answer *answer,
                            struct rv_runtime_failure *failure)
{
    struct rv_str title = rv_arena_printf(&order->arena, "%.*s %s: %.*s", RV_STR_FMT(order->method),
                                          order->target, RV_STR_FMT(answer->why));
    fail(order, answer, title.at != NULL ? title : RV_STR("no answer"), failure);
}

/* ---- the body ---- */

enum body_kind { BODY_JSON, BODY_TEXT, BODY_BYTES };

/* The media type in lower case, without its parameters. */
static struct rv_str media_type(struct rv_str header, char room[static 128])
{
    size_t len = 0;
    while (len < header.len && len < 127 && header.at[len] != ';' && header.at[len] != ' ') {
        char c = header.at[len];
        room[len++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    room[len] = '\0';
    return (struct rv_str){room, len};
}

static bool ends_with(struct rv_str text, const char *end)
{
    size_t len = strlen(end);
    return text.len >= len && memcmp(text.at + text.len - len, end, len) == 0;
}

static enum body_kind body_kind(struct rv_str header)
{
    char room[128];
    struct rv_str type = media_type(header, room);
    if (rv_str_is(type, "application/json") || rv_str_is(type, "text/json") ||
        ends_with(type, "+json"))
        return BODY_JSON;
    bool text = type.len == 0 || (type.len > 5 && memcmp(type.at, "text/", 5) == 0) ||
                ends_with(type, "+xml") || ends_with(type, "+yaml") ||
                rv_str_is(type, "application/xml") || rv_str_is(type, "application/yaml") ||
                rv_str_is(type, "application/javascript") ||
                rv_str_is(type, "application/x-www-form-urlencoded");
    return text ? BODY_TEXT : BODY_BYTES;
}

static void text_put(const struct rv_http_order *order, struct rv_buf *to, struct rv_str text)
{
    struct rv_json value = rv_json_of_str(text);
    rv_http_hide_tree(order, to, &value);
}

static void bytes_put(const struct rv_http_order *order, struct rv_buf *to, struct rv_str bytes)
{
    struct rv_buf clean;
    rv_buf_init(&clean, 4 * (size_t)RV_PAYLOAD_BYTES_MAX);
    rv_http_hide(order, &clean, bytes);
    rv_buf_add_char(to, '"');
    rv_http_base64(to, rv_buf_str(&clean));
    rv_buf_add_char(to, '"');
    if (clean.failed != RV_OK)
        to->failed = clean.failed;
    rv_buf_done(&clean);
}

/* NULL, or what is wrong with the body. */
static const char *content_put(struct rv_http_order *order, struct rv_buf *to,
                               const struct rv_outbound_answer *answer)
{
    struct rv_json_fault fault = {.message = "out of memory"};
    struct rv_json tree;
    struct rv_arena arena;
    if (answer->body.len == 0) {
        rv_buf_lit(to, "null");
        return NULL;
    }
    switch (body_kind(answer->content_type)) {
    case BODY_TEXT:
        text_put(order, to, answer->body);
        return NULL;
    case BODY_BYTES:
        bytes_put(order, to, answer->body);
        return NULL;
    case BODY_JSON:
        break;
    }
    rv_arena_init(&arena, 0);
    enum rv_err err = rv_json_parse(&arena, answer->body, RV_JSON_DEPTH_MAX - 2, &tree, &fault);
    if (err == RV_OK)
        rv_http_hide_tree(order, to, &tree);
    rv_arena_done(&arena);
    return err == RV_OK ? NULL : fault.message;
}

/* ---- the whole response ---- */

static struct rv_str lower(struct rv_http_order *order, struct rv_str name)
{
    char *copy = rv_arena_bytes(&order->arena, name.len + 1);
    for (size_t i = 0; copy != NULL && i < name.len; i++)
        copy[i] = name.at[i] >= 'A' && name.at[i] <= 'Z' ? (char)(name.at[i] | 0x20) : name.at[i];
    return (struct rv_str){copy, copy != NULL ? name.len : 0};
}

/* An object with names in lower case; values of one name are joined by commas (RFC 9110, 5.3). */
static void headers_put(struct rv_http_order *order, struct rv_buf *to,
                        const struct rv_outbound_header *headers, size_t count)
{
    struct rv_str *names = RV_NEW_ARRAY(&order->arena, struct rv_str, count + 1);
    struct rv_buf joined;
    if (names == NULL) {
        to->failed = RV_ERR_MEMORY;
        return;
    }
    for (size_t i = 0; i < count; i++)
        names[i] = lower(order, headers[i].name);
    rv_buf_init(&joined, RV_OUTBOUND_HEAD_BYTES_MAX * 2);
    rv_buf_add_char(to, '{');
    bool some = false;
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        while (!rv_str_eq(names[first], names[i]))
            first++;
        if (first < i)
            continue;
        rv_buf_reset(&joined);
        for (size_t j = i; j < count; j++)
            if (rv_str_eq(names[j], names[i])) {
                if (j > i)
                    rv_buf_lit(&joined, ", ");
                rv_buf_add_str(&joined, headers[j].value);
            }
        if (some)
            rv_buf_add_char(to, ',');
        some = true;
        rv_json_write_string(to, names[i]);
        rv_buf_add_char(to, ':');
        text_put(order, to, rv_buf_str(&joined));
    }
    rv_buf_add_char(to, '}');
    if (joined.failed != RV_OK)
        to->failed = joined.failed;
    rv_buf_done(&joined);
}

static const char *response_put(struct rv_http_order *order, struct rv_buf *to,
                                const struct rv_outbound_answer *answer)
{
    rv_buf_lit(to, "{\"request\":{\"method\":");
    rv_json_write_string(to, order->method);
    rv_buf_lit(to, ",\"uri\":");
    text_put(order, to, answer->url);
    rv_buf_lit(to, ",\"headers\":");
    headers_put(order, to, order->headers, order->headers_shown);
    rv_buf_printf(to, "},\"statusCode\":%d,\"headers\":", answer->status);
    headers_put(order, to, answer->headers, answer->headers_count);
    rv_buf_lit(to, ",\"content\":");
    const char *wrong = content_put(order, to, answer);
    rv_buf_add_char(to, '}');
    return wrong;
}

/* ---- the verdict ---- */

/* What the other side says of its failure, if it is a text, cut and without what is hidden. */
static struct rv_str failure_detail(struct rv_http_order *order,
                                    const struct rv_outbound_answer *answer)
{
    if (answer->body.len == 0 || body_kind(answer->content_type) == BODY_BYTES)
        return RV_STR_NONE;
    struct rv_buf clean;
    rv_buf_init(&clean, 4 * (size_t)RV_PAYLOAD_BYTES_MAX);
    rv_http_hide(order, &clean, answer->body);
    struct rv_str text = rv_buf_str(&clean);
    if (text.len > DETAIL_BYTES)
        text.len = DETAIL_BYTES;
    struct rv_str kept = clean.failed == RV_OK ? rv_arena_str(&order->arena, text) : RV_STR_NONE;
    rv_buf_done(&clean);
    return kept;
}

static void fail_status(struct rv_http_order *order, const struct rv_outbound_answer *answer,
                        struct rv_runtime_failure *failure)
{
    const char *hint = "";
    if (rv_outbound_redirects(answer->status))
        hint = ", a redirect; to follow redirects, set `redirect: true` in the workflow";
    else if (answer->other_request)
        hint = " after a redirect";
    struct rv_str title = rv_arena_printf(&order->arena, "%.*s %s: status %d%s",
                                          RV_STR_FMT(order->method), order->target, answer->status,
                                          hint);
    *failure = (struct rv_runtime_failure){
        .type = RV_STR(ERROR_TYPE "communication"),
        .title = title.at != NULL ? title : RV_STR("the response has an error status"),
        .detail = failure_detail(order, answer),
        .status = answer->status,
        .transient = status_passes(answer->status),
        .effect = effect_of(order, answer),
        .retry_after_ms = answer->retry_after_ms > 0 ? answer->retry_after_ms : 0};
}

static void fail_output(struct rv_http_order *order, const struct rv_outbound_answer *answer,
                        enum rv_err err, const char *wrong, struct rv_runtime_failure *failure)
{
    struct rv_str title;
    if (wrong != NULL)
        title = rv_arena_printf(&order->arena, "%.*s %s: the response is not JSON: %s",
                                RV_STR_FMT(order->method), order->target, wrong);
    else
        title = rv_arena_printf(&order->arena,
                                err == RV_ERR_LIMIT
                                    ? "%.*s %s: the output is larger than 1 MiB"
                                    : "%.*s %s: out of memory while reading the output",
                                RV_STR_FMT(order->method), order->target);
    fail(order, answer, title.at != NULL ? title : RV_STR("out of memory"), failure);
    failure->transient = wrong == NULL && err == RV_ERR_MEMORY;
}

void rv_http_order_judge(struct rv_http_order *order, const struct rv_outbound_answer *answer,
                         struct rv_http_result *ret_result)
{
    *ret_result = (struct rv_http_result){.failure = {.status = 0}};
    struct rv_buf *output = &ret_result->output;
    rv_buf_init(output, RV_PAYLOAD_BYTES_MAX);
    if (answer->outcome != RV_OUTCOME_ANSWERED) {
        fail_unanswered(order, answer, &ret_result->failure);
        return;
    }
    if (answer->status < 200 || answer->status >= (order->redirect ? 400 : 300)) {
        fail_status(order, answer, &ret_result->failure);
        return;
    }
    const char *wrong = NULL;
    switch (order->output) {
    case RV_HTTP_CONTENT:
        wrong = content_put(order, output, answer);
        break;
    case RV_HTTP_RAW:
        bytes_put(order, output, answer->body);
        break;
    case RV_HTTP_RESPONSE:
        wrong = response_put(order, output, answer);
        break;
    }
    if (wrong != NULL || output->failed != RV_OK)
        fail_output(order, answer, output->failed, wrong, &ret_result->failure);
}
