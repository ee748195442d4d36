/* What expressions take of memory: it is given back, and too much of it is an error of the step
 * that a catch may take, never damage (RULES 11, 14). */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/buf.h"
#include "base/limits.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEP_A "  - a: {call: agent, metadata: {reeve: {compensate: none}}}\n"
/* About 4 MiB. */
#define MUCH "[range(60000)] | length"
/* As much, and a value that lies in there. */
#define PART "[range(60000) | {n: .}] | [.[7], .[59999]]"

static const char *const first = DOCUMENT("first") "do:\n  - b: {set: {n: '${ " MUCH " }'}}\n";
static const char *const alone = DOCUMENT("alone") "do:\n" STEP_A "  - b: {set: {n: '${ " MUCH
                                                   " }'}}\n";
/* One step after another, each with a value of 200 KB. */
static const char *const grows =
    DOCUMENT("grows") "do:\n" STEP_A "  - b: {set: {i: '${ .i + 1 }', s: '${ \"x\" * 200000 }'}}\n"
                      "  - c: {switch: [{more: {when: '.i < 40', then: b}}]}\n"
                      "  - d: {set: {i: '${ .i }'}}\n";
static const char *const greedy = DOCUMENT(
    "greedy") "do:\n  - a: {set: {n: '${ (\"x\" * 20000000) | length }'}}\n";
static const char *const spread =
    DOCUMENT("spread") "do:\n  - a: {set: {l: '${ \"x\" * 700000 }', m: '${ \"x\" * 700000 }', "
                       "n: '${ \"x\" * 700000 }', o: '${ error(\"too far\") }'}}\n";

/* Quotes, which take twice as much each time they are escaped. */
#define QUOTES "[\"\\\"\" * 524286]"
#define RAISES "{raise: {error: {type: '${ " QUOTES " }', status: 503, title: '${ " QUOTES " }'}}}"

static const char *const raises = DOCUMENT("raises") "do:\n" STEP_A "  - b: " RAISES "\n";
static const char *const raises_title =
    DOCUMENT("raises-title") "do:\n" STEP_A "  - b: {raise: {error: {type: 'urn:x', status: 503, "
                             "title: '${ " QUOTES " }'}}}\n";
static const char *const raises_caught =
    DOCUMENT("raises-caught") "do:\n" STEP_A "  - t:\n      try: [{b: " RAISES "}]\n"
                              "      catch: {as: e, do: [{c: {set: {e: '${ $e }'}}}]}\n";
static const char *const says = DOCUMENT(
    "says") "do:\n" STEP_A "  - b: {set: {n: '${ error(\"x\" * 5000000) }'}}\n";

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    world_publish(&w, first);
    world_publish(&w, alone);
    world_publish(&w, workflow_file("memory/caught"));
    world_publish(&w, grows);
    world_publish(&w, greedy);
    world_publish(&w, spread);
    world_publish(&w, raises);
    world_publish(&w, raises_title);
    world_publish(&w, raises_caught);
    world_publish(&w, says);
    *state = &w;
    return 0;
}

static void limit(struct world *w, size_t bytes)
{
    w->decision_bytes_max = bytes;
    world_restart(w, 1);
}

/* A step with so many expressions behind a call, whose reply leads to them. */
static void publish_many(struct world *w, const char *name, const char *expression, int count)
{
    static char text[16384];
    int len = snprintf(text, sizeof text,
                       "document: {dsl: '1.0.3', namespace: shop, name: %s, version: '1.0.0'}\n"
                       "do:\n" STEP_A "  - b:\n      set:\n",
                       name);
    for (int i = 0; i < count; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, "        k%02d: '${ %s }'\n", i,
                        expression);
    assert_true((size_t)len < sizeof text - 1);
    world_publish(w, text);
}

static struct rv_task_id answer(struct world *w, const char *workflow)
{
    struct rv_task_id task = world_submit(w, workflow, "{}");
    assert_int_equal(world_done(w, world_take(w, "agent", "i1"), "{}"), 200);
    world_settle(w);
    return task;
}

static void many_expressions_need_no_more_memory_than_one(void **state)
{
    struct world *w = *state;
    publish_many(w, "many", MUCH, 30);
    publish_many(w, "parts", PART, 30);
    struct rv_task_id task = answer(w, "many");
    assert_state(w, task, "processed");
    struct rv_str output = world_task(w, task)->output;
    assert_int_equal(output.len, 2 + 30 * sizeof "\"k00\":60000" - 1);
    assert_non_null(strstr(output.at, "\"k29\":60000}"));
    task = answer(w, "parts");
    assert_state(w, task, "processed");
    output = world_task(w, task)->output;
    assert_non_null(strstr(output.at, "{\"k00\":[{\"n\":7},{\"n\":59999}],"));
    assert_non_null(strstr(output.at, "\"k29\":[{\"n\":7},{\"n\":59999}]}"));
    assert_int_equal(world_count_open_alerts(w), 0);
}

static void too_much_memory_is_an_error_that_a_catch_takes(void **state)
{
    struct world *w = *state;
    limit(w, 256 * 1024);
    struct rv_task_id task = answer(w, "caught");
    assert_state(w, task, "processed");
    struct rv_str output = world_task(w, task)->output;
    assert_non_null(strstr(output.at, "errors/runtime\",\"status\":500"));
    assert_non_null(strstr(output.at, "need more than 256 KiB of memory: pass less data"));
    assert_non_null(strstr(output.at, "\"instance\":\"/do/0/t/try/1/b\""));
}

