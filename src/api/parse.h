/* parse.h - from an HTTP request to a call of the scheduler: one function per route. */
#ifndef RV_API_PARSE_H
#define RV_API_PARSE_H

#include "api/request.h"
#include "scheduler/call.h"

#include <stdbool.h>

/* Each fills the call's part for its kind, on the call's arena (parser->arena); the kind is set
 * already. False with parser->problem when the request is refused as a whole. */
bool rv_parse_publish(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call);
bool rv_parse_submit(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call);
bool rv_parse_poll(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call);
bool rv_parse_replies(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call);
bool rv_parse_leases(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call);
bool rv_parse_resubmit(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_call *call);
bool rv_parse_undo(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call);
bool rv_parse_cancel(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call);
bool rv_parse_settle(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call);
bool rv_parse_try_now(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call);
bool rv_parse_suspend(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call);
bool rv_parse_resume(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call);
bool rv_parse_ack(struct rv_parser *parser, const struct rv_request_line *request,
                  struct rv_call *call);
bool rv_parse_raise(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call);
bool rv_parse_retry(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call);
bool rv_parse_messages(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_call *call);
bool rv_parse_stream(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call);
bool rv_parse_show(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call);
bool rv_parse_explain(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call);
bool rv_parse_steps(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call);
bool rv_parse_attempts(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_call *call);
bool rv_parse_late(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call);
bool rv_parse_history(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call);
bool rv_parse_tasks(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call);
bool rv_parse_alerts(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call);
bool rv_parse_workflows(struct rv_parser *parser, const struct rv_request_line *request,
                        struct rv_call *call);
bool rv_parse_workflow(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_call *call);
bool rv_parse_keys(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call);
bool rv_parse_key_add(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call);
bool rv_parse_key_revoke(struct rv_parser *parser, const struct rv_request_line *request,
                         struct rv_call *call);
bool rv_parse_limit(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call);
bool rv_parse_pause(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call);
bool rv_parse_close_circuit(struct rv_parser *parser, const struct rv_request_line *request,
                            struct rv_call *call);
bool rv_parse_unpause(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call);
/* The filters of tasks alone, without a page. */
bool rv_parse_task_filter(struct rv_parser *parser, const struct rv_request_line *request,
                          struct rv_call_list *list);
bool rv_parse_select(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call);
bool rv_parse_bulk(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call);
bool rv_parse_bulk_pause(struct rv_parser *parser, const struct rv_request_line *request,
                         struct rv_call *call);
bool rv_parse_bulk_resume(struct rv_parser *parser, const struct rv_request_line *request,
                          struct rv_call *call);
bool rv_parse_selections(struct rv_parser *parser, const struct rv_request_line *request,
                         struct rv_call *call);
bool rv_parse_selection(struct rv_parser *parser, const struct rv_request_line *request,
                        struct rv_call *call);
bool rv_parse_outcomes(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_call *call);
/* No parameter, no body. */
bool rv_parse_nothing(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call);
/* The words of enum rv_finding, ended by NULL. */
extern const char *const rv_finding_texts[];

#endif
