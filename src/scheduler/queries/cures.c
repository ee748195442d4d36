/* The commands that a task accepts, for explanations and refusals. */
#include "scheduler/queries/cures.h"

#include "base/assert.h"
#include "base/arena.h"
#include "base/limits.h"
#include "core/decide.h"
#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "scheduler/batch/workflows.h"
#include "scheduler/queries/query.h"
#include "store/store.h"

enum { STEPS_MAX = RV_OPEN_STEPS_MAX + RV_PLAN_STEPS_MAX };

/* As the batch has it so far, else as it is stored. *ret_found: it joins the view, or is there. */
static enum rv_err step_join(const struct query *q, const struct newer *newer, uint32_t number,
                             struct rv_view *view, const struct rv_step **rows, bool *ret_found)
{
    struct rv_step_id id = {view->task->id, number};
    const struct rv_step *row = newer != NULL ? newer->step(newer->self, number) : NULL;
    rv_assert(view->steps_count <= STEPS_MAX);
    *ret_found = true;
    for (size_t i = 0; i < view->steps_count; i++)
        if (rows[i]->number == number)
            return RV_OK;
    enum rv_err err = RV_OK;
    if (row == NULL)
        err = q->store->ops->load_steps(q->store, q->scratch, RV_COLUMNS_ALL, &id, 1, &row);
    *ret_found = err == RV_OK && row != NULL && view->steps_count < STEPS_MAX;
    if (*ret_found)
        rows[view->steps_count++] = row;
    return err;
}

enum rv_err cures_ledger_count(const struct query *q, struct rv_task_id task,
                               const struct newer *newer, size_t limit, uint32_t *ret_count)
{
    struct rv_arena_mark mark = rv_arena_mark(q->scratch);
    struct rv_late_reply *rows = RV_ROOM(q->scratch, struct rv_late_reply, limit);
    size_t count = 0;
    if (rows == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = q->store->ops->list_late_replies(q->store, q->scratch, RV_COLUMNS_PLAIN,
                                                       (struct rv_step_id){task, 0}, 0, 0, limit,
                                                       rows, &count);
    rv_arena_release(q->scratch, mark);
    rv_assert(err != RV_OK || count <= limit);
    *ret_count = (uint32_t)(count + (newer != NULL ? newer->late_count : 0));
    return err;
}

/* What is named is accepted, so it says how many late replies there are. */
static enum rv_err ledger_add(const struct query *q, const struct rv_task *task,
                              const struct newer *newer, struct rv_cure *cures, size_t count)
{
    uint32_t late = 0;
    rv_assert(count <= RV_CURES_MAX);
    enum rv_err err = count > 0 ? cures_ledger_count(q, task->id, newer, RV_PAGE_ROWS_MAX, &late)
                                : RV_OK;
    for (size_t i = 0; err == RV_OK && i < count; i++)
        if (rv_cure_needs_ledger(cures[i].kind))
            cures[i].late_seen = late;
    return err;
}

/* What the search wants joins the view; false: a row that others name is missing. */
static enum rv_err want_join(const struct query *q, const struct newer *newer,
                             const struct rv_cures_want *want, struct rv_view *view,
                             const struct rv_step **rows, bool *ret_found)
{
    bool more;
    enum rv_err err = step_join(q, newer, want->number, view, rows, ret_found);
    for (size_t i = 0; err == RV_OK && i < want->more_count; i++)
        err = step_join(q, newer, want->more[i], view, rows, &more);
    return err;
}

/* Whether a step waits for what `retry` is above: its ladder, a circuit. It is not above a pause, a
 * limit or the lack of an agent. */
static bool retry_helps(const struct query *q, const struct rv_view *view)
{
    int64_t now = q->now;
    for (size_t i = 0; i < view->steps_count; i++) {
        const struct rv_step *step = view->steps[i];
        if (step->kind != RV_KIND_CALL || step->state != RV_STEP_PENDING)
            continue;
        const struct agent_kind *kind = agents_kind_find(q->agents, step->agent);
        if (step->ready_at > now || (kind != NULL && circuit_of(kind, step, now) != NULL))
            return true;
    }
    return false;
}

static void retry_drop(struct rv_cure *cures, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (cures[i].kind != RV_CURE_RETRY)
            cures[kept++] = cures[i];
    rv_assert(kept <= *count);
    *count = kept;
}

/* Everything that is looked at goes when it was: a task may keep many large steps. */
enum rv_err cures_find(const struct query *q, const struct rv_task *task,
                       const struct workflow_entry *entry, const struct newer *newer,
                       struct rv_cure ret_cures[static RV_CURES_MAX], size_t *ret_count)
{
    const struct rv_step *rows[STEPS_MAX];
    struct rv_view view = {
        .task = task, .steps = rows, .definition = entry != NULL ? entry->definition : NULL};
    struct rv_arena_mark mark = rv_arena_mark(q->scratch);
    enum rv_verdict verdict = RV_NEED_STEP;
    enum rv_err err = RV_OK;
    bool found = true;
    *ret_count = 0;
    for (uint32_t i = 0; err == RV_OK && i < task->open_count; i++)
        err = step_join(q, newer, task->open[i], &view, rows, &found);
    found = true;
    while (err == RV_OK && verdict == RV_NEED_STEP && found) {
        struct rv_cures_want want;
        if (rv_view_broken(task, view.steps, view.steps_count) != NULL)
            view.definition = NULL; /* as in a batch: the rows may say anything (work_check) */
        verdict = rv_cures(&view, q->now, q->scratch, ret_cures, ret_count, &want);
        if (verdict == RV_NEED_STEP)
            err = want_join(q, newer, &want, &view, rows, &found);
    }
    rv_assert(*ret_count <= RV_CURES_MAX);
    if (err == RV_OK && !retry_helps(q, &view))
        retry_drop(ret_cures, ret_count);
    rv_arena_release(q->scratch, mark);
    if (err == RV_OK && verdict == RV_NO_ROOM)
        return RV_ERR_MEMORY;
    return err == RV_OK ? ledger_add(q, task, newer, ret_cures, *ret_count) : err;
}
