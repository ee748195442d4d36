/* door_priv.h - what the files of the door share: the loop (loop.c) pushes connections (conn.c),
 * which send through their queue (queue.c) and a plain socket or TLS (wire.c). */
#ifndef RV_DOOR_DOOR_PRIV_H
#define RV_DOOR_DOOR_PRIV_H

#include "base/due.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/os/spin.h"
#include "door/door.h"

#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>

enum {
    DOOR_READ_BYTES = 64 * 1024,  /* of a body, in one call */
    DOOR_HEAD_BYTES = 16 * 1024,  /* else; more may be left over and is kept */
    DOOR_TURN_BYTES = 256 * 1024, /* that one connection reads before others get their turn */
    DOOR_TURN_US = 500,           /* and works, but for the request in hand */
    DOOR_UNSENT_MAX = 16 * 1024,  /* a connection with more of it gets no further answer */
    DOOR_ANSWERS_MAX = 256 * 1024 * 1024, /* bytes of all answers that wait to be sent */
    GATE_RETRY_MS = 100,                  /* until descriptors are looked for again */
    GATE_RESTED_MAX = 64,                 /* that make room before others are looked for */
    DOOR_SMALL_BYTES = 4096               /* a body of so many is copied behind its head */
};

/* What an event of the epoll set is about: the first member of each. */
enum door_watch { WATCH_EVENT, WATCH_LISTENER, WATCH_CONN };

struct door_listener {
    enum door_watch watch;
    int fd;
    bool plain; /* also where the door has a certificate */
};

/* Bytes to send, in order: head, body, tail. */
struct door_piece {
    struct door_piece *next;
    struct rv_buf head;
    struct rv_buf body;
    struct rv_str tail; /* static */
    size_t sent;
    void *owner; /* host.over is owed to it; NULL: to nobody */
};

enum conn_state {
    CONN_SHAKE,  /* TLS handshake */
    CONN_READ,   /* idle, or a request comes */
    CONN_WAIT,   /* the host owes an answer */
    CONN_OPEN,   /* an answer goes on */
    CONN_CLOSE,  /* what is queued is sent; then it ends */
    CONN_LINGER, /* the client was told, and what it still sends is thrown away */
    CONN_DEAD    /* freed at the end of the turn */
};

/* What it owes us, and since when (limits.c). */
enum conn_debt { DEBT_NONE, DEBT_SHAKE, DEBT_IDLE, DEBT_HEAD, DEBT_BODY, DEBT_WRITE, DEBT_LINGER };

/* Of the records of a handshake that are not encrypted, what is being read (tls.c). */
struct door_hellos {
    unsigned record_left;  /* bytes of the record in hand */
    unsigned message_left; /* and of the message, after its head */
    unsigned char record[5];
    unsigned char record_len;
    unsigned char message[4];
    unsigned char message_len;
};

struct rv_door_conn {
    enum door_watch watch;
    struct rv_door *door;
    int fd;
    void *tls; /* SSL; NULL: plain, or its handshake has not begun */
    enum conn_state state;
    enum conn_debt debt;
    bool readable; /* as far as is known */
    bool writable;
    bool left;      /* the peer has closed its side */
    bool broken;    /* and takes nothing any more */
    bool spare;     /* took the descriptor in reserve: one request, and quickly */
    bool counted;   /* by its address */
    bool queued;    /* in the door's list of those to be run */
    bool body_next; /* the head was taken, the body comes */
    bool close;     /* after the answer in hand */
    bool head_only; /* the request is a HEAD */
    bool chunked;   /* the open answer is */
    bool more_told; /* the open answer's host was asked, and has added nothing yet */
    bool unread;    /* input was left unread when the last answer was given */
    bool answered;  /* the request in hand */
    uint8_t minor;
    struct rv_http_reader reader;
    void *request;      /* the host's: from its head to its answer */
    void *open_owner;   /* of an open answer */
    struct rv_buf rest; /* read and not yet looked at, from rest_at on */
    size_t rest_at;
    struct door_piece *first; /* owned */
    struct door_piece *last;
    size_t unsent; /* bytes in them */
    size_t taken;  /* of them by the socket, or thrown away, since the debt began */
    size_t barren; /* bytes of TLS since the last one of a request */
    struct door_hellos hellos;
    int64_t since; /* of the debt */
    struct rv_due due;
    int family;                  /* of the peer's address */
    unsigned char peer[16];      /* its address, IPv4 in the first four */
    struct rv_door_conn *before; /* all of the door */
    struct rv_door_conn *after;
    struct rv_door_conn *run_next;
    bool shake_counted;                /* by its address */
    bool shaking;                      /* in the list of handshakes under way: */
    struct rv_door_conn *shake_before; /* the older one */
    struct rv_door_conn *shake_after;
};

struct conn_list {
    struct rv_door_conn *first;
    struct rv_door_conn *last;
};

/* Handshakes with something to do: whose hello may be there; that go on; and that wait to begin, of
 * addresses with few of them and with many. */
enum door_shakes { SHAKES_NEW, SHAKES_BEGUN, SHAKES_FEW, SHAKES_CROWD, SHAKES_QUEUES };

