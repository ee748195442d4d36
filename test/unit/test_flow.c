/* Flows driven from stop to stop by a scripted agent. */
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

static void test_order(void **state)
{
    (void)state;
    struct kit kit;
    kit_play(&kit, workflow_file("flow/order"),
             "{\"sku\":\"a\",\"quantity\":12345678901234567890,\"more\":1}",
             SCRIPT("reserveStock={\"id\":7}", "charge={\"ok\":true}", "ship={\"parcel\":1.50}"));
    kit_expect_output(&kit, "{\"parcel\":1.50}");
    assert_string_equal(kit.trace,
                        "call /do/0/reserveStock 1 {\"operation\":\"reserve\",\"sku\":\"a\","
                        "\"quantity\":12345678901234567890}\n"
                        "call /do/1/charge 1 {\"amount\":5,\"constant\":[true,null]}\n"
                        "call /do/2/ship 1 {}\n"
                        "done \n");
    assert_in_range(kit.frames_bytes_max, 1, 59);
    kit_done(&kit);
}

static void test_order_policy(void **state)
{
    (void)state;
    struct kit kit;
    kit_new(&kit, workflow_file("flow/order"));
    const struct rv_definition *d = kit.definition;
    assert_int_equal(rv_definition_nodes(d), 4);
    uint32_t reserve = rv_definition_find(d, RV_STR("/do/0/reserveStock"));
    uint32_t charge = rv_definition_find(d, RV_STR("/do/1/charge"));
    uint32_t ship = rv_definition_find(d, RV_STR("/do/2/ship"));
    uint32_t release = rv_definition_find(
        d, RV_STR("/do/0/reserveStock/metadata/reeve/compensate/0/releaseStock"));
    assert_int_equal(reserve, 1);
    assert_int_equal(release, 2);
    assert_int_equal(rv_definition_find(d, RV_STR("/do/9")), 0);
    assert_int_equal(rv_definition_undo_way(d, reserve), RV_UNDO_STEPS);
    assert_int_equal(rv_definition_undo_way(d, charge), RV_UNDO_NOTHING);
    assert_int_equal(rv_definition_undo_way(d, ship), RV_UNDO_PIVOT);
    const struct rv_policy *policy = rv_definition_policy(d, reserve);
    assert_int_equal(policy->complete_by_ms, 10000);
    assert_int_equal(policy->threshold, 4);
    assert_true(policy->then_error);
    policy = rv_definition_policy(d, charge);
    assert_int_equal(policy->complete_by_ms, 30000);
    assert_int_equal(policy->lease_ms, 0);
    assert_int_equal(policy->threshold, 3);
    assert_int_equal(policy->delay_ms, 1000);
    assert_int_equal(policy->cooldown_ms, 300000);
    assert_int_equal(policy->rounds, 2);
    assert_false(policy->then_error);
    assert_true(rv_str_is(rv_definition_name(d), "flow"));
    assert_true(rv_str_is(rv_definition_namespace(d), "test"));
    assert_true(rv_str_is(rv_definition_version(d), "1.0.0"));
    kit_done(&kit);
}

static void test_undo(void **state)
{
    (void)state;
    struct kit kit;
    kit_new(&kit, workflow_file("flow/order"));
    kit.undo = "{\"outcome\":\"unknown\",\"idempotencyKey\":\"k1\"}";
    kit_run_undo(&kit, "/do/0/reserveStock", "{\"sku\":\"a\"}");
    kit_expect_output(&kit, "{}");
    assert_string_equal(kit.trace,
                        "call /do/0/reserveStock/metadata/reeve/compensate/0/releaseStock 1 "
                        "{\"operation\":\"release\",\"key\":\"k1\",\"sku\":\"a\"}\ndone \n");
    struct rv_flow_env env = {
        .definition = kit.definition, .arena = &kit.last, .fuel = 1000, .inline_steps = 10};
    struct rv_flow_stop stop;
    assert_int_equal(rv_flow_start_undo(&env, 3, RV_STR("{}"), &stop), RV_ERR_CORRUPT);
    kit_done(&kit);
}

