#include "base/os/sink.h"

#include "base/assert.h"
#include "base/time.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct rv_sink_piece {
    struct rv_sink_piece *next;
    uint64_t lines;
    size_t len;
    char bytes[];
};

/* ---- writing ---- */

/* 0 or errno. May block. Somebody else may have made the open file non-blocking. */
static int bytes_write(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (n == 0) {
            return EIO;
        } else if (errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* Whether a write waits for a reader. */
static bool has_reader(int fd)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return false;
    return S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode) ||
           (S_ISCHR(about.st_mode) && isatty(fd));
}

/* Without a thread: what certainly fits. 0 or errno. */
static int bytes_try(int fd, const char *at, size_t len)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    if (len > PIPE_BUF || poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT))
        return EAGAIN;
    return bytes_write(fd, at, len);
}

/* ---- the thread ---- */

static void sink_free(struct rv_sink *sink)
{
    close(sink->fd);
    pthread_cond_destroy(&sink->moved);
    pthread_mutex_destroy(&sink->lock);
    free(sink);
}

/* Under the lock, as what follows. */
static void drop(struct rv_sink *sink, uint64_t lines, int error)
{
    sink->counts.dropped += lines;
    sink->counts.error = error;
}

static void count(struct rv_sink *sink, uint64_t lines, int error)
{
    if (error != 0)
        drop(sink, lines, error);
    else
        sink->counts.written += lines;
}

/* Whether it is time to tell that lines were dropped. */
static bool told_late(const struct rv_sink *sink)
{
    return sink->first == NULL && sink->tell != NULL && sink->counts.dropped > sink->told;
}

static void piece_write(struct rv_sink *sink)
{
    struct rv_sink_piece *piece = sink->first;
    pthread_mutex_unlock(&sink->lock);
    int error = bytes_write(sink->fd, piece->bytes, piece->len);
    pthread_mutex_lock(&sink->lock);
    sink->first = piece->next;
    if (sink->first == NULL)
        sink->last = NULL;
    sink->bytes -= piece->len;
    count(sink, piece->lines, error);
    free(piece);
    if (error == 0 && told_late(sink)) {
        pthread_mutex_unlock(&sink->lock);
        sink->tell(sink);
        pthread_mutex_lock(&sink->lock);
    }
    pthread_cond_broadcast(&sink->moved);
}

static void *sink_run(void *at)
{
    struct rv_sink *sink = at;
    pthread_mutex_lock(&sink->lock);
    while (sink->first != NULL || !sink->ended) {
        if (sink->first != NULL)
            piece_write(sink);
        else
            pthread_cond_wait(&sink->moved, &sink->lock);
    }
    sink->running = false;
    pthread_cond_broadcast(&sink->moved);
    bool owned = sink->owned;
    pthread_mutex_unlock(&sink->lock);
    if (owned)
        sink_free(sink);
    return NULL;
}

/* Signals go to other threads, so that SIGPIPE is an errno here. */
static bool thread_start(struct rv_sink *sink)
{
    pthread_t thread;
    sigset_t all, before;
    if (sink->running)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sink->running = pthread_create(&thread, NULL, sink_run, sink) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!sink->running)
        return false;
    (void)pthread_setname_np(thread, "log");
    (void)pthread_detach(thread);
    return true;
}

static bool queue_add(struct rv_sink *sink, const char *bytes, size_t len, uint64_t lines)
{
    bool room = sink->first == NULL || sink->bytes + len <= sink->bytes_max;
    struct rv_sink_piece *piece = room ? malloc(sizeof *piece + len) : NULL;
    if (piece == NULL) {
        drop(sink, lines, room ? ENOMEM : EAGAIN);
        return false;
    }
    *piece = (struct rv_sink_piece){.lines = lines, .len = len};
    memcpy(piece->bytes, bytes, len);
    if (sink->first == NULL)
        sink->first = piece;
    else
        sink->last->next = piece;
    sink->last = piece;
    sink->bytes += len;
    pthread_cond_broadcast(&sink->moved);
    return true;
}

/* ---- what others call ---- */

struct rv_sink *rv_sink_new(int fd, size_t bytes_max)
{
    struct rv_sink *sink = malloc(sizeof *sink);
    if (sink == NULL)
        return NULL;
    *sink = (struct rv_sink)RV_SINK_INIT(fd, bytes_max, NULL);
    sink->owned = true;
    return sink;
}

/* The child of a fork may have got the lock while it was taken, and has no thread. */
static bool forked(struct rv_sink *sink)
{
    int pid = getpid(), none = 0;
    return !atomic_compare_exchange_strong(&sink->pid, &none, pid) && none != pid;
}

bool rv_sink_put(struct rv_sink *sink, const char *bytes, size_t len, uint64_t lines)
{
    if (forked(sink))
        return bytes_try(sink->fd, bytes, len) == 0;
    pthread_mutex_lock(&sink->lock);
    bool waits = sink->first != NULL || has_reader(sink->fd);
    bool good;
    if (waits && thread_start(sink)) {
        good = queue_add(sink, bytes, len, lines);
    } else {
        int error = waits ? bytes_try(sink->fd, bytes, len) : bytes_write(sink->fd, bytes, len);
        count(sink, lines, error);
        good = error == 0;
    }
    bool tells = good && told_late(sink);
    pthread_mutex_unlock(&sink->lock);
    if (tells)
        sink->tell(sink);
    return good;
}

static void flush_locked(struct rv_sink *sink, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / RV_SECOND_MS;
    until.tv_nsec += ms % RV_SECOND_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int late = 0;
    while (sink->first != NULL && late == 0)
        late = pthread_cond_clockwait(&sink->moved, &sink->lock, CLOCK_MONOTONIC, &until);
}

bool rv_sink_flush(struct rv_sink *sink, int64_t ms)
{
    if (forked(sink))
        return true;
    pthread_mutex_lock(&sink->lock);
    flush_locked(sink, ms);
    bool all = sink->first == NULL;
    pthread_mutex_unlock(&sink->lock);
    return all;
}

void rv_sink_end(struct rv_sink *sink, int64_t ms)
{
    rv_assert(sink->owned); /* no assertion with the lock: its failure is logged */
    pthread_mutex_lock(&sink->lock);
    flush_locked(sink, ms);
    sink->ended = true;
    pthread_cond_broadcast(&sink->moved);
    bool running = sink->running;
    pthread_mutex_unlock(&sink->lock);
    if (!running)
        sink_free(sink);
}

void rv_sink_drop(struct rv_sink *sink, uint64_t lines, int error)
{
    rv_assert(error != 0);
    pthread_mutex_lock(&sink->lock);
    drop(sink, lines, error);
    pthread_mutex_unlock(&sink->lock);
}

struct rv_sink_counts rv_sink_count(struct rv_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    struct rv_sink_counts counts = sink->counts;
    pthread_mutex_unlock(&sink->lock);
    return counts;
}

void rv_sink_untell(struct rv_sink *sink, uint64_t lines)
{
    pthread_mutex_lock(&sink->lock);
    sink->told -= lines;
    pthread_mutex_unlock(&sink->lock);
}

uint64_t rv_sink_take_dropped(struct rv_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    uint64_t fresh = sink->counts.dropped - sink->told;
    sink->told = sink->counts.dropped;
    pthread_mutex_unlock(&sink->lock);
    return fresh;
}
