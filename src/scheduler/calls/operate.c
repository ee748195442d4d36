/* The operator's and the author's calls: resubmit, undo, cancel; acknowledge; publish. */
#include "scheduler/calls/operate.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/cure.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/left.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/refuse.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/calls/probe.h"
#include "scheduler/calls/reads.h"
#include "scheduler/queries/cures.h"
#include "scheduler/queries/queries.h"
#include "scheduler/queries/query.h"

static const struct rv_step *newer_step(const void *work, uint32_t number)
{
    return work_step(work, number);
}

/* What the batch has made of the task so far. */
static struct newer newer_of(const struct work *work)
{
    return (struct newer){.step = newer_step, .self = work, .late_count = work->late_count};
}

/* An operator who settles, resubmits or undoes has seen the late replies of the task (RULES 3), and
 * says how many: more than there are were not seen either, but in a selection, where the number is
 * the most of any task. *ret_message: why not, absent when they were seen. */
static enum rv_err late_unseen(struct rv_scheduler *s, const struct rv_call_operate *operate,
                               const struct work *work, struct rv_str *ret_message)
{
    bool asks = operate->verb == RV_COMMAND_SETTLE || operate->verb == RV_COMMAND_RESUBMIT ||
                operate->verb == RV_COMMAND_UNDO;
    uint32_t count = 0, seen = operate->late_seen;
    char id[RV_ID_TEXT_BYTES];
    *ret_message = RV_STR_NONE;
    if (!asks)
        return RV_OK;
    struct newer newer = newer_of(work);
    struct query query = query_of(s);
    enum rv_err err = cures_ledger_count(&query, work->id, &newer, RV_PAGE_ROWS_MAX, &count);
    bool full = count >= RV_PAGE_ROWS_MAX; /* nobody is asked to have seen more than a page */
    bool exact = seen == count || (full && seen >= RV_PAGE_ROWS_MAX);
    if (err != RV_OK || exact || (seen > count && operate->selection.value != 0))
        return err;
    *ret_message = rv_arena_printf(
        s->batch.arena,
        "the task's number of late replies is %u, not %u: read the late replies (`reeve show %s`), "
        "then repeat the command with --late-seen %u",
        count, seen, rv_task_text(work->id, id).at, full ? RV_PAGE_ROWS_MAX : count);
    return ret_message->at != NULL ? RV_OK : RV_ERR_MEMORY;
}

static struct rv_command command_of(const struct rv_call_operate *operate, uint64_t seed)
{
    struct rv_command command = {.kind = operate->verb, .seed = seed, .step = operate->step};
    command.u.operate.by = operate->by;
    command.u.operate.reason = operate->reason;
    command.u.operate.selection = operate->selection;
    command.u.operate.abandon = operate->abandon;
    command.u.operate.input = operate->input;
    command.u.operate.assume_not_done = operate->assume_not_done;
    command.u.operate.undo_first = operate->undo_first;
    command.u.operate.by_hand = operate->by_hand;
    command.u.operate.finding = operate->finding;
    command.u.operate.output = operate->output;
    command.u.operate.close_circuit = operate->agent.at != NULL;
    return command;
}

enum rv_err operate_work(struct rv_scheduler *s, const struct rv_call_operate *operate,
                         uint64_t seed, struct work *work, const struct asker *asker,
                         struct rv_plan **ret_plan)
{
    struct rv_command command = command_of(operate, seed);
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    *ret_plan = plan;
    if (plan == NULL)
        return RV_ERR_MEMORY;
    rv_assert(work->task != NULL);
    rv_assert(work->id.value == operate->task.value);
    work->waits = false;
    enum rv_err err = late_unseen(s, operate, work, &plan->message);
    if (err != RV_OK)
        return err;
    plan->err = RV_ERR_REFUSED;
    return plan->message.at == NULL ? work_decide(s, work, &command, asker, plan) : RV_OK;
}

