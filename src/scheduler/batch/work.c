/* The working set of a batch: each task once, as loaded and then as decided. Rows live on the
 * batch's arena; a decision sees what the batch's earlier decisions on the same task have made. */
#include "scheduler/batch/work.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/limits.h"
#include "dispatch/agents.h"
#include "dispatch/held.h"
#include "dispatch/ready.h"
#include "scheduler/batch/accounts.h"
#include "scheduler/batch/asked.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/own.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/workflows.h"

struct work *work_find(const struct rv_scheduler *s, struct rv_task_id id)
{
    const uint64_t *found = rv_map_find(&s->batch.works_by_id, (uint64_t)id.value, 0);
    return found ? (struct work *)(uintptr_t)*found : NULL;
}

bool work_again(const struct work *work)
{
    enum rv_err_family family = rv_err_family(work->outcome);
    return work->dropped && (family == RV_FAMILY_RELOAD || family == RV_FAMILY_RETRY ||
                             work->outcome == RV_ERR_DUPLICATE);
}

bool step_over(const struct rv_task *task, const struct rv_step *step)
{
    if (rv_step_state_open(step->state))
        return false;
    for (uint32_t i = 0; task != NULL && i < task->open_count; i++)
        if (task->open[i] == step->number)
            return false; /* escalated with its task */
    return true;
}

bool attempt_ended_now(const struct work_step *step, uint32_t number)
{
    return number > step->was_attempt ||
           (number == step->was_attempt && rv_attempt_state_live(step->was));
}

static enum rv_err work_add(struct rv_scheduler *s, struct rv_task_id id, struct work **ret_work)
{
    rv_assert(id.value != 0);
    rv_assert(work_find(s, id) == NULL);
    struct work *work = RV_NEW(s->batch.arena, struct work);
    if (work == NULL)
        return RV_ERR_MEMORY;
    work->id = id;
    work->next = s->batch.works;
    enum rv_err err = rv_map_put(&s->batch.works_by_id, (uint64_t)id.value, 0,
                                 (uint64_t)(uintptr_t)work);
    if (err != RV_OK)
        return err;
    s->batch.works = work;
    *ret_work = work;
    return RV_OK;
}

static enum rv_err work_step_add(struct rv_scheduler *s, struct work *work,
                                 const struct rv_step *row)
{
    rv_assert(work->steps_count <= work->steps_room);
    if (!RV_ARRAY_ROOM_ON(s->batch.arena, work->steps, work->steps_count, work->steps_room))
        return RV_ERR_MEMORY;
    work->steps[work->steps_count++] = (struct work_step){.row = row,
                                                          .stored = row,
                                                          .was = row->attempt_state,
                                                          .was_attempt = row->attempt,
                                                          .was_over = step_over(work->task, row)};
    return RV_OK;
}

struct work_step *work_step_of(const struct work *work, uint32_t number)
{
    for (size_t i = 0; i < work->steps_count; i++)
        if (work->steps[i].row->number == number)
            return &work->steps[i];
    return NULL;
}

const struct rv_step *work_step(const struct work *work, uint32_t number)
{
    const struct work_step *step = work_step_of(work, number);
    return step ? step->row : NULL;
}

static enum rv_err work_attach(struct rv_scheduler *s, struct work *work,
                               const struct rv_task *task)
{
    rv_assert(work->task == NULL);
    rv_assert(!work->changed);
    work->task = work->stored = task;
    if (task == NULL)
        return RV_OK;
    work->revision_before = task->revision;
    work->state_before = task->state;
    work->was_open = rv_task_state_open(task->state);
    return workflow_by_id(&s->workflows, task->workflow, &work->workflow);
}

enum rv_err work_get(struct rv_scheduler *s, struct rv_task_id id, struct work **ret_work)
{
    *ret_work = work_find(s, id);
    if (*ret_work != NULL)
        return RV_OK;
    struct rv_step_id only_task = {id, 0};
    enum rv_err err = work_prefetch(s, &only_task, 1);
    if (err == RV_OK)
        *ret_work = work_find(s, id);
    return err;
}

