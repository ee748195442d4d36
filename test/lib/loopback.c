#include "loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 256 * 1024, CONNECTIONS_MAX = 16384 };

struct connection {
    struct loopback *server;
    pthread_t thread;
    int fd;
};

struct loopback {
    loopback_handler *handler;
    void *user;
    int fd;
    int stop; /* eventfd: readable once it closes */
    unsigned port;
    pthread_t thread;
    atomic_uint accepted;
    struct connection *connections;
    size_t count;
};

bool loopback_send(int fd, const void *bytes, size_t count)
{
    const char *at = bytes;
    while (count > 0) {
        ssize_t n = send(fd, at, count, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        count -= (size_t)n;
    }
    return true;
}

bool loopback_say(int fd, const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return n >= 0 && (size_t)n < sizeof text && loopback_send(fd, text, (size_t)n);
}

struct bits {
    unsigned char bytes[66000];
    size_t count;
};

static void bits_put(struct bits *to, unsigned bits, unsigned count)
{
    for (unsigned i = 0; i < count; i++, to->count++)
        to->bytes[to->count / 8] |= (unsigned char)((bits >> i & 1) << to->count % 8);
}

/* A gzip of one zero, then repetitions of it that take 13 bits for 258 bytes. */
bool loopback_bomb(int fd)
{
    static const unsigned char head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    struct bits *bomb = calloc(1, sizeof *bomb);
    if (bomb == NULL)
        return false;
    memcpy(bomb->bytes, head, sizeof head);
    bomb->count = sizeof head * 8;
    bits_put(bomb, 1, 1);    /* the last block ... */
    bits_put(bomb, 1, 2);    /* ... with the fixed codes */
    bits_put(bomb, 0x0c, 8); /* literal 0 */
    for (int i = 0; i < 40000; i++) {
        bits_put(bomb, 0xa3, 8); /* length 258 */
        bits_put(bomb, 0, 5);    /* distance 1 */
    }
    size_t bytes = bomb->count / 8;
    bool sent = loopback_say(fd,
                             "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
                             "Content-Length: %zu\r\n\r\n",
                             bytes) &&
                loopback_send(fd, bomb->bytes, bytes);
    free(bomb);
    return sent;
}

/* True when there is something to read, false when the server closes. */
static bool readable(const struct loopback *server, int fd)
{
    struct pollfd wait[2] = {{.fd = fd, .events = POLLIN}, {.fd = server->stop, .events = POLLIN}};
    while (poll(wait, 2, -1) < 0)
        ;
    return wait[1].revents == 0;
}

void loopback_hang(const struct loopback_request *request)
{
    char byte[256];
    while (readable(request->server, request->fd) && recv(request->fd, byte, sizeof byte, 0) > 0)
        ;
}

static size_t content_length(const char *head)
{
    const char *line = strcasestr(head, "\r\nContent-Length:");
    return line == NULL ? 0 : (size_t)strtoull(line + 17, NULL, 10);
}

/* Reads one request into `bytes`, which it lengthens; false when there is none. */
static bool request_read(struct connection *connection, char **bytes, size_t *ret_head,
                         size_t *ret_body)
{
    size_t have = 0, want = 0;
    char *end = NULL;
    for (;;) {
        if (!readable(connection->server, connection->fd))
            return false;
        char *longer = realloc(*bytes, have + 65536 + 1);
        if (longer == NULL)
            return false;
        *bytes = longer;
        ssize_t n = recv(connection->fd, *bytes + have, 65536, 0);
        if (n <= 0)
            return false;
        have += (size_t)n;
        (*bytes)[have] = '\0';
        end = strstr(*bytes, "\r\n\r\n");
        if (end == NULL && have < HEAD_BYTES_MAX)
            continue;
        if (end == NULL)
            return false;
        *ret_head = (size_t)(end - *bytes) + 4;
        end[2] = '\0';
        want = content_length(*bytes);
        end[2] = '\r';
        while (have < *ret_head + want) {
            longer = realloc(*bytes, *ret_head + want + 1);
            if (longer == NULL || !readable(connection->server, connection->fd))
                return false;
            *bytes = longer;
            n = recv(connection->fd, *bytes + have, *ret_head + want - have, 0);
            if (n <= 0)
                return false;
            have += (size_t)n;
        }
        *ret_body = want;
        return true;
    }
}

static bool request_serve(struct connection *connection, char *bytes, size_t head, size_t body)
{
    char *copy = strndup(bytes, head);
    char *line = strndup(bytes, strcspn(bytes, "\r"));
    char *path = strchr(line, ' ');
    char *after = path != NULL ? strchr(path + 1, ' ') : NULL;
    bool kept = false;
    if (after != NULL) {
        *path = *after = '\0';
        struct loopback_request request = {.server = connection->server,
                                           .user = connection->server->user,
                                           .fd = connection->fd,
                                           .head = copy,
                                           .path = path + 1,
                                           .method = line,
                                           .body = bytes + head,
                                           .body_bytes = body};
        kept = connection->server->handler(&request);
    }
    free(copy);
    free(line);
    return kept;
}

static void *connection_run(void *self)
{
    struct connection *connection = self;
    char *bytes = NULL;
    size_t head, body;
    while (request_read(connection, &bytes, &head, &body) &&
           request_serve(connection, bytes, head, body))
        ;
    free(bytes);
    shutdown(connection->fd, SHUT_RDWR);
    close(connection->fd);
    return NULL;
}

static void *server_run(void *self)
{
    struct loopback *server = self;
    while (server->count < CONNECTIONS_MAX && readable(server, server->fd)) {
        int fd = accept(server->fd, NULL, NULL);
        if (fd < 0)
            continue;
        atomic_fetch_add(&server->accepted, 1);
        struct connection *connection = &server->connections[server->count];
        *connection = (struct connection){.server = server, .fd = fd};
        if (pthread_create(&connection->thread, NULL, connection_run, connection) == 0)
            server->count++;
        else
            close(fd);
    }
    return NULL;
}

struct loopback *loopback_open(loopback_handler *handler, void *user)
{
    struct loopback *server = calloc(1, sizeof *server);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    server->handler = handler;
    server->user = user;
    server->connections = calloc(CONNECTIONS_MAX, sizeof *server->connections);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server->stop = eventfd(0, EFD_CLOEXEC);
    if (server->connections == NULL || server->fd < 0 || server->stop < 0 ||
        bind(server->fd, (struct sockaddr *)&address, bytes) != 0 ||
        listen(server->fd, 4096) != 0 ||
        getsockname(server->fd, (struct sockaddr *)&address, &bytes) != 0 ||
        pthread_create(&server->thread, NULL, server_run, server) != 0) {
        perror("loopback");
        abort();
    }
    server->port = ntohs(address.sin_port);
    return server;
}

void loopback_close(struct loopback *server)
{
    uint64_t one = 1;
    if (write(server->stop, &one, sizeof one) < 0)
        abort();
    pthread_join(server->thread, NULL);
    for (size_t i = 0; i < server->count; i++)
        pthread_join(server->connections[i].thread, NULL);
    close(server->fd);
    close(server->stop);
    free(server->connections);
    free(server);
}

unsigned loopback_port(const struct loopback *server)
{
    return server->port;
}

unsigned loopback_accepted(const struct loopback *server)
{
    return atomic_load(&server->accepted);
}
