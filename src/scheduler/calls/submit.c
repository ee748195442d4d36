/* Submissions: many tasks in a call, each with its own result, acknowledged after the commit. */
#include "base/assert.h"
#include "base/limits.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/refuse.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/batch/workflows.h"
#include "scheduler/calls/reads.h"
#include "scheduler/queries/query.h"
#include "scheduler/watch/counts.h"
#include "store/load.h"

static void refuse(struct rv_submission *item, enum rv_err err, struct rv_str message)
{
    item->err = err;
    item->message = message;
}

static bool item_over(const struct rv_submission *item)
{
    return item->err != RV_OK || item->task.value != 0;
}

/* Its decision is under way beside the batches. */
static bool item_waits(const struct rv_scheduler *s, const struct pending *p, size_t i)
{
    struct asker asker = {.a = p->call->serial, .b = i + 1};
    return p->evaluating > 0 && evaluation_waits(s, &asker);
}

static bool key_wanted(const struct rv_scheduler *s, const struct pending *p, size_t i)
{
    return p->call->u.submit.items[i].key.at != NULL && !item_waits(s, p, i);
}

static size_t submit_keys(const struct rv_scheduler *s, const struct pending *p,
                          struct rv_str *keys, size_t room)
{
    const struct rv_call_submit *submit = &p->call->u.submit;
    size_t count = 0;
    for (size_t i = 0; !p->waited && i < submit->count && count < room; i++)
        if (key_wanted(s, p, i))
            keys[count++] = submit->items[i].key;
    return count;
}

static bool same_workflow(const struct rv_workflow_name *name, const struct rv_submission *item)
{
    return rv_str_eq(name->space, item->space) && rv_str_eq(name->name, item->name) &&
           rv_str_eq(name->version, item->version);
}

/* Neighbours mostly name the same workflow. */
static size_t submit_names(const struct rv_scheduler *s, const struct pending *p,
                           struct rv_workflow_name *names, size_t room)
{
    const struct rv_call_submit *submit = &p->call->u.submit;
    size_t count = 0;
    for (size_t i = 0; !p->waited && i < submit->count && count < room; i++) {
        const struct rv_submission *item = &submit->items[i];
        if (item_over(item) || item_waits(s, p, i) ||
            (count > 0 && same_workflow(&names[count - 1], item)))
            continue;
        names[count++] = (struct rv_workflow_name){item->space, item->name, item->version};
    }
    return count;
}

/* The rows of the keys of the call, by its items. */
static enum rv_err keys_find(struct rv_scheduler *s, const struct pending *p,
                             struct rv_key_row *rows)
{
    const struct rv_call_submit *submit = &p->call->u.submit;
    struct rv_str *keys = RV_NEW_ARRAY(s->batch.arena, struct rv_str, submit->count);
    if (keys == NULL)
        return RV_ERR_MEMORY;
    size_t count = submit_keys(s, p, keys, submit->count), at = 0;
    struct rv_key_row *found = RV_NEW_ARRAY(s->batch.arena, struct rv_key_row, count + 1);
    if (found == NULL)
        return RV_ERR_MEMORY;
    bool ahead = s->batch.key_rows != NULL && p->keys_in == s->batch.turn && p->keys_count == count;
    for (size_t i = 0; ahead && i < count; i++)
        found[i] = s->batch.key_rows[p->keys_from + i];
    if (!ahead && count > 0)
        RV_TRY(rv_store_load_keys(s->store, s->batch.arena, keys, count, found));
    for (size_t i = 0; i < submit->count; i++)
        if (key_wanted(s, p, i))
            rows[i] = found[at++];
    rv_assert(at == count); /* each row has its item */
    return RV_OK;
}

static enum rv_err item_known(struct rv_scheduler *s, struct rv_call *call,
                              struct rv_submission *item, const struct rv_key_row *row)
{
    if (!rv_str_eq(row->body_hash, item->body_hash)) {
        char id[RV_ID_TEXT_BYTES];
        rv_task_text(row->task, id);
        refuse(item, RV_ERR_DUPLICATE,
               call_printf(call,
                           "this key belongs to the task %s, which was submitted with different "
                           "content (workflow, input or options): use a new key for a new task, or "
                           "repeat the submission with the same content to get that task",
                           id));
        return RV_OK;
    }
    struct work *work;
    enum rv_err err = work_get(s, row->task, &work);
    if (err != RV_OK)
        return err;
    if (work->task == NULL) {
        refuse(item, RV_ERR_LATE,
               RV_STR("the task with this key has ended and was deleted after --retain; use a new "
                      "key for a new task"));
        return RV_OK;
    }
    item->task = row->task;
    item->known = true;
    item->state = work->task->state;
    return RV_OK;
}

