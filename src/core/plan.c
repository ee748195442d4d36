#include "core/plan_priv.h"

#include "base/array.h"
#include "base/assert.h"

static struct rv_planned_step *planned_find(const struct draft *d, uint32_t number)
{
    for (size_t i = 0; i < d->plan->steps_count; i++)
        if (d->plan->steps[i].row->number == number)
            return &d->plan->steps[i];
    return NULL;
}

/* Where all steps are there, each mostly stands in the place of its number. */
static const struct rv_step *seen_find(const struct draft *d, uint32_t number)
{
    const struct rv_view *view = d->view;
    if (number != 0 && number <= view->steps_count && view->steps[number - 1]->number == number)
        return view->steps[number - 1];
    for (size_t i = 0; i < view->steps_count; i++)
        if (view->steps[i]->number == number)
            return view->steps[i];
    return NULL;
}

/* A call stands at its own node of the definition, or nothing that is asked of the node is true. */
static bool step_fits(const struct draft *d, const struct rv_step *step)
{
    const struct rv_definition *definition = d->view->definition;
    if (step->unreadable)
        return false;
    if (step->kind != RV_KIND_CALL || definition == NULL)
        return true;
    return step->node != 0 && step->node <= rv_definition_nodes(definition) &&
           rv_str_eq(rv_definition_reference(definition, step->node), step->reference);
}

enum rv_verdict draft_look(struct draft *d, uint32_t number, const struct rv_step **ret_step)
{
    struct rv_planned_step *planned = planned_find(d, number);
    if (planned != NULL) {
        *ret_step = planned->row;
        return RV_DECIDED;
    }
    const struct rv_step *seen = seen_find(d, number);
    if (seen != NULL) {
        *ret_step = seen;
        return step_fits(d, seen) ? RV_DECIDED : RV_UNREADABLE;
    }
    if (number == 0 || number > d->plan->task.last_number)
        return RV_UNREADABLE;
    d->plan->wanted = number;
    return RV_NEED_STEP;
}

static bool is_there(const struct draft *d, uint32_t number)
{
    return seen_find(d, number) != NULL || planned_find(d, number) != NULL;
}

enum rv_verdict draft_want(struct draft *d, const uint32_t *numbers, size_t count)
{
    size_t missing = 0;
    for (size_t i = 0; i < count && missing < 2; i++)
        missing += !is_there(d, numbers[i]);
    if (missing < 2)
        return RV_DECIDED; /* draft_look asks for it */
    uint32_t *wanted = RV_NEW_ARRAY(d->arena, uint32_t, count);
    if (wanted == NULL)
        return RV_NO_ROOM;
    missing = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_there(d, numbers[i]))
            continue;
        if (numbers[i] == 0 || numbers[i] > d->plan->task.last_number)
            return RV_UNREADABLE;
        wanted[missing++] = numbers[i];
    }
    d->plan->wanted = wanted[0];
    d->plan->more = wanted + 1;
    d->plan->more_count = missing - 1;
    return RV_NEED_STEP;
}

/* Room for one more planned step. */
static enum rv_verdict planned_grow(struct draft *d)
{
    struct rv_plan *plan = d->plan;
    if (plan->steps_count == RV_PLAN_STEPS_MAX)
        return RV_OVER_LIMIT;
    return RV_ARRAY_ROOM_ON(d->arena, plan->steps, plan->steps_count, plan->steps_room)
               ? RV_DECIDED
               : RV_NO_ROOM;
}

static enum rv_verdict planned_add(struct draft *d, const struct rv_step *from, bool insert,
                                   struct rv_step **ret_step)
{
    RV_TRY(planned_grow(d));
    struct rv_step *row = RV_NEW(d->arena, struct rv_step);
    if (row == NULL)
        return RV_NO_ROOM;
    rv_assert(d->plan->steps_count < d->plan->steps_room);
    if (from != NULL)
        *row = *from;
    d->plan->steps[d->plan->steps_count++] = (struct rv_planned_step){row, insert};
    d->plan->changed = true;
    *ret_step = row;
    return RV_DECIDED;
}