enum rv_err work_new(struct rv_scheduler *s, struct rv_task_id id, struct workflow_entry *workflow,
                     struct work **ret_work)
{
    *ret_work = work_find(s, id); /* who guesses the next id has it looked for before */
    if (*ret_work == NULL)
        RV_TRY(work_add(s, id, ret_work));
    rv_assert((*ret_work)->task == NULL);
    (*ret_work)->workflow = workflow;
    (*ret_work)->now = s->batch.now;
    (*ret_work)->too_large = false;
    return RV_OK;
}

enum rv_err work_view(struct rv_scheduler *s, const struct work *work, uint32_t step,
                      uint64_t token, struct rv_view *ret_view)
{
    const struct rv_step **steps = RV_NEW_ARRAY(s->batch.arena, const struct rv_step *,
                                                work->steps_count + 1);
    if (steps == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < work->steps_count; i++)
        steps[i] = work->steps[i].row;
    *ret_view = (struct rv_view){
        .task = work->task,
        .steps = steps,
        .steps_count = work->steps_count,
        .attempt = work->sought,
        .attempt_sought = step != 0 && work->sought_step == step && work->sought_token == token,
        .late = work->said,
        .late_count = work->said_count,
        .late_of = step != 0 && work->said_step == step ? work->said_attempt : 0,
        .definition = work->workflow ? work->workflow->definition : NULL,
    };
    return RV_OK;
}

/* What the disk gave may be anything. A task whose rows break a rule is treated like one without a
 * readable definition: it is escalated, and the others go on (RULES 11). */
enum rv_err work_check(struct rv_scheduler *s, struct work *work)
{
    struct rv_view view;
    enum rv_err err = work_view(s, work, 0, 0, &view);
    if (err != RV_OK || work->task == NULL || work->broken != NULL)
        return err;
    work->broken = work->too_large ? "all open steps of a task are read"
                                   : rv_view_broken(work->task, view.steps, view.steps_count);
    if (work->broken != NULL)
        work->workflow = NULL;
    return RV_OK;
}

enum rv_err work_step_load(struct rv_scheduler *s, struct work *work, uint32_t number)
{
    if (work_step(work, number) != NULL)
        return RV_OK;
    if (work->too_large)
        return RV_ERR_NOT_FOUND;
    struct rv_step_id id = {work->id, number};
    const struct rv_step *row;
    work->torn = true;
    enum rv_err err = s->store->ops->load_steps(s->store, s->batch.arena, RV_COLUMNS_ALL, &id, 1,
                                                &row);
    if (err != RV_OK)
        return err;
    err = row != NULL ? work_step_add(s, work, row) : RV_ERR_NOT_FOUND;
    return err == RV_OK ? work_check(s, work) : err;
}

/* The step, and `count` more along the undo chain. What is wrong with those the decision finds when
 * it comes there. */
static enum rv_err work_chain_load(struct rv_scheduler *s, struct work *work, uint32_t number,
                                   uint32_t count)
{
    enum rv_err err = work_step_load(s, work, number);
    for (; err == RV_OK && count > 0 && work->broken == NULL; count--) {
        const struct rv_step *step = work_step(work, number);
        number = step->undo_prev;
        if (!step->chained || number == 0)
            break;
        err = work_step_load(s, work, number);
        if (err == RV_ERR_NOT_FOUND)
            return RV_OK;
    }
    return err;
}

