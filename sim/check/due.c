/* I-43: a task that is due is decided, and after that it has changed or is due later. Otherwise its
 * server decides it again at once, and no time passes until somebody else changes the task. At one
 * instant, a server reads the same revision of a task a few times only: for calls, because the task
 * is due, and for decisions that take long. */
#include "sim/check/check.h"

#include "base/assert.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

enum { READS_MAX = 100 };

void check_read(struct server *s, const struct rv_task *task)
{
    struct world *w = s->world;
    uint64_t id = (uint64_t)task->id.value, revision = (uint64_t)task->revision;
    if (w->now != s->read_at && s->reads.count > 0)
        rv_map_clear(&s->reads);
    s->read_at = w->now;
    const uint64_t *before = rv_map_find(&s->reads, id, revision);
    uint64_t reads = before != NULL ? *before + 1 : 1;
    enum rv_err err = rv_map_put(&s->reads, id, revision, reads);
    rv_assert(err == RV_OK);
    if (reads > READS_MAX)
        world_violate(w, "I-43", "%s reads revision %llu of a task %llu times at one instant",
                      s->name, (unsigned long long)revision, (unsigned long long)reads);
}
