#include "sim/check/check.h"

#include "base/limits.h"
#include "sim/cast/client.h"
#include "sim/cast/outbox.h"
#include "sim/cast/workload.h"
#include "sim/store/database.h"
#include "sim/cast/hook.h"
#include "sim/store/rows.h"
#include "sim/store/storage.h"
#include "sim/world/world.h"

/* It stands at a step whose target never answers: one probe after the other fails, and as long as
 * that takes it waits (L-05), in the end with an alert (P-02). */
static bool waits_for_dead(const struct world *w, struct task_past *task)
{
    uint64_t dead = w->knobs.dead != 0 ? history_hash(rv_str_of(workload_agent(0))) : 0;
    for (uint32_t i = 0; dead != 0 && i < task->row.open_count; i++) {
        const struct step_past *step = history_step(task, task->row.open[i]);
        if (step != NULL && step->row.kind == RV_KIND_CALL && step->agent == dead)
            return true;
    }
    return false;
}

bool check_waits_for_dead(const struct world *w)
{
    for (size_t i = 0; i < w->history->count; i++)
        if (w->history->all[i]->row.state != RV_TASK_ERROR && waits_for_dead(w, w->history->all[i]))
            return true;
    return false;
}

/* I-20: every task ends, or waits for an operator. */
bool check_all_settled(struct world *w)
{
    if (!clients_done(w) || !outbox_settled(w))
        return false;
    for (size_t i = 0; i < w->history->count; i++) {
        const struct rv_task *task = &w->history->all[i]->row;
        if (rv_task_state_open(task->state) && task->state != RV_TASK_ERROR &&
            !waits_for_dead(w, w->history->all[i]))
            return false;
    }
    return hooks_settled(w);
}

/* P2: a task that is parked calls for an operator until it goes on; one that has ended only for
 * what it took for not done and its service says was done. */
static void check_alerts(struct world *w)
{
    struct rv_store *store = database_reader(w);
    struct rv_alert alerts[RV_PAGE_ROWS_MAX];
    for (size_t i = 0; i < w->history->count; i++) {
        const struct rv_task *task = &w->history->all[i]->row;
        size_t count = 0, others = 0, called = 0;
        rv_arena_reset(&w->history->scratch);
        enum rv_err err = store->ops->list_alerts(store, &w->history->scratch, task->id, true, 0,
                                                  RV_PAGE_ROWS_MAX, alerts, &count);
        if (storage_found(w, err))
            return;
        bool parked = task->state == RV_TASK_ERROR;
        if (err != RV_OK)
            continue;
        for (size_t a = 0; a < count; a++)
            if (alerts[a].kind != RV_ALERT_LATE_DONE && others++ == 0 &&
                !rv_task_state_open(task->state))
                world_violate(w, "P-02", "a task is %s and its alert \"%s\" is still open",
                              rv_task_state_text(task->state), rv_alert_kind_text(alerts[a].kind));
        if (parked && others == 0)
            world_violate(w, "P-02", "a task is parked and no alert is open");
        for (uint32_t n = 1; n < w->history->all[i]->room; n++)
            called += w->history->all[i]->steps[n].call_late;
        if (count - others != called)
            world_violate(w, "P-02", "%zu alerts call for what was done late, and %zu are open",
                          called, count - others);
    }
}

/* I-24: one task per key, whatever was sent how often; none where the store has lost it and nobody
 * has submitted it again. */
