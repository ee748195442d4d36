/* `close-circuit`: an operator has the target of an open circuit tried now. A circuit is the
 * agent's word, and only an answer of its target closes it, here and at the agent; so one of the
 * steps that wait for it is handed out as by `retry`, whatever the circuits say, and is the
 * circuit's probe. */
#include "scheduler/calls/probe.h"

#include "base/assert.h"
#include "base/limits.h"
#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "dispatch/kind.h"
#include "dispatch/ready.h"
#include "dispatch/sent_back.h"
#include "scheduler/batch/refuse.h"
#include "scheduler/batch/state.h"

enum { LIST_BYTES = 1024, HINTS_MAX = 100 /* that are wrong, of a call */ };

static const char *name_of(const struct circuit *circuit)
{
    return circuit->target[0] != '\0' ? circuit->target : "(the whole agent)";
}

/* ---- which circuit ---- */

static struct rv_str open_targets(struct rv_call *call, const struct agent_kind *kind)
{
    const struct circuit *worst[RV_AGENT_CIRCUITS_SHOWN];
    size_t count = circuits_worst(kind, RV_AGENT_CIRCUITS_SHOWN, worst);
    rv_assert(count <= RV_AGENT_CIRCUITS_SHOWN);
    rv_assert(count <= kind->circuits.count);
    struct rv_buf text;
    rv_buf_init(&text, LIST_BYTES + RV_AGENT_CIRCUITS_SHOWN * RV_KEY_BYTES_MAX);
    for (size_t i = 0; i < count; i++)
        rv_buf_printf(&text, "%s%s", i > 0 ? ", " : "", name_of(worst[i]));
    if (kind->circuits.count > count)
        rv_buf_printf(&text, " and %zu more", kind->circuits.count - count);
    struct rv_str made = rv_arena_str(&call->arena, rv_buf_str(&text));
    rv_buf_done(&text);
    return made;
}

struct choice {
    struct agent_kind *kind;
    struct circuit *circuit; /* NULL: the target has none */
    struct rv_str target;    /* "": the whole agent */
    struct rv_step_id step;  /* number 0: none yet */
    int64_t rank;
    bool more; /* hints are left */
};

/* That of the target; where none is named, that of the whole agent, else the only one. A target has
 * none where the agent has named too many, and where others have closed it: then a step that was
 * sent back for it is meant. */
static bool target_meant(struct rv_scheduler *s, struct rv_call *call, struct choice *choice)
{
    const struct rv_call_operate *operate = &call->u.operate;
    const struct agent_kind *kind = choice->kind;
    bool named = operate->target.at != NULL;
    size_t count = kind != NULL ? kind->circuits.count : 0;
    struct circuit *meant = NULL;
    if (kind != NULL)
        meant = circuit_find(kind, named ? operate->target : RV_STR(""));
    if (!named && meant == NULL && count == 1)
        meant = kind->circuits.first;
    rv_assert(meant == NULL || meant->kind == kind);
    bool open = meant != NULL && circuit_is_open(meant, s->batch.now);
    choice->circuit = open ? meant : NULL;
    choice->target = open ? rv_str_of(meant->target) : operate->target;
    if (open || (named && kind != NULL && sent_back_first(kind, operate->target).number != 0))
        return true;
    call->err = RV_ERR_REFUSED;
    if (count == 0)
        call->message = call_printf(
            call, "no circuit of agent \"%.*s\" is open; `reeve agents` lists the open circuits",
            RV_STR_FMT(operate->agent));
    else
        call->message = call_printf(
            call, "%s; targets with an open circuit: %.*s",
            named ? "the target has no open circuit"
                  : "several circuits are open; give the target (--target, \"target\")",
            RV_STR_FMT(open_targets(call, kind)));
    return false;
}

/* ---- which step ---- */

