/* api_priv.h - what api.c (the thread) and http.c (the callbacks of libmicrohttpd) share. */
#ifndef RV_API_API_PRIV_H
#define RV_API_API_PRIV_H

#include "api/access.h"
#include "api/answer.h"
#include "api/api.h"
#include "api/counts.h"
#include "api/request.h"
#include "api/route.h"
#include "base/os/random.h"
#include "base/os/thread.h"

#include <microhttpd.h>
#include <stdatomic.h>

struct exchange;

enum { RV_LANES = 32 };

/* Some of the connections (lane.c). */
struct lane {
    struct rv_api *api;
    struct MHD_Daemon *daemon;
    bool due; /* to be run */
};

/* One TCP connection. In the list of its api while it owes us progress: it rests, sends, or takes
 * an answer; not while its call is with the scheduler. The one that owes longest comes first. */
struct connection {
    struct rv_api *api;
    struct lane *lane;
    int fd;    /* borrowed: libmicrohttpd closes it */
    bool left; /* the peer has closed its side */
    bool listed;
    int64_t since; /* monotonic: the last progress */
    struct connection *before;
    struct connection *after;
    struct exchange *exchange; /* borrowed: the request in hand; NULL: none */
};

enum exchange_stage {
    STAGE_HEAD,    /* request line read */
    STAGE_BODY,    /* headers accepted */
    STAGE_LARGE,   /* suspended, its turn to be parsed comes */
    STAGE_WAITING, /* suspended, the call is with the scheduler */
    STAGE_ANSWERED /* the answer is made */
};

/* One request and its answer. */
struct exchange {
    struct rv_call call;
    struct connection *connection; /* borrowed: outlives it */
    struct MHD_Connection *http;   /* borrowed */
    enum exchange_stage stage;
    const struct rv_route *route;
    struct rv_request_line line;
    struct rv_caller caller;
    int64_t whole_us; /* when all of it was here */
    struct rv_buf body;
    size_t held_bytes; /* that it counts with in the api's */
    size_t came_bytes; /* of the body */
    bool discards;     /* no room for it: what comes is read and forgotten */
    struct exchange *large_next;
    const char *target_at; /* as libmicrohttpd holds it, to see where it ended; not to be read */
    struct rv_str target;  /* on the call's arena */
    bool hands_out;        /* the answer has requests in it, so its loss matters */
    bool begun;            /* the socket got the answer, and ... */
    uint64_t sent_before;  /* ... had sent so much before */
    bool streams;          /* the answer has begun, and goes on */
    bool stream_over;      /* ... until here */
    size_t stream_at;      /* sent of answer.body */
    struct rv_copy *copy;  /* owned: what is sent; NULL: answer.body */
    uint64_t copy_rest_at; /* so much of it goes out before it rests */
    struct rv_task_id stream_task;
    uint32_t stream_after; /* the newest message in answer.body, or before */
    struct rv_answer answer;
    struct exchange *next_free;
};

struct rv_api {
    struct rv_api_options options;
    struct lane lanes[RV_LANES];
    size_t lane_next;
    int listen_fd; /* -1: nobody is let in any more */
    bool listens;  /* it is looked at */
    struct rv_thread thread;
    int epoll_fd;
    int event_fd;              /* another thread has something for us */
    atomic_bool event_pending; /* event_fd is set already */
    atomic_bool draining;
    atomic_bool closing;
    atomic_uint outstanding;
    atomic_llong grace_ms;
    struct rv_mailbox_maker maker;
    struct rv_mailbox finished; /* calls on their way back */
    struct rv_parser parser;
    struct rv_random random;
    uint64_t serial_last;
    uint64_t key_changes; /* of the newest change that the API keys in memory contain */
    struct rv_api_counts counts;
    size_t exchanges_open;
    size_t held_bytes;      /* of all requests that are received, wait, or are with the scheduler */
    struct exchange *large; /* large requests that wait to be parsed, the oldest first */
    struct exchange *large_last;
    struct connection *first; /* list of connections that owe progress */
    struct connection *last;
    struct exchange *resting; /* the backup that rests; NULL: none */
    int64_t rest_until;       /* monotonic */
    struct exchange *free;
    size_t free_count;
};

/* api.c: ends the wait of the api's thread. */
void rv_api_wake(struct rv_api *api);

/* lane.c */
RV_CHECK enum rv_err rv_lanes_open(struct rv_api *api);
void rv_lanes_close(struct rv_api *api);
/* Nobody is let in from now on. */
void rv_lanes_deafen(struct rv_api *api);
/* Lets in who waits; a connection was closed, so that there is room for one. */
void rv_lanes_accept(struct rv_api *api);
void rv_lanes_left(struct rv_api *api);
bool rv_lanes_due(const struct rv_api *api);
void rv_lanes_run(struct rv_api *api);
/* The suspended connection goes on when its lane is run. */
void rv_lane_resume(struct exchange *exchange);

/* http.c */
RV_CHECK enum rv_err rv_http_start(struct lane *lane);
/* The call came back: makes the answer and wakes the connection; the daemon must run after it. */
void rv_http_finished(struct rv_api *api, struct rv_call *call);
/* The socket's peer has closed. */
void rv_http_left(struct rv_api *api, struct connection *connection);
/* Progress, from now on it owes more; or none is owed. */
void rv_http_list(struct connection *connection, int64_t now);
void rv_http_unlist(struct connection *connection);
void rv_http_forget(struct rv_api *api);

/* What the head says beside the request line; texts on the call's arena, absent ones not given. */
struct rv_head {
    struct rv_str length; /* Content-Length */
    struct rv_str file;
    struct rv_str seen; /* Last-Event-ID */
    struct rv_str key;  /* Idempotency-Key */
    struct rv_str traceparent;
    struct rv_str tracestate;
    struct rv_credentials credentials;
};

/* framing.c: the request's head as HTTP, before anyone looks at what it means. False with the
 * problem set; the connection is then closed, since where the next request begins is unclear. */
bool rv_framing_check(struct rv_parser *parser, const struct exchange *exchange,
                      const char *version, struct rv_head *ret_head);

/* stream.c: answers that go on until the task ends. `answer.body` holds what is to be sent next. */
/* The first messages, or none, are there. */
enum MHD_Result rv_stream_begin(struct exchange *exchange);
/* The call came back once more. */
void rv_stream_finished(struct exchange *exchange);
/* Nothing more is told. */
void rv_stream_end(struct exchange *exchange);
/* backup.c: an answer that is read from exchange->copy. */
enum MHD_Result rv_backup_begin(struct exchange *exchange);
/* Wakes the backup that has rested; the daemon must run after it. */
void rv_backup_go_on(struct rv_api *api, int64_t now);
/* http.c: parses the large request whose turn it is, or refuses it. */
void rv_http_large_go_on(struct rv_api *api, bool stops);
/* http.c: the exchange's call is one that has just come, with a serial of its own. */
void rv_http_stamp(struct rv_api *api, struct exchange *exchange);
/* Sends it to the scheduler; the connection waits. */
void rv_http_ask(struct rv_api *api, struct exchange *exchange);

#endif
