/* Why a task stands where it stands: from its open rows and from what is remembered of agents. A
 * few rows are read by their keys, however many tasks there are; nothing is written for it. What
 * the supervisor has decided about the task stands in its attempts, its steps' counts and its
 * alerts. */
#include "scheduler/queries/explain.h"

#include "base/assert.h"
#include "base/time.h"
#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "dispatch/limits.h"
#include "scheduler/batch/workflows.h"
#include "scheduler/call.h"
#include "scheduler/queries/cures.h"
#include "scheduler/queries/queries.h"
#include "scheduler/queries/query.h"
#include "store/store.h"

#include <string.h>

/* Counted once for each agent. */
static size_t queue_count(const struct agent_kind *kind, const struct rv_call_explain *out)
{
    size_t count;
    for (size_t i = 0; i + 1 < out->steps_count; i++)
        if (out->steps[i].step->kind == RV_KIND_CALL &&
            rv_str_is(out->steps[i].step->agent, kind->name))
            return out->steps[i].queued;
    kind_waiting(kind, &count, NULL);
    return count;
}

static void see_instances(const struct agent_kind *kind, int64_t now, struct rv_explained *told)
{
    for (const struct agent_instance *i = kind->instances; i != NULL; i = i->next) {
        if (instance_heard(i) > told->seen_at)
            told->seen_at = instance_heard(i);
        told->connected += instance_connected(i, now);
        told->polling += i->parked_count > 0;
    }
}

/* Whoever connects gets nothing of a paused agent's; limits count only where somebody could ask. */
static enum rv_wait_reason why_not_taken(const struct agent_kind *kind, int64_t now,
                                         struct rv_explained *told)
{
    int64_t until;
    enum limit_hold hold = limit_holds(kind, now, &until);
    if (hold == LIMIT_PAUSED)
        return RV_WAIT_PAUSED;
    if (told->connected == 0)
        return RV_WAIT_NO_AGENT;
    if (hold == LIMIT_CONCURRENT)
        return RV_WAIT_LIMIT;
    if (hold == LIMIT_RATE) {
        told->until = until;
        return RV_WAIT_RATE;
    }
    return told->polling > 0 ? RV_WAIT_QUEUED : RV_WAIT_BUSY;
}

/* Ready, and not handed out: why does no agent take it? */
static enum rv_err explain_ready(const struct query *q, struct rv_arena *arena,
                                 const struct agent_kind *kind, struct rv_explained *told)
{
    told->reason = RV_WAIT_NO_AGENT;
    if (kind == NULL)
        return RV_OK;
    const struct circuit *circuit = circuit_of(kind, told->step, q->now);
    if (circuit != NULL) {
        told->reason = RV_WAIT_CIRCUIT;
        told->until = circuit->until;
        told->target = rv_arena_str(arena, rv_str_of(circuit->target));
        return told->target.at != NULL ? RV_OK : arena->refused;
    }
    told->reason = why_not_taken(kind, q->now, told);
    return RV_OK;
}

static void explain_held(const struct query *q, const struct agent_kind *kind,
                         struct rv_explained *told)
{
    const struct rv_step *step = told->step;
    const struct agent_instance *holder = NULL;
    if (kind != NULL)
        holder = agents_instance_find(q->agents, kind, step->instance);
    bool revoked = step->attempt_state == RV_ATTEMPT_REVOKED;
    told->reason = !revoked ? RV_WAIT_HELD : told->pivot ? RV_WAIT_PIVOT : RV_WAIT_REVOKED;
    if (rv_attempt_is_gone(step, q->now))
        told->reason = told->pivot ? RV_WAIT_GONE_PIVOT : RV_WAIT_GONE;
    told->until = revoked ? step->complete_by : step->lease_until;
    told->seen_at = holder != NULL ? instance_heard(holder) : 0;
}

/* Not ready before an instant. */
static void explain_delay(const struct agent_kind *kind, int64_t now, struct rv_explained *told)
{
    const struct rv_step *step = told->step;
    bool rests = step->failure_count == 0 && step->round > 0;
    told->reason = rests ? RV_WAIT_COOL_DOWN : RV_WAIT_RETRY;
    told->until = step->ready_at;
    if (step->attempt_state != RV_ATTEMPT_CIRCUIT_OPEN)
        return;
    bool open = kind != NULL && circuit_of(kind, step, now) != NULL;
    told->reason = open ? RV_WAIT_CIRCUIT : RV_WAIT_NOT_TRIED;
    told->target = step->target;
}

