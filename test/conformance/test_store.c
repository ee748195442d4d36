/* What store.h promises, held against every store in `factories`. */
#include "subject.h"

#include "base/time.h"
#include "core/api_key.h"

#include <string.h>

#define TASK_BASE INT64_C(1000000)
enum { THOUSAND = 1000, PAGE = 100 };

static size_t alerts_of(struct subject *s, int64_t task, bool open_only, struct rv_alert *rows)
{
    size_t count = 0;
    assert_int_equal(s->ops->list_alerts(s->store, &s->arena, (struct rv_task_id){task}, open_only,
                                         0, PAGE, rows, &count),
                     RV_OK);
    return count;
}

/* ---- rows ---- */

static void every_field_comes_back_as_it_was(void **state)
{
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, seed_of_run());
    struct rv_buf wanted;
    struct rv_buf got;
    rv_buf_init(&wanted, 64 << 20);
    rv_buf_init(&got, 64 << 20);
    struct rv_change changes[MANY];
    for (int64_t i = MANY - 1; i >= 0; i--) /* the dump has the newest first */
        random_change(s, &prng, TASK_BASE + i, &changes[i], &wanted);
    struct rv_alert alerts[MANY];
    for (int i = MANY - 1; i >= 0; i--) {
        alerts[i] = random_alert(s, &prng, i + 1, TASK_BASE);
        row_dump(&wanted, &rv_row_alert, &alerts[i]);
    }
    changes[0].alerts = alerts;
    changes[0].alerts_count = MANY;
    struct rv_workflow_row workflow = {INT64_MAX,          -RV_INSTANT_FAR, RV_STR("a"),
                                       RV_STR("\xff\xfe"), RV_STR("1 "),    random_str(s, &prng),
                                       RV_STR("{}")};
    row_dump(&wanted, &rv_row_workflow, &workflow);
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    struct rv_batch batch = {.changes = changes,
                             .changes_count = MANY,
                             .workflows = &workflow,
                             .workflows_count = 1,
                             .number = ++s->number};
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    dump_store(&got, s);
    assert_dumps_equal(&got, &wanted);
    subject_restart(s);
    rv_buf_reset(&got);
    dump_store(&got, s);
    assert_dumps_equal(&got, &wanted);
    rv_buf_done(&wanted);
    rv_buf_done(&got);
}

static void loads_find_rows_or_say_that_there_are_none(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    bear(s, TASK_BASE + 2);
    struct rv_task_id ids[] = {{TASK_BASE + 2}, {TASK_BASE + 1}, {TASK_BASE}};
    const struct rv_task *tasks[3];
    assert_int_equal(s->ops->load_tasks(s->store, &s->arena, RV_COLUMNS_ALL, ids, 3, tasks), RV_OK);
    assert_int_equal(tasks[0]->id.value, TASK_BASE + 2);
    assert_null(tasks[1]);
    assert_int_equal(tasks[2]->id.value, TASK_BASE);
    struct rv_step_id steps_ids[] = {{{TASK_BASE}, 1}, {{TASK_BASE}, 2}, {{TASK_BASE + 1}, 1}};
    const struct rv_step *steps[3];
    assert_int_equal(s->ops->load_steps(s->store, &s->arena, RV_COLUMNS_ALL, steps_ids, 3, steps),
                     RV_OK);
    assert_int_equal(steps[0]->number, 1);
    assert_null(steps[1]);
    assert_null(steps[2]);
}

