/* What `explain` reports of a task's past: from its rows, so the same after a restart. */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct store_faults faults;

static int open_world(void **state)
{
    faults = (struct store_faults){.store = {NULL}};
    return world_setup(state, &faults, WORLD_FILES("order"));
}

static void assert_event(const struct rv_call_explain *told, size_t place,
                         enum rv_explained_kind kind, uint32_t step)
{
    assert_true(place < told->events_count);
    assert_int_equal(told->events[place].kind, kind);
    assert_int_equal(told->events[place].step, step);
    assert_true(told->events[place].at > 0);
    assert_true(place == 0 || told->events[place].at >= told->events[place - 1].at);
}

static void fail_twice(struct world *w, const char *agent)
{
    for (int i = 0; i < 2; i++) {
        struct rv_assignment request = world_take(w, agent, "i1");
        assert_int_equal(world_fail(w, request, true, RV_EFFECT_UNKNOWN), 200);
        world_pass(w, 1300);
    }
}

static void a_cool_down_stays_on_record(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    fail_twice(w, "inventory");
    const struct rv_call_explain *told = world_explained(w, task);
    assert_int_equal(told->reason, RV_WAIT_COOL_DOWN);
    assert_int_equal(told->events_count, 1);
    assert_event(told, 0, RV_EXPLAINED_COOL_DOWN, 1);
    int64_t at = told->events[0].at, until = told->events[0].until;
    assert_true(until >= at + 30000);
    world_pass(w, 68000);
    (void)world_take(w, "inventory", "i1");
    world_restart(w, 1000);
    told = world_explained(w, task);
    assert_int_equal(told->events_count, 1);
    assert_event(told, 0, RV_EXPLAINED_COOL_DOWN, 1);
    assert_int_equal(told->events[0].at, at);
    assert_int_equal(told->events[0].until, until);
}

/* Of a step that failed: its attempts; of the task: when its undo began, what was undone. */
static void an_undone_task_says_why_and_what(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
    fail_twice(w, "payment");
    world_pass(w, 68000);
    fail_twice(w, "payment");
    assert_state(w, task, "compensating");
    const struct rv_call_explain *told = world_explained(w, task);
    assert_true(told->events_count > 0);
    assert_event(told, told->events_count - 1, RV_EXPLAINED_UNDO_BEGAN, 2);
    int64_t began_at = told->events[told->events_count - 1].at;
    assert_int_equal(world_done(w, world_take(w, "payment", "p1"), "{}"), 200);
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
    assert_state(w, task, "compensated");
    world_restart(w, 1000);
    told = world_explained(w, task);
    assert_int_equal(told->reason, RV_WAIT_NOTHING);
    assert_int_equal(told->events_count, 2);
    assert_event(told, 0, RV_EXPLAINED_COOL_DOWN, 2);
    assert_event(told, 1, RV_EXPLAINED_UNDO_BEGAN, 2);
    assert_int_equal(told->events[1].at, began_at);
    assert_int_equal(told->attempts_count, 4); /* the newest, which stands in its step, too */
    assert_int_equal(told->attempts[3].number, 4);
    assert_int_equal(told->attempts[3].retry_at, 0);
    assert_int_equal(told->effects_count, 2);
    assert_int_equal(told->effects_total[RV_EFFECT_IS_UNDONE], 2);
    assert_int_equal(told->effects[0].step, 2); /* the newest first */
    assert_int_equal(told->effects[0].effect, RV_EFFECT_UNKNOWN);
    assert_null(told->ended_by);
    assert_true(told->found->ended_at > began_at);
}

static void an_abandoned_task_names_the_operator_and_what_is_left(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate.task = task;
    call->u.operate.verb = RV_COMMAND_CANCEL;
    call->u.operate.abandon = true;
    call->u.operate.by = RV_STR("ann");
    call->u.operate.reason = RV_STR("sold by hand");
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    assert_state(w, task, "cancelled");
    world_restart(w, 1000);
    const struct rv_call_explain *told = world_explained(w, task);
    assert_non_null(told->ended_by);
    assert_true(rv_str_is(told->ended_by->by, "ann"));
    assert_true(rv_str_is(told->ended_by->reason, "sold by hand"));
    assert_int_equal(told->effects_total[RV_EFFECT_STAYS], 1);
    assert_int_equal(told->effects_total[RV_EFFECT_IS_UNDONE], 0);
    assert_int_equal(told->effects[0].how, RV_EFFECT_STAYS);
}

