/* tls.h - the server's certificate and key, read and looked at before anyone is served. */
#ifndef RV_SERVER_TLS_H
#define RV_SERVER_TLS_H

#include "base/buf.h"
#include "door/tls.h"

/* NULL with a text in `ret_why` of what is wrong and how to mend it. */
struct rv_door_tls *rv_tls_read(const char *cert_path, const char *key_path,
                                struct rv_buf *ret_why);

#endif
