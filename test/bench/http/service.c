/* A service for the benches of `call: http` and of webhooks: prints its port, answers every request
 * at once and counts them, or holds those to /hold until one to /release comes. One thread. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FDS_MAX = 65536, REQUEST_BYTES = 8192, EVENTS_MAX = 512 };

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                             "Content-Length: 11\r\n\r\n{\"ok\":true}";

static struct {
    char bytes[REQUEST_BYTES];
    size_t have;
    bool held;
} * connections[FDS_MAX];

static unsigned long held;
static unsigned long answered;

static bool say(int fd)
{
    return send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) == (ssize_t)sizeof answer - 1;
}

static void forget(int fd)
{
    free(connections[fd]);
    connections[fd] = NULL;
    close(fd);
}

static void release(void)
{
    for (int fd = 0; fd < FDS_MAX; fd++)
        if (connections[fd] != NULL && connections[fd]->held) {
            connections[fd]->held = false;
            if (!say(fd))
                forget(fd);
        }
    held = 0;
}

/* How many are held, and were answered as usual, in the place of the usual answer. */
static bool say_held(int fd)
{
    char text[256], body[64];
    int body_bytes = snprintf(body, sizeof body, "{\"held\":%lu,\"answered\":%lu}", held, answered);
    int bytes = snprintf(text, sizeof text,
                         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                         "Content-Length: %d\r\n\r\n%s",
                         body_bytes, body);
    return send(fd, text, (size_t)bytes, MSG_NOSIGNAL) == bytes;
}

/* Of the first request; 0 when not all of it is here. A body has its length told. */
static size_t request_bytes(int fd)
{
    static const char name[] = "\r\nContent-Length: ";
    const char *bytes = connections[fd]->bytes;
    const char *end = memmem(bytes, connections[fd]->have, "\r\n\r\n", 4);
    if (end == NULL)
        return 0;
    size_t head = (size_t)(end - bytes) + 4;
    const char *length = memmem(bytes, head, name, sizeof name - 1);
    size_t body = length != NULL ? strtoul(length + sizeof name - 1, NULL, 10) : 0;
    return head + body <= connections[fd]->have ? head + body : 0;
}

static bool requests_serve(int fd)
{
    size_t bytes;
    while ((bytes = request_bytes(fd)) > 0) {
        bool hold = memcmp(connections[fd]->bytes, "GET /hold", 9) == 0;
        bool count = memcmp(connections[fd]->bytes, "GET /held", 9) == 0;
        if (memcmp(connections[fd]->bytes, "GET /release", 12) == 0)
            release();
        connections[fd]->have -= bytes;
        memmove(connections[fd]->bytes, connections[fd]->bytes + bytes, connections[fd]->have);
        connections[fd]->held = hold;
        held += hold;
        answered += !hold && !count;
        if (!hold && !(count ? say_held(fd) : say(fd)))
            return false;
    }
    return true;
}

static void readable(int fd)
{
    size_t room = REQUEST_BYTES - connections[fd]->have;
    ssize_t n = recv(fd, connections[fd]->bytes + connections[fd]->have, room, 0);
    if (n > 0) {
        connections[fd]->have += (size_t)n;
        if (requests_serve(fd))
            return;
    }
    held -= connections[fd]->held;
    forget(fd);
}

static void take(int epoll, int listener)
{
    int one = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (fd < FDS_MAX)
        connections[fd] = calloc(1, sizeof *connections[fd]);
    if (fd >= FDS_MAX || connections[fd] == NULL) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        forget(fd);
}

int main(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, bytes) != 0 ||
        listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &bytes) != 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0) {
        perror("service");
        return 1;
    }
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++)
            if (events[i].data.fd == listener)
                take(epoll, listener);
            else if (connections[events[i].data.fd] != NULL)
                readable(events[i].data.fd);
    }
}
