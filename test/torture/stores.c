/* The stores by themselves: a batch is written whole or not at all, a list is whole or refused, and
 * a store that could not be opened can be opened the next time. */
#include "../conformance/subject.h"
#include "faults.h"
#include "store/load.h"
#include "store/sqlite/sqlite.h"
#include "torture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DUMP_BYTES_MAX = 1 << 20, TASKS = 2, FIRST = 1000000 };

static const struct factory *factory_of(const struct torture *t)
{
    const char *name = strchr(t->scenario->name, '/');
    for (size_t i = 0; name != NULL && i < factories_count; i++)
        if (strcmp(name + 1, factories[i].name) == 0)
            return &factories[i];
    EXPECT(false, "no store is named");
}

static uint64_t hash_of(const struct rv_buf *text)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < text->len; i++)
        hash = hash * 31 + (unsigned char)text->at[i];
    return hash;
}

static uint64_t hash_of_store(struct subject *s)
{
    struct rv_buf dump;
    rv_buf_init(&dump, DUMP_BYTES_MAX);
    dump_store(&dump, s);
    EXPECT(dump.failed == RV_OK, "the store holds too much");
    uint64_t hash = hash_of(&dump);
    rv_buf_done(&dump);
    return hash;
}

/* ---- batches ---- */

static enum rv_err batch_commit(struct subject *s, struct rv_batch *batch)
{
    int64_t now;
    enum rv_err err = s->ops->begin(s->store, NULL, &now);
    return err == RV_OK ? s->ops->commit(s->store, batch) : err;
}

/* Until it is written. After a commit of unknown outcome the store is opened again and asked. */
static void batch_write(struct torture *t, struct subject *s, struct rv_batch *batch)
{
    uint64_t before = hash_of_store(s);
    for (int tries = 0;; tries++) {
        enum rv_err err;
        batch->number = ++s->number;
        IN_PRODUCT(err = batch_commit(s, batch));
        if (err == RV_OK)
            return;
        bool again = err != RV_ERR_COMMIT_UNKNOWN;
        if (err == RV_ERR_COMMIT_UNKNOWN) {
            faults_heal();
            subject_restart(s);
            again = hash_of_store(s) == before;
        }
        EXPECT(!again || hash_of_store(s) == before, "a batch that failed has left something");
        if (!again)
            return;
        torture_again(t, err == RV_ERR_COMMIT_UNKNOWN ? RV_ERR_MEMORY : err, tries, "commit",
                      __FILE__, __LINE__);
    }
}

static void changes_move(struct subject *s, struct rv_change *changes)
{
    for (int i = 0; i < TASKS; i++) {
        changes[i] = move_of(s, FIRST + i, 2, RV_TASK_PROCESSING);
        changes[i].task_before = load(s, FIRST + i);
        struct rv_alert *alert = RV_NEW(&s->arena, struct rv_alert);
        *alert = (struct rv_alert){
            .id = 7 + i, .task = {FIRST + i}, .raised_at = 1, .message = RV_STR("an alert")};
        changes[i].alerts = alert;
        changes[i].alerts_count = 1;
    }
}

