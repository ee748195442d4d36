/* agent.h - agents: libreeve's real session and runtime, with handlers that misbehave. */
#ifndef RV_SIM_AGENT_H
#define RV_SIM_AGENT_H

#include "sim/cast/deed.h"
#include "sim/world/net.h"

struct world;

void agents_new(struct world *w);
void agents_free(struct world *w);
/* Something of the agent is due. */
void agent_turn(struct world *w, uint32_t agent, uint64_t life);
/* It starts again after a crash, or goes on after a pause. */
void agent_revive(struct world *w, uint32_t agent);
/* Once a second: what may befall it. */
void agent_trouble(struct world *w, uint32_t agent);
void agents_heal(struct world *w);
void agent_answered(struct world *w, struct exchange *x);
void agent_lost(struct world *w, struct exchange *x);

#endif
