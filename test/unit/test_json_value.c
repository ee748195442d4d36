/* JSON values: numbers, look-up, equality, order, copies, the canonical form. */
#include "base/prng.h"
#include "json/json.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct rv_arena arena;
static struct rv_buf buf;

static int setup(void **state)
{
    (void)state;
    rv_arena_init(&arena, 0);
    rv_buf_init(&buf, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rv_buf_done(&buf);
    rv_arena_done(&arena);
    return 0;
}

static struct rv_json value_of(const char *text)
{
    struct rv_json value;
    if (rv_json_parse(&arena, rv_str_of(text), 64, &value, NULL) != RV_OK)
        fail_msg("no JSON: %s", text);
    return value;
}

static const char *written(struct rv_json value)
{
    rv_buf_reset(&buf);
    rv_json_write(&buf, &value);
    rv_buf_add_char(&buf, '\0');
    return buf.at;
}

static void integers_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t number;
    } whole[] = {
        {"0", 0},
        {"-0", 0},
        {"0e99999999999999999999", 0},
        {"7", 7},
        {"-7", -7},
        {"1e3", 1000},
        {"1.50e1", 15},
        {"1000e-3", 1},
        {"0.001e3", 1},
        {"9007199254740993", 9007199254740993},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"922337203685477580.7e1", INT64_MAX},
        {"1.000000000000000000000000000000000", 1},
        {"100000000000000000000000000000e-20", 1000000000},
        {"0.00000000000000000000000012e26", 12},
    };
    static const char *const none[] = {
        "0.5",
        "1e-1",
        "9223372036854775808",
        "-9223372036854775809",
        "1e19",
        "1e400",
        "1e-400",
        "18446744073709551616",
        "1.0000000000000000000000000001",
        "1e9999999999999999999999",
        "123456789012345678901234567890",
        "\"1\"",
        "null",
        "[1]",
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        struct rv_json value = value_of(whole[i].text);
        int64_t number = 99;
        assert_true(rv_json_int(&value, &number));
        assert_int_equal(number, whole[i].number);
    }
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        struct rv_json value = value_of(none[i]);
        int64_t number = 99;
        if (rv_json_int(&value, &number))
            fail_msg("%s is no int64", none[i]);
        assert_int_equal(number, 99);
    }
}

