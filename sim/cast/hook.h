/* hook.h - webhooks of the submitters: they are down, refuse, and lose their answers. */
#ifndef RV_SIM_HOOK_H
#define RV_SIM_HOOK_H

#include "core/rows.h"
#include "scheduler/scheduler.h"

#include <stdbool.h>
#include <stdint.h>

struct world;
struct server;
struct hooks;

void hooks_new(struct world *w);
void hooks_free(struct world *w);
/* The member replyTo of this submission; absent: nobody is to be told. */
struct rv_str hook_reply_to(struct world *w, uint32_t number);
/* For the scheduler of a server. */
struct rv_scheduler_outlet hook_outlet(struct server *s);
/* EVENT_HOOK: a message arrives, or what came of it. */
void hook_turn(struct world *w, uint64_t flight);

/* Told with each commit. */
void hook_committed(struct world *w, const struct rv_message *message);
/* All that was committed has arrived, and that is on record. */
bool hooks_settled(struct world *w);
/* N-03, at the end of the world. */
void check_heard(struct world *w);

#endif
