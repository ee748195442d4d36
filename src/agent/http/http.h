/* http.h - the agent that carries out `call: http`, inside the server.
 *
 * It speaks the agent protocol like any other: the same text, but through a door instead of a
 * socket. One thread serves thousands of calls: it holds several conversations with the server, as
 * each may have no more than RV_CALL_ITEMS_MAX attempts in hand, and the outbound thread moves the
 * bytes. Its instance has one name over all starts of the server, and a boot id of each start: so
 * the first poll ends what an earlier start left, effect unknown (RULES 10). */
#ifndef RV_AGENT_HTTP_HTTP_H
#define RV_AGENT_HTTP_HTTP_H

#include "agent/http/order.h"
#include "base/err.h"
#include "base/log_level.h"
#include "base/str.h"
#include "outbound/outbound.h"

#include <stdint.h>

enum { RV_HTTP_CONVERSATIONS = 8 };

/* A POST of the agent protocol. It belongs to the door from `ask` until rv_http_back(), and again
 * from there, for `read`, until `forget`. */
struct rv_http_ask {
    struct rv_str path; /* borrowed, as is the body: until rv_http_back() */
    struct rv_str body;
    void *handle;              /* the door's */
    struct rv_http_lane *lane; /* the agent's */
};

/* The way to the server's API. All but rv_http_back() is called on the agent's thread. */
struct rv_http_door {
    /* MEMORY, BUSY: it was not taken, and will not come back. */
    enum rv_err (*ask)(void *self, struct rv_http_ask *ask);
    /* Nobody waits for it any more: let it come back soon. */
    void (*leave)(void *self, struct rv_http_ask *ask);
    /* What came back; the body lives until `forget`. */
    int (*read)(void *self, struct rv_http_ask *ask, int64_t *ret_retry_after_ms,
                struct rv_str *ret_body);
    /* Ends it. `heard`: the agent took the answer; else what it hands out was never delivered. */
    void (*forget)(void *self, struct rv_http_ask *ask, bool heard);
    void *self;
};

struct rv_http_options {
    struct rv_outbound *outbound; /* borrowed, as is all of this */
    struct rv_http_door door;
    const char *instance; /* copied; the same at each start of this server */
    const char *secrets;  /* folder with a file for each secret; NULL: there are none */
    void (*log)(enum rv_log_level level, const char *message);
};

struct rv_http;

RV_CHECK enum rv_err rv_http_open(const struct rv_http_options *options, struct rv_http **ret_http);
void rv_http_close(struct rv_http *http);
/* The loop: returns some time after rv_http_stop(), when nothing of it is under way any more. */
void rv_http_run(void *http);
/* From any thread. Nothing new is taken; calls under way may finish for a moment. */
void rv_http_stop(struct rv_http *http);
/* From any thread: the ask has its answer. */
void rv_http_back(struct rv_http_ask *ask);

#endif
