/* The api over real loopback sockets, before a scheduler that this test plays: framing attacks,
 * slow and leaving clients, keep-alive, pipelining, limits, a clean stop. */
#include "api/api.h"
#include "base/limits.h"
#include "base/os/thread.h"
#include "door/listen.h"
#include "scheduler/call.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the scheduler that is played ---- */

enum { PARKED_MAX = 1024, PATIENCE_MS = 1000, TEST_SECONDS = 20 };

struct stage {
    struct rv_api *api;
    struct rv_mailbox mailbox;
    struct rv_thread thread;
    struct rv_call *parked[PARKED_MAX];
    size_t parked_count;
    uint16_t port;
    int64_t task_last;
    atomic_uint parked_now, gone, undelivered, replies;
    atomic_int health;
};

static void requests_give(struct rv_call *call, struct rv_poll *poll)
{
    poll->requests_count = poll->max;
    poll->requests = RV_NEW_ARRAY(&call->arena, struct rv_assignment, poll->max + 1);
    for (size_t i = 0; i < poll->requests_count; i++)
        poll->requests[i] = (struct rv_assignment){.step = {{1000}, (uint32_t)i + 1},
                                                   .attempt = 1,
                                                   .token = call->seed,
                                                   .reference = RV_STR("/do/0/x"),
                                                   .input = RV_STR("{\"a\":1}")};
}

/* Agents named "park..." wait until they leave; the others get what they ask for. */
static bool poll_play(struct stage *stage, struct rv_call *call)
{
    if (call->u.poll.agent.len >= 4 && memcmp(call->u.poll.agent.at, "park", 4) == 0) {
        stage->parked[stage->parked_count++] = call;
        atomic_store(&stage->parked_now, (unsigned)stage->parked_count);
        return false;
    }
    requests_give(call, &call->u.poll);
    return true;
}

static void parked_take(struct stage *stage, size_t i)
{
    struct rv_call *call = stage->parked[i];
    stage->parked[i] = stage->parked[--stage->parked_count];
    /* "park-late": was handed something in the very moment in which it left. */
    if (rv_str_is(call->u.poll.agent, "park-late"))
        requests_give(call, &call->u.poll);
    call->finish(call);
    atomic_store(&stage->parked_now, (unsigned)stage->parked_count);
}

static void gone_play(struct stage *stage, uint64_t serial)
{
    for (size_t i = 0; i < stage->parked_count; i++) {
        if (stage->parked[i]->serial != serial)
            continue;
        parked_take(stage, i);
        atomic_fetch_add(&stage->gone, 1);
        return;
    }
}

static void call_play(struct stage *stage, struct rv_call *call)
{
    call->now = 1795224600000;
    call->mono_now = call->mono_at;
    if (call->kind == RV_CALL_POLL && !poll_play(stage, call))
        return;
    if (call->kind == RV_CALL_SUBMIT)
        for (size_t i = 0; i < call->u.submit.count; i++)
            call->u.submit.items[i].task.value = ++stage->task_last;
    if (call->kind == RV_CALL_REPLIES) {
        atomic_fetch_add(&stage->replies, (unsigned)call->u.replies.count);
        for (size_t i = 0; i < call->u.replies.count; i++)
            call->u.replies.items[i].status = 200;
        if (call->u.replies.has_next)
            requests_give(call, &call->u.replies.next);
    }
    if (call->kind == RV_CALL_SHOW) {
        call->err = RV_ERR_NOT_FOUND;
        call->message = RV_STR("there is no such task");
    }
    if (call->kind == RV_CALL_GONE)
        gone_play(stage, call->u.gone.serial);
    if (call->kind == RV_CALL_UNSENT)
        atomic_fetch_add(&stage->undelivered, 1);
    call->finish(call);
}

static void stage_run(void *self)
{
    struct stage *stage = self;
    void *calls[64];
    size_t count;
    while ((count = rv_mailbox_take(&stage->mailbox, calls, 64, -1)) > 0)
        for (size_t i = 0; i < count; i++)
            call_play(stage, calls[i]);
    while (stage->parked_count > 0)
        parked_take(stage, 0);
}

