/* The retention rule, held against every store: what it takes goes as a whole, and everything else
 * stays as it was. */
#include "subject.h"

#include "sim/store/memory/memory.h"

#include <string.h>

#define MADE_AT(ms) (INT64_C(ms) << 21) /* the least id made in that millisecond */
#define NONE ((struct rv_task_id){0})
enum { OLD = 1000, YOUNG = 5000, NOW = 9000, BY = 2000, MANY_ROWS = 100000 };

static enum rv_err sweep_with(struct subject *s, struct rv_sweep *sweep, struct rv_change *changes,
                              size_t count)
{
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    struct rv_batch batch = {
        .changes = changes, .changes_count = count, .sweep = sweep, .number = ++s->number};
    return s->ops->commit(s->store, &batch);
}

/* Pieces until both walks have ended; gives their number. */
static size_t sweep_all(struct subject *s, struct rv_sweep *sweep, size_t *ret_tasks)
{
    size_t pieces = 0;
    *ret_tasks = 0;
    do {
        assert_int_equal(sweep_with(s, sweep, NULL, 0), RV_OK);
        assert_int_equal(sweep->outcome, RV_OK);
        *ret_tasks += sweep->tasks_gone;
        assert_true(++pieces < 1000);
    } while (!sweep->tasks_over || !sweep->keys_over);
    return pieces;
}

static struct rv_sweep sweep_of(int64_t keys_by)
{
    return (struct rv_sweep){.ended_by = BY, .keys_by = keys_by, .rows_max = MANY_ROWS};
}

/* A clock that goes on by that much whenever somebody looks. */
enum { LOOK_US = 100 };

static int64_t looked_at_us(void *self)
{
    int64_t *us = self;
    return *us += LOOK_US;
}

/* A task with steps, attempts, late replies, an alert, messages that have arrived, and a key. */
static void put(struct subject *s, int64_t id, enum rv_task_state state, int64_t ended_at)
{
    struct rv_prng prng;
    struct rv_buf ignored;
    struct rv_change change;
    rv_prng_init(&prng, (uint64_t)id);
    rv_buf_init(&ignored, 1 << 24);
    random_change(s, &prng, id, &change, &ignored);
    rv_buf_done(&ignored);
    struct rv_task task = *change.task;
    task.revision = 1;
    task.state = state;
    task.ended_at = ended_at;
    change.task = &task;
    change.revision_before = 0;
    struct rv_key_row key = {
        rv_arena_printf(&s->arena, "key of %lld", (long long)id), RV_STR("hash"), {id}};
    struct rv_alert alert = random_alert(s, &prng, id + 1, id);
    if (alert.kind == RV_ALERT_LATE_DONE)
        alert.kind = RV_ALERT_NO_AGENT; /* an open late-done keeps its task */
    struct rv_message messages[2] = {random_message(s, &prng, id, 1),
                                     random_message(s, &prng, id, 2)};
    struct rv_delivery delivery = {
        .task = {id}, .next = 3, .last = 2, .destination = RV_STR("d"), .url = RV_STR("u")};
    struct rv_delivery to = {.destination = RV_STR("pager"), .url = RV_STR("pager/call")};
    change.key = &key;
    change.alerts = &alert;
    change.alerts_count = 1;
    change.alerts_to = state == RV_TASK_CANCELLED ? &to : NULL; /* its alert is on its way */
    change.messages = messages;
    change.messages_count = 2;
    struct rv_history_row command = random_command(s, &prng, id, 1);
    change.history = &command;
    change.history_count = 1;
    change.delivery = &delivery;
    subject_commit_all(s, &change, 1);
}

static bool key_there(struct subject *s, int64_t id)
{
    struct rv_str key = rv_arena_printf(&s->arena, "key of %lld", (long long)id);
    struct rv_key_row row;
    assert_int_equal(rv_store_load_keys(s->store, &s->arena, &key, 1, &row), RV_OK);
    assert_true(row.task.value == 0 || row.task.value == id);
    return row.task.value != 0;
}

