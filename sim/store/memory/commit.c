/* A batch, applied row by row; each write is noted in a log that takes it back if a later one
 * fails. Guards come before a change's first write, so only whole batches are taken back. */
#include "sim/store/memory/memory_priv.h"

#include "base/array.h"
#include "base/assert.h"
#include "core/agent_limit.h"
#include "core/api_key.h"

#include <stdlib.h>
#include <string.h>

struct undo *memory_log_next(struct commit *commit)
{
    return RV_ARRAY_ROOM(commit->log, commit->count, commit->room) ? &commit->log[commit->count]
                                                                   : NULL;
}

/* ---- open tasks ---- */

static void open_count(struct rv_store_memory_data *data, const struct rv_task *before,
                       const struct rv_task *after)
{
    data->open_count -= before != NULL && rv_task_state_open(before->state);
    data->open_count += after != NULL && rv_task_state_open(after->state);
    if (before != NULL)
        data->open_by_state[before->state]--;
    if (after != NULL)
        data->open_by_state[after->state]++;
}

static enum rv_err open_queue(struct rv_store_memory_data *data, struct node *node,
                              const struct rv_task *task)
{
    if (node->queued || !rv_task_state_open(task->state))
        return RV_OK;
    enum rv_err err = sorted_insert(&data->open, task->id.value, 0, node);
    node->queued = err == RV_OK;
    return err;
}

/* Takes the finished ones out when they are the larger part. */
static void open_trim(struct rv_store_memory_data *data)
{
    enum { SLACK = 64 };
    struct sorted *open = &data->open;
    if (open->count <= 2 * data->open_count + SLACK)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < open->count; i++) {
        struct node *node = open->at[i].row;
        node->queued = rv_task_state_open(node->row->state);
        if (node->queued)
            open->at[kept++] = open->at[i];
    }
    open->count = kept;
}

/* ---- taking back and keeping ---- */

void memory_node_free(struct node *node)
{
    sorted_free(&node->steps);
    sorted_free(&node->attempts);
    sorted_free(&node->late);
    sorted_free(&node->messages);
    sorted_free(&node->history);
    sorted_free(&node->delivery);
    free(node->row);
    free(node);
}

static void key_free(struct key_node *key)
{
    free(key->row);
    free(key);
}

void memory_log_free(struct undo *log, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(log[i].old);
        if (log[i].kind == UNDO_GONE)
            memory_node_free(log[i].node);
        if (log[i].kind == UNDO_UNKEY)
            key_free(log[i].key);
    }
    free(log);
}

/* Out of its list. */
void memory_key_unlink(struct rv_store_memory_data *data, struct key_node *key)
{
    uint64_t hash = memory_key_hash(key->row->key);
    uint64_t *head = rv_map_find(&data->keys, hash, 0);
    rv_assert(head != NULL);
    struct key_node *before = (struct key_node *)(uintptr_t)*head;
    if (before == key) {
        if (key->next != NULL)
            *head = (uint64_t)(uintptr_t)key->next;
        else
            rv_map_remove(&data->keys, hash, 0);
        return;
    }
    while (before->next != key)
        before = before->next;
    before->next = key->next;
}

void memory_node_unlink(struct rv_store_memory_data *data, struct node *node)
{
    struct rv_task_id id = node->row->id;
    rv_map_remove(&data->ids, (uint64_t)id.value, 0);
    sorted_remove(&data->tasks, sorted_find(&data->tasks, id.value, 0));
    if (node->queued)
        sorted_remove(&data->open, sorted_find(&data->open, id.value, 0));
    node->queued = false;
    open_count(data, node->row, NULL);
}

static void node_undo(struct rv_store_memory_data *data, struct node *node)
{
    memory_node_unlink(data, node);
    rv_assert(node->steps.count == 0 && node->attempts.count == 0 && node->late.count == 0);
    rv_assert(node->messages.count == 0 && node->delivery.count == 0 && node->history.count == 0);
    memory_node_free(node);
}

/* What was deleted stands again. */
static void node_restore(struct rv_store_memory_data *data, struct node *node)
{
    int64_t id = node->row->id.value;
    enum rv_err err = rv_map_put(&data->ids, (uint64_t)id, 0, (uint64_t)(uintptr_t)node);
    if (err == RV_OK)
        err = sorted_insert(&data->tasks, id, 0, node);
    rv_assert(err == RV_OK);
}

