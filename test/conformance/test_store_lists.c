/* The lists of store.h: pages, filters, order, bounded work; held against every store. */
#include "subject.h"

#include "core/tags.h"

#include <stdio.h>
#include <string.h>

#define TASK_BASE INT64_C(1000000)
enum { PAGE = 100 };

static void steps_and_attempts_come_in_pages(void **state)
{
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, 3);
    struct rv_change change;
    struct rv_buf ignored;
    rv_buf_init(&ignored, 1 << 20);
    random_change(s, &prng, TASK_BASE, &change, &ignored);
    rv_buf_done(&ignored);
    subject_commit_all(s, &change, 1);
    struct rv_step steps[5];
    size_t count = 0;
    struct rv_task_id id = {TASK_BASE};
    assert_int_equal(
        s->ops->list_steps(s->store, &s->arena, RV_COLUMNS_ALL, id, 10, 5, steps, &count), RV_OK);
    assert_int_equal(count, 2);
    assert_int_equal(steps[0].number, 11);
    struct rv_attempt attempts[PAGE];
    assert_int_equal(s->ops->list_attempts(s->store, &s->arena, (struct rv_step_id){id, 0}, 1, 4, 3,
                                           attempts, &count),
                     RV_OK);
    assert_int_equal(count, 3);
    assert_int_equal(attempts[0].number, 5);
    assert_int_equal(attempts[1].step.number, 2);
    assert_int_equal(attempts[2].number, 2);
    assert_int_equal(s->ops->list_attempts(s->store, &s->arena, (struct rv_step_id){id, 2}, 0, 0,
                                           PAGE, attempts, &count),
                     RV_OK);
    assert_int_equal(count, 5);
    assert_int_equal(attempts[0].step.number, 2);
    assert_int_equal(s->ops->list_attempts(s->store, &s->arena, (struct rv_step_id){id, 2}, 2, 3,
                                           PAGE, attempts, &count),
                     RV_OK);
    assert_int_equal(count, 2);
    assert_int_equal(attempts[0].number, 4);
    assert_int_equal(s->ops->list_attempts(s->store, &s->arena, (struct rv_step_id){id, 2}, 3, 0,
                                           PAGE, attempts, &count),
                     RV_OK);
    assert_int_equal(count, 0);
}

static void assert_read(struct rv_str got, const char *wanted, bool read)
{
    if (read)
        assert_true(rv_str_is(got, wanted));
    else
        assert_null(got.at);
}

static void assert_task_read(const struct rv_task *task, enum rv_columns columns)
{
    assert_int_equal(task->id.value, TASK_BASE);
    assert_int_equal(task->revision, 1);
    assert_int_equal(task->by_hand, 7);
    assert_read(task->correlation, "c", true);
    assert_read(task->error, "{\"e\":1}", columns >= RV_COLUMNS_ERRORS);
    assert_read(task->input, "{\"i\":1}", columns == RV_COLUMNS_ALL);
    assert_read(task->context, "{\"c\":1}", columns == RV_COLUMNS_ALL);
    assert_read(task->output, "{\"o\":1}", columns == RV_COLUMNS_ALL);
    assert_false(task->unreadable);
}

static void assert_step_read(const struct rv_step *step, enum rv_columns columns)
{
    assert_int_equal(step->number, 1);
    assert_int_equal(step->undo_way, 2);
    assert_read(step->reference, "/do/0/pay", true);
    assert_read(step->poll, "p", true);
    assert_read(step->error, "{\"e\":2}", columns >= RV_COLUMNS_ERRORS);
    assert_read(step->attempt_error, "{\"e\":3}", columns >= RV_COLUMNS_ERRORS);
    assert_read(step->frames, "[1]", columns == RV_COLUMNS_ALL);
    assert_read(step->data, "{\"d\":2}", columns == RV_COLUMNS_ALL);
    assert_read(step->input, "{\"i\":2}", columns == RV_COLUMNS_ALL);
    assert_read(step->output, "{\"o\":2}", columns == RV_COLUMNS_ALL);
    assert_false(step->unreadable);
}

