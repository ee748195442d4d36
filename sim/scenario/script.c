/* The people of a scenario: one act after the other, each repeated until it has an answer. */
#include "sim/scenario/script.h"

#include "base/assert.h"
#include "base/limits.h"
#include "client/submit.h"
#include "sim/cast/operator.h"
#include "sim/check/check.h"
#include "sim/run/story.h"
#include "sim/cast/hook.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <string.h>

enum { LOOK_MS = 5, AGAIN_MS = 50, ANSWER_WITHIN_MS = 1000 };

static const char *const verb_texts[] = {
    [VERB_RESUBMIT] = "resubmit",
    [VERB_SETTLE] = "settle",
    [VERB_CANCEL] = "cancel",
    [VERB_ABANDON] = "abandon",
};

void script_new(struct world *w)
{
    w->script = RV_NEW(&w->arena, struct script);
    rv_assert(w->script != NULL);
    world_at(w, w->now, EVENT_SCRIPT, 0, 0);
}

static bool cued(const struct world *w)
{
    const struct script *script = w->script;
    const struct act *act = &w->scenario->acts[script->next];
    const struct task_past *past;
    switch (act->when) {
    case CUE_AT_ONCE:
        return true;
    case CUE_WORK:
        return script->worked[script->next];
    case CUE_PARKED:
        past = history_task((struct world *)(uintptr_t)w, script->tasks[act->task]);
        return past != NULL && past->row.state == RV_TASK_ERROR;
    }
    return false;
}

bool script_over(struct world *w)
{
    const struct script *script = w->script;
    if (script->busy || (script->next < w->scenario->acts_count && cued(w)))
        return false;
    for (uint32_t i = 0; i < w->scenario->tasks; i++)
        if (script->tasks[i].value == 0)
            return false;
    return check_all_settled(w);
}

static const char *actor_of(const struct act *act)
{
    bool submits = act->verb == VERB_SUBMIT || act->verb == VERB_SUBMIT_OTHER;
    return submits ? "client" : "operator";
}

static void ask(struct world *w, const struct act *act, struct rv_str target, struct rv_str body)
{
    struct exchange *x = net_ask(w, PEER_SCRIPT, 0, 0, act->verb, "POST", target, body,
                                 ANSWER_WITHIN_MS);
    story_asked(w, actor_of(act), x);
}

static void submit(struct world *w, const struct act *act)
{
    const struct rv_str name = w->workload->workflows[act->task].name;
    struct rv_str reply_to = hook_reply_to(w, act->task + 1);
    char body[256];
    snprintf(body, sizeof body,
             "{\"workflow\":\"sim/%.*s\",\"input\":{\"number\":%u},\"key\":\"order-%u\"%s%s%.*s}",
             RV_STR_FMT(name), act->task, act->task,
             act->verb == VERB_SUBMIT_OTHER ? ",\"correlationId\":\"other\"" : "",
             reply_to.at != NULL ? ",\"replyTo\":" : "", RV_STR_FMT(reply_to));
    world_detail(w, "client", "submits order-%u%s", act->task,
                 act->verb == VERB_SUBMIT_OTHER ? " with another body" : "");
    ask(w, act, RV_STR("/v1/tasks"), rv_str_of(body));
}

static void operate(struct world *w, const struct act *act)
{
    struct rv_task_id task = w->script->tasks[act->task];
    struct task_past *past = history_task(w, task);
    const struct step_past *undo = history_step(past, past != NULL ? past->row.open[0] : 0);
    char settles[64], seeing[OPERATOR_SEEING_BYTES], id[RV_ID_TEXT_BYTES], target[64];
    char body[OPERATOR_BODY_BYTES];
    snprintf(settles, sizeof settles, "{\"step\":%u,\"finding\":\"undone\"}",
             undo != NULL ? undo->row.undoes : 0);
    operator_seeing(w, task, act->verb == VERB_SETTLE ? settles : "{}", seeing);
    bool sees = act->verb == VERB_RESUBMIT || act->verb == VERB_SETTLE;
    const char *more = sees ? seeing : act->verb == VERB_ABANDON ? "{\"abandon\":true}" : "{}";
    const char *path = verb_texts[act->verb == VERB_ABANDON ? VERB_CANCEL : act->verb];
    rv_task_text(task, id);
    snprintf(target, sizeof target, "/v1/tasks/%s/%s", id, path);
    world_detail(w, "operator", "%s %s", verb_texts[act->verb], id);
    ask(w, act, rv_str_of(target), operator_body(w, path, more, body));
}

