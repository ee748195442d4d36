/* held.h - attempts that instances hold, and the answers that took them there. */
#ifndef RV_DISPATCH_HELD_H
#define RV_DISPATCH_HELD_H

#include "base/id.h"
#include "base/str.h"
#include "core/state.h"

#include <stdbool.h>
#include <stdint.h>

struct agent_instance;
struct agents;

/* An answer that took requests to an instance. Confirmed once the instance shows that it has the
 * answer. */
struct delivery {
    char *poll; /* owned, terminated */
    int64_t answered_at;
    uint32_t answers; /* that carried requests: a repeated poll has several */
    bool confirmed;
    uint64_t hash;                   /* of the poll */
    struct agent_instance *instance; /* borrowed */
    struct held *held;               /* what it took, by `mate_next`; never none */
    struct delivery *next;           /* in the instance's list of those that are not confirmed */
    struct delivery *prev;
};

/* What calls tell of the end of an attempt: its process is gone; its answer was lost, perhaps; its
 * answer never left. An end of one kind may come to nothing where one of another kind does not. */
enum ending_kind { ENDING_LOST, ENDING_UNHEARD, ENDING_UNMADE, ENDING_KINDS };

/* An attempt that an instance holds. */
struct held {
    struct rv_step_id step;
    uint64_t token;
    uint64_t boot;    /* hash of the boot id that took it */
    int64_t revision; /* of its task, when it was seen last */
    int64_t complete_by;
    int64_t attempt_at;
    bool ours;       /* this process has handed it out */
    bool left;       /* its task is another server's by now, */
    int64_t left_at; /* ... as was seen at this instant; 0: not yet */
    bool revoked;
    bool cancel_told;
    /* For each kind: the batch that has decided such an end last, whatever came of it; 0: none. */
    uint64_t over_in[ENDING_KINDS];
    struct delivery *delivery;       /* borrowed from the instance */
    struct agent_instance *instance; /* borrowed */
    struct held *next;               /* in the instance's list */
    struct held *prev;
    struct held *mate_next; /* in the delivery's list */
    struct held *mate_prev;
};

/* An instance with two polls out may have an answer on its way while it sends the next poll. */
enum { LOST_GRACE_MS = 1000 };
/* The delivery of that poll, or NULL. */
struct delivery *delivery_find(const struct agent_instance *instance, struct rv_str poll);
/* The instance has the answer. */
void delivery_confirm(struct delivery *delivery);
void held_remove(struct agents *agents, struct held *held);
struct held *held_find(const struct agents *agents, struct rv_step_id step);
enum ending_kind ending_kind(enum rv_attempt_state how, enum rv_effect effect);

#endif