/* A task with a step and a late reply, and every payload that they can have. */
static void bear_with_payloads(struct subject *s)
{
    struct rv_task task = plain_task(TASK_BASE, 1);
    struct rv_step step = plain_step(1);
    const struct rv_step *row = &step;
    const bool steps_new[] = {true};
    struct rv_late_reply late = {.step = {{TASK_BASE}, 1},
                                 .attempt = 1,
                                 .output = RV_STR("{\"o\":3}"),
                                 .error = RV_STR("{\"e\":4}")};
    struct rv_change change = {.task = &task,
                               .steps = &row,
                               .steps_new = steps_new,
                               .steps_count = 1,
                               .late_replies = &late,
                               .late_replies_count = 1};
    task.by_hand = 7;
    task.correlation = RV_STR("c");
    task.error = RV_STR("{\"e\":1}");
    task.input = RV_STR("{\"i\":1}");
    task.context = RV_STR("{\"c\":1}");
    task.output = RV_STR("{\"o\":1}");
    step.undo_way = 2;
    step.reference = RV_STR("/do/0/pay");
    step.poll = RV_STR("p");
    step.error = RV_STR("{\"e\":2}");
    step.attempt_error = RV_STR("{\"e\":3}");
    step.frames = RV_STR("[1]");
    step.data = RV_STR("{\"d\":2}");
    step.input = RV_STR("{\"i\":2}");
    step.output = RV_STR("{\"o\":2}");
    subject_commit_all(s, &change, 1);
}

/* Whichever call reads a row, one at a time or several. */
static void what_a_call_leaves_out_is_absent(void **state)
{
    static const enum rv_columns all[] = {RV_COLUMNS_PLAIN, RV_COLUMNS_ERRORS, RV_COLUMNS_ALL};
    const struct rv_task_filter filter = {.by_state = false};
    const struct rv_task_id ids[] = {{TASK_BASE}, {TASK_BASE}};
    const struct rv_step_id steps_ids[] = {{{TASK_BASE}, 1}, {{TASK_BASE}, 1}};
    struct subject *s = *state;
    bear_with_payloads(s);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const struct rv_task *tasks[2];
        const struct rv_step *steps[2];
        struct rv_task task;
        struct rv_step step;
        struct rv_late_reply late;
        struct rv_task_id next;
        size_t count = 0;
        for (size_t n = 1; n <= 2; n++) {
            assert_int_equal(s->ops->load_tasks(s->store, &s->arena, all[i], ids, n, tasks), RV_OK);
            assert_int_equal(s->ops->load_steps(s->store, &s->arena, all[i], steps_ids, n, steps),
                             RV_OK);
            assert_task_read(tasks[n - 1], all[i]);
            assert_step_read(steps[n - 1], all[i]);
        }
        assert_int_equal(
            s->ops->list_tasks(s->store, &s->arena, all[i], &filter, 1, &task, &count, &next),
            RV_OK);
        assert_task_read(&task, all[i]);
        assert_int_equal(
            s->ops->list_steps(s->store, &s->arena, all[i], ids[0], 0, 1, &step, &count), RV_OK);
        assert_step_read(&step, all[i]);
        for (uint32_t of = 0; of <= 1; of++) {
            const struct rv_step_id which = {ids[0], of};
            assert_int_equal(s->ops->list_late_replies(s->store, &s->arena, all[i], which, of, 0, 1,
                                                       &late, &count),
                             RV_OK);
            assert_int_equal(count, 1);
            assert_int_equal(late.attempt, 1);
            assert_read(late.error, "{\"e\":4}", all[i] >= RV_COLUMNS_ERRORS);
            assert_read(late.output, "{\"o\":3}", all[i] == RV_COLUMNS_ALL);
        }
    }
}

/* An ended attempt is found by its token, in its own step alone. */
static void an_attempt_is_found_by_its_token(void **state)
{
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, 5);
    struct rv_change change;
    struct rv_buf ignored;
    rv_buf_init(&ignored, 1 << 20);
    random_change(s, &prng, TASK_BASE, &change, &ignored);
    rv_buf_done(&ignored);
    struct rv_attempt *attempts = RV_NEW_ARRAY(&s->arena, struct rv_attempt, change.attempts_count);
    for (size_t i = 0; i < change.attempts_count; i++) {
        attempts[i] = change.attempts[i];
        attempts[i].token = UINT64_MAX - i; /* more than half of all tokens look negative */
    }
    change.attempts = attempts;
    subject_commit_all(s, &change, 1);
    struct rv_attempt row;
    bool found = false;
    for (size_t i = 0; i < change.attempts_count; i++) {
        assert_int_equal(s->ops->find_attempt(s->store, &s->arena, attempts[i].step,
                                              attempts[i].token, &row, &found),
                         RV_OK);
        assert_true(found);
        assert_int_equal(row.number, attempts[i].number);
        assert_int_equal(row.step.number, attempts[i].step.number);
        assert_true(rv_str_eq(row.error, attempts[i].error));
    }
    struct rv_step_id other = {attempts[0].step.task, attempts[0].step.number + 1};
    struct rv_step_id nowhere = {{TASK_BASE + 1}, attempts[0].step.number};
    assert_int_equal(s->ops->find_attempt(s->store, &s->arena, attempts[0].step, 7, &row, &found),
                     RV_OK);
    assert_false(found);
    assert_int_equal(
        s->ops->find_attempt(s->store, &s->arena, other, attempts[0].token, &row, &found), RV_OK);
    assert_false(found);
    assert_int_equal(
        s->ops->find_attempt(s->store, &s->arena, nowhere, attempts[0].token, &row, &found), RV_OK);
    assert_false(found);
}

