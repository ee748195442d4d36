#include "agent/exec/reaper.h"

#include "agent/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A message on the pipe: a group that has begun, or, negative, one that has ended. So short a write
 * is never torn (PIPE_BUF). A group is forgotten before the thread that ran it begins another. */
enum { GROUPS_MAX = RV_EXEC_COMMANDS_MAX };

struct process_groups {
    pid_t at[GROUPS_MAX];
    size_t count;
};

static void groups_take(struct process_groups *groups, pid_t message)
{
    if (message > 0) {
        if (groups->count == GROUPS_MAX)
            abort(); /* the agent runs more commands than it may */
        groups->at[groups->count++] = message;
        return;
    }
    for (size_t i = 0; i < groups->count; i++)
        if (groups->at[i] == -message) {
            groups->at[i] = groups->at[--groups->count];
            return;
        }
}

/* Reads until the agent is gone. */
static void keep(int fd)
{
    struct process_groups groups = {.count = 0};
    pid_t message;
    for (;;) {
        ssize_t n = read(fd, &message, sizeof message);
        if (n == (ssize_t)sizeof message)
            groups_take(&groups, message);
        else if (n >= 0 || errno != EINTR)
            break;
    }
    for (size_t i = 0; i < groups.count; i++)
        kill(-groups.at[i], SIGKILL);
}

/* Neither the terminal's signals nor those to the agent's group reach the reaper: it ends with the
 * agent, never before. */
static _Noreturn void reaper_run(int fd)
{
    setsid();
    prctl(PR_SET_NAME, "reeve-reaper");
    static const int asked[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        sigaction(asked[i], &ignore, NULL);
    int null = open("/dev/null", O_RDWR);
    for (int standard = 0; null >= 0 && standard <= 2; standard++)
        dup2(null, standard);
    keep(fd);
    _exit(0);
}

enum rv_err rv_reaper_start(struct rv_reaper *reaper)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return RV_ERR_IO;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        reaper_run(ends[0]);
    }
    int why = errno;
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        errno = why;
        return RV_ERR_IO;
    }
    *reaper = (struct rv_reaper){.pid = pid, .fd = ends[1]};
    return RV_OK;
}

void rv_reaper_stop(struct rv_reaper *reaper)
{
    close(reaper->fd);
    while (waitpid(reaper->pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

static bool message_write(const struct rv_reaper *reaper, pid_t message)
{
    ssize_t n;
    do {
        n = write(reaper->fd, &message, sizeof message);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof message;
}

bool rv_reaper_note(const struct rv_reaper *reaper, pid_t group)
{
    return message_write(reaper, group);
}

void rv_reaper_forget(const struct rv_reaper *reaper, pid_t group)
{
    /* A reaper that is gone is noticed by the next command, which does not start without one. */
    (void)message_write(reaper, -group);
}