/* The steps that a decision asks for. */
static enum rv_err work_steps_load(struct rv_scheduler *s, struct work *work,
                                   const struct rv_plan *plan)
{
    rv_assert(!work->too_large);
    size_t count = plan->more_count + 1;
    if (count == 1)
        return work_chain_load(s, work, plan->wanted, plan->chain);
    struct rv_step_id *ids = RV_NEW_ARRAY(s->batch.arena, struct rv_step_id, count);
    const struct rv_step **rows = RV_NEW_ARRAY(s->batch.arena, const struct rv_step *, count);
    if (ids == NULL || rows == NULL)
        return RV_ERR_MEMORY;
    work->torn = true;
    ids[0] = (struct rv_step_id){work->id, plan->wanted};
    for (size_t i = 1; i < count; i++)
        ids[i] = (struct rv_step_id){work->id, plan->more[i - 1]};
    enum rv_err err = s->store->ops->load_steps(s->store, s->batch.arena, RV_COLUMNS_ALL, ids,
                                                count, rows);
    for (size_t i = 0; err == RV_OK && i < count; i++) {
        if (rows[i] == NULL)
            err = RV_ERR_NOT_FOUND;
        else if (work_step(work, rows[i]->number) == NULL)
            err = work_step_add(s, work, rows[i]);
    }
    return err == RV_OK ? work_check(s, work) : err;
}

/* The task as it was loaded. One for which there is no memory with its steps has none of them. */
static enum rv_err work_take(struct rv_scheduler *s, struct work *work,
                             const struct rv_loaded *loaded, int64_t now)
{
    work->now = now > s->batch.now ? now : s->batch.now;
    RV_TRY(work_attach(s, work, loaded->task));
    for (size_t i = 0; i < loaded->steps_count; i++)
        RV_TRY(work_step_add(s, work, loaded->steps[i]));
    return work_check(s, work);
}

static enum rv_err work_take_bare(struct rv_scheduler *s, struct rv_task_id id)
{
    struct work *work;
    struct rv_loaded bare = {.steps_count = 0};
    struct rv_wants clock = {.arena = s->batch.arena};
    RV_TRY(s->store->ops->load_tasks(s->store, s->batch.arena, RV_COLUMNS_ALL, &id, 1, &bare.task));
    RV_TRY(asked_load(s, &clock));
    RV_TRY(work_add(s, id, &work));
    work->too_large = true;
    return work_take(s, work, &bare, clock.now);
}

/* Whether this load names the task already. Without memory to note that it may come twice. */
static bool is_named(struct rv_scheduler *s, struct rv_task_id id)
{
    uint64_t *load = rv_map_find(&s->batch.named, (uint64_t)id.value, 0);
    bool named = load != NULL && *load == s->batch.loads;
    if (load != NULL)
        *load = s->batch.loads;
    else if (rv_map_put(&s->batch.named, (uint64_t)id.value, 0, s->batch.loads) != RV_OK)
        return false;
    return named;
}

void work_load_begin(struct rv_scheduler *s)
{
    s->batch.loads++;
}

size_t work_load_name(struct rv_scheduler *s, const struct rv_step_id *ids, size_t count,
                      struct rv_task_id *ret_ids)
{
    size_t fresh = 0;
    for (size_t i = 0; i < count; i++) {
        struct rv_task_id id = ids[i].task;
        if (id.value != 0 && work_find(s, id) == NULL && !shortage_parks(s, id) && !is_named(s, id))
            ret_ids[fresh++] = id;
    }
    rv_assert(fresh <= count);
    return fresh;
}

enum rv_err work_load_take(struct rv_scheduler *s, const struct rv_wants *load)
{
    for (size_t i = 0; i < load->tasks_count; i++) {
        const struct rv_loaded *loaded = &load->tasks[i];
        struct work *work = work_find(s, loaded->id);
        if (loaded->how == RV_LOADED_SKIPPED) {
            RV_TRY(rv_map_put(&s->batch.skipped, (uint64_t)loaded->id.value, 0, 0));
            continue;
        }
        if (work == NULL) {
            RV_TRY(work_add(s, loaded->id, &work));
            work->history_known = load->histories;
            work->history_last = loaded->history_last;
            RV_TRY(work_take(s, work, loaded, load->now));
        }
        work->stolen = work->stolen || loaded->how == RV_LOADED_STOLEN;
        work->orphan = work->orphan || loaded->how == RV_LOADED_ORPHAN;
        work->overdue = work->overdue || loaded->how == RV_LOADED_OVERDUE;
    }
    return RV_OK;
}