enum rv_verdict draft_step(struct draft *d, uint32_t number, struct rv_step **ret_step)
{
    struct rv_planned_step *planned = planned_find(d, number);
    if (planned != NULL) {
        *ret_step = planned->row;
        return RV_DECIDED;
    }
    const struct rv_step *from;
    RV_TRY(draft_look(d, number, &from));
    return planned_add(d, from, false, ret_step);
}

enum rv_verdict draft_step_new(struct draft *d, struct rv_step **ret_step)
{
    struct rv_step *row;
    RV_TRY(planned_add(d, NULL, true, &row));
    row->number = ++d->plan->task.last_number;
    row->created_at = d->command->now;
    *ret_step = row;
    return RV_DECIDED;
}

bool draft_open_has(const struct draft *d, uint32_t number)
{
    for (uint32_t i = 0; i < d->plan->task.open_count; i++)
        if (d->plan->task.open[i] == number)
            return true;
    return false;
}

void draft_open_add(struct draft *d, uint32_t number)
{
    struct rv_task *task = &d->plan->task;
    rv_assert(!draft_open_has(d, number));
    rv_assert(task->open_count < RV_OPEN_STEPS_MAX);
    task->open[task->open_count++] = number;
    d->plan->changed = true;
}

void draft_open_remove(struct draft *d, uint32_t number)
{
    struct rv_task *task = &d->plan->task;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < task->open_count; i++)
        if (task->open[i] != number)
            task->open[kept++] = task->open[i];
    for (uint32_t i = kept; i < task->open_count; i++)
        task->open[i] = 0;
    task->open_count = kept;
    d->plan->changed = true;
}

void draft_alert(struct draft *d, uint32_t step, enum rv_alert_kind kind, struct rv_str message)
{
    struct rv_plan *plan = d->plan;
    if (plan->alerts_count == RV_PLAN_ALERTS_MAX) {
        d->outgrown = true;
        return;
    }
    if (plan->alerts_count == plan->alerts_room) {
        size_t room = plan->alerts_room != 0 ? 4 * plan->alerts_room : 2;
        struct rv_alert *alerts = RV_NEW_ARRAY(d->arena, struct rv_alert, room);
        if (alerts == NULL) {
            d->starved = true;
            return;
        }
        if (plan->alerts_count > 0)
            memcpy(alerts, plan->alerts, plan->alerts_count * sizeof *alerts);
        plan->alerts = alerts;
        plan->alerts_room = room;
    }
    rv_assert(plan->alerts_count < plan->alerts_room);
    plan->alerts[plan->alerts_count++] = (struct rv_alert){
        .task = d->plan->task.id,
        .step = step,
        .kind = kind,
        .raised_at = d->command->now,
        .message = message,
    };
    plan->changed = true;
}

void draft_archive(struct draft *d, const struct rv_step *step)
{
    rv_assert(step->attempt_state != RV_ATTEMPT_NONE);
    if (d->plan->attempts_count == RV_PLAN_ATTEMPTS_MAX) {
        d->outgrown = true;
        return;
    }
    d->plan->attempts[d->plan->attempts_count++] = rv_attempt_newest(d->plan->task.id, step);
}

void draft_error(struct rv_step *step, struct rv_str error)
{
    step->attempt_error = rv_attempt_error(step);
    step->error = error;
}

void draft_late(struct draft *d, const struct rv_step *step, uint32_t attempt,
                enum rv_late_reason reason)
{
    rv_assert(reason < RV_LATE_REASON_COUNT);
    if (d->plan->late_count == RV_PLAN_LATE_MAX) {
        d->outgrown = true;
        return;
    }
    d->plan->late[d->plan->late_count++] = (struct rv_late_reply){
        .step = {d->plan->task.id, step->number},
        .attempt = attempt,
        .arrived_at = d->command->arrived_at,
        .reason = reason,
        .output = d->command->u.reply.output,
        .error = d->command->u.reply.error,
    };
    d->plan->changed = true;
}

int64_t draft_jitter(struct draft *d, int64_t ms, int64_t part)
{
    rv_assert(part > 0);
    if (ms <= 0)
        return 0;
    return ms + (int64_t)rv_prng_below(&d->prng, (uint64_t)(ms / part) + 1);
}
