/* How fast JSON is scanned, parsed and written, in 10^6 bytes a second: the best of some rounds, so
 * that a busy machine does not look like slow code. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/prng.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 9, ROUND_BYTES = 16 * 1000 * 1000, DEPTH_MAX = 64 };

static const char *const words[] = {
    "pending",
    "processing",
    "Berlin",
    "Alexanderplatz 7",
    "inventory",
    "express",
    "customer",
    "gift wrapping",
    "standard",
    "backordered",
    "O\\u0027Neil",
    "Zürich",
    "line\\nbreak",
    "EUR",
    "a longer remark, as people write them to those who carry it: please ring twice",
};

static const char *word(struct rv_prng *prng)
{
    return words[rv_prng_below(prng, sizeof words / sizeof words[0])];
}

static unsigned number(struct rv_prng *prng, unsigned bound)
{
    return (unsigned)rv_prng_below(prng, bound);
}

/* One order as an application submits it, about 300 bytes and 130 for each of its lines. */
static void add_order(struct rv_buf *buf, struct rv_prng *prng, unsigned lines)
{
    rv_buf_printf(
        buf,
        "{\"id\":\"order-%06u\",\"customer\":{\"name\":\"%s\",\"email\":\"c%u@example.org\","
        "\"vip\":%s,\"since\":\"20%02u-03-01T10:00:00Z\"},\"city\":\"%s\",\"status\":\"%s\","
        "\"total\":%u.%02u,\"discount\":null,\"location\":[%u.%06u,-%u.%06u],\"lines\":[",
        number(prng, 1000000), word(prng), number(prng, 100000), number(prng, 2) ? "true" : "false",
        10 + number(prng, 16), word(prng), word(prng), number(prng, 2000), number(prng, 100),
        number(prng, 90), number(prng, 1000000), number(prng, 180), number(prng, 1000000));
    for (unsigned i = 0; i < lines; i++)
        rv_buf_printf(buf,
                      "%s{\"sku\":\"SKU-%05u\",\"name\":\"%s\",\"quantity\":%u,\"price\":%u.%02u,"
                      "\"taxRate\":0.19,\"reserved\":%s,\"tags\":[\"%s\",\"%s\"]}",
                      i ? "," : "", number(prng, 100000), word(prng), 1 + number(prng, 9),
                      number(prng, 300), number(prng, 100), number(prng, 2) ? "true" : "false",
                      word(prng), word(prng));
    rv_buf_lit(buf, "]}");
}

static void add_orders(struct rv_buf *buf, size_t bytes)
{
    struct rv_prng prng;
    rv_prng_init(&prng, 1);
    rv_buf_add_char(buf, '[');
    while (buf->len < bytes) {
        if (buf->len > 1)
            rv_buf_add_char(buf, ',');
        add_order(buf, &prng, 1 + number(&prng, 12));
    }
    rv_buf_add_char(buf, ']');
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct bench {
    struct rv_str text;
    struct rv_arena arena;
    struct rv_buf out;
    struct rv_json tree;
};

static enum rv_err run_scan(struct bench *bench)
{
    return rv_json_scan(bench->text, DEPTH_MAX, NULL);
}

static enum rv_err run_parse(struct bench *bench)
{
    struct rv_json tree;
    rv_arena_reset(&bench->arena);
    return rv_json_parse(&bench->arena, bench->text, DEPTH_MAX, &tree, NULL);
}

static enum rv_err run_write(struct bench *bench)
{
    rv_buf_reset(&bench->out);
    rv_json_write(&bench->out, &bench->tree);
    return bench->out.failed;
}

static void measure(const char *what, const char *name, struct bench *bench,
                    enum rv_err (*run)(struct bench *))
{
    size_t repeats = ROUND_BYTES / bench->text.len + 1;
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double from = seconds_now();
        for (size_t i = 0; i < repeats; i++) {
            if (run(bench) != RV_OK) {
                fprintf(stderr, "%s %s failed\n", what, name);
                exit(1);
            }
        }
        double rate = (double)(repeats * bench->text.len) / (seconds_now() - from) / 1e6;
        best = rate > best ? rate : best;
    }
    printf("json.%-6s %-12s %8zu bytes %8.0f MB/s\n", what, name, bench->text.len, best);
}

static void bench_text(const char *name, struct rv_str text)
{
    struct bench bench = {.text = text};
    struct rv_arena keep;
    rv_arena_init(&keep, 0);
    rv_arena_init(&bench.arena, 0);
    rv_buf_init(&bench.out, 64 * 1024 * 1024);
    if (rv_json_parse(&keep, text, DEPTH_MAX, &bench.tree, NULL) != RV_OK) {
        fprintf(stderr, "%s is not JSON\n", name);
        exit(1);
    }
    measure("scan", name, &bench, run_scan);
    measure("parse", name, &bench, run_parse);
    measure("write", name, &bench, run_write);
    rv_buf_done(&bench.out);
    rv_arena_done(&bench.arena);
    rv_arena_done(&keep);
}

static void bench_numbers(struct rv_buf *buf)
{
    struct rv_prng prng;
    rv_prng_init(&prng, 2);
    rv_buf_reset(buf);
    rv_buf_add_char(buf, '[');
    for (int i = 0; i < 10000; i++)
        rv_buf_printf(buf, "%s%u.%u", i ? "," : "", number(&prng, 1000), number(&prng, 100000));
    rv_buf_add_char(buf, ']');
    bench_text("numbers", rv_buf_str(buf));
}

/* An object with many keys, as `to_entries` and maps by id have them. */
static void bench_wide(struct rv_buf *buf)
{
    struct rv_prng prng;
    rv_prng_init(&prng, 3);
    rv_buf_reset(buf);
    for (unsigned i = 0; i < 5000; i++)
        rv_buf_printf(buf, "%c\"%08llx\":\"%s\"", i ? ',' : '{',
                      (unsigned long long)rv_prng_next(&prng), word(&prng));
    rv_buf_add_char(buf, '}');
    bench_text("wide object", rv_buf_str(buf));
}

/* A computed double has to find its digits: nanoseconds each. */
static void bench_reals(const char *name, double unit)
{
    enum { COUNT = 100000 };
    struct rv_prng prng;
    struct rv_buf buf;
    rv_buf_init(&buf, 1024);
    rv_prng_init(&prng, 4);
    double from = seconds_now();
    for (int i = 0; i < COUNT; i++) {
        struct rv_json real = rv_json_of_real((double)rv_prng_below(&prng, 10000000) / unit);
        rv_buf_reset(&buf);
        rv_json_write(&buf, &real);
    }
    printf("json.write  %-12s %27.0f ns each\n", name, (seconds_now() - from) / COUNT * 1e9);
    rv_buf_done(&buf);
}

int main(void)
{
    struct rv_buf buf;
    struct rv_prng prng;
    rv_buf_init(&buf, 16 * 1024 * 1024);
    rv_prng_init(&prng, 5);
    add_order(&buf, &prng, 5);
    bench_text("order-1k", rv_buf_str(&buf));
    rv_buf_reset(&buf);
    add_order(&buf, &prng, 28);
    bench_text("order-4k", rv_buf_str(&buf));
    rv_buf_reset(&buf);
    add_orders(&buf, 1024 * 1024);
    bench_text("orders-1m", rv_buf_str(&buf));
    bench_numbers(&buf);
    bench_wide(&buf);
    bench_reals("cents", 100);
    bench_reals("sevenths", 7);
    rv_buf_done(&buf);
    return 0;
}
