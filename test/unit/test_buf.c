/* Buffers: growth, the cap, the failure that sticks. */
#include "base/buf.h"
#include "base/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void appends_follow_each_other(void **state)
{
    (void)state;
    struct rv_buf buf;
    rv_buf_init(&buf, 1000);
    assert_int_equal(rv_buf_str(&buf).len, 0);
    assert_non_null(rv_buf_str(&buf).at);
    rv_buf_lit(&buf, "a");
    rv_buf_add_char(&buf, 'b');
    rv_buf_add_str(&buf, RV_STR("cd"));
    rv_buf_add_str(&buf, RV_STR_NONE);
    rv_buf_add_int(&buf, -120);
    rv_buf_printf(&buf, "%s-%d", "e", 7);
    assert_true(rv_str_is(rv_buf_str(&buf), "abcd-120e-7"));
    rv_buf_done(&buf);
}

#define ZERO RV_STR("a\0b")

static void zero_bytes_in_texts_are_kept(void **state)
{
    (void)state;
    struct rv_buf buf;
    rv_buf_init(&buf, 10000);
    rv_buf_printf(&buf, "%.*s", RV_STR_FMT(ZERO));
    assert_true(rv_str_eq(rv_buf_str(&buf), ZERO));
    rv_buf_reset(&buf);
    rv_buf_printf(&buf, "%s %d%% %lld %zu %5u %-3s|%*d %.2f %.2s %c %.*s<%.*s>%.*s %llu %08x %ld",
                  "s", -1, INT64_MIN + 0LL, SIZE_MAX, 7U, "l", 3, 9, 0.5, "cut", 'c',
                  RV_STR_FMT(ZERO), RV_STR_FMT(RV_STR_NONE), RV_STR_FMT(RV_STR("\0")),
                  UINT64_MAX + 0ULL, 0xbeefU, -2L);
    assert_true(rv_str_eq(
        rv_buf_str(&buf),
        RV_STR("s -1% -9223372036854775808 18446744073709551615     7 l  |  9 0.50 cu c a\0b<>\0 "
               "18446744073709551615 0000beef -2")));
    rv_buf_reset(&buf);
    char large[1500]; /* more than any room that is there at first */
    memset(large, 'x', sizeof large);
    large[700] = '\0';
    rv_buf_printf(&buf, "[%.*s]", (int)sizeof large, large);
    assert_int_equal(buf.len, sizeof large + 2);
    assert_memory_equal(buf.at + 1, large, sizeof large);
    assert_int_equal(buf.at[buf.len - 1], ']');
    rv_buf_done(&buf);
}

/* As vsnprintf(), also where the room ends. */
__attribute__((format(printf, 3, 4))) static int formatted(char *to, size_t room,
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = rv_format(to, room, format, args);
    va_end(args);
    return n;
}

static void a_room_that_is_too_small_is_kept_to(void **state)
{
    (void)state;
    static const char whole[] = "<a\0b|12>";
    for (size_t room = 0; room <= sizeof whole + 1; room++) {
        char to[sizeof whole + 4];
        memset(to, '!', sizeof to);
        assert_int_equal(formatted(to, room, "<%.*s|%d>", RV_STR_FMT(ZERO), 12), sizeof whole - 1);
        size_t kept = room > sizeof whole ? sizeof whole : room;
        if (kept > 0) {
            assert_memory_equal(to, whole, kept - 1);
            assert_int_equal(to[kept - 1], '\0');
        }
        assert_int_equal(to[kept], '!');
    }
}

static void integers_have_all_their_digits(void **state)
{
    (void)state;
    struct rv_buf buf;
    rv_buf_init(&buf, 1000);
    rv_buf_add_int(&buf, 0);
    rv_buf_add_char(&buf, ' ');
    rv_buf_add_int(&buf, INT64_MAX);
    rv_buf_add_char(&buf, ' ');
    rv_buf_add_int(&buf, INT64_MIN);
    assert_true(rv_str_is(rv_buf_str(&buf), "0 9223372036854775807 -9223372036854775808"));
    rv_buf_done(&buf);
}

