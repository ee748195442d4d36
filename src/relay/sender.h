/* sender.h - a thread that sends batches of rows until the server has decided each, and calls an
 * operator for those that are too old. */
#ifndef RV_RELAY_SENDER_H
#define RV_RELAY_SENDER_H

#include "base/os/mailbox.h"
#include "base/os/thread.h"
#include "base/prng.h"
#include "reeve.h"
#include "relay/row.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { RV_BATCH_ROWS = 500 };

struct rv_relay_batch {
    struct rv_relay_batch *next; /* of the mailbox that holds it */
    struct rv_arena arena;       /* of the rows' texts; whoever has the batch uses it */
    struct rv_row rows[RV_BATCH_ROWS];
    size_t count;
    /* Why rows still WAIT: OK, it was asked to stop; BUSY, there was no answer for long; REFUSED,
     * the server does not let us in. */
    enum rv_err err;
    char why[512];
};

/* Batches go in and come out in order. One call is under way at a time: rows become tasks in the
 * order of their ids, as long as the server takes them. */
struct rv_sender {
    struct rv_client *client; /* owned */
    struct rv_str database;   /* whose rows they are, for people; borrowed */
    struct rv_thread thread;
    struct rv_mailbox in;
    struct rv_mailbox out;
    struct rv_mailbox pause; /* nothing is ever put in; closing it ends a pause */
    atomic_bool stopped;
    struct rv_prng prng; /* of pauses */
    int64_t patience_ms; /* 0: for ever */
    bool away;           /* the server; it was told */
    struct rv_buf body;
    struct rv_arena scratch; /* of one answer */
    size_t indexes[RV_BATCH_ROWS];
};

/* INVALID: `url` is none. MEMORY. */
RV_CHECK enum rv_err rv_sender_start(struct rv_sender *sender, const char *url,
                                     struct rv_str database, int64_t patience_ms);
void rv_sender_give(struct rv_sender *sender, struct rv_relay_batch *batch);
/* A batch that is done with, or NULL after `wait_ms`. */
struct rv_relay_batch *rv_sender_take(struct rv_sender *sender, int64_t wait_ms);
/* Batches come out soon, with rows that WAIT if need be. */
void rv_sender_stop(struct rv_sender *sender);
/* After all batches are out. */
void rv_sender_end(struct rv_sender *sender);

#endif
