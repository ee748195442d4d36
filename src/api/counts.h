/* counts.h - what the api's thread has seen since its start, in plain numbers. */
#ifndef RV_API_COUNTS_H
#define RV_API_COUNTS_H

#include "base/histogram.h"

#include <stdbool.h>
#include <stdint.h>

/* Answers by their status: below 400, of the caller's making, of the server's. */
enum rv_answer_class { RV_ANSWER_GOOD, RV_ANSWER_REFUSED, RV_ANSWER_FAILED, RV_ANSWER_CLASSES };

enum { RV_ROUTES_MAX = 80 };

struct rv_api_counts {
    uint64_t answers[RV_ROUTES_MAX + 1][RV_ANSWER_CLASSES]; /* by place in the table of routes; the
                                                             * last: there was no such route */
    uint64_t unauthorized;                                  /* 401 */
    uint64_t connections_taken;
    uint64_t connections; /* open now */
    uint64_t calls;       /* with the scheduler now */
    int64_t store_bytes;  /* 0: not known */
    bool has_spans;       /* there is a collector: */
    uint64_t spans_sent;
    uint64_t spans_dropped;
    uint64_t log_dropped; /* lines */
    bool has_access_log;
    uint64_t access_log_dropped;
    struct rv_histogram submission; /* from the whole request to its answer, if it did not wait */
    struct rv_histogram reply;
};

#endif
