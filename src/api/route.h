/* route.h - the one table of all routes: method, path, how it is parsed, how it is answered. */
#ifndef RV_API_ROUTE_H
#define RV_API_ROUTE_H

#include "api/answer.h"
#include "api/request.h"
#include "core/api_key.h"
#include "scheduler/call.h"

/* A set of roles. */
#define RV_MAY(role) (1u << (role))
/* No key is asked for. */
#define RV_ANYBODY (1u << RV_ROLE_COUNT)

struct rv_route {
    const char *method;
    const char *pattern; /* "/v1/tasks/{task}": {names} become request->params, in order */
    unsigned roles;      /* whose keys it is for: RV_MAY()s, or RV_ANYBODY; an admin's always */
    enum rv_call_kind kind;
    bool (*parse)(struct rv_parser *parser, const struct rv_request_line *request,
                  struct rv_call *call);
    void (*render)(struct rv_answer *answer, const struct rv_call *call);
    bool local;  /* answered without the scheduler; `kind` says nothing */
    bool ready;  /* the answer depends on the store's health too */
    bool stream; /* the answer goes on, message by message */
};

/* HEAD finds what GET has. NULL with parser->problem: 404, 405 or 501, or 204 for OPTIONS, which is
 * answered with the methods alone. Fills the request's params. */
const struct rv_route *rv_route_find(struct rv_parser *parser, struct rv_str method,
                                     struct rv_request_line *request);
/* All of them, ended by one without a method. */
const struct rv_route *rv_routes(void);

#endif
