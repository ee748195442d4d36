/* agent_share.h - how a limit of an agent is divided among the servers that share a store. */
#ifndef RV_CORE_AGENT_SHARE_H
#define RV_CORE_AGENT_SHARE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "core/agent_limit.h"
#include "core/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of the records: the shares of one agent, its name being the key; what one server makes
 * of them, the key being its number, a slash, and the agent's name. */
#define RV_RECORD_AGENT_SHARES "agent-shares"
#define RV_RECORD_AGENT_USE "agent-use"

enum { RV_SERVERS_MAX = 255 };

/* What one server may have open of an agent, and begin in a second. */
struct rv_agent_part {
    uint8_t server;
    uint32_t concurrent; /* nothing, if the server does not count since then (rv_agent_use) */
    uint32_t per_second;
    int64_t counts_since;
};

/* The shares of all. Each write has the next version. */
struct rv_agent_shares {
    int64_t version;  /* 0: nothing was divided yet */
    int64_t limit_at; /* of the limit that is divided, and what it allows */
    uint32_t concurrent;
    uint32_t per_second;
    /* Attempts that began later are counted by the server that handed them out. 0: not yet. */
    int64_t since;
    bool adopting; /* open tasks had an owner that did not live: what is open of them may be
                      missing in the reports about this version */
    uint32_t turn; /* whose share is the larger one, where they cannot be equal: the next one's each
                      time when something is given */
    struct rv_agent_part *parts; /* by ascending number */
    size_t parts_count;
};

/* What a server reports. */
struct rv_agent_use {
    uint8_t server;
    int64_t version;      /* of the shares that it follows */
    int64_t limit_at;     /* of the limit that it knows */
    uint32_t open;        /* attempts that it has handed out, and that may be open */
    uint32_t older;       /* others of its tasks, that began by `since` of those shares */
    int64_t counts_since; /* it knows of those only that it has handed out later */
    uint32_t wanted;      /* steps that it could hand out if it had a larger share */
    uint32_t waiting;     /* others that are ready there, and for which nobody polls there */
    uint32_t idle;        /* steps that its polls could take beside those that are wanted */
};

/* JSON, for the records' values; INVALID: it is none. MEMORY. */
void rv_agent_shares_write(struct rv_buf *buf, const struct rv_agent_shares *shares);
RV_CHECK enum rv_err rv_agent_shares_read(struct rv_arena *arena, const struct rv_record *record,
                                          struct rv_agent_shares *ret_shares);
void rv_agent_use_write(struct rv_buf *buf, const struct rv_agent_use *use);
/* Whether it is about this agent. */
bool rv_agent_use_is_of(const struct rv_record *record, struct rv_str agent);
RV_CHECK enum rv_err rv_agent_use_read(struct rv_arena *arena, const struct rv_record *record,
                                       struct rv_agent_use *ret_use, struct rv_str *ret_agent);

/* What is known when shares are divided. */
struct rv_agent_division {
    const struct rv_agent_limit *limit;
    const struct rv_agent_use *uses; /* of this agent */
    size_t uses_count;
    const uint8_t *servers; /* those that live, by ascending number */
    size_t servers_count;
    bool adopted; /* no open task has an owner that does not live */
    int64_t now;
};

/* Divides anew. What is given never exceeds the limit in sum, counting for each server what it may
 * still hold: so a share is taken back first, and given to another one once the reports of all
 * servers follow that. Under a lower limit nobody begins anything before the reports show that it
 * is kept. *ret_changed: the shares are to be written. MEMORY. */
RV_CHECK enum rv_err rv_agent_shares_divide(struct rv_arena *arena,
                                            const struct rv_agent_division *division,
                                            struct rv_agent_shares *shares, bool *ret_changed);
/* The part of the server; NULL: it has none. */
const struct rv_agent_part *rv_agent_shares_part(const struct rv_agent_shares *shares,
                                                 uint8_t server);

#endif
