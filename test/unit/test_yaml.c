#include "base/limits.h"
#include "yaml/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_json(const char *yaml, const char *json)
{
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    struct rv_json value;
    struct rv_yaml_fault fault;
    enum rv_err err = rv_yaml_parse(&arena, rv_str_of(yaml), RV_DEFINITION_BYTES_MAX, &value,
                                    &fault);
    if (err != RV_OK)
        print_error("%s\n%u:%u: %.*s\n", yaml, fault.line, fault.column, RV_STR_FMT(fault.message));
    assert_int_equal(err, RV_OK);
    struct rv_buf buf;
    rv_buf_init(&buf, 1 << 20);
    rv_json_write(&buf, &value);
    rv_buf_add_char(&buf, '\0');
    assert_string_equal(buf.at, json);
    rv_buf_done(&buf);
    rv_arena_done(&arena);
}

static void test_types(void **state)
{
    (void)state;
    check_json("a: 1\nb: -0.5e+3\nc: true\nd: false\ne: null\nf: ~\ng:\n",
               "{\"a\":1,\"b\":-0.5e+3,\"c\":true,\"d\":false,\"e\":null,\"f\":null,\"g\":null}");
    check_json("[no, yes, on, off, Norway, NO, True, 0x1F, 1_000, 010, .5, +1, 1., 1:30, .inf]",
               "[\"no\",\"yes\",\"on\",\"off\",\"Norway\",\"NO\",\"True\",\"0x1F\",\"1_000\","
               "\"010\",\".5\",\"+1\",\"1.\",\"1:30\",\".inf\"]");
    check_json("['1', \"true\", 'null', '', \"\"]", "[\"1\",\"true\",\"null\",\"\",\"\"]");
    check_json("123456789012345678901234567890.10", "123456789012345678901234567890.10");
    check_json("1: a\ntrue: b\nnull: c\n", "{\"1\":\"a\",\"true\":\"b\",\"null\":\"c\"}");
    check_json("2026-11-21T00:00:00Z", "\"2026-11-21T00:00:00Z\"");
    check_json("a: 1.0.3", "{\"a\":\"1.0.3\"}");
    check_json("- |\n  x\n  y\n- >\n  x\n  y\n", "[\"x\\ny\\n\",\"x y\\n\"]");
    check_json("\xEF\xBB\xBF"
               "a: \xC3\xA9",
               "{\"a\":\"\xC3\xA9\"}");
    check_json("---\na: {}\nb: []\n...\n", "{\"a\":{},\"b\":[]}");
}

static void check_refused(const char *yaml, enum rv_err want, unsigned line, unsigned column,
                          const char *part);

/* In flow style an expression without quotes is a `$` and a mapping. */
static void test_bare_expressions(void **state)
{
    (void)state;
    static const char *const cure = "an expression here needs quotes, such as '${ .x }'";
    check_refused("a:\n  with: { city: ${ .city } }\n", RV_ERR_INVALID, 2, 17, cure);
    check_refused("with: [ \"\xC3\xA9\", ${.x}, b ]\n", RV_ERR_INVALID, 1, 14, cure);
    check_refused("with: { a: '${ .x }', b: ${ .y } }\n", RV_ERR_INVALID, 1, 26, cure);
    check_refused("with: {\n  a: x,\n  b: ${ .y }}\n", RV_ERR_INVALID, 3, 6, cure);
    check_refused("with: ${ {a: .x} }\n", RV_ERR_INVALID, 1, 7, cure);
    check_refused("{\"a\": ${ .x }}", RV_ERR_INVALID, 1, 7, "quotes, such as ");
    check_refused("with: { a: '${ .x }', b: c: d }\n", RV_ERR_INVALID, 1, 27, "");
    check_json("with: ${ .x }\n", "{\"with\":\"${ .x }\"}");
}

static void test_json_is_taken(void **state)
{
    (void)state;
    check_json("{\"a\": \"\\ud83d\\ude00\\/\", \"b\":[1,2.50]}",
               "{\"a\":\"\xF0\x9F\x98\x80/\",\"b\":[1,2.50]}");
    check_json("\t{\n\t\"a\": 1\n\t}", "{\"a\":1}");
    check_json("{a: 1, b: [x, y]}", "{\"a\":1,\"b\":[\"x\",\"y\"]}");
}

