/* routing.h - which poll gets which of the steps that are ready. */
#ifndef RV_DISPATCH_ROUTING_H
#define RV_DISPATCH_ROUTING_H

#include "base/err.h"
#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_kind;
struct agents;
struct rv_step;
struct rv_task;
struct seeker;

/* Where steps are handed out, in one transaction. */
struct desk {
    struct agents *agents;
    int64_t now;
    uint64_t turn;   /* of the batch */
    size_t load_max; /* so many are loaded at once */
    /* Whether the task is loaded; loads these. */
    bool (*has)(void *self, struct rv_task_id task);
    enum rv_err (*load)(void *self, const struct rv_step_id *ids, size_t count);
    /* The hint is believed only if the rows say so: then these are set, else *ret_task is NULL. */
    enum rv_err (*verify)(void *self, const struct agent_kind *kind, struct rv_step_id id,
                          const struct rv_task **ret_task, const struct rv_step **ret_step);
    /* Begins an attempt for the poll. *ret_given_at: its instant, `now` or later; 0: there is
     * none. */
    enum rv_err (*give)(void *self, struct seeker *seeker, struct rv_step_id id,
                        int64_t *ret_given_at);
    /* The transaction has handed out as many bytes as it may. */
    bool (*enough)(void *self);
    void *self;
};

/* Before a batch: a poll for so many steps will ask. */
void routing_expect(struct agent_kind *kind, uint32_t max, uint64_t turn);
/* ... the steps of the kind that come next, as many as the polls will ask for, are named once:
 * their number, RV_HEAP_LEAST_MAX at most. */
size_t routing_next(struct agent_kind *kind, uint64_t turn, int64_t now,
                    struct rv_step_id *ret_steps, size_t max);
/* The steps for which the polls have room: those that are parked, and those that were expected. */
size_t routing_room(const struct agent_kind *kind, uint64_t turn);
/* The polls of a batch that ask, the newest first, after routing_begin(). */
void routing_begin(struct agents *agents);
void routing_ask(struct seeker *seeker);
/* Hands ready steps to polls, parked ones included. */
RV_CHECK enum rv_err routing_match(const struct desk *desk);

#endif
