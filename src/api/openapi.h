/* openapi.h - what is said of each route where the API describes itself. */
#ifndef RV_API_OPENAPI_H
#define RV_API_OPENAPI_H

#include "api/route.h"

/* A row of tbl/operation.def, which explains the fields. */
struct rv_operation {
    const char *method;
    const char *pattern;
    const char *id;
    const char *group;
    const char *summary;
    const char *description;
    const char *parameters; /* ids between blanks */
    const char *body;       /* a schema, "definition", or NULL */
    const char *statuses;   /* between blanks */
    const char *answer;     /* a schema, or a media type that is no JSON */
    const char *location;   /* or NULL */
};

/* NULL: the route is not described, which a test takes for a fault. */
const struct rv_operation *rv_operation_of(const struct rv_route *route);

#endif
