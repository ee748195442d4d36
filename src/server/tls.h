/* tls.h - the server's certificate and key, read and looked at before anyone is served. */
#ifndef RV_SERVER_TLS_H
#define RV_SERVER_TLS_H

#include "base/buf.h"

#include <stdbool.h>

/* PEM, terminated. */
struct rv_tls_files {
    struct rv_buf cert;
    struct rv_buf key;
};

void rv_tls_init(struct rv_tls_files *files);
/* The key leaves the memory as zeros. */
void rv_tls_done(struct rv_tls_files *files);
/* False after it was told on stderr what is wrong and how to mend it. */
bool rv_tls_read(struct rv_tls_files *files, const char *cert_path, const char *key_path);

#endif
