/* The line of an operator's command: who, when and why, for a command that is accepted and no
 * other, and never half of it. */
#include "core/decide.h"
#include "flow_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { NOW = 1000000, ARENA_BYTES_MAX = 64 * 1024, ARENA_PART = 64 };

static const char *const workflow =
    "document: {dsl: '1.0.3', namespace: a, name: b, version: '1.0.0'}\n"
    "do:\n"
    "  - ask: {call: one}\n";

struct fixture {
    struct kit kit;
    struct rv_arena arena;
    struct rv_task task;
    struct rv_step step;
    struct rv_plan plan;
};

/* A step waits for an agent. */
static int open_fixture(void **state)
{
    static struct fixture f;
    f = (struct fixture){.task = {.id = {1 << 22},
                                  .revision = 3,
                                  .state = RV_TASK_PROCESSING,
                                  .direction = RV_FORWARD,
                                  .last_number = 1,
                                  .open_count = 1,
                                  .open = {1}},
                         .step = {.number = 1,
                                  .kind = RV_KIND_CALL,
                                  .state = RV_STEP_PENDING,
                                  .direction = RV_FORWARD,
                                  .agent = RV_STR("one"),
                                  .reference = RV_STR("/do/0/ask"),
                                  .frames = RV_STR("{}"),
                                  .ready_at = NOW + 5000,
                                  .wake_at = NOW + 5000}};
    kit_new(&f.kit, workflow);
    f.step.node = rv_definition_find(f.kit.definition, f.step.reference);
    rv_arena_init(&f.arena, 0);
    *state = &f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    rv_arena_done(&f->arena);
    kit_done(&f->kit);
    return 0;
}

static struct rv_command command_of(enum rv_command_kind kind)
{
    struct rv_command command = {.kind = kind, .now = NOW, .arrived_at = NOW};
    command.u.operate.by = RV_STR("ann");
    command.u.operate.reason = RV_STR("the stock is counted");
    return command;
}

static enum rv_verdict decide(struct fixture *f, const struct rv_command *command,
                              struct rv_arena *arena)
{
    const struct rv_step *steps[] = {&f->step};
    struct rv_view view = {
        .task = &f->task, .steps = steps, .steps_count = 1, .definition = f->kit.definition};
    return rv_decide(&view, command, arena, &f->plan);
}

static void expect_line(struct fixture *f, const struct rv_command *command,
                        enum rv_operator_verb verb, const char *options)
{
    assert_int_equal(decide(f, command, &f->arena), RV_DECIDED);
    assert_int_equal(f->plan.err, RV_OK);
    const struct rv_history_row *row = f->plan.history;
    assert_non_null(row);
    assert_int_equal(row->verb, verb);
    assert_int_equal(row->task.value, f->task.id.value);
    assert_int_equal(row->step, command->step);
    assert_int_equal(row->at, NOW);
    assert_int_equal(row->selection.value, command->u.operate.selection.value);
    assert_true(rv_str_is(row->by, "ann"));
    assert_true(rv_str_is(row->reason, "the stock is counted"));
    assert_int_equal(row->options.at != NULL, options != NULL);
    if (options != NULL)
        assert_true(rv_str_is(row->options, options));
}

static void each_command_has_its_line(void **state)
{
    struct fixture *f = *state;
    struct rv_command suspend = command_of(RV_COMMAND_SUSPEND);
    suspend.u.operate.selection.value = 77;
    expect_line(f, &suspend, RV_OPERATOR_SUSPEND, NULL);
    struct rv_command retry = command_of(RV_COMMAND_RETRY);
    expect_line(f, &retry, RV_OPERATOR_RETRY, NULL);
    retry.step = 1;
    retry.u.operate.close_circuit = true;
    expect_line(f, &retry, RV_OPERATOR_RETRY, "close-circuit");
    struct rv_command cancel = command_of(RV_COMMAND_CANCEL);
    cancel.u.operate.abandon = true;
    expect_line(f, &cancel, RV_OPERATOR_CANCEL, "abandon");
    f->task.state = RV_TASK_ERROR;
    f->task.open_count = 0;
    struct rv_command settle = command_of(RV_COMMAND_SETTLE);
    settle.u.operate.output = RV_STR("{}");
    expect_line(f, &settle, RV_OPERATOR_SETTLE, "done output");
}

/* It asks for what is so already: accepted, and nothing else is written. */
static void what_is_so_already_has_its_line(void **state)
{
    struct fixture *f = *state;
    struct rv_command resume = command_of(RV_COMMAND_RESUME);
    expect_line(f, &resume, RV_OPERATOR_RESUME, "no-change");
    assert_false(f->plan.changed);
    f->task.state = RV_TASK_COMPENSATING;
    f->task.direction = RV_UNDO;
    f->task.open_count = 0;
    struct rv_command undo = command_of(RV_COMMAND_UNDO);
    undo.u.operate.by_hand = true;
    expect_line(f, &undo, RV_OPERATOR_UNDO, "by-hand no-change");
    assert_false(f->plan.changed);
    assert_false(rv_history_changed(f->plan.history));
}

static void what_is_refused_has_none(void **state)
{
    struct fixture *f = *state;
    struct rv_command resubmit = command_of(RV_COMMAND_RESUBMIT);
    assert_int_equal(decide(f, &resubmit, &f->arena), RV_DECIDED);
    assert_int_equal(f->plan.err, RV_ERR_REFUSED);
    assert_null(f->plan.history);
}

static void what_no_operator_commands_has_none(void **state)
{
    struct fixture *f = *state;
    struct rv_command wake = {.kind = RV_COMMAND_WAKE, .now = NOW, .arrived_at = NOW};
    assert_int_equal(decide(f, &wake, &f->arena), RV_DECIDED);
    assert_null(f->plan.history);
}

/* Wherever memory ends, a command is not accepted without its line. */
static void no_line_is_lost_without_memory(void **state)
{
    struct fixture *f = *state;
    struct rv_command retry = command_of(RV_COMMAND_RETRY);
    retry.u.operate.close_circuit = true;
    bool decided = false;
    for (size_t bytes = ARENA_PART; bytes <= ARENA_BYTES_MAX; bytes += ARENA_PART) {
        struct rv_arena arena;
        rv_arena_init(&arena, bytes);
        enum rv_verdict verdict = decide(f, &retry, &arena);
        assert_true(verdict == RV_DECIDED || verdict == RV_OVER_LIMIT);
        assert_false(decided && verdict != RV_DECIDED);
        decided = verdict == RV_DECIDED;
        if (decided) {
            assert_non_null(f->plan.history);
            assert_true(rv_str_is(f->plan.history->options, "close-circuit"));
        }
        rv_arena_done(&arena);
    }
    assert_true(decided);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(each_command_has_its_line),      TEST(what_is_so_already_has_its_line),
        TEST(what_is_refused_has_none),       TEST(what_no_operator_commands_has_none),
        TEST(no_line_is_lost_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