/* Decision 027: a cancel in whose task nothing may have had an effect, and every other end. */
static void what_ends_without_effects_ends_by_its_reason(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "cancelled");
    task = world_submit(w, "order", "{}");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    assert_state(w, task, "compensated");
    task = world_submit(w, "order", "{}");
    (void)world_fail(w, world_take(w, "inventory", "i1"), false, RV_EFFECT_NONE);
    assert_state(w, task, "compensated");
    assert_int_equal(world_explained(w, task)->effects_count, 0);
    /* Carried out, although it needs no undo. */
    world_publish(w, DOCUMENT("bare") "do:\n"
                                      "  - a: {call: one, metadata: {reeve: {compensate: none}}}\n"
                                      "  - b: {call: two}\n");
    task = world_submit(w, "bare", "{}");
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "compensated");
    assert_int_equal(world_explained(w, task)->effects[0].how, RV_EFFECT_NEEDS_NO_UNDO);
}

/* Of two steps that are done, the definition of the second declares no compensation. */
static void an_effect_without_compensation_is_left_to_an_operator(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("explain/bare"));
    struct rv_task_id task = world_submit(w, "bare", "{}");
    assert_int_equal(world_explained(w, task)->effects_count, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    world_restart(w, 1000);
    const struct rv_call_explain *told = world_explained(w, task);
    assert_int_equal(told->effects_count, 2);
    assert_int_equal(told->effects[0].how, RV_EFFECT_BY_HAND); /* although it is the older one */
    assert_int_equal(told->effects[1].how, RV_EFFECT_STAYS);
    assert_int_equal(told->effects[1].step, 1);
    assert_int_equal(told->effects_total[RV_EFFECT_BY_HAND], 1);
}

/* Decision 027: a cancel after the undo has begun for another reason does not change the reason. */
static void a_cancel_of_a_failed_task_is_not_its_reason(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
    struct rv_assignment request = world_take(w, "payment", "p1");
    assert_int_equal(world_fail(w, request, false, RV_EFFECT_UNKNOWN), 200);
    assert_int_equal(world_done(w, world_take(w, "payment", "p1"), "{}"), 200);
    world_pass(w, 3000);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
    assert_state(w, task, "compensated");
    const struct rv_call_explain *told = world_explained(w, task);
    assert_null(told->ended_by);
    assert_int_equal(told->events_count, 1);
    assert_event(told, 0, RV_EXPLAINED_UNDO_BEGAN, 2);
    assert_true(told->found->ended_at - told->events[0].at >= 3000);
}

/* As many alerts as are read are all that there are. */
static void events_are_cut_where_more_alerts_are_there(void **state)
{
    enum { ALERTS_READ = 50 };
    struct world *w = *state;
    world_publish(w, workflow_file("explain/fails"));
    struct rv_task_id task = world_submit(w, "fails", "{}");
    for (int alerts = 1; alerts <= ALERTS_READ + 1; alerts++) {
        assert_int_equal(world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_NONE), 200);
        assert_state(w, task, "error");
        if (alerts >= ALERTS_READ)
            assert_int_equal(world_explained(w, task)->cut[RV_EXPLAINED_CUT_EVENTS],
                             alerts > ALERTS_READ);
        assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
    }
}

/* Its reply named an instant, but another step has found the target alive. */
static void a_closed_circuit_is_not_explained_as_open(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    struct rv_reply open = {.error = RV_STR("{\"type\":\"circuit-open\"}"),
                            .circuit_open = true,
                            .target = RV_STR("bank"),
                            .retry_after_ms = 5000};
    assert_int_equal(world_reply(w, request, open), 200);
    struct rv_task_id other = world_submit(w, "order", "{}");
    request = world_take(w, "inventory", "i1");
    open.retry_after_ms = 600000;
    assert_int_equal(world_reply(w, request, open), 200);
    assert_int_equal(world_explained(w, other)->reason, RV_WAIT_CIRCUIT);
    assert_true(rv_str_is(world_explained(w, other)->steps[0].target, "bank"));
    assert_int_equal(world_operate(w, RV_COMMAND_RETRY, task), RV_OK);
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
    const struct rv_call_explain *told = world_explained(w, other);
    assert_int_equal(told->reason, RV_WAIT_NOT_TRIED);
    assert_true(told->until > w->now);
    world_assert_cures(w, other, "retry settle-done:1 cancel");
}

