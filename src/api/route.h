/* route.h - the table of all routes: who may use each, and how it is read, answered, described. */
#ifndef RV_API_ROUTE_H
#define RV_API_ROUTE_H

#include "api/answer.h"
#include "api/parse.h"
#include "api/request.h"
#include "core/api_key.h"
#include "scheduler/call.h"

/* A set of roles. */
#define RV_MAY(role) (1u << (role))
/* No key is asked for. */
#define RV_ANYBODY (1u << RV_ROLE_COUNT)

enum rv_way {
    RV_WAY_CALL,  /* through the scheduler */
    RV_WAY_LOCAL, /* answered without the scheduler */
    /* Goes through the scheduler with a cheap question, so that the answer proves it alive; the
     * answer depends on the store's health too. */
    RV_WAY_READY,
    RV_WAY_STREAM /* the answer goes on, message by message */
};

/* A row of tbl/operation.def, which explains the fields. */
struct rv_route {
    const char *method;
    const char *pattern;
    unsigned roles; /* RV_MAY()s, or RV_ANYBODY */
    enum rv_way way;
    enum rv_call_kind kind;
    rv_parse_fn *parse;
    rv_render_fn *render;
    const char *id;
    const char *group;
    const char *summary;
    const char *description;
    const char *parameters;
    const char *body;
    const char *statuses;
    const char *answer;
    const char *location;
};

/* HEAD finds what GET has; NULL: there is none. Fills the request's params. */
const struct rv_route *rv_route_match(struct rv_str method, struct rv_request_line *request);
/* Why there is none: false with parser->problem: 404, 405 or 501, or 204 for OPTIONS, which is
 * answered with the methods alone. It takes long, since it looks for what was meant: access is
 * checked before. */
bool rv_route_refuse(struct rv_parser *parser, struct rv_str method,
                     struct rv_request_line *request);
/* Both, where nobody's access is checked. */
const struct rv_route *rv_route_find(struct rv_parser *parser, struct rv_str method,
                                     struct rv_request_line *request);
/* All of them, ended by one without a method. */
const struct rv_route *rv_routes(void);

#endif
