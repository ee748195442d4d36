/* One request as libcurl is to see it, and its answer as libcurl tells it. */
#include "outbound/outbound_priv.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum {
    CONNECT_MS_MAX = 10000,
    RECEIVE_BYTES = 4096, /* of each transfer's own buffer: thousands are under way at once */
    HEADER_BYTES_MAX = 32 * 1024,
    PIN_BYTES = 1024
};

const char *rv_outcome_text(enum rv_outcome outcome)
{
    static const char *const texts[] = {
#define RV_OUTCOME(name, text) [RV_OUTCOME_##name] = text,
#include "outbound/tbl/outcome.def"
#undef RV_OUTCOME
    };
    return outcome < RV_OUTCOME_COUNT ? texts[outcome] : "unknown";
}

/* ---- what may be sent ---- */

static bool name_in(struct rv_str name, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strlen(*list) == name.len && strncasecmp(*list, name.at, name.len) == 0)
            return true;
    return false;
}

static bool is_token(struct rv_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return text.len > 0;
}

static bool value_is_clean(struct rv_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* What frames the message or names its receiver is the transport's. */
static const char *const own_headers[] = {"host",
                                          "content-length",
                                          "transfer-encoding",
                                          "connection",
                                          "keep-alive",
                                          "te",
                                          "trailer",
                                          "upgrade",
                                          "expect",
                                          "accept-encoding",
                                          "proxy-connection",
                                          "proxy-authorization",
                                          NULL};

static const char *header_wrong(const struct rv_outbound_header *header)
{
    if (!is_token(header->name))
        return "the name contains a byte that is not allowed in header names";
    if (!value_is_clean(header->value))
        return "the value contains a line break or another control character";
    if (name_in(header->name, own_headers))
        return "the header is derived from the URL and the body, and cannot be overridden";
    if (header->name.len + header->value.len > HEADER_BYTES_MAX)
        return "the header is longer than 32 KiB";
    return NULL;
}

enum rv_err rv_outgoing_check(struct outgoing *outgoing)
{
    const struct rv_outbound_request *request = &outgoing->request;
    struct rv_str method = request->method;
    bool upper = method.len > 0 && method.len <= RV_CALL_METHOD_BYTES_MAX;
    for (size_t i = 0; i < method.len && upper; i++)
        upper = (method.at[i] >= 'A' && method.at[i] <= 'Z') || method.at[i] == '-';
    if (!upper || rv_str_is(method, "CONNECT") || rv_str_is(method, "TRACE")) {
        snprintf(outgoing->why, sizeof outgoing->why,
                 "the method is not supported; use a method such as GET or POST");
        return RV_ERR_INVALID;
    }
    if (request->headers_count > HEADERS_MAX) {
        snprintf(outgoing->why, sizeof outgoing->why, "more than %d headers", HEADERS_MAX);
        return RV_ERR_INVALID;
    }
    for (size_t i = 0; i < request->headers_count; i++) {
        const char *wrong = header_wrong(&request->headers[i]);
        if (wrong == NULL)
            continue;
        struct rv_str name = request->headers[i].name;
        if (is_token(name) && name.len <= 64)
            snprintf(outgoing->why, sizeof outgoing->why, "header %.*s: %s", RV_STR_FMT(name),
                     wrong);
        else
            snprintf(outgoing->why, sizeof outgoing->why, "header %zu: %s", i + 1, wrong);
        return RV_ERR_INVALID;
    }
    return RV_OK;
}

/* ---- callbacks ---- */

static size_t body_take(char *bytes, size_t size, size_t count, void *to)
{
    struct outgoing *outgoing = to;
    size_t n = size * count;
    rv_buf_add(&outgoing->body, bytes, n);
    if (outgoing->body.failed == RV_OK)
        return n;
    outgoing->broken = outgoing->body.failed == RV_ERR_LIMIT ? RV_OUTCOME_TOO_LARGE
                                                             : RV_OUTCOME_MEMORY;
    snprintf(outgoing->why, sizeof outgoing->why, "the response is larger than %zu bytes",
             outgoing->request.answer_bytes_max);
    return 0;
}

/* Once for each line. A status line begins a head; an empty one ends it; trailers come later. */
static size_t head_take(char *line, size_t size, size_t count, void *to)
{
    struct outgoing *outgoing = to;
    size_t n = size * count;
    outgoing->head_bytes += n;
    if (outgoing->head_bytes > RV_OUTBOUND_HEAD_BYTES_MAX) {
        outgoing->broken = RV_OUTCOME_TOO_LARGE;
        snprintf(outgoing->why, sizeof outgoing->why,
                 "the response's headers are larger than %d KiB",
                 RV_OUTBOUND_HEAD_BYTES_MAX / 1024);
        return 0;
    }
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        outgoing->headed = false;
        rv_buf_reset(&outgoing->head);
        return n;
    }
    if (n <= 2)
        outgoing->headed = true;
    else if (!outgoing->headed)
        rv_buf_add(&outgoing->head, line, n);
    if (outgoing->head.failed == RV_OK)
        return n;
    outgoing->broken = RV_OUTCOME_MEMORY;
    return 0;
}

