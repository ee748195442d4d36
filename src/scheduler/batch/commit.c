/* The commit of a batch. A batch that the store refuses as a whole is halved until the offender
 * stands alone: its task is escalated with an alert, all others are committed (RULES 11). What is
 * written is answered as written, also where the store refuses another piece of the same batch for
 * now, or turns out not to have taken it: only that piece is decided again. */
#include "scheduler/batch/commit.h"

#include "base/array.h"
#include "base/assert.h"
#include "scheduler/batch/asked.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"

/* The row that the task's new messages move on; NULL: it has none, or they go to no webhook.
 * MEMORY. */
static enum rv_err delivery_of(struct rv_scheduler *s, const struct work *work,
                               const struct rv_delivery **ret_row)
{
    const struct rv_task *task = work->task;
    *ret_row = NULL;
    if (work->messages_count == 0 || task->reply_url.at == NULL)
        return RV_OK;
    struct rv_delivery *row = RV_NEW(s->batch.arena, struct rv_delivery);
    if (row == NULL)
        return RV_ERR_MEMORY;
    /* The row is inserted with the first message; later ones only move it on. */
    *row = (struct rv_delivery){
        .task = task->id,
        .next = work->messages[0].number,
        .last = task->last_message,
        .since = s->batch.now,
        .due_at = s->batch.now,
        .destination = work->destination.at != NULL ? work->destination : task->reply_url,
        .url = task->reply_url,
    };
    *ret_row = row;
    return RV_OK;
}

static enum rv_err change_of(struct rv_scheduler *s, struct work *work, struct rv_change *change)
{
    const struct rv_step **rows = RV_NEW_ARRAY(s->batch.arena, const struct rv_step *,
                                               work->steps_count + 1);
    const struct rv_step **before = RV_NEW_ARRAY(s->batch.arena, const struct rv_step *,
                                                 work->steps_count + 1);
    bool *inserts = RV_NEW_ARRAY(s->batch.arena, bool, work->steps_count + 1);
    if (rows == NULL || before == NULL || inserts == NULL)
        return RV_ERR_MEMORY;
    rv_assert(work->task != NULL);
    rv_assert(work->task->revision == work->revision_before + 1);
    size_t count = 0;
    for (size_t i = 0; i < work->steps_count; i++) {
        if (!work->steps[i].dirty)
            continue;
        rows[count] = work->steps[i].row;
        before[count] = work->steps[i].stored;
        inserts[count++] = work->steps[i].insert;
    }
    rv_assert(count <= work->steps_count);
    *change = (struct rv_change){
        .task = work->task,
        .revision_before = work->revision_before,
        .at = work->now,
        .task_before = work->stored,
        .epoch = work->epoch,
        .key = work->key,
        .record = work->record,
        .steps = rows,
        .steps_new = inserts,
        .steps_before = before,
        .steps_count = count,
        .attempts = work->attempts,
        .attempts_count = work->attempts_count,
        .late_replies = work->late,
        .late_replies_count = work->late_count,
        .alerts = work->alerts,
        .alerts_count = work->alerts_count,
        .alerts_to = state_alerts_to(s),
        .close_alerts = work->close_alerts,
        .late_over = work->late_over,
        .late_over_count = work->late_over_count,
        .messages = work->messages,
        .messages_count = work->messages_count,
        .history = work->history,
        .history_count = work->history_count,
    };
    return delivery_of(s, work, &change->delivery);
}

/* Damage that no rule shows in the rows as they lay may show once they have been decided on: then
 * nothing of it is written. (In sound rows that would be a programmer's error; the simulator takes
 * the alert for one.) */
static enum rv_err works_check(struct rv_scheduler *s)
{
    for (struct work *w = s->batch.works; w != NULL; w = w->next) {
        if (!w->changed || w->broken != NULL)
            continue;
        enum rv_err err = work_check(s, w);
        if (err != RV_OK)
            return err;
        w->dropped = w->broken != NULL;
        w->outcome = w->dropped ? RV_ERR_INVALID : RV_OK;
    }
    return RV_OK;
}

/* Where others write, rows of one task that were loaded one after the other may be of two instants,
 * and look damaged, or as if a call was late. A change is guarded by the task's revision. What
 * changes nothing, and what cannot be written for damage, stands only if the task is still as it
 * was when the first of its rows was loaded. */
