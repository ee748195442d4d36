/* agent_limit.h - what an operator allows the agents of one name, and how the store keeps it. */
#ifndef RV_CORE_AGENT_LIMIT_H
#define RV_CORE_AGENT_LIMIT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/rows.h"

#include <stdbool.h>
#include <stdint.h>

/* The kind of the records that hold limits; such a record's key is the agent's name. */
#define RV_RECORD_AGENT_LIMIT "agent-limit"

struct rv_agent_limit {
    struct rv_str agent;
    uint32_t concurrent; /* open attempts at most; 0: any number */
    uint32_t per_second; /* attempts that begin; 0: any number */
    bool paused;         /* none begins */
    struct rv_str by;    /* who said so last; absent: not told */
    int64_t at;          /* when */
};

/* Whether there is anything to be kept. */
bool rv_agent_limit_any(const struct rv_agent_limit *limit);
/* The record's value, JSON. */
void rv_agent_limit_write(struct rv_buf *buf, const struct rv_agent_limit *limit);
/* INVALID: it is none; then *ret_limit is paused, since nobody knows what it allowed. MEMORY. Texts
 * are on the arena. */
RV_CHECK enum rv_err rv_agent_limit_read(struct rv_arena *arena, const struct rv_record *record,
                                         struct rv_agent_limit *ret_limit);

#endif
