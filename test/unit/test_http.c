/* The reader of requests: what it takes and refuses (RFC 9112), wherever the input is cut; and the
 * writer of answers. */
#include "base/buf.h"
#include "base/prng.h"
#include "http/grammar.h"
#include "http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BODY_MAX = 1000, TOLD_MAX = 64 * 1024 };

/* What a reader tells of an input, as text: heads, bodies (their pieces joined), ends, refusal. */
struct told {
    struct rv_buf text;
    struct rv_http_reader reader;
};

static void told_new(struct told *told)
{
    rv_buf_init(&told->text, TOLD_MAX);
    rv_http_reader_init(&told->reader, BODY_MAX);
}

static void told_done(struct told *told)
{
    rv_buf_done(&told->text);
    rv_http_reader_done(&told->reader);
}

static void head_tell(struct rv_buf *text, const struct rv_http_request *request)
{
    rv_buf_printf(text, "%.*s %.*s 1.%u host=%.*s", RV_STR_FMT(request->method),
                  RV_STR_FMT(request->target), request->minor, RV_STR_FMT(request->host));
    if (request->chunked)
        rv_buf_lit(text, " chunked");
    if (request->length > 0)
        rv_buf_printf(text, " length=%lld", (long long)request->length);
    if (request->close)
        rv_buf_lit(text, " close");
    if (request->expects)
        rv_buf_lit(text, " expects");
    rv_buf_printf(text, " fields=%zu\n", request->fields_count);
}

/* Gives a piece of input, and whatever it leads to. */
static void feed(struct told *told, struct rv_str piece)
{
    struct rv_http_reader *reader = &told->reader;
    for (;;) {
        size_t taken = 0;
        enum rv_http_event event = rv_http_reader_feed(reader, piece, &taken);
        assert_true(taken <= piece.len);
        piece = (struct rv_str){piece.at + taken, piece.len - taken};
        if (event == RV_HTTP_MORE) {
            assert_int_equal(piece.len, 0);
            return;
        }
        if (event == RV_HTTP_HEAD)
            head_tell(&told->text, &reader->request);
        if (event == RV_HTTP_BODY)
            rv_buf_add_str(&told->text, reader->piece);
        if (event == RV_HTTP_END) {
            rv_buf_lit(&told->text, "|\n");
            rv_http_reader_next(reader);
        }
        if (event == RV_HTTP_REFUSED) {
            bool again = told->text.len > 0 && told->text.at[told->text.len - 1] == '!';
            if (!again)
                rv_buf_printf(&told->text, "%d %s!", reader->refusal.status,
                              reader->refusal.detail);
            return;
        }
    }
}

static void feed_cut(struct told *told, struct rv_str input, const size_t *cuts, size_t count)
{
    size_t at = 0;
    rv_buf_reset(&told->text);
    rv_http_reader_done(&told->reader);
    rv_http_reader_init(&told->reader, BODY_MAX);
    for (size_t i = 0; i < count; i++) {
        feed(told, (struct rv_str){input.at + at, cuts[i] - at});
        at = cuts[i];
    }
    feed(told, (struct rv_str){input.at + at, input.len - at});
}

/* Cut in two at every place; up to 120 bytes also in three, longer ones at 500 drawn pairs. The
 * input is copied, so that a read beyond a piece is seen. */
static void expect_cut(struct rv_str input, const char *wanted)
{
    enum { SHORT = 120, DRAWN = 500 };
    struct told told;
    struct rv_prng prng;
    told_new(&told);
    rv_prng_init(&prng, input.len);
    feed_cut(&told, input, NULL, 0);
    rv_buf_add_char(&told.text, '\0');
    if (strcmp(told.text.at, wanted) != 0)
        fail_msg("%.*s\ngives\n%s\nwanted\n%s", RV_STR_FMT(input), told.text.at, wanted);
    size_t wanted_len = strlen(wanted);
    for (size_t i = 1; i < input.len; i++) {
        feed_cut(&told, input, &i, 1);
        assert_int_equal(told.text.len, wanted_len);
        assert_memory_equal(told.text.at, wanted, wanted_len);
        for (size_t j = i + 1; input.len <= SHORT && j < input.len; j++) {
            feed_cut(&told, input, (size_t[]){i, j}, 2);
            assert_int_equal(told.text.len, wanted_len);
            assert_memory_equal(told.text.at, wanted, wanted_len);
        }
    }
    for (int n = 0; input.len > SHORT && n < DRAWN; n++) {
        size_t i = 1 + rv_prng_below(&prng, input.len - 2);
        size_t j = i + rv_prng_below(&prng, input.len - i);
        feed_cut(&told, input, (size_t[]){i, j}, 2);
        assert_int_equal(told.text.len, wanted_len);
        assert_memory_equal(told.text.at, wanted, wanted_len);
    }
    told_done(&told);
}

