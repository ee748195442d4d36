/* Loads and pages. */
#include "sim/store/memory/memory_priv.h"

#include "core/tags.h"
#include "store/load.h"

#include <string.h>

/* How many tasks one page of list_tasks looks at, at most. */
enum { LOOKS_MAX = 2000 };

static struct rv_store_memory_data *data_of(struct rv_store *base)
{
    return ((struct memory *)base)->data;
}

static enum rv_err row_load(struct rv_arena *arena, enum rv_columns columns,
                            const struct rv_row_kind *kind, const void *row, const void **ret_row)
{
    *ret_row = NULL;
    if (row == NULL)
        return RV_OK;
    void *copy = rv_arena_take(arena, kind->bytes);
    if (copy == NULL)
        return arena->refused;
    *ret_row = copy;
    return rv_row_read(kind, columns, arena, row, copy);
}

enum rv_err memory_load_tasks(struct rv_store *base, struct rv_arena *arena,
                              enum rv_columns columns, const struct rv_task_id *ids, size_t count,
                              const struct rv_task **ret_tasks)
{
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < count; i++) {
        const struct node *node = memory_node_find(data_of(base), ids[i]);
        const void *row = NULL;
        err = row_load(arena, columns, &rv_row_task, node != NULL ? node->row : NULL, &row);
        ret_tasks[i] = row;
    }
    return err;
}

enum rv_err memory_load_steps(struct rv_store *base, struct rv_arena *arena,
                              enum rv_columns columns, const struct rv_step_id *ids, size_t count,
                              const struct rv_step **ret_steps)
{
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < count; i++) {
        const struct node *node = memory_node_find(data_of(base), ids[i].task);
        const struct sorted_entry *entry = node != NULL
                                               ? sorted_find(&node->steps, ids[i].number, 0)
                                               : NULL;
        const void *row = NULL;
        err = row_load(arena, columns, &rv_row_step, entry != NULL ? entry->row : NULL, &row);
        ret_steps[i] = row;
    }
    return err;
}

static enum rv_err keys_load(const struct rv_store_memory_data *data, struct rv_wants *load)
{
    enum rv_err err = RV_OK;
    load->key_rows = RV_NEW_ARRAY(load->arena, struct rv_key_row, load->keys_count + 1);
    if (load->key_rows == NULL)
        return load->arena->refused;
    for (size_t i = 0; err == RV_OK && i < load->keys_count; i++) {
        const struct rv_key_row *row = memory_key_find(data, load->keys[i]);
        struct rv_key_row free_key = {.key = load->keys[i]};
        err = rv_row_read(&rv_row_key, RV_COLUMNS_ALL, load->arena, row != NULL ? row : &free_key,
                          &load->key_rows[i]);
    }
    return err;
}

enum rv_err memory_load(struct rv_store *base, struct rv_wants *load)
{
    load->now = memory_clock_read((struct memory *)base);
    RV_TRY(memory_load_owned((struct memory *)base, load));
    return load->keys_count > 0 ? keys_load(data_of(base), load) : RV_OK;
}

enum rv_err memory_load_workflow(struct rv_store *base, struct rv_arena *arena, int64_t id,
                                 const struct rv_workflow_row **ret_row)
{
    const struct sorted_entry *entry = sorted_find(&data_of(base)->workflows, id, 0);
    const void *row = NULL;
    enum rv_err err = row_load(arena, RV_COLUMNS_ALL, &rv_row_workflow,
                               entry != NULL ? entry->row : NULL, &row);
    if (err == RV_OK)
        *ret_row = row;
    return err;
}

/* By namespace and name, then the newest first. */
static int workflow_cmp(const struct rv_workflow_row *a, const struct rv_workflow_row *b)
{
    int order = rv_str_cmp(a->space, b->space);
    if (order == 0)
        order = rv_str_cmp(a->name, b->name);
    if (order == 0)
        order = (a->published_at < b->published_at) - (a->published_at > b->published_at);
    return order != 0 ? order : (a->id < b->id) - (a->id > b->id);
}

static bool workflow_named(const struct rv_workflow_row *row, struct rv_str space,
                           struct rv_str name, struct rv_str version)
{
    return rv_str_eq(row->space, space) && rv_str_eq(row->name, name) &&
           (version.at == NULL || rv_str_eq(row->version, version));
}

