/* operator.h - somebody who resubmits, undoes and cancels tasks, at any moment. */
#ifndef RV_SIM_OPERATOR_H
#define RV_SIM_OPERATOR_H

#include "base/id.h"
#include "sim/world/net.h"

/* The outputs with which the sim's operator settles a step as done: having looked at no late
 * replies, or at all that there are. */
#define OPERATOR_SETTLES_BLINDLY "{\"settled\":\"blindly\"}"
/* The other inputs that he gives: he has looked and takes the old request for not done (he may be
 * wrong, as a late `done` then tells), or he has not. */
#define OPERATOR_EDITS_ASSUMING "{\"edited\":\"assuming\"}"
#define OPERATOR_EDITS "{\"edited\":true}"
#define OPERATOR_SETTLES_SEEING "{\"settled\":\"seeing\"}"

/* His name is this and the number of the command in its world, his reason its verb and number. */
#define OPERATOR_NAME "op-"
enum { OPERATOR_BODY_BYTES = 256, OPERATOR_SEEING_BYTES = 64 };

struct world;

/* The body of a command: `more`, a JSON object without by and reason, with them in front. */
struct rv_str operator_body(struct world *w, const char *verb, const char *more,
                            char body[static OPERATOR_BODY_BYTES]);

/* `body`, a JSON object, as given by one who has seen the late replies that the task has now. */
void operator_seeing(struct world *w, struct rv_task_id task, const char *body,
                     char seeing[static OPERATOR_SEEING_BYTES]);

void operator_new(struct world *w);
/* Something will happen to the task at that instant: perhaps several commands just then. */
void operator_beside(struct world *w, struct rv_task_id task, int64_t at);
/* Once a second. */
void operator_turn(struct world *w);
/* His word about the step is committed: it is true from now on. */
void operator_settled(struct world *w, struct rv_step_id step, bool done);
void operator_answered(struct world *w, struct exchange *x);
void operator_lost(struct world *w, struct exchange *x);

#endif