/* More than a store may look for at once, in no order, some twice and some that are not there. */
static void loads_of_many_rows_find_each_in_its_place(void **state)
{
    enum { BORN = 30, WANTED = 101, STRIDE = 37, OF_TEN = 10 };
    struct subject *s = *state;
    for (int64_t i = 0; i < BORN; i++) {
        struct rv_change *birth = birth_of(s, TASK_BASE + 2 * i);
        struct rv_step step = plain_step(1);
        const struct rv_step *row = &step;
        step.token = (uint64_t)birth->task->id.value;
        birth->steps = &row;
        subject_commit_all(s, birth, 1);
    }
    struct rv_task_id ids[WANTED];
    struct rv_step_id steps_ids[WANTED];
    const struct rv_task *tasks[WANTED];
    const struct rv_step *steps[WANTED];
    for (int64_t i = 0; i < WANTED; i++) {
        ids[i].value = TASK_BASE + i * STRIDE % (2 * BORN);
        steps_ids[i] = (struct rv_step_id){ids[i], i % OF_TEN == 0 ? 2 : 1};
    }
    assert_int_equal(s->ops->load_tasks(s->store, &s->arena, RV_COLUMNS_ALL, ids, WANTED, tasks),
                     RV_OK);
    assert_int_equal(
        s->ops->load_steps(s->store, &s->arena, RV_COLUMNS_ALL, steps_ids, WANTED, steps), RV_OK);
    for (size_t i = 0; i < WANTED; i++) {
        bool there = (ids[i].value - TASK_BASE) % 2 == 0;
        assert_int_equal(tasks[i] != NULL, there);
        if (there)
            assert_int_equal(tasks[i]->id.value, ids[i].value);
        assert_int_equal(steps[i] != NULL, there && steps_ids[i].number == 1);
        if (steps[i] != NULL)
            assert_int_equal(steps[i]->token, ids[i].value);
    }
}

static void a_full_arena_is_a_limit(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    struct rv_arena small;
    rv_arena_init(&small, 64);
    struct rv_task_id id = {TASK_BASE};
    const struct rv_task *task = NULL;
    assert_int_equal(s->ops->load_tasks(s->store, &small, RV_COLUMNS_ALL, &id, 1, &task),
                     RV_ERR_LIMIT);
    rv_arena_done(&small);
    assert_non_null(load(s, TASK_BASE));
}

/* ---- guards ---- */

/* A loser brings one of everything, none of which may be found later. */
static void load_with_everything(struct subject *s, struct rv_prng *prng, struct rv_change *change,
                                 int64_t alert)
{
    struct rv_attempt *attempt = RV_NEW(&s->arena, struct rv_attempt);
    struct rv_late_reply *late = RV_NEW(&s->arena, struct rv_late_reply);
    struct rv_alert *raised = RV_NEW(&s->arena, struct rv_alert);
    int64_t id = change->task->id.value;
    *attempt = random_attempt(s, prng, id, 1, 1);
    *late = random_late_reply(s, prng, id);
    *raised = random_alert(s, prng, alert, id);
    change->attempts = attempt;
    change->attempts_count = 1;
    change->late_replies = late;
    change->late_replies_count = 1;
    change->alerts = raised;
    change->alerts_count = 1;
}

static void assert_no_trace(struct subject *s, int64_t task)
{
    struct rv_step steps[PAGE];
    struct rv_attempt attempts[1];
    struct rv_late_reply late[1];
    struct rv_alert alerts[PAGE];
    size_t count = 1;
    struct rv_task_id id = {task};
    assert_int_equal(s->ops->list_attempts(s->store, &s->arena, (struct rv_step_id){id, 0}, 0, 0, 1,
                                           attempts, &count),
                     RV_OK);
    assert_int_equal(count, 0);
    assert_int_equal(s->ops->list_late_replies(s->store, &s->arena, RV_COLUMNS_ALL,
                                               (struct rv_step_id){id, 0}, 0, 0, 1, late, &count),
                     RV_OK);
    assert_int_equal(count, 0);
    assert_int_equal(alerts_of(s, task, false, alerts), 0);
    assert_int_equal(
        s->ops->list_steps(s->store, &s->arena, RV_COLUMNS_ALL, id, 1, PAGE, steps, &count), RV_OK);
    assert_int_equal(count, 0);
}

