/* server.h - one server: store, scheduler and api with their threads, from start to clean stop. */
#ifndef RV_SERVER_SERVER_H
#define RV_SERVER_SERVER_H

#include "base/str.h"
#include "outbound/egress.h"

#include <stdbool.h>
#include <stdint.h>

/* Texts are borrowed. */
struct rv_server_options {
    const struct rv_str *listens;   /* "127.0.0.1:7733", port 0: any free one; "unix:/path" */
    size_t listens_count;           /* 0: only what a service manager hands over */
    const char *listens_from;       /* the flag or the variable that they came from */
    const char *store;              /* path of the SQLite file */
    const struct rv_egress *egress; /* where calls may go */
    const char *tls_cert;           /* path of a PEM file; NULL: no TLS */
    const char *tls_key;            /* of its key; both or none */
    int64_t scan_interval_ms;       /* of the supervisor's walks over the open tasks */
    int64_t retain_ms;              /* finished tasks are kept for so long; 0: for ever */
    int64_t postpone_ms_max;        /* a remote service postpones a step by so much */
    int64_t circuit_ms_max;         /* an agent's word keeps a circuit open so long */
    bool http_agent;                /* this server carries out `call: http` */
    bool behind_proxy;              /* others come in through a proxy that speaks TLS */
    const char *webhook_secrets;    /* path of the file; NULL: beside the store, made if need be */
    const char *alert_webhook;      /* URL that alerts go to; NULL: none */
    const char *secrets;            /* folder of secrets; NULL: none */
    const char *access_log;         /* path of a file, "-": stdout; NULL: none */
    const char *otlp;               /* URL of a collector of spans; NULL: none */
};

/* Runs until SIGTERM or SIGINT, then stops within 5 s; a second signal ends the process at once.
 * Prints where the store is and where it listens on stdout, errors on stderr. The exit code. */
int rv_server_run(const struct rv_server_options *options);

#endif
