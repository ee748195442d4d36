/* kind.h - the agents of one name: what waits for them, and who of them is there. */
#ifndef RV_DISPATCH_KIND_H
#define RV_DISPATCH_KIND_H

#include "base/heap.h"
#include "base/map.h"
#include "dispatch/circuit.h"
#include "dispatch/limits.h"
#include "dispatch/seeker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_instance;
struct agents;
struct hunger;
struct seeker;

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
    struct hunger *hunger;     /* owned: how its steps are looked for elsewhere; NULL: not yet */
    uint32_t held_count;       /* of all instances */
    uint32_t ours_count;       /* of these, handed out by this process */
    struct seeker *asking;     /* borrowed: the calls of this batch that ask, in order */
    struct seeker_list parked; /* polls, owned by the scheduler's parking */
    size_t parked_count;
    size_t expected; /* steps that the polls of the batch `expected_in` will ask for */
    uint64_t expected_in;
    uint64_t named_in; /* ... for which the next ones were named */
    bool stirs;        /* in the list of those that a batch looks at */
    struct agent_kind *stirs_next;
    struct agent_kind *next;
};

/* The kind is looked at in this batch, or the next one: a step is ready, a poll asks, a limit
 * counts. */
void kind_stir(struct agent_kind *kind);
/* Removes the void entries from the heaps of the kind, so that their counts are exact. */
void kind_sweep(struct agent_kind *kind);
/* Attempts of it that another process has handed out and this server counts, that began by `since`:
 * those of its tasks, and others that have left it less than `keep_ms` ago. */
uint32_t kind_older(struct agent_kind *kind, int64_t since, int64_t now, int64_t keep_ms);
/* Whether a step is in the queue. Takes the void entries from its head. */
bool kind_any_ready(struct agent_kind *kind);
/* The steps that wait for an agent: those in the queue, also behind a circuit, and those that were
 * sent back. *ret_since, which may be NULL: since when the oldest waits; 0: none waits. O(steps),
 * without it O(steps that were sent back). */
void kind_waiting(const struct agent_kind *kind, size_t *ret_count, int64_t *ret_since);

#endif
