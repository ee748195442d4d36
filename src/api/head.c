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

/* What stands behind the last comma; all of it where there is none. A comma in quotes is none
 * (RFC 7239, 4). It is read from the end, since a client may have written what comes before. */
static struct rv_str last_element(struct rv_str text)
{
    bool quoted = false;
    for (size_t i = text.len; i > 0; i--) {
        size_t slashes = 0;
        while (text.at[i - 1] == '"' && slashes < i - 1 && text.at[i - 2 - slashes] == '\\')
            slashes++;
        if (text.at[i - 1] == '"' && slashes % 2 == 0)
            quoted = !quoted;
        if (text.at[i - 1] == ',' && !quoted)
            return (struct rv_str){text.at + i, text.len - i};
    }
    return text;
}

/* Takes the first parameter off; a semicolon in quotes ends none. */
static struct rv_str parameter_take(struct rv_str *element)
{
    struct rv_str text = *element;
    bool quoted = false;
    size_t len = 0;
    for (; len < text.len && (quoted || text.at[len] != ';'); len++) {
        if (text.at[len] == '"')
            quoted = !quoted;
        else if (quoted && text.at[len] == '\\' && len + 1 < text.len)
            len++;
    }
    size_t rest = len < text.len ? len + 1 : len;
    *element = (struct rv_str){text.at + rest, text.len - rest};
    text.len = len;
    while (text.len > 0 && strchr(" \t", text.at[0]) != NULL)
        text = (struct rv_str){text.at + 1, text.len - 1};
    return text;
}

/* The node of the only "for=node" among the parameters of one element (RFC 7239, 4). */
static struct rv_str forwarded_for(struct rv_str element)
{
    struct rv_str node = RV_STR_NONE;
    while (element.len > 0) {
        struct rv_str pair = parameter_take(&element);
        if (pair.len < 4 || strncasecmp(pair.at, "for=", 4) != 0)
            continue;
        if (node.at != NULL)
            return RV_STR_NONE;
        node = (struct rv_str){pair.at + 4, pair.len - 4};
    }
    return node;
}

/* Of what is in quotes the inside; absent: a quote is missing. */
static struct rv_str unquoted(struct rv_str node)
{
    while (node.len > 0 && strchr(" \t", node.at[0]) != NULL)
        node = (struct rv_str){node.at + 1, node.len - 1};
    while (node.len > 0 && strchr(" \t", node.at[node.len - 1]) != NULL)
        node.len--;
    bool begins = node.len > 0 && node.at[0] == '"';
    bool ends = node.len > 1 && node.at[node.len - 1] == '"';
    if (begins && ends)
        return (struct rv_str){node.at + 1, node.len - 2};
    return begins ? RV_STR_NONE : node;
}

/* "192.0.2.1:80", "\"[2001:db8::1]:80\"", "_name": without quotes, brackets and port. */
static struct rv_str node_address(struct rv_str given)
{
    enum { NODE_BYTES_MAX = 64 };
    struct rv_str node = unquoted(given);
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

/* A proxy that sets one of the two headers may pass on the other as the client has sent it: where
 * they differ, neither is believed. */
struct rv_str rv_head_client(const struct rv_http_request *request)
{
    struct rv_str forwarded = last_value(request, "forwarded");
    struct rv_str plain = last_value(request, "x-forwarded-for");
    struct rv_str named = node_address(forwarded_for(last_element(forwarded)));
    struct rv_str listed = node_address(last_element(plain));
    if (forwarded.at == NULL)
        return listed;
    return plain.at == NULL || rv_str_eq(named, listed) ? named : RV_STR_NONE;
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
            return rv_refuse_http(parser, 400, "the header %s is given twice; send it once",
                                  once[i]);
    }
    /* A page that some browser shows must not reach a server on its user's loopback. */
    if (rv_http_field(request, "origin", NULL).at != NULL)
        return rv_refuse_http(
            parser, 403,
            "requests with the header Origin (from web pages) are refused, even with an API key; "
            "send the request from your own server, or without Origin");
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
