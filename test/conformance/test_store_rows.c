/* A row of every kind with a value in every field comes back as it was written. A field that is new
 * in core/tbl/row.def is covered by itself. */
#include "subject.h"

#include <string.h>

enum { OWNER = 4711, DUMP_BYTES_MAX = 1 << 20 };

struct rows {
    struct rv_task task;
    struct rv_step step;
    struct rv_attempt attempt;
    struct rv_late_reply late;
    struct rv_alert alert;
    struct rv_message message;
    struct rv_history_row history;
    struct rv_delivery delivery;
    struct rv_workflow_row workflow;
    struct rv_key_row key;
    struct rv_record record;
};

static const struct {
    const struct rv_row_kind *kind;
    size_t offset;
} parts[] = {
    {&rv_row_task, offsetof(struct rows, task)},
    {&rv_row_step, offsetof(struct rows, step)},
    {&rv_row_attempt, offsetof(struct rows, attempt)},
    {&rv_row_late_reply, offsetof(struct rows, late)},
    {&rv_row_alert, offsetof(struct rows, alert)},
    {&rv_row_message, offsetof(struct rows, message)},
    {&rv_row_history, offsetof(struct rows, history)},
    {&rv_row_delivery, offsetof(struct rows, delivery)},
    {&rv_row_workflow, offsetof(struct rows, workflow)},
    {&rv_row_key, offsetof(struct rows, key)},
    {&rv_row_record, offsetof(struct rows, record)},
};
enum { PARTS = sizeof parts / sizeof parts[0] };

enum {
#define RV_ROW(name, table, keys) KIND_##name,
#define RV_ROW_END
#include "core/tbl/row.def"
    KINDS
};
_Static_assert((int)KINDS == (int)PARTS, "a kind of row is missing above");

static void rows_fill(struct subject *s, struct rows *rows)
{
    for (size_t i = 0; i < PARTS; i++)
        row_full(parts[i].kind, OWNER, &s->arena, (char *)rows + parts[i].offset);
}

static void rows_dump(struct rv_buf *out, const struct rows *rows)
{
    for (size_t i = 0; i < PARTS; i++)
        row_dump(out, parts[i].kind, (const char *)rows + parts[i].offset);
}

static void rows_write(struct subject *s, const struct rows *rows)
{
    const struct rv_step *steps[] = {&rows->step};
    const bool steps_new[] = {true};
    struct rv_change change = {.task = &rows->task,
                               .steps = steps,
                               .steps_new = steps_new,
                               .steps_count = 1,
                               .attempts = &rows->attempt,
                               .attempts_count = 1,
                               .late_replies = &rows->late,
                               .late_replies_count = 1,
                               .alerts = &rows->alert,
                               .alerts_count = 1,
                               .messages = &rows->message,
                               .messages_count = 1,
                               .history = &rows->history,
                               .history_count = 1,
                               .delivery = &rows->delivery,
                               .key = &rows->key,
                               .record = &rows->record};
    publish(s, &rows->workflow, 1, RV_OK);
    subject_commit_all(s, &change, 1);
}

/* The only row that a list has. */
#define ONE(list, ...)                                                                             \
    do {                                                                                           \
        size_t count = 0;                                                                          \
        assert_int_equal(s->ops->list(s->store, &s->arena, __VA_ARGS__, &count), RV_OK);           \
        assert_int_equal(count, 1);                                                                \
    } while (0)

static void rows_read(struct subject *s, struct rows *rows)
{
    struct rv_task_id task = {OWNER};
    struct rv_step_id all = {task, 0};
    struct rv_str none = RV_STR_NONE;
    struct rv_record record;
    struct rv_key_row key;
    row_full(&rv_row_record, OWNER, &s->arena, &record);
    row_full(&rv_row_key, OWNER, &s->arena, &key);
    const struct rv_task *loaded = load(s, OWNER);
    assert_non_null(loaded);
    rows->task = *loaded;
    ONE(list_steps, RV_COLUMNS_ALL, task, 0, 1, &rows->step);
    ONE(list_attempts, all, 0, 0, 1, &rows->attempt);
    ONE(list_late_replies, RV_COLUMNS_ALL, all, 0, 0, 1, &rows->late);
    ONE(list_alerts, task, false, 0, 1, &rows->alert);
    ONE(list_messages, task, 0, 1, &rows->message);
    ONE(list_history, task, 0, 1, &rows->history);
    ONE(list_deliveries, task, none, (struct rv_task_id){0}, 1, &rows->delivery);
    ONE(list_workflows, 0, 1, &rows->workflow);
    ONE(list_records, record.kind, none, none, 1, &rows->record);
    assert_int_equal(rv_store_load_keys(s->store, &s->arena, &key.key, 1, &rows->key), RV_OK);
}

static void every_field_of_every_row_is_kept(void **state)
{
    struct subject *s = *state;
    struct rows rows;
    struct rv_buf wanted, got;
    rv_buf_init(&wanted, DUMP_BYTES_MAX);
    rv_buf_init(&got, DUMP_BYTES_MAX);
    rows_fill(s, &rows);
    rows_dump(&wanted, &rows);
    rows_write(s, &rows);
    memset(&rows, 0, sizeof rows);
    rv_arena_reset(&s->arena);
    subject_restart(s);
    rows_read(s, &rows);
    rows_dump(&got, &rows);
    assert_dumps_equal(&got, &wanted);
    rv_buf_done(&wanted);
    rv_buf_done(&got);
}

/* The second writing of a task and a step goes through other statements than the first. */
static void every_field_of_a_row_is_replaced(void **state)
{
    struct subject *s = *state;
    struct rv_buf wanted, got;
    struct rv_task task;
    struct rv_step step;
    rv_buf_init(&wanted, DUMP_BYTES_MAX);
    rv_buf_init(&got, DUMP_BYTES_MAX);
    bear(s, OWNER);
    row_full(&rv_row_task, OWNER, &s->arena, &task);
    row_full(&rv_row_step, OWNER, &s->arena, &step);
    task.revision = 2;
    step.number = 1;
    const struct rv_step *steps[] = {&step};
    struct rv_change change = {.task = &task,
                               .revision_before = 1,
                               .steps = steps,
                               .steps_new = (const bool[]){false},
                               .steps_count = 1};
    row_dump(&wanted, &rv_row_task, &task);
    row_dump(&wanted, &rv_row_step, &step);
    subject_commit_all(s, &change, 1);
    row_dump(&got, &rv_row_task, load(s, OWNER));
    row_dump(&got, &rv_row_step, load_step(s, OWNER, 1));
    assert_dumps_equal(&got, &wanted);
    rv_buf_done(&wanted);
    rv_buf_done(&got);
}

int main(void)
{
    static const struct suite_case cases[] = {
        SUITE_CASE(every_field_of_every_row_is_kept),
        SUITE_CASE(every_field_of_a_row_is_replaced),
    };
    return suite_run("store rows", cases, sizeof cases / sizeof cases[0]);
}
