/* Instants and durations as text, and back. */
#include "base/prng.h"
#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct instant_case {
    const char *text;
    int64_t at;
    const char *written; /* NULL: as `text` */
};

static void instants_are_read_and_written(void **state)
{
    (void)state;
    static const struct instant_case cases[] = {
        {"1970-01-01T00:00:00.000Z", 0, NULL},
        {"2026-11-21T01:30:00.000Z", INT64_C(1795224600000), NULL},
        {"2000-02-29T23:59:59.999Z", INT64_C(951868799999), NULL},
        {"1969-12-31T23:59:59.999Z", -1, NULL},
        {"0000-01-01T00:00:00.000Z", INT64_C(-62167219200000), NULL},
        {"9999-12-31T23:59:59.999Z", INT64_C(253402300799999), NULL},
        {"2026-11-21T01:30:00Z", INT64_C(1795224600000), "2026-11-21T01:30:00.000Z"},
        {"2026-11-21t01:30:00z", INT64_C(1795224600000), "2026-11-21T01:30:00.000Z"},
        {"2026-11-21T03:30:00+02:00", INT64_C(1795224600000), "2026-11-21T01:30:00.000Z"},
        {"2026-11-20T20:00:00-05:30", INT64_C(1795224600000), "2026-11-21T01:30:00.000Z"},
        {"2026-11-21T01:30:00.1Z", INT64_C(1795224600100), "2026-11-21T01:30:00.100Z"},
        {"2026-11-21T01:30:00.123999999999Z", INT64_C(1795224600123), "2026-11-21T01:30:00.123Z"},
        {"2016-12-31T23:59:60Z", INT64_C(1483228800000), "2017-01-01T00:00:00.000Z"},
        {"2017-01-01T00:59:60.9+01:00", INT64_C(1483228800000), "2017-01-01T00:00:00.000Z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t at = 77;
        char text[RV_INSTANT_TEXT_BYTES];
        assert_int_equal(rv_instant_parse(rv_str_of(cases[i].text), &at), RV_OK);
        assert_int_equal(at, cases[i].at);
        const char *wanted = cases[i].written ? cases[i].written : cases[i].text;
        assert_string_equal(rv_instant_text(at, text).at, wanted);
        assert_int_equal(rv_instant_text(at, text).len, strlen(wanted));
    }
}

static void what_is_no_instant_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "2026-11-21",
        "2026-11-21T01:30:00",
        "2026-11-21 01:30:00Z",
        "2026-11-21T01:30Z",
        "2026-11-21T01:30:00.Z",
        "2026-11-21T01:30:00,5Z",
        "2026-11-21T01:30:00ZZ",
        "2026-11-21T01:30:00Z ",
        "2026-13-21T01:30:00Z",
        "2026-00-21T01:30:00Z",
        "2026-11-31T01:30:00Z",
        "2026-11-00T01:30:00Z",
        "2026-02-29T01:30:00Z",
        "1900-02-29T01:30:00Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T01:60:00Z",
        "2026-11-21T01:30:60Z",
        "2026-11-21T01:30:61Z",
        "2026-11-21T01:30:00+24:00",
        "2026-11-21T01:30:00+02:60",
        "2026-11-21T01:30:00+0200",
        "2026-11-21T01:30:00+02",
        "-026-11-21T01:30:00Z",
        "+2026-11-21T01:30:00Z",
        "20261-11-21T01:30:00Z",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t at = 77;
        if (rv_instant_parse(rv_str_of(texts[i]), &at) != RV_ERR_INVALID)
            fail_msg("taken: %s", texts[i]);
        assert_int_equal(at, 77);
    }
    int64_t at = 77;
    assert_int_equal(rv_instant_parse(RV_STR_NONE, &at), RV_ERR_INVALID);
}

static void years_beyond_the_text_are_clamped(void **state)
{
    (void)state;
    char text[RV_INSTANT_TEXT_BYTES];
    assert_string_equal(rv_instant_text(INT64_MAX, text).at, "9999-12-31T23:59:59.999Z");
    assert_string_equal(rv_instant_text(INT64_MIN, text).at, "0000-01-01T00:00:00.000Z");
}

