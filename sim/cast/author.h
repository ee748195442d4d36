/* author.h - somebody who publishes new versions of the workflows while their tasks run. */
#ifndef RV_SIM_AUTHOR_H
#define RV_SIM_AUTHOR_H

#include "sim/world/net.h"

struct world;
struct workload_workflow;
struct workload_version;

struct author {
    struct workload_workflow *workflow; /* what it publishes */
    struct workload_version *version;
    struct rv_str source; /* absent: nothing is to be published */
    uint32_t tag;
    bool busy; /* waits for an answer */
};

void author_new(struct world *w);
/* Once a second. */
void author_turn(struct world *w);
void author_answered(struct world *w, struct exchange *x);
void author_lost(struct world *w, struct exchange *x);

#endif
