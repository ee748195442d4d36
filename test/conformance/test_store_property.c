/* The same random batches on every store: the same outcomes, and the same rows in the end. */
#include "subject.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 120, CHANGES_MAX = 24, TASKS_MAX = 60, KEYS = 12, DUMP_EVERY = 10 };
enum { SUBJECTS_MAX = 4, RECORDS = 3 };

struct world {
    struct rv_prng prng;
    struct subject subjects[SUBJECTS_MAX]; /* the first makes the rows; all store them */
    size_t subjects_count;
    int64_t revisions[TASKS_MAX]; /* as stored; 0: no such task */
    uint32_t steps[TASKS_MAX];    /* its steps are 1 to this */
    int64_t alert_next;
    int64_t epoch;
};

static struct rv_key_row *random_key(struct world *w, int64_t task)
{
    struct subject *s = &w->subjects[0];
    struct rv_key_row *key = RV_NEW(&s->arena, struct rv_key_row);
    int number = (int)rv_prng_below(&w->prng, KEYS);
    *key = (struct rv_key_row){
        rv_arena_printf(&s->arena, "key %d", number), random_str(s, &w->prng), {task}};
    return key;
}

/* Replaces some steps and adds some; now and then it breaks a rule, and so the whole batch. */
static void random_steps(struct world *w, size_t task, struct rv_change *change)
{
    enum { STEPS_MAX = 4 };
    struct subject *s = &w->subjects[0];
    size_t count = (size_t)rv_prng_below(&w->prng, STEPS_MAX + 1);
    const struct rv_step **rows = RV_NEW_ARRAY(&s->arena, const struct rv_step *, STEPS_MAX);
    bool *inserts = RV_NEW_ARRAY(&s->arena, bool, STEPS_MAX);
    uint32_t newest = change->revision_before == 0 ? 0 : w->steps[task];
    for (size_t i = 0; i < count; i++) {
        struct rv_step *step = RV_NEW(&s->arena, struct rv_step);
        inserts[i] = newest == 0 || rv_prng_below(&w->prng, 2) == 0;
        uint32_t number = inserts[i] ? ++newest : 1 + (uint32_t)rv_prng_below(&w->prng, newest);
        if (rv_prng_below(&w->prng, 400) == 0)
            inserts[i] = !inserts[i];
        *step = random_step(s, &w->prng, number);
        rows[i] = step;
    }
    change->steps = rows;
    change->steps_new = inserts;
    change->steps_count = count;
}

static void random_ledgers(struct world *w, struct rv_change *change)
{
    struct subject *s = &w->subjects[0];
    int64_t id = change->task->id.value;
    struct rv_attempt *attempt = RV_NEW(&s->arena, struct rv_attempt);
    static const uint32_t over[] = {1, 2};
    struct rv_late_reply *late = RV_NEW(&s->arena, struct rv_late_reply);
    struct rv_alert *alert = RV_NEW(&s->arena, struct rv_alert);
    *attempt = random_attempt(s, &w->prng, id, 1 + (uint32_t)rv_prng_below(&w->prng, 3),
                              (uint32_t)change->task->revision);
    *late = random_late_reply(s, &w->prng, id);
    *alert = random_alert(s, &w->prng, w->alert_next++, id);
    change->attempts = attempt;
    change->attempts_count = rv_prng_below(&w->prng, 3) == 0;
    change->late_replies = late;
    change->late_replies_count = rv_prng_below(&w->prng, 4) == 0;
    change->alerts = alert;
    change->alerts_count = rv_prng_below(&w->prng, 4) == 0;
    change->close_alerts = rv_prng_below(&w->prng, 6) == 0;
    change->late_over = over;
    change->late_over_count = rv_prng_below(&w->prng, 3);
}