/* One load, of as much as the share has room for. */
static enum rv_err prefetch_piece(struct rv_scheduler *s, const struct rv_step_id *ids,
                                  size_t count, bool claims, struct rv_wants *load)
{
    struct rv_task_id *fresh = RV_NEW_ARRAY(s->batch.arena, struct rv_task_id, count + 1);
    *load = (struct rv_wants){.arena = s->batch.arena,
                              .ids = fresh,
                              .bytes_max = share_left(s),
                              .histories = s->batch.histories};
    if (fresh == NULL)
        return RV_ERR_MEMORY;
    work_load_begin(s);
    load->count = work_load_name(s, ids, count, fresh);
    load->claims = claims ? load->count : 0;
    if (load->count == 0)
        return RV_OK;
    enum rv_err err = asked_load(s, load);
    if (err == RV_OK)
        err = work_load_take(s, load);
    if (err == RV_ERR_MEMORY && load->count == 1)
        shortage_of(s, fresh[0]);
    return err;
}

static enum rv_err prefetch(struct rv_scheduler *s, const struct rv_step_id *ids, size_t count,
                            bool claims)
{
    size_t piece = share_load(s);
    for (size_t i = 0; i < count && (i == 0 || !share_used(s)); i += piece) {
        struct rv_wants load;
        size_t its = count - i < piece ? count - i : piece;
        for (size_t k = i; k < i + its; k++)
            if (ids[k].task.value != 0 && shortage_parks(s, ids[k].task) &&
                work_find(s, ids[k].task) == NULL)
                RV_TRY(work_take_bare(s, ids[k].task));
        RV_TRY(prefetch_piece(s, ids + i, its, claims, &load));
        if (load.tasks_count < load.count)
            break;
    }
    return RV_OK;
}

enum rv_err work_prefetch(struct rv_scheduler *s, const struct rv_step_id *ids, size_t count)
{
    return prefetch(s, ids, count, false);
}

enum rv_err work_claim(struct rv_scheduler *s, const struct rv_step_id *ids, size_t count)
{
    return prefetch(s, ids, count, true);
}

static enum rv_err adopt_step(struct rv_scheduler *s, struct work *work,
                              const struct rv_planned_step *planned)
{
    for (size_t i = 0; i < work->steps_count; i++) {
        if (work->steps[i].row->number == planned->row->number) {
            work->steps[i].row = planned->row;
            work->steps[i].dirty = true;
            return RV_OK;
        }
    }
    enum rv_err err = work_step_add(s, work, planned->row);
    if (err != RV_OK)
        return err;
    rv_assert(work->steps_count > 0);
    struct work_step *step = &work->steps[work->steps_count - 1];
    step->dirty = true;
    step->stored = NULL;
    step->insert = planned->insert;
    if (planned->insert) {
        step->was_attempt = 0;
        step->was_over = false;
    }
    return RV_OK;
}

/* What is beyond the bound is in the log alone. */
static enum rv_err adopt_history(struct rv_scheduler *s, struct work *work,
                                 const struct rv_history_row *row)
{
    struct rv_history_row last = {.number = 0};
    size_t count = 1;
    enum rv_err err = RV_OK;
    if (work->history_count > 0)
        last = work->history[work->history_count - 1];
    else if (work->history_known)
        last.number = work->history_last;
    else
        err = s->store->ops->list_history(s->store, s->batch.arena, work->id, 0, 1, &last, &count);
    if (err != RV_OK)
        return err;
    if (last.number >= RV_HISTORY_MAX) {
        log_operated(s, row);
        return RV_OK;
    }
    if (!RV_ARRAY_ROOM_ON(s->batch.arena, work->history, work->history_count, work->history_room))
        return RV_ERR_MEMORY;
    rv_assert(work->history_count < work->history_room);
    struct rv_history_row *line = &work->history[work->history_count++];
    *line = *row;
    line->number = last.number + 1;
    line->at = work->now; /* the decision may be older */
    return RV_OK;
}

static bool is_over(const struct rv_plan *plan, const struct rv_alert *alert)
{
    if (alert->kind != RV_ALERT_LATE_DONE)
        return plan->close_alerts;
    for (size_t i = 0; i < plan->late_over_count; i++)
        if (plan->late_over[i] == alert->step)
            return true;
    return false;
}

