/* shell.h - agents of a few lines of shell: one request after the other, no lease, no confirm. */
#ifndef RV_SIM_SHELL_H
#define RV_SIM_SHELL_H

#include "sim/world/net.h"

struct world;

void shells_new(struct world *w);
void shells_free(struct world *w);
/* The request in hand wants to be looked at. */
void shell_turn(struct world *w, uint32_t shell, uint64_t life);
/* Once a second: it may be killed, or be started again. */
void shell_trouble(struct world *w, uint32_t shell);
void shells_heal(struct world *w);
void shell_answered(struct world *w, struct exchange *x);
void shell_lost(struct world *w, struct exchange *x);

#endif
