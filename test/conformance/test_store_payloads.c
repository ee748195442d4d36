/* Payloads and errors, short and long, held against every store: what a change leaves as it is
 * stays, what it changes is written, and without the rows before everything is written. */
#include "subject.h"

#include <string.h>

#define TASK INT64_C(1000000)

/* What a text can be; LONG and SAME_LENGTH differ in their last byte. */
enum form { ABSENT, EMPTY, SHORT, LONG, SAME_LENGTH, LONGER, FORMS };
enum { LONG_BYTES = 9000, LONGER_BYTES = 100000 };

static struct rv_str text_of(struct subject *s, enum form form)
{
    static const size_t bytes[FORMS] = {
        [SHORT] = 7, [LONG] = LONG_BYTES, [SAME_LENGTH] = LONG_BYTES, [LONGER] = LONGER_BYTES};
    if (form == ABSENT)
        return RV_STR_NONE;
    if (form == EMPTY)
        return RV_STR("");
    char *at = rv_arena_bytes(&s->arena, bytes[form]);
    memset(at, 'x', bytes[form]);
    at[bytes[form] - 1] = form == SAME_LENGTH ? 'z' : 'y';
    return (struct rv_str){at, bytes[form]};
}

/* Each column of the row that views leave out has another form. */
static void texts_set(struct subject *s, const struct rv_row_kind *kind, void *row, size_t form)
{
    for (size_t i = 0; i < kind->texts_count; i++) {
        struct rv_str *text = (void *)((char *)row + kind->texts[i].offset);
        if (kind->texts[i].least > RV_COLUMNS_PLAIN)
            *text = text_of(s, (enum form)((form + i) % FORMS));
    }
}

static void texts_leave_out(const struct rv_row_kind *kind, void *row, enum rv_columns columns)
{
    for (size_t i = 0; i < kind->texts_count; i++) {
        struct rv_str *text = (void *)((char *)row + kind->texts[i].offset);
        if (kind->texts[i].least > columns)
            *text = RV_STR_NONE;
    }
}

static void assert_row(const struct rv_row_kind *kind, const void *got, const void *wanted)
{
    struct rv_buf one, other;
    rv_buf_init(&one, 64 << 20);
    rv_buf_init(&other, 64 << 20);
    row_dump(&one, kind, got);
    row_dump(&other, kind, wanted);
    assert_dumps_equal(&one, &other);
    rv_buf_done(&one);
    rv_buf_done(&other);
}

/* A task and two steps, of which the second has ended. */
struct rows {
    struct rv_task task;
    struct rv_step steps[2];
};

static void rows_set(struct subject *s, struct rows *rows, size_t form)
{
    texts_set(s, &rv_row_task, &rows->task, form);
    texts_set(s, &rv_row_step, &rows->steps[0], form + 1);
    texts_set(s, &rv_row_step, &rows->steps[1], form + 2);
}

static void rows_read(struct subject *s, enum rv_columns columns, struct rows *ret_rows)
{
    struct rv_task_id id = {TASK};
    struct rv_step_id ids[] = {{id, 1}, {id, 2}};
    const struct rv_task *task;
    const struct rv_step *steps[2];
    assert_int_equal(s->ops->load_tasks(s->store, &s->arena, columns, &id, 1, &task), RV_OK);
    assert_int_equal(s->ops->load_steps(s->store, &s->arena, columns, ids, 2, steps), RV_OK);
    *ret_rows = (struct rows){*task, {*steps[0], *steps[1]}};
}

static void rows_expect(struct subject *s, const struct rows *wanted)
{
    struct rows got;
    struct rv_step listed[2];
    size_t count = 0;
    rows_read(s, RV_COLUMNS_ALL, &got);
    assert_row(&rv_row_task, &got.task, &wanted->task);
    assert_int_equal(s->ops->list_steps(s->store, &s->arena, RV_COLUMNS_ALL, wanted->task.id, 0, 2,
                                        listed, &count),
                     RV_OK);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_row(&rv_row_step, &got.steps[i], &wanted->steps[i]);
        assert_row(&rv_row_step, &listed[i], &wanted->steps[i]);
    }
}

