/* sqlite.h - the embedded state store: one file, one process, one connection. */
#ifndef RV_STORE_SQLITE_SQLITE_H
#define RV_STORE_SQLITE_SQLITE_H

#include "base/err.h"
#include "store/copy.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a store could not be opened, for the operator: names the file and the cure. */
struct rv_store_sqlite_fault {
    int64_t pid;  /* IN_USE: the server that holds the file; 0: not known */
    bool foreign; /* CORRUPT: it never was a store */
    char message[2048];
};

struct rv_store_sqlite_options {
    const char *path;
    struct rv_wall_clock clock;
    /* NULL: files of the system. Else a VFS that SQLite knows by this name: its files are seen by
     * this process alone, so there is no lock file, and its name stands for the host's. */
    const char *vfs;
    int checkpoint_pages; /* the log is copied into the file when it has so many; 0: 2,000 */
    /* Payloads and errors of tasks and steps from this length on stand apart from their rows; 0:
     * 2,000. A store that was used with one is used with none that is higher. */
    size_t apart_bytes;
    bool there; /* it must be there (NOT_FOUND) with the newest schema (VERSION): none is made */
    /* With `there`: a log that is missing, damaged or lacks something is taken as far as it is
     * whole. If that is not all, *ret_fault says so though there is no error, and the store counts
     * as a copy, since what it has forgotten may have had effects. */
    bool keep_intact;
};

/* Opens the store at `path`, or creates it (mode 0600) with the newest schema; brings an older
 * schema up to date. `path`.lock beside it holds the pid of the server that uses it and the id of
 * the store, and stays behind. Errors: IN_USE (another server has it, or the log beside it is
 * another store's), REFUSED (its log is missing or of another time, or the store of this log is
 * missing), VERSION (written by a newer program), CORRUPT (no database, another program's, or
 * damaged), FULL, IO, MEMORY; each with a message in *ret_fault.
 *
 * When the process must exit: enlist, commit and claim_role answer COMMIT_UNKNOWN when SQLite
 * failed to write or to sync. What is in the file is then unknown and cannot be asked (a second
 * fsync would lie), so nobody may be answered; `committed` and every later call answer IO, and
 * close leaves the file as it is. The next start decides from it. CORRUPT from any call: exit too.
 * All others can be lived with: FULL leaves nothing written, and the same store works again as soon
 * as there is space; IO from a read says that this read failed. */
RV_CHECK enum rv_err rv_store_sqlite_open(const struct rv_store_sqlite_options *options,
                                          struct rv_store **ret_store,
                                          struct rv_store_sqlite_fault *ret_fault);

/* The file as it is now, to be read by another thread while the store goes on; it is made of its
 * pages, each held against its checksum, and can be opened as a store (rv_enlistment.copied). First
 * moves the log into the file. By the store's thread, enlisted, in no transaction. REFUSED: another
 * copy is being read. UNSUPPORTED: the store is on a VFS. FULL, IO, MEMORY; COMMIT_UNKNOWN and
 * CORRUPT: as from a commit. */
RV_CHECK enum rv_err rv_store_sqlite_copy(struct rv_store *store, struct rv_copy **ret_copy);

/* Whether the store's files are where a start would find them, from their names and links, and have
 * at their ends what was written; a few system calls. DISPLACED: somebody has deleted, moved,
 * replaced, truncated or overwritten one; *ret_why, which lives as long as the store, says which
 * and what to do. From then on close leaves the log. The contents are looked at before each commit
 * too: a commit, or a read of what is not there any more, gives DISPLACED, and nothing is written
 * until the process ends. FULL: since the start the disk had no room for more than the log had
 * already. By the store's thread, enlisted, in no transaction. COMMIT_UNKNOWN and CORRUPT: as from
 * a commit. */
RV_CHECK enum rv_err rv_store_sqlite_look(struct rv_store *store, const char **ret_why);

/* Whether the log is as it was written; CORRUPT: it was overwritten, and close leaves the file and
 * the log as they are. A log that cannot be read gives OK: close reports nothing of it either, and
 * the next start does. By the store's thread, in no transaction. */
RV_CHECK enum rv_err rv_store_sqlite_log_check(struct rv_store *store);

/* Told now and then while something takes long. */
struct rv_store_sqlite_progress {
    void (*told)(void *self);
    void *self;
};

struct rv_store_sqlite_saved {
    char file[4096]; /* the copy's name; "": there is none, and none is needed */
    char why[256];   /* after an error */
};

/* For a store whose files are displaced: moves the log into the file, and if that has no name any
 * more or is not what was written, writes a copy of all that is in the files and in memory beside
 * the place where the file was; then nothing is written any more. Errors: FULL, IO, MEMORY,
 * DISPLACED, COMMIT_UNKNOWN, CORRUPT; what only this process has would be lost with it. */
RV_CHECK enum rv_err rv_store_sqlite_save(struct rv_store *store,
                                          const struct rv_store_sqlite_progress *progress,
                                          struct rv_store_sqlite_saved *ret_saved);

/* Who hears what a check of the file finds: in a task's rows (none: in the file itself), what. */
struct rv_store_sqlite_finder {
    void (*found)(void *self, struct rv_task_id task, const char *what);
    void *self;
};

/* Looks at all of the file that the rows do not show by themselves: each page's checksum, SQLite's
 * own trees and indexes, and rows that belong to a task that is not there. First moves the log into
 * the file, as a clean stop does. For a store that nobody has enlisted in. Errors: IO, MEMORY,
 * COMMIT_UNKNOWN: the look has not come to its end. CORRUPT: the log cannot be read; all other
 * damage is found, and no error. */
RV_CHECK enum rv_err rv_store_sqlite_check(struct rv_store *store,
                                           const struct rv_store_sqlite_finder *finder);

/* Sets the clock of a store back to the wall clock, and with it every instant at which something of
 * an open task is due. *ret_back_ms: by how much; 0: it was not ahead. For a store that nobody has
 * enlisted in, and that is closed then. Errors: as from a commit. */
RV_CHECK enum rv_err rv_store_sqlite_reset_clock(struct rv_store *store, int64_t *ret_back_ms);

#endif
