/* resolver.h - addresses of names: each name is asked for once, by a few threads, and kept a while.
 *
 * libcurl would begin a thread for each transfer whose name it does not know, thousands at once.
 * Here all transfers to a name wait for one answer, which is checked and then pinned. */
#ifndef RV_OUTBOUND_RESOLVER_H
#define RV_OUTBOUND_RESOLVER_H

#include "outbound/address.h"

#include <stdbool.h>
#include <stdint.h>

enum { RV_ADDRESSES_MAX = 8 };

struct rv_addresses {
    struct rv_address at[RV_ADDRESSES_MAX];
    unsigned count;
};

enum rv_lookup {
    RV_LOOKUP_PENDING, /* wake() will be called; look again then */
    RV_LOOKUP_FOUND,
    RV_LOOKUP_FAILED /* the reason is filled in */
};

enum { RV_RESOLVER_THREADS = 4, RV_RESOLVER_NAMES = 256, RV_RESOLVER_WHY_BYTES = 160 };

struct rv_resolver_options {
    /* Asks the system; NULL: getaddrinfo(). 0, or a code of getaddrinfo(). On any thread. */
    int (*ask)(void *user, const char *host, struct rv_addresses *ret_addresses);
    void *user;
    /* Some name is known now. On any thread. */
    void (*wake)(void *waker);
    void *waker;
};

struct rv_resolver;

struct rv_resolver *
rv_resolver_new(const struct rv_resolver_options *options); /* NULL: no memory */
/* Waits for no name: threads that are in the middle of one end after it and say nothing. */
void rv_resolver_close(struct rv_resolver *resolver);
/* `now` by the monotonic clock. */
enum rv_lookup rv_resolver_look(struct rv_resolver *resolver, const char *host, int64_t now,
                                struct rv_addresses *ret_addresses,
                                char ret_why[static RV_RESOLVER_WHY_BYTES]);

#endif