static void check_refused(const char *yaml, enum rv_err want, unsigned line, unsigned column,
                          const char *part)
{
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    struct rv_json value;
    struct rv_yaml_fault fault;
    enum rv_err err = rv_yaml_parse(&arena, rv_str_of(yaml), RV_DEFINITION_BYTES_MAX, &value,
                                    &fault);
    char told[512];
    snprintf(told, sizeof told, "%u:%u: %.*s", fault.line, fault.column, RV_STR_FMT(fault.message));
    if (err != want || fault.line != line || fault.column != column || !strstr(told, part))
        print_error("%s\n--> %d %s\n", yaml, (int)err, told);
    assert_int_equal(err, want);
    assert_int_equal(fault.line, line);
    assert_int_equal(fault.column, column);
    assert_non_null(strstr(told, part));
    rv_arena_done(&arena);
}

static void test_refused(void **state)
{
    (void)state;
    check_refused("a: &x 1\n", RV_ERR_INVALID, 1, 4, "anchors (&)");
    check_refused("a: 1\nb: *x\n", RV_ERR_INVALID, 2, 4, "*");
    check_refused("a: !!str 1\n", RV_ERR_INVALID, 1, 4, "tags (!)");
    check_refused("a: ! 1\n", RV_ERR_INVALID, 1, 4, "tags (!)");
    check_refused("b:\n  <<: {}\n", RV_ERR_INVALID, 2, 3, "merge keys");
    check_refused("a: 1\nb: 2\n\"a\": 3\n", RV_ERR_INVALID, 3, 1, "duplicate key \"a\"");
    check_refused("{\"a\": 1,\n \"a\": 3}", RV_ERR_INVALID, 2, 2, "");
    check_refused("? [x]\n: 1\n", RV_ERR_INVALID, 1, 3, "key must be a string");
    check_refused("a: 1\n---\nb: 2\n", RV_ERR_INVALID, 2, 1, "second document");
    check_refused("", RV_ERR_INVALID, 1, 1, "no document");
    check_refused("# nothing\n", RV_ERR_INVALID, 2, 1, "no document");
    check_refused("a: 1\nb:\t\xFF\n", RV_ERR_INVALID, 2, 4, "UTF-8");
    check_refused("a: \xED\xA0\x80\n", RV_ERR_INVALID, 1, 4, "UTF-8");
    check_refused("a: 1\n\tb: 2\n", RV_ERR_INVALID, 2, 1, "tabs");
    check_refused("a: b: c\n", RV_ERR_INVALID, 1, 5, "quotes");
    check_refused("a: 'x\n", RV_ERR_INVALID, 2, 1, "close the quotes");
    check_refused("{\"a\": 1,, \"b\": 2}", RV_ERR_INVALID, 1, 9, "");
    check_refused("a: @x\n", RV_ERR_INVALID, 1, 4, "quotes");
}

static void test_limits(void **state)
{
    (void)state;
    char deep[200];
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    deep[130] = '\0';
    check_refused(deep, RV_ERR_LIMIT, 1, 65, "deeper");
    memset(deep, '[', 64);
    memset(deep + 64, ']', 64);
    deep[128] = '\0';
    check_json(deep, deep);
    char nested[2 * 66 + 1];
    for (int i = 0; i < 66; i++)
        memcpy(nested + 2 * i, "- ", 2);
    nested[132] = '\0';
    check_refused(nested, RV_ERR_LIMIT, 1, 129, "deeper");

    struct rv_arena arena;
    struct rv_json value;
    struct rv_yaml_fault fault;
    rv_arena_init(&arena, 0);
    assert_int_equal(rv_yaml_parse(&arena, RV_STR("a: 12345"), 7, &value, &fault), RV_ERR_LIMIT);
    assert_int_equal(rv_yaml_parse(&arena, RV_STR("a: 12345"), 8, &value, &fault), RV_OK);
    rv_arena_done(&arena);
    for (size_t cap = 1; cap < 600; cap += 7) {
        rv_arena_init(&arena, cap);
        enum rv_err err = rv_yaml_parse(&arena, RV_STR("a: [1, {b: c}]\nd: 'x'\n"), 100, &value,
                                        &fault);
        assert_true(err == RV_OK || err == RV_ERR_LIMIT);
        rv_arena_done(&arena);
    }
}