/* Where its messages would go; an item that asks for what cannot be is refused. */
static enum rv_err item_destination(struct rv_scheduler *s, struct rv_call *call,
                                    struct rv_submission *item, struct rv_str *ret_destination)
{
    enum { TEXT_BYTES = 2048 };
    char text[TEXT_BYTES] = "this server does not send webhooks";
    const struct rv_scheduler_outlet *outlet = &s->options.outlet;
    *ret_destination = RV_STR_NONE;
    if (item->reply_url.at == NULL)
        return RV_OK;
    enum rv_err err = outlet->send != NULL
                          ? outlet->check(outlet->self, item->reply_url, text, sizeof text)
                          : RV_ERR_REFUSED;
    if (err == RV_ERR_MEMORY)
        return err;
    if (err != RV_OK)
        refuse(item, err, call_printf(call, "replyTo: %s", text));
    *ret_destination = rv_arena_str(s->batch.arena, rv_str_of(text));
    return ret_destination->at != NULL ? RV_OK : RV_ERR_MEMORY;
}

static enum rv_err item_begin(struct rv_scheduler *s, struct pending *p, size_t i,
                              struct workflow_entry *workflow, struct work **ret_work)
{
    struct rv_arena *arena = s->batch.arena;
    struct rv_call *call = p->call;
    struct rv_submission *item = &call->u.submit.items[i];
    struct asker asker = {.caller = p, .a = call->serial, .b = i + 1};
    const struct evaluation *evaluation = evaluation_find(s, &asker);
    struct rv_str destination;
    enum rv_err err = item_destination(s, call, item, &destination);
    if (err != RV_OK || item->err != RV_OK)
        return err;
    struct rv_task_id id = evaluation != NULL ? evaluation_task(evaluation)
                                              : rv_id_make(&s->ids, s->batch.now);
    err = work_new(s, id, workflow, ret_work);
    if (err != RV_OK)
        return err;
    struct work *work = *ret_work;
    rv_assert(work->task == NULL);
    rv_assert(work->workflow == workflow);
    work->destination = destination;
    struct rv_command command = {.kind = RV_COMMAND_SUBMIT,
                                 .seed = call->seed ^ (uint64_t)work->id.value};
    command.u.submit.task = work->id;
    command.u.submit.workflow = workflow->row.id;
    command.u.submit.input = item->input.at ? item->input : RV_STR("{}");
    command.u.submit.key = item->key;
    command.u.submit.correlation = item->correlation;
    command.u.submit.tags = item->tags;
    command.u.submit.priority = item->priority;
    command.u.submit.reply_url = item->reply_url;
    command.u.submit.reply_stream = item->reply_stream;
    command.u.submit.traceparent = item->traceparent;
    command.u.submit.tracestate = item->tracestate;
    command.u.submit.instance = s->enlistment.instance;
    if (item->key.at != NULL) {
        struct rv_key_row *row = RV_NEW(arena, struct rv_key_row);
        if (row == NULL)
            return RV_ERR_MEMORY;
        *row = (struct rv_key_row){item->key, item->body_hash, work->id};
        work->key = row;
    }
    struct rv_plan *plan = RV_ROOM(arena, struct rv_plan, 1);
    if (plan == NULL)
        return RV_ERR_MEMORY;
    err = work_decide(s, work, &command, &asker, plan);
    if (err != RV_OK || work->waits)
        return err;
    if (plan->err != RV_OK) {
        bool limit = plan->err == RV_ERR_LIMIT;
        refuse(item, plan->err,
               limit ? plan->message
                     : RV_STR("the stored definition of the workflow cannot be read: publish the "
                              "definition again as a new version"));
        return RV_OK;
    }
    rv_assert(work->task != NULL);
    item->task = work->id;
    return RV_OK;
}

