/* at_rest.h - one request of the API on the file of a server that is stopped. */
#ifndef RV_SERVER_AT_REST_H
#define RV_SERVER_AT_REST_H

#include "base/buf.h"

/* Opens the store, answers the request as the server would whose keys ask for nothing, and closes
 * it. Whoever can write the file needs no key. The status; 0: the store cannot be used, and
 * *ret_body has one sentence why. */
int rv_at_rest(const char *store, const char *method, const char *target, const char *body,
               struct rv_buf *ret_body);

#endif
