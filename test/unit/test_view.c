/* Every rule that the rows of one task keep among themselves: rows that break it are told apart,
 * in the rule's own words; and when a task must be looked at next. */
#include "core/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { NOW = 1000000 };

/* A task in processing: step 1 is done and can be undone, step 2 is out with an agent. */
struct rows {
    struct rv_task task;
    struct rv_step done;
    struct rv_step out;
    size_t given; /* how many of the steps are in the view */
};

static struct rows rows_good(void)
{
    struct rows rows = {
        .task = {.id = {1 << 22},
                 .revision = 3,
                 .state = RV_TASK_PROCESSING,
                 .direction = RV_FORWARD,
                 .fence = 9,
                 .last_number = 2,
                 .undo_head = 1,
                 .open_count = 1,
                 .open = {2}},
        .done = {.number = 1,
                 .kind = RV_KIND_CALL,
                 .state = RV_STEP_PROCESSED,
                 .direction = RV_FORWARD,
                 .effect = RV_EFFECT_DONE,
                 .chained = true,
                 .attempt = 1,
                 .attempt_state = RV_ATTEMPT_DONE,
                 .attempt_ended_at = NOW - 10,
                 .fence = 8,
                 .complete_by = NOW,
                 .ended_at = NOW - 10,
                 .agent = RV_STR("inventory")},
        .given = 2,
    };
    rows.out = rows.done;
    rows.out.number = 2;
    rows.out.state = RV_STEP_PROCESSING;
    rows.out.effect = RV_EFFECT_NONE;
    rows.out.chained = false;
    rows.out.attempt_state = RV_ATTEMPT_OPEN;
    rows.out.attempt_ended_at = 0;
    rows.out.ended_at = 0;
    rows.out.fence = 9;
    rows.out.complete_by = NOW + 30000;
    rows.out.lease_until = NOW + 5000;
    rows.out.wake_at = NOW + 5000;
    rows.out.frames = RV_STR("[]");
    return rows;
}

static const char *broken(const struct rows *rows)
{
    const struct rv_step *steps[] = {&rows->out, &rows->done};
    return rv_view_broken(&rows->task, steps, rows->given);
}

/* Breaks one rule and no other that is looked at before it. */
#define BREAKS(sentence, ...)                                                                      \
    do {                                                                                           \
        struct rows rows = rows_good();                                                            \
        struct rv_task *task = &rows.task;                                                         \
        struct rv_step *out = &rows.out;                                                           \
        struct rv_step *done = &rows.done;                                                         \
        (void)task, (void)out, (void)done;                                                         \
        __VA_ARGS__;                                                                               \
        const char *told = broken(&rows);                                                          \
        assert_string_equal(told != NULL ? told : "nothing is broken", sentence);                  \
    } while (0)

static void good_rows_break_nothing(void **state)
{
    (void)state;
    struct rows rows = rows_good();
    assert_null(broken(&rows));
}

/* A step was undone and tried with another input, and that attempt ended unheard. */
static void a_compensation_that_is_over_was_begun_before_later_attempts(void **state)
{
    (void)state;
    struct rows rows = rows_good();
    rows.task.quiet_at = NOW;
    rows.done.direction = RV_UNDO;
    rows.done.undoes = 1;
    rows.done.created_at = NOW - 1;
    assert_null(broken(&rows));
}

static void a_task_that_breaks_a_rule_is_told(void **state)
{
    (void)state;
    BREAKS("the row of a task has valid values", task->unreadable = true);
    BREAKS("a task that has ended has no open steps", task->state = RV_TASK_PROCESSED,
           task->ended_at = NOW);
    BREAKS("a task has an end time if and only if it has ended", task->ended_at = NOW);
    BREAKS("a task has an end time if and only if it has ended", task->state = RV_TASK_PROCESSED,
           task->open_count = 0);
    BREAKS("a pending task waits at a step", task->state = RV_TASK_PENDING, task->open_count = 0);
    BREAKS("a pending task has nothing to undo", task->state = RV_TASK_PENDING);
    BREAKS("a task in processing has a current step", task->open_count = 0);
    BREAKS("a task that is being undone has the direction undo",
           task->state = RV_TASK_COMPENSATING);
    BREAKS("a task that is being undone does not have the direction forward",
           task->direction = RV_UNDO);
    BREAKS("a compensated task has nothing left to undo", task->state = RV_TASK_COMPENSATED,
           task->direction = RV_UNDO, task->open_count = 0, task->ended_at = NOW);
    BREAKS("the undo chain refers to steps of the task", task->undo_head = 3);
    BREAKS("the undo chain refers to steps of the task", task->undo_blocker = 3);
    BREAKS("every open step exists", task->open[0] = 7);
    BREAKS("every open step exists", rows.given = 0);
}

