/* What is due at an instant: entries move and leave, and the earliest is first. */
#include "base/due.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MODEL = 300, TURNS = 20000 };

static void one_that_is_not_in_can_be_taken_out(void **state)
{
    (void)state;
    struct rv_dues dues;
    struct rv_due due = {.owner = NULL};
    rv_dues_init(&dues);
    assert_null(rv_dues_first(&dues));
    rv_due_clear(&dues, &due);
    assert_int_equal(rv_dues_reserve(&dues, 1), RV_OK);
    rv_due_set(&dues, &due, 7);
    assert_ptr_equal(rv_dues_first(&dues), &due);
    rv_due_clear(&dues, &due);
    rv_due_clear(&dues, &due);
    assert_null(rv_dues_first(&dues));
    rv_dues_done(&dues);
}

/* Against the same entries in an array that is searched each time. */
static void entries_move_and_leave_in_any_order(void **state)
{
    (void)state;
    static struct rv_due entries[MODEL];
    const uint64_t seed = 5;
    struct rv_prng prng;
    struct rv_dues dues;
    rv_prng_init(&prng, seed);
    rv_dues_init(&dues);
    for (int turn = 0; turn < TURNS; turn++) {
        struct rv_due *due = &entries[rv_prng_below(&prng, MODEL)];
        if (rv_prng_below(&prng, 3) == 0) {
            rv_due_clear(&dues, due);
        } else {
            assert_int_equal(rv_dues_reserve(&dues, dues.count + 1), RV_OK);
            rv_due_set(&dues, due, (int64_t)rv_prng_below(&prng, 1000) - 500);
        }
        int64_t least = INT64_MAX;
        size_t count = 0;
        for (size_t i = 0; i < MODEL; i++) {
            count += entries[i].place != 0;
            if (entries[i].place != 0 && entries[i].at < least)
                least = entries[i].at;
        }
        const struct rv_due *first = rv_dues_first(&dues);
        assert_int_equal(dues.count, count);
        assert_true(first == NULL ? count == 0 : first->at == least);
    }
    rv_dues_done(&dues);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_not_in_can_be_taken_out),
        cmocka_unit_test(entries_move_and_leave_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