/* What the plan closes and the batch has raised is never written. */
static void adopt_closed(struct work *work, const struct rv_plan *plan)
{
    size_t kept = 0;
    for (size_t i = 0; i < work->alerts_count; i++)
        if (!is_over(plan, &work->alerts[i]))
            work->alerts[kept++] = work->alerts[i];
    rv_assert(kept <= work->alerts_count);
    work->alerts_count = kept;
}

/* The plan becomes the state of the task in this batch. */
static enum rv_err work_adopt(struct rv_scheduler *s, struct work *work, const struct rv_plan *plan)
{
    struct rv_arena *arena = s->batch.arena;
    struct rv_task *task = RV_NEW(arena, struct rv_task);
    if (task == NULL)
        return RV_ERR_MEMORY;
    rv_assert(plan->changed || plan->history != NULL);
    rv_assert(plan->task.id.value == work->id.value);
    *task = plan->task;
    task->revision = work->revision_before + 1; /* however many commands the batch decides */
    task->locked_by = s->enlistment.instance;
    if (task->ended_at != 0 && (work->task == NULL || work->task->ended_at == 0))
        task->ended_at = work->now; /* from then on it is kept; the decision may be older */
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < plan->steps_count; i++)
        err = adopt_step(s, work, &plan->steps[i]);
    if (err != RV_OK)
        return err;
    for (size_t i = 0; i < plan->attempts_count; i++) {
        if (!RV_ARRAY_ROOM_ON(arena, work->attempts, work->attempts_count, work->attempts_room))
            return RV_ERR_MEMORY;
        work->attempts[work->attempts_count++] = plan->attempts[i];
    }
    for (size_t i = 0; i < plan->late_count; i++) {
        if (!RV_ARRAY_ROOM_ON(arena, work->late, work->late_count, work->late_room))
            return RV_ERR_MEMORY;
        work->late[work->late_count++] = plan->late[i];
        work->said_step = 0; /* to be asked for again */
    }
    if (plan->close_alerts)
        work->close_alerts = true;
    for (size_t i = 0; i < plan->late_over_count; i++) {
        if (!RV_ARRAY_ROOM_ON(arena, work->late_over, work->late_over_count, work->late_over_room))
            return RV_ERR_MEMORY;
        work->late_over[work->late_over_count++] = plan->late_over[i];
    }
    adopt_closed(work, plan);
    for (size_t i = 0; i < plan->alerts_count; i++) {
        if (!RV_ARRAY_ROOM_ON(arena, work->alerts, work->alerts_count, work->alerts_room))
            return RV_ERR_MEMORY;
        work->alerts[work->alerts_count] = plan->alerts[i];
        work->alerts[work->alerts_count++].id = rv_id_make(&s->ids, s->batch.now).value;
    }
    for (size_t i = 0; i < plan->messages_count; i++) {
        if (!RV_ARRAY_ROOM_ON(arena, work->messages, work->messages_count, work->messages_room))
            return RV_ERR_MEMORY;
        work->messages[work->messages_count++] = plan->messages[i];
    }
    err = plan->history != NULL ? adopt_history(s, work, plan->history) : RV_OK;
    if (err != RV_OK)
        return err;
    work->task = task;
    work->changed = true;
    return RV_OK;
}

/* Only replies ask, and they come before anything is handed out: no attempt has ended for good in
 * this batch yet. */
static enum rv_err work_attempt_seek(struct rv_scheduler *s, struct work *work,
                                     const struct rv_command *command)
{
    struct rv_attempt *row = RV_NEW(s->batch.arena, struct rv_attempt);
    if (row == NULL)
        return RV_ERR_MEMORY;
    bool found = false;
    work->torn = true;
    enum rv_err err = s->store->ops->find_attempt(s->store, s->batch.arena,
                                                  (struct rv_step_id){work->id, command->step},
                                                  command->token, row, &found);
    work->sought = found ? row : NULL;
    work->sought_step = err == RV_OK ? command->step : 0;
    work->sought_token = command->token;
    return err;
}

