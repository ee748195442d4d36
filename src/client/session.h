/* session.h - an agent's conversation with the server, as a pure protocol machine.
 *
 * Bytes and time in, bytes and timers out: no clock, no I/O. A driver (the transport, or a
 * simulator) sends the calls it hands out, reports each answer or loss, and comes back at the
 * wake-up instant. Time is the driver's own monotonic clock in milliseconds, rounded down.
 *
 * What it promises
 * - One reply per token, however often the request is delivered or the reply repeated.
 * - No reply leaves at or after the attempt's deadline, the earlier of complete-by and lease.
 * - Attempts in the application's hands never exceed `max`.
 * - One fetch (poll, or the `next` of a reply call) is outstanding at a time. The server takes an
 * earlier answer that a later poll does not confirm for lost; two fetches under way at once could
 * overtake each other and have good attempts handed out anew.
 *
 * When the deadline begins to run. The answer says how much time was left when the server wrote it,
 * at an instant W that is not earlier than S, when the call was sent. Counting from S is safe but
 * useless for a poll that was parked for 20 s. So the session keeps the largest (S - serverTime)
 * that it has seen, a lower bound of how far its clock is ahead of the server's, and counts from
 * serverTime plus that bound: never later than W, and near it as soon as one short exchange was
 * seen (the first poll of a session does not park, to that end; nor does the next one when a
 * request comes that is over by this reckoning). The bound ages by the drift that two clocks may
 * have. A server clock that was set forward shows itself by a W after the answer's arrival; the
 * session then starts over from S. */
#ifndef RV_CLIENT_SESSION_H
#define RV_CLIENT_SESSION_H

#include "base/err.h"
#include "base/log_level.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_session_options {
    struct rv_str agent; /* copied, as all texts */
    struct rv_str instance;
    struct rv_str server; /* its address, for messages; may be absent */
    uint64_t seed;        /* of boot id, poll ids and jitter: from the system's random source */
    uint32_t max;         /* attempts in hand, 1 to RV_CALL_ITEMS_MAX */
    int64_t wait_ms;      /* how long a poll parks */
    /* An attempt in hand is renewed at least so often, even if its lease needs none: so the session
     * hears of a cancel too while it has no poll under way. 0: only as leases need it. */
    int64_t renew_ms;
    void (*log)(void *user, enum rv_log_level level, const char *message); /* may be NULL */
    void *log_user;
};

/* One attempt in hand. Texts end with a NUL that is not counted and live as long as the place is
 * taken. */
struct rv_held_attempt {
    struct rv_str step;
    struct rv_str task;
    struct rv_str reference;
    struct rv_str token;
    struct rv_str key;
    struct rv_str traceparent; /* may be empty */
    struct rv_str tracestate;  /* may be empty */
    struct rv_str complete_by; /* the instant as the server wrote it; may be empty */
    struct rv_str input;       /* JSON */
    int64_t number;
    int64_t fence;
    bool insist;         /* an operator wants it tried, whatever circuit is open */
    int64_t complete_at; /* on the driver's clock */
    int64_t lease_at;    /* the end of the lease */
};

struct rv_session;
/* A place is an attempt's number in this session, below rv_session_places(). */
typedef uint32_t rv_place;

struct rv_session *rv_session_new(const struct rv_session_options *options); /* NULL: no memory */
void rv_session_free(struct rv_session *session);
uint32_t rv_session_places(const struct rv_session *session);

/* Each lane carries one call at a time: give it a connection of its own. */
enum rv_lane { RV_LANE_POLL, RV_LANE_REPLY, RV_LANE_LEASE };
enum { RV_LANE_COUNT = 3 };

/* A POST to be sent now. Texts live until the lane's call has ended. */
struct rv_session_call {
    enum rv_lane lane;
    struct rv_str path;
    struct rv_str body;
    int64_t timeout_ms;
};

/* Hands out the calls that are due, one by one; false when there is none. */
bool rv_session_next_call(struct rv_session *session, int64_t now,
                          struct rv_session_call *ret_call);
/* The lane's call got this answer. `retry_after_ms` negative: the answer names none. */
void rv_session_answered(struct rv_session *session, enum rv_lane lane, int64_t now, int status,
                         int64_t retry_after_ms, struct rv_str body);
/* The lane's call got none: whether the server saw it is not known. `why` is for the log. */
void rv_session_lost(struct rv_session *session, enum rv_lane lane, int64_t now, const char *why);
/* When to call rv_session_next_call() and rv_session_next_news() again at the latest. */
int64_t rv_session_wake_at(const struct rv_session *session);

/* What happened to attempts, as bits. Several may come at once. */
enum {
    RV_NEWS_REQUEST = 1, /* a new attempt */
    RV_NEWS_CANCEL = 2,  /* the server asks to stop it */
    RV_NEWS_EXPIRED = 4, /* its deadline passed, nobody waits for it: give the place back */
    RV_NEWS_RENEWED = 8  /* its deadline moved */
};
bool rv_session_next_news(struct rv_session *session, int64_t now, rv_place *ret_place,
                          unsigned *ret_news);
/* NULL if the place is free. */
const struct rv_held_attempt *rv_session_attempt(const struct rv_session *session, rv_place place);
/* The earlier of complete-by and lease. */
int64_t rv_held_stop_at(const struct rv_held_attempt *attempt);

/* What an error reply says. */
struct rv_session_error {
    struct rv_str type;
    struct rv_str title;  /* may be absent */
    struct rv_str detail; /* may be absent */
    struct rv_str target; /* may be absent */
    int status;           /* 0: none */
    bool transient;
    bool effect_unknown;
    int64_t retry_after_ms; /* 0: none */
};

/* Each of these takes the place back: the attempt is not the caller's any more. The reply leaves
 * with the next call, unless its deadline passes before: then it is dropped and counted. */
void rv_session_done(struct rv_session *session, rv_place place, int64_t now, struct rv_str output);
void rv_session_fail(struct rv_session *session, rv_place place, int64_t now,
                     const struct rv_session_error *error);
void rv_session_drop(struct rv_session *session, rv_place place);

/* No new requests from now on. True: a poll is under way; the driver cuts it and does not report
 * it. */
bool rv_session_stop(struct rv_session *session);
/* The last call of a session that has ended: tells the server that the instance stops. False: there
 * is nothing to tell. Its outcome does not matter: the driver does not report it. */
bool rv_session_leave(struct rv_session *session, int64_t now, struct rv_session_call *ret_call);
/* Stopped, and nothing is in hand or to be sent. */
bool rv_session_ended(const struct rv_session *session);
/* Replies wait for a call or are in one. */
bool rv_session_sending(const struct rv_session *session);
/* Attempts in the caller's hands, expired ones included. */
uint32_t rv_session_open(const struct rv_session *session);

struct rv_session_counts {
    uint64_t requests;
    uint64_t replied;
    uint64_t refused;
    uint64_t late_dropped;
    uint64_t expired;
    uint64_t duplicates;
    uint64_t cancelled;
    uint64_t calls;
    uint64_t calls_failed;
};
const struct rv_session_counts *rv_session_counts(const struct rv_session *session);

#endif