static void all_but_the_unreserved_is_escaped(void **state)
{
    (void)state;
    struct rv_buf buf;
    rv_buf_init(&buf, 64);
    rv_buf_add_percent(&buf, RV_STR("aZ09-._~ /%\xc3\xa9"));
    assert_true(rv_str_is(rv_buf_str(&buf), "aZ09-._~%20%2F%25%C3%A9"));
    rv_buf_done(&buf);
}

static void a_word_is_quoted_for_the_shell_where_it_must_be(void **state)
{
    static const char *const rows[][2] = {{"/var/lib/reeve_1.db", "/var/lib/reeve_1.db"},
                                          {"", "''"},
                                          {"my store.db", "'my store.db'"},
                                          {"it's $HOME", "'it'\\''s $HOME'"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rv_buf buf;
        rv_buf_init(&buf, 100);
        rv_buf_add_word(&buf, rv_str_of(rows[i][0]));
        assert_true(rv_str_is(rv_buf_str(&buf), rows[i][1]));
        rv_buf_done(&buf);
    }
}

static void any_size_can_be_printed(void **state)
{
    (void)state;
    struct rv_buf buf;
    rv_buf_init(&buf, 10000);
    for (int width = 1; width < 2000; width += 123) {
        rv_buf_reset(&buf);
        rv_buf_printf(&buf, "<%*d>", width, 5);
        assert_int_equal(buf.len, width + 2);
        assert_int_equal(buf.at[width], '5');
        assert_int_equal(buf.at[width + 1], '>');
    }
    rv_buf_done(&buf);
}

static void the_cap_can_be_filled_and_not_passed(void **state)
{
    (void)state;
    for (size_t cap = 0; cap < 600; cap += 7) {
        struct rv_buf buf;
        rv_buf_init(&buf, cap);
        for (size_t i = 0; i < cap; i++)
            rv_buf_add_char(&buf, 'x');
        assert_int_equal(buf.failed, RV_OK);
        assert_int_equal(buf.len, cap);
        rv_buf_add_char(&buf, 'y');
        assert_int_equal(buf.failed, RV_ERR_LIMIT);
        assert_int_equal(buf.len, cap);
        rv_buf_done(&buf);
    }
}

static void a_failure_sticks_until_reset(void **state)
{
    (void)state;
    struct rv_buf buf;
    rv_buf_init(&buf, 300);
    rv_buf_lit(&buf, "kept");
    assert_null(rv_buf_reserve(&buf, 297));
    assert_int_equal(buf.failed, RV_ERR_LIMIT);
    rv_buf_add_char(&buf, 'x');
    rv_buf_printf(&buf, "%d", 1);
    assert_null(rv_buf_reserve(&buf, 1));
    assert_true(rv_str_is(rv_buf_str(&buf), "kept"));
    rv_buf_reset(&buf);
    rv_buf_lit(&buf, "again");
    assert_int_equal(buf.failed, RV_OK);
    assert_true(rv_str_is(rv_buf_str(&buf), "again"));
    assert_null(rv_buf_reserve(&buf, SIZE_MAX));
    assert_int_equal(buf.failed, RV_ERR_LIMIT);
    rv_buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_follow_each_other),
        cmocka_unit_test(zero_bytes_in_texts_are_kept),
        cmocka_unit_test(a_room_that_is_too_small_is_kept_to),
        cmocka_unit_test(integers_have_all_their_digits),
        cmocka_unit_test(all_but_the_unreserved_is_escaped),
        cmocka_unit_test(a_word_is_quoted_for_the_shell_where_it_must_be),
        cmocka_unit_test(any_size_can_be_printed),
        cmocka_unit_test(the_cap_can_be_filled_and_not_passed),
        cmocka_unit_test(a_failure_sticks_until_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
