/* The attempts of a task stand in two places: those that ended without their step's result in a
 * table of their own, the newest of each step in the step. Here they become one list, by step and
 * number. */
#include "api/answer.h"
#include "api/put.h"
#include "base/assert.h"

/* The newest attempt of a step, as a row like the others, but for what its end alone decides. */
static struct rv_attempt newest(struct rv_task_id task, const struct rv_step *step)
{
    struct rv_attempt row = rv_attempt_newest(task, step);
    row.retry_at = 0;
    row.round = 0;
    return row;
}

void rv_put_attempt(struct rv_buf *buf, const struct rv_attempt *attempt)
{
    rv_put_open(buf, '{');
    rv_put_step(buf, "step", attempt->step);
    rv_put_int(buf, "attempt", attempt->number);
    rv_put_text(buf, "state", rv_str_of(rv_attempt_state_text(attempt->state)));
    rv_put_text(buf, "effect", rv_str_of(rv_effect_text(attempt->effect)));
    rv_put_int(buf, "fence", attempt->fence);
    rv_put_text_if(buf, "instance", attempt->instance);
    rv_put_instant_if(buf, "attemptAt", attempt->attempt_at);
    rv_put_instant_if(buf, "completeBy", attempt->complete_by);
    rv_put_instant_if(buf, "endedAt", attempt->ended_at);
    rv_put_instant_if(buf, "retryAt", attempt->retry_at);
    if (attempt->round > 0)
        rv_put_int(buf, "round", attempt->round);
    rv_put_raw_if(buf, "error", attempt->error);
    rv_buf_add_char(buf, '}');
}

/* Where an attempt stands in the list. */
static uint64_t place(uint32_t step, uint32_t number)
{
    return (uint64_t)step << 32 | number;
}

static uint64_t attempt_place(const struct rv_attempt *attempt)
{
    return place(attempt->step.number, attempt->number);
}

/* The last place of which this page can speak: a full one of either kind of rows says nothing about
 * what follows its last. UINT64_MAX: it speaks of all. */
static uint64_t page_end(const struct rv_call_list *list)
{
    uint64_t end = UINT64_MAX;
    if (list->count > 0 && list->count == list->limit)
        end = attempt_place(&list->attempts[list->count - 1]);
    if (list->step == 0 && list->steps_count > 0 && list->steps_count == list->limit) {
        const struct rv_step *last = &list->steps[list->steps_count - 1];
        uint64_t last_place = place(last->number, last->attempt);
        end = last_place < end ? last_place : end;
    }
    return end;
}

void rv_render_attempts(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_ATTEMPTS);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_list *list = &call->u.list;
    uint64_t after = place(list->after_step, list->after);
    uint64_t end = page_end(list);
    size_t a = 0;
    size_t s = 0;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "attempts", '[');
    while (a < list->count || s < list->steps_count) {
        const struct rv_step *step = s < list->steps_count ? &list->steps[s] : NULL;
        uint64_t step_place = step ? place(step->number, step->attempt) : UINT64_MAX;
        uint64_t row_place = a < list->count ? attempt_place(&list->attempts[a]) : UINT64_MAX;
        if (row_place <= step_place) {
            if (row_place <= end)
                rv_put_attempt(buf, &list->attempts[a]);
            a++;
            s += row_place == step_place;
            continue;
        }
        s++;
        if (step->attempt == 0 || step_place <= after || step_place > end)
            continue;
        struct rv_attempt row = newest(list->task, step);
        rv_put_attempt(buf, &row);
    }
    rv_buf_add_char(buf, ']');
    if (end != UINT64_MAX) {
        rv_put_name(buf, "next");
        rv_buf_printf(buf, "\"%u.%u\"", (unsigned)(end >> 32), (unsigned)end);
    }
    rv_buf_add_char(buf, '}');
}
