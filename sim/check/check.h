/* check.h - the invariants of the pattern, each a function with its sentence on top. */
#ifndef RV_SIM_CHECK_H
#define RV_SIM_CHECK_H

#include "core/decide.h"
#include "sim/world/history.h"
#include "sim/cast/ledger.h"

struct bounds;
struct server;

/* All that hold between the rows of a task before and after one commit. */
void check_transition(const struct transition *t);
/* Families of it, each in the file of its name. */
void check_state(const struct transition *t);
void check_attempts(const struct transition *t);
void check_undo(const struct transition *t);
void check_leases(const struct transition *t);
void check_ladder(const struct transition *t);
void check_caught(const struct transition *t);
void check_circuits(const struct transition *t);
void check_late(const struct transition *t);
void check_delivery(const struct transition *t);
void check_record(const struct transition *t);
void check_secrets(const struct transition *t);
void check_messages(const struct transition *t);
void check_role(const struct transition *t);
void check_owner(const struct transition *t);
void check_operator(const struct transition *t);
void check_history(const struct transition *t);
/* An operator's command was answered: accepted, or refused. */
void check_commanded(struct world *w, struct rv_task_id task, struct rv_str body, bool accepted);
/* The network delivers it once more. */
void check_command_repeated(struct world *w, struct rv_str body);
/* The task's history in the store is all that was committed of it. */
void check_history_there(struct world *w, struct rv_store *store, const struct task_past *past);
/* One step was undone, to be tried with another input, and the task goes forward again. */
bool check_redone(const struct transition *t);
/* A step of the change is a pivot that was carried out, or may have been. */
bool check_pivot_met(const struct transition *t);
/* Its undo met the point of no return at work, and is taken back; what leads on from there may be
 * in the same commit. */
bool check_taken_back(const struct transition *t);
/* The same at this step, where the undo began before this commit or in it: the step is in error,
 * and no failure was counted. */
bool check_taken_back_at(const struct transition *t, const struct rv_step *step);
/* An operator's word about the step stands in its row: any, or this one. */
bool check_settled(const struct rv_step *step);
bool check_found(const struct rv_step *step, enum rv_finding finding);
/* The same, or he said so in this commit and something else since. */
bool check_found_now(const struct transition *t, const struct rv_step *step,
                     enum rv_finding finding);
/* How many late replies the task has. */
uint32_t check_late_count(struct task_past *past);
/* A cure that was named says that so many of them were seen; there were `before` when it was asked
 * for. */
void check_seen(struct world *w, struct rv_task_id task, uint32_t before, int64_t seen);
/* Whether an operator wants the step tried now, by his word of this commit. */
bool check_wanted_now(const struct transition *t, const struct rv_step *step);
/* Whether an operator resubmits a step in this commit that he takes for not done. */
bool check_assumed_now(const struct transition *t);
/* Whether an operator resubmits the step, which was in error before this commit or is since then:
 * its failures and deaths are counted anew. */
bool check_resubmitted_now(const struct transition *t, const struct step_past *past,
                           const struct rv_step *step);
void check_limits(const struct transition *t);
void check_in_line(const struct transition *t);
/* Since when the step of that row stands in line for an agent. */
int64_t check_line_since(const struct step_past *past, const struct rv_step *step);
/* How the attempt that was the newest before this commit stands after it. */
enum rv_attempt_state check_state_now(const struct transition *t, const struct step_past *past,
                                      const struct rv_step *step);

/* check_promise.c: what was said to the outside is so. */
void check_handed_out(struct world *w, const struct rv_poll *poll,
                      const struct rv_assignment *request);
/* check_delivery.c: what a poll is answered by that server, for which somebody waits.
 * `superseded`: the same poll has come once more, or the server stops. */
void check_answered(const struct server *s, const struct rv_poll *poll, bool superseded);
void check_submitted(struct world *w, struct rv_str task, const char *client);
void check_refused_submit(struct world *w, const struct rv_call *call);
/* The bodies of a reply call and of its answer. */
void check_replied(struct world *w, struct rv_str request, struct rv_str answer);
/* A token from its text. */
uint64_t check_token(struct rv_str text);
void check_operated(struct world *w, struct rv_str verb, struct rv_task_id task);
void check_all_there(struct world *w, struct rv_store *store);