enum rv_err memory_find_workflow(struct rv_store *base, struct rv_arena *arena, struct rv_str space,
                                 struct rv_str name, struct rv_str version,
                                 const struct rv_workflow_row **ret_row)
{
    const struct sorted *workflows = &data_of(base)->workflows;
    const struct rv_workflow_row *found = NULL;
    for (size_t i = 0; i < workflows->count; i++) {
        const struct rv_workflow_row *row = workflows->at[i].row;
        if (workflow_named(row, space, name, version) &&
            (found == NULL || workflow_cmp(row, found) < 0))
            found = row;
    }
    const void *row = NULL;
    enum rv_err err = row_load(arena, RV_COLUMNS_ALL, &rv_row_workflow, found, &row);
    if (err == RV_OK)
        *ret_row = row;
    return err;
}

/* "namespace/name" or "namespace/name:version" is the row's name. */
static bool workflow_fits(const struct rv_workflow_row *row, struct rv_str filter)
{
    struct rv_str rest = filter;
    const struct rv_str parts[] = {row->space, RV_STR("/"), row->name, RV_STR(":"), row->version};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (i == 3 && rest.len == 0)
            return true;
        if (rest.len < parts[i].len || !rv_str_eq((struct rv_str){rest.at, parts[i].len}, parts[i]))
            return false;
        rest.at += parts[i].len;
        rest.len -= parts[i].len;
    }
    return rest.len == 0;
}

static bool agent_asked(const struct node *node, struct rv_str agent)
{
    const struct rv_task *task = node->row;
    for (uint32_t i = 0; i < task->open_count; i++) {
        const struct sorted_entry *entry = sorted_find(&node->steps, task->open[i], 0);
        const struct rv_step *step = entry != NULL ? entry->row : NULL;
        if (step != NULL && step->agent.at != NULL && rv_str_eq(step->agent, agent))
            return true;
    }
    return false;
}

/* All but the type of its error. */
static bool task_fits(const struct rv_store_memory_data *data, const struct node *node,
                      const struct rv_task_filter *filter)
{
    const struct rv_task *task = node->row;
    if (filter->by_state && task->state != filter->state)
        return false;
    if (filter->suspended && task->suspended_at == 0)
        return false;
    if (filter->agent.at != NULL &&
        (!rv_task_state_open(task->state) || !agent_asked(node, filter->agent)))
        return false;
    if (filter->tag.at != NULL && !rv_tags_have(task->tags, filter->tag))
        return false;
    if (filter->workflow.at == NULL)
        return true;
    const struct sorted_entry *workflow = sorted_find(&data->workflows, task->workflow, 0);
    return workflow != NULL && workflow_fits(workflow->row, filter->workflow);
}

enum rv_err memory_list_tasks(struct rv_store *base, struct rv_arena *arena,
                              enum rv_columns columns, const struct rv_task_filter *filter,
                              size_t limit, struct rv_task *ret_tasks, size_t *ret_count,
                              struct rv_task_id *ret_next)
{
    const struct rv_store_memory_data *data = data_of(base);
    int64_t before = filter->before.value;
    size_t i = before != 0 ? sorted_place(&data->tasks, before, INT64_MIN) : data->tasks.count;
    size_t count = 0;
    size_t looks = 0;
    while (i > 0 && count < limit && looks < LOOKS_MAX) {
        const struct node *node = data->tasks.at[--i].row;
        looks++;
        if (node->row->id.value < filter->from.value) {
            i = 0;
            break;
        }
        bool fits = task_fits(data, node, filter);
        enum rv_err err = RV_OK;
        if (fits && filter->error_type.at != NULL)
            err = rv_error_is(arena, rv_task_error(node->row), filter->error_type, &fits);
        if (err == RV_OK && fits)
            err = rv_row_read(&rv_row_task, columns, arena, node->row, &ret_tasks[count]);
        if (err != RV_OK)
            return err;
        count += fits;
    }
    *ret_count = count;
    ret_next->value = count < limit && i > 0 ? data->tasks.at[i].a : 0;
    return RV_OK;
}

/* The rows of a set from `place` on, at most `limit`. */
static enum rv_err rows_list(struct rv_arena *arena, enum rv_columns columns,
                             const struct sorted *set, size_t place, const struct rv_row_kind *kind,
                             size_t limit, void *ret_rows, size_t *ret_count)
{
    size_t count = 0;
    for (; place < set->count && count < limit; place++, count++) {
        char *row = (char *)ret_rows + count * kind->bytes;
        enum rv_err err = rv_row_read(kind, columns, arena, set->at[place].row, row);
        if (err != RV_OK)
            return err;
    }
    *ret_count = count;
    return RV_OK;
}