/* NULL: an insert; `known`: the change brings the rows before. */
static void rows_write(struct subject *s, const struct rows *rows, const struct rows *before,
                       bool known)
{
    const struct rv_step *steps[] = {&rows->steps[0], &rows->steps[1]};
    const struct rv_step *stored[] = {NULL, NULL};
    const bool inserts[] = {before == NULL, before == NULL};
    for (size_t i = 0; i < 2 && before != NULL && known; i++)
        stored[i] = &before->steps[i];
    struct rv_change change = {.task = &rows->task,
                               .revision_before = before != NULL ? before->task.revision : 0,
                               .task_before = before != NULL && known ? &before->task : NULL,
                               .steps = steps,
                               .steps_new = inserts,
                               .steps_before = known ? stored : NULL,
                               .steps_count = 2};
    subject_commit_all(s, &change, 1);
}

static void rows_make(struct subject *s, struct rows *rows, size_t form)
{
    *rows = (struct rows){plain_task(TASK, 1), {plain_step(1), plain_step(2)}};
    rows->steps[1].ended_at = 5;
    rows_set(s, rows, form);
    rows_write(s, rows, NULL, false);
}

/* From each form to each, in each column, the task and a step as they are and in another state. */
static void texts_change(struct subject *s, bool known)
{
    struct rows rows, before;
    rows_make(s, &rows, 0);
    for (size_t i = 0; i < FORMS * FORMS; i++) {
        struct rv_arena_mark mark = rv_arena_mark(&s->arena);
        rows_read(s, RV_COLUMNS_ALL, &before);
        rows.task.revision++;
        rows.task.state = i % 2 == 0 ? RV_TASK_PROCESSING : RV_TASK_ERROR;
        rows.steps[0].failure_count++;
        rows_set(s, &rows, i % FORMS + (i % 2 == 0 ? 0 : i / FORMS));
        rows_write(s, &rows, &before, known);
        rows_expect(s, &rows);
        if (i % FORMS == 0) {
            subject_restart(s);
            rows_expect(s, &rows);
        }
        rv_arena_release(&s->arena, mark);
    }
}

static void texts_that_change_are_written(void **state)
{
    texts_change(*state, true);
}

static void without_the_rows_before_all_is_written(void **state)
{
    texts_change(*state, false);
}

/* The bytes are equal, at the same place or at another. */
static void texts_that_do_not_change_stay(void **state)
{
    struct subject *s = *state;
    struct rows rows, before;
    rows_make(s, &rows, LONG);
    for (int i = 0; i < 4; i++) {
        rows_read(s, RV_COLUMNS_ALL, &before);
        if (i % 2 == 0)
            rows = before;
        else
            rows_set(s, &rows, LONG);
        rows.task.revision++;
        rows.task.fence++;
        rows.steps[0].failure_count++;
        rows_write(s, &rows, &before, true);
        rows_expect(s, &rows);
    }
    subject_restart(s);
    rows_expect(s, &rows);
}

/* One change brings the row that the change before it has left. */
static void a_text_changes_twice_in_a_batch(void **state)
{
    struct subject *s = *state;
    struct rv_change *birth = birth_of(s, TASK);
    struct rv_task first = *birth->task, second, third;
    first.input = text_of(s, LONG);
    birth->task = &first;
    second = first;
    second.revision = 2;
    second.input = text_of(s, LONGER);
    third = second;
    third.revision = 3;
    third.output = text_of(s, SAME_LENGTH);
    struct rv_change changes[] = {*birth,
                                  {.task = &second, .revision_before = 1, .task_before = &first},
                                  {.task = &third, .revision_before = 2, .task_before = &second}};
    subject_commit_all(s, changes, 3);
    assert_row(&rv_row_task, load(s, TASK), &third);
}