static enum rv_err item_decide(struct rv_scheduler *s, struct pending *p, size_t i,
                               const struct rv_key_row *row)
{
    struct rv_submission *item = &p->call->u.submit.items[i];
    rv_assert(i < p->call->u.submit.count);
    rv_assert(!item_over(item));
    rv_assert(p->works[i] == NULL);
    if (row->task.value != 0)
        return item_known(s, p->call, item, row);
    /* Neighbours mostly name the same workflow: the one before is asked first. */
    struct rv_submission *before = i > 0 ? item - 1 : NULL;
    struct workflow_entry *workflow = NULL;
    enum rv_err err = RV_OK;
    if (before != NULL && p->works[i - 1] != NULL && rv_str_eq(before->space, item->space) &&
        rv_str_eq(before->name, item->name) && rv_str_eq(before->version, item->version))
        workflow = p->works[i - 1]->workflow;
    else
        err = workflow_by_name(&s->workflows, item->space, item->name, item->version, &workflow);
    if (err != RV_OK)
        return err;
    if (workflow == NULL) {
        refuse(item, RV_ERR_NOT_FOUND,
               call_printf(p->call,
                           "no workflow %.*s/%.*s%s%.*s is published; `reeve workflows` lists the "
                           "published workflows",
                           RV_STR_FMT(item->space), RV_STR_FMT(item->name),
                           item->version.at ? ":" : "", RV_STR_FMT(item->version)));
        return RV_OK;
    }
    return item_begin(s, p, i, workflow, &p->works[i]);
}

/* The store has lost some of what it had: perhaps the task that an earlier batch wrote for the
 * item, and its key with it. Then the item is decided anew. */
static enum rv_err item_look_again(struct rv_scheduler *s, struct rv_submission *item)
{
    struct work *work;
    enum rv_err err = work_get(s, item->task, &work);
    if (err == RV_OK && work->task == NULL)
        item->task.value = 0, item->known = false;
    return err;
}

/* The tasks of keys that were submitted before, in one load. */
static enum rv_err known_load(struct rv_scheduler *s, const struct pending *p,
                              const struct rv_key_row *rows)
{
    const struct rv_call_submit *submit = &p->call->u.submit;
    size_t count = 0;
    struct rv_step_id *ids = RV_NEW_ARRAY(s->batch.arena, struct rv_step_id, submit->count + 1);
    if (ids == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < submit->count; i++)
        if (!item_over(&submit->items[i]) && !item_waits(s, p, i) && rows[i].task.value != 0)
            ids[count++] = (struct rv_step_id){rows[i].task, 0};
    if (count == 0)
        return RV_OK;
    share_enter(s, p->large ? SHARE_LARGE : SHARE_SMALL);
    return work_prefetch(s, ids, count);
}

static enum rv_err submit_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_submit *submit = &p->call->u.submit;
    if (p->waited)
        return read_decide(s, p);
    p->works = RV_NEW_ARRAY(s->batch.arena, struct work *, submit->count);
    if (p->works == NULL)
        return RV_ERR_MEMORY;
    struct rv_key_row *rows = RV_NEW_ARRAY(s->batch.arena, struct rv_key_row, submit->count);
    enum rv_err err = rows != NULL ? keys_find(s, p, rows) : RV_ERR_MEMORY;
    for (size_t i = 0; s->batch.forgot && err == RV_OK && i < submit->count; i++)
        if (submit->items[i].task.value != 0)
            err = item_look_again(s, &submit->items[i]);
    p->bounded = false;
    if (err == RV_OK)
        err = known_load(s, p, rows);
    for (size_t i = 0; err == RV_OK && i < submit->count; i++) {
        const struct rv_submission *item = &submit->items[i];
        if (item_over(item) || item_waits(s, p, i))
            continue;
        if (!batch_has_room(s, p)) {
            p->bounded = true;
            break;
        }
        batch_spends(s, p, item->input.len + item->tags.len);
        err = item_decide(s, p, i, &rows[i]);
    }
    return err;
}

/* Gives the items what came of the batch; true when one of them did not pass and is to be decided
 * again. */
static bool items_settle(struct pending *p)
{
    struct rv_call_submit *submit = &p->call->u.submit;
    bool again = false;
    for (size_t i = 0; i < submit->count; i++) {
        struct rv_submission *item = &submit->items[i];
        const struct work *work = p->works[i];
        if (work == NULL || item->task.value == 0)
            continue;
        rv_assert(work->id.value == item->task.value);
        if (!work->dropped) {
            item->state = work->task->state;
            continue;
        }
        item->task.value = 0;
        if (work_again(work))
            again = true; /* perhaps somebody took the key meanwhile: look again */
        else
            refuse(item, work->outcome, rv_str_of(rv_err_text(work->outcome)));
    }
    return again;
}