#define HOST "Host: a\r\n"

struct row {
    const char *input;
    const char *told;
};

static void expect_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_cut(rv_str_of(rows[i].input), rows[i].told);
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

static void requests_are_read(void **state)
{
    static const struct row rows[] = {
        {"GET / HTTP/1.1\r\n" HOST "\r\n", "GET / 1.1 host=a fields=1\n|\n"},
        {"\r\nGET /v1/a?b=%20&c HTTP/1.1\r\nhost:\t[::1]:80 \r\nX:\r\n\r\n",
         "GET /v1/a?b=%20&c 1.1 host=[::1]:80 fields=2\n|\n"},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc",
         "POST / 1.1 host=a length=3 fields=2\nabc|\n"},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "POST / 1.1 host=a fields=2\n|\n"},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"
         "2\r\nab\r\n0000000000000001;x;y=1; z = \"a\\\"b\"\r\nc\r\n0\r\nX-Sum: 1\r\n\r\n",
         "POST / 1.1 host=a chunked fields=2\nabc|\n"},
        {"GET /1 HTTP/1.1\r\n" HOST "\r\nGET /2 HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n",
         "GET /1 1.1 host=a fields=1\n|\nGET /2 1.1 host=a close fields=2\n|\n"},
        {"GET / HTTP/1.0\r\n\r\n", "GET / 1.0 host= close fields=0\n|\n"},
        {"GET / HTTP/1.9\r\n" HOST "\r\n", "GET / 1.1 host=a fields=1\n|\n"},
        {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "OPTIONS * 1.1 host=a fields=1\n|\n"},
        {"GET http://A:1/x?y HTTP/1.1\r\nHost: a:1\r\n\r\n", "GET /x?y 1.1 host=A:1 fields=1\n|\n"},
        {"PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
         "PUT / 1.1 host=a length=1 expects fields=3\nx|\n"},
        {"PUT / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n",
         "PUT / 1.1 host=a fields=2\n|\n"},
        {"GET / HTTP/1.1\r\n" HOST "X: \x80\xff\t!\r\n\r\n", "GET / 1.1 host=a fields=2\n|\n"},
        {"GET /?a={b}|c[d] HTTP/1.1\r\n" HOST "\r\n", "GET /?a={b}|c[d] 1.1 host=a fields=1\n|\n"},
    };
    (void)state;
    expect_rows(rows, COUNT(rows));
}

#define LINE_LF "400 a line ends with LF alone; end each line with CR LF!"
#define NO_METHOD                                                                                  \
    "400 the request does not begin with a method; possible cause: a TLS connection to a port "    \
    "without TLS!"
#define NO_START "400 the request line is missing or ends with CR alone!"
#define NO_LINE "400 the request line does not consist of a method, a URL and a version!"
#define NO_VERSION "400 the request line has no HTTP version!"
#define BAD_VERSION "400 the request line does not end with an HTTP version!"
#define BAD_URL                                                                                    \
    "400 the URL contains a character that must be percent-encoded, or a percent sign "            \
    "without two hex digits!"