/* One batch of 1,000 plans: one is stale, one has a key that is taken; 998 commit. */
static void one_stale_and_one_duplicate_of_a_thousand(void **state)
{
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, 7);
    enum { STALE = 300, DUPLICATE = 700 };
    struct rv_key_row taken = {RV_STR("order-17"), RV_STR("h1"), {TASK_BASE - 1}};
    struct rv_change *first = birth_of(s, TASK_BASE - 1);
    first->key = &taken;
    subject_commit_all(s, first, 1);
    bear(s, TASK_BASE + STALE);
    struct rv_change raised = move_of(s, TASK_BASE + STALE, 2, RV_TASK_PROCESSING);
    subject_commit_all(s, &raised, 1);

    struct rv_change *changes = RV_NEW_ARRAY(&s->arena, struct rv_change, THOUSAND);
    for (int i = 0; i < THOUSAND; i++)
        changes[i] = *birth_of(s, TASK_BASE + i);
    struct rv_task stale = plain_task(TASK_BASE + STALE, 2);
    struct rv_step second = plain_step(2);
    const struct rv_step *second_row = &second;
    changes[STALE].task = &stale;
    changes[STALE].revision_before = 1;
    changes[STALE].steps = &second_row;
    load_with_everything(s, &prng, &changes[STALE], 51);
    struct rv_key_row again = {RV_STR("order-17"), RV_STR("h2"), {TASK_BASE + DUPLICATE}};
    changes[DUPLICATE].key = &again;
    load_with_everything(s, &prng, &changes[DUPLICATE], 52);

    assert_int_equal(subject_commit(s, changes, THOUSAND), RV_OK);
    size_t committed = 0;
    for (int i = 0; i < THOUSAND; i++) {
        committed += changes[i].outcome == RV_OK;
        const struct rv_task *task = load(s, TASK_BASE + i);
        assert_int_equal(task != NULL, i != DUPLICATE);
        assert_int_equal(load_step(s, TASK_BASE + i, 1) != NULL, i != DUPLICATE);
    }
    assert_int_equal(committed, THOUSAND - 2);
    assert_int_equal(changes[STALE].outcome, RV_ERR_CONFLICT);
    assert_int_equal(changes[DUPLICATE].outcome, RV_ERR_DUPLICATE);
    assert_no_trace(s, TASK_BASE + STALE);
    assert_no_trace(s, TASK_BASE + DUPLICATE);
    struct rv_key_row found;
    assert_int_equal(rv_store_load_keys(s->store, &s->arena, &taken.key, 1, &found), RV_OK);
    assert_int_equal(found.task.value, TASK_BASE - 1);
    assert_true(rv_str_is(found.body_hash, "h1"));
}

static void revisions_guard_inserts_and_updates(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    struct rv_change *again = birth_of(s, TASK_BASE);
    assert_int_equal(subject_commit(s, again, 1), RV_OK);
    assert_int_equal(again->outcome, RV_ERR_CONFLICT);
    struct rv_change missing = move_of(s, TASK_BASE + 1, 2, RV_TASK_PROCESSING);
    assert_int_equal(subject_commit(s, &missing, 1), RV_OK);
    assert_int_equal(missing.outcome, RV_ERR_CONFLICT);
    struct rv_change early = move_of(s, TASK_BASE, 3, RV_TASK_PROCESSING);
    assert_int_equal(subject_commit(s, &early, 1), RV_OK);
    assert_int_equal(early.outcome, RV_ERR_CONFLICT);
    assert_int_equal(load(s, TASK_BASE)->revision, 1);
    bool committed = true;
    assert_int_equal(s->ops->committed(s->store, s->number, &committed), RV_OK);
    assert_false(committed); /* a batch of losers leaves no trace */
}

static void the_row_before_is_no_guard(void **state)
{
    static const enum rv_task_state states[] = {RV_TASK_PENDING, RV_TASK_PROCESSING, RV_TASK_ERROR};
    enum { STATES = sizeof states / sizeof states[0] };
    struct subject *s = *state;
    int64_t revision = 1;
    bear(s, TASK_BASE);
    for (size_t i = 0; i < 2 * STATES * STATES; i++) {
        enum rv_task_state to = states[i % STATES];
        const struct rv_task *before = load(s, TASK_BASE);
        struct rv_change change = move_of(s, TASK_BASE, ++revision, to);
        change.task_before = i % 2 == 0 ? before : NULL;
        subject_commit_all(s, &change, 1);
        assert_int_equal(load(s, TASK_BASE)->state, to);
        assert_int_equal(load(s, TASK_BASE)->revision, revision);
        change = move_of(s, TASK_BASE, revision, states[i / 2 / STATES]);
        change.task_before = before;
        assert_int_equal(subject_commit(s, &change, 1), RV_OK);
        assert_int_equal(change.outcome, RV_ERR_CONFLICT);
        assert_int_equal(load(s, TASK_BASE)->state, to);
        bool committed = true;
        assert_int_equal(s->ops->committed(s->store, s->number, &committed), RV_OK);
        assert_false(committed);
    }
}

