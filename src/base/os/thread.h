/* thread.h - a named thread that takes no signals. */
#ifndef RV_BASE_OS_THREAD_H
#define RV_BASE_OS_THREAD_H

#include "base/err.h"

#include <pthread.h>

struct rv_thread {
    pthread_t handle;
    void (*run)(void *self);
    void *self; /* borrowed */
};

/* `thread` must stay where it is until it is joined. `name` has at most 15 characters. MEMORY when
 * the system gives no thread. */
RV_CHECK enum rv_err rv_thread_start(struct rv_thread *thread, const char *name,
                                     void (*run)(void *self), void *self);
void rv_thread_join(struct rv_thread *thread);

#endif
