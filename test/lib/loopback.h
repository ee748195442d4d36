/* loopback.h - a small HTTP server on loopback whose answers a test writes byte by byte. */
#ifndef RV_TEST_LOOPBACK_H
#define RV_TEST_LOOPBACK_H

#include <stdbool.h>
#include <stddef.h>

struct loopback;

/* One request, as bytes: head with its empty line, and body. `fd` is answered on with
 * loopback_send(). After the handler returned the connection is kept if it said so. */
struct loopback_request {
    struct loopback *server;
    void *user;
    int fd;
    const char *head; /* terminated */
    const char *path; /* terminated, with its query */
    const char *method;
    const char *body;
    size_t body_bytes;
};

/* True: the connection is kept. On a thread of the connection. */
typedef bool loopback_handler(const struct loopback_request *request);

/* Listens on 127.0.0.1, on any free port. */
struct loopback *loopback_open(loopback_handler *handler, void *user);
/* Closes all connections and waits for their threads. */
void loopback_close(struct loopback *server);
unsigned loopback_port(const struct loopback *server);
/* Connections that were ever accepted. */
unsigned loopback_accepted(const struct loopback *server);

/* False when the other side has gone. */
bool loopback_send(int fd, const void *bytes, size_t count);
bool loopback_say(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An answer of 65 KB that is 10 MB when its compression is undone. */
bool loopback_bomb(int fd);
/* Waits until the server closes or the other side has gone. */
void loopback_hang(const struct loopback_request *request);

#endif