static void changes_of_one_batch_see_each_other(void **state)
{
    struct subject *s = *state;
    struct rv_key_row key = {RV_STR("k"), RV_STR("h"), {TASK_BASE}};
    struct rv_key_row same = {RV_STR("k"), RV_STR("h"), {TASK_BASE + 1}};
    struct rv_change changes[5] = {*birth_of(s, TASK_BASE), *birth_of(s, TASK_BASE + 1),
                                   move_of(s, TASK_BASE, 2, RV_TASK_ERROR),
                                   move_of(s, TASK_BASE, 2, RV_TASK_PROCESSED),
                                   move_of(s, TASK_BASE, 3, RV_TASK_COMPENSATING)};
    changes[0].key = &key;
    changes[1].key = &same;
    assert_int_equal(subject_commit(s, changes, 5), RV_OK);
    assert_int_equal(changes[0].outcome, RV_OK);
    assert_int_equal(changes[1].outcome, RV_ERR_DUPLICATE);
    assert_int_equal(changes[2].outcome, RV_OK);
    assert_int_equal(changes[3].outcome, RV_ERR_CONFLICT);
    assert_int_equal(changes[4].outcome, RV_OK);
    assert_int_equal(load(s, TASK_BASE)->state, RV_TASK_COMPENSATING);
    assert_int_equal(load(s, TASK_BASE)->revision, 3);
}

static void the_deposed_write_nothing(void **state)
{
    struct subject *s = *state;
    int64_t epoch;
    int64_t until;
    struct rv_change *before = birth_of(s, TASK_BASE);
    before->epoch = 1; /* nobody has the role yet */
    assert_int_equal(subject_commit(s, before, 1), RV_OK);
    assert_int_equal(before->outcome, RV_ERR_DEPOSED);
    assert_int_equal(s->ops->claim_role(s->store, RV_STR(RV_ROLE_SUPERVISOR), 1000, &epoch, &until),
                     RV_OK);
    struct rv_change *held = birth_of(s, TASK_BASE);
    held->epoch = epoch;
    subject_commit_all(s, held, 1);
    subject_restart(s);
    int64_t newer;
    assert_int_equal(s->ops->claim_role(s->store, RV_STR(RV_ROLE_SUPERVISOR), 1000, &newer, &until),
                     RV_OK);
    assert_int_equal(newer, epoch + 1);
    struct rv_change changes[2] = {*birth_of(s, TASK_BASE + 1), *birth_of(s, TASK_BASE + 2)};
    changes[0].epoch = epoch;
    changes[1].epoch = newer;
    assert_int_equal(subject_commit(s, changes, 2), RV_OK);
    assert_int_equal(changes[0].outcome, RV_ERR_DEPOSED);
    assert_int_equal(changes[1].outcome, RV_OK);
    assert_null(load(s, TASK_BASE + 1));
    assert_null(load_step(s, TASK_BASE + 1, 1));
    assert_non_null(load(s, TASK_BASE + 2));
}

/* ---- batches that break a rule of the store ---- */

static void assert_refused_whole(struct subject *s, struct rv_change *bad)
{
    struct rv_change changes[3] = {*birth_of(s, TASK_BASE + 90), *bad,
                                   *birth_of(s, TASK_BASE + 91)};
    struct rv_key_row key = {RV_STR("refused"), RV_STR("h"), {TASK_BASE + 90}};
    changes[0].key = &key;
    struct rv_buf before;
    struct rv_buf after;
    rv_buf_init(&before, 1 << 20);
    rv_buf_init(&after, 1 << 20);
    dump_store(&before, s);
    assert_int_equal(subject_commit(s, changes, 3), RV_ERR_INVALID);
    dump_store(&after, s);
    assert_dumps_equal(&after, &before);
    struct rv_key_row found;
    assert_int_equal(rv_store_load_keys(s->store, &s->arena, &key.key, 1, &found), RV_OK);
    assert_int_equal(found.task.value, 0);
    rv_buf_done(&before);
    rv_buf_done(&after);
}

