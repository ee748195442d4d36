/* Long texts that stand apart from their rows (decision 035): what is written of them, what is not,
 * and what becomes of a row whose text is gone. */
#include "sqlite_subject.h"

#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_priv.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20, LONG_BYTES = 5000, FEW_PAGES = 12 };

static struct rv_str long_text(struct subject *s, size_t bytes, char end)
{
    char *at = rv_arena_bytes(&s->arena, bytes);
    memset(at, 'x', bytes);
    at[bytes - 1] = end;
    return (struct rv_str){at, bytes};
}

/* A task and its first step, with a long input each. */
static void heavy_bear(struct subject *s, int64_t id, size_t bytes)
{
    struct rv_change *change = birth_of(s, id);
    struct rv_task task = *change->task;
    struct rv_step step = *change->steps[0];
    const struct rv_step *steps[] = {&step};
    task.input = long_text(s, bytes, 't');
    step.input = long_text(s, bytes, 's');
    change->task = &task;
    change->steps = steps;
    subject_commit_all(s, change, 1);
}

/* Pages of the log that a change of both rows takes, which leaves their inputs. */
static int pages_of_change(struct subject *s, int64_t id, bool known)
{
    const struct rv_task *task_before = load(s, id);
    const struct rv_step *step_before = load_step(s, id, 1);
    struct rv_task task = *task_before;
    struct rv_step step = *step_before;
    const struct rv_step *steps[] = {&step};
    struct rv_change change = {.task = &task,
                               .revision_before = task.revision,
                               .task_before = known ? task_before : NULL,
                               .steps = steps,
                               .steps_new = (const bool[]){false},
                               .steps_before = known ? &step_before : NULL,
                               .steps_count = 1};
    int before = ((struct rv_sqlite *)s->store)->frames;
    task.revision++;
    task.started_at = 1790000000000 + task.revision * 1000; /* the row has another length */
    task.correlation = long_text(s, (size_t)task.revision, 'c');
    step.failure_count++;
    step.poll = long_text(s, (size_t)task.revision, 'p');
    subject_commit_all(s, &change, 1);
    return ((struct rv_sqlite *)s->store)->frames - before;
}

static void an_unchanged_text_is_not_written_again(void **state)
{
    struct subject *s = *state;
    heavy_bear(s, TASK_BASE, MIB);
    for (int i = 0; i < 3; i++)
        assert_in_range(pages_of_change(s, TASK_BASE, true), 1, FEW_PAGES);
    assert_true(pages_of_change(s, TASK_BASE, false) > 2 * MIB / RV_SQLITE_PAGE_BYTES);
    assert_int_equal(load(s, TASK_BASE)->input.len, MIB);
    assert_int_equal(load_step(s, TASK_BASE, 1)->input.len, MIB);
}

static void texts_that_become_short_leave_the_table(void **state)
{
    struct subject *s = *state;
    for (int known = 0; known < 2; known++) {
        heavy_bear(s, TASK_BASE + known, LONG_BYTES);
        const struct rv_task *task_before = load(s, TASK_BASE + known);
        const struct rv_step *step_before = load_step(s, TASK_BASE + known, 1);
        struct rv_task task = *task_before;
        struct rv_step step = *step_before;
        const struct rv_step *steps[] = {&step};
        struct rv_change change = {.task = &task,
                                   .revision_before = 1,
                                   .task_before = known ? task_before : NULL,
                                   .steps = steps,
                                   .steps_new = (const bool[]){false},
                                   .steps_before = known ? &step_before : NULL,
                                   .steps_count = 1};
        task.revision = 2;
        task.input = RV_STR("{}");
        step.input = RV_STR_NONE;
        subject_commit_all(s, &change, 1);
    }
    subject_close(s);
    assert_sql(s, "SELECT count(*) FROM payload", "0");
}