/* At the head of its list, where it is found as well. */
static enum rv_err key_link(struct rv_store_memory_data *data, struct key_node *key)
{
    uint64_t hash = memory_key_hash(key->row->key);
    const uint64_t *head = rv_map_find(&data->keys, hash, 0);
    key->next = head != NULL ? (struct key_node *)(uintptr_t)*head : NULL;
    return rv_map_put(&data->keys, hash, 0, (uint64_t)(uintptr_t)key);
}

static void record_undo(struct rv_store_memory_data *data, const struct undo *undo)
{
    struct rv_record *old = undo->old;
    struct rv_record *gone = old != NULL ? records_put(&data->records, old)
                                         : records_remove(&data->records, undo->record->kind,
                                                          undo->record->key);
    rv_assert(gone == undo->record);
    free(gone);
}

static void undo_apply(struct rv_store_memory_data *data, const struct undo *undo)
{
    switch (undo->kind) {
    case UNDO_NODE:
        node_undo(data, undo->node);
        break;
    case UNDO_TASK:
        open_count(data, undo->node->row, undo->old);
        free(undo->node->row);
        undo->node->row = undo->old;
        /* Perhaps it was trimmed out of the queue since. */
        rv_assert(open_queue(data, undo->node, undo->node->row) == RV_OK);
        break;
    case UNDO_ROW: {
        struct sorted_entry *entry = sorted_find(undo->set, undo->a, undo->b);
        free(entry->row);
        if (undo->old != NULL)
            entry->row = undo->old;
        else
            sorted_remove(undo->set, entry);
        break;
    }
    case UNDO_KEY:
        memory_key_unlink(data, undo->key);
        key_free(undo->key);
        break;
    case UNDO_TAKEN:
        rv_assert(sorted_insert(undo->set, undo->a, undo->b, undo->old) == RV_OK);
        break;
    case UNDO_GONE:
        node_restore(data, undo->node);
        break;
    case UNDO_UNKEY:
        rv_assert(key_link(data, undo->key) == RV_OK);
        break;
    case UNDO_RECORD:
        record_undo(data, undo);
        break;
    }
}

void memory_undo(struct rv_store_memory_data *data, const struct undo *log, size_t count)
{
    while (count > 0)
        undo_apply(data, &log[--count]);
}

/* ---- writes ---- */

/* Puts a copy of the row in its place. `insert`: INVALID when there is one already; else: INVALID
 * when there is none. */
static enum rv_err row_put(struct commit *commit, struct sorted *set, int64_t a, int64_t b,
                           const struct rv_row_kind *kind, const void *row, bool insert)
{
    struct sorted_entry *entry = sorted_find(set, a, b);
    if ((entry == NULL) != insert)
        return RV_ERR_INVALID;
    struct undo *undo = memory_log_next(commit);
    void *copy = undo != NULL ? memory_row_copy(kind, row) : NULL;
    if (copy == NULL)
        return RV_ERR_MEMORY;
    *undo = (struct undo){.kind = UNDO_ROW, .set = set, .a = a, .b = b};
    if (entry != NULL) {
        undo->old = entry->row;
        entry->row = copy;
    } else if (sorted_insert(set, a, b, copy) != RV_OK) {
        free(copy);
        return RV_ERR_MEMORY;
    }
    commit->count++;
    return RV_OK;
}

static enum rv_err node_insert(struct commit *commit, struct rv_task *copy)
{
    struct rv_store_memory_data *data = commit->data;
    int64_t id = copy->id.value;
    struct node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return RV_ERR_MEMORY;
    node->row = copy;
    if (rv_map_put(&data->ids, (uint64_t)id, 0, (uint64_t)(uintptr_t)node) != RV_OK)
        goto err_after_node;
    if (sorted_insert(&data->tasks, id, 0, node) != RV_OK)
        goto err_after_map;
    if (open_queue(data, node, copy) != RV_OK)
        goto err_after_tasks;
    open_count(data, NULL, copy);
    commit->log[commit->count++] = (struct undo){.kind = UNDO_NODE, .node = node};
    return RV_OK;

err_after_tasks:
    sorted_remove(&data->tasks, sorted_find(&data->tasks, id, 0));
err_after_map:
    rv_map_remove(&data->ids, (uint64_t)id, 0);
err_after_node:
    free(node);
    return RV_ERR_MEMORY;
}