static void a_batch_that_cannot_be_written_leaves_nothing(void **state)
{
    struct subject *s = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, 11);
    struct rv_change *first = birth_of(s, TASK_BASE);
    load_with_everything(s, &prng, first, 5);
    subject_commit_all(s, first, 1);

    struct rv_step step = plain_step(1);
    const struct rv_step *row = &step;
    bool insert = true;
    struct rv_change bad = move_of(s, TASK_BASE, 2, RV_TASK_ERROR);
    bad.close_alerts = true;
    bad.steps = &row;
    bad.steps_new = &insert;
    bad.steps_count = 1;
    assert_refused_whole(s, &bad); /* inserts a step that is there */
    insert = false;
    step.number = 2;
    assert_refused_whole(s, &bad); /* replaces one that is not */
    bad.steps_count = 0;
    bad.attempts = first->attempts;
    bad.attempts_count = 1;
    assert_refused_whole(s, &bad);
    bad.attempts_count = 0;
    bad.alerts = first->alerts;
    bad.alerts_count = 1;
    assert_refused_whole(s, &bad);
    bad.alerts_count = 0;
    subject_commit_all(s, &bad, 1);
    assert_int_equal(load(s, TASK_BASE)->state, RV_TASK_ERROR);
}

/* ---- keys, alerts, workflows ---- */

static void keys_are_found(void **state)
{
    struct subject *s = *state;
    struct rv_key_row rows[3] = {{RV_STR("a"), RV_STR("h1"), {TASK_BASE}},
                                 {RV_STR("A\xff"), RV_STR(""), {TASK_BASE + 1}},
                                 {RV_STR(""), RV_STR_NONE, {TASK_BASE + 2}}};
    for (int i = 0; i < 3; i++) {
        struct rv_change *change = birth_of(s, TASK_BASE + i);
        change->key = &rows[i];
        subject_commit_all(s, change, 1);
    }
    subject_restart(s);
    struct rv_str keys[4] = {RV_STR(""), RV_STR("b"), RV_STR("A\xff"), RV_STR("a")};
    struct rv_key_row found[4];
    assert_int_equal(rv_store_load_keys(s->store, &s->arena, keys, 4, found), RV_OK);
    assert_int_equal(found[0].task.value, TASK_BASE + 2);
    assert_null(found[0].body_hash.at);
    assert_int_equal(found[1].task.value, 0);
    assert_int_equal(found[2].task.value, TASK_BASE + 1);
    assert_non_null(found[2].body_hash.at);
    assert_int_equal(found[3].task.value, TASK_BASE);
    assert_true(rv_str_is(found[3].body_hash, "h1"));
    for (int i = 0; i < 4; i++)
        assert_true(rv_str_eq(found[i].key, keys[i]));
}

static void raise_alerts(struct subject *s, int64_t task, int64_t first, size_t count)
{
    struct rv_alert *alerts = RV_NEW_ARRAY(&s->arena, struct rv_alert, count);
    for (size_t i = 0; i < count; i++)
        alerts[i] = (struct rv_alert){.id = first + (int64_t)i,
                                      .task = {task},
                                      .kind = RV_ALERT_FAILED,
                                      .raised_at = s->wall,
                                      .message = RV_STR("m")};
    const struct rv_task *before = load(s, task);
    struct rv_change change = move_of(s, task, before->revision + 1, RV_TASK_ERROR);
    change.alerts = alerts;
    change.alerts_count = count;
    subject_commit_all(s, &change, 1);
}

