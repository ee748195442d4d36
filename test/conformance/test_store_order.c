/* What a store is responsible for in the order, the limits and the routing of steps. The queue is
 * the scheduler's, in memory; after a restart it is made of the rows. So whatever the order depends
 * on must come back from the walk over the open tasks as it was written last. */
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASK_BASE INT64_C(1000000)
enum { TASKS = 60, PAGE = 7, WORTH_MS = 10000 };

/* A place in line: priority and age, as the scheduler reads them from a task and its step. */
struct place {
    int64_t key;
    int64_t task;
    char agent[16];
    char target[16];
};

static int by_key(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int64_t left = x->key != y->key ? x->key : x->task;
    int64_t right = x->key != y->key ? y->key : y->task;
    return (left > right) - (left < right);
}

static struct place place_of(const struct rv_task *task, const struct rv_step *step)
{
    struct place place = {.key = step->waits_since - task->priority * (int64_t)WORTH_MS,
                          .task = task->id.value};
    snprintf(place.agent, sizeof place.agent, "%.*s", RV_STR_FMT(step->agent));
    snprintf(place.target, sizeof place.target, "%.*s", RV_STR_FMT(step->target));
    return place;
}

/* Ages and priorities that disagree: the oldest tasks have the lowest priorities. */
static void row_fill(int i, struct rv_task *task, struct rv_step *step)
{
    static const char *const agents[] = {"inventory", "payment", "shipping"};
    *task = plain_task(TASK_BASE + i, 1);
    *step = plain_step(1);
    task->priority = (uint8_t)(i % 10);
    task->open_count = 1;
    task->open[0] = 1;
    step->agent = rv_str_of(agents[i % 3]);
    step->waits_since = 5000 + (i * 7919) % 40000;
    step->ready_at = step->waits_since;
    step->wake_at = step->waits_since + 60000;
}

static void commit_one(struct subject *s, const struct rv_task *task, const struct rv_step *step)
{
    const struct rv_step *steps[] = {step};
    const bool steps_new[] = {task->revision == 1};
    struct rv_change change = {.task = task,
                               .revision_before = task->revision - 1,
                               .steps = steps,
                               .steps_new = steps_new,
                               .steps_count = 1};
    subject_commit_all(s, &change, 1);
}

/* The line as a server finds it that has just started. */
static size_t line_walk(struct subject *s, struct place *places)
{
    struct rv_scanned rows[PAGE];
    struct rv_scan scan = {.rows_max = PAGE, .rows = rows};
    size_t all = 0, count;
    do {
        count = subject_scan(s, &scan);
        for (size_t i = 0; i < count; i++) {
            const struct rv_task *task = load(s, rows[i].id.value);
            assert_int_equal(task->revision, rows[i].revision);
            assert_int_equal(task->open_count, 1);
            const struct rv_step *step = load_step(s, task->id.value, task->open[0]);
            if (step->state == RV_STEP_PENDING)
                places[all++] = place_of(task, step);
            scan.after = task->id;
        }
    } while (count == PAGE);
    qsort(places, all, sizeof *places, by_key);
    return all;
}

static void assert_line(struct subject *s, const struct place *wanted, size_t count)
{
    struct place found[TASKS];
    assert_int_equal(line_walk(s, found), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(found[i].task, wanted[i].task);
        assert_int_equal(found[i].key, wanted[i].key);
        assert_string_equal(found[i].agent, wanted[i].agent);
        assert_string_equal(found[i].target, wanted[i].target);
    }
}

static void the_line_is_the_same_after_a_restart(void **state)
{
    struct subject *s = *state;
    struct place wanted[TASKS];
    for (int i = 0; i < TASKS; i++) {
        struct rv_task task;
        struct rv_step step;
        row_fill(i, &task, &step);
        commit_one(s, &task, &step);
        wanted[i] = place_of(&task, &step);
    }
    qsort(wanted, TASKS, sizeof *wanted, by_key);
    assert_line(s, wanted, TASKS);
    subject_restart(s);
    assert_line(s, wanted, TASKS);
}

/* A step that was handed out in vain keeps its age; one that failed waits from then on; its circuit
 * names its target. None of these changes the rest of the row. */