static void test_data_flow(void **state)
{
    (void)state;
    struct kit kit;
    kit_play(&kit, workflow_file("flow/data-flow"),
             "{\"order\":{\"go\":true,\"id\":5},\"extra\":9}", SCRIPT("a={\"o\":1}"));
    kit_expect_output(&kit, "{\"out\":{\"c\":5,\"n\":\"b\",\"r\":\"/do/2/b\",\"w\":9,"
                            "\"i\":\"06DWX3T9H2K4Q\",\"rt\":\"Reeve\",\"v\":\"1.0.0\",\"s\":1000},"
                            "\"context\":{\"seen\":{\"only\":5},\"was\":null,\"raw\":{\"o\":1}}}");
    kit_done(&kit);
}

static void test_then(void **state)
{
    (void)state;
    struct kit kit;
    const char *yaml = workflow_file("flow/then");
    kit_new(&kit, yaml);
    kit_run(&kit, "{\"w\":\"exit\"}");
    kit_expect_output(&kit, "{\"after\":{\"outer\":{\"w\":\"exit\"}}}");
    kit_run(&kit, "{\"w\":\"end\"}");
    kit_expect_output(&kit, "{\"w\":\"end\"}");
    kit_run(&kit, "{\"w\":\"jump\"}");
    kit_expect_output(&kit, "{\"after\":{\"outer\":{\"l\":{\"w\":\"jump\"}}}}");
    kit_run(&kit, "{\"w\":\"none\"}");
    kit_expect_output(&kit, "{\"after\":{\"outer\":{\"l\":{\"m\":1}}}}");
    assert_string_equal(kit.trace, "ran [\"/do/0/outer\",\"/do/0/outer/do/0/pick\","
                                   "\"/do/0/outer/do/1/middle\",\"/do/0/outer/do/2/last\","
                                   "\"/do/1/after\"]\ndone \n");
    kit_done(&kit);
}

static void test_visits(void **state)
{
    (void)state;
    struct kit kit;
    kit_play(&kit, workflow_file("flow/visits"), "{}",
             SCRIPT("first={}", "again={\"n\":1}", "again={\"n\":2}", "again={\"n\":3}", "last=1"));
    kit_expect_output(&kit, "1");
    assert_non_null(strstr(kit.trace, "call /do/1/again 3 {}\nran [\"/do/2/check\"]\n"
                                      "call /do/3/last 1 {}\n"));
    kit_done(&kit);
}

static void test_retry(void **state)
{
    (void)state;
    struct kit kit;
    kit_play(&kit, workflow_file("flow/retried"), "{\"v\":4}",
             SCRIPT("one={}", "two!{\"status\":503}", "one={}", "two!{\"status\":503}", "one={}",
                    "two={\"ok\":1}", "end1=2"));
    kit_expect_output(&kit, "2");
    /* Completed steps are visited anew, the uncompleted one keeps its identity. */
    assert_string_equal(kit.trace, "ran [\"/do/0/t\"]\ncall /do/0/t/try/0/one 1 {\"v\":4}\n"
                                   "call /do/0/t/try/1/two 1 {}\nwait /do/0/t\n"
                                   "call /do/0/t/try/0/one 2 {\"v\":4}\n"
                                   "call /do/0/t/try/1/two 1 again {}\nwait /do/0/t\n"
                                   "call /do/0/t/try/0/one 3 {\"v\":4}\n"
                                   "call /do/0/t/try/1/two 1 again {}\n"
                                   "call /do/1/end1 1 {}\ndone \n");
    assert_int_equal(kit.now, 1000000 + 2000 + 4000);
    kit_done(&kit);
}

static void test_retry_exhausted(void **state)
{
    (void)state;
    struct kit kit;
    kit_play(&kit, workflow_file("flow/retried"), "{\"v\":4}",
             SCRIPT("one!{\"status\":503}", "one!{\"status\":503}", "one!{\"status\":503}"));
    assert_int_equal(kit.stop.kind, RV_FLOW_CALL);
    assert_non_null(strstr(kit.trace, "ran [\"/do/0/t/catch/do/0/fix\"]\nabandoned 1\n"
                                      "call /do/1/end1 1 {}\n"));
    assert_true(rv_str_is(kit.stop.data, "{\"fixed\":503,\"in\":4,\"t\":true}"));
    kit_done(&kit);
    kit_play(&kit, workflow_file("flow/retried"), "{}",
             SCRIPT("one={}", "two!{\"status\":404,\"detail\":\"d\"}"));
    kit_expect_error(&kit, "{\"status\":404,\"detail\":\"d\",\"instance\":\"/do/0/t/try/1/two\","
                           "\"type\":\"https://open-workflow-specification.org/spec/1.0.0/errors/"
                           "communication\",\"title\":\"The agent reported an error\"}");
    assert_true(rv_str_is(kit.stop.reference, "/do/0/t/try/1/two"));
    kit_done(&kit);
}