/* Whether a reply or a renewal of the step's attempt, which is live, came before its end and is not
 * decided yet. It is what happened, and goes before what an operator found out (RULES 3). */
static bool may_have_answered(struct rv_scheduler *s, const struct work *work, uint32_t number)
{
    left_ends_know(s);
    for (size_t i = 0; i < work->steps_count; i++) {
        const struct rv_step *step = work->steps[i].row;
        if (step->number != number || !rv_attempt_state_live(step->attempt_state))
            continue;
        bool ended = step->lease_until <= s->batch.now;
        return left_has(s, step->token, number) ||
               (ended && step->lease_until > s->batch.ends_until);
    }
    return false;
}

/* Adds them to a refusal. */
static enum rv_err cures_add(struct rv_scheduler *s, struct rv_arena *arena,
                             const struct work *work, struct rv_str *message)
{
    struct rv_cure cures[RV_CURES_MAX];
    struct rv_str text = *message;
    size_t count = 0;
    struct newer newer = newer_of(work);
    struct query query = query_of(s);
    enum rv_err err = cures_find(&query, work->task, work->workflow, &newer, cures, &count);
    rv_assert(count <= RV_CURES_MAX);
    for (size_t i = 0; err == RV_OK && text.at != NULL && i < count; i++) {
        char line[RV_CURE_LINE_BYTES];
        rv_cure_line(work->id, &cures[i], line);
        text = rv_arena_printf(arena, "%.*s%s `%s`", RV_STR_FMT(text),
                               i == 0 ? "; commands that the task accepts:" : ",", line);
    }
    if (err == RV_OK && text.at == NULL)
        return RV_ERR_MEMORY;
    *message = text;
    return err;
}

static enum rv_err operate_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call *call = p->call;
    struct rv_call_operate *operate = &call->u.operate;
    struct work *work;
    p->works = NULL; /* those of an earlier batch are gone */
    p->waits = p->bounded = false;
    enum rv_err err = operate->agent.at != NULL ? probe_choose(s, call) : RV_OK;
    if (err != RV_OK || call->err != RV_OK || (operate->agent.at != NULL && operate->step == 0))
        return err;
    p->works = RV_NEW_ARRAY(s->batch.arena, struct work *, 1);
    if (p->works == NULL)
        return RV_ERR_MEMORY;
    p->waits = p->bounded = !share_lets(s, p, operate->task);
    if (p->bounded)
        return RV_OK;
    err = work_get(s, operate->task, &work);
    if (err != RV_OK)
        return err;
    if (work->task == NULL) {
        query_no_task_text(call, operate->task);
        return RV_OK;
    }
    if (operate->verb == RV_COMMAND_SETTLE && may_have_answered(s, work, operate->step)) {
        call->err = RV_ERR_BUSY;
        call->message = RV_STR("a reply of the step's agent is being processed: check the task, "
                               "then send the request again");
        return RV_OK;
    }
    p->works[0] = work;
    struct rv_plan *plan;
    struct asker asker = {.caller = p, .a = call->serial};
    err = operate_work(s, operate, call->seed, work, &asker, &plan);
    p->waits = work->waits;
    if (err != RV_OK || work->waits)
        return err;
    call->err = plan->err;
    call->message = rv_arena_str(&call->arena, plan->message);
    bool moved = call->err == RV_ERR_REFUSED || call->err == RV_ERR_CORRUPT;
    if (moved && operate->agent.at != NULL) {
        call->err = RV_ERR_BUSY; /* another call has changed what was chosen, or it is unreadable */
        call->message = RV_STR(
            "the waiting step has changed since the request was received: send the request again");
    }
    if (call->err == RV_ERR_REFUSED && rv_task_state_open(work->task->state))
        err = cures_add(s, &call->arena, work, &call->message);
    /* The refusal stands without them, and no other call in the batch suffers for it. */
    return err == RV_ERR_MEMORY || err == RV_ERR_LIMIT ? RV_OK : err;
}

