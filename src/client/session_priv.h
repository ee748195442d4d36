/* session_priv.h - what session.c (states and timers) and session_wire.c (JSON) share. */
#ifndef RV_CLIENT_SESSION_PRIV_H
#define RV_CLIENT_SESSION_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/prng.h"
#include "client/session.h"
#include "json/json.h"

enum {
    ID_BYTES = 17, /* 16 hexadecimal digits and NUL: boot and poll ids */
    TOKENS_REMEMBERED = 512
};

/* FREE -> OPEN -> ANSWERED <-> SENT -> FREE; OPEN -> LATE -> FREE. */
enum slot_state {
    SLOT_FREE,
    SLOT_OPEN,     /* in the caller's hands */
    SLOT_LATE,     /* in the caller's hands, the deadline has passed */
    SLOT_ANSWERED, /* the reply waits to be sent */
    SLOT_SENT      /* the reply is in the call under way */
};

/* One place: an attempt and its way through the session. */
struct session_slot {
    struct rv_held_attempt attempt;
    enum slot_state state;
    unsigned news;
    bool listed;         /* in session->news */
    bool ended;          /* by the server, before its deadline */
    bool renewing;       /* in the lease call under way */
    bool replaced;       /* the reply is an error in the place of a refused one */
    bool effect_unknown; /* what such an error says: the attempt may have had an effect */
    int64_t lease_ms;
    int64_t renew_at;    /* INT64_MAX: never */
    struct rv_buf text;  /* owned: what the attempt's texts point into */
    struct rv_buf reply; /* owned: the item as it goes out */
};

/* A list of places; room for all of them. */
struct places {
    rv_place *at; /* owned */
    uint32_t count;
};

enum fetch_state { FETCH_NONE, FETCH_TO_SEND, FETCH_UNDER_WAY };

/* A poll, whichever call carries it, until it is answered. */
struct fetch {
    enum fetch_state state;
    enum rv_lane lane; /* while under way */
    char id[ID_BYTES];
    uint32_t max;
};

struct lane {
    bool busy;
    int64_t sent_at;
    int64_t not_before;
    unsigned failures;  /* in a row */
    struct rv_buf body; /* owned */
};

struct rv_session {
    struct rv_str path_requests; /* owned by `names` */
    struct rv_str agent;
    struct rv_str instance;
    struct rv_str server;
    struct rv_arena names;
    struct rv_arena scratch; /* one answer */
    struct rv_prng prng;
    struct rv_session_options options;
    char boot[ID_BYTES];
    char confirm[ID_BYTES];     /* the newest answered fetch, or "" */
    struct session_slot *slots; /* owned */
    uint64_t *hashes;           /* owned: of the tokens in hand, by place */
    uint32_t slot_count;
    struct places free;
    struct places waiting; /* ANSWERED */
    struct places sent;    /* SENT */
    struct places leased;  /* renewing */
    struct places news;
    uint64_t remembered[TOKENS_REMEMBERED]; /* hashes of tokens that are done with */
    uint32_t remembered_next;
    struct lane lanes[RV_LANE_COUNT];
    struct fetch fetch;
    int64_t fetch_not_before;
    bool leases_due;    /* a lease waits to be renewed */
    int64_t timers_at;  /* no timer of an attempt is due before this */
    uint32_t items_max; /* of one reply call; smaller while a refused one is taken apart */
    bool alone;         /* after a refusal: replies without `next` */
    bool greeted;       /* an answer tells how the server's clock stands: polls may park */
    bool stopping;
    bool ahead_known;
    int64_t ahead_ms; /* lower bound of own clock minus server's, at ahead_at */
    int64_t ahead_at;
    struct rv_session_counts counts;
};

void rv_session_log(const struct rv_session *session, enum rv_log_level level, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));
/* `failures` in a row. */
void rv_session_log_lost(const struct rv_session *session, const char *why, unsigned failures);
/* A 5xx, 408 or 429 of the server. */
void rv_session_log_postponed(const struct rv_session *session, int status, struct rv_str why,
                              unsigned failures);
/* An answer that no Reeve server gives: a proxy or another program listens at the address. */
void rv_session_log_stranger(const struct rv_session *session, int status, unsigned failures);
/* A 4xx. */
void rv_session_log_refused(const struct rv_session *session, int status, struct rv_str why);
void rv_session_id(struct rv_prng *prng, char ret_id[static ID_BYTES]);
/* Frees the slot's place; its token is remembered. */
void rv_session_release(struct rv_session *session, rv_place place);
void rv_session_news(struct rv_session *session, rv_place place, unsigned news);
/* Begins slot->reply anew: the caller adds the output or error. */
void rv_reply_begin(struct session_slot *slot);
/* Puts the reply in slot->reply in line. */
void rv_session_answer(struct rv_session *session, rv_place place);
/* Adds the error to slot->reply and puts that in line. */
void rv_reply_error(struct rv_session *session, rv_place place,
                    const struct rv_session_error *error);
/* The server has refused the reply of a SENT place, which is in no list any more. */
void rv_reply_refused(struct rv_session *session, rv_place place, int status, struct rv_str why);

/* Writers: the body of a call, into the lane's buffer. */
void rv_wire_poll(struct rv_session *session, struct rv_buf *body);
void rv_wire_leave(struct rv_session *session, struct rv_buf *body);
void rv_wire_replies(struct rv_session *session, struct rv_buf *body, bool with_next);
void rv_wire_leases(struct rv_session *session, struct rv_buf *body);
/* Readers: false if the text is no such answer; then nothing has changed. */
bool rv_wire_read_poll(struct rv_session *session, int64_t sent_at, int64_t now,
                       struct rv_str text);
/* `fetched`: the call carried `next`. */
bool rv_wire_read_replies(struct rv_session *session, int64_t sent_at, int64_t now,
                          struct rv_str text, bool fetched);
bool rv_wire_read_leases(struct rv_session *session, int64_t sent_at, int64_t now,
                         struct rv_str text);
/* *ret_why: title and detail of a problem+json, or the start of the text. False: it is none, so the
 * answer is not a Reeve server's. */
bool rv_wire_problem(struct rv_session *session, struct rv_str text, struct rv_str *ret_why);

#endif
