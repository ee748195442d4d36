#include "server/check.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "core/decide.h"
#include "json/json.h"
#include "store/sqlite/sqlite.h"
#include "workflow/definition.h"

#include <string.h>

#define CURE_FILE                                                                                  \
    "restore a backup; to recover data that is newer than the backup, read this file with sqlite3"
#define CURE_ROWS                                                                                  \
    "when the server reads this task, it escalates the task with an alert; repair the rows by "    \
    "hand, or restore a backup"
#define CURE_LOST                                                                                  \
    "the server now treats the store as a restored backup: find the submissions and effects that " \
    "were recorded only in the lost changes"
#define CURE_STRAY "delete these rows by hand, or restore the task from a backup"
#define CURE_WORKFLOW "restore this row of the table workflow from a backup"

struct check {
    struct rv_store *store;
    struct rv_cli_check *to;
    struct rv_arena arena;   /* of the task that is looked at */
    struct rv_map workflows; /* by id: those whose definition can be read */
};

/* The task that is looked at. */
struct subject {
    const struct rv_task *task;
    const struct rv_step *open[RV_OPEN_STEPS_MAX];
    size_t open_count;
    bool told; /* once is enough */
};

static int64_t wall_now(void *self)
{
    (void)self;
    return rv_clock_wall_ms();
}

static void find(struct check *check, struct rv_task_id task, const char *what, const char *cure)
{
    char text[RV_ID_TEXT_BYTES];
    struct rv_str id = task.value > 0 ? rv_task_text(task, text) : RV_STR_NONE;
    check->to->found(check->to->self, id, rv_str_of(what), rv_str_of(cure));
}

static void file_found(void *self, struct rv_task_id task, const char *what)
{
    find(self, task, what, task.value > 0 ? CURE_STRAY : CURE_FILE);
}

static void task_find(struct check *check, struct subject *subject, const char *what,
                      const char *cure)
{
    if (!subject->told)
        find(check, subject->task->id, what, cure);
    subject->told = true;
}

/* A rule is told as the sentence that should hold. */
static void rule_find(struct check *check, struct subject *subject, const char *rule)
{
    struct rv_str text = rv_arena_printf(&check->arena, "broken rule: %s", rule);
    task_find(check, subject, text.at != NULL ? text.at : rule, CURE_ROWS);
}

/* ---- workflows ---- */

static enum rv_err definition_read(struct check *check, const struct rv_workflow_row *row)
{
    struct rv_json document;
    struct rv_definition_fault fault;
    const struct rv_definition *definition;
    RV_TRY(rv_json_parse(&check->arena, row->source, RV_JSON_DEPTH_MAX, &document, NULL));
    return rv_definition_load_published(&check->arena, &document, &definition, &fault);
}

static enum rv_err workflow_check(struct check *check, const struct rv_workflow_row *row)
{
    enum rv_err err = definition_read(check, row);
    if (err == RV_OK)
        return rv_map_put(&check->workflows, (uint64_t)row->id, 0, 1);
    if (err == RV_ERR_MEMORY)
        return err;
    struct rv_str what = rv_arena_printf(
        &check->arena, "the definition of %.*s/%.*s:%.*s cannot be read", RV_STR_FMT(row->space),
        RV_STR_FMT(row->name), RV_STR_FMT(row->version));
    find(check, (struct rv_task_id){0}, what.at != NULL ? what.at : "a definition cannot be read",
         CURE_WORKFLOW);
    return RV_OK;
}

static enum rv_err workflows_check(struct check *check)
{
    struct rv_workflow_row rows[RV_PAGE_ROWS_MAX];
    size_t count = RV_PAGE_ROWS_MAX;
    while (count == RV_PAGE_ROWS_MAX) {
        rv_arena_reset(&check->arena);
        RV_TRY(check->store->ops->list_workflows(check->store, &check->arena,
                                                 (size_t)check->to->workflows, RV_PAGE_ROWS_MAX,
                                                 rows, &count));
        rv_assert(count <= RV_PAGE_ROWS_MAX);
        for (size_t i = 0; i < count; i++)
            RV_TRY(workflow_check(check, &rows[i]));
        check->to->workflows += (int64_t)count;
    }
    return RV_OK;
}

