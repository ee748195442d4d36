/* The door alone, with a host that has no memory for a request. */
#include "door/door.h"

#include "door/listen.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void *no_memory(void *self, struct rv_door_conn *conn, const struct rv_http_request *request)
{
    (void)self, (void)conn, (void)request;
    return NULL;
}

static void problem(void *self, struct rv_door_conn *conn, int status, const char *detail,
                    struct rv_buf *out)
{
    (void)self, (void)conn;
    rv_buf_printf(out, "%d %s", status, detail);
}

static int connected(int listening)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &size), 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
    return fd;
}

/* As each 503, it says when to come again. */
static void a_request_without_memory_is_told_when_to_come_again(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char answer[1024];
    size_t len = 0;
    int listening;
    struct rv_door *door;
    (void)state;
    assert_int_equal(rv_door_listen(RV_STR("127.0.0.1:0"), &listening), RV_OK);
    struct rv_door_options options = {.host = {.head = no_memory, .problem = problem},
                                      .sockets = &listening,
                                      .sockets_count = 1,
                                      .body_max = 1000};
    assert_int_equal(rv_door_open(&options, &door), RV_OK);
    int fd = connected(listening);
    assert_int_equal(send(fd, request, sizeof request - 1, 0), sizeof request - 1);
    ssize_t n = -1;
    while (n != 0 && len < sizeof answer - 1) {
        rv_door_wait(door, 1);
        rv_door_run(door);
        n = recv(fd, answer + len, sizeof answer - 1 - len, MSG_DONTWAIT);
        len += n > 0 ? (size_t)n : 0;
    }
    answer[len] = '\0';
    assert_non_null(strstr(answer, "HTTP/1.1 503 "));
    assert_non_null(strstr(answer, "\r\nRetry-After: 1\r\n"));
    assert_non_null(strstr(answer, "\r\n\r\n503 out of memory for this request; try again"));
    close(fd);
    rv_door_close(door);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_without_memory_is_told_when_to_come_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
