/* Why a task stands where it stands, as a person and as a program read it. */
#include "api/answer.h"
#include "api/put.h"
#include "base/assert.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *text;
    const char *sentence;
} reasons[] = {
#define RV_WAIT_REASON(name, text, sentence) {text, sentence},
#include "scheduler/tbl/wait_reason.def"
#undef RV_WAIT_REASON
};

/* AGENT in a sentence stands for the agent's name. */
static void why_put(struct rv_buf *buf, const char *sentence, struct rv_str agent)
{
    enum { WHY_BYTES = 512 };
    static const char word[] = "AGENT";
    char text[WHY_BYTES];
    const char *at = agent.len > 0 ? strstr(sentence, word) : NULL;
    if (at == NULL) {
        rv_put_text(buf, "why", rv_str_of(sentence));
        return;
    }
    snprintf(text, sizeof text, "%.*s%.*s%s", (int)(at - sentence), sentence, RV_STR_FMT(agent),
             at + sizeof word - 1);
    rv_put_text(buf, "why", rv_str_of(text));
}

static const char suspended_and_paused[] =
    "an operator has suspended the task, and has paused the agent; `reeve agents resume AGENT` "
    "resumes the agent";

/* `told` is the step, NULL: there is none. */
static void reason_put(struct rv_buf *buf, enum rv_wait_reason reason, int64_t until,
                       const struct rv_explained *told)
{
    bool both = reason == RV_WAIT_SUSPENDED && told != NULL && told->agent_paused;
    rv_put_text(buf, "waitsFor", rv_str_of(reasons[reason].text));
    why_put(buf, both ? suspended_and_paused : reasons[reason].sentence,
            told != NULL ? told->step->agent : RV_STR_NONE);
    rv_put_instant_if(buf, "until", until);
}

static void agent_put(struct rv_buf *buf, const struct rv_explained *told)
{
    const struct rv_step *step = told->step;
    if (step->kind != RV_KIND_CALL)
        return;
    rv_put_text(buf, "agent", step->agent);
    if (rv_attempt_state_live(step->attempt_state))
        rv_put_text_if(buf, "instance", step->instance);
    rv_put_instant_if(buf, "seenAt", told->seen_at);
    rv_put_int(buf, "instancesConnected", told->connected);
    rv_put_int(buf, "instancesPolling", told->polling);
    rv_put_int(buf, "stepsReady", (int64_t)told->queued);
    rv_put_text_if(buf, "target", told->target);
    rv_put_int(buf, "attempt", step->attempt);
    rv_put_text(buf, "attemptState", rv_str_of(rv_attempt_state_text(step->attempt_state)));
    rv_put_int(buf, "failureCount", step->failure_count);
    rv_put_int(buf, "threshold", told->threshold);
    rv_put_int(buf, "round", step->round);
    rv_put_int(buf, "rounds", told->rounds);
    rv_put_instant_if(buf, "completeBy", step->complete_by);
    rv_put_instant_if(buf, "deadline", step->deadline);
}

static void step_put(struct rv_buf *buf, struct rv_task_id task, const struct rv_explained *told)
{
    const struct rv_step *step = told->step;
    rv_put_open(buf, '{');
    rv_put_step(buf, "step", (struct rv_step_id){task, step->number});
    rv_put_int(buf, "number", step->number);
    rv_put_text(buf, "reference", step->reference);
    rv_put_text(buf, "kind", rv_str_of(rv_step_kind_text(step->kind)));
    rv_put_text(buf, "state", rv_str_of(rv_step_state_text(step->state)));
    reason_put(buf, told->reason, told->until, told);
    agent_put(buf, told);
    rv_put_raw_if(buf, "error", step->error);
    rv_buf_add_char(buf, '}');
}

/* Whether the cure is for a forward step of a task that is being undone, or for the step whose undo
 * is under way or next, which is not open. A pivot that is done withdraws the undo. */
static bool cure_undoes(const struct rv_call_explain *told, const struct rv_cure *cure)
{
    if (cure->kind != RV_CURE_PAST)
        return told->found->direction == RV_UNDO;
    for (size_t i = 0; i < told->steps_count; i++)
        if (told->steps[i].step->number == cure->step)
            return told->found->direction == RV_UNDO && !told->steps[i].pivot &&
                   told->steps[i].step->direction == RV_FORWARD;
    return told->found->direction == RV_UNDO;
}

