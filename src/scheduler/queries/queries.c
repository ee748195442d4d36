/* Queries: pages of rows as committed, read inside the batch's transaction onto the call's arena.
 * */
#include "scheduler/batch/state.h"

#include "base/limits.h"

void no_task_say(struct rv_call *call, struct rv_task_id task)
{
    char id[RV_ID_TEXT_BYTES];
    call->err = RV_ERR_NOT_FOUND;
    call->message = call_printf(
        call, "there is no such task: %.*s (finished tasks are deleted after --retain)",
        RV_STR_FMT(rv_task_text(task, id)));
}

enum rv_err query_no_task(struct pending *p, struct rv_task_id task)
{
    no_task_say(p->call, task);
    return RV_OK;
}

static enum rv_err query_show(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_show *show = &p->call->u.show;
    enum rv_err err = s->store->ops->load_tasks(s->store, &p->call->arena, RV_COLUMNS_ALL,
                                                &show->task, 1, &show->found);
    if (err != RV_OK)
        return err;
    if (show->found == NULL)
        return query_no_task(p, show->task);
    struct workflow_entry *entry;
    err = workflow_by_id(s, show->found->workflow, &entry);
    if (err == RV_OK && entry != NULL)
        show->workflow = rv_row_copy(&rv_row_workflow, RV_COLUMNS_ALL, &p->call->arena,
                                     &entry->row);
    return err;
}

/* The task of a submission that has waited for it. */
static enum rv_err query_submitted(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_submit *submit = &p->call->u.submit;
    return s->store->ops->load_tasks(s->store, &p->call->arena, RV_COLUMNS_ALL,
                                     &submit->items[0].task, 1, &submit->task);
}

/* The store's clock says what is old; ids tell when they were made. Before all time there is the id
 * 1, than which none is older: 0 would be no bound. */
void filter_age(const struct rv_scheduler *s, struct rv_call_list *list)
{
    struct rv_task_filter *filter = &list->filter;
    struct rv_task_id older = rv_id_from(s->batch.now - list->older_ms + 1);
    if (older.value == 0)
        older.value = 1;
    if (list->older_ms != 0 && (filter->before.value == 0 || older.value < filter->before.value))
        filter->before = older;
    if (list->newer_ms != 0)
        filter->from = rv_id_from(s->batch.now - list->newer_ms);
}

/* The one task of a key, which outlives it. */
static enum rv_err query_key(struct rv_scheduler *s, struct rv_call_list *list,
                             struct rv_arena *arena)
{
    struct rv_key_row row;
    const struct rv_task *task = NULL;
    enum rv_err err = s->store->ops->find_keys(s->store, arena, &list->key, 1, &row);
    if (err == RV_OK && row.task.value != 0)
        err = s->store->ops->load_tasks(s->store, arena, RV_COLUMNS_ERRORS, &row.task, 1, &task);
    if (err == RV_OK && task != NULL)
        list->tasks[list->count++] = *task;
    return err;
}

enum rv_err tasks_find(struct rv_scheduler *s, struct rv_call_list *list, struct rv_arena *arena)
{
    list->tasks = RV_ROOM(arena, struct rv_task, list->limit);
    if (list->tasks == NULL)
        return RV_ERR_MEMORY;
    if (list->key.at != NULL)
        return query_key(s, list, arena);
    return s->store->ops->list_tasks(s->store, arena, RV_COLUMNS_ERRORS, &list->filter, list->limit,
                                     list->tasks, &list->count, &list->next);
}

