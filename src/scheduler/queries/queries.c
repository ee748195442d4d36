/* Queries: pages of committed rows, read in the batch's transaction onto the call's arena. */
#include "scheduler/queries/queries.h"

#include "base/assert.h"
#include "base/limits.h"
#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "scheduler/batch/refuse.h"
#include "scheduler/batch/workflows.h"
#include "scheduler/call.h"
#include "scheduler/queries/query.h"
#include "scheduler/queries/status.h"
#include "store/load.h"
#include "store/store.h"

void query_no_task_text(struct rv_call *call, struct rv_task_id task)
{
    char id[RV_ID_TEXT_BYTES];
    call->err = RV_ERR_NOT_FOUND;
    call->message = call_printf(
        call, "there is no such task: %.*s (the server deletes ended tasks after --retain)",
        RV_STR_FMT(rv_task_text(task, id)));
}

enum rv_err query_no_task(struct rv_call *call, struct rv_task_id task)
{
    query_no_task_text(call, task);
    return RV_OK;
}

static void page_limit(struct rv_call_list *list)
{
    if (list->limit == 0 || list->limit > RV_PAGE_ROWS_MAX)
        list->limit = RV_PAGE_ROWS_MAX;
}

enum rv_err query_show(const struct query *q, struct rv_call *call)
{
    struct rv_call_show *show = &call->u.show;
    enum rv_err err = q->store->ops->load_tasks(q->store, &call->arena, RV_COLUMNS_ALL, &show->task,
                                                1, &show->found);
    if (err != RV_OK)
        return err;
    if (show->found == NULL)
        return query_no_task(call, show->task);
    struct workflow_entry *entry;
    err = workflow_by_id(q->workflows, show->found->workflow, &entry);
    if (err == RV_OK && entry != NULL)
        show->workflow = rv_row_copy(&rv_row_workflow, RV_COLUMNS_ALL, &call->arena, &entry->row);
    return err;
}

/* The store's clock says what is old; ids tell when they were made. Before all time there is the id
 * 1, than which none is older: 0 would be no bound. */
void query_filter_age(const struct query *q, struct rv_call_list *list)
{
    struct rv_task_filter *filter = &list->filter;
    struct rv_task_id older = rv_id_from(q->now - list->older_ms + 1);
    if (older.value == 0)
        older.value = 1;
    if (list->older_ms != 0 && (filter->before.value == 0 || older.value < filter->before.value))
        filter->before = older;
    if (list->newer_ms != 0)
        filter->from = rv_id_from(q->now - list->newer_ms);
}

/* The one task of a key, which outlives it. */
static enum rv_err query_key(const struct query *q, struct rv_call_list *list,
                             struct rv_arena *arena)
{
    struct rv_key_row row;
    const struct rv_task *task = NULL;
    enum rv_err err = rv_store_load_keys(q->store, arena, &list->key, 1, &row);
    if (err == RV_OK && row.task.value != 0)
        err = q->store->ops->load_tasks(q->store, arena, RV_COLUMNS_ERRORS, &row.task, 1, &task);
    list->count = 0;
    if (err == RV_OK && task != NULL)
        list->tasks[list->count++] = *task;
    return err;
}

enum rv_err query_tasks_find(const struct query *q, struct rv_call_list *list,
                             struct rv_arena *arena)
{
    rv_assert(list->limit > 0);
    rv_assert(list->limit <= RV_PAGE_ROWS_MAX);
    list->tasks = RV_ROOM(arena, struct rv_task, list->limit);
    if (list->tasks == NULL)
        return RV_ERR_MEMORY;
    if (list->key.at != NULL)
        return query_key(q, list, arena);
    RV_TRY(q->store->ops->list_tasks(q->store, arena, RV_COLUMNS_ERRORS, &list->filter, list->limit,
                                     list->tasks, &list->count, &list->next));
    rv_assert(list->count <= list->limit);
    return RV_OK;
}

enum rv_err query_tasks(const struct query *q, struct rv_call *call)
{
    struct rv_call_list *list = &call->u.list;
    struct rv_arena *arena = &call->arena;
    page_limit(list);
    list->task_workflows = RV_NEW_ARRAY(arena, const struct rv_workflow_row *, list->limit);
    if (list->task_workflows == NULL)
        return RV_ERR_MEMORY;
    query_filter_age(q, list);
    enum rv_err err = query_tasks_find(q, list, arena);
    for (size_t i = 0; err == RV_OK && i < list->count; i++) {
        struct workflow_entry *entry;
        if (i > 0 && list->tasks[i].workflow == list->tasks[i - 1].workflow) {
            list->task_workflows[i] = list->task_workflows[i - 1];
            continue;
        }
        err = workflow_by_id(q->workflows, list->tasks[i].workflow, &entry);
        if (err == RV_OK && entry != NULL)
            list->task_workflows[i] = rv_row_copy(&rv_row_workflow, RV_COLUMNS_ALL, arena,
                                                  &entry->row);
    }
    return err;
}

