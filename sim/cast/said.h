/* said.h - what was said between agents and servers, as far as checkers compare it with the rows.
 */
#ifndef RV_SIM_SAID_H
#define RV_SIM_SAID_H

#include "base/id.h"
#include "base/map.h"
#include "scheduler/call.h"

#include <stdbool.h>
#include <stdint.h>

struct world;
struct server;
struct served;

struct said {
    struct rv_map done;       /* (task, step): an agent has said `done` of one of its attempts */
    struct rv_map confirmed;  /* (agent and instance, poll): when a server learned that it came */
    struct rv_map confirming; /* (agent and instance, poll): when it first sent that it came */
    struct rv_map newest; /* (agent and instance, server): when the newest poll there was sent */
    struct rv_map left;   /* token: an answer with the attempt has left a server */
    struct rv_map tried;  /* token: its agent has begun to work on it */
    struct rv_map named;  /* token: hash of the target that a failure of the attempt named */
    struct rv_map shut;   /* (agent, target): until when that circuit is open, as the rows say */
};

void said_new(struct world *w);
void said_free(struct world *w);

/* The servers' hooks: a call has arrived; it is in the hands of the scheduler; a poll's answer
 * leaves, to somebody who waits for it. */
void said_arrived(struct world *w, const struct rv_call *call);
void said_taken(const struct server *s, const struct served *served);
void said_left(struct world *w, const struct rv_poll *poll);

void said_tried(struct world *w, struct rv_str token);
/* Until when the circuit of the agent's target is open; what ends earlier than known changes
 * nothing. Both are hashes; the target of the circuit of the whole agent is that of "". */
void said_shut(struct world *w, uint64_t agent, uint64_t target, int64_t until);

/* The target that a failure of the attempt named, as a hash; 0: none. */
uint64_t said_target(const struct world *w, uint64_t token);
/* It is closed. */
void said_shut_no_more(struct world *w, uint64_t agent, uint64_t target);
bool said_was_tried(const struct world *w, uint64_t token);
/* -1: it was never open. */
int64_t said_shut_until(const struct world *w, uint64_t agent, uint64_t target);
bool said_done(const struct world *w, struct rv_task_id task, uint32_t step);
bool said_has_left(const struct world *w, uint64_t token);
/* When the agent confirmed the poll for the last time, to whichever server; -1: not at all, or the
 * server has no poll of it from that time or after. `holder` as history_holder() makes it. */
int64_t said_confirmed_at(const struct server *s, uint64_t holder, uint64_t poll);

/* Whether a batch is committed just now: a commit whose outcome was not known may be seen long
 * after it, when what was in hand is gone. */
bool said_knows(const struct world *w);
/* What the batch under way has in hand about the attempt, and how long ago it arrived: the first
 * reply (NULL: none), and whether a lease is to be renewed. */
const struct rv_reply_item *said_reply(const struct world *w, const struct rv_step_id *step,
                                       uint64_t token, int64_t *ret_age_ms);
/* The first such reply that the server has in hand, be it in a batch or beside the batches. */
const struct rv_reply_item *said_in_hand(const struct server *s, const struct rv_step_id *step,
                                         uint64_t token, int64_t *ret_age_ms);
bool said_renewal(const struct world *w, const struct rv_step_id *step, uint64_t token,
                  int64_t *ret_age_ms);
/* Whether a reply or a renewal has arrived at the server that commits, and is not in hand yet. */
bool said_waits(const struct world *w, const struct rv_step_id *step, uint64_t token,
                int64_t *ret_age_ms);

#endif