enum rv_err memory_list_steps(struct rv_store *base, struct rv_arena *arena,
                              enum rv_columns columns, struct rv_task_id task, uint32_t after,
                              size_t limit, struct rv_step *ret_steps, size_t *ret_count)
{
    const struct sorted none = {.at = NULL};
    const struct node *node = memory_node_find(data_of(base), task);
    const struct sorted *steps = node != NULL ? &node->steps : &none;
    return rows_list(arena, columns, steps, sorted_place(steps, after, INT64_MAX), &rv_row_step,
                     limit, ret_steps, ret_count);
}

size_t rv_store_memory_steps(struct rv_store *store, struct rv_task_id task, size_t max,
                             struct rv_step *ret_steps)
{
    const struct node *node = memory_node_find(data_of(store), task);
    size_t count = node == NULL ? 0 : node->steps.count < max ? node->steps.count : max;
    for (size_t i = 0; i < count; i++)
        ret_steps[i] = *(const struct rv_step *)node->steps.at[i].row;
    return count;
}

enum rv_err memory_list_attempts(struct rv_store *base, struct rv_arena *arena,
                                 struct rv_step_id step, uint32_t after_step, uint32_t after,
                                 size_t limit, struct rv_attempt *ret_attempts, size_t *ret_count)
{
    const struct sorted none = {.at = NULL};
    const struct node *node = memory_node_find(data_of(base), step.task);
    const struct sorted *attempts = node != NULL ? &node->attempts : &none;
    size_t place = sorted_place(attempts, after_step, (int64_t)after + 1);
    size_t room = limit;
    if (step.number != 0) {
        size_t first = sorted_place(attempts, step.number, INT64_MIN);
        size_t end = sorted_place(attempts, step.number, INT64_MAX);
        place = place > first ? place : first;
        size_t left = end > place ? end - place : 0;
        room = left < limit ? left : limit;
    }
    return rows_list(arena, RV_COLUMNS_ALL, attempts, place, &rv_row_attempt, room, ret_attempts,
                     ret_count);
}

enum rv_err memory_find_attempt(struct rv_store *base, struct rv_arena *arena,
                                struct rv_step_id step, uint64_t token,
                                struct rv_attempt *ret_attempt, bool *ret_found)
{
    const struct node *node = memory_node_find(data_of(base), step.task);
    *ret_found = false;
    if (node == NULL)
        return RV_OK;
    const struct sorted *attempts = &node->attempts;
    size_t end = sorted_place(attempts, step.number, INT64_MAX);
    for (size_t i = sorted_place(attempts, step.number, INT64_MIN); i < end; i++) {
        const struct rv_attempt *row = attempts->at[i].row;
        if (row->token != token)
            continue;
        *ret_found = true;
        return rv_row_read(&rv_row_attempt, RV_COLUMNS_ALL, arena, row, ret_attempt);
    }
    return RV_OK;
}

enum rv_err memory_list_late_replies(struct rv_store *base, struct rv_arena *arena,
                                     enum rv_columns columns, struct rv_step_id step,
                                     uint32_t attempt, size_t skip, size_t limit,
                                     struct rv_late_reply *ret_rows, size_t *ret_count)
{
    const struct node *node = memory_node_find(data_of(base), step.task);
    size_t count = 0, found = 0;
    for (size_t i = 0; node != NULL && i < node->late.count && count < limit; i++) {
        const struct rv_late_reply *late = node->late.at[i].row;
        if (step.number != 0 && (late->step.number != step.number || late->attempt != attempt))
            continue;
        if (found++ < skip)
            continue;
        enum rv_err err = rv_row_read(&rv_row_late_reply, columns, arena, late, &ret_rows[count]);
        if (err != RV_OK)
            return err;
        count++;
    }
    *ret_count = count;
    return RV_OK;
}

