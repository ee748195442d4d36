/* Pages for queries. Each is found through an index, or looks at a bounded number of rows. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"
#include "core/tags.h"

#include <stdlib.h>

/* How many tasks one page of list_tasks looks at, at most. */
enum { LOOKS_MAX = 2000 };
/* The looks are shared out among a workflow's versions, rounded up, and of those there are at most
 * as many as looks. */
enum { IDS_MAX = 2 * LOOKS_MAX };

/* Reads all rows of a statement into an array, and resets it. */
static enum rv_err rows_take(struct rv_sqlite *store, sqlite3_stmt *statement,
                             const struct rv_row_kind *kind, struct rv_arena *arena, size_t limit,
                             void *rows, size_t *ret_count)
{
    enum rv_err err = RV_OK;
    size_t count = 0;
    bool there = true;
    while (there && count < limit) {
        err = rv_sqlite_next(store, statement, &there);
        void *row = (char *)rows + count * kind->bytes;
        if (there) {
            memset(row, 0, kind->bytes);
            err = rv_sqlite_read(store, statement, kind, arena, row);
        }
        if (err != RV_OK)
            break;
        count += there;
    }
    sqlite3_reset(statement);
    rv_assert(count <= limit);
    if (err == RV_OK)
        *ret_count = count;
    return err;
}

/* ---- tasks: ids first, from the index that fits, then their rows ---- */

struct list_walk {
    struct rv_sqlite *store;
    struct rv_arena *arena;
    const struct rv_task_filter *filter;
    int64_t *ids; /* found so far, with room for all that one page may look at */
    size_t ids_count;
    int64_t floor;      /* everything older was not looked at; 0: there is nothing older */
    int64_t *workflows; /* that the filter names, if another index is walked */
    size_t workflows_count;
};

/* ---- what the index that is walked does not say ---- */

static bool workflow_named(const struct list_walk *walk, int64_t workflow)
{
    for (size_t i = 0; i < walk->workflows_count; i++)
        if (walk->workflows[i] == workflow)
            return true;
    return walk->workflows == NULL;
}

/* Whether one of the steps in the text of a task's open steps ("3 4") asks the filter's agent. */
static enum rv_err agent_asked(const struct list_walk *walk, int64_t task, struct rv_str open,
                               bool *ret_asked)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(walk->store, RV_SQL_TASK_AGENT, &statement);
    *ret_asked = false;
    for (size_t i = 0; err == RV_OK && !*ret_asked && i < open.len; i++) {
        int64_t number = 0;
        for (; i < open.len && open.at[i] >= '0' && open.at[i] <= '9'; i++)
            number = number * 10 + (open.at[i] - '0');
        sqlite3_bind_int64(statement, 1, task);
        sqlite3_bind_int64(statement, 2, number);
        rv_sqlite_bind_str(statement, 3, walk->filter->agent);
        err = rv_sqlite_next(walk->store, statement, ret_asked);
        sqlite3_reset(statement);
    }
    return err;
}

static enum rv_err row_fits(const struct list_walk *walk, int64_t task, bool *ret_fits)
{
    const struct rv_task_filter *filter = walk->filter;
    sqlite3_stmt *statement = NULL;
    bool there = false;
    *ret_fits = filter->agent.at == NULL && filter->error_type.at == NULL &&
                filter->tag.at == NULL && !filter->suspended;
    if (*ret_fits)
        return RV_OK;
    enum rv_err err = rv_sqlite_statement(walk->store, RV_SQL_TASK_LOOK, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, task);
    err = rv_sqlite_next(walk->store, statement, &there);
    *ret_fits = err == RV_OK && there;
    if (filter->suspended)
        *ret_fits = *ret_fits && sqlite3_column_int64(statement, 3) != 0;
    if (*ret_fits && filter->tag.at != NULL)
        *ret_fits = rv_tags_have(rv_sqlite_column_str(statement, 1), filter->tag);
    if (*ret_fits && filter->error_type.at != NULL)
        err = rv_error_is(walk->arena, rv_sqlite_column_str(statement, 0), filter->error_type,
                          ret_fits);
    if (err == RV_OK && *ret_fits && filter->agent.at != NULL)
        err = agent_asked(walk, task, rv_sqlite_column_str(statement, 2), ret_fits);
    sqlite3_reset(statement);
    return err;
}

/* What is not in an index costs a row more, so fewer are looked at. */
static size_t looks_max(const struct rv_task_filter *filter)
{
    bool rows = filter->agent.at != NULL || filter->error_type.at != NULL || filter->suspended;
    return rows ? LOOKS_MAX / 4 : LOOKS_MAX;
}

