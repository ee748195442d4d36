/* What a request's head says beside the request line. How it frames the body is read by the door's
 * reader. */
#include "api/api_priv.h"

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
        return rv_refuse_http(parser, 403,
                              "requests from web pages are refused (they have the header Origin)");
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
