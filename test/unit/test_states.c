/* Every pair of states and commands, from the tables (core/tbl): whatever meets whatever, the plan
 * keeps every invariant of the rows and moves only along the tables' edges. */
#include "core/decide.h"
#include "json/json.h"
#include "workflow/definition.h"
#include "yaml/yaml.h"

#include "../lib/workflow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { NOW = 1000000, TOKEN = 77 };

/* What a real submission and a real failure after it leave: the rows that the pairs start from. */
struct ground {
    struct rv_arena arena;
    const struct rv_definition *definition;
    struct rv_task task;
    struct rv_step forward;
    struct rv_step undo;
    size_t met;
    bool task_edges[RV_TASK_STATE_COUNT][RV_TASK_STATE_COUNT];
    bool step_edges[RV_STEP_STATE_COUNT][RV_STEP_STATE_COUNT];
};

static struct rv_plan plan;

static enum rv_verdict decide(struct ground *g, const struct rv_task *task,
                              const struct rv_step *const *steps, size_t count,
                              struct rv_command *command)
{
    struct rv_view view = {.task = task,
                           .steps = steps,
                           .steps_count = count,
                           .attempt_sought = true,
                           .late_of = 1,
                           .definition = g->definition};
    command->seed = 5;
    command->now = command->now ? command->now : NOW;
    command->arrived_at = command->arrived_at ? command->arrived_at : command->now;
    return rv_decide(&view, command, &g->arena, &plan);
}

static const struct rv_step *planned(uint32_t number)
{
    for (size_t i = 0; i < plan.steps_count; i++)
        if (plan.steps[i].row->number == number)
            return plan.steps[i].row;
    return NULL;
}

static int ground_open(void **state)
{
    static struct ground g;
    struct rv_json document;
    struct rv_yaml_fault where;
    struct rv_definition_fault fault;
    rv_arena_init(&g.arena, 0);
    struct rv_str order = rv_str_of(workflow_file("order"));
    if (rv_yaml_parse(&g.arena, order, order.len + 1, &document, &where) != RV_OK ||
        rv_definition_load(&g.arena, &document, &g.definition, &fault) != RV_OK)
        return -1;
    struct rv_command submit = {.kind = RV_COMMAND_SUBMIT};
    submit.u.submit.task = (struct rv_task_id){1 << 22};
    submit.u.submit.workflow = 1;
    submit.u.submit.input = RV_STR("{\"sku\":\"A\"}");
    if (decide(&g, NULL, NULL, 0, &submit) != RV_DECIDED)
        return -1;
    g.task = plan.task;
    g.forward = *plan.steps[0].row;
    /* The same step, done, and the undo that follows from a cancel. */
    struct rv_step done = g.forward;
    struct rv_task task = g.task;
    done.state = RV_STEP_ERROR;
    done.effect = RV_EFFECT_UNKNOWN;
    done.attempt = 1;
    done.attempt_state = RV_ATTEMPT_EXPIRED;
    done.attempt_ended_at = NOW - 5;
    task.state = RV_TASK_ERROR;
    const struct rv_step *steps[] = {&done};
    struct rv_command cancel = {.kind = RV_COMMAND_CANCEL};
    if (decide(&g, &task, steps, 1, &cancel) != RV_DECIDED)
        return -1;
    const struct rv_step *undo = planned(2);
    if (undo == NULL)
        return -1;
    g.undo = *undo;
    *state = &g;
    return 0;
}

static int ground_close(void **state)
{
    rv_arena_done(&((struct ground *)*state)->arena);
    return 0;
}

/* Rows in the given states; false when no such rows can be. */
static bool rows_make(const struct ground *g, enum rv_task_state task_state,
                      enum rv_step_state step_state, enum rv_attempt_state attempt_state, bool undo,
                      struct rv_task *task, struct rv_step *step, struct rv_step *under)
{
    *task = g->task;
    *step = undo ? g->undo : g->forward;
    *under = g->forward;
    task->state = task_state;
    task->direction = undo || task_state == RV_TASK_COMPENSATING ||
                              task_state == RV_TASK_COMPENSATED || task_state == RV_TASK_CANCELLED
                          ? RV_UNDO
                          : RV_FORWARD;
    task->last_number = 2;
    task->fence = 9;
    task->ended_at = rv_task_state_open(task_state) ? 0 : NOW - 1;
    step->state = step_state;
    step->attempt_state = attempt_state;
    step->attempt = attempt_state == RV_ATTEMPT_NONE ? 0 : 1;
    step->attempt_ended_at =
        attempt_state == RV_ATTEMPT_NONE || rv_attempt_state_live(attempt_state) ? 0 : NOW - 5;
    step->token = TOKEN;
    step->fence = 9;
    step->complete_by = NOW + 10000;
    step->lease_ms = 10000;
    step->lease_until = NOW + 10000;
    step->wake_at = rv_step_state_open(step_state) ? NOW + 10000 : 0;
    step->ready_at = NOW;
    step->effect = step_state == RV_STEP_PROCESSED ? RV_EFFECT_DONE : RV_EFFECT_NONE;
    bool stands = rv_step_state_open(step_state) ||
                  (task_state == RV_TASK_ERROR && step_state == RV_STEP_ERROR);
    task->open_count = stands && rv_task_state_open(task_state) ? 1 : 0;
    memset(task->open, 0, sizeof task->open);
    task->open[0] = task->open_count ? step->number : 0;
    under->state = undo ? RV_STEP_CANCELLED : under->state;
    under->effect = RV_EFFECT_UNKNOWN;
    under->chained = true;
    under->wake_at = 0;
    const struct rv_step *steps[] = {step, under};
    bool closed_attempt = rv_attempt_state_live(attempt_state) && !stands;
    bool unlikely = step_state == RV_STEP_PROCESSED && attempt_state != RV_ATTEMPT_DONE;
    bool outlived = rv_step_state_open(step_state) && !rv_task_state_open(task_state);
    return !closed_attempt && !unlikely && !outlived &&
           (stands || !rv_step_state_open(step_state)) &&
           rv_view_broken(task, steps, undo ? 2 : 1) == NULL;
}