static void check_task_count(struct world *w)
{
    uint32_t lost = clients_lost(w);
    uint32_t orders = w->orders + w->orders_anew + check_outbox_orders(w, &lost);
    if (w->history->count > orders || w->history->count + lost < orders)
        world_violate(w, "I-24", "%u tasks were submitted, there are %zu, and %u were lost", orders,
                      w->history->count, lost);
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
            enum rv_err err = store->ops->list_steps(store, &w->history->scratch, RV_COLUMNS_ALL,
                                                     past->row.id, after, RV_PAGE_ROWS_MAX, rows,
                                                     &count);
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

/* Rows of the task, in whatever list. */
static size_t rows_of(struct world *w, struct rv_store *store, struct rv_task_id id)
{
    const struct rv_store_ops *ops = store->ops;
    struct rv_arena *arena = &w->history->scratch;
    struct rv_task_id none = {0};
    struct rv_step_id all = {id, 0};
    union {
        struct rv_step step;
        struct rv_attempt attempt;
        struct rv_late_reply late;
        struct rv_alert alert;
        struct rv_message message;
        struct rv_delivery delivery;
        struct rv_history_row command;
    } row;
    size_t counts[7] = {0};
    enum rv_err errs[] = {
        ops->list_steps(store, arena, RV_COLUMNS_ALL, id, 0, 1, &row.step, &counts[0]),
        ops->list_attempts(store, arena, all, 0, 0, 1, &row.attempt, &counts[1]),
        ops->list_late_replies(store, arena, RV_COLUMNS_ALL, all, 0, 0, 1, &row.late, &counts[2]),
        ops->list_alerts(store, arena, id, false, 0, 1, &row.alert, &counts[3]),
        ops->list_messages(store, arena, id, 0, 1, &row.message, &counts[4]),
        ops->list_deliveries(store, arena, id, RV_STR_NONE, none, 1, &row.delivery, &counts[5]),
        ops->list_history(store, arena, id, 0, 1, &row.command, &counts[6]),
    };
    size_t rows = 0;
    for (size_t i = 0; i < sizeof errs / sizeof errs[0]; i++)
        rows += errs[i] == RV_OK ? counts[i] : 0;
    return rows;
}

/* A round of the retention rule, the lease of a supervisor that has died, and their pauses. */
enum { KEPT_MS_MAX = 5000 };

/* I-35: what ended so long ago that each round since should have taken it is not there any more,
 * unless a message of it waits, an alert `late-done` is open, or the rule waited for an operator.
 */
static void check_not_kept(struct world *w, struct rv_store *store, const struct task_past *past,
                           const struct rv_task *task)
{
    struct rv_delivery rows[2];
    struct rv_task_id none = {0};
    size_t count = 0;
    int64_t kept_ms = (int64_t)w->knobs.retain_ms + (int64_t)w->knobs.role_ms + KEPT_MS_MAX;
    int64_t by = w->database->committed_at - kept_ms;
    bool quiet = w->now - w->healed_at > kept_ms && database_held_until(w) < by;
    if (!quiet || rv_task_state_open(task->state) || task->ended_at > by)
        return;
    enum rv_err err = store->ops->list_deliveries(store, &w->history->scratch, task->id,
                                                  RV_STR_NONE, none, 1, rows, &count);
    bool waits = err != RV_OK || (count > 0 && rows[0].next <= rows[0].last);
    bool calls = false; /* for an operator */
    for (uint32_t n = 1; n < past->room; n++)
        calls = calls || past->steps[n].call_late;
    if (!waits && !calls)
        world_violate(w, "I-35", "a task that ended at %lld is kept at %lld",
                      (long long)task->ended_at, (long long)w->database->committed_at);
}

/* I-33: of a task that the retention rule has deleted nothing is left. */
static void check_gone(struct world *w)
{
    struct rv_store *store = database_reader(w);
    for (size_t i = 0; w->knobs.retain_ms != 0 && i < w->history->count; i++) {
        struct rv_task_id id = w->history->all[i]->row.id;
        const struct rv_task *task;
        rv_arena_reset(&w->history->scratch);
        enum rv_err err = store->ops->load_tasks(store, &w->history->scratch, RV_COLUMNS_ALL, &id,
                                                 1, &task);
        if (storage_found(w, err))
            return;
        w->concerned = id;
        if (err == RV_OK && task == NULL && rows_of(w, store, id) > 0) {
            world_violate(w, "I-33", "a task was deleted, and rows of it are left");
            return;
        }
        if (err == RV_OK && task != NULL)
            check_not_kept(w, store, w->history->all[i], task);
    }
    w->concerned = (struct rv_task_id){0};
}

void check_end(struct world *w)
{
    check_rows_stay(w);
    check_gone(w);
    check_all_there(w, database_reader(w));
    check_task_count(w);
    check_outbox_end(w);
    check_alerts(w);
    check_waiting_called(w);
    check_ledger(w);
}
