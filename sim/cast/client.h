/* client.h - applications that submit tasks, each under its key, until they are acknowledged. */
#ifndef RV_SIM_CLIENT_H
#define RV_SIM_CLIENT_H

#include "base/id.h"
#include "sim/world/net.h"

struct world;

void clients_new(struct world *w);
void clients_free(struct world *w);
void client_turn(struct world *w, uint32_t client);
void client_answered(struct world *w, struct exchange *x);
void client_lost(struct world *w, struct exchange *x);
/* Everything is submitted and acknowledged. */
bool clients_done(struct world *w);
/* Orders that the client with most of them has yet to submit, or to hear of. */
uint32_t clients_left(const struct world *w);
/* Whether the order of that number is that client's. */
bool client_submits(const struct world *w, uint32_t client, uint32_t number);
/* Submissions that were acknowledged, and whose tasks the store has lost. */
uint32_t clients_lost(struct world *w);
/* A task that was acknowledged; none while there is none. */
struct rv_task_id clients_any_task(struct world *w, unsigned stream);

#endif