static void dump_all(struct rv_buf *out, struct subject *s)
{
    rv_buf_init(out, 1 << 26);
    dump_store(out, s);
}

/* What is left is what a store holds that never had the others. */
static void what_is_old_goes_with_all_that_hangs_on_it(void **state)
{
    struct subject *s = *state;
    static const int64_t kept[] = {MADE_AT(10), MADE_AT(20), MADE_AT(40), MADE_AT(3000)};
    struct rv_buf wanted, got;
    put(s, kept[0], RV_TASK_ERROR, 0);             /* parked */
    put(s, kept[1], RV_TASK_PROCESSING, 0);        /* at work */
    put(s, kept[2], RV_TASK_PROCESSED, YOUNG);     /* old, but ended of late */
    put(s, kept[3], RV_TASK_PROCESSED, YOUNG + 1); /* young */
    dump_all(&wanted, s);
    put(s, MADE_AT(11), RV_TASK_PROCESSED, OLD);
    put(s, MADE_AT(21), RV_TASK_COMPENSATED, OLD);
    put(s, MADE_AT(41), RV_TASK_CANCELLED, BY);
    struct rv_sweep sweep = sweep_of(0);
    size_t tasks = 0;
    assert_int_equal(sweep_all(s, &sweep, &tasks), 1);
    assert_int_equal(tasks, 3);
    subject_restart(s);
    dump_all(&got, s);
    assert_dumps_equal(&got, &wanted);
    assert_null(load(s, MADE_AT(11)));
    assert_true(key_there(s, MADE_AT(11)));
    assert_true(key_there(s, kept[2]));
    rv_buf_done(&wanted);
    rv_buf_done(&got);
    struct rv_message message;
    struct rv_late_reply late;
    struct rv_delivery delivery;
    struct rv_step_id of = {{MADE_AT(11)}, 0};
    size_t count = 1;
    assert_int_equal(s->ops->list_messages(s->store, &s->arena, of.task, 0, 1, &message, &count),
                     RV_OK);
    assert_int_equal(count, 0);
    struct rv_history_row command;
    assert_int_equal(s->ops->list_history(s->store, &s->arena, of.task, 0, 1, &command, &count),
                     RV_OK);
    assert_int_equal(count, 0);
    assert_int_equal(
        s->ops->list_late_replies(s->store, &s->arena, RV_COLUMNS_ALL, of, 0, 0, 1, &late, &count),
        RV_OK);
    assert_int_equal(count, 0);
    assert_int_equal(s->ops->list_deliveries(s->store, &s->arena, of.task, RV_STR_NONE, NONE, 1,
                                             &delivery, &count),
                     RV_OK);
    assert_int_equal(count, 0);
    put(s, MADE_AT(12), RV_TASK_PROCESSED, OLD); /* and the store goes on */
    assert_non_null(load(s, MADE_AT(12)));
}

/* Neighbours may be deleted by the range of their ids, and alerts have ids between them. */
static void an_alert_on_its_way_stays_where_the_tasks_around_it_go(void **state)
{
    struct subject *s = *state;
    enum { TASKS = 8 };
    struct rv_prng prng;
    rv_prng_init(&prng, 3);
    struct rv_alert alerts[TASKS];
    struct rv_delivery to = {.destination = RV_STR("pager"), .url = RV_STR("pager/call")};
    struct rv_task task = plain_task(MADE_AT(1), 1);
    struct rv_change change = {
        .task = &task, .alerts = alerts, .alerts_count = TASKS, .alerts_to = &to};
    task.state = RV_TASK_ERROR;
    for (int64_t i = 0; i < TASKS; i++)
        alerts[i] = random_alert(s, &prng, MADE_AT(20) + (i << 21), MADE_AT(1));
    subject_commit_all(s, &change, 1);
    for (int64_t i = 0; i < TASKS; i++)
        put(s, MADE_AT(20) + (i << 21) - 100, RV_TASK_PROCESSED, OLD);
    struct rv_sweep sweep = sweep_of(0);
    size_t tasks = 0;
    sweep_all(s, &sweep, &tasks);
    assert_int_equal(tasks, TASKS);
    struct rv_delivery rows[TASKS + 1];
    size_t count = 0;
    assert_int_equal(s->ops->list_deliveries(s->store, &s->arena, NONE, RV_STR_NONE, NONE,
                                             TASKS + 1, rows, &count),
                     RV_OK);
    assert_int_equal(count, TASKS);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rows[i].task.value, alerts[i].id);
}

