#include "server/lock.h"

#include "base/err.h"
#include "base/os/log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static int lock_open(const char *path, int flags)
{
    char name[PATH_MAX];
    int len = snprintf(name, sizeof name, "%s.lock", path);
    if (len < 0 || (size_t)len >= sizeof name)
        return -1;
    return open(name, flags | O_CLOEXEC | O_NOFOLLOW);
}

int rv_lock_check(const char *path)
{
    char text[32], who[64] = "";
    int fd = lock_open(path, O_RDONLY);
    if (fd < 0)
        return 0; /* nobody has used it, or opening the store says what is wrong */
    bool held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    ssize_t n = held ? pread(fd, text, sizeof text - 1, 0) : 0;
    close(fd);
    if (!held)
        return 0;
    text[n > 0 ? n : 0] = '\0';
    long long pid = strtoll(text, NULL, 10);
    if (pid > 0)
        snprintf(who, sizeof who, " (pid %lld)", pid);
    rv_log_refusal("reeve serve",
                   "%s is used by another server%s: stop that server or give another --store", path,
                   who);
    return rv_err_exit(RV_ERR_IN_USE);
}

void rv_lock_close(struct rv_store *store, const char *path)
{
    int fd = lock_open(path, O_WRONLY); /* while the lock is this process's own */
    if (fd >= 0) {
        (void)!ftruncate(fd, 0);
        close(fd);
    }
    store->ops->close(store);
}
