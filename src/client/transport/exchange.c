#include "client/transport/exchange_priv.h"

#include "base/time.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <time.h>

enum {
    ANSWER_BYTES_MAX = 512 * 1024 * 1024, /* 256 requests of 1 MiB, and some air */
    CONNECT_TIMEOUT_MS = 5000,
    ANSWER_KEEP_BYTES = 1024 * 1024
};

static const char url_default[] = "http://127.0.0.1:7733";
static const char unix_scheme[] = "unix:";

static void curl_start(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t answer_gather(char *bytes, size_t size, size_t count, void *to)
{
    struct client_exchange *exchange = to;
    size_t n = size * count;
    if (exchange->on_bytes == NULL) {
        rv_buf_add(&exchange->answer, bytes, n);
        return exchange->answer.failed == RV_OK ? n : 0;
    }
    exchange->heard = true;
    exchange->stopped = exchange->on_bytes(bytes, n, exchange->user) != 0;
    return exchange->stopped ? 0 : n;
}

/* Once for each line. An empty one ends the head, unless that of a 100 Continue. */
static size_t head_watch(char *line, size_t size, size_t count, void *to)
{
    struct client_exchange *exchange = to;
    size_t n = size * count;
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0)
        exchange->headed = false;
    else if (n <= 2)
        exchange->headed = true;
    return n;
}

enum rv_err rv_exchange_init(struct client_exchange *exchange)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, curl_start);
    *exchange = (struct client_exchange){.easy = curl_easy_init()};
    rv_buf_init(&exchange->answer, ANSWER_BYTES_MAX);
    return exchange->easy == NULL ? RV_ERR_MEMORY : RV_OK;
}

void rv_exchange_done(struct client_exchange *exchange)
{
    curl_easy_cleanup(exchange->easy);
    curl_slist_free_all(exchange->headers);
    free(exchange->url);
    rv_buf_done(&exchange->answer);
}

static bool header_add(struct curl_slist **list, const char *name, const char *value)
{
    struct rv_buf line;
    rv_buf_init(&line, 16 * 1024);
    rv_buf_printf(&line, "%s%s", name, value);
    rv_buf_add_char(&line, '\0');
    struct curl_slist *longer = line.failed == RV_OK ? curl_slist_append(*list, line.at) : NULL;
    rv_buf_done(&line);
    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

bool rv_exchange_header_good(const char *value)
{
    for (; *value != '\0'; value++)
        if ((unsigned char)*value < ' ' || *value == 0x7f)
            return false;
    return true;
}

static bool ask_good(const struct exchange_ask *ask)
{
    return (ask->content_type == NULL || rv_exchange_header_good(ask->content_type)) &&
           (ask->accept == NULL || rv_exchange_header_good(ask->accept)) &&
           (ask->api_key == NULL || rv_exchange_header_good(ask->api_key));
}

static bool headers_make(struct client_exchange *exchange, const struct exchange_ask *ask)
{
    struct curl_slist **list = &exchange->headers;
    curl_slist_free_all(*list);
    *list = NULL;
    /* Without this libcurl waits for a 100-continue before it sends a large body. */
    bool made = header_add(list, "Expect:", "");
    if (ask->body.at != NULL)
        made = made && header_add(list, "Content-Type: ", ask->content_type);
    if (ask->accept != NULL)
        made = made && header_add(list, "Accept: ", ask->accept);
    if (ask->api_key != NULL)
        made = made && header_add(list, "Authorization: Bearer ", ask->api_key);
    return made;
}

/* The path of a unix socket; NULL: the URL is none of one. */
static const char *unix_path(const char *url)
{
    size_t len = sizeof unix_scheme - 1;
    return strncmp(url, unix_scheme, len) == 0 ? url + len : NULL;
}

/* A proxy that the environment names is not meant for this machine's own addresses. */
static bool url_is_local(const char *url)
{
    if (unix_path(url) != NULL)
        return true;
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    return strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0 ||
           strncasecmp(host, "localhost", 9) == 0;
}

static char *url_join(const char *url, const char *path)
{
    size_t url_bytes = strlen(url);
    size_t path_bytes = strlen(path);
    char *joined = malloc(url_bytes + path_bytes + 1);
    if (joined == NULL)
        return NULL;
    memcpy(joined, url, url_bytes);
    memcpy(joined + url_bytes, path, path_bytes + 1);
    return joined;
}

static void method_set(CURL *easy, const struct exchange_ask *ask)
{
    if (ask->body.at != NULL) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->body.len);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, ask->body.at);
    } else if (strcmp(ask->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, ask->method);
}

enum rv_err rv_exchange_prepare(struct client_exchange *exchange, const struct exchange_ask *ask)
{
    CURL *easy = exchange->easy;
    curl_easy_reset(easy); /* options only: connections stay */
    rv_buf_reset(&exchange->answer);
    if (exchange->answer.room > ANSWER_KEEP_BYTES)
        rv_buf_done(&exchange->answer);
    exchange->error[0] = '\0';
    exchange->stopped = exchange->heard = exchange->headed = false;
    if (!ask_good(ask))
        return RV_ERR_INVALID;
    free(exchange->url);
    const char *socket = unix_path(ask->url);
    exchange->url = url_join(socket != NULL ? "http://localhost" : ask->url, ask->path);
    if (exchange->url == NULL || !headers_make(exchange, ask))
        return RV_ERR_MEMORY;
    method_set(easy, ask);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->headers);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, answer_gather);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, head_watch);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "libreeve");
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, (long)ask->once);
    if (ask->timeout_ms > 0)
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ask->timeout_ms);
    if (socket != NULL)
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, socket);
    if (url_is_local(ask->url))
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    const char *authorities = getenv("REEVE_CA_FILE");
    if (authorities != NULL && authorities[0] != '\0')
        curl_easy_setopt(easy, CURLOPT_CAINFO, authorities);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (curl_easy_setopt(easy, CURLOPT_URL, exchange->url) != CURLE_OK)
        return RV_ERR_INVALID;
    return RV_OK;
}