static void run_batches(struct torture *t)
{
    struct subject s;
    struct rv_prng prng;
    struct rv_change changes[TASKS], more;
    struct rv_buf dump;
    struct rv_workflow_row workflow = {.id = 1,
                                       .published_at = 1,
                                       .space = RV_STR("shop"),
                                       .name = RV_STR("order"),
                                       .version = RV_STR("1.0.0"),
                                       .hash = RV_STR("h"),
                                       .source = RV_STR("{}")};
    struct rv_key_row key = {RV_STR("key"), RV_STR("hash"), {FIRST}};
    subject_init(&s, factory_of(t));
    rv_prng_init(&prng, 1);
    rv_buf_init(&dump, DUMP_BYTES_MAX);
    for (int i = 0; i < TASKS; i++)
        changes[i] = *birth_of(&s, FIRST + i);
    changes[0].key = &key;
    batch_write(t, &s, &(struct rv_batch){.changes = changes, .changes_count = TASKS});
    random_change(&s, &prng, FIRST + 5, &more, &dump);
    batch_write(
        t, &s,
        &(struct rv_batch){
            .changes = &more, .changes_count = 1, .workflows = &workflow, .workflows_count = 1});
    changes_move(&s, changes);
    batch_write(t, &s, &(struct rv_batch){.changes = changes, .changes_count = TASKS});
    struct rv_message message = random_message(&s, &prng, FIRST, 1);
    struct rv_delivery delivery = {.task = {FIRST}, .next = 1, .last = 1, .url = RV_STR("u")};
    more = move_of(&s, FIRST, 3, RV_TASK_PROCESSING);
    more.messages = &message;
    more.messages_count = 1;
    more.delivery = &delivery;
    batch_write(t, &s, &(struct rv_batch){.changes = &more, .changes_count = 1});
    struct rv_alert lost = {.id = 90, .task = {FIRST}, .kind = RV_ALERT_UNDELIVERABLE};
    struct rv_delivery_change given_up = {.row = delivery, .next_before = 1, .alert = &lost};
    given_up.row.given_up = given_up.close_alert = true;
    batch_write(t, &s, &(struct rv_batch){.deliveries = &given_up, .deliveries_count = 1});
    struct rv_ack ack = {.alert = 7, .at = 5, .by = RV_STR("me")};
    struct rv_record_change records[3] = {
        {.row = {.at = 1, .kind = RV_STR("kind"), .key = RV_STR("a"), .value = RV_STR("1")}},
        {.row = {.at = 1, .kind = RV_STR("kind"), .key = RV_STR("b"), .value = RV_STR("2")}},
        {.row = {.at = 1, .kind = RV_STR("kind"), .key = RV_STR("c"), .value = RV_STR("3")}}};
    batch_write(
        t, &s,
        &(struct rv_batch){.acks = &ack, .acks_count = 1, .records = records, .records_count = 2});
    records[0].gone = true;
    records[1].row.value = RV_STR("4");
    batch_write(t, &s, &(struct rv_batch){.records = records, .records_count = 3});
    faults_heal();
    torture_says(t, "%llx\n", (unsigned long long)hash_of_store(&s));
    rv_buf_done(&dump);
    subject_done(&s);
}

/* ---- questions ---- */

/* Within the product, what is not a part of it. */
#define OUTSIDE(call) (faults_leave(), (call), faults_enter())

struct asked {
    struct rv_arena arena;
    struct rv_buf dump;
};

static void asked_begin(struct asked *asked)
{
    rv_arena_reset(&asked->arena);
    rv_buf_reset(&asked->dump);
}

static enum rv_err ask_filtered(struct subject *s, struct asked *asked,
                                const struct rv_task_filter *filter)
{
    struct rv_task rows[10];
    struct rv_task_id next;
    size_t count;
    asked_begin(asked);
    enum rv_err err = s->ops->list_tasks(s->store, &asked->arena, RV_COLUMNS_ALL, filter, 10, rows,
                                         &count, &next);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_task, &rows[i]));
    return err == RV_OK ? asked->dump.failed : err;
}

static enum rv_err ask_tasks(struct subject *s, struct asked *asked)
{
    return ask_filtered(s, asked, &(struct rv_task_filter){.by_state = false});
}

static enum rv_err ask_of_workflow(struct subject *s, struct asked *asked)
{
    return ask_filtered(s, asked, &(struct rv_task_filter){.workflow = RV_STR("shop/order")});
}

static enum rv_err ask_rows_of_task(struct subject *s, struct asked *asked)
{
    struct rv_task_id task = {FIRST + 5};
    struct rv_step steps[20];
    struct rv_attempt attempts[50];
    struct rv_late_reply late[20];
    struct rv_alert alerts[20];
    size_t count;
    asked_begin(asked);
    enum rv_err err = s->ops->list_steps(s->store, &asked->arena, RV_COLUMNS_ALL, task, 0, 20,
                                         steps, &count);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_step, &steps[i]));
    if (err == RV_OK)
        err = s->ops->list_attempts(s->store, &asked->arena, (struct rv_step_id){task, 0}, 0, 0, 50,
                                    attempts, &count);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_attempt, &attempts[i]));
    bool found = false;
    struct rv_attempt seek = attempts[0];
    if (err == RV_OK && count > 0)
        err = s->ops->find_attempt(s->store, &asked->arena, seek.step, seek.token, &attempts[0],
                                   &found);
    if (err == RV_OK && found)
        OUTSIDE(row_dump(&asked->dump, &rv_row_attempt, &attempts[0]));
    if (err == RV_OK)
        err = s->ops->list_late_replies(s->store, &asked->arena, RV_COLUMNS_ALL,
                                        (struct rv_step_id){task, 0}, 0, 0, 20, late, &count);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_late_reply, &late[i]));
    if (err == RV_OK)
        err = s->ops->list_alerts(s->store, &asked->arena, (struct rv_task_id){0}, false, 0, 20,
                                  alerts, &count);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_alert, &alerts[i]));
    return err == RV_OK ? asked->dump.failed : err;
}