static enum rv_err acknowledge(struct subject *s, int64_t alert, int64_t at, struct rv_str by)
{
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    struct rv_ack ack = {.alert = alert, .at = at, .by = by};
    struct rv_batch batch = {.acks = &ack, .acks_count = 1, .number = ++s->number};
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    return ack.outcome;
}

static void alerts_are_acknowledged_and_closed(void **state)
{
    struct subject *s = *state;
    struct rv_alert rows[PAGE];
    bear(s, TASK_BASE);
    bear(s, TASK_BASE + 1);
    raise_alerts(s, TASK_BASE, 10, 2);
    raise_alerts(s, TASK_BASE + 1, 20, 1);
    assert_int_equal(alerts_of(s, 0, true, rows), 3);
    assert_int_equal(rows[0].id, 20);
    assert_int_equal(rows[2].id, 10);
    assert_int_equal(acknowledge(s, 10, 77, RV_STR("ann")), RV_OK);
    assert_int_equal(acknowledge(s, 10, 88, RV_STR("bob")), RV_OK); /* the first one stands */
    assert_int_equal(acknowledge(s, 99, 77, RV_STR("ann")), RV_ERR_NOT_FOUND);
    assert_int_equal(alerts_of(s, TASK_BASE, true, rows), 1);
    assert_int_equal(rows[0].id, 11);
    assert_int_equal(alerts_of(s, TASK_BASE, false, rows), 2);
    assert_int_equal(rows[1].acked_at, 77);
    assert_true(rv_str_is(rows[1].acked_by, "ann"));

    struct rv_alert next = {.id = 30, .task = {TASK_BASE}, .kind = RV_ALERT_POISON};
    struct rv_change change = move_of(s, TASK_BASE, 3, RV_TASK_ERROR);
    change.close_alerts = true;
    change.alerts = &next;
    change.alerts_count = 1;
    s->wall += 10;
    subject_commit_all(s, &change, 1);
    assert_int_equal(alerts_of(s, TASK_BASE, true, rows), 1); /* closed before it was raised */
    assert_int_equal(rows[0].id, 30);
    assert_int_equal(alerts_of(s, TASK_BASE, false, rows), 3);
    assert_int_equal(rows[1].closed_at, s->wall);
    assert_int_equal(rows[2].closed_at, s->wall);
    assert_int_equal(alerts_of(s, TASK_BASE + 1, true, rows), 1);
}

/* It is over when its step is undone, and not when its task goes on. */
static void an_alert_of_a_late_done_closes_with_its_step(void **state)
{
    struct subject *s = *state;
    struct rv_alert rows[PAGE];
    bear(s, TASK_BASE);
    bear(s, TASK_BASE + 1);
    struct rv_alert alerts[4];
    for (uint32_t i = 0; i < 4; i++)
        alerts[i] = (struct rv_alert){.id = 10 + i,
                                      .task = {TASK_BASE},
                                      .step = i,
                                      .kind = i == 0 ? RV_ALERT_FAILED : RV_ALERT_LATE_DONE};
    struct rv_alert other = {
        .id = 20, .task = {TASK_BASE + 1}, .step = 1, .kind = RV_ALERT_LATE_DONE};
    struct rv_change change = move_of(s, TASK_BASE, 2, RV_TASK_ERROR);
    change.alerts = alerts;
    change.alerts_count = 4;
    subject_commit_all(s, &change, 1);
    change = move_of(s, TASK_BASE + 1, 2, RV_TASK_ERROR);
    change.alerts = &other;
    change.alerts_count = 1;
    subject_commit_all(s, &change, 1);
    change = move_of(s, TASK_BASE, 3, RV_TASK_ERROR);
    change.close_alerts = true;
    subject_commit_all(s, &change, 1);
    assert_int_equal(alerts_of(s, TASK_BASE, true, rows), 3);
    const uint32_t over[] = {1, 3};
    change = move_of(s, TASK_BASE, 4, RV_TASK_ERROR);
    change.late_over = over;
    change.late_over_count = 2;
    subject_commit_all(s, &change, 1);
    assert_int_equal(alerts_of(s, TASK_BASE, true, rows), 1);
    assert_int_equal(rows[0].step, 2);
    assert_int_equal(alerts_of(s, TASK_BASE + 1, true, rows), 1);
}

