#include "api/access_log.h"

#include "api/put.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINES_BYTES_MAX = 128 * 1024, FLUSH_BYTES = 64 * 1024 };

/* By one thread, but for `renew`. */
struct rv_access_log {
    const char *path; /* borrowed */
    int fd;
    bool failed; /* the last write; only the first failure in a row is logged */
    atomic_bool renew;
    struct rv_buf lines;
};

static int file_open(const char *path)
{
    if (strcmp(path, "-") == 0)
        return dup(STDOUT_FILENO);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

struct rv_access_log *rv_access_log_open(const char *path)
{
    struct rv_access_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return NULL;
    log->path = path;
    log->fd = file_open(path);
    rv_buf_init(&log->lines, LINES_BYTES_MAX);
    if (log->fd >= 0)
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
    close(log->fd);
    rv_buf_done(&log->lines);
    free(log);
}

/* What cannot be written is dropped. */
static void fail_tell(struct rv_access_log *log, bool failed)
{
    int error = errno;
    if (failed && !log->failed)
        rv_log(RV_LOG_WARNING, "access-log", RV_LOG_STR("file", rv_str_of(log->path)),
               RV_LOG_STR("reason", rv_str_of(strerror(error))));
    log->failed = failed;
}

void rv_access_log_flush(struct rv_access_log *log)
{
    struct rv_str rest = rv_buf_str(&log->lines);
    bool failed = false;
    while (rest.len > 0 && !failed) {
        ssize_t written = write(log->fd, rest.at, rest.len);
        failed = written <= 0 && errno != EINTR;
        if (written > 0)
            rest = (struct rv_str){rest.at + written, rest.len - (size_t)written};
    }
    if (log->lines.len > 0)
        fail_tell(log, failed);
    rv_buf_reset(&log->lines);
    if (!atomic_exchange(&log->renew, false))
        return;
    int fd = file_open(log->path);
    fail_tell(log, fd < 0);
    if (fd < 0)
        return;
    close(log->fd);
    log->fd = fd;
}

void rv_access_log_renew(struct rv_access_log *log)
{
    atomic_store(&log->renew, true);
}

void rv_access_log_add(struct rv_access_log *log, const struct rv_access_line *line)
{
    struct rv_buf *lines = &log->lines;
    if (lines->len >= FLUSH_BYTES || atomic_load(&log->renew))
        rv_access_log_flush(log);
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