/* ---- what belongs to a task ---- */

static enum rv_err open_load(struct check *check, struct subject *subject)
{
    struct rv_step_id ids[RV_OPEN_STEPS_MAX];
    const struct rv_step *rows[RV_OPEN_STEPS_MAX];
    const struct rv_task *task = subject->task;
    rv_assert(subject->open_count == 0);
    for (uint32_t i = 0; i < task->open_count; i++)
        ids[i] = (struct rv_step_id){task->id, task->open[i]};
    enum rv_err err = check->store->ops->load_steps(check->store, &check->arena, RV_COLUMNS_ALL,
                                                    ids, task->open_count, rows);
    for (uint32_t i = 0; err == RV_OK && i < task->open_count; i++)
        if (rows[i] != NULL)
            subject->open[subject->open_count++] = rows[i];
    return err;
}

/* The rules hold among a task, its open steps and any others: they are looked at page by page, so
 * that a task of many steps needs no more memory than one of few. */
static enum rv_err steps_check(struct check *check, struct subject *subject)
{
    struct rv_step page[RV_PAGE_ROWS_MAX];
    const struct rv_step *view[RV_OPEN_STEPS_MAX + RV_PAGE_ROWS_MAX];
    size_t count = RV_PAGE_ROWS_MAX, all = 0;
    uint32_t after = 0;
    enum rv_err err = open_load(check, subject);
    while (err == RV_OK && count == RV_PAGE_ROWS_MAX) {
        struct rv_arena_mark mark = rv_arena_mark(&check->arena);
        err = check->store->ops->list_steps(check->store, &check->arena, RV_COLUMNS_ALL,
                                            subject->task->id, after, RV_PAGE_ROWS_MAX, page,
                                            &count);
        if (err != RV_OK)
            break;
        rv_assert(count <= RV_PAGE_ROWS_MAX);
        rv_assert(subject->open_count <= RV_OPEN_STEPS_MAX);
        memcpy(view, subject->open, subject->open_count * sizeof view[0]);
        for (size_t i = 0; i < count; i++)
            view[subject->open_count + i] = &page[i];
        const char *broken = rv_view_broken(subject->task, view, subject->open_count + count);
        if (broken != NULL)
            rule_find(check, subject, broken);
        all += count;
        after = count > 0 ? page[count - 1].number : after;
        rv_arena_release(&check->arena, mark);
    }
    if (err != RV_OK)
        return err;
    check->to->steps += (int64_t)all;
    if (all != subject->task->last_number)
        rule_find(check, subject, "the step numbers of a task have no gaps");
    return RV_OK;
}

static const char *attempt_broken(const struct subject *subject, const struct rv_attempt *attempt)
{
    if (attempt->state >= RV_ATTEMPT_STATE_COUNT || attempt->effect >= RV_EFFECT_COUNT)
        return "the row of an attempt has valid values";
    if (attempt->step.number == 0 || attempt->step.number > subject->task->last_number)
        return "an attempt belongs to a step of its task";
    if (rv_attempt_state_live(attempt->state))
        return "an archived attempt has ended";
    return NULL;
}

static enum rv_err attempts_check(struct check *check, struct subject *subject)
{
    struct rv_attempt page[RV_PAGE_ROWS_MAX];
    struct rv_step_id of = {subject->task->id, 0};
    uint32_t after_step = 0, after = 0;
    size_t count = RV_PAGE_ROWS_MAX;
    enum rv_err err = RV_OK;
    while (err == RV_OK && count == RV_PAGE_ROWS_MAX) {
        struct rv_arena_mark mark = rv_arena_mark(&check->arena);
        err = check->store->ops->list_attempts(check->store, &check->arena, of, after_step, after,
                                               RV_PAGE_ROWS_MAX, page, &count);
        rv_assert(err != RV_OK || count <= RV_PAGE_ROWS_MAX);
        for (size_t i = 0; err == RV_OK && i < count; i++) {
            const char *broken = attempt_broken(subject, &page[i]);
            if (broken != NULL)
                rule_find(check, subject, broken);
            after_step = page[i].step.number;
            after = page[i].number;
        }
        check->to->attempts += err == RV_OK ? (int64_t)count : 0;
        rv_arena_release(&check->arena, mark);
    }
    return err;
}

