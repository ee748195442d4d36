/* The store's clock beside a wall clock that jumps: it goes on evenly, whatever happens. */
#include "base/prng.h"
#include "base/slew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const int64_t begin = INT64_C(1700000000000), hour = INT64_C(3600000);

static void it_shows_a_good_wall_clock(void **state)
{
    (void)state;
    struct rv_slew slew;
    rv_slew_begin(&slew, begin, 77, 0);
    for (int64_t at = 0; at < 100000; at += 13)
        assert_int_equal(rv_slew_read(&slew, begin + at, 77 + at), begin + at);
}

static void it_goes_on_from_its_floor(void **state)
{
    (void)state;
    struct rv_slew slew;
    rv_slew_begin(&slew, begin, 0, begin + hour);
    assert_int_equal(rv_slew_read(&slew, begin, 0), begin + hour);
    assert_int_equal(rv_slew_read(&slew, begin + 1000, 1000), begin + hour + 1000);
}

static void a_jump_ahead_and_back_leaves_no_trace(void **state)
{
    (void)state;
    struct rv_slew slew;
    rv_slew_begin(&slew, begin, 0, 0);
    for (int64_t at = 0; at <= 60000; at += 500) {
        int64_t jump = at > 10000 && at < 20000 ? hour : 0;
        int64_t shown = rv_slew_read(&slew, begin + jump + at, at);
        assert_in_range(shown, begin + at, begin + at + 10000 / RV_SLEW_DIVISOR + 1);
    }
    assert_int_equal(rv_slew_read(&slew, begin + 60500, 60500), begin + 60500);
}

static void it_approaches_a_wall_clock_that_stays_away(void **state)
{
    (void)state;
    for (int64_t jump = -5000; jump <= 5000; jump += 10000) {
        struct rv_slew slew;
        rv_slew_begin(&slew, begin, 0, 0);
        int64_t half = 2500 * RV_SLEW_DIVISOR, at;
        for (at = 0; at <= half; at += 1000)
            (void)rv_slew_read(&slew, begin + jump + at, at);
        assert_in_range(rv_slew_read(&slew, begin + jump + at, at), begin + at + jump / 2 - 2,
                        begin + at + jump / 2 + 2);
        for (; at <= 2 * half + 4000; at += 1000)
            (void)rv_slew_read(&slew, begin + jump + at, at);
        assert_int_equal(rv_slew_read(&slew, begin + jump + at, at), begin + jump + at);
    }
}

/* Between any two readings: what has passed, give or take the rate; and never back. */
static void it_never_jumps(void **state)
{
    (void)state;
    struct rv_prng dice;
    rv_prng_init(&dice, 4711);
    struct rv_slew slew;
    rv_slew_begin(&slew, begin, 0, 0);
    int64_t at = 0, wall = begin, before = begin;
    for (int i = 0; i < 200000; i++) {
        int64_t gone = (int64_t)(rv_prng_next(&dice) % 5000);
        at += gone;
        wall += gone;
        if (rv_prng_next(&dice) % 50 == 0)
            wall += (int64_t)(rv_prng_next(&dice) % (uint64_t)(2 * hour)) - hour;
        int64_t now = rv_slew_read(&slew, wall, at);
        assert_true(now >= before);
        int64_t off = now - before - gone;
        int64_t most = (gone + RV_SLEW_DIVISOR) / RV_SLEW_DIVISOR + 1;
        assert_true(off <= most && off >= -most);
        before = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_shows_a_good_wall_clock),
        cmocka_unit_test(it_goes_on_from_its_floor),
        cmocka_unit_test(a_jump_ahead_and_back_leaves_no_trace),
        cmocka_unit_test(it_approaches_a_wall_clock_that_stays_away),
        cmocka_unit_test(it_never_jumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