static void alerts_come_in_pages(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    raise_alerts(s, TASK_BASE, 1, 25);
    assert_int_equal(acknowledge(s, 13, 5, RV_STR("x")), RV_OK);
    struct rv_alert rows[10];
    for (int of_task = 0; of_task < 2; of_task++) {
        int64_t before = 0;
        int64_t wanted = 25;
        size_t count = 0;
        do {
            assert_int_equal(s->ops->list_alerts(s->store, &s->arena,
                                                 (struct rv_task_id){of_task ? TASK_BASE : 0}, true,
                                                 before, 10, rows, &count),
                             RV_OK);
            for (size_t i = 0; i < count; i++) {
                wanted -= wanted == 13;
                assert_int_equal(rows[i].id, wanted--);
            }
            before = rows[count - 1].id;
        } while (count == 10);
        assert_int_equal(wanted, 0);
    }
}

static enum rv_err raise_one(struct subject *s, int64_t id, struct rv_str source)
{
    struct rv_raise raise = {
        .alert = {.id = id, .kind = RV_ALERT_REPORTED, .raised_at = 7, .source = source}};
    struct rv_batch batch = {.raises = &raise, .raises_count = 1, .number = ++s->number};
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    return raise.outcome;
}

static int64_t found_of(struct subject *s, struct rv_str source)
{
    struct rv_alert alert;
    bool found = false;
    assert_int_equal(s->ops->find_alert(s->store, &s->arena, source, &alert, &found), RV_OK);
    assert_true(!found || rv_str_eq(alert.source, source));
    return found ? alert.id : 0;
}

static void one_alert_of_a_source_is_open(void **state)
{
    struct subject *s = *state;
    struct rv_alert rows[PAGE];
    bear(s, TASK_BASE);
    raise_alerts(s, TASK_BASE, 1, 2);
    assert_int_equal(raise_one(s, 10, RV_STR("a")), RV_OK);
    assert_int_equal(raise_one(s, 11, RV_STR("b")), RV_OK);
    assert_int_equal(raise_one(s, 12, RV_STR("a")), RV_ERR_DUPLICATE);
    subject_restart(s);
    assert_int_equal(acknowledge(s, 10, 5, RV_STR("x")), RV_OK);
    assert_int_equal(found_of(s, RV_STR("a")), 0);
    assert_int_equal(raise_one(s, 13, RV_STR("a")), RV_OK); /* something new has happened */
    assert_int_equal(raise_one(s, 14, RV_STR("a")), RV_ERR_DUPLICATE);
    assert_int_equal(found_of(s, RV_STR("a")), 13);
    assert_int_equal(found_of(s, RV_STR("b")), 11);
    assert_int_equal(found_of(s, RV_STR("")), 0);
    assert_int_equal(alerts_of(s, TASK_BASE, false, rows), 2);
    assert_int_equal(alerts_of(s, 0, true, rows), 4);
    assert_int_equal(rows[0].id, 13);
    assert_int_equal(rows[0].task.value, 0);
}

static void a_load_tells_which_workflows_names_mean(void **state)
{
    struct subject *s = *state;
    publish_shop(s);
    const struct rv_workflow_name names[] = {{RV_STR("shop"), RV_STR("order"), RV_STR_NONE},
                                             {RV_STR("shop"), RV_STR("order"), RV_STR("2.0.0")},
                                             {RV_STR("shop"), RV_STR("order"), RV_STR("3.0.0")}};
    struct rv_wants load = {.arena = &s->arena, .names = names, .names_count = 3};
    assert_int_equal(s->ops->load(s->store, &load), RV_OK);
    assert_int_equal(load.tasks_count, 0);
    assert_int_equal(load.name_ids[0], 2);
    assert_int_equal(load.name_ids[1], 3);
    assert_int_equal(load.name_ids[2], 0);
}