/* What the ledger has of the attempt, and what this batch has added. */
static enum rv_err work_late_load(struct rv_scheduler *s, struct work *work, uint32_t step,
                                  uint32_t attempt)
{
    struct rv_late_reply *rows = RV_NEW_ARRAY(s->batch.arena, struct rv_late_reply,
                                              RV_LATE_REPLIES_MAX + work->late_count);
    if (rows == NULL)
        return RV_ERR_MEMORY;
    size_t count = 0;
    work->torn = true;
    enum rv_err err = s->store->ops->list_late_replies(s->store, s->batch.arena, RV_COLUMNS_ALL,
                                                       (struct rv_step_id){work->id, step}, attempt,
                                                       0, RV_LATE_REPLIES_MAX, rows, &count);
    for (size_t i = 0; err == RV_OK && i < work->late_count; i++)
        if (work->late[i].step.number == step && work->late[i].attempt == attempt)
            rows[count++] = work->late[i];
    work->said = rows;
    work->said_count = count;
    work->said_step = step;
    work->said_attempt = attempt;
    return err;
}

#define OVER_LIMIT "a change of the task exceeds a limit of Reeve"

static enum rv_err work_escalate(struct rv_scheduler *s, struct work *work, uint64_t seed,
                                 enum rv_verdict verdict)
{
    struct rv_command escalate = {
        .kind = RV_COMMAND_ESCALATE, .seed = seed, .now = work->now, .arrived_at = work->now};
    escalate.u.escalate.alert = RV_ALERT_UNREADABLE;
    escalate.u.escalate.message =
        work->too_large ? RV_STR("the task's steps need more memory than the server has: give the "
                                 "server more memory, then resubmit the task")
        : work->broken ? rv_arena_printf(s->batch.arena, "the task's rows violate the rule that %s",
                                         work->broken)
        : verdict == RV_OVER_LIMIT
            ? RV_STR(OVER_LIMIT "; none of its rows is damaged")
            : RV_STR("the task's rows do not match the definition of its workflow");
    if (!work->too_large && (work->broken || verdict != RV_OVER_LIMIT))
        s->damaged_at = s->batch.now;
    struct rv_view view;
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    enum rv_err err = plan ? work_view(s, work, 0, 0, &view) : RV_ERR_MEMORY;
    if (err != RV_OK)
        return err;
    if (rv_decide(&view, &escalate, s->batch.arena, plan) != RV_DECIDED)
        return RV_ERR_MEMORY;
    return plan->changed ? work_adopt(s, work, plan) : RV_OK;
}

enum rv_err work_read(struct rv_scheduler *s, struct work *work)
{
    struct rv_wants wants = {
        .arena = s->batch.arena, .ids = &work->id, .count = 1, .bytes_max = SIZE_MAX};
    RV_TRY(asked_load(s, &wants));
    rv_assert(wants.tasks_count == 1);
    return work_take(s, work, &wants.tasks[0], wants.now);
}

enum rv_err work_load_more(struct rv_scheduler *s, struct work *work,
                           const struct rv_command *command, enum rv_verdict verdict,
                           const struct rv_plan *plan)
{
    switch (verdict) {
    case RV_NEED_STEP:
        return work->too_large ? RV_ERR_NOT_FOUND : work_steps_load(s, work, plan);
    case RV_NEED_ATTEMPT:
        return work_attempt_seek(s, work, command);
    case RV_NEED_LATE:
        return work_late_load(s, work, command->step, plan->wanted);
    case RV_DECIDED:
    case RV_ACCEPTED:
    case RV_GIVEN_UP:
    case RV_OVER_LIMIT:
    case RV_UNREADABLE:
        break;
    case RV_NO_ROOM:
        return RV_ERR_MEMORY;
    }
    return RV_ERR_NOT_FOUND;
}

/* The turn of a decision is over. */
static bool turn_over(void *self)
{
    (void)self;
    return false;
}

