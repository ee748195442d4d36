/* agent_priv.h - a running agent: the pure runtime, a loop over libcurl, requests, threads. */
#ifndef RV_CLIENT_TRANSPORT_AGENT_PRIV_H
#define RV_CLIENT_TRANSPORT_AGENT_PRIV_H

#include "agent/runtime.h"
#include "base/arena.h"
#include "base/os/mailbox.h"
#include "base/os/thread.h"
#include "client/transport/exchange_priv.h"
#include "json/json.h"
#include "reeve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    AGENT_THREADS_MAX = 256,
    FAILURE_TYPE_BYTES = 256,
    FAILURE_TITLE_BYTES = 512,
    FAILURE_DETAIL_BYTES = 2048
};

/* One place of the session as handlers see it. The loop writes it before the handler is called; the
 * handler's thread owns it until it answers; the atomics are shared. */
struct rv_request {
    struct rv_agent *agent; /* borrowed */
    rv_place place;
    const struct rv_held_attempt *attempt; /* borrowed from the session; NULL: nothing here */
    uint32_t try_number;
    atomic_int_least64_t stop_at;
    atomic_int_least64_t complete_at;
    atomic_int stopped; /* enum rv_stop */
    atomic_bool answered;
    struct rv_arena arena; /* of the parsed input */
    bool parsed;
    struct rv_json input;
    struct rv_request *next; /* link of the results' mailbox, and of the queue of threads */
    struct rv_str output;    /* owned by malloc; absent: `failure` holds */
    struct rv_runtime_failure failure;
    char failure_type[FAILURE_TYPE_BYTES];
    char failure_title[FAILURE_TITLE_BYTES];
    char failure_detail[FAILURE_DETAIL_BYTES];
};

/* Threads that call the handler. */
struct thread_pool {
    struct rv_agent *agent; /* borrowed */
    pthread_mutex_t mutex;
    pthread_cond_t work;      /* something is queued, or quit */
    pthread_cond_t ended;     /* a thread has ended */
    struct rv_request *first; /* queue */
    struct rv_request *last;
    struct rv_thread threads[AGENT_THREADS_MAX];
    int count;
    int alive;
    bool quit;
};

RV_CHECK enum rv_err rv_thread_pool_start(struct thread_pool *pool, struct rv_agent *agent,
                                          int count);
void rv_thread_pool_give(struct thread_pool *pool, struct rv_request *request);
/* Ends the threads; waits up to `grace_ms` for those in a handler. False: some are still there. */
bool rv_thread_pool_stop(struct thread_pool *pool, int64_t grace_ms);

struct rv_agent {
    struct rv_agent_options options; /* texts are owned by `names` */
    char *url;                       /* owned */
    char *api_key;                   /* owned; NULL: none */
    struct rv_arena names;
    struct rv_runtime *runtime;  /* owned */
    struct rv_session *session;  /* the runtime's */
    struct rv_request *requests; /* owned, by place */
    struct rv_mailbox results;   /* answered requests on their way to the loop */
    CURLM *multi;                /* owned */
    struct client_exchange exchanges[RV_LANE_COUNT];
    bool under_way[RV_LANE_COUNT];
    struct thread_pool pool;
    atomic_bool asleep; /* the loop waits for the network */
    atomic_bool stop_asked;
    bool ran;
    bool stopping;
    bool hung;
    pthread_mutex_t counts_mutex;
    struct rv_agent_counts counts; /* as of the loop's last round */
};

/* Ends the loop's sleep, if it sleeps. From any thread. */
void rv_agent_wake(struct rv_agent *agent);
/* The request of a place, made ready for a first try. */
struct rv_request *rv_request_ready(struct rv_agent *agent, rv_place place);
/* Forgets the attempt. */
void rv_request_over(struct rv_request *request);
void rv_request_free(struct rv_request *request);

#endif