static void cure_put(struct rv_buf *buf, const struct rv_call_explain *told,
                     const struct rv_cure *cure)
{
    char line[RV_CURE_LINE_BYTES];
    rv_put_open(buf, '{');
    rv_put_text(buf, "cure", rv_str_of(rv_cure_text(cure->kind)));
    if (cure->step != 0)
        rv_put_int(buf, "step", cure->step);
    if (cure->late_seen != 0)
        rv_put_int(buf, "lateSeen", cure->late_seen);
    rv_put_text(buf, "command", rv_cure_line(told->task, cure, line));
    rv_put_text(buf, "effect", rv_str_of(rv_cure_effect(cure->kind, cure_undoes(told, cure))));
    rv_buf_add_char(buf, '}');
}

static void events_put(struct rv_buf *buf, const struct rv_call_explain *told)
{
    static const char *const texts[] = {
#define RV_EXPLAINED_EVENT(name, text) text,
#include "scheduler/tbl/explained_event.def"
#undef RV_EXPLAINED_EVENT
    };
    rv_put_open_in(buf, "events", '[');
    for (size_t i = 0; i < told->events_count; i++) {
        const struct rv_explained_event *event = &told->events[i];
        rv_put_open(buf, '{');
        rv_put_text(buf, "event", rv_str_of(texts[event->kind]));
        rv_put_instant_if(buf, "at", event->at);
        rv_put_instant_if(buf, "until", event->until);
        if (event->step != 0)
            rv_put_int(buf, "step", event->step);
        rv_put_text_if(buf, "message", event->message);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
}

static void effects_put(struct rv_buf *buf, const struct rv_call_explain *told)
{
    static const char *const texts[] = {
#define RV_EXPLAINED_EFFECT(name, text, sentence) text,
#include "scheduler/tbl/explained_effect.def"
#undef RV_EXPLAINED_EFFECT
    };
    uint32_t left = 0;
    rv_put_open_in(buf, "effects", '[');
    for (size_t i = 0; i < told->effects_count; i++) {
        const struct rv_effect_told *effect = &told->effects[i];
        rv_put_open(buf, '{');
        rv_put_int(buf, "step", effect->step);
        rv_put_text(buf, "reference", effect->reference);
        rv_put_text(buf, "effect", rv_str_of(rv_effect_text(effect->effect)));
        rv_put_text(buf, "outcome", rv_str_of(texts[effect->how]));
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    for (unsigned how = 0; how < RV_EXPLAINED_EFFECTS; how++)
        left += how != RV_EFFECT_IS_UNDONE && how != RV_EFFECT_NEEDS_NO_UNDO
                    ? told->effects_total[how]
                    : 0;
    rv_put_int(buf, "effectsUndone", told->effects_total[RV_EFFECT_IS_UNDONE]);
    rv_put_int(buf, "effectsLeft", left);
    rv_put_int(buf, "effectsByHand", told->effects_total[RV_EFFECT_BY_HAND]);
    rv_put_int(buf, "effectsWithoutUndo", told->effects_total[RV_EFFECT_NEEDS_NO_UNDO]);
    if (told->cut[RV_EXPLAINED_CUT_STEPS])
        rv_put_bool(buf, "effectsMore", true);
}

static void end_put(struct rv_buf *buf, const struct rv_call_explain *told)
{
    const struct rv_history_row *by = told->ended_by;
    rv_put_instant_if(buf, "endedAt", told->found->ended_at);
    if (by == NULL)
        return;
    rv_put_open_in(buf, "endedBy", '{');
    rv_put_instant_if(buf, "at", by->at);
    rv_put_text_if(buf, "by", by->by);
    rv_put_text_if(buf, "reason", by->reason);
    rv_buf_add_char(buf, '}');
}

/* The lists above that are cut, and where all of their rows are. */
static void cuts_put(struct rv_buf *buf, const struct rv_call_explain *told)
{
    enum { TEXT_BYTES = 128 };
    static const struct {
        const char *list;
        const char *what;
        const char *path;
    } cuts[] = {
#define RV_EXPLAINED_CUT(name, list, before, max, after, path) {list, before #max after, path},
#include "scheduler/tbl/explained_cut.def"
#undef RV_EXPLAINED_CUT
    };
    static const char word[] = "TASK";
    char id[RV_ID_TEXT_BYTES], text[TEXT_BYTES];
    struct rv_str task = rv_task_text(told->task, id);
    rv_put_open_in(buf, "incomplete", '[');
    for (size_t i = 0; i < RV_EXPLAINED_CUTS; i++) {
        const char *path = cuts[i].path, *at = strstr(path, word);
        if (!told->cut[i])
            continue;
        rv_assert(at != NULL);
        rv_put_open(buf, '{');
        rv_put_text(buf, "list", rv_str_of(cuts[i].list));
        rv_put_text(buf, "shown", rv_str_of(cuts[i].what));
        if (told->left[i] > 0)
            rv_put_int(buf, "left", told->left[i]);
        snprintf(text, sizeof text, "show %.*s --all", RV_STR_FMT(task));
        rv_put_text(buf, "command", rv_str_of(text));
        snprintf(text, sizeof text, "/v1/%.*s%.*s%s", (int)(at - path), path, RV_STR_FMT(task),
                 at + sizeof word - 1);
        rv_put_text(buf, "path", rv_str_of(text));
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
}

/* How a task has ended: as it was decided first. */
static const char *end_of(const struct rv_call_explain *told)
{
    bool undone = told->effects_total[RV_EFFECT_IS_UNDONE] > 0;
    switch (told->found->state) {
    case RV_TASK_PROCESSED:
        return "the task has ended successfully";
    case RV_TASK_COMPENSATED:
        if (told->ended_by != NULL)
            return "the task has ended: it was undone by an operator's command";
        return undone ? "the task has ended: it failed, and its effects were undone"
                      : "the task has ended: it failed before it had an effect that needs an undo";
    case RV_TASK_CANCELLED:
        return "the task has ended: an operator cancelled it";
    case RV_TASK_PENDING:
    case RV_TASK_PROCESSING:
    case RV_TASK_COMPENSATING:
    case RV_TASK_ERROR:
    case RV_TASK_STATE_COUNT:
        break;
    }
    return NULL;
}

void rv_render_explain(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_EXPLAIN);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_explain *told = &call->u.explain;
    const struct rv_task *task = told->found;
    rv_assert(task != NULL);
    rv_put_open(buf, '{');
    rv_put_task(buf, "task", task->id);
    if (told->workflow != NULL)
        rv_put_workflow(buf, told->workflow);
    rv_put_text(buf, "state", rv_str_of(rv_task_state_text(task->state)));
    rv_put_text(buf, "direction", rv_str_of(rv_direction_text(task->direction)));
    rv_put_instant_if(buf, "suspendedAt", task->suspended_at);
    const char *end = end_of(told);
    if (end != NULL) {
        rv_put_text(buf, "waitsFor", rv_str_of(reasons[told->reason].text));
        rv_put_text(buf, "why", rv_str_of(end));
    } else {
        reason_put(buf, told->reason, told->until, told->steps_count > 0 ? &told->steps[0] : NULL);
    }
    rv_put_instant_if(buf, "nextLookAt", told->next_at);
    rv_put_raw_if(buf, "error", task->error);
    rv_put_raw_if(buf, "undoError", task->undo_error);
    rv_put_open_in(buf, "steps", '[');
    for (size_t i = 0; i < told->steps_count; i++)
        step_put(buf, task->id, &told->steps[i]);
    rv_buf_add_char(buf, ']');
    rv_put_open_in(buf, "attempts", '[');
    for (size_t i = 0; i < told->attempts_count; i++)
        rv_put_attempt(buf, &told->attempts[i]);
    rv_buf_add_char(buf, ']');
    rv_put_open_in(buf, "alerts", '[');
    for (size_t i = 0; i < told->alerts_count; i++)
        rv_put_alert(buf, &told->alerts[i]);
    rv_buf_add_char(buf, ']');
    rv_put_late_replies(buf, told->late_replies, told->late_replies_count);
    rv_put_open_in(buf, "cures", '[');
    for (size_t i = 0; i < told->cures_count; i++)
        cure_put(buf, told, &told->cures[i]);
    rv_buf_add_char(buf, ']');
    if (call->only_reads)
        rv_put_text(buf, "curesNeedRole", rv_str_of(rv_role_text(RV_ROLE_OPERATOR)));
    rv_put_open_in(buf, "storeProblems", '[');
    rv_put_problems(buf, &told->problems);
    rv_buf_add_char(buf, ']');
    events_put(buf, told);
    effects_put(buf, told);
    cuts_put(buf, told);
    end_put(buf, told);
    rv_buf_add_char(buf, '}');
}
