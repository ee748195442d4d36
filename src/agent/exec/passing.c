#include "agent/exec/passing.h"

#include "base/os/clock.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 512 };

/* Another command's thread must not fill the pipe between the question and the writing. */
static pthread_mutex_t one_writes = PTHREAD_MUTEX_INITIALIZER;

/* Under the mutex. */
static struct {
    bool begun;
    int64_t level;       /* bytes that may be written now */
    int64_t at;          /* the instant of `level` */
    uint64_t owed_bytes; /* left out, and told by no line yet */
    uint64_t owed_attempts;
} shared;

static void level_rise(void)
{
    int64_t now = rv_clock_mono_ms();
    int64_t past_ms = shared.begun ? now - shared.at : INT32_MAX;
    /* Nobody waits so long that the product does not fit. */
    if (past_ms > INT32_MAX)
        past_ms = INT32_MAX;
    shared.level += past_ms * RV_PASSING_BYTES_PER_SECOND / 1000;
    if (shared.level > RV_PASSING_BURST_BYTES)
        shared.level = RV_PASSING_BURST_BYTES;
    shared.at = now;
    shared.begun = true;
}

/* How much of it was written; a pipe that is full takes nothing. */
static size_t write_some(const char *bytes, size_t count)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    size_t written = 0;
    ssize_t n = 1;
    while (n > 0 && written < count && poll(&out, 1, 0) == 1 && (out.revents & POLLOUT)) {
        size_t rest = count - written;
        n = write(STDERR_FILENO, bytes + written, rest < PIPE_BUF ? rest : PIPE_BUF);
        written += n > 0 ? (size_t)n : 0;
    }
    shared.level -= (int64_t)written;
    return written;
}

/* The last LINE_BYTES_MAX of the level are for the lines that tell what was left out. */
static size_t room(const struct rv_passing *passing)
{
    size_t left = passing->left_out > 0 ? 0 : RV_PASSING_ATTEMPT_BYTES - passing->passed;
    size_t level = shared.level > LINE_BYTES_MAX ? (size_t)shared.level - LINE_BYTES_MAX : 0;
    return left < level ? left : level;
}

void rv_passing_add(struct rv_passing *passing, const char *bytes, size_t count)
{
    pthread_mutex_lock(&one_writes);
    level_rise();
    size_t most = room(passing);
    size_t written = write_some(bytes, count < most ? count : most);
    pthread_mutex_unlock(&one_writes);
    if (written > 0)
        passing->mid_line = bytes[written - 1] != '\n';
    passing->passed += written;
    passing->left_out += count - written;
}

static void owed_add(char *line, size_t size, int len)
{
    if (shared.owed_attempts == 0 || len < 0 || (size_t)len >= size)
        return;
    snprintf(line + len, size - (size_t)len,
             ", and %" PRIu64 " bytes of %" PRIu64 " attempts before", shared.owed_bytes,
             shared.owed_attempts);
}

void rv_passing_report(const struct rv_passing *passing, const char *agent, const char *step,
                       int64_t attempt)
{
    char line[LINE_BYTES_MAX];
    if (passing->left_out == 0)
        return;
    pthread_mutex_lock(&one_writes);
    level_rise();
    int len = snprintf(line, sizeof line - 1,
                       "%sreeve agent: warning: %.64s: step %.32s, attempt %" PRId64
                       ": left out %" PRIu64 " bytes of its stderr",
                       passing->mid_line ? "\n" : "", agent, step, attempt, passing->left_out);
    owed_add(line, sizeof line - 1, len);
    size_t count = strlen(line);
    line[count++] = '\n';
    if (shared.level >= LINE_BYTES_MAX && write_some(line, count) == count) {
        shared.owed_bytes = shared.owed_attempts = 0;
    } else {
        shared.owed_bytes += passing->left_out;
        shared.owed_attempts++;
    }
    pthread_mutex_unlock(&one_writes);
}

void rv_passing_close(const char *agent)
{
    pthread_mutex_lock(&one_writes);
    if (shared.owed_attempts > 0)
        fprintf(stderr,
                "reeve agent: warning: %s: left out %" PRIu64 " bytes of the stderr of %" PRIu64
                " attempts\n",
                agent, shared.owed_bytes, shared.owed_attempts);
    shared.owed_bytes = shared.owed_attempts = 0;
    pthread_mutex_unlock(&one_writes);
}
