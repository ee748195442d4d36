/* What has happened to a task, from its rows alone: they are the same after a restart. The steps
 * are read in pages, of which only what is reported stays. */
#include "base/assert.h"
#include "base/limits.h"
#include "core/tags.h"
#include "scheduler/call.h"
#include "scheduler/queries/explain.h"
#include "scheduler/queries/query.h"
#include "store/store.h"

#include <string.h>

/* Steps and commands of one page; the newest alerts of any kind. */
enum { PAGE_STEPS = 20, PAGE_COMMANDS = 20, ALERTS_READ = 50 };

/* There is room for all that may be: they are sorted before the list is cut. */
enum { EVENTS_ROOM = ALERTS_READ + RV_EXPLAINED_ATTEMPTS_MAX + 2 };

static struct rv_explained_event *event_add(struct rv_call_explain *out)
{
    rv_assert(out->events_count <= EVENTS_ROOM);
    return out->events_count < EVENTS_ROOM ? &out->events[out->events_count++] : NULL;
}

/* Its undo ended by an operator's word that nothing had happened, and its service says otherwise:
 * the open alert counts. */
static bool is_contradicted(const struct rv_call_explain *out, const struct rv_step *step)
{
    for (size_t i = 0; i < out->alerts_count; i++)
        if (out->alerts[i].kind == RV_ALERT_LATE_DONE && out->alerts[i].step == step->number)
            return true;
    return false;
}

/* How the effect of a forward step stands, as far as there may be one; false: there is none. */
static bool effect_of(const struct rv_call_explain *out, const struct rv_step *step,
                      enum rv_explained_effect *ret_effect)
{
    enum rv_undo_way way = step->undo_way > 0 ? (enum rv_undo_way)(step->undo_way - 1)
                                              : RV_UNDO_UNDECLARED;
    if (step->kind != RV_KIND_CALL || step->direction != RV_FORWARD ||
        step->effect == RV_EFFECT_NONE)
        return false;
    if (step->undone && way != RV_UNDO_NOTHING && !is_contradicted(out, step))
        *ret_effect = RV_EFFECT_IS_UNDONE;
    else if (way == RV_UNDO_NOTHING)
        *ret_effect = RV_EFFECT_NEEDS_NO_UNDO;
    else if (way == RV_UNDO_PIVOT)
        *ret_effect = RV_EFFECT_IS_PIVOT;
    else
        *ret_effect = rv_step_undo_by_hand(step) ? RV_EFFECT_BY_HAND : RV_EFFECT_STAYS;
    return true;
}

/* What an operator has to do comes first. */
static unsigned effect_rank(enum rv_explained_effect effect)
{
    switch (effect) {
    case RV_EFFECT_BY_HAND:
        return 0;
    case RV_EFFECT_STAYS:
    case RV_EFFECT_IS_PIVOT:
        return 1;
    case RV_EFFECT_IS_UNDONE:
        return 2;
    case RV_EFFECT_NEEDS_NO_UNDO:
    case RV_EXPLAINED_EFFECTS:
        break;
    }
    return 3;
}

/* One that needs no undo is counted, and missed by nobody. */
static void effect_drop(struct rv_call_explain *out, enum rv_explained_effect effect)
{
    if (effect == RV_EFFECT_NEEDS_NO_UNDO)
        return;
    out->cut[RV_EXPLAINED_CUT_EFFECTS] = true;
    out->left[RV_EXPLAINED_CUT_EFFECTS]++;
}

/* Steps come with rising numbers; of those alike the newest is listed first. */
static void effect_note(struct rv_call_explain *out, const struct rv_step *step)
{
    enum rv_explained_effect effect;
    size_t at = 0;
    if (!effect_of(out, step, &effect))
        return;
    rv_assert(effect < RV_EXPLAINED_EFFECTS);
    rv_assert(out->effects_count <= RV_EXPLAINED_EFFECTS_MAX);
    out->effects_total[effect]++;
    while (at < out->effects_count && effect_rank(out->effects[at].how) < effect_rank(effect))
        at++;
    if (at == RV_EXPLAINED_EFFECTS_MAX) {
        effect_drop(out, effect);
        return;
    }
    if (out->effects_count == RV_EXPLAINED_EFFECTS_MAX)
        effect_drop(out, out->effects[--out->effects_count].how);
    rv_assert(at <= out->effects_count);
    rv_assert(out->effects_count < RV_EXPLAINED_EFFECTS_MAX);
    memmove(&out->effects[at + 1], &out->effects[at],
            (out->effects_count - at) * sizeof out->effects[0]);
    out->effects[at] = (struct rv_effect_told){
        .step = step->number, .effect = step->effect, .how = effect};
    out->effects_count++;
}

