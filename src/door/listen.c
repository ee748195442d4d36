#include "door/listen.h"

#include "base/assert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

/* A path in the file system, which is told apart from a host by its beginning. */
static enum rv_err path_parse(struct rv_str path, struct address *ret)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&ret->at;
    if (path.len == 0 || path.at[0] != '/' || path.len >= sizeof un->sun_path ||
        memchr(path.at, '\0', path.len) != NULL)
        return RV_ERR_INVALID;
    *ret = (struct address){.len = sizeof *un};
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path.at, path.len);
    return RV_OK;
}

/* Only what is known to stay on this machine is not. */
static bool address_public(const struct address *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->at;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->at;
    if (address->at.ss_family == AF_INET)
        return (ntohl(in->sin_addr.s_addr) >> 24) != 127;
    if (address->at.ss_family == AF_INET6)
        return !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    return address->at.ss_family != AF_UNIX;
}

static enum rv_err address_parse(struct rv_str text, struct address *ret)
{
    static const struct rv_str unix_scheme = {"unix:", 5};
    if (rv_str_begins(text, unix_scheme))
        return path_parse((struct rv_str){text.at + 5, text.len - 5}, ret);
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
        bool good = inet_pton(AF_INET6, host, &in6->sin6_addr) == 1;
        return good && !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) ? RV_OK : RV_ERR_INVALID;
    }
    struct sockaddr_in *in = (struct sockaddr_in *)&ret->at;
    *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    ret->len = sizeof *in;
    const char *number = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    return inet_pton(AF_INET, number, &in->sin_addr) == 1 ? RV_OK : RV_ERR_INVALID;
}

enum rv_err rv_door_address(struct rv_str text, bool *ret_public)
{
    struct address address;
    enum rv_err err = address_parse(text, &address);
    *ret_public = err == RV_OK && address_public(&address);
    return err;
}

enum rv_err rv_door_look(int fd, bool *ret_public, char ret_name[static RV_DOOR_NAME_BYTES])
{
    struct address address = {.len = sizeof address.at};
    char host[INET6_ADDRSTRLEN] = "";
    int listens = 0, type = 0;
    socklen_t bytes = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || !listens ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_STREAM ||
        getsockname(fd, (struct sockaddr *)&address.at, &address.len) != 0)
        return RV_ERR_INVALID;
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address.at;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address.at;
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address.at;
    sa_family_t family = address.at.ss_family;
    if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
        return RV_ERR_INVALID; /* who can reach it is unknown */
    *ret_public = address_public(&address);
    if (family == AF_INET) {
        (void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(ret_name, RV_DOOR_NAME_BYTES, "%s:%u", host, ntohs(in->sin_port));
    } else if (family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(ret_name, RV_DOOR_NAME_BYTES, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        snprintf(ret_name, RV_DOOR_NAME_BYTES, "unix:%s", un->sun_path);
    }
    return RV_OK;
}

/* A file that a server left behind that was killed: nobody answers there. */
static bool path_stale(const struct address *address)
{
    struct stat about;
    const char *path = ((const struct sockaddr_un *)&address->at)->sun_path;
    if (lstat(path, &about) != 0 || !S_ISSOCK(about.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool stale = fd >= 0 && connect(fd, (const struct sockaddr *)&address->at, address->len) != 0 &&
                 errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return stale;
}

/* Its owner and group may connect. */
static bool path_bind(int fd, const struct address *address)
{
    rv_assert(address->at.ss_family == AF_UNIX);
    const struct sockaddr *at = (const struct sockaddr *)&address->at;
    const char *path = ((const struct sockaddr_un *)&address->at)->sun_path;
    bool bound = bind(fd, at, address->len) == 0;
    if (!bound && errno == EADDRINUSE) {
        bool stale = path_stale(address);
        errno = EADDRINUSE;
        bound = stale && unlink(path) == 0 && bind(fd, at, address->len) == 0;
    }
    return bound && chmod(path, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP) == 0;
}

/* "[::]" is IPv6 alone, whatever the system's default is. */
static bool port_bind(int fd, const struct address *address)
{
    int one = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (address->at.ss_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) != 0)
        return false;
    return bind(fd, (const struct sockaddr *)&address->at, address->len) == 0;
}

enum rv_err rv_door_listen(struct rv_str text, int *ret_fd)
{
    struct address address;
    enum rv_err err = address_parse(text, &address);
    if (err != RV_OK)
        return err;
    rv_assert(address.len > 0);
    int fd = socket(address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return RV_ERR_IO;
    bool bound = address.at.ss_family == AF_UNIX ? path_bind(fd, &address)
                                                 : port_bind(fd, &address);
    if (!bound || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return error == EADDRINUSE ? RV_ERR_IN_USE : RV_ERR_IO;
    }
    *ret_fd = fd;
    return RV_OK;
}
