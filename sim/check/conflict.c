/* I-51: where no fault has struck, servers that share a store seldom decide the same task at once.
 * A server claims the tasks that it decides without a call: at most 0.1 % of these changes lose
 * their guard. It does not claim the tasks of calls: a reply or renewal that arrives while another
 * server decides its task is decided again. Of all changes at most 1 % lose their guard; more if
 * round trips, and so batches, take long. Then a lease may also
 * be over before it is renewed, and the claims with it. */
#include "sim/check/conflict.h"

#include "sim/check/check.h"
#include "sim/run/coverage.h"
#include "sim/store/database.h"
#include "sim/world/fault.h"
#include "sim/world/history.h"
#include "sim/world/server.h"
#include "sim/world/world.h"
#include "store/store.h"

enum { OWN_FEW = 2, OWN_PART = 1000, LOST_FEW = 16, LOST_PART = 100, MORE_MS = 4 };

static bool names(const struct rv_call *call, struct rv_task_id id)
{
    bool named = call->kind == RV_CALL_OPERATE && call->u.operate.task.value == id.value;
    for (size_t i = 0; call->kind == RV_CALL_REPLIES && i < call->u.replies.count; i++)
        named = named || call->u.replies.items[i].step.task.value == id.value;
    for (size_t i = 0; call->kind == RV_CALL_LEASES && i < call->u.leases.count; i++)
        named = named || call->u.leases.items[i].step.task.value == id.value;
    return named;
}

/* Whether a call that the server has taken is about the task. */
static bool is_called(const struct server *s, struct rv_task_id id)
{
    const struct served *served = s->out;
    while (served != NULL && !(served->taken && names(&served->call, id)))
        served = served->next;
    return served != NULL;
}

/* It has not renewed its lease in time. */
static bool is_late(const struct world *w, const struct server *s)
{
    return w->now - s->leased_at > (int64_t)w->knobs.role_ms / 4 * 3;
}

static void conflict_note(struct world *w, const struct server *s, struct rv_task_id id,
                          bool unclaimed)
{
    char text[RV_ID_TEXT_BYTES];
    w->conflicts.lost++;
    w->conflicts.unclaimed += unclaimed;
    world_say(w, "store", "task %s: a change of %s loses its guard%s", rv_task_text(id, text).at,
              s->name, unclaimed ? ", without a claim" : "");
}

void check_conflicts(struct world *w, const struct server *s, const struct rv_batch *batch)
{
    struct conflicts *sum = &w->conflicts;
    uint64_t before = sum->lost;
    for (size_t i = 0; i < batch->changes_count; i++) {
        const struct rv_change *change = &batch->changes[i];
        struct task_past *past = history_task(w, change->task->id);
        bool unclaimed = is_late(w, s) || is_called(s, change->task->id);
        if (change->outcome == RV_ERR_CONFLICT)
            conflict_note(w, s, change->task->id, unclaimed || (past && past->unclaimed));
        else if (change->outcome == RV_OK && past != NULL)
            past->unclaimed = unclaimed;
    }
    if (!database_shared(w) || w->scenario != NULL)
        return;
    if (w->coverage != NULL) {
        w->coverage->changes += batch->changes_count;
        w->coverage->conflicts += sum->lost - before;
    }
    sum->changes += batch->changes_count;
    uint64_t own = sum->lost - sum->unclaimed;
    uint64_t most = LOST_FEW + sum->changes / LOST_PART + (uint64_t)w->knobs.store_ms / MORE_MS;
    if (!fault_happened_any(w) && (own > OWN_FEW + sum->changes / OWN_PART || sum->lost > most))
        world_violate(
            w, "I-51",
            "%llu of %llu changes have lost their guard, %llu of them with claims, and no "
            "fault struck",
            (unsigned long long)sum->lost, (unsigned long long)sum->changes,
            (unsigned long long)own);
}