/* A public address of this machine is one of this machine: the server may listen there. */
static bool may_connect(enum rv_egress_reach reach, const struct rv_address *address)
{
    return rv_egress_reaches(reach, address) &&
           (reach != RV_REACH_PUBLIC || !rv_address_is_here(address));
}

/* The lock behind the check: whatever libcurl is about to connect to is looked at here. */
static curl_socket_t socket_open(void *from, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct outgoing *outgoing = from;
    struct rv_address address;
    if (purpose != CURLSOCKTYPE_IPCXN || !rv_address_of(&to->addr, &address) ||
        !may_connect(outgoing->reach, &address)) {
        outgoing->broken = RV_OUTCOME_REFUSED;
        if (rv_address_of(&to->addr, &address))
            rv_egress_address_why(&outgoing->target, &address, outgoing->why);
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* ---- the easy handle ---- */

static bool list_add(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

static bool header_add(struct curl_slist **list, struct rv_str name, struct rv_str value)
{
    size_t bytes = name.len + value.len + 3;
    char *line = malloc(bytes);
    if (line == NULL)
        return false;
    /* libcurl takes "Name:" for a header to be left out, and "Name;" for an empty one. */
    if (value.len > 0)
        snprintf(line, bytes, "%.*s: %.*s", RV_STR_FMT(name), RV_STR_FMT(value));
    else
        snprintf(line, bytes, "%.*s;", RV_STR_FMT(name));
    bool added = list_add(list, line);
    free(line);
    return added;
}

/* Another origin gets nothing that might be meant for the first one alone. */
static const char *const harmless_headers[] = {
    "accept", "accept-language", "content-type", "idempotency-key", "traceparent", "tracestate",
    NULL};

static bool headers_make(struct outgoing *outgoing)
{
    const struct rv_outbound_request *request = &outgoing->request;
    curl_slist_free_all(outgoing->headers);
    outgoing->headers = NULL;
    bool typed = false;
    /* Without this libcurl waits for a 100-continue before it sends a large body. */
    bool made = list_add(&outgoing->headers, "Expect:");
    for (size_t i = 0; i < request->headers_count && made; i++) {
        const struct rv_outbound_header *header = &request->headers[i];
        if (outgoing->foreign && !name_in(header->name, harmless_headers))
            continue;
        static const char *const type[] = {"content-type", NULL};
        bool is_type = name_in(header->name, type);
        if (is_type && outgoing->body_dropped)
            continue;
        typed = typed || is_type;
        made = header_add(&outgoing->headers, header->name, header->value);
    }
    if (!typed)
        made = made && list_add(&outgoing->headers, "Content-Type:");
    return made;
}

static bool pins_make(struct outgoing *outgoing, const struct rv_addresses *addresses)
{
    curl_slist_free_all(outgoing->pins);
    outgoing->pins = NULL;
    if (addresses->count == 0)
        return true;
    char line[PIN_BYTES];
    int n = snprintf(line, sizeof line, "+%s:%u:", outgoing->target.host, outgoing->target.port);
    for (unsigned i = 0; i < addresses->count; i++) {
        char text[RV_ADDRESS_TEXT_BYTES];
        rv_address_text(&addresses->at[i], text);
        n += snprintf(line + n, sizeof line - (size_t)n, addresses->at[i].v6 ? "%s[%s]" : "%s%s",
                      i > 0 ? "," : "", text);
        rv_assert(n > 0 && n < PIN_BYTES);
    }
    return list_add(&outgoing->pins, line);
}

static void method_set(CURL *easy, const struct outgoing *outgoing)
{
    struct rv_str body = outgoing->request.body;
    const char *method = outgoing->method;
    bool takes_body = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
                      strcmp(method, "PATCH") == 0;
    if (outgoing->body_dropped)
        body = RV_STR_NONE;
    if (strcmp(method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (body.at != NULL || takes_body) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.at != NULL ? body.at : "");
    } else {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
}

/* libcurl repeats a request by itself if a connection that was used before ends without an answer.
 * The request may have been carried out: what may have an effect goes out once. */
static int request_begins(void *from, char *ip, char *local, int port, int local_port)
{
    struct outgoing *outgoing = from;
    bool safe = strcmp(outgoing->method, "GET") == 0 || strcmp(outgoing->method, "HEAD") == 0;
    (void)ip, (void)local, (void)port, (void)local_port;
    return outgoing->begun++ == 0 || safe ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static void options_set(struct outgoing *outgoing, CURL *easy, int64_t left_ms)
{
    int64_t connect_ms = left_ms < CONNECT_MS_MAX ? left_ms : CONNECT_MS_MAX;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, outgoing);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, outgoing->headers);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, outgoing->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, outgoing);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, head_take);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, outgoing);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, socket_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, outgoing);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, request_begins);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, outgoing);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)RECEIVE_BYTES);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "reeve");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)left_ms);
    curl_easy_setopt(easy, CURLOPT_CURLU, outgoing->target.url);
    if (outgoing->pins != NULL)
        curl_easy_setopt(easy, CURLOPT_RESOLVE, outgoing->pins);
}

