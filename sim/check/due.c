/* I-43: a task that is due is decided, and after that it has changed or is due later. Otherwise its
 * server decides it again at once, and no time passes until somebody else changes the task. At one
 * instant, a server reads the same revision of a task a few times only: because the task is due,
 * for decisions that take long, and once for each call that it takes. */
#include "sim/check/check.h"

#include "base/assert.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

enum { READS_MAX = 100 };

static void instant_begin(struct server *s)
{
    if (s->world->now == s->read_at)
        return;
    rv_map_clear(&s->reads);
    s->read_at = s->world->now;
    s->calls_taken = 0;
}

void check_taken(struct server *s, size_t calls)
{
    instant_begin(s);
    s->calls_taken += calls;
}

void check_read(struct server *s, const struct rv_task *task)
{
    struct world *w = s->world;
    uint64_t id = (uint64_t)task->id.value, revision = (uint64_t)task->revision;
    instant_begin(s);
    const uint64_t *before = rv_map_find(&s->reads, id, revision);
    uint64_t reads = before != NULL ? *before + 1 : 1;
    enum rv_err err = rv_map_put(&s->reads, id, revision, reads);
    rv_assert(err == RV_OK);
    if (reads > READS_MAX + s->calls_taken)
        world_violate(w, "I-43", "%s reads revision %llu of a task %llu times at one instant",
                      s->name, (unsigned long long)revision, (unsigned long long)reads);
}