static enum rv_err steps_of(const struct query *q, struct rv_call_list *list,
                            struct rv_arena *arena, enum rv_columns columns, uint32_t after,
                            size_t limit)
{
    list->steps = RV_ROOM(arena, struct rv_step, limit);
    if (list->steps == NULL)
        return RV_ERR_MEMORY;
    RV_TRY(q->store->ops->list_steps(q->store, arena, columns, list->task, after, limit,
                                     list->steps, &list->count));
    rv_assert(list->count <= limit);
    return RV_OK;
}

/* A page of steps, each with its newest attempt, and the ended attempts of just these steps. */
static enum rv_err attempts_of(const struct query *q, struct rv_call *call)
{
    struct rv_call_list *list = &call->u.list;
    struct rv_arena *arena = &call->arena;
    /* The page goes on inside a step: that one's newest attempt may still be to come. */
    uint32_t from = list->after_step ? list->after_step - 1 : 0;
    if (list->step != 0)
        RV_TRY(steps_of(q, list, arena, RV_COLUMNS_ERRORS, list->step - 1, 1));
    else
        RV_TRY(steps_of(q, list, arena, RV_COLUMNS_ERRORS, from, list->limit));
    list->steps_count = list->count;
    list->attempts = RV_ROOM(arena, struct rv_attempt, list->limit);
    if (list->attempts == NULL)
        return RV_ERR_MEMORY;
    RV_TRY(q->store->ops->list_attempts(
        q->store, arena, (struct rv_step_id){list->task, list->step}, list->after_step, list->after,
        list->limit, list->attempts, &list->count));
    rv_assert(list->count <= list->limit);
    return RV_OK;
}

static void circuits_show(struct agent_kind *kind, struct rv_arena *arena,
                          struct rv_agent_kind_row *row)
{
    const struct circuit *worst[RV_AGENT_CIRCUITS_SHOWN];
    circuits_count_waiting(kind);
    row->circuits_open = kind->circuits.count;
    row->circuits_count = circuits_worst(kind, RV_AGENT_CIRCUITS_SHOWN, worst);
    rv_assert(row->circuits_count <= RV_AGENT_CIRCUITS_SHOWN);
    rv_assert(row->circuits_count <= row->circuits_open);
    for (size_t i = 0; i < row->circuits_count; i++)
        row->circuits[i] = (struct rv_circuit_row){
            .target = rv_arena_str(arena, rv_str_of(worst[i]->target)),
            .until = worst[i]->until,
            .waiting = circuit_waiting(worst[i]),
        };
}

enum rv_err query_agents_show(const struct query *q, struct rv_arena *arena,
                              struct rv_call_agents *out)
{
    size_t kinds = 0, instances = 0;
    for (struct agent_kind *k = q->agents->kinds; k != NULL; k = k->next) {
        kinds++;
        for (struct agent_instance *i = k->instances; i != NULL; i = i->next)
            instances++;
    }
    out->kinds = RV_NEW_ARRAY(arena, struct rv_agent_kind_row, kinds + 1);
    out->instances = RV_NEW_ARRAY(arena, struct rv_agent_row, instances + 1);
    out->kinds_count = out->instances_count = 0;
    if (out->kinds == NULL || out->instances == NULL)
        return RV_ERR_MEMORY;
    for (struct agent_kind *k = q->agents->kinds; k != NULL; k = k->next) {
        rv_assert(out->kinds_count < kinds);
        struct rv_agent_kind_row *row = &out->kinds[out->kinds_count++];
        row->agent = rv_arena_str(arena, rv_str_of(k->name));
        kind_sweep(k);
        kind_waiting(k, &row->waiting, &row->waiting_since);
        row->open_attempts = k->held_count;
        row->limit = (struct rv_agent_limit){
            .agent = row->agent,
            .concurrent = k->limit.concurrent,
            .per_second = k->limit.per_second,
            .paused = k->limit.paused,
            .by = k->limit.by ? rv_arena_str(arena, rv_str_of(k->limit.by)) : RV_STR_NONE,
            .at = k->limit.at,
        };
        circuits_show(k, arena, row);
        for (struct agent_instance *i = k->instances; i != NULL; i = i->next) {
            if (!instance_shown(i, q->now))
                continue;
            bool connected = instance_connected(i, q->now);
            row->instances += connected;
            rv_assert(i->kind == k);
            rv_assert(out->instances_count < instances);
            out->instances[out->instances_count++] = (struct rv_agent_row){
                .agent = row->agent,
                .instance = rv_arena_str(arena, rv_str_of(i->name)),
                .seen_at = instance_heard(i),
                .open_attempts = i->held_count,
                .parked = i->parked_count > 0,
                .connected = connected,
            };
        }
    }
    return RV_OK;
}

static enum rv_err history_of(const struct query *q, struct rv_call_list *list,
                              struct rv_arena *arena)
{
    list->history = RV_ROOM(arena, struct rv_history_row, list->limit);
    if (list->history == NULL)
        return RV_ERR_MEMORY;
    RV_TRY(q->store->ops->list_history(q->store, arena, list->task, (uint32_t)list->before,
                                       list->limit, list->history, &list->count));
    rv_assert(list->count <= list->limit);
    return RV_OK;
}