/* `pending` are the revisions as they will be if all of this batch goes through. */
static struct rv_change random_plan(struct world *w, int64_t *pending, size_t *ret_task)
{
    struct subject *s = &w->subjects[0];
    size_t index = (size_t)rv_prng_below(&w->prng, TASKS_MAX);
    bool stale = rv_prng_below(&w->prng, 20) == 0;
    int64_t before = pending[index] + (stale ? 1 : 0);
    struct rv_task *task = RV_NEW(&s->arena, struct rv_task);
    *task = random_task(s, &w->prng, 100 + (int64_t)index * 7);
    task->revision = before + 1;
    task->workflow = 1 + (int64_t)rv_prng_below(&w->prng, 5);
    struct rv_change change = {.task = task, .revision_before = before};
    if (rv_prng_below(&w->prng, 30) == 0)
        change.epoch = w->epoch - 1;
    else if (rv_prng_below(&w->prng, 3) == 0)
        change.epoch = w->epoch;
    if (before == 0 && rv_prng_below(&w->prng, 2) == 0)
        change.key = random_key(w, task->id.value);
    *ret_task = index;
    random_steps(w, index, &change);
    random_ledgers(w, &change);
    return change;
}

/* Puts and removals of few keys in two kinds, now and then by a deposed supervisor. */
static void random_records(struct world *w, struct rv_record_change *records)
{
    struct subject *s = &w->subjects[0];
    for (size_t i = 0; i < RECORDS; i++) {
        int number = (int)rv_prng_below(&w->prng, KEYS);
        records[i] = (struct rv_record_change){
            .row = {.at = (int64_t)rv_prng_below(&w->prng, 1000),
                    .kind = rv_prng_below(&w->prng, 3) == 0 ? RV_STR("notes") : RV_STR("note"),
                    .key = rv_arena_printf(&s->arena, "key %d", number),
                    .value = random_str(s, &w->prng)},
            .gone = rv_prng_below(&w->prng, 3) == 0,
            .epoch = rv_prng_below(&w->prng, 10) == 0 ? w->epoch - 1 : 0};
    }
}

/* What one batch has beside its changes. */
struct beside {
    struct rv_ack ack;
    struct rv_record_change records[RECORDS];
};

/* *outcomes: of the changes, the acknowledgement and the records. */
static enum rv_err commit_on(struct subject *s, const struct rv_change *changes, size_t count,
                             struct beside beside, enum rv_err *outcomes)
{
    struct rv_change copy[CHANGES_MAX];
    memcpy(copy, changes, count * sizeof copy[0]);
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    struct rv_batch batch = {.changes = copy,
                             .changes_count = count,
                             .acks = &beside.ack,
                             .acks_count = 1,
                             .records = beside.records,
                             .records_count = RECORDS,
                             .number = ++s->number};
    enum rv_err err = s->ops->commit(s->store, &batch);
    for (size_t i = 0; i < count; i++)
        outcomes[i] = copy[i].outcome;
    outcomes[count] = beside.ack.outcome;
    for (size_t i = 0; i < RECORDS; i++)
        outcomes[count + 1 + i] = beside.records[i].outcome;
    return err;
}

/* What the model knows of the tasks after a batch went through. */
static void model_note(struct world *w, const struct rv_change *changes, const size_t *tasks,
                       const enum rv_err *outcomes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (outcomes[i] != RV_OK)
            continue;
        w->revisions[tasks[i]] = changes[i].task->revision;
        for (size_t n = 0; n < changes[i].steps_count; n++) {
            if (changes[i].steps_new[n])
                w->steps[tasks[i]] = changes[i].steps[n]->number;
        }
    }
}

