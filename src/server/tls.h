/* tls.h - the server's certificate and key, read and looked at before anyone is served. */
#ifndef RV_SERVER_TLS_H
#define RV_SERVER_TLS_H

#include "base/buf.h"
#include "base/err.h"
#include "door/tls.h"

/* NOT_FOUND (no such file), IO (it cannot be read), INVALID (what is in it) or MEMORY, with a text
 * in `ret_why` of what is wrong and how to correct it. */
RV_CHECK enum rv_err rv_tls_read(const char *cert_path, const char *key_path,
                                 struct rv_door_tls **ret_tls, struct rv_buf *ret_why);

#endif
