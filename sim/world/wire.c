/* A connection is kept from one request to the next, mostly, until its server or a request on it
 * dies. Where the bytes are cut, and in which of the allowed forms they are written, changes
 * nothing of what is read (W-01); a request of which a byte is missing is none (W-02); and a peer
 * reads what was answered (W-03). */
#include "sim/world/wire.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/prng.h"
#include "http/http.h"
#include "sim/world/net.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    TINY_PIECES_BYTES = 700, /* a head and the beginning of its body */
    CHUNKS_MAX = 8,
    PADDING_BYTES_MAX = 4000,
    WIRE_BYTES_MAX = RV_BODY_BYTES_MAX + 64 * 1024
};

struct connection {
    bool open;
    uint32_t starts; /* of the server */
    struct rv_http_reader reader;
};

struct wire {
    struct rv_buf bytes;  /* of the message in hand */
    struct rv_buf body;   /* as it is read */
    struct rv_arena read; /* of the head in hand */
    struct connection connections[SIM_SERVERS_MAX][PEER_NOBODY + 1][SIM_AGENTS_MAX];
};

struct wire *wire_new(void)
{
    struct wire *wire = calloc(1, sizeof *wire);
    rv_assert(wire != NULL);
    rv_buf_init(&wire->bytes, WIRE_BYTES_MAX);
    rv_buf_init(&wire->body, RV_BODY_BYTES_MAX);
    rv_arena_init(&wire->read, 0);
    return wire;
}

static void connection_end(struct connection *connection)
{
    if (connection->open)
        rv_http_reader_done(&connection->reader);
    connection->open = false;
}

void wire_free(struct wire *wire)
{
    for (size_t i = 0; i < SIM_SERVERS_MAX; i++)
        for (size_t peer = 0; peer <= PEER_NOBODY; peer++)
            for (size_t actor = 0; actor < SIM_AGENTS_MAX; actor++)
                connection_end(&wire->connections[i][peer][actor]);
    rv_buf_done(&wire->bytes);
    rv_buf_done(&wire->body);
    rv_arena_done(&wire->read);
    free(wire);
}

static struct connection *connection_of(struct world *w, const struct exchange *x)
{
    struct connection *connection = &w->wire->connections[x->server][x->peer][x->actor];
    if (connection->open && connection->starts != w->servers[x->server].starts)
        connection_end(connection);
    if (!connection->open) {
        rv_http_reader_init(&connection->reader, RV_BODY_BYTES_MAX);
        connection->open = true;
        connection->starts = w->servers[x->server].starts;
    }
    return connection;
}

static void dice_of(const struct world *w, const struct exchange *x, struct rv_prng *ret_dice)
{
    rv_prng_init(ret_dice, w->seed * UINT64_C(0x9e3779b97f4a7c15) + x->number);
}

static bool one_in(struct rv_prng *dice, uint64_t many)
{
    return rv_prng_below(dice, many) == 0;
}

/* ---- the request is written ---- */

/* "content-length: 5 \r\n": the name in any case, blanks around the value. */
static void field_write(struct rv_buf *out, struct rv_prng *dice, const char *name,
                        const char *value)
{
    static const char *const before[] = {" ", " ", "", "\t", "  "};
    static const char *const after[] = {"", "", "", " ", " \t"};
    uint64_t style = rv_prng_below(dice, 3);
    for (const char *at = name; *at != '\0'; at++) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        char c = style == 0 || !letter ? *at : style == 1 ? *at | 0x20 : *at & ~0x20;
        rv_buf_add_char(out, c);
    }
    rv_buf_add_char(out, ':');
    rv_buf_add_str(out, rv_str_of(before[rv_prng_below(dice, 5)]));
    rv_buf_add_str(out, rv_str_of(value));
    rv_buf_add_str(out, rv_str_of(after[rv_prng_below(dice, 5)]));
    rv_buf_lit(out, "\r\n");
}

