/* relay.h - relays of src/relay, each a process that may die, beside the database of a shop. */
#ifndef RV_SIM_RELAY_H
#define RV_SIM_RELAY_H

#include "sim/world/net.h"

#include <stdbool.h>
#include <stdint.h>

struct world;

/* Makes the shop too, and its table. Nothing where the world is to have no relay. */
void relays_new(struct world *w);
void relays_free(struct world *w);
/* A strand of it wants to go on. */
void relay_turn(struct world *w, uint32_t relay, uint64_t detail);
/* It may die, has died, or starts again. */
void relay_trouble(struct world *w, uint32_t relay, uint64_t detail);
void relays_heal(struct world *w);
void relay_answered(struct world *w, struct exchange *x);
void relay_lost(struct world *w, struct exchange *x);

/* ---- from within a relay ---- */

/* The world in which the database of that path is. */
struct world *relay_world(const char *path);
/* Nothing that it does any more reaches anybody. */
bool relay_dead(void);
/* The same; and this is an occasion to die. */
bool relay_dies(void);

#endif
