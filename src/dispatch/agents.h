/* agents.h - all that is known of agents: a cache over the open rows. */
#ifndef RV_DISPATCH_AGENTS_H
#define RV_DISPATCH_AGENTS_H

#include "base/due.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/id.h"
#include "base/map.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_instance;
struct agent_kind;
struct rv_step;
struct rv_task;

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
    int64_t limits_wake_at;      /* when a bucket has the token that a poll waits for */
    size_t instances_count;
    int64_t forgot_at; /* when those that are gone were looked for last */
    bool divides;      /* several servers share the store: limits are divided among them */
    bool recovering;   /* the walk over the open rows after a start is under way */
};

/* `circuits_max`: of one kind; 0: RV_AGENT_CIRCUITS_MAX. */
void agents_init(struct agents *agents, struct rv_hash_key key, size_t circuits_max);
void agents_done(struct agents *agents);
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
/* Another server tends the step's task from now on: nothing of it is kept. */
void agents_leave(struct agents *agents, struct rv_task_id task, const struct rv_step *step);
/* Forgets what is known of steps whose tasks are not to be kept. */
void agents_keep(struct agents *agents, bool (*keeps)(const void *self, struct rv_task_id task),
                 const void *self);

#endif
