/* Which commands are named for a task: it is asked for each whether it is accepted, and nothing of
 * the workflow is evaluated for that. */
#include "../lib/workflow.h"
#include "core/cure.h"
#include "flow_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { NOW = 1000000, ASKING_BYTES_MAX = 256 * 1024 };

struct fixture {
    struct kit kit;
    struct rv_arena rows;
    struct rv_arena arena; /* of what is asked */
    struct rv_task task;
    struct rv_step step;
    struct rv_plan plan;
};

/* The task is parked at its first step, which has failed. */
static int open_fixture(void **state)
{
    static struct fixture f;
    f = (struct fixture){.task = {.revision = 0}};
    kit_new(&f.kit, workflow_file("cure/workflow"));
    rv_arena_init(&f.rows, 0);
    rv_arena_init(&f.arena, ASKING_BYTES_MAX);
    struct rv_view none = {.definition = f.kit.definition};
    struct rv_command submit = {.kind = RV_COMMAND_SUBMIT, .now = NOW, .arrived_at = NOW};
    submit.u.submit.task.value = 1 << 22;
    submit.u.submit.input = RV_STR("{}");
    assert_int_equal(rv_decide(&none, &submit, &f.rows, &f.plan), RV_DECIDED);
    assert_int_equal(f.plan.steps_count, 1);
    f.task = f.plan.task;
    f.step = *f.plan.steps[0].row;
    f.task.state = RV_TASK_ERROR;
    f.step.state = RV_STEP_ERROR;
    f.step.wake_at = 0;
    f.step.effect = RV_EFFECT_UNKNOWN;
    *state = &f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    rv_arena_done(&f->arena);
    rv_arena_done(&f->rows);
    kit_done(&f->kit);
    return 0;
}

static struct rv_view view_of(struct fixture *f, const struct rv_step **steps)
{
    steps[0] = &f->step;
    return (struct rv_view){
        .task = &f->task, .steps = steps, .steps_count = 1, .definition = f->kit.definition};
}

static void assert_named(struct fixture *f, const enum rv_cure_kind *kinds, size_t count)
{
    const struct rv_step *steps[1];
    struct rv_view view = view_of(f, steps);
    struct rv_cure cures[RV_CURES_MAX];
    struct rv_cures_want want;
    size_t named = 0;
    assert_int_equal(rv_cures(&view, NOW, &f->arena, cures, &named, &want), RV_DECIDED);
    assert_int_equal(f->arena.refused, RV_OK);
    assert_int_equal(named, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(cures[i].kind, kinds[i]);
}

static void nothing_is_evaluated_to_name_a_command(void **state)
{
    struct fixture *f = *state;
    const enum rv_cure_kind kinds[] = {RV_CURE_RESUBMIT, RV_CURE_PAST, RV_CURE_UNDONE,
                                       RV_CURE_NOTHING,  RV_CURE_UNDO, RV_CURE_ABANDON};
    assert_named(f, kinds, sizeof kinds / sizeof *kinds);
}

static void a_command_that_asks_says_no_more_than_that(void **state)
{
    struct fixture *f = *state;
    const struct rv_step *steps[1];
    struct rv_view view = view_of(f, steps);
    struct rv_command undo = {.kind = RV_COMMAND_UNDO, .now = NOW, .arrived_at = NOW, .asks = true};
    assert_int_equal(rv_decide(&view, &undo, &f->arena, &f->plan), RV_ACCEPTED);
    undo.kind = RV_COMMAND_RETRY;
    assert_int_equal(rv_decide(&view, &undo, &f->arena, &f->plan), RV_DECIDED);
    assert_int_equal(f->plan.err, RV_ERR_REFUSED);
    undo.kind = RV_COMMAND_RESUME; /* it is not suspended */
    assert_int_equal(rv_decide(&view, &undo, &f->arena, &f->plan), RV_DECIDED);
    assert_int_equal(f->plan.err, RV_OK);
    assert_false(f->plan.changed);
}

/* The command goes on from frames that cannot be read: it is not named. */
static void what_cannot_be_read_is_not_gone_on_from(void **state)
{
    struct fixture *f = *state;
    const enum rv_cure_kind kinds[] = {RV_CURE_ABANDON};
    f->step.frames = RV_STR("{}");
    assert_named(f, kinds, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_evaluated_to_name_a_command),
        TEST(a_command_that_asks_says_no_more_than_that),
        TEST(what_cannot_be_read_is_not_gone_on_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