static void one_batch(struct world *w)
{
    struct rv_change changes[CHANGES_MAX];
    size_t tasks[CHANGES_MAX];
    enum rv_err first[CHANGES_MAX + 1 + RECORDS];
    int64_t pending[TASKS_MAX];
    bool taken[TASKS_MAX] = {false};
    memcpy(pending, w->revisions, sizeof pending);
    size_t count = 0;
    for (size_t wanted = 1 + (size_t)rv_prng_below(&w->prng, CHANGES_MAX); wanted > 0; wanted--) {
        changes[count] = random_plan(w, pending, &tasks[count]);
        if (taken[tasks[count]]) { /* a second change of a task is of its row alone */
            changes[count].steps_count = 0;
            changes[count].attempts_count = 0;
        }
        taken[tasks[count]] = true;
        count++;
    }
    struct beside beside = {
        .ack = {.alert = 1 + (int64_t)rv_prng_below(&w->prng, (uint64_t)w->alert_next),
                .at = 1 + (int64_t)rv_prng_below(&w->prng, 1000),
                .by = random_str(&w->subjects[0], &w->prng)}};
    random_records(w, beside.records);
    enum rv_err err = commit_on(&w->subjects[0], changes, count, beside, first);
    for (size_t i = 1; i < w->subjects_count; i++) {
        enum rv_err other[CHANGES_MAX + 1 + RECORDS];
        assert_int_equal(commit_on(&w->subjects[i], changes, count, beside, other), err);
        if (err == RV_OK)
            assert_memory_equal(other, first, (count + 1 + RECORDS) * sizeof first[0]);
    }
    assert_true(err == RV_OK || err == RV_ERR_INVALID);
    if (err == RV_OK)
        model_note(w, changes, tasks, first, count);
}

static void compare(struct world *w)
{
    struct rv_buf wanted;
    struct rv_buf got;
    rv_buf_init(&wanted, 256 << 20);
    rv_buf_init(&got, 256 << 20);
    dump_store(&wanted, &w->subjects[0]);
    for (size_t i = 1; i < w->subjects_count; i++) {
        rv_buf_reset(&got);
        dump_store(&got, &w->subjects[i]);
        assert_dumps_equal(&got, &wanted);
    }
    rv_buf_done(&wanted);
    rv_buf_done(&got);
}

static void claim(struct world *w)
{
    for (size_t i = 0; i < w->subjects_count; i++) {
        struct subject *s = &w->subjects[i];
        int64_t epoch;
        int64_t until;
        assert_int_equal(
            s->ops->claim_role(s->store, RV_STR(RV_ROLE_SUPERVISOR), 1000, &epoch, &until), RV_OK);
        assert_true(i == 0 || epoch == w->epoch);
        w->epoch = epoch;
    }
}

static void restart(struct world *w)
{
    for (size_t i = 0; i < w->subjects_count; i++) {
        struct subject *s = &w->subjects[i];
        s->wall += 1000;
        subject_restart(s);
        assert_int_equal(s->enlistment.open_tasks, w->subjects[0].enlistment.open_tasks);
        assert_int_equal(s->enlistment.last_alive_at, w->subjects[0].enlistment.last_alive_at);
        assert_int_equal(s->enlistment.instance, w->subjects[0].enlistment.instance);
    }
    claim(w);
}

static void all_stores_do_the_same(void **state)
{
    (void)state;
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    rv_prng_init(&w->prng, seed_of_run());
    w->alert_next = 1;
    w->subjects_count = factories_count;
    for (size_t i = 0; i < factories_count; i++) {
        subject_init(&w->subjects[i], &factories[i]);
        publish_shop(&w->subjects[i]);
    }
    claim(w);
    for (int round = 1; round <= ROUNDS; round++) {
        for (size_t i = 0; i < w->subjects_count; i++)
            w->subjects[i].wall += 10;
        one_batch(w);
        if (round % DUMP_EVERY == 0)
            compare(w);
        if (rv_prng_below(&w->prng, 15) == 0)
            restart(w);
        for (size_t i = 0; i < w->subjects_count; i++)
            rv_arena_reset(&w->subjects[i].arena);
    }
    for (size_t i = 0; i < w->subjects_count; i++)
        subject_done(&w->subjects[i]);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_stores_do_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
