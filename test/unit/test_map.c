/* The map against a plain list, over random puts, finds and removes. */
#include "base/map.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { KEYS = 300, MOVES = 200000 };

static void agrees_with_an_array(void **state)
{
    (void)state;
    struct rv_map map;
    struct rv_prng prng;
    uint64_t values[KEYS];
    bool there[KEYS] = {false};
    size_t count = 0;
    rv_map_init(&map);
    rv_prng_init(&prng, 7);
    for (int i = 0; i < MOVES; i++) {
        uint64_t key = rv_prng_below(&prng, KEYS);
        uint64_t a = key * 1000, b = key % 3;
        switch (rv_prng_below(&prng, 3)) {
        case 0:
            values[key] = rv_prng_next(&prng);
            assert_int_equal(rv_map_put(&map, a, b, values[key]), RV_OK);
            count += !there[key];
            there[key] = true;
            break;
        case 1:
            assert_int_equal(rv_map_remove(&map, a, b), there[key]);
            count -= there[key];
            there[key] = false;
            break;
        case 2: {
            const uint64_t *found = rv_map_find(&map, a, b);
            assert_int_equal(found != NULL, there[key]);
            if (found != NULL)
                assert_int_equal(*found, values[key]);
            break;
        }
        }
        assert_int_equal(map.count, count);
    }
    rv_map_clear(&map);
    assert_null(rv_map_find(&map, 0, 0));
    rv_map_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_an_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
