/* sink.h - lines for a reader that may stop reading: a bounded queue and a thread that writes. */
#ifndef RV_BASE_OS_SINK_H
#define RV_BASE_OS_SINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pipe, a socket or a terminal blocks its writer when nobody reads it. O_NONBLOCK would be set
 * for every process that shares the open file, so such a descriptor is written by a thread that may
 * block (docs/decisions/030). Other files are written at once, by the thread that has the line. */
struct rv_sink {
    int fd;
    bool owned;       /* memory and descriptor are the sink's, until it has ended */
    size_t bytes_max; /* of the queue */
    /* All that was put is written and lines were dropped before; without the lock. NULL: not. */
    void (*tell)(struct rv_sink *sink);
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct rv_sink_piece *first; /* owned */
    struct rv_sink_piece *last;
    size_t bytes; /* in the queue, with those being written */
    bool running; /* the thread */
    bool ended;
    atomic_int pid; /* of the process that uses it: the child of a fork has no thread */
    struct rv_sink_counts {
        uint64_t written; /* lines */
        uint64_t dropped;
        int error; /* errno of the newest that was dropped; EAGAIN: no room in the queue */
    } counts;
    uint64_t told; /* of the dropped ones */
};

#define RV_SINK_INIT(to_fd, most, tell_dropped)                                                    \
    {                                                                                              \
        .fd = (to_fd), .bytes_max = (most), .tell = (tell_dropped),                                \
        .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER                       \
    }

/* Takes `fd` over. NULL: out of memory. */
struct rv_sink *rv_sink_new(int fd, size_t bytes_max);
/* Of rv_sink_new: waits at most `ms` for the rest to be written. A thread that still blocks then
 * keeps the sink, and frees it after the write. */
void rv_sink_end(struct rv_sink *sink, int64_t ms);

/* From any thread; never waits for a reader. One write, unless that is cut short. False: dropped,
 * and counted as `lines`. */
bool rv_sink_put(struct rv_sink *sink, const char *bytes, size_t len, uint64_t lines);
/* Lines for which the caller finds no memory, or whatever the errno says, count as dropped, too. */
void rv_sink_drop(struct rv_sink *sink, uint64_t lines, int error);
/* Waits at most `ms` until all is written. */
bool rv_sink_flush(struct rv_sink *sink, int64_t ms);
struct rv_sink_counts rv_sink_count(struct rv_sink *sink);
/* The dropped lines that no earlier call has returned. */
uint64_t rv_sink_take_dropped(struct rv_sink *sink);
/* The line that was to tell of so many was dropped as well. */
void rv_sink_untell(struct rv_sink *sink, uint64_t lines);

#endif