static void padding_write(struct rv_buf *out, struct rv_prng *dice)
{
    char value[PADDING_BYTES_MAX + 1];
    size_t len = rv_prng_below(dice, one_in(dice, 16) ? PADDING_BYTES_MAX : 40);
    memset(value, '~', len);
    value[len] = '\0';
    field_write(out, dice, "X-Padding", value);
}

static void chunks_write(struct rv_buf *out, struct rv_prng *dice, struct rv_str body)
{
    for (int left = CHUNKS_MAX; body.len > 0; left--) {
        size_t len = left > 1 ? 1 + rv_prng_below(dice, body.len) : body.len;
        rv_buf_printf(out, one_in(dice, 2) ? "%zx" : one_in(dice, 2) ? "%zX" : "%06zx", len);
        if (one_in(dice, 4))
            rv_buf_lit(out, ";name=\"a;b\\\"\"");
        rv_buf_lit(out, "\r\n");
        rv_buf_add(out, body.at, len);
        rv_buf_lit(out, "\r\n");
        body = (struct rv_str){body.at + len, body.len - len};
    }
    rv_buf_lit(out, "0\r\n");
    if (one_in(dice, 4))
        rv_buf_lit(out, "X-Checksum: 1\r\n");
    rv_buf_lit(out, "\r\n");
}

/* How the body is framed, in headers; true: in chunks. */
static bool framing_write(struct rv_buf *out, struct rv_prng *dice, const struct exchange *x,
                          bool old)
{
    char length[24];
    bool none = x->body.len == 0 && rv_str_is(x->method, "GET");
    if (!none && !old && one_in(dice, 4)) {
        field_write(out, dice, "Transfer-Encoding", one_in(dice, 2) ? "chunked" : "Chunked");
        return true;
    }
    snprintf(length, sizeof length, "%zu", x->body.len);
    if (!none || one_in(dice, 8))
        field_write(out, dice, "Content-Length", length);
    return false;
}

/* True: the connection ends after the answer. */
static bool request_write(struct rv_buf *out, struct rv_prng *dice, const struct exchange *x)
{
    static const char *const hosts[] = {"127.0.0.1:7433", "reeve.example", "[::1]:7433"};
    const char *host = hosts[rv_prng_below(dice, 3)];
    bool old = one_in(dice, 16), close = old || one_in(dice, 8);
    rv_buf_reset(out);
    if (one_in(dice, 16))
        rv_buf_lit(out, "\r\n"); /* an old client's, behind its last body */
    rv_buf_printf(out, "%.*s ", RV_STR_FMT(x->method));
    if (one_in(dice, 16))
        rv_buf_printf(out, "http://%s", host);
    rv_buf_printf(out, "%.*s HTTP/1.%d\r\n", RV_STR_FMT(x->target), old ? 0 : 1);
    if (one_in(dice, 4))
        padding_write(out, dice);
    field_write(out, dice, "Host", host);
    bool chunked = framing_write(out, dice, x, old);
    if (x->body.len > 0)
        field_write(out, dice, "Content-Type", "application/json");
    if (x->body.len > 0 && !old && one_in(dice, 8))
        field_write(out, dice, "Expect", "100-continue");
    if (close && !old)
        field_write(out, dice, "Connection", one_in(dice, 2) ? "close" : "TE, Close");
    if (one_in(dice, 4))
        padding_write(out, dice);
    rv_buf_lit(out, "\r\n");
    if (chunked)
        chunks_write(out, dice, x->body);
    else
        rv_buf_add_str(out, x->body);
    rv_assert(out->failed == RV_OK);
    return close;
}

/* ---- and read ---- */

struct wire_reading {
    struct rv_http_reader *reader;
    struct rv_arena *arena;
    struct rv_buf *body;
    struct wire_request *request;
    bool headed;
    bool ended;
    bool refused;
    size_t over; /* bytes behind its end */
};