static void test_nested_try(void **state)
{
    (void)state;
    struct kit kit;
    /* The inner try keeps `a` for its retry; the block then fails elsewhere, the outer one retries
     * and finds both again. */
    const char *yaml = workflow_file("flow/nested-try");
    const char *a = "a!{\"title\":\"A\",\"detail\":\"yes\"}";
    kit_play(&kit, yaml, "{}",
             SCRIPT(a, a, "a!{\"title\":\"A\",\"detail\":\"no\"}", "a!{\"title\":\"B\"}", "a={}"));
    kit_expect_output(&kit, "{}");
    assert_int_equal(kit.steps_count, 1);
    assert_int_equal(kit.now, 1000000 + 2000 + 5 + 10);
    kit_done(&kit);
    kit_play(&kit, yaml, "{}", SCRIPT(a, "a!{\"title\":\"B\",\"status\":400}"));
    kit_expect_error(&kit, "{\"status\":400}");
    assert_non_null(strstr(kit.trace, "abandoned 1\nraised"));
    kit_done(&kit);
}

static void test_kept_step_is_left(void **state)
{
    (void)state;
    struct kit kit;
    /* The retry goes another way: the step that raised is left for good when the try ends. */
    kit_play(&kit, workflow_file("flow/kept-step-is-left"), "{}", SCRIPT("a!{}", "b={}", "c={}"));
    assert_string_equal(kit.trace,
                        "ran [\"/do/0/t\",\"/do/0/t/try/0/go\"]\ncall /do/0/t/try/1/a 1 {}\n"
                        "wait /do/0/t\ncall /do/0/t/try/2/b 1 {}\nabandoned 1\n"
                        "call /do/1/c 1 {}\ndone \n");
    kit_done(&kit);
}

static void test_call_in_catch(void **state)
{
    (void)state;
    struct kit kit;
    /* What the try has kept is left for good when its catch begins, not when that ends; and the
     * try's own input outlives a stop in there. */
    kit_play(&kit, workflow_file("flow/call-in-catch"), "{\"in\":5}",
             SCRIPT("a!{}", "b!{}", "c=6"));
    kit_expect_output(&kit, "[5,6]");
    assert_string_equal(kit.trace,
                        "ran [\"/do/0/t\",\"/do/0/t/try/0/go\"]\ncall /do/0/t/try/1/a 1 {}\n"
                        "call /do/0/t/try/2/b 1 {}\nabandoned 2\nabandoned 1\n"
                        "call /do/0/t/catch/do/0/c 1 {}\ndone \n");
    kit_done(&kit);
}

static void test_catch_then(void **state)
{
    (void)state;
    struct kit kit;
    const char *yaml = workflow_file("flow/catch-then");
    kit_play(&kit, yaml, "{\"i\":1}", SCRIPT("a!{\"status\":1}"));
    kit_expect_output(&kit, "{\"o\":{\"i\":1}}");
    kit_done(&kit);
    kit_play(&kit, yaml, "{\"i\":1}", SCRIPT("a={\"fine\":1}"));
    kit_expect_output(&kit, "{\"fine\":1}");
    kit_done(&kit);
}

static void test_raise(void **state)
{
    (void)state;
    struct kit kit;
    kit_new(&kit, workflow_file("flow/raise"));
    kit_run(&kit, "{\"why\":\"so\"}");
    kit_expect_error(&kit, "{\"type\":\"urn:x\",\"status\":400,\"title\":\"Bad\","
                           "\"detail\":\"so\",\"instance\":\"/do/0/d/do/0/r\"}");
    kit_done(&kit);
    kit_new(&kit, HEAD "do: [ { s: { set: { a: '${ .x + 1 }' } } } ]\n");
    kit_run(&kit, "{\"x\":{}}");
    kit_expect_error(&kit, "{\"status\":400,\"instance\":\"/do/0/s\",\"type\":\"https://open-"
                           "workflow-specification.org/spec/1.0.0/errors/expression\"}");
    kit_done(&kit);
    /* An error in a condition of a catch goes out from the try. */
    kit_new(&kit,
            HEAD "do:\n- t:\n    try: [ { r: { raise: { error: { type: x, status: 1 } } } } ]\n"
                 "    catch: { when: '1 + {}' }\n");
    kit_run(&kit, "{}");
    kit_expect_error(&kit, "{\"status\":400,\"instance\":\"/do/0/t\"}");
    kit_done(&kit);
}