/* Rows of a store of version 22 hold their texts; the next change moves them. */
static void texts_of_an_older_store_move_with_their_next_change(void **state)
{
    static const char *const older[] = {
        "UPDATE task SET input = (SELECT text FROM payload WHERE payload.task = task.id AND "
        "step = 0)",
        "UPDATE step SET input = (SELECT text FROM payload WHERE payload.task = step.task AND "
        "step = number)",
        "DROP TABLE payload", "UPDATE schema_version SET version = 22"};
    struct subject *s = *state;
    char ignored[64];
    heavy_bear(s, TASK_BASE, MIB);
    heavy_bear(s, TASK_BASE + 1, LONG_BYTES);
    subject_close(s);
    for (size_t i = 0; i < sizeof older / sizeof older[0]; i++)
        sql(s, older[i], ignored);
    subject_open(s);
    assert_int_equal(load(s, TASK_BASE)->input.len, MIB);
    pages_of_change(s, TASK_BASE, true);
    assert_false(load(s, TASK_BASE)->unreadable || load_step(s, TASK_BASE, 1)->unreadable);
    assert_in_range(pages_of_change(s, TASK_BASE, true), 1, FEW_PAGES);
    assert_true(rv_str_eq(load(s, TASK_BASE)->input, long_text(s, MIB, 't')));
    assert_true(rv_str_eq(load_step(s, TASK_BASE, 1)->input, long_text(s, MIB, 's')));
    assert_int_equal(load(s, TASK_BASE + 1)->input.len, LONG_BYTES);
    subject_close(s);
    assert_sql(s,
               "SELECT group_concat(task || ' ' || step || ' ' || name || ' ' || length(text)) "
               "FROM payload",
               "1000000 0 input 1048576,1000000 1 input 1048576");
}

/* ---- rows before that are wrong ---- */

static void assert_task(struct subject *s, enum rv_task_state state, struct rv_str input)
{
    assert_int_equal(load(s, TASK_BASE)->state, state);
    assert_true(rv_str_eq(load(s, TASK_BASE)->input, input));
    assert_false(load(s, TASK_BASE)->unreadable);
}

static void wrong_write(struct subject *s, enum rv_task_state before_state,
                        struct rv_str before_input, enum rv_task_state to, struct rv_str input)
{
    struct rv_task task = *load(s, TASK_BASE);
    struct rv_task before = task;
    struct rv_change change = {
        .task = &task, .revision_before = task.revision, .task_before = &before};
    before.state = before_state;
    before.input = before_input;
    task.revision++;
    task.state = to;
    task.input = input;
    subject_commit_all(s, &change, 1);
}

/* It may leave a text that is stored in place of the new one, as an unchanged one: nothing else. */
static void a_wrong_row_before_does_no_other_harm(void **state)
{
    struct subject *s = *state;
    struct rv_str one = long_text(s, LONG_BYTES, '1'), other = long_text(s, LONG_BYTES, '2');
    heavy_bear(s, TASK_BASE, LONG_BYTES);
    struct rv_str stored = load(s, TASK_BASE)->input;
    wrong_write(s, RV_TASK_ERROR, one, RV_TASK_ERROR, RV_STR("{}"));
    assert_task(s, RV_TASK_ERROR, RV_STR("{}"));
    wrong_write(s, RV_TASK_PENDING, one, RV_TASK_PROCESSING, one); /* nothing stands apart */
    assert_task(s, RV_TASK_PROCESSING, one);
    wrong_write(s, RV_TASK_PROCESSING, RV_STR("{}"), RV_TASK_ERROR, stored);
    assert_task(s, RV_TASK_ERROR, stored);
    wrong_write(s, RV_TASK_ERROR, RV_STR_NONE, RV_TASK_ERROR, RV_STR("[]")); /* a row is left */
    assert_task(s, RV_TASK_ERROR, RV_STR("[]"));
    wrong_write(s, RV_TASK_ERROR, RV_STR("[]"), RV_TASK_PROCESSING, other); /* and written over */
    assert_task(s, RV_TASK_PROCESSING, other);
    wrong_write(s, RV_TASK_ERROR, one, RV_TASK_PROCESSING, one);
    assert_task(s, RV_TASK_PROCESSING, other);
}

/* ---- damage ---- */

struct finds {
    struct rv_task_id task;
    const char *what;
    size_t count;
};

static void find(void *self, struct rv_task_id task, const char *what)
{
    struct finds *finds = self;
    if (strstr(what, finds->what) == NULL)
        print_message("# found: %s\n", what);
    assert_non_null(strstr(what, finds->what));
    finds->task = task;
    finds->count++;
}

/* Of the closed store. */
static size_t found(struct subject *s, const char *what, struct rv_task_id *ret_task)
{
    struct finds finds = {.what = what};
    const struct rv_store_sqlite_finder finder = {find, &finds};
    s->factory->open(s);
    assert_int_equal(rv_store_sqlite_check(s->store, &finder), RV_OK);
    s->store->ops->close(s->store);
    s->store = NULL;
    if (ret_task != NULL)
        *ret_task = finds.task;
    return finds.count;
}

