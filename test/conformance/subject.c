#include "subject.h"

#include "sim/store/memory/memory.h"
#include "store/sqlite/sqlite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 7 }; /* small and odd, so that every list is read in several pages */

static int64_t wall_now(void *self)
{
    return ((struct subject *)self)->wall;
}

static struct rv_wall_clock clock_of(struct subject *subject)
{
    return (struct rv_wall_clock){.now = wall_now, .self = subject};
}

/* ---- backends ---- */

static void memory_create(struct subject *subject)
{
    assert_int_equal(rv_store_memory_data_new(&subject->memory_data), RV_OK);
}

static void memory_open(struct subject *subject)
{
    assert_int_equal(rv_store_memory_open(subject->memory_data, clock_of(subject), &subject->store),
                     RV_OK);
}

static void memory_destroy(struct subject *subject)
{
    rv_store_memory_data_free(subject->memory_data);
}

static void sqlite_create(struct subject *subject)
{
    const char *base = getenv("TMPDIR");
    snprintf(subject->directory, sizeof subject->directory, "%s/reeve-store-XXXXXX",
             base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(subject->directory));
    snprintf(subject->path, sizeof subject->path, "%s/reeve.db", subject->directory);
}

static void sqlite_open_with(struct subject *subject, size_t apart_bytes)
{
    struct rv_store_sqlite_fault fault;
    struct rv_store_sqlite_options options = {.path = subject->path,
                                              .clock = clock_of(subject),
                                              .vfs = subject->vfs,
                                              .checkpoint_pages = subject->checkpoint_pages,
                                              .apart_bytes = apart_bytes};
    enum rv_err err = rv_store_sqlite_open(&options, &subject->store, &fault);
    if (err != RV_OK)
        fail_msg("%s", fault.message);
}

static void sqlite_open(struct subject *subject)
{
    sqlite_open_with(subject, 0);
}

/* Nearly all texts stand apart from their rows. */
static void sqlite_apart_open(struct subject *subject)
{
    sqlite_open_with(subject, 3);
}

static void sqlite_destroy(struct subject *subject)
{
    static const char *const suffixes[] = {"", "-wal", ".lock"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char name[sizeof subject->path + 8];
        snprintf(name, sizeof name, "%s%s", subject->path, suffixes[i]);
        unlink(name);
    }
    assert_int_equal(rmdir(subject->directory), 0);
}

const struct factory factories[] = {
    {"memory", memory_create, memory_open, memory_destroy},
    {"sqlite", sqlite_create, sqlite_open, sqlite_destroy},
    {"sqlite_apart", sqlite_create, sqlite_apart_open, sqlite_destroy},
};
const size_t factories_count = sizeof factories / sizeof factories[0];

/* ---- life ---- */

void subject_open(struct subject *subject)
{
    subject->factory->open(subject);
    subject->ops = subject->store->ops;
    subject->enlistment.lease_ms = 5000;
    assert_int_equal(
        subject->ops->enlist(subject->store, RV_STR("boot"), getpid(), &subject->enlistment),
        RV_OK);
    subject->number = 0;
}

void subject_init(struct subject *subject, const struct factory *factory)
{
    *subject = (struct subject){.factory = factory, .wall = INT64_C(1790000000000)};
    rv_arena_init(&subject->arena, 0);
    factory->create(subject);
    subject_open(subject);
}

void subject_done(struct subject *subject)
{
    if (subject->store != NULL)
        subject->ops->close(subject->store);
    subject->factory->destroy(subject);
    rv_arena_done(&subject->arena);
}

void subject_restart(struct subject *subject)
{
    subject->ops->close(subject->store);
    subject->store = NULL;
    subject_open(subject);
}

enum rv_err subject_commit(struct subject *subject, struct rv_change *changes, size_t count)
{
    int64_t now;
    assert_int_equal(subject->ops->begin(subject->store, NULL, &now), RV_OK);
    struct rv_batch batch = {
        .changes = changes, .changes_count = count, .number = ++subject->number};
    return subject->ops->commit(subject->store, &batch);
}