/* The decision goes on beside the batches. */
static enum rv_err work_wait(struct rv_scheduler *s, struct work *work,
                             const struct rv_command *command, const struct asker *asker,
                             int64_t used)
{
    rv_assert(asker != NULL);
    rv_assert(work->workflow != NULL);
    work->waits = true;
    return s->draining ? RV_OK : evaluation_new(s, asker, work, command, used);
}

/* The decision on the rows of this batch; what it uses counts. Without an asker it runs to its
 * end. */
static enum rv_verdict work_turn(struct rv_scheduler *s, const struct work *work,
                                 const struct rv_view *view, struct rv_command *command,
                                 const struct asker *asker, struct rv_plan *plan, int64_t *ret_used)
{
    int64_t allowance = asker != NULL ? accounts_allowance(s, work->workflow->row.id) : INT64_MAX;
    rv_assert(allowance > 0);
    struct rv_pace pace = {.left = allowance, .pause = turn_over};
    command->pace = &pace;
    enum rv_verdict verdict = rv_decide(view, command, s->batch.arena, plan);
    command->pace = NULL;
    *ret_used = allowance - pace.left;
    rv_assert(asker != NULL || verdict != RV_GIVEN_UP);
    if (work->workflow != NULL)
        accounts_decided(s, work->workflow->row.id, work->id, *ret_used);
    return verdict;
}

/* A row that others name is missing, or none fit, or a limit is reached. It is the end of this task
 * alone. `again`: what a reply says is kept all the same, if its attempt can be read. */
static enum rv_err work_unreadable(struct rv_scheduler *s, struct work *work,
                                   const struct rv_command *command, enum rv_verdict verdict,
                                   struct rv_plan *plan, bool *ret_again)
{
    bool readable = work->workflow != NULL && work->workflow->definition != NULL;
    enum rv_err err = work->task ? work_escalate(s, work, command->seed, verdict) : RV_OK;
    *ret_again = err == RV_OK && command->kind == RV_COMMAND_REPLY && readable;
    if (*ret_again)
        work->workflow = NULL;
    plan->status = 0;
    plan->err = verdict == RV_OVER_LIMIT ? RV_ERR_LIMIT : RV_ERR_CORRUPT;
    plan->message = verdict == RV_OVER_LIMIT
                        ? RV_STR(OVER_LIMIT)
                        : RV_STR("the rows of the task or the definition of its workflow cannot be "
                                 "read: repair the damage described in the task's alerts");
    return err;
}

/* What is known of the decision already. *ret_known: the verdict is there, as of *ret_now. */
static enum rv_err work_evaluated(struct rv_scheduler *s, struct work *work,
                                  const struct asker *asker, struct rv_plan *plan, bool *ret_known,
                                  enum rv_verdict *ret_verdict, int64_t *ret_now)
{
    struct evaluation *evaluation = evaluation_find(s, asker);
    *ret_known = false;
    if (evaluation != NULL && evaluation_over(evaluation)) {
        enum rv_err err = evaluation_take(s, evaluation, work, ret_known, ret_verdict, plan,
                                          ret_now);
        work->waits = !*ret_known;
        return err;
    }
    work->waits = evaluation != NULL;
    return RV_OK;
}

static enum rv_err decide(struct rv_scheduler *s, struct work *work, struct rv_command *command,
                          const struct asker *asker, struct rv_plan *ret_plan)
{
    rv_assert(!work->dropped);
    command->memory_max = s->options.decision_bytes_max;
    if (command->arrived_at == 0 || command->arrived_at > s->batch.now)
        command->arrived_at = s->batch.now;
    if (work->workflow == NULL || work->workflow->definition == NULL || work->broken != NULL)
        asker = NULL; /* nothing of it can be evaluated */
    bool known = false;
    enum rv_verdict verdict = RV_DECIDED;
    work->waits = false;
    enum rv_err err = asker != NULL ? work_evaluated(s, work, asker, ret_plan, &known, &verdict,
                                                     &command->now)
                                    : RV_OK;
    while (err == RV_OK && !work->waits) {
        struct rv_view view;
        int64_t used = 0;
        err = work_view(s, work, command->step, command->token, &view);
        if (err != RV_OK)
            return err;
        if (!known) {
            command->now = work->now;
            verdict = work_turn(s, work, &view, command, work->workflow ? asker : NULL, ret_plan,
                                &used);
        }
        known = false;
        if (verdict == RV_GIVEN_UP)
            return work_wait(s, work, command, asker, used);
        if (verdict == RV_DECIDED) {
            if (!ret_plan->changed && ret_plan->history == NULL)
                return RV_OK;
            err = work_adopt(s, work, ret_plan);
            if (err == RV_OK)
                work_offer(s, work);
            return err;
        }
        err = work_load_more(s, work, command, verdict, ret_plan);
        if (err == RV_ERR_NOT_FOUND) {
            bool again;
            err = work_unreadable(s, work, command, verdict, ret_plan, &again);
            if (!again)
                return err;
        }
    }
    return err;
}

