#include "base/os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024 };

static enum rv_err fd_read(int fd, struct rv_buf *buf)
{
    for (;;) {
        char piece[READ_BYTES];
        ssize_t got = read(fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return RV_ERR_IO;
        if (got == 0)
            return RV_OK;
        rv_buf_add(buf, piece, (size_t)got);
        if (buf->failed != RV_OK)
            return buf->failed;
    }
}

enum rv_err rv_file_read(const char *path, struct rv_buf *buf)
{
    if (strcmp(path, "-") == 0)
        return fd_read(STDIN_FILENO, buf);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? RV_ERR_NOT_FOUND : RV_ERR_IO;
    enum rv_err err = fd_read(fd, buf);
    int saved = errno;
    close(fd);
    errno = saved;
    return err;
}