static enum rv_err health(void *self, const char **ret_why)
{
    (void)ret_why;
    struct stage *stage = self;
    return (enum rv_err)atomic_load(&stage->health);
}

static uint16_t port_of(int fd)
{
    char name[RV_DOOR_NAME_BYTES];
    bool public;
    if (rv_door_look(fd, &public, name) != RV_OK)
        return 0;
    return (uint16_t)strtoul(strrchr(name, ':') + 1, NULL, 10);
}

static int stage_begin(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);
    int socket;
    struct rv_api_options options = {.sockets = &socket,
                                     .sockets_count = 1,
                                     .mailbox = &stage->mailbox,
                                     .patience_ms = PATIENCE_MS,
                                     .health = health,
                                     .self = stage};
    rv_mailbox_init(&stage->mailbox, offsetof(struct rv_call, next));
    if (rv_door_listen(RV_STR("127.0.0.1:0"), &socket) != RV_OK ||
        (stage->port = port_of(socket)) == 0 ||
        rv_thread_start(&stage->thread, "stage", stage_run, stage) != RV_OK ||
        rv_api_open(&options, &stage->api) != RV_OK)
        return -1;
    *state = stage;
    return 0;
}

static int stage_end(void **state)
{
    struct stage *stage = *state;
    rv_mailbox_close(&stage->mailbox);
    rv_thread_join(&stage->thread);
    rv_api_close(stage->api, 100);
    rv_mailbox_done(&stage->mailbox);
    free(stage);
    return 0;
}

/* ---- a client ---- */

struct client {
    int fd;
    char *bytes; /* owned: what has come and was not read yet */
    size_t len;
    size_t room;
};

struct reply {
    int status;
    char head[2048];
    char body[4096];
    size_t body_len; /* all of it, also what `body` has no room for */
};

static void client_open(struct client *client, const struct stage *stage)
{
    *client = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(stage->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct timeval patience = {.tv_sec = TEST_SECONDS};
    setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(client->fd, (struct sockaddr *)&to, sizeof to), 0);
}

static void client_close(struct client *client)
{
    close(client->fd);
    free(client->bytes);
}

