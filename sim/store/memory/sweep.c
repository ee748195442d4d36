/* The retention rule on a piece of the store; its writes are noted in the log of the commit. */
#include "sim/store/memory/memory_priv.h"

static enum rv_err row_take(struct commit *commit, struct sorted *set, struct sorted_entry *entry)
{
    struct undo *undo = memory_log_next(commit);
    if (undo == NULL)
        return RV_ERR_MEMORY;
    *undo = (struct undo){
        .kind = UNDO_TAKEN, .set = set, .a = entry->a, .b = entry->b, .old = entry->row};
    sorted_remove(set, entry);
    commit->count++;
    return RV_OK;
}

/* Somebody is to undo what it has left. */
static bool late_calls(const struct commit *commit, const struct rv_task *task)
{
    const struct sorted *alerts = &commit->data->alerts;
    for (size_t i = 0; i < alerts->count; i++) {
        const struct rv_alert *alert = alerts->at[i].row;
        if (alert->task.value == task->id.value && alert->kind == RV_ALERT_LATE_DONE &&
            alert->acked_at == 0 && alert->closed_at == 0)
            return true;
    }
    return false;
}

static bool sweep_takes(const struct commit *commit, const struct rv_sweep *sweep,
                        const struct node *node)
{
    const struct rv_task *task = node->row;
    const struct rv_delivery *delivery = node->delivery.count > 0 ? node->delivery.at[0].row : NULL;
    bool waits = delivery != NULL && delivery->next <= delivery->last;
    bool old = task->ended_at <= sweep->ended_by;
    bool over = !rv_task_state_open(task->state) && task->ended_at != 0 && old && !waits;
    return over && !late_calls(commit, task);
}

/* The alert at that place, and its way to the operators' webhook. */
static enum rv_err alert_take(struct commit *commit, size_t i)
{
    struct sorted *alerts = &commit->data->alerts, *notices = &commit->data->notices;
    struct sorted_entry *notice = sorted_find(notices, alerts->at[i].a, 0);
    enum rv_err err = notice != NULL ? row_take(commit, notices, notice) : RV_OK;
    return err == RV_OK ? row_take(commit, alerts, &alerts->at[i]) : err;
}

static enum rv_err sweep_node(struct commit *commit, struct node *node)
{
    struct sorted *alerts = &commit->data->alerts;
    enum rv_err err = RV_OK;
    for (size_t i = alerts->count; err == RV_OK && i > 0; i--) {
        const struct rv_alert *alert = alerts->at[i - 1].row;
        if (alert->task.value == node->row->id.value)
            err = alert_take(commit, i - 1);
    }
    struct undo *undo = err == RV_OK ? memory_log_next(commit) : NULL;
    if (undo == NULL)
        return RV_ERR_MEMORY;
    memory_node_unlink(commit->data, node);
    *undo = (struct undo){.kind = UNDO_GONE, .node = node};
    commit->count++;
    return RV_OK;
}

/* Each walk has a part of the time, the first the greater one. */
static bool sweep_late(const struct rv_sweep *sweep, int64_t from, int64_t us_max)
{
    return sweep->now_us != NULL && sweep->now_us(sweep->self) - from >= us_max;
}

static enum rv_err sweep_tasks(struct commit *commit, struct rv_sweep *sweep, int64_t from)
{
    struct sorted *tasks = &commit->data->tasks;
    size_t rows = 0;
    size_t i = sorted_place(tasks, sweep->tasks_after.value + 1, 0);
    int64_t us_max = sweep->us_max - (sweep->keys_over ? 0 : sweep->us_max / 4);
    while (i < tasks->count && !sweep->tasks_over) {
        struct node *node = tasks->at[i].row;
        sweep->tasks_over = rv_id_made_at(node->row->id) > sweep->ended_by;
        if (sweep->tasks_over ||
            (rows > 0 && (rows >= sweep->rows_max || sweep_late(sweep, from, us_max))))
            return RV_OK;
        sweep->tasks_after = node->row->id;
        rows++;
        if (!sweep_takes(commit, sweep, node)) {
            i++;
            continue;
        }
        rows += node->steps.count + node->attempts.count + node->late.count + node->messages.count +
                node->history.count;
        sweep->tasks_gone++;
        enum rv_err err = sweep_node(commit, node);
        if (err != RV_OK)
            return err;
    }
    sweep->tasks_over = true;
    return RV_OK;
}