static void piece_read(struct wire_reading *r, struct rv_str piece)
{
    for (;;) {
        size_t taken = 0;
        enum rv_http_event event = rv_http_reader_feed(r->reader, piece, &taken);
        rv_assert(taken <= piece.len);
        piece = (struct rv_str){piece.at + taken, piece.len - taken};
        switch (event) {
        case RV_HTTP_MORE:
            r->over += piece.len;
            return;
        case RV_HTTP_HEAD:
            r->headed = true;
            r->request->method = rv_arena_str(r->arena, r->reader->request.method);
            r->request->target = rv_arena_str(r->arena, r->reader->request.target);
            break;
        case RV_HTTP_BODY:
            rv_buf_add_str(r->body, r->reader->piece);
            break;
        case RV_HTTP_END:
            r->ended = true;
            r->over += piece.len;
            return;
        case RV_HTTP_REFUSED:
            r->refused = true;
            return;
        }
    }
}

/* Whole, in two, in segments, or nearly byte by byte. */
static void pieces_read(struct wire_reading *r, struct rv_prng *dice, struct rv_str bytes)
{
    uint64_t way = rv_prng_below(dice, 4);
    for (size_t at = 0; at < bytes.len && !r->refused && !r->ended;) {
        size_t rest = bytes.len - at, len = rest;
        if (way == 1 && at == 0)
            len = 1 + rv_prng_below(dice, rest);
        if (way == 2)
            len = 1 + rv_prng_below(dice, 1460);
        if (way == 3 && at < TINY_PIECES_BYTES)
            len = 1 + rv_prng_below(dice, 8);
        len = len < rest ? len : rest;
        piece_read(r, (struct rv_str){bytes.at + at, len});
        at += len;
        r->over += r->ended ? bytes.len - at : 0;
    }
}

static struct wire_reading reading_begin(struct wire *wire, struct connection *connection,
                                         struct wire_request *request)
{
    *request = (struct wire_request){.body = RV_STR("")};
    rv_buf_reset(&wire->body);
    rv_arena_reset(&wire->read);
    return (struct wire_reading){.reader = &connection->reader,
                                 .arena = &wire->read,
                                 .body = &wire->body,
                                 .request = request};
}

bool wire_request(struct world *w, const struct exchange *x, struct wire_request *ret_request)
{
    struct rv_prng dice;
    dice_of(w, x, &dice);
    struct connection *connection = connection_of(w, x);
    bool close = request_write(&w->wire->bytes, &dice, x);
    struct wire_reading r = reading_begin(w->wire, connection, ret_request);
    pieces_read(&r, &dice, rv_buf_str(&w->wire->bytes));
    ret_request->body = rv_buf_str(r.body);
    if (r.refused)
        world_violate(w, "W-01", "%.*s %.*s is refused with %d: %s", RV_STR_FMT(x->method),
                      RV_STR_FMT(x->target), r.reader->refusal.status, r.reader->refusal.detail);
    else if (!r.ended || r.over > 0)
        world_violate(w, "W-01", "%.*s %.*s does not end where it ends", RV_STR_FMT(x->method),
                      RV_STR_FMT(x->target));
    else if (!rv_str_eq(ret_request->method, x->method) ||
             !rv_str_eq(ret_request->target, x->target) || !rv_str_eq(ret_request->body, x->body))
        world_violate(w, "W-01", "%.*s %.*s is read otherwise than it was sent",
                      RV_STR_FMT(x->method), RV_STR_FMT(x->target));
    else if (r.reader->request.close != close)
        world_violate(w, "W-01", "%.*s %.*s: whether the connection is kept is read otherwise",
                      RV_STR_FMT(x->method), RV_STR_FMT(x->target));
    bool good = r.ended && !r.refused;
    if (good && !close)
        rv_http_reader_next(&connection->reader);
    else
        connection_end(connection);
    return good;
}

