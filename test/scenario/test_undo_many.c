/* Undo of many steps: those that a retry keeps, and those whose compensations call nobody
 * (RULES 6). */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "document.h"

#include "base/buf.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Another task that is cancelled meanwhile. */
static const char *const other = DOCUMENT(
    "other") "do: [{a: {call: one, metadata: {reeve: {compensate: none}}}}]\n";

/* A try whose steps fail one after another, each in a run of its own, and are kept by its
 * retry; then it is over, `last` is asked for, and fails. */
static void publish_kept(struct world *w, const char *name, unsigned steps, const char *caught)
{
    struct rv_buf yaml;
    rv_buf_init(&yaml, RV_DEFINITION_BYTES_MAX);
    rv_buf_printf(&yaml,
                  "document: {dsl: '1.0.3', namespace: shop, name: %s, version: '1.0.0'}\n"
                  "do:\n- t:\n    try:\n"
                  "    - pick: {set: {n: '${ ($context.n // 0) + 1 }'}, export: {as: '{n: .n}'}}\n",
                  name);
    for (unsigned i = 1; i <= steps; i++)
        rv_buf_printf(
            &yaml,
            "    - c%u: {if: '$context.n == %u', call: one, metadata: {reeve: {compensate:"
            " [{u: {call: one, with: {undo: %u}}}]}}}\n",
            i, i, i);
    rv_buf_printf(&yaml,
                  "    catch: {%s}\n- last: {call: one, metadata: {reeve: {compensate:"
                  " none}}}\n",
                  caught);
    rv_buf_add_char(&yaml, '\0');
    assert_int_equal(yaml.failed, RV_OK);
    world_publish(w, yaml.at);
    rv_buf_done(&yaml);
}

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    world_publish(&w, workflow_file("undo_many/kept"));
    world_publish(&w, workflow_file("undo_many/kept-undone"));
    world_publish(&w, other);
    *state = &w;
    return 0;
}

/* More steps than one decision once had room for: all of them are undone, newest first, and nobody
 * else notices. */
static void many_steps_that_a_retry_kept_are_all_undone(void **state)
{
    static const struct {
        const char *name;
        unsigned kept;
        const char *caught;
        bool goes_on; /* past the try */
    } rows[] = {
        {"kept-70-left", 70, "retry: {limit: {attempt: {count: 70}}}", true},
        {"kept-200-left", 200, "retry: {}, do: [{no: {set: {x: 1}}}]", true},
        {"kept-200-raised", 200, "retry: {limit: {attempt: {count: 199}}}", false},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        publish_kept(w, rows[i].name, rows[i].kept, rows[i].caught);
        struct rv_task_id task = world_submit(w, rows[i].name, "{}");
        for (unsigned n = 1; n <= rows[i].kept; n++)
            world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_UNKNOWN);
        if (rows[i].goes_on) {
            assert_state(w, task, "processing");
            world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_NONE);
        }
        assert_state(w, task, "compensating");
        struct rv_task_id stranger = world_submit(w, "other", "{}");
        assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, stranger), RV_OK);
        for (unsigned n = rows[i].kept; n >= 1; n--) {
            char input[32];
            snprintf(input, sizeof input, "{\"undo\":%u}", n);
            world_expect_one(w, input);
        }
        assert_state(w, task, "compensated");
        assert_int_equal(world_task(w, task)->undo_head, 0);
    }
}

/* A compensation takes about 200; it would take 3,000 if each row that the undo reads
 * began its decision anew. */
enum { COMPLETED = 400, FUEL_OF_UNDO_MAX = 700 };

/* A task of so many completed steps whose compensation calls nobody; it fails if `fails`. */
static struct rv_task_id run_many(struct world *w, const char *name, const char *undo, bool fails)
{
    char text[1024];
    snprintf(text, sizeof text,
             "document: {dsl: '1.0.3', namespace: shop, name: %s, version: '1.0.0'}\n"
             "do:\n- i: {set: {n: 0}}\n"
             "- a: {call: one, output: {as: '${ {n: ($task.input.n + 1)} }'},"
             " metadata: {reeve: {compensate: [{u: {%s}}]}}}\n"
             "- c: {switch: [{more: {when: '.n < %d', then: a}}]}\n%s",
             name, undo, COMPLETED,
             fails ? "- b: {raise: {error: {type: 'urn:x', status: 500}}}\n" : "");
    world_publish(w, text);
    struct rv_task_id task = world_submit(w, name, "{}");
    for (int i = 0; i < COMPLETED; i++)
        assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    return task;
}

static uint64_t fuel_of(const struct world *w)
{
    const struct rv_counts *counts = rv_scheduler_counts(w->scheduler);
    return counts->fuel_in_batches + counts->fuel_beside;
}