static void request_lines_that_are_refused(void **state)
{
    static const struct row rows[] = {
        {"\r\n\r\nGET / HTTP/1.1\r\n", NO_START},
        {"\rGET / HTTP/1.1\r\n", NO_START},
        {"\nGET / HTTP/1.1\r\n", NO_METHOD},
        {" GET / HTTP/1.1\r\n", NO_METHOD},
        {"\x16\x03\x01", NO_METHOD},
        {"GET\r\n", NO_LINE},
        {"GET / \r\n", BAD_VERSION},
        {"GET /\r\n", NO_VERSION},
        {"G\x01T / HTTP/1.1\r\n", NO_LINE},
        {"GET  / HTTP/1.1\r\n", BAD_VERSION},
        {"GET /  HTTP/1.1\r\n", BAD_VERSION},
        {"GET\t/ HTTP/1.1\r\n", NO_LINE},
        {"GET / HTTP/1.1 \r\n", BAD_VERSION},
        {"GET / HTTP/1.1\n", LINE_LF},
        {"GET / http/1.1\r\n", BAD_VERSION},
        {"GET / HTTP/11.1\r\n", BAD_VERSION},
        {"GET / HTTP/1.x\r\n", BAD_VERSION},
        {"GET / HTTP/2.0\r\n", "505 this server supports only HTTP/1.0 and HTTP/1.1!"},
        {"PRI * HTTP/2.0\r\n", "505 this server supports only HTTP/1.0 and HTTP/1.1!"},
        {"ABCDEFGHIJKLMNOPQ / HTTP/1.1\r\n", "501 the method is unknown!"},
        {"CONNECT a:1 HTTP/1.1\r\n",
         "501 this server is not a proxy and does not support CONNECT!"},
        {"GET * HTTP/1.1\r\n", "400 the target * is allowed only with OPTIONS!"},
        {"GET a HTTP/1.1\r\n", "400 the target is neither a path nor an http or https URL!"},
        {"GET ftp://a/ HTTP/1.1\r\n", "400 the target is neither a path nor an http or https URL!"},
        {"GET http:///x HTTP/1.1\r\n", "400 the target has no valid host!"},
        {"GET http://u@a/ HTTP/1.1\r\n", "400 the target has no valid host!"},
        {"GET http://a HTTP/1.1\r\n", "400 the target has no path; write a slash after the host!"},
        {"GET /a#b HTTP/1.1\r\n", BAD_URL},
        {"GET /%4 HTTP/1.1\r\n", BAD_URL},
        {"GET /%zz HTTP/1.1\r\n", BAD_URL},
        {"GET /{a} HTTP/1.1\r\n", BAD_URL},
        {"GET /\x80 HTTP/1.1\r\n", BAD_URL},
        {"GET /?\"a HTTP/1.1\r\n", BAD_URL},
        {"GET /\r/ HTTP/1.1\r\n", BAD_URL},
    };
    (void)state;
    expect_rows(rows, COUNT(rows));
}

#define BAD_NAME                                                                                   \
    "400 a header's name is empty, or contains a space or another character that is not allowed!"
#define BAD_HOST "400 Host is not a host name or address, with or without a port!"
#define BAD_LENGTH "400 Content-Length is not a decimal number!"
#define BOTH                                                                                       \
    "400 Transfer-Encoding is given together with Content-Length, or in an HTTP/1.0 request!"
#define ONLY_CHUNKED "501 the only supported Transfer-Encoding is chunked!"
#define NOT_LAST "400 Transfer-Encoding is empty, or its last coding is not chunked!"
#define LARGE "413 the body is larger than the server accepts; send less data per request!"

