/* The API keys of the api's thread: a list of all keys that the scheduler leaves there, and the
 * changes that its calls make, in whatever order the two are taken. */
#include "api/api.h"
#include "api/keys.h"
#include "base/os/thread.h"
#include "door/listen.h"
#include "scheduler/call.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEST_SECONDS = 20, REPLY_BYTES = 8192 };

/* What the scheduler, which the test plays, does with the next call. */
enum turn {
    ANSWERS,
    TELLS,           /* leaves a list with the key `other` alone */
    TELLS_THEN_ADDS, /* leaves such a list, which does not contain the change of the call */
    ADDS_THEN_TELLS  /* leaves such a list, which does: the new key has been revoked again */
};

struct played {
    struct rv_api *api;
    struct rv_mailbox mailbox;
    struct rv_thread thread;
    struct rv_arena arena;
    struct rv_api_key admin, other;
    struct rv_str admin_text, other_text;
    enum turn turn;      /* set between two requests */
    uint64_t changes;    /* counted by the scheduler */
    uint64_t keys_known; /* by the newest call */
    uint16_t port;
};

static void list_leave(struct played *p, uint64_t changes)
{
    struct rv_keys keys;
    rv_keys_init(&keys);
    assert_int_equal(rv_keys_add(&keys, &p->other), RV_OK);
    assert_int_equal(rv_api_renew_keys(p->api, &keys, changes), RV_OK);
}

static void call_play(struct played *p, struct rv_call *call)
{
    p->keys_known = call->keys_known;
    if (p->turn == TELLS || p->turn == TELLS_THEN_ADDS)
        list_leave(p, ++p->changes);
    if (call->kind == RV_CALL_KEY_ADD)
        call->u.key.changes = ++p->changes;
    if (p->turn == ADDS_THEN_TELLS)
        list_leave(p, ++p->changes);
    call->finish(call);
}

static void scheduler_run(void *self)
{
    struct played *p = self;
    void *calls[16];
    size_t count;
    while ((count = rv_mailbox_take(&p->mailbox, calls, 16, -1)) > 0)
        for (size_t i = 0; i < count; i++)
            call_play(p, calls[i]);
}

static int begin(void **state)
{
    static struct played p;
    int socket;
    char name[RV_DOOR_NAME_BYTES];
    bool public;
    p = (struct played){.changes = 1};
    rv_arena_init(&p.arena, 0);
    struct rv_access access = {.always_keys = true};
    rv_keys_init(&access.keys);
    p.admin.role = p.other.role = RV_ROLE_ADMIN;
    assert_int_equal(rv_key_make(&p.arena, &p.admin, &p.admin_text), RV_OK);
    assert_int_equal(rv_key_make(&p.arena, &p.other, &p.other_text), RV_OK);
    assert_int_equal(rv_keys_add(&access.keys, &p.admin), RV_OK);
    rv_mailbox_init(&p.mailbox, offsetof(struct rv_call, next));
    assert_int_equal(rv_door_listen(RV_STR("127.0.0.1:0"), &socket), RV_OK);
    assert_int_equal(rv_door_look(socket, &public, name), RV_OK);
    p.port = (uint16_t)strtoul(strrchr(name, ':') + 1, NULL, 10);
    struct rv_api_options options = {
        .sockets = &socket, .sockets_count = 1, .mailbox = &p.mailbox, .access = access};
    assert_int_equal(rv_api_open(&options, &p.api), RV_OK);
    assert_int_equal(rv_thread_start(&p.thread, "scheduler", scheduler_run, &p), RV_OK);
    *state = &p;
    return 0;
}

static int end(void **state)
{
    struct played *p = *state;
    rv_mailbox_close(&p->mailbox);
    rv_thread_join(&p->thread);
    rv_api_close(p->api, 100);
    rv_mailbox_done(&p->mailbox);
    rv_arena_done(&p->arena);
    return 0;
}

/* The status of the answer, which `reply` has whole. */
static int ask(const struct played *p, const char *line, struct rv_str key, const char *body,
               char *reply)
{
    char request[1024];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(p->port)};
    struct timeval patience = {.tv_sec = TEST_SECONDS};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    int len = snprintf(request, sizeof request,
                       "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                       "Authorization: Bearer %.*s\r\nContent-Length: %zu\r\n\r\n%s",
                       line, RV_STR_FMT(key), strlen(body), body);
    assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
    size_t got = 0;
    ssize_t piece;
    while ((piece = recv(fd, reply + got, REPLY_BYTES - 1 - got, 0)) > 0)
        got += (size_t)piece;
    assert_int_equal(piece, 0);
    reply[got] = '\0';
    close(fd);
    assert_true(got > 12);
    return (int)strtol(reply + 9, NULL, 10);
}

static int agents_ask(const struct played *p, struct rv_str key)
{
    char reply[REPLY_BYTES];
    return ask(p, "GET /v1/agents", key, "", reply);
}

/* Asks for a new key, and gives its text. */
static struct rv_str key_add(struct played *p, struct rv_str by)
{
    static const char before[] = "\"key\":\"";
    char reply[REPLY_BYTES];
    assert_int_equal(ask(p, "POST /v1/keys", by, "{\"role\":\"admin\"}", reply), 201);
    const char *text = strstr(reply, before);
    assert_non_null(text);
    struct rv_str key = {text + sizeof before - 1, RV_KEY_TEXT_BYTES};
    return rv_arena_str(&p->arena, key);
}

static void a_list_takes_the_place_of_all_keys(void **state)
{
    struct played *p = *state;
    assert_int_equal(agents_ask(p, p->admin_text), 200);
    assert_int_equal(agents_ask(p, p->other_text), 401);
    p->turn = TELLS;
    (void)agents_ask(p, p->admin_text);
    p->turn = ANSWERS;
    assert_int_equal(agents_ask(p, p->admin_text), 401);
    assert_int_equal(agents_ask(p, p->other_text), 200);
    assert_int_equal(p->keys_known, p->changes);
}

static void a_key_is_added_to_the_list_that_was_left_before(void **state)
{
    struct played *p = *state;
    p->turn = TELLS_THEN_ADDS;
    struct rv_str added = key_add(p, p->admin_text);
    p->turn = ANSWERS;
    assert_int_equal(agents_ask(p, added), 200);
    assert_int_equal(agents_ask(p, p->other_text), 200);
    assert_int_equal(agents_ask(p, p->admin_text), 401);
    assert_int_equal(p->keys_known, p->changes);
}

static void a_key_is_not_added_to_a_list_that_is_newer(void **state)
{
    struct played *p = *state;
    p->turn = ADDS_THEN_TELLS;
    struct rv_str added = key_add(p, p->admin_text);
    p->turn = ANSWERS;
    assert_int_equal(agents_ask(p, added), 401);
    assert_int_equal(agents_ask(p, p->other_text), 200);
    assert_int_equal(p->keys_known, p->changes);
}

int main(void)
{
#define API_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        API_TEST(a_list_takes_the_place_of_all_keys),
        API_TEST(a_key_is_added_to_the_list_that_was_left_before),
        API_TEST(a_key_is_not_added_to_a_list_that_is_newer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
