/* fiber.h - the fibers of this machine. */
#ifndef RV_BASE_OS_FIBER_H
#define RV_BASE_OS_FIBER_H

#include "base/fiber.h"

extern const struct rv_fiber_ops rv_fibers;

/* Whoever asks does so from within the call; NULL: never. */
bool rv_fiber_inside(const struct rv_fiber *fiber);
/* A call is under way, and pauses. */
bool rv_fiber_paused(const struct rv_fiber *fiber);

#endif
