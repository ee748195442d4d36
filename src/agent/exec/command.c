/* A command's run. Its thread waits in poll() for everything at once: room in stdin, bytes from
 * stdout and stderr, the end of the process (a pidfd), a word of the agent, the deadline.
 *
 * The end has two halves. Whoever is asked to end gets SIGTERM with its whole group, and SIGKILL
 * after a grace. And whatever the reason, when the command itself has ended, the rest of its group
 * is killed before the command is waited for: until then its number cannot become another's. */
#include "agent/exec/command.h"

#include "agent/exec/exec.h"
#include "base/os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 65536,
    ASK_MS_MAX = 60000 /* a clock that is not the one of poll() is looked at so often */
};

enum { IN, OUT, ERR, STREAMS };

struct run {
    const struct rv_exec_command *command;
    struct rv_buf *output;
    struct rv_exec_tail *tail;
    pid_t pid;
    int pidfd;
    int ours[STREAMS];   /* our ends of the pipes; -1: closed */
    int theirs[STREAMS]; /* the command's ends, until it has them */
    size_t fed;
    enum rv_exec_end why; /* it was asked to end; NOT_STARTED: it was not */
    int64_t kill_at;
    bool killed;
};

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- starting ---- */

static bool pipes_open(struct run *run)
{
    for (int i = 0; i < STREAMS; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            return false;
        run->ours[i] = ends[i == IN ? 1 : 0];
        run->theirs[i] = ends[i == IN ? 0 : 1];
        if (fcntl(run->ours[i], F_SETFL, O_NONBLOCK) != 0)
            return false;
    }
    return true;
}

static void signals_reset(void)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &plain, NULL); /* fails for those that cannot be changed */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Descriptors of libraries that do not mark theirs. */
static bool others_close_on_exec(void)
{
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return true;
    if (errno != ENOSYS && errno != EPERM)
        return false;
    long last = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < last; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC); /* fails for those that are not open */
    return true;
}

/* Between fork and exec, in a copy of a process with threads: only calls that a signal handler may
 * make. Waits until it may go on; writes the errno if the command cannot be started. */
static _Noreturn void child_run(const struct run *run, pid_t agent, int parent)
{
    const struct rv_exec_command *command = run->command;
    char go;
    if (read(parent, &go, 1) != 1)
        _exit(1);
    setsid();
    /* The reaper kills the group when the agent dies; this is for the day on which both do. */
    bool good = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    if (getppid() != agent)
        _exit(1);
    good = good && rv_reaper_note(command->reaper, getpid());
    for (int i = 0; good && i < STREAMS; i++)
        good = dup2(run->theirs[i], i) == i;
    good = good && others_close_on_exec();
    if (good) {
        signals_reset();
        execve(command->path, command->arguments, command->environment);
    }
    int why = errno;
    ssize_t written = write(parent, &why, sizeof why);
    _exit(written == (ssize_t)sizeof why ? 1 : 2);
}

/* The child goes on only when all is there that its run needs. 0, or the errno of why it cannot be
 * started: then it has done nothing. */
static int child_start(struct run *run)
{
    int line[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) != 0)
        return errno;
    pid_t agent = getpid();
    run->pid = fork();
    if (run->pid == 0) {
        close(line[0]);
        child_run(run, agent, line[1]);
    }
    int why = run->pid < 0 ? errno : 0;
    close(line[1]);
    if (why == 0) {
        run->pidfd = pidfd_open(run->pid, 0);
        bool goes = run->pidfd >= 0 && write(line[0], "", 1) == 1;
        why = goes ? 0 : errno;
        while (goes && read(line[0], &why, sizeof why) < 0 && errno == EINTR) {
        }
    }
    close(line[0]);
    return why;
}

static int run_start(struct run *run)
{
    int why = pipes_open(run) ? child_start(run) : errno;
    for (int i = 0; i < STREAMS; i++)
        fd_close(&run->theirs[i]);
    return why;
}

/* ---- streams ---- */

/* What a command does not read is its own affair. */
static void stdin_feed(struct run *run)
{
    struct rv_str input = run->command->input;
    while (run->fed < input.len) {
        ssize_t n = write(run->ours[IN], input.at + run->fed, input.len - run->fed);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break;
        run->fed += (size_t)n;
    }
    fd_close(&run->ours[IN]);
}

static void end_begin(struct run *run, enum rv_exec_end why)
{
    if (run->why != RV_EXEC_NOT_STARTED)
        return;
    run->why = why;
    run->kill_at = rv_clock_mono_ms() + RV_EXEC_GRACE_MS;
    kill(-run->pid, SIGTERM);
}

static void bytes_take(struct run *run, int stream, const char *bytes, size_t count)
{
    if (stream == ERR) {
        rv_exec_tail_add(run->tail, bytes, count);
        rv_passing_add(run->command->passing, bytes, count);
        return;
    }
    rv_buf_add(run->output, bytes, count);
    if (run->output->failed != RV_OK) {
        end_begin(run, RV_EXEC_FLOODED);
        fd_close(&run->ours[OUT]);
    }
}

