/* tls.h - a certificate and its key, as the door serves them: TLS 1.2 and 1.3 by OpenSSL. */
#ifndef RV_DOOR_TLS_H
#define RV_DOOR_TLS_H

#include "base/str.h"

struct rv_door_tls;

/* PEM: the server's certificate, then its chain; its key without a password. NULL with a static
 * text of what is wrong. */
struct rv_door_tls *rv_door_tls_new(struct rv_str cert, struct rv_str key, const char **ret_why);
void rv_door_tls_free(struct rv_door_tls *tls);

#endif
