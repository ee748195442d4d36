/* The reader of requests beside llhttp 8, the parser of Node.js: the same bytes, drawn from pieces
 * of requests that are right and wrong. Where both take a request, they take the same one. Each
 * other difference is of a class that docs/http-oracle.md explains: the detail of a refusal of
 * ours, or the name of llhttp's error. */
#include "base/buf.h"
#include "base/prng.h"
#include "http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <llhttp.h>
#pragma GCC diagnostic pop

enum { MESSAGES = 60000, PRINTED = 6000, BODY_MAX = 1000, TOLD_MAX = 256 * 1024, REQUESTS_MAX = 8 };

/* A request as a parser took it; offsets in `text`. */
struct taken {
    size_t method, url, body, end; /* each begins where the one before ends */
    size_t begin;
    size_t fields;
};

struct reading {
    struct rv_buf text;
    struct taken requests[REQUESTS_MAX];
    size_t count;    /* complete ones */
    const char *why; /* the first refusal; NULL: none */
    bool over;       /* nothing after this one is read: the connection closes, or changes */
    size_t fields;   /* of the request under way ... */
    bool headed;     /* ... whose head is over */
    size_t marks[4]; /* begin, method's end, URL's end, body's begin */
};

static void begin(struct reading *reading)
{
    reading->marks[0] = reading->text.len;
    reading->fields = 0;
    reading->headed = false;
}

static void complete(struct reading *reading)
{
    struct taken *taken = &reading->requests[reading->count++];
    *taken = (struct taken){.begin = reading->marks[0],
                            .method = reading->marks[1],
                            .url = reading->marks[2],
                            .end = reading->text.len,
                            .fields = reading->fields};
}

/* ---- ours ---- */

static void ours_read(struct reading *reading, struct rv_str input)
{
    struct rv_http_reader reader;
    rv_http_reader_init(&reader, BODY_MAX);
    while (reading->count < REQUESTS_MAX && !reading->over) {
        size_t taken;
        enum rv_http_event event = rv_http_reader_feed(&reader, input, &taken);
        const struct rv_http_request *request = &reader.request;
        input = (struct rv_str){input.at + taken, input.len - taken};
        if (event == RV_HTTP_MORE)
            break;
        if (event == RV_HTTP_REFUSED) {
            reading->why = reader.refusal.detail;
            break;
        }
        if (event == RV_HTTP_HEAD) {
            begin(reading);
            rv_buf_add_str(&reading->text, request->method);
            reading->marks[1] = reading->text.len;
            rv_buf_add_str(&reading->text, request->target);
            reading->marks[2] = reading->text.len;
            reading->fields = request->fields_count;
        }
        if (event == RV_HTTP_BODY)
            rv_buf_add_str(&reading->text, reader.piece);
        if (event == RV_HTTP_END) {
            complete(reading);
            reading->over = request->close;
            rv_http_reader_next(&reader);
        }
    }
    rv_http_reader_done(&reader);
}

static void ours_read_on(struct reading *reading, struct rv_str input)
{
    struct rv_buf longer;
    rv_buf_init(&longer, TOLD_MAX);
    rv_buf_add_str(&longer, input);
    rv_buf_lit(&longer, "\r\n");
    rv_buf_reset(&reading->text);
    *reading = (struct reading){.text = reading->text};
    ours_read(reading, rv_buf_str(&longer));
    rv_buf_done(&longer);
}

/* ---- llhttp ---- */

static struct reading *reading_of(const llhttp_t *parser)
{
    return parser->data;
}

static int on_begin(llhttp_t *parser)
{
    struct reading *reading = reading_of(parser);
    if (reading->count == REQUESTS_MAX)
        return HPE_PAUSED;
    begin(reading);
    return 0;
}

static int on_bytes(llhttp_t *parser, const char *at, size_t len)
{
    rv_buf_add(&reading_of(parser)->text, at, len);
    return 0;
}

static int on_method_end(llhttp_t *parser)
{
    reading_of(parser)->marks[1] = reading_of(parser)->text.len;
    return 0;
}

static int on_url_end(llhttp_t *parser)
{
    reading_of(parser)->marks[2] = reading_of(parser)->text.len;
    return 0;
}

static int on_field(llhttp_t *parser)
{
    if (!reading_of(parser)->headed)
        reading_of(parser)->fields++;
    return 0;
}

/* What comes later are trailers, which ours reads and does not give. */
static int on_headers_end(llhttp_t *parser)
{
    reading_of(parser)->headed = true;
    return 0;
}

static int on_complete(llhttp_t *parser)
{
    complete(reading_of(parser));
    if (llhttp_should_keep_alive(parser))
        return 0;
    reading_of(parser)->over = true;
    return HPE_PAUSED;
}

