/* libreeve against a server whose connection ends anywhere in its answer: half of one is none. */
#include "reeve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 201 Created\r\n"
                             "Date: Sat, 21 Nov 2026 10:00:00 GMT\r\n"
                             "Content-Type: application/json\r\n"
                             "Content-Length: 42\r\n"
                             "\r\n"
                             "{\"task\":\"06DWX3T9H2K4Q\",\"state\":\"pending\"}";

/* Answers each connection once: the first with `cut` bytes, the next one with all. */
struct server {
    int listener;
    char url[64];
    size_t cut;
    int heard; /* requests; read after the thread was joined */
    int wanted;
    pthread_t thread;
};

static void *serve(void *user)
{
    struct server *server = user;
    char request[4096];
    for (server->heard = 0; server->heard < server->wanted;) {
        int fd = accept(server->listener, NULL, NULL);
        if (fd < 0 || read(fd, request, sizeof request) <= 0)
            abort();
        size_t n = server->heard++ == 0 ? server->cut : sizeof answer - 1;
        if (send(fd, answer, n, MSG_NOSIGNAL) != (ssize_t)n)
            abort();
        close(fd);
    }
    return NULL;
}

static int server_open(void **state)
{
    static struct server server;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    if (server.listener < 0 || bind(server.listener, (struct sockaddr *)&address, length) != 0 ||
        listen(server.listener, 8) != 0 ||
        getsockname(server.listener, (struct sockaddr *)&address, &length) != 0)
        return -1;
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%u", ntohs(address.sin_port));
    *state = &server;
    return 0;
}

static int server_close(void **state)
{
    struct server *server = *state;
    return close(server->listener);
}

static void server_expect(struct server *server, size_t cut, int requests)
{
    server->cut = cut;
    server->wanted = requests;
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void what_may_be_repeated_is_repeated(void **state)
{
    struct server *server = *state;
    for (size_t cut = 0; cut < sizeof answer - 1; cut++) {
        struct rv_client *client = rv_client_open(server->url, NULL);
        struct rv_submission order = {.workflow = "shop/order", .key = "order-1"};
        struct rv_receipt receipt;
        server_expect(server, cut, 2);
        if (rv_client_submit(client, &order, &receipt) != RV_RESULT_OK)
            fail_msg("cut after %zu bytes: %s", cut, rv_client_error(client));
        assert_string_equal(receipt.task, "06DWX3T9H2K4Q");
        assert_int_equal(receipt.status, 201);
        rv_client_close(client);
        pthread_join(server->thread, NULL);
    }
}

static void what_may_not_be_repeated_has_no_answer(void **state)
{
    struct server *server = *state;
    for (size_t cut = 0; cut < sizeof answer - 1; cut++) {
        struct rv_client *client = rv_client_open(server->url, NULL);
        struct rv_call call = {.path = "/v1/tasks", .body = "{}"};
        struct rv_answer got;
        server_expect(server, cut, 1);
        int result = rv_client_request(client, &call, &got);
        if (result != RV_RESULT_UNREACHABLE)
            fail_msg("cut after %zu bytes: result %d, status %d", cut, result, got.status);
        assert_non_null(strstr(rv_client_error(client), "may or may not have received"));
        rv_answer_free(&got);
        rv_client_close(client);
        pthread_join(server->thread, NULL);
    }
}

/* ---- on a connection that was used before ---- */

enum { CONNECTIONS_MAX = 8, TURN_MS = 10 };

/* Answers each GET, and ends the connection of each POST without a byte, until it is stopped. */
struct killed {
    int listener;
    atomic_bool stop;
    int posts; /* read after the thread was joined */
    pthread_t thread;
};

static void killed_hear(struct killed *killed, struct pollfd *connection)
{
    char request[4096];
    ssize_t n = read(connection->fd, request, sizeof request);
    bool post = n > 4 && memcmp(request, "POST", 4) == 0;
    killed->posts += post;
    if (n > 0 && !post &&
        send(connection->fd, answer, sizeof answer - 1, MSG_NOSIGNAL) == sizeof answer - 1)
        return;
    close(connection->fd);
    connection->fd = -1;
}

static void *killed_serve(void *user)
{
    struct killed *killed = user;
    struct pollfd fds[1 + CONNECTIONS_MAX] = {{.fd = killed->listener, .events = POLLIN}};
    nfds_t count = 1;
    while (!atomic_load(&killed->stop)) {
        if (poll(fds, count, TURN_MS) <= 0)
            continue;
        for (nfds_t i = 1; i < count; i++)
            if (fds[i].revents != 0)
                killed_hear(killed, &fds[i]);
        if (fds[0].revents != 0 && count < 1 + CONNECTIONS_MAX)
            fds[count++] = (struct pollfd){.fd = accept(killed->listener, NULL, NULL),
                                           .events = POLLIN};
    }
    for (nfds_t i = 1; i < count; i++)
        if (fds[i].fd >= 0)
            close(fds[i].fd);
    return NULL;
}

/* By itself libcurl repeats what had no answer on a connection that was used before. */
static void what_may_not_be_repeated_is_sent_once_after_others(void **state)
{
    struct server *server = *state;
    struct killed killed = {.listener = server->listener};
    assert_int_equal(pthread_create(&killed.thread, NULL, killed_serve, &killed), 0);
    struct rv_client *client = rv_client_open(server->url, NULL);
    const struct rv_call look = {.path = "/v1/tasks/06DWX3T9H2K4Q"};
    const struct rv_call change = {.path = "/v1/tasks/06DWX3T9H2K4Q/undo", .body = "{}"};
    struct rv_answer got;
    assert_int_equal(rv_client_request(client, &look, &got), RV_RESULT_OK);
    rv_answer_free(&got);
    assert_int_equal(rv_client_request(client, &change, &got), RV_RESULT_UNREACHABLE);
    assert_non_null(strstr(rv_client_error(client), "may or may not have received"));
    rv_answer_free(&got);
    rv_client_close(client);
    atomic_store(&killed.stop, true);
    pthread_join(killed.thread, NULL);
    assert_int_equal(killed.posts, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_be_repeated_is_repeated),
        cmocka_unit_test(what_may_not_be_repeated_has_no_answer),
        cmocka_unit_test(what_may_not_be_repeated_is_sent_once_after_others),
    };
    return cmocka_run_group_tests(tests, server_open, server_close);
}