void script_turn(struct world *w)
{
    struct script *script = w->script;
    if (script->busy || script->next == w->scenario->acts_count)
        return;
    if (!cued(w)) {
        world_at(w, w->now + LOOK_MS, EVENT_SCRIPT, 0, 0);
        return;
    }
    const struct act *act = &w->scenario->acts[script->next];
    script->busy = true;
    script->sent++;
    script->begun = script->next + 1;
    if (act->verb == VERB_SUBMIT || act->verb == VERB_SUBMIT_OTHER)
        submit(w, act);
    else
        operate(w, act);
}

static void act_again(struct world *w)
{
    w->script->busy = false;
    world_at(w, w->now + AGAIN_MS, EVENT_SCRIPT, 0, 0);
}

static void act_done(struct world *w)
{
    w->script->busy = false;
    w->script->next++;
    w->script->sent = 0;
    world_at(w, w->now + LOOK_MS, EVENT_SCRIPT, 0, 0);
}

/* I-24: a key has one task, for ever, and no other body gets in under it. */
static void submitted(struct world *w, const struct act *act, const struct exchange *x)
{
    struct rv_task_id *known = &w->script->tasks[act->task], task = {0};
    struct rv_arena *arena = &w->history->scratch;
    struct rv_submit_receipt receipt;
    rv_arena_reset(arena);
    if (rv_submit_read(arena, x->status, x->answer, &receipt) != RV_OK) {
        world_violate(w, "W-02", "an answer to a submission cannot be read: %.*s",
                      RV_STR_FMT(x->answer));
        return;
    }
    bool other = act->verb == VERB_SUBMIT_OTHER;
    bool taken = receipt.status == 200 || receipt.status == 201;
    if (other ? receipt.status != 409 : !taken) {
        world_violate(w, "I-24", "order-%u%s was answered with %d", act->task,
                      other ? " with another body" : "", receipt.status);
        return;
    }
    if (other)
        return;
    check_submitted(w, receipt.task, "client");
    if (rv_task_parse(receipt.task, &task) != RV_OK)
        return; /* check_submitted has said so */
    if (known->value != 0 && (known->value != task.value || receipt.status != 200))
        world_violate(w, "I-24", "order-%u has a second task %.*s", act->task,
                      RV_STR_FMT(receipt.task));
    *known = task;
}

/* What was asked for twice may have been done the first time. */
static void operated(struct world *w, const struct act *act, const struct exchange *x)
{
    struct rv_task_id id = w->script->tasks[act->task];
    bool again = w->script->sent > 1 && x->status == 409;
    if (x->status != 200 && !again)
        world_violate(w, "W-02", "an operator's command got %d: %.*s", x->status,
                      RV_STR_FMT(x->answer));
    if (x->status == 200 || x->status == 409)
        check_commanded(w, id, x->body, x->status == 200);
    if (x->status == 200)
        check_operated(w, rv_str_of(verb_texts[act->verb]), id);
}

void script_answered(struct world *w, struct exchange *x)
{
    const struct act *act = &w->scenario->acts[w->script->next];
    world_detail(w, "script", "gets %d %.*s", x->status, RV_STR_FMT(x->answer));
    story_answered(w, actor_of(act), x);
    if (x->status == 503 || x->status == 429) {
        act_again(w);
        return;
    }
    if (act->verb == VERB_SUBMIT || act->verb == VERB_SUBMIT_OTHER)
        submitted(w, act, x);
    else
        operated(w, act, x);
    act_done(w);
}

void script_lost(struct world *w, struct exchange *x)
{
    world_detail(w, "script", "gets no answer");
    story_unanswered(w, actor_of(&w->scenario->acts[w->script->next]), x);
    act_again(w);
}