enum rv_err memory_list_alerts(struct rv_store *base, struct rv_arena *arena,
                               struct rv_task_id task, bool open_only, int64_t before, size_t limit,
                               struct rv_alert *ret_alerts, size_t *ret_count)
{
    const struct sorted *alerts = &data_of(base)->alerts;
    size_t i = before != 0 ? sorted_place(alerts, before, INT64_MIN) : alerts->count;
    size_t count = 0;
    while (i > 0 && count < limit) {
        const struct rv_alert *alert = alerts->at[--i].row;
        if ((task.value != 0 && alert->task.value != task.value) ||
            (open_only && (alert->acked_at != 0 || alert->closed_at != 0)))
            continue;
        enum rv_err err = rv_row_read(&rv_row_alert, RV_COLUMNS_ALL, arena, alert,
                                      &ret_alerts[count]);
        if (err != RV_OK)
            return err;
        count++;
    }
    *ret_count = count;
    return RV_OK;
}

const struct rv_alert *memory_alert_find(const struct rv_store_memory_data *data,
                                         struct rv_str source)
{
    for (size_t i = data->alerts.count; i > 0; i--) {
        const struct rv_alert *alert = data->alerts.at[i - 1].row;
        bool open = alert->acked_at == 0 && alert->closed_at == 0;
        if (open && alert->source.at != NULL && rv_str_eq(alert->source, source))
            return alert;
    }
    return NULL;
}

enum rv_err memory_find_alert(struct rv_store *base, struct rv_arena *arena, struct rv_str source,
                              struct rv_alert *ret_alert, bool *ret_found)
{
    const struct rv_alert *alert = memory_alert_find(data_of(base), source);
    *ret_found = alert != NULL;
    return alert != NULL ? rv_row_read(&rv_row_alert, RV_COLUMNS_ALL, arena, alert, ret_alert)
                         : RV_OK;
}

enum rv_err memory_list_messages(struct rv_store *base, struct rv_arena *arena,
                                 struct rv_task_id task, uint32_t after, size_t limit,
                                 struct rv_message *ret_messages, size_t *ret_count)
{
    const struct sorted none = {.at = NULL};
    const struct node *node = memory_node_find(data_of(base), task);
    const struct sorted *messages = node != NULL ? &node->messages : &none;
    return rows_list(arena, RV_COLUMNS_ALL, messages, sorted_place(messages, after, INT64_MAX),
                     &rv_row_message, limit, ret_messages, ret_count);
}

enum rv_err memory_list_history(struct rv_store *base, struct rv_arena *arena,
                                struct rv_task_id task, uint32_t before, size_t limit,
                                struct rv_history_row *ret_rows, size_t *ret_count)
{
    const struct sorted none = {.at = NULL};
    const struct node *node = memory_node_find(data_of(base), task);
    const struct sorted *history = node != NULL ? &node->history : &none;
    size_t i = before != 0 ? sorted_place(history, before, INT64_MIN) : history->count;
    size_t count = 0;
    for (; i > 0 && count < limit; i--, count++) {
        enum rv_err err = rv_row_read(&rv_row_history, RV_COLUMNS_ALL, arena,
                                      history->at[i - 1].row, &ret_rows[count]);
        if (err != RV_OK)
            return err;
    }
    *ret_count = count;
    return RV_OK;
}

static int place_cmp(struct rv_str destination, struct rv_task_id task, struct rv_str other,
                     struct rv_task_id other_task)
{
    int order = rv_str_cmp(destination, other);
    return order != 0 ? order : (task.value > other_task.value) - (task.value < other_task.value);
}

const struct rv_delivery *memory_delivery_find(struct rv_store_memory_data *data,
                                               struct rv_task_id id, struct sorted **ret_set)
{
    struct node *node = memory_node_find(data, id);
    struct sorted_entry *notice = sorted_find(&data->notices, id.value, 0);
    if (notice != NULL) {
        *ret_set = &data->notices;
        return notice->row;
    }
    if (node == NULL || node->delivery.count == 0)
        return NULL;
    *ret_set = &node->delivery;
    return node->delivery.at[0].row;
}

/* The first deliveries that wait and come after a place. */
struct waiting {
    const struct rv_delivery **rows; /* in their order */
    size_t count;
    size_t limit;
    struct rv_str destination; /* the place */
    struct rv_task_id task;
};

static void waiting_see(struct waiting *first, const struct rv_delivery *row)
{
    if (row->next > row->last || row->given_up ||
        place_cmp(row->destination, row->task, first->destination, first->task) <= 0)
        return;
    size_t at = first->count;
    for (; at > 0; at--) {
        const struct rv_delivery *other = first->rows[at - 1];
        if (place_cmp(row->destination, row->task, other->destination, other->task) > 0)
            break;
        if (at < first->limit)
            first->rows[at] = other;
    }
    if (at == first->limit)
        return;
    first->rows[at] = row;
    first->count += first->count < first->limit;
}

