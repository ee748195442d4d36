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

struct rv_api_options {
    int listen_fd;              /* owned from then on: a listening socket */
    struct rv_mailbox *mailbox; /* borrowed: where calls (struct rv_call) go */
    struct rv_access access;    /* moved: whom to let in; its keys are the thread's from then on */
    const char *tls_cert;       /* PEM, borrowed until open returns; NULL: no TLS */
    const char *tls_key;
    unsigned connections_max; /* 0: 20,000 */
    size_t heads_bytes;       /* of a connection, for the heads of request and answer; 0: 5 KiB */
    int64_t patience_ms;      /* for a request to arrive whole, and for an answer to be taken;
                                  * also how long a connection may rest. 0: 60 s */
    /* How the store was when it was last written; RV_OK: ready. From the api's thread. NULL: always
     * ready. */
    enum rv_err (*health)(void *self);
    /* Bytes of the store's files, for metrics; NULL: not known. From the api's thread. */
    int64_t (*store_bytes)(void *self);
    /* Spans sent to a collector, and dropped, for metrics; false, or NULL: there is no collector.
     * From the api's thread. */
    bool (*spans)(void *self, uint64_t *ret_sent, uint64_t *ret_dropped);
    void *self;
    struct rv_egress_hook egress; /* on the api's thread; NULL: nobody knows */
};

/* Starts the thread. MEMORY or IO. */
RV_CHECK enum rv_err rv_api_open(const struct rv_api_options *options, struct rv_api **ret_api);
/* From now on no new connection is taken, and requests on old ones get 503. From any thread. */
void rv_api_drain(struct rv_api *api);
/* Calls with the scheduler now. From any thread. */
unsigned rv_api_outstanding(const struct rv_api *api);
/* Ends the thread once every call is finished and its answer written, or `grace_ms` after the last
 * call was finished. The scheduler must finish every call that it holds, before or meanwhile. */
void rv_api_close(struct rv_api *api, int64_t grace_ms);

/* Whether others than this machine can reach the address: "127.0.0.1:7733", "[::1]:0" and
 * "localhost:7733" only this one can. INVALID: no such address. */
RV_CHECK enum rv_err rv_api_address(struct rv_str text, bool *ret_public);
/* A listening socket there; port 0 takes a free one, *ret_port is what it became. INVALID: no such
 * address. IN_USE: the port is taken. IO: errno tells. */
RV_CHECK enum rv_err rv_api_listen(struct rv_str text, int *ret_fd, uint16_t *ret_port);

#endif
