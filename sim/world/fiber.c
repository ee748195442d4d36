/* One that is freed waits for the next world: its stack stays warm. */
#include "sim/world/fiber.h"

#include "base/assert.h"
#include "base/os/fiber.h"

#include <stdlib.h>

struct fiber {
    struct rv_fiber *fiber; /* owned */
    struct fiber *next;     /* among those that are free */
};

static struct fiber *free_ones; /* owned */

struct fiber *fiber_new(void)
{
    struct fiber *fiber = free_ones;
    if (fiber != NULL) {
        free_ones = fiber->next;
        return fiber;
    }
    fiber = calloc(1, sizeof *fiber);
    rv_assert(fiber != NULL);
    fiber->fiber = rv_fibers.open();
    rv_assert(fiber->fiber != NULL);
    return fiber;
}

void fiber_free(struct fiber *fiber)
{
    if (fiber == NULL)
        return;
    rv_assert(!rv_fiber_inside(fiber->fiber) && !rv_fiber_paused(fiber->fiber));
    fiber->next = free_ones;
    free_ones = fiber;
}

bool fiber_run(struct fiber *fiber, void (*call)(void *self), void *self)
{
    return rv_fibers.run(fiber->fiber, call, self);
}

bool fiber_go_on(struct fiber *fiber)
{
    return rv_fibers.go_on(fiber->fiber);
}

void fiber_pause(struct fiber *fiber)
{
    rv_fibers.pause(fiber->fiber);
}

bool fiber_inside(const struct fiber *fiber)
{
    return fiber != NULL && rv_fiber_inside(fiber->fiber);
}

bool fiber_paused(const struct fiber *fiber)
{
    return rv_fiber_paused(fiber->fiber);
}
