/* listen.h - the addresses that a server listens on. */
#ifndef RV_DOOR_LISTEN_H
#define RV_DOOR_LISTEN_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { RV_DOOR_NAME_BYTES = 128 };

/* Whether others than this machine can reach the address: "127.0.0.1:7733", "[::1]:0",
 * "localhost:7733" and "unix:/run/reeve.sock" only this one can. INVALID: no such address. */
RV_CHECK enum rv_err rv_door_address(struct rv_str text, bool *ret_public);
/* A listening socket there; port 0 takes a free one. INVALID: no such address. IN_USE: the port, or
 * the path, is taken. IO: errno tells. */
RV_CHECK enum rv_err rv_door_listen(struct rv_str text, int *ret_fd);
/* A socket that listens, also one that another process has opened: whether others than this machine
 * can reach it, and its address as text ("127.0.0.1:7733", "unix:/run/reeve.sock"). INVALID: it is
 * no TCP or unix socket that listens. */
RV_CHECK enum rv_err rv_door_look(int fd, bool *ret_public,
                                  char ret_name[static RV_DOOR_NAME_BYTES]);

#endif
