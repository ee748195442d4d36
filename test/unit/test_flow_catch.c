/* Which errors a catch takes, and what becomes of those that it does not. */
#include "../lib/workflow.h"
#include "flow_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "document: {dsl: '1.0.3', namespace: test, name: flow, version: '1.0.0'}\n"

/* A retry that is over, or never begins, raises the error onward unless the catch has `do` or
 * `then`: nothing ends processed because a retry ran out. */
static void test_retry_raises_onward(void **state)
{
    (void)state;
    static const struct {
        const char *caught;
        const char *after; /* how the try ends: an output, or the error's status */
        uint32_t calls;
    } cases[] = {
        {"retry: { limit: { attempt: { count: 2 } } }", NULL, 3},
        {"retry: { limit: { attempt: { count: 0 } } }", NULL, 1},
        {"retry: { when: '.status == 500' }", NULL, 1},
        {"retry: { exceptWhen: '.status == 503' }", NULL, 1},
        {"retry: { limit: { duration: PT1S }, delay: PT2S }", NULL, 1},
        {"retry: { when: '.status == 500' }, do: [ { f: { set: { v: 8 } } } ]", "{\"v\":8}", 1},
        {"retry: { limit: { attempt: { count: 1 } } }, then: continue", "{\"v\":4}", 2},
        {"when: '.status == 503'", "{\"v\":4}", 1},
    };
    const char *fails = "a!{\"status\":503,\"title\":\"down\"}";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kit kit;
        char yaml[1024];
        snprintf(yaml, sizeof yaml,
                 HEAD "do:\n- t:\n    try: [ { a: { call: a } } ]\n    catch: { %s }\n"
                      "- ship: { call: ship, with: { v: '${ .v }' } }\n",
                 cases[i].caught);
        const char *script[4] = {fails, fails, fails};
        script[cases[i].calls] = NULL;
        kit_play(&kit, yaml, "{\"v\":4}", script);
        uint32_t calls = 0;
        for (const char *at = kit.trace; (at = strstr(at, "call /do/0/t/try/0/a")) != NULL; at++)
            calls++;
        assert_int_equal(calls, cases[i].calls);
        if (cases[i].after == NULL) {
            kit_expect_error(&kit, "{\"status\":503,\"title\":\"down\"}");
            assert_non_null(strstr(kit.trace, "abandoned 1\nraised"));
        } else {
            assert_int_equal(kit.stop.kind, RV_FLOW_CALL);
            assert_true(rv_str_is(kit.stop.input, cases[i].after));
        }
        kit_done(&kit);
    }
    /* Onward is the catch of the next try around it. */
    struct kit kit;
    kit_play(&kit, workflow_file("flow_catch/retry-raises-onward"), "{}", SCRIPT(fails, fails));
    kit_expect_output(&kit, "{\"was\":\"down\"}");
    kit_done(&kit);
}

/* In all four conditions `.` is the error, whatever `as` calls it. */
static void test_conditions_see_the_error(void **state)
{
    (void)state;
    static const struct {
        const char *caught;
        bool taken;
    } cases[] = {
        {"when: '${ .status == 400 }'", true},
        {"when: '${ .status == 503 }'", false},
        {"exceptWhen: '${ .status == 400 }'", false},
        {"exceptWhen: '.status == 503'", true},
        {"as: e, when: '.title == $e.title and $input == null'", false},
        {"as: e, when: '.title == $e.title and .type == \"urn:bad\"'", true},
        {"as: e, exceptWhen: '. == $e'", false},
        {"retry: { when: '.status == 400', limit: { attempt: { count: 1 } } }, do: [ { f: { set:"
         " { v: 1 } } } ]",
         true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kit kit;
        char yaml[1024];
        snprintf(yaml, sizeof yaml,
                 HEAD "do:\n- t:\n    try: [ { r: { raise: { error: { type: 'urn:bad',"
                      " status: 400, title: no } } } } ]\n    catch: { %s }\n",
                 cases[i].caught);
        kit_play(&kit, yaml, "{\"status\":503,\"title\":\"input\"}", SCRIPT(NULL));
        assert_int_equal(kit.stop.kind, cases[i].taken ? RV_FLOW_DONE : RV_FLOW_RAISED);
        kit_done(&kit);
    }
}

/* A call in between ends the decision: the error comes back from the frames. */
static void test_error_is_kept_while_it_is_handled(void **state)
{
    (void)state;
    struct kit kit;
    kit_play(&kit, workflow_file("flow_catch/error-is-kept-while-it-is-handled"), "{}",
             SCRIPT("a!{\"status\":503,\"title\":\"down\"}", "b={}"));
    kit_expect_output(&kit, "{\"was\":\"down\"}");
    kit_done(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry_raises_onward),
        cmocka_unit_test(test_conditions_see_the_error),
        cmocka_unit_test(test_error_is_kept_while_it_is_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