static void theirs_read(struct reading *reading, struct rv_str input)
{
    llhttp_settings_t settings;
    llhttp_t parser;
    llhttp_settings_init(&settings);
    settings.on_message_begin = on_begin;
    settings.on_method = settings.on_url = settings.on_body = on_bytes;
    settings.on_method_complete = on_method_end;
    settings.on_url_complete = on_url_end;
    settings.on_header_value_complete = on_field;
    settings.on_headers_complete = on_headers_end;
    settings.on_message_complete = on_complete;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = reading;
    llhttp_errno_t err = llhttp_execute(&parser, input.at, input.len);
    if (err == HPE_PAUSED_UPGRADE)
        reading->over = true;
    else if (err != HPE_OK && err != HPE_PAUSED)
        reading->why = llhttp_errno_name(err);
}

/* ---- the messages ---- */

#define LIST(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static const char *const lines[] = LIST(
    "GET / HTTP/1.1\r\n", "GET /a?b=1 HTTP/1.1\r\n", "POST /v1/tasks HTTP/1.1\r\n",
    "PUT /x HTTP/1.1\r\n", "HEAD / HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n",
    "DELETE /x HTTP/1.1\r\n", "GET http://a/x HTTP/1.1\r\n", "GET / HTTP/1.0\r\n",
    "GET / HTTP/1.2\r\n", "GET / HTTP/2.0\r\n", "GET / HTTP/0.9\r\n", "GET /\r\n",
    "GET / HTTP/1.1\n", "GET  / HTTP/1.1\r\n", "GET / HTTP/1.1 \r\n", " GET / HTTP/1.1\r\n",
    "\r\nGET / HTTP/1.1\r\n", "\r\n\r\nGET / HTTP/1.1\r\n", "get / HTTP/1.1\r\n",
    "FOO / HTTP/1.1\r\n", "CONNECT a:1 HTTP/1.1\r\n", "GET a HTTP/1.1\r\n", "GET /\t HTTP/1.1\r\n",
    "GET /#a HTTP/1.1\r\n", "GET /%4 HTTP/1.1\r\n", "GET /\x80 HTTP/1.1\r\n",
    "GET http://b/x HTTP/1.1\r\n", "GET /\x01 HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n",
    "GET / http/1.1\r\n", "GET\t/ HTTP/1.1\r\n");

static const char *const fields[] = LIST(
    "Host: a\r\n", "Accept: */*\r\n", "X: y\r\n", "X:y\r\n", "X:\r\n", "X: \t y \t\r\n",
    "Content-Length: 3\r\n", "Content-Length: 0\r\n", "content-length:3\r\n",
    "Content-Length: 3\r\nContent-Length: 3\r\n", "Content-Length: 3, 3\r\n",
    "Content-Length: +3\r\n", "Content-Length: -1\r\n", "Content-Length: 0x3\r\n",
    "Content-Length: 3 \r\n", "Content-Length: 3 3\r\n", "Content-Length:\r\n",
    "Content-Length:\r\n 3\r\n", "Content-Length: 0\r\n 3\r\n",
    "Content-Length: 99999999999999999999\r\n", "Content-Length: 5000\r\n",
    "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: CHUNKED\r\n",
    "Transfer-Encoding:\r\n chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding: xchunked\r\n",
    "Transfer-Encoding: identity\r\n", "Transfer-Encoding:\r\n", "Transfer-Encoding : chunked\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked;a\r\n", "Connection: close\r\n", "Connection: keep-alive\r\n",
    "Connection: Upgrade\r\nUpgrade: x\r\n", "Expect: 100-continue\r\n", "Expect: x\r\n",
    "Host: b\r\n", "Host:\r\n", "Host: a b\r\n", "X : y\r\n", ": y\r\n", " X: y\r\n",
    "X: y\r\n z\r\n", "X: y\n", "X: y\r", "X\r\n", "X: \x01\r\n", "X: \x7f\r\n", "X: \x80\r\n",
    "X(: y\r\n", "X\x80: y\r\n", "X: a\rb\r\n");

static const char *const ends[] = LIST("\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r\r\n", "");

