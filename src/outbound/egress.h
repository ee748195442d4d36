/* egress.h - where calls may go: a list that is empty at first, and a check of every address. */
#ifndef RV_OUTBOUND_EGRESS_H
#define RV_OUTBOUND_EGRESS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "outbound/target.h"

#include <stdbool.h>

/* An entry is `scheme://host[:port][/path]`. The host may be a name, an address, `*.example.com`
 * (all names below it) or `*` (all names and public addresses). Without a port it is the scheme's;
 * a path allows all paths below it.
 *
 * Public addresses need no more. One of this machine or network is called only where an entry
 * names that very host and writes its port; a special one (link-local, metadata, 0.0.0.0,
 * multicast) only where an entry names the address itself and writes its port. So a name that
 * somebody else controls leads nowhere inside (docs/decisions). A public address that this
 * machine has, which may be this server's, is called only where an entry names that very host. */
struct rv_egress;

enum { RV_EGRESS_ENTRIES_MAX = 1000, RV_EGRESS_WHY_BYTES = 1024 };

struct rv_egress *rv_egress_new(void); /* NULL: no memory */
void rv_egress_free(struct rv_egress *egress);
/* Nothing may be called. */
bool rv_egress_empty(const struct rv_egress *egress);
/* Before any thread looks at it. INVALID with the reason and the cure, LIMIT, MEMORY. */
RV_CHECK enum rv_err rv_egress_add(struct rv_egress *egress, struct rv_str entry,
                                   char ret_why[static RV_EGRESS_WHY_BYTES]);

/* How far inside a call to a target may lead. */
enum rv_egress_reach {
    RV_REACH_PUBLIC, /* public addresses of others */
    RV_REACH_NAMED,  /* and those that this machine has: the host is named */
    RV_REACH_HOST,   /* and this machine and network: host and port are named */
    RV_REACH_ADDRESS /* and special ones: the address itself and the port are named */
};

/* Whether the target may be called at all. REFUSED with words that name the flag to copy. */
RV_CHECK enum rv_err rv_egress_check(const struct rv_egress *egress, const struct rv_target *target,
                                     enum rv_egress_reach *ret_reach,
                                     char ret_why[static RV_EGRESS_WHY_BYTES]);
/* Whether one of its addresses may be connected to. */
bool rv_egress_reaches(enum rv_egress_reach reach, const struct rv_address *address);
/* The words for an address that may not. */
void rv_egress_address_why(const struct rv_target *target, const struct rv_address *address,
                           char ret_why[static RV_EGRESS_WHY_BYTES]);
/* All of it for a URL as written, without resolving: for a warning ahead of time. */
RV_CHECK enum rv_err rv_egress_check_url(const struct rv_egress *egress, struct rv_str url,
                                         char ret_why[static RV_EGRESS_WHY_BYTES]);

/* The same for warnings: why not, on the arena; absent: the URL may be called. `egress` is a struct
 * rv_egress. */
struct rv_str rv_egress_refusal(void *egress, struct rv_arena *arena, struct rv_str url);

#endif
