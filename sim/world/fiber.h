/* fiber.h - a call that can stop in its middle, so that others go on, and be taken up again. */
#ifndef RV_SIM_FIBER_H
#define RV_SIM_FIBER_H

#include <stdbool.h>

/* Each has a stack of its own. What runs on it must not be left in the lurch: a fiber is freed only
 * when its call has returned. One thread. */
struct fiber;

struct fiber *fiber_new(void);
void fiber_free(struct fiber *fiber);
/* Runs the call until it returns or pauses; false: it has paused. */
bool fiber_run(struct fiber *fiber, void (*call)(void *self), void *self);
/* Goes on with the call that has paused; false: it has paused again. */
bool fiber_go_on(struct fiber *fiber);
/* From within the call. */
void fiber_pause(struct fiber *fiber);
/* Whoever asks does so from within the call; NULL: never. */
bool fiber_inside(const struct fiber *fiber);
/* A call is under way, and pauses. */
bool fiber_paused(const struct fiber *fiber);

#endif