static enum rv_err task_put(struct commit *commit, struct node *node, const struct rv_task *task)
{
    struct undo *undo = memory_log_next(commit);
    struct rv_task kept;
    if (task->unreadable && node != NULL) {
        kept = *node->row;
        kept.revision = task->revision;
        kept.locked_by = task->locked_by;
        kept.state = task->state;
        kept.ended_at = task->ended_at;
        kept.error = task->error;
        kept.undo_error = task->undo_error;
        task = &kept;
    }
    struct rv_task *copy = undo != NULL ? memory_row_copy(&rv_row_task, task) : NULL;
    if (copy == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = node != NULL ? open_queue(commit->data, node, copy)
                                   : node_insert(commit, copy);
    if (err != RV_OK) {
        free(copy);
        return err;
    }
    if (node != NULL) {
        *undo = (struct undo){.kind = UNDO_TASK, .node = node, .old = node->row};
        open_count(commit->data, node->row, copy);
        node->row = copy;
        commit->count++;
    }
    return RV_OK;
}

static enum rv_err key_put(struct commit *commit, const struct rv_key_row *row)
{
    if (row == NULL)
        return RV_OK;
    struct undo *undo = memory_log_next(commit);
    struct key_node *key = undo != NULL ? calloc(1, sizeof *key) : NULL;
    if (key == NULL)
        return RV_ERR_MEMORY;
    key->row = memory_row_copy(&rv_row_key, row);
    if (key->row == NULL || key_link(commit->data, key) != RV_OK) {
        key_free(key);
        return RV_ERR_MEMORY;
    }
    *undo = (struct undo){.kind = UNDO_KEY, .key = key};
    commit->count++;
    return RV_OK;
}

/* What a commit closes of a task's alerts. */
enum closing {
    CLOSES_UNDELIVERABLE,
    CLOSES_LATE, /* of one step */
    CLOSES_OTHERS
};

static bool closes(enum closing closing, uint32_t step, const struct rv_alert *alert)
{
    bool undeliverable = alert->kind == RV_ALERT_UNDELIVERABLE;
    bool late = alert->kind == RV_ALERT_LATE_DONE;
    switch (closing) {
    case CLOSES_UNDELIVERABLE:
        return undeliverable;
    case CLOSES_LATE:
        return late && alert->step == step;
    case CLOSES_OTHERS:
        break;
    }
    return !undeliverable && !late;
}

static enum rv_err alerts_close(struct commit *commit, struct rv_task_id task, enum closing closing,
                                uint32_t step)
{
    struct sorted *alerts = &commit->data->alerts;
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < alerts->count; i++) {
        struct rv_alert alert = *(const struct rv_alert *)alerts->at[i].row;
        if (alert.task.value != task.value || alert.closed_at != 0 ||
            !closes(closing, step, &alert))
            continue;
        alert.closed_at = commit->store->now;
        err = row_put(commit, alerts, alert.id, 0, &rv_row_alert, &alert, false);
    }
    return err;
}

static enum rv_err alert_put(struct commit *commit, const struct rv_alert *alert,
                             const struct rv_delivery *to)
{
    enum rv_err err = row_put(commit, &commit->data->alerts, alert->id, 0, &rv_row_alert, alert,
                              true);
    if (err != RV_OK || to == NULL)
        return err;
    struct rv_delivery row = rv_delivery_of_alert(alert, to);
    return row_put(commit, &commit->data->notices, alert->id, 0, &rv_row_delivery, &row, true);
}

static enum rv_err ledgers_put(struct commit *commit, struct node *node,
                               const struct rv_change *change)
{
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < change->attempts_count; i++) {
        const struct rv_attempt *attempt = &change->attempts[i];
        err = row_put(commit, &node->attempts, attempt->step.number, attempt->number,
                      &rv_row_attempt, attempt, true);
    }
    for (size_t i = 0; err == RV_OK && i < change->late_replies_count; i++)
        err = row_put(commit, &node->late, (int64_t)node->late.count, 0, &rv_row_late_reply,
                      &change->late_replies[i], true);
    if (err == RV_OK && change->close_alerts)
        err = alerts_close(commit, change->task->id, CLOSES_OTHERS, 0);
    for (size_t i = 0; err == RV_OK && i < change->late_over_count; i++)
        err = alerts_close(commit, change->task->id, CLOSES_LATE, change->late_over[i]);
    for (size_t i = 0; err == RV_OK && i < change->alerts_count; i++)
        err = alert_put(commit, &change->alerts[i], change->alerts_to);
    for (size_t i = 0; err == RV_OK && i < change->messages_count; i++)
        err = row_put(commit, &node->messages, change->messages[i].number, 0, &rv_row_message,
                      &change->messages[i], true);
    for (size_t i = 0; err == RV_OK && i < change->history_count; i++)
        err = row_put(commit, &node->history, change->history[i].number, 0, &rv_row_history,
                      &change->history[i], true);
    return err;
}