static enum rv_err ask_messages(struct subject *s, struct asked *asked)
{
    const struct rv_task_id none = {0}, task = {FIRST};
    struct rv_message messages[4];
    struct rv_delivery rows[4];
    size_t count;
    asked_begin(asked);
    enum rv_err err = s->ops->list_messages(s->store, &asked->arena, task, 0, 4, messages, &count);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_message, &messages[i]));
    if (err == RV_OK)
        err = s->ops->list_deliveries(s->store, &asked->arena, none, RV_STR_NONE, none, 4, rows,
                                      &count);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_delivery, &rows[i]));
    if (err == RV_OK)
        err = s->ops->list_deliveries(s->store, &asked->arena, task, RV_STR_NONE, none, 1, rows,
                                      &count);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_delivery, &rows[i]));
    return err == RV_OK ? asked->dump.failed : err;
}

static enum rv_err ask_by_id(struct subject *s, struct asked *asked)
{
    const struct rv_task_id ids[] = {{FIRST}, {1}, {FIRST + 5}};
    const struct rv_step_id step_ids[] = {{{FIRST}, 1}, {{FIRST + 5}, 3}, {{1}, 1}};
    const struct rv_task *tasks[3];
    const struct rv_step *steps[3];
    asked_begin(asked);
    enum rv_err err = s->ops->load_tasks(s->store, &asked->arena, RV_COLUMNS_ALL, ids, 3, tasks);
    for (size_t i = 0; err == RV_OK && i < 3; i++)
        if (tasks[i] != NULL)
            OUTSIDE(row_dump(&asked->dump, &rv_row_task, tasks[i]));
    if (err == RV_OK)
        err = s->ops->load_steps(s->store, &asked->arena, RV_COLUMNS_ALL, step_ids, 3, steps);
    for (size_t i = 0; err == RV_OK && i < 3; i++)
        if (steps[i] != NULL)
            OUTSIDE(row_dump(&asked->dump, &rv_row_step, steps[i]));
    return err == RV_OK ? asked->dump.failed : err;
}

static enum rv_err ask_names(struct subject *s, struct asked *asked)
{
    const struct rv_str keys[] = {RV_STR("key"), RV_STR("none")};
    struct rv_key_row rows[2];
    const struct rv_workflow_row *by_id = NULL, *by_name = NULL;
    struct rv_workflow_row workflows[10];
    size_t count = 0;
    asked_begin(asked);
    enum rv_err err = rv_store_load_keys(s->store, &asked->arena, keys, 2, rows);
    if (err == RV_OK)
        OUTSIDE(rv_buf_printf(&asked->dump, "%.*s %lld %lld\n", RV_STR_FMT(rows[0].body_hash),
                              (long long)rows[0].task.value, (long long)rows[1].task.value));
    if (err == RV_OK)
        err = s->ops->load_workflow(s->store, &asked->arena, 1, &by_id);
    if (err == RV_OK)
        err = s->ops->find_workflow(s->store, &asked->arena, RV_STR("shop"), RV_STR("order"),
                                    RV_STR_NONE, &by_name);
    if (err == RV_OK)
        err = s->ops->list_workflows(s->store, &asked->arena, 0, 10, workflows, &count);
    if (err == RV_OK && by_id != NULL)
        OUTSIDE(row_dump(&asked->dump, &rv_row_workflow, by_id));
    if (err == RV_OK && by_name != NULL)
        OUTSIDE(row_dump(&asked->dump, &rv_row_workflow, by_name));
    for (size_t i = 0; err == RV_OK && i < count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_workflow, &workflows[i]));
    return err == RV_OK ? asked->dump.failed : err;
}

static enum rv_err ask_open(struct subject *s, struct asked *asked)
{
    struct rv_scanned rows[10];
    struct rv_scan scan = {.rows_max = 10, .whole = true, .rows = rows};
    struct rv_record_list list = {.kind = RV_STR("limit")};
    struct rv_wants load = {.arena = &asked->arena,
                            .bytes_max = SIZE_MAX,
                            .scan = &scan,
                            .records = &list,
                            .records_count = 1};
    int64_t now, epoch, until;
    asked_begin(asked);
    enum rv_err err = s->ops->begin(s->store, &load, &now);
    if (err != RV_OK)
        return err;
    for (size_t i = 0; err == RV_OK && i < load.tasks_count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_task, load.tasks[i].task));
    for (size_t i = 0; err == RV_OK && i < list.count; i++)
        OUTSIDE(row_dump(&asked->dump, &rv_row_record, &list.rows[i]));
    if (err == RV_OK)
        err = s->ops->claim_role(s->store, RV_STR(RV_ROLE_SUPERVISOR), 5000, &epoch, &until);
    s->ops->rollback(s->store);
    return err == RV_OK ? asked->dump.failed : err;
}