/* The text at the place that is found must begin with `want`. */
static void check_place(const char *text, const char *pointer, bool at_key, size_t offset,
                        const char *want)
{
    uint32_t line;
    uint32_t column;
    assert_true(
        rv_yaml_locate(rv_str_of(text), rv_str_of(pointer), at_key, offset, &line, &column));
    const char *at = text + (strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    for (uint32_t l = 1; l < line; l++)
        at = strchr(at, '\n') + 1;
    for (uint32_t c = 1; c < column; c++) {
        at++;
        while (((unsigned char)*at & 0xC0) == 0x80)
            at++;
    }
    if (strncmp(at, want, strlen(want)) != 0)
        print_error("%s at %u:%u\n", pointer, line, column);
    assert_memory_equal(at, want, strlen(want));
}

static void test_locate(void **state)
{
    (void)state;
    const char *yaml = "document:\n  dsl: '1.0.3'\ndo:\n- first:\n    call: x\n- s/e~c:\n"
                       "    set: \"\xC3\xA9${ .a }\"\n    if: 'it''s ${x}'\n    when: |\n"
                       "      .a\n      | .b\n";
    check_place(yaml, "", false, 0, "document");
    check_place(yaml, "/document/dsl", false, 0, "'1.0.3'");
    check_place(yaml, "/document/dsl", true, 0, "dsl");
    check_place(yaml, "/do/0/first/call", false, 0, "x");
    check_place(yaml, "/do/1/s~1e~0c", true, 0, "s/e");
    check_place(yaml, "/do/1/s~1e~0c/set", false, 2, "${ .a }");
    check_place(yaml, "/do/1/s~1e~0c/if", false, 5, "${x}");
    check_place(yaml, "/do/1/s~1e~0c/when", false, 5, ".b");
    const char *json = "{\"a\": \"\\ud83d\\ude00\",\n \"b\": [1, {\"c\": \"x\\ty.z\"}]}";
    check_place(json, "/b/1/c", false, 3, ".z");
    check_place(json, "/b/1/c", true, 0, "\"c\"");
    uint32_t line;
    uint32_t column;
    assert_false(rv_yaml_locate(RV_STR("a:\n  b: 1\n"), RV_STR("/a/c"), false, 0, &line, &column));
    assert_int_equal(line, 2);
    assert_false(rv_yaml_locate(RV_STR("a: ["), RV_STR("/a/0"), false, 0, &line, &column));
    assert_false(
        rv_yaml_locate(RV_STR("[1]"), RV_STR("/99999999999999999999"), false, 0, &line, &column));
}

/* Editors of Windows begin files with it. Places are as the editor shows them. */
static void test_byte_order_mark(void **state)
{
    (void)state;
    check_json("\xef\xbb\xbf"
               "document:\n  dsl: '1'\ndo: []\n",
               "{\"document\":{\"dsl\":\"1\"},\"do\":[]}");
    check_json("\xef\xbb\xbf{\"a\": \"\\ud83d\\ude00\"}", "{\"a\":\"\xF0\x9F\x98\x80\"}");
    check_refused("\xef\xbb\xbf"
                  "a: b: c\n",
                  RV_ERR_INVALID, 1, 5, "mapping values");
    check_place("\xef\xbb\xbf"
                "a: x\n",
                "/a", false, 0, "x");
    check_place("\xef\xbb\xbf"
                "b: 1\na: x\n",
                "/a", true, 0, "a: x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_json_is_taken),
        cmocka_unit_test(test_bare_expressions),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_locate),
        cmocka_unit_test(test_byte_order_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
