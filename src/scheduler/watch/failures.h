/* failures.h - how often tasks failed in each of the last minutes, by the type of the error. */
#ifndef RV_SCHEDULER_WATCH_FAILURES_H
#define RV_SCHEDULER_WATCH_FAILURES_H

#include "base/limits.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

/* How often tasks failed in each of the last minutes, by the type of the error. */
enum { FAILURE_MINUTES = 60, FAILURE_TYPE_BYTES = 128 };

struct failure_type {
    char type[FAILURE_TYPE_BYTES]; /* an application's: any bytes */
    size_t type_len;
    int64_t last_at;                   /* 0: never */
    uint32_t minutes[FAILURE_MINUTES]; /* by the number of the minute */
};

struct failures {
    int64_t since; /* the first batch */
    struct failure_type types[RV_STATUS_FAILURES_MAX];
    struct failure_type others; /* for which there was no room */
};

/* A task has failed, as committed. */
void failure_note(struct failures *failures, struct rv_str type, int64_t now);
/* How many in the last hour. */
uint64_t failure_count(struct failure_type *row, int64_t now);

#endif
