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
        "null", "true", "false", "0", "-0", "1", "-1.5e-7", "1E+2", "1e400", "-1e-400", "0.10",
        "123456789012345678901234567890", "\"\"", "\"abc\"", "[]", "{}", "[1,2,3]",
        "{\"a\":{\"b\":[null,true,{}]},\"c\":\"d\"}", "\"\\u0000\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "[[[[[[]]]]]]", "{\"\":0}", "\"\x7f\"",
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

static void invalid_texts_are_refused(void **state)
{
    (void)state;
    static const struct refused_case cases[] = {
        {"", 0}, {"  ", 2}, {"nul", 0}, {"nulll", 4}, {"True", 0}, {"'a'", 0}, {"+1", 0},
        {"01", 0}, {"-01", 1}, {"-", 1}, {".5", 0}, {"1.", 2}, {"1.e5", 2}, {"1e", 2}, {"1e+", 3},
        {"0x10", 1}, {"NaN", 0}, {"Infinity", 0}, {"-Infinity", 1}, {"1 2", 2}, {"[1,]", 3},
        {"[,1]", 1}, {"[1 2]", 3}, {"[1", 2}, {"[", 1}, {"]", 0}, {"[1}", 2}, {"{", 1},
        {"{\"a\"", 4}, {"{\"a\":", 5}, {"{\"a\":1", 6}, {"{\"a\":1,", 7}, {"{\"a\":1,}", 7},
        {"{\"a\" 1}", 5}, {"{a:1}", 1}, {"{1:1}", 1}, {"{\"a\":1]", 6}, {"{,}", 1}, {"[]]", 2},
        {"\"abc", 4}, {"\"\\", 2}, {"\"\\x\"", 1}, {"\"\\u12\"", 1}, {"\"\\u12G4\"", 1},
        {"\"\\ud800\"", 1}, {"\"\\ud800x\"", 1}, {"\"\\ud800\\u0041\"", 1}, {"\"\\udc00\"", 1},
        {"\"\\ud800\\ud800\"", 1}, {"\"a\nb\"", 2}, {"\"\t\"", 1}, {"\"\x1f\"", 1},
        {"\"\xc0\x80\"", 1}, {"\"\xc1\xbf\"", 1}, {"\"\xe0\x80\x80\"", 1},
        {"\"\xed\xa0\x80\"", 1}, {"\"\xf0\x80\x80\x80\"", 1}, {"\"\xf4\x90\x80\x80\"", 1},
        {"\"\xf5\x80\x80\x80\"", 1}, {"\"\x80\"", 1}, {"\"\xff\"", 1}, {"\"\xc3\"", 1},
        {"\"\xe2\x82\"", 1}, {"\"\xf0\x9f\x98\"", 1}, {"\xef\xbb\xbf{}", 0}, {"// x\n1", 0},
        {"[1] /* */", 4}, {"\v1", 0}, {"\xc2\xa0" "1", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rv_arena arena;
        struct rv_json value = rv_json_bool(true);
        struct rv_json_fault fault = {.message = NULL};
        rv_arena_init(&arena, 0);
        if (parse(&arena, rv_str_of(cases[i].text), &value, &fault) != RV_ERR_INVALID)
            fail_msg("taken: %s", cases[i].text);
        if (fault.offset != cases[i].offset)
            fail_msg("%s: offset %zu, not %zu", cases[i].text, fault.offset, cases[i].offset);
        assert_non_null(fault.message);
        assert_int_equal(value.type, RV_JSON_BOOL);
        rv_arena_done(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_texts_come_back),
        cmocka_unit_test(invalid_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
