/* Readers take time and memory in proportion to their input: no text of four times the length
 * takes much more than four times as much. The bytes are a pattern: head, unit and tail between
 * form feeds. The unit is repeated up to each length; a vertical tab in it is its number, for names
 * that differ. */
#include "base/buf.h"
#include "base/limits.h"
#include "expr/expr.h"
#include "http/http.h"
#include "workflow/definition.h"
#include "yaml/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TEXTS = 3,
    SHORT_BYTES = 4 * 1024, /* and TIMES as long, and TIMES as long as that */
    TIMES = 4,              /* as long is the long text */
    TIMES_LONGER = 10,      /* it may take: 4 and a little are linear, 16 are not */
    LOOKED_AT_US = 10000,   /* what takes less is not judged: a clock is not that exact */
    LOOKED_AT_BYTES = 4 * 1024 * 1024,
    TRIES = 3,
    MEMORY_MAX = 256 * 1024 * 1024
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expr_read(struct rv_arena *arena, struct rv_str text)
{
    struct rv_expr *expr;
    struct rv_expr_fault fault;
    (void)!rv_expr_compile(arena, text, NULL, 0, &expr, &fault);
}

static void json_read(struct rv_arena *arena, struct rv_str text)
{
    struct rv_json tree;
    struct rv_json_fault fault;
    (void)!rv_json_parse(arena, text, RV_JSON_DEPTH_MAX, &tree, &fault);
}

static void yaml_read(struct rv_arena *arena, struct rv_str text)
{
    struct rv_json tree;
    struct rv_yaml_fault fault;
    (void)!rv_yaml_parse(arena, text, RV_DEFINITION_BYTES_MAX, &tree, &fault);
}

static void definition_read(struct rv_arena *arena, struct rv_str text)
{
    static struct rv_definition_faults faults;
    const struct rv_definition *definition;
    struct rv_json tree;
    struct rv_yaml_fault fault;
    if (rv_yaml_parse(arena, text, RV_DEFINITION_BYTES_MAX, &tree, &fault) == RV_OK)
        (void)!rv_definition_check(arena, &tree, &definition, &faults);
}

static void http_read(struct rv_arena *arena, struct rv_str text)
{
    struct rv_http_reader reader;
    enum rv_http_event event;
    (void)arena;
    rv_http_reader_init(&reader, MEMORY_MAX);
    do {
        size_t taken;
        event = rv_http_reader_feed(&reader, text, &taken);
        text = (struct rv_str){text.at + taken, text.len - taken};
        if (event == RV_HTTP_END)
            rv_http_reader_next(&reader);
    } while (event != RV_HTTP_MORE && event != RV_HTTP_REFUSED);
    rv_http_reader_done(&reader);
}

static const struct reader {
    const char *name;
    void (*read)(struct rv_arena *arena, struct rv_str text);
} readers[] = {
    {"expr", expr_read},
    {"json", json_read},
    {"yaml", yaml_read},
    {"http", http_read},
    {"definition", definition_read},
};

/* ---- texts ---- */

static struct rv_str part_take(struct rv_str *rest)
{
    const char *end = rest->len ? memchr(rest->at, '\f', rest->len) : NULL;
    size_t len = end != NULL ? (size_t)(end - rest->at) : rest->len;
    struct rv_str part = {rest->at, len};
    *rest = (struct rv_str){rest->at + len + (end != NULL), rest->len - len - (end != NULL)};
    return part;
}

static void text_make(struct rv_buf *text, struct rv_str pattern, size_t bytes)
{
    struct rv_str head = part_take(&pattern), unit = part_take(&pattern);
    rv_buf_reset(text);
    rv_buf_add_str(text, head);
    for (int64_t number = 0; unit.len > 0 && text->len < bytes; number++)
        for (size_t i = 0; i < unit.len; i++)
            if (unit.at[i] == '\v')
                rv_buf_add_int(text, number);
            else
                rv_buf_add_char(text, unit.at[i]);
    rv_buf_add_str(text, pattern);
}

/* ---- time ---- */

static int64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

struct cost {
    int64_t us;
    int64_t bytes;
};

static struct cost cost_of(const struct reader *reader, struct rv_str text)
{
    struct rv_arena arena;
    rv_arena_init(&arena, MEMORY_MAX);
    int64_t began = cpu_us();
    reader->read(&arena, text);
    struct cost cost = {cpu_us() - began, (int64_t)arena.bytes_taken};
    if (arena.refused != RV_OK)
        cost.bytes = INT64_MAX;
    rv_arena_done(&arena);
    return cost;
}

static void must_fit(bool fits, const struct reader *reader, const struct cost costs[TEXTS])
{
    if (fits)
        return;
    for (int i = 0; i < TEXTS; i++)
        fprintf(stderr, "%s: text %d takes %lld us and %lld bytes\n", reader->name, i + 1,
                (long long)costs[i].us, (long long)costs[i].bytes);
    abort();
}

/* At both steps: a short text may be refused at once, and a longer one of its kind only late. */
static bool grows(int64_t brief, int64_t middle, int64_t whole, int64_t looked_at)
{
    return whole >= looked_at && whole / TIMES_LONGER > middle && middle / TIMES_LONGER > brief;
}

static bool time_grows(const struct cost costs[TEXTS])
{
    return grows(costs[0].us, costs[1].us, costs[2].us, LOOKED_AT_US);
}

static void judge(const struct reader *reader, const struct rv_buf texts[TEXTS])
{
    struct cost costs[TEXTS];
    for (int i = 0; i < TEXTS; i++)
        costs[i] = cost_of(reader, rv_buf_str(&texts[i]));
    for (int n = 0; n < TRIES && time_grows(costs); n++)
        for (int i = 0; i < TEXTS; i++) {
            struct cost again = cost_of(reader, rv_buf_str(&texts[i]));
            costs[i].us = again.us < costs[i].us ? again.us : costs[i].us;
        }
    bool memory_grows = costs[2].bytes == INT64_MAX ||
                        grows(costs[0].bytes, costs[1].bytes, costs[2].bytes, LOOKED_AT_BYTES);
    must_fit(!time_grows(costs) && !memory_grows, reader, costs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv_str pattern = {(const char *)data, size};
    struct rv_buf texts[TEXTS];
    size_t bytes = SHORT_BYTES;
    for (int i = 0; i < TEXTS; i++, bytes *= TIMES) {
        rv_buf_init(&texts[i], MEMORY_MAX);
        text_make(&texts[i], pattern, bytes);
    }
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        judge(&readers[i], texts);
    for (int i = 0; i < TEXTS; i++)
        rv_buf_done(&texts[i]);
    return 0;
}
