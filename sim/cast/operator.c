#include "sim/cast/operator.h"

#include "base/assert.h"
#include "base/id.h"
#include "sim/check/check.h"
#include "sim/cast/client.h"
#include "sim/store/database.h"
#include "sim/world/fault.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <stdlib.h>

enum { ANSWER_WITHIN_MS = 10000, LOOKS_EVERY_MS = 1000, BURST_MAX = 4 };
enum { RESUBMIT, UNDO, CANCEL, ABANDON, SUSPEND, RESUME, SKIP, EDIT, VERBS };
enum { TARGET_BYTES = 64, BODY_BYTES = 128 };

static const struct {
    const char *name;
    const char *route;
    const char *body;
} verbs[VERBS] = {
    {"resubmit", "resubmit", "{\"by\":\"sim\"}"},
    {"undo", "undo", "{\"by\":\"sim\"}"},
    {"cancel", "cancel", "{\"by\":\"sim\"}"},
    {"abandon", "cancel", "{\"by\":\"sim\",\"abandon\":true,\"reason\":\"no time\"}"},
    {"suspend", "suspend", "{\"by\":\"sim\"}"},
    {"resume", "resume", "{\"by\":\"sim\"}"},
    {"skip", "skip", NULL}, /* of the two below */
    {"edit", "resubmit", NULL},
};

static const char *const edits[] = {"\"input\":" OPERATOR_EDITS,
                                    "\"input\":" OPERATOR_EDITS ",\"undoFirst\":true",
                                    "\"input\":" OPERATOR_EDITS_ASSUMING ",\"assumeNotDone\":true"};

void operator_new(struct world *w)
{
    if (w->knobs.operators > 0)
        world_at(w, w->now + 1000, EVENT_OPERATOR, 0, 0);
}

static void command_with(struct world *w, struct rv_task_id task, uint32_t verb, const char *body)
{
    char id[RV_ID_TEXT_BYTES], target[TARGET_BYTES];
    snprintf(target, sizeof target, "/v1/tasks/%s/%s", rv_task_text(task, id).at,
             verbs[verb].route);
    world_say(w, "operator", "%s %s", verbs[verb].name, id);
    net_ask(w, PEER_OPERATOR, 0, 0, verb, "POST", rv_str_of(target), rv_str_of(body),
            ANSWER_WITHIN_MS);
}

static void command(struct world *w, struct rv_task_id task, uint32_t verb)
{
    command_with(w, task, verb, verbs[verb].body);
}

/* Passes over the step at which the task stands, or gives it another input, as far as the operator
 * knows where that is. Not a compensation: he has no hands in the services to undo with. */
static void command_step(struct world *w, struct task_past *past, uint32_t verb)
{
    char body[BODY_BYTES];
    bool seeing = fault_roll(w, 2) == 0;
    if (past == NULL || past->row.open_count == 0)
        return;
    uint32_t number = past->row.open[fault_roll(w, past->row.open_count)];
    const struct step_past *step = history_step(past, number);
    if (step == NULL || step->row.kind != RV_KIND_CALL || step->row.direction != RV_FORWARD)
        return;
    if (verb == SKIP)
        snprintf(body, sizeof body, "{\"step\":%u,\"output\":%s,\"lateSeen\":%d}", number,
                 seeing ? OPERATOR_SKIPS_SEEING : OPERATOR_SKIPS_BLINDLY, seeing ? 1000 : 0);
    else
        snprintf(body, sizeof body, "{\"step\":%u,\"lateSeen\":1000,%s}", number,
                 edits[fault_roll(w, sizeof edits / sizeof *edits)]);
    command_with(w, past->row.id, verb, body);
}

/* What is parked may be skipped or edited too, so that the commands meet what they are for. */
static void operator_steps(struct world *w, struct rv_task_id any)
{
    struct task_past *past = history_task(w, any);
    for (size_t i = 0; i < w->history->count; i++) {
        if (w->history->all[i]->row.state != RV_TASK_ERROR)
            continue;
        if (fault_strikes(w, FAULT_SKIP, ACTOR_OPERATOR))
            command_step(w, w->history->all[i], SKIP);
        if (fault_strikes(w, FAULT_EDIT, ACTOR_OPERATOR))
            command_step(w, w->history->all[i], EDIT);
    }
    if (fault_strikes(w, FAULT_SKIP, ACTOR_OPERATOR))
        command_step(w, past, SKIP);
    if (fault_strikes(w, FAULT_SUSPEND, ACTOR_OPERATOR))
        command(w, any, fault_roll(w, 4) == 0 ? RESUME : SUSPEND);
}