struct rv_door {
    struct rv_door_options options;
    struct door_listener listeners[RV_DOOR_SOCKETS_MAX];
    size_t listeners_count;
    bool listens;       /* they are in the epoll set ... */
    int64_t deaf_since; /* ... or not, since then */
    bool deaf;
    bool closing;
    int64_t paused_at;  /* monotonic: when it was told last; 0: never */
    int64_t evicted_at; /* when those who rest were looked for */
    struct rv_door_conn *rested[GATE_RESTED_MAX];
    size_t rested_count;
    int64_t crowded_at; /* when those who take nothing were looked for */
    bool spare_out;     /* a connection has the descriptor in reserve */
    int spare_fd;       /* -1: there is none */
    enum door_watch event_watch;
    int epoll_fd;
    int event_fd;
    atomic_bool sleeps;
    atomic_bool woken;
    struct rv_spin spin;
    _Atomic(struct rv_door_tls *) tls_next;
    struct rv_door_tls *tls; /* owned; NULL: plain */
    int64_t now;
    int64_t turn_until; /* monotonic us: of the connection that has its turn */
    int64_t date_second;
    char date[RV_HTTP_DATE_BYTES];
    struct rv_door_counts counts;
    size_t answers_bytes; /* unsent, of all */
    size_t answers_peak;  /* the most of it, since memory was given back */
    struct rv_dues dues;
    struct conn_list run; /* with something to do */
    struct conn_list shakes[SHAKES_QUEUES];
    int shakes_turn;                    /* the queue that had the last one */
    struct rv_map shakers;              /* handshakes that have a hello, by address */
    int64_t shake_at;                   /* monotonic us: not before */
    struct rv_door_conn *shaking_first; /* handshakes under way, the oldest first */
    struct rv_door_conn *shaking_last;
    size_t shaking_count;
    struct rv_door_conn *all;
    struct rv_door_conn *dead;
    struct rv_map addresses;
    struct rv_hash_key address_key;
    struct door_piece *pieces; /* free */
    size_t pieces_count;
    char input[DOOR_READ_BYTES];
    char output[DOOR_HEAD_BYTES]; /* of TLS, gathered */
};

/* loop.c: it is run in this turn, or the next. */
void door_push(struct rv_door_conn *conn);
void conn_list_add(struct conn_list *list, struct rv_door_conn *conn);
/* NULL: it is empty. */
struct rv_door_conn *conn_list_take(struct conn_list *list);

/* shake.c: handshakes. */
void shake_run(struct rv_door *door);
/* Ms until one goes on, at most `most`. */
int64_t shake_wait_ms(const struct rv_door *door, int64_t most);
/* It is over, in whatever way. */
void shake_left(struct rv_door_conn *conn);

/* gate.c: listeners and who is let in. */
RV_CHECK enum rv_err gate_open(struct rv_door *door);
void gate_close(struct rv_door *door);
void gate_accept(struct rv_door *door, struct door_listener *listener);
/* Whoever has the descriptors may be no connection, so that none of them leaves. */
void gate_retry(struct rv_door *door);
/* Whether what comes from its address is bounded, and the address as a key. */
bool gate_peer_counts(const struct rv_door_conn *conn);
uint64_t gate_peer_key(const struct rv_door_conn *conn);
/* A connection is gone. */
void gate_left(struct rv_door *door, const struct rv_door_conn *conn);

/* conn.c */
RV_CHECK enum rv_err conn_open(struct rv_door *door, int fd, bool plain,
                               struct rv_door_conn **ret_conn);
void conn_run(struct rv_door_conn *conn);
/* At once; what is queued is dropped. A request that waits for its answer keeps it. */
void conn_cut(struct rv_door_conn *conn);
void conn_free(struct rv_door_conn *conn);
/* The peer is gone, or has closed its side. */
void conn_leave(struct rv_door_conn *conn, bool broken);
/* Told and closed: the door's own answer. */
void conn_refuse(struct rv_door_conn *conn, int status, const char *detail);

/* limits.c: time. */
void limits_debt_begin(struct rv_door_conn *conn, enum conn_debt debt);
/* As the connection is now. */
void limits_debt_settle(struct rv_door_conn *conn);
void limits_debts_collect(struct rv_door *door);
/* Ms until somebody may owe too long, at most `most`. */
int64_t limits_debts_wait_ms(const struct rv_door *door, int64_t most);

/* queue.c */
struct door_piece *queue_add(struct rv_door_conn *conn);
/* The last one, if more may stand behind its head, else a new one. */
struct door_piece *queue_join(struct rv_door_conn *conn);
size_t queue_bytes(const struct door_piece *piece);
/* After its bytes are in; it had `before`. */
void queue_count(struct rv_door_conn *conn, const struct door_piece *piece, size_t before);
/* False: the peer takes nothing any more. */
bool queue_send(struct rv_door_conn *conn);
void queue_drop(struct rv_door_conn *conn);
void queue_free(struct rv_door *door);

/* wire.c: -1 with errno EAGAIN: not now; EINTR of a read: again in the next turn; 0 of a read: the
 * end. */
ssize_t wire_read(struct rv_door_conn *conn, char *at, size_t max);
ssize_t wire_write(struct rv_door_conn *conn, const struct iovec *iov, int count);

/* tls.c */
/* The first record has come, or something that is none. 1: yes; 0: not yet; -1: it is too large, or
 * will not come. */
int tls_hello_there(const struct rv_door_conn *conn);
RV_CHECK enum rv_err tls_begin(struct rv_door_conn *conn);
/* 1: done; 0: not yet; -1: it failed. */
int tls_shake(struct rv_door_conn *conn);
ssize_t tls_read(struct rv_door_conn *conn, char *at, size_t max);
ssize_t tls_write(struct rv_door_conn *conn, const char *at, size_t len);
/* Sends close_notify. */
void tls_bye(struct rv_door_conn *conn);
void tls_free(struct rv_door_conn *conn);

#endif