static enum rv_err works_verify(struct rv_scheduler *s)
{
    size_t count = 0, room = 0;
    struct rv_task_id *ids = NULL;
    for (struct work *w = s->batch.works; s->enlistment.shared && w != NULL; w = w->next) {
        if (!w->torn || (w->changed && !w->dropped) || w->task == NULL)
            continue;
        if (!RV_ARRAY_ROOM_ON(s->batch.arena, ids, count, room))
            return RV_ERR_MEMORY;
        ids[count++] = w->id;
    }
    if (count == 0)
        return RV_OK;
    const struct rv_task **tasks = RV_NEW_ARRAY(s->batch.arena, const struct rv_task *, count);
    if (tasks == NULL)
        return RV_ERR_MEMORY;
    RV_TRY(
        s->store->ops->load_tasks(s->store, s->batch.arena, RV_COLUMNS_PLAIN, ids, count, tasks));
    for (size_t i = 0; i < count; i++) {
        struct work *work = work_find(s, ids[i]);
        rv_assert(work != NULL);
        if (tasks[i] != NULL && tasks[i]->revision == work->revision_before)
            continue;
        work->dropped = true;
        work->outcome = RV_ERR_CONFLICT;
    }
    return RV_OK;
}

/* Nobody may be answered: what is in the store is known only after the next start. DEPOSED as a
 * whole: another process has this instance's number. */
static bool ends_the_process(enum rv_err err)
{
    return err == RV_ERR_COMMIT_UNKNOWN || err == RV_ERR_DEPOSED ||
           rv_err_family(err) == RV_FAMILY_STOP;
}

/* Errors that concern the store as it is now, not what is in the batch. */
static bool passing(enum rv_err err)
{
    enum rv_err_family family = rv_err_family(err);
    return family == RV_FAMILY_RETRY || family == RV_FAMILY_RELOAD;
}

enum rv_err commit_transaction_begin(struct rv_scheduler *s, struct rv_wants *wants,
                                     int64_t *ret_now)
{
    enum rv_err err = asked_begin(s, wants, ret_now);
    s->history_lost = s->history_lost || err == RV_ERR_WENT_BACK;
    return err;
}

/* The store may take its time, and has read its clock somewhere in between. */
enum rv_err commit_first_begin(struct rv_scheduler *s, struct rv_wants *wants)
{
    int64_t before = state_mono_now(s, s->batch.mono_now), now = s->batch.now;
    enum rv_err err = commit_transaction_begin(s, wants, &now);
    int64_t after = state_mono_now(s, s->batch.mono_now);
    s->batch.mono_now = s->batch.mono_last = after;
    if (err != RV_OK)
        return err;
    s->batch.now = now;
    rv_clock_tie_look(&s->clock_tie, now, before, after, &s->batch.mono_now, &s->batch.mono_last);
    s->batch.shown_mono = s->batch.mono_now;
    s->batch.begin_ms = after - before;
    return RV_OK;
}

/* CONFLICT: the outcome was not known, and nothing of it is in the store. */
static enum rv_err commit_once(struct rv_scheduler *s, struct rv_change *changes, size_t count,
                               bool first)
{
    struct rv_batch batch = {
        .changes = changes, .changes_count = count, .number = ++s->batch_number};
    rv_assert(changes != NULL || count == 0);
    if (first) {
        batch.workflows = s->batch.publishes;
        batch.workflows_count = s->batch.publishes_count;
        batch.acks = s->batch.acks;
        batch.acks_count = s->batch.acks_count;
        batch.raises = s->batch.raises;
        batch.raises_count = s->batch.raises_count;
        batch.records = s->batch.records;
        batch.records_count = s->batch.records_count;
        batch.deliveries = s->batch.deliveries;
        batch.deliveries_count = s->batch.deliveries_count;
        batch.sweep = s->batch.sweep;
        batch.ready = s->batch.ready;
        batch.ready_count = s->batch.ready_count;
        batch.renew = s->batch.renew;
        batch.resign = s->draining;
    }
    int64_t begun_us = counts_clock(s);
    enum rv_err err = asked_commit(s, &batch);
    rv_histogram_add(&s->counts.commit, counts_clock(s) - begun_us);
    if (err == RV_ERR_IO)
        return RV_ERR_COMMIT_UNKNOWN; /* and cannot be asked: the process ends (store.h, commit) */
    if (err == RV_ERR_COMMIT_UNKNOWN) {
        bool committed;
        if (asked_committed(s, batch.number, &committed) != RV_OK)
            return RV_ERR_COMMIT_UNKNOWN;
        err = committed ? RV_OK : RV_ERR_CONFLICT;
        s->batch.lost = err != RV_OK;
    }
    s->batch.wrote = s->batch.wrote || err == RV_OK;
    s->batch.renewed = s->batch.renewed || (batch.renew && err == RV_OK);
    s->batch.swept = s->batch.swept || (first && err == RV_OK);
    return err;
}