/* What a refusal lists is what an explanation lists. */
static void a_refusal_lists_what_an_explanation_lists(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    const char *named = "settle-done:1 cancel";
    for (int i = 0; i < 2; i++) {
        world_assert_cures(w, task, named);
        struct rv_call *refused = world_settle_step(w, task, 1, RV_FINDING_UNDONE, NULL);
        assert_int_equal(refused->err, RV_ERR_REFUSED);
        bool retries = memmem(refused->message.at, refused->message.len, "reeve retry", 11) != NULL;
        assert_int_equal(retries, i == 1);
        if (i == 0)
            world_fail(w, world_take(w, "inventory", "i1"), true, RV_EFFECT_NONE);
        named = "retry settle-done:1 cancel";
    }
}

static void a_withdrawn_undo_has_not_ended_a_task(void **state)
{
    struct world *w = *state;
    world_publish(w,
                  DOCUMENT("pivots") "do:\n"
                                     "  - p: {call: one, metadata: {reeve: {pivot: true}}}\n"
                                     "  - z: {call: one, metadata: {reeve: {compensate: none}}}\n");
    struct rv_task_id task = world_submit(w, "pivots", "{}");
    struct rv_assignment request = world_take(w, "one", "i1");
    assert_int_equal(world_operate(w, RV_COMMAND_UNDO, task), RV_OK);
    (void)world_done(w, request, "{}");
    assert_state(w, task, "error");
    assert_int_equal(world_settle_seen(w, task, 1, RV_FINDING_DONE, "{}", 1), RV_OK);
    assert_null(world_explained(w, task)->ended_by);
    assert_int_equal(world_done(w, world_take(w, "one", "i1"), "{}"), 200);
    assert_state(w, task, "processed");
    const struct rv_call_explain *told = world_explained(w, task);
    assert_null(told->ended_by);
    assert_int_equal(told->events_count, 0);
}

static void operate(struct world *w, struct rv_task_id task, enum rv_command_kind verb)
{
    struct rv_call *call = world_call(w, RV_CALL_OPERATE);
    call->u.operate.task = task;
    call->u.operate.verb = verb;
    call->u.operate.by = RV_STR("ann");
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
}

static void a_cancel_is_named_after_many_commands(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
    operate(w, task, RV_COMMAND_CANCEL);
    for (int i = 0; i < 40; i++)
        operate(w, task, i % 2 == 0 ? RV_COMMAND_SUSPEND : RV_COMMAND_RESUME);
    const struct rv_call_explain *told = world_explained(w, task);
    assert_non_null(told->ended_by);
    assert_int_equal(told->ended_by->verb, RV_OPERATOR_CANCEL);
    assert_int_equal(told->ended_by->number, 1);
}

/* An undo is asked for again while it is under way, and a cancel after the task was cancelled. */
static void what_changed_nothing_has_ended_nothing(void **state)
{
    static const enum rv_command_kind verbs[] = {RV_COMMAND_UNDO, RV_COMMAND_CANCEL};
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        struct rv_task_id task = world_submit(w, "order", "{}");
        assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
        operate(w, task, verbs[i]);
        const struct rv_call_explain *told = world_explained(w, task);
        int64_t began_at = told->events[0].at;
        assert_event(told, 0, RV_EXPLAINED_UNDO_BEGAN, 0);
        world_pass(w, 3000);
        operate(w, task, verbs[i]);
        operate(w, task, verbs[1 - i]);
        told = world_explained(w, task);
        assert_int_equal(told->events[0].at, began_at);
        assert_int_equal(told->ended_by->number, 1);
        assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
        assert_state(w, task, "compensated");
        told = world_explained(w, task);
        assert_int_equal(told->events[0].at, began_at);
        assert_int_equal(told->ended_by->number, 1);
    }
    struct rv_task_id task = world_submit(w, "order", "{}");
    operate(w, task, RV_COMMAND_CANCEL);
    world_pass(w, 3000);
    operate(w, task, RV_COMMAND_CANCEL);
    assert_int_equal(world_explained(w, task)->ended_by->number, 1);
}