static void a_row_whose_text_is_gone_is_unreadable(void **state)
{
    struct subject *s = *state;
    struct rv_task_id ids[] = {{TASK_BASE}}, task;
    const struct rv_task *rows[1];
    char ignored[64];
    heavy_bear(s, TASK_BASE, LONG_BYTES);
    heavy_bear(s, TASK_BASE + 1, LONG_BYTES);
    heavy_bear(s, TASK_BASE + 2, LONG_BYTES);
    subject_close(s);
    assert_int_equal(found(s, "nothing", NULL), 0);
    sql(s, "DELETE FROM payload WHERE task = 1000000 AND step = 0", ignored);
    assert_int_equal(found(s, "lacks a text", &task), 1);
    assert_int_equal(task.value, TASK_BASE);
    sql(s, "DELETE FROM payload WHERE task = 1000001 AND step = 1", ignored);
    assert_int_equal(found(s, "lacks a text", &task), 2);
    assert_int_equal(task.value, TASK_BASE + 1);
    subject_open(s);
    assert_true(load(s, TASK_BASE)->unreadable);
    assert_null(load(s, TASK_BASE)->input.at);
    assert_false(load_step(s, TASK_BASE, 1)->unreadable);
    assert_true(load_step(s, TASK_BASE + 1, 1)->unreadable);
    assert_false(load(s, TASK_BASE + 1)->unreadable);
    assert_false(load(s, TASK_BASE + 2)->unreadable);
    /* A view that leaves payloads out does not look for them. */
    for (enum rv_columns c = RV_COLUMNS_PLAIN; c < RV_COLUMNS_ALL; c++) {
        assert_int_equal(s->ops->load_tasks(s->store, &s->arena, c, ids, 1, rows), RV_OK);
        assert_false(rows[0]->unreadable);
    }
}

static void texts_of_no_row_are_found(void **state)
{
    static const char *const spares[] = {
        "INSERT INTO payload(task, step, name, text) VALUES(1000000, 0, 'output', 'x')",
        "INSERT INTO payload(task, step, name, text) VALUES(1000000, 1, 'output', 'x')",
        "INSERT INTO payload(task, step, name, text) VALUES(1000000, 2, 'input', 'x')",
        "INSERT INTO payload(task, step, name, text) VALUES(1000000, 0, 'tags', 'x')",
        "INSERT INTO payload(task, step, name, text) VALUES(17, 0, 'input', 'x')"};
    struct subject *s = *state;
    char ignored[64];
    heavy_bear(s, TASK_BASE, LONG_BYTES);
    subject_close(s);
    for (size_t i = 0; i < sizeof spares / sizeof spares[0]; i++) {
        sql(s, spares[i], ignored);
        assert_int_equal(found(s, "belongs to no text", NULL), 1);
        sql(s, "DELETE FROM payload WHERE text = 'x'", ignored);
    }
    assert_int_equal(found(s, "nothing", NULL), 0);
}

/* Its error is written, whatever it was; everything else can be mended by hand. */
static void an_unreadable_task_keeps_its_texts(void **state)
{
    struct subject *s = *state;
    char ignored[64];
    heavy_bear(s, TASK_BASE, LONG_BYTES);
    struct rv_task task = *load(s, TASK_BASE);
    struct rv_task before = task;
    struct rv_change change = {.task = &task, .revision_before = 1, .task_before = &before};
    task.revision = 2;
    task.error = long_text(s, LONG_BYTES, 'e');
    subject_commit_all(s, &change, 1);
    subject_close(s);
    sql(s, "UPDATE task SET priority = 4711", ignored);
    subject_open(s);
    before = task = *load(s, TASK_BASE);
    assert_true(task.unreadable);
    change.revision_before = task.revision++;
    task.error = RV_STR("{}");
    task.state = RV_TASK_ERROR;
    subject_commit_all(s, &change, 1);
    subject_close(s);
    sql(s, "UPDATE task SET priority = 5", ignored);
    assert_int_equal(found(s, "nothing", NULL), 0);
    subject_open(s);
    assert_false(load(s, TASK_BASE)->unreadable);
    assert_true(rv_str_is(load(s, TASK_BASE)->error, "{}"));
    assert_true(rv_str_eq(load(s, TASK_BASE)->input, long_text(s, LONG_BYTES, 't')));
}

