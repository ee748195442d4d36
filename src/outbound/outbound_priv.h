/* outbound_priv.h - a request on its way: the loop's files share it. */
#ifndef RV_OUTBOUND_OUTBOUND_PRIV_H
#define RV_OUTBOUND_OUTBOUND_PRIV_H

#include "base/buf.h"
#include "base/map.h"
#include "base/os/mailbox.h"
#include "base/os/thread.h"
#include "outbound/outbound.h"

#include <curl/curl.h>
#include <stdatomic.h>

enum { HEADERS_MAX = 128 };

/* One request. Made by whoever submits it, then the loop's alone. */
struct outgoing {
    struct outgoing *next; /* link of the inbox, then of those that wait for a name, or a turn */
    uint64_t id;
    bool cancel; /* no request, but the wish to end the one with this id */
    struct rv_outbound *outbound;
    struct rv_outbound_request request; /* its texts lie behind this struct */
    int64_t deadline;
    struct rv_target target;
    enum rv_egress_reach reach;
    CURL *easy;                 /* owned; NULL: none was needed yet */
    bool moving;                /* the easy handle is in the multi */
    struct curl_slist *headers; /* owned */
    struct curl_slist *pins;    /* owned */
    const char *method;         /* a redirect may turn it into GET */
    bool body_dropped;          /* by such a redirect */
    bool foreign;               /* a redirect left the first origin */
    bool other_request;         /* struct rv_outbound_answer */
    unsigned hops;
    bool sent;
    unsigned begun;         /* requests on the wire for it */
    bool headed;            /* the head of the answer came to its end */
    enum rv_outcome broken; /* what a callback found, for which it ended the transfer; else 0 */
    struct rv_buf head;     /* header lines of the answer, without those of 1xx */
    size_t head_bytes;      /* all of them, those of 1xx too */
    struct rv_buf body;
    char why[RV_EGRESS_WHY_BYTES];
    char error[CURL_ERROR_SIZE];
};

/* Makes the easy handle ready for the target, whose name has these addresses (none for a literal).
 * INVALID with `why`, REFUSED with `why` (an address), MEMORY. */
RV_CHECK enum rv_err rv_outgoing_prepare(struct outgoing *outgoing,
                                         const struct rv_addresses *addresses, int64_t now);
/* Method and headers may be sent: INVALID with `why`. */
RV_CHECK enum rv_err rv_outgoing_check(struct outgoing *outgoing);
/* After an answer that redirects: OK, `target` has moved and the hop may be checked; NOT_FOUND,
 * this is no redirect that is followed; REFUSED with `why`; MEMORY. */
RV_CHECK enum rv_err rv_outgoing_redirect(struct outgoing *outgoing);
/* Tells `done`, and frees it. */
void rv_outgoing_end(struct outgoing *outgoing, enum rv_outcome outcome);
void rv_outgoing_free(struct outgoing *outgoing);
/* How a transfer that ended with this code went. */
enum rv_outcome rv_outgoing_outcome(struct outgoing *outgoing, CURLcode code);

struct rv_outbound {
    struct rv_outbound_options options;
    struct rv_mailbox inbox;
    struct rv_thread thread;
    struct rv_resolver *resolver; /* owned */
    CURLM *multi;                 /* owned */
    int epoll;
    int event;         /* eventfd: something is in the inbox, or a name is known */
    atomic_bool woken; /* the event was raised and not yet seen */
    atomic_bool closing;
    atomic_uint_least64_t next_id;
    atomic_uint_least32_t under_way;
    struct rv_map open;       /* id -> struct outgoing * */
    struct outgoing *waiting; /* for names */
    /* For connections, the oldest first. libcurl would let them wait, too, but for ever. */
    struct outgoing *queue;
    struct outgoing **queue_end;
    int64_t queue_until; /* no deadline in it is earlier; INT64_MAX: it is empty */
    long connections;
    long moving;      /* transfers that libcurl has, never more than `connections` */
    int64_t timer_at; /* when libcurl wants to be called; INT64_MAX: not at all */
};

#endif
