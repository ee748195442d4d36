/* door.h - the sockets of a server: HTTP/1.1 over many connections, plain or TLS, on one thread.
 * It reads requests (http/http.h), asks its host for the answers and sends them. It knows nothing
 * of routes. */
#ifndef RV_DOOR_DOOR_H
#define RV_DOOR_DOOR_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "http/http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_door;
/* One connection. The host may use it from the head of a request until it has answered it, and as
 * long as an answer goes on. */
struct rv_door_conn;
struct rv_door_tls; /* tls.h */

/* What the door asks of its host, on its thread. A request is a pointer that `head` gave. */
struct rv_door_host {
    /* A head has come; the texts are borrowed until the call returns. The host answers here to
     * refuse the body, and the connection ends. NULL without an answer: there is no memory. */
    void *(*head)(void *self, struct rv_door_conn *conn, const struct rv_http_request *request);
    void (*body)(void *self, void *request, struct rv_str piece);
    /* All of it has come: the host answers now or later. */
    void (*end)(void *self, void *request);
    /* The client has closed its side, or is gone, before its answer was given. */
    void (*left)(void *self, void *request);
    /* The bytes of the open answer are with the socket: more may be added, now or later. */
    void (*more)(void *self, void *request);
    /* The request is over: its answer named it as the owner and was sent or dropped, or its
     * connection ended before it was whole. `begun`: bytes of the answer may have left. */
    void (*over)(void *self, void *request, bool begun);
    /* Writes the body of a refusal that the door makes of its own: RFC 9457. */
    void (*problem)(void *self, struct rv_door_conn *conn, int status, const char *detail,
                    struct rv_buf *out);
    /* Clients wait outside, since there is no room for their connections: static text, at most once
     * a minute. */
    void (*paused)(void *self, const char *why);
    void *self;
};

/* How long a connection may owe us something, in ms. */
struct rv_door_limits {
    int64_t handshake_ms;
    int64_t idle_ms;  /* between requests */
    int64_t head_ms;  /* from the first byte of a request line to the end of the headers */
    int64_t body_ms;  /* from there to the end of the body */
    int64_t write_ms; /* to take 64 KiB of what is sent, or all of it */
};

enum { RV_DOOR_SOCKETS_MAX = 16, RV_DOOR_PEER_BYTES = 46 };

struct rv_door_options {
    struct rv_door_host host;
    struct rv_door_limits limits; /* 0: the default of each */
    /* Listening, those of AF_UNIX without TLS; owned from then on, also if open fails. */
    const int *sockets;
    size_t sockets_count;     /* up to RV_DOOR_SOCKETS_MAX */
    struct rv_door_tls *tls;  /* owned from then on; NULL: plain */
    unsigned connections_max; /* 0: 20,000 */
    unsigned address_max;     /* from one address of another machine; 0: three quarters */
    int64_t body_max;         /* bytes of a request's body */
};

struct rv_door_counts {
    uint64_t taken; /* connections */
    uint64_t open;
    uint64_t busy;      /* with bytes of an answer that the socket has not taken */
    uint64_t lingering; /* the last answer is sent; kept until the client has read it */
};

struct rv_door_field {
    const char *name;
    struct rv_str value;
};

/* An answer, or the beginning of one. */
struct rv_door_answer {
    int status;
    bool close;       /* the connection ends after it */
    const char *type; /* Content-Type; NULL: none */
    const struct rv_door_field *fields;
    size_t fields_count;
    struct rv_buf *body; /* its bytes are taken or copied; NULL: none */
    void *owner;         /* host.over gets it when the answer was sent or dropped; or NULL */
    bool open;           /* rv_door_add brings the body until rv_door_end; it has an owner */
    bool sized;          /* open: and has `length` bytes; else it is sent in chunks */
    uint64_t length;
};

/* MEMORY or IO. */
RV_CHECK enum rv_err rv_door_open(const struct rv_door_options *options, struct rv_door **ret_door);
/* Every connection is cut; no request may be without its answer. */
void rv_door_close(struct rv_door *door);
/* Waits up to `wait_ms` for something to do and does it. */
void rv_door_wait(struct rv_door *door, int64_t wait_ms);
/* Sends what was answered since, and goes on with connections that have more to read. */
void rv_door_run(struct rv_door *door);
/* Ends the wait, or the next one. From any thread; a system call only where the door waits. */
void rv_door_wake(struct rv_door *door);
/* Whoever waits outside is let in, and nobody from then on. */
void rv_door_deafen(struct rv_door *door);
/* The next run reads all that has arrived, and answers, also where no event has told of it. */
void rv_door_arrived(struct rv_door *door);
/* New connections get this certificate. From any thread; owned from then on. */
void rv_door_renew(struct rv_door *door, struct rv_door_tls *tls);
const struct rv_door_counts *rv_door_counts(const struct rv_door *door);
/* Monotonic ms of this turn. */
int64_t rv_door_now(const struct rv_door *door);

/* Whether `bytes` more of answers have room. Connections that take nothing are closed for it. */
bool rv_door_room(struct rv_door *door, size_t bytes);
void rv_door_answer(struct rv_door_conn *conn, const struct rv_door_answer *answer);
/* More of an open answer; the bytes are taken. At least one. */
void rv_door_add(struct rv_door_conn *conn, struct rv_buf *bytes);
/* The open answer is over. Not whole: the connection is cut, so that the client sees it. */
void rv_door_end(struct rv_door_conn *conn, bool whole);
/* No answer: the connection is cut. `owner` as of an answer. */
void rv_door_drop(struct rv_door_conn *conn, void *owner);
/* The client's address, without its port; "local" of a unix socket. */
void rv_door_peer(const struct rv_door_conn *conn, char ret_text[static RV_DOOR_PEER_BYTES]);
/* It is in the place of all who wait outside: its answer may neither wait nor go on. */
bool rv_door_hurries(const struct rv_door_conn *conn);
/* The client has closed its side, or is gone. */
bool rv_door_left(const struct rv_door_conn *conn);

#endif