CURLcode rv_exchange_outcome(const struct client_exchange *exchange, CURLcode code)
{
    return code == CURLE_OK && !exchange->headed ? CURLE_RECV_ERROR : code;
}

int rv_exchange_status(const struct client_exchange *exchange)
{
    long status = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

int64_t rv_exchange_retry_after_ms(const struct client_exchange *exchange)
{
    curl_off_t seconds = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_RETRY_AFTER, &seconds);
    return seconds > 0 ? rv_retry_after_ms((int64_t)seconds, RV_SECOND_MS) : -1;
}

int64_t rv_exchange_date_ms(const struct client_exchange *exchange)
{
    struct curl_header *date;
    if (curl_easy_header(exchange->easy, "Date", 0, CURLH_HEADER, -1, &date) != CURLHE_OK)
        return 0;
    time_t at = curl_getdate(date->value, NULL);
    return at > 0 ? (int64_t)at * 1000 : 0;
}

const char *rv_exchange_why(const struct client_exchange *exchange, CURLcode code)
{
    return exchange->error[0] != '\0' ? exchange->error : curl_easy_strerror(code);
}

bool rv_exchange_never_sent(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST;
}

bool rv_exchange_distrusted(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_ISSUER_ERROR || code == CURLE_SSL_INVALIDCERTSTATUS;
}

/* What a server with TLS does with a request that is not encrypted. */
static bool closed_at_once(CURLcode code)
{
    return code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR;
}

/* Bytes came back, of another protocol: also an alert of TLS. */
static bool not_http(CURLcode code)
{
    return code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY;
}

const char *rv_exchange_cure(const char *url, CURLcode code)
{
    if (rv_exchange_never_sent(code))
        return "check that `reeve serve` runs there, or set REEVE_URL to its address";
    if (code == CURLE_URL_MALFORMAT)
        return "the address is not valid: write http://HOST:PORT, or unix:PATH";
    if (code == CURLE_SSL_CACERT_BADFILE)
        return "nothing was sent: the file in REEVE_CA_FILE cannot be read, or contains no "
               "certificate in PEM format";
    if (rv_exchange_distrusted(code))
        return "nothing was sent: the server's certificate must be valid for this name and issued "
               "by a certificate authority of the system or of the file in REEVE_CA_FILE";
    if (code == CURLE_SSL_CONNECT_ERROR)
        return "nothing was sent: if the server does not use TLS, write http:// in its address";
    if (not_http(code))
        return "the response is not HTTP. If the server uses TLS, write https:// in its address. "
               "Otherwise it is not a Reeve server: set REEVE_URL to the address that \"reeve "
               "serve\" prints";
    if (closed_at_once(code) && strncasecmp(url, "http:", 5) == 0)
        return "the server closed the connection, and may or may not have received the request; if "
               "the server uses TLS, write https:// in its address";
    return "the server may or may not have received the request";
}

static bool unix_good(const char *path)
{
    struct sockaddr_un name;
    return path[0] == '/' && strlen(path) < sizeof name.sun_path;
}

static bool url_good(const char *url)
{
    if (unix_path(url) != NULL)
        return unix_good(unix_path(url));
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return false;
    CURLU *parts = curl_url();
    bool good = parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK;
    curl_url_cleanup(parts);
    return good;
}

char *rv_exchange_url(const char *url)
{
    if (url == NULL || url[0] == '\0')
        url = getenv("REEVE_URL");
    if (url == NULL || url[0] == '\0')
        url = url_default;
    if (!url_good(url))
        return NULL;
    char *copy = strdup(url);
    size_t n = copy == NULL ? 0 : strlen(copy);
    while (n > 0 && copy[n - 1] == '/')
        copy[--n] = '\0';
    return copy;
}

bool rv_exchange_key(const char *given, char **ret_key)
{
    if (given == NULL)
        given = getenv("REEVE_API_KEY");
    if (given == NULL || given[0] == '\0') {
        *ret_key = NULL;
        return true;
    }
    *ret_key = strdup(given);
    return *ret_key != NULL;
}

static bool pipe_pending(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

void rv_pipe_guard_enter(struct pipe_guard *guard)
{
    sigset_t pipes;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    guard->was_pending = pipe_pending();
    pthread_sigmask(SIG_BLOCK, &pipes, &guard->before);
}

void rv_pipe_guard_leave(struct pipe_guard *guard)
{
    if (!guard->was_pending && pipe_pending()) {
        sigset_t pipes;
        sigemptyset(&pipes);
        sigaddset(&pipes, SIGPIPE);
        struct timespec at_once = {0, 0};
        sigtimedwait(&pipes, NULL, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}
