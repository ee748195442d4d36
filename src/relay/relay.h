/* relay.h - moves rows of an application's outbox to the server: one task for each row. */
#ifndef RV_RELAY_RELAY_H
#define RV_RELAY_RELAY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_relay_options {
    const char *database; /* "sqlite:PATH" */
    const char *url;      /* of the server; NULL: as rv_client_open() has it */
    bool once;            /* moves what is there, and ends */
};

/* What became of rows. */
struct rv_relay_counts {
    uint64_t accepted;
    uint64_t known;   /* they were tasks already */
    uint64_t refused; /* marked with the reason */
    uint64_t old;     /* too old to be sent without a risk of a second task; marked */
    /* With `once`, at the end: all rows that are marked, also by earlier runs. */
    uint64_t marked;
    uint64_t marked_old;
};

/* Why it ended; "" if there is no reason but that it was asked to. */
struct rv_relay_fault {
    char message[1024];
};

/* Works until SIGTERM, SIGINT or SIGHUP, or with `once` until all is moved that was there. IN_USE:
 * another relay works on this database (`once` alone; else it waits to take over). BUSY: the
 * server or the database could not be had for long (`once` alone). REFUSED: the server does not let
 * us in (`once` alone). NOT_FOUND, INVALID, CORRUPT, IO, MEMORY as of the database. */
RV_CHECK enum rv_err rv_relay_run(const struct rv_relay_options *options,
                                  struct rv_relay_counts *ret_counts,
                                  struct rv_relay_fault *ret_fault);

/* Makes the table where it is not there. */
RV_CHECK enum rv_err rv_relay_init(const char *database, bool *ret_new_file,
                                   struct rv_relay_fault *ret_fault);
/* The SQL of the table. */
const char *rv_relay_sql(void);

#endif