static void test_wait(void **state)
{
    (void)state;
    struct kit kit;
    kit_new(&kit, HEAD "do:\n- w: { wait: { seconds: 90 }, output: { as: '[., $input]' } }\n"
                       "- z: { wait: PT0S }\n");
    kit_run(&kit, "{\"a\":1}");
    kit_expect_output(&kit, "[{\"a\":1},{\"a\":1}]");
    assert_string_equal(kit.trace, "wait /do/0/w\nran [\"/do/1/z\"]\ndone \n");
    assert_int_equal(kit.now, 1090000);
    kit_done(&kit);
}

static void test_timeouts(void **state)
{
    (void)state;
    struct kit kit;
    const char *yaml = workflow_file("flow/timeouts");
    kit_play(&kit, yaml, "{}", SCRIPT("a~", "a~"));
    kit_expect_output(&kit, "{\"at\":\"/do/0/t/try/0/a\"}");
    assert_int_equal(kit.steps_count, 1);
    assert_int_equal(kit.now, 1010000);
    kit_done(&kit);
    kit_play(&kit, yaml, "{}", SCRIPT("a={}"));
    kit_expect_error(&kit, "{\"status\":408,\"instance\":\"/timeout\"}");
    assert_int_equal(kit.now, 1060000);
    assert_int_equal(kit.stop.node, 0);
    kit_done(&kit);
}

static void test_attempt_duration(void **state)
{
    (void)state;
    struct kit kit;
    kit_play(&kit, workflow_file("flow/attempt-duration"), "{}", SCRIPT("a~", "a~", "a~"));
    kit_expect_error(&kit, "{\"status\":408,\"instance\":\"/do/0/t\"}");
    assert_int_equal(kit.now, 1010000);
    assert_int_equal(kit.steps_count, 1);
    kit_done(&kit);
    kit_play(&kit, workflow_file("flow/attempt-duration-2"), "7",
             SCRIPT("a!{\"status\":1}", "a!{\"status\":2}", "a!{\"status\":3}"));
    kit_expect_error(&kit, "{\"status\":3,\"instance\":\"/do/0/t/try/0/a\"}");
    assert_int_equal(kit.now, 1008000);
    kit_done(&kit);
}

static void test_runs_away(void **state)
{
    (void)state;
    struct kit kit;
    const char *yaml = workflow_file("flow/runs-away");
    for (uint32_t steps = 0; steps <= 256; steps += 64) {
        kit_new(&kit, yaml);
        kit.inline_steps = steps;
        kit_run(&kit, "{}");
        kit_expect_error(&kit, "{\"status\":500,\"title\":\"The workflow runs too many steps\"}");
        assert_true(steps == 0 || kit.stops > RV_INLINE_STEPS_MAX / 256);
        kit_done(&kit);
    }
    /* A retry that waits for nothing is such a loop as well. */
    kit_new(&kit,
            HEAD "do:\n- t:\n    try: [ { r: { raise: { error: { type: x, status: 1 } } } } ]\n"
                 "    catch: { retry: {} }\n");
    kit_run(&kit, "{}");
    kit_expect_error(&kit, "{\"status\":500,\"title\":\"The workflow runs too many steps\"}");
    kit_done(&kit);
}

static void test_limits(void **state)
{
    (void)state;
    struct kit kit;
    const char *type = "https://open-workflow-specification.org/spec/1.0.0/errors/runtime";
    char want[256];
    snprintf(want, sizeof want, "{\"type\":\"%s\",\"status\":500}", type);
    kit_new(&kit, HEAD "do:\n- d: { set: { a: '${ . }', b: '${ . }' }, then: d }\n");
    kit_run(&kit, "{}");
    kit_expect_error(&kit, want);
    kit_done(&kit);
    kit_new(&kit, HEAD "do:\n- d: { set: { a: '${ . }' }, then: d }\n");
    kit_run(&kit, "{}");
    kit_expect_error(&kit, "{\"detail\":\"a value is nested deeper than 64 levels\"}");
    kit_done(&kit);
    char *large = malloc(RV_PAYLOAD_BYTES_MAX + 16);
    memset(large, '1', RV_PAYLOAD_BYTES_MAX + 15);
    large[RV_PAYLOAD_BYTES_MAX + 15] = '\0';
    const char *script[] = {large, NULL};
    large[0] = 'a';
    large[1] = '=';
    const char *const *at = script;
    kit_new(&kit, HEAD "do:\n- a: { call: a }\n");
    kit.agent = kit_scripted;
    kit.agent_context = &at;
    kit_run(&kit, "{}");
    kit_expect_error(&kit, want);
    kit_done(&kit);
    free(large);
}

