/* The token bucket: in no window more than its length and one second allow, and nothing wasted. */
#include "base/bucket.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

enum { TAKEN_MAX = 4000, ROUNDS = 200 };
static const int64_t begin = INT64_C(1700000000000);

static void it_begins_empty_and_holds_a_second(void **state)
{
    (void)state;
    struct rv_bucket bucket = {.per_second = 0};
    assert_true(rv_bucket_take(&bucket, begin)); /* no limit */
    rv_bucket_set(&bucket, 4, begin);
    assert_false(rv_bucket_take(&bucket, begin));
    assert_int_equal(rv_bucket_next_at(&bucket, begin), begin + 250);
    assert_false(rv_bucket_take(&bucket, begin + 249));
    assert_true(rv_bucket_take(&bucket, begin + 250));
    for (int i = 0; i < 4; i++)
        assert_true(rv_bucket_take(&bucket, begin + 100000));
    assert_false(rv_bucket_take(&bucket, begin + 100000));
    assert_false(rv_bucket_take(&bucket, begin)); /* a clock that goes back gives nothing */
    assert_int_equal(rv_bucket_next_at(&bucket, begin), begin + 100250);
}

static void another_rate_keeps_what_it_holds(void **state)
{
    (void)state;
    struct rv_bucket bucket = {.per_second = 0};
    rv_bucket_set(&bucket, 10, begin);
    rv_bucket_set(&bucket, 2, begin + 5000);
    assert_true(rv_bucket_take(&bucket, begin + 5000));
    assert_true(rv_bucket_take(&bucket, begin + 5000));
    assert_false(rv_bucket_take(&bucket, begin + 5000));
    rv_bucket_set(&bucket, 0, begin + 5000);
    assert_true(rv_bucket_take(&bucket, begin + 5000));
    rv_bucket_set(&bucket, 1000, begin + 5001);
    assert_false(rv_bucket_take(&bucket, begin + 5001)); /* a new limit begins empty */
    assert_true(rv_bucket_take(&bucket, begin + 5002));
}

/* Any rate, asked at random, greedily, or when it says that there is one. */
static void no_window_has_too_many(void **state)
{
    (void)state;
    uint64_t seed = (uint64_t)time(NULL);
    print_message("# seed %llu\n", (unsigned long long)seed);
    struct rv_prng dice;
    rv_prng_init(&dice, seed);
    static int64_t taken[TAKEN_MAX];
    for (int round = 0; round < ROUNDS; round++) {
        struct rv_bucket bucket = {.per_second = 0};
        uint32_t rate = 1 + (uint32_t)(rv_prng_next(&dice) % (round % 2 ? 20 : 3000));
        int64_t now = begin;
        size_t count = 0;
        rv_bucket_set(&bucket, rate, now);
        for (int i = 0; i < 300 && count < TAKEN_MAX; i++) {
            int64_t next = rv_bucket_next_at(&bucket, now);
            assert_true(next >= now);
            uint64_t how = rv_prng_next(&dice) % 3;
            now = how == 0 ? next : now + (int64_t)(rv_prng_next(&dice) % (how == 1 ? 50 : 1500));
            if (how == 0)
                assert_true(rv_bucket_next_at(&bucket, now) == now);
            while (count < TAKEN_MAX && rv_bucket_take(&bucket, now))
                taken[count++] = now;
            assert_true(count == TAKEN_MAX || rv_bucket_next_at(&bucket, now) > now);
        }
        for (size_t from = 0; from < count; from += 7)
            for (size_t to = from; to < count; to++)
                assert_true((int64_t)(to - from + 1) * 1000 <=
                            (taken[to] - taken[from]) * rate + (int64_t)rate * 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_empty_and_holds_a_second),
        cmocka_unit_test(another_rate_keeps_what_it_holds),
        cmocka_unit_test(no_window_has_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