static void check(struct ground *g, const struct rv_task *task, const struct rv_step *step,
                  const struct rv_step *under, size_t count, struct rv_command command)
{
    const struct rv_step *steps[] = {step, under};
    enum rv_verdict verdict = decide(g, task, steps, count, &command);
    if (verdict != RV_DECIDED && verdict != RV_NEED_STEP)
        fail_msg("%s / %s / %s, command %d: verdict %d", rv_task_state_text(task->state),
                 rv_step_state_text(step->state), rv_attempt_state_text(step->attempt_state),
                 (int)command.kind, (int)verdict);
    g->met++;
    if (verdict != RV_DECIDED || !plan.changed) {
        return;
    }
    assert_int_equal(plan.task.revision, task->revision + 1);
    if (plan.task.state != task->state) {
        assert_true(rv_task_may_move(task->state, plan.task.state));
        g->task_edges[task->state][plan.task.state] = true;
    }
    const struct rv_step *after[RV_PLAN_STEPS_MAX + 2];
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (planned(steps[i]->number) == NULL)
            after[n++] = steps[i];
    for (size_t i = 0; i < plan.steps_count; i++) {
        after[n++] = plan.steps[i].row;
        if (plan.steps[i].row->number == step->number && plan.steps[i].row->state != step->state) {
            assert_true(rv_step_may_move(step->state, plan.steps[i].row->state) ||
                        step->state == RV_STEP_PENDING);
            g->step_edges[step->state][plan.steps[i].row->state] = true;
        }
    }
    const char *broken = rv_view_broken(&plan.task, after, n);
    if (broken != NULL)
        fail_msg("%s / %s / %s, command %d: %s", rv_task_state_text(task->state),
                 rv_step_state_text(step->state), rv_attempt_state_text(step->attempt_state),
                 (int)command.kind, broken);
}