static void waiting_find(struct waiting *first, const struct rv_store_memory_data *data)
{
    for (size_t i = 0; i < data->tasks.count; i++) {
        const struct node *node = data->tasks.at[i].row;
        if (node->delivery.count > 0)
            waiting_see(first, node->delivery.at[0].row);
    }
    for (size_t i = 0; i < data->notices.count; i++)
        waiting_see(first, data->notices.at[i].row);
}

enum rv_err memory_list_deliveries(struct rv_store *base, struct rv_arena *arena,
                                   struct rv_task_id task, struct rv_str after_destination,
                                   struct rv_task_id after, size_t limit,
                                   struct rv_delivery *ret_rows, size_t *ret_count)
{
    if (task.value != 0) {
        struct sorted *set;
        const struct rv_delivery *row = memory_delivery_find(data_of(base), task, &set);
        *ret_count = row != NULL && limit > 0;
        return *ret_count > 0 ? rv_row_read(&rv_row_delivery, RV_COLUMNS_ALL, arena, row, ret_rows)
                              : RV_OK;
    }
    *ret_count = 0;
    if (limit == 0)
        return RV_OK;
    struct waiting first = {.limit = limit, .destination = after_destination, .task = after};
    first.rows = RV_ROOM(arena, const struct rv_delivery *, limit);
    if (first.rows == NULL)
        return RV_ERR_MEMORY;
    waiting_find(&first, data_of(base));
    for (size_t i = 0; i < first.count; i++) {
        enum rv_err err = rv_row_read(&rv_row_delivery, RV_COLUMNS_ALL, arena, first.rows[i],
                                      &ret_rows[i]);
        if (err != RV_OK)
            return err;
    }
    *ret_count = first.count;
    return RV_OK;
}

/* The first row that comes after `last`; NULL: there is none. */
static const struct rv_workflow_row *workflow_next(const struct sorted *workflows,
                                                   const struct rv_workflow_row *last)
{
    const struct rv_workflow_row *next = NULL;
    for (size_t i = 0; i < workflows->count; i++) {
        const struct rv_workflow_row *row = workflows->at[i].row;
        if ((last == NULL || workflow_cmp(row, last) > 0) &&
            (next == NULL || workflow_cmp(row, next) < 0))
            next = row;
    }
    return next;
}

enum rv_err memory_list_workflows(struct rv_store *base, struct rv_arena *arena, size_t skip,
                                  size_t limit, struct rv_workflow_row *ret_rows, size_t *ret_count)
{
    const struct sorted *workflows = &data_of(base)->workflows;
    const struct rv_workflow_row *row = workflow_next(workflows, NULL);
    for (; row != NULL && skip > 0; skip--)
        row = workflow_next(workflows, row);
    size_t count = 0;
    for (; row != NULL && count < limit; count++) {
        enum rv_err err = rv_row_read(&rv_row_workflow, RV_COLUMNS_ALL, arena, row,
                                      &ret_rows[count]);
        if (err != RV_OK)
            return err;
        row = workflow_next(workflows, row);
    }
    *ret_count = count;
    return RV_OK;
}

enum rv_err memory_list_records(struct rv_store *base, struct rv_arena *arena, struct rv_str kind,
                                struct rv_str prefix, struct rv_str after, size_t limit,
                                struct rv_record *ret_rows, size_t *ret_count)
{
    const struct records *records = &data_of(base)->records;
    struct rv_str from = rv_str_cmp(after, prefix) > 0 ? after : prefix;
    size_t count = 0;
    for (size_t i = records_place(records, kind, from); i < records->count && count < limit; i++) {
        const struct rv_record *row = records->at[i];
        if (!rv_str_eq(row->kind, kind) || !rv_str_begins(row->key, prefix))
            break;
        if (after.at != NULL && rv_str_eq(row->key, after))
            continue;
        enum rv_err err = rv_row_read(&rv_row_record, RV_COLUMNS_ALL, arena, row, &ret_rows[count]);
        if (err != RV_OK)
            return err;
        count++;
    }
    *ret_count = count;
    return RV_OK;
}