/* False when the server has closed meanwhile. */
static bool client_send(struct client *client, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(client->fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

static void client_say(struct client *client, const char *text)
{
    (void)client_send(client, text, strlen(text));
}

/* More bytes; 0 when the server has closed. */
static size_t client_fill(struct client *client)
{
    if (client->room - client->len < 4096) {
        client->room = client->room * 2 + 65536;
        client->bytes = realloc(client->bytes, client->room);
        assert_non_null(client->bytes);
    }
    ssize_t got = recv(client->fd, client->bytes + client->len, client->room - client->len - 1, 0);
    if (got < 0 && errno == EAGAIN)
        fail_msg("the server says nothing for %d s", TEST_SECONDS);
    if (got <= 0)
        return 0;
    client->len += (size_t)got;
    return (size_t)got;
}

static void client_drop(struct client *client, size_t len)
{
    memmove(client->bytes, client->bytes + len, client->len - len);
    client->len -= len;
}

/* One whole answer; false when the connection ends before it. */
static bool client_read(struct client *client, struct reply *reply)
{
    const char *end = NULL;
    for (;;) {
        if (client->len > 0) {
            client->bytes[client->len] = '\0';
            end = strstr(client->bytes, "\r\n\r\n");
        }
        if (end != NULL)
            break;
        if (client_fill(client) == 0)
            return false;
    }
    size_t head_len = (size_t)(end - client->bytes) + 4;
    size_t kept = head_len < sizeof reply->head ? head_len : sizeof reply->head - 1;
    memcpy(reply->head, client->bytes, kept);
    reply->head[kept] = '\0';
    reply->status = (int)strtol(reply->head + 9, NULL, 10);
    client_drop(client, head_len);
    const char *length = strstr(reply->head, "Content-Length: ");
    size_t body_len = length ? strtoul(length + 16, NULL, 10) : 0;
    while (client->len < body_len)
        if (client_fill(client) == 0)
            return false;
    kept = body_len < sizeof reply->body ? body_len : sizeof reply->body - 1;
    if (kept > 0)
        memcpy(reply->body, client->bytes, kept);
    reply->body[kept] = '\0';
    reply->body_len = body_len;
    if (body_len > 0)
        client_drop(client, body_len);
    return true;
}

static bool client_at_end(struct client *client)
{
    return client->len == 0 && client_fill(client) == 0;
}

static void client_post(struct client *client, const char *path, const char *body)
{
    char head[256];
    int len = snprintf(head, sizeof head,
                       "POST %s HTTP/1.1\r\nHost: 0\r\nContent-Length: %zu\r\n\r\n", path,
                       strlen(body));
    assert_true(client_send(client, head, (size_t)len));
    assert_true(client_send(client, body, strlen(body)));
}

/* Waits until the count is reached; the wait is bounded by the server's own answers to a question
 * that goes the same way. */
static void await(struct stage *stage, atomic_uint *count, unsigned wanted)
{
    struct client client;
    struct reply reply;
    client_open(&client, stage);
    for (int i = 0; i < 20000 && atomic_load(count) != wanted; i++) {
        client_say(&client, "GET /v1/agents HTTP/1.1\r\nHost: 0\r\n\r\n");
        assert_true(client_read(&client, &reply));
    }
    client_close(&client);
    assert_int_equal(atomic_load(count), wanted);
}

/* ---- framing ---- */

struct attack {
    const char *name;
    const char *bytes;
    size_t len;
    int status;
};

#define ATTACK(name, text, status)                                                                 \
    {                                                                                              \
        name, text, sizeof(text) - 1, status                                                       \
    }
#define SMUGGLED "GET /health/live HTTP/1.1\r\nHost: 0\r\n\r\n"
static const struct attack attacks[] = {
    ATTACK("length and chunked",
           "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nContent-Length: 4\r\n"
           "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
           400),
    ATTACK("two lengths",
           "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nContent-Length: 4\r\nContent-Length: 44\r\n\r\n"
           "{}  " SMUGGLED,
           400),
    ATTACK("the same length twice",
           "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
           400),
    ATTACK("two encodings",
           "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nTransfer-Encoding: chunked\r\n"
           "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
           400),
    ATTACK("another encoding",
           "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
           501),
    ATTACK("chunked in HTTP/1.0",
           "POST /v1/tasks HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED, 400),
    ATTACK("length with a sign",
           "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nContent-Length: +2\r\n\r\n{}", 400),
    ATTACK("length with a comma",
           "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nContent-Length: 2, 2\r\n\r\n{}", 400),
    ATTACK("negative length", "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nContent-Length: -1\r\n\r\n",
           400),
    ATTACK("blank before the colon",
           "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nContent-Length : 5\r\n\r\nhello" SMUGGLED, 400),
    ATTACK("NUL in the path", "GET /health/live\0/x HTTP/1.1\r\nHost: 0\r\n\r\n", 400),
    ATTACK("NUL and a false version", "GET /health/live\0HTTP/1.1 HTTP/1.1\r\nHost: 0\r\n\r\n",
           400),
    ATTACK("NUL twice", "GET /health/live\0HTTP/1.1\0 HTTP/1.1\r\nHost: 0\r\n\r\n", 400),
    ATTACK("NUL percent-encoded", "GET /health/live%00 HTTP/1.1\r\nHost: 0\r\n\r\n", 400),
    ATTACK("blank in the path", "GET /health/live x HTTP/1.1\r\nHost: 0\r\n\r\n", 400),
    ATTACK("two hosts", "GET /health/live HTTP/1.1\r\nHost: 0\r\nHost: y\r\n\r\n", 400),
    ATTACK("no host", "GET /health/live HTTP/1.1\r\n\r\n", 400),
    ATTACK(
        "from a web page",
        "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nOrigin: http://evil\r\nContent-Length: 2\r\n\r\n{}",
        403),
    ATTACK("HTTP/2", "GET /health/live HTTP/2.0\r\nHost: 0\r\n\r\n", 505),
    ATTACK("no version", "GET /health/live\r\n\r\n", 400),
    ATTACK("no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ATTACK("bad chunk",
           "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
};

/* Refused, closed, and what follows on the connection is not taken for a request. */
static void framing_attacks_are_refused(void **state)
{
    struct stage *stage = *state;
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
        const struct attack *attack = &attacks[i];
        struct client client;
        client_open(&client, stage);
        client_send(&client, attack->bytes, attack->len);
        while (client_fill(&client) > 0)
            continue;
        int status = 0;
        if (client.len > 12) {
            client.bytes[client.len] = '\0';
            status = (int)strtol(client.bytes + 9, NULL, 10);
        }
        if (status != attack->status || (status != 0 && strstr(client.bytes, "HTTP/1.1 2") != NULL))
            fail_msg("%s: %.*s", attack->name, (int)client.len, client.bytes);
        client_close(&client);
    }
    await(stage, &stage->gone, 0); /* and the server is well */
}

static void headers_without_end_are_refused(void **state)
{
    struct client client;
    struct reply reply = {.status = 0};
    client_open(&client, *state);
    client_say(&client, "GET /health/live HTTP/1.1\r\nHost: 0\r\n");
    char line[1024];
    memset(line, 'a', sizeof line);
    memcpy(line, "X: ", 3);
    memcpy(line + sizeof line - 2, "\r\n", 2);
    bool open = true;
    for (int i = 0; i < 64 && open; i++)
        open = client_send(&client, line, sizeof line);
    if (client_read(&client, &reply))
        assert_true(reply.status == 431 || reply.status == 413);
    assert_true(client_at_end(&client));
    client_close(&client);
}

/* ---- bodies ---- */

static void a_body_announced_too_large_is_refused_at_once(void **state)
{
    struct client client;
    struct reply reply;
    client_open(&client, *state);
    char head[200];
    snprintf(head, sizeof head, "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nContent-Length: %d\r\n\r\n",
             RV_BODY_BYTES_MAX + 1);
    client_say(&client, head);
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 413);
    assert_non_null(strstr(reply.head, "application/problem+json"));
    client_close(&client);
    client_open(&client, *state);
    client_say(&client, "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\n"
                        "Content-Length: 99999999999999999999999\r\n\r\n");
    assert_true(!client_read(&client, &reply) || reply.status >= 400);
    client_close(&client);
}

static void a_chunked_body_is_cut_off_at_the_limit(void **state)
{
    enum { CHUNK = 65536 };
    struct client client;
    struct reply reply;
    client_open(&client, *state);
    client_say(&client, "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nTransfer-Encoding: chunked\r\n\r\n");
    char *chunk = malloc(CHUNK + 16);
    memcpy(chunk, "10000\r\n", 7);
    memset(chunk + 7, ' ', CHUNK);
    memcpy(chunk + 7 + CHUNK, "\r\n", 2);
    size_t sent = 0;
    while (sent < 2 * (size_t)RV_BODY_BYTES_MAX && client_send(&client, chunk, CHUNK + 9))
        sent += CHUNK;
    free(chunk);
    /* What we sent too much was thrown away, so that the answer is not lost to a reset. */
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 413);
    assert_non_null(strstr(reply.head, "Connection: close"));
    assert_true(client_at_end(&client));
    client_close(&client);
}

static void a_chunked_body_is_taken(void **state)
{
    struct client client;
    struct reply reply;
    client_open(&client, *state);
    client_say(&client, "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "9\r\n{\"workflo\r\n9\r\nw\":\"a/b\"}\r\n0\r\n\r\n");
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 201);
    client_close(&client);
}

static void a_large_body_is_waited_for_politely(void **state)
{
    struct client client;
    struct reply reply;
    client_open(&client, *state);
    client_say(&client, "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nContent-Length: 18\r\n"
                        "Expect: 100-continue\r\n\r\n");
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 100);
    client_say(&client, "{\"workflow\":\"a/b\"}");
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 201);
    client_close(&client);
}

