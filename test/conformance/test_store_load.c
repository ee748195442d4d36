/* What a batch asks for together: tasks with their open steps, and keys. */
#include "subject.h"

#define TASK_BASE INT64_C(1000000)

/* A task that stands at the steps 2 and 3 of four; step 3 is missing, as in a damaged file. */
static void bear_at_two(struct subject *s, int64_t id)
{
    struct rv_change *birth = birth_of(s, id);
    struct rv_task task = *birth->task;
    struct rv_step steps[] = {plain_step(1), plain_step(2), plain_step(4)};
    const struct rv_step *rows[] = {&steps[0], &steps[1], &steps[2]};
    const bool inserts[] = {true, true, true};
    task.last_number = 4;
    task.open_count = 2;
    task.open[0] = 2;
    task.open[1] = 3;
    birth->task = &task;
    birth->steps = rows;
    birth->steps_new = inserts;
    birth->steps_count = 3;
    subject_commit_all(s, birth, 1);
}

static void tasks_come_with_their_open_steps(void **state)
{
    enum { BORN = 20 };
    struct subject *s = *state;
    struct rv_task_id ids[2 * BORN];
    for (int64_t i = 0; i < BORN; i++)
        bear_at_two(s, TASK_BASE + 2 * i);
    for (int64_t i = 0; i < 2 * BORN; i++)
        ids[i].value = TASK_BASE + 2 * BORN - 1 - i;
    struct rv_wants load = {
        .arena = &s->arena, .ids = ids, .count = 2 * BORN, .bytes_max = SIZE_MAX};
    assert_int_equal(s->ops->load(s->store, &load), RV_OK);
    assert_int_equal(load.tasks_count, 2 * BORN);
    for (size_t i = 0; i < load.tasks_count; i++) {
        const struct rv_loaded *loaded = &load.tasks[i];
        if (i % 2 == 0) {
            assert_null(loaded->task);
            assert_int_equal(loaded->steps_count, 0);
            continue;
        }
        assert_int_equal(loaded->task->id.value, ids[i].value);
        assert_int_equal(loaded->steps_count, 1);
        assert_int_equal(loaded->steps[0]->number, 2);
    }
}

static void a_load_ends_when_its_bytes_are_used(void **state)
{
    enum { BORN = 4 * RV_LOAD_PIECE };
    struct subject *s = *state;
    struct rv_task_id ids[BORN];
    for (size_t i = 0; i < BORN; i++) {
        ids[i].value = TASK_BASE + (int64_t)i;
        bear(s, ids[i].value);
    }
    struct rv_wants load = {.arena = &s->arena, .ids = ids, .count = BORN, .bytes_max = 0};
    assert_int_equal(s->ops->load(s->store, &load), RV_OK);
    assert_true(load.tasks_count >= 1 && load.tasks_count <= RV_LOAD_PIECE);
    assert_int_equal(load.tasks[0].task->id.value, TASK_BASE);
    load.bytes_max = 1;
    assert_int_equal(s->ops->load(s->store, &load), RV_OK);
    assert_true(load.tasks_count >= 1 && load.tasks_count <= RV_LOAD_PIECE);
    load.bytes_max = SIZE_MAX;
    assert_int_equal(s->ops->load(s->store, &load), RV_OK);
    assert_int_equal(load.tasks_count, BORN);
}

static void a_transaction_begins_with_a_load(void **state)
{
    struct subject *s = *state;
    struct rv_key_row row = {RV_STR("a"), RV_STR("h"), {TASK_BASE}};
    struct rv_change *birth = birth_of(s, TASK_BASE);
    birth->key = &row;
    subject_commit_all(s, birth, 1);
    struct rv_task_id id = {TASK_BASE};
    struct rv_str keys[] = {RV_STR("none"), RV_STR("a")};
    struct rv_wants load = {.arena = &s->arena,
                            .ids = &id,
                            .count = 1,
                            .bytes_max = SIZE_MAX,
                            .keys = keys,
                            .keys_count = 2};
    int64_t now = 0;
    assert_int_equal(s->ops->begin(s->store, &load, &now), RV_OK);
    assert_true(now > 0);
    assert_int_equal(load.tasks_count, 1);
    assert_int_equal(load.tasks[0].task->id.value, TASK_BASE);
    assert_int_equal(load.key_rows[0].task.value, 0);
    assert_int_equal(load.key_rows[1].task.value, TASK_BASE);
    s->ops->rollback(s->store);
}

static void a_load_tells_the_newest_number_of_a_history(void **state)
{
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, 1);
    struct rv_history_row rows[] = {random_command(s, &prng, TASK_BASE, 1),
                                    random_command(s, &prng, TASK_BASE, 2)};
    struct rv_task_id ids[] = {{TASK_BASE}, {TASK_BASE + 1}, {TASK_BASE + 2}};
    for (size_t i = 0; i < 2; i++)
        bear(s, ids[i].value);
    struct rv_change move = move_of(s, TASK_BASE, 2, RV_TASK_PROCESSING);
    move.history = rows;
    move.history_count = 2;
    subject_commit_all(s, &move, 1);
    struct rv_wants load = {.arena = &s->arena, .ids = ids, .count = 3, .bytes_max = SIZE_MAX};
    assert_int_equal(s->ops->load(s->store, &load), RV_OK);
    assert_int_equal(load.tasks[0].history_last, 0);
    load.histories = true;
    assert_int_equal(s->ops->load(s->store, &load), RV_OK);
    assert_int_equal(load.tasks_count, 3);
    assert_int_equal(load.tasks[0].history_last, 2);
    assert_int_equal(load.tasks[1].history_last, 0);
    assert_null(load.tasks[2].task);
}

/* There is nothing to roll back: the next one begins. */
static void no_transaction_begins_without_its_load(void **state)
{
    struct subject *s = *state;
    struct rv_task_id id = {TASK_BASE};
    struct rv_arena small;
    int64_t now = 0;
    bear(s, TASK_BASE);
    rv_arena_init(&small, 64);
    struct rv_wants load = {.arena = &small, .ids = &id, .count = 1, .bytes_max = SIZE_MAX};
    assert_int_equal(s->ops->begin(s->store, &load, &now), RV_ERR_LIMIT);
    rv_arena_done(&small);
    struct rv_change move = move_of(s, TASK_BASE, 2, RV_TASK_PROCESSING);
    subject_commit_all(s, &move, 1);
}

int main(void)
{
    static const struct suite_case cases[] = {
        SUITE_CASE(tasks_come_with_their_open_steps),
        SUITE_CASE(a_load_ends_when_its_bytes_are_used),
        SUITE_CASE(a_transaction_begins_with_a_load),
        SUITE_CASE(a_load_tells_the_newest_number_of_a_history),
        SUITE_CASE(no_transaction_begins_without_its_load),
    };
    return suite_run("store_load", cases, sizeof cases / sizeof cases[0]);
}
