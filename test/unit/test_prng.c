/* Random numbers: a seed gives its own, bounds hold. */
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_seed_gives_its_numbers(void **state)
{
    (void)state;
    struct rv_prng a, b, c;
    int same = 0;
    rv_prng_init(&a, 1);
    rv_prng_init(&b, 1);
    rv_prng_init(&c, 2);
    for (int i = 0; i < 1000; i++) {
        uint64_t x = rv_prng_next(&a);
        assert_true(x == rv_prng_next(&b));
        same += x == rv_prng_next(&c);
    }
    assert_int_equal(same, 0);
}

static void bounds_hold_and_all_is_reached(void **state)
{
    (void)state;
    struct rv_prng prng;
    int counts[7] = {0};
    rv_prng_init(&prng, 5);
    for (int i = 0; i < 70000; i++)
        counts[rv_prng_below(&prng, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9500, 10500);
    for (int i = 0; i < 100; i++) {
        assert_true(rv_prng_below(&prng, 1) == 0);
        assert_true(rv_prng_below(&prng, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
    }
}

static void units_lie_between_0_and_1(void **state)
{
    (void)state;
    struct rv_prng prng;
    double sum = 0;
    rv_prng_init(&prng, 6);
    for (int i = 0; i < 10000; i++) {
        double unit = rv_prng_unit(&prng);
        assert_true(unit >= 0 && unit < 1);
        sum += unit;
    }
    assert_true(sum > 4800 && sum < 5200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_its_numbers),
        cmocka_unit_test(bounds_hold_and_all_is_reached),
        cmocka_unit_test(units_lie_between_0_and_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