/* Only of those that are listed. */
static enum rv_err references_read(const struct query *q, struct rv_call_explain *out,
                                   struct rv_arena *arena)
{
    struct rv_arena_mark mark = rv_arena_mark(q->scratch);
    struct rv_step_id ids[RV_EXPLAINED_EFFECTS_MAX];
    const struct rv_step *rows[RV_EXPLAINED_EFFECTS_MAX];
    rv_assert(out->effects_count <= RV_EXPLAINED_EFFECTS_MAX);
    for (size_t i = 0; i < out->effects_count; i++)
        ids[i] = (struct rv_step_id){out->task, out->effects[i].step};
    enum rv_err err = q->store->ops->load_steps(q->store, q->scratch, RV_COLUMNS_PLAIN, ids,
                                                out->effects_count, rows);
    for (size_t i = 0; err == RV_OK && i < out->effects_count; i++) {
        struct rv_str reference = rows[i] != NULL ? rows[i]->reference : RV_STR_NONE;
        out->effects[i].reference = rv_arena_str(arena, reference);
        if (reference.at != NULL && out->effects[i].reference.at == NULL)
            err = arena->refused;
    }
    rv_arena_release(q->scratch, mark);
    return err;
}

/* What the walk has come across. */
struct past_walk {
    int64_t undo_at;   /* the first step of an undo was made; 0: there is none */
    uint32_t undoes;   /* ... to undo this step */
    uint32_t failed;   /* the forward step that failed last, */
    uint32_t attempts; /* how many attempts it had, */
    int64_t failed_at; /* and when it ended */
};

static void step_note(struct past_walk *walk, const struct rv_step *step)
{
    if (step->direction == RV_UNDO && walk->undo_at == 0) {
        walk->undo_at = step->created_at;
        walk->undoes = step->undoes;
    }
    bool failed = step->direction == RV_FORWARD && step->state == RV_STEP_ERROR;
    if (failed && step->ended_at >= walk->failed_at) {
        walk->failed = step->number;
        walk->attempts = step->attempt;
        walk->failed_at = step->ended_at;
    }
}

static enum rv_err steps_walk(const struct query *q, struct rv_call_explain *out,
                              struct past_walk *walk)
{
    uint32_t after = 0;
    size_t count = PAGE_STEPS, looked = 0;
    enum rv_err err = RV_OK;
    while (err == RV_OK && count == PAGE_STEPS && looked < RV_EXPLAINED_STEPS_MAX) {
        struct rv_arena_mark mark = rv_arena_mark(q->scratch);
        struct rv_step *rows = RV_ROOM(q->scratch, struct rv_step, PAGE_STEPS);
        count = 0;
        err = rows == NULL ? RV_ERR_MEMORY
                           : q->store->ops->list_steps(q->store, q->scratch, RV_COLUMNS_PLAIN,
                                                       out->task, after, PAGE_STEPS, rows, &count);
        rv_assert(err != RV_OK || count <= PAGE_STEPS);
        for (size_t i = 0; err == RV_OK && i < count; i++) {
            after = rows[i].number;
            if (rows[i].unreadable)
                continue;
            step_note(walk, &rows[i]);
            effect_note(out, &rows[i]);
        }
        looked += count;
        rv_arena_release(q->scratch, mark);
    }
    out->cut[RV_EXPLAINED_CUT_STEPS] = err == RV_OK && count == PAGE_STEPS &&
                                       out->found->last_number > after;
    if (out->cut[RV_EXPLAINED_CUT_STEPS])
        out->left[RV_EXPLAINED_CUT_STEPS] = out->found->last_number - after;
    if (out->cut[RV_EXPLAINED_CUT_STEPS]) /* those that follow may have effects, too */
        out->left[RV_EXPLAINED_CUT_EFFECTS] = 0;
    return err;
}

