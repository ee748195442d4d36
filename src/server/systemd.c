#include "server/systemd.h"

#include "base/assert.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void rv_systemd_tell(const char *state)
{
    rv_assert(state[0] != '\0');
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = '\0'; /* an abstract name */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

static int64_t number_of(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    long long number = text ? strtoll(text, &end, 10) : 0;
    return text != NULL && *text != '\0' && *end == '\0' ? number : 0;
}

int rv_systemd_sockets(void)
{
    int64_t count = number_of("LISTEN_FDS");
    bool ours = number_of("LISTEN_PID") == getpid();
    return ours && count > 0 && count <= INT_MAX ? (int)count : 0;
}

int64_t rv_systemd_watchdog_ms(void)
{
    int64_t pid = number_of("WATCHDOG_PID");
    int64_t us = number_of("WATCHDOG_USEC");
    if (us <= 0 || (pid != 0 && pid != getpid()))
        return 0;
    return us / 2000 > 0 ? us / 2000 : 1; /* twice as often as is asked for */
}