static const char *const bodies[] = LIST(
    "", "abc", "abc", "3\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", "3;a=b\r\nabc\r\n0\r\n\r\n",
    "3;a=\"b c\"\r\nabc\r\n0\r\n\r\n", "3;\r\nabc\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n",
    "3;a\nabc\r\n0\r\n\r\n", "3\nabc\n0\n\n", "03\r\nabc\r\n00\r\n\r\n", "3\r\nabc0\r\n\r\n",
    "3\r\nabcd\r\n0\r\n\r\n", "g\r\n", "-1\r\n", "0x3\r\nabc\r\n0\r\n\r\n",
    "3\r\nabc\r\n0\r\nX: y\r\n\r\n", "3\r\nabc\r\n0\r\nX : y\r\n\r\n",
    "3\r\nabc\r\n0\r\n X: y\r\n\r\n", "3\r\nabc\r\n0\r\nContent-Length: 3\r\n\r\n",
    "00000000000000000000003\r\nabc\r\n0\r\n\r\n", "ffffffffffffffff1\r\nabc",
    "3\r\nabc\n0\r\n\r\n", "3\r\nabc\r\n0\r\n\n", "3\r\nabc\r\n0\r\n\r");

static const char *draw(struct rv_prng *prng, const char *const *list)
{
    size_t count = 0;
    while (list[count] != NULL)
        count++;
    return list[rv_prng_below(prng, count)];
}

static void message_draw(struct rv_prng *prng, struct rv_buf *message)
{
    size_t requests = 1 + rv_prng_below(prng, 3);
    rv_buf_reset(message);
    for (size_t i = 0; i < requests; i++) {
        bool plain = rv_prng_below(prng, 3) != 0;
        rv_buf_add_str(message, rv_str_of(plain ? "POST /a HTTP/1.1\r\n" : draw(prng, lines)));
        if (rv_prng_below(prng, 12) != 0)
            rv_buf_lit(message, "Host: a\r\n");
        for (size_t n = rv_prng_below(prng, 4); n > 0; n--)
            rv_buf_add_str(message, rv_str_of(draw(prng, fields)));
        rv_buf_add_str(message, rv_str_of(draw(prng, ends)));
        rv_buf_add_str(message, rv_str_of(draw(prng, bodies)));
    }
    /* Of some, one byte is another one. */
    static const char odd[] = "\r\n \t\0:;,x0\x7f\x80";
    if (message->len > 0 && rv_prng_below(prng, 4) == 0)
        message->at[rv_prng_below(prng, message->len)] = odd[rv_prng_below(prng, sizeof odd - 1)];
}

/* ---- what they say ---- */

static char *page; /* owned */

static void page_read(void)
{
    const char *root = getenv("REEVE_SOURCE");
    char path[512];
    snprintf(path, sizeof path, "%s/docs/http-oracle.md", root != NULL ? root : ".");
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail_msg("%s cannot be read", path);
    page = calloc(1, 64 * 1024);
    assert_non_null(page);
    size_t len = fread(page, 1, 64 * 1024 - 1, file);
    assert_true(len > 0);
    fclose(file);
}

/* Classes of differences that the page does not explain, each told once with a message. */
enum { UNEXPLAINED_MAX = 64 };
static char unexplained[UNEXPLAINED_MAX][200];
static size_t unexplained_count;

/* The page has a row for each class of differences. */
static void expect_explained(const char *who, const char *why, struct rv_str message)
{
    char row[200];
    snprintf(row, sizeof row, "| %s | %s |", who, why);
    bool told = strstr(page, row) != NULL;
    for (size_t i = 0; i < unexplained_count; i++)
        told |= strcmp(unexplained[i], row) == 0;
    if (told || unexplained_count == UNEXPLAINED_MAX)
        return;
    memcpy(unexplained[unexplained_count++], row, sizeof row);
    printf("# docs/http-oracle.md has no row \"%s\", of: ", row);
    for (size_t i = 0; i < message.len; i++)
        printf(message.at[i] >= ' ' && message.at[i] < 0x7F ? "%c" : "\\x%02x",
               (unsigned)(unsigned char)message.at[i]);
    printf("\n");
}

static struct rv_str piece(const struct reading *reading, size_t from, size_t to)
{
    return (struct rv_str){reading->text.at + from, to - from};
}

static void expect_same(const struct reading *ours, const struct reading *theirs, size_t i,
                        struct rv_str message)
{
    const struct taken *a = &ours->requests[i], *b = &theirs->requests[i];
    struct rv_str target = piece(ours, a->method, a->url), url = piece(theirs, b->method, b->url);
    /* Of an absolute form ours gives the path. */
    bool same_end = url.len >= target.len &&
                    memcmp(url.at + url.len - target.len, target.at, target.len) == 0;
    bool same = rv_str_eq(piece(ours, a->begin, a->method), piece(theirs, b->begin, b->method)) &&
                same_end && (url.len == target.len || url.at[0] == 'h') &&
                rv_str_eq(piece(ours, a->url, a->end), piece(theirs, b->url, b->end)) &&
                a->fields == b->fields;
    if (!same)
        fail_msg("request %zu is read otherwise (%zu and %zu headers):\n%.*s\nours:\n%.*s\n"
                 "llhttp:\n%.*s",
                 i, a->fields, b->fields, RV_STR_FMT(message),
                 RV_STR_FMT(piece(ours, a->begin, a->end)),
                 RV_STR_FMT(piece(theirs, b->begin, b->end)));
}