static void integers_of_computed_numbers(void **state)
{
    (void)state;
    int64_t number = 99;
    struct rv_json value = rv_json_of_real(-3);
    assert_true(rv_json_int(&value, &number) && number == -3);
    value = rv_json_of_real(-0x1p63);
    assert_true(rv_json_int(&value, &number) && number == INT64_MIN);
    const double none[] = {0x1p63, 1.5, (double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        value = rv_json_of_real(none[i]);
        assert_false(rv_json_int(&value, &number));
    }
    assert_false(rv_json_int(NULL, &number));
    assert_string_equal(written(rv_json_of_int(&arena, INT64_MIN)), "-9223372036854775808");
    struct rv_arena tiny;
    rv_arena_init(&tiny, 1);
    assert_int_equal(rv_json_of_int(&tiny, 12345).type, RV_JSON_NULL);
    rv_arena_done(&tiny);
}

static void assert_real(const char *text, double wanted)
{
    struct rv_json value = value_of(text);
    double real = rv_json_real(&value);
    if (memcmp(&real, &wanted, sizeof real) != 0)
        fail_msg("%s read as %.17g, not %.17g", text, real, wanted);
}

static void doubles_are_the_nearest(void **state)
{
    (void)state;
    assert_real("0", 0);
    assert_real("-0", -0.0);
    assert_real("-0.0e5", -0.0);
    assert_real("0.1", 0.1);
    assert_real("123.456e2", 12345.6);
    assert_real("1e22", 1e22);
    assert_real("1e23", 1e23);
    assert_real("9007199254740993", 9007199254740992.0);
    assert_real("2.2250738585072011e-308", 2.2250738585072011e-308);
    assert_real("5e-324", 5e-324);
    assert_real("2e-324", 0);
    assert_real("1e400", (double)INFINITY);
    assert_real("-1e400", -(double)INFINITY);
    assert_real("1e-99999999999999999999", 0);
    assert_real("0e99999999999999999999", 0);
    assert_real("1.7976931348623157e308", DBL_MAX);
}

/* The decimal point lies beyond what a buffer holds; the last digit decides the rounding. */
static void digits_without_end_still_decide(void **state)
{
    (void)state;
    struct rv_buf text;
    rv_buf_init(&text, 1 << 20);
    rv_buf_lit(&text, "9007199254740993."); /* the middle between two doubles */
    for (int i = 0; i < 5000; i++)
        rv_buf_add_char(&text, '0');
    rv_buf_lit(&text, "1");
    rv_buf_add_char(&text, '\0');
    assert_real(text.at, 9007199254740994.0);
    text.at[text.len - 2] = '0';
    assert_real(text.at, 9007199254740992.0);
    rv_buf_reset(&text);
    rv_buf_lit(&text, "0.");
    for (int i = 0; i < 5000; i++)
        rv_buf_add_char(&text, '0');
    rv_buf_lit(&text, "15e5001");
    rv_buf_add_char(&text, '\0');
    assert_real(text.at, 1.5);
    rv_buf_reset(&text);
    rv_buf_lit(&text, "1");
    for (int i = 0; i < 5000; i++)
        rv_buf_add_char(&text, '0');
    rv_buf_lit(&text, "e-5000");
    rv_buf_add_char(&text, '\0');
    assert_real(text.at, 1);
    rv_buf_done(&text);
}

static void computed_numbers_have_the_fewest_digits(void **state)
{
    (void)state;
    static const struct {
        double real;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-42, "-42"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {19.99, "19.99"},
        {-0.05, "-0.05"},
        {100.5, "100.5"},
        {0.0001, "0.0001"},
        {0.00001, "1e-5"},
        {0.00012345, "0.00012345"},
        {1.5e-10, "1.5e-10"},
        {1e15, "1000000000000000"},
        {1e16, "10000000000000000"},
        {1e17, "100000000000000000"},
        {1.2e17, "1.2e17"},
        {1e18, "1e18"},
        {9007199254740993.0, "9007199254740992"},
        {1e21, "1e21"},
        {1e22, "1e22"},
        {1e23, "1e23"},
        {123456789.125, "123456789.125"},
        {5e-324, "5e-324"},
        {0x1p-489, "6.256509672447191e-148"},
        {0x1p863, "6.150157786156811e259"},
        {0x1p-44, "5.684341886080802e-14"},
        {9.5367431640625e-07, "9.5367431640625e-7"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e308"},
        {2251799813685248.5, "2251799813685248.5"},
        {99999999999999.98, "99999999999999.98"},
        {(double)INFINITY, "1.7976931348623157e308"},
        {(double)NAN, "null"},
        {-(double)INFINITY, "-1.7976931348623157e308"},
        {0.001, "0.001"},
        {0.3125, "0.3125"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(written(rv_json_of_real(cases[i].real)), cases[i].text);
}

/* Whether `digits` digits suffice to tell `real` from all other doubles: those next below and next
 * above it, as an integer and a power of ten. */
static bool digits_suffice(double real, int digits)
{
    char text[40];
    char rounded[40];
    size_t len = 0;
    snprintf(text, sizeof text, "%.*e", digits - 1, real);
    char *exponent = strchr(text, 'e');
    for (char *at = text; at != exponent; at++)
        if (*at >= '0' && *at <= '9')
            rounded[len++] = *at;
    rounded[len] = '\0';
    long long whole = strtoll(rounded, NULL, 10);
    for (long long step = -1; step <= 1; step++) {
        snprintf(rounded, sizeof rounded, "%s%llde%ld", *text == '-' ? "-" : "", whole + step,
                 strtol(exponent + 1, NULL, 10) - digits + 1);
        if (strtod(rounded, NULL) == real)
            return true;
    }
    return false;
}

/* How many digits from the first to the last that is not 0. */
static int significant(const char *text)
{
    int count = 0;
    int last = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (count == 0 && *text == '0'))
            continue;
        count++;
        if (*text != '0')
            last = count;
    }
    return last;
}

static double random_double(struct rv_prng *prng)
{
    uint64_t bits = rv_prng_next(prng);
    double real;
    switch (rv_prng_below(prng, 4)) {
    case 0: /* any exponent */
        memcpy(&real, &bits, sizeof real);
        return isfinite(real) ? real : 1;
    case 1: /* a power of two, or beside it */
        real = ldexp(1, (int)(bits % 2098) - 1074);
        return bits >> 63 ? nextafter(real, 0) : real;
    case 2: /* few decimals */
        return (double)(bits % 1000000000) / pow(10, (double)(bits >> 60));
    default: /* the result of a division */
        return (double)(bits >> 40) / (double)(bits % 1000 + 1);
    }
}

static void computed_numbers_come_back(void **state)
{
    (void)state;
    const uint64_t seed = 42;
    struct rv_prng prng;
    rv_prng_init(&prng, seed);
    for (int i = 0; i < 20000; i++) {
        double real = random_double(&prng);
        const char *text = written(rv_json_of_real(real));
        if (strtod(text, NULL) != real || rv_json_scan(rv_str_of(text), 0, NULL) != RV_OK)
            fail_msg("seed %llu: %.17g written as %s", (unsigned long long)seed, real, text);
        struct rv_json back = value_of(text);
        double read = rv_json_real(&back);
        if (memcmp(&read, &real, sizeof real) != 0)
            fail_msg("seed %llu: %s read as %.17g", (unsigned long long)seed, text, read);
        /* One digit less must not suffice; but integers have all of theirs. */
        int digits = significant(text);
        bool integer = fabs(real) <= 1e17 && real == trunc(real);
        if (digits > 1 && !integer && digits_suffice(real, digits - 1))
            fail_msg("seed %llu: %s is too long", (unsigned long long)seed, text);
        rv_arena_reset(&arena);
    }
}

static void members_are_found(void **state)
{
    (void)state;
    struct rv_json value = value_of("{\"a\":1,\"\":2,\"b\":{\"c\":[10,20,{\"d\":\"e\"}]}}");
    assert_string_equal(written(*rv_json_get(&value, RV_STR("a"))), "1");
    assert_string_equal(written(*rv_json_get(&value, RV_STR(""))), "2");
    assert_null(rv_json_get(&value, RV_STR("c")));
    assert_null(rv_json_get(NULL, RV_STR("c")));
    assert_null(rv_json_get(rv_json_get(&value, RV_STR("a")), RV_STR("c")));
    const struct rv_json *e = rv_json_at(&value, RV_STR("/b/c/2/d"));
    assert_true(rv_str_is(rv_json_str(e), "e"));
    assert_null(rv_json_str(&value).at);
    assert_null(rv_json_str(NULL).at);
    assert_true(rv_json_real(e) == 0 && rv_json_real(NULL) == 0);
}

/* The examples of RFC 6901, section 5, and what leads nowhere. */
static void pointers_lead_to_values(void **state)
{
    (void)state;
    struct rv_json value = value_of(
        "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,"
        "\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8,\"~1\":9}");
    static const char *const found[][2] = {
        {"/foo", "[\"bar\",\"baz\"]"},
        {"/foo/0", "\"bar\""},
        {"/foo/1", "\"baz\""},
        {"/", "0"},
        {"/a~1b", "1"},
        {"/c%d", "2"},
        {"/e^f", "3"},
        {"/g|h", "4"},
        {"/i\\j", "5"},
        {"/k\"l", "6"},
        {"/ ", "7"},
        {"/m~0n", "8"},
        {"/~01", "9"},
    };
    static const char *const nowhere[] = {
        "foo",
        "/foo/2",
        "/foo/-",
        "/foo/00",
        "/foo/01",
        "/foo/",
        "/foo/0/0",
        "/foo/4294967296",
        "/foo/18446744073709551616",
        "/m~n",
        "/m~",
        "/m~2n",
        "/fo",
        "/fooo",
        "//",
        "/foo/+1",
    };
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        assert_string_equal(written(*rv_json_at(&value, rv_str_of(found[i][0]))), found[i][1]);
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        if (rv_json_at(&value, rv_str_of(nowhere[i])) != NULL)
            fail_msg("%s leads somewhere", nowhere[i]);
    assert_ptr_equal(rv_json_at(&value, RV_STR("")), &value);
    assert_null(rv_json_at(NULL, RV_STR("")));
    for (uint32_t i = 0; i < value.len; i++) {
        rv_buf_reset(&buf);
        rv_json_pointer_add(&buf, rv_json_str(&value.u.members[i].key));
        assert_ptr_equal(rv_json_at(&value, rv_buf_str(&buf)), &value.u.members[i].value);
    }
}

static void equality_is_of_values(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        bool equal;
    } cases[] = {
        {"1", "1.0", true},
        {"1e2", "100", true},
        {"1", "2", false},
        {"0", "-0", true},
        {"1", "\"1\"", false},
        {"null", "false", false},
        {"true", "false", false},
        {"\"a\"", "\"\\u0061\"", true},
        {"\"a\"", "\"ab\"", false},
        {"[]", "{}", false},
        {"[1,2]", "[2,1]", false},
        {"[1,2]", "[1,2,3]", false},
        {"{}", "{}", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":3}", false},
        {"{\"a\":1,\"b\":2}", "{\"b\":1,\"a\":2}", false},
        {"123456789012345678901234567890", "123456789012345678901234567890", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rv_json a = value_of(cases[i].a);
        struct rv_json b = value_of(cases[i].b);
        if (rv_json_equal(&a, &b) != cases[i].equal || rv_json_equal(&b, &a) != cases[i].equal)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
    }
    struct rv_json nan = rv_json_of_real((double)NAN);
    assert_false(rv_json_equal(&nan, &nan));
    assert_int_equal(rv_json_compare(&nan, &nan), 0);
    struct rv_json made = rv_json_of_real(1.5);
    struct rv_json read = value_of("15e-1");
    assert_true(rv_json_equal(&made, &read));
}

/* Each text is less than the next (jq manual, sort). */
static void order_is_that_of_jq(void **state)
{
    (void)state;
    static const char *const rising[] = {
        "null",
        "false",
        "true",
        "-1e400",
        "-1",
        "0",
        "0.5",
        "1",
        "10",
        "1e400",
        "\"\"",
        "\"A\"",
        "\"a\"",
        "\"aa\"",
        "\"b\"",
        "\"\xc3\xa9\"",
        "\"\xef\xbf\xbd\"",
        "\"\xf0\x9f\x98\x80\"",
        "[]",
        "[null]",
        "[0]",
        "[0,1]",
        "[1]",
        "[[]]",
        "{}",
        "{\"a\":9}",
        "{\"a\":1,\"b\":0}",
        "{\"b\":0,\"a\":2}",
        "{\"a\":0,\"c\":0}",
        "{\"b\":0}",
    };
    size_t count = sizeof rising / sizeof rising[0];
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            struct rv_json a = value_of(rising[i]);
            struct rv_json b = value_of(rising[j]);
            int order = rv_json_compare(&a, &b);
            if ((order > 0) - (order < 0) != (i > j) - (i < j))
                fail_msg("%s and %s: %d", rising[i], rising[j], order);
        }
    }
    struct rv_json nan = rv_json_of_real((double)NAN);
    struct rv_json low = value_of("-1e400");
    assert_true(rv_json_compare(&nan, &low) < 0 && rv_json_compare(&low, &nan) > 0);
}