/* The task was due, and is as it was: damaged like one whose rows break a rule as loaded. What has
 * become due since an evaluation began is decided next. */
static enum rv_err woken_check(struct rv_scheduler *s, struct work *work,
                               const struct rv_command *command)
{
    struct rv_view view;
    RV_TRY(work_view(s, work, 0, 0, &view));
    work->broken = rv_view_due_broken(work->task, view.steps, view.steps_count, command->now);
    if (work->broken == NULL)
        return RV_OK;
    work->workflow = NULL;
    work->found = true;
    return work_escalate(s, work, command->seed, RV_UNREADABLE);
}

enum rv_err work_decide(struct rv_scheduler *s, struct work *work, struct rv_command *command,
                        const struct asker *asker, struct rv_plan *ret_plan)
{
    enum rv_err err = decide(s, work, command, asker, ret_plan);
    bool woken = err == RV_OK && command->kind == RV_COMMAND_WAKE && !work->waits;
    if (woken && !ret_plan->changed && work->task != NULL && work->broken == NULL)
        err = woken_check(s, work, command);
    if (err == RV_ERR_MEMORY)
        shortage_of(s, work->id);
    return err;
}

void work_offer(struct rv_scheduler *s, struct work *work)
{
    rv_assert(work->task != NULL);
    for (uint32_t i = 0; i < work->task->open_count; i++) {
        const struct rv_step *step = work_step(work, work->task->open[i]);
        if (step == NULL || !rv_step_ready(work->task, step, work->now))
            continue;
        /* A hint only: without memory for it the repair scan gives it again. */
        if (agents_ready(&s->agents, work->task, step) != RV_OK)
            return;
    }
}

/* Ends of attempts that the batch has decided are asked for again. */
static void ends_void(struct rv_scheduler *s, const struct work *work)
{
    for (size_t i = 0; i < work->steps_count; i++) {
        struct rv_step_id id = {work->id, work->steps[i].row->number};
        struct held *held = held_find(&s->agents, id);
        if (held != NULL)
            memset(held->over_in, 0, sizeof held->over_in);
    }
}

/* Before the commit, steps were queued so that the polls of the same batch find them, and others
 * were taken from the queue for these polls. What the rows say as they were loaded is learned all
 * the same: a batch that tells of an attempt for the first time may be refused again and again. */
void work_withdraw(struct rv_scheduler *s, const struct work *work)
{
    const struct rv_task *task = work->stored;
    bool offends = work->dropped && !work_again(work); /* it is left alone */
    if (task != NULL && !task_is_own(s, task)) {
        own_forget(s, work);
        return;
    }
    if (!offends)
        ends_void(s, work);
    for (size_t i = 0; i < work->steps_count; i++) {
        const struct work_step *step = &work->steps[i];
        enum rv_err err = RV_OK;
        if (task == NULL || step->stored == NULL)
            agents_unready(&s->agents, work->id, step->row);
        else if (task->state == RV_TASK_ERROR)
            agents_see_parked(&s->agents, task, step->stored);
        else
            err = agents_see(&s->agents, task, step->stored, false, s->batch.now);
        if (err != RV_OK)
            return; /* the next look at the task gives the hint again */
        if (offends)
            agents_unready(&s->agents, work->id, step->row);
    }
}
