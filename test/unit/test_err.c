/* Errors: every row of the table is complete. */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What a caller may rely on for every row of the table. */
static void every_error_is_complete(void **state)
{
    (void)state;
    assert_int_equal(rv_err_family(RV_OK), RV_FAMILY_NONE);
    assert_int_equal(rv_err_http(RV_OK), 200);
    assert_int_equal(rv_err_exit(RV_OK), 0);
    for (int i = 1; i < RV_ERR_COUNT; i++) {
        enum rv_err err = (enum rv_err)i;
        enum rv_err_family family = rv_err_family(err);
        assert_true(rv_err_text(err)[0] != '\0');
        assert_in_range(rv_err_exit(err), 2, 6);
        if (family == RV_FAMILY_TELL)
            assert_in_range(rv_err_http(err), 400, 499);
        else if (family == RV_FAMILY_RETRY || family == RV_FAMILY_STOP)
            assert_in_range(rv_err_http(err), 500, 599);
        else
            assert_int_equal(family, RV_FAMILY_RELOAD);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(rv_err_text(err), rv_err_text((enum rv_err)j));
    }
    assert_int_equal(rv_err_http(RV_ERR_LATE), 410);
    assert_int_equal(rv_err_http(RV_ERR_DUPLICATE), 409);
    assert_int_equal(rv_err_http(RV_ERR_LIMIT), 413);
    assert_int_equal(rv_err_exit(RV_ERR_NOT_FOUND), 3);
}

static void unknown_errors_are_told_too(void **state)
{
    (void)state;
    assert_string_equal(rv_err_text(RV_ERR_COUNT), "unknown error");
    assert_int_equal(rv_err_family(RV_ERR_COUNT), RV_FAMILY_STOP);
    assert_int_equal(rv_err_http(RV_ERR_COUNT), 500);
    assert_int_equal(rv_err_exit(RV_ERR_COUNT), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_is_complete),
        cmocka_unit_test(unknown_errors_are_told_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