void subject_commit_all(struct subject *subject, struct rv_change *changes, size_t count)
{
    assert_int_equal(subject_commit(subject, changes, count), RV_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(changes[i].outcome, RV_OK);
}

/* ---- rows ---- */

struct rv_task plain_task(int64_t id, int64_t revision)
{
    return (struct rv_task){.id = {id},
                            .revision = revision,
                            .workflow = 1,
                            .state = RV_TASK_PROCESSING,
                            .priority = 5,
                            .created_at = 1,
                            .input = RV_STR("{}")};
}

struct rv_step plain_step(uint32_t number)
{
    return (struct rv_step){.number = number,
                            .state = RV_STEP_PENDING,
                            .visit = 1,
                            .reference = RV_STR("/do/0/reserveStock"),
                            .agent = RV_STR("inventory")};
}

struct rv_str random_str(struct subject *subject, struct rv_prng *prng)
{
    return row_random_text(prng, &subject->arena);
}

/* Of a task that is inserted they are a row each. */
static struct rv_str random_tags(struct subject *subject, struct rv_prng *prng)
{
    uint64_t kind = rv_prng_below(prng, 4);
    if (kind < 2)
        return RV_STR_NONE;
    return rv_arena_printf(&subject->arena, "{\"city\":\"%s\",\"n\":\"%d\"}",
                           kind == 2 ? "Bonn" : "K\\u00f6ln", (int)rv_prng_below(prng, 5));
}

struct rv_task random_task(struct subject *subject, struct rv_prng *prng, int64_t id)
{
    struct rv_task task;
    row_random(&rv_row_task, id, prng, &subject->arena, &task);
    task.tags = random_tags(subject, prng);
    return task;
}

struct rv_step random_step(struct subject *subject, struct rv_prng *prng, uint32_t number)
{
    struct rv_step step;
    row_random(&rv_row_step, 0, prng, &subject->arena, &step);
    step.number = number;
    return step;
}

struct rv_attempt random_attempt(struct subject *subject, struct rv_prng *prng, int64_t task,
                                 uint32_t step, uint32_t number)
{
    struct rv_attempt attempt;
    row_random(&rv_row_attempt, task, prng, &subject->arena, &attempt);
    attempt.step.number = step;
    attempt.number = number;
    return attempt;
}

struct rv_late_reply random_late_reply(struct subject *subject, struct rv_prng *prng, int64_t task)
{
    struct rv_late_reply late;
    row_random(&rv_row_late_reply, task, prng, &subject->arena, &late);
    return late;
}

struct rv_alert random_alert(struct subject *subject, struct rv_prng *prng, int64_t id,
                             int64_t task)
{
    struct rv_alert alert;
    row_random(&rv_row_alert, task, prng, &subject->arena, &alert);
    alert.id = id;
    if (rv_prng_below(prng, 2) == 1)
        alert.acked_at = 0;
    if (rv_prng_below(prng, 2) == 1)
        alert.closed_at = 0;
    return alert;
}

/* ---- dumps ---- */

static void dump_of_task(struct rv_buf *out, struct subject *s, const struct rv_task *task)
{
    size_t count = 0;
    row_dump(out, &rv_row_task, task);
    struct rv_step steps[PAGE];
    uint32_t after = 0;
    do {
        assert_int_equal(s->ops->list_steps(s->store, &s->arena, RV_COLUMNS_ALL, task->id, after,
                                            PAGE, steps, &count),
                         RV_OK);
        for (size_t i = 0; i < count; i++)
            row_dump(out, &rv_row_step, &steps[i]);
        after = count > 0 ? steps[count - 1].number : 0;
    } while (count == PAGE);
    struct rv_attempt attempts[PAGE] = {{.number = 0}};
    struct rv_attempt last = {.number = 0};
    do {
        assert_int_equal(s->ops->list_attempts(s->store, &s->arena,
                                               (struct rv_step_id){task->id, 0}, last.step.number,
                                               last.number, PAGE, attempts, &count),
                         RV_OK);
        for (size_t i = 0; i < count; i++)
            row_dump(out, &rv_row_attempt, &attempts[i]);
        last = attempts[count > 0 ? count - 1 : 0];
    } while (count == PAGE);
    enum { LATE_MAX = 1000 };
    struct rv_late_reply *late = RV_NEW_ARRAY(&s->arena, struct rv_late_reply, LATE_MAX);
    assert_int_equal(s->ops->list_late_replies(s->store, &s->arena, RV_COLUMNS_ALL,
                                               (struct rv_step_id){task->id, 0}, 0, 0, LATE_MAX,
                                               late, &count),
                     RV_OK);
    for (size_t i = 0; i < count; i++)
        row_dump(out, &rv_row_late_reply, &late[i]);
    dump_messages(out, s, task->id);
    dump_history(out, s, task->id);
}

static void dump_tasks(struct rv_buf *out, struct subject *s)
{
    struct rv_task_filter filter = {.by_state = false};
    struct rv_task tasks[PAGE];
    size_t count = 0;
    bool more = true;
    while (more) {
        struct rv_task_id next = {0};
        assert_int_equal(s->ops->list_tasks(s->store, &s->arena, RV_COLUMNS_ALL, &filter, PAGE,
                                            tasks, &count, &next),
                         RV_OK);
        for (size_t i = 0; i < count; i++)
            dump_of_task(out, s, &tasks[i]);
        filter.before = count == PAGE ? tasks[count - 1].id : next;
        more = filter.before.value != 0;
    }
}

static void dump_records(struct rv_buf *out, struct subject *s, struct rv_str kind)
{
    struct rv_record rows[PAGE];
    struct rv_str after = RV_STR_NONE;
    size_t count = 0;
    do {
        assert_int_equal(
            s->ops->list_records(s->store, &s->arena, kind, RV_STR_NONE, after, PAGE, rows, &count),
            RV_OK);
        for (size_t i = 0; i < count; i++)
            row_dump(out, &rv_row_record, &rows[i]);
        after = count > 0 ? rows[count - 1].key : after;
    } while (count == PAGE);
}

void dump_store(struct rv_buf *out, struct subject *s)
{
    size_t count = 0;
    dump_tasks(out, s);
    struct rv_alert alerts[PAGE];
    int64_t before = 0;
    do {
        assert_int_equal(s->ops->list_alerts(s->store, &s->arena, (struct rv_task_id){0}, false,
                                             before, PAGE, alerts, &count),
                         RV_OK);
        for (size_t i = 0; i < count; i++)
            row_dump(out, &rv_row_alert, &alerts[i]);
        before = count > 0 ? alerts[count - 1].id : 0;
    } while (count == PAGE);
    struct rv_workflow_row workflows[PAGE];
    size_t skip = 0;
    do {
        assert_int_equal(s->ops->list_workflows(s->store, &s->arena, skip, PAGE, workflows, &count),
                         RV_OK);
        for (size_t i = 0; i < count; i++)
            row_dump(out, &rv_row_workflow, &workflows[i]);
        skip += count;
    } while (count == PAGE);
    dump_records(out, s, RV_STR("kind"));
    dump_records(out, s, RV_STR("note"));
    dump_records(out, s, RV_STR("notes"));
    assert_int_equal(out->failed, RV_OK);
}

void assert_dumps_equal(const struct rv_buf *got, const struct rv_buf *wanted)
{
    if (got->len == wanted->len && memcmp(got->at, wanted->at, got->len) == 0)
        return;
    size_t at = 0;
    size_t line = 0;
    for (; at < got->len && at < wanted->len && got->at[at] == wanted->at[at]; at++)
        line = got->at[at] == '\n' ? at + 1 : line;
    fail_msg("stores differ in: %.120s ... at: %.60s instead of: %.60s", got->at + line,
             at < got->len ? got->at + at : "", at < wanted->len ? wanted->at + at : "");
}

uint64_t seed_of_run(void)
{
    const char *given = getenv("REEVE_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 20261121;
    print_message("# seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* ---- changes ---- */

/* An insert of a plain task with its first step. */
struct birth {
    struct rv_task task;
    struct rv_step step;
    const struct rv_step *steps[1];
    bool steps_new[1];
    struct rv_change change;
};

struct rv_change *birth_of(struct subject *s, int64_t id)
{
    struct birth *birth = RV_NEW(&s->arena, struct birth);
    birth->task = plain_task(id, 1);
    birth->step = plain_step(1);
    birth->steps[0] = &birth->step;
    birth->steps_new[0] = true;
    birth->change = (struct rv_change){.task = &birth->task,
                                       .steps = birth->steps,
                                       .steps_new = birth->steps_new,
                                       .steps_count = 1};
    return &birth->change;
}

void bear(struct subject *s, int64_t id)
{
    subject_commit_all(s, birth_of(s, id), 1);
}

/* A change of a plain task's row alone. */
struct rv_change move_of(struct subject *s, int64_t id, int64_t revision, enum rv_task_state state)
{
    struct rv_task *task = RV_NEW(&s->arena, struct rv_task);
    *task = plain_task(id, revision);
    task->state = state;
    return (struct rv_change){.task = task, .revision_before = revision - 1};
}

const struct rv_task *load(struct subject *s, int64_t id)
{
    const struct rv_task *task = NULL;
    struct rv_task_id of = {id};
    assert_int_equal(s->ops->load_tasks(s->store, &s->arena, RV_COLUMNS_ALL, &of, 1, &task), RV_OK);
    return task;
}

const struct rv_step *load_step(struct subject *s, int64_t id, uint32_t number)
{
    const struct rv_step *step = NULL;
    struct rv_step_id of = {{id}, number};
    assert_int_equal(s->ops->load_steps(s->store, &s->arena, RV_COLUMNS_ALL, &of, 1, &step), RV_OK);
    return step;
}

void random_change(struct subject *s, struct rv_prng *prng, int64_t id, struct rv_change *change,
                   struct rv_buf *dump)
{
    struct rv_task *task = RV_NEW(&s->arena, struct rv_task);
    struct rv_step *steps = RV_NEW_ARRAY(&s->arena, struct rv_step, MANY);
    const struct rv_step **rows = RV_NEW_ARRAY(&s->arena, const struct rv_step *, MANY);
    bool *inserts = RV_NEW_ARRAY(&s->arena, bool, MANY);
    struct rv_attempt *attempts = RV_NEW_ARRAY(&s->arena, struct rv_attempt, MANY);
    struct rv_late_reply *late = RV_NEW_ARRAY(&s->arena, struct rv_late_reply, MANY);
    *task = random_task(s, prng, id);
    row_dump(dump, &rv_row_task, task);
    for (uint32_t i = 0; i < MANY; i++) {
        steps[i] = random_step(s, prng, i + 1);
        rows[i] = &steps[i];
        inserts[i] = true;
        row_dump(dump, &rv_row_step, &steps[i]);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        attempts[i] = random_attempt(s, prng, id, 1 + i / 5, 1 + i % 5);
        row_dump(dump, &rv_row_attempt, &attempts[i]);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        late[i] = random_late_reply(s, prng, id);
        row_dump(dump, &rv_row_late_reply, &late[i]);
    }
    *change = (struct rv_change){.task = task,
                                 .steps = rows,
                                 .steps_new = inserts,
                                 .steps_count = MANY,
                                 .attempts = attempts,
                                 .attempts_count = MANY,
                                 .late_replies = late,
                                 .late_replies_count = MANY};
}

void publish(struct subject *s, const struct rv_workflow_row *rows, size_t count,
             enum rv_err wanted)
{
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    struct rv_batch batch = {.workflows = rows, .workflows_count = count, .number = ++s->number};
    assert_int_equal(s->ops->commit(s->store, &batch), wanted);
}

void publish_shop(struct subject *s)
{
    const struct rv_workflow_row rows[] = {
        {1, 100, RV_STR("shop"), RV_STR("order"), RV_STR("1.0.0"), RV_STR("a"), RV_STR("{}")},
        {2, 300, RV_STR("shop"), RV_STR("order"), RV_STR("1.0.1"), RV_STR("b"), RV_STR("{}")},
        {3, 200, RV_STR("shop"), RV_STR("order"), RV_STR("2.0.0"), RV_STR("c"), RV_STR("{}")},
        {4, 300, RV_STR("shop"), RV_STR("return"), RV_STR("1.0.0"), RV_STR("d"), RV_STR("{}")},
        {5, 400, RV_STR("lab"), RV_STR("order"), RV_STR("1.0.0"), RV_STR("e"), RV_STR("{}")},
    };
    publish(s, rows, 5, RV_OK);
}

void subject_record(struct subject *s, struct rv_record_change *records, size_t count)
{
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    struct rv_batch batch = {.records = records, .records_count = count, .number = ++s->number};
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
}

/* ---- running a suite ---- */

static int suite_setup(void **state)
{
    struct subject *subject = calloc(1, sizeof *subject);
    assert_non_null(subject);
    subject_init(subject, *state);
    *state = subject;
    return 0;
}

static int suite_teardown(void **state)
{
    subject_done(*state);
    free(*state);
    return 0;
}

int suite_run(const char *name, const struct suite_case *cases, size_t cases_count)
{
    enum { TESTS_MAX = 128, FACTORIES_MAX = 8, NAME_BYTES = 96 };
    static char names[TESTS_MAX][NAME_BYTES];
    static struct factory chosen[FACTORIES_MAX]; /* cmocka's states are not const */
    static struct CMUnitTest tests[TESTS_MAX];
    size_t count = 0;
    for (size_t f = 0; f < factories_count; f++) {
        chosen[f] = factories[f];
        for (size_t c = 0; c < cases_count; c++, count++) {
            snprintf(names[count], NAME_BYTES, "%s: %s", factories[f].name, cases[c].name);
            tests[count] = (struct CMUnitTest){names[count], cases[c].run, suite_setup,
                                               suite_teardown, &chosen[f]};
        }
    }
    return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
}

size_t subject_scan(struct subject *s, struct rv_scan *scan)
{
    struct rv_wants load = {.arena = &s->arena, .scan = scan};
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, &load, &now), RV_OK);
    s->ops->rollback(s->store);
    return scan->count;
}