/* ---- connections ---- */

static void many_requests_share_a_connection(void **state)
{
    struct client client;
    struct reply reply;
    client_open(&client, *state);
    for (int i = 0; i < 50; i++) {
        client_post(&client, "/v1/tasks", "{\"workflow\":\"a/b\"}");
        assert_true(client_read(&client, &reply));
        assert_int_equal(reply.status, 201);
    }
    client_post(&client, "/v1/tasks", "{");
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 400);
    client_say(&client, "HEAD /v1/version HTTP/1.1\r\nHost: 0\r\nConnection: close\r\n\r\n");
    assert_true(client_fill(&client) > 0);
    assert_non_null(strstr(client.bytes, "200 OK"));
    client_close(&client);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct client client;
    struct reply reply;
    client_open(&client, *state);
    client_say(&client, "GET /v1/tasks/0000000000001 HTTP/1.1\r\nHost: 0\r\n\r\n"
                        "GET /health/live HTTP/1.1\r\nHost: 0\r\n\r\n"
                        "POST /v1/replies HTTP/1.1\r\nHost: 0\r\nContent-Length: 14\r\n\r\n"
                        "{\"replies\":[]}"
                        "GET /v1/nothing HTTP/1.1\r\nHost: 0\r\n\r\n");
    static const int wanted[] = {404, 200, 200, 404};
    for (size_t i = 0; i < 4; i++) {
        assert_true(client_read(&client, &reply));
        assert_int_equal(reply.status, wanted[i]);
    }
    assert_non_null(strstr(reply.body, "\\\"/v1/nothing\\\" does not exist"));
    client_close(&client);
}

