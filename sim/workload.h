/* workload.h - the workflows of a world and what is submitted to them. */
#ifndef RV_SIM_WORKLOAD_H
#define RV_SIM_WORKLOAD_H

#include "base/arena.h"
#include "base/buf.h"
#include "sim/knobs.h"
#include "workflow/definition.h"

struct world;

struct workload_workflow {
    struct rv_str name; /* in the namespace "sim" */
    struct rv_str source;
    const struct rv_definition *definition;
};

struct workload {
    struct workload_workflow workflows[SIM_WORKFLOWS_MAX];
    uint32_t count;
};

/* Draws and publishes the workflows. */
void workload_new(struct world *w);
/* Publishes one more. */
void workload_add(struct world *w, struct rv_str name, struct rv_str source);
const struct rv_definition *workload_definition(struct world *w, struct rv_str name);
/* One submission's body without its key and closing brace. */
void workload_submission(struct world *w, struct rv_buf *body, uint32_t number);
/* The name of an agent kind. */
const char *workload_agent(uint32_t kind);

/* The two generators: each writes a definition. */
void workload_random(struct world *w, struct rv_buf *out, uint32_t workflow);
void workload_order(struct world *w, struct rv_buf *out, uint32_t workflow);
/* Ends the body of step number `step`, which began at `from`: where this world is to be without
 * that step, one that does nothing stands in its place. */
void workload_step_end(struct world *w, struct rv_buf *out, size_t from, uint32_t workflow,
                       uint32_t step);

#endif
