/* submit.h - the application's messages: submissions out, receipts in; pure. */
#ifndef RV_CLIENT_SUBMIT_H
#define RV_CLIENT_SUBMIT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* One task to be; absent texts are left out. `input`, `reply_to` and `tags` are JSON. */
struct rv_submit_item {
    struct rv_str workflow;
    struct rv_str input;
    struct rv_str key;
    struct rv_str correlation_id;
    struct rv_str traceparent; /* W3C trace context; the server passes over what is none */
    struct rv_str tracestate;
    struct rv_str reply_to;
    struct rv_str tags;
    int priority; /* negative: not said */
};

/* Appends the item. INVALID with *ret_why, and nothing appended, if a JSON text of it is none. */
RV_CHECK enum rv_err rv_submit_write(struct rv_buf *buf, const struct rv_submit_item *item,
                                     const char **ret_why);

/* What the server says to one item; texts on the arena. */
struct rv_submit_receipt {
    int status;
    struct rv_str task;
    struct rv_str state;
    struct rv_str why; /* title and detail of a refusal */
};

/* Reads the answer to one submission, whatever its status. INVALID if a 2xx names no task. All that
 * read: MEMORY, and nothing is known of the answer. */
RV_CHECK enum rv_err rv_submit_read(struct rv_arena *arena, int status, struct rv_str body,
                                    struct rv_submit_receipt *ret_receipt);
/* Reads the answer to a batch of `count`: results in the order of the submissions. */
RV_CHECK enum rv_err rv_submit_read_batch(struct rv_arena *arena, struct rv_str body, size_t count,
                                          struct rv_submit_receipt *ret_receipts);
/* What a task's JSON says of its progress. INVALID if it names no state. */
struct rv_submit_progress {
    struct rv_str state;
    int64_t revision; /* -1: not said */
};
RV_CHECK enum rv_err rv_submit_read_task(struct rv_arena *arena, struct rv_str body,
                                         struct rv_submit_progress *ret_progress);
/* Whether a task in this state waits for nobody but, perhaps, an operator. */
bool rv_submit_ended(struct rv_str state);
/* "title: detail" of a problem+json (RFC 9457); the start of the body if it is none. */
struct rv_str rv_submit_problem(struct rv_arena *arena, struct rv_str body);

#endif