enum rv_err rv_outgoing_prepare(struct outgoing *outgoing, const struct rv_addresses *addresses,
                                int64_t now)
{
    rv_assert(!outgoing->moving);
    rv_assert(addresses->count <= RV_ADDRESSES_MAX);
    for (unsigned i = 0; i < addresses->count; i++) {
        if (rv_egress_reaches(outgoing->reach, &addresses->at[i]))
            continue;
        rv_egress_address_why(&outgoing->target, &addresses->at[i], outgoing->why);
        return RV_ERR_REFUSED;
    }
    if (outgoing->easy == NULL)
        outgoing->easy = curl_easy_init();
    if (outgoing->easy == NULL || !headers_make(outgoing) || !pins_make(outgoing, addresses))
        return RV_ERR_MEMORY;
    curl_easy_reset(outgoing->easy);
    rv_buf_reset(&outgoing->body);
    rv_buf_reset(&outgoing->head);
    outgoing->head_bytes = 0;
    outgoing->begun = 0;
    outgoing->headed = false;
    outgoing->error[0] = '\0';
    method_set(outgoing->easy, outgoing);
    int64_t left_ms = outgoing->deadline - now; /* the clock has gone on since it was looked at */
    options_set(outgoing, outgoing->easy, left_ms > 1 ? left_ms : 1); /* 0 would be for ever */
    return RV_OK;
}

/* ---- the answer ---- */

static struct rv_str trimmed(struct rv_str text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.at[text.len - 1]) != NULL)
        text.len--;
    while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
        text = (struct rv_str){text.at + 1, text.len - 1};
    return text;
}

