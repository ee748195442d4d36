/* hooks.h - webhooks of a world: what leaves the scheduler, and what the test has them answer. */
#ifndef RV_TEST_LIB_HOOKS_H
#define RV_TEST_LIB_HOOKS_H

#include "world.h"

enum { HOOKS_MAX = 2048 };

struct hooks {
    struct rv_notice *sent[HOOKS_MAX]; /* owned: not answered yet, the oldest first */
    size_t count;
    size_t all;          /* that ever left */
    const char *refuses; /* a URL that may not be called; NULL: all may */
};

/* For the world's ground. */
struct rv_scheduler_outlet hooks_outlet(struct hooks *hooks);
/* Those that are with it are lost, as with a server that dies. */
void hooks_drop(struct hooks *hooks);

enum hook_answer { HOOK_TAKES, HOOK_REFUSES, HOOK_DEAD, HOOK_GONE };
/* All that were sent to the destination (NULL: to any) are answered in one call; how many. */
size_t hooks_answer(struct hooks *hooks, struct world *w, const char *destination,
                    enum hook_answer answer);
/* Takes and lets take what comes, until nothing does; how many. */
size_t hooks_take_all(struct hooks *hooks, struct world *w, const char *destination);

#endif
