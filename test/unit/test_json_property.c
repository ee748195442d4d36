/* JSON, held by properties over random trees: what is written is read back, what is cut is refused,
 * and an arena that is too small never breaks anything. */
#include "base/prng.h"
#include "json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TREES = 400, DEPTH_MAX = 64 };

/* REEVE_SEED repeats a run. */
static uint64_t seed_of_run(void)
{
    const char *given = getenv("REEVE_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 20261121;
    print_message("# seed %llu\n", (unsigned long long)seed);
    return seed;
}

static struct rv_str random_text(struct rv_arena *arena, struct rv_prng *prng)
{
    static const char *const pieces[] = {
        "a",
        "b",
        "key",
        "\"",
        "\\",
        "\n",
        "\t",
        "\x01",
        "/",
        "~",
        "}",
        "]",
        ",",
        ":",
        "\x7f",
        "\xc3\xa9",
        "\xe2\x82\xac",
        "\xef\xbf\xbf",
        "\xf0\x9f\x98\x80",
        "\xf4\x8f\xbf\xbf",
        "eight by",
        "a text that is longer than one word of eight bytes",
    };
    size_t count = (size_t)rv_prng_below(prng, 6);
    struct rv_str text = RV_STR("");
    for (size_t i = 0; i < count; i++) {
        const char *piece = pieces[rv_prng_below(prng, sizeof pieces / sizeof pieces[0])];
        text = rv_arena_printf(arena, "%.*s%s", RV_STR_FMT(text), piece);
    }
    if (count == 5) {
        /* A NUL in the middle: printf cannot, a copy can. */
        char *at = rv_arena_bytes(arena, text.len + 1);
        memcpy(at, text.at, text.len);
        at[text.len] = '\0';
        text = (struct rv_str){at, text.len + 1};
    }
    return text;
}

static struct rv_json random_number(struct rv_arena *arena, struct rv_prng *prng)
{
    static const char *const texts[] = {"-0",     "1e400", "0.10", "123456789012345678901234567890",
                                        "-1E-07", "10e+2"};
    switch (rv_prng_below(prng, 4)) {
    case 0: {
        struct rv_str text = rv_str_of(texts[rv_prng_below(prng, 6)]);
        return (struct rv_json){
            .type = RV_JSON_NUMBER, .len = (uint32_t)text.len, .u = {.text = text.at}};
    }
    case 1:
        return rv_json_of_real((double)(int64_t)rv_prng_next(prng) / 1024);
    case 2:
        return rv_json_of_real((double)rv_prng_below(prng, 1000000) / 100);
    default:
        return rv_json_of_int(arena, (int64_t)rv_prng_next(prng) >> rv_prng_below(prng, 64));
    }
}

static struct rv_json random_tree(struct rv_arena *arena, struct rv_prng *prng, unsigned depth)
{
    uint64_t kind = rv_prng_below(prng, depth > 0 ? 8 : 4);
    uint32_t len = (uint32_t)rv_prng_below(prng, rv_prng_below(prng, 20) == 0 ? 40 : 5);
    if (kind == 0)
        return rv_prng_below(prng, 2) ? rv_json_null() : rv_json_bool(rv_prng_below(prng, 2));
    if (kind == 1)
        return random_number(arena, prng);
    if (kind < 4)
        return rv_json_of_str(random_text(arena, prng));
    if (kind < 6) {
        struct rv_json *items = RV_NEW_ARRAY(arena, struct rv_json, len);
        for (uint32_t i = 0; i < len; i++)
            items[i] = random_tree(arena, prng, depth - 1);
        return (struct rv_json){.type = RV_JSON_ARRAY, .len = len, .u = {.items = items}};
    }
    struct rv_json_member *members = RV_NEW_ARRAY(arena, struct rv_json_member, len);
    struct rv_json object = {.type = RV_JSON_OBJECT, .u = {.members = members}};
    for (uint32_t i = 0; i < len; i++) {
        struct rv_str key = random_text(arena, prng);
        if (rv_json_get(&object, key) != NULL)
            continue;
        members[object.len].key = rv_json_of_str(key);
        members[object.len].value = random_tree(arena, prng, depth - 1);
        object.len++;
    }
    return object;
}

static void trees_come_back(void **state)
{
    (void)state;
    struct rv_prng prng;
    struct rv_arena arena;
    struct rv_buf first, second;
    rv_prng_init(&prng, seed_of_run());
    rv_arena_init(&arena, 0);
    rv_buf_init(&first, 1 << 24);
    rv_buf_init(&second, 1 << 24);
    for (int i = 0; i < TREES; i++) {
        struct rv_json tree = random_tree(&arena, &prng, 6);
        struct rv_json back, copy;
        rv_buf_reset(&first);
        rv_buf_reset(&second);
        rv_json_write(&first, &tree);
        assert_int_equal(first.failed, RV_OK);
        if (rv_json_scan(rv_buf_str(&first), DEPTH_MAX, NULL) != RV_OK ||
            rv_json_parse(&arena, rv_buf_str(&first), DEPTH_MAX, &back, NULL) != RV_OK)
            fail_msg("tree %d is written as no JSON", i);
        if (!rv_json_equal(&tree, &back) || rv_json_compare(&tree, &back) != 0)
            fail_msg("tree %d comes back as another", i);
        assert_int_equal(rv_json_copy(&arena, &back, &copy), RV_OK);
        rv_json_write(&second, &copy);
        assert_true(rv_str_eq(rv_buf_str(&first), rv_buf_str(&second)));
        rv_arena_reset(&arena);
    }
    rv_buf_done(&second);
    rv_buf_done(&first);
    rv_arena_done(&arena);
}

/* Digits that are not all 0 in one of the ways to write them: 123e0, 12.3e1, 0.123e3, 1230e-1. */
static struct rv_json written(struct rv_arena *arena, struct rv_prng *prng, const char *digits,
                              size_t count, bool negative)
{
    size_t point = (size_t)rv_prng_below(prng, count + 1);
    size_t zeros = (size_t)rv_prng_below(prng, 3);
    struct rv_str text = rv_arena_printf(
        arena, "%s%.*s%s%.*s%.*se%d", negative ? "-" : "", point == 0 ? 1 : (int)point,
        point == 0 ? "0" : digits, point == count && zeros == 0 ? "" : ".", (int)(count - point),
        digits + point, (int)zeros, "00", (int)(count - point));
    struct rv_json value;
    assert_int_equal(rv_json_parse(arena, text, DEPTH_MAX, &value, NULL), RV_OK);
    return value;
}

/* Random integers of up to 40 digits, of which many have the same double: compared by their digits
 * whatever way they are written, and a computed number by the digits that it is written with. */
static void numbers_are_ordered_by_their_digits(void **state)
{
    (void)state;
    struct rv_prng prng;
    struct rv_arena arena;
    struct rv_buf buf;
    rv_prng_init(&prng, seed_of_run());
    rv_arena_init(&arena, 0);
    rv_buf_init(&buf, 1000);
    for (int i = 0; i < 20000; i++) {
        char a[40], b[40];
        size_t count = 1 + (size_t)rv_prng_below(&prng, sizeof a);
        for (size_t k = 0; k < count; k++)
            a[k] = b[k] = (char)((k == 0 ? '1' : '0') + (int)rv_prng_below(&prng, 9));
        if (rv_prng_below(&prng, 4) > 0)
            b[count - 1 - rv_prng_below(&prng, count < 3 ? count : 3)] = '5';
        bool negative = rv_prng_below(&prng, 2) == 1;
        struct rv_json x = written(&arena, &prng, a, count, negative);
        struct rv_json y = written(&arena, &prng, b, count, negative);
        int right = memcmp(a, b, count) * (negative ? -1 : 1);
        int order = rv_json_compare(&x, &y);
        if ((order > 0) - (order < 0) != (right > 0) - (right < 0) ||
            rv_json_equal(&x, &y) != (right == 0))
            fail_msg("%.*s and %.*s: %d", (int)x.len, x.u.text, (int)y.len, y.u.text, order);
        struct rv_json computed = rv_json_of_real(rv_json_real(&x)), read;
        rv_buf_reset(&buf);
        rv_json_write(&buf, &computed);
        assert_int_equal(rv_json_parse(&arena, rv_buf_str(&buf), DEPTH_MAX, &read, NULL), RV_OK);
        assert_true(rv_json_equal(&computed, &read));
        assert_int_equal(rv_json_compare(&computed, &y), rv_json_compare(&read, &y));
        rv_arena_reset(&arena);
    }
    rv_buf_done(&buf);
    rv_arena_done(&arena);
}

/* Every beginning of a document, in a piece of memory that ends with it. */
static void beginnings_are_no_documents(void **state)
{
    (void)state;
    struct rv_prng prng;
    struct rv_arena arena;
    struct rv_buf buf;
    rv_prng_init(&prng, seed_of_run());
    rv_arena_init(&arena, 0);
    rv_buf_init(&buf, 1 << 20);
    size_t cut = 0;
    while (cut < 20000) {
        struct rv_json tree = random_tree(&arena, &prng, 4);
        struct rv_json back;
        rv_buf_reset(&buf);
        rv_json_write(&buf, &tree);
        bool bracketed = tree.type == RV_JSON_STRING || tree.type >= RV_JSON_ARRAY;
        for (size_t len = 0; bracketed && buf.len < 1000 && len < buf.len; len++, cut++) {
            char *text = malloc(len + 1);
            assert_non_null(text);
            char *at = text + 1; /* the byte after the beginning is out of bounds */
            memcpy(at, buf.at, len);
            struct rv_json_fault fault = {.offset = 0};
            struct rv_str beginning = {at, len};
            assert_int_equal(rv_json_scan(beginning, DEPTH_MAX, &fault), RV_ERR_INVALID);
            assert_true(fault.offset <= len);
            assert_int_equal(rv_json_parse(&arena, beginning, DEPTH_MAX, &back, NULL),
                             RV_ERR_INVALID);
            free(text);
        }
        rv_arena_reset(&arena);
    }
    rv_buf_done(&buf);
    rv_arena_done(&arena);
}

/* A byte changed, dropped or doubled: scan and parse agree, and neither reads too far. */
static void damaged_documents_are_told_alike(void **state)
{
    (void)state;
    struct rv_prng prng;
    struct rv_arena arena;
    struct rv_buf buf;
    rv_prng_init(&prng, seed_of_run());
    rv_arena_init(&arena, 0);
    rv_buf_init(&buf, 1 << 20);
    for (int i = 0; i < 3000; i++) {
        struct rv_json tree = random_tree(&arena, &prng, 3);
        struct rv_json back;
        rv_buf_reset(&buf);
        rv_json_write(&buf, &tree);
        for (int changes = 0; changes < 3; changes++) {
            size_t place = (size_t)rv_prng_below(&prng, buf.len);
            buf.at[place] = rv_prng_below(&prng, 2) ? (char)rv_prng_below(&prng, 256)
                                                    : "{}[]\",:\\u0e-"[rv_prng_below(&prng, 12)];
        }
        struct rv_json_fault scan_fault, parse_fault;
        enum rv_err scanned = rv_json_scan(rv_buf_str(&buf), DEPTH_MAX, &scan_fault);
        enum rv_err parsed = rv_json_parse(&arena, rv_buf_str(&buf), DEPTH_MAX, &back,
                                           &parse_fault);
        if (scanned == RV_OK && parsed != RV_OK)
            assert_string_equal(parse_fault.message, "duplicate key in this object");
        else
            assert_int_equal(scanned, parsed);
        rv_arena_reset(&arena);
    }
    rv_buf_done(&buf);
    rv_arena_done(&arena);
}

/* With room for N bytes, for every N until it is enough: LIMIT, never anything else. */
static void a_small_arena_is_a_limit(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[1,2,3,{\"b\":\"c\\n\"}],\"\\u0041\":\"\\ud83d\\ude00\",\"e\":{\"f\":{},\"g\":[]},"
        "\"many\":{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,"
        "\"k\":0,\"l\":0,\"m\":0,\"n\":0,\"o\":0,\"p\":0,\"q\":0}}";
    enum rv_err err = RV_ERR_LIMIT;
    for (size_t cap = 1; err != RV_OK; cap++) {
        struct rv_arena arena;
        struct rv_json value = rv_json_bool(true);
        struct rv_json_fault fault = {.message = NULL};
        rv_arena_init(&arena, cap);
        err = rv_json_parse(&arena, rv_str_of(text), DEPTH_MAX, &value, &fault);
        if (err != RV_OK) {
            assert_int_equal(err, RV_ERR_LIMIT);
            assert_non_null(fault.message);
            assert_int_equal(value.type, RV_JSON_BOOL);
        }
        rv_arena_done(&arena);
        assert_true(cap < 10000);
    }
}

/* Many small values: what they would need is known before they are all read. */
static void a_small_arena_bounds_the_reader_too(void **state)
{
    (void)state;
    struct rv_arena arena;
    struct rv_buf buf;
    struct rv_json value;
    struct rv_json_fault fault;
    rv_arena_init(&arena, 64 * 1024);
    rv_buf_init(&buf, 1 << 20);
    rv_buf_add_char(&buf, '[');
    while (buf.failed == RV_OK)
        rv_buf_lit(&buf, "0,");
    assert_int_equal(rv_json_parse(&arena, rv_buf_str(&buf), DEPTH_MAX, &value, &fault),
                     RV_ERR_LIMIT);
    assert_true(fault.offset < 64 * 1024);
    rv_buf_done(&buf);
    rv_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_ordered_by_their_digits),
        cmocka_unit_test(trees_come_back),
        cmocka_unit_test(beginnings_are_no_documents),
        cmocka_unit_test(damaged_documents_are_told_alike),
        cmocka_unit_test(a_small_arena_is_a_limit),
        cmocka_unit_test(a_small_arena_bounds_the_reader_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
