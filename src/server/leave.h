/* leave.h - the last thing that a server does with its store before it closes it. */
#ifndef RV_SERVER_LEAVE_H
#define RV_SERVER_LEAVE_H

#include "base/os/mailbox.h"
#include "store/store.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

/* From a signal on, as long as nothing is saved; then the process ends as it stands. */
enum { RV_STOP_SECONDS_MAX = 6 };

/* Whether the process may end is asked by the thread that hears of signals and answered by the
 * store's. Zeroed before. */
struct rv_leaving {
    atomic_int state;
};

/* Blocks the signals that a person or the service manager sends, in the calling thread and in those
 * that it starts: they wait until sigwait takes them from *ret_set. SIGHUP is one of them also
 * where no file is to be opened again: what sends it to all services must not end this one. */
void rv_leave_signals(sigset_t *ret_set);
/* Whether the process may end, when a signal says that it shall. Of a SQLite store whose files
 * somebody has deleted, moved, replaced or changed, what this process alone has is saved first; if
 * that cannot be, the process goes on, so that the store can still be read, until the next signal.
 * The store's thread must be running. */
bool rv_leave_ask(struct rv_leaving *leaving, struct rv_mailbox *mailbox);
/* Between two batches; what is asked is answered, and logged. */
void rv_leave_answer(struct rv_leaving *leaving, struct rv_store *store);
/* Once all is written, also where nobody asked; `path` is the store's, for the log. The exit code:
 * `result`, or that a person is needed (the files are displaced, or the log is damaged), since a
 * service manager that starts the server again would help nobody. */
int rv_leave(struct rv_leaving *leaving, struct rv_store *store, const char *path, int result);

/* rv_store_sqlite_look, which keeps why the store is displaced (const char *) and logs what is
 * new. */
RV_CHECK enum rv_err rv_store_look(struct rv_store *store, atomic_uintptr_t *store_why,
                                   const char **ret_why);

#endif
