/* lock.h - the file beside a store that names the process of its server (store/sqlite/sqlite.h). */
#ifndef RV_SERVER_LOCK_H
#define RV_SERVER_LOCK_H

#include "store/store.h"

/* Before the address is taken, which a server on the same store has too: what is to be changed is
 * the store. 0, or the exit code after it was told that another process holds the one at `path`. */
int rv_lock_check(const char *path);

/* Closes the store that this process has open at `path`. Its lock file stays, and no longer names
 * the process: a script that kills by it must not hit the next one of that number. */
void rv_lock_close(struct rv_store *store, const char *path);

#endif