static enum rv_err delivery_grow(struct commit *commit, struct node *node,
                                 const struct rv_delivery *delivery)
{
    if (delivery == NULL)
        return RV_OK;
    bool there = node->delivery.count > 0;
    struct rv_delivery row = *delivery;
    if (there) {
        row = *(const struct rv_delivery *)node->delivery.at[0].row;
        if (row.next > row.last) {
            row.since = delivery->since;
            row.due_at = delivery->due_at;
        }
        row.last = delivery->last;
    }
    return row_put(commit, &node->delivery, 0, 0, &rv_row_delivery, &row, !there);
}

bool memory_supervises(const struct memory *store, int64_t epoch)
{
    const struct role *role = memory_role_find(&store->data->registry, RV_STR(RV_ROLE_SUPERVISOR));
    return role != NULL && role->epoch == epoch && role->boot == store->boot;
}

static enum rv_err change_outcome(struct commit *commit, const struct rv_change *change,
                                  const struct node *node)
{
    if (change->epoch != 0 && !memory_supervises(commit->store, change->epoch))
        return RV_ERR_DEPOSED;
    if ((node != NULL ? node->row->revision : 0) != change->revision_before)
        return RV_ERR_CONFLICT;
    if (change->key != NULL && memory_key_find(commit->data, change->key->key) != NULL)
        return RV_ERR_DUPLICATE;
    return RV_OK;
}

/* The kind of records is one that servers keep in memory. */
static void version_raise(struct commit *commit, struct rv_str kind)
{
    int64_t *versions = commit->data->registry.versions;
    versions[RV_REGISTRY_API_KEYS] += rv_str_eq(kind, RV_STR(RV_RECORD_API_KEY));
    versions[RV_REGISTRY_AGENT_LIMITS] += rv_str_eq(kind, RV_STR(RV_RECORD_AGENT_LIMIT));
}

static int64_t version_of(const struct rv_store_memory_data *data, struct rv_str kind)
{
    bool keys = rv_str_is(kind, RV_RECORD_API_KEY);
    rv_assert(keys || rv_str_is(kind, RV_RECORD_AGENT_LIMIT));
    return data->shared
               ? data->registry.versions[keys ? RV_REGISTRY_API_KEYS : RV_REGISTRY_AGENT_LIMITS]
               : 0;
}

static enum rv_err record_write(struct commit *commit, const struct rv_record *row, bool gone)
{
    struct records *records = &commit->data->records;
    rv_assert(row->kind.len > 0 && row->key.len > 0);
    struct undo *undo = memory_log_next(commit);
    if (undo == NULL || records_reserve(records) != RV_OK)
        return RV_ERR_MEMORY;
    *undo = (struct undo){.kind = UNDO_RECORD};
    if (gone) {
        undo->old = records_remove(records, row->kind, row->key);
    } else {
        struct rv_record *copy = memory_row_copy(&rv_row_record, row);
        if (copy == NULL)
            return RV_ERR_MEMORY;
        undo->record = copy;
        undo->old = records_put(records, copy);
    }
    version_raise(commit, row->kind);
    commit->count++;
    return RV_OK;
}

