/* sent_back.h - steps that their agent has sent back for a target. */
#ifndef RV_DISPATCH_SENT_BACK_H
#define RV_DISPATCH_SENT_BACK_H

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

struct agent_kind;
struct rv_step;
struct rv_task;

/* The step's row as committed: whether its agent has sent it back for its target. MEMORY: it is
 * found by its circuit alone, and not counted. */
RV_CHECK enum rv_err sent_back_see(struct agent_kind *kind, const struct rv_task *task,
                                   const struct rv_step *step);
/* The row says that it waits no more. */
void sent_back_forget(struct agent_kind *kind, struct rv_step_id step);
/* The first in line of those that were sent back for the target, absent: for any; number 0: none. A
 * hint, which the caller verifies against the row. */
struct rv_step_id sent_back_first(const struct agent_kind *kind, struct rv_str target);

#endif
