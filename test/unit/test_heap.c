/* Heaps: order of instants, and of arrival where the instants are equal. */
#include "base/heap.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void an_empty_heap_gives_nothing(void **state)
{
    (void)state;
    struct rv_heap heap;
    struct rv_heap_entry entry = {.value = 5};
    rv_heap_init(&heap);
    assert_null(rv_heap_first(&heap));
    assert_false(rv_heap_pop(&heap, &entry));
    assert_int_equal(entry.value, 5);
    rv_heap_done(&heap);
}

static void equal_instants_come_in_order_of_arrival(void **state)
{
    (void)state;
    struct rv_heap heap;
    struct rv_heap_entry entry;
    rv_heap_init(&heap);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(rv_heap_push(&heap, (int64_t)(i % 3), i, i + 1), RV_OK);
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(rv_heap_pop(&heap, &entry));
        assert_int_equal(entry.at, i < 334 ? 0 : i < 667 ? 1 : 2);
        assert_int_equal(entry.value % 3, entry.at);
        assert_int_equal(entry.detail, entry.value + 1);
        assert_true(entry.value < 3 || entry.value == last + 3);
        last = entry.value;
    }
    rv_heap_done(&heap);
}

/* Against the same entries in an array that is searched each time. */
static void pushes_and_pops_in_any_order(void **state)
{
    (void)state;
    enum { MODEL = 512 };
    const uint64_t seed = 3;
    int64_t model[MODEL];
    size_t count = 0;
    struct rv_prng prng;
    struct rv_heap heap;
    rv_prng_init(&prng, seed);
    rv_heap_init(&heap);
    for (int i = 0; i < 20000; i++) {
        if (count < MODEL && (count == 0 || rv_prng_below(&prng, 9) < 5)) {
            model[count] = (int64_t)rv_prng_next(&prng) >> rv_prng_below(&prng, 60);
            assert_int_equal(rv_heap_push(&heap, model[count++], 0, 0), RV_OK);
            continue;
        }
        size_t least = 0;
        for (size_t j = 1; j < count; j++)
            least = model[j] < model[least] ? j : least;
        struct rv_heap_entry entry;
        const struct rv_heap_entry *first = rv_heap_first(&heap);
        assert_true(first != NULL && first->at == model[least]);
        assert_true(rv_heap_pop(&heap, &entry));
        if (entry.at != model[least])
            fail_msg("seed %llu, step %d", (unsigned long long)seed, i);
        model[least] = model[--count];
        assert_int_equal(heap.count, count);
    }
    rv_heap_done(&heap);
}

static void the_least_come_in_order_and_stay(void **state)
{
    (void)state;
    struct rv_prng prng;
    struct rv_heap heap;
    struct rv_heap_entry least[RV_HEAP_LEAST_MAX];
    struct rv_heap_entry entry;
    rv_prng_init(&prng, 7);
    rv_heap_init(&heap);
    assert_int_equal(rv_heap_least(&heap, RV_HEAP_LEAST_MAX, least), 0);
    for (uint64_t i = 0; i < 300; i++)
        assert_int_equal(rv_heap_push(&heap, (int64_t)rv_prng_below(&prng, 40), i, i + 1), RV_OK);
    while (heap.count > 0) {
        size_t max = (size_t)rv_prng_below(&prng, RV_HEAP_LEAST_MAX + 3);
        size_t most = max < RV_HEAP_LEAST_MAX ? max : RV_HEAP_LEAST_MAX, count = heap.count;
        size_t got = rv_heap_least(&heap, max, least);
        assert_int_equal(got, count < most ? count : most);
        assert_int_equal(heap.count, count);
        for (size_t i = 0; i < got; i++) {
            assert_true(rv_heap_pop(&heap, &entry));
            assert_int_equal(entry.at, least[i].at);
            assert_int_equal(entry.value, least[i].value);
            assert_int_equal(entry.detail, least[i].detail);
        }
    }
    rv_heap_done(&heap);
}

static bool value_is_odd(const struct rv_heap_entry *entry, const void *user)
{
    (void)user;
    return entry->value % 2 == 1;
}

static void those_that_are_kept_stay_in_order(void **state)
{
    (void)state;
    struct rv_heap heap;
    struct rv_heap_entry entry, last = {.at = INT64_MIN};
    struct rv_prng prng;
    rv_prng_init(&prng, 11);
    rv_heap_init(&heap);
    rv_heap_filter(&heap, value_is_odd, NULL);
    for (uint64_t i = 0; i < 301; i++)
        assert_int_equal(rv_heap_push(&heap, (int64_t)rv_prng_below(&prng, 9), i, 0), RV_OK);
    rv_heap_filter(&heap, value_is_odd, NULL);
    assert_int_equal(heap.count, 150);
    while (rv_heap_pop(&heap, &entry)) {
        assert_true(value_is_odd(&entry, NULL));
        assert_true(entry.at > last.at || (entry.at == last.at && entry.order > last.order));
        last = entry;
    }
    rv_heap_done(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_gives_nothing),
        cmocka_unit_test(equal_instants_come_in_order_of_arrival),
        cmocka_unit_test(pushes_and_pops_in_any_order),
        cmocka_unit_test(those_that_are_kept_stay_in_order),
        cmocka_unit_test(the_least_come_in_order_and_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
