/* How fast heads of requests are read, in 10^6 bytes and 10^3 heads a second, beside llhttp, the
 * parser of Node.js: both in turn on the same bytes, the best of some rounds each. llhttp only
 * finds where the parts are; the reader of src/http keeps them as well, and refuses more. */
#include "http/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <llhttp.h>
#pragma GCC diagnostic pop

enum { ROUNDS = 15, ROUND_BYTES = 8 * 1000 * 1000, BODY_MAX = 1024 * 1024 };

static const struct {
    const char *name;
    const char *text;
} heads[] = {
    {"get", "GET /v1/tasks/06DWX3T9H2K4Q HTTP/1.1\r\nHost: localhost:7733\r\nAccept: */*\r\n\r\n"},
    {"poll", "POST /v1/agents/stock/requests HTTP/1.1\r\nHost: reeve.example:7733\r\n"
             "User-Agent: libreeve\r\nAccept: */*\r\n"
             "Authorization: Bearer reeve_06DWX3T9H2K4Q_4f9d3b1c7a5e2f8890ab12cd34ef56a7\r\n"
             "Content-Type: application/json\r\nContent-Length: 0\r\n\r\n"},
    {"browser",
     "GET /v1/tasks?limit=50&state=error&workflow=shop%2Forder HTTP/1.1\r\n"
     "Host: reeve.example\r\n"
     "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
     "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
     "\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"
     "Referer: https://reeve.example/tasks?state=error\r\nConnection: keep-alive\r\n"
     "Cookie: session=0f9d3b1c7a5e2f8890ab12cd34ef56a7; theme=dark; "
     "consent=analytics%3Dno%26marketing%3Dno\r\nUpgrade-Insecure-Requests: 1\r\n"
     "Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\n"
     "Sec-Fetch-User: ?1\r\nPriority: u=0, i\r\nPragma: no-cache\r\nCache-Control: no-cache\r\n"
     "\r\n"},
};

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void must(bool holds)
{
    if (holds)
        return;
    fprintf(stderr, "bench_http: a head was not read\n");
    exit(1);
}

/* ---- ours ---- */

static void ours_read(struct rv_str input, size_t count)
{
    struct rv_http_reader reader;
    size_t taken;
    rv_http_reader_init(&reader, BODY_MAX);
    for (size_t i = 0; i < count; i++) {
        must(rv_http_reader_feed(&reader, input, &taken) == RV_HTTP_HEAD && taken == input.len);
        must(rv_http_reader_feed(&reader, RV_STR_NONE, &taken) == RV_HTTP_END);
        rv_http_reader_next(&reader);
    }
    rv_http_reader_done(&reader);
}

/* ---- llhttp ---- */

static size_t pieces, messages;

static int on_bytes(llhttp_t *parser, const char *at, size_t len)
{
    (void)parser;
    (void)at;
    pieces += len != 0;
    return 0;
}

static int on_complete(llhttp_t *parser)
{
    (void)parser;
    messages++;
    return 0;
}

static void theirs_read(struct rv_str input, size_t count)
{
    llhttp_settings_t settings;
    llhttp_t parser;
    llhttp_settings_init(&settings);
    settings.on_method = settings.on_url = on_bytes;
    settings.on_header_field = settings.on_header_value = on_bytes;
    settings.on_message_complete = on_complete;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    messages = 0;
    for (size_t i = 0; i < count; i++)
        must(llhttp_execute(&parser, input.at, input.len) == HPE_OK);
    must(messages == count);
}

static double round_s(void (*read)(struct rv_str, size_t), struct rv_str input, size_t count)
{
    double began = seconds_now();
    read(input, count);
    return seconds_now() - began;
}

int main(void)
{
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct rv_str input = rv_str_of(heads[i].text);
        size_t count = ROUND_BYTES / input.len;
        double ours = 1e9, theirs = 1e9;
        for (int round = 0; round < ROUNDS; round++) {
            double a = round_s(ours_read, input, count), b = round_s(theirs_read, input, count);
            ours = a < ours ? a : ours;
            theirs = b < theirs ? b : theirs;
        }
        double bytes = (double)(count * input.len) / 1e6, heads_k = (double)count / 1e3;
        printf("http.%s %.0f MB/s, %.0f k heads/s; llhttp %.0f MB/s; %.2f x llhttp\n",
               heads[i].name, bytes / ours, heads_k / ours, bytes / theirs, theirs / ours);
    }
    return 0;
}
