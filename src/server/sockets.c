#include "server/sockets.h"

#include "base/assert.h"
#include "base/os/log.h"
#include "server/server.h"
#include "server/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

static const char *path_of(const struct rv_socket *socket)
{
    return strncmp(socket->name, "unix:", 5) == 0 ? socket->name + 5 : NULL;
}

static void public_note(struct rv_sockets *sockets, struct rv_str name)
{
    if (!sockets->public)
        snprintf(sockets->public_name, sizeof sockets->public_name, "%.*s", RV_STR_FMT(name));
    sockets->public = true;
}

/* Descriptors from 3 on. */
static int handed_take(struct rv_sockets *sockets)
{
    enum { FIRST = 3 };
    int count = rv_systemd_sockets();
    if (count > RV_DOOR_SOCKETS_MAX) {
        rv_log_refusal("reeve serve", "LISTEN_FDS=%d: the maximum is %d sockets", count,
                       RV_DOOR_SOCKETS_MAX);
        return EXIT_USAGE;
    }
    for (int i = 0; i < count; i++) {
        rv_assert(sockets->count < RV_DOOR_SOCKETS_MAX);
        struct rv_socket *socket = &sockets->all[sockets->count];
        bool public;
        socket->fd = FIRST + i;
        int flags = fcntl(socket->fd, F_GETFL);
        if (rv_door_look(socket->fd, &public, socket->name) != RV_OK || flags < 0 ||
            fcntl(socket->fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
            fcntl(socket->fd, F_SETFD, FD_CLOEXEC) != 0) {
            rv_log_refusal(
                "reeve serve",
                "LISTEN_FDS=%d: descriptor %d is not a listening TCP or unix stream socket", count,
                socket->fd);
            return EXIT_USAGE;
        }
        sockets->count++;
        if (public)
            public_note(sockets, rv_str_of(socket->name));
    }
    return 0;
}

int rv_sockets_find(struct rv_sockets *sockets, const struct rv_server_options *options)
{
    *sockets = (struct rv_sockets){.count = 0};
    for (size_t i = 0; i < options->listens_count; i++) {
        bool public;
        if (rv_door_address(options->listens[i], &public) == RV_OK && public)
            public_note(sockets, options->listens[i]); /* what is no address is told where it is
                                                        * opened */
    }
    return handed_take(sockets);
}

static int listen_refuse(const char *from, struct rv_str listen, enum rv_err err)
{
    rv_assert(err != RV_OK);
    bool path = rv_str_begins(listen, RV_STR("unix:"));
    const char *cure = strerror(errno);
    if (err == RV_ERR_INVALID && path)
        cure =
            "must be unix: and an absolute path of up to 107 bytes, such as unix:/run/reeve.sock";
    else if (err == RV_ERR_INVALID)
        cure = "must be an address and a port up to 65535, such as 127.0.0.1:7733 or [::1]:7733";
    else if (err == RV_ERR_IN_USE && path)
        cure = "the path already exists: another server listens on this socket, or the file is not "
               "a socket. Choose another path";
    else if (err == RV_ERR_IN_USE)
        cure = "another program or another --listen uses the port; choose another port, or 0 for a "
               "free one";
    else if (errno == ENOENT)
        cure = "the folder of the path does not exist: create it, or choose another path";
    else if (errno == EACCES)
        cure = path ? "the user of this process has no permission to create the socket: choose a "
                      "folder with write permission"
                    : "the user of this process has no permission to use this port: choose a port "
                      "above 1023";
    else if (errno == EADDRNOTAVAIL)
        cure = "the address does not belong to this machine: choose an address of this machine";
    rv_log_refusal("reeve serve", "%s \"%.*s\": %s", from, RV_STR_FMT(listen), cure);
    return rv_err_exit(err);
}

int rv_sockets_open(struct rv_sockets *sockets, const struct rv_server_options *options)
{
    for (size_t i = 0; i < options->listens_count; i++) {
        struct rv_socket *socket = &sockets->all[sockets->count];
        bool public;
        struct stat about;
        if (sockets->count == RV_DOOR_SOCKETS_MAX) {
            rv_log_refusal("reeve serve", "%s \"%.*s\": the maximum is %d sockets",
                           options->listens_from, RV_STR_FMT(options->listens[i]),
                           RV_DOOR_SOCKETS_MAX);
            return EXIT_USAGE;
        }
        enum rv_err err = rv_door_listen(options->listens[i], &socket->fd);
        if (err != RV_OK)
            return listen_refuse(options->listens_from, options->listens[i], err);
        sockets->count++;
        if (rv_door_look(socket->fd, &public, socket->name) != RV_OK)
            return listen_refuse(options->listens_from, options->listens[i], RV_ERR_IO);
        const char *path = path_of(socket);
        if (path != NULL && stat(path, &about) == 0)
            socket->node = about.st_ino;
    }
    return 0;
}

void rv_sockets_close(struct rv_sockets *sockets)
{
    for (size_t i = 0; i < sockets->count; i++) {
        const struct rv_socket *socket = &sockets->all[i];
        const char *path = path_of(socket);
        struct stat about;
        rv_assert(socket->node == 0 || path != NULL);
        if (socket->fd >= 0)
            close(socket->fd);
        if (socket->node != 0 && stat(path, &about) == 0 && about.st_ino == socket->node)
            (void)unlink(path);
    }
    sockets->count = 0;
}

void rv_sockets_print(const struct rv_sockets *sockets, bool tls)
{
    for (size_t i = 0; i < sockets->count; i++) {
        const struct rv_socket *socket = &sockets->all[i];
        const char *scheme = path_of(socket) != NULL ? "" : tls ? "https://" : "http://";
        rv_log_print("reeve: listening on %s%s\n", scheme, socket->name);
    }
}

unsigned rv_sockets_port(const struct rv_sockets *sockets)
{
    for (size_t i = 0; i < sockets->count; i++) {
        if (path_of(&sockets->all[i]) == NULL) {
            const char *colon = strrchr(sockets->all[i].name, ':');
            rv_assert(colon != NULL);
            return (unsigned)strtoul(colon + 1, NULL, 10);
        }
    }
    return 0;
}
