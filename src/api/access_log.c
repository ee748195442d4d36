#include "api/access_log.h"

#include "api/put.h"
#include "base/assert.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/sink.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINES_BYTES_MAX = 128 * 1024,
    FLUSH_BYTES = 64 * 1024,
    QUEUE_BYTES_MAX = 1024 * 1024, /* for a reader that is slow */
    CLOSE_MS = 300
};

/* By one thread, but for `renew`. */
struct rv_access_log {
    const char *path; /* borrowed */
    struct rv_sink *sink;
    bool failing; /* the newest lines were dropped; only the first in a row are logged */
    atomic_bool renew;
    uint64_t lines_count;
    uint64_t written;        /* when the newest were dropped */
    atomic_ullong dropped;   /* lines */
    uint64_t dropped_before; /* by earlier sinks */
    uint64_t dropped_told;
    struct rv_buf lines;
};

/* A FIFO without a reader is opened for both, so that the lines wait in it. */
static int file_open(const char *path)
{
    const int flags = O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    if (strcmp(path, "-") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    int fd = open(path, O_WRONLY | flags, S_IRUSR | S_IWUSR);
    if (fd < 0 && errno == ENXIO)
        fd = open(path, O_RDWR | flags, S_IRUSR | S_IWUSR);
    /* The sink's thread waits in write(). */
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

static struct rv_sink *sink_open(const char *path)
{
    int fd = file_open(path);
    if (fd < 0)
        return NULL;
    struct rv_sink *sink = rv_sink_new(fd, QUEUE_BYTES_MAX);
    if (sink == NULL)
        close(fd);
    return sink;
}

struct rv_access_log *rv_access_log_open(const char *path)
{
    struct rv_access_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return NULL;
    log->path = path;
    log->sink = sink_open(path);
    rv_buf_init(&log->lines, LINES_BYTES_MAX);
    if (log->sink != NULL)
        return log;
    int error = errno;
    free(log);
    errno = error;
    return NULL;
}

void rv_access_log_close(struct rv_access_log *log)
{
    if (log == NULL)
        return;
    rv_access_log_flush(log);
    rv_sink_end(log->sink, CLOSE_MS);
    rv_buf_done(&log->lines);
    free(log);
}

static void failure_tell(const struct rv_access_log *log, const char *reason)
{
    rv_log(RV_LOG_WARNING, "access-log", RV_LOG_STR("file", rv_str_of(log->path)),
           RV_LOG_STR("reason", rv_str_of(reason)));
}

/* What cannot be written is dropped: told when that begins, and counted when it is over. */
static void dropped_look(struct rv_access_log *log)
{
    struct rv_sink_counts counts = rv_sink_count(log->sink);
    uint64_t dropped = log->dropped_before + counts.dropped;
    rv_assert(dropped >= log->dropped_told);
    rv_assert(dropped >= atomic_load(&log->dropped));
    bool fresh = dropped > atomic_exchange(&log->dropped, dropped);
    if (fresh && !log->failing)
        failure_tell(log, counts.error == EAGAIN
                              ? "the reader of the access log is too slow; lines are dropped"
                              : strerror(counts.error));
    if (fresh) {
        log->failing = true;
        log->written = counts.written;
    } else if (log->failing && counts.written > log->written && rv_sink_flush(log->sink, 0)) {
        rv_log(RV_LOG_WARNING, "access-log-lines-dropped", RV_LOG_STR("file", rv_str_of(log->path)),
               RV_LOG_INT("lines", (int64_t)(dropped - log->dropped_told)));
        log->dropped_told = dropped;
        log->failing = false;
    }
}

/* A file that was not renamed stays open, and so does a FIFO whose reader blocks its writer. */
static bool renamed(const struct rv_access_log *log)
{
    struct stat open_now, named;
    return strcmp(log->path, "-") != 0 &&
           (fstat(log->sink->fd, &open_now) != 0 || stat(log->path, &named) != 0 ||
            open_now.st_ino != named.st_ino || open_now.st_dev != named.st_dev);
}

static void file_renew(struct rv_access_log *log)
{
    if (!renamed(log))
        return;
    struct rv_sink *sink = sink_open(log->path);
    if (sink == NULL) {
        failure_tell(log, strerror(errno));
        return;
    }
    dropped_look(log);
    log->dropped_before = atomic_load(&log->dropped);
    log->written = 0;
    rv_sink_end(log->sink, 0);
    log->sink = sink;
}

void rv_access_log_flush(struct rv_access_log *log)
{
    struct rv_str lines = rv_buf_str(&log->lines);
    rv_assert((lines.len == 0) == (log->lines_count == 0));
    if (lines.len > 0)
        (void)rv_sink_put(log->sink, lines.at, lines.len, log->lines_count);
    if (lines.len > 0 || log->failing)
        dropped_look(log);
    rv_buf_reset(&log->lines);
    log->lines_count = 0;
    if (atomic_exchange(&log->renew, false))
        file_renew(log);
}

uint64_t rv_access_log_dropped(const struct rv_access_log *log)
{
    return atomic_load(&log->dropped);
}

void rv_access_log_renew(struct rv_access_log *log)
{
    atomic_store(&log->renew, true);
}

static void line_put(struct rv_buf *lines, const struct rv_access_line *line)
{
    rv_buf_add_char(lines, '{');
    rv_put_instant_if(lines, "time", rv_clock_wall_ms());
    rv_put_text(lines, "client", line->client);
    rv_put_text_if(lines, "key", line->key);
    rv_put_text_if(lines, "method", line->method);
    rv_put_text_if(lines, "route", line->pattern);
    rv_put_int(lines, "status", line->status);
    if (line->us >= 0)
        rv_buf_printf(lines, ",\"ms\":%lld.%03lld", (long long)(line->us / RV_SECOND_MS),
                      (long long)(line->us % RV_SECOND_MS));
    rv_buf_lit(lines, "}\n");
}

/* A line that finds no memory behind others takes the place of these once they are written. */
void rv_access_log_add(struct rv_access_log *log, const struct rv_access_line *line)
{
    struct rv_buf *lines = &log->lines;
    if (lines->len >= FLUSH_BYTES || atomic_load(&log->renew))
        rv_access_log_flush(log);
    size_t whole = lines->len;
    line_put(lines, line);
    if (lines->failed != RV_OK && whole > 0) {
        lines->len = whole;
        rv_access_log_flush(log);
        line_put(lines, line);
    }
    if (lines->failed == RV_OK) {
        log->lines_count++;
        return;
    }
    rv_buf_reset(lines);
    rv_sink_drop(log->sink, 1, ENOMEM);
    dropped_look(log);
}