static enum rv_err explain_step(const struct query *q, struct rv_arena *arena,
                                const struct rv_call_explain *out, struct rv_explained *told)
{
    const struct rv_task *task = out->found;
    const struct rv_step *step = told->step;
    int64_t now = q->now;
    const struct agent_kind *kind = step->kind == RV_KIND_CALL
                                        ? agents_kind_find(q->agents, step->agent)
                                        : NULL;
    if (kind != NULL) {
        see_instances(kind, now, told);
        told->queued = queue_count(kind, out);
    }
    if (!rv_step_state_open(step->state)) {
        told->reason = RV_WAIT_OPERATOR;
    } else if (rv_attempt_state_live(step->attempt_state)) {
        explain_held(q, kind, told);
    } else if (task->suspended_at != 0) {
        told->reason = RV_WAIT_SUSPENDED;
        told->agent_paused = kind != NULL && kind->limit.paused;
    } else if (step->kind != RV_KIND_CALL) {
        told->reason = step->wake_at > now ? RV_WAIT_TIMER : RV_WAIT_BATCH;
        told->until = step->wake_at > now ? step->wake_at : 0;
    } else if (step->ready_at > now) {
        explain_delay(kind, now, told);
    } else {
        return explain_ready(q, arena, kind, told);
    }
    return RV_OK;
}

/* What the workflow says about the step. */
static void explain_definition(const struct workflow_entry *entry, struct rv_explained *told)
{
    const struct rv_step *step = told->step;
    if (entry == NULL || entry->definition == NULL || step->kind != RV_KIND_CALL ||
        step->node > rv_definition_nodes(entry->definition))
        return;
    const struct rv_policy *policy = rv_definition_policy(entry->definition, step->node);
    told->threshold = policy->threshold;
    told->rounds = policy->rounds;
    told->pivot = rv_definition_undo_way(entry->definition, step->node) == RV_UNDO_PIVOT;
}

static enum rv_err explain_steps(const struct query *q, struct rv_call_explain *out,
                                 struct rv_arena *arena, const struct workflow_entry *entry)
{
    const struct rv_task *task = out->found;
    struct rv_step_id ids[RV_OPEN_STEPS_MAX];
    const struct rv_step *rows[RV_OPEN_STEPS_MAX];
    uint32_t count = task->open_count;
    rv_assert(count <= RV_OPEN_STEPS_MAX); /* whatever is stored: the store reads no more */
    for (uint32_t i = 0; i < count; i++)
        ids[i] = (struct rv_step_id){task->id, task->open[i]};
    if (count == 0 && task->undo_head != 0)
        ids[count++] = (struct rv_step_id){task->id, task->undo_head};
    enum rv_err err = q->store->ops->load_steps(q->store, arena, RV_COLUMNS_ERRORS, ids, count,
                                                rows);
    if (err != RV_OK)
        return err;
    out->steps = RV_NEW_ARRAY(arena, struct rv_explained, RV_OPEN_STEPS_MAX);
    out->steps_count = 0;
    if (out->steps == NULL)
        return RV_ERR_MEMORY;
    const struct rv_step *there[RV_OPEN_STEPS_MAX];
    size_t there_count = 0;
    for (uint32_t i = 0; err == RV_OK && i < count; i++) {
        if (rows[i] == NULL || rows[i]->unreadable)
            continue;
        there[there_count++] = rows[i];
        if (task->open_count == 0)
            continue;
        rv_assert(out->steps_count < RV_OPEN_STEPS_MAX);
        struct rv_explained *told = &out->steps[out->steps_count++];
        told->step = rows[i];
        explain_definition(entry, told);
        err = explain_step(q, arena, out, told);
    }
    rv_assert(out->steps_count <= there_count);
    out->next_at = rv_view_wake_at(task, there, there_count, q->now);
    return err;
}

