#include "sim/operator.h"

#include "base/assert.h"
#include "base/id.h"
#include "sim/check.h"
#include "sim/client.h"
#include "sim/fault.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>

enum { ANSWER_WITHIN_MS = 10000, VERBS = 3 };

static const char *const verbs[VERBS] = {"resubmit", "undo", "cancel"};

void operator_new(struct world *w)
{
    if (w->knobs.operators > 0)
        world_at(w, w->now + 1000, EVENT_OPERATOR, 0, 0);
}

static void command(struct world *w, struct rv_task_id task, uint32_t verb)
{
    char id[RV_ID_TEXT_BYTES], target[64];
    snprintf(target, sizeof target, "/v1/tasks/%s/%s", rv_task_text(task, id).at, verbs[verb]);
    world_say(w, "operator", "%s %s", verbs[verb], id);
    net_ask(w, PEER_OPERATOR, 0, 0, verb, "POST", rv_str_of(target), RV_STR("{\"by\":\"sim\"}"),
            ANSWER_WITHIN_MS);
}

/* Parked tasks are resubmitted; sometimes anything befalls any task. */
void operator_turn(struct world *w)
{
    world_at(w, w->now + 1000, EVENT_OPERATOR, 0, 0);
    for (size_t i = 0; i < w->history->count; i++) {
        const struct rv_task *task = &w->history->all[i]->row;
        if (task->state == RV_TASK_ERROR && world_chance(w, STREAM_OPERATOR, 200))
            command(w, task->id, 0);
    }
    struct rv_task_id any = clients_any_task(w, STREAM_OPERATOR);
    if (any.value != 0 && fault_strikes(w, FAULT_OPERATOR_ACTS, ACTOR_OPERATOR))
        command(w, any, (uint32_t)fault_roll(w, VERBS));
}

void operator_answered(struct world *w, struct exchange *x)
{
    struct rv_str id = {x->target.at + sizeof "/v1/tasks/" - 1, RV_ID_TEXT_BYTES - 1};
    struct rv_task_id task;
    world_say(w, "operator", "%s %.*s: %d", verbs[x->tag], RV_STR_FMT(id), x->status);
    if (x->status == 200 && rv_task_parse(id, &task) == RV_OK)
        check_operated(w, rv_str_of(verbs[x->tag]), task);
    else if (x->status != 409 && x->status != 503)
        world_violate(w, "W-02", "an operator's command got %d: %.*s", x->status,
                      RV_STR_FMT(x->answer));
}

void operator_lost(struct world *w, struct exchange *x)
{
    world_say(w, "operator", "no answer to %s", verbs[x->tag]);
}