/* Whether the row waits for the target as the hint says. */
static bool consider(struct choice *choice, const struct rv_task *task, const struct rv_step *step)
{
    bool whole = choice->target.len == 0;
    if (task == NULL || task->unreadable || step == NULL || step->unreadable ||
        !rv_task_state_open(task->state) || task->state == RV_TASK_ERROR ||
        task->suspended_at != 0 || step->kind != RV_KIND_CALL || step->state != RV_STEP_PENDING ||
        step->agent.at == NULL || !rv_str_is(step->agent, choice->kind->name))
        return false;
    if (!whole && (step->target.at == NULL || !rv_str_eq(step->target, choice->target)))
        return false;
    int64_t rank = ready_place(task, step).rank;
    if (choice->step.number != 0 && choice->rank <= rank)
        return true;
    choice->step = (struct rv_step_id){task->id, step->number};
    choice->rank = rank;
    return true;
}

static enum rv_err consider_hint(struct rv_scheduler *s, struct choice *choice,
                                 struct rv_step_id id, bool *ret_waits)
{
    struct rv_arena_mark mark = rv_arena_mark(s->batch.arena);
    const struct rv_task *task = NULL;
    const struct rv_step *step = NULL;
    *ret_waits = false;
    if (id.number == 0)
        return RV_OK;
    enum rv_err err = s->store->ops->load_tasks(s->store, s->batch.arena, RV_COLUMNS_PLAIN,
                                                &id.task, 1, &task);
    if (err != RV_OK)
        goto err_after_mark;
    err = s->store->ops->load_steps(s->store, s->batch.arena, RV_COLUMNS_PLAIN, &id, 1, &step);
    if (err != RV_OK)
        goto err_after_mark;
    *ret_waits = consider(choice, task, step);
err_after_mark:
    rv_arena_release(s->batch.arena, mark);
    return err;
}

/* The first of those that were sent back for the target. For the whole agent all its steps wait:
 * those behind its circuit, and those that nobody has asked for yet. */
static enum rv_err step_choose(struct rv_scheduler *s, struct choice *choice)
{
    struct agent_kind *kind = choice->kind;
    bool whole = choice->target.len == 0, waits = false;
    const struct rv_heap_entry *ready = whole ? rv_heap_first(&kind->ready) : NULL;
    struct rv_step_id id = {.number = 0};
    rv_assert(choice->circuit == NULL || choice->circuit->kind == kind);
    if (choice->circuit != NULL)
        RV_TRY(consider_hint(s, choice, circuit_first(choice->circuit), &waits));
    if (ready != NULL)
        id = (struct rv_step_id){{(int64_t)ready->value}, (uint32_t)ready->detail};
    RV_TRY(consider_hint(s, choice, id, &waits));
    waits = false;
    for (int i = 0; i < HINTS_MAX && !waits; i++) {
        id = sent_back_first(kind, whole ? RV_STR_NONE : choice->target);
        if (id.number == 0)
            break;
        RV_TRY(consider_hint(s, choice, id, &waits));
        if (!waits)
            sent_back_forget(kind, id);
    }
    choice->more = !waits && id.number != 0;
    return RV_OK;
}

enum rv_err probe_choose(struct rv_scheduler *s, struct rv_call *call)
{
    struct rv_call_operate *operate = &call->u.operate;
    struct choice choice = {.kind = agents_kind_find(&s->agents, operate->agent)};
    if (!target_meant(s, call, &choice))
        return RV_OK;
    enum rv_err err = step_choose(s, &choice);
    operate->target = rv_arena_str(&call->arena, choice.target);
    if (operate->target.at == NULL)
        return RV_ERR_MEMORY;
    operate->task = choice.step.task;
    operate->step = choice.step.number;
    if (err == RV_OK && choice.step.number == 0 && choice.more) {
        call->err = RV_ERR_BUSY;
        call->message = RV_STR(
            "the server is still searching for a waiting step: send the request again");
        return RV_OK;
    }
    if (err == RV_OK && choice.step.number == 0 && choice.circuit != NULL)
        circuit_expire(choice.circuit, s->batch.now);
    return err;
}
