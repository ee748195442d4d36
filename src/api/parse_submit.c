#include "api/body.h"
#include "api/digest.h"
#include "api/parse.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "core/tags.h"

enum { PRIORITY_DEFAULT = 5, PRIORITY_MAX = RV_PRIORITIES - 1 };

/* More of a text than this is no trace context. */
enum { TRACE_BYTES_MAX = 8192 };

#define ITEM_NAMES                                                                                 \
    "workflow", "input", "key", "priority", "correlationId", "traceparent", "tracestate"
static const char *const item_names[] = {ITEM_NAMES, "replyTo", "tags", NULL};
static const char *const body_names[] = {ITEM_NAMES, "replyTo", "tags", "tasks", NULL};
static const char *const query_names[] = {"wait", NULL};

/* "namespace/name" or "namespace/name:version". */
static bool workflow_split(struct rv_parser *parser, const struct rv_body *body, struct rv_str text,
                           struct rv_submission *item)
{
    const char *slash = memchr(text.at, '/', text.len);
    size_t space_len = slash ? (size_t)(slash - text.at) : 0;
    if (space_len == 0 || space_len + 1 == text.len) {
        struct rv_str place = rv_body_member_name(parser, body, "workflow");
        return rv_refuse(parser, RV_ERR_INVALID,
                         "%.*s \"%.*s\" must be namespace/name or namespace/name:version",
                         RV_STR_FMT(place), RV_STR_FMT(text));
    }
    item->space = (struct rv_str){text.at, space_len};
    item->name = (struct rv_str){slash + 1, text.len - space_len - 1};
    const char *colon = memchr(item->name.at, ':', item->name.len);
    if (colon == NULL)
        return true;
    item->version = (struct rv_str){colon + 1, (size_t)(text.at + text.len - colon - 1)};
    item->name.len = (size_t)(colon - item->name.at);
    return true;
}

/* A secret in a row would be one in every backup and log: the server has one for all (reeve serve
 * --webhook-secret-file). */
static bool reply_read(struct rv_parser *parser, const struct rv_body *body,
                       struct rv_submission *item)
{
    static const char *const names[] = {"url", "stream", NULL};
    const struct rv_json *value = rv_json_get(body->object, RV_STR("replyTo"));
    struct rv_body reply;
    if (value == NULL || value->type == RV_JSON_NULL)
        return true;
    struct rv_str where = rv_body_member_name(parser, body, "replyTo");
    if (rv_json_get(value, RV_STR("secret")) != NULL)
        return rv_refuse(
            parser, RV_ERR_INVALID,
            "%.*s: secrets are not accepted, since they would be stored with the task; the server "
            "signs webhooks with its own secrets (reeve serve --webhook-secret-file)",
            RV_STR_FMT(where));
    if (!rv_body_open(parser, value, where, names, &reply) ||
        !rv_body_text(parser, &reply, "url", RV_URL_BYTES_MAX, &item->reply_url) ||
        !rv_body_bool(parser, &reply, "stream", &item->reply_stream))
        return false;
    if (item->reply_url.at == NULL && !item->reply_stream)
        return rv_refuse(parser, RV_ERR_INVALID,
                         "%.*s: must have the \"url\" of a webhook, or \"stream\": true",
                         RV_STR_FMT(where));
    return true;
}

static bool tags_read(struct rv_parser *parser, const struct rv_body *body,
                      struct rv_submission *item)
{
    const struct rv_json *tags = rv_json_get(body->object, RV_STR("tags"));
    if (tags == NULL || tags->type == RV_JSON_NULL)
        return true;
    enum rv_err err;
    const char *wrong = rv_tags_wrong(tags, &err);
    struct rv_str place = rv_body_member_name(parser, body, "tags");
    if (wrong != NULL)
        return rv_refuse(parser, err, "%.*s %s", RV_STR_FMT(place), wrong);
    for (uint32_t i = 0; i < tags->len; i++) {
        const struct rv_json_member *tag = &tags->u.members[i];
        uint32_t hidden = rv_utf8_hidden(rv_json_str(&tag->value));
        if (hidden != UINT32_MAX)
            return rv_refuse(parser, RV_ERR_INVALID, "%.*s: the value of \"%.*s\" " RV_HIDDEN_TEXT,
                             RV_STR_FMT(place), RV_STR_FMT(rv_json_str(&tag->key)),
                             (unsigned)hidden);
    }
    if (tags->len == 0)
        return true;
    rv_buf_reset(&parser->scratch);
    rv_json_write_canonical(&parser->scratch, tags);
    if (parser->scratch.failed == RV_OK)
        item->tags = rv_arena_str(parser->arena, rv_buf_str(&parser->scratch));
    return item->tags.at != NULL ||
           rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
}

/* Whoever submits a task once more does so in a trace of its own, and means the same task. */
static bool apart(struct rv_str name)
{
    return rv_str_is(name, "traceparent") || rv_str_is(name, "tracestate") ||
           rv_str_is(name, "key");
}

/* The key is hashed as a member of the body, wherever it was sent. */
static struct rv_json hashed(struct rv_parser *parser, const struct rv_json *object,
                             struct rv_str key)
{
    struct rv_json rest = *object;
    struct rv_json_member *members = RV_NEW_ARRAY(&parser->tree, struct rv_json_member,
                                                  (size_t)object->len + 1);
    rest.len = 0;
    for (uint32_t i = 0; members != NULL && i < object->len; i++)
        if (!apart(rv_json_str(&object->u.members[i].key)))
            members[rest.len++] = object->u.members[i];
    if (members != NULL)
        members[rest.len++] = (struct rv_json_member){rv_json_of_str(RV_STR("key")),
                                                      rv_json_of_str(key)};
    rest.u.members = members;
    return rest;
}

