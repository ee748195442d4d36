/* api_priv.h - what api.c (the thread) and http.c (the way of a request) share. */
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
#include "door/door.h"

#include <stdatomic.h>
#include <strings.h>

enum exchange_stage {
    STAGE_HEAD,
    STAGE_BODY,    /* head accepted */
    STAGE_LARGE,   /* its turn to be parsed comes */
    STAGE_WAITING, /* the call is with the scheduler */
    STAGE_ANSWERED /* the answer is made */
};

/* One request and its answer. */
struct exchange {
    struct rv_call call;
    struct rv_api *api;
    struct rv_door_conn *conn; /* borrowed */
    enum exchange_stage stage;
    const struct rv_route *route;
    struct rv_request_line line;
    struct rv_caller caller;
    int64_t begun_us;     /* when its head was here; only for the access log, as is: */
    struct rv_str client; /* its address, on the call's arena */
    int64_t whole_us;     /* when all of it was here */
    struct rv_buf body;
    size_t held_bytes; /* that it counts with in the api's */
    size_t came_bytes; /* of the body */
    bool discards;     /* no room for it: what comes is read and forgotten */
    struct exchange *large_next;
    bool hands_out;        /* the answer has requests in it, so its loss matters */
    bool streams;          /* the head of the answer is sent, more body follows */
    bool stream_over;      /* ... until here */
    struct rv_copy *copy;  /* owned: what is sent; NULL: answer.body */
    int64_t copy_at;       /* given to the door */
    int64_t copy_rest_at;  /* so much of it goes out before it rests */
    int64_t copy_moved_at; /* monotonic: when the socket had taken the last block */
    bool copies;           /* the answer is a copy, or was before it gave way */
    struct rv_task_id stream_task;
    uint32_t stream_after; /* the newest message in answer.body, or before */
    struct rv_answer answer;
    struct exchange *next_free;
};

/* All keys, from the scheduler's thread. */
struct key_news {
    struct rv_keys keys;
    uint64_t changes;
};

struct rv_api {
    struct rv_api_options options;
    struct rv_door *door;
    struct rv_thread thread;
    atomic_bool draining;
    atomic_bool closing;
    bool looked; /* what had arrived when the stop began was read */
    atomic_uint outstanding;
    atomic_llong grace_ms;
    struct rv_mailbox_maker maker;
    struct rv_mailbox finished; /* calls on their way back */
    struct rv_parser parser;
    struct rv_random random;
    uint64_t serial_last;
    uint64_t key_changes; /* of the newest change that the API keys in memory contain */
    _Atomic(struct key_news *) key_news; /* owned: newer than these; NULL: none */
    struct rv_api_counts counts;
    size_t exchanges_open;
    struct rv_call_loads loads;
    atomic_size_t loaded_bytes; /* large rows in calls that came back, not yet rendered */
    size_t held_bytes;      /* of all requests that are received, wait, or are with the scheduler */
    struct exchange *large; /* large requests that wait to be parsed, the oldest first */
    struct exchange *large_last;
    struct exchange *copying;  /* the backup that is sent; NULL: none */
    struct exchange *resting;  /* the same, if it rests */
    int64_t rest_until;        /* monotonic */
    bool damaged;              /* a backup has found a page that is not as it was written */
    struct rv_buf description; /* of the API, once somebody has asked for it */
    struct exchange *free;
    size_t free_count;
};

/* The headers that an answer may have; http.c. */
struct answer_fields {
    struct rv_door_field at[4];
    char seconds[16];
};
size_t rv_http_fields(const struct rv_answer *answer, struct answer_fields *fields);

/* http.c */
struct rv_door_host rv_http_host(struct rv_api *api);
struct rv_call_loads rv_http_loads(struct rv_api *api);
/* The call came back: makes the answer. */
void rv_http_finished(struct rv_api *api, struct rv_call *call);
void rv_http_free(struct exchange *exchange);
/* For the access log: the answer, or the beginning of one, is given. */
void rv_http_note(const struct exchange *exchange);
void rv_http_forget(struct rv_api *api);

/* learn.c: the keys that the scheduler has left become those of the thread. */
void rv_http_keys_take(struct rv_api *api);
/* The same, and the change that this call has made. */
void rv_http_keys_learn(struct rv_api *api, struct rv_call *call);
void rv_http_keys_free(struct key_news *news);

/* What the head says beside the request line; texts on the call's arena, absent ones not given. */
struct rv_head {
    struct rv_str file;
    struct rv_str seen; /* Last-Event-ID */
    struct rv_str key;  /* Idempotency-Key */
    struct rv_str traceparent;
    struct rv_str tracestate;
    struct rv_credentials credentials;
};

/* head.c: false with the problem set. */
bool rv_head_read(struct rv_parser *parser, const struct rv_http_request *request,
                  struct rv_head *ret_head);

/* The address of the client that the nearest proxy names; empty or absent: it names none. */
struct rv_str rv_head_client(const struct rv_http_request *request);

/* stream.c: answers that go on until the task ends. `answer.body` holds what is sent next. */
/* The first messages, or none, are there. */
void rv_stream_begin(struct exchange *exchange);
/* All of it is sent: asks for more, or ends. */
void rv_stream_more(struct exchange *exchange);
/* The call has finished again. `revoked`: the caller's access has ended, and so does the stream. */
void rv_stream_finished(struct exchange *exchange, bool revoked);
/* backup.c: an answer that is read from exchange->copy. */
void rv_backup_begin(struct exchange *exchange);
void rv_backup_more(struct exchange *exchange);
/* Another backup is asked for: one whose client reads nothing ends. */
void rv_backup_give_way(struct rv_api *api);
/* Wakes the backup that has rested. */
void rv_backup_go_on(struct rv_api *api, int64_t now);
/* http.c: parses the large request whose turn it is, or refuses it. */
void rv_http_large_go_on(struct rv_api *api, bool stops);
/* http.c: the exchange's call is one that has just come, with a serial of its own. */
void rv_http_stamp(struct rv_api *api, struct exchange *exchange);
/* Sends it to the scheduler; the connection waits. */
void rv_http_ask(struct rv_api *api, struct exchange *exchange);
/* The scheduler has all calls that came before now, but for the large requests that wait to be
 * read: none of these is taken for late. */
void rv_http_settle(struct rv_api *api);

#endif
