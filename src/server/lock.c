#include "server/lock.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/os/log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static int lock_open(const char *path)
{
    char name[PATH_MAX];
    int len = snprintf(name, sizeof name, "%s.lock", path);
    if (len < 0 || (size_t)len >= sizeof name)
        return -1;
    return open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

int rv_lock_check(const char *path)
{
    char text[32], who[64] = "";
    int fd = lock_open(path);
    if (fd < 0)
        return 0; /* nobody has used it, or opening the store says what is wrong */
    bool held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    ssize_t n = held ? pread(fd, text, sizeof text - 1, 0) : 0;
    close(fd);
    if (!held)
        return 0;
    rv_assert(n < (ssize_t)sizeof text);
    text[n > 0 ? n : 0] = '\0';
    long long pid = strtoll(text, NULL, 10);
    if (pid > 0)
        snprintf(who, sizeof who, " (pid %lld)", pid);
    rv_log_refusal("reeve serve",
                   "%s is used by a server%s: stop the server, or use another --store", path, who);
    return rv_err_exit(RV_ERR_IN_USE);
}