void wire_break(struct world *w, const struct exchange *x)
{
    struct rv_prng dice;
    dice_of(w, x, &dice);
    struct connection *connection = connection_of(w, x);
    struct wire_request request;
    (void)request_write(&w->wire->bytes, &dice, x);
    struct rv_str bytes = rv_buf_str(&w->wire->bytes);
    struct wire_reading r = reading_begin(w->wire, connection, &request);
    bytes.len = rv_prng_below(&dice, bytes.len);
    pieces_read(&r, &dice, bytes);
    if (r.ended || r.refused)
        world_violate(w, "W-02", "%zu bytes of %.*s %.*s are %s", bytes.len, RV_STR_FMT(x->method),
                      RV_STR_FMT(x->target), r.ended ? "taken for all of it" : "refused");
    connection_end(connection);
}

/* ---- answers ---- */

static void answer_write(const struct world *w, struct rv_buf *out, bool chunked, int status,
                         int64_t retry_after_ms, struct rv_str body)
{
    char date[RV_HTTP_DATE_BYTES], seconds[24];
    rv_http_date(w->now / 1000, date);
    rv_buf_reset(out);
    rv_http_write_head(out, &(struct rv_http_answer){.status = status,
                                                     .minor = 1,
                                                     .chunked = chunked,
                                                     .length = body.len,
                                                     .type = "application/json",
                                                     .date = date});
    snprintf(seconds, sizeof seconds, "%lld", (long long)(retry_after_ms / 1000));
    if (retry_after_ms > 0)
        rv_http_write_field(out, "Retry-After", rv_str_of(seconds));
    rv_http_write_end(out);
    if (!chunked) {
        rv_buf_add_str(out, body);
    } else {
        if (body.len > 0)
            rv_http_write_chunk(out, body.at, body.len);
        rv_http_write_last_chunk(out);
    }
    rv_assert(out->failed == RV_OK);
}

/* The value of a header in a head that ends with CR LF; 0 without it. */
static long long field_read(const char *head, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, len) == 0 && line[2 + len] == ':')
            return strtoll(line + 3 + len, NULL, 10);
    return 0;
}

/* One chunk and the last one: as it was written, no more is allowed for. */
static bool chunks_read(struct rv_str text, struct rv_str *ret_body)
{
    char *end;
    size_t len = strtoull(text.at, &end, 16);
    size_t head = (size_t)(end - text.at) + 2;
    bool is_last = len == 0;
    size_t tail = is_last ? 2 : sizeof "\r\n0\r\n\r\n" - 1;
    *ret_body = (struct rv_str){text.at + (is_last ? 0 : head), len};
    return text.len == head + len + tail && memcmp(text.at + text.len - 4, "\r\n\r\n", 4) == 0;
}

void wire_answer(struct world *w, struct exchange *x, int status, int64_t retry_after_ms,
                 struct rv_str body)
{
    struct rv_prng dice;
    dice_of(w, x, &dice);
    struct rv_buf *bytes = &w->wire->bytes;
    bool chunked = one_in(&dice, 8);
    answer_write(w, bytes, chunked, status, retry_after_ms, body);
    struct rv_str text = rv_arena_str(&w->arena, rv_buf_str(bytes));
    char *end = strstr(text.at, "\r\n\r\n");
    rv_assert(end != NULL);
    size_t head = (size_t)(end - text.at) + 4;
    struct rv_str rest = {text.at + head, text.len - head}, read = rest;
    end[2] = '\0'; /* what follows is no header */
    bool whole = chunked ? chunks_read(rest, &read)
                         : field_read(text.at, "Content-Length") == (long long)rest.len;
    x->status = strncmp(text.at, "HTTP/1.1 ", 9) == 0 ? (int)strtol(text.at + 9, NULL, 10) : 0;
    x->retry_after_ms = field_read(text.at, "Retry-After") * 1000;
    x->answer = read;
    if (!whole || x->status != status || x->retry_after_ms != retry_after_ms ||
        !rv_str_eq(read, body))
        world_violate(w, "W-03", "an answer %d to %.*s is read otherwise than it was written",
                      status, RV_STR_FMT(x->target));
}
