/* access.h - who asks, and whether they may: the one place where that is decided. */
#ifndef RV_API_ACCESS_H
#define RV_API_ACCESS_H

#include "api/keys.h"
#include "api/request.h"
#include "api/route.h"

/* What the server asks of its callers. */
struct rv_access {
    struct rv_keys keys;
    /* Without any key the door stands open, but only to those of this machine. */
    bool always_keys;
};

/* The head of a request, as far as it says who asks. */
struct rv_credentials {
    struct rv_str authorization; /* absent: no such header */
    struct rv_str host;
};

/* Who asks. Not to be copied. The id outlives the call's arena, which a stream makes empty. */
struct rv_caller {
    bool known; /* by a key; false: none was asked for */
    enum rv_role role;
    char id_text[RV_API_KEY_ID_BYTES];
    struct rv_str id;    /* `id_text`, or absent; the others are on the call's arena */
    struct rv_str agent; /* of an agent's key; else absent */
    struct rv_str name;
};

/* May this caller ask for the route? `route` NULL: there is none, and only a caller with a key
 * learns so. False with the problem set: 401 or 403. */
bool rv_access_check(struct rv_parser *parser, const struct rv_access *access,
                     const struct rv_route *route, const struct rv_credentials *credentials,
                     struct rv_caller *ret_caller);
/* Is what rv_access_check allowed still allowed? No longer once the caller's key is revoked, or for
 * a caller without a key once the first key exists. */
bool rv_access_stands(const struct rv_access *access, const struct rv_route *route,
                      const struct rv_caller *caller);
/* The problem of a caller whose access has ended: 401. Always false. */
bool rv_access_ended(struct rv_parser *parser);
/* May they ask just this? Marks the call with what they may. Once it is parsed. */
bool rv_access_call(struct rv_parser *parser, const struct rv_caller *caller, struct rv_call *call);
/* Whom an operator's command is from: what the body says, and by which key it came. */
struct rv_str rv_access_by(const struct rv_parser *parser, struct rv_str said);

#endif
