/* problem.h - what is wrong with a request and how to mend it: RFC 9457 problem details. */
#ifndef RV_API_PROBLEM_H
#define RV_API_PROBLEM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

/* Zeroed: there is none. */
struct rv_problem {
    int status;           /* HTTP; 0: no problem */
    enum rv_err err;      /* RV_OK: it is one of HTTP alone */
    struct rv_str detail; /* names the place and the cure */
    struct rv_str file;   /* for a definition: the place in it; absent: none */
    uint32_t line;
    uint32_t column;
    struct rv_str allow; /* 405, and 204 to OPTIONS: the methods that the route has */
};

/* Appends the JSON object. */
void rv_problem_write(struct rv_buf *buf, const struct rv_problem *problem);

#endif
