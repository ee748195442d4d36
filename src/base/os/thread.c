#include "base/os/thread.h"

#include "base/assert.h"

#include <signal.h>
#include <string.h>

enum { NAME_LEN_MAX = 15 };

static void *thread_run(void *at)
{
    struct rv_thread *thread = at;
    thread->run(thread->self);
    return NULL;
}

enum rv_err rv_thread_start(struct rv_thread *thread, const char *name, void (*run)(void *self),
                            void *self)
{
    rv_assert(strlen(name) <= NAME_LEN_MAX);
    thread->run = run;
    thread->self = self;
    /* A thread inherits the mask: signals go to the main thread alone, which waits for them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread->handle, NULL, thread_run, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0)
        return RV_ERR_MEMORY;
    (void)pthread_setname_np(thread->handle, name);
    return RV_OK;
}

void rv_thread_join(struct rv_thread *thread)
{
    int failed = pthread_join(thread->handle, NULL);
    rv_assert(failed == 0);
}