static void run_questions(struct torture *t)
{
    static enum rv_err (*const questions[])(struct subject * s, struct asked * asked) = {
        ask_tasks, ask_of_workflow, ask_rows_of_task, ask_messages, ask_by_id, ask_names, ask_open};
    struct subject s;
    struct rv_prng prng;
    struct rv_change change;
    struct rv_buf dump;
    struct asked asked;
    subject_init(&s, factory_of(t));
    rv_prng_init(&prng, 1);
    rv_buf_init(&dump, DUMP_BYTES_MAX);
    rv_arena_init(&asked.arena, 0);
    rv_buf_init(&asked.dump, DUMP_BYTES_MAX);
    publish_shop(&s);
    bear(&s, FIRST);
    random_change(&s, &prng, FIRST + 5, &change, &dump);
    subject_commit_all(&s, &change, 1);
    struct rv_message message = random_message(&s, &prng, FIRST, 1);
    struct rv_delivery delivery = {.task = {FIRST}, .next = 1, .last = 1, .url = RV_STR("u")};
    change = move_of(&s, FIRST, 2, RV_TASK_PROCESSING);
    change.messages = &message;
    change.messages_count = 1;
    change.delivery = &delivery;
    subject_commit_all(&s, &change, 1);
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        TRY(t, questions[i](&s, &asked));
        torture_says(t, "%zu %llx\n", i, (unsigned long long)hash_of(&asked.dump));
    }
    faults_heal();
    rv_buf_done(&dump);
    IN_PRODUCT(rv_buf_done(&asked.dump));
    IN_PRODUCT(rv_arena_done(&asked.arena));
    subject_done(&s);
}

/* ---- opening a file: new, with tasks in it, with the log of a server that was killed ---- */

static int64_t wall_now(void *self)
{
    (void)self;
    return INT64_C(1790000000000);
}

static enum rv_err file_use(const char *path, bool born, int64_t *ret_open)
{
    struct rv_store *store;
    struct rv_enlistment enlistment = {.lease_ms = 5000};
    struct rv_store_sqlite_fault fault = {.pid = 0};
    struct rv_store_sqlite_options options = {.path = path, .clock = {.now = wall_now}};
    enum rv_err err = rv_store_sqlite_open(&options, &store, &fault);
    if (err != RV_OK) {
        EXPECT(fault.message[0] != '\0', "the operator is not told why");
        return err;
    }
    err = store->ops->enlist(store, RV_STR("boot"), 1, &enlistment);
    if (err == RV_OK) {
        EXPECT(enlistment.created == born || born, "tasks are lost");
        *ret_open = enlistment.open_tasks;
    }
    store->ops->close(store);
    /* Whether it has its row is not known: a new start decides. */
    return err == RV_ERR_COMMIT_UNKNOWN ? RV_ERR_MEMORY : err;
}

static void run_opening(struct torture *t)
{
    struct subject s;
    int64_t open = -1;
    char path[SUBJECT_PATH_BYTES + 32];
    subject_init(&s, factory_of(t));
    bear(&s, FIRST);
    s.ops->close(s.store);
    s.store = NULL;
    TRY(t, file_use(s.path, false, &open));
    torture_says(t, "old: %lld open\n", (long long)open);
    snprintf(path, sizeof path, "%s/new.db", s.directory);
    TRY(t, file_use(path, true, &open));
    torture_says(t, "new: %lld open\n", (long long)open);
    faults_heal();
    static const char *const suffixes[] = {"", "-wal", ".lock"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char name[sizeof path + 8];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
    subject_done(&s);
}

enum { MOST_ON_SQLITE = 400 };

const struct scenario scenarios_stores[] = {
    {"store_batches/memory", run_batches, NULL, HARMS_OF_HEAP, 0, false},
    {"store_batches/sqlite", run_batches, NULL, HARMS_OF_HEAP, MOST_ON_SQLITE, false},
    {"store_batches/sqlite_apart", run_batches, NULL, HARMS_OF_HEAP, MOST_ON_SQLITE, false},
    {"store_questions/memory", run_questions, NULL, HARMS_OF_HEAP, 0, false},
    {"store_questions/sqlite", run_questions, NULL, HARMS_OF_HEAP, MOST_ON_SQLITE, false},
    {"store_questions/sqlite_apart", run_questions, NULL, HARMS_OF_HEAP, MOST_ON_SQLITE, false},
    {"store_opening/sqlite", run_opening, NULL, HARMS_OF_HEAP, MOST_ON_SQLITE, false},
    {.name = NULL},
};