static void an_open_step_that_breaks_a_rule_is_told(void **state)
{
    (void)state;
    BREAKS("the current steps of a task are open, or escalated with the task",
           out->state = RV_STEP_PROCESSED);
    BREAKS("the current steps of a task are open, or escalated with the task",
           out->state = RV_STEP_ERROR);
    BREAKS("an open step has no end time", out->ended_at = NOW);
    BREAKS("a current step has frames", out->frames = RV_STR_NONE);
    BREAKS("a pending task has no step in processing", task->state = RV_TASK_PENDING,
           task->undo_head = 0);
    BREAKS("while a task is undone, a forward step is open only if its attempt is revoked",
           task->state = RV_TASK_COMPENSATING, task->direction = RV_UNDO);
    BREAKS("a current step is not in the undo chain", out->chained = true);
    BREAKS("compensations are open only while a task is undone", out->direction = RV_UNDO,
           out->undoes = 1);
    BREAKS("a compensation begins after the deadline of each attempt without a reply",
           task->quiet_at = NOW, task->state = RV_TASK_COMPENSATING, task->direction = RV_UNDO,
           out->direction = RV_UNDO, out->undoes = 1, out->created_at = NOW - 1);
    BREAKS("a compensation begins after the deadline of each attempt without a reply",
           task->quiet_at = NOW, task->state = RV_TASK_ERROR, task->direction = RV_UNDO,
           out->direction = RV_UNDO, out->undoes = 1, out->created_at = NOW - 1,
           out->state = RV_STEP_ERROR);
    BREAKS("an open timer has a due time", out->kind = RV_KIND_WAIT, out->wake_at = 0,
           out->attempt_state = RV_ATTEMPT_NONE);
    BREAKS("a wait is in processing until it ends", out->kind = RV_KIND_WAIT,
           out->state = RV_STEP_PENDING, out->attempt_state = RV_ATTEMPT_NONE);
    BREAKS("a wait is in processing until it ends", out->kind = RV_KIND_WAIT,
           task->state = RV_TASK_ERROR, out->state = RV_STEP_ERROR,
           out->attempt_state = RV_ATTEMPT_NONE);
    /* The forward attempt may still have its effect while another is undone. */
    BREAKS("no compensation is open while a forward attempt is live",
           task->state = RV_TASK_COMPENSATING, task->direction = RV_UNDO, task->open_count = 2,
           task->open[1] = 1, out->attempt_state = RV_ATTEMPT_REVOKED,
           done->state = RV_STEP_PENDING, done->ended_at = 0, done->direction = RV_UNDO,
           done->undoes = 1, done->frames = RV_STR("[]"));
}

static void a_step_that_breaks_a_rule_is_told(void **state)
{
    (void)state;
    BREAKS("the number of a step is at most the last step number of the task", done->number = 3);
    BREAKS("the number of a step is at most the last step number of the task", done->number = 0);
    BREAKS("the steps of a compensation, and no other steps, refer to the step that they undo",
           done->undoes = 2);
    BREAKS("the steps of a compensation, and no other steps, refer to the step that they undo",
           done->direction = RV_UNDO);
    BREAKS("the row of a step has valid values", done->unreadable = true);
    BREAKS("a call has the name of its agent, and its names have no NUL byte",
           out->agent = RV_STR_NONE);
    BREAKS("a call has the name of its agent, and its names have no NUL byte",
           out->agent = ((struct rv_str){"a\0b", 3}));
    BREAKS("only the request of a compensation is made again", out->stale = true);
    BREAKS("a live attempt has a complete-by and a lease", out->complete_by = 0);
    BREAKS("a live attempt has a complete-by and a lease", out->lease_until = 0);
    BREAKS("a lease never ends after complete-by", out->lease_until = out->complete_by + 1);
    BREAKS("an attempt has an end time if and only if it has ended", out->attempt_ended_at = NOW);
    BREAKS("an attempt has an end time if and only if it has ended", done->attempt_ended_at = 0);
    BREAKS("a live attempt belongs to a step in processing", out->state = RV_STEP_PENDING);
    BREAKS("a call in processing has a live attempt", out->attempt_state = RV_ATTEMPT_FAILED,
           out->attempt_ended_at = NOW);
    BREAKS("a processed call has an effect", done->effect = RV_EFFECT_UNKNOWN);
    BREAKS("the fence of a step is not greater than the fence of its task", out->fence = 10);
    BREAKS("an attempt is revoked only by an undo", out->attempt_state = RV_ATTEMPT_REVOKED);
}

