#include "relay/lock.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static enum rv_err fail(struct rv_relay_fault *fault, const char *path, const char *what)
{
    snprintf(fault->message, sizeof fault->message, "%.500s %s: %s", path, what, strerror(errno));
    return RV_ERR_IO;
}

static int64_t pid_read(int fd)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    char *end;
    long long pid = strtoll(text, &end, 10);
    return *end == '\n' && pid > 0 && pid <= INT32_MAX ? pid : 0;
}

/* The file lies beside the database, as SQLite's own do, under the database's true name: so it is
 * one file by whatever name the database was given. It stays, since removing it would let two
 * relays lock two files of that name. */
enum rv_err rv_relay_lock_take(struct rv_relay_lock *lock, const char *path, int64_t *ret_pid,
                               struct rv_relay_fault *fault)
{
    char true_path[PATH_MAX];
    char name[PATH_MAX + sizeof "-relay"];
    lock->fd = -1;
    *ret_pid = 0;
    if (realpath(path, true_path) == NULL)
        return fail(fault, path, "cannot be opened");
    snprintf(name, sizeof name, "%s-relay", true_path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail(fault, name, "cannot be created beside the database");
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        enum rv_err err = errno == EWOULDBLOCK ? RV_ERR_IN_USE
                                               : fail(fault, name, "is not a lock file");
        *ret_pid = pid_read(fd);
        close(fd);
        return err;
    }
    char text[32];
    int len = snprintf(text, sizeof text, "%lld\n", (long long)getpid());
    rv_assert(len > 0);
    rv_assert((size_t)len < sizeof text);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) != len) {
        enum rv_err err = fail(fault, name, "cannot be written");
        close(fd);
        return err;
    }
    lock->fd = fd;
    return RV_OK;
}

void rv_relay_lock_give(struct rv_relay_lock *lock)
{
    if (lock->fd >= 0) {
        (void)!ftruncate(lock->fd, 0); /* it names a process that no longer relays */
        close(lock->fd);
    }
    lock->fd = -1;
}