static void piece_refused(struct rv_change *changes, size_t count, enum rv_err err)
{
    for (size_t i = 0; i < count; i++)
        changes[i].outcome = err;
}

/* What of the piece is written is written, whatever becomes of the rest: each change has its
 * outcome. */
static enum rv_err commit_piece(struct rv_scheduler *s, struct rv_change *changes, size_t count)
{
    int64_t now;
    if (count == 0)
        return RV_OK;
    enum rv_err err = commit_transaction_begin(s, NULL, &now);
    if (err == RV_OK)
        err = commit_once(s, changes, count, false);
    if (err == RV_OK || ends_the_process(err))
        return err;
    if (passing(err))
        s->batch.refused = err;
    if (passing(err) || count == 1) {
        piece_refused(changes, count, err);
        return RV_OK;
    }
    err = commit_piece(s, changes, count / 2);
    return err == RV_OK ? commit_piece(s, changes + count / 2, count - count / 2) : err;
}

static size_t taskless_count(const struct rv_scheduler *s)
{
    return s->batch.publishes_count + s->batch.acks_count + s->batch.raises_count +
           s->batch.records_count + s->batch.deliveries_count;
}

/* What belongs to no task is written by itself once the batch was refused. */
static enum rv_err commit_taskless(struct rv_scheduler *s)
{
    int64_t now;
    if (taskless_count(s) == 0 && !s->batch.renew)
        return RV_OK;
    enum rv_err err = commit_transaction_begin(s, NULL, &now);
    if (err == RV_OK)
        err = commit_once(s, NULL, 0, true);
    if (ends_the_process(err))
        return err;
    rv_assert(s->batch.taskless == RV_OK);
    s->batch.taskless = err;
    return RV_OK;
}

static enum rv_err commit_all(struct rv_scheduler *s, struct rv_change *changes, size_t count)
{
    enum rv_err err = commit_once(s, changes, count, true);
    if (err == RV_OK || ends_the_process(err) || rv_err_family(err) == RV_FAMILY_RETRY)
        return err;
    if (s->batch.must_commit)
        rv_supervisor_unclaim(&s->supervisor); /* the claim went with the batch */
    if (passing(err)) {
        piece_refused(changes, count, err);
        s->batch.taskless = err;
        return RV_OK;
    }
    err = commit_taskless(s);
    return err == RV_OK ? commit_piece(s, changes, count) : err;
}

/* What is learned from the change that escalates, as from any other. */
static struct work *escalated_of(struct rv_scheduler *s, const struct work *work,
                                 const struct rv_task *before, int64_t now, struct rv_plan *plan)
{
    struct work *escalated = RV_NEW(s->batch.arena, struct work);
    if (escalated != NULL)
        *escalated = (struct work){.id = work->id,
                                   .task = &plan->task,
                                   .stored = before,
                                   .revision_before = before->revision,
                                   .now = now,
                                   .state_before = before->state,
                                   .was_open = rv_task_state_open(before->state),
                                   .changed = true,
                                   .alerts = plan->alerts,
                                   .alerts_count = plan->alerts_count,
                                   .messages = plan->messages,
                                   .messages_count = plan->messages_count,
                                   .workflow = work->workflow};
    return escalated;
}

