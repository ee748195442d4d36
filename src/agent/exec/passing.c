#include "agent/exec/passing.h"

#include "base/os/clock.h"
#include "base/os/log.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A report: an agent's name has at most 128 bytes, each at most six in JSON. */
enum { LINE_BYTES_MAX = 1280, TEXT_BYTES_MAX = 256 };

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

/* How much of it was taken; the log of a slow reader has no room. */
static size_t write_some(const char *bytes, size_t count)
{
    size_t written = 0;
    while (written < count) {
        size_t part = count - written < PIPE_BUF ? count - written : PIPE_BUF;
        if (!rv_log_put(bytes + written, part, 0))
            break;
        written += part;
    }
    shared.level -= (int64_t)written;
    return written;
}

/* The last LINE_BYTES_MAX of the level are for the lines that report what was left out. */
static size_t room(const struct rv_passing *passing)
{
    size_t left = passing->left_out > 0 ? 0 : RV_PASSING_ATTEMPT_BYTES - passing->passed;
    size_t level = shared.level > LINE_BYTES_MAX ? (size_t)shared.level - LINE_BYTES_MAX : 0;
    return left < level ? left : level;
}

static void text_add(struct rv_passing *passing, const char *bytes, size_t count)
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

/* Writes the current line as JSON, or leaves all of it out. `count`: its bytes with the newline. */
static void line_end(struct rv_passing *passing, size_t count)
{
    char json[RV_LOG_LINE_BYTES];
    const struct rv_log_field fields[] = {
        RV_LOG_STR("agent", rv_str_of(passing->agent)),
        RV_LOG_STR("task", rv_str_of(passing->task)),
        RV_LOG_STR("step", rv_str_of(passing->step)),
        RV_LOG_INT("attempt", passing->attempt),
        RV_LOG_STR("text", ((struct rv_str){passing->line, passing->line_len})),
    };
    size_t len = rv_log_line(RV_LOG_INFO, "stderr", fields, sizeof fields / sizeof fields[0], json);
    pthread_mutex_lock(&one_writes);
    level_rise();
    bool fits = passing->left_out == 0 && passing->passed + count <= RV_PASSING_ATTEMPT_BYTES &&
                shared.level >= (int64_t)len + LINE_BYTES_MAX && write_some(json, len) == len;
    pthread_mutex_unlock(&one_writes);
    *(fits ? &passing->passed : &passing->left_out) += count;
    passing->line_len = 0;
}

static void lines_add(struct rv_passing *passing, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n') {
            line_end(passing, passing->line_len + 1);
            continue;
        }
        if (passing->line_len == sizeof passing->line)
            line_end(passing, passing->line_len);
        passing->line[passing->line_len++] = bytes[i];
    }
}

void rv_passing_add(struct rv_passing *passing, const char *bytes, size_t count)
{
    if (rv_log_is_json())
        lines_add(passing, bytes, count);
    else
        text_add(passing, bytes, count);
}

static void owed_add(char *text, size_t size, int len)
{
    if (shared.owed_attempts == 0 || len < 0 || (size_t)len >= size)
        return;
    snprintf(text + len, size - (size_t)len,
             ", and %" PRIu64 " bytes in earlier attempts (%" PRIu64 ")", shared.owed_bytes,
             shared.owed_attempts);
}

/* The line of the log, in a room of RV_LOG_LINE_BYTES. */
static size_t report_line(const char *agent, const char *text, char *ret_line)
{
    const struct rv_log_field fields[] = {RV_LOG_STR("agent", rv_str_of(agent)),
                                          RV_LOG_STR("message", rv_str_of(text))};
    return rv_log_line(RV_LOG_WARNING, "agent", fields, sizeof fields / sizeof fields[0], ret_line);
}

void rv_passing_report(struct rv_passing *passing)
{
    char text[TEXT_BYTES_MAX];
    char line[1 + RV_LOG_LINE_BYTES] = "\n";
    if (passing->line_len > 0)
        line_end(passing, passing->line_len);
    if (passing->left_out == 0)
        return;
    pthread_mutex_lock(&one_writes);
    level_rise();
    int len = snprintf(text, sizeof text,
                       "step %.32s, attempt %" PRId64 ": %" PRIu64 " bytes of stderr were dropped",
                       passing->step, passing->attempt, passing->left_out);
    owed_add(text, sizeof text, len);
    size_t count = report_line(passing->agent, text, line + 1) + passing->mid_line;
    const char *from = line + !passing->mid_line;
    if (shared.level >= LINE_BYTES_MAX && write_some(from, count) == count) {
        shared.owed_bytes = shared.owed_attempts = 0;
    } else {
        shared.owed_bytes += passing->left_out;
        shared.owed_attempts++;
    }
    pthread_mutex_unlock(&one_writes);
}

void rv_passing_close(const char *agent)
{
    char text[TEXT_BYTES_MAX];
    pthread_mutex_lock(&one_writes);
    snprintf(text, sizeof text, "%" PRIu64 " bytes of stderr were dropped (attempts: %" PRIu64 ")",
             shared.owed_bytes, shared.owed_attempts);
    if (shared.owed_attempts > 0)
        rv_log(RV_LOG_WARNING, "agent", RV_LOG_STR("agent", rv_str_of(agent)),
               RV_LOG_STR("message", rv_str_of(text)));
    shared.owed_bytes = shared.owed_attempts = 0;
    pthread_mutex_unlock(&one_writes);
}