/* The reply that leads there is recorded, and its task is no damaged one. */
static void too_much_memory_is_no_damage(void **state)
{
    struct world *w = *state;
    limit(w, 256 * 1024);
    struct rv_task_id task = answer(w, "alone");
    assert_step(w, task, 1, "processed");
    assert_step(w, task, 2, "error");
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNREADABLE), 0);
    assert_non_null(strstr(world_task(w, task)->error.at, "need more than 256 KiB"));
    assert_int_equal(world_count_late(w, task), 0);
}

/* Its task is there, and shows the error, as where any other expression fails. */
static void a_submission_that_needs_too_much_memory_is_accepted(void **state)
{
    struct world *w = *state;
    limit(w, 256 * 1024);
    struct rv_task_id task = world_submit(w, "first", "{}");
    world_settle(w);
    assert_step(w, task, 1, "error");
    assert_non_null(strstr(world_task(w, task)->error.at, "need more than 256 KiB"));
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNREADABLE), 0);
}

static void one_expression_has_a_limit_of_its_own(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "greedy", "{}");
    world_settle(w);
    assert_step(w, task, 1, "error");
    assert_non_null(
        strstr(world_task(w, task)->error.at, "the expression needs more than 16 MiB of memory"));
}

/* What the steps of one move leave does not add up: the move ends, and another one goes on. */
static void many_steps_need_no_more_memory_than_a_few(void **state)
{
    struct world *w = *state;
    limit(w, 2 * 1024 * 1024);
    struct rv_task_id task = answer(w, "grows");
    world_pass(w, 1000);
    assert_state(w, task, "processed");
    assert_string_equal(world_task(w, task)->output.at, "{\"i\":40}");
}

/* Together they are over the limit of a value, which is found before all of them are there. */
static void values_that_are_too_large_together_are_an_error(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "spread", "{}");
    world_settle(w);
    assert_step(w, task, 1, "error");
    assert_non_null(strstr(world_task(w, task)->error.at, "a value has more than 1048576 bytes"));
}

/* The step has the error, and the reply that led there is recorded. */
static void expect_error(struct world *w, const char *workflow, const char *text)
{
    struct rv_task_id task = answer(w, workflow);
    assert_step(w, task, 1, "processed");
    assert_step(w, task, 2, "error");
    struct rv_str error = world_task(w, task)->error;
    assert_non_null(memmem(error.at, error.len, text, strlen(text)));
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNREADABLE), 0);
    assert_int_equal(world_count_late(w, task), 0);
    assert_int_equal(w->batches_failed, 0);
}

static void an_error_that_is_too_large_is_another_error_of_its_step(void **state)
{
    struct world *w = *state;
    expect_error(w, "raises", "\"title\":\"The error exceeds a limit\"");
    expect_error(w, "raises-title", "exceed 1048576 bytes as JSON: shorten them");
    struct rv_task_id task = answer(w, "raises-caught");
    assert_state(w, task, "processed");
    struct rv_str output = world_task(w, task)->output;
    assert_non_null(memmem(output.at, output.len, "errors/runtime\",\"status\":500", 28));
    assert_non_null(memmem(output.at, output.len, "The error exceeds a limit", 25));
}

static void a_message_of_an_error_that_is_too_large_is_left_out(void **state)
{
    expect_error(*state, "says", "the expression failed with a message longer than 64 KiB");
}

/* What ran is told as far as there is room. A character of such a name takes six in JSON. */
static void long_names_of_many_steps_are_no_error(void **state)
{
    enum { NAME_BYTES = 120, DEEP = 17 };
    struct world *w = *state;
    struct rv_buf yaml;
    rv_buf_init(&yaml, RV_DEFINITION_BYTES_MAX);
    rv_buf_lit(&yaml, DOCUMENT("names") "do:\n" STEP_A "  - i: {set: {i: 0}}\n  - ");
    for (int i = 0; i < DEEP; i++) {
        rv_buf_lit(&yaml, "{\"");
        for (int n = 0; n < NAME_BYTES; n++)
            rv_buf_lit(&yaml, "\\x01");
        rv_buf_lit(&yaml, "\": {do: [");
    }
    rv_buf_lit(&yaml, "{b: {set: {i: '${ .i + 1 }'}}},"
                      " {c: {switch: [{more: {when: '.i < 200', then: b}}]}}");
    for (int i = 0; i < DEEP; i++)
        rv_buf_lit(&yaml, "]}}");
    rv_buf_lit(&yaml, "\n");
    rv_buf_add_char(&yaml, '\0');
    assert_int_equal(yaml.failed, RV_OK);
    world_publish(w, yaml.at);
    rv_buf_done(&yaml);
    struct rv_task_id task = answer(w, "names");
    world_pass(w, 1000);
    assert_state(w, task, "processed");
    assert_int_equal(w->batches_failed, 0);
    size_t told = world_step(w, task, 2)->input.len;
    assert_true(told > RV_PAYLOAD_BYTES_MAX / 2 && told <= RV_PAYLOAD_BYTES_MAX);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(many_expressions_need_no_more_memory_than_one),
        SCENARIO(too_much_memory_is_an_error_that_a_catch_takes),
        SCENARIO(too_much_memory_is_no_damage),
        SCENARIO(a_submission_that_needs_too_much_memory_is_accepted),
        SCENARIO(one_expression_has_a_limit_of_its_own),
        SCENARIO(many_steps_need_no_more_memory_than_a_few),
        SCENARIO(values_that_are_too_large_together_are_an_error),
        SCENARIO(an_error_that_is_too_large_is_another_error_of_its_step),
        SCENARIO(a_message_of_an_error_that_is_too_large_is_left_out),
        SCENARIO(long_names_of_many_steps_are_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
