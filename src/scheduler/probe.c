/* `close-circuit`: an operator has the target of an open circuit tried now. A circuit is the
 * agent's word, and only an answer of its target closes it, here and at the agent; so one of the
 * steps that wait for it is handed out as by `retry`, whatever the circuits say, and is the
 * circuit's probe. */
#include "scheduler/scheduler_priv.h"

#include "base/limits.h"

/* Tasks at steps of the agent that are looked at, beside the first in the circuit's line. */
enum { TASKS_MAX = 100, LIST_BYTES = 1024 };

static const char *name_of(const struct circuit *circuit)
{
    return circuit->target[0] != '\0' ? circuit->target : "(the whole agent)";
}

/* ---- which circuit ---- */

static struct rv_str open_targets(struct rv_call *call, const struct agent_kind *kind)
{
    const struct circuit *worst[RV_AGENT_CIRCUITS_SHOWN];
    size_t count = circuits_worst(kind, RV_AGENT_CIRCUITS_SHOWN, worst);
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

/* That of the target; where none is named, that of the whole agent, else the only one. */
static struct circuit *circuit_meant(struct rv_scheduler *s, struct rv_call *call,
                                     const struct agent_kind *kind)
{
    const struct rv_call_operate *operate = &call->u.operate;
    bool named = operate->target.at != NULL;
    size_t count = kind != NULL ? kind->circuits.count : 0;
    struct circuit *meant = NULL;
    if (count > 0)
        meant = circuit_find(kind, named ? operate->target : RV_STR(""));
    if (!named && meant == NULL && count == 1)
        meant = kind->circuits.first;
    if (meant != NULL && circuit_is_open(meant, s->batch.now))
        return meant;
    call->err = RV_ERR_REFUSED;
    if (count == 0)
        call->message = call_printf(call,
                                    "no circuit of agent \"%.*s\" is open: `reeve agents` "
                                    "shows those that are",
                                    RV_STR_FMT(operate->agent));
    else
        call->message = call_printf(call, "%s; open are the circuits of: %.*s",
                                    named ? "no circuit of that target is open"
                                          : "which one? name its target (--target, \"target\")",
                                    RV_STR_FMT(open_targets(call, kind)));
    return NULL;
}

/* ---- which step ---- */

struct choice {
    const struct agent_kind *kind;
    const struct circuit *circuit;
    struct rv_step_id step; /* number 0: none yet */
    int64_t rank;
};

static void consider(struct choice *choice, const struct rv_task *task, const struct rv_step *step)
{
    bool whole = choice->circuit->target[0] == '\0';
    if (task == NULL || task->unreadable || step == NULL || step->unreadable ||
        !rv_task_state_open(task->state) || task->state == RV_TASK_ERROR ||
        task->suspended_at != 0 || step->kind != RV_KIND_CALL || step->state != RV_STEP_PENDING ||
        step->agent.at == NULL || !rv_str_is(step->agent, choice->kind->name))
        return;
    if (!whole && (step->target.at == NULL || !rv_str_is(step->target, choice->circuit->target)))
        return;
    int64_t rank = ready_place(task, step).rank;
    if (choice->step.number != 0 && choice->rank <= rank)
        return;
    choice->step = (struct rv_step_id){task->id, step->number};
    choice->rank = rank;
}

static enum rv_err consider_task(struct rv_scheduler *s, struct choice *choice,
                                 const struct rv_task *task)
{
    struct rv_step_id ids[RV_OPEN_STEPS_MAX];
    const struct rv_step *rows[RV_OPEN_STEPS_MAX];
    for (uint32_t i = 0; i < task->open_count; i++)
        ids[i] = (struct rv_step_id){task->id, task->open[i]};
    enum rv_err err = s->store->ops->load_steps(s->store, s->batch.arena, ids, task->open_count,
                                                rows);
    for (uint32_t i = 0; err == RV_OK && i < task->open_count; i++)
        consider(choice, task, rows[i]);
    return err;
}

/* The first in the circuit's line, and whoever was sent back by an agent. */
static enum rv_err step_choose(struct rv_scheduler *s, struct choice *choice)
{
    struct rv_task_filter filter = {.agent = rv_str_of(choice->kind->name)};
    struct rv_task *tasks = RV_ROOM(s->batch.arena, struct rv_task, TASKS_MAX);
    const struct rv_task *first = NULL;
    struct rv_task_id next, line = circuit_first(choice->circuit).task;
    size_t count = 0;
    if (tasks == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = s->store->ops->list_tasks(s->store, s->batch.arena, &filter, TASKS_MAX, tasks,
                                                &count, &next);
    if (err == RV_OK && line.value != 0)
        err = s->store->ops->load_tasks(s->store, s->batch.arena, &line, 1, &first);
    if (err == RV_OK && first != NULL && !first->unreadable)
        err = consider_task(s, choice, first);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        if (!tasks[i].unreadable)
            err = consider_task(s, choice, &tasks[i]);
    return err;
}

enum rv_err probe_choose(struct rv_scheduler *s, struct rv_call *call)
{
    struct rv_call_operate *operate = &call->u.operate;
    struct agent_kind *kind = agents_kind_find(&s->agents, operate->agent);
    struct circuit *circuit = circuit_meant(s, call, kind);
    if (circuit == NULL)
        return RV_OK;
    struct choice choice = {.kind = kind, .circuit = circuit};
    operate->target = rv_arena_str(&call->arena, rv_str_of(circuit->target));
    if (operate->target.at == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = step_choose(s, &choice);
    operate->task = choice.step.task;
    operate->step = choice.step.number;
    if (err == RV_OK && choice.step.number == 0)
        circuit_expire(circuit, s->batch.now);
    return err;
}
