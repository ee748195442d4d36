#include "sim/world/history.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/limits.h"
#include "sim/check/check.h"
#include "sim/run/coverage.h"
#include "sim/run/story.h"
#include "sim/store/database.h"
#include "sim/cast/operator.h"
#include "sim/store/rewind.h"
#include "sim/store/rows.h"
#include "sim/cast/said.h"
#include "sim/world/server.h"
#include "sim/store/storage.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

enum { BESIDE_MS_MAX = 10000 };

/* Nobody attacks the simulator: eight bytes at a time. */
uint64_t history_hash(struct rv_str text)
{
    uint64_t sum = text.len, word;
    size_t at = 0;
    for (; at + sizeof word <= text.len; at += sizeof word) {
        memcpy(&word, text.at + at, sizeof word);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    word = 0;
    if (at < text.len)
        memcpy(&word, text.at + at, text.len - at);
    return rv_hash_int(sum ^ word);
}

uint64_t history_holder(struct rv_str agent, struct rv_str instance)
{
    return rv_hash_int(history_hash(agent)) ^ history_hash(instance);
}

void history_new(struct world *w)
{
    w->history = calloc(1, sizeof *w->history);
    rv_assert(w->history != NULL);
    rv_map_init(&w->history->by_id);
    rv_map_init(&w->history->tokens);
    rv_map_init(&w->history->told);
    rv_map_init(&w->history->commands);
    rv_arena_init(&w->history->scratch, 0);
}

void history_free(struct world *w)
{
    struct history *h = w->history;
    if (h == NULL)
        return;
    for (size_t i = 0; i < h->count; i++) {
        free(h->all[i]->steps);
        free(h->all[i]);
    }
    free(h->all);
    rv_map_done(&h->by_id);
    rv_map_done(&h->tokens);
    rv_map_done(&h->told);
    rv_map_done(&h->commands);
    rv_arena_done(&h->scratch);
    free(h);
}

struct task_past *history_task(struct world *w, struct rv_task_id id)
{
    const uint64_t *found = rv_map_find(&w->history->by_id, (uint64_t)id.value, 0);
    return found ? w->history->all[*found] : NULL;
}

bool history_may_be_gone(struct world *w, const struct rv_task *task)
{
    return !rv_task_state_open(task->state) && task->ended_at != 0 &&
           task->ended_at <= w->history->swept_by;
}

bool history_over(struct world *w, struct rv_task_id id)
{
    const struct task_past *past = history_task(w, id);
    return past != NULL && history_may_be_gone(w, &past->row);
}

/* I-01: nothing is deleted before its time. */
void history_swept(struct server *s, const struct rv_sweep *sweep, int64_t now)
{
    struct world *w = s->world;
    struct history *h = w->history;
    if (now < s->holds_until)
        world_violate(w, "I-01", "at %lld the rule is to wait until %lld", (long long)now,
                      (long long)s->holds_until);
    if (w->knobs.retain_ms == 0 || sweep->ended_by > now - (int64_t)w->knobs.retain_ms)
        world_violate(w, "I-01", "at %lld what ended by %lld is to be deleted", (long long)now,
                      (long long)sweep->ended_by);
    if (h->swept_by < sweep->ended_by)
        h->swept_by = sweep->ended_by;
}

bool history_lacks(struct world *w, struct rv_task_id id)
{
    const struct task_past *past = history_task(w, id);
    /* Where the clock stands, a new task may get the id of one that was lost. */
    return rewind_lost(w, id) || (past != NULL && past->lost_commits > 0);
}

static uint64_t step_key(struct rv_step_id step)
{
    return (uint64_t)step.task.value ^ (uint64_t)step.number << 32;
}

const struct told *history_told(struct world *w, struct rv_step_id step, uint64_t token)
{
    const uint64_t *found = rv_map_find(&w->history->told, token, step_key(step));
    return found ? (const struct told *)(uintptr_t)*found : NULL;
}

static struct task_past *task_new(struct world *w, struct rv_task_id id)
{
    struct history *h = w->history;
    if (h->count == h->room) {
        h->room = h->room ? h->room * 2 : 64;
        h->all = realloc(h->all, h->room * sizeof(struct task_past *));
        rv_assert(h->all != NULL);
    }
    struct task_past *past = calloc(1, sizeof *past);
    rv_assert(past != NULL);
    enum rv_err err = rv_map_put(&h->by_id, (uint64_t)id.value, 0, h->count);
    rv_assert(err == RV_OK);
    h->all[h->count++] = past;
    return past;
}

void history_forget_last(struct world *w, struct rv_task_id id)
{
    struct history *h = w->history;
    rv_map_remove(&h->by_id, (uint64_t)id.value, 0);
    h->count--;
    free(h->all[h->count]->steps);
    free(h->all[h->count]);
}

static struct step_past *step_room(struct task_past *past, uint32_t number)
{
    if (number >= past->room) {
        uint32_t room = number + 8;
        past->steps = realloc(past->steps, room * sizeof *past->steps);
        rv_assert(past->steps != NULL);
        memset(past->steps + past->room, 0, (room - past->room) * sizeof *past->steps);
        past->room = room;
    }
    return &past->steps[number];
}

/* ---- loading what the store has now ---- */

static bool load_after(struct rv_store *store, struct rv_arena *arena, struct transition *t)
{
    const struct rv_task *task;
    enum rv_err err = store->ops->load_tasks(store, arena, RV_COLUMNS_ALL, &t->change->task->id, 1,
                                             &task);
    if (err != RV_OK || task == NULL)
        return storage_found(t->w, err);
    t->task = task;
    struct rv_step *steps = RV_ROOM(arena, struct rv_step, task->last_number + 1);
    rv_assert(steps != NULL);
    t->steps = steps;
    if (t->w->storage == NULL) { /* their texts stay where they are until the next commit */
        t->steps_count = rv_store_memory_steps(store, task->id, task->last_number + 1, steps);
        return true;
    }
    uint32_t after = 0;
    for (;;) {
        size_t count;
        err = store->ops->list_steps(store, arena, RV_COLUMNS_ALL, task->id, after,
                                     RV_PAGE_ROWS_MAX, steps + t->steps_count, &count);
        if (err != RV_OK)
            return storage_found(t->w, err);
        t->steps_count += count;
        if (count < RV_PAGE_ROWS_MAX)
            break;
        after = steps[t->steps_count - 1].number;
    }
    return true;
}

static const struct rv_definition *definition_of(struct world *w, struct rv_store *store,
                                                 const struct rv_task *task, int64_t begun_at)
{
    const struct rv_workflow_row *row;
    enum rv_err err = store->ops->load_workflow(store, &w->history->scratch, task->workflow, &row);
    if (storage_found(w, err))
        return NULL;
    if (err != RV_OK || row == NULL) {
        world_violate(w, "I-18", "the definition of an open task is not there");
        return NULL;
    }
    const struct workload_version *version = workload_version_of(w, row);
    if (version == NULL)
        return NULL;
    workload_check_newest(w, row, begun_at);
    return version->definition;
}

/* ---- taking over ---- */

static bool control_at(const struct rv_task *task, uint32_t number)
{
    for (uint32_t i = 0; i < task->open_count; i++)
        if (task->open[i] == number)
            return true;
    return false;
}

static struct rv_step without_texts(const struct rv_step *step)
{
    struct rv_step bare = *step;
    bare.reference = bare.iteration = bare.agent = bare.target = bare.instance = RV_STR_NONE;
    bare.boot = bare.poll = bare.frames = bare.data = bare.input = bare.output = RV_STR_NONE;
    bare.error = bare.attempt_error = RV_STR_NONE;
    return bare;
}

/* What checkers remember of attempts that have ended, and of who has the newest. */
static void attempts_take(const struct transition *t, struct step_past *past,
                          const struct rv_step *step)
{
    enum rv_attempt_state now = check_state_now(t, past, step);
    bool unheard = rv_attempt_state_live(past->row.attempt_state) &&
                   (now == RV_ATTEMPT_LOST || now == RV_ATTEMPT_UNDELIVERED) &&
                   said_has_left(t->w, past->row.token) && step->direction == RV_FORWARD;
    if (unheard && t->past->quiet_at < past->row.lease_until)
        t->past->quiet_at = past->row.lease_until;
    if (past->row.attempt_state == RV_ATTEMPT_OPEN && now == RV_ATTEMPT_LOST)
        past->deaths++;
    if (check_resubmitted_now(t, past, step)) {
        past->deaths = 0;
        past->poison_told = false;
    }
    for (size_t i = 0; i < t->change->alerts_count; i++)
        past->poison_told |= t->change->alerts[i].kind == RV_ALERT_POISON &&
                             t->change->alerts[i].step == step->number;
    past->holder = history_holder(step->agent, step->instance);
    past->actors = coverage_actors(step, past->began_by);
    past->agent = history_hash(step->agent);
    past->boot = history_hash(step->boot);
    past->poll = history_hash(step->poll);
    past->target = step->target.at != NULL ? history_hash(step->target) : 0;
}

static const struct rv_step *step_after(const struct transition *t, uint32_t number)
{
    for (size_t i = t->steps_count; i > 0; i--)
        if (t->steps[i - 1].number == number)
            return &t->steps[i - 1];
    return NULL;
}

/* I-28: what was written is what is read back. */
static void step_written(struct transition *t, const struct rv_step *written)
{
    const struct rv_step *step = step_after(t, written->number);
    uint64_t sum = rows_step(written);
    if (step == NULL || rows_step(step) != sum)
        world_violate(t->w, "I-28", "step %u is not read back as it was written", written->number);
    step_room(t->past, written->number)->sum = sum;
    world_trace(t->w, sum);
}

/* Where control is changes with the task's row, not with the step's. */
static void step_control(struct transition *t, uint32_t number)
{
    struct step_past *past = step_room(t->past, number);
    if (past->row.number == 0)
        past->created_in = t->past->commits;
    if (control_at(t->task, number))
        past->left_in = 0;
    else if (past->left_in == 0)
        past->left_in = t->past->commits;
}

static void step_take(struct transition *t, const struct rv_step *step)
{
    struct step_past *past = step_room(t->past, step->number);
    bool new_token = step->attempt != 0 && step->token != past->row.token;
    past->call_late = past->call_late && (past->row.undone || !step->undone);
    if (new_token) {
        enum rv_err err = rv_map_put(&t->w->history->tokens, step->token, 0,
                                     (uint64_t)t->task->id.value);
        rv_assert(err == RV_OK);
    }
    attempts_take(t, past, step);
    if (new_token) {
        past->began_at = t->w->now;
        past->began_by = t->w->committing != NULL ? t->w->committing->number + 1 : 0;
    }
    if (new_token || step->state != past->row.state) {
        memset(past->overdue, 0, sizeof past->overdue);
        memset(past->waits, 0, sizeof past->waits);
    }
    past->assumed |= past->row.effect > step->effect || check_found(step, RV_FINDING_NOTHING) ||
                     (step->state == RV_STEP_CANCELLED && check_assumed_now(t));
    struct record record = record_of(step);
    if (step->undoes != 0 && (past->row.number == 0 || past->record.request != record.request))
        past->knew = record_known(&t->steps[step->undoes - 1]);
    past->record = record;
    past->line_since = check_line_since(past, step);
    past->row = without_texts(step);
    past->input_hash = history_hash(step->input);
    past->output_hash = history_hash(step->output);
    if (step->undoes != 0)
        step_room(t->past, step->undoes)->undo_begun = true;
}

/* The row says so in its error alone, in the words of the answer that the operator got. */
bool history_abandons(const struct rv_task *task)
{
    return task->state == RV_TASK_CANCELLED && task->error.at != NULL &&
           memmem(task->error.at, task->error.len, "abandoned", strlen("abandoned")) != NULL;
}

/* An undo, and in the same commit what takes it back: an operator's word that the point of no
 * return was passed, or the end of a pivot's attempt, which leaves the task in error, and a
 * resubmission.
 * The rows show none of that. */
static bool taken_back_at_once(const struct transition *t)
{
    bool undone = false, back = false, met = check_pivot_met(t);
    for (size_t i = 0; i < t->change->history_count; i++) {
        enum rv_operator_verb verb = t->change->history[i].verb;
        back = back || (undone && verb == RV_OPERATOR_SETTLE) ||
               (undone && verb == RV_OPERATOR_RESUBMIT && met);
        undone = undone || verb == RV_OPERATOR_UNDO || verb == RV_OPERATOR_CANCEL;
    }
    return back && t->task->direction == RV_FORWARD;
}

static void transition_take(struct transition *t)
{
    struct task_past *past = t->past;
    bool was_open = past->row.revision != 0 && rv_task_state_open(past->row.state);
    past->commits++;
    past->taken_back |= taken_back_at_once(t);
    for (size_t i = 0; i < t->steps_count; i++)
        past->taken_back |= check_taken_back_at(t, &t->steps[i]);
    past->commands += (uint32_t)t->change->history_count;
    for (size_t i = 0; i < t->change->alerts_count; i++)
        past->unreadable |= t->change->alerts[i].kind == RV_ALERT_UNREADABLE;
    for (size_t i = 0; i < t->steps_count; i++)
        step_control(t, t->steps[i].number);
    for (size_t i = 0; i < t->change->steps_count; i++)
        step_take(t, t->change->steps[i]);
    for (size_t i = 0; i < t->change->attempts_count; i++)
        step_room(past, t->change->attempts[i].step.number)->ended++;
    for (size_t i = 0; i < t->change->late_replies_count; i++) {
        const struct rv_late_reply *late = &t->change->late_replies[i];
        struct step_past *step = step_room(past, late->step.number);
        step->late++;
        step->late_attempt = late->attempt;
    }
    past->abandoned = history_abandons(t->task);
    for (size_t i = 0; i < t->change->alerts_count; i++)
        if (t->change->alerts[i].kind == RV_ALERT_LATE_DONE)
            step_room(past, t->change->alerts[i].step)->call_late = true;
    past->has_hook = t->task->reply_url.at != NULL;
    t->w->history->moved = t->task->id;
    if (past->row.revision == 0 || past->row.locked_by != t->task->locked_by)
        past->owned_at = t->w->now;
    past->now = t->now;
    past->row = *t->task;
    past->row.key = past->row.correlation = past->row.input = past->row.context = RV_STR_NONE;
    past->row.reply_url = past->row.trace = past->row.tracestate = RV_STR_NONE;
    past->row.output = past->row.error = RV_STR_NONE;
    t->w->history->open += (int)rv_task_state_open(t->task->state) - (int)was_open;
}

/* An operator may act at the very moment at which something of the task is due. */
static void transition_beside(const struct transition *t)
{
    struct world *w = t->w;
    for (size_t i = 0; i < t->change->steps_count; i++) {
        int64_t in_ms = t->change->steps[i]->wake_at - database_wall(w);
        if (in_ms > 0 && in_ms < BESIDE_MS_MAX)
            operator_beside(w, t->task->id, w->now + in_ms);
    }
}

static void transition_say(const struct transition *t)
{
    struct world *w = t->w;
    if (w->transcript == NULL)
        return;
    story_committed(t);
    char text[RV_ID_TEXT_BYTES];
    world_detail(w, "store", "task %s revision %lld: %s%s", rv_task_text(t->task->id, text).at,
                 (long long)t->task->revision, rv_task_state_text(t->task->state),
                 t->task->cancelling ? ", cancelling" : "");
    for (size_t i = 0; i < t->change->steps_count; i++) {
        const struct rv_step *s = t->change->steps[i];
        world_detail(w, "store",
                     "step %s-%u %.*s %s%s: %s, attempt %u %s, effect %s, failures %u/%u", text,
                     s->number, RV_STR_FMT(s->reference), s->direction == RV_UNDO ? "undo " : "",
                     rv_step_kind_text(s->kind), rv_step_state_text(s->state), s->attempt,
                     rv_attempt_state_text(s->attempt_state), rv_effect_text(s->effect),
                     s->failure_count, s->round);
    }
    for (size_t i = 0; i < t->change->alerts_count; i++)
        world_detail(w, "store", "task %s alert %s: %.*s", text,
                     rv_alert_kind_text(t->change->alerts[i].kind),
                     RV_STR_FMT(t->change->alerts[i].message));
}

void history_committed(struct world *w, struct rv_store *store, const struct rv_change *change,
                       const struct committed *by)
{
    struct history *h = w->history;
    if (w->violated != NULL)
        return;
    w->concerned = change->task->id;
    rv_arena_reset(&h->scratch);
    struct transition t = {
        .w = w,
        .change = change,
        .now = by->now,
        .batch_now = by->batch_now,
        .unsure_ms = w->committing != NULL ? rv_scheduler_unsure_ms(w->committing->scheduler) : 0};
    t.past = history_task(w, change->task->id);
    if (t.past == NULL)
        t.past = task_new(w, change->task->id);
    rewind_note(w, t.past, by->number);
    if (!load_after(store, &h->scratch, &t)) {
        if (history_over(w, change->task->id) && history_may_be_gone(w, change->task))
            return; /* it had ended long before, and goes with the batch that wrote it once more */
        world_violate(w, "I-01", "what was committed cannot be read back");
        return;
    }
    if (t.past->definition == NULL && w->violated == NULL)
        t.past->definition = definition_of(w, store, t.task, by->begun_at);
    if (w->violated != NULL)
        return;
    world_trace(w, (uint64_t)t.task->id.value);
    world_trace(w, rows_task(t.task));
    for (size_t i = 0; i < change->steps_count && w->violated == NULL; i++)
        step_written(&t, change->steps[i]);
    transition_say(&t);
    check_transition(&t);
    check_outbox(&t);
    coverage_see(w->coverage, &t);
    transition_take(&t);
    if (w->knobs.operators > 0)
        transition_beside(&t);
    if (w->violated == NULL)
        w->concerned = (struct rv_task_id){0};
}

static uint64_t process_of(const struct world *w, uint32_t server)
{
    return (uint64_t)(actor_server(server)) << 32 | w->servers[server].starts;
}

bool history_supervises(const struct world *w, const struct server *s)
{
    return w->history->held_by != 0 && w->history->held_by == process_of(w, s->number);
}

/* I-10: whoever takes the supervisor's role from another process has an epoch of its own, and they
 * only rise. What is claimed counts once it is committed. */
void history_holds(struct world *w, uint32_t actor, int64_t epoch)
{
    struct history *h = w->history;
    uint64_t holder = process_of(w, actor_server_number(actor));
    if (h->held_by != 0 && h->held_by != holder && epoch <= h->held_epoch)
        world_violate(w, "I-10", "another process took the supervisor's role with epoch %lld again",
                      (long long)epoch);
    if (epoch < h->held_epoch)
        world_violate(w, "I-10", "the supervisor's epoch went back from %lld to %lld",
                      (long long)h->held_epoch, (long long)epoch);
    check_claimed(w, h->held_by != 0 && h->held_by != holder);
    if (h->held_by != holder) {
        world_say(w, w->servers[actor_server_number(actor)].name,
                  "takes the supervisor's role, epoch %lld", (long long)epoch);
    }
    h->held_by = holder;
    h->held_epoch = epoch;
}

/* ---- the server's side ---- */

void history_started(struct world *w, struct rv_store *store, int64_t open_tasks)
{
    check_all_there(w, store);
    limiter_started(w, store);
    if (open_tasks != w->history->open)
        world_violate(w, "I-25", "the store counts %lld open tasks, there are %lld",
                      (long long)open_tasks, (long long)w->history->open);
}

static void told_done(struct world *w, struct rv_step_id step, uint64_t token, struct rv_str output)
{
    struct told *told = NULL;
    uint64_t *found = rv_map_find(&w->history->told, token, step_key(step));
    if (found != NULL) {
        told = (struct told *)(uintptr_t)*found;
    } else {
        told = RV_NEW(&w->arena, struct told);
        rv_assert(told != NULL);
        enum rv_err err = rv_map_put(&w->history->told, token, step_key(step),
                                     (uint64_t)(uintptr_t)told);
        rv_assert(err == RV_OK);
    }
    if (told->done_at == 0)
        told->done_at = database_wall(w);
    if (told->outputs_count < 4)
        told->outputs[told->outputs_count++] = history_hash(output);
}

void history_arrived(struct world *w, const struct rv_call *call)
{
    if (call->kind != RV_CALL_REPLIES)
        return;
    for (size_t i = 0; i < call->u.replies.count; i++) {
        const struct rv_reply_item *item = &call->u.replies.items[i];
        if (!item->failed && item->refused == 0)
            told_done(w, item->step, item->token, item->reply.output);
    }
}

void history_handed_out(struct world *w, const struct rv_poll *poll)
{
    for (size_t i = 0; i < poll->requests_count; i++)
        check_handed_out(w, poll, &poll->requests[i]);
}