/* Takes what is there now, but not for ever from one that never stops. */
static void stream_read(struct run *run, int stream)
{
    char chunk[CHUNK_BYTES];
    for (int rounds = 0; rounds < 16 && run->ours[stream] >= 0; rounds++) {
        ssize_t n = read(run->ours[stream], chunk, sizeof chunk);
        if (n > 0)
            bytes_take(run, stream, chunk, (size_t)n);
        else if (n == 0 || errno != EINTR)
            break;
    }
}

/* ---- the run ---- */

/* How long to wait; asks the agent, and ends what is to be ended. */
static int run_pace(struct run *run)
{
    int64_t left_ms = ASK_MS_MAX;
    if (run->why == RV_EXEC_NOT_STARTED) {
        enum rv_exec_end asked = run->command->asked(run->command->user, &left_ms);
        if (asked != RV_EXEC_NOT_STARTED)
            end_begin(run, asked);
    }
    if (run->why != RV_EXEC_NOT_STARTED)
        left_ms = run->killed ? ASK_MS_MAX : run->kill_at - rv_clock_mono_ms();
    if (left_ms <= 0 && !run->killed && run->why != RV_EXEC_NOT_STARTED) {
        run->killed = true;
        kill(-run->pid, SIGKILL);
        left_ms = ASK_MS_MAX;
    }
    return left_ms < 0 ? 0 : left_ms > ASK_MS_MAX ? ASK_MS_MAX : (int)left_ms;
}

/* Its children may still be at their own end: those that hold its output are waited for, for as
 * long as the grace lasts. */
static bool run_over(const struct run *run, bool ended)
{
    bool heard = run->ours[OUT] < 0 && run->ours[ERR] < 0;
    return ended && (run->why == RV_EXEC_NOT_STARTED || run->killed || heard);
}

/* An end-of-file is seen as POLLHUP; then there is nothing more to be read. */
static void stream_look(struct run *run, int stream, short events)
{
    if (events & (POLLIN | POLLHUP | POLLERR))
        stream_read(run, stream);
    if ((events & (POLLHUP | POLLERR)) && !(events & POLLIN))
        fd_close(&run->ours[stream]);
}

static void run_watch(struct run *run)
{
    bool ended = false;
    while (!run_over(run, ended)) {
        int pace_ms = run_pace(run);
        bool watched = run->why == RV_EXEC_NOT_STARTED;
        struct pollfd fds[] = {
            {.fd = run->ours[IN], .events = POLLOUT},
            {.fd = run->ours[OUT], .events = POLLIN},
            {.fd = run->ours[ERR], .events = POLLIN},
            {.fd = ended ? -1 : run->pidfd, .events = POLLIN},
            {.fd = watched ? run->command->wake_fd : -1, .events = POLLIN},
        };
        if (poll(fds, sizeof fds / sizeof fds[0], pace_ms) < 0)
            continue; /* EINTR: nothing was filled in */
        if (fds[IN].revents != 0)
            stdin_feed(run);
        stream_look(run, OUT, fds[OUT].revents);
        stream_look(run, ERR, fds[ERR].revents);
        ended = ended || fds[STREAMS].revents != 0;
    }
    kill(-run->pid, SIGKILL); /* all that are left behind */
}

/* The rest of what was written before the end. */
static void rest_read(struct run *run)
{
    for (int stream = OUT; stream <= ERR; stream++)
        if (run->ours[stream] >= 0)
            stream_read(run, stream);
}

/* How it ended, once it was waited for. */
static struct rv_exec_result run_result(const struct run *run, const siginfo_t *about)
{
    struct rv_exec_result result = {.end = run->why, .number = about->si_status};
    if (run->why == RV_EXEC_NOT_STARTED)
        result.end = about->si_code == CLD_EXITED ? RV_EXEC_EXITED : RV_EXEC_SIGNALLED;
    result.output = rv_buf_str(run->output);
    result.errors = rv_exec_tail_text(run->tail);
    return result;
}

struct rv_exec_result rv_command_run(const struct rv_exec_command *command, struct rv_buf *output,
                                     struct rv_exec_tail *tail)
{
    struct run run = {.command = command,
                      .output = output,
                      .tail = tail,
                      .pidfd = -1,
                      .ours = {-1, -1, -1},
                      .theirs = {-1, -1, -1},
                      .why = RV_EXEC_NOT_STARTED};
    siginfo_t about = {.si_status = 0};
    int why = run_start(&run);
    if (why == 0) {
        run_watch(&run);
        rest_read(&run);
    }
    if (run.pid > 0) {
        rv_reaper_forget(command->reaper, run.pid);
        while (waitid(P_PID, (id_t)run.pid, &about, WEXITED) != 0 && errno == EINTR) {
        }
    }
    fd_close(&run.pidfd);
    for (int i = 0; i < STREAMS; i++)
        fd_close(&run.ours[i]);
    if (why != 0)
        return (struct rv_exec_result){.end = RV_EXEC_NOT_STARTED, .number = why};
    return run_result(&run, &about);
}