/* check_effect.c: what was done outside fits. */
void check_effect_after_undo(struct world *w, const struct effect *effect, bool zombie);
void check_undo_beside_work(struct world *w, const struct effect *effect);
/* What a compensation was told of the outcome of the step with that key. */
void check_outcome(struct world *w, struct rv_str key, struct rv_str outcome);
void check_ledger(struct world *w);

/* check_secret.c: what is told to somebody whom the secret does not concern. */
void check_no_token(struct world *w, struct rv_str text, const char *where);
/* ... nor any payload. */
void check_no_secret(struct world *w, struct rv_str text, const char *where);

/* Asks for the lists in which no secret may stand. */
void check_lists(struct world *w);

/* check_bound.c: batches that the decisions of all open tasks may take where turns are small. */
uint64_t check_turns(const struct world *w);
/* check_overdue.c: the step is open, and the server may be the supervisor. */
void check_looked_at(struct world *w, const struct server *s, struct step_past *step);
/* check_fair.c: after each batch. */
void check_fair(struct world *w, struct server *s);
/* check_load.c: a batch takes few bytes: calls of some size take turns, and so do requests. */
bool check_few_bytes(const struct world *w);
/* due.c: a server reads the row of the task. */
void check_read(struct server *s, const struct rv_task *task);
/* The server starts a batch with `calls` calls. */
void check_taken(struct server *s, size_t calls);
/* After each batch. */
void check_load(struct world *w, const struct server *s);
/* check_counts.c: the counters of a server, after a batch; `good`: the store refused nothing of it
 * as a whole. */
void check_counts(struct world *w, struct server *s, bool good);
/* Of the changes that were committed together at `now`, before the history has them. */
void check_batch_bytes(struct world *w, const struct rv_batch *batch, int64_t now);
/* check_idle.c: what was written in the time in which nothing happened, since `before`, but that
 * something `waits` for a dead target. */
void check_idle(struct world *w, const struct bounds *before, bool waits);

/* check_again.c: the replies of the last call that a server answered with 503, and the next one. */
enum { REFUSED_MAX = 32 };
struct refused {
    struct rv_step_id steps[REFUSED_MAX];
    uint64_t tokens[REFUSED_MAX];
    int64_t stop_at[REFUSED_MAX]; /* on the agent's clock: from then on it is silent */
    uint32_t count;
};
void check_refused(struct world *w, struct refused *refused, struct rv_str request);
void check_sent_again(struct world *w, struct refused *refused, struct rv_str request,
                      int64_t agent_now);

/* check_role.c: the server finds that it was deposed. */
void check_deposed(struct server *s);
/* What belongs to no task was committed by that server. */
void check_role_batch(struct world *w, const struct server *s, const struct rv_batch *batch);
/* A claim of the supervisor's role was committed, of `another` process or not. */
void check_claimed(struct world *w, bool another);
/* Before the servers are killed at last. */
void check_role_end(struct world *w);

/* relay.c: a task was committed, perhaps of an order of the outbox; what became of a row; at the
 * end, all of them. */
struct outbox_row;
void check_outbox(const struct transition *t);
void check_row_settled(struct world *w, const struct outbox_row *row, struct rv_str why);
void check_outbox_end(struct world *w);
/* How many orders of the outbox were committed; adds those that have no task, or lost it. */
uint32_t check_outbox_orders(struct world *w, uint32_t *ret_lost);

/* check_end.c: what must have come to pass once faults have stopped. */
bool check_all_settled(struct world *w);
/* Whether anything waits for a target that never answers. */
bool check_waits_for_dead(const struct world *w);
void check_end(struct world *w);

/* check_circuit.c */
/* Whether an open circuit may hold back what is ready for the agent just now. */
bool check_circuit_holds(const struct world *w, const struct step_past *step);
/* Whether one that may hold it back was ever open. */
bool check_circuit_was_open(const struct world *w, const struct step_past *step);
/* Its next attempt begins with the commit, which leaves `step`. */
void check_circuit_begins(const struct transition *t, struct step_past *past,
                          const struct rv_step *step);
/* At the end: whoever waits for long has called for an operator. */
void check_waiting_called(struct world *w);

#endif
