/* agents.h - what the scheduler remembers of agents: kinds, instances, attempts they hold,
 * circuits, limits. */
#ifndef RV_DISPATCH_AGENTS_H
#define RV_DISPATCH_AGENTS_H

#include "base/bucket.h"
#include "base/due.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/id.h"
#include "base/map.h"
#include "base/str.h"
#include "core/rows.h"
#include "dispatch/health.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of it is a cache over the open rows: agents_see brings it up to date from a step's row, after
 * a commit as well as in the scan after a start. Nothing here is believed without the row. */

struct pending;

/* Calls in the scheduler's hands, in order of arrival (parking.c). */
struct pending_list {
    struct pending *first;
    struct pending *last;
};

/* An answer that took requests to an instance. Confirmed once the instance has shown that it came.
 * */
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

/* An attempt that an instance holds. */
struct held {
    struct rv_step_id step;
    uint64_t token;
    uint64_t boot;    /* hash of the boot id that took it */
    int64_t revision; /* of its task, when it was seen last */
    int64_t complete_by;
    bool revoked;
    bool cancel_told;
    struct delivery *delivery;       /* borrowed from the instance */
    struct agent_instance *instance; /* borrowed */
    struct held *next;               /* in the instance's list */
    struct held *prev;
    struct held *mate_next; /* in the delivery's list */
    struct held *mate_prev;
};

/* A boot id of an instance that another one has followed. A poll of it that was under way for long
 * must not end what the next process has taken; but the second different one says that the process
 * lives, and that it was the other whose poll came late. */
struct boot_left {
    uint64_t boot;
    uint64_t poll; /* hash of the poll that came since; 0: none did */
};

enum { BOOTS_LEFT = 4, POLLS_SEEN = 16 };

struct agent_instance {
    char *name;                              /* owned, terminated */
    uint64_t boot;                           /* hash of the boot id that polled last; 0: none yet */
    struct boot_left boots_left[BOOTS_LEFT]; /* the newest first */
    uint64_t polls_seen[POLLS_SEEN];         /* hashes of its last polls, a ring */
    bool polls_heard[POLLS_SEEN];            /* it has confirmed the answer to that poll */
    size_t polls_next;
    struct agent_kind *kind; /* borrowed */
    int64_t seen_at;
    bool left;            /* its last poll said that it stops */
    bool overlaps;        /* has had two polls out at once */
    struct pending *asks; /* borrowed: its newest poll of the batch `asks_in` */
    uint64_t asks_in;
    uint32_t held_count;
    struct health health;
    uint32_t given; /* in the batch `given_in`: not held before its commit */
    uint64_t given_in;
    struct pending_list parked; /* its parked polls, by `its_next`; borrowed */
    uint32_t parked_count;
    uint32_t cancels; /* revoked attempts that it was not told of */
    bool news;        /* in the list of those whose parked polls are looked at after the commit */
    struct agent_instance *news_next;
    struct held *held;
    uint32_t held_before;         /* attempts that another boot id has taken than the last one */
    struct delivery *unconfirmed; /* owned by what they took */
    struct agent_instance *next;
};

/* An attempt that was let through as a circuit's probe. It is known until it ends: if its target
 * answers, the circuit closes, whichever attempt is its probe by then. */
struct probe {
    struct rv_step_id step;
    struct circuit *circuit; /* borrowed */
    struct probe *next;      /* among those of the circuit */
    struct probe *prev;
};

/* An open circuit: the agent's own word that a target does not answer. */
struct circuit {
    char *target; /* owned; "": the whole agent */
    int64_t until;
    struct probe *probe;     /* holds back what waits; NULL: none does */
    struct probe *probes;    /* owned: all that are out, also those that hold nothing back */
    struct rv_heap waiting;  /* ready steps that wait for the circuit, ranked as in `ready` */
    size_t sent_back;        /* steps for it that are not ready yet (circuits_count_waiting) */
    struct agent_kind *kind; /* borrowed */
    uint64_t hash;           /* of the target */
    bool idle;               /* its instant has passed, and nobody waits: nothing is due */
    int64_t idle_since;
    struct rv_due due; /* when it is looked at, unless it is idle */
    struct circuit *due_next;
    struct circuit *next; /* in its list of the kind */
    struct circuit *prev;
};

/* Circuits of a kind, the oldest first. */
struct circuit_list {
    struct circuit *first;
    struct circuit *last;
    size_t count;
};

/* What a reply that counts has told of its target, beside what its step's row says. */
struct circuit_word {
    struct rv_str target; /* absent: nothing; its circuit is open */
    int64_t until;
    bool answers; /* the target has answered: it refuses for good */
};

/* What an operator allows the kind (limits.c); all zero: anything. */
struct kind_limit {
    uint32_t concurrent; /* 0: any number */
    bool paused;
    struct rv_bucket bucket;
    int64_t at;          /* when that was said; 0: never */
    char *by;            /* owned; NULL: nobody knows */
    uint32_t given;      /* in this batch: not held before its commit */
    bool holds;          /* a poll had room for a ready step in this batch, and it was held back */
    uint64_t changed_in; /* the batch in which it is being changed, or was */
    uint64_t read_in;    /* the batch that read its record */
};