/* An escalated task has an open alert (RULES 5). */
static enum rv_err alerts_check(struct check *check, struct subject *subject)
{
    struct rv_alert page[RV_PAGE_ROWS_MAX];
    bool stands = subject->task->state != RV_TASK_ERROR;
    int64_t before = 0;
    size_t count = RV_PAGE_ROWS_MAX;
    enum rv_err err = RV_OK;
    while (err == RV_OK && count == RV_PAGE_ROWS_MAX) {
        struct rv_arena_mark mark = rv_arena_mark(&check->arena);
        err = check->store->ops->list_alerts(check->store, &check->arena, subject->task->id, false,
                                             before, RV_PAGE_ROWS_MAX, page, &count);
        rv_assert(err != RV_OK || count <= RV_PAGE_ROWS_MAX);
        for (size_t i = 0; err == RV_OK && i < count; i++) {
            if (page[i].kind >= RV_ALERT_KIND_COUNT)
                rule_find(check, subject, "the row of an alert has valid values");
            stands = stands || page[i].closed_at == 0;
            before = page[i].id;
        }
        rv_arena_release(&check->arena, mark);
    }
    if (err == RV_OK && !stands)
        rule_find(check, subject, "an escalated task has an alert");
    return err;
}

static enum rv_err messages_check(struct check *check, struct subject *subject)
{
    struct rv_message page[RV_PAGE_ROWS_MAX];
    uint32_t last = 0;
    size_t count = RV_PAGE_ROWS_MAX;
    enum rv_err err = RV_OK;
    while (err == RV_OK && count == RV_PAGE_ROWS_MAX) {
        struct rv_arena_mark mark = rv_arena_mark(&check->arena);
        err = check->store->ops->list_messages(check->store, &check->arena, subject->task->id, last,
                                               RV_PAGE_ROWS_MAX, page, &count);
        rv_assert(err != RV_OK || count <= RV_PAGE_ROWS_MAX);
        for (size_t i = 0; err == RV_OK && i < count; i++) {
            if (page[i].kind >= RV_MESSAGE_KIND_COUNT)
                rule_find(check, subject, "the row of a message has valid values");
            if (page[i].number != last + 1)
                rule_find(check, subject, "the message numbers of a task have no gaps");
            last = page[i].number;
        }
        rv_arena_release(&check->arena, mark);
    }
    if (err == RV_OK && last != subject->task->last_message)
        rule_find(check, subject, "the message counter of a task matches its messages");
    return err;
}

static enum rv_err history_check(struct check *check, struct subject *subject)
{
    struct rv_history_row page[RV_PAGE_ROWS_MAX];
    uint32_t before = 0;
    size_t count = RV_PAGE_ROWS_MAX;
    enum rv_err err = RV_OK;
    while (err == RV_OK && count == RV_PAGE_ROWS_MAX) {
        struct rv_arena_mark mark = rv_arena_mark(&check->arena);
        err = check->store->ops->list_history(check->store, &check->arena, subject->task->id,
                                              before, RV_PAGE_ROWS_MAX, page, &count);
        rv_assert(err != RV_OK || count <= RV_PAGE_ROWS_MAX);
        for (size_t i = 0; err == RV_OK && i < count; i++) {
            if (page[i].verb >= RV_OPERATOR_VERB_COUNT)
                rule_find(check, subject, "an entry in the history of a task has valid values");
            if (before != 0 && page[i].number + 1 != before)
                rule_find(check, subject, "the history of a task has no gaps");
            before = page[i].number;
        }
        rv_arena_release(&check->arena, mark);
    }
    if (err == RV_OK && before > 1)
        rule_find(check, subject, "the history of a task begins with entry 1");
    return err;
}