static enum rv_err query_tasks(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_list *list = &p->call->u.list;
    struct rv_arena *arena = &p->call->arena;
    list->task_workflows = RV_NEW_ARRAY(arena, const struct rv_workflow_row *, list->limit);
    if (list->task_workflows == NULL)
        return RV_ERR_MEMORY;
    filter_age(s, list);
    enum rv_err err = tasks_find(s, list, arena);
    for (size_t i = 0; err == RV_OK && i < list->count; i++) {
        struct workflow_entry *entry;
        if (i > 0 && list->tasks[i].workflow == list->tasks[i - 1].workflow) {
            list->task_workflows[i] = list->task_workflows[i - 1];
            continue;
        }
        err = workflow_by_id(s, list->tasks[i].workflow, &entry);
        if (err == RV_OK && entry != NULL)
            list->task_workflows[i] = rv_row_copy(&rv_row_workflow, RV_COLUMNS_ALL, arena,
                                                  &entry->row);
    }
    return err;
}

static enum rv_err query_steps(struct rv_scheduler *s, struct rv_call_list *list,
                               struct rv_arena *arena, enum rv_columns columns, uint32_t after,
                               size_t limit)
{
    list->steps = RV_ROOM(arena, struct rv_step, limit);
    if (list->steps == NULL)
        return RV_ERR_MEMORY;
    return s->store->ops->list_steps(s->store, arena, columns, list->task, after, limit,
                                     list->steps, &list->count);
}

/* A page of steps, each with its newest attempt, and the ended attempts of just these steps. */
static enum rv_err query_attempts(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_list *list = &p->call->u.list;
    struct rv_arena *arena = &p->call->arena;
    /* The page goes on inside a step: that one's newest attempt may still be to come. */
    uint32_t from = list->after_step ? list->after_step - 1 : 0;
    enum rv_err err = list->step
                          ? query_steps(s, list, arena, RV_COLUMNS_ERRORS, list->step - 1, 1)
                          : query_steps(s, list, arena, RV_COLUMNS_ERRORS, from, list->limit);
    size_t steps_count = list->count;
    list->attempts = RV_ROOM(arena, struct rv_attempt, list->limit);
    if (err == RV_OK && list->attempts == NULL)
        err = RV_ERR_MEMORY;
    if (err == RV_OK)
        err = s->store->ops->list_attempts(
            s->store, arena, (struct rv_step_id){list->task, list->step}, list->after_step,
            list->after, list->limit, list->attempts, &list->count);
    list->steps_count = steps_count;
    return err;
}

static void circuits_show(struct agent_kind *kind, struct rv_arena *arena,
                          struct rv_agent_kind_row *row)
{
    const struct circuit *worst[RV_AGENT_CIRCUITS_SHOWN];
    circuits_count_waiting(kind);
    row->circuits_open = kind->circuits.count;
    row->circuits_count = circuits_worst(kind, RV_AGENT_CIRCUITS_SHOWN, worst);
    for (size_t i = 0; i < row->circuits_count; i++)
        row->circuits[i] = (struct rv_circuit_row){
            .target = rv_arena_str(arena, rv_str_of(worst[i]->target)),
            .until = worst[i]->until,
            .waiting = circuit_waiting(worst[i]),
        };
}

enum rv_err agents_show(struct rv_scheduler *s, struct rv_arena *arena, struct rv_call_agents *out)
{
    size_t kinds = 0, instances = 0;
    for (struct agent_kind *k = s->agents.kinds; k != NULL; k = k->next) {
        kinds++;
        for (struct agent_instance *i = k->instances; i != NULL; i = i->next)
            instances++;
    }
    out->kinds = RV_NEW_ARRAY(arena, struct rv_agent_kind_row, kinds + 1);
    out->instances = RV_NEW_ARRAY(arena, struct rv_agent_row, instances + 1);
    if (out->kinds == NULL || out->instances == NULL)
        return RV_ERR_MEMORY;
    for (struct agent_kind *k = s->agents.kinds; k != NULL; k = k->next) {
        struct rv_agent_kind_row *row = &out->kinds[out->kinds_count++];
        row->agent = rv_arena_str(arena, rv_str_of(k->name));
        kind_sweep(k);
        kind_waiting(k, &row->waiting, &row->waiting_since);
        row->open_attempts = k->held_count;
        row->limit = (struct rv_agent_limit){
            .agent = row->agent,
            .concurrent = k->limit.concurrent,
            .per_second = k->limit.bucket.per_second,
            .paused = k->limit.paused,
            .by = k->limit.by ? rv_arena_str(arena, rv_str_of(k->limit.by)) : RV_STR_NONE,
            .at = k->limit.at,
        };
        circuits_show(k, arena, row);
        for (struct agent_instance *i = k->instances; i != NULL; i = i->next) {
            if (!instance_shown(i, s->batch.now))
                continue;
            row->instances++;
            out->instances[out->instances_count++] = (struct rv_agent_row){
                .agent = row->agent,
                .instance = rv_arena_str(arena, rv_str_of(i->name)),
                .seen_at = i->seen_at,
                .open_attempts = i->held_count,
                .parked = i->parked_count > 0,
            };
        }
    }
    return RV_OK;
}

