/* story.h - a scenario's transcript in sentences: who sends what to whom, and how tasks and steps
 * change. Tasks and steps have names ("order-0/charge"), not ids. */
#ifndef RV_SIM_STORY_H
#define RV_SIM_STORY_H

#include "sim/world/net.h"

struct transition;
struct world;

/* The world's transcript is a story from now on; world_detail() is left out. */
void story_new(struct world *w);
void story_free(struct world *w);

/* A line of the story, with names in place of ids. */
void story_line(struct world *w, const char *actor, const char *text);

/* What world_detail() shows as bytes. They do nothing in a world without a story. */
void story_asked(struct world *w, const char *actor, const struct exchange *x);
void story_answered(struct world *w, const char *actor, const struct exchange *x);
void story_unanswered(struct world *w, const char *actor, const struct exchange *x);
/* A message of a task reaches its webhook. */
void story_delivered(struct world *w, uint32_t server, struct rv_str body);
void story_committed(const struct transition *t);

#endif
