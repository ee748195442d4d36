#include "sim/check/check.h"

#include "base/limits.h"
#include "sim/cast/client.h"
#include "sim/store/database.h"
#include "sim/cast/hook.h"
#include "sim/store/rows.h"
#include "sim/store/storage.h"
#include "sim/world/world.h"

/* I-20: every task ends, or waits for an operator. */
bool check_all_settled(struct world *w)
{
    if (!clients_done(w))
        return false;
    for (size_t i = 0; i < w->history->count; i++) {
        const struct rv_task *task = &w->history->all[i]->row;
        if (rv_task_state_open(task->state) && task->state != RV_TASK_ERROR)
            return false;
    }
    return hooks_settled(w);
}

/* P2: a task that is parked calls for an operator until it goes on. */
static void check_alerts(struct world *w)
{
    struct rv_store *store = database_reader(w);
    struct rv_alert alert;
    for (size_t i = 0; i < w->history->count; i++) {
        const struct rv_task *task = &w->history->all[i]->row;
        size_t count = 0;
        rv_arena_reset(&w->history->scratch);
        enum rv_err err = store->ops->list_alerts(store, &w->history->scratch, task->id, true, 0, 1,
                                                  &alert, &count);
        if (storage_found(w, err))
            return;
        bool parked = task->state == RV_TASK_ERROR;
        if (err == RV_OK && parked && count == 0)
            world_violate(w, "P-02", "a task is parked and no alert is open");
        if (err == RV_OK && !rv_task_state_open(task->state) && count != 0)
            world_violate(w, "P-02", "a task is %s and its alert \"%s\" is still open",
                          rv_task_state_text(task->state), rv_alert_kind_text(alert.kind));
    }
}

/* I-24: one task per key, whatever was sent how often; none where the store has lost it and nobody
 * has submitted it again. */
static void check_task_count(struct world *w)
{
    uint32_t lost = clients_lost(w);
    if (w->history->count > w->orders || w->history->count + lost < w->orders)
        world_violate(w, "I-24", "%u tasks were submitted, there are %zu, and %u were lost",
                      w->orders, w->history->count, lost);
}

/* I-28: what no commit has touched since is as the last one left it. */
static void check_rows_stay(struct world *w)
{
    struct rv_store *store = database_reader(w);
    struct rv_step rows[RV_PAGE_ROWS_MAX];
    for (size_t i = 0; i < w->history->count; i++) {
        struct task_past *past = w->history->all[i];
        size_t count = RV_PAGE_ROWS_MAX;
        rv_arena_reset(&w->history->scratch);
        for (uint32_t after = 0; count == RV_PAGE_ROWS_MAX; after = rows[count - 1].number) {
            enum rv_err err = store->ops->list_steps(store, &w->history->scratch, past->row.id,
                                                     after, RV_PAGE_ROWS_MAX, rows, &count);
            for (size_t s = 0; err == RV_OK && s < count; s++) {
                const struct step_past *step = history_step(past, rows[s].number);
                if (step == NULL || step->sum != rows_step(&rows[s]))
                    world_violate(w, "I-28", "step %u changed without a commit", rows[s].number);
            }
            if (err != RV_OK || count == 0)
                break;
        }
    }
}

void check_end(struct world *w)
{
    check_rows_stay(w);
    check_all_there(w, database_reader(w));
    check_task_count(w);
    check_alerts(w);
    check_ledger(w);
}