static enum rv_err query_history(struct rv_scheduler *s, struct rv_call_list *list,
                                 struct rv_arena *arena)
{
    list->history = RV_ROOM(arena, struct rv_history_row, list->limit);
    if (list->history == NULL)
        return RV_ERR_MEMORY;
    return s->store->ops->list_history(s->store, arena, list->task, (uint32_t)list->before,
                                       list->limit, list->history, &list->count);
}

static enum rv_err query_task_rows(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_list *list = &p->call->u.list;
    struct rv_arena *arena = &p->call->arena;
    const struct rv_task *task;
    enum rv_err err = s->store->ops->load_tasks(s->store, arena, RV_COLUMNS_PLAIN, &list->task, 1,
                                                &task);
    if (err != RV_OK)
        return err;
    if (task == NULL)
        return query_no_task(p, list->task);
    if (p->call->kind == RV_CALL_STEPS)
        return query_steps(s, list, arena, RV_COLUMNS_ALL, list->after_step, list->limit);
    if (p->call->kind == RV_CALL_ATTEMPTS)
        return query_attempts(s, p);
    if (p->call->kind == RV_CALL_HISTORY)
        return query_history(s, list, arena);
    list->late_replies = RV_ROOM(arena, struct rv_late_reply, list->limit);
    if (list->late_replies == NULL)
        return RV_ERR_MEMORY;
    return s->store->ops->list_late_replies(s->store, arena, RV_COLUMNS_ALL,
                                            (struct rv_step_id){list->task, 0}, 0, list->skip,
                                            list->limit, list->late_replies, &list->count);
}

static enum rv_err query_alerts(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_list *list = &p->call->u.list;
    list->alerts = RV_ROOM(&p->call->arena, struct rv_alert, list->limit);
    if (list->alerts == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = s->store->ops->list_alerts(s->store, &p->call->arena, list->task,
                                                 list->open_only, list->before, list->limit,
                                                 list->alerts, &list->count);
    if (err == RV_OK)
        err = alerts_facts(s, &p->call->arena, list->alerts, list->count, &list->alert_facts);
    return err == RV_OK ? alerts_group(&p->call->arena, list->alerts, list->alert_facts,
                                       list->count, &list->groups)
                        : err;
}

/* "namespace/name" or "namespace/name:version" alone. */
static enum rv_err query_workflow(struct rv_scheduler *s, struct rv_call *call)
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
    enum rv_err err = s->store->ops->find_workflow(s->store, &call->arena, space, name, version,
                                                   &row);
    if (err != RV_OK)
        return err;
    if (row != NULL) {
        list->workflows[list->count++] = *row;
        return RV_OK;
    }
    call->err = RV_ERR_NOT_FOUND;
    call->message = call_printf(call, "no workflow %.*s is published; `reeve workflows` lists them",
                                RV_STR_FMT(list->filter.workflow));
    return RV_OK;
}

static enum rv_err query_workflows(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_list *list = &p->call->u.list;
    list->workflows = RV_ROOM(&p->call->arena, struct rv_workflow_row, list->limit);
    if (list->workflows == NULL)
        return RV_ERR_MEMORY;
    if (list->filter.workflow.len > 0)
        return query_workflow(s, p->call);
    return s->store->ops->list_workflows(s->store, &p->call->arena, list->skip, list->limit,
                                         list->workflows, &list->count);
}

