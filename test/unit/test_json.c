/* JSON: what is taken and refused, and where the fault is said to be. */
#include "json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static enum rv_err parse(struct rv_arena *arena, struct rv_str text, struct rv_json *ret_value,
                         struct rv_json_fault *ret_fault)
{
    struct rv_json_fault scan_fault;
    enum rv_err scanned = rv_json_scan(text, 64, &scan_fault);
    enum rv_err parsed = rv_json_parse(arena, text, 64, ret_value, ret_fault);
    assert_int_equal(scanned, parsed);
    return parsed;
}

static void assert_written(const char *text, const char *wanted)
{
    struct rv_arena arena;
    struct rv_buf buf;
    struct rv_json value;
    struct rv_json_fault fault = {.message = ""};
    rv_arena_init(&arena, 0);
    rv_buf_init(&buf, 1 << 20);
    if (parse(&arena, rv_str_of(text), &value, &fault) != RV_OK)
        fail_msg("%s: %s at %zu", text, fault.message, fault.offset);
    rv_json_write(&buf, &value);
    rv_buf_add_char(&buf, '\0');
    assert_int_equal(buf.failed, RV_OK);
    assert_string_equal(buf.at, wanted);
    rv_buf_done(&buf);
    rv_arena_done(&arena);
}

static void valid_texts_come_back(void **state)
{
    (void)state;
    static const char *const same[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-1.5e-7",
        "1E+2",
        "1e400",
        "-1e-400",
        "0.10",
        "123456789012345678901234567890",
        "\"\"",
        "\"abc\"",
        "[]",
        "{}",
        "[1,2,3]",
        "{\"a\":{\"b\":[null,true,{}]},\"c\":\"d\"}",
        "\"\\u0000\"",
        "\"\\\"\\\\\\b\\f\\n\\r\\t\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
        "[[[[[[]]]]]]",
        "{\"\":0}",
        "\"\x7f\"",
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        assert_written(same[i], same[i]);
    assert_written(" \t\r\n[ 1 , { \"a\" : 2 } ] \n", "[1,{\"a\":2}]");
    assert_written("\"\\u0041\\/\\u00e9\\u20AC\\ud83d\\uDE00\"",
                   "\"A/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    assert_written("\"\\u001f\"", "\"\\u001f\"");
}

struct refused_case {
    const char *text;
    size_t offset;
};

static const struct refused_case refused[] = {
    {"", 0},
    {"  ", 2},
    {"nul", 0},
    {"nulll", 4},
    {"True", 0},
    {"'a'", 0},
    {"+1", 0},
    {"01", 0},
    {"-01", 1},
    {"-", 1},
    {".5", 0},
    {"1.", 2},
    {"1.e5", 2},
    {"1e", 2},
    {"1e+", 3},
    {"0x10", 1},
    {"NaN", 0},
    {"Infinity", 0},
    {"-Infinity", 1},
    {"1 2", 2},
    {"[1,]", 3},
    {"[,1]", 1},
    {"[1 2]", 3},
    {"[1", 2},
    {"[", 1},
    {"]", 0},
    {"[1}", 2},
    {"{", 1},
    {"{\"a\"", 4},
    {"{\"a\":", 5},
    {"{\"a\":1", 6},
    {"{\"a\":1,", 7},
    {"{\"a\":1,}", 7},
    {"{\"a\" 1}", 5},
    {"{a:1}", 1},
    {"{1:1}", 1},
    {"{\"a\":1]", 6},
    {"{,}", 1},
    {"[]]", 2},
    {"\"abc", 4},
    {"\"\\", 2},
    {"\"\\x\"", 1},
    {"\"\\u12\"", 1},
    {"\"\\u12G4\"", 1},
    {"\"\\ud800\"", 1},
    {"\"\\ud800x\"", 1},
    {"\"\\ud800\\u0041\"", 1},
    {"\"\\udc00\"", 1},
    {"\"\\ud800\\ud800\"", 1},
    {"\"a\nb\"", 2},
    {"\"\t\"", 1},
    {"\"\x1f\"", 1},
    {"\"\xc0\x80\"", 1},
    {"\"\xc1\xbf\"", 1},
    {"\"\xe0\x80\x80\"", 1},
    {"\"\xed\xa0\x80\"", 1},
    {"\"\xf0\x80\x80\x80\"", 1},
    {"\"\xf4\x90\x80\x80\"", 1},
    {"\"\xf5\x80\x80\x80\"", 1},
    {"\"\x80\"", 1},
    {"\"\xff\"", 1},
    {"\"\xc3\"", 1},
    {"\"\xe2\x82\"", 1},
    {"\"\xf0\x9f\x98\"", 1},
    {"\xef\xbb\xbf{}", 0},
    {"// x\n1", 0},
    {"[1] /* */", 4},
    {"\v1", 0},
    {"\xc2\xa0"
     "1",
     0},
};

static void invalid_texts_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct rv_arena arena;
        struct rv_json value = rv_json_bool(true);
        struct rv_json_fault fault = {.message = NULL};
        rv_arena_init(&arena, 0);
        if (parse(&arena, rv_str_of(refused[i].text), &value, &fault) != RV_ERR_INVALID)
            fail_msg("taken: %s", refused[i].text);
        if (fault.offset != refused[i].offset)
            fail_msg("%s: offset %zu, not %zu", refused[i].text, fault.offset, refused[i].offset);
        assert_non_null(fault.message);
        assert_int_equal(value.type, RV_JSON_BOOL);
        rv_arena_done(&arena);
    }
}

