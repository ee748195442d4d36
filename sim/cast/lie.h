/* lie.h - agents that lie: replies to another step, with another's token, or no replies at all. */
#ifndef RV_SIM_LIE_H
#define RV_SIM_LIE_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct world;

/* After FAULT_LIE has struck: the body of a lie by an agent that holds an attempt (step, token),
 * and perhaps another one. */
void lie_write(struct world *w, struct rv_buf *body, const char *step, const char *token,
               const char *other_step);
/* I-06: a reply with a token that is not its step's is refused; what is no reply at all is refused
 * as a whole; and nothing of either is recorded. */
void check_lie(struct world *w, int status, struct rv_str answer);

#endif