/* Of several requests, those before the first difference are the same. */
static void compare(struct rv_str message, struct reading *ours, struct reading *theirs)
{
    ours_read(ours, message);
    theirs_read(theirs, message);
    assert_int_equal(ours->text.failed, RV_OK);
    assert_int_equal(theirs->text.failed, RV_OK);
    size_t both = ours->count < theirs->count ? ours->count : theirs->count;
    for (size_t i = 0; i < both; i++)
        expect_same(ours, theirs, i, message);
    if (ours->count < theirs->count) {
        if (ours->why == NULL && !ours->over) /* it judges a line when it has its end */
            ours_read_on(ours, message);
        if (ours->why == NULL && !ours->over)
            fail_msg("llhttp takes more requests, and ours waits:\n%.*s", RV_STR_FMT(message));
        expect_explained("llhttp", ours->why != NULL ? ours->why : "after the close", message);
    } else if (ours->count > theirs->count && !theirs->over) {
        if (theirs->why == NULL)
            fail_msg("ours takes more requests, and llhttp waits:\n%.*s", RV_STR_FMT(message));
        expect_explained("Reeve", theirs->why, message);
    }
}

static void both_take_the_same_requests(void **state)
{
    (void)state;
    struct rv_prng prng;
    struct rv_buf message;
    struct reading ours = {0}, theirs = {0};
    size_t taken = 0, refused = 0;
    page_read();
    rv_prng_init(&prng, 9112);
    rv_buf_init(&message, TOLD_MAX);
    rv_buf_init(&ours.text, TOLD_MAX);
    rv_buf_init(&theirs.text, TOLD_MAX);
    for (int i = 0; i < MESSAGES; i++) {
        message_draw(&prng, &message);
        rv_buf_reset(&ours.text);
        rv_buf_reset(&theirs.text);
        ours = (struct reading){.text = ours.text};
        theirs = (struct reading){.text = theirs.text};
        compare(rv_buf_str(&message), &ours, &theirs);
        taken += ours.count > 0 && theirs.count > 0;
        refused += ours.why != NULL && theirs.why != NULL;
    }
    assert_int_equal(unexplained_count, 0);
    /* The messages show both. */
    assert_true(taken > MESSAGES / 10);
    assert_true(refused > MESSAGES / 10);
    rv_buf_done(&message);
    rv_buf_done(&ours.text);
    rv_buf_done(&theirs.text);
    free(page);
}

/* ---- for another oracle ---- */

static void hex_print(struct rv_str bytes, char end)
{
    for (size_t i = 0; i < bytes.len; i++)
        printf("%02x", (unsigned)(unsigned char)bytes.at[i]);
    putchar(end);
}

/* A line each: the message, why no more of it is taken and whether the connection closes, then the
 * requests: method, URL, body and number of headers. All texts are in hex. */
static void print_drawn(void)
{
    struct rv_prng prng;
    struct rv_buf message;
    struct reading ours = {0};
    rv_prng_init(&prng, 9110);
    rv_buf_init(&message, TOLD_MAX);
    rv_buf_init(&ours.text, TOLD_MAX);
    for (int i = 0; i < PRINTED; i++) {
        message_draw(&prng, &message);
        rv_buf_reset(&ours.text);
        ours = (struct reading){.text = ours.text};
        ours_read(&ours, rv_buf_str(&message));
        size_t taken = ours.count;
        const char *why = ours.why;
        hex_print(rv_buf_str(&message), ' ');
        if (why == NULL && !ours.over) { /* it judges a line when it has its end */
            ours_read_on(&ours, rv_buf_str(&message));
            why = ours.why;
        }
        hex_print(rv_str_of(why != NULL ? why : ""), ' ');
        printf("%d", ours.over);
        for (size_t n = 0; n < taken; n++) {
            const struct taken *one = &ours.requests[n];
            putchar(' ');
            hex_print(piece(&ours, one->begin, one->method), ',');
            hex_print(piece(&ours, one->method, one->url), ',');
            hex_print(piece(&ours, one->url, one->end), ',');
            printf("%zu", one->fields);
        }
        putchar('\n');
    }
    rv_buf_done(&message);
    rv_buf_done(&ours.text);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        print_drawn();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_take_the_same_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
