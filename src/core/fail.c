/* An error that no catch handles: undo what was done, or escalate the task (RULES 5). */
#include "core/plan_priv.h"

#include "base/assert.h"
#include "core/tags.h"
#include "json/json.h"

enum { TYPE_SHOWN = 100, TITLE_SHOWN = 300, DETAIL_SHOWN = 300 }; /* of an error in an alert */

static struct rv_str cut(struct rv_str text, size_t bytes)
{
    if (text.len <= bytes)
        return text;
    while (bytes > 0 && ((unsigned char)text.at[bytes] & 0xC0) == 0x80) /* within a character */
        bytes--;
    return (struct rv_str){text.at, bytes};
}

/* The end of a longer text, where the output of a command and the reason of an agent are. */
static struct rv_str cut_begin(struct rv_str text, size_t bytes)
{
    if (text.len <= bytes)
        return text;
    size_t from = text.len - bytes;
    while (from < text.len && ((unsigned char)text.at[from] & 0xC0) == 0x80)
        from++;
    return (struct rv_str){text.at + from, text.len - from};
}

/* "exit-1: The command failed: no such order"; "": no memory, or it is no error. */
static struct rv_str error_brief(struct draft *d, struct rv_str error)
{
    struct rv_json value;
    if (error.at == NULL ||
        rv_json_parse(d->arena, error, RV_JSON_DEPTH_MAX, &value, NULL) != RV_OK)
        return RV_STR("");
    struct rv_str type = rv_error_type_last(rv_json_str(rv_json_get(&value, RV_STR("type"))));
    struct rv_str title = rv_json_str(rv_json_get(&value, RV_STR("title")));
    struct rv_str detail = rv_json_str(rv_json_get(&value, RV_STR("detail")));
    type = cut(type, TYPE_SHOWN);
    title = rv_str_eq(title, type) ? RV_STR("") : cut(title, TITLE_SHOWN);
    detail = cut_begin(detail, DETAIL_SHOWN);
    return rv_arena_printf(d->arena, "%.*s%s%.*s%s%.*s", RV_STR_FMT(type),
                           type.len > 0 && title.len > 0 ? ": " : "", RV_STR_FMT(title),
                           type.len + title.len > 0 && detail.len > 0 ? ": " : "",
                           RV_STR_FMT(detail));
}

/* The node of a workflow itself has no reference. */
static struct rv_str subject_of(struct rv_str reference)
{
    return reference.len > 0 ? reference : RV_STR("the workflow");
}

void fail_escalate(struct draft *d, enum rv_direction direction, uint32_t step,
                   enum rv_alert_kind kind, struct rv_str message)
{
    struct rv_task *task = &d->plan->task;
    bool told = task->state == RV_TASK_ERROR;
    rv_assert(kind < RV_ALERT_KIND_COUNT);
    task->direction = direction;
    if (!told)
        rv_task_move(&task->state, RV_TASK_ERROR);
    struct rv_alert alert = {.step = step, .kind = kind, .message = message};
    if (!told)
        message_escalated(d, &alert);
    draft_alert(d, step, kind, message);
}

static bool step_can_undo(const struct draft *d, const struct rv_step *step)
{
    enum rv_undo_way way = rv_definition_undo_way(d->view->definition, step->node);
    return step->effect == RV_EFFECT_NONE || way == RV_UNDO_NOTHING || way == RV_UNDO_STEPS;
}

/* The step that keeps the task from being undone. */
struct blocker {
    bool found;
    bool pivot;
    struct rv_str reference;
};

static void block(const struct draft *d, const struct rv_step *step, struct blocker *blocker)
{
    if (blocker->found || step_can_undo(d, step))
        return;
    enum rv_undo_way way = rv_definition_undo_way(d->view->definition, step->node);
    *blocker = (struct blocker){true, way == RV_UNDO_PIVOT, step->reference};
}

/* Whether everything that may have had an effect says how it is undone: what stands on the chain,
 * the raiser, and what goes with it. */
static enum rv_verdict find_blocker(struct draft *d, const struct rv_step *raiser,
                                    const struct rv_flow_stop *stop, struct blocker *ret_blocker)
{
    const struct rv_task *task = &d->plan->task;
    const struct rv_step *step;
    *ret_blocker = (struct blocker){0};
    if (task->undo_blocker != 0) {
        RV_TRY(draft_look(d, task->undo_blocker, &step));
        *ret_blocker = (struct blocker){true, false, step->reference};
    }
    if (raiser == NULL)
        return RV_DECIDED;
    block(d, raiser, ret_blocker);
    RV_TRY(draft_want(d, stop->abandoned, stop->abandoned_count));
    for (uint32_t i = 0; i < stop->abandoned_count; i++) {
        RV_TRY(draft_look(d, stop->abandoned[i], &step));
        block(d, step, ret_blocker);
    }
    return RV_DECIDED;
}

/* The task is escalated at the node that raised the error, in a row of inline steps, for whoever
 * knows what its output should have been. */