/* Of a task, or of one attempt: in the order in which they came. */
static void late_replies_are_listed_by_attempt(void **state)
{
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, 4);
    bear(s, TASK_BASE);
    static const uint32_t of[][2] = {{1, 1}, {2, 1}, {1, 2}, {1, 1}, {2, 1}, {1, 1}};
    enum { LATE = sizeof of / sizeof of[0] };
    struct rv_late_reply late[LATE], found[LATE];
    for (size_t i = 0; i < LATE; i++) {
        late[i] = random_late_reply(s, &prng, TASK_BASE);
        late[i].step.number = of[i][0];
        late[i].attempt = of[i][1];
        late[i].arrived_at = (int64_t)i + 1;
    }
    struct rv_task task = *load(s, TASK_BASE);
    struct rv_change change = {.task = &task,
                               .revision_before = task.revision,
                               .late_replies = late,
                               .late_replies_count = LATE};
    task.revision++;
    subject_commit_all(s, &change, 1);
    struct rv_step_id step = {{TASK_BASE}, 1};
    size_t count = 0;
    assert_int_equal(s->ops->list_late_replies(s->store, &s->arena, RV_COLUMNS_ALL, step, 1, 0,
                                               LATE, found, &count),
                     RV_OK);
    assert_int_equal(count, 3);
    assert_int_equal(found[0].arrived_at, 1);
    assert_int_equal(found[1].arrived_at, 4);
    assert_int_equal(found[2].arrived_at, 6);
    assert_int_equal(s->ops->list_late_replies(s->store, &s->arena, RV_COLUMNS_ALL, step, 1, 0, 2,
                                               found, &count),
                     RV_OK);
    assert_int_equal(count, 2);
    assert_int_equal(s->ops->list_late_replies(s->store, &s->arena, RV_COLUMNS_ALL, step, 3, 0,
                                               LATE, found, &count),
                     RV_OK);
    assert_int_equal(count, 0);
    assert_int_equal(s->ops->list_late_replies(s->store, &s->arena, RV_COLUMNS_ALL, step, 1, 1,
                                               LATE, found, &count),
                     RV_OK);
    assert_int_equal(count, 2);
    assert_int_equal(found[0].arrived_at, 4);
    step.number = 0;
    assert_int_equal(s->ops->list_late_replies(s->store, &s->arena, RV_COLUMNS_ALL, step, 0, 0,
                                               LATE, found, &count),
                     RV_OK);
    assert_int_equal(count, LATE);
    assert_int_equal(s->ops->list_late_replies(s->store, &s->arena, RV_COLUMNS_ALL, step, 0, 4,
                                               LATE, found, &count),
                     RV_OK);
    assert_int_equal(count, LATE - 4);
    assert_int_equal(found[0].arrived_at, 5);
}

/* Reads a list to its end; returns how many calls it took. */
static size_t list_all(struct subject *s, struct rv_task_filter filter, int64_t *ids,
                       size_t *ret_count)
{
    static struct rv_task rows[PAGE];
    size_t calls = 0;
    size_t all = 0;
    bool more = true;
    while (more) {
        struct rv_task_id next = {-1};
        size_t count = 0;
        assert_int_equal(s->ops->list_tasks(s->store, &s->arena, RV_COLUMNS_ALL, &filter, PAGE,
                                            rows, &count, &next),
                         RV_OK);
        for (size_t i = 0; i < count; i++)
            ids[all++] = rows[i].id.value;
        assert_true(count < PAGE || next.value == 0);
        filter.before = count == PAGE ? rows[count - 1].id : next;
        more = filter.before.value != 0;
        calls++;
    }
    *ret_count = all;
    return calls;
}

enum { TASKS = 5000 };

