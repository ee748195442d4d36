/* answer.h - from a finished call to an HTTP answer: one function per route. */
#ifndef RV_API_ANSWER_H
#define RV_API_ANSWER_H

#include "api/problem.h"
#include "base/buf.h"
#include "scheduler/call.h"

#include <stdint.h>

struct rv_api_counts; /* counts.h */

/* A path with the name and version of a workflow, percent-encoded. */
enum { RV_LOCATION_BYTES_MAX = 1280 };

/* The answer under construction; `body` is JSON. */
struct rv_answer {
    int status;
    const char *content_type;             /* NULL: application/json */
    const struct rv_api_counts *counts;   /* borrowed: for metrics; NULL: there are none */
    struct rv_buf *description;           /* borrowed: of the API, kept; NULL: it is written anew */
    bool problem;                         /* the body is application/problem+json */
    int retry_after_s;                    /* 0: no such header */
    struct rv_str allow;                  /* 405; else absent */
    size_t location_len;                  /* 201: of the path of what was created; 0: no header */
    char location[RV_LOCATION_BYTES_MAX]; /* ended by 0 */
    struct rv_buf body;
    int64_t now; /* the store's clock as the answer is written */
};

/* Cap for the body: the largest answer to a poll. */
void rv_answer_init(struct rv_answer *answer);
/* Turns it into the problem, whatever was written before. 503 gets Retry-After. */
void rv_answer_problem(struct rv_answer *answer, const struct rv_problem *problem);
/* Appends to the header Location: `text` as it is, or percent-encoded. What does not fit leaves no
 * header. */
void rv_answer_locate(struct rv_answer *answer, const char *text);
void rv_answer_locate_name(struct rv_answer *answer, struct rv_str name);
void rv_answer_locate_task(struct rv_answer *answer, const char *folder, struct rv_task_id id);
/* The call's error, if it has one, as a problem: true then. */
bool rv_answer_failed(struct rv_answer *answer, const struct rv_call *call);

/* The call is finished and without an error as a whole. Of a LOCAL route: not looked at. */
typedef void rv_render_fn(struct rv_answer *answer, const struct rv_call *call);

/* rv_render_<render> of each route. */
#define RV_OPERATION(method, pattern, roles, way, kind, parse, render, ...)                        \
    rv_render_fn rv_render_##render;
#include "api/tbl/operation.def"
#undef RV_OPERATION

#endif
