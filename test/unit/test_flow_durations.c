/* Durations that expressions compute. */
#include "../lib/workflow.h"
#include "flow_kit.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "document: {dsl: '1.0.3', namespace: test, name: flow, version: '1.0.0'}\n"

/* A wait, timeouts and the delay of a retry are computed when they begin; what they gave stays with
 * the scope. */
static void test_computed_durations(void **state)
{
    (void)state;
    struct kit kit;
    kit_play(&kit, workflow_file("flow_durations/computed-durations"), "{\"iso\":\"PT3S\",\"n\":2}",
             SCRIPT(NULL));
    assert_int_equal(kit.stop.kind, RV_FLOW_DONE);
    assert_int_equal(kit.now, 1005005);
    kit_done(&kit);
    kit_play(&kit,
             HEAD "use: { timeouts: { some: { after: '${ .t }' } } }\n"
                  "do:\n"
                  "- a: { call: a, timeout: some }\n",
             "{\"t\":\"PT4S\"}", SCRIPT("a~"));
    kit_expect_error(&kit, "{\"status\":408,\"instance\":\"/do/0/a\"}");
    assert_int_equal(kit.now, 1004000);
    kit_done(&kit);
    kit_play(&kit, workflow_file("flow_durations/computed-durations-2"), "{\"t\":{\"seconds\":7}}",
             SCRIPT("a~"));
    kit_expect_error(&kit, "{\"status\":408,\"instance\":\"/timeout\"}");
    assert_int_equal(kit.now, 1007000);
    kit_done(&kit);
    kit_play(&kit, workflow_file("flow_durations/computed-durations-3"), "3",
             SCRIPT("a!{\"status\":4}", "a!{\"status\":5}", "a!{\"status\":6}"));
    kit_expect_error(&kit, "{\"status\":6}");
    assert_int_equal(kit.now, 1005000);
    kit_done(&kit);
}

/* What is no duration is an error of the step, which a catch may take. */
static void test_bad_durations(void **state)
{
    (void)state;
    static const char *const inputs[] = {"null",
                                         "5",
                                         "\"5 minutes\"",
                                         "\"10m\"",
                                         "{}",
                                         "{\"seconds\":-1}",
                                         "{\"second\":1}",
                                         "{\"seconds\":\"1\"}",
                                         "[]",
                                         "{\"days\":36500,\"milliseconds\":1}"};
    static const char *const places[] = {
        "- a: { wait: '${ . }' }\n",
        "- a: { set: { x: 1 }, timeout: { after: '${ . }' } }\n",
        "- a:\n    try: [ { b: { raise: { error: { type: x, status: 400 } } } } ]\n"
        "    catch: { retry: { delay: '${ $input }' } }\n",
    };
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
            struct kit kit;
            char yaml[1024];
            snprintf(yaml, sizeof yaml, HEAD "do:\n%s", places[p]);
            kit_play(&kit, yaml, inputs[i], SCRIPT(NULL));
            kit_expect_error(&kit, "{\"status\":400,\"title\":\"The duration is not valid\","
                                   "\"instance\":\"/do/0/a\"}");
            kit_done(&kit);
        }
    }
    struct kit kit;
    kit_play(&kit, HEAD "do:\n- a: { set: { x: 1 }, timeout: { after: '${ . }' } }\n", "\"PT0S\"",
             SCRIPT(NULL));
    kit_expect_error(&kit, "{\"status\":400,\"title\":\"The timeout is not valid\"}");
    kit_done(&kit);
    kit_play(&kit, HEAD "timeout: { after: '${ .t }' }\ndo:\n- a: { call: a }\n", "{}",
             SCRIPT(NULL));
    kit_expect_error(&kit, "{\"status\":400,\"title\":\"The duration is not valid\"}");
    kit_done(&kit);
}

/* An operator's new attempt begins a timeout that has passed again, at its whole length. */
static void test_computed_timeout_is_renewed(void **state)
{
    (void)state;
    struct kit kit;
    kit_new(&kit, HEAD "do:\n- a: { call: a, timeout: { after: '${ .t }' } }\n");
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    struct rv_flow_env env = {.definition = kit.definition,
                              .arena = &arena,
                              .now = 1000,
                              .task = RV_STR("0000000000001"),
                              .started_at = 1000,
                              .fuel = 1000,
                              .inline_steps = 16,
                              .workflow_input = RV_STR("{\"t\":\"PT6S\"}")};
    struct rv_flow_stop stop;
    assert_int_equal(rv_flow_start(&env, env.workflow_input, &stop), RV_OK);
    assert_int_equal(stop.deadline, 7000);
    env.now = 50000;
    struct rv_str frames = stop.frames;
    assert_int_equal(rv_flow_renew(&env, frames, &stop), RV_OK);
    assert_int_equal(stop.deadline, 56000);
    env.now = 20000; /* a clock that was set back: no later than its whole time from now */
    frames = stop.frames;
    assert_int_equal(rv_flow_renew(&env, frames, &stop), RV_OK);
    assert_int_equal(stop.deadline, 26000);
    rv_arena_done(&arena);
    kit_done(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_computed_durations),
        cmocka_unit_test(test_bad_durations),
        cmocka_unit_test(test_computed_timeout_is_renewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