static void a_slow_client_is_cut_off(void **state)
{
    static const char *const halves[] = {
        "", "GET /health", "GET /health/live HTTP/1.1\r\nHost: 0\r\n",
        "POST /v1/tasks HTTP/1.1\r\nHost: 0\r\nContent-Length: 18\r\n\r\n{\"work"};
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        struct client client;
        struct reply reply;
        client_open(&client, *state);
        client_say(&client, halves[i]);
        if (halves[i][0] != '\0') {
            assert_true(client_read(&client, &reply));
            assert_int_equal(reply.status, 408);
        }
        assert_true(client_at_end(&client)); /* after its patience, not after ours */
        client_close(&client);
    }
}

static void a_drip_does_not_count_as_progress(void **state)
{
    struct client client;
    client_open(&client, *state);
    client_say(&client, "GET /health/live HTTP/1.1\r\nHost: 0\r\nX: ");
    struct timeval moment = {.tv_usec = 20000};
    setsockopt(client.fd, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment);
    char byte;
    ssize_t got = -1;
    for (int i = 0; i < 1000 && got < 0; i++) {
        (void)client_send(&client, "a", 1);
        got = recv(client.fd, &byte, 1, 0);
        if (got < 0 && errno != EAGAIN)
            got = 0; /* reset: cut off too */
    }
    assert_int_equal(got, 1);
    assert_int_equal(byte, 'H'); /* of the 408 */
    client_close(&client);
}

/* Waits until some other client has rested for longer than the patience. */
static void patience_pass(const struct stage *stage)
{
    struct client idle;
    client_open(&idle, stage);
    assert_true(client_at_end(&idle));
    client_close(&idle);
}

