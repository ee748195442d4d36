/* sockets.h - where a server listens: what it was told, and what a service manager has opened. */
#ifndef RV_SERVER_SOCKETS_H
#define RV_SERVER_SOCKETS_H

#include "base/str.h"
#include "door/door.h"
#include "door/listen.h"

struct rv_server_options; /* server.h */

struct rv_socket {
    int fd;
    char name[RV_DOOR_NAME_BYTES]; /* "127.0.0.1:7733", "unix:/run/reeve.sock" */
    uint64_t node;                 /* of the path that was made for it; 0: none was */
};

struct rv_sockets {
    struct rv_socket all[RV_DOOR_SOCKETS_MAX];
    size_t count;
    bool public;                          /* others than this machine can reach one of them ... */
    char public_name[RV_DOOR_NAME_BYTES]; /* ... which is this */
};

/* Takes the sockets that were handed over (sd_listen_fds(3)), and finds whether an address is
 * public; opens none. 0, or the exit code after it was told on stderr what is wrong. */
int rv_sockets_find(struct rv_sockets *sockets, const struct rv_server_options *options);
/* Opens the addresses of --listen. As rv_sockets_find. */
int rv_sockets_open(struct rv_sockets *sockets, const struct rv_server_options *options);
/* Closes those whose `fd` is not -1, and removes the paths that were made. */
void rv_sockets_close(struct rv_sockets *sockets);
/* On stdout, a line for each. */
void rv_sockets_print(const struct rv_sockets *sockets, bool tls);
/* The port of the first one that has a port; 0: none has. */
unsigned rv_sockets_port(const struct rv_sockets *sockets);

#endif