static void a_key_outlives_its_task_and_goes_in_the_end(void **state)
{
    struct subject *s = *state;
    put(s, MADE_AT(10), RV_TASK_PROCESSED, OLD);
    put(s, MADE_AT(20), RV_TASK_PROCESSED, OLD);
    put(s, MADE_AT(30), RV_TASK_PROCESSING, 0);
    struct rv_sweep sweep = sweep_of(10);
    size_t tasks = 0;
    sweep_all(s, &sweep, &tasks);
    assert_int_equal(tasks, 2);
    assert_false(key_there(s, MADE_AT(10)));
    assert_true(key_there(s, MADE_AT(20)));
    sweep = sweep_of(NOW);
    sweep_all(s, &sweep, &tasks);
    assert_false(key_there(s, MADE_AT(20)));
    assert_true(key_there(s, MADE_AT(30))); /* never before its task */
    put(s, MADE_AT(20), RV_TASK_PROCESSED, OLD);
    assert_true(key_there(s, MADE_AT(20)));
}

static void a_task_stays_until_its_messages_have_arrived(void **state)
{
    struct subject *s = *state;
    struct rv_message message = {.task = {MADE_AT(10)}, .number = 1, .body = RV_STR("{}")};
    struct rv_delivery delivery = {.task = {MADE_AT(10)},
                                   .next = 1,
                                   .last = 1,
                                   .destination = RV_STR("d"),
                                   .url = RV_STR("u")};
    struct rv_task task = plain_task(MADE_AT(10), 1);
    struct rv_change change = {
        .task = &task, .messages = &message, .messages_count = 1, .delivery = &delivery};
    task.state = RV_TASK_PROCESSED;
    task.ended_at = OLD;
    subject_commit_all(s, &change, 1);
    struct rv_sweep sweep = sweep_of(0);
    size_t tasks = 0;
    sweep_all(s, &sweep, &tasks);
    assert_int_equal(tasks, 0);
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    struct rv_delivery_change arrived = {.row = delivery, .next_before = 1};
    arrived.row.next = 2;
    sweep = sweep_of(0);
    struct rv_batch batch = {
        .deliveries = &arrived, .deliveries_count = 1, .sweep = &sweep, .number = ++s->number};
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    assert_int_equal(sweep.tasks_gone, 1);
    assert_null(load(s, MADE_AT(10)));
}

/* It has left an effect that nobody has undone; somebody acknowledges it, or the step is undone. */
static void a_task_stays_until_its_late_done_is_seen_to(void **state)
{
    struct subject *s = *state;
    const uint32_t step = 1;
    for (int64_t i = 0; i < 2; i++) {
        struct rv_alert alert = {.id = MADE_AT(10) + 10 + i,
                                 .task = {MADE_AT(10) + i},
                                 .step = step,
                                 .kind = RV_ALERT_LATE_DONE};
        struct rv_task task = plain_task(MADE_AT(10) + i, 1);
        struct rv_change change = {.task = &task, .alerts = &alert, .alerts_count = 1};
        task.state = RV_TASK_PROCESSED;
        task.ended_at = OLD;
        subject_commit_all(s, &change, 1);
    }
    struct rv_sweep sweep = sweep_of(0);
    size_t tasks = 0;
    sweep_all(s, &sweep, &tasks);
    assert_int_equal(tasks, 0);
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    struct rv_ack ack = {.alert = MADE_AT(10) + 10, .at = 1, .by = RV_STR("ann")};
    struct rv_task task = plain_task(MADE_AT(10) + 1, 2);
    task.state = RV_TASK_PROCESSED;
    task.ended_at = OLD;
    struct rv_change change = {
        .task = &task, .revision_before = 1, .late_over = &step, .late_over_count = 1};
    sweep = sweep_of(0);
    struct rv_batch batch = {.acks = &ack,
                             .acks_count = 1,
                             .changes = &change,
                             .changes_count = 1,
                             .sweep = &sweep,
                             .number = ++s->number};
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    assert_int_equal(sweep.tasks_gone, 2);
}

