/* What an operator asks first: how many tasks are open, what failed in the last hour, who is waited
 * for, which alerts are open. Nothing here walks over tasks: counters are kept as batches are
 * committed, and of the store only the newest open alerts are read, with what they name. */
#include "scheduler/queries/status.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/tags.h"
#include "scheduler/batch/workflows.h"
#include "scheduler/call.h"
#include "scheduler/queries/queries.h"
#include "scheduler/queries/query.h"
#include "scheduler/scheduler.h"
#include "scheduler/watch/failures.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

static void failure_add(struct rv_call_status *status, struct rv_arena *arena,
                        struct failure_type *row, int64_t now)
{
    uint64_t count = failure_count(row, now);
    size_t at = status->failures_count;
    if (count == 0)
        return;
    rv_assert(at <= RV_STATUS_FAILURES_MAX); /* one place is left */
    for (; at > 0 && status->failures[at - 1].count < count; at--)
        status->failures[at] = status->failures[at - 1];
    status->failures[at] = (struct rv_failure_row){
        .type = rv_arena_str(arena, ((struct rv_str){row->type, row->type_len})),
        .count = count,
        .last_at = row->last_at};
    status->failures_count++;
}

/* ---- alerts ---- */

static void group_name(struct rv_alert_facts *facts, const struct rv_alert *alert)
{
    struct rv_buf key;
    const struct rv_str parts[] = {rv_str_of(rv_alert_kind_text(alert->kind)), facts->workflow,
                                   facts->reference, facts->error_type, alert->source};
    rv_buf_init(&key, RV_PAYLOAD_BYTES_MAX);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        rv_buf_add_str(&key, parts[i]);
        rv_buf_add_char(&key, '\n');
    }
    uint64_t hash = rv_hash((struct rv_hash_key){.k0 = 1}, rv_buf_str(&key));
    snprintf(facts->group, sizeof facts->group, "%08" PRIx32, (uint32_t)hash);
    rv_buf_done(&key);
}

static struct rv_str workflow_text(struct rv_arena *arena, const struct rv_workflow_row *row)
{
    return rv_arena_printf(arena, "%.*s/%.*s:%.*s", RV_STR_FMT(row->space), RV_STR_FMT(row->name),
                           RV_STR_FMT(row->version));
}

/* Of an alert that says why its task stands where it stands, the error by which the task is found;
 * else its step's, where it is about one, or the task's. Before version 22 of the store, the error
 * of a compensation that failed outside of a call was not kept. */
static enum rv_err facts_error(struct rv_arena *scratch, struct rv_arena *arena,
                               const struct rv_alert *alert, const struct rv_task *task,
                               const struct rv_step *step, struct rv_alert_facts *ret_facts)
{
    bool undo = alert->kind == RV_ALERT_UNDO_FAILED;
    bool escalates = undo || alert->kind == RV_ALERT_FAILED || alert->kind == RV_ALERT_NO_UNDO;
    bool stands = escalates && alert->closed_at == 0 && task->state == RV_TASK_ERROR;
    struct rv_str error = step != NULL && step->error.at != NULL && !stands ? step->error
                                                                            : rv_task_error(task);
    struct rv_str type;
    if (undo && task->undo_error.at == NULL && step != NULL && step->direction == RV_FORWARD)
        return RV_OK;
    enum rv_err err = rv_error_type(scratch, error, &type);
    if (err == RV_OK && type.at != NULL)
        ret_facts->error_type = rv_arena_str(arena, type);
    return err;
}

static enum rv_err facts_read(const struct query *q, struct rv_arena *arena,
                              const struct rv_alert *alert, struct rv_alert_facts *ret_facts)
{
    struct rv_arena *scratch = q->scratch;
    const struct rv_task *task = NULL;
    const struct rv_step *step = NULL;
    struct workflow_entry *entry = NULL;
    const struct rv_step_id id = {alert->task, alert->step};
    enum rv_err err = q->store->ops->load_tasks(q->store, scratch, RV_COLUMNS_ERRORS, &alert->task,
                                                1, &task);
    if (err == RV_OK && task != NULL && alert->step != 0)
        err = q->store->ops->load_steps(q->store, scratch, RV_COLUMNS_ERRORS, &id, 1, &step);
    if (err == RV_OK && task != NULL)
        err = workflow_by_id(q->workflows, task->workflow, &entry);
    if (err != RV_OK || task == NULL)
        return err;
    if (entry != NULL)
        ret_facts->workflow = workflow_text(arena, &entry->row);
    if (step != NULL)
        ret_facts->reference = rv_arena_str(arena, step->reference);
    return facts_error(scratch, arena, alert, task, step, ret_facts);
}