static bool body_hash(struct rv_parser *parser, const struct rv_body *body, struct rv_str key,
                      struct rv_str *ret)
{
    struct rv_json rest = hashed(parser, body->object, key);
    if (rv_parser_starved(parser))
        return false;
    rv_buf_reset(&parser->scratch);
    rv_json_write_canonical(&parser->scratch, &rest);
    if (parser->scratch.failed == RV_OK)
        *ret = rv_digest_hex(parser->arena, rv_buf_str(&parser->scratch));
    return ret->at != NULL ||
           rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
}

/* Whatever stands there is no error: what is no text, or too long a one, is no trace context. */
static struct rv_str trace_text(struct rv_parser *parser, struct rv_str given)
{
    return given.len <= TRACE_BYTES_MAX ? rv_arena_str(parser->arena, given) : RV_STR_NONE;
}

/* That of the item, or of the request. */
static void trace_read(struct rv_parser *parser, const struct rv_request_line *request,
                       const struct rv_body *body, struct rv_submission *item)
{
    const struct rv_json *own = rv_json_get(body->object, RV_STR("traceparent"));
    const struct rv_json *state = rv_json_get(body->object, RV_STR("tracestate"));
    bool named = own != NULL && own->type != RV_JSON_NULL;
    item->traceparent = trace_text(parser, named ? rv_json_str(own) : request->traceparent);
    item->tracestate = trace_text(parser, named ? rv_json_str(state) : request->tracestate);
}

/* The key of the body's only task, if it came in the header. */
static bool key_take(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_str *key)
{
    struct rv_str sent = RV_STR_NONE;
    if (!rv_key_header(parser, request, &sent))
        return false;
    if (sent.at != NULL && key->at != NULL && !rv_str_eq(sent, *key))
        return rv_refuse_http(parser, 400,
                              "the header Idempotency-Key is \"%.*s\", but \"key\" in the body is "
                              "\"%.*s\"; send one key",
                              RV_STR_FMT(sent), RV_STR_FMT(*key));
    if (sent.at != NULL)
        *key = sent;
    return true;
}

static bool item_read(struct rv_parser *parser, const struct rv_request_line *request,
                      const struct rv_body *body, bool single, struct rv_submission *item)
{
    struct rv_str workflow = RV_STR_NONE;
    int64_t priority = PRIORITY_DEFAULT;
    bool good = tags_read(parser, body, item) && reply_read(parser, body, item) &&
                rv_body_text(parser, body, "workflow", 3 * RV_NAME_BYTES_MAX + 2, &workflow) &&
                rv_body_need(parser, body, "workflow", workflow) &&
                workflow_split(parser, body, workflow, item) &&
                rv_body_payload(parser, body, "input", &item->input) &&
                rv_body_text(parser, body, "key", RV_KEY_BYTES_MAX, &item->key) &&
                rv_body_text(parser, body, "correlationId", RV_KEY_BYTES_MAX, &item->correlation) &&
                rv_body_int(parser, body, "priority", 0, PRIORITY_MAX, &priority) &&
                (!single || key_take(parser, request, &item->key));
    if (!good || (item->key.at != NULL && !body_hash(parser, body, item->key, &item->body_hash)))
        return false;
    item->priority = (uint8_t)priority;
    trace_read(parser, request, body, item);
    return true;
}

/* A bad item does not spoil the others: it keeps its own error and message. */
static void item_read_apart(struct rv_parser *parser, const struct rv_request_line *request,
                            const struct rv_json *value, size_t index, struct rv_submission *item)
{
    struct rv_body body;
    struct rv_str where = rv_body_item_name(parser, "tasks", index);
    if (rv_body_open(parser, value, where, item_names, &body) &&
        item_read(parser, request, &body, false, item))
        return;
    *item = (struct rv_submission){.err = parser->problem.err, .message = parser->problem.detail};
    parser->problem = (struct rv_problem){.status = 0};
}

bool rv_parse_submit(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_SUBMIT);
    struct rv_call_submit *submit = &call->u.submit;
    struct rv_body body;
    const struct rv_json *tasks = NULL;
    size_t count = 0;
    if (!rv_args_only(parser, request, query_names) ||
        !rv_arg_wait(parser, request, &submit->wait_ms) ||
        !rv_body_read(parser, request->body, false, body_names, &body) ||
        !rv_body_list(parser, &body, "tasks", RV_CALL_ITEMS_MAX, &tasks, &count))
        return false;
    if (tasks != NULL && body.object->len != 1)
        return rv_refuse(parser, RV_ERR_INVALID,
                         "\"tasks\" cannot be combined with other properties; put these properties "
                         "into the items of \"tasks\"");
    if (tasks != NULL && submit->wait_ms != 0)
        return rv_refuse(parser, RV_ERR_INVALID,
                         "wait is valid only for a single task; for several tasks, send GET "
                         "/v1/tasks/{task}?wait= for each task");
    if (tasks != NULL && request->key.at != NULL)
        return rv_refuse_http(parser, 400,
                              "Idempotency-Key is valid only for a single task; give each of "
                              "\"tasks\" its own \"key\"");
    submit->batch = tasks != NULL;
    submit->count = tasks ? count : 1;
    submit->items = RV_NEW_ARRAY(parser->arena, struct rv_submission, submit->count);
    if (submit->items == NULL)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    if (tasks == NULL)
        return item_read(parser, request, &body, true, &submit->items[0]);
    for (size_t i = 0; i < count; i++)
        item_read_apart(parser, request, &tasks[i], i, &submit->items[i]);
    return true;
}
