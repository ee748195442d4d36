/* Outgoing HTTP against a server on loopback: what is sent, what is told, what is refused. */
#include "../lib/loopback.h"
#include "base/time.h"
#include "outbound/outbound.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { BODY_MAX = 64 * 1024, TEXT_BYTES = 4096, PATIENCE_S = 30, CROWD = 500 };

/* ---- what the server does, by path ---- */

/* The arguments of the last call of `done`. */
struct heard {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned count;
    enum rv_outcome outcome;
    bool sent;
    bool other_request;
    int status;
    int64_t retry_after_ms;
    char body[BODY_MAX + 1];
    char type[256];
    char one[256]; /* header X-One */
    char url[256];
    char why[1024];
};

struct scene {
    pthread_mutex_t mutex; /* of `seen` */
    struct loopback *server;
    struct loopback *other; /* another origin */
    struct rv_egress *egress;
    struct rv_outbound *outbound;
    atomic_uint requests;  /* that a server has read */
    atomic_uint asked;     /* names */
    atomic_bool gone;      /* the other side of a hanging request has left */
    const char *address;   /* of every name, or a list of them, "none", or "": a name with none */
    char seen[TEXT_BYTES]; /* head of the newest request, then its body */
    struct heard heard;
};

static bool serve_endless(const struct loopback_request *request, const char *head,
                          const char *piece)
{
    loopback_say(request->fd, "%s", head);
    while (loopback_say(request->fd, "%s", piece))
        ;
    return false;
}

static bool serve_hang(const struct loopback_request *request)
{
    struct scene *scene = request->user;
    loopback_hang(request);
    atomic_store(&scene->gone, true);
    return false;
}

static bool answer(const struct loopback_request *request, const char *status, const char *headers,
                   const char *body)
{
    return loopback_say(request->fd, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status,
                        headers, strlen(body), body);
}

static bool redirect(const struct loopback_request *request, const char *status,
                     const char *location)
{
    char header[512];
    snprintf(header, sizeof header, "Location: %s\r\n", location);
    return answer(request, status, header, "moved");
}

static bool serve_redirect(const struct loopback_request *request)
{
    static const struct {
        const char *path, *status, *location;
    } rows[] = {
        {"/to/end", "302 Found", "/end"},
        {"/to/303", "303 See Other", "/end"},
        {"/to/307", "307 Temporary Redirect", "/end"},
        {"/to/303/307", "303 See Other", "/to/307"},
        {"/to/loop", "302 Found", "/to/loop"},
        {"/to/file", "302 Found", "file:///etc/passwd"},
        {"/to/metadata", "302 Found", "http://169.254.169.254/latest/meta-data"},
        {"/to/decimal", "302 Found", "http://2852039166/"},
    };
    char url[128];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(request->path, rows[i].path) == 0)
            return redirect(request, rows[i].status, rows[i].location);
    unsigned port = loopback_port(((struct scene *)request->user)->other);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/end", port);
    return redirect(request, "307 Temporary Redirect", url);
}

