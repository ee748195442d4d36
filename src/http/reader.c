/* The machine. A head is gathered line by line in one buffer and judged as each line ends, so it
 * makes no difference where the input is cut. Bodies are never copied. */
#include "http/reader_priv.h"

#include "base/assert.h"

enum { HEAD_BYTES_FIRST = 1024, HEAD_BYTES_MAX = 32 * 1024 };

static const char no_memory[] = "out of memory for this request; try again";

bool reader_refuse(struct rv_http_reader *r, int status, const char *detail)
{
    r->refusal = (struct rv_http_refusal){status, detail};
    r->state = READER_REFUSED;
    return false;
}

void rv_http_reader_init(struct rv_http_reader *r, int64_t body_max)
{
    rv_assert(body_max >= 0);
    *r = (struct rv_http_reader){.body_max = body_max};
    rv_buf_init(&r->head, HEAD_BYTES_MAX);
}

void rv_http_reader_done(struct rv_http_reader *r)
{
    rv_buf_done(&r->head);
}

void rv_http_reader_next(struct rv_http_reader *r)
{
    rv_assert(r->state == READER_END);
    int64_t body_max = r->body_max;
    struct rv_buf head = r->head;
    rv_buf_reset(&head);
    memset(r, 0, offsetof(struct rv_http_reader, fields)); /* which counts for nothing then */
    r->body_max = body_max;
    r->head = head;
}

uint64_t rv_http_reader_rest(const struct rv_http_reader *r)
{
    return r->state == READER_BODY || r->state == READER_CHUNK ? r->rest : 0;
}

bool rv_http_reader_idle(struct rv_http_reader *r)
{
    if (r->state != READER_START || r->head.len != 0)
        return false;
    rv_buf_done(&r->head);
    rv_buf_init(&r->head, HEAD_BYTES_MAX);
    return true;
}

struct head_line {
    struct rv_str text; /* without CR LF */
    bool whole;
};

/* Moves input to the line in hand, which has at most `bytes_max` bytes without its CR LF. False:
 * refused, with `status` and `detail` where it is longer. */
static bool line_gather(struct rv_http_reader *r, struct rv_str *in, size_t bytes_max,
                        struct rv_http_refusal longer, struct head_line *ret)
{
    rv_assert(r->line_at <= r->head.len);
    rv_assert(r->head.len - r->line_at < bytes_max + 2);
    size_t room = bytes_max + 2 - (r->head.len - r->line_at);
    size_t len = in->len < room ? in->len : room;
    const char *end = len ? memchr(in->at, '\n', len) : NULL;
    if (end != NULL)
        len = (size_t)(end - in->at) + 1;
    rv_buf_add(&r->head, in->at, len);
    if (r->head.failed != RV_OK)
        return reader_refuse(r, 503, no_memory);
    *in = (struct rv_str){in->at + len, in->len - len};
    *ret = (struct head_line){RV_STR_NONE, false};
    if (end == NULL)
        return len < room || reader_refuse(r, longer.status, longer.detail);
    const char *line = r->head.at + r->line_at;
    size_t line_len = r->head.len - r->line_at;
    if (line_len < 2 || line[line_len - 2] != '\r')
        return reader_refuse(r, 400, "a line ends with LF alone; end each line with CR LF");
    *ret = (struct head_line){{line, line_len - 2}, true};
    return true;
}

/* An empty line before the request line may stand there once (RFC 9112, 2.2). What does not begin
 * with a method is refused at its first byte. */
static bool start_feed(struct rv_http_reader *r, struct rv_str *in)
{
    char first = in->at[0];
    bool begun = r->head.len > 0;
    if (!begun && first != '\r') {
        if (!grammar_is(first, GRAMMAR_TOKEN))
            return reader_refuse(r, 400,
                                 "the request does not begin with a method; possible cause: a TLS "
                                 "connection to a port without TLS");
        (void)rv_buf_reserve(&r->head, HEAD_BYTES_FIRST);
        r->state = READER_LINE;
        return true;
    }
    if (r->blank_seen || (begun && first != '\n'))
        return reader_refuse(r, 400, "the request line is missing or ends with CR alone");
    rv_buf_add(&r->head, in->at, 1);
    if (r->head.failed != RV_OK)
        return reader_refuse(r, 503, no_memory);
    *in = (struct rv_str){in->at + 1, in->len - 1};
    if (begun) {
        r->blank_seen = true;
        rv_buf_reset(&r->head);
    }
    return true;
}

static bool head_feed(struct rv_http_reader *r, struct rv_str *in)
{
    static const struct rv_http_refusal long_target = {
        414, "the request line is too long; the maximum URL has 8000 bytes"};
    static const struct rv_http_refusal long_fields = {431, "the headers exceed 16 KiB in total"};
    struct head_line line;
    bool first = r->state == READER_LINE;
    size_t used = first ? 0 : r->fields_bytes + 2;
    if (used > RV_HTTP_FIELDS_BYTES_MAX)
        return reader_refuse(r, long_fields.status, long_fields.detail);
    size_t bytes_max = first ? READER_REQUEST_LINE_MAX : RV_HTTP_FIELDS_BYTES_MAX - used;
    if (!line_gather(r, in, bytes_max, first ? long_target : long_fields, &line))
        return false;
    if (!line.whole)
        return true;
    if (first ? !head_request_line(r, line.text) : !head_field(r, line.text))
        return false;
    if (!first)
        r->fields_bytes += line.text.len + 2;
    r->line_at = r->head.len;
    if (first)
        r->state = READER_FIELD;
    return true;
}