/* What holds ready steps of a kind back. */
enum limit_hold { LIMIT_NONE, LIMIT_PAUSED, LIMIT_CONCURRENT, LIMIT_RATE };

struct agent_kind {
    struct agents *agents;             /* borrowed: lives longer */
    char *name;                        /* owned, terminated */
    struct rv_heap ready;              /* (rank of its place, task, step number) */
    struct rv_map queued;              /* (task, number) in the heap, or waiting for a circuit */
    struct rv_map gone;                /* (task, number) with an entry in a heap that is void */
    struct agent_instance *instances;  /* owned */
    struct circuit_list circuits;      /* owned: those that are open */
    struct circuit_list circuits_idle; /* owned */
    struct rv_map sent_back;           /* (task, number) -> hash of the target (sent_back.c) */
    struct rv_map sent_back_ranks;     /* (task, number) -> its rank, of the same steps */
    struct rv_map sent_back_since;     /* (task, number) -> since when it waits, likewise */
    struct rv_map circuits_by_target;  /* hash -> struct circuit *, of both lists */
    struct kind_limit limit;
    uint32_t held_count;        /* of all instances */
    struct pending *asking;     /* borrowed: the calls of this batch that ask, in order */
    struct pending_list parked; /* polls, owned by the scheduler's parking */
    size_t parked_count;
    bool stirs; /* in the list of those that a batch looks at */
    struct agent_kind *stirs_next;
    struct agent_kind *next;
};

struct agents {
    struct rv_hash_key hash_key;
    struct agent_kind *kinds; /* owned */
    /* Where something may have to be matched, by turns. All others have no ready step for a parked
     * poll, and nothing that a limit counts or holds in this batch (kinds_settle). */
    struct agent_kind *stirring;
    struct agent_kind *stirring_last;
    size_t concurrents; /* kinds whose open attempts are limited */
    struct rv_map kinds_by_hash;
    struct rv_map instances; /* (kind, hash of the name) -> struct agent_instance * */
    struct agent_instance *news;
    struct rv_map held;          /* (task, number) -> struct held * */
    struct rv_map deliveries;    /* (instance, hash of the poll) -> struct delivery * */
    struct rv_dues circuits_due; /* circuits of all kinds */
    struct rv_map probes;        /* (task, number) -> struct probe * */
    size_t circuits_max;         /* of one kind, beside that of the whole agent */
    size_t circuits_count;       /* of all kinds */
    struct rv_heap seekers;      /* (rank, poll, place): those that are compared (routing.c) */
    int64_t limits_next_at;      /* when the records of limits are read again */
    int64_t limits_wake_at;      /* when a bucket has the token that a poll waits for */
    size_t instances_count;
    int64_t forgot_at; /* when those that are gone were looked for last */
    bool recovering;   /* the walk over the open rows after a start is under way */
};

/* An instance that has not polled for so long is not connected: a poll waits at most 50 s. */
enum { CONNECTED_MS = 60 * 1000 };
/* A level of priority is worth so much waiting: nothing starves. */
enum { PRIORITY_WORTH_MS = 10000 };
/* An instance with two polls out may have an answer on its way while it sends the next poll. */
enum { LOST_GRACE_MS = 1000 };

/* `circuits_max`: of one kind; 0: RV_AGENT_CIRCUITS_MAX. */
void agents_init(struct agents *agents, struct rv_hash_key key, size_t circuits_max);
void agents_done(struct agents *agents);
/* Whether it polls, or would poll soon. */
bool instance_connected(const struct agent_instance *instance, int64_t now);
/* Whether operators see it: it is connected, or has work. What is known of others is kept for a
 * while, in case they come back. */
bool instance_shown(const struct agent_instance *instance, int64_t now);

/* Found or made; NULL when memory is out. */
struct agent_kind *agents_kind(struct agents *agents, struct rv_str name);
struct agent_instance *agents_instance(struct agents *agents, struct agent_kind *kind,
                                       struct rv_str name);
/* Between batches: forgets instances, circuits and kinds that nothing refers to and that were not
 * seen for a while, so that names which never come back do not fill the memory. */
void agents_forget(struct agents *agents, int64_t now);
/* Found, or NULL. */
struct agent_kind *agents_kind_find(const struct agents *agents, struct rv_str name);
struct agent_instance *agents_instance_find(const struct agents *agents,
                                            const struct agent_kind *kind, struct rv_str name);
/* The kind is looked at in this batch, or the next one: a step is ready, a poll asks, a limit
 * counts. */
void kind_stir(struct agent_kind *kind);
/* After the commit: what no batch needs to look at leaves the list. */
void kinds_settle(struct agents *agents);
/* There may be something for the polls of the instance that are parked. */
void agents_news(struct agents *agents, struct agent_instance *instance);

/* The step's row as committed: who holds it, does it wait for an agent. `ours`: this process has
 * just handed it out; else whether the answer arrived is not known here (decision 006). */
