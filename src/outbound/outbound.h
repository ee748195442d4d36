/* outbound.h - all HTTP that the server sends: one thread, one list of where it may go.
 *
 * A request is copied, checked against the egress list, its name resolved, each address checked,
 * the checked addresses pinned, and only then connected to; the socket's address is checked once
 * more when it is opened. Each redirect goes that way anew. No proxy, cookie or .netrc of the
 * environment is used. `done` is called exactly once for each request that was submitted, on the
 * outbound thread: it must be quick, and put what it hears into a mailbox. */
#ifndef RV_OUTBOUND_OUTBOUND_H
#define RV_OUTBOUND_OUTBOUND_H

#include "base/err.h"
#include "base/str.h"
#include "outbound/egress.h"
#include "outbound/resolver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RV_OUTBOUND_REQUESTS_MAX = 20000,   /* submitted and not done; more are BUSY */
    RV_OUTBOUND_HEAD_BYTES_MAX = 65536, /* of an answer */
    RV_OUTBOUND_HOPS_MAX = 5
};

enum rv_outcome {
#define RV_OUTCOME(name, text) RV_OUTCOME_##name,
#include "outbound/tbl/outcome.def"
#undef RV_OUTCOME
    RV_OUTCOME_COUNT
};
const char *rv_outcome_text(enum rv_outcome outcome);

struct rv_outbound_header {
    struct rv_str name;
    struct rv_str value;
};

struct rv_outbound_answer {
    enum rv_outcome outcome;
    /* False: not one byte of the request has left this machine, on any hop, so nothing was done. */
    bool sent;
    /* A redirect of 301, 302 or 303 was followed: what it answered may have been carried out, and
     * `status` is that of another request. After 307 and 308 it is that of the same one, which was
     * not carried out where it was sent first (RFC 9110, 15.4). */
    bool other_request;
    int status;                               /* ANSWERED: of the last hop */
    struct rv_str body;                       /* decompressed */
    const struct rv_outbound_header *headers; /* in order, names as sent */
    size_t headers_count;
    int64_t retry_after_ms;     /* of Retry-After, seconds or date; -1: none */
    struct rv_str content_type; /* absent: none */
    struct rv_str location;
    struct rv_str url; /* of the last hop */
    /* For people, when there is no answer: what failed and the cure. Never holds a path, a query or
     * a header, for they may be secret. */
    struct rv_str why;
};

struct rv_outbound_request {
    struct rv_str method; /* "GET": upper case */
    struct rv_str url;
    const struct rv_outbound_header *headers;
    size_t headers_count;
    struct rv_str body;      /* absent: none */
    int64_t timeout_ms;      /* of all of it, hops included; more than 0 */
    size_t answer_bytes_max; /* of the body, after decompression */
    bool follow;             /* redirects, up to RV_OUTBOUND_HOPS_MAX */
    /* Called at most once, on the outbound thread, before anything else: fills in values of the
     * headers that take the thread that submits too long to make. They must live until `done`.
     * An error ends the request (MEMORY, REFUSED, or INVALID). NULL: nothing to fill in. */
    enum rv_err (*fill)(void *user, struct rv_outbound_header *headers, size_t count);
    void (*done)(void *user, const struct rv_outbound_answer *answer); /* the answer is borrowed */
    void *user;
};

struct rv_outbound_options {
    const struct rv_egress *egress;      /* borrowed: lives longer */
    long connections_max;                /* open at a time; more wait. 0: 2048 */
    struct rv_resolver_options resolver; /* for tests; `wake` is filled in */
};

struct rv_outbound;

/* Starts the thread. Nothing is resolved or connected to before a request wants it. */
RV_CHECK enum rv_err rv_outbound_open(const struct rv_outbound_options *options,
                                      struct rv_outbound **ret_outbound);
/* Ends all that is under way as CANCELLED, then the thread. NULL is nothing. */
void rv_outbound_close(struct rv_outbound *outbound);

/* From any thread. BUSY: too many are under way; MEMORY. Whatever is wrong with the request itself
 * is told to `done`. The id is never 0 and never used again. */
RV_CHECK enum rv_err rv_outbound_submit(struct rv_outbound *outbound,
                                        const struct rv_outbound_request *request,
                                        uint64_t *ret_id);
/* From any thread. `done` hears CANCELLED soon, or what it was about to hear. MEMORY: the request
 * goes on until its time is over. */
RV_CHECK enum rv_err rv_outbound_cancel(struct rv_outbound *outbound, uint64_t id);

/* Whether a response of this status is a redirect, which `follow` follows. */
bool rv_outbound_redirects(long status);

#endif