static bool body_feed(struct rv_http_reader *r, struct rv_str *in)
{
    rv_assert(r->rest > 0);
    rv_assert(in->len > 0);
    size_t len = in->len < r->rest ? in->len : (size_t)r->rest;
    r->piece = (struct rv_str){in->at, len};
    r->rest -= len;
    *in = (struct rv_str){in->at + len, in->len - len};
    if (r->rest == 0)
        r->state = r->state == READER_BODY ? READER_END : READER_CHUNK_END;
    return true;
}

/* Size, and extensions that nobody reads. */
static bool chunk_begin(struct rv_http_reader *r, struct rv_str line)
{
    uint64_t size = 0;
    size_t digits = 0;
    while (digits < line.len && rv_hex_digit(line.at[digits]) >= 0) {
        if (digits == RV_HTTP_CHUNK_DIGITS_MAX)
            return reader_refuse(r, 400, "a chunk's size has more than 16 digits");
        size = size * 16 + (uint64_t)rv_hex_digit(line.at[digits++]);
    }
    if (digits == 0)
        return reader_refuse(r, 400, "a chunk does not begin with its size in hex digits");
    struct rv_str rest = {line.at + digits, line.len - digits};
    if (!grammar_extensions(rest))
        return reader_refuse(r, 400, "the text after a chunk's size is not a chunk extension");
    r->extra_bytes += rest.len;
    if (r->extra_bytes > RV_HTTP_CHUNK_EXTRA_BYTES_MAX)
        return reader_refuse(r, 400, "the chunk extensions exceed 16 KiB in total");
    rv_assert(r->body_bytes <= r->body_max);
    if (size > (uint64_t)(r->body_max - r->body_bytes))
        return reader_refuse(r, 413, READER_BODY_LARGE);
    r->body_bytes += (int64_t)size;
    r->rest = size;
    r->state = size != 0 ? READER_CHUNK : READER_TRAILER;
    return true;
}

static bool trailer_line(struct rv_http_reader *r, struct rv_str line)
{
    static const char *const barred[] = {
        "authorization", "connection", "content-length",   "expect", "host",
        "trailer",       "te",         "transfer-encoding"};
    struct rv_http_field field;
    if (line.len == 0) {
        r->state = READER_END;
        return true;
    }
    if (!head_field_split(r, line, &field))
        return false;
    struct rv_str name = {r->head.at + field.name_at, field.name_len};
    for (size_t i = 0; i < sizeof barred / sizeof barred[0]; i++)
        if (grammar_same(name, barred[i]))
            return reader_refuse(
                r, 400,
                "a header for framing or authorization was sent as a trailer; send it as a header");
    r->extra_bytes += line.len + 2;
    return true;
}

/* The lines around chunks. They lie behind the head, and give up their place when they are read. */
static bool chunk_feed(struct rv_http_reader *r, struct rv_str *in)
{
    static const struct rv_http_refusal longer = {
        400, "the line with a chunk's size is longer than 256 bytes"};
    static const struct rv_http_refusal not_over = {
        400, "a chunk is longer than its declared size, or does not end with CR LF"};
    static const struct rv_http_refusal much = {
        400, "the trailers and chunk extensions exceed 16 KiB in total"};
    bool end = r->state == READER_CHUNK_END, size = r->state == READER_CHUNK_LINE;
    rv_assert(r->extra_bytes <= RV_HTTP_CHUNK_EXTRA_BYTES_MAX);
    size_t left = RV_HTTP_CHUNK_EXTRA_BYTES_MAX - r->extra_bytes;
    struct head_line line;
    if (!end && !size && left < 2)
        return reader_refuse(r, much.status, much.detail);
    size_t bytes_max = end ? 0 : size ? RV_HTTP_CHUNK_LINE_BYTES_MAX : left - 2;
    if (!line_gather(r, in, bytes_max, end ? not_over : size ? longer : much, &line))
        return false;
    if (!line.whole)
        return true;
    if (end && line.text.len > 0)
        return reader_refuse(r, not_over.status, not_over.detail);
    if (size ? !chunk_begin(r, line.text) : !end && !trailer_line(r, line.text))
        return false;
    if (end)
        r->state = READER_CHUNK_LINE;
    r->head.len = r->line_at;
    return true;
}

enum rv_http_event rv_http_reader_feed(struct rv_http_reader *r, struct rv_str input,
                                       size_t *ret_taken)
{
    struct rv_str in = input;
    enum rv_http_event event = RV_HTTP_MORE;
    bool good = true;
    while (good && event == RV_HTTP_MORE) {
        if (r->state == READER_HEAD_DONE) {
            head_give(r);
            event = RV_HTTP_HEAD;
        } else if (r->state == READER_END) {
            event = RV_HTTP_END;
        } else if (r->state == READER_REFUSED) {
            good = false;
        } else if (in.len == 0) {
            break;
        } else if (r->state == READER_START) {
            good = start_feed(r, &in);
        } else if (r->state == READER_LINE || r->state == READER_FIELD) {
            good = head_feed(r, &in);
        } else if (r->state == READER_BODY || r->state == READER_CHUNK) {
            good = body_feed(r, &in);
            event = RV_HTTP_BODY;
        } else {
            good = chunk_feed(r, &in);
        }
    }
    rv_assert(in.len <= input.len);
    *ret_taken = input.len - in.len;
    return good ? event : RV_HTTP_REFUSED;
}
