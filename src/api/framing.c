/* Two readers of one byte stream that disagree about where a request ends let a stranger slip a
 * request past the first one. libmicrohttpd takes several such heads; they are refused here. */
#include "api/api_priv.h"

#include <strings.h>

struct head {
    struct rv_parser *parser;
    unsigned lengths;   /* how often Content-Length stands there */
    unsigned encodings; /* Transfer-Encoding */
    unsigned hosts;
    bool origin;
    bool good;
    struct rv_str length;
    struct rv_str encoding;
    struct rv_str file;
    struct rv_str host;
    struct rv_str authorization;
    unsigned authorizations;
    struct rv_str seen;
    struct rv_str key;
    unsigned keys;
    struct rv_str traceparent;
    unsigned traceparents;
    struct rv_str tracestate;
};

static bool name_valid(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c <= 0x20 || c >= 0x7f || c == '"' || c == '(' || c == ')' || c == ',' || c == '/')
            return false;
    }
    return len > 0;
}

/* libmicrohttpd also ends a line at a CR or LF alone, and joins a folded line with the one before;
 * the reader in front of us may not. It cuts its buffer into texts by putting NULs over the end of
 * each line, so after one that ended as it should there are two. A joined text is a copy that ends
 * in one, followed by what lies there in the pool: it is refused, or else is the blank that RFC
 * 9112, 5.2 takes it for. */
static bool line_ended(const char *end)
{
    return end[0] == '\0' && end[1] == '\0';
}

#define LINES_WRONG                                                                                \
    "a header line is folded or does not end with CR LF; send each header in one line"

static bool name_is(const char *name, size_t len, const char *wanted)
{
    return len == strlen(wanted) && strncasecmp(name, wanted, len) == 0;
}

/* A tracestate may stand in several lines; of two traceparents neither counts. */
static void trace_look(struct head *head, const char *name, size_t name_len, struct rv_str text)
{
    if (name_is(name, name_len, "traceparent")) {
        head->traceparents++;
        head->traceparent = text;
    } else if (name_is(name, name_len, "tracestate")) {
        struct rv_str first = head->tracestate;
        head->tracestate = first.at == NULL ? text
                                            : rv_arena_printf(head->parser->arena, "%.*s,%.*s",
                                                              RV_STR_FMT(first), RV_STR_FMT(text));
    }
}

static enum MHD_Result header_look(void *self, enum MHD_ValueKind kind, const char *name,
                                   size_t name_len, const char *value, size_t value_len)
{
    (void)kind;
    struct head *head = self;
    struct rv_str text = {value ? value : "", value ? value_len : 0};
    if (!name_valid(name, name_len) ||
        (text.len > 0 && (memchr(text.at, '\0', text.len) || memchr(text.at, '\r', text.len)))) {
        head->good = rv_refuse_http(head->parser, 400,
                                    "a header contains an invalid byte; remove it");
        return MHD_NO;
    }
    if (value != NULL && !line_ended(value + value_len)) {
        head->good = rv_refuse_http(head->parser, 400, LINES_WRONG);
        return MHD_NO;
    }
    if (name_is(name, name_len, "content-length")) {
        head->lengths++;
        head->length = text;
    } else if (name_is(name, name_len, "transfer-encoding")) {
        head->encodings++;
        head->encoding = text;
    } else if (name_is(name, name_len, "host")) {
        head->hosts++;
        head->host = text;
    } else if (name_is(name, name_len, "authorization")) {
        head->authorizations++;
        head->authorization = text;
    } else if (name_is(name, name_len, "origin")) {
        head->origin = true;
    } else if (name_is(name, name_len, "x-file-name")) {
        head->file = text;
    } else if (name_is(name, name_len, "last-event-id")) {
        head->seen = text;
    } else if (name_is(name, name_len, "idempotency-key")) {
        head->keys++;
        head->key = text;
    } else {
        trace_look(head, name, name_len, text);
    }
    return MHD_YES;
}

static bool digits_only(struct rv_str text)
{
    int64_t number;
    return rv_text_int(text, &number);
}

static bool lengths_check(struct rv_parser *parser, const struct head *head)
{
    if (head->lengths > 1 || head->encodings > 1)
        return rv_refuse_http(parser, 400,
                              "Content-Length or Transfer-Encoding is given twice; send one");
    if (head->lengths + head->encodings > 1)
        return rv_refuse_http(parser, 400,
                              "Content-Length and Transfer-Encoding exclude each other; send one");
    if (head->lengths == 1 && !digits_only(head->length))
        return rv_refuse_http(parser, 400, "Content-Length must be a whole number");
    if (head->encodings == 1 && !name_is(head->encoding.at, head->encoding.len, "chunked"))
        return rv_refuse_http(parser, 501, "the only supported Transfer-Encoding is chunked");
    return true;
}

bool rv_framing_check(struct rv_parser *parser, const struct exchange *exchange,
                      const char *version, struct rv_head *ret_head)
{
    struct head head = {.parser = parser, .good = true};
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return rv_refuse_http(parser, 505, "speak HTTP/1.1");
    /* The version stands right behind the target's end in libmicrohttpd's buffer: anything else
     * between them was cut off by a NUL. */
    if (exchange->target_at + exchange->target.len + 1 != version)
        return rv_refuse_http(parser, 400, "the URL contains a NUL byte; remove it");
    if (!line_ended(version + strlen(version)))
        return rv_refuse_http(parser, 400, LINES_WRONG);
    MHD_get_connection_values_n(exchange->http, MHD_HEADER_KIND, header_look, &head);
    if (!head.good || !lengths_check(parser, &head))
        return false;
    if (head.encodings != 0 && strcmp(version, "HTTP/1.0") == 0)
        return rv_refuse_http(parser, 400,
                              "Transfer-Encoding is not allowed in HTTP/1.0; use HTTP/1.1");
    if (head.hosts > 1)
        return rv_refuse_http(parser, 400, "the header Host is given twice; send one");
    if (head.authorizations > 1)
        return rv_refuse_http(parser, 400, "the header Authorization is given twice; send one");
    if (head.keys > 1)
        return rv_refuse_http(parser, 400, "the header Idempotency-Key is given twice; send one");
    /* A page that some browser shows must not reach a server on its user's loopback. */
    if (head.origin)
        return rv_refuse_http(parser, 403,
                              "requests from web pages are refused (they have the header Origin)");
    struct rv_arena *arena = parser->arena;
    *ret_head = (struct rv_head){
        .length = head.lengths ? rv_arena_str(arena, head.length) : RV_STR_NONE,
        .credentials = {.authorization = rv_arena_str(arena, head.authorization),
                        .host = rv_arena_str(arena, head.host)}};
    if (head.file.len > 0 && rv_text_plain(head.file))
        ret_head->file = rv_arena_str(arena, head.file);
    if (head.seen.len > 0 && rv_text_plain(head.seen))
        ret_head->seen = rv_arena_str(arena, head.seen);
    if (head.keys == 1)
        ret_head->key = rv_arena_str(arena, head.key);
    if (head.traceparents == 1) {
        ret_head->traceparent = rv_arena_str(arena, head.traceparent);
        ret_head->tracestate = rv_arena_str(arena, head.tracestate);
    }
    return !rv_parser_starved(parser);
}