/* The first and last day of every month in 10,000 years against a calendar that only counts. */
static void every_month_has_its_days(void **state)
{
    (void)state;
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t at = INT64_C(-62167219200000);
    for (int year = 0; year < 10000; year++) {
        int leap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
        for (int month = 1; month <= 12; month++) {
            int days = month_days[month - 1] + (month == 2 ? leap : 0);
            for (int day = 1; day <= days; day += day == 1 ? days - 1 : 1) {
                char text[RV_INSTANT_TEXT_BYTES];
                char wanted[64];
                int64_t day_at = at + (day - 1) * RV_DAY_MS;
                snprintf(wanted, sizeof wanted, "%04d-%02d-%02dT00:00:00.000Z", year, month, day);
                assert_string_equal(rv_instant_text(day_at, text).at, wanted);
                int64_t back;
                assert_int_equal(rv_instant_parse(rv_str_of(wanted), &back), RV_OK);
                assert_int_equal(back, day_at);
            }
            at += days * RV_DAY_MS;
        }
    }
}

struct duration_case {
    const char *text;
    int64_t ms;
    const char *written;
};

static void durations_are_read_and_written(void **state)
{
    (void)state;
    static const struct duration_case cases[] = {
        {"PT0S", 0, "PT0S"},
        {"P0D", 0, "PT0S"},
        {"PT1.5S", 1500, "PT1.5S"},
        {"PT0.001S", 1, "PT0.001S"},
        {"PT0.0009S", 0, "PT0S"},
        {"PT10S", 10000, "PT10S"},
        {"PT1M", 60000, "PT1M"},
        {"PT90S", 90000, "PT1M30S"},
        {"PT0.5H", 1800000, "PT30M"},
        {"PT5M", 300000, "PT5M"},
        {"P2DT3H", INT64_C(183600000), "P2DT3H"},
        {"P1W", 7 * RV_DAY_MS, "P7D"},
        {"P1M", 30 * RV_DAY_MS, "P30D"},
        {"P1Y", 365 * RV_DAY_MS, "P365D"},
        {"P0.5Y", 365 * RV_DAY_MS / 2, "P182DT12H"},
        {"P1Y2M3W4DT5H6M7.008S",
         (365 + 60 + 21 + 4) * RV_DAY_MS + 5 * RV_HOUR_MS + 6 * 60000 + 7008, "P450DT5H6M7.008S"},
        {"P100Y", RV_DURATION_MS_MAX, "P36500D"},
        {"P36499DT23H59M59.999S", RV_DURATION_MS_MAX - 1, "P36499DT23H59M59.999S"},
        {"PT000000000000000000000000000001S", 1000, "PT1S"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ms = -7;
        char text[RV_INSTANT_TEXT_BYTES];
        assert_int_equal(rv_duration_parse(rv_str_of(cases[i].text), &ms), RV_OK);
        assert_int_equal(ms, cases[i].ms);
        assert_string_equal(rv_duration_text(ms, text).at, cases[i].written);
        assert_int_equal(rv_duration_text(ms, text).len, strlen(cases[i].written));
    }
    char text[RV_INSTANT_TEXT_BYTES];
    assert_string_equal(rv_duration_text(-5, text).at, "PT0S");
    assert_string_equal(rv_duration_text(INT64_MAX, text).at, "P36500D");
}

static void durations_are_typed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"500ms", 500},
                {"10m", 600000},
                {"7d", 7 * RV_DAY_MS},
                {"1h30m", 5400000},
                {"2w1d3h4m5s6ms", 15 * RV_DAY_MS + 3 * RV_HOUR_MS + 245006},
                {"0s", 0},
                {"36500d", RV_DURATION_MS_MAX},
                {"PT10M", 600000},
                {"P7D", 7 * RV_DAY_MS}};
    static const char *const bad[] = {
        "",    "10",   "m",    "10 m",  "10M",  "30m1h",     "1m1m",
        "-1s", "1.5h", "10m ", "1y",    "10mn", "36501d",    "P",
        "1hP", "ms",   "1h30", "pt10m", "1H",   "36500d1ms", "99999999999999999999s"};
    int64_t ms;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(rv_duration_parse_typed(rv_str_of(good[i].text), &ms), RV_OK);
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (rv_duration_parse_typed(rv_str_of(bad[i]), &ms) == RV_OK)
            fail_msg("taken: %s", bad[i]);
    }
}