static bool serve(const struct loopback_request *request)
{
    struct scene *scene = request->user;
    const char *path = request->path;
    pthread_mutex_lock(&scene->mutex);
    snprintf(scene->seen, sizeof scene->seen, "%s%.*s", request->head, (int)request->body_bytes,
             request->body);
    pthread_mutex_unlock(&scene->mutex);
    atomic_fetch_add(&scene->requests, 1);
    if (strncmp(path, "/to/", 4) == 0)
        return serve_redirect(request);
    if (strcmp(path, "/hang") == 0)
        return serve_hang(request);
    if (strcmp(path, "/busy") == 0)
        return answer(request, "503 Service Unavailable", "Retry-After: 7\r\n", "");
    if (strcmp(path, "/never") == 0)
        return answer(request, "503 Service Unavailable", "Retry-After: 9223372036854775807\r\n",
                      "");
    if (strcmp(path, "/endless") == 0)
        return serve_endless(request, "HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef");
    if (strcmp(path, "/head") == 0)
        return serve_endless(request, "HTTP/1.1 200 OK\r\n", "X-More: 0123456789abcdef\r\n");
    if (strcmp(path, "/line") == 0)
        return serve_endless(request, "HTTP/1.1 200 OK\r\nX-Long: ", "0123456789abcdef");
    if (strcmp(path, "/100") == 0)
        return serve_endless(request, "HTTP/1.1 100 Continue\r\n\r\n",
                             "HTTP/1.1 100 Continue\r\n\r\n");
    if (strcmp(path, "/bomb") == 0)
        return loopback_bomb(request->fd) && false;
    if (strcmp(path, "/nothing") == 0)
        return false;
    if (strcmp(path, "/cut-head") == 0)
        return loopback_say(request->fd, "HTTP/1.1 200 OK\r\nContent-Type: text") && false;
    if (strcmp(path, "/cut-body") == 0)
        return loopback_say(request->fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc") &&
               false;
    if (strcmp(path, "/garbage") == 0)
        return loopback_say(request->fd, "SSH-2.0-OpenSSH_9.2\r\n") && false;
    return answer(request, "200 OK", "Content-Type: application/json\r\nX-One:  1 \r\n",
                  "{\"ok\":true}");
}

/* ---- asking ---- */

static int ask(void *user, const char *host, struct rv_addresses *ret_addresses)
{
    struct scene *scene = user;
    (void)host;
    atomic_fetch_add(&scene->asked, 1);
    const char *list = scene->address;
    if (strcmp(list, "none") == 0)
        return EAI_NONAME;
    while (*list != '\0') {
        size_t len = strcspn(list, ",");
        assert_true(rv_address_parse((struct rv_str){list, len},
                                     &ret_addresses->at[ret_addresses->count++]));
        list += len + (list[len] == ',');
    }
    return 0;
}

static void scene_allow(struct scene *scene, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void scene_allow(struct scene *scene, const char *format, ...)
{
    char entry[256], why[RV_EGRESS_WHY_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(entry, sizeof entry, format, args);
    va_end(args);
    assert_int_equal(rv_egress_add(scene->egress, rv_str_of(entry), why), RV_OK);
}

static void scene_start(struct scene *scene)
{
    struct rv_outbound_options options = {.egress = scene->egress,
                                          .resolver = {.ask = ask, .user = scene}};
    assert_int_equal(rv_outbound_open(&options, &scene->outbound), RV_OK);
}

static void scene_prepare(struct scene *scene)
{
    *scene = (struct scene){
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .address = "none",
        .heard = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
    scene->server = loopback_open(serve, scene);
    scene->other = loopback_open(serve, scene);
    scene->egress = rv_egress_new();
}

/* The usual: the one server is allowed, the other is not. */
static void scene_open(struct scene *scene)
{
    scene_allow(scene, "http://127.0.0.1:%u", loopback_port(scene->server));
    scene_start(scene);
}

/* Whatever is under way ends. */
static void scene_end(struct scene *scene)
{
    rv_outbound_close(scene->outbound);
    scene->outbound = NULL;
}

static void scene_close(struct scene *scene)
{
    scene_end(scene);
    rv_egress_free(scene->egress);
    loopback_close(scene->server);
    loopback_close(scene->other);
}

static int prepare_scene(void **state)
{
    static struct scene scene;
    scene_prepare(&scene);
    *state = &scene;
    return 0;
}

static int close_scene(void **state)
{
    scene_close(*state);
    return 0;
}

static void text_copy(char *to, size_t bytes, struct rv_str from)
{
    snprintf(to, bytes, "%.*s", RV_STR_FMT(from));
}

static void on_done(void *user, const struct rv_outbound_answer *answer)
{
    struct heard *heard = user;
    pthread_mutex_lock(&heard->mutex);
    heard->count++;
    heard->outcome = answer->outcome;
    heard->sent = answer->sent;
    heard->other_request = answer->other_request;
    heard->status = answer->status;
    heard->retry_after_ms = answer->retry_after_ms;
    text_copy(heard->body, sizeof heard->body, answer->body);
    text_copy(heard->type, sizeof heard->type, answer->content_type);
    text_copy(heard->url, sizeof heard->url, answer->url);
    text_copy(heard->why, sizeof heard->why, answer->why);
    for (size_t i = 0; i < answer->headers_count; i++)
        if (rv_str_is(answer->headers[i].name, "X-One"))
            text_copy(heard->one, sizeof heard->one, answer->headers[i].value);
    pthread_cond_signal(&heard->changed);
    pthread_mutex_unlock(&heard->mutex);
}

static void heard_wait(struct heard *heard, unsigned count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&heard->mutex);
    while (heard->count < count)
        assert_int_equal(pthread_cond_timedwait(&heard->changed, &heard->mutex, &until), 0);
    pthread_mutex_unlock(&heard->mutex);
}

static const char *url_of(const struct scene *scene, const char *path)
{
    static char url[512];
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", loopback_port(scene->server), path);
    return url;
}

static struct rv_outbound_request get_url(struct scene *scene, const char *url)
{
    return (struct rv_outbound_request){.method = RV_STR("GET"),
                                        .url = rv_str_of(url),
                                        .timeout_ms = PATIENCE_S * 1000,
                                        .answer_bytes_max = BODY_MAX,
                                        .done = on_done,
                                        .user = &scene->heard};
}

static struct rv_outbound_request get(struct scene *scene, const char *path)
{
    return get_url(scene, url_of(scene, path));
}

/* Its id. */
static uint64_t begin(struct scene *scene, const struct rv_outbound_request *request)
{
    uint64_t id;
    assert_int_equal(rv_outbound_submit(scene->outbound, request, &id), RV_OK);
    assert_true(id != 0);
    return id;
}

/* Begins it and waits for its answer. */
static void submit(struct scene *scene, const struct rv_outbound_request *request)
{
    unsigned before = scene->heard.count;
    (void)begin(scene, request);
    heard_wait(&scene->heard, before + 1);
    assert_int_equal(scene->heard.count, before + 1);
}

static void submit_get(struct scene *scene, const char *path)
{
    struct rv_outbound_request request = get(scene, path);
    submit(scene, &request);
}

/* ---- tests ---- */

static void an_answer_is_told_in_all_its_parts(void **state)
{
    struct scene *scene = *state;
    scene_open(scene);
    struct rv_outbound_header headers[] = {{RV_STR("X-Key"), RV_STR("k1")},
                                           {RV_STR("X-Empty"), RV_STR("")},
                                           {RV_STR("content-type"), RV_STR("text/plain")}};
    struct rv_outbound_request request = get(scene, "/a?b=c#d");
    request.method = RV_STR("POST");
    request.headers = headers;
    request.headers_count = 3;
    request.body = RV_STR("hello");
    submit(scene, &request);
    assert_int_equal(scene->heard.outcome, RV_OUTCOME_ANSWERED);
    assert_int_equal(scene->heard.status, 200);
    assert_true(scene->heard.sent);
    assert_string_equal(scene->heard.body, "{\"ok\":true}");
    assert_string_equal(scene->heard.type, "application/json");
    assert_string_equal(scene->heard.one, "1");
    assert_int_equal(scene->heard.retry_after_ms, -1);
    assert_string_equal(scene->heard.url, url_of(scene, "/a?b=c"));
    assert_non_null(strstr(scene->seen, "POST /a?b=c HTTP/1.1\r\n"));
    assert_non_null(strstr(scene->seen, "X-Key: k1\r\n"));
    assert_non_null(strstr(scene->seen, "X-Empty:\r\n"));
    assert_non_null(strstr(scene->seen, "content-type: text/plain\r\n"));
    assert_null(strstr(scene->seen, "Expect:"));
    assert_null(strstr(scene->seen, "urlencoded"));
    assert_non_null(strstr(scene->seen, "\r\n\r\nhello"));
    submit_get(scene, "/busy");
    assert_int_equal(scene->heard.status, 503);
    assert_int_equal(scene->heard.retry_after_ms, 7000);
    submit_get(scene, "/never");
    assert_int_equal(scene->heard.retry_after_ms, RV_DURATION_MS_MAX);
    assert_int_equal(loopback_accepted(scene->server), 1); /* the connection was kept */
}

static void methods_send_a_body_or_none(void **state)
{
    struct scene *scene = *state;
    scene_open(scene);
    static const struct {
        const char *method;
        const char *body;
        const char *seen;
    } rows[] = {
        {"HEAD", NULL, "HEAD / "},
        {"POST", NULL, "Content-Length: 0\r\n"},
        {"DELETE", NULL, "DELETE / "},
        {"PATCH", "x", "PATCH / "},
        {"PUT", "", "Content-Length: 0\r\n"},
        {"DELETE", "x", "Content-Length: 1\r\n"},
        {"GET", "x", "Content-Length: 1\r\n"},
        {"OPTIONS", NULL, "OPTIONS / "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rv_outbound_request request = get(scene, "/");
        request.method = rv_str_of(rows[i].method);
        request.body = rv_str_of(rows[i].body);
        submit(scene, &request);
        assert_int_equal(scene->heard.outcome, RV_OUTCOME_ANSWERED);
        if (strstr(scene->seen, rows[i].seen) == NULL)
            fail_msg("%s: %s", rows[i].method, scene->seen);
    }
}

static void a10_what_is_not_listed_is_neither_resolved_nor_connected_to(void **state)
{
    struct scene *scene = *state;
    scene->address = "127.0.0.1";
    scene_start(scene);
    char named[128];
    snprintf(named, sizeof named, "http://name.example:%u/", loopback_port(scene->server));
    const char *urls[] = {named, url_of(scene, "/")};
    for (size_t i = 0; i < 2; i++) {
        print_message("# %s\n", urls[i]);
        struct rv_outbound_request request = get_url(scene, urls[i]);
        submit(scene, &request);
        assert_int_equal(scene->heard.outcome, RV_OUTCOME_REFUSED);
        assert_false(scene->heard.sent);
        assert_non_null(strstr(scene->heard.why, "--egress http://"));
    }
    assert_int_equal(scene->asked, 0);
    assert_int_equal(loopback_accepted(scene->server), 0);
}

/* Requests to a host by its name. */
struct named {
    const char *name;    /* of the case */
    const char *address; /* of the host: scene.address */
    const char *allowed; /* with the server's port */
    const char *host;
    unsigned times; /* of the request */
    enum rv_outcome outcome;
    const char *why; /* is part of it; NULL: anything */
};

/* How many times the resolver was asked. */
static unsigned assert_named(const struct named *row)
{
    struct scene scene;
    char url[128];
    print_message("# %s\n", row->name);
    scene_prepare(&scene);
    unsigned port = loopback_port(scene.server);
    scene.address = row->address;
    scene_allow(&scene, "http://%s:%u", row->allowed, port);
    scene_start(&scene);
    snprintf(url, sizeof url, "http://%s:%u/", row->host, port);
    struct rv_outbound_request request = get_url(&scene, url);
    bool answered = row->outcome == RV_OUTCOME_ANSWERED;
    for (unsigned i = 0; i < row->times; i++) {
        submit(&scene, &request);
        assert_int_equal(scene.heard.outcome, row->outcome);
        assert_int_equal(scene.heard.sent, answered);
        if (row->why != NULL)
            assert_non_null(strstr(scene.heard.why, row->why));
    }
    assert_int_equal(loopback_accepted(scene.server), answered);
    scene_close(&scene);
    return scene.asked;
}

/* The name is allowed; where it leads is not. */
static void a10_a_name_that_leads_inside_is_refused(void **state)
{
    static const char *const addresses[] = {
        "127.0.0.1",         "10.0.0.1",         "::1", "::ffff:127.0.0.1", "169.254.169.254",
        "1.1.1.1,127.0.0.1", "127.0.0.1,1.1.1.1"};
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        (void)assert_named(&(struct named){addresses[i], addresses[i], "*", "name.example", 1,
                                           RV_OUTCOME_REFUSED, "resolves to"});
}

static void a_name_whose_port_is_written_out_may_lead_inside_but_not_to_metadata(void **state)
{
    static const struct named rows[] = {
        {"inside", "127.0.0.1", "name.example", "name.example", 3, RV_OUTCOME_ANSWERED, NULL},
        {"metadata", "169.254.169.254", "name.example", "name.example", 3, RV_OUTCOME_REFUSED,
         NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(assert_named(&rows[i]), 1);
}

/* The name tells a public address when it is checked; libcurl, left alone, would ask again and hear
 * of this machine. Here the check is given no address to pin, so that the socket's own check is
 * what is left. */
static void a10_rebinding_meets_a_check_at_the_socket(void **state)
{
    (void)state;
    (void)assert_named(
        &(struct named){"no address to pin", "", "*", "localhost", 1, RV_OUTCOME_REFUSED, NULL});
}

static void a_name_without_address_is_told(void **state)
{
    struct scene *scene = *state;
    scene_allow(scene, "http://*");
    scene_start(scene);
    struct rv_outbound_request request = get_url(scene, "http://no-such-name.invalid/");
    submit(scene, &request);
    assert_int_equal(scene->heard.outcome, RV_OUTCOME_RESOLVE);
    assert_false(scene->heard.sent);
    assert_non_null(strstr(scene->heard.why, "no-such-name.invalid: "));
}

static void a_redirect_is_told_or_followed_as_asked(void **state)
{
    struct scene *scene = *state;
    scene_open(scene);
    struct rv_outbound_header headers[] = {{RV_STR("Authorization"), RV_STR("Bearer t")},
                                           {RV_STR("Content-Type"), RV_STR("text/plain")}};
    struct rv_outbound_request request = get(scene, "/to/end");
    submit(scene, &request);
    assert_int_equal(scene->heard.status, 302);
    request.follow = true;
    submit(scene, &request);
    assert_int_equal(scene->heard.status, 200);
    assert_string_equal(scene->heard.url, url_of(scene, "/end"));
    static const struct {
        const char *path, *seen;
        bool body, other;
    } rows[] = {
        {"/to/end", "GET /end", false, true},
        {"/to/303/307", "GET /end", false, true},
        {"/to/307", "POST /end", true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("# %s\n", rows[i].path);
        request = get(scene, rows[i].path);
        request.method = RV_STR("POST");
        request.body = RV_STR("payload");
        request.headers = headers;
        request.headers_count = 2;
        request.follow = true;
        submit(scene, &request);
        assert_true(scene->heard.status == 200 && scene->heard.other_request == rows[i].other);
        assert_non_null(strstr(scene->seen, rows[i].seen));
        assert_non_null(strstr(scene->seen, "Authorization: Bearer t"));
        assert_int_equal(strstr(scene->seen, "payload") != NULL, rows[i].body);
        assert_int_equal(strstr(scene->seen, "text/plain") != NULL, rows[i].body);
    }
}

static void a10_each_hop_is_checked_anew(void **state)
{
    static const struct {
        const char *path;
        enum rv_outcome outcome;
        const char *why;
    } rows[] = {
        {"/to/other", RV_OUTCOME_REFUSED, "--egress http://127.0.0.1:"},
        {"/to/metadata", RV_OUTCOME_REFUSED, "--egress http://169.254.169.254"},
        {"/to/decimal", RV_OUTCOME_REFUSED, "--egress http://169.254.169.254"},
        {"/to/file", RV_OUTCOME_REDIRECTS, "must begin with http:// or https://"},
        {"/to/loop", RV_OUTCOME_REDIRECTS, "the maximum is 5"},
    };
    struct scene *scene = *state;
    scene_open(scene);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("# %s\n", rows[i].path);
        struct rv_outbound_request request = get(scene, rows[i].path);
        request.follow = true;
        submit(scene, &request);
        assert_int_equal(scene->heard.outcome, rows[i].outcome);
        assert_true(scene->heard.sent);
        assert_non_null(strstr(scene->heard.why, rows[i].why));
    }
    assert_int_equal(loopback_accepted(scene->other), 0);
}

static void another_origin_gets_no_credentials(void **state)
{
    struct scene *scene = *state;
    scene_allow(scene, "http://127.0.0.1:%u", loopback_port(scene->server));
    scene_allow(scene, "http://127.0.0.1:%u", loopback_port(scene->other));
    scene_start(scene);
    struct rv_outbound_header headers[] = {{RV_STR("AUTHORIZATION"), RV_STR("Bearer canary")},
                                           {RV_STR("Cookie"), RV_STR("canary")},
                                           {RV_STR("X-Api-Key"), RV_STR("canary")},
                                           {RV_STR("Idempotency-Key"), RV_STR("key-1")}};
    struct rv_outbound_request request = get(scene, "/to/other");
    request.headers = headers;
    request.headers_count = 4;
    request.follow = true;
    submit(scene, &request);
    assert_int_equal(scene->heard.status, 200);
    assert_int_equal(loopback_accepted(scene->other), 1);
    assert_null(strstr(scene->seen, "canary"));
    assert_non_null(strstr(scene->seen, "Idempotency-Key: key-1"));
}

static void a11_no_line_break_or_framing_header_leaves(void **state)
{
    const struct {
        const char *name;
        struct rv_outbound_header header; /* without a name: none */
        const char *method, *path;
        const char *why;
    } rows[] = {
        {"CR LF in a value", {RV_STR("X-A"), RV_STR("a\r\nX-Evil: 1")}, "GET", "/", "header"},
        {"LF in a value", {RV_STR("X-A"), RV_STR("a\nb")}, "GET", "/", "header"},
        {"NUL in a value", {RV_STR("X-A"), RV_STR("a\0b")}, "GET", "/", "header"},
        {"CR LF in a name", {RV_STR("X-A\r\nX-Evil"), RV_STR("1")}, "GET", "/", "header"},
        {"colon in a name", {RV_STR("X-A:"), RV_STR("1")}, "GET", "/", "header"},
        {"space in a name", {RV_STR("X A"), RV_STR("1")}, "GET", "/", "header"},
        {"empty name", {RV_STR(""), RV_STR("1")}, "GET", "/", "header"},
        {"Host", {RV_STR("Host"), RV_STR("internal")}, "GET", "/", "header"},
        {"content-length", {RV_STR("content-length"), RV_STR("0")}, "GET", "/", "header"},
        {"chunked", {RV_STR("Transfer-Encoding"), RV_STR("chunked")}, "GET", "/", "header"},
        {"Connection", {RV_STR("Connection"), RV_STR("upgrade")}, "GET", "/", "header"},
        {"credentials", {RV_STR("Proxy-Authorization"), RV_STR("x")}, "GET", "/", "header"},
        {"method in lower case", .method = "get", .path = "/", .why = "method"},
        {"method with a line", .method = "GET / HTTP/1.1\r\nX: ", .path = "/", .why = "method"},
        {"empty method", .method = "", .path = "/", .why = "method"},
        {"CONNECT", .method = "CONNECT", .path = "/", .why = "method"},
        {"TRACE", .method = "TRACE", .path = "/", .why = "method"},
        {"space in a method", .method = "G ET", .path = "/", .why = "method"},
        {"line in a URL", .method = "GET", .path = "/\r\nX: 1", .why = ""},
    };
    struct scene *scene = *state;
    scene_open(scene);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("# %s\n", rows[i].name);
        struct rv_outbound_request request = get(scene, rows[i].path);
        request.method = rv_str_of(rows[i].method);
        request.headers = &rows[i].header;
        request.headers_count = rows[i].header.name.at != NULL;
        submit(scene, &request);
        assert_int_equal(scene->heard.outcome, RV_OUTCOME_INVALID);
        assert_non_null(strstr(scene->heard.why, rows[i].why));
        assert_null(strchr(scene->heard.why, '\n'));
    }
    assert_int_equal(scene->requests, 0);
}

/* Answers that are too much, or none (attack A07, F-18). */
static void f18_an_answer_without_end_or_sense_costs_no_more_than_its_cap(void **state)
{
    static const struct {
        const char *path;
        enum rv_outcome outcome;
    } rows[] = {
        {"/endless", RV_OUTCOME_TOO_LARGE}, {"/bomb", RV_OUTCOME_TOO_LARGE},
        {"/head", RV_OUTCOME_TOO_LARGE},    {"/100", RV_OUTCOME_TOO_LARGE},
        {"/nothing", RV_OUTCOME_LOST},      {"/cut-head", RV_OUTCOME_LOST},
        {"/cut-body", RV_OUTCOME_LOST},     {"/garbage", RV_OUTCOME_LOST},
    };
    struct scene *scene = *state;
    scene_open(scene);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("# %s\n", rows[i].path);
        submit_get(scene, rows[i].path);
        if (scene->heard.outcome != rows[i].outcome)
            fail_msg("%s (%s)", rv_outcome_text(scene->heard.outcome), scene->heard.why);
        assert_true(scene->heard.sent);
        assert_string_not_equal(scene->heard.why, "");
    }
    /* A line without end: libcurl's own cap, or ours. */
    submit_get(scene, "/line");
    assert_int_not_equal(scene->heard.outcome, RV_OUTCOME_ANSWERED);
}

static void time_over_is_told_and_the_request_was_sent(void **state)
{
    struct scene *scene = *state;
    scene_open(scene);
    struct rv_outbound_request request = get(scene, "/hang");
    request.timeout_ms = 100;
    submit(scene, &request);
    assert_int_equal(scene->heard.outcome, RV_OUTCOME_TIMEOUT);
    assert_true(scene->heard.sent);
}

/* A port that was taken and given back: nobody listens there. */
static unsigned port_closed(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void without_a_connection_nothing_was_sent(void **state)
{
    unsigned port = port_closed();
    char url[128];
    struct scene *scene = *state;
    scene_allow(scene, "http://127.0.0.1:%u", port);
    scene_allow(scene, "https://127.0.0.1:%u", loopback_port(scene->server));
    scene_start(scene);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
    struct rv_outbound_request request = get_url(scene, url);
    submit(scene, &request);
    assert_int_equal(scene->heard.outcome, RV_OUTCOME_CONNECT);
    assert_false(scene->heard.sent);
    /* A server that speaks no TLS: the handshake carries no byte of the request. */
    snprintf(url, sizeof url, "https://127.0.0.1:%u/", loopback_port(scene->server));
    request = get_url(scene, url);
    request.timeout_ms = 300;
    submit(scene, &request);
    assert_true(scene->heard.outcome == RV_OUTCOME_TLS ||
                scene->heard.outcome == RV_OUTCOME_TIMEOUT);
    assert_false(scene->heard.sent);
}

static bool wait_for(atomic_bool *flag)
{
    for (int i = 0; i < PATIENCE_S * 1000 && !atomic_load(flag); i++)
        poll(NULL, 0, 1);
    return atomic_load(flag);
}

static void a_cancel_ends_the_connection_at_once(void **state)
{
    struct scene *scene = *state;
    scene_open(scene);
    struct rv_outbound_request request = get(scene, "/hang");
    uint64_t id = begin(scene, &request);
    for (int i = 0; i < PATIENCE_S * 1000 && atomic_load(&scene->requests) == 0; i++)
        poll(NULL, 0, 1);
    assert_int_equal(rv_outbound_cancel(scene->outbound, id), RV_OK);
    heard_wait(&scene->heard, 1);
    assert_int_equal(scene->heard.outcome, RV_OUTCOME_CANCELLED);
    assert_true(scene->heard.sent);
    assert_true(wait_for(&scene->gone));
    /* One that is over already. */
    assert_int_equal(rv_outbound_cancel(scene->outbound, id), RV_OK);
    scene_end(scene);
    assert_int_equal(scene->heard.count, 1);
}

static void closing_ends_all_that_is_under_way(void **state)
{
    struct scene *scene = *state;
    scene_open(scene);
    for (int i = 0; i < 20; i++) {
        struct rv_outbound_request request = get(scene, "/hang");
        (void)begin(scene, &request);
    }
    scene_end(scene);
    assert_int_equal(scene->heard.count, 20);
    assert_int_equal(scene->heard.outcome, RV_OUTCOME_CANCELLED);
}

static void the_environment_names_no_proxy(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    assert_int_equal(setenv("ALL_PROXY", "socks5://127.0.0.1:1", 1), 0);
    scene_open(scene);
    submit_get(scene, "/");
    assert_int_equal(scene->heard.outcome, RV_OUTCOME_ANSWERED);
    scene_end(scene);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
}

/* Many at once, by a name: it is asked for once, and no thread is begun for each. */
static void a_crowd_shares_one_thread_and_one_answer_of_the_resolver(void **state)
{
    char url[128];
    struct scene *scene = *state;
    scene->address = "127.0.0.1";
    scene_allow(scene, "http://crowd.example:%u", loopback_port(scene->server));
    scene_start(scene);
    snprintf(url, sizeof url, "http://crowd.example:%u/", loopback_port(scene->server));
    for (int i = 0; i < CROWD; i++) {
        struct rv_outbound_request request = get_url(scene, url);
        (void)begin(scene, &request);
    }
    heard_wait(&scene->heard, CROWD);
    assert_int_equal(scene->heard.outcome, RV_OUTCOME_ANSWERED);
    assert_int_equal(scene->asked, 1);
    assert_int_equal(scene->requests, CROWD);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, prepare_scene, close_scene)
    const struct CMUnitTest tests[] = {
        SCENE(an_answer_is_told_in_all_its_parts),
        SCENE(methods_send_a_body_or_none),
        SCENE(a10_what_is_not_listed_is_neither_resolved_nor_connected_to),
        cmocka_unit_test(a10_a_name_that_leads_inside_is_refused),
        cmocka_unit_test(a_name_whose_port_is_written_out_may_lead_inside_but_not_to_metadata),
        cmocka_unit_test(a10_rebinding_meets_a_check_at_the_socket),
        SCENE(a_name_without_address_is_told),
        SCENE(a_redirect_is_told_or_followed_as_asked),
        SCENE(a10_each_hop_is_checked_anew),
        SCENE(another_origin_gets_no_credentials),
        SCENE(a11_no_line_break_or_framing_header_leaves),
        SCENE(f18_an_answer_without_end_or_sense_costs_no_more_than_its_cap),
        SCENE(time_over_is_told_and_the_request_was_sent),
        SCENE(without_a_connection_nothing_was_sent),
        SCENE(a_cancel_ends_the_connection_at_once),
        SCENE(closing_ends_all_that_is_under_way),
        SCENE(the_environment_names_no_proxy),
        SCENE(a_crowd_shares_one_thread_and_one_answer_of_the_resolver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