static void test_fuel(void **state)
{
    (void)state;
    struct kit kit;
    kit_new(&kit, HEAD "do:\n- s: { set: '${ reduce range(1000000000) as $i (0; . + $i) }' }\n");
    kit_run(&kit, "{}");
    kit_expect_error(&kit, "{\"status\":400,\"instance\":\"/do/0/s\"}");
    kit_done(&kit);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct kit kit;
    kit_new(&kit, workflow_file("flow/retried"));
    bool ended = false;
    for (size_t bytes = 1; !ended; bytes += bytes / 16 + 8) {
        kit.arena_bytes = bytes;
        kit_run(&kit, "{\"v\":[1,2,3]}");
        assert_true(kit.err == RV_OK || kit.err == RV_ERR_LIMIT);
        ended = kit.err == RV_OK;
    }
    kit_expect_output(&kit, "{}");
    kit_done(&kit);
}

static void test_all_that_may_be_asked(void **state)
{
    (void)state;
    struct kit kit;
    const char *const *script = SCRIPT("ask!{\"type\":\"t\",\"status\":500,\"title\":\"no\"}",
                                       "tell={\"again\":false}");
    kit_play(&kit, workflow_file("flow/asks-all"), "{\"n\":7}", script);
    kit_expect_output(&kit, "{\"last\":{\"again\":false},\"r\":\"Reeve\"}");
    assert_non_null(strstr(kit.trace, "{\"context\":{\"t\":\"prepare\",\"out\":7}"));
    assert_non_null(strstr(kit.trace, "{\"failed\":\"no\"}"));
    /* Whatever memory is out, it is told, and nothing is half done. */
    bool ended = false;
    for (size_t bytes = 1; !ended; bytes += bytes / 64 + 8) {
        kit.arena_bytes = bytes;
        const char *const *again = script;
        kit.agent_context = &again;
        kit_run(&kit, "{\"n\":7}");
        assert_true(kit.err == RV_OK || kit.err == RV_ERR_LIMIT);
        ended = kit.err == RV_OK;
    }
    kit_expect_output(&kit, "{\"last\":{\"again\":false},\"r\":\"Reeve\"}");
    kit_done(&kit);
}

/* DSL reference, Errors: an expression that fails raises `expression`, wherever it stands. */
static void test_expressions_that_fail(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "- a: { if: '.a.b', call: x }\n",
        "- a: { switch: [ { one: { when: '.a.b', then: end } } ] }\n",
        "- a: { set: { b: '${ .a.b }' } }\n",
        "- a: { call: x, with: { b: '${ .a.b }' } }\n",
        "- a: { input: { from: '.a.b' }, set: { b: 1 } }\n",
        "- a: { set: { b: 1 }, output: { as: '.b.c' } }\n",
        "- a: { set: { b: 1 }, export: { as: '.b.c' } }\n",
        "- a: { raise: { error: { type: '${ .a.b }', status: 400 } } }\n",
        "- a: { raise: { error: { type: x, title: '${ .a.b }', status: 400 } } }\n",
        "- a: { raise: { error: { type: x, detail: '${ .a.b }', status: 400 } } }\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct kit kit;
        char yaml[400];
        snprintf(yaml, sizeof yaml, HEAD "do:\n%s", bad[i]);
        kit_play(&kit, yaml, "{\"a\":\"text\"}", SCRIPT(NULL));
        if (kit.stop.kind != RV_FLOW_RAISED)
            print_error("%s\n", bad[i]);
        kit_expect_error(&kit, "{\"status\":400,\"type\":\"https://open-workflow-specification.org/"
                               "spec/1.0.0/errors/expression\"}");
        kit_done(&kit);
    }
}

/* RULES 11: what the scopes around a call keep has a limit; over it the error says so, and no
 * catch takes it. */
