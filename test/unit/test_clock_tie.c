/* Another's clock, of which one hears with a delay. */
#include "base/clock_tie.h"
#include "base/prng.h"
#include "base/slew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { AHEAD = 1000000 };

static void an_answer_at_once_is_exact(void **state)
{
    (void)state;
    struct rv_clock_tie tie = {.tied = false};
    int64_t first, last;
    rv_clock_tie_look(&tie, AHEAD + 50, 50, 50, &first, &last);
    assert_int_equal(first, 50);
    assert_int_equal(last, 50);
}

/* The answer takes its time on the way there, then on the way back. */
static void a_quick_answer_bounds_the_slow_ones(void **state)
{
    (void)state;
    struct rv_clock_tie tie = {.tied = false};
    int64_t first, last;
    rv_clock_tie_look(&tie, AHEAD + 10, 0, 30, &first, &last);
    assert_int_equal(first, 0);
    assert_int_equal(last, 30);
    rv_clock_tie_look(&tie, AHEAD + 101, 100, 102, &first, &last);
    assert_int_equal(first, 100);
    assert_int_equal(last, 102);
    rv_clock_tie_look(&tie, AHEAD + 900, 200, 905, &first, &last);
    assert_int_equal(first, 898);
    assert_int_equal(last, 902);
    rv_clock_tie_look(&tie, AHEAD + 1000, 995, 1900, &first, &last);
    assert_int_equal(first, 998);
    assert_int_equal(last, 1002);
}

static void a_clock_that_was_set_is_measured_anew(void **state)
{
    (void)state;
    static const int64_t jumps[] = {-500, 500};
    for (size_t i = 0; i < 2; i++) {
        struct rv_clock_tie tie = {.tied = false};
        int64_t first, last;
        rv_clock_tie_look(&tie, AHEAD + 100, 100, 100, &first, &last);
        rv_clock_tie_look(&tie, AHEAD + jumps[i] + 210, 200, 220, &first, &last);
        assert_int_equal(first, 200);
        assert_int_equal(last, 220);
        rv_clock_tie_look(&tie, AHEAD + jumps[i] + 300, 300, 301, &first, &last);
        assert_int_equal(first, 300);
        assert_int_equal(last, 301);
    }
}

/* Whatever the delays are, and however the clock approaches the wall clock: the instant at which it
 * was read lies in the bounds. */
static void the_true_instant_is_within_the_bounds(void **state)
{
    (void)state;
    struct rv_prng prng;
    rv_prng_init(&prng, 7);
    for (int run = 0; run < 200; run++) {
        struct rv_clock_tie tie = {.tied = false};
        int64_t mono = 1000, drifted = 0, drift_at = mono;
        int64_t pace = (int64_t)rv_prng_below(&prng, 3) - 1;
        for (int look = 0; look < 200; look++) {
            int64_t before = mono + (int64_t)rv_prng_below(&prng, 3000);
            int64_t read = before + (int64_t)rv_prng_below(&prng, 1 + rv_prng_below(&prng, 400));
            int64_t after = read + (int64_t)rv_prng_below(&prng, 1 + rv_prng_below(&prng, 400));
            int64_t steps = (read - drift_at) / RV_SLEW_DIVISOR;
            drifted += pace * steps;
            drift_at += steps * RV_SLEW_DIVISOR;
            int64_t first, last;
            rv_clock_tie_look(&tie, AHEAD + read + drifted, before, after, &first, &last);
            assert_true(before <= first && first <= last && last <= after);
            assert_true(first <= read && read <= last);
            mono = after;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_at_once_is_exact),
        cmocka_unit_test(a_quick_answer_bounds_the_slow_ones),
        cmocka_unit_test(a_clock_that_was_set_is_measured_anew),
        cmocka_unit_test(the_true_instant_is_within_the_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
