/* service.h - what the shop's three remote services have in common: HTTP, ledger, fence, faults.
 *
 * Nothing here knows Reeve. This is how a remote service looks that an agent can rely on:
 *   - a request names its idempotency key; the same key gets the same answer and no second effect;
 *   - an undo works from the key of what it undoes; if nothing had happened, the key is barred, so
 *     that a late request with that key has no effect any more;
 *   - a request with an older fence than one that has already written for the order is refused. */
#ifndef SHOP_SERVICE_H
#define SHOP_SERVICE_H

#include "ledger.h"

struct shop_business {
    const char *name;      /* "payment" */
    const char *verb;      /* "charge": POST /charge?order=&item=&amount= */
    const char *undo_verb; /* "refund": POST /refund?order=&key=, the key of the charge */
    const char *decline;   /* the problem's type when fate says no: "payment-declined" */
    const char *undo_decline;
    /* Why the business itself cannot do it, as a problem's type, or NULL. May be NULL. */
    const char *(*objection)(const struct shop_ledger *ledger, const char *item, int64_t amount);
};

/* The whole program: NAME --ledger FILE [--port N] [--seed N] [--hang-ms N] [--die-after N], or
 * NAME --story ORDER --seed N. Prints its port when it listens. */
int shop_service_main(const struct shop_business *business, int argc, char **argv);

#endif