/* A step cools down where the round of an attempt is higher than that of the one before. */
static void cool_downs_note(struct rv_call_explain *out)
{
    uint32_t round = 0;
    for (size_t i = 0; i < out->attempts_count; i++) {
        const struct rv_attempt *attempt = &out->attempts[i];
        bool known = i > 0 || attempt->number == 1;
        bool rests = known && attempt->round > round;
        struct rv_explained_event *event = rests ? event_add(out) : NULL;
        if (event != NULL)
            *event = (struct rv_explained_event){.kind = RV_EXPLAINED_COOL_DOWN,
                                                 .at = attempt->ended_at,
                                                 .until = attempt->retry_at,
                                                 .step = attempt->step.number};
        round = attempt->round;
    }
    const struct rv_step *step = out->steps_count > 0 ? out->steps[0].step : NULL;
    bool rests = step != NULL && out->steps[0].reason == RV_WAIT_COOL_DOWN;
    struct rv_explained_event *event = rests ? event_add(out) : NULL;
    if (event != NULL)
        *event = (struct rv_explained_event){.kind = RV_EXPLAINED_COOL_DOWN,
                                             .at = step->attempt_ended_at,
                                             .until = step->ready_at,
                                             .step = step->number};
}

/* The store calls an operator of each; the alert stays when it is over. */
static enum rv_err postponed_note(const struct query *q, struct rv_call_explain *out,
                                  struct rv_arena *arena)
{
    struct rv_alert *rows = RV_NEW_ARRAY(arena, struct rv_alert, ALERTS_READ + 1);
    size_t count = 0;
    if (rows == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = q->store->ops->list_alerts(q->store, arena, out->task, false, 0,
                                                 ALERTS_READ + 1, rows, &count);
    if (err != RV_OK)
        return err;
    rv_assert(count <= ALERTS_READ + 1);
    out->cut[RV_EXPLAINED_CUT_EVENTS] |= count > ALERTS_READ;
    for (size_t i = count < ALERTS_READ ? count : ALERTS_READ; i > 0; i--) {
        const struct rv_alert *alert = &rows[i - 1];
        struct rv_explained_event *event = alert->kind == RV_ALERT_POSTPONED ? event_add(out)
                                                                             : NULL;
        if (event != NULL)
            *event = (struct rv_explained_event){.kind = RV_EXPLAINED_POSTPONED,
                                                 .at = alert->raised_at,
                                                 .step = alert->step,
                                                 .message = alert->message};
    }
    return RV_OK;
}

/* Whether the task went forward until that command: one that came when the undo had begun for
 * another reason does not change the reason (decision 027). A cancel that turned the task has left
 * its error; the decision of an undo may be a little older than its line. */
static bool has_turned(const struct rv_task *task, const struct past_walk *walk,
                       struct rv_str error_type, const struct rv_history_row *row)
{
    if (!rv_history_changed(row))
        return false;
    bool undone = walk->undo_at != 0 && walk->undo_at < row->at;
    bool failed = walk->failed_at != 0 && walk->failed_at < row->at;
    if (row->verb == RV_OPERATOR_CANCEL)
        return rv_str_is(error_type, "cancelled") || !(undone || failed);
    return row->verb == RV_OPERATOR_UNDO && !(undone && (failed || task->error.at != NULL));
}

/* The newest command that ended the way forward, if one did, among the RV_HISTORY_MAX that a task
 * keeps. What has been processed, or goes forward again, no command has ended. */
static enum rv_err command_note(const struct query *q, struct rv_call_explain *out,
                                struct rv_arena *arena, const struct past_walk *walk)
{
    const struct rv_task *task = out->found;
    bool cancelled = task->state == RV_TASK_CANCELLED;
    struct rv_str type = RV_STR_NONE;
    size_t count = PAGE_COMMANDS;
    uint32_t before = 0;
    if (!cancelled && (task->state == RV_TASK_PROCESSED || task->direction != RV_UNDO))
        return RV_OK;
    struct rv_history_row *rows = RV_NEW_ARRAY(arena, struct rv_history_row, PAGE_COMMANDS);
    if (rows == NULL)
        return RV_ERR_MEMORY;
    if (task->error.at != NULL && rv_error_type(arena, task->error, &type) != RV_OK)
        type = RV_STR_NONE;
    while (out->ended_by == NULL && count == PAGE_COMMANDS) {
        RV_TRY(q->store->ops->list_history(q->store, arena, out->task, before, PAGE_COMMANDS, rows,
                                           &count));
        rv_assert(count <= PAGE_COMMANDS);
        for (size_t i = 0; i < count && out->ended_by == NULL; i++) {
            bool cancels = rows[i].verb == RV_OPERATOR_CANCEL && rv_history_changed(&rows[i]);
            bool ends = cancelled ? cancels : has_turned(task, walk, type, &rows[i]);
            if (ends)
                out->ended_by = &rows[i];
        }
        before = rows[PAGE_COMMANDS - 1].number;
    }
    return RV_OK;
}

/* Of what is undone: when that was decided is the end of the failed step, or the command. */
static void undo_note(struct rv_call_explain *out, const struct past_walk *walk)
{
    const struct rv_task *task = out->found;
    bool turned = task->direction == RV_UNDO;
    if (!turned && walk->undo_at == 0)
        return;
    struct rv_explained_event *event = event_add(out);
    if (event == NULL)
        return;
    *event = (struct rv_explained_event){.kind = RV_EXPLAINED_UNDO_BEGAN, .at = walk->undo_at};
    if (turned && out->ended_by != NULL) {
        event->at = out->ended_by->at;
    } else if (turned && walk->failed_at != 0 && (event->at == 0 || walk->failed_at < event->at)) {
        event->at = walk->failed_at;
        event->step = walk->failed;
    } else {
        event->step = walk->undoes;
    }
    /* Without a step that failed or was undone, the task has ended at once. */
    if (event->at == 0)
        event->at = task->ended_at != 0 ? task->ended_at : task->created_at;
}

/* The attempts of the step that failed last, where the task stands at none. */
static enum rv_err failed_attempts(const struct query *q, struct rv_call_explain *out,
                                   struct rv_arena *arena, const struct past_walk *walk)
{
    if (out->steps_count > 0 || walk->attempts == 0)
        return RV_OK;
    return explain_attempts(q, out, arena, walk->failed, walk->attempts);
}

static void events_sort(struct rv_call_explain *out)
{
    for (size_t i = 1; i < out->events_count; i++)
        for (size_t j = i; j > 0 && out->events[j].at < out->events[j - 1].at; j--) {
            struct rv_explained_event later = out->events[j - 1];
            out->events[j - 1] = out->events[j];
            out->events[j] = later;
        }
}

enum rv_err explain_past(const struct query *q, struct rv_call_explain *out, struct rv_arena *arena)
{
    struct past_walk walk = {.undo_at = 0};
    out->events = RV_NEW_ARRAY(arena, struct rv_explained_event, EVENTS_ROOM);
    out->effects = RV_NEW_ARRAY(arena, struct rv_effect_told, RV_EXPLAINED_EFFECTS_MAX);
    if (out->events == NULL || out->effects == NULL)
        return RV_ERR_MEMORY;
    RV_TRY(steps_walk(q, out, &walk));
    RV_TRY(references_read(q, out, arena));
    RV_TRY(failed_attempts(q, out, arena, &walk));
    RV_TRY(command_note(q, out, arena, &walk));
    undo_note(out, &walk);
    cool_downs_note(out);
    RV_TRY(postponed_note(q, out, arena));
    rv_assert(out->events_count <= EVENTS_ROOM);
    events_sort(out);
    if (out->events_count > RV_EXPLAINED_EVENTS_MAX) {
        if (!out->cut[RV_EXPLAINED_CUT_EVENTS]) /* else alerts were left out, of any kind */
            out->left[RV_EXPLAINED_CUT_EVENTS] = (uint32_t)(out->events_count -
                                                            RV_EXPLAINED_EVENTS_MAX);
        out->events_count = RV_EXPLAINED_EVENTS_MAX;
        out->cut[RV_EXPLAINED_CUT_EVENTS] = true;
    }
    rv_assert(out->events_count <= RV_EXPLAINED_EVENTS_MAX);
    return RV_OK;
}