static void a_change_moves_its_own_step_alone(void **state)
{
    struct subject *s = *state;
    struct place wanted[TASKS];
    size_t count = 0;
    for (int i = 0; i < TASKS; i++) {
        struct rv_task task;
        struct rv_step step;
        row_fill(i, &task, &step);
        commit_one(s, &task, &step);
        task.revision++;
        step.state = RV_STEP_PROCESSING;
        step.attempt = 1;
        step.attempt_state = RV_ATTEMPT_OPEN;
        step.token = (uint64_t)i + 1;
        step.complete_by = step.lease_until = 90000;
        commit_one(s, &task, &step);
        if (i % 4 == 3)
            continue; /* it is at work */
        task.revision++;
        step.state = RV_STEP_PENDING;
        step.attempt_state = i % 4 == 0   ? RV_ATTEMPT_UNDELIVERED
                             : i % 4 == 1 ? RV_ATTEMPT_FAILED
                                          : RV_ATTEMPT_CIRCUIT_OPEN;
        step.attempt_ended_at = 60000;
        if (i % 4 == 1)
            step.waits_since = step.ready_at = 61000 + i;
        if (i % 4 == 2)
            step.target = RV_STR("bank-2");
        commit_one(s, &task, &step);
        wanted[count++] = place_of(&task, &step);
    }
    qsort(wanted, count, sizeof *wanted, by_key);
    assert_line(s, wanted, count);
    subject_restart(s);
    assert_line(s, wanted, count);
}

static void limit_put(struct subject *s, const char *agent, const char *value)
{
    struct rv_record_change change = {.row = {.at = 7,
                                              .kind = RV_STR("agent-limit"),
                                              .key = rv_str_of(agent),
                                              .value = rv_str_of(value)}};
    subject_record(s, &change, 1);
    assert_int_equal(change.outcome, RV_OK);
}

/* Each agent has one record, the newest; a pause survives a restart, and in one transaction the
 * last word counts. */
static void the_limits_of_agents_survive(void **state)
{
    struct subject *s = *state;
    limit_put(s, "payment", "{\"concurrent\":2}");
    limit_put(s, "inventory", "{\"rate\":5}");
    limit_put(s, "payment", "{\"concurrent\":2,\"paused\":true}");
    struct rv_record_change both[2] = {{.row = {.at = 7,
                                                .kind = RV_STR("agent-limit"),
                                                .key = RV_STR("inventory"),
                                                .value = RV_STR("{\"rate\":6}")}},
                                       {.row = {.at = 7,
                                                .kind = RV_STR("agent-limit"),
                                                .key = RV_STR("inventory"),
                                                .value = RV_STR("{\"rate\":7}")}}};
    subject_record(s, both, 2);
    for (int round = 0; round < 2; round++) {
        struct rv_record rows[4];
        size_t count = 0;
        assert_int_equal(s->ops->list_records(s->store, &s->arena, RV_STR("agent-limit"),
                                              RV_STR_NONE, RV_STR_NONE, 4, rows, &count),
                         RV_OK);
        assert_int_equal(count, 2);
        assert_true(rv_str_is(rows[0].key, "inventory"));
        assert_true(rv_str_is(rows[0].value, "{\"rate\":7}"));
        assert_true(rv_str_is(rows[1].key, "payment"));
        assert_true(rv_str_is(rows[1].value, "{\"concurrent\":2,\"paused\":true}"));
        subject_restart(s);
    }
}

/* Steps of a batch are loaded in one run, in whatever order they are asked for. */
static void steps_come_in_the_order_in_which_they_are_asked_for(void **state)
{
    enum { STEPS = 6 };
    struct subject *s = *state;
    struct rv_task task = plain_task(TASK_BASE, 1);
    struct rv_step rows[STEPS];
    const struct rv_step *steps[STEPS];
    bool steps_new[STEPS];
    struct rv_step_id ids[STEPS];
    const struct rv_step *found[STEPS];
    for (uint32_t i = 0; i < STEPS; i++) {
        rows[i] = plain_step(i + 1);
        rows[i].waits_since = 1000 + i;
        steps[i] = &rows[i];
        steps_new[i] = true;
        ids[i] = (struct rv_step_id){{TASK_BASE}, STEPS - i};
    }
    struct rv_change change = {
        .task = &task, .steps = steps, .steps_new = steps_new, .steps_count = STEPS};
    subject_commit_all(s, &change, 1);
    assert_int_equal(s->ops->load_steps(s->store, &s->arena, RV_COLUMNS_ALL, ids, STEPS, found),
                     RV_OK);
    for (uint32_t i = 0; i < STEPS; i++) {
        assert_int_equal(found[i]->number, STEPS - i);
        assert_int_equal(found[i]->waits_since, 1000 + STEPS - i - 1);
    }
}

int main(void)
{
    static const struct suite_case cases[] = {
        SUITE_CASE(the_line_is_the_same_after_a_restart),
        SUITE_CASE(a_change_moves_its_own_step_alone),
        SUITE_CASE(the_limits_of_agents_survive),
        SUITE_CASE(steps_come_in_the_order_in_which_they_are_asked_for),
    };
    return suite_run("store_order", cases, sizeof cases / sizeof cases[0]);
}