static size_t headers_read(struct rv_str head, struct rv_outbound_header *headers)
{
    size_t count = 0;
    while (head.len > 0 && count < HEADERS_MAX) {
        const char *end = memchr(head.at, '\n', head.len);
        size_t len = end != NULL ? (size_t)(end + 1 - head.at) : head.len;
        struct rv_str line = {head.at, len};
        head = (struct rv_str){head.at + len, head.len - len};
        const char *colon = memchr(line.at, ':', line.len);
        if (colon == NULL)
            continue;
        struct rv_str name = {line.at, (size_t)(colon - line.at)};
        struct rv_str value = {colon + 1, line.len - name.len - 1};
        if (is_token(name))
            headers[count++] = (struct rv_outbound_header){name, trimmed(value)};
    }
    return count;
}

static struct rv_str header_find(const struct rv_outbound_header *headers, size_t count,
                                 const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < count; i++)
        if (headers[i].name.len == len && strncasecmp(headers[i].name.at, name, len) == 0)
            return headers[i].value;
    return RV_STR_NONE;
}

/* libcurl's words, and what to do about an authority that this machine does not know: a chain that
 * ends nowhere has these codes (X509_V_ERR_*). */
static void why_note(struct outgoing *outgoing, CURLcode code)
{
    enum { SELF_SIGNED = 18, SELF_SIGNED_IN_CHAIN, NO_ISSUER, NO_FIRST_ISSUER };
    long verified = 0;
    curl_easy_getinfo(outgoing->easy, CURLINFO_SSL_VERIFYRESULT, &verified);
    bool stranger = code == CURLE_PEER_FAILED_VERIFICATION && verified >= SELF_SIGNED &&
                    verified <= NO_FIRST_ISSUER;
    snprintf(outgoing->why, sizeof outgoing->why, "%s%s",
             outgoing->error[0] != '\0' ? outgoing->error
             : code == CURLE_OK
                 ? "the connection was closed before the end of the response's headers"
                 : curl_easy_strerror(code),
             stranger ? "; if a private CA issued the certificate, add the CA to the trusted CAs "
                        "of the server's machine (update-ca-certificates), and restart the server"
                      : "");
}

enum rv_outcome rv_outgoing_outcome(struct outgoing *outgoing, CURLcode code)
{
    rv_assert(outgoing->easy != NULL);
    long request_bytes = 0;
    curl_easy_getinfo(outgoing->easy, CURLINFO_REQUEST_SIZE, &request_bytes);
    outgoing->sent = outgoing->sent || request_bytes > 0;
    if (outgoing->broken != RV_OUTCOME_ANSWERED)
        return outgoing->broken;
    /* libcurl calls an answer whole whose connection ended inside its head. */
    if (code == CURLE_OK && outgoing->headed)
        return RV_OUTCOME_ANSWERED;
    why_note(outgoing, code);
    /* All other codes are connections that ended or spoke something else. */
    if (code == CURLE_OPERATION_TIMEDOUT)
        return RV_OUTCOME_TIMEOUT;
    if (code == CURLE_COULDNT_RESOLVE_HOST)
        return RV_OUTCOME_RESOLVE;
    if (code == CURLE_COULDNT_CONNECT)
        return RV_OUTCOME_CONNECT;
    if (code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
        code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_ISSUER_ERROR ||
        code == CURLE_SSL_INVALIDCERTSTATUS)
        return RV_OUTCOME_TLS;
    if (code == CURLE_OUT_OF_MEMORY)
        return RV_OUTCOME_MEMORY;
    return RV_OUTCOME_LOST;
}

