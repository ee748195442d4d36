/* api.h - the HTTP face of the scheduler: a thread that turns requests into calls and back. */
#ifndef RV_API_API_H
#define RV_API_API_H

#include "api/access.h"
#include "api/request.h"
#include "base/err.h"
#include "base/os/mailbox.h"
#include "base/str.h"

#include <stdint.h>

struct rv_api;
struct rv_door_tls;   /* door/tls.h */
struct rv_access_log; /* access_log.h */

/* Whether the store has not answered the scheduler for so long that calls in the mailbox are
 * refused (rv_scheduler_waits). From the api's thread. */
struct rv_api_away {
    bool (*is)(void *self); /* NULL: never */
    void *self;
};

struct rv_api_options {
    const int *sockets; /* listening; owned from then on, also if open fails */
    size_t sockets_count;
    struct rv_mailbox *mailbox; /* borrowed: where calls (struct rv_call) go */
    struct rv_access access;    /* moved: whom to let in; its keys are the thread's from then on */
    struct rv_door_tls *tls;    /* owned from then on; NULL: no TLS */
    unsigned connections_max;   /* 0: 20,000 */
    unsigned address_max;       /* of them from one address; 0: three quarters */
    int64_t patience_ms;        /* each limit of time of a connection; 0: those of the door */
    bool behind_proxy;          /* Forwarded and X-Forwarded-For tell who the client is */
    struct rv_access_log *access_log; /* borrowed; NULL: none */
    /* rv_api_wake follows calls that were finished. Else each of them wakes the thread itself. */
    bool wakes;
    /* How the store was when it was last written; RV_OK: ready; *ret_why, which lives as long as
     * the api, may say more. From the api's thread. NULL: always ready. */
    enum rv_err (*health)(void *self, const char **ret_why);
    /* Bytes of the store's files, for metrics; NULL: not known. From the api's thread. */
    int64_t (*store_bytes)(void *self);
    /* Spans sent to a collector, and dropped, for metrics; false, or NULL: there is no collector.
     * From the api's thread. */
    bool (*spans)(void *self, uint64_t *ret_sent, uint64_t *ret_dropped);
    void *self;
    struct rv_api_away away;
    struct rv_egress_hook egress;  /* on the api's thread; NULL: nobody knows */
    struct rv_secret_hook secrets; /* the same */
};

/* Starts the thread. MEMORY or IO. */
RV_CHECK enum rv_err rv_api_open(const struct rv_api_options *options, struct rv_api **ret_api);
/* New connections get this certificate; owned from then on. From any thread. */
void rv_api_renew(struct rv_api *api, struct rv_door_tls *tls);
/* From now on these are the keys that are valid, as of this change of them (rv_scheduler_keys).
 * They count for what the thread does from then on, and for calls that are finished after this.
 * From the scheduler's thread. OK: `keys` is moved, and empty. MEMORY. */
RV_CHECK enum rv_err rv_api_renew_keys(struct rv_api *api, struct rv_keys *keys, uint64_t changes);
/* From now on no new connection is taken, and requests on old ones get 503. From any thread. */
void rv_api_drain(struct rv_api *api);
/* Calls with the scheduler now. From any thread. */
unsigned rv_api_outstanding(const struct rv_api *api);
/* Calls were finished: the thread takes them. From any thread. */
void rv_api_wake(struct rv_api *api);
/* Ends the thread once every call is finished and its answer written, or `grace_ms` after the last
 * call was finished. The scheduler must finish every call that it holds, before or meanwhile. */
void rv_api_close(struct rv_api *api, int64_t grace_ms);

#endif