static void faults_name_line_and_column(void **state)
{
    (void)state;
    struct rv_json_fault fault;
    struct rv_str text = RV_STR("{\n  \"a\": 1,\n  \"b\": tru\n}");
    assert_int_equal(rv_json_scan(text, 64, &fault), RV_ERR_INVALID);
    assert_int_equal(fault.line, 3);
    assert_int_equal(fault.column, 8);
    assert_int_equal(fault.offset, 19);
    assert_string_equal(fault.message, "expected a value");
    assert_int_equal(rv_json_scan(RV_STR("\n\n"), 64, &fault), RV_ERR_INVALID);
    assert_int_equal(fault.line, 3);
    assert_int_equal(fault.column, 1);
    assert_int_equal(rv_json_scan(RV_STR_NONE, 64, NULL), RV_ERR_INVALID);
    assert_int_equal(rv_json_scan(RV_STR("\xef\xbb\xbf{}"), 64, &fault), RV_ERR_INVALID);
    assert_string_equal(fault.message,
                        "unexpected byte order mark; save the text as UTF-8 without it");
}

static void nul_bytes_are_kept_only_as_escapes(void **state)
{
    (void)state;
    struct rv_arena arena;
    struct rv_json value;
    struct rv_json_fault fault;
    rv_arena_init(&arena, 0);
    assert_int_equal(parse(&arena, RV_STR("\"a\\u0000b\""), &value, NULL), RV_OK);
    assert_int_equal(value.len, 3);
    assert_memory_equal(value.u.text, "a\0b", 3);
    assert_int_equal(parse(&arena, RV_STR("\"a\0b\""), &value, &fault), RV_ERR_INVALID);
    assert_int_equal(fault.offset, 2);
    assert_int_equal(parse(&arena, RV_STR("1\0"), &value, NULL), RV_ERR_INVALID);
    assert_int_equal(parse(&arena, RV_STR("\"\\\0\""), &value, NULL), RV_ERR_INVALID);
    rv_arena_done(&arena);
}

/* Every byte at every place of a string longer than the words in which it is read. */
static void each_byte_counts_wherever_it_stands(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        for (size_t place = 0; place < 19; place++) {
            char text[] = "\"xxxxxxxxxxxxxxxxxxxx\"";
            struct rv_json_fault fault = {.offset = 0};
            text[1 + place] = (char)byte;
            bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
            enum rv_err err = rv_json_scan((struct rv_str){text, sizeof text - 1}, 64, &fault);
            if ((err == RV_OK) != plain)
                fail_msg("byte %d at %zu", byte, place);
            if (!plain)
                assert_int_equal(fault.offset, 1 + place + (byte == '"'));
        }
    }
}

/* `depth` brackets around a number, of both kinds in turn. */
static void add_nested(struct rv_buf *buf, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++)
        rv_buf_add_str(buf, i % 2 ? RV_STR("{\"k\":") : RV_STR("["));
    rv_buf_lit(buf, "1");
    for (unsigned i = depth; i-- > 0;)
        rv_buf_add_char(buf, i % 2 ? '}' : ']');
}

static void nesting_is_limited(void **state)
{
    (void)state;
    static const unsigned limits[] = {0, 1, 2, 64, 1000, RV_JSON_NESTING_MAX};
    struct rv_arena arena;
    struct rv_buf buf, out;
    struct rv_json value;
    struct rv_json_fault fault;
    rv_arena_init(&arena, 0);
    rv_buf_init(&buf, 1 << 20);
    rv_buf_init(&out, 1 << 20);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        rv_buf_reset(&buf);
        add_nested(&buf, limits[i]);
        assert_int_equal(rv_json_scan(rv_buf_str(&buf), limits[i], &fault), RV_OK);
        assert_int_equal(rv_json_parse(&arena, rv_buf_str(&buf), limits[i], &value, &fault), RV_OK);
        rv_buf_reset(&out);
        rv_json_write(&out, &value);
        assert_true(rv_str_eq(rv_buf_str(&out), rv_buf_str(&buf)));
        rv_buf_reset(&buf);
        add_nested(&buf, limits[i] + 1);
        assert_int_equal(rv_json_scan(rv_buf_str(&buf), limits[i], &fault), RV_ERR_LIMIT);
        assert_int_equal(rv_json_parse(&arena, rv_buf_str(&buf), limits[i], &value, &fault),
                         RV_ERR_LIMIT);
        assert_string_equal(fault.message, "nested too deep");
    }
    assert_int_equal(rv_json_scan(rv_buf_str(&buf), 1000000, NULL), RV_ERR_LIMIT);
    rv_buf_done(&out);
    rv_buf_done(&buf);
    rv_arena_done(&arena);
}