static enum rv_err task_check(struct check *check, const struct rv_task *task)
{
    static enum rv_err (*const parts[])(struct check *, struct subject *) = {
        steps_check, attempts_check, alerts_check, messages_check, history_check};
    struct subject subject = {.task = task};
    enum rv_err err = RV_OK;
    check->to->tasks++;
    if (task->unreadable)
        rule_find(check, &subject, rv_view_broken(task, NULL, 0));
    else if (rv_map_find(&check->workflows, (uint64_t)task->workflow, 0) == NULL)
        task_find(check, &subject, "the workflow of the task is missing or cannot be read",
                  CURE_WORKFLOW);
    for (size_t i = 0; err == RV_OK && i < sizeof parts / sizeof parts[0]; i++)
        err = parts[i](check, &subject);
    if (err != RV_ERR_CORRUPT)
        return err;
    task_find(check, &subject, "some rows of the task cannot be read", CURE_FILE);
    return RV_OK;
}

/* One by one, so that damage to one hides no other. */
static enum rv_err tasks_check(struct check *check)
{
    struct rv_task_filter filter = {.by_state = false};
    for (;;) {
        struct rv_task task;
        struct rv_task_id next;
        size_t count;
        rv_arena_reset(&check->arena);
        enum rv_err err = check->store->ops->list_tasks(check->store, &check->arena, RV_COLUMNS_ALL,
                                                        &filter, 1, &task, &count, &next);
        if (err == RV_ERR_CORRUPT) {
            find(check, filter.before,
                 filter.before.value != 0 ? "tasks older than this one cannot be read"
                                          : "the tasks cannot be read",
                 CURE_FILE);
            return RV_OK;
        }
        if (err != RV_OK || count == 0)
            return err;
        rv_assert(count == 1);
        filter.before = task.id;
        err = task_check(check, &task);
        if (err != RV_OK)
            return err;
    }
}

static enum rv_err parts_check(struct check *check)
{
    struct rv_store_sqlite_finder finder = {.found = file_found, .self = check};
    RV_TRY(rv_store_sqlite_check(check->store, &finder));
    RV_TRY(workflows_check(check));
    return tasks_check(check);
}

static enum rv_err store_check(struct check *check)
{
    enum rv_err err = parts_check(check);
    if (err != RV_ERR_CORRUPT)
        return err;
    find(check, (struct rv_task_id){0},
         "a part of the file cannot be read: the check is incomplete", CURE_FILE);
    return RV_OK;
}

enum rv_err rv_check(const char *path, struct rv_cli_check *to, struct rv_buf *ret_why)
{
    struct check check = {.to = to};
    struct rv_store_sqlite_fault fault = {.pid = 0};
    struct rv_store_sqlite_options options = {
        .path = path, .clock = {.now = wall_now}, .there = true, .keep_intact = to->keep_intact};
    enum rv_err err = rv_store_sqlite_open(&options, &check.store, &fault);
    if (err == RV_OK && fault.message[0] != '\0')
        find(&check, (struct rv_task_id){0}, fault.message, CURE_LOST);
    if (err == RV_ERR_CORRUPT && !fault.foreign) {
        char *cure = strstr(fault.message, ": restore"); /* comes once more */
        if (cure != NULL)
            *cure = '\0';
        find(&check, (struct rv_task_id){0}, fault.message, CURE_FILE);
        return RV_OK;
    }
    if (err != RV_OK) {
        rv_buf_printf(ret_why, "%s", fault.message[0] ? fault.message : rv_err_text(err));
        return err;
    }
    rv_arena_init(&check.arena, 0);
    rv_map_init(&check.workflows);
    err = store_check(&check);
    if (err != RV_OK)
        rv_buf_printf(ret_why, "%s cannot be checked: %s", path, rv_err_text(err));
    rv_map_done(&check.workflows);
    rv_arena_done(&check.arena);
    check.store->ops->close(check.store);
    return err;
}