bool rv_outbound_redirects(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static enum rv_err hop_refused(struct outgoing *outgoing, const char *why)
{
    snprintf(outgoing->why, sizeof outgoing->why, "a redirect was not followed: %s", why);
    return RV_ERR_REFUSED;
}

enum rv_err rv_outgoing_redirect(struct outgoing *outgoing)
{
    struct rv_outbound_header headers[HEADERS_MAX];
    long status = 0;
    rv_assert(outgoing->headed); /* the answer has come */
    curl_easy_getinfo(outgoing->easy, CURLINFO_RESPONSE_CODE, &status);
    size_t count = headers_read(rv_buf_str(&outgoing->head), headers);
    struct rv_str location = header_find(headers, count, "location");
    if (!outgoing->request.follow || !rv_outbound_redirects(status) || location.len == 0)
        return RV_ERR_NOT_FOUND;
    if (outgoing->hops++ == RV_OUTBOUND_HOPS_MAX)
        return hop_refused(outgoing, "the maximum is 5 redirects in a row");
    struct rv_target before = {.url = NULL};
    char why[RV_TARGET_WHY_BYTES];
    char *scheme = strdup(outgoing->target.scheme);
    char *host = strdup(outgoing->target.host);
    before.scheme = scheme;
    before.host = host;
    before.port = outgoing->target.port;
    enum rv_err err = scheme != NULL && host != NULL
                          ? rv_target_move(&outgoing->target, location, why)
                          : RV_ERR_MEMORY;
    if (err == RV_ERR_INVALID)
        err = hop_refused(outgoing, why);
    if (err == RV_OK && !rv_target_same_origin(&before, &outgoing->target)) {
        outgoing->foreign = true;
        if (strcmp(scheme, "https") == 0 && strcmp(outgoing->target.scheme, "http") == 0)
            err = hop_refused(outgoing, "the redirect leads from https to http");
    }
    free(scheme);
    free(host);
    if (status == 301 || status == 302 || status == 303)
        outgoing->other_request = true;
    /* As every browser does it: after 303, and after 301 and 302 to a POST, one asks with GET. */
    bool is_post = strcmp(outgoing->method, "POST") == 0;
    if ((status == 303 && strcmp(outgoing->method, "HEAD") != 0) ||
        ((status == 301 || status == 302) && is_post)) {
        outgoing->method = "GET";
        outgoing->body_dropped = true;
    }
    return err;
}

void rv_outgoing_end(struct outgoing *outgoing, enum rv_outcome outcome)
{
    struct rv_outbound_header headers[HEADERS_MAX];
    struct rv_outbound_answer answer = {.outcome = outcome,
                                        .sent = outgoing->sent,
                                        .other_request = outgoing->other_request,
                                        .retry_after_ms = -1};
    char *url = NULL;
    rv_assert(!outgoing->moving);
    rv_assert(outgoing->easy != NULL || outcome != RV_OUTCOME_ANSWERED);
    if (outcome == RV_OUTCOME_ANSWERED) {
        long status = 0;
        curl_off_t retry_after = 0;
        curl_easy_getinfo(outgoing->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(outgoing->easy, CURLINFO_RETRY_AFTER, &retry_after);
        answer.status = (int)status;
        answer.body = rv_buf_str(&outgoing->body);
        answer.headers = headers;
        answer.headers_count = headers_read(rv_buf_str(&outgoing->head), headers);
        if (retry_after > 0)
            answer.retry_after_ms = rv_retry_after_ms((int64_t)retry_after, RV_SECOND_MS);
        answer.content_type = header_find(headers, answer.headers_count, "content-type");
        answer.location = header_find(headers, answer.headers_count, "location");
        if (curl_url_get(outgoing->target.url, CURLUPART_URL, &url, 0) == CURLUE_OK)
            answer.url = rv_str_of(url);
    } else {
        answer.why = rv_str_of(outgoing->why[0] != '\0' ? outgoing->why : rv_outcome_text(outcome));
    }
    outgoing->request.done(outgoing->request.user, &answer);
    curl_free(url);
    rv_outgoing_free(outgoing);
}

void rv_outgoing_free(struct outgoing *outgoing)
{
    curl_easy_cleanup(outgoing->easy);
    curl_slist_free_all(outgoing->headers);
    curl_slist_free_all(outgoing->pins);
    rv_target_done(&outgoing->target);
    rv_buf_done(&outgoing->head);
    rv_buf_done(&outgoing->body);
    free(outgoing);
}
