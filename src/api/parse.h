/* parse.h - from an HTTP request to a call of the scheduler: one function per route. */
#ifndef RV_API_PARSE_H
#define RV_API_PARSE_H

#include "api/request.h"
#include "scheduler/call.h"

#include <stdbool.h>

/* Fills the call's part for its kind, on the call's arena (parser->arena); the kind is set already.
 * False with parser->problem when the request is refused as a whole. */
typedef bool rv_parse_fn(struct rv_parser *parser, const struct rv_request_line *request,
                         struct rv_call *call);

/* rv_parse_<parse> of each route. */
#define RV_OPERATION(method, pattern, roles, way, kind, parse, ...) rv_parse_fn rv_parse_##parse;
#include "api/tbl/operation.def"
#undef RV_OPERATION

/* The filters of tasks alone, without a page. */
bool rv_parse_task_filter(struct rv_parser *parser, const struct rv_request_line *request,
                          struct rv_call_list *list);
/* The words of enum rv_finding, ended by NULL. */
extern const char *const rv_finding_texts[];

#endif