/* As many attempts as are listed, and the one that is open; with the next one the list is cut. */
static void a_list_of_attempts_that_is_cut_is_named(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("explain/retries"));
    struct rv_task_id task = world_submit(w, "retries", "{}");
    for (int failed = 0; failed <= RV_EXPLAINED_ATTEMPTS_MAX; failed++) {
        struct rv_assignment request = world_take(w, "tool", "i1");
        const struct rv_call_explain *told = world_explained(w, task);
        assert_int_equal(told->attempts_count, failed);
        assert_false(told->cut[RV_EXPLAINED_CUT_ATTEMPTS]);
        assert_int_equal(world_fail(w, request, true, RV_EFFECT_NONE), 200);
        told = world_explained(w, task); /* one that has ended is listed at once */
        const struct rv_attempt *last = &told->attempts[told->attempts_count - 1];
        assert_int_equal(last->number, failed + 1);
        assert_int_equal(last->ended_at, w->now);
        assert_int_equal(last->retry_at, told->steps[0].step->ready_at);
        assert_int_equal(told->cut[RV_EXPLAINED_CUT_ATTEMPTS], failed == RV_EXPLAINED_ATTEMPTS_MAX);
        world_pass(w, 1000);
    }
    (void)world_take(w, "tool", "i1");
    const struct rv_call_explain *told = world_explained(w, task);
    assert_int_equal(told->attempts_count, RV_EXPLAINED_ATTEMPTS_MAX);
    assert_true(told->cut[RV_EXPLAINED_CUT_ATTEMPTS]);
    assert_false(told->cut[RV_EXPLAINED_CUT_LATE]);
    assert_false(told->cut[RV_EXPLAINED_CUT_STEPS]);
}

/* No step failed and none is undone: the undo began when the task ended. */
static void an_undo_without_a_step_has_a_time(void **state)
{
    struct world *w = *state;
    world_publish(w, DOCUMENT("fails") "do:\n- a: {call: tool, if: '${ error(\"no\") }'}\n");
    struct rv_task_id task = world_submit(w, "fails", "{}");
    assert_state(w, task, "compensated");
    const struct rv_call_explain *told = world_explained(w, task);
    assert_int_equal(told->events_count, 1);
    assert_event(told, 0, RV_EXPLAINED_UNDO_BEGAN, 0);
}

enum { LARGE = 100 * 1024, LARGE_STEPS = 40 };

/* A task of forty steps that have a large output each, and stands in error at the next. */
static struct rv_task_id task_of_large_steps(struct world *w)
{
    char text[LARGE + 8];
    size_t bytes = 0;
    char *yaml = malloc(LARGE);
    assert_non_null(yaml);
    bytes += (size_t)snprintf(yaml, LARGE, "%sdo:\n", DOCUMENT("large"));
    for (int i = 0; i < LARGE_STEPS; i++)
        bytes += (size_t)snprintf(yaml + bytes, LARGE - bytes, "  - s%d: {call: one}\n", i);
    (void)snprintf(yaml + bytes, LARGE - bytes,
                   "  - last: {call: one, metadata: {reeve: "
                   "{failures: {threshold: 1, rounds: 0, then: error}}}}\n");
    world_publish(w, yaml);
    free(yaml);
    memset(text, 'x', sizeof text);
    text[0] = '"';
    memcpy(text + LARGE, "\"", 2);
    struct rv_task_id task = world_submit(w, "large", text);
    for (int i = 0; i < LARGE_STEPS; i++)
        assert_int_equal(world_done(w, world_take(w, "one", "i1"), text), 200);
    assert_int_equal(world_fail(w, world_take(w, "one", "i1"), false, RV_EFFECT_NONE), 200);
    assert_state(w, task, "error");
    return task;
}

static uint64_t payload_bytes(struct world *w, struct rv_call *call)
{
    uint64_t before = faults.payload_bytes;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    return faults.payload_bytes - before;
}