/* The offender's task waits for an operator from the next batch on. */
static enum rv_err offender_escalate(struct rv_scheduler *s, struct work *work)
{
    int64_t now;
    rv_assert(work->dropped);
    rv_assert(work->escalated == NULL);
    enum rv_err err = commit_transaction_begin(s, NULL, &now);
    if (err != RV_OK)
        return err;
    const struct rv_task *before;
    err = s->store->ops->load_tasks(s->store, s->batch.arena, RV_COLUMNS_ALL, &work->id, 1,
                                    &before);
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    if (err == RV_OK && plan == NULL)
        err = RV_ERR_MEMORY;
    if (err != RV_OK || before == NULL) {
        s->store->ops->rollback(s->store);
        return err;
    }
    if (work->broken)
        s->damaged_at = s->batch.now;
    struct rv_command escalate = {.kind = RV_COMMAND_ESCALATE, .now = now, .arrived_at = now};
    escalate.u.escalate.alert = work->broken ? RV_ALERT_UNREADABLE : RV_ALERT_OFFENDER;
    escalate.u.escalate.message =
        work->broken
            ? rv_arena_printf(
                  s->batch.arena,
                  "the task's rows are damaged: the next change would violate the rule that %s",
                  work->broken)
            : rv_str_of(rv_err_text(work->outcome));
    struct rv_view view = {.task = before};
    enum rv_verdict verdict = rv_decide(&view, &escalate, s->batch.arena, plan);
    if (verdict != RV_DECIDED || !plan->changed) {
        s->store->ops->rollback(s->store);
        return verdict == RV_DECIDED ? RV_OK : RV_ERR_MEMORY;
    }
    rv_assert(plan->alerts_count <= 1);
    plan->alerts[0].id = rv_id_make(&s->ids, s->batch.now).value;
    plan->task.locked_by = s->enlistment.instance;
    struct rv_change change = {.task = &plan->task,
                               .revision_before = before->revision,
                               .at = now,
                               .task_before = before,
                               .alerts = plan->alerts,
                               .alerts_count = plan->alerts_count,
                               .alerts_to = state_alerts_to(s),
                               .messages = plan->messages,
                               .messages_count = plan->messages_count};
    struct work *escalated = escalated_of(s, work, before, now, plan);
    err = escalated != NULL ? delivery_of(s, escalated, &change.delivery) : RV_ERR_MEMORY;
    if (err != RV_OK) {
        s->store->ops->rollback(s->store);
        return err;
    }
    err = commit_once(s, &change, 1, false);
    if (err == RV_OK && change.outcome == RV_OK)
        work->escalated = escalated;
    return err;
}

static size_t changes_count(const struct rv_scheduler *s)
{
    size_t count = 0;
    for (const struct work *w = s->batch.works; w != NULL; w = w->next)
        count += w->changed && !w->dropped;
    return count;
}

bool batch_only_reads(const struct rv_scheduler *s)
{
    return changes_count(s) + taskless_count(s) == 0;
}

/* What the server tells of itself is an alert like others. */
static size_t own_count(const struct rv_scheduler *s)
{
    return (size_t)s->batch.clock_told + (size_t)s->batch.place_told;
}

bool batch_only_asks(const struct rv_scheduler *s)
{
    return changes_count(s) + taskless_count(s) == own_count(s);
}

bool commit_taskless_holds(const struct rv_scheduler *s)
{
    return s->batch.taskless == RV_OK || taskless_count(s) == own_count(s);
}

static enum rv_err changes_commit(struct rv_scheduler *s, struct rv_change *changes, size_t count)
{
    /* The list has the newest first; the store likes them in the order in which they came. */
    size_t i = count;
    for (struct work *w = s->batch.works; w != NULL; w = w->next) {
        if (!w->changed || w->dropped)
            continue;
        rv_assert(i > 0);
        enum rv_err err = change_of(s, w, &changes[--i]);
        if (err != RV_OK) {
            s->store->ops->rollback(s->store);
            return err;
        }
    }
    rv_assert(i == 0);
    enum rv_err err = commit_all(s, changes, count);
    i = count;
    for (struct work *w = s->batch.works; err == RV_OK && w != NULL; w = w->next) {
        if (!w->changed || w->dropped)
            continue;
        rv_assert(i > 0);
        w->outcome = changes[--i].outcome;
        w->dropped = w->outcome != RV_OK;
    }
    return err;
}

enum rv_err batch_commit(struct rv_scheduler *s)
{
    enum rv_err err = works_check(s);
    if (err == RV_OK)
        err = works_verify(s);
    size_t count = changes_count(s);
    struct rv_change *changes = RV_NEW_ARRAY(s->batch.arena, struct rv_change, count + 1);
    if (err == RV_OK && changes == NULL)
        err = RV_ERR_MEMORY;
    bool nothing = batch_only_reads(s) && !s->batch.must_commit && s->batch.sweep == NULL;
    if (err != RV_OK || nothing)
        s->store->ops->rollback(s->store);
    else
        err = changes_commit(s, changes, count);
    for (struct work *w = s->batch.works; err == RV_OK && w != NULL; w = w->next) {
        if (!w->dropped || work_again(w))
            continue;
        /* Refused even so: the task stays as it was, and is left alone for a while. */
        enum rv_err escalated = offender_escalate(s, w);
        if (ends_the_process(escalated))
            err = escalated;
    }
    return err;
}