/* A task with errors that stand apart, of which the one of that name is lost, is escalated with
 * another `error`. */
static void error_lose(struct subject *s, int64_t id, const char *name)
{
    char text[128], ignored[64];
    heavy_bear(s, id, LONG_BYTES);
    struct rv_task task = *load(s, id), before = task;
    struct rv_change change = {.task = &task, .revision_before = 1, .task_before = &before};
    task.revision = 2;
    task.error = long_text(s, LONG_BYTES, 'e');
    task.undo_error = long_text(s, LONG_BYTES, 'u');
    subject_commit_all(s, &change, 1);
    subject_close(s);
    snprintf(text, sizeof text, "DELETE FROM payload WHERE task = %lld AND name = '%s'",
             (long long)id, name);
    sql(s, text, ignored);
    subject_open(s);
    before = task = *load(s, id);
    assert_true(task.unreadable);
    change.revision_before = task.revision++;
    task.state = RV_TASK_ERROR;
    if (strcmp(name, "undo_error") == 0)
        task.error = RV_STR("{}");
    subject_commit_all(s, &change, 1);
}

/* Otherwise the task would be whole, as if there had been no error. */
static void an_error_that_is_lost_stays_lost(void **state)
{
    struct subject *s = *state;
    struct rv_str undo_error = long_text(s, LONG_BYTES, 'u');
    error_lose(s, TASK_BASE, "undo_error");
    assert_true(load(s, TASK_BASE)->unreadable);
    assert_true(rv_str_is(load(s, TASK_BASE)->error, "{}"));
    error_lose(s, TASK_BASE + 1, "error");
    assert_true(load(s, TASK_BASE + 1)->unreadable);
    assert_true(rv_str_eq(load(s, TASK_BASE + 1)->undo_error, undo_error));
    struct rv_task task = *load(s, TASK_BASE + 1);
    struct rv_change change = {.task = &task, .revision_before = task.revision};
    task.revision++;
    task.error = RV_STR("[]");
    task.undo_error = RV_STR_NONE; /* which is there, and not lost */
    subject_commit_all(s, &change, 1);
    assert_false(load(s, TASK_BASE + 1)->unreadable);
    assert_true(rv_str_is(load(s, TASK_BASE + 1)->error, "[]"));
    assert_null(load(s, TASK_BASE + 1)->undo_error.at);
    subject_close(s);
    assert_int_equal(found(s, "lacks a text", NULL), 1);
}

static void texts_go_with_their_task(void **state)
{
    struct subject *s = *state;
    heavy_bear(s, TASK_BASE, LONG_BYTES);
    heavy_bear(s, TASK_BASE + 1, LONG_BYTES);
    struct rv_task before = *load(s, TASK_BASE);
    struct rv_task task = before;
    struct rv_change change = {.task = &task, .revision_before = 1, .task_before = &before};
    task.revision = 2;
    task.state = RV_TASK_PROCESSED;
    task.ended_at = 1000;
    subject_commit_all(s, &change, 1);
    struct rv_sweep sweep = {.ended_by = 2000, .keys_by = 2000, .rows_max = 1000};
    struct rv_batch batch = {.sweep = &sweep, .number = ++s->number};
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    assert_int_equal(sweep.tasks_gone, 1);
    subject_close(s);
    assert_sql(s, "SELECT group_concat(task || ' ' || step) FROM payload", "1000001 0,1000001 1");
    assert_int_equal(found(s, "nothing", NULL), 0);
}

#define ON_A_STORE(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, sqlite_setup, sqlite_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_STORE(an_unchanged_text_is_not_written_again),
        ON_A_STORE(texts_that_become_short_leave_the_table),
        ON_A_STORE(texts_of_an_older_store_move_with_their_next_change),
        ON_A_STORE(a_wrong_row_before_does_no_other_harm),
        ON_A_STORE(a_row_whose_text_is_gone_is_unreadable),
        ON_A_STORE(texts_of_no_row_are_found),
        ON_A_STORE(an_unreadable_task_keeps_its_texts),
        ON_A_STORE(an_error_that_is_lost_stays_lost),
        ON_A_STORE(texts_go_with_their_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