static enum rv_err query_read(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_list *list = &p->call->u.list;
    enum rv_call_kind kind = p->call->kind;
    bool page = kind == RV_CALL_TASKS || kind == RV_CALL_STEPS || kind == RV_CALL_ATTEMPTS ||
                kind == RV_CALL_LATE || kind == RV_CALL_HISTORY || kind == RV_CALL_ALERTS ||
                kind == RV_CALL_WORKFLOWS;
    if (page && (list->limit == 0 || list->limit > RV_PAGE_ROWS_MAX))
        list->limit = RV_PAGE_ROWS_MAX;
    if (kind == RV_CALL_SHOW)
        return query_show(s, p);
    if (kind == RV_CALL_SUBMIT)
        return query_submitted(s, p);
    if (kind == RV_CALL_TASKS)
        return query_tasks(s, p);
    if (kind == RV_CALL_ALERTS)
        return query_alerts(s, p);
    if (kind == RV_CALL_WORKFLOWS)
        return query_workflows(s, p);
    if (kind == RV_CALL_AGENTS)
        return agents_show(s, &p->call->arena, &p->call->u.agents);
    if (kind == RV_CALL_METRICS)
        return query_metrics(s, p);
    if (kind == RV_CALL_STATUS)
        return query_status(s, p);
    if (kind == RV_CALL_KEYS)
        return query_keys(s, p);
    if (kind == RV_CALL_EXPLAIN)
        return explain_answer(s, p);
    if (kind == RV_CALL_SELECTIONS)
        return query_selections(s, p);
    if (kind == RV_CALL_OUTCOMES)
        return query_outcomes(s, p);
    return query_task_rows(s, p);
}

/* An answer for which there is no room is its caller's trouble alone: the batch goes on. After rows
 * that cannot be read the transaction cannot: the others are asked to repeat their calls. */
enum rv_err query_answer(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call *call = p->call;
    enum rv_err err = query_read(s, p);
    if (call->arena.refused == RV_OK) {
        if (err == RV_ERR_CORRUPT)
            s->batch.damaged = p;
        return err;
    }
    if (call->kind == RV_CALL_SUBMIT) { /* it was carried out: its answer names the task */
        call->u.submit.task = NULL;
        return RV_OK;
    }
    call->err = call->arena.refused;
    call->message = call->err == RV_ERR_LIMIT
                        ? RV_STR("the answer is too large: ask for fewer rows with `limit`")
                        : rv_str_of(rv_err_text(call->err));
    if (call->kind == RV_CALL_SHOW)
        call->u.show.found = NULL;
    if (call->kind == RV_CALL_EXPLAIN)
        call->u.explain.found = NULL;
    return RV_OK;
}

bool show_waits(const struct rv_scheduler *s, const struct pending *p, const struct rv_task *task)
{
    const struct rv_call_show *show = &p->call->u.show;
    return show->wait_ms > 0 && !p->waited && task->revision <= show->after_revision &&
           rv_task_state_open(task->state) && !s->draining;
}

void show_act(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_show *show = &p->call->u.show;
    pending_unlink(&s->batch.calls, p);
    /* It was read before the commit: what this very batch has changed, nobody would tell it. */
    const struct work *work = work_find(s, show->task);
    if (show->found != NULL && work != NULL && work->changed && !work->dropped) {
        const struct rv_task *after = rv_row_copy(&rv_row_task,
                                                  p->plain ? RV_COLUMNS_PLAIN : RV_COLUMNS_ALL,
                                                  &p->call->arena, work->task);
        show->found = after ? after : show->found;
    }
    if (show->found != NULL && show_waits(s, p, show->found))
        park_waiter(s, p, show->task, show->wait_ms);
    else if (p->plain)
        read_again(s, p);
    else
        finish(s, p, p->call->err, p->call->message);
}
