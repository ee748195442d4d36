/* I-51: where no fault has struck, servers that share a store seldom decide the same task at once:
 * one change of a hundred at most loses its guard to another server's. */
#include "sim/check/conflict.h"

#include "sim/check/check.h"
#include "sim/run/coverage.h"
#include "sim/store/database.h"
#include "sim/world/fault.h"
#include "sim/world/server.h"
#include "sim/world/world.h"
#include "store/store.h"

enum { LOST_FEW = 16, LOST_PART = 100 };

void check_conflicts(struct world *w, const struct server *s, const struct rv_batch *batch)
{
    uint64_t lost = 0;
    char text[RV_ID_TEXT_BYTES];
    for (size_t i = 0; i < batch->changes_count; i++) {
        if (batch->changes[i].outcome != RV_ERR_CONFLICT)
            continue;
        world_say(w, "store", "task %s: a change of %s loses its guard",
                  rv_task_text(batch->changes[i].task->id, text).at, s->name);
        lost++;
    }
    if (!database_shared(w) || w->scenario != NULL)
        return;
    if (w->coverage != NULL) {
        w->coverage->changes += batch->changes_count;
        w->coverage->conflicts += lost;
    }
    struct conflicts *sum = &w->conflicts;
    sum->changes += batch->changes_count;
    sum->lost += lost;
    if (!fault_happened_any(w) && sum->lost > LOST_FEW + sum->changes / LOST_PART)
        world_violate(w, "I-51", "%llu of %llu changes have lost their guard, and no fault struck",
                      (unsigned long long)sum->lost, (unsigned long long)sum->changes);
}
