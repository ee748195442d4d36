/* lock.h - the file beside a store that names the process of its server (store/sqlite/sqlite.h). */
#ifndef RV_SERVER_LOCK_H
#define RV_SERVER_LOCK_H

/* Before the address is taken, which a server on the same store has too: what is to be changed is
 * the store. 0, or the exit code after it was told that another process holds the one at `path`. */
int rv_lock_check(const char *path);

#endif