static void who_takes_nothing_is_cut_off(void **state)
{
    enum { ASKED = 400 };
    struct stage *stage = *state;
    struct client deaf;
    struct reply reply;
    int answers = 0;
    client_open(&deaf, stage);
    for (int i = 0; i < ASKED; i++)
        client_say(&deaf, "GET /openapi.json HTTP/1.1\r\nHost: 0\r\n\r\n");
    for (int i = 0; i < 4; i++)
        patience_pass(stage);
    while (client_read(&deaf, &reply))
        answers++;
    assert_true(answers > 0 && answers < ASKED);
    client_close(&deaf);
}

static void who_waits_longer_than_patience_is_kept(void **state)
{
    struct stage *stage = *state;
    struct client waiting;
    client_open(&waiting, stage);
    client_post(&waiting, "/v1/agents/park/requests", "{\"instance\":\"i\"}");
    await(stage, &stage->parked_now, 1);
    patience_pass(stage);
    assert_int_equal(atomic_load(&stage->parked_now), 1);
    client_close(&waiting);
    await(stage, &stage->gone, 1);
}

static void who_leaves_while_parked_is_gone(void **state)
{
    enum { CLIENTS = 200 };
    struct stage *stage = *state;
    struct client clients[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        client_open(&clients[i], stage);
        client_post(&clients[i], "/v1/agents/park/requests", "{\"instance\":\"i\"}");
    }
    await(stage, &stage->parked_now, CLIENTS);
    for (unsigned i = 0; i < CLIENTS; i++)
        client_close(&clients[i]);
    await(stage, &stage->gone, CLIENTS);
    await(stage, &stage->parked_now, 0);
    assert_int_equal(atomic_load(&stage->undelivered), 0);
}

static void what_was_handed_to_nobody_is_told(void **state)
{
    struct stage *stage = *state;
    struct client client;
    client_open(&client, stage);
    client_post(&client, "/v1/agents/park-late/requests", "{\"instance\":\"i\",\"max\":2}");
    await(stage, &stage->parked_now, 1);
    client_close(&client);
    await(stage, &stage->undelivered, 1);
}

static void what_was_taken_is_not_told_as_undelivered(void **state)
{
    struct stage *stage = *state;
    struct client client;
    struct reply reply;
    client_open(&client, stage);
    client_post(&client, "/v1/agents/a/requests", "{\"instance\":\"i\",\"max\":200}");
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 200);
    assert_true(reply.body_len > 20000);
    assert_non_null(strstr(reply.body, "\"idempotencyKey\""));
    client_close(&client);
    await(stage, &stage->undelivered, 0);
}

static void ten_thousand_requests(void **state)
{
    enum { CLIENTS = 8, AHEAD = 25, ROUNDS = 50 };
    struct stage *stage = *state;
    struct client clients[CLIENTS];
    struct reply reply;
    for (int c = 0; c < CLIENTS; c++)
        client_open(&clients[c], stage);
    for (int round = 0; round < ROUNDS; round++) {
        for (int c = 0; c < CLIENTS; c++)
            for (int i = 0; i < AHEAD; i++)
                client_post(&clients[c], "/v1/replies",
                            "{\"replies\":[{\"step\":\"06DWX3T9H2K4Q-1\",\"token\":\"1\","
                            "\"output\":{}}],\"next\":{\"agent\":\"a\",\"instance\":\"i\"}}");
        for (int c = 0; c < CLIENTS; c++) {
            for (int i = 0; i < AHEAD; i++) {
                assert_true(client_read(&clients[c], &reply));
                assert_int_equal(reply.status, 200);
            }
        }
    }
    for (int c = 0; c < CLIENTS; c++)
        client_close(&clients[c]);
    assert_int_equal(atomic_load(&stage->replies), CLIENTS * AHEAD * ROUNDS);
}

/* ---- health and stop ---- */

static void ready_says_how_the_store_is(void **state)
{
    struct stage *stage = *state;
    struct client client;
    struct reply reply;
    client_open(&client, stage);
    client_say(&client, "GET /health/ready HTTP/1.1\r\nHost: 0\r\n\r\n");
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 200);
    atomic_store(&stage->health, RV_ERR_FULL);
    client_say(&client, "GET /health/ready HTTP/1.1\r\nHost: 0\r\n\r\n");
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 503);
    assert_non_null(strstr(reply.head, "Retry-After: "));
    client_say(&client, "GET /health/live HTTP/1.1\r\nHost: 0\r\n\r\n");
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 200);
    client_close(&client);
}

