/* at_rest.h - a request, or a look of the supervisor, on the file of a server that is stopped. */
#ifndef RV_SERVER_AT_REST_H
#define RV_SERVER_AT_REST_H

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"

/* Opens the store, answers the request as the server would whose keys ask for nothing, and closes
 * it. Whoever can write the file needs no key. See rv_cli_server. */
RV_CHECK enum rv_err rv_at_rest(const char *store, const char *method, const char *target,
                                const char *body, int *ret_status, struct rv_buf *ret_body);

/* See rv_cli_server. */
RV_CHECK enum rv_err rv_at_rest_look(const char *store, struct rv_cli_look *ret_look,
                                     struct rv_buf *ret_why);

#endif