/* A million opening brackets: refused at the limit, without a stack to overflow. */
static void hostile_nesting_is_refused_early(void **state)
{
    (void)state;
    struct rv_arena arena;
    struct rv_buf buf;
    struct rv_json value;
    struct rv_json_fault fault;
    rv_arena_init(&arena, 0);
    rv_buf_init(&buf, 1 << 20);
    while (buf.failed == RV_OK)
        rv_buf_add_char(&buf, '[');
    assert_int_equal(parse(&arena, rv_buf_str(&buf), &value, &fault), RV_ERR_LIMIT);
    assert_int_equal(fault.offset, 64);
    rv_buf_done(&buf);
    rv_arena_done(&arena);
}

static void assert_repeated(const char *text, size_t offset)
{
    struct rv_arena arena;
    struct rv_json value;
    struct rv_json_fault fault = {.message = "taken"};
    rv_arena_init(&arena, 0);
    assert_int_equal(rv_json_scan(rv_str_of(text), 64, NULL), RV_OK);
    if (rv_json_parse(&arena, rv_str_of(text), 64, &value, &fault) != RV_ERR_INVALID)
        fail_msg("taken: %s", text);
    assert_string_equal(fault.message, "duplicate key in this object");
    assert_int_equal(fault.offset, offset);
    rv_arena_done(&arena);
}

static void repeated_keys_are_refused(void **state)
{
    (void)state;
    assert_repeated("{\"a\":1,\"a\":2}", 7);
    assert_repeated("{\"\":1,\"\":2}", 6);
    assert_repeated("{\"a\":1,\"b\":2,\"c\":[{\"a\":1}],\"b\":3}", 27);
    assert_repeated("{\"a\":1,\"\\u0061\":2}", 7);
    assert_repeated("{ \"\\u0061\" : \"\\\"}{\" , \"a\":2}", 22);
    assert_repeated("[{\"x\":{\"k\":[\"k\",\"k\"],\"j\":\"k\",\"k\":0}}]", 29);
    assert_written("{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1}}",
                   "{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1}}");
    assert_written("{\"ab\":1,\"ba\":2,\"bb\":3,\"aa\":4}",
                   "{\"ab\":1,\"ba\":2,\"bb\":3,\"aa\":4}");
}

/* `count` keys with a long common beginning; one more equal to key `repeated`, if that is one. */
static void add_wide(struct rv_buf *buf, unsigned count, unsigned repeated)
{
    rv_buf_reset(buf);
    rv_buf_add_char(buf, '{');
    for (unsigned i = 0; i < count; i++)
        rv_buf_printf(buf, "%s\"common-beginning-%u\":%u", i ? "," : "", i * 7919U % 100003U, i);
    if (repeated < count)
        rv_buf_printf(buf, ",\"common-beginning-%u\":0", repeated * 7919U % 100003U);
    rv_buf_add_char(buf, '}');
}

static void repeated_keys_are_found_in_objects_of_every_size(void **state)
{
    (void)state;
    struct rv_arena arena;
    struct rv_buf buf;
    struct rv_json value;
    struct rv_json_fault fault;
    rv_arena_init(&arena, 0);
    rv_buf_init(&buf, 1 << 23);
    for (unsigned count = 1; count <= 100000; count += count < 40 ? 1 : count * 2) {
        unsigned places[] = {0, count / 2, count - 1};
        add_wide(&buf, count, count);
        assert_int_equal(rv_json_parse(&arena, rv_buf_str(&buf), 64, &value, &fault), RV_OK);
        assert_int_equal(value.len, count);
        for (size_t i = 0; i < 3; i++) {
            rv_arena_reset(&arena);
            add_wide(&buf, count, places[i]);
            assert_int_equal(rv_json_parse(&arena, rv_buf_str(&buf), 64, &value, &fault),
                             RV_ERR_INVALID);
            assert_true(fault.offset > buf.len - 40);
        }
    }
    rv_buf_done(&buf);
    rv_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_texts_come_back),
        cmocka_unit_test(invalid_texts_are_refused),
        cmocka_unit_test(faults_name_line_and_column),
        cmocka_unit_test(nul_bytes_are_kept_only_as_escapes),
        cmocka_unit_test(each_byte_counts_wherever_it_stands),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(hostile_nesting_is_refused_early),
        cmocka_unit_test(repeated_keys_are_refused),
        cmocka_unit_test(repeated_keys_are_found_in_objects_of_every_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