/* Its one server makes every change itself. */
static void an_embedded_store_has_no_versions(void **state)
{
    struct subject *s = *state;
    publish_shop(s);
    struct rv_record_change key = {
        .row = {.kind = RV_STR(RV_RECORD_API_KEY), .key = RV_STR("a"), .value = RV_STR("1")}};
    subject_record(s, &key, 1);
    struct rv_wants load = {.arena = &s->arena};
    memset(load.registry, 1, sizeof load.registry);
    assert_int_equal(s->ops->load(s->store, &load), RV_OK);
    for (int i = 0; i < RV_REGISTRY_COUNT; i++)
        assert_int_equal(load.registry[i], 0);
}

static void workflows_are_found(void **state)
{
    struct subject *s = *state;
    publish_shop(s);
    const struct rv_workflow_row *row = NULL;
    assert_int_equal(s->ops->find_workflow(s->store, &s->arena, RV_STR("shop"), RV_STR("order"),
                                           RV_STR_NONE, &row),
                     RV_OK);
    assert_int_equal(row->id, 2); /* the one published last */
    assert_int_equal(s->ops->find_workflow(s->store, &s->arena, RV_STR("shop"), RV_STR("order"),
                                           RV_STR("2.0.0"), &row),
                     RV_OK);
    assert_int_equal(row->id, 3);
    assert_int_equal(s->ops->find_workflow(s->store, &s->arena, RV_STR("shop"), RV_STR("order"),
                                           RV_STR("3.0.0"), &row),
                     RV_OK);
    assert_null(row);
    assert_int_equal(s->ops->load_workflow(s->store, &s->arena, 4, &row), RV_OK);
    assert_true(rv_str_is(row->name, "return"));
    assert_int_equal(s->ops->load_workflow(s->store, &s->arena, 6, &row), RV_OK);
    assert_null(row);
    static const int64_t order[] = {5, 2, 3, 1, 4};
    for (size_t skip = 0; skip < 5; skip++) {
        struct rv_workflow_row rows[2];
        size_t count = 0;
        assert_int_equal(s->ops->list_workflows(s->store, &s->arena, skip, 2, rows, &count), RV_OK);
        assert_int_equal(count, skip < 4 ? 2 : 1);
        assert_int_equal(rows[0].id, order[skip]);
    }
    const struct rv_workflow_row twice = {
        9, 500, RV_STR("shop"), RV_STR("order"), RV_STR("1.0.0"), RV_STR("z"), RV_STR("{}")};
    publish(s, &twice, 1, RV_ERR_INVALID);
    const struct rv_workflow_row same_id = {1,           500,         RV_STR("new"), RV_STR("x"),
                                            RV_STR("1"), RV_STR("z"), RV_STR("{}")};
    publish(s, &same_id, 1, RV_ERR_INVALID);
    assert_int_equal(s->ops->load_workflow(s->store, &s->arena, 9, &row), RV_OK);
    assert_null(row);
}

int main(void)
{
    static const struct suite_case cases[] = {
        SUITE_CASE(every_field_comes_back_as_it_was),
        SUITE_CASE(loads_find_rows_or_say_that_there_are_none),
        SUITE_CASE(loads_of_many_rows_find_each_in_its_place),
        SUITE_CASE(a_full_arena_is_a_limit),
        SUITE_CASE(one_stale_and_one_duplicate_of_a_thousand),
        SUITE_CASE(revisions_guard_inserts_and_updates),
        SUITE_CASE(the_row_before_is_no_guard),
        SUITE_CASE(changes_of_one_batch_see_each_other),
        SUITE_CASE(the_deposed_write_nothing),
        SUITE_CASE(a_batch_that_cannot_be_written_leaves_nothing),
        SUITE_CASE(keys_are_found),
        SUITE_CASE(alerts_are_acknowledged_and_closed),
        SUITE_CASE(an_alert_of_a_late_done_closes_with_its_step),
        SUITE_CASE(alerts_come_in_pages),
        SUITE_CASE(one_alert_of_a_source_is_open),
        SUITE_CASE(workflows_are_found),
        SUITE_CASE(a_load_tells_which_workflows_names_mean),
        SUITE_CASE(an_embedded_store_has_no_versions),
    };
    return suite_run("store", cases, sizeof cases / sizeof cases[0]);
}