static void operate_act(struct rv_scheduler *s, struct pending *p)
{
    struct work *work = p->works ? p->works[0] : NULL;
    rv_assert(work == NULL || work->id.value == p->call->u.operate.task.value);
    pending_unlink(&s->batch.calls, p);
    if (p->waits) {
        if (s->draining)
            pending_finish(s, p, RV_ERR_BUSY, STOPPING);
        else
            evaluations_hold(s, p);
        return;
    }
    if (work != NULL && work_again(work)) {
        p->call->err = RV_OK;
        if (!parking_carry_again(s, p))
            pending_finish(s, p, RV_ERR_BUSY, NOT_TAKEN);
        return;
    }
    if (work != NULL && work->dropped) {
        pending_finish(
            s, p, RV_ERR_REFUSED,
            RV_STR("the state store refused the change of the task: see the alert of the task"));
        return;
    }
    if (work != NULL)
        p->call->u.operate.after = rv_row_copy(&rv_row_task, RV_COLUMNS_ALL, &p->call->arena,
                                               work->task);
    pending_finish(s, p, p->call->err, p->call->message);
}

/* One definition per name and version, for ever. */
static void publish_known(struct pending *p, const struct rv_workflow_row *there)
{
    struct rv_call_publish *publish = &p->call->u.publish;
    publish->row.id = there->id;
    publish->known = rv_str_eq(there->hash, publish->row.hash);
    if (!publish->known) {
        p->call->err = RV_ERR_DUPLICATE;
        p->call->message = call_printf(
            p->call,
            "version %.*s of %.*s/%.*s is already published with different content and cannot be "
            "changed: increase document.version",
            RV_STR_FMT(publish->row.version), RV_STR_FMT(publish->row.space),
            RV_STR_FMT(publish->row.name));
    }
}

static bool same_name(const struct rv_workflow_row *a, const struct rv_workflow_row *b)
{
    return rv_str_eq(a->space, b->space) && rv_str_eq(a->name, b->name) &&
           rv_str_eq(a->version, b->version);
}

static enum rv_err publish_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_workflow_row *row = &p->call->u.publish.row;
    p->call->u.publish.known = false;
    for (size_t i = 0; i < s->batch.publishes_count; i++) {
        if (same_name(&s->batch.publishes[i], row)) {
            publish_known(p, &s->batch.publishes[i]);
            return RV_OK;
        }
    }
    const struct rv_workflow_row *there;
    enum rv_err err = s->store->ops->find_workflow(s->store, s->batch.arena, row->space, row->name,
                                                   row->version, &there);
    if (err != RV_OK)
        return err;
    if (there != NULL) {
        publish_known(p, there);
        return RV_OK;
    }
    const struct rv_workflow_row *last;
    err = s->store->ops->find_workflow(s->store, s->batch.arena, row->space, row->name, RV_STR_NONE,
                                       &last);
    if (err != RV_OK)
        return err;
    row->id = rv_id_make(&s->ids, s->batch.now).value;
    row->published_at = s->batch.now;
    /* The store's clock may stand, and ids of one instant are ordered by instance: what another
     * server has published comes before all the same. */
    if (last != NULL && last->published_at >= row->published_at)
        row->published_at = rv_time_add(last->published_at, 1);
    rv_assert(s->batch.publishes != NULL);
    s->batch.publishes[s->batch.publishes_count++] = *row;
    return RV_OK;
}

static size_t operate_wants(const struct rv_scheduler *s, const struct pending *p,
                            struct rv_step_id *ids, size_t room)
{
    (void)s;
    const struct rv_call_operate *operate = &p->call->u.operate;
    if (operate->agent.at != NULL || room == 0)
        return 0;
    ids[0] = (struct rv_step_id){operate->task, 0};
    return 1;
}

const struct call_ops operate_ops = {
    .decide = operate_decide, .act = operate_act, .wants = operate_wants, .tells = true};
const struct call_ops publish_ops = {
    .decide = publish_decide, .act = answers_taskless_act, .begins = true};