/* What the task waits for as a whole, where its steps do not say it. */
static void explain_task(const struct query *q, struct rv_call_explain *out)
{
    const struct rv_task *task = out->found;
    out->reason = RV_WAIT_BATCH;
    if (!rv_task_state_open(task->state)) {
        out->reason = RV_WAIT_NOTHING;
    } else if (task->state == RV_TASK_ERROR) {
        out->reason = RV_WAIT_OPERATOR;
    } else if (task->suspended_at != 0) {
        out->reason = RV_WAIT_SUSPENDED;
    } else if (out->steps_count > 0) {
        out->reason = out->steps[0].reason;
        out->until = out->steps[0].until;
    } else if (task->state == RV_TASK_COMPENSATING && task->quiet_at > q->now) {
        out->reason = RV_WAIT_QUIET;
        out->until = task->quiet_at;
    }
}

enum rv_err explain_attempts(const struct query *q, struct rv_call_explain *out,
                             struct rv_arena *arena, uint32_t step, uint32_t newest)
{
    uint32_t after = newest > RV_EXPLAINED_ATTEMPTS_MAX ? newest - RV_EXPLAINED_ATTEMPTS_MAX - 1
                                                        : 0;
    rv_assert(out->attempts != NULL);
    rv_assert(after <= newest);
    out->cut[RV_EXPLAINED_CUT_ATTEMPTS] = after > 0;
    out->left[RV_EXPLAINED_CUT_ATTEMPTS] = after;
    out->attempts_of = step;
    RV_TRY(q->store->ops->list_attempts(q->store, arena, (struct rv_step_id){out->task, step}, step,
                                        after, RV_EXPLAINED_ATTEMPTS_MAX, out->attempts,
                                        &out->attempts_count));
    rv_assert(out->attempts_count <= RV_EXPLAINED_ATTEMPTS_MAX);
    return RV_OK;
}