enum rv_err status_alerts_facts(const struct query *q, struct rv_arena *arena,
                                const struct rv_alert *alerts, size_t count,
                                struct rv_alert_facts **ret_facts)
{
    struct rv_alert_facts *facts = RV_NEW_ARRAY(arena, struct rv_alert_facts, count + 1);
    if (facts == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        struct rv_arena_mark mark = rv_arena_mark(q->scratch);
        enum rv_err err = alerts[i].task.value != 0 ? facts_read(q, arena, &alerts[i], &facts[i])
                                                    : RV_OK;
        if (err != RV_OK)
            return err;
        rv_arena_release(q->scratch, mark);
        group_name(&facts[i], &alerts[i]);
    }
    *ret_facts = facts;
    return RV_OK;
}

enum rv_err status_alerts_group(struct rv_arena *arena, const struct rv_alert *alerts,
                                const struct rv_alert_facts *facts, size_t count,
                                struct rv_alert_groups *ret_groups)
{
    struct rv_alert_group *rows = RV_NEW_ARRAY(arena, struct rv_alert_group, count + 1);
    size_t groups = 0;
    if (rows == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < groups && strcmp(rows[at].facts->group, facts[i].group) != 0)
            at++;
        rv_assert(groups <= i);
        if (at == groups)
            rows[groups++] = (struct rv_alert_group){.newest = &alerts[i], .facts = &facts[i]};
        rows[at].count++;
        rows[at].first_at = alerts[i].raised_at;
    }
    rv_assert(groups <= count);
    *ret_groups = (struct rv_alert_groups){rows, groups};
    return RV_OK;
}

static enum rv_err status_alerts(const struct query *q, struct rv_arena *arena,
                                 struct rv_call_status *status)
{
    size_t room = RV_STATUS_ALERTS_MAX + 1, count = 0;
    struct rv_alert *alerts = RV_ROOM(arena, struct rv_alert, room);
    struct rv_alert_facts *facts;
    if (alerts == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = q->store->ops->list_alerts(q->store, arena, (struct rv_task_id){0}, true, 0,
                                                 room, alerts, &count);
    if (err != RV_OK)
        return err;
    rv_assert(count <= room);
    status->alerts_more = count == room;
    status->alerts_count = count == room ? count - 1 : count;
    rv_assert(status->alerts_count <= RV_STATUS_ALERTS_MAX);
    RV_TRY(status_alerts_facts(q, arena, alerts, status->alerts_count, &facts));
    return status_alerts_group(arena, alerts, facts, status->alerts_count, &status->alerts);
}

enum rv_err status_read(const struct query *q, struct rv_call *call)
{
    struct rv_arena *arena = &call->arena;
    struct rv_call_status *status = RV_NEW(arena, struct rv_call_status);
    struct rv_counts *counts = RV_NEW(arena, struct rv_counts);
    size_t types = RV_STATUS_FAILURES_MAX + 1;
    if (status == NULL || counts == NULL)
        return RV_ERR_MEMORY;
    call->u.status = status;
    *counts = *q->counts;
    *status = (struct rv_call_status){
        .started_at = q->failures->since,
        .counts = counts,
        .failures = RV_NEW_ARRAY(arena, struct rv_failure_row, types),
        .store_bytes = q->size->bytes ? q->size->bytes(q->size->self) : 0,
    };
    if (status->failures == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < RV_STATUS_FAILURES_MAX; i++)
        failure_add(status, arena, &q->failures->types[i], q->now);
    failure_add(status, arena, &q->failures->others, q->now);
    rv_assert(status->failures_count <= types);
    status->problems = q->problems;
    RV_TRY(query_agents_show(q, arena, &status->agents));
    return status_alerts(q, arena, status);
}