/* True when the call goes into the next batch, with what is left of it. */
static bool submit_goes_on(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_submit *submit = &p->call->u.submit;
    bool again = items_settle(p);
    bool left = false;
    for (size_t i = 0; i < submit->count; i++)
        left = left || !item_over(&submit->items[i]);
    pending_unlink(&s->batch.calls, p);
    if (again && parking_carry_again(s, p))
        return true;
    if (!again && left && (p->bounded || !s->draining)) {
        evaluations_hold(s, p);
        return true;
    }
    for (size_t i = 0; i < submit->count; i++)
        if (!item_over(&submit->items[i]))
            refuse(&submit->items[i], RV_ERR_BUSY, again ? NOT_TAKEN : STOPPING);
    return false;
}

static void submit_forget(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_submit *submit = &p->call->u.submit;
    (void)s;
    for (size_t i = 0; p->works != NULL && i < submit->count; i++)
        if (p->works[i] != NULL)
            submit->items[i].task.value = 0;
}

static bool submit_refuse(struct rv_scheduler *s, const struct pending *p, enum rv_err err,
                          struct rv_str message)
{
    struct rv_call_submit *submit = &p->call->u.submit;
    bool accepted = false;
    for (size_t i = 0; i < submit->count; i++)
        accepted = accepted || submit->items[i].task.value != 0;
    if (!accepted)
        return false;
    for (size_t i = 0; i < submit->count; i++)
        if (!item_over(&submit->items[i]))
            refuse(&submit->items[i], err,
                   message.at != NULL ? message : rv_str_of(rv_err_text(err)));
    if (!p->counted)
        counts_submissions(s, submit);
    return true;
}

static void submit_act(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_submit *submit = &p->call->u.submit;
    if (p->waited) {
        pending_unlink(&s->batch.calls, p);
        pending_finish(s, p, RV_OK, RV_STR_NONE);
        return;
    }
    rv_assert(p->works != NULL);
    if (submit_goes_on(s, p))
        return;
    counts_submissions(s, submit);
    p->counted = true;
    struct rv_submission *one = submit->count == 1 ? &submit->items[0] : NULL;
    if (one == NULL || one->task.value == 0 || submit->wait_ms <= 0) {
        pending_finish(s, p, RV_OK, RV_STR_NONE);
        return;
    }
    const struct work *work = p->works[0];
    if (work == NULL)
        work = work_find(s, one->task);
    if (work != NULL && work->task != NULL && !work->dropped)
        one->state = work->task->state; /* a later part of the batch may have ended it */
    bool open = rv_task_state_open(one->state) && one->state != RV_TASK_ERROR;
    bool waits = open && !s->draining;
    p->plain = waits && work != NULL && work->task != NULL && parking_read_is_large(work->task);
    if (work != NULL && work->task != NULL && !p->plain)
        submit->task = rv_row_copy(&rv_row_task, RV_COLUMNS_ALL, &p->call->arena, work->task);
    if (waits)
        pending_park_waiter(s, p, one->task, submit->wait_ms);
    else
        pending_finish(s, p, RV_OK, RV_STR_NONE);
}

/* The task of a submission that has waited for it. */
static enum rv_err submit_read(const struct query *q, struct rv_call *call)
{
    struct rv_call_submit *submit = &call->u.submit;
    rv_assert(submit->count == 1);
    return q->store->ops->load_tasks(q->store, &call->arena, RV_COLUMNS_ALL, &submit->items[0].task,
                                     1, &submit->task);
}

/* It was carried out: its answer names the task. */
static bool submit_unread(struct rv_call *call)
{
    call->u.submit.task = NULL;
    return true;
}

static struct rv_task_id submit_waits_for(const struct rv_call *call)
{
    rv_assert(call->u.submit.count == 1);
    return call->u.submit.items[0].task;
}

static void submit_tell(struct rv_scheduler *s, struct pending *p, const struct work *work)
{
    const struct rv_task *task = work->task;
    rv_assert(p->parked);
    rv_assert(p->counted);
    rv_assert(work->id.value == p->call->u.submit.items[0].task.value);
    bool due = !rv_task_state_open(task->state) || task->state == RV_TASK_ERROR;
    pending_waiter_answer(s, p, task, due, &p->call->u.submit.task);
}

static size_t submit_commands(const struct rv_call *call)
{
    return call->u.submit.count;
}

const struct call_ops submit_ops = {.decide = submit_decide,
                                    .act = submit_act,
                                    .forget = submit_forget,
                                    .refuse = submit_refuse,
                                    .read = submit_read,
                                    .unread = submit_unread,
                                    .waits_for = submit_waits_for,
                                    .tell = submit_tell,
                                    .commands = submit_commands,
                                    .keys = submit_keys,
                                    .names = submit_names,
                                    .begins = true};
