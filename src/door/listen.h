/* listen.h - the addresses that a server listens on. */
#ifndef RV_DOOR_LISTEN_H
#define RV_DOOR_LISTEN_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether others than this machine can reach the address: "127.0.0.1:7733", "[::1]:0" and
 * "localhost:7733" only this one can. INVALID: no such address. */
RV_CHECK enum rv_err rv_door_address(struct rv_str text, bool *ret_public);
/* A listening socket there; port 0 takes a free one, *ret_port is what it became. INVALID: no such
 * address. IN_USE: the port is taken. IO: errno tells. */
RV_CHECK enum rv_err rv_door_listen(struct rv_str text, int *ret_fd, uint16_t *ret_port);

#endif