static void a_draining_server_refuses_and_closes(void **state)
{
    struct stage *stage = *state;
    struct client client;
    struct reply reply;
    client_open(&client, stage);
    client_post(&client, "/v1/tasks", "{\"workflow\":\"a/b\"}");
    assert_true(client_read(&client, &reply));
    rv_api_drain(stage->api);
    client_post(&client, "/v1/tasks", "{\"workflow\":\"a/b\"}");
    assert_true(client_read(&client, &reply));
    assert_int_equal(reply.status, 503);
    assert_non_null(strstr(reply.head, "Connection: close"));
    assert_true(client_at_end(&client));
    client_close(&client);
}

static void addresses_are_checked(void **state)
{
    (void)state;
    int fd;
    static const char *const public[] = {"0.0.0.0:0", "192.0.2.1:80", "[::]:0", "10.0.0.1:7733"};
    static const char *const private[] = {"127.0.0.1:7733", "[::1]:0", "localhost:0",
                                          "unix:/run/reeve.sock"};
    static const char *const wrong[] = {"127.0.0.1", "127.0.0.1:70000", ":80",
                                        "",          "127.0.0.1:",      "reeve.example:80",
                                        "unix:",     "unix:relative",   "[::1]"};
    bool is_public;
    for (size_t i = 0; i < sizeof public / sizeof public[0]; i++) {
        assert_int_equal(rv_door_address(rv_str_of(public[i]), &is_public), RV_OK);
        assert_true(is_public);
        assert_int_equal(rv_door_address(rv_str_of(private[i]), &is_public), RV_OK);
        assert_false(is_public);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(rv_door_listen(rv_str_of(wrong[i]), &fd), RV_ERR_INVALID);
    char path[200] = "unix:/";
    memset(path + 6, 'a', sizeof path - 7);
    assert_int_equal(rv_door_listen(rv_str_of(path), &fd), RV_ERR_INVALID);
    assert_int_equal(rv_door_listen(RV_STR("localhost:0"), &fd), RV_OK);
    char again[32];
    snprintf(again, sizeof again, "127.0.0.1:%u", port_of(fd));
    int second;
    assert_int_equal(rv_door_listen(rv_str_of(again), &second), RV_ERR_IN_USE);
    close(fd);
    char name[RV_DOOR_NAME_BYTES];
    assert_int_equal(rv_door_look(STDERR_FILENO, &is_public, name), RV_ERR_INVALID);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_begin, stage_end)
int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(framing_attacks_are_refused),
        ON_STAGE(headers_without_end_are_refused),
        ON_STAGE(a_body_announced_too_large_is_refused_at_once),
        ON_STAGE(a_chunked_body_is_cut_off_at_the_limit),
        ON_STAGE(a_chunked_body_is_taken),
        ON_STAGE(a_large_body_is_waited_for_politely),
        ON_STAGE(many_requests_share_a_connection),
        ON_STAGE(pipelined_requests_are_answered_in_order),
        ON_STAGE(a_slow_client_is_cut_off),
        ON_STAGE(a_drip_does_not_count_as_progress),
        ON_STAGE(who_takes_nothing_is_cut_off),
        ON_STAGE(who_waits_longer_than_patience_is_kept),
        ON_STAGE(who_leaves_while_parked_is_gone),
        ON_STAGE(what_was_handed_to_nobody_is_told),
        ON_STAGE(what_was_taken_is_not_told_as_undelivered),
        ON_STAGE(ten_thousand_requests),
        ON_STAGE(ready_says_how_the_store_is),
        ON_STAGE(a_draining_server_refuses_and_closes),
        cmocka_unit_test(addresses_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
