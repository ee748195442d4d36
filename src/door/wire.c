/* Bytes to and from the peer, plain or through TLS. */
#include "base/assert.h"
#include "door/door_priv.h"

#include <string.h>
#include <sys/socket.h>

ssize_t wire_read(struct rv_door_conn *conn, char *at, size_t max)
{
    return conn->tls != NULL ? tls_read(conn, at, max) : recv(conn->fd, at, max, 0);
}

/* A record holds up to 16 KiB: small parts share one. */
static ssize_t secure_write(struct rv_door_conn *conn, const struct iovec *iov, int count)
{
    char *output = conn->door->output;
    size_t len = 0;
    rv_assert(count > 0);
    if (count == 1 || iov[0].iov_len >= DOOR_HEAD_BYTES) {
        len = iov[0].iov_len < DOOR_HEAD_BYTES ? iov[0].iov_len : DOOR_HEAD_BYTES;
        return tls_write(conn, iov[0].iov_base, len);
    }
    for (int i = 0; i < count && len < DOOR_HEAD_BYTES; i++) {
        size_t room = DOOR_HEAD_BYTES - len;
        size_t part = iov[i].iov_len < room ? iov[i].iov_len : room;
        memcpy(output + len, iov[i].iov_base, part);
        len += part;
    }
    rv_assert(len <= DOOR_HEAD_BYTES);
    return tls_write(conn, output, len);
}

ssize_t wire_write(struct rv_door_conn *conn, const struct iovec *iov, int count)
{
    if (conn->tls != NULL)
        return secure_write(conn, iov, count);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov,
                             .msg_iovlen = (size_t)count};
    return sendmsg(conn->fd, &message, MSG_NOSIGNAL);
}
