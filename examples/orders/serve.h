/* serve.h - HTTP for the shop's services: a thread for each connection, requests without bodies. */
#ifndef SHOP_SERVE_H
#define SHOP_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHOP_BODY_BYTES = 384 };

struct shop_request;

struct shop_answer {
    unsigned status;
    const char *problem; /* type; NULL: all went well */
    char body[SHOP_BODY_BYTES];
};

/* False: no answer leaves, the connection is closed. Called by many threads. */
typedef bool shop_handler(void *self, const struct shop_request *request,
                          struct shop_answer *answer);

const char *shop_method(const struct shop_request *request);
const char *shop_path(const struct shop_request *request);
/* Copies the value of the query's argument, or of the header; false when there is none. */
bool shop_argument(const struct shop_request *request, const char *name, char *ret, size_t bytes);
bool shop_header(const struct shop_request *request, const char *name, char *ret, size_t bytes);

/* Listens on 127.0.0.1; port 0 takes a free one. False: it cannot. */
bool shop_listen(uint16_t port, int *ret_fd, uint16_t *ret_port);
/* Serves for ever. */
_Noreturn void shop_serve(int fd, shop_handler *handler, void *self);

#endif