static void test_scopes_that_keep_too_much(void **state)
{
    (void)state;
    enum { INPUT_BYTES = 1000 * 1000, LEVELS = 6 };
    struct kit kit;
    char *input = malloc(INPUT_BYTES + 16);
    assert_non_null(input);
    memset(input, 'x', INPUT_BYTES + 15);
    memcpy(input, "{\"a\":\"", 6);
    memcpy(input + INPUT_BYTES, "\"}", 3);
    struct rv_buf yaml;
    rv_buf_init(&yaml, 10000);
    rv_buf_lit(&yaml, HEAD "do: ");
    for (int i = 1; i <= LEVELS; i++)
        rv_buf_printf(&yaml, "[{t%d: {input: {from: '{a: (.a + \"%d\")}'}, try: ", i, i);
    rv_buf_lit(&yaml, "[{call: {call: x}}]");
    for (int i = 1; i <= LEVELS; i++)
        rv_buf_lit(&yaml, ", catch: {retry: {}}}}]");
    rv_buf_add_char(&yaml, '\0');
    kit_new(&kit, yaml.at);
    kit.agent = NULL;
    kit_run(&kit, input);
    kit_expect_error(&kit, "{\"title\":\"The inputs and caught errors of the enclosing `do` and "
                           "`try` blocks exceed 4 MiB\"}");
    kit_done(&kit);
    rv_buf_done(&yaml);
    free(input);
}

static void test_hostile_frames(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"n\":0}",
        "{\"n\":9}",
        "{\"n\":1}",
        "{\"n\":-2}",
        "{\"n\":2,\"m\":\"w\"}",
        "{\"n\":2}",
        "{\"n\":2,\"m\":\"r\"}",
        "{\"n\":1,\"m\":\"r\"}",
        "{\"n\":2,\"s\":[{\"n\":1}]}",
        "{\"n\":2,\"s\":[{\"n\":1,\"i\":1,\"q\":1}]}",
        "{\"n\":2,\"s\":[{\"n\":5,\"i\":1}]}",
        "{\"n\":2,\"s\":[{\"n\":1,\"i\":1,\"u\":[1,1]}]}",
        "{\"n\":2,\"s\":[{\"n\":1,\"i\":1,\"u\":[2]}]}",
        "{\"n\":2,\"s\":{}}",
        "{\"n\":2,\"s\":[{\"n\":1,\"i\":1,\"d\":-1}]}",
        "{\"n\":2,\"v\":[4,1]}",
        "{\"n\":2,\"s\":[{\"n\":0,\"c\":1}]}",
        "{\"n\":2,\"m\":7}",
        "{\"n\":2,\"x\":0}",
    };
    struct kit kit;
    kit_new(&kit, workflow_file("flow/retried"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rv_flow_env env = {.definition = kit.definition,
                                  .arena = &kit.last,
                                  .now = 5,
                                  .fuel = 100000,
                                  .inline_steps = 100};
        struct rv_flow_stop stop;
        uint32_t *numbers;
        uint32_t count;
        enum rv_err err = rv_flow_complete(&env, rv_str_of(bad[i]), RV_STR("{}"), RV_STR("{}"),
                                           &stop);
        if (err != RV_ERR_CORRUPT)
            print_error("%s\n", bad[i]);
        assert_int_equal(err, RV_ERR_CORRUPT);
        assert_int_equal(rv_flow_go_on(&env, rv_str_of(bad[i]), &stop), RV_ERR_CORRUPT);
        assert_int_equal(rv_flow_raise(&env, rv_str_of(bad[i]), 1, RV_STR("{}"), &stop),
                         RV_ERR_CORRUPT);
        (void)!rv_flow_expire(&env, rv_str_of(bad[i]), 1, &stop);
        (void)!rv_flow_unfinished(&env, rv_str_of(bad[i]), &numbers, &count);
    }
    kit_done(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_order_policy),
        cmocka_unit_test(test_undo),
        cmocka_unit_test(test_data_flow),
        cmocka_unit_test(test_then),
        cmocka_unit_test(test_visits),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_retry_exhausted),
        cmocka_unit_test(test_nested_try),
        cmocka_unit_test(test_kept_step_is_left),
        cmocka_unit_test(test_call_in_catch),
        cmocka_unit_test(test_catch_then),
        cmocka_unit_test(test_raise),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_attempt_duration),

        cmocka_unit_test(test_runs_away),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_fuel),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_hostile_frames),
        cmocka_unit_test(test_all_that_may_be_asked),
        cmocka_unit_test(test_expressions_that_fail),
        cmocka_unit_test(test_scopes_that_keep_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