/* An index, and where it is entered: what its statement has as ?3 and ?4. */
struct way {
    enum rv_sqlite_sql sql;
    int64_t workflow; /* 0: none */
    struct rv_str first;
    struct rv_str second;
};

/* One index, newest first: at most `looks` entries, of which at most `wanted` are kept. */
static enum rv_err walk_index(struct list_walk *walk, struct way way, size_t looks, size_t wanted)
{
    const struct rv_task_filter *filter = walk->filter;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(walk->store, way.sql, &statement);
    if (err != RV_OK)
        return err;
    struct rv_str state = rv_str_of(rv_task_state_text(filter->state));
    sqlite3_bind_int64(statement, 1,
                       filter->before.value > 0 ? filter->before.value - 1 : INT64_MAX);
    sqlite3_bind_int64(statement, 2, (int64_t)looks);
    if (way.workflow != 0)
        sqlite3_bind_int64(statement, 3, way.workflow);
    if (way.first.at != NULL)
        rv_sqlite_bind_str(statement, 3, way.first);
    if (way.second.at != NULL)
        rv_sqlite_bind_str(statement, 4, way.second);
    size_t looked = 0;
    size_t kept = 0;
    int64_t last = 0;
    while (kept < wanted && looked < looks) {
        bool there = false;
        err = rv_sqlite_next(walk->store, statement, &there);
        if (err != RV_OK || !there)
            break;
        int64_t id = sqlite3_column_int64(statement, 0);
        if (id <= 0 || id < filter->from.value) { /* the ids of tasks are above 0 */
            looked = kept = 0;                    /* the walk is over */
            break;
        }
        looked++;
        last = id;
        bool fits = (!filter->by_state || rv_str_eq(rv_sqlite_column_str(statement, 1), state)) &&
                    workflow_named(walk, sqlite3_column_int64(statement, 2));
        if (fits)
            err = row_fits(walk, id, &fits);
        if (err != RV_OK)
            break;
        if (fits) {
            rv_assert(walk->ids_count < IDS_MAX);
            walk->ids[walk->ids_count++] = last;
            kept++;
        }
    }
    sqlite3_reset(statement);
    rv_assert(kept <= looked);
    rv_assert(looked <= looks);
    if ((kept == wanted || looked == looks) && last > walk->floor)
        walk->floor = last;
    return err;
}

/* "namespace/name:version" in its parts; no version: absent. */
static void name_split(struct rv_str text, struct rv_str *space, struct rv_str *name,
                       struct rv_str *version)
{
    const char *slash = memchr(text.at, '/', text.len);
    size_t start = slash ? (size_t)(slash - text.at) + 1 : 0;
    *space = (struct rv_str){text.at, slash ? start - 1 : 0};
    *name = (struct rv_str){text.at + start, text.len - start};
    *version = RV_STR_NONE;
    const char *colon = name->len > 0 ? memchr(name->at, ':', name->len) : NULL;
    if (colon != NULL) {
        *version = (struct rv_str){colon + 1, (size_t)(name->at + name->len - colon) - 1};
        name->len = (size_t)(colon - name->at);
    }
}

/* The ids of the workflows that the filter names; at most `room` of its versions. */
static enum rv_err workflow_ids(struct list_walk *walk, size_t room, int64_t *ids,
                                size_t *ret_count)
{
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(walk->store, RV_SQL_WORKFLOW_IDS, &statement);
    if (err != RV_OK)
        return err;
    struct rv_str space;
    struct rv_str name;
    struct rv_str version;
    name_split(walk->filter->workflow, &space, &name, &version);
    rv_sqlite_bind_str(statement, 1, space);
    rv_sqlite_bind_str(statement, 2, name);
    rv_sqlite_bind_str(statement, 3, version);
    size_t count = 0;
    bool there = true;
    while (there && err == RV_OK && count < room) {
        err = rv_sqlite_next(walk->store, statement, &there);
        if (there)
            ids[count++] = sqlite3_column_int64(statement, 0);
    }
    sqlite3_reset(statement);
    rv_assert(count <= room);
    *ret_count = count;
    return err;
}