/* Many processed tasks, and a few in every other state among the oldest of them. */
static void fill_with_tasks(struct subject *s, struct rv_task *tasks)
{
    publish_shop(s);
    struct rv_change *changes = RV_NEW_ARRAY(&s->arena, struct rv_change, TASKS);
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = plain_task(TASK_BASE + i * 3, 1);
        tasks[i].state = i < 70 ? (enum rv_task_state)(i % 7) : RV_TASK_PROCESSED;
        tasks[i].suspended_at = i % 2 == 0 && rv_task_state_open(tasks[i].state) ? 9 : 0;
        tasks[i].workflow = i % 50 == 0 ? 4 : 1 + i % 3;
        changes[i] = (struct rv_change){.task = &tasks[i]};
    }
    subject_commit_all(s, changes, TASKS);
}

static bool named(int64_t workflow, const char *filter)
{
    if (filter == NULL)
        return true;
    if (strcmp(filter, "shop/order") == 0)
        return workflow >= 1 && workflow <= 3;
    return strcmp(filter, "shop/order:1.0.1") == 0 && workflow == 2;
}

static void tasks_are_listed_by_state_and_workflow(void **state)
{
    struct subject *s = *state;
    static struct rv_task tasks[TASKS];
    static int64_t ids[TASKS];
    fill_with_tasks(s, tasks);
    size_t count = 0, suspended = 0;
    for (int i = 0; i < TASKS; i++)
        suspended += tasks[i].suspended_at != 0;
    list_all(s, (struct rv_task_filter){.suspended = true}, ids, &count);
    assert_int_equal(count, suspended);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(tasks[(ids[i] - TASK_BASE) / 3].suspended_at, 9);
    static const char *const filters[] = {NULL, "shop/order", "shop/order:1.0.1", "shop/none",
                                          "shop/orde"};
    for (size_t f = 0; f < 5; f++) {
        for (int by = -1; by < RV_TASK_STATE_COUNT; by++) {
            struct rv_task_filter filter = {.by_state = by >= 0,
                                            .state = (enum rv_task_state)(by >= 0 ? by : 0),
                                            .workflow = rv_str_of(filters[f])};
            list_all(s, filter, ids, &count);
            size_t at = 0;
            for (int i = TASKS - 1; i >= 0; i--) {
                if ((by >= 0 && tasks[i].state != (enum rv_task_state)by) ||
                    !named(tasks[i].workflow, filters[f]))
                    continue;
                assert_true(at < count);
                assert_int_equal(ids[at++], tasks[i].id.value);
            }
            assert_int_equal(at, count);
        }
    }
}

/* More than the looks of a page can be shared out among without a rest. */
static void a_workflow_with_many_versions_is_listed(void **state)
{
    enum { VERSIONS = 130, EACH = 25, LIMIT = 20 };
    struct subject *s = *state;
    struct rv_change *changes = RV_NEW_ARRAY(&s->arena, struct rv_change, EACH);
    struct rv_task *tasks = RV_NEW_ARRAY(&s->arena, struct rv_task, EACH);
    for (int v = 0; v < VERSIONS; v++) {
        struct rv_workflow_row row = {.id = 10 + v,
                                      .space = RV_STR("shop"),
                                      .name = RV_STR("many"),
                                      .version = rv_arena_printf(&s->arena, "1.0.%d", v),
                                      .hash = RV_STR("f"),
                                      .source = RV_STR("{}")};
        publish(s, &row, 1, RV_OK);
        for (int i = 0; i < EACH; i++) {
            tasks[i] = plain_task(TASK_BASE + i * VERSIONS + v, 1);
            tasks[i].workflow = row.id;
            changes[i] = (struct rv_change){.task = &tasks[i]};
        }
        subject_commit_all(s, changes, EACH);
    }
    struct rv_task found[LIMIT];
    struct rv_task_filter filter = {.workflow = RV_STR("shop/many")};
    size_t count = 0;
    struct rv_task_id next = {-1};
    assert_int_equal(s->ops->list_tasks(s->store, &s->arena, RV_COLUMNS_ALL, &filter, LIMIT, found,
                                        &count, &next),
                     RV_OK);
    assert_int_equal(count, LIMIT);
    for (int i = 0; i < LIMIT; i++)
        assert_int_equal(found[i].id.value, TASK_BASE + EACH * VERSIONS - 1 - i);
}

static void a_page_looks_at_a_bounded_number_of_rows(void **state)
{
    struct subject *s = *state;
    static struct rv_task tasks[TASKS];
    static int64_t ids[TASKS];
    fill_with_tasks(s, tasks);
    size_t count = 0;
    struct rv_task_filter filter = {
        .by_state = true, .state = RV_TASK_ERROR, .workflow = RV_STR("shop/order")};
    assert_true(list_all(s, filter, ids, &count) > 1); /* it went on from *ret_next */
    assert_int_equal(count, 10);
}

/* Two hundred tasks: every third stands at a step of "one", every fourth failed, every fifth has a
 * tag. */