/* However many they are, the undo goes on in pieces, and evaluates a compensation about twice. */
static void many_compensations_that_end_at_once_are_carried_out(void **state)
{
    static const char *const undos[] = {
        "set: {x: '${ $undo.outcome }'}",
        "if: '${ $undo.outcome == \"unknown\" }', call: one",
    };
    struct world *w = *state;
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "many-%d", i);
        bool fails = i % 2 == 0;
        struct rv_task_id task = run_many(w, name, undos[i / 2], fails);
        world_settle(w);
        uint64_t fuel = fuel_of(w);
        if (!fails)
            assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
        world_pass(w, 2000);
        assert_in_range(fuel_of(w) - fuel, 1, (uint64_t)COMPLETED * FUEL_OF_UNDO_MAX);
        assert_state(w, task, "compensated");
        assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNREADABLE), 0);
        assert_int_equal(world_count_late(w, task), 0);
    }
}

/* The limit of what a try keeps ends the task with an error of its own, and undoes it. */
static void a_retry_that_keeps_too_many_steps_is_an_error(void **state)
{
    struct world *w = *state;
    publish_kept(w, "kept-300", 300, "retry: {}, do: [{no: {set: {x: 1}}}]");
    struct rv_task_id task = world_submit(w, "kept-300", "{}");
    unsigned failed = 0;
    while (world_task(w, task)->state != RV_TASK_COMPENSATING && failed < 300) {
        world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_UNKNOWN);
        failed++;
        world_pass(w, 200); /* its workflow owes time: what follows waits for its turn */
    }
    assert_int_equal(failed, RV_UNFINISHED_STEPS_MAX + 1);
    struct rv_str error = world_task(w, task)->error;
    assert_non_null(memmem(error.at, error.len, "Too many failed steps in a try", 30));
    while (failed-- > 0) {
        assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
        world_pass(w, 200);
    }
    assert_state(w, task, "compensated");
}

/* Cancelled while the retry keeps them. */
static void a_task_that_keeps_many_steps_can_be_cancelled(void **state)
{
    struct world *w = *state;
    publish_kept(w, "kept-cancelled", 150, "retry: {}");
    struct rv_task_id task = world_submit(w, "kept-cancelled", "{}");
    for (unsigned n = 1; n < 150; n++)
        world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_UNKNOWN);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "compensating");
    world_restart(w, 0);
    for (unsigned n = 1; n < 150; n++)
        assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_state(w, task, "compensated");
}

static int fail_with(struct world *w, struct rv_assignment request, const char *error)
{
    return world_reply(w, request,
                       (struct rv_reply){.error = rv_str_of(error), .effect = RV_EFFECT_UNKNOWN});
}

/* `b` fails and is kept for the retry, in which `a` fails for good. Gives the request of `b`. */
static struct rv_assignment keep_and_park(struct world *w, struct rv_task_id task)
{
    world_expect_one(w, "{}");
    struct rv_assignment b = world_take(w, "one", "i1");
    assert_int_equal(fail_with(w, b, "{\"type\":\"x\",\"status\":503}"), 200);
    world_pass(w, 2000);
    struct rv_assignment a = world_take(w, "one", "i1");
    assert_int_equal(fail_with(w, a, "{\"type\":\"x\",\"status\":400}"), 200);
    assert_state(w, task, "error");
    return b;
}

/* What a retry keeps stays kept while its task is parked: the resubmitted step comes back to it. */
static void a_kept_step_goes_on_after_a_resubmission(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "kept", "{}");
    struct rv_assignment b = keep_and_park(w, task);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    world_expect_one(w, "{}");
    struct rv_assignment again = world_take(w, "one", "i1");
    assert_int_equal(again.step.number, b.step.number);
    assert_int_equal(world_done(w, again, "1"), 200);
    assert_state(w, task, "processed");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_state(w, task, "compensated");
}

/* The kept step is in the frames of the one alone that waits for its turn with a new input. */
static void what_a_retry_kept_is_undone_when_a_new_input_is_taken_back(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "kept-undone", "{}");
    struct rv_assignment b = keep_and_park(w, task);
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate.verb = RV_COMMAND_RESUBMIT;
    call->u.operate.task = task;
    call->u.operate.input = RV_STR("{\"n\":2}");
    call->u.operate.undo_first = true;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    world_expect_one(w, "{\"undo\":\"a\"}"); /* the one whose input was changed */
    world_expect_one(w, "{\"undo\":\"b\"}");
    world_expect_one(w, "{\"undo\":\"a\"}");
    assert_state(w, task, "compensated");
    assert_true(world_step(w, task, (uint32_t)b.step.number)->undone);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(many_steps_that_a_retry_kept_are_all_undone),
        SCENARIO(many_compensations_that_end_at_once_are_carried_out),
        SCENARIO(a_retry_that_keeps_too_many_steps_is_an_error),
        SCENARIO(a_task_that_keeps_many_steps_can_be_cancelled),
        SCENARIO(a_kept_step_goes_on_after_a_resubmission),
        SCENARIO(what_a_retry_kept_is_undone_when_a_new_input_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