/* How many open alerts follow those that are listed, if a page holds them. */
static enum rv_err alerts_left(const struct query *q, struct rv_call_explain *out)
{
    struct rv_arena_mark mark = rv_arena_mark(q->scratch);
    struct rv_alert *rows = RV_ROOM(q->scratch, struct rv_alert, RV_PAGE_ROWS_MAX);
    size_t count = 0;
    rv_assert(out->alerts_count > 0);
    if (rows == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = q->store->ops->list_alerts(q->store, q->scratch, out->task, true,
                                                 out->alerts[out->alerts_count - 1].id,
                                                 RV_PAGE_ROWS_MAX, rows, &count);
    rv_arena_release(q->scratch, mark);
    out->left[RV_EXPLAINED_CUT_ALERTS] = count < RV_PAGE_ROWS_MAX ? (uint32_t)count : 0;
    return err;
}

/* The newest ended attempts of the step at which it stands, and the open alerts. */
static enum rv_err explain_newest(const struct query *q, struct rv_call_explain *out,
                                  struct rv_arena *arena)
{
    const struct rv_step *step = out->steps_count > 0 ? out->steps[0].step : NULL;
    size_t alerts = RV_EXPLAINED_ALERTS_MAX + 1;
    out->attempts = RV_NEW_ARRAY(arena, struct rv_attempt, RV_EXPLAINED_ATTEMPTS_MAX + 1);
    out->alerts = RV_NEW_ARRAY(arena, struct rv_alert, alerts);
    if (out->attempts == NULL || out->alerts == NULL)
        return RV_ERR_MEMORY;
    if (step != NULL && step->attempt > 0)
        RV_TRY(explain_attempts(q, out, arena, step->number, step->attempt));
    RV_TRY(q->store->ops->list_alerts(q->store, arena, out->task, true, 0, alerts, out->alerts,
                                      &out->alerts_count));
    rv_assert(out->alerts_count <= alerts);
    out->cut[RV_EXPLAINED_CUT_ALERTS] = out->alerts_count == alerts;
    out->alerts_count -= out->alerts_count == alerts;
    return out->cut[RV_EXPLAINED_CUT_ALERTS] ? alerts_left(q, out) : RV_OK;
}

/* The newest attempt stands in its step. Once it has ended it is listed as the others are. */
static enum rv_err explain_last(const struct query *q, struct rv_call_explain *out,
                                struct rv_arena *arena)
{
    struct rv_step_id id = {out->task, out->attempts_of};
    const struct rv_step *step = NULL;
    enum rv_err err = RV_OK;
    if (id.number != 0)
        err = q->store->ops->load_steps(q->store, arena, RV_COLUMNS_ERRORS, &id, 1, &step);
    if (err != RV_OK || step == NULL || step->unreadable ||
        step->attempt_state == RV_ATTEMPT_NONE || rv_attempt_state_live(step->attempt_state))
        return err;
    rv_assert(out->attempts_count <= RV_EXPLAINED_ATTEMPTS_MAX);
    struct rv_attempt *row = &out->attempts[out->attempts_count++];
    *row = rv_attempt_newest(out->task, step);
    if (step->state != RV_STEP_PENDING)
        row->retry_at = 0;
    if (out->attempts_count <= RV_EXPLAINED_ATTEMPTS_MAX)
        return RV_OK;
    memmove(out->attempts, out->attempts + 1, RV_EXPLAINED_ATTEMPTS_MAX * sizeof out->attempts[0]);
    out->attempts_count = RV_EXPLAINED_ATTEMPTS_MAX;
    out->cut[RV_EXPLAINED_CUT_ATTEMPTS] = true;
    out->left[RV_EXPLAINED_CUT_ATTEMPTS]++;
    return RV_OK;
}

/* The first of those that the commands which are named say were seen. */
static enum rv_err explain_late(const struct query *q, struct rv_call_explain *out,
                                struct rv_arena *arena)
{
    size_t rows = RV_EXPLAINED_LATE_MAX + 1;
    out->late_replies = RV_NEW_ARRAY(arena, struct rv_late_reply, rows);
    if (out->late_replies == NULL)
        return RV_ERR_MEMORY;
    RV_TRY(q->store->ops->list_late_replies(q->store, arena, RV_COLUMNS_ALL,
                                            (struct rv_step_id){out->task, 0}, 0, 0, rows,
                                            out->late_replies, &out->late_replies_count));
    rv_assert(out->late_replies_count <= rows);
    out->cut[RV_EXPLAINED_CUT_LATE] = out->late_replies_count == rows;
    out->late_replies_count -= out->late_replies_count == rows;
    uint32_t all = 0;
    if (out->cut[RV_EXPLAINED_CUT_LATE])
        RV_TRY(cures_ledger_count(q, out->task, NULL, RV_PAGE_ROWS_MAX, &all));
    if (all < RV_PAGE_ROWS_MAX && all > RV_EXPLAINED_LATE_MAX)
        out->left[RV_EXPLAINED_CUT_LATE] = all - RV_EXPLAINED_LATE_MAX;
    return RV_OK;
}

static enum rv_err explain_cures(const struct query *q, struct rv_call_explain *out,
                                 struct rv_arena *arena, const struct workflow_entry *entry)
{
    out->cures = RV_NEW_ARRAY(arena, struct rv_cure, RV_CURES_MAX);
    if (out->cures == NULL)
        return RV_ERR_MEMORY;
    RV_TRY(cures_find(q, out->found, entry, NULL, out->cures, &out->cures_count));
    rv_assert(out->cures_count <= RV_CURES_MAX);
    return RV_OK;
}

enum rv_err explain_read(const struct query *q, struct rv_call *call)
{
    struct rv_call_explain *out = &call->u.explain;
    struct rv_arena *arena = &call->arena;
    struct workflow_entry *entry;
    enum rv_err err = q->store->ops->load_tasks(q->store, arena, RV_COLUMNS_ERRORS, &out->task, 1,
                                                &out->found);
    if (err != RV_OK)
        return err;
    if (out->found == NULL)
        return query_no_task(call, out->task);
    RV_TRY(workflow_by_id(q->workflows, out->found->workflow, &entry));
    if (entry != NULL)
        out->workflow = rv_row_copy(&rv_row_workflow, RV_COLUMNS_ALL, arena, &entry->row);
    RV_TRY(explain_steps(q, out, arena, entry));
    RV_TRY(explain_newest(q, out, arena));
    RV_TRY(explain_late(q, out, arena));
    RV_TRY(explain_cures(q, out, arena, entry));
    RV_TRY(explain_past(q, out, arena)); /* of the cool-downs in the attempts before the last */
    RV_TRY(explain_last(q, out, arena));
    explain_task(q, out);
    out->problems = q->problems;
    return RV_OK;
}