enum { SORTS = 200 };

static void fill_with_sorts(struct subject *s)
{
    static const bool both_new[2] = {true, true};
    const struct rv_str timeout = RV_STR("{\"type\":\"https://x/errors/timeout\"}");
    const struct rv_str other = RV_STR("{\"type\":\"mytimeout\",\"detail\":\"timeout\"}");
    struct rv_change *changes = RV_NEW_ARRAY(&s->arena, struct rv_change, SORTS);
    publish_shop(s);
    for (int i = 0; i < SORTS; i++) {
        changes[i] = *birth_of(s, TASK_BASE + i);
        struct rv_task *task = RV_NEW(&s->arena, struct rv_task);
        struct rv_step *step = RV_NEW(&s->arena, struct rv_step);
        struct rv_step *second = RV_NEW(&s->arena, struct rv_step);
        const struct rv_step **steps = RV_NEW_ARRAY(&s->arena, const struct rv_step *, 2);
        *task = *changes[i].task;
        *step = *changes[i].steps[0];
        task->workflow = 1 + i % 4;
        task->state = i % 4 == 0 ? RV_TASK_ERROR : RV_TASK_PROCESSING;
        if (i % 4 == 0)
            task->error = i % 8 == 0 ? timeout : other;
        if (i % 4 == 0 && i % 16 >= 8) { /* its undo has stopped: that error counts */
            task->undo_error = task->error;
            task->error = i % 8 == 0 ? other : timeout;
        }
        if (i % 5 == 0)
            task->tags = rv_arena_printf(&s->arena, "{\"city\":\"K\\\"%d\",\"n\":\"%d\"}", i % 2,
                                         i % 10);
        if (i % 4 == 0) { /* the step that left it in error stands still */
            step->state = RV_STEP_ERROR;
            step->ended_at = 77;
        }
        step->agent = i % 3 == 0 ? RV_STR("one") : RV_STR("two");
        *second = *step;
        second->number = 2;
        second->agent = i % 5 == 0 ? step->agent : RV_STR_NONE;
        task->open_count = 2;
        task->open[0] = 1;
        task->open[1] = 2;
        task->last_number = 2;
        steps[0] = step;
        steps[1] = second;
        changes[i].task = task;
        changes[i].steps = steps;
        changes[i].steps_new = both_new;
        changes[i].steps_count = 2;
    }
    subject_commit_all(s, changes, SORTS);
}

static bool sort_fits(int i, const struct rv_task_filter *filter)
{
    bool state = !filter->by_state || (filter->state == RV_TASK_ERROR) == (i % 4 == 0);
    bool agent = filter->agent.at == NULL || i % 3 == 0;
    bool error = filter->error_type.at == NULL || i % 8 == 0;
    bool tag = filter->tag.at == NULL || (i % 5 == 0 && i % 2 == 1);
    bool workflow = filter->workflow.at == NULL || i % 4 < 3;
    bool from = TASK_BASE + i >= filter->from.value;
    return state && agent && error && tag && workflow && from;
}

/* Each filter alone, and all of them together, find what fits and nothing else. */
static void filters_find_what_fits(void **state)
{
    struct subject *s = *state;
    int64_t ids[SORTS];
    fill_with_sorts(s);
    for (int set = 0; set < 64; set++) {
        struct rv_task_filter filter = {.by_state = false};
        if (set & 1) {
            filter.by_state = true;
            filter.state = RV_TASK_ERROR;
        }
        if (set & 2)
            filter.agent = RV_STR("one");
        if (set & 4)
            filter.error_type = RV_STR("timeout");
        if (set & 8) {
            filter.tag_name = RV_STR("city");
            filter.tag_value = RV_STR("K\"1");
            filter.tag = rv_tag_needle(&s->arena, filter.tag_name, filter.tag_value);
        }
        if (set & 16)
            filter.workflow = RV_STR("shop/order");
        if (set & 32)
            filter.from.value = TASK_BASE + 77;
        size_t count = 0;
        size_t at = 0;
        list_all(s, filter, ids, &count);
        for (int i = SORTS - 1; i >= 0; i--)
            if (sort_fits(i, &filter)) {
                assert_true(at < count);
                assert_int_equal(ids[at++], TASK_BASE + i);
            }
        assert_int_equal(at, count);
    }
    subject_restart(s);
    assert_true(rv_str_is(load(s, TASK_BASE + 5)->tags, "{\"city\":\"K\\\"1\",\"n\":\"5\"}"));
    assert_null(load(s, TASK_BASE + 1)->tags.at);
}