static void headers_that_are_refused(void **state)
{
    static const struct row rows[] = {
        {"\r\n", "400 Host is missing!"},
        {"Host:\r\n\r\n", BAD_HOST},
        {"Host: a b\r\n\r\n", BAD_HOST},
        {"Host: a:b\r\n\r\n", BAD_HOST},
        {"Host: a:65536\r\n\r\n", BAD_HOST},
        {"Host: a/b\r\n\r\n", BAD_HOST},
        {"Host: u@a\r\n\r\n", BAD_HOST},
        {"Host: [::1\r\n\r\n", BAD_HOST},
        {"Host: [::1]x\r\n\r\n", BAD_HOST},
        {"Host: []\r\n\r\n", BAD_HOST},
        {HOST HOST "\r\n", "400 Host is given twice!"},
        {HOST "X: y\n\r\n", LINE_LF},
        {HOST "X: y\r\n\n", LINE_LF},
        {HOST "X: y\r\n z\r\n\r\n", "400 a header line is folded; send each header in one line!"},
        {HOST "Content-Length:\r\n 97\r\n\r\n", "400 Content-Length is empty!"},
        {HOST "Content-Length: 0\r\n 97\r\n\r\n",
         "400 a header line is folded; send each header in one line!"},
        {HOST "Transfer-Encoding:\r\n chunked\r\n\r\n", NOT_LAST},
        {HOST "X y\r\n\r\n", "400 a header line has no colon!"},
        {HOST ": y\r\n\r\n", BAD_NAME},
        {HOST "X : y\r\n\r\n", BAD_NAME},
        {HOST "X\t: y\r\n\r\n", BAD_NAME},
        {HOST "X(: y\r\n\r\n", BAD_NAME},
        {HOST "\x80: y\r\n\r\n", BAD_NAME},
        {HOST "X: \x01\r\n\r\n", "400 a header's value contains a control character!"},
        {HOST "X: a\rb\r\n\r\n", "400 a header's value contains a control character!"},
        {HOST "X: \x7f\r\n\r\n", "400 a header's value contains a control character!"},
        {HOST "Content-Length: \r\n\r\n", "400 Content-Length is empty!"},
        {HOST "Content-Length: -1\r\n\r\n", BAD_LENGTH},
        {HOST "Content-Length: +1\r\n\r\n", BAD_LENGTH},
        {HOST "Content-Length: 0x1\r\n\r\n", BAD_LENGTH},
        {HOST "Content-Length: 1, 1\r\n\r\n", BAD_LENGTH},
        {HOST "Content-Length: 1 1\r\n\r\n", BAD_LENGTH},
        {HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
         "400 Content-Length is given twice!"},
        {HOST "Content-Length: 1001\r\n\r\n", LARGE},
        {HOST "Content-Length: 18446744073709551617\r\n\r\n", LARGE},
        {HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", BOTH},
        {HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", BOTH},
        {HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", ONLY_CHUNKED},
        {HOST "Transfer-Encoding: identity\r\n\r\n", ONLY_CHUNKED},
        {HOST "Transfer-Encoding: xchunked\r\n\r\n", ONLY_CHUNKED},
        {HOST "Transfer-Encoding: chunked, gzip\r\n\r\n", NOT_LAST},
        {HOST "Transfer-Encoding: chunked, chunked\r\n\r\n", NOT_LAST},
        {HOST "Transfer-Encoding: ,chunked\r\n\r\n", NOT_LAST},
        {HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
         "400 Transfer-Encoding is given twice!"},
        {HOST "Connection: a b\r\n\r\n", "400 Connection is not a list of names!"},
        {HOST "Expect: 200-ok\r\n\r\n", "417 the only supported value of Expect is 100-continue!"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char input[256];
        snprintf(input, sizeof input, "POST / HTTP/1.1\r\n%s", rows[i].input);
        expect_cut(rv_str_of(input), rows[i].told);
    }
    expect_cut(RV_STR("GET http://b/ HTTP/1.1\r\n" HOST "\r\n"),
               "400 the URL and the header Host specify different hosts!");
    expect_cut(RV_STR("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), BOTH);
    expect_cut(RV_STR("GET /\0 HTTP/1.1\r\n" HOST "\r\n"), BAD_URL);
    expect_cut(RV_STR("GET / HTTP/1.1\r\n" HOST "X: \0\r\n\r\n"),
               "400 a header's value contains a control character!");
}

#define NOT_OVER "400 a chunk is longer than its declared size, or does not end with CR LF!"
#define NO_SIZE "400 a chunk does not begin with its size in hex digits!"
#define NO_EXTENSION "400 the text after a chunk's size is not a chunk extension!"

static void chunks_that_are_refused(void **state)
{
    static const struct row rows[] = {
        {"\r\n", NO_SIZE},
        {"g\r\n", NO_SIZE},
        {"-1\r\n", NO_SIZE},
        {" 1\r\n", NO_SIZE},
        {"1 \r\n", NO_EXTENSION},
        {"0x1\r\n", NO_EXTENSION},
        {"1;\r\n", NO_EXTENSION},
        {"1;a=\r\n", NO_EXTENSION},
        {"1;a=\"b\r\n", NO_EXTENSION},
        {"1;a\nb\r\n", LINE_LF},
        {"1\n", LINE_LF},
        {"1\rx\r\n", NO_EXTENSION},
        {"00000000000000001\r\n", "400 a chunk's size has more than 16 digits!"},
        {"ffffffffffffffff\r\n", LARGE},
        {"3e9\r\n", LARGE},
        {"1\r\nab\r\n", "a" NOT_OVER},
        {"1\r\na\n", "a" LINE_LF},
        {"1\r\na\r\n\r\n", "a" NO_SIZE},
        {"0\r\nX : 1\r\n\r\n", BAD_NAME},
        {"0\r\n y\r\n\r\n", "400 a header line is folded; send each header in one line!"},
        {"0\r\nContent-Length: 1\r\n\r\n",
         "400 a header for framing or authorization was sent as a trailer; send it as a header!"},
        {"0\r\nX: 1\n", LINE_LF},
    };
    static const char head[] = "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n";
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char input[256], told[256];
        snprintf(input, sizeof input, "%s%s", head, rows[i].input);
        snprintf(told, sizeof told, "POST / 1.1 host=a chunked fields=2\n%s", rows[i].told);
        expect_cut(rv_str_of(input), told);
    }
}

/* `text` so many times, between two others. */
static void repeated(struct rv_buf *buf, const char *before, const char *text, size_t times,
                     const char *after)
{
    rv_buf_reset(buf);
    rv_buf_add_str(buf, rv_str_of(before));
    for (size_t i = 0; i < times; i++)
        rv_buf_add_str(buf, rv_str_of(text));
    rv_buf_add_str(buf, rv_str_of(after));
    assert_int_equal(buf->failed, RV_OK);
}

static void expect_sized(const struct rv_buf *input, const char *end)
{
    struct told told;
    told_new(&told);
    feed(&told, rv_buf_str(input));
    rv_buf_add_char(&told.text, '\0');
    size_t len = strlen(told.text.at), wanted = strlen(end);
    assert_true(len >= wanted);
    assert_string_equal(told.text.at + len - wanted, end);
    assert_true(told.reader.head.room <= 32 * 1024);
    told_done(&told);
}

#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

/* What comes without an end is refused at its limit, and what is just within it is read. */
static void sizes_are_bounded(void **state)
{
    struct rv_buf in;
    (void)state;
    rv_buf_init(&in, 1024 * 1024);
    repeated(&in, "GET /", "a", 7999, " HTTP/1.1\r\n" HOST "\r\n");
    expect_sized(&in, " 1.1 host=a fields=1\n|\n");
    repeated(&in, "GET /", "a", 8000, " HTTP/1.1\r\n" HOST "\r\n");
    expect_sized(&in, "414 the URL is longer than 8000 bytes!");
    repeated(&in, "GET /", "a", 100000, "");
    expect_sized(&in, "414 the request line is too long; the maximum URL has 8000 bytes!");
    repeated(&in, "GET / HTTP/1.1\r\n" HOST, "X: y\r\n", 99, "\r\n");
    expect_sized(&in, "GET / 1.1 host=a fields=100\n|\n");
    repeated(&in, "GET / HTTP/1.1\r\n" HOST, "X: y\r\n", 100, "\r\n");
    expect_sized(&in, "431 the request has more than 100 headers!");
    repeated(&in, "GET / HTTP/1.1\r\n" HOST "X: ", "y", 16384 - 9 - 5 - 2, "\r\n\r\n");
    expect_sized(&in, "GET / 1.1 host=a fields=2\n|\n");
    repeated(&in, "GET / HTTP/1.1\r\n" HOST "X: ", "y", 16384 - 9 - 5 - 1, "\r\n\r\n");
    expect_sized(&in, "431 the headers exceed 16 KiB in total!");
    repeated(&in, "GET / HTTP/1.1\r\n" HOST "X: ", "y", 100000, "");
    expect_sized(&in, "431 the headers exceed 16 KiB in total!");
    repeated(&in, CHUNKED, "0", 20000, "");
    expect_sized(&in, "400 the line with a chunk's size is longer than 256 bytes!");
    repeated(&in, CHUNKED "1;x=", "y", 20000, "");
    expect_sized(&in, "400 the line with a chunk's size is longer than 256 bytes!");
    repeated(&in, CHUNKED, "1;abcdefghijklmnopqrstuvwxyz0123456789\r\nx\r\n", 900, "0\r\n\r\n");
    expect_sized(&in, "400 the chunk extensions exceed 16 KiB in total!");
    repeated(&in, CHUNKED "0\r\n", "Abcdefghijklmnop: qrstuvwxyz\r\n", 900, "\r\n");
    expect_sized(&in, "400 the trailers and chunk extensions exceed 16 KiB in total!");
    repeated(&in, CHUNKED, "1\r\nx\r\n", 1000, "0\r\n\r\n");
    expect_sized(&in, "x|\n");
    repeated(&in, CHUNKED, "1\r\nx\r\n", 1001, "0\r\n\r\n");
    expect_sized(&in, LARGE);
    rv_buf_done(&in);
}

static void headers_are_found(void **state)
{
    struct rv_http_reader reader;
    size_t taken, count = 9;
    (void)state;
    rv_http_reader_init(&reader, 0);
    assert_true(rv_http_reader_idle(&reader));
    struct rv_str in = RV_STR(
        "GET / HTTP/1.1\r\nhOsT: a\r\nX-One:  1 2 \r\nx-two:\r\nX-ONE: 3\r\n\r\n");
    assert_int_equal(rv_http_reader_feed(&reader, in, &taken), RV_HTTP_HEAD);
    assert_false(rv_http_reader_idle(&reader));
    struct rv_str one = rv_http_field(&reader.request, "x-one", &count);
    assert_true(rv_str_is(one, "1 2"));
    assert_int_equal(count, 2);
    struct rv_str two = rv_http_field(&reader.request, "x-two", NULL);
    assert_non_null(two.at);
    assert_int_equal(two.len, 0);
    assert_null(rv_http_field(&reader.request, "x-three", &count).at);
    assert_int_equal(count, 0);
    rv_http_reader_done(&reader);
}

/* A refused request stays refused, whatever comes. */
static void nothing_is_read_after_a_refusal(void **state)
{
    struct rv_http_reader reader;
    size_t taken = 9;
    (void)state;
    rv_http_reader_init(&reader, 0);
    assert_int_equal(rv_http_reader_feed(&reader, RV_STR(" "), &taken), RV_HTTP_REFUSED);
    struct rv_str good = RV_STR("GET / HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(rv_http_reader_feed(&reader, good, &taken), RV_HTTP_REFUSED);
    assert_int_equal(taken, 0);
    rv_http_reader_done(&reader);
}

/* An idle connection holds no memory for a head. */
static void an_idle_reader_holds_nothing(void **state)
{
    struct rv_http_reader reader;
    size_t taken;
    (void)state;
    rv_http_reader_init(&reader, 0);
    struct rv_str in = RV_STR("GET / HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(rv_http_reader_feed(&reader, in, &taken), RV_HTTP_HEAD);
    assert_int_equal(rv_http_reader_feed(&reader, RV_STR(""), &taken), RV_HTTP_END);
    rv_http_reader_next(&reader);
    assert_true(reader.head.room > 0);
    assert_true(rv_http_reader_idle(&reader));
    assert_int_equal(reader.head.room, 0);
    assert_in_range(sizeof reader, 1, 1200);
    rv_http_reader_done(&reader);
}

static void answers_are_written(void **state)
{
    struct rv_buf out;
    struct rv_http_answer answer = {.status = 200,
                                    .minor = 1,
                                    .length = 2,
                                    .type = "application/json",
                                    .date = "Sun, 06 Nov 1994 08:49:37 GMT"};
    (void)state;
    rv_buf_init(&out, 4096);
    rv_http_write_head(&out, &answer);
    rv_http_write_field(&out, "Location", RV_STR("/v1/tasks/1"));
    rv_http_write_field(&out, "X", RV_STR("a\r\nSet-Cookie: b"));
    rv_http_write_field(&out, "Y", RV_STR(""));
    rv_http_write_end(&out);
    rv_buf_add_char(&out, '\0');
    assert_string_equal(out.at, "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                "Content-Type: application/json\r\nContent-Length: 2\r\n"
                                "Location: /v1/tasks/1\r\nY: \r\n\r\n");
    rv_buf_reset(&out);
    answer.chunked = true;
    answer.close = true;
    rv_http_write_head(&out, &answer);
    rv_http_write_end(&out);
    rv_http_write_chunk(&out, "abcdefghijklmnopq", 17);
    rv_http_write_last_chunk(&out);
    rv_buf_add_char(&out, '\0');
    assert_string_equal(out.at, "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
                                "Connection: close\r\n\r\n11\r\nabcdefghijklmnopq\r\n0\r\n\r\n");
    rv_buf_reset(&out);
    answer = (struct rv_http_answer){.status = 204, .minor = 0, .date = "D"};
    rv_http_write_head(&out, &answer);
    rv_buf_add_char(&out, '\0');
    assert_string_equal(out.at, "HTTP/1.1 204 No Content\r\nDate: D\r\nConnection: close\r\n");
    rv_buf_done(&out);
}

static void dates_are_written(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } rows[] = {
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {951782399, "Mon, 28 Feb 2000 23:59:59 GMT"},
        {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
        {4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"},
        {253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {-1, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char date[RV_HTTP_DATE_BYTES];
        rv_http_date(rows[i].seconds, date);
        assert_string_equal(date, rows[i].text);
    }
}

/* RFC 9110, 5.6.2 and 5.5; RFC 3986, 3.3 and 3.4. */
static void the_table_of_characters_is_the_grammar(void **state)
{
    static const char alnum[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    (void)state;
    for (int c = 0; c < 256; c++) {
        bool letter = c != 0 && strchr(alnum, c) != NULL;
#define AMONG(text) (letter || (c != 0 && strchr(text, c) != NULL))
        bool visible = c == '\t' || (c >= 0x20 && c < 0x7f) || c >= 0x80;
        assert_int_equal(grammar_is((char)c, GRAMMAR_TOKEN), AMONG("!#$%&'*+-.^_`|~"));
        assert_int_equal(grammar_is((char)c, GRAMMAR_VALUE), visible);
        assert_int_equal(grammar_is((char)c, GRAMMAR_QUOTED), visible && c != '"' && c != '\\');
        assert_int_equal(grammar_is((char)c, GRAMMAR_PATH), AMONG("-._~!$&'()*+,;=:@/"));
        assert_int_equal(grammar_is((char)c, GRAMMAR_QUERY), AMONG("-._~!$&'()*+,;=:@/?[]{}|\\^`"));
        assert_int_equal(grammar_is((char)c, GRAMMAR_HOST), AMONG("-._~!$&'()*+,;="));
    }
}

/* Values are judged eight bytes at a time: wherever a character stands, beside whatever other. */
static void each_character_of_a_value_is_judged_at_each_place(void **state)
{
    static const char others[] = {'a', ' ', '\t', '!', '~', '\x80', '\xff'};
    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        bool visible = (c >= ' ' && c != 0x7F) || c == '\t';
        for (size_t len = 1; len <= 18; len++) {
            char value[18];
            memset(value, others[(c + len) % sizeof others], len);
            for (size_t at = 0; at < len; at++) {
                char before = value[at];
                value[at] = (char)c;
                assert_int_equal(grammar_value((struct rv_str){value, len}), visible);
                value[at] = before;
            }
        }
    }
    assert_true(grammar_value(RV_STR("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_read),
        cmocka_unit_test(request_lines_that_are_refused),
        cmocka_unit_test(headers_that_are_refused),
        cmocka_unit_test(chunks_that_are_refused),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(headers_are_found),
        cmocka_unit_test(nothing_is_read_after_a_refusal),
        cmocka_unit_test(an_idle_reader_holds_nothing),
        cmocka_unit_test(answers_are_written),
        cmocka_unit_test(dates_are_written),
        cmocka_unit_test(the_table_of_characters_is_the_grammar),
        cmocka_unit_test(each_character_of_a_value_is_judged_at_each_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
