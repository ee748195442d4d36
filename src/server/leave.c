#include "server/leave.h"

#include "base/assert.h"
#include "base/os/log.h"
#include "server/systemd.h"
#include "store/sqlite/sqlite.h"

#include <time.h>
#include <unistd.h>

enum { EXIT_DISPLACED = 1 };

enum {
    UNASKED,
    ASKED,
    FREE,  /* nothing is lost with the process */
    SAVED, /* all is in a file of its own now, and nothing is written any more */
    NEVER  /* what this process alone has cannot be saved */
};

void rv_leave_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGHUP);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGINT);
    pthread_sigmask(SIG_BLOCK, ret_set, NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL); /* a limit on file sizes is a full disk, not an end */
}

/* As long as bytes are written the stop may take longer. */
static void save_progress(void *self)
{
    (void)self;
    rv_systemd_tell("EXTEND_TIMEOUT_USEC=10000000\nWATCHDOG=1");
    alarm(RV_STOP_SECONDS_MAX);
}

static int store_save(struct rv_store *store, bool *ret_displaced)
{
    static const struct rv_store_sqlite_progress progress = {.told = save_progress};
    struct rv_store_sqlite_saved saved;
    const char *why = NULL;
    enum rv_err err = rv_store_sqlite_look(store, &why);
    *ret_displaced = why != NULL;
    if (why == NULL)
        return FREE;
    rv_log(RV_LOG_ERROR, "store-displaced", RV_LOG_STR("reason", rv_str_of(why)));
    err = rv_store_sqlite_save(store, &progress, &saved);
    if (err != RV_OK)
        rv_log(RV_LOG_ERROR, "store-not-saved", RV_LOG_STR("reason", rv_str_of(saved.why)));
    else if (saved.file[0] != '\0')
        rv_log(RV_LOG_WARNING, "store-saved", RV_LOG_STR("file", rv_str_of(saved.file)));
    if (err != RV_OK)
        return NEVER;
    return saved.file[0] != '\0' ? SAVED : FREE;
}

bool rv_leave_ask(struct rv_leaving *leaving, struct rv_mailbox *mailbox)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    bool again = atomic_exchange(&leaving->state, ASKED) == NEVER;
    alarm(RV_STOP_SECONDS_MAX); /* the disk may not answer the store's thread */
    rv_mailbox_wake(mailbox);
    while (atomic_load(&leaving->state) == ASKED)
        nanosleep(&pause, NULL);
    if (again || atomic_load(&leaving->state) != NEVER)
        return true;
    rv_log(RV_LOG_ERROR, "not-stopping",
           RV_LOG_STR("reason",
                      RV_STR("stopping the server now would lose data: correct the cause given in "
                             "the event \"store-not-saved\", then stop the server again. The next "
                             "signal stops the server even if data would be lost")));
    return false;
}

void rv_leave_answer(struct rv_leaving *leaving, struct rv_store *store)
{
    bool displaced;
    if (atomic_load(&leaving->state) != ASKED)
        return;
    int state = store_save(store, &displaced);
    alarm(0);
    atomic_store(&leaving->state, state);
}

int rv_leave(struct rv_leaving *leaving, struct rv_store *store, const char *path, int result)
{
    bool displaced = true;
    rv_assert(atomic_load(&leaving->state) != ASKED);
    if (atomic_load(&leaving->state) != SAVED)
        (void)store_save(store, &displaced);
    if (displaced)
        return EXIT_DISPLACED;
    enum rv_err err = rv_store_sqlite_log_check(store);
    if (err == RV_OK)
        return result;
    rv_log(RV_LOG_ERROR, "store-damaged", RV_LOG_STR("path", rv_str_of(path)),
           RV_LOG_STR("reason", RV_STR("the log of the store was overwritten by another program")),
           RV_LOG_STR("cure", RV_STR("keep the intact part with `reeve check --keep-intact`, or "
                                     "restore a backup")));
    return rv_err_exit(err);
}

enum rv_err rv_store_look(struct rv_store *store, atomic_uintptr_t *store_why, const char **ret_why)
{
    enum rv_err err = rv_store_sqlite_look(store, ret_why);
    uintptr_t why = (uintptr_t)*ret_why;
    if (err == RV_ERR_DISPLACED && atomic_exchange(store_why, why) != why)
        rv_log(RV_LOG_ERROR, "store-displaced", RV_LOG_STR("reason", rv_str_of(*ret_why)));
    return err;
}