RV_CHECK enum rv_err agents_see(struct agents *agents, const struct rv_task *task,
                                const struct rv_step *step, bool ours, int64_t now);
/* The same for a step of a task that waits for its operator, and was not changed with it: nothing
 * else waits for what becomes of its attempt. */
void agents_see_parked(struct agents *agents, const struct rv_task *task,
                       const struct rv_step *step);
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
/* Removes the void entries from the heaps of the kind, so that their counts are exact. */
void kind_sweep(struct agent_kind *kind);
/* The steps that wait for an agent: those in the queue, also behind a circuit, and those that were
 * sent back. *ret_since, which may be NULL: since when the oldest waits; 0: none waits. O(steps),
 * without it O(steps that were sent back). */
void kind_waiting(const struct agent_kind *kind, size_t *ret_count, int64_t *ret_since);
/* The next hint of the kind and its place; the caller verifies it against the row. */
bool agents_ready_take(struct agent_kind *kind, struct rv_step_id *ret_step,
                       struct ready_place *ret_place);
/* Puts a hint back, to its place, that could not be used. */
void agents_ready_back(struct agent_kind *kind, struct rv_step_id step, struct ready_place place);

/* The delivery of that poll, or NULL. */
struct delivery *delivery_find(const struct agent_instance *instance, struct rv_str poll);
/* The instance has the answer. */
void delivery_confirm(struct delivery *delivery);
/* The boot id that polled last is that one. */
void instance_boots(struct agent_instance *instance, uint64_t boot);
void held_remove(struct agents *agents, struct held *held);
struct held *held_find(const struct agents *agents, struct rv_step_id step);

/* Whether there is any limit, or a pause. */
bool kind_is_limited(const struct agent_kind *kind);
/* Whether a ready step of the kind could be handed out at `now`, as far as limits go, or what holds
 * it back. *ret_until: until when if that is known (LIMIT_RATE); else 0, it ends with an event: an
 * attempt's end, the operator's word. */
enum limit_hold limit_holds(const struct agent_kind *kind, int64_t now, int64_t *ret_until);

/* Whether there is a circuit with which the step would wait. */
bool circuit_waits(const struct agent_kind *kind, const struct rv_step *step);
/* May the step be handed out, as far as circuits go? False: it waits with the circuit. True may
 * make it the probe. */
bool circuit_lets(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step,
                  int64_t now);
/* The circuit that holds the step back at `now`, or NULL. */
const struct circuit *circuit_of(const struct agent_kind *kind, const struct rv_step *step,
                                 int64_t now);
/* A reply that counts has told this of the step's target. Before circuit_see for that step. */
void circuit_hear(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step,
                  const struct circuit_word *word);
/* The probe's attempt has ended, or a circuit was reported: from the row as committed. */
void circuit_see(struct agent_kind *kind, const struct rv_task *task, const struct rv_step *step,
                 int64_t now);
/* A circuit whose instant has passed releases one of its steps as a probe. A probe that nobody
 * holds, or that has outlived its complete-by, does not keep the others waiting. Looks only at
 * circuits that are due. */
void circuits_tick(struct agents *agents, int64_t now);
/* The step's row as committed: whether its agent has sent it back for its target. MEMORY: it is
 * found by its circuit alone, and not counted. */
RV_CHECK enum rv_err sent_back_see(struct agent_kind *kind, const struct rv_task *task,
                                   const struct rv_step *step);
/* The row says that it waits no more. */
void sent_back_forget(struct agent_kind *kind, struct rv_step_id step);
/* The first in line of those that were sent back for the target, absent: for any; number 0: none. A
 * hint, which the caller verifies against the row. */
struct rv_step_id sent_back_first(const struct agent_kind *kind, struct rv_str target);
/* That of the target, open or not, or NULL. */
struct circuit *circuit_find(const struct agent_kind *kind, struct rv_str target);
bool circuit_is_open(const struct circuit *circuit, int64_t now);
/* The rest of its time is forgotten: whoever comes next is its probe. */
void circuit_expire(struct circuit *circuit, int64_t now);
/* Counts the steps that were sent back for each open circuit, and are not ready yet. */
void circuits_count_waiting(struct agent_kind *kind);
/* All steps that wait for it, as counted last. */
static inline size_t circuit_waiting(const struct circuit *circuit)
{
    return circuit->waiting.count + circuit->sent_back;
}

/* The worst of the open circuits, at most `max`: that of the whole agent, then those for which most
 * steps wait, then those that stay open longest. Gives their number. */
size_t circuits_worst(const struct agent_kind *kind, size_t max, const struct circuit **ret_worst);
/* A hint of the first step in the circuit's line; number 0: none waits there. */
struct rv_step_id circuit_first(const struct circuit *circuit);
/* The step holds nothing back any longer: its attempt may never end. */
void circuit_unprobe(struct agents *agents, struct rv_step_id id);
/* Forgets circuits that nobody has waited for since `before`. */
void circuits_forget(struct agent_kind *kind, int64_t before);
/* For kind_free: out of no list, no heap. */
void circuit_free(struct circuit *circuit);

#endif
