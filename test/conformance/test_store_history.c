/* The history of operators' commands, held against every store. */
#include "subject.h"

#define TASK_BASE INT64_C(1000000)
enum { PAGE = 10 };

/* Lines `first` to `last` of a task's history, as a change of its row to that revision. */
static struct rv_change commanded(struct subject *s, int64_t task, int64_t revision, uint32_t first,
                                  uint32_t last)
{
    struct rv_prng prng;
    rv_prng_init(&prng, (uint64_t)task + first);
    struct rv_change change = move_of(s, task, revision, RV_TASK_PROCESSING);
    struct rv_history_row *rows = RV_NEW_ARRAY(&s->arena, struct rv_history_row, last - first + 1);
    for (uint32_t n = first; n <= last; n++)
        rows[n - first] = random_command(s, &prng, task, n);
    change.history = rows;
    change.history_count = last - first + 1;
    return change;
}

static size_t listed(struct subject *s, uint32_t before, struct rv_history_row rows[PAGE])
{
    size_t count = 0;
    assert_int_equal(s->ops->list_history(s->store, &s->arena, (struct rv_task_id){TASK_BASE},
                                          before, PAGE, rows, &count),
                     RV_OK);
    return count;
}

static void a_history_comes_in_pages_the_newest_first_and_stays(void **state)
{
    struct subject *s = *state;
    struct rv_buf wanted, got;
    struct rv_history_row rows[PAGE];
    bear(s, TASK_BASE);
    bear(s, TASK_BASE + 1);
    assert_int_equal(listed(s, 0, rows), 0);
    struct rv_change changes[] = {commanded(s, TASK_BASE, 2, 1, 25),
                                  commanded(s, TASK_BASE + 1, 2, 1, 1)};
    subject_commit_all(s, changes, 2);
    assert_int_equal(listed(s, 6, rows), 5);
    assert_int_equal(rows[0].number, 5);
    assert_int_equal(rows[4].number, 1);
    assert_int_equal(listed(s, 0, rows), PAGE);
    assert_int_equal(rows[0].number, 25);
    rv_buf_init(&wanted, 1 << 20);
    rv_buf_init(&got, 1 << 20);
    for (uint32_t i = 25; i > 0; i--)
        row_dump(&wanted, &rv_row_history, &changes[0].history[i - 1]);
    subject_restart(s);
    dump_history(&got, s, (struct rv_task_id){TASK_BASE});
    assert_dumps_equal(&got, &wanted);
    rv_buf_done(&wanted);
    rv_buf_done(&got);
}

/* What does not pass leaves no line; a number is given once. */
static void a_line_is_written_with_its_change_or_not_at_all(void **state)
{
    struct subject *s = *state;
    struct rv_history_row rows[PAGE];
    bear(s, TASK_BASE);
    struct rv_change late = commanded(s, TASK_BASE, 9, 1, 1);
    assert_int_equal(subject_commit(s, &late, 1), RV_OK);
    assert_int_equal(late.outcome, RV_ERR_CONFLICT);
    assert_int_equal(listed(s, 0, rows), 0);
    struct rv_change first = commanded(s, TASK_BASE, 2, 1, 2);
    subject_commit_all(s, &first, 1);
    struct rv_change again = commanded(s, TASK_BASE, 3, 2, 3);
    assert_int_equal(subject_commit(s, &again, 1), RV_ERR_INVALID);
    assert_int_equal(load(s, TASK_BASE)->revision, 2);
    assert_int_equal(listed(s, 0, rows), 2);
}

int main(void)
{
    static const struct suite_case cases[] = {
        SUITE_CASE(a_history_comes_in_pages_the_newest_first_and_stays),
        SUITE_CASE(a_line_is_written_with_its_change_or_not_at_all),
    };
    return suite_run("store_history", cases, sizeof cases / sizeof cases[0]);
}
