/* fiber.h - a call that can stop in its middle, so that others go on, and be taken up again. */
#ifndef RV_BASE_FIBER_H
#define RV_BASE_FIBER_H

#include <stdbool.h>

/* Has a stack of its own. What runs on it is never abandoned: a fiber is closed only when its call
 * has returned. All of it on one thread; a fiber may run within another one. */
struct rv_fiber;

/* The fibers that a pure room is given: base/os has those of this machine. */
struct rv_fiber_ops {
    struct rv_fiber *(*open)(void); /* NULL: no memory */
    void (*close)(struct rv_fiber *fiber);
    /* Runs the call until it returns or pauses; false: it has paused. */
    bool (*run)(struct rv_fiber *fiber, void (*call)(void *self), void *self);
    /* Goes on with the call that has paused; false: it has paused again. */
    bool (*go_on)(struct rv_fiber *fiber);
    /* From within the call. */
    void (*pause)(struct rv_fiber *fiber);
};

#endif