/* Nothing of a change that does not pass is written, nor of a batch that is refused. */
static void what_does_not_pass_leaves_texts_alone(void **state)
{
    struct subject *s = *state;
    struct rows rows, before, other;
    rows_make(s, &rows, LONG);
    rows_read(s, RV_COLUMNS_ALL, &before);
    other = before;
    rows_set(s, &other, SHORT);
    other.task.revision = 3;
    struct rv_task stale = before.task;
    stale.revision = 2;
    struct rv_change late = {.task = &other.task, .revision_before = 2, .task_before = &stale};
    assert_int_equal(subject_commit(s, &late, 1), RV_OK);
    assert_int_equal(late.outcome, RV_ERR_CONFLICT);
    rows_expect(s, &rows);
    const struct rv_step *again[] = {&other.steps[0]};
    struct rv_change bad = {.task = &other.task,
                            .revision_before = 1,
                            .task_before = &before.task,
                            .steps = again,
                            .steps_new = (const bool[]){true}, /* it is there */
                            .steps_count = 1};
    other.task.revision = 2;
    assert_int_equal(subject_commit(s, &bad, 1), RV_ERR_INVALID);
    rows_expect(s, &rows);
}

static void views_have_the_texts_that_they_ask_for(void **state)
{
    struct subject *s = *state;
    for (size_t form = 0; form < FORMS; form++) {
        struct rows rows, got, before;
        if (form == 0)
            rows_make(s, &rows, form);
        rows_read(s, RV_COLUMNS_ALL, &before);
        rows = before;
        rows.task.revision++;
        rows_set(s, &rows, form);
        rows_write(s, &rows, &before, true);
        for (enum rv_columns c = RV_COLUMNS_PLAIN; c <= RV_COLUMNS_ALL; c++) {
            struct rows wanted = rows;
            texts_leave_out(&rv_row_task, &wanted.task, c);
            texts_leave_out(&rv_row_step, &wanted.steps[0], c);
            rows_read(s, c, &got);
            assert_row(&rv_row_task, &got.task, &wanted.task);
            assert_row(&rv_row_step, &got.steps[0], &wanted.steps[0]);
        }
    }
}

/* Errors are read where tasks are found by their types. */
static void a_long_error_is_found_by_its_type(void **state)
{
    struct subject *s = *state;
    struct rv_str end = text_of(s, LONG);
    for (int i = 0; i < 4; i++) {
        struct rv_change *birth = birth_of(s, TASK + i);
        struct rv_task *task = RV_NEW(&s->arena, struct rv_task);
        *task = *birth->task;
        struct rv_str error = rv_arena_printf(&s->arena,
                                              "{\"type\":\"https://x/%s\",\"detail\":\"%.*s\"}",
                                              i % 2 == 0 ? "gone" : "full", RV_STR_FMT(end));
        if (i < 2)
            task->error = error;
        else
            task->undo_error = error;
        if (i >= 2)
            task->error = RV_STR("{\"type\":\"other\"}");
        birth->task = task;
        subject_commit_all(s, birth, 1);
    }
    struct rv_task rows[4];
    struct rv_task_filter filter = {.error_type = RV_STR("x/gone")};
    struct rv_task_id next;
    size_t count = 0;
    assert_int_equal(
        s->ops->list_tasks(s->store, &s->arena, RV_COLUMNS_ERRORS, &filter, 4, rows, &count, &next),
        RV_OK);
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].id.value, TASK + 2);
    assert_int_equal(rows[1].id.value, TASK);
    assert_true(rows[1].error.len > LONG_BYTES);
}

int main(void)
{
    static const struct suite_case cases[] = {
        SUITE_CASE(texts_that_change_are_written),
        SUITE_CASE(without_the_rows_before_all_is_written),
        SUITE_CASE(texts_that_do_not_change_stay),
        SUITE_CASE(a_text_changes_twice_in_a_batch),
        SUITE_CASE(what_does_not_pass_leaves_texts_alone),
        SUITE_CASE(views_have_the_texts_that_they_ask_for),
        SUITE_CASE(a_long_error_is_found_by_its_type),
    };
    return suite_run("store payloads", cases, sizeof cases / sizeof cases[0]);
}