/* It goes on where the last piece stopped, and never over more than it was told; but the rows of a
 * task go together. */
static void pieces_are_small_and_come_to_an_end(void **state)
{
    struct subject *s = *state;
    enum { TASKS = 40, LOOKS = 7 };
    for (int64_t i = 0; i < TASKS; i++)
        put(s, MADE_AT(10) + i, i % 4 == 3 ? RV_TASK_PROCESSING : RV_TASK_PROCESSED,
            i % 4 == 3 ? 0 : OLD);
    struct rv_sweep sweep = sweep_of(NOW);
    sweep.rows_max = LOOKS;
    size_t tasks = 0, pieces = 0;
    do {
        assert_int_equal(sweep_with(s, &sweep, NULL, 0), RV_OK);
        assert_true(sweep.tasks_gone <= 1); /* each has more rows than a piece */
        assert_true(sweep.keys_gone <= LOOKS);
        tasks += sweep.tasks_gone;
        pieces++;
    } while (!sweep.tasks_over || !sweep.keys_over);
    assert_int_equal(tasks, TASKS / 4 * 3);
    assert_true(pieces > TASKS / 4 * 3);
    for (int64_t i = 0; i < TASKS; i++) {
        assert_int_equal(load(s, MADE_AT(10) + i) != NULL, i % 4 == 3);
        assert_int_equal(key_there(s, MADE_AT(10) + i), i % 4 == 3);
    }
}

/* The walk over the tasks may never end where as many end as are deleted: the keys have their turn
 * with each piece. */
static void keys_go_in_turn_with_tasks(void **state)
{
    struct subject *s = *state;
    enum { KEYS = 20, TASKS = 40, LOOKS = 7 };
    size_t tasks = 0, keys = 0, pieces = 0;
    for (int64_t i = 0; i < KEYS; i++)
        put(s, MADE_AT(10) + i, RV_TASK_PROCESSED, OLD);
    struct rv_sweep sweep = sweep_of(0);
    sweep_all(s, &sweep, &tasks);
    assert_int_equal(tasks, KEYS);
    for (int64_t i = 0; i < TASKS; i++)
        put(s, MADE_AT(20) + i, RV_TASK_PROCESSED, OLD);
    sweep = sweep_of(15);
    sweep.rows_max = LOOKS;
    for (tasks = 0; keys < KEYS; pieces++) {
        assert_int_equal(sweep_with(s, &sweep, NULL, 0), RV_OK);
        assert_true(sweep.keys_gone <= LOOKS);
        keys += sweep.keys_gone;
        tasks += sweep.tasks_gone;
    }
    assert_int_equal(pieces, KEYS / LOOKS + 1);
    assert_false(sweep.tasks_over);
    assert_true(tasks >= pieces);
}

