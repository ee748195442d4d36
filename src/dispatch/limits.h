/* limits.h - what an operator allows the agents of one name. */
#ifndef RV_DISPATCH_LIMITS_H
#define RV_DISPATCH_LIMITS_H

#include "base/bucket.h"
#include "base/err.h"
#include "core/agent_share.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_kind;
struct agents;
struct rv_agent_limit;

/* What this server has of a limit that several share. All zero: nothing. */
struct kind_share {
    int64_t version;
    int64_t since; /* of the shares: attempts that began later are counted by who hands out */
    uint32_t of_concurrent; /* it is a part of so much, */
    uint32_t of_per_second;
    uint32_t concurrent; /* ... this */
    uint32_t per_second;
};

/* What an operator allows the kind (limits.c); all zero: anything. */
struct kind_limit {
    uint32_t concurrent; /* 0: any number */
    uint32_t per_second; /* likewise */
    bool paused;
    struct kind_share share; /* where several servers share a store */
    int64_t counts_since;    /* of attempts that this server has handed out before, it may not
                                count all: there was no limit of open ones, or it has forgotten */
    struct rv_bucket bucket; /* what this server may begin */
    int64_t at;              /* when that was said; 0: never */
    char *by;                /* owned; NULL: nobody knows */
    uint32_t given;          /* in this batch: not held before its commit */
    bool holds;          /* a poll had room for a ready step in this batch, and it was held back */
    uint64_t changed_in; /* the batch in which it is being changed, or was */
    uint64_t read_in;    /* the batch that read its record */
    struct rv_agent_use reported;  /* what this server has reported last; server 0: nothing */
    struct rv_agent_use reporting; /* ... and reports in the batch `reports_in` */
    uint64_t reports_in;
};

/* What holds ready steps of a kind back. */
enum limit_hold { LIMIT_NONE, LIMIT_PAUSED, LIMIT_CONCURRENT, LIMIT_RATE };
/* Whether there is any limit, or a pause. */
bool kind_is_limited(const struct agent_kind *kind);
/* Whether a ready step of the kind could be handed out at `now`, as far as limits go, or what holds
 * it back. *ret_until: until when if that is known (LIMIT_RATE); else 0, it ends with an event: an
 * attempt's end, the operator's word. */
enum limit_hold limit_holds(const struct agent_kind *kind, int64_t now, int64_t *ret_until);
/* This server's part of the limit; `part` NULL: it has none. */
void limit_share(struct agent_kind *kind, const struct rv_agent_shares *shares,
                 const struct rv_agent_part *part, int64_t now);
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