/* Whatever a task's steps were given, and have returned. */
static void views_read_no_payloads(void **state)
{
    static const enum rv_call_kind kinds[] = {RV_CALL_STATUS, RV_CALL_ALERTS, RV_CALL_TASKS,
                                              RV_CALL_ATTEMPTS, RV_CALL_LATE};
    struct world *w = *state;
    struct rv_task_id task = task_of_large_steps(w);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct rv_call *call = world_call(w, kinds[i]);
        if (kinds[i] == RV_CALL_ATTEMPTS || kinds[i] == RV_CALL_LATE)
            call->u.list.task = task;
        assert_int_equal(payload_bytes(w, call), 0);
    }
    struct rv_call *call = world_call(w, RV_CALL_ALERTS);
    (void)payload_bytes(w, call);
    assert_int_equal(call->u.list.count, 1);
    assert_true(call->u.list.alert_facts[0].error_type.len > 0);
    assert_true(rv_str_is(call->u.list.alert_facts[0].reference, "/do/40/last"));
    call = world_call(w, RV_CALL_EXPLAIN);
    call->u.explain.task = task;
    /* The recommended commands are decided on whole rows: of the step at which the task stands, and
     * of those with which an undo begins. */
    assert_in_range(payload_bytes(w, call), 0, LARGE_STEPS / 4 * LARGE);
    assert_int_equal(call->u.explain.reason, RV_WAIT_OPERATOR);
    assert_true(call->u.explain.cures_count > 0);
    assert_non_null(call->u.explain.steps[0].step->error.at);
}

static void outcomes_read_no_payloads(void **state)
{
    struct world *w = *state;
    (void)task_of_large_steps(w);
    struct rv_call *select = world_call(w, RV_CALL_SELECT);
    select->u.select = RV_NEW(&select->arena, struct rv_call_select);
    assert_non_null(select->u.select);
    select->u.select->row.filter = RV_STR("all");
    assert_int_equal(payload_bytes(w, select), 0);
    struct rv_call *bulk = world_call(w, RV_CALL_BULK);
    bulk->u.bulk.selection = select->u.select->row.id;
    bulk->u.bulk.ask = RV_BULK_BEGIN;
    bulk->u.bulk.verb = RV_COMMAND_RESUBMIT;
    bulk->u.bulk.rate = 10;
    assert_true(world_run(w, bulk));
    world_pass(w, 1000);
    struct rv_call *outcomes = world_call(w, RV_CALL_OUTCOMES);
    outcomes->u.outcomes.selection = bulk->u.bulk.selection;
    outcomes->u.outcomes.limit = 10;
    assert_int_equal(payload_bytes(w, outcomes), 0);
    assert_int_equal(outcomes->u.outcomes.count, 1);
    assert_int_equal(outcomes->u.outcomes.tasks[0]->state, RV_TASK_PROCESSING);
}

#define SCENARIO(function) cmocka_unit_test_setup_teardown(function, open_world, world_teardown)

int main(void)
{
    const struct CMUnitTest scenarios[] = {
        SCENARIO(a_cool_down_stays_on_record),
        SCENARIO(an_undone_task_says_why_and_what),
        SCENARIO(an_abandoned_task_names_the_operator_and_what_is_left),
        SCENARIO(an_effect_without_compensation_is_left_to_an_operator),
        SCENARIO(what_ends_without_effects_ends_by_its_reason),
        SCENARIO(a_list_of_attempts_that_is_cut_is_named),
        SCENARIO(a_cancel_is_named_after_many_commands),
        SCENARIO(what_changed_nothing_has_ended_nothing),
        SCENARIO(a_cancel_of_a_failed_task_is_not_its_reason),
        SCENARIO(events_are_cut_where_more_alerts_are_there),
        SCENARIO(a_closed_circuit_is_not_explained_as_open),
        SCENARIO(a_refusal_lists_what_an_explanation_lists),
        SCENARIO(a_withdrawn_undo_has_not_ended_a_task),
        SCENARIO(an_undo_without_a_step_has_a_time),
        SCENARIO(views_read_no_payloads),
        SCENARIO(outcomes_read_no_payloads),
    };
    return cmocka_run_group_tests(scenarios, NULL, NULL);
}
