/* circuit.h - open circuits: the agents' own word that a target does not answer. */
#ifndef RV_DISPATCH_CIRCUIT_H
#define RV_DISPATCH_CIRCUIT_H

#include "base/due.h"
#include "base/heap.h"
#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_kind;
struct agents;
struct rv_step;
struct rv_task;

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
