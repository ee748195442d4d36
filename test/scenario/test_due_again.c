/* A task that is due and is as it was when it has been decided would be decided again at once, and
 * so on without end. It is damaged like one whose rows break a rule: escalated, once. */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/limits.h"
#include "core/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Decisions about a due task that change nothing, whatever its rows say. */
static struct rv_task_id stuck;
static int woken;

enum rv_verdict __real_rv_decide(const struct rv_view *view, const struct rv_command *command,
                                 struct rv_arena *arena, struct rv_plan *plan);
enum rv_verdict __wrap_rv_decide(const struct rv_view *view, const struct rv_command *command,
                                 struct rv_arena *arena, struct rv_plan *plan);

enum rv_verdict __wrap_rv_decide(const struct rv_view *view, const struct rv_command *command,
                                 struct rv_arena *arena, struct rv_plan *plan)
{
    bool is = command->kind == RV_COMMAND_WAKE && view->task->id.value == stuck.value;
    if (!is)
        return __real_rv_decide(view, command, arena, plan);
    woken++;
    *plan = (struct rv_plan){.task = *view->task, .status = 200};
    return RV_DECIDED;
}

static int open_world(void **state)
{
    stuck.value = 0;
    woken = 0;
    return world_setup_order(state);
}

static void what_is_due_and_does_not_change_is_escalated_once(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}"), other = world_submit(w, "order", "{}");
    stuck = task;
    world_pass(w, RV_NO_AGENT_ALERT_MS + 1000);
    assert_int_equal(woken, 1);
    assert_state(w, task, "error");
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNREADABLE), 1);
    assert_state(w, other, "pending");
    assert_int_equal(world_count_alerts(w, other, RV_ALERT_NO_AGENT), 1);
    world_pass(w, RV_NO_AGENT_ALERT_MS);
    world_restart(w, 100);
    world_pass(w, RV_NO_AGENT_ALERT_MS);
    assert_int_equal(woken, 1);
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_UNREADABLE), 1);
}

/* Once the cause is gone, the task goes on from where it stood. */
static void it_goes_on_when_it_is_resubmitted(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    stuck = task;
    world_pass(w, RV_NO_AGENT_ALERT_MS + 1000);
    for (int again = 0; again < 2; again++) {
        assert_state(w, task, "error");
        assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, task), RV_OK);
        assert_int_equal(world_count_open_alerts(w), 0);
        world_pass(w, again == 0 ? RV_NO_AGENT_ALERT_MS + 1000 : 0);
        assert_int_equal(woken, 2);
    }
    stuck.value = 0;
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "{}"), 200);
    assert_int_equal(world_done(w, world_take(w, "payment", "p1"), "{}"), 200);
    assert_state(w, task, "processed");
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(what_is_due_and_does_not_change_is_escalated_once),
        SCENARIO(it_goes_on_when_it_is_resubmitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
