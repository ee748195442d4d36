/* ready.h - the steps that wait for an agent, in line. */
#ifndef RV_DISPATCH_READY_H
#define RV_DISPATCH_READY_H

#include "base/err.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

struct agent_kind;
struct agents;
struct rv_step;
struct rv_task;

/* The step does not wait for an agent. */
void agents_unready(struct agents *agents, struct rv_task_id task, const struct rv_step *step);

/* A step's place in line: its age, less a bonus for its task's priority. It keeps the place until
 * it is tried. */
struct ready_place {
    int64_t rank;
    int64_t since; /* it has waited since then */
};

struct ready_place ready_place(const struct rv_task *task, const struct rv_step *step);
/* What `queued` has of a step: since when it waits, and whether it waits behind a circuit. */
enum { QUEUED_BEHIND = 1 };

static inline uint64_t queued_mark(struct ready_place place, bool behind)
{
    return (uint64_t)place.since << 1 | (behind ? QUEUED_BEHIND : 0);
}

static inline int64_t queued_since(uint64_t mark)
{
    return (int64_t)(mark >> 1);
}

/* A hint that the step is ready; a second one is nothing, unless an operator insists on a step that
 * waits behind a circuit. */
RV_CHECK enum rv_err agents_ready(struct agents *agents, const struct rv_task *task,
                                  const struct rv_step *step);
/* The next hint of the kind and its place; the caller verifies it against the row. */
bool agents_ready_take(struct agent_kind *kind, struct rv_step_id *ret_step,
                       struct ready_place *ret_place);
/* Puts a hint back, to its place, that could not be used. */
void agents_ready_back(struct agent_kind *kind, struct rv_step_id step, struct ready_place place);

#endif