static void canonical_form_sorts_keys(void **state)
{
    (void)state;
    struct rv_json value = value_of(
        "{\"b\":[{\"z\":1,\"y\":1.0}],\"\":0,\"aa\":{\"d\":null,\"c\":\"\\u0041\"},"
        "\"a\":2,\"\xc3\xa9\":3,\"\\u0000\":4}");
    rv_buf_reset(&buf);
    rv_json_write_canonical(&buf, &value);
    rv_buf_add_char(&buf, '\0');
    assert_string_equal(buf.at, "{\"\":0,\"\\u0000\":4,\"a\":2,\"aa\":{\"c\":\"A\",\"d\":null},"
                                "\"b\":[{\"y\":1.0,\"z\":1}],\"\xc3\xa9\":3}");
}

/* Objects of all sizes around the one from which they are sorted, shuffled. */
static void canonical_form_and_equality_ignore_the_order(void **state)
{
    (void)state;
    const uint64_t seed = 9;
    struct rv_prng prng;
    struct rv_buf canonical;
    rv_prng_init(&prng, seed);
    rv_buf_init(&canonical, 1 << 20);
    for (uint32_t count = 0; count < 300; count += count < 40 ? 1 : 37) {
        struct rv_json_member *members = RV_NEW_ARRAY(&arena, struct rv_json_member, count + 1);
        for (uint32_t i = 0; i < count; i++) {
            members[i].key = rv_json_of_str(rv_arena_printf(&arena, "prefix--%u", i * 37 % 1009));
            members[i].value = rv_json_of_int(&arena, i);
        }
        struct rv_json a = {.type = RV_JSON_OBJECT, .len = count, .u = {.members = members}};
        struct rv_json b;
        assert_int_equal(rv_json_copy(&arena, &a, &b), RV_OK);
        for (uint32_t i = count; i > 1; i--) {
            uint32_t j = (uint32_t)rv_prng_below(&prng, i);
            struct rv_json_member swap = members[i - 1];
            members[i - 1] = members[j];
            members[j] = swap;
        }
        rv_buf_reset(&canonical);
        rv_json_write_canonical(&canonical, &a);
        rv_buf_reset(&buf);
        rv_json_write_canonical(&buf, &b);
        assert_true(rv_str_eq(rv_buf_str(&buf), rv_buf_str(&canonical)));
        assert_true(rv_json_equal(&a, &b));
        assert_int_equal(rv_json_compare(&a, &b), 0);
        if (count > 0) {
            members[0].value = rv_json_null();
            assert_false(rv_json_equal(&a, &b));
            assert_true(rv_json_compare(&a, &b) < 0 && rv_json_compare(&b, &a) > 0);
        }
    }
    rv_buf_done(&canonical);
}