/* All versions of a workflow: a page from the index of each, merged below. */
static enum rv_err walk_workflows(struct list_walk *walk, size_t wanted)
{
    int64_t *workflows = RV_NEW_ARRAY(walk->arena, int64_t, LOOKS_MAX);
    if (workflows == NULL)
        return walk->arena->refused;
    size_t count = 0;
    RV_TRY(workflow_ids(walk, LOOKS_MAX, workflows, &count));
    for (size_t i = 0; i < count; i++) {
        size_t looks = looks_max(walk->filter) / count + 1;
        struct way way = {.sql = RV_SQL_WALK_WORKFLOW, .workflow = workflows[i]};
        RV_TRY(walk_index(walk, way, looks, wanted));
    }
    return RV_OK;
}

/* The workflow that is asked for beside a narrower filter: each task is looked at. */
static enum rv_err workflows_name(struct list_walk *walk)
{
    if (walk->filter->workflow.at == NULL)
        return RV_OK;
    walk->workflows = RV_NEW_ARRAY(walk->arena, int64_t, LOOKS_MAX);
    if (walk->workflows == NULL)
        return walk->arena->refused;
    return workflow_ids(walk, LOOKS_MAX, walk->workflows, &walk->workflows_count);
}

static struct way way_rare(enum rv_task_state state)
{
    return (struct way){.sql = RV_SQL_WALK_RARE, .first = rv_str_of(rv_task_state_text(state))};
}

/* Open tasks by an agent: those whose step goes on, by its index, and those that stand in error,
 * whose step has ended. A task that has both is found twice. */
static enum rv_err walk_agent(struct list_walk *walk, size_t wanted)
{
    const struct rv_task_filter *filter = walk->filter;
    struct way way = {.sql = RV_SQL_WALK_AGENT, .first = filter->agent};
    if (!filter->by_state || filter->state != RV_TASK_ERROR)
        RV_TRY(walk_index(walk, way, looks_max(filter), wanted));
    if (!filter->by_state || filter->state == RV_TASK_ERROR)
        RV_TRY(walk_index(walk, way_rare(RV_TASK_ERROR), looks_max(filter), wanted));
    return RV_OK;
}

static enum rv_err walk_run(struct list_walk *walk, size_t wanted)
{
    const struct rv_task_filter *filter = walk->filter;
    struct way way = {.sql = RV_SQL_WALK_ALL};
    bool narrow = filter->tag.at != NULL || filter->error_type.at != NULL ||
                  filter->agent.at != NULL;
    if (!narrow && filter->workflow.at != NULL)
        return walk_workflows(walk, wanted);
    enum rv_err err = workflows_name(walk);
    if (err != RV_OK)
        return err;
    if (filter->tag.at != NULL)
        way = (struct way){
            .sql = RV_SQL_WALK_TAG, .first = filter->tag_name, .second = filter->tag_value};
    else if (filter->error_type.at != NULL)
        way = (struct way){.sql = RV_SQL_WALK_ERROR,
                           .first = rv_error_type_last(filter->error_type)};
    else if (filter->agent.at != NULL)
        return walk_agent(walk, wanted);
    else if (filter->by_state && rv_task_state_rare(filter->state))
        way = way_rare(filter->state);
    else if (filter->suspended || (filter->by_state && rv_task_state_open(filter->state)))
        way.sql = RV_SQL_WALK_OPEN;
    return walk_index(walk, way, looks_max(filter), wanted);
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Puts what several walks have found into order, each task once. How many are of this page? */
static size_t ids_settle(struct list_walk *walk, size_t wanted)
{
    size_t count = 0;
    rv_assert(walk->ids_count <= IDS_MAX);
    qsort(walk->ids, walk->ids_count, sizeof walk->ids[0], newest_first);
    for (size_t i = 0; i < walk->ids_count && count < wanted; i++)
        if (walk->ids[i] >= walk->floor && (count == 0 || walk->ids[i] != walk->ids[count - 1]))
            walk->ids[count++] = walk->ids[i];
    return count;
}

static enum rv_err tasks_take(struct list_walk *walk, enum rv_columns columns, size_t count,
                              struct rv_task *ret_tasks)
{
    sqlite3_stmt *statement = NULL;
    rv_assert(count <= walk->ids_count);
    RV_TRY(rv_sqlite_statement_of(walk->store, RV_SQL_TASK_LOAD, columns, &statement));
    for (size_t i = 0; i < count; i++) {
        sqlite3_bind_int64(statement, 1, walk->ids[i]);
        size_t found = 0;
        RV_TRY(
            rows_take(walk->store, statement, &rv_row_task, walk->arena, 1, &ret_tasks[i], &found));
        if (found == 0)
            return RV_ERR_CORRUPT; /* the index names a row that is not there */
    }
    return RV_OK;
}

enum rv_err rv_sqlite_list_tasks(struct rv_store *base, struct rv_arena *arena,
                                 enum rv_columns columns, const struct rv_task_filter *filter,
                                 size_t limit, struct rv_task *ret_tasks, size_t *ret_count,
                                 struct rv_task_id *ret_next)
{
    size_t wanted = limit < LOOKS_MAX ? limit : LOOKS_MAX;
    struct list_walk walk = {.store = (struct rv_sqlite *)base, .arena = arena, .filter = filter};
    walk.ids = RV_NEW_ARRAY(arena, int64_t, IDS_MAX);
    if (walk.ids == NULL)
        return arena->refused;
    enum rv_err err = walk_run(&walk, wanted);
    if (err != RV_OK)
        return err;
    size_t count = ids_settle(&walk, wanted);
    rv_assert(count <= limit);
    err = tasks_take(&walk, columns, count, ret_tasks);
    if (err != RV_OK)
        return err;
    *ret_count = count;
    ret_next->value = count < limit ? walk.floor : 0;
    return RV_OK;
}

/* ---- the others ---- */

enum rv_err rv_sqlite_list_steps(struct rv_store *base, struct rv_arena *arena,
                                 enum rv_columns columns, struct rv_task_id task, uint32_t after,
                                 size_t limit, struct rv_step *ret_steps, size_t *ret_count)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement_of(store, RV_SQL_STEP_LIST, columns, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, task.value);
    sqlite3_bind_int64(statement, 2, after);
    sqlite3_bind_int64(statement, 3, (int64_t)limit);
    return rows_take(store, statement, &rv_row_step, arena, limit, ret_steps, ret_count);
}