/* Half of the time the task that has just moved, so that commands meet what is under way. */
static struct rv_task_id any_task(struct world *w)
{
    struct rv_task_id any = clients_any_task(w, STREAM_OPERATOR);
    return world_roll(w, STREAM_OPERATOR, 2) == 0 ? any : w->history->moved;
}

void operator_beside(struct world *w, struct rv_task_id task, int64_t at)
{
    if (w->knobs.operators == 0 || !fault_strikes(w, FAULT_BURST, ACTOR_OPERATOR))
        return;
    uint64_t count = 1 + fault_roll(w, BURST_MAX);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t verb = (uint32_t)fault_roll(w, ABANDON);
        int64_t when = at - 1 + (int64_t)fault_roll(w, 3);
        char id[RV_ID_TEXT_BYTES], target[TARGET_BYTES];
        snprintf(target, sizeof target, "/v1/tasks/%s/%s", rv_task_text(task, id).at,
                 verbs[verb].route);
        world_say(w, "operator", "%s %s, to arrive in %lld ms", verbs[verb].name, id,
                  (long long)(when - w->now));
        net_ask_at(w, PEER_OPERATOR, verb, "POST", rv_str_of(target), rv_str_of(verbs[verb].body),
                   when);
    }
}

/* Parked tasks are resubmitted; sometimes anything befalls any task. */
void operator_turn(struct world *w)
{
    int64_t rest = w->healed ? LOOKS_EVERY_MS
                             : 100 + (int64_t)world_roll(w, STREAM_OPERATOR, LOOKS_EVERY_MS);
    world_at(w, w->now + rest, EVENT_OPERATOR, 0, 0);
    for (size_t i = 0; i < w->history->count; i++) {
        const struct rv_task *task = &w->history->all[i]->row;
        if (task->state == RV_TASK_ERROR && world_chance(w, STREAM_OPERATOR, 200))
            command(w, task->id, RESUBMIT);
        if (task->suspended_at != 0 && (w->healed || world_chance(w, STREAM_OPERATOR, 200)))
            command(w, task->id, RESUME);
    }
    struct rv_task_id any = any_task(w);
    if (any.value == 0)
        return;
    if (fault_strikes(w, FAULT_OPERATOR_ACTS, ACTOR_OPERATOR))
        command(w, any, (uint32_t)fault_roll(w, ABANDON));
    if (fault_strikes(w, FAULT_ABANDON, ACTOR_OPERATOR))
        command(w, any, ABANDON);
    operator_steps(w, any);
}

void operator_answered(struct world *w, struct exchange *x)
{
    struct rv_str id = {x->target.at + sizeof "/v1/tasks/" - 1, RV_ID_TEXT_BYTES - 1};
    struct rv_task_id task;
    bool misread = x->status == 500 && fault_happened(w, FAULT_UNREADABLE);
    world_say(w, "operator", "%s %.*s: %d", verbs[x->tag].name, RV_STR_FMT(id), x->status);
    enum rv_err err = rv_task_parse(id, &task);
    rv_assert(err == RV_OK);
    if (x->status == 200)
        check_operated(w, rv_str_of(verbs[x->tag].name), task);
    else if (x->status == 404 && history_over(w, task))
        return; /* the retention rule has deleted it */
    else if (x->status == 404 && database_shared(w))
        return; /* lost since, or not there yet: this operator sees commits as they come */
    else if (x->status != 409 && x->status != 503 && !misread)
        world_violate(w, "W-02", "an operator's command got %d: %.*s", x->status,
                      RV_STR_FMT(x->answer));
}

void operator_lost(struct world *w, struct exchange *x)
{
    world_say(w, "operator", "no answer to %s", verbs[x->tag].name);
}