static void assert_agents_of(struct subject *s, const char *one, const char *two)
{
    static const char *const names[] = {"one", "two"};
    const char *const wanted[] = {one, two};
    for (int i = 0; i < 2; i++) {
        int64_t ids[2];
        size_t count = 0;
        struct rv_task_filter filter = {.agent = rv_str_of(names[i])};
        list_all(s, filter, ids, &count);
        assert_int_equal(count, wanted[i] != NULL);
        filter.workflow = RV_STR("shop/none");
        list_all(s, filter, ids, &count);
        assert_int_equal(count, 0);
    }
}

/* A task goes from agent to agent, is tried again, and parked: it is found where it stands. */
static void a_task_is_found_by_the_agent_where_it_stands(void **state)
{
    struct subject *s = *state;
    static const bool new_step[2] = {false, true};
    struct rv_change change = *birth_of(s, TASK_BASE);
    struct rv_task task = *change.task;
    struct rv_step first = *change.steps[0];
    struct rv_step second = first;
    const struct rv_step *steps[2] = {&first, &second};
    change.task = &task;
    change.steps = steps;
    task.workflow = 1;
    task.open_count = 1;
    task.open[0] = 1;
    first.agent = RV_STR("one");
    second.agent = RV_STR("two");
    second.number = 2;
    publish_shop(s);
    subject_commit_all(s, &change, 1);
    assert_agents_of(s, "here", NULL);
    /* It is handed out: the step goes on. */
    change.revision_before = task.revision++;
    change.steps_new = new_step;
    first.state = RV_STEP_PROCESSING;
    subject_commit_all(s, &change, 1);
    assert_agents_of(s, "here", NULL);
    /* It has ended, the next has begun. */
    change.revision_before = task.revision++;
    change.steps_count = 2;
    first.state = RV_STEP_PROCESSED;
    first.ended_at = 7;
    task.last_number = task.open[0] = 2;
    subject_commit_all(s, &change, 1);
    assert_agents_of(s, NULL, "here");
    subject_restart(s);
    /* The first is reopened beside it, by another agent's name. */
    static const bool both_old[2] = {false, false};
    change.revision_before = task.revision++;
    change.steps_new = both_old;
    first.state = RV_STEP_PENDING;
    first.ended_at = 0;
    first.agent = RV_STR("two");
    second.agent = RV_STR("one");
    task.open_count = 2;
    task.open[1] = 1;
    subject_commit_all(s, &change, 1);
    assert_agents_of(s, "here", "here");
    /* Parked at what has failed, then over. */
    change.revision_before = task.revision++;
    first.state = RV_STEP_ERROR;
    first.ended_at = second.ended_at = 9;
    second.state = RV_STEP_CANCELLED;
    task.state = RV_TASK_ERROR;
    task.open_count = 1;
    task.open[0] = 1;
    subject_commit_all(s, &change, 1);
    assert_agents_of(s, NULL, "here");
    change.revision_before = task.revision++;
    task.state = RV_TASK_CANCELLED;
    task.open_count = 0;
    task.ended_at = 9;
    first.state = RV_STEP_CANCELLED;
    subject_commit_all(s, &change, 1);
    assert_agents_of(s, NULL, NULL);
}

static void open_tasks_are_scanned_in_order(void **state)
{
    struct subject *s = *state;
    struct rv_change changes[70];
    for (int i = 0; i < 70; i++)
        changes[i] = move_of(s, TASK_BASE + i, 1, (enum rv_task_state)(i % 7));
    subject_commit_all(s, changes, 70);
    /* The second time some of them have moved: opened again, or closed. */
    for (int round = 0; round < 2; round++) {
        int64_t wanted = TASK_BASE;
        struct rv_scanned rows[9];
        struct rv_scan scan = {.rows_max = 9, .rows = rows};
        size_t open = 0, count;
        do {
            count = subject_scan(s, &scan);
            for (size_t i = 0; i < count; i++) {
                while (!rv_task_state_open(load(s, wanted)->state))
                    wanted++;
                assert_int_equal(rows[i].id.value, wanted);
                assert_int_equal(rows[i].revision, load(s, wanted)->revision);
                assert_int_equal(rows[i].state, load(s, wanted++)->state);
                scan.after = rows[i].id;
            }
            open += count;
        } while (count == 9);
        assert_int_equal(open, 40);
        struct rv_change swap[2] = {move_of(s, TASK_BASE, 2, RV_TASK_PROCESSED),
                                    move_of(s, TASK_BASE + 4, 2, RV_TASK_COMPENSATING)};
        assert_int_equal(subject_commit(s, swap, 2), RV_OK);
    }
    subject_restart(s);
    assert_int_equal(s->enlistment.open_tasks, 40);
}