static enum rv_err change_put(struct commit *commit, struct rv_change *change)
{
    rv_assert(change->task->id.value > 0);
    rv_assert(change->task->revision == change->revision_before + 1);
    struct node *node = memory_node_find(commit->data, change->task->id);
    change->outcome = change_outcome(commit, change, node);
    if (change->outcome != RV_OK)
        return RV_OK;
    memory_befores_check(commit->data, node, change);
    enum rv_err err = task_put(commit, node, change->task);
    if (err != RV_OK)
        return err;
    node = memory_node_find(commit->data, change->task->id);
    err = key_put(commit, change->key);
    for (size_t i = 0; err == RV_OK && i < change->steps_count; i++)
        err = row_put(commit, &node->steps, change->steps[i]->number, 0, &rv_row_step,
                      change->steps[i], change->steps_new[i]);
    if (err == RV_OK)
        err = ledgers_put(commit, node, change);
    if (err == RV_OK && change->record != NULL)
        err = record_write(commit, change->record, false);
    return err == RV_OK ? delivery_grow(commit, node, change->delivery) : err;
}

static enum rv_err alerts_again(struct commit *commit, const struct rv_delivery_change *change)
{
    struct sorted *notices = &commit->data->notices;
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < notices->count; i++) {
        struct rv_delivery row = *(const struct rv_delivery *)notices->at[i].row;
        if (!row.given_up)
            continue;
        row.given_up = false;
        row.failures = 0;
        row.since = row.due_at = change->row.since;
        err = row_put(commit, notices, row.task.value, 0, &rv_row_delivery, &row, false);
    }
    return err;
}

static enum rv_err delivery_update(struct commit *commit, struct rv_delivery_change *change)
{
    struct sorted *set = NULL;
    const struct rv_delivery *before = memory_delivery_find(commit->data, change->row.task, &set);
    change->outcome = RV_ERR_CONFLICT;
    if (before == NULL || before->next != change->next_before ||
        before->failures != change->failures_before)
        return RV_OK;
    change->outcome = RV_OK;
    struct rv_delivery row = *before;
    row.next = change->row.next;
    row.failures = change->row.failures;
    row.since = change->row.since;
    row.due_at = change->row.due_at;
    row.given_up = change->row.given_up;
    return row_put(commit, set, row.alert ? row.task.value : 0, 0, &rv_row_delivery, &row, false);
}

static enum rv_err delivery_put(struct commit *commit, struct rv_delivery_change *change)
{
    bool deposed = change->epoch != 0 && !memory_supervises(commit->store, change->epoch);
    change->outcome = deposed ? RV_ERR_DEPOSED : RV_OK;
    if (deposed)
        return RV_OK;
    enum rv_err err = change->all_alerts ? alerts_again(commit, change)
                                         : delivery_update(commit, change);
    if (err != RV_OK || change->outcome != RV_OK)
        return err;
    if (change->close_alert)
        err = alerts_close(commit, change->row.task, CLOSES_UNDELIVERABLE, 0);
    if (err == RV_OK && change->alert != NULL)
        err = alert_put(commit, change->alert, change->alert_to);
    return err;
}

static enum rv_err ack_put(struct commit *commit, struct rv_ack *ack)
{
    struct sorted *alerts = &commit->data->alerts;
    struct sorted_entry *entry = sorted_find(alerts, ack->alert, 0);
    ack->outcome = entry != NULL ? RV_OK : RV_ERR_NOT_FOUND;
    if (entry == NULL)
        return RV_OK;
    struct rv_alert alert = *(const struct rv_alert *)entry->row;
    if (alert.acked_at != 0)
        return RV_OK;
    alert.acked_at = ack->at;
    alert.acked_by = ack->by;
    return row_put(commit, alerts, alert.id, 0, &rv_row_alert, &alert, false);
}

static enum rv_err raise_put(struct commit *commit, struct rv_raise *raise)
{
    rv_assert(raise->alert.source.len > 0);
    bool there = memory_alert_find(commit->data, raise->alert.source) != NULL;
    raise->outcome = there ? RV_ERR_DUPLICATE : RV_OK;
    if (there)
        return RV_OK;
    return alert_put(commit, &raise->alert, raise->to);
}

static enum rv_err workflow_put(struct commit *commit, const struct rv_workflow_row *row)
{
    struct sorted *workflows = &commit->data->workflows;
    for (size_t i = 0; i < workflows->count; i++) {
        const struct rv_workflow_row *other = workflows->at[i].row;
        if (rv_str_eq(other->space, row->space) && rv_str_eq(other->name, row->name) &&
            rv_str_eq(other->version, row->version))
            return RV_ERR_INVALID;
    }
    commit->data->registry.versions[RV_REGISTRY_WORKFLOWS]++;
    return row_put(commit, workflows, row->id, 0, &rv_row_workflow, row, true);
}