static void copies_own_what_they_point_to(void **state)
{
    (void)state;
    char text[] = "{\"key\":[\"text\",12.50,\"\",{}],\"e\":[]}";
    struct rv_arena other;
    struct rv_json value, copy;
    rv_arena_init(&other, 0);
    assert_int_equal(rv_json_parse(&other, rv_str_of(text), 64, &value, NULL), RV_OK);
    assert_int_equal(rv_json_copy(&arena, &value, &copy), RV_OK);
    memset(text, 'x', sizeof text - 1);
    rv_arena_done(&other);
    assert_string_equal(written(copy), "{\"key\":[\"text\",12.50,\"\",{}],\"e\":[]}");
}

static void copies_stop_at_the_cap(void **state)
{
    (void)state;
    struct rv_json value = value_of("[{\"key\":\"text\"},[1,2,3],\"more\"]");
    enum rv_err err = RV_ERR_LIMIT;
    for (size_t cap = 1; err != RV_OK; cap++) {
        struct rv_arena tight;
        struct rv_json copy = rv_json_bool(true);
        rv_arena_init(&tight, cap);
        err = rv_json_copy(&tight, &value, &copy);
        if (err == RV_OK) {
            assert_true(rv_json_equal(&value, &copy));
        } else {
            assert_int_equal(err, RV_ERR_LIMIT);
            assert_int_equal(copy.type, RV_JSON_NULL);
        }
        rv_arena_done(&tight);
        assert_true(cap < 1000);
    }
}