/* What the walk meets is loaded as well, after what was asked for, and as far as there is room. */
static void what_the_walk_meets_is_loaded_with_it(void **state)
{
    enum { ALL = 3 * RV_LOAD_PIECE };
    struct subject *s = *state;
    struct rv_change changes[ALL];
    struct rv_scanned rows[ALL];
    struct rv_task_id asked = {TASK_BASE + 1};
    for (int i = 0; i < ALL; i++)
        changes[i] = move_of(s, TASK_BASE + i, 1, i == 0 ? RV_TASK_PROCESSED : RV_TASK_PROCESSING);
    subject_commit_all(s, changes, ALL);
    for (int cut = 0; cut <= 1; cut++) {
        struct rv_scan scan = {.rows_max = ALL, .whole = true, .rows = rows};
        struct rv_wants load = {.arena = &s->arena,
                                .ids = &asked,
                                .count = 1,
                                .bytes_max = cut ? 1 : SIZE_MAX,
                                .scan = &scan};
        int64_t now;
        assert_int_equal(s->ops->begin(s->store, &load, &now), RV_OK);
        s->ops->rollback(s->store);
        assert_int_equal(scan.count, ALL - 1);
        assert_int_equal(load.cut, cut);
        assert_int_equal(load.tasks_count, cut ? RV_LOAD_PIECE : ALL);
        assert_int_equal(load.tasks[0].how, RV_LOADED_ASKED);
        for (size_t i = 1; i < load.tasks_count; i++) {
            assert_int_equal(load.tasks[i].how, RV_LOADED_MET);
            assert_int_equal(load.tasks[i].id.value, rows[i - 1].id.value);
            assert_int_equal(load.tasks[i].task->revision, rows[i - 1].revision);
            assert_int_equal(load.tasks[i].steps_count, load.tasks[i].task->open_count);
        }
    }
}

/* The keys of a kind under a prefix and after a key, each with its value. */
static const char *records_of(struct subject *s, const char *kind, const char *prefix,
                              const char *after, size_t limit)
{
    static char said[100];
    struct rv_record rows[10];
    size_t count = 0;
    assert_int_equal(s->ops->list_records(s->store, &s->arena, rv_str_of(kind), rv_str_of(prefix),
                                          rv_str_of(after), limit, rows, &count),
                     RV_OK);
    said[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        assert_true(rv_str_is(rows[i].kind, kind));
        assert_int_equal(rows[i].at, 7);
        size_t len = strlen(said);
        snprintf(said + len, sizeof said - len, "%.*s=%.*s ", RV_STR_FMT(rows[i].key),
                 RV_STR_FMT(rows[i].value));
    }
    return said;
}

