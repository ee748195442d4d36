#include "door/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

struct address {
    struct sockaddr_storage at;
    socklen_t len;
};

static bool port_read(struct rv_str text, unsigned *ret_port)
{
    unsigned port = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || port > UINT16_MAX)
            return false;
        port = port * 10 + (unsigned)(text.at[i] - '0');
    }
    *ret_port = port;
    return text.len > 0 && port <= UINT16_MAX;
}

static enum rv_err address_parse(struct rv_str text, struct address *ret, bool *ret_public)
{
    char host[64];
    const char *colon = text.len ? memrchr(text.at, ':', text.len) : NULL;
    unsigned port;
    if (colon == NULL || (size_t)(colon - text.at) >= sizeof host ||
        !port_read((struct rv_str){colon + 1, (size_t)(text.at + text.len - colon - 1)}, &port))
        return RV_ERR_INVALID;
    size_t host_len = (size_t)(colon - text.at);
    bool six = host_len > 2 && text.at[0] == '[' && colon[-1] == ']';
    memcpy(host, text.at + six, host_len - 2 * (size_t)six);
    host[host_len - 2 * (size_t)six] = '\0';
    *ret = (struct address){.len = 0};
    if (six) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret->at;
        *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
        ret->len = sizeof *in6;
        if (inet_pton(AF_INET6, host, &in6->sin6_addr) != 1)
            return RV_ERR_INVALID;
        *ret_public = !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
        return RV_OK;
    }
    struct sockaddr_in *in = (struct sockaddr_in *)&ret->at;
    *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    ret->len = sizeof *in;
    const char *number = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (inet_pton(AF_INET, number, &in->sin_addr) != 1)
        return RV_ERR_INVALID;
    *ret_public = (ntohl(in->sin_addr.s_addr) >> 24) != 127;
    return RV_OK;
}

enum rv_err rv_door_address(struct rv_str text, bool *ret_public)
{
    struct address address;
    return address_parse(text, &address, ret_public);
}

static uint16_t port_of(int fd)
{
    struct address address = {.len = sizeof address.at};
    if (getsockname(fd, (struct sockaddr *)&address.at, &address.len) != 0)
        return 0;
    return ntohs(address.at.ss_family == AF_INET6
                     ? ((const struct sockaddr_in6 *)&address.at)->sin6_port
                     : ((const struct sockaddr_in *)&address.at)->sin_port);
}

enum rv_err rv_door_listen(struct rv_str text, int *ret_fd, uint16_t *ret_port)
{
    struct address address;
    bool public;
    enum rv_err err = address_parse(text, &address, &public);
    if (err != RV_OK)
        return err;
    int fd = socket(address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return RV_ERR_IO;
    int one = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* connections inherit it */
    if (bind(fd, (const struct sockaddr *)&address.at, address.len) != 0 ||
        listen(fd, BACKLOG) != 0) {
        err = errno == EADDRINUSE ? RV_ERR_IN_USE : RV_ERR_IO;
        close(fd);
        return err;
    }
    *ret_fd = fd;
    *ret_port = port_of(fd);
    return RV_OK;
}
