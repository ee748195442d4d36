/* limits.h - what an operator allows the agents of one name. */
#ifndef RV_DISPATCH_LIMITS_H
#define RV_DISPATCH_LIMITS_H

#include "base/bucket.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_kind;
struct agents;
struct rv_agent_limit;

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
/* Whether there is any limit, or a pause. */
bool kind_is_limited(const struct agent_kind *kind);
/* Whether a ready step of the kind could be handed out at `now`, as far as limits go, or what holds
 * it back. *ret_until: until when if that is known (LIMIT_RATE); else 0, it ends with an event: an
 * attempt's end, the operator's word. */
enum limit_hold limit_holds(const struct agent_kind *kind, int64_t now, int64_t *ret_until);
/* How many of its steps, at most, it may hand out at `now`, as far as limits go and as far as that
 * can be known before the replies of a batch are decided: one at least, unless it is paused. */
size_t limit_room(const struct agent_kind *kind, int64_t now);
/* What the record says, once it is written. */
void limit_learn(struct agent_kind *kind, const struct rv_agent_limit *row, int64_t now);
/* Before steps are handed out in a batch. */
void limits_begin(struct agents *agents);
/* May a step of the kind be handed out to a poll that has room for it? False is remembered ... */
bool limit_lets(struct agent_kind *kind, uint64_t turn, int64_t now);
/* A step was; its attempt begins at `at`, `now` or later. */
void limit_take(struct agent_kind *kind, int64_t now, int64_t at);
/* ... and after the commit: true: it need not wait any longer. */
bool limits_again(struct agents *agents, int64_t now);

#endif
