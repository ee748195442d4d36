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

/* The call is finished and without an error as a whole. */
void rv_render_publish(struct rv_answer *answer, const struct rv_call *call);
void rv_render_submit(struct rv_answer *answer, const struct rv_call *call);
void rv_render_poll(struct rv_answer *answer, const struct rv_call *call);
void rv_render_replies(struct rv_answer *answer, const struct rv_call *call);
void rv_render_leases(struct rv_answer *answer, const struct rv_call *call);
void rv_render_operate(struct rv_answer *answer, const struct rv_call *call);
void rv_render_ack(struct rv_answer *answer, const struct rv_call *call);
void rv_render_raise(struct rv_answer *answer, const struct rv_call *call);
void rv_render_retry(struct rv_answer *answer, const struct rv_call *call);
void rv_render_messages(struct rv_answer *answer, const struct rv_call *call);
/* Events; 204 for a reader that has heard all there is. */
void rv_render_stream(struct rv_answer *answer, const struct rv_call *call);
void rv_render_show(struct rv_answer *answer, const struct rv_call *call);
void rv_render_steps(struct rv_answer *answer, const struct rv_call *call);
void rv_render_attempts(struct rv_answer *answer, const struct rv_call *call);
void rv_render_history(struct rv_answer *answer, const struct rv_call *call);
void rv_render_late(struct rv_answer *answer, const struct rv_call *call);
void rv_render_tasks(struct rv_answer *answer, const struct rv_call *call);
void rv_render_alerts(struct rv_answer *answer, const struct rv_call *call);
void rv_render_workflows(struct rv_answer *answer, const struct rv_call *call);
void rv_render_workflow(struct rv_answer *answer, const struct rv_call *call);
void rv_render_explain(struct rv_answer *answer, const struct rv_call *call);
void rv_render_status(struct rv_answer *answer, const struct rv_call *call);
void rv_render_agents(struct rv_answer *answer, const struct rv_call *call);
void rv_render_limit(struct rv_answer *answer, const struct rv_call *call);
void rv_render_circuit(struct rv_answer *answer, const struct rv_call *call);
void rv_render_select(struct rv_answer *answer, const struct rv_call *call);
void rv_render_bulk(struct rv_answer *answer, const struct rv_call *call);
void rv_render_selection(struct rv_answer *answer, const struct rv_call *call);
void rv_render_selections(struct rv_answer *answer, const struct rv_call *call);
void rv_render_outcomes(struct rv_answer *answer, const struct rv_call *call);
void rv_render_keys(struct rv_answer *answer, const struct rv_call *call);
void rv_render_key_add(struct rv_answer *answer, const struct rv_call *call);
void rv_render_key_revoke(struct rv_answer *answer, const struct rv_call *call);
void rv_render_metrics(struct rv_answer *answer, const struct rv_call *call);
/* The head alone: what follows is read from the copy. */
void rv_render_backup(struct rv_answer *answer, const struct rv_call *call);
void rv_render_ready(struct rv_answer *answer, const struct rv_call *call);
/* These look at no call. */
void rv_render_live(struct rv_answer *answer, const struct rv_call *call);
void rv_render_openapi(struct rv_answer *answer, const struct rv_call *call);
void rv_render_version(struct rv_answer *answer, const struct rv_call *call);

#endif