static void all_commands(struct ground *g, const struct rv_task *task, const struct rv_step *step,
                         const struct rv_step *under, size_t count)
{
    static const int64_t instants[] = {NOW, NOW + 10000, NOW + 10 * 60 * 1000};
    uint32_t number = step->number;
    for (size_t i = 0; i < 3; i++) {
        int64_t now = instants[i];
        for (int token = 0; token < 2; token++) {
            struct rv_command c = {.kind = RV_COMMAND_REPLY,
                                   .now = now,
                                   .step = number,
                                   .token = TOKEN + (uint64_t)token};
            c.u.reply = (struct rv_reply){.output = RV_STR("{\"ok\":true}")};
            check(g, task, step, under, count, c);
            for (int effect = RV_EFFECT_NONE; effect <= RV_EFFECT_UNKNOWN; effect++) {
                c.u.reply = (struct rv_reply){.error = RV_STR("{\"type\":\"x\",\"status\":500}"),
                                              .transient = effect == RV_EFFECT_NONE,
                                              .effect = (enum rv_effect)effect};
                check(g, task, step, under, count, c);
                c.u.reply.transient = !c.u.reply.transient;
                check(g, task, step, under, count, c);
                c.u.reply.circuit_open = true;
                check(g, task, step, under, count, c);
            }
            c.kind = RV_COMMAND_RENEW;
            check(g, task, step, under, count, c);
            c.kind = RV_COMMAND_END;
            for (int effect = RV_EFFECT_NONE; effect <= RV_EFFECT_UNKNOWN; effect++) {
                c.u.end.effect = (enum rv_effect)effect;
                c.u.end.how = RV_ATTEMPT_LOST;
                check(g, task, step, under, count, c);
                c.u.end.how = RV_ATTEMPT_UNDELIVERED;
                check(g, task, step, under, count, c);
            }
        }
        struct rv_command wake = {.kind = RV_COMMAND_WAKE, .now = now};
        check(g, task, step, under, count, wake);
        wake.u.wake.excused = true;
        wake.u.wake.spread_ms = 1000;
        check(g, task, step, under, count, wake);
    }
    for (int kind = RV_COMMAND_RESUBMIT; kind <= RV_COMMAND_ESCALATE; kind++) {
        struct rv_command c = {.kind = (enum rv_command_kind)kind};
        if (kind == RV_COMMAND_SETTLE) {
            c.step = number;
            for (int said = 0; said < 6; said++) {
                c.u.operate.finding = (enum rv_finding)(said % 3);
                c.u.operate.output = said < 3 ? RV_STR_NONE : RV_STR("{\"given\":true}");
                check(g, task, step, under, count, c);
            }
        }
        check(g, task, step, under, count, c);
        c.u.operate.by_hand = true;
        check(g, task, step, under, count, c);
    }
    for (int word = 0; word < 3; word++) {
        struct rv_command c = {.kind = RV_COMMAND_RESUBMIT};
        c.u.operate.input = RV_STR("{\"other\":true}");
        c.u.operate.assume_not_done = word == 1;
        c.u.operate.undo_first = word == 2;
        check(g, task, step, under, count, c);
    }
    if (rv_step_ready(task, step, NOW) && task->state != RV_TASK_ERROR) {
        struct rv_command assign = {.kind = RV_COMMAND_ASSIGN, .step = number};
        assign.u.assign.instance = assign.u.assign.boot = assign.u.assign.poll = RV_STR("a");
        check(g, task, step, under, count, assign);
    }
}

static void every_state_meets_every_command(void **state)
{
    struct ground *g = *state;
    size_t grounds = 0;
    for (int t = 0; t < RV_TASK_STATE_COUNT; t++)
        for (int s = 0; s < RV_STEP_STATE_COUNT; s++)
            for (int a = 0; a < RV_ATTEMPT_STATE_COUNT; a++)
                for (int undo = 0; undo < 2; undo++) {
                    struct rv_task task;
                    struct rv_step step, under;
                    if (!rows_make(g, (enum rv_task_state)t, (enum rv_step_state)s,
                                   (enum rv_attempt_state)a, undo, &task, &step, &under))
                        continue;
                    for (int effect = 0; effect < RV_EFFECT_COUNT; effect++) {
                        bool kept = effect != RV_EFFECT_NONE && step.state == RV_STEP_ERROR;
                        if (effect != RV_EFFECT_NONE && !kept)
                            break;
                        grounds++;
                        if (kept)
                            step.effect = (enum rv_effect)effect;
                        all_commands(g, &task, &step, &under, undo ? 2 : 1);
                        if (!rv_task_state_open(task.state))
                            continue;
                        task.suspended_at = NOW - 1;
                        all_commands(g, &task, &step, &under, undo ? 2 : 1);
                        task.suspended_at = 0;
                    }
                }
    print_message("# %zu grounds, %zu pairs\n", grounds, g->met);
    assert_true(grounds > 40);
    assert_true(g->met > 2000);
}

static void ended_states_are_ends(void **state)
{
    (void)state;
    for (int to = 0; to < RV_TASK_STATE_COUNT; to++) {
        assert_false(rv_task_may_move(RV_TASK_COMPENSATED, (enum rv_task_state)to));
        assert_false(rv_task_may_move(RV_TASK_CANCELLED, (enum rv_task_state)to));
    }
    for (int to = 0; to < RV_STEP_STATE_COUNT; to++)
        assert_false(rv_step_may_move(RV_STEP_PROCESSED, (enum rv_step_state)to));
    for (int from = 0; from < RV_ATTEMPT_STATE_COUNT; from++)
        for (int to = 0; to < RV_ATTEMPT_STATE_COUNT; to++) {
            bool begins = from == RV_ATTEMPT_NONE && to == RV_ATTEMPT_OPEN;
            bool live = rv_attempt_state_live((enum rv_attempt_state)from);
            if (rv_attempt_may_move((enum rv_attempt_state)from, (enum rv_attempt_state)to))
                assert_true(begins || (live && to != RV_ATTEMPT_OPEN));
        }
    enum rv_task_state parsed;
    for (int s = 0; s < RV_TASK_STATE_COUNT; s++) {
        assert_true(
            rv_task_state_parse(rv_str_of(rv_task_state_text((enum rv_task_state)s)), &parsed));
        assert_int_equal(parsed, s);
    }
    assert_false(rv_task_state_parse(RV_STR("compleeted"), &parsed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_meets_every_command),
        cmocka_unit_test(ended_states_are_ends),
    };
    return cmocka_run_group_tests(tests, ground_open, ground_close);
}