static enum rv_verdict stand_at(struct draft *d, struct rv_step *run,
                                const struct rv_flow_stop *stop, uint32_t *ret_number)
{
    *ret_number = 0;
    if (stop->frames.at == NULL)
        return RV_DECIDED;
    if (run == NULL) {
        RV_TRY(draft_step_new(d, &run));
        run->kind = RV_KIND_INLINE;
        run->state = RV_STEP_ERROR;
        run->ended_at = d->command->now;
        run->error = stop->error;
    }
    rv_assert(run->kind == RV_KIND_INLINE);
    rv_assert(run->state == RV_STEP_ERROR);
    run->node = stop->node;
    run->reference = stop->reference;
    run->iteration = stop->iteration;
    run->frames = stop->frames;
    draft_open_add(d, run->number);
    *ret_number = run->number;
    return RV_DECIDED;
}

/* "/do/0/charge failed at TARGET: declined: no money" */
static struct rv_str failure_text(struct draft *d, const struct rv_step *raiser,
                                  const struct rv_flow_stop *stop)
{
    struct rv_str target = raiser != NULL ? raiser->target : RV_STR_NONE; /* its circuit is open */
    struct rv_str subject = subject_of(rv_definition_reference(d->view->definition, stop->node));
    struct rv_str error = error_brief(d, stop->error);
    return rv_arena_printf(d->arena, "%.*s failed%s%.*s%s%s%.*s", RV_STR_FMT(subject),
                           target.len > 0 ? " at " : "", RV_STR_FMT(target),
                           d->plan->task.pivot ? " after the pivot" : "", error.len > 0 ? ": " : "",
                           RV_STR_FMT(error));
}

static enum rv_verdict fail_forward(struct draft *d, struct rv_step *raiser, struct rv_step *run,
                                    const struct rv_flow_stop *stop)
{
    struct rv_task *task = &d->plan->task;
    uint32_t node = stop->node;
    task->error = stop->error;
    bool then_error = rv_definition_policy(d->view->definition, node)->then_error;
    struct blocker blocker;
    RV_TRY(find_blocker(d, raiser, stop, &blocker));
    if (!then_error && !blocker.found && task->pivot == 0) {
        task->direction = RV_UNDO;
        if (raiser != NULL)
            RV_TRY(undo_chain_abandoned(d, stop, raiser));
        if (raiser != NULL && raiser->effect != RV_EFFECT_NONE && !raiser->chained)
            undo_chain(d, raiser);
        return undo_begin(d);
    }
    uint32_t number;
    if (raiser != NULL)
        draft_open_add(d, number = raiser->number);
    else
        RV_TRY(stand_at(d, run, stop, &number));
    struct rv_str failure = failure_text(d, raiser, stop);
    if (then_error || task->pivot != 0)
        fail_escalate(d, RV_FORWARD, number, RV_ALERT_FAILED, failure);
    else if (blocker.pivot) /* nobody undoes it: the way on is that of any failure */
        fail_escalate(
            d, RV_FORWARD, number, RV_ALERT_FAILED,
            rv_arena_printf(d->arena,
                            "%.*s; %.*s is a pivot (point of no return) and may have been "
                            "carried out: the task is not undone",
                            RV_STR_FMT(failure), RV_STR_FMT(blocker.reference)));
    else
        fail_escalate(
            d, RV_FORWARD, number, RV_ALERT_NO_UNDO,
            rv_arena_printf(d->arena,
                            "%.*s; the undo of the task needs an operator: %.*s may have had "
                            "an effect and declares no compensation",
                            RV_STR_FMT(failure), RV_STR_FMT(blocker.reference)));
    return RV_DECIDED;
}

enum rv_verdict fail_task(struct draft *d, enum rv_direction direction, uint32_t undoes,
                          struct rv_step *raiser, struct rv_step *run,
                          const struct rv_flow_stop *stop)
{
    rv_assert(stop->kind == RV_FLOW_RAISED);
    rv_assert(raiser == NULL || raiser->kind == RV_KIND_CALL);
    rv_assert(raiser == NULL || raiser->state == RV_STEP_ERROR);
    if (direction == RV_FORWARD)
        return fail_forward(d, raiser, run, stop);
    struct rv_step *forward;
    RV_TRY(draft_step(d, undoes, &forward));
    if (raiser != NULL) {
        draft_open_add(d, raiser->number);
    } else {
        /* The compensation failed outside of a call: resubmission starts it over. */
        forward->undo_prev = d->plan->task.undo_head;
        d->plan->task.undo_head = forward->number;
    }
    d->plan->task.undo_error = stop->error;
    fail_escalate(d, RV_UNDO, raiser ? raiser->number : forward->number, RV_ALERT_UNDO_FAILED,
                  rv_arena_printf(d->arena, "the undo of %.*s failed: %.*s",
                                  RV_STR_FMT(forward->reference),
                                  RV_STR_FMT(error_brief(d, stop->error))));
    return RV_DECIDED;
}
