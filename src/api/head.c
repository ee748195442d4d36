/* What a request's head says beside the request line. How it frames the body is read by the door's
 * reader. */
#include "api/api_priv.h"

#include <ctype.h>

/* The value of the newest line of this name: what the nearest proxy has added. */
static struct rv_str last_value(const struct rv_http_request *request, const char *name)
{
    struct rv_str found = RV_STR_NONE;
    size_t len = strlen(name);
    for (size_t i = 0; i < request->fields_count; i++) {
        const struct rv_http_field *field = &request->fields[i];
        if (field->name_len == len && strncasecmp(request->at + field->name_at, name, len) == 0)
            found = (struct rv_str){request->at + field->value_at, field->value_len};
    }
    return found;
}

/* What stands behind the last `mark`; all of it where there is none. */
static struct rv_str behind_last(struct rv_str text, char mark)
{
    const char *at = text.len > 0 ? memrchr(text.at, mark, text.len) : NULL;
    return at != NULL ? (struct rv_str){at + 1, (size_t)(text.at + text.len - at - 1)} : text;
}

/* The node of "for=node" among the parameters of one element (RFC 7239, 4). */
static struct rv_str forwarded_for(struct rv_str element)
{
    while (element.len > 0) {
        const char *end = memchr(element.at, ';', element.len);
        size_t len = end ? (size_t)(end - element.at) : element.len;
        struct rv_str pair = {element.at, len};
        element = (struct rv_str){element.at + len + (end != NULL),
                                  element.len - len - (end != NULL)};
        while (pair.len > 0 && pair.at[0] == ' ')
            pair = (struct rv_str){pair.at + 1, pair.len - 1};
        if (pair.len > 4 && strncasecmp(pair.at, "for=", 4) == 0)
            return (struct rv_str){pair.at + 4, pair.len - 4};
    }
    return RV_STR_NONE;
}

/* "192.0.2.1:80", "\"[2001:db8::1]:80\"", "_name": without quotes, brackets and port. */
static struct rv_str node_address(struct rv_str node)
{
    enum { NODE_BYTES_MAX = 64 };
    while (node.len > 0 && strchr(" \"", node.at[0]) != NULL)
        node = (struct rv_str){node.at + 1, node.len - 1};
    while (node.len > 0 && strchr(" \"", node.at[node.len - 1]) != NULL)
        node.len--;
    const char *colon = node.len > 0 ? memchr(node.at, ':', node.len) : NULL;
    const char *bracket = node.len > 0 ? memchr(node.at, ']', node.len) : NULL;
    bool one = colon != NULL && colon == memrchr(node.at, ':', node.len);
    if (node.len > 0 && node.at[0] == '[' && bracket != NULL)
        node = (struct rv_str){node.at + 1, (size_t)(bracket - node.at - 1)};
    else if (one)
        node.len = (size_t)(colon - node.at);
    for (size_t i = 0; i < node.len; i++)
        if (!isalnum((unsigned char)node.at[i]) && strchr(".:_-", node.at[i]) == NULL)
            return RV_STR_NONE;
    return node.len <= NODE_BYTES_MAX ? node : RV_STR_NONE;
}

struct rv_str rv_head_client(const struct rv_http_request *request)
{
    struct rv_str forwarded = last_value(request, "forwarded");
    struct rv_str node = forwarded.at != NULL
                             ? forwarded_for(behind_last(forwarded, ','))
                             : behind_last(last_value(request, "x-forwarded-for"), ',');
    return node_address(node);
}

static const char *const once[] = {"Authorization", "Idempotency-Key"};

/* A tracestate may stand in several lines. */
static struct rv_str tracestate_join(struct rv_parser *parser,
                                     const struct rv_http_request *request)
{
    struct rv_str all = RV_STR_NONE;
    for (size_t i = 0; i < request->fields_count; i++) {
        const struct rv_http_field *field = &request->fields[i];
        struct rv_str name = {request->at + field->name_at, field->name_len};
        struct rv_str value = {request->at + field->value_at, field->value_len};
        if (name.len != 10 || strncasecmp(name.at, "tracestate", 10) != 0)
            continue;
        all = all.at == NULL
                  ? rv_arena_str(parser->arena, value)
                  : rv_arena_printf(parser->arena, "%.*s,%.*s", RV_STR_FMT(all), RV_STR_FMT(value));
    }
    return all;
}

static struct rv_str plain_copy(struct rv_parser *parser, struct rv_str text)
{
    return text.len > 0 && rv_text_plain(text) ? rv_arena_str(parser->arena, text) : RV_STR_NONE;
}

bool rv_head_read(struct rv_parser *parser, const struct rv_http_request *request,
                  struct rv_head *ret_head)
{
    size_t count, traceparents;
    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++) {
        (void)rv_http_field(request, once[i], &count);
        if (count > 1)
            return rv_refuse_http(parser, 400, "the header %s is given twice; send one", once[i]);
    }
    /* A page that some browser shows must not reach a server on its user's loopback. */
    if (rv_http_field(request, "origin", NULL).at != NULL)
        return rv_refuse_http(
            parser, 403,
            "requests from web pages (with the header Origin) are refused, with an API "
            "key too: send the request from your own server, or without Origin");
    struct rv_arena *arena = parser->arena;
    struct rv_str parent = rv_http_field(request, "traceparent", &traceparents);
    *ret_head = (struct rv_head){
        .file = plain_copy(parser, rv_http_field(request, "x-file-name", NULL)),
        .seen = plain_copy(parser, rv_http_field(request, "last-event-id", NULL)),
        .key = rv_arena_str(arena, rv_http_field(request, "idempotency-key", NULL)),
        .credentials = {
            .authorization = rv_arena_str(arena, rv_http_field(request, "authorization", NULL)),
            .host = rv_arena_str(arena, request->host)}};
    if (traceparents == 1) {
        ret_head->traceparent = rv_arena_str(arena, parent);
        ret_head->tracestate = tracestate_join(parser, request);
    }
    return !rv_parser_starved(parser);
}