static int64_t wake_at(const struct rows *rows)
{
    const struct rv_step *steps[] = {&rows->out, &rows->done};
    return rv_view_wake_at(&rows->task, steps, rows->given, NOW);
}

/* RULES 4: every open step has a next instant, or waits for a named event. A task that is parked or
 * has ended waits for its operator. */
static void a_task_is_looked_at_when_its_next_instant_comes(void **state)
{
    static const struct {
        const char *name;
        enum rv_task_state task;
        enum rv_step_state out;
        int64_t deadline, ready_at;
        int64_t wake_at;
    } cases[] = {
        {"lease", RV_TASK_PROCESSING, RV_STEP_PROCESSING, 0, 0, NOW + 5000},
        {"deadline", RV_TASK_PROCESSING, RV_STEP_PROCESSING, NOW + 4000, 0, NOW + 4000},
        {"not ready", RV_TASK_PROCESSING, RV_STEP_PENDING, 0, NOW + 1000, NOW + 1000},
        {"ready: alert if no agent", RV_TASK_PROCESSING, RV_STEP_PENDING, 0, NOW, NOW + 5000},
        {"parked", RV_TASK_ERROR, RV_STEP_PROCESSING, 0, 0, 0},
        {"ended", RV_TASK_PROCESSED, RV_STEP_PROCESSING, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("# %s\n", cases[i].name);
        struct rows rows = rows_good();
        rows.task.state = cases[i].task;
        rows.out.state = cases[i].out;
        rows.out.deadline = cases[i].deadline;
        rows.out.ready_at = cases[i].ready_at;
        assert_int_equal(wake_at(&rows), cases[i].wake_at);
    }
}

/* Between two steps of an undo no step is open. A long undo continues in pieces and is due at once,
 * unless the row of the step that is undone next says that it waits: an attempt that ended without
 * a reply may be at work until then. */
static void an_undo_is_due_at_once_or_when_nothing_can_be_at_work(void **state)
{
    enum { THEN = NOW + 700 };
    static const struct {
        const char *name;
        int64_t quiet_at;
        uint32_t undo_head;
        int64_t head_wake_at;
        int64_t suspended_at;
        int64_t wake_at;
    } cases[] = {
        {"no attempt without a reply", 0, 1, 0, 0, NOW},
        {"nothing can be at work", NOW, 1, 0, 0, NOW},
        {"the next step waits", THEN, 1, THEN, 0, THEN},
        {"suspended", THEN, 1, THEN, NOW, 0},
        {"the next step may need no wait", THEN, 1, 0, 0, NOW},
        {"the next step has waited before", THEN, 1, NOW + 600, 0, NOW},
        {"no next step", THEN, 0, NOW + 600, 0, NOW},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("# %s\n", cases[i].name);
        struct rows rows = rows_good();
        rows.task.state = RV_TASK_COMPENSATING;
        rows.task.direction = RV_UNDO;
        rows.task.open_count = 0;
        rows.task.quiet_at = cases[i].quiet_at;
        rows.task.undo_head = cases[i].undo_head;
        rows.task.suspended_at = cases[i].suspended_at;
        rows.done.wake_at = cases[i].head_wake_at;
        assert_int_equal(wake_at(&rows), cases[i].wake_at);
    }
}

/* A late reply told more than its request says: it asks anew before it is handed out. */
static void what_was_told_too_little_is_not_handed_out(void **state)
{
    (void)state;
    struct rows rows = rows_good();
    rows.task.state = RV_TASK_COMPENSATING;
    rows.task.direction = RV_UNDO;
    rows.out.state = RV_STEP_PENDING;
    rows.out.direction = RV_UNDO;
    rows.out.attempt_state = RV_ATTEMPT_FAILED;
    rows.out.wake_at = rows.out.ready_at = 0;
    assert_true(rv_step_ready(&rows.task, &rows.out, NOW));
    assert_int_equal(wake_at(&rows), 0);
    rows.out.stale = true;
    assert_false(rv_step_ready(&rows.task, &rows.out, NOW));
    assert_int_equal(wake_at(&rows), NOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_rows_break_nothing),
        cmocka_unit_test(a_compensation_that_is_over_was_begun_before_later_attempts),
        cmocka_unit_test(a_task_that_breaks_a_rule_is_told),
        cmocka_unit_test(an_open_step_that_breaks_a_rule_is_told),
        cmocka_unit_test(a_step_that_breaks_a_rule_is_told),
        cmocka_unit_test(a_task_is_looked_at_when_its_next_instant_comes),
        cmocka_unit_test(an_undo_is_due_at_once_or_when_nothing_can_be_at_work),
        cmocka_unit_test(what_was_told_too_little_is_not_handed_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