/* `depth` arrays, each with `width` times the one below. */
static struct rv_json tower(unsigned depth, uint32_t width)
{
    struct rv_json value = rv_json_of_real(1);
    for (unsigned i = 0; i < depth; i++) {
        struct rv_json *items = rv_arena_take(&arena, width * sizeof *items);
        for (uint32_t j = 0; j < width; j++)
            items[j] = value;
        value = (struct rv_json){.type = RV_JSON_ARRAY, .len = width, .u = {.items = items}};
    }
    return value;
}

static void towers_end_at_the_limit(void **state)
{
    (void)state;
    struct rv_json copy;
    struct rv_json high = tower(RV_JSON_NESTING_MAX, 1);
    struct rv_json same = tower(RV_JSON_NESTING_MAX, 1);
    assert_true(rv_json_equal(&high, &same));
    assert_int_equal(rv_json_copy(&arena, &high, &copy), RV_OK);
    rv_buf_reset(&buf);
    rv_json_write(&buf, &high);
    assert_int_equal(buf.failed, RV_OK);
    high = tower(200000, 1);
    same = tower(200000, 1);
    assert_false(rv_json_equal(&high, &same));
    assert_int_equal(rv_json_compare(&high, &same), 0);
    assert_int_equal(rv_json_copy(&arena, &high, &copy), RV_ERR_LIMIT);
    assert_int_equal(copy.type, RV_JSON_NULL);
    rv_buf_reset(&buf);
    rv_json_write(&buf, &high);
    assert_int_equal(buf.failed, RV_ERR_LIMIT);
}