enum rv_err rv_sqlite_list_attempts(struct rv_store *base, struct rv_arena *arena,
                                    struct rv_step_id step, uint32_t after_step, uint32_t after,
                                    size_t limit, struct rv_attempt *ret_attempts,
                                    size_t *ret_count)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    bool of_task = step.number == 0;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(
        store, of_task ? RV_SQL_ATTEMPT_LIST : RV_SQL_ATTEMPT_LIST_STEP, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, step.task.value);
    if (!of_task)
        sqlite3_bind_int64(statement, 2, step.number);
    sqlite3_bind_int64(statement, 3, after_step);
    sqlite3_bind_int64(statement, 4, after);
    sqlite3_bind_int64(statement, 5, (int64_t)limit);
    return rows_take(store, statement, &rv_row_attempt, arena, limit, ret_attempts, ret_count);
}

enum rv_err rv_sqlite_find_attempt(struct rv_store *base, struct rv_arena *arena,
                                   struct rv_step_id step, uint64_t token,
                                   struct rv_attempt *ret_attempt, bool *ret_found)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    size_t count = 0;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_ATTEMPT_OF_TOKEN, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, step.task.value);
    sqlite3_bind_int64(statement, 2, step.number);
    sqlite3_bind_int64(statement, 3, (int64_t)token);
    err = rows_take(store, statement, &rv_row_attempt, arena, 1, ret_attempt, &count);
    *ret_found = count > 0;
    return err;
}

enum rv_err rv_sqlite_list_late_replies(struct rv_store *base, struct rv_arena *arena,
                                        enum rv_columns columns, struct rv_step_id step,
                                        uint32_t attempt, size_t skip, size_t limit,
                                        struct rv_late_reply *ret_rows, size_t *ret_count)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    bool of_task = step.number == 0;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement_of(
        store, of_task ? RV_SQL_LATE_LIST : RV_SQL_LATE_LIST_ATTEMPT, columns, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, step.task.value);
    sqlite3_bind_int64(statement, 2, (int64_t)limit);
    sqlite3_bind_int64(statement, 3, (int64_t)skip);
    if (!of_task) {
        sqlite3_bind_int64(statement, 4, step.number);
        sqlite3_bind_int64(statement, 5, attempt);
    }
    return rows_take(store, statement, &rv_row_late_reply, arena, limit, ret_rows, ret_count);
}

enum rv_err rv_sqlite_list_alerts(struct rv_store *base, struct rv_arena *arena,
                                  struct rv_task_id task, bool open_only, int64_t before,
                                  size_t limit, struct rv_alert *ret_alerts, size_t *ret_count)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    bool of_task = task.value != 0;
    enum rv_sqlite_sql of_all = open_only ? RV_SQL_ALERT_LIST_OPEN : RV_SQL_ALERT_LIST;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, of_task ? RV_SQL_ALERT_LIST_TASK : of_all,
                                          &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, before != 0 ? before - 1 : INT64_MAX);
    sqlite3_bind_int64(statement, 2, (int64_t)limit);
    if (of_task) {
        sqlite3_bind_int64(statement, 3, task.value);
        sqlite3_bind_int(statement, 4, open_only);
    }
    return rows_take(store, statement, &rv_row_alert, arena, limit, ret_alerts, ret_count);
}