static void records_are_put_removed_and_listed(void **state)
{
    struct subject *s = *state;
    static const char *const rows[][3] = {{"b", "x", "1"},   {"a", "k/2", "2"}, {"a", "k", "3"},
                                          {"a", "k/1", "4"}, {"a", "l", "5"},   {"a", "k/10", "6"},
                                          {"aa", "k", "7"}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct rv_record_change changes[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        changes[i] = (struct rv_record_change){.row = {.at = 7,
                                                       .kind = rv_str_of(rows[i][0]),
                                                       .key = rv_str_of(rows[i][1]),
                                                       .value = rv_str_of(rows[i][2])}};
    subject_record(s, changes, ROWS);
    subject_restart(s);
    assert_string_equal(records_of(s, "a", NULL, NULL, 10), "k=3 k/1=4 k/10=6 k/2=2 l=5 ");
    assert_string_equal(records_of(s, "a", NULL, "k/1", 2), "k/10=6 k/2=2 ");
    assert_string_equal(records_of(s, "a", "k/", NULL, 10), "k/1=4 k/10=6 k/2=2 ");
    assert_string_equal(records_of(s, "a", "k/", "k/1", 10), "k/10=6 k/2=2 ");
    assert_string_equal(records_of(s, "a", "k/", "k", 10), "k/1=4 k/10=6 k/2=2 ");
    assert_string_equal(records_of(s, "a", "k", NULL, 1), "k=3 ");
    assert_string_equal(records_of(s, "a", "m", NULL, 10), "");
    assert_string_equal(records_of(s, "a", "k/", "l", 10), "");
    assert_string_equal(records_of(s, "c", NULL, NULL, 10), "");
    /* In one batch: over a row, away, away though it is not there, and there again. */
    static const char *const later[][2] = {{"k", "8"}, {"l", NULL}, {"m", NULL}, {"l", "9"}};
    for (size_t i = 0; i < 4; i++)
        changes[i] = (struct rv_record_change){.row = {.at = 7,
                                                       .kind = RV_STR("a"),
                                                       .key = rv_str_of(later[i][0]),
                                                       .value = rv_str_of(later[i][1])},
                                               .gone = later[i][1] == NULL,
                                               .outcome = RV_ERR_IO};
    subject_record(s, changes, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(changes[i].outcome, RV_OK);
    assert_string_equal(records_of(s, "a", NULL, NULL, 10), "k=8 k/1=4 k/10=6 k/2=2 l=9 ");
}

static void records_of_several_kinds_are_read_with_a_load(void **state)
{
    enum { ROWS = 2 * RV_PAGE_ROWS_MAX };
    struct subject *s = *state;
    struct rv_record_change changes[ROWS + 1];
    for (int i = 0; i <= ROWS; i++)
        changes[i] = (struct rv_record_change){.row = {.at = 7,
                                                       .kind = i < ROWS ? RV_STR("a") : RV_STR("b"),
                                                       .key = rv_arena_printf(&s->arena, "%03d", i),
                                                       .value = RV_STR("1")}};
    subject_record(s, changes, ROWS + 1);
    struct rv_record_list lists[] = {{.kind = RV_STR("b")},
                                     {.kind = RV_STR("a")},
                                     {.kind = RV_STR("c")},
                                     {.kind = RV_STR("a"), .after = RV_STR("002"), .most = 2}};
    struct rv_wants load = {.arena = &s->arena, .records = lists, .records_count = 4};
    for (int again = 0; again <= 1; again++) { /* over what was read before */
        int64_t now;
        assert_int_equal(s->ops->begin(s->store, &load, &now), RV_OK);
        s->ops->rollback(s->store);
        assert_int_equal(lists[0].count, 1);
        assert_int_equal(lists[1].count, ROWS);
        assert_int_equal(lists[2].count, 0);
        assert_int_equal(lists[3].count, 2);
        assert_true(rv_str_is(lists[3].rows[0].key, "003"));
        for (int i = 0; i < ROWS; i++)
            assert_true(rv_str_eq(lists[1].rows[i].key, changes[i].row.key));
    }
}

/* A supervisor that is none any more changes no record either; the others of its batch stand. */
static void records_have_the_guard_of_the_supervisor(void **state)
{
    struct subject *s = *state;
    int64_t epoch;
    int64_t until;
    assert_int_equal(s->ops->claim_role(s->store, RV_STR(RV_ROLE_SUPERVISOR), 1000, &epoch, &until),
                     RV_OK);
    struct rv_record row = {.at = 7, .kind = RV_STR("a"), .key = RV_STR("k"), .value = RV_STR("1")};
    struct rv_record_change changes[3] = {{.row = row}, {.row = row}, {.row = row}};
    changes[0].epoch = epoch;
    changes[1].epoch = epoch + 1;
    changes[1].row.value = RV_STR("2");
    changes[2].row.key = RV_STR("l");
    subject_record(s, changes, 3);
    assert_int_equal(changes[0].outcome, RV_OK);
    assert_int_equal(changes[1].outcome, RV_ERR_DEPOSED);
    assert_int_equal(changes[2].outcome, RV_OK);
    changes[1].gone = true;
    subject_record(s, &changes[1], 1);
    assert_int_equal(changes[1].outcome, RV_ERR_DEPOSED);
    assert_string_equal(records_of(s, "a", NULL, NULL, 10), "k=1 l=1 ");
}

int main(void)
{
    static const struct suite_case cases[] = {
        SUITE_CASE(steps_and_attempts_come_in_pages),
        SUITE_CASE(what_a_call_leaves_out_is_absent),
        SUITE_CASE(an_attempt_is_found_by_its_token),
        SUITE_CASE(late_replies_are_listed_by_attempt),
        SUITE_CASE(tasks_are_listed_by_state_and_workflow),
        SUITE_CASE(a_workflow_with_many_versions_is_listed),
        SUITE_CASE(a_page_looks_at_a_bounded_number_of_rows),
        SUITE_CASE(filters_find_what_fits),
        SUITE_CASE(a_task_is_found_by_the_agent_where_it_stands),
        SUITE_CASE(open_tasks_are_scanned_in_order),
        SUITE_CASE(what_the_walk_meets_is_loaded_with_it),
        SUITE_CASE(records_are_put_removed_and_listed),
        SUITE_CASE(records_of_several_kinds_are_read_with_a_load),
        SUITE_CASE(records_have_the_guard_of_the_supervisor),
    };
    return suite_run("store_lists", cases, sizeof cases / sizeof cases[0]);
}