/* The rows are of a task: whether there is such a one. */
static enum rv_err task_there(const struct query *q, struct rv_call *call, bool *ret_there)
{
    struct rv_call_list *list = &call->u.list;
    const struct rv_task *task = NULL;
    page_limit(list);
    enum rv_err err = q->store->ops->load_tasks(q->store, &call->arena, RV_COLUMNS_PLAIN,
                                                &list->task, 1, &task);
    *ret_there = err == RV_OK && task != NULL;
    if (err == RV_OK && task == NULL)
        query_no_task_text(call, list->task);
    return err;
}

enum rv_err query_steps(const struct query *q, struct rv_call *call)
{
    struct rv_call_list *list = &call->u.list;
    bool there;
    enum rv_err err = task_there(q, call, &there);
    return there ? steps_of(q, list, &call->arena, RV_COLUMNS_ALL, list->after_step, list->limit)
                 : err;
}

enum rv_err query_attempts(const struct query *q, struct rv_call *call)
{
    bool there;
    enum rv_err err = task_there(q, call, &there);
    return there ? attempts_of(q, call) : err;
}

enum rv_err query_history(const struct query *q, struct rv_call *call)
{
    bool there;
    enum rv_err err = task_there(q, call, &there);
    return there ? history_of(q, &call->u.list, &call->arena) : err;
}

enum rv_err query_late(const struct query *q, struct rv_call *call)
{
    struct rv_call_list *list = &call->u.list;
    struct rv_arena *arena = &call->arena;
    bool there;
    enum rv_err err = task_there(q, call, &there);
    if (!there)
        return err;
    list->late_replies = RV_ROOM(arena, struct rv_late_reply, list->limit);
    if (list->late_replies == NULL)
        return RV_ERR_MEMORY;
    RV_TRY(q->store->ops->list_late_replies(q->store, arena, RV_COLUMNS_ALL,
                                            (struct rv_step_id){list->task, 0}, 0, list->skip,
                                            list->limit, list->late_replies, &list->count));
    rv_assert(list->count <= list->limit);
    return RV_OK;
}

enum rv_err query_alerts(const struct query *q, struct rv_call *call)
{
    struct rv_call_list *list = &call->u.list;
    page_limit(list);
    list->alerts = RV_ROOM(&call->arena, struct rv_alert, list->limit);
    if (list->alerts == NULL)
        return RV_ERR_MEMORY;
    RV_TRY(q->store->ops->list_alerts(q->store, &call->arena, list->task, list->open_only,
                                      list->before, list->limit, list->alerts, &list->count));
    rv_assert(list->count <= list->limit);
    RV_TRY(status_alerts_facts(q, &call->arena, list->alerts, list->count, &list->alert_facts));
    return status_alerts_group(&call->arena, list->alerts, list->alert_facts, list->count,
                               &list->groups);
}

/* "namespace/name" or "namespace/name:version" alone. */
static enum rv_err query_workflow(const struct query *q, struct rv_call *call)
{
    struct rv_call_list *list = &call->u.list;
    struct rv_str name = list->filter.workflow;
    struct rv_str space = {name.at, 0};
    struct rv_str version = RV_STR_NONE;
    const char *slash = memchr(name.at, '/', name.len);
    if (slash != NULL) {
        space.len = (size_t)(slash - name.at);
        name = (struct rv_str){slash + 1, name.len - space.len - 1};
    }
    const char *colon = name.len ? memchr(name.at, ':', name.len) : NULL;
    if (colon != NULL) {
        version = (struct rv_str){colon + 1, (size_t)(name.at + name.len - colon - 1)};
        name.len = (size_t)(colon - name.at);
    }
    const struct rv_workflow_row *row = NULL;
    enum rv_err err = q->store->ops->find_workflow(q->store, &call->arena, space, name, version,
                                                   &row);
    if (err != RV_OK)
        return err;
    if (row != NULL) {
        list->count = 1;
        list->workflows[0] = *row;
        return RV_OK;
    }
    call->err = RV_ERR_NOT_FOUND;
    call->message = call_printf(
        call, "no workflow %.*s is published; `reeve workflows` lists the published workflows",
        RV_STR_FMT(list->filter.workflow));
    return RV_OK;
}

enum rv_err query_workflows(const struct query *q, struct rv_call *call)
{
    struct rv_call_list *list = &call->u.list;
    page_limit(list);
    list->workflows = RV_ROOM(&call->arena, struct rv_workflow_row, list->limit);
    if (list->workflows == NULL)
        return RV_ERR_MEMORY;
    if (list->filter.workflow.len > 0)
        return query_workflow(q, call);
    RV_TRY(q->store->ops->list_workflows(q->store, &call->arena, list->skip, list->limit,
                                         list->workflows, &list->count));
    rv_assert(list->count <= list->limit);
    return RV_OK;
}

enum rv_err query_agents(const struct query *q, struct rv_call *call)
{
    return query_agents_show(q, &call->arena, &call->u.agents);
}