enum rv_err rv_sqlite_find_alert(struct rv_store *base, struct rv_arena *arena,
                                 struct rv_str source, struct rv_alert *ret_alert, bool *ret_found)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    size_t count = 0;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_ALERT_OF_SOURCE, &statement);
    if (err != RV_OK)
        return err;
    rv_sqlite_bind_str(statement, 1, source);
    err = rows_take(store, statement, &rv_row_alert, arena, 1, ret_alert, &count);
    *ret_found = count > 0;
    return err;
}

enum rv_err rv_sqlite_list_messages(struct rv_store *base, struct rv_arena *arena,
                                    struct rv_task_id task, uint32_t after, size_t limit,
                                    struct rv_message *ret_messages, size_t *ret_count)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_MESSAGE_LIST, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, task.value);
    sqlite3_bind_int64(statement, 2, after);
    sqlite3_bind_int64(statement, 3, (int64_t)limit);
    return rows_take(store, statement, &rv_row_message, arena, limit, ret_messages, ret_count);
}

enum rv_err rv_sqlite_list_history(struct rv_store *base, struct rv_arena *arena,
                                   struct rv_task_id task, uint32_t before, size_t limit,
                                   struct rv_history_row *ret_rows, size_t *ret_count)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_HISTORY_LIST, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, task.value);
    sqlite3_bind_int64(statement, 2, before != 0 ? before : INT64_MAX);
    sqlite3_bind_int64(statement, 3, (int64_t)limit);
    return rows_take(store, statement, &rv_row_history, arena, limit, ret_rows, ret_count);
}

enum rv_err rv_sqlite_list_deliveries(struct rv_store *base, struct rv_arena *arena,
                                      struct rv_task_id task, struct rv_str after_destination,
                                      struct rv_task_id after, size_t limit,
                                      struct rv_delivery *ret_rows, size_t *ret_count)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    bool of_task = task.value != 0;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(
        store, of_task ? RV_SQL_DELIVERY_LOAD : RV_SQL_DELIVERY_LIST, &statement);
    if (err != RV_OK)
        return err;
    if (of_task) {
        sqlite3_bind_int64(statement, 1, task.value);
    } else {
        struct rv_str destination = after_destination.at ? after_destination : RV_STR("");
        rv_sqlite_bind_str(statement, 1, destination);
        sqlite3_bind_int64(statement, 2, after.value);
        sqlite3_bind_int64(statement, 3, (int64_t)limit);
    }
    return rows_take(store, statement, &rv_row_delivery, arena, limit, ret_rows, ret_count);
}

enum rv_err rv_sqlite_list_workflows(struct rv_store *base, struct rv_arena *arena, size_t skip,
                                     size_t limit, struct rv_workflow_row *ret_rows,
                                     size_t *ret_count)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_WORKFLOW_LIST, &statement);
    if (err != RV_OK)
        return err;
    sqlite3_bind_int64(statement, 1, (int64_t)skip);
    sqlite3_bind_int64(statement, 2, (int64_t)limit);
    return rows_take(store, statement, &rv_row_workflow, arena, limit, ret_rows, ret_count);
}

enum rv_err rv_sqlite_list_records(struct rv_store *base, struct rv_arena *arena,
                                   struct rv_str kind, struct rv_str prefix, struct rv_str after,
                                   size_t limit, struct rv_record *ret_rows, size_t *ret_count)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    sqlite3_stmt *statement = NULL;
    enum rv_err err = rv_sqlite_statement(store, RV_SQL_RECORD_LIST, &statement);
    if (err != RV_OK)
        return err;
    struct rv_str from = rv_str_cmp(after, prefix) > 0 ? after : prefix;
    rv_sqlite_bind_str(statement, 1, kind);
    rv_sqlite_bind_str(statement, 2, from.at != NULL ? from : RV_STR(""));
    rv_sqlite_bind_str(statement, 3, after);
    sqlite3_bind_int64(statement, 4, (int64_t)limit);
    size_t count = 0;
    err = rows_take(store, statement, &rv_row_record, arena, limit, ret_rows, &count);
    if (err != RV_OK)
        return err;
    while (count > 0 && !rv_str_begins(ret_rows[count - 1].key, prefix))
        count--;
    *ret_count = count;
    return RV_OK;
}
