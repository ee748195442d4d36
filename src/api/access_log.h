/* access_log.h - a line of JSON for each answer, in a file. */
#ifndef RV_API_ACCESS_LOG_H
#define RV_API_ACCESS_LOG_H

#include "base/str.h"

#include <stdint.h>

struct rv_access_log;

/* Texts are borrowed; an absent one has no member in the line. */
struct rv_access_line {
    struct rv_str client;  /* address */
    struct rv_str key;     /* name of the API key, or its id */
    struct rv_str method;  /* of the route */
    struct rv_str pattern; /* of the route: "/v1/tasks/{task}" */
    int status;
    int64_t us; /* from the head of the request to the answer; -1: there was no head */
};

/* Appends to the file, which it makes with mode 0600; "-" is stdout. Never waits for the reader of
 * a FIFO, now or later. NULL: errno tells. */
struct rv_access_log *rv_access_log_open(const char *path);
void rv_access_log_close(struct rv_access_log *log);
/* Kept in memory until it is flushed, or is 64 KiB. */
void rv_access_log_add(struct rv_access_log *log, const struct rv_access_line *line);
void rv_access_log_flush(struct rv_access_log *log);
/* Lines that were dropped since the start: the file could not be written, or nobody reads it. */
uint64_t rv_access_log_dropped(const struct rv_access_log *log);
/* Opens the path again before the next line: it was renamed. From any thread. */
void rv_access_log_renew(struct rv_access_log *log);

#endif