static enum rv_err record_put(struct commit *commit, struct rv_record_change *change)
{
    const struct rv_record *row = &change->row;
    bool deposed = change->epoch != 0 && !memory_supervises(commit->store, change->epoch);
    bool differs = change->guarded &&
                   version_of(commit->data, row->kind) != change->registry_before;
    change->outcome = deposed ? RV_ERR_DEPOSED : differs ? RV_ERR_CONFLICT : RV_OK;
    bool nothing = change->gone &&
                   records_find(&commit->data->records, row->kind, row->key) == NULL;
    return change->outcome != RV_OK || nothing ? RV_OK : record_write(commit, row, change->gone);
}

/* ---- the retention rule ---- */

static enum rv_err batch_put(struct commit *commit, struct rv_batch *batch)
{
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < batch->workflows_count; i++)
        err = workflow_put(commit, &batch->workflows[i]);
    for (size_t i = 0; err == RV_OK && i < batch->changes_count; i++)
        err = change_put(commit, &batch->changes[i]);
    for (size_t i = 0; err == RV_OK && i < batch->acks_count; i++)
        err = ack_put(commit, &batch->acks[i]);
    for (size_t i = 0; err == RV_OK && i < batch->raises_count; i++)
        err = raise_put(commit, &batch->raises[i]);
    for (size_t i = 0; err == RV_OK && i < batch->records_count; i++)
        err = record_put(commit, &batch->records[i]);
    for (size_t i = 0; err == RV_OK && i < batch->deliveries_count; i++)
        err = delivery_put(commit, &batch->deliveries[i]);
    if (err == RV_OK && batch->sweep != NULL)
        err = memory_sweep(commit, batch->sweep);
    return err;
}

/* The roles that this transaction has claimed are its own from here on: its changes are guarded by
 * them. BUSY: another one was faster. */
static enum rv_err claims_put(struct memory *store)
{
    struct registry *registry = &store->data->registry;
    for (size_t i = 0; i < ROLES_MAX; i++) {
        const struct claim *claim = &store->claims[i];
        bool taken = registry->roles[i].epoch != claim->before.epoch ||
                     registry->roles[i].until != claim->before.until;
        if (claim->made && taken)
            return RV_ERR_BUSY;
    }
    for (size_t i = 0; i < ROLES_MAX; i++)
        if (store->claims[i].made)
            registry->roles[i] = store->claims[i].after;
    return RV_OK;
}

static enum rv_err all_put(struct commit *commit, struct rv_batch *batch)
{
    struct memory *store = commit->store;
    if (memory_deposed(store))
        return RV_ERR_DEPOSED;
    if (!memory_depose(store))
        return RV_ERR_BUSY;
    enum rv_err err = claims_put(store);
    return err == RV_OK ? batch_put(commit, batch) : err;
}

/* Known by its number from now on, and the clock never earlier than it. */
static void batch_sign(struct memory *store, const struct rv_batch *batch)
{
    struct registry *registry = &store->data->registry;
    struct instance *row = &registry->instances[store->instance];
    if (registry->alive_at < store->now)
        registry->alive_at = store->now;
    row->alive_at = store->now;
    row->batch = batch->number;
    if (!batch->renew)
        return;
    int64_t begun = store->now, now = memory_clock_read(store);
    row->lease_until = batch->resign ? now : now + store->lease_ms;
    store->now = begun;
}

enum rv_err memory_commit(struct rv_store *base, struct rv_batch *batch)
{
    struct memory *store = (struct memory *)base;
    struct registry *registry = &store->data->registry;
    rv_assert(store->in_transaction && store->instance != 0);
    struct commit commit = {.store = store, .data = store->data};
    struct registry before = *registry;
    enum rv_err err = all_put(&commit, batch);
    bool claimed = memory_claims_end(store) || store->deposes_count > 0 || batch->renew;
    memory_unclaim(store);
    store->in_transaction = false;
    if (err != RV_OK) {
        memory_undo(store->data, commit.log, commit.count);
        free(commit.log);
        *registry = before;
        return err;
    }
    if (commit.count > 0 || claimed) {
        memory_keep(store->data, commit.log, commit.count, &before);
        batch_sign(store, batch);
    }
    open_trim(store->data);
    return RV_OK;
}