/* The key of the least id after that one; NULL: there is none. The simulator's stores are small. */
static struct key_node *key_after(const struct rv_store_memory_data *data, int64_t after)
{
    struct key_node *least = NULL;
    for (size_t i = 0; i < data->keys.room; i++) {
        if (!data->keys.slots[i].used)
            continue;
        for (struct key_node *key = (struct key_node *)(uintptr_t)data->keys.slots[i].value;
             key != NULL; key = key->next)
            if (key->row->task.value > after &&
                (least == NULL || key->row->task.value < least->row->task.value))
                least = key;
    }
    return least;
}

static enum rv_err sweep_keys(struct commit *commit, struct rv_sweep *sweep, int64_t from)
{
    for (size_t rows = 0; !sweep->keys_over; rows++) {
        struct key_node *key = key_after(commit->data, sweep->keys_after.value);
        sweep->keys_over = key == NULL || rv_id_made_at(key->row->task) > sweep->keys_by;
        if (sweep->keys_over)
            return RV_OK;
        bool passes = !sweep->tasks_over && key->row->task.value > sweep->tasks_after.value;
        bool full = rows > 0 && (rows >= sweep->rows_max || sweep_late(sweep, from, sweep->us_max));
        if (passes || full)
            return RV_OK;
        sweep->keys_after = key->row->task;
        if (memory_node_find(commit->data, key->row->task) != NULL)
            continue;
        struct undo *undo = memory_log_next(commit);
        if (undo == NULL)
            return RV_ERR_MEMORY;
        memory_key_unlink(commit->data, key);
        *undo = (struct undo){.kind = UNDO_UNKEY, .key = key};
        commit->count++;
        sweep->keys_gone++;
    }
    return RV_OK;
}

static bool taskless_over(const struct rv_alert *alert, int64_t by)
{
    bool acked = alert->acked_at != 0 && alert->acked_at <= by;
    bool closed = alert->closed_at != 0 && alert->closed_at <= by;
    return alert->task.value == 0 && (acked || closed);
}

static enum rv_err sweep_alerts(struct commit *commit, struct rv_sweep *sweep)
{
    struct sorted *alerts = &commit->data->alerts;
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < alerts->count && sweep->alerts_gone < sweep->rows_max;) {
        bool over = taskless_over(alerts->at[i].row, sweep->ended_by);
        if (over)
            err = alert_take(commit, i);
        else
            i++;
        sweep->alerts_gone += over;
    }
    return err;
}

enum rv_err memory_sweep(struct commit *commit, struct rv_sweep *sweep)
{
    bool deposed = sweep->epoch != 0 && !memory_supervises(commit->store, sweep->epoch);
    sweep->outcome = deposed ? RV_ERR_DEPOSED : RV_OK;
    sweep->tasks_gone = sweep->keys_gone = sweep->alerts_gone = 0;
    sweep->took_us = 0;
    if (deposed)
        return RV_OK;
    int64_t from = sweep->now_us != NULL ? sweep->now_us(sweep->self) : 0;
    enum rv_err err = rv_sweep_begins(sweep) ? sweep_alerts(commit, sweep) : RV_OK;
    if (err == RV_OK)
        err = sweep_tasks(commit, sweep, from);
    if (err == RV_OK)
        err = sweep_keys(commit, sweep, from);
    if (sweep->now_us != NULL)
        sweep->took_us = sweep->now_us(sweep->self) - from;
    return err;
}
