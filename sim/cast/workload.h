/* workload.h - the workflows of a world and what is submitted to them. */
#ifndef RV_SIM_WORKLOAD_H
#define RV_SIM_WORKLOAD_H

#include "base/arena.h"
#include "base/buf.h"
#include "core/rows.h"
#include "json/json.h"
#include "sim/world/knobs.h"
#include "workflow/definition.h"

struct world;

/* One version of a workflow, as its author wrote it. */
struct workload_version {
    struct rv_str version;
    struct rv_str source;
    const struct rv_definition *definition;
    struct rv_json document; /* the source's */
    uint64_t hash;           /* of the hash under which the store has it; 0: not seen yet */
    uint32_t published;      /* which publication of all it was; 0: nobody has seen it */
    int64_t acked_at;        /* virtual time; 0: the author was not told yet that it is published */
};

struct workload_workflow {
    uint32_t number;
    struct rv_str name; /* in the namespace "sim" */
    uint32_t drafts;
    struct workload_version versions[SIM_VERSIONS_MAX];
    uint32_t versions_count;
};

struct workload {
    struct workload_workflow workflows[SIM_WORKFLOWS_MAX];
    uint32_t count;
    uint32_t publications; /* seen */
};

/* Draws and publishes the workflows. */
void workload_new(struct world *w);
/* Publishes one more. */
void workload_add(struct world *w, struct rv_str name, struct rv_str source);
/* A new version of the workflow, not published; NULL: it has had enough of them. */
struct workload_version *workload_version_new(struct world *w, struct workload_workflow *workflow);
/* Another definition under a version's name; absent: it came out the same. */
struct rv_str workload_other(struct world *w, struct workload_workflow *workflow,
                             const struct workload_version *version);
/* The version that the store's row stands for; its content must be what it was. */
struct workload_version *workload_version_of(struct world *w, const struct rv_workflow_row *row);
/* The store may have lost what was published last. */
void workload_rewind(struct world *w);
/* Whether the store has all that was published: only then another server knows it. What it has not
 * (two servers wanted the supervisor's role at once, and one was refused) is published again. */
bool workload_is_there(struct world *w);
/* The store has it from now on. An old version that was lost comes after the others then. */
void workload_published(struct world *w, struct rv_str name, struct rv_str version);
/* I-18: a task that begins takes the version published last, as far as its author knows. */
void workload_check_newest(struct world *w, const struct rv_workflow_row *row, int64_t begun_at);
/* Stands in the input of each task, and nowhere where payloads do not belong. */
#define SIM_CANARY "5ecret-of-the-order"
/* One submission's body without its key and closing brace. */
void workload_submission(struct world *w, struct rv_buf *body, uint32_t number);
/* Whether some version of it has expressions that take long. */
bool workload_is_heavy(const struct world *w, struct rv_str name);
/* What these begin with. */
#define SIM_HEAVY "[range("
/* The step's compensation calls nobody. It ends with a step whose name begins with `v`. */
bool workload_undone_inside(const struct rv_definition *definition, uint32_t node);
bool workload_is_undo_end(struct rv_str reference);
/* The name of an agent kind. */
const char *workload_agent(uint32_t kind);

/* A definition that is being written: which workflow's, under which version. */
struct workload_title {
    uint32_t workflow;
    uint32_t draft; /* counts all definitions that were written for the workflow */
    struct rv_str version;
};

/* The two generators: each writes a definition. */
void workload_random(struct world *w, struct rv_buf *out, const struct workload_title *title);
void workload_order(struct world *w, struct rv_buf *out, const struct workload_title *title);
/* Ends the body of step number `step`, which began at `from`: where this world is to be without
 * that step, one that does nothing stands in its place. */
void workload_step_end(struct world *w, struct rv_buf *out, size_t from,
                       const struct workload_title *title, uint32_t step);

#endif
