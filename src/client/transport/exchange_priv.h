/* exchange_priv.h - one HTTP exchange at a time over libcurl, on a connection that is kept. */
#ifndef RV_CLIENT_TRANSPORT_EXCHANGE_PRIV_H
#define RV_CLIENT_TRANSPORT_EXCHANGE_PRIV_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct client_exchange {
    CURL *easy;                 /* owned */
    struct curl_slist *headers; /* owned */
    char *url;                  /* owned: of the exchange under way */
    struct rv_buf answer;       /* owned */
    char error[CURL_ERROR_SIZE];
    int (*on_bytes)(const char *bytes, size_t count, void *user); /* NULL: gather in `answer` */
    void *user;
    bool stopped; /* on_bytes had enough */
    bool heard;   /* on_bytes was given something */
    bool headed;  /* the head of the answer came to its end */
};

/* What is asked. Texts live until the exchange has ended. */
struct exchange_ask {
    const char *url; /* of the server */
    const char *path;
    const char *method;
    struct rv_str body; /* absent: none */
    const char *content_type;
    const char *accept;  /* NULL: any */
    const char *api_key; /* NULL: none */
    int64_t timeout_ms;  /* <= 0: none */
    bool once; /* only on a new connection: when a used one ends, libcurl repeats the request */
};

RV_CHECK enum rv_err rv_exchange_init(struct client_exchange *exchange);
void rv_exchange_done(struct client_exchange *exchange);
/* Makes the easy handle ready to be performed. INVALID for a URL that is none or a header that
 * would not be one line, MEMORY. */
RV_CHECK enum rv_err rv_exchange_prepare(struct client_exchange *exchange,
                                         const struct exchange_ask *ask);
/* After it was performed: how it went. libcurl calls an answer whole whose connection ended inside
 * its head, before anything said how long it would be; here that is none. */
CURLcode rv_exchange_outcome(const struct client_exchange *exchange, CURLcode code);
/* The status, 0 if there was none. */
int rv_exchange_status(const struct client_exchange *exchange);
/* Of Retry-After; -1 without. */
int64_t rv_exchange_retry_after_ms(const struct client_exchange *exchange);
/* Of Date, in milliseconds since 1970; 0 without. */
int64_t rv_exchange_date_ms(const struct client_exchange *exchange);
/* Why there is no answer, in words. */
const char *rv_exchange_why(const struct client_exchange *exchange, CURLcode code);
/* What to do about it. `url` is the server's. */
const char *rv_exchange_cure(const char *url, CURLcode code);
/* The server certainly saw nothing of the call. */
bool rv_exchange_never_sent(CURLcode code);
/* There is a server, and nothing was said to it: whose it is cannot be known. */
bool rv_exchange_distrusted(CURLcode code);

/* The address as it is used: `url`, else the variable REEVE_URL, else the default; without slashes
 * at the end. To be freed; NULL: no memory, or no address: http(s), or unix:PATH. */
char *rv_exchange_url(const char *url);
/* `given`, else the variable REEVE_API_KEY, else NULL. To be freed. False: no memory. */
bool rv_exchange_key(const char *given, char **ret_key);
/* Without control characters, so that it stays one line of the head. */
bool rv_exchange_header_good(const char *value);

/* A peer that hangs up must not end the process: SIGPIPE is blocked in between, and one that came
 * is taken out (unless it was waiting before). */
struct pipe_guard {
    sigset_t before;
    bool was_pending;
};
void rv_pipe_guard_enter(struct pipe_guard *guard);
void rv_pipe_guard_leave(struct pipe_guard *guard);

#endif