/* What a piece costs is measured, whatever rows it may have. */
static void pieces_end_when_their_time_is_over(void **state)
{
    struct subject *s = *state;
    enum { TASKS = 60 };
    for (int64_t i = 0; i < TASKS; i++)
        put(s, MADE_AT(10) + i, RV_TASK_PROCESSED, OLD);
    int64_t us = 0;
    size_t tasks = 0;
    struct rv_sweep sweep = sweep_of(NOW);
    sweep.now_us = looked_at_us;
    sweep.self = &us;
    sweep.us_max = 1; /* and even so something goes */
    for (size_t i = 1; i <= 3; i++) {
        assert_int_equal(sweep_with(s, &sweep, NULL, 0), RV_OK);
        assert_int_equal(sweep.tasks_gone, 1);
        assert_true(sweep.took_us >= LOOK_US);
    }
    sweep.us_max = 1 << 20;
    size_t pieces = sweep_all(s, &sweep, &tasks);
    assert_int_equal(pieces, 1);
    assert_int_equal(tasks, TASKS - 3);
    for (int64_t i = 0; i < TASKS; i++)
        assert_false(key_there(s, MADE_AT(10) + i));
}

static void what_the_batch_opens_again_stays(void **state)
{
    struct subject *s = *state;
    struct rv_task task = plain_task(MADE_AT(10), 1);
    task.state = RV_TASK_PROCESSED;
    task.ended_at = OLD;
    struct rv_change born = {.task = &task};
    subject_commit_all(s, &born, 1);
    struct rv_task undone = task;
    undone.revision = 2;
    undone.state = RV_TASK_COMPENSATING;
    undone.ended_at = 0;
    struct rv_change undo = {.task = &undone, .revision_before = 1};
    struct rv_sweep sweep = sweep_of(0);
    assert_int_equal(sweep_with(s, &sweep, &undo, 1), RV_OK);
    assert_int_equal(undo.outcome, RV_OK);
    assert_int_equal(sweep.tasks_gone, 0);
    assert_int_equal(load(s, MADE_AT(10))->state, RV_TASK_COMPENSATING);
    struct rv_change late = {.task = &undone, .revision_before = 1};
    undone.revision = 2; /* and what comes after it is gone meets nothing */
    task = plain_task(MADE_AT(11), 1);
    task.state = RV_TASK_PROCESSED;
    task.ended_at = OLD;
    subject_commit_all(s, &born, 1);
    sweep = sweep_of(0);
    assert_int_equal(sweep_with(s, &sweep, NULL, 0), RV_OK);
    assert_int_equal(sweep.tasks_gone, 1);
    undone.id.value = MADE_AT(11);
    assert_int_equal(subject_commit(s, &late, 1), RV_OK);
    assert_int_equal(late.outcome, RV_ERR_CONFLICT);
}

static void a_batch_that_fails_deletes_nothing(void **state)
{
    struct subject *s = *state;
    struct rv_buf before, after;
    put(s, MADE_AT(10), RV_TASK_PROCESSED, OLD);
    dump_all(&before, s);
    struct rv_step step = plain_step(1);
    const struct rv_step *steps[] = {&step};
    bool inserts[] = {true}; /* which is there */
    struct rv_task task = *load(s, MADE_AT(10));
    struct rv_change change = {.task = &task,
                               .revision_before = 1,
                               .steps = steps,
                               .steps_new = inserts,
                               .steps_count = 1};
    task.revision = 2;
    struct rv_sweep sweep = sweep_of(NOW);
    assert_int_equal(sweep_with(s, &sweep, &change, 1), RV_ERR_INVALID);
    dump_all(&after, s);
    assert_dumps_equal(&after, &before);
    assert_true(key_there(s, MADE_AT(10)));
    rv_buf_done(&before);
    rv_buf_done(&after);
}

static void only_the_supervisor_deletes(void **state)
{
    struct subject *s = *state;
    int64_t epoch, until;
    put(s, MADE_AT(10), RV_TASK_PROCESSED, OLD);
    assert_int_equal(s->ops->claim_role(s->store, RV_STR(RV_ROLE_SUPERVISOR), 1000, &epoch, &until),
                     RV_OK);
    struct rv_sweep sweep = sweep_of(NOW);
    sweep.epoch = epoch + 1;
    assert_int_equal(sweep_with(s, &sweep, NULL, 0), RV_OK);
    assert_int_equal(sweep.outcome, RV_ERR_DEPOSED);
    assert_non_null(load(s, MADE_AT(10)));
    sweep.epoch = epoch;
    assert_int_equal(sweep_with(s, &sweep, NULL, 0), RV_OK);
    assert_int_equal(sweep.outcome, RV_OK);
    assert_null(load(s, MADE_AT(10)));
}