static void what_is_no_duration_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "P",
        "PT",
        "P1DT",
        "1D",
        "T1S",
        "P1",
        "PT1",
        "P1S",
        "PT1D",
        "PT1W",
        "P-1D",
        "-P1D",
        "PT+1S",
        "P1D1D",
        "P1D1W",
        "PT1S1M",
        "PT1.5H1M",
        "PT.5S",
        "PT1.S",
        "PT1,5S",
        "P1DT1HT",
        "PT1S ",
        " PT1S",
        "pt1s",
        "P100Y1D",
        "P101Y",
        "PT1e3S",
        "P1.5DT1H",
        "PTS",
        "P99999999999999999999Y",
        "P36500DT0.001S",
        "P584942418Y", /* 2^64 ms and a little */
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t ms = 77;
        if (rv_duration_parse(rv_str_of(texts[i]), &ms) != RV_ERR_INVALID)
            fail_msg("taken: %s", texts[i]);
        assert_int_equal(ms, 77);
    }
}

static void texts_come_back_the_same(void **state)
{
    (void)state;
    const uint64_t seed = 20261121;
    struct rv_prng prng;
    rv_prng_init(&prng, seed);
    for (int i = 0; i < 20000; i++) {
        char text[RV_INSTANT_TEXT_BYTES];
        int64_t back = -1;
        int64_t ms = (int64_t)rv_prng_below(&prng, (uint64_t)RV_DURATION_MS_MAX + 1);
        ms >>= rv_prng_below(&prng, 42);
        assert_int_equal(rv_duration_parse(rv_duration_text(ms, text), &back), RV_OK);
        if (back != ms)
            fail_msg("seed %llu: duration %lld", (unsigned long long)seed, (long long)ms);
        int64_t at = (int64_t)rv_prng_below(&prng, UINT64_C(315569520000000)) -
                     INT64_C(62167219200000);
        assert_int_equal(rv_instant_parse(rv_instant_text(at, text), &back), RV_OK);
        if (back != at)
            fail_msg("seed %llu: instant %lld", (unsigned long long)seed, (long long)at);
    }
}

static void sums_stop_at_the_ends(void **state)
{
    (void)state;
    assert_int_equal(rv_time_add(5, 7), 12);
    assert_int_equal(rv_time_add(5, -7), -2);
    assert_int_equal(rv_time_add(INT64_MAX - 1, 7), INT64_MAX);
    assert_int_equal(rv_time_add(INT64_MIN + 1, -7), INT64_MIN);
    assert_int_equal(rv_time_add(7, INT64_MAX), INT64_MAX);
    assert_int_equal(rv_retry_after_ms(7, 1000), 7000);
    assert_int_equal(rv_retry_after_ms(0, 1000), 0);
    assert_int_equal(rv_retry_after_ms(INT64_MIN, 1000), 0);
    assert_int_equal(rv_retry_after_ms(RV_DURATION_MS_MAX, 1), RV_DURATION_MS_MAX);
    assert_int_equal(rv_retry_after_ms(RV_DURATION_MS_MAX / 1000 + 1, 1000), RV_DURATION_MS_MAX);
    assert_int_equal(rv_retry_after_ms(INT64_MAX, 1), RV_DURATION_MS_MAX);
    assert_int_equal(rv_time_earlier(0, 5), 5);
    assert_int_equal(rv_time_earlier(5, 0), 5);
    assert_int_equal(rv_time_earlier(4, 5), 4);
    assert_int_equal(rv_time_earlier(0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instants_are_read_and_written),
        cmocka_unit_test(what_is_no_instant_is_refused),
        cmocka_unit_test(years_beyond_the_text_are_clamped),
        cmocka_unit_test(every_month_has_its_days),
        cmocka_unit_test(durations_are_read_and_written),
        cmocka_unit_test(durations_are_typed),
        cmocka_unit_test(what_is_no_duration_is_refused),
        cmocka_unit_test(texts_come_back_the_same),
        cmocka_unit_test(sums_stop_at_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
