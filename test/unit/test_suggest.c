/* "Did you mean": near names are offered, far ones are not. */
#include "base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *const names[] = {"completeBy", "lease", "failures", "compensate", "pivot", NULL};

static void a_slip_finds_its_name(void **state)
{
    (void)state;
    assert_string_equal(rv_suggest(RV_STR("complteBy"), names), "completeBy");
    assert_string_equal(rv_suggest(RV_STR("completeby"), names), "completeBy");
    assert_string_equal(rv_suggest(RV_STR("laese"), names), "lease");
    assert_string_equal(rv_suggest(RV_STR("pivott"), names), "pivot");
    assert_string_equal(rv_suggest(RV_STR("compenstae"), names), "compensate");
}

static void another_word_finds_nothing(void **state)
{
    (void)state;
    assert_null(rv_suggest(RV_STR("timeout"), names));
    assert_null(rv_suggest(RV_STR(""), names));
    assert_null(rv_suggest(RV_STR("x"), names));
    char longest[70];
    memset(longest, 'a', sizeof longest);
    assert_null(rv_suggest((struct rv_str){longest, sizeof longest}, names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slip_finds_its_name),
        cmocka_unit_test(another_word_finds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