/* A standby that had not heard of it has all of it still. */
static void what_was_deleted_comes_back_with_the_history(void **state)
{
    struct subject *s = *state;
    struct rv_buf before, after;
    if (s->memory_data == NULL)
        return; /* the SQLite store loses nothing */
    s->ops->close(s->store);
    rv_store_memory_data_keep(s->memory_data, 8);
    subject_open(s);
    for (int64_t i = 0; i < 3; i++)
        put(s, MADE_AT(10) + i, RV_TASK_PROCESSED, OLD);
    dump_all(&before, s);
    struct rv_sweep sweep = sweep_of(NOW);
    assert_int_equal(sweep_with(s, &sweep, NULL, 0), RV_OK);
    assert_int_equal(sweep.tasks_gone, 3);
    assert_int_equal(sweep.keys_gone, 3);
    rv_store_memory_data_lose(s->memory_data, 1);
    dump_all(&after, s);
    assert_dumps_equal(&after, &before);
    for (int64_t i = 0; i < 3; i++)
        assert_true(key_there(s, MADE_AT(10) + i));
    rv_buf_done(&before);
    rv_buf_done(&after);
}

static void put_alert(struct subject *s, int64_t id, int64_t acked_at)
{
    struct rv_raise raise = {
        .alert = {.id = id,
                  .kind = RV_ALERT_REPORTED,
                  .raised_at = 1,
                  .acked_at = acked_at,
                  .source = rv_arena_printf(&s->arena, "of %lld", (long long)id)}};
    struct rv_batch batch = {.raises = &raise, .raises_count = 1, .number = ++s->number};
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    assert_int_equal(raise.outcome, RV_OK);
}

static void alerts_of_no_task_go_when_somebody_has_seen_them(void **state)
{
    struct subject *s = *state;
    struct rv_alert rows[8];
    size_t count = 0, tasks = 0;
    put(s, MADE_AT(10), RV_TASK_ERROR, 0);
    put_alert(s, 1, 0); /* nobody has */
    put_alert(s, 2, OLD);
    put_alert(s, 3, BY);
    put_alert(s, 4, YOUNG); /* of late */
    struct rv_sweep sweep = sweep_of(0);
    sweep_all(s, &sweep, &tasks);
    subject_restart(s);
    assert_int_equal(s->ops->list_alerts(s->store, &s->arena, NONE, false, 0, 8, rows, &count),
                     RV_OK);
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].task.value, MADE_AT(10));
    assert_int_equal(rows[1].id, 4);
    assert_int_equal(rows[2].id, 1);
}

int main(void)
{
    static const struct suite_case cases[] = {
        SUITE_CASE(what_is_old_goes_with_all_that_hangs_on_it),
        SUITE_CASE(an_alert_on_its_way_stays_where_the_tasks_around_it_go),
        SUITE_CASE(a_key_outlives_its_task_and_goes_in_the_end),
        SUITE_CASE(a_task_stays_until_its_messages_have_arrived),
        SUITE_CASE(a_task_stays_until_its_late_done_is_seen_to),
        SUITE_CASE(pieces_are_small_and_come_to_an_end),
        SUITE_CASE(keys_go_in_turn_with_tasks),
        SUITE_CASE(pieces_end_when_their_time_is_over),
        SUITE_CASE(what_the_batch_opens_again_stays),
        SUITE_CASE(alerts_of_no_task_go_when_somebody_has_seen_them),
        SUITE_CASE(a_batch_that_fails_deletes_nothing),
        SUITE_CASE(only_the_supervisor_deletes),
        SUITE_CASE(what_was_deleted_comes_back_with_the_history),
    };
    return suite_run("store_retention", cases, sizeof cases / sizeof cases[0]);
}