/* 2^60 values in a kilobyte: a full buffer, a full arena and fuel end every walk. */
static void shared_parts_do_not_multiply_work(void **state)
{
    (void)state;
    struct rv_json a = tower(60, 2);
    struct rv_json b = tower(60, 2);
    int64_t fuel = 1000;
    rv_json_compare_within(&a, &b, &fuel);
    assert_true(fuel < 0 && fuel > -1000);
    fuel = 1000;
    rv_json_equal_within(&a, &b, &fuel);
    assert_true(fuel < 0 && fuel > -1000);
    fuel = 1000;
    assert_int_equal(rv_json_compare_within(&a, &a, &fuel), 0);
    assert_true(fuel > 900);
    struct rv_arena tight;
    struct rv_json copy;
    rv_arena_init(&tight, 100000);
    assert_int_equal(rv_json_copy(&tight, &a, &copy), RV_ERR_LIMIT);
    rv_arena_done(&tight);
    rv_buf_reset(&buf);
    rv_json_write(&buf, &a);
    assert_int_equal(buf.failed, RV_ERR_LIMIT);
    rv_buf_reset(&buf);
    rv_json_write_canonical(&buf, &a);
    assert_int_equal(buf.failed, RV_ERR_LIMIT);
}

static void strings_are_written_safely(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"\"\\/", "\"\\\"\\\\/\""},
        {"\x01\x1f\b\t\n\f\r", "\"\\u0001\\u001f\\b\\t\\n\\f\\r\""},
        {"a\xff"
         "b",
         "\"a\xef\xbf\xbd"
         "b\""},
        {"\xc3", "\"\xef\xbf\xbd\""},
        {"\xc3\xa9\x80", "\"\xc3\xa9\xef\xbf\xbd\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"0123456789\n", "\"0123456789\\n\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rv_buf_reset(&buf);
        rv_json_write_string(&buf, rv_str_of(cases[i][0]));
        rv_buf_add_char(&buf, '\0');
        assert_string_equal(buf.at, cases[i][1]);
    }
    rv_buf_reset(&buf);
    rv_json_write_string(&buf, RV_STR_NONE);
    rv_json_write_string(&buf, RV_STR("a\0b"));
    assert_true(rv_str_is(rv_buf_str(&buf), "\"\"\"a\\u0000b\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(integers_are_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(integers_of_computed_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(doubles_are_the_nearest, setup, teardown),
        cmocka_unit_test_setup_teardown(digits_without_end_still_decide, setup, teardown),
        cmocka_unit_test_setup_teardown(computed_numbers_have_the_fewest_digits, setup, teardown),
        cmocka_unit_test_setup_teardown(computed_numbers_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(members_are_found, setup, teardown),
        cmocka_unit_test_setup_teardown(pointers_lead_to_values, setup, teardown),
        cmocka_unit_test_setup_teardown(equality_is_of_values, setup, teardown),
        cmocka_unit_test_setup_teardown(order_is_that_of_jq, setup, teardown),
        cmocka_unit_test_setup_teardown(canonical_form_sorts_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(canonical_form_and_equality_ignore_the_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(copies_own_what_they_point_to, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_stop_at_the_cap, setup, teardown),
        cmocka_unit_test_setup_teardown(towers_end_at_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(shared_parts_do_not_multiply_work, setup, teardown),
        cmocka_unit_test_setup_teardown(strings_are_written_safely, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
