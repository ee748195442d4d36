/* Opening and closing. Two locks keep a second server out: ours, a file that names the pid of its
 * holder, and SQLite's own, which also holds back a server that came by another name of the file.
 * SQLite's versions to 3.51.2 can damage a write-ahead log when two connections checkpoint at once:
 * there is one connection, and it holds its lock for as long as it lives (decision 008). */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRINGIFY(x) #x
#define TEXT_OF(x) STRINGIFY(x)
#define CACHE_KIB 8192
/* The log is cut back to this after it grew beyond (a batch of large payloads). */
#define LOG_BYTES_MAX 67108864
/* A link that somebody laid where a file of ours is to be would have us write another's. */
#define LINK_FORMAT                                                                                \
    "has a symbolic link in place of its %s, which is not followed: remove the link, or use "      \
    "another --store"
#define FULL_FORMAT "cannot be opened because %s; free up disk space and start again"

struct opening {
    const char *path;
    const char *vfs; /* NULL: the system's files */
    bool there;      /* it must be */
    bool keep_intact;
    struct rv_sqlite *store;
    struct rv_store_sqlite_fault *fault;
};

__attribute__((format(printf, 3, 4))) static enum rv_err
fail(const struct opening *opening, enum rv_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *at = opening->fault->message;
    size_t room = sizeof opening->fault->message;
    int n = snprintf(at, room, "%s ", opening->path);
    if (n > 0 && (size_t)n < room)
        vsnprintf(at + n, room - (size_t)n, format, args);
    va_end(args);
    return err;
}

static enum rv_err fail_errno(const struct opening *opening, const char *what, int number)
{
    const char *full = rv_place_full_text(number);
    if (full != NULL)
        return fail(opening, RV_ERR_FULL, FULL_FORMAT, full);
    return fail(opening, RV_ERR_IO, "%s: %s: correct this or use another --store", what,
                strerror(number));
}

/* What SQLite said about the file, in words of an operator. */
static enum rv_err fail_sqlite(const struct opening *opening, enum rv_err err)
{
    sqlite3 *db = opening->store->db;
    if (err == RV_ERR_BUSY)
        return fail(opening, RV_ERR_IN_USE,
                    "is open in another program: close that program or use another --store");
    opening->fault->foreign = (sqlite3_errcode(db) & 0xff) == SQLITE_NOTADB;
    if (err == RV_ERR_CORRUPT && opening->fault->foreign)
        return fail(opening, err, "is not a database: use another --store, or restore a backup");
    if (err == RV_ERR_CORRUPT) {
        bool changed = sqlite3_extended_errcode(db) == SQLITE_IOERR_DATA;
        return fail(opening, err, "is damaged (%s): restore it from a backup",
                    changed ? "a page has a wrong checksum" : sqlite3_errmsg(db));
    }
    if (err == RV_ERR_FULL)
        return fail(opening, err, FULL_FORMAT, rv_place_full_text(ENOSPC));
    return fail(opening, err, "cannot be opened: %s", sqlite3_errmsg(db));
}

/* ---- the lock file ---- */

static enum rv_err fail_in_use(const struct opening *opening, int fd)
{
    opening->fault->pid = rv_sqlite_lock_pid(fd);
    if (opening->fault->pid == 0)
        return fail(opening, RV_ERR_IN_USE,
                    "is used by a server: stop the server, or use another --store");
    return fail(opening, RV_ERR_IN_USE,
                "is used by a server (pid %lld): stop the server, or use another --store",
                (long long)opening->fault->pid);
}

/* The lock is the process's, not the file's existence: it ends with it, however it ends. */
static enum rv_err lock_try(const struct opening *opening, bool *ret_gone)
{
    int fd = rv_sqlite_lock_open(opening->path, &opening->store->lock_made);
    if (fd < 0 && errno == ELOOP)
        return fail(opening, RV_ERR_REFUSED, LINK_FORMAT, "lock file");
    if (fd < 0 && errno == ENOENT)
        return fail(opening, RV_ERR_IO,
                    "is in a folder that does not exist; create the folder first");
    if (fd < 0)
        return fail_errno(opening, "cannot be opened: its lock file cannot be created beside it",
                          errno);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        opening->store->lock_made = false;
        enum rv_err err = errno == EWOULDBLOCK ? fail_in_use(opening, fd)
                                               : fail_errno(opening, "cannot be locked", errno);
        close(fd);
        return err;
    }
    *ret_gone = rv_sqlite_lock_is_gone(opening->path, fd);
    if (*ret_gone) {
        close(fd);
        return RV_OK;
    }
    rv_assert(opening->store->lock_fd < 0);
    opening->store->lock_fd = fd;
    rv_sqlite_record_read(opening->store);
    if (!rv_sqlite_record_write(opening->store, getpid()))
        return fail_errno(opening, "has a lock file that cannot be written", errno);
    return RV_OK;
}

/* Whoever made it for a store that was refused may have removed it since it was opened. */
static enum rv_err lock_take(const struct opening *opening)
{
    enum { TRIES = 10 };
    bool gone = true;
    for (int i = 0; i < TRIES && gone; i++)
        RV_TRY(lock_try(opening, &gone));
    return gone ? fail(opening, RV_ERR_IN_USE, "has a lock file that is removed all the time")
                : RV_OK;
}

/* ---- the database ---- */

/* Opening it for a look would drop the locks that another store of this process has on it. */
static enum rv_err file_find(const struct opening *opening)
{
    struct stat stat_of;
    if (stat(opening->path, &stat_of) == 0)
        return RV_OK;
    if (errno != ENOENT)
        return fail_errno(opening, "cannot be opened", errno);
    if (rv_sqlite_log_there(opening->path))
        return fail(opening, RV_ERR_NOT_FOUND,
                    "does not exist, but its log (the same name with -wal) does: the store's file "
                    "was deleted or moved. Put the file back, or restore a backup");
    return fail(opening, RV_ERR_NOT_FOUND,
                "does not exist: give the path of a server's store with --store");
}

/* SQLite would create it by the umask; a store holds payloads and is its owner's alone. */
static enum rv_err file_create(const struct opening *opening)
{
    int fd = open(opening->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    opening->store->file_made = fd >= 0;
    if (fd < 0 && errno == EEXIST) {
        fd = open(opening->path, O_RDWR | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            return fail(opening, RV_ERR_REFUSED,
                        "is a symbolic link to a file that does not exist: remove the link, or "
                        "use another --store");
    }
    if (fd < 0)
        return fail_errno(opening, "cannot be opened", errno);
    rv_assert(opening->store->copier.fd < 0);
    opening->store->copier.fd = fd; /* copies are read from it */
    struct stat stat;
    bool regular = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode);
    if (!regular)
        return fail(opening, RV_ERR_IO, "is not a regular file: use another --store");
    return RV_OK;
}

/* A number of the header as the file has it, without the log; 0: not yet. The application's is the
 * id of the store, or the mark of a copy. */
static uint32_t file_number(const struct opening *opening, off_t at)
{
    unsigned char n[4];
    if (pread(opening->store->copier.fd, n, sizeof n, at) != sizeof n)
        return 0;
    return (uint32_t)n[0] << 24 | (uint32_t)n[1] << 16 | (uint32_t)n[2] << 8 | n[3];
}

static bool is_empty(const struct opening *opening)
{
    struct stat stat;
    return fstat(opening->store->copier.fd, &stat) == 0 && stat.st_size == 0;
}

/* Whether what is not whole may be left out; what that is, is told at the end. */
static bool loss_accepted(const struct opening *opening)
{
    opening->store->lossy = opening->keep_intact;
    return opening->keep_intact;
}

static enum rv_err fail_other(const struct opening *opening)
{
    return fail(opening, RV_ERR_IN_USE,
                "does not match the log beside it (the same name with -wal), which belongs to "
                "another store: put the other store back, or move the log away");
}

static enum rv_err fail_log(const struct opening *opening)
{
    return fail(opening, RV_ERR_REFUSED,
                "does not match the log beside it (the same name with -wal), which is an older "
                "copy or belongs to another store: put the store's own log back. If the store's "
                "server was stopped normally, the store has no log: move this log away");
}

/* `problem`, and the command that starts without what is lost. The shell reads the path as one
 * word. */
static enum rv_err fail_lossy(const struct opening *opening, enum rv_err err, const char *problem)
{
    struct rv_buf word;
    rv_buf_init(&word, 2 * sizeof opening->fault->message);
    rv_buf_add_word(&word, rv_str_of(opening->path));
    struct rv_str path = word.failed == RV_OK ? rv_buf_str(&word) : RV_STR("PATH");
    fail(opening, err,
         "%s; to start without those changes, run `reeve check --keep-intact --store %.*s`",
         problem, RV_STR_FMT(path));
    rv_buf_done(&word);
    return err;
}

static enum rv_err fail_without_log(const struct opening *opening)
{
    if (loss_accepted(opening))
        return RV_OK;
    return fail_lossy(
        opening, RV_ERR_REFUSED,
        "needs its log (the same name with -wal), which is missing: the log holds the last "
        "acknowledged changes if the server was killed, or was running when the file was "
        "copied. Put the log back, or restore a backup");
}

static enum rv_err fail_empty(const struct opening *opening)
{
    return fail(opening, RV_ERR_REFUSED,
                "is empty: restore a backup, or start `reeve serve` to begin with an empty store");
}

/* No part of the log can be kept: its changes were made to another state of the file. */
static enum rv_err fail_older(const struct opening *opening)
{
    return fail_lossy(
        opening, RV_ERR_REFUSED,
        "is older than the log beside it (the same name with -wal), which continues a newer state "
        "of the file: the file was replaced or overwritten by an older copy. Put the newer file "
        "back, or restore a backup without this log. If there is neither, move the log away");
}

/* SQLite believes any log beside a file: with none it loses what was acknowledged, and another
 * store's pages it puts in between those of the file. So a store has an id, and the lock file the
 * id of the store whose log is needed here. */
static enum rv_err log_match(const struct opening *opening)
{
    const struct rv_record_of_log *recorded = &opening->store->recorded;
    bool there = opening->store->log_found;
    struct stat stat;
    if (fstat(opening->store->copier.fd, &stat) == 0 && stat.st_size == 1)
        /* SQLite takes it for an empty file, and its log for one that is left over. */
        return fail(opening, RV_ERR_CORRUPT,
                    "is 1 byte long: the store's file was overwritten. Put the file back, or "
                    "restore a backup");
    uint32_t number = file_number(opening, RV_HEADER_APPLICATION);
    bool empty = is_empty(opening);
    if (there && empty)
        return fail(
            opening, RV_ERR_REFUSED,
            "is empty, but the log beside it (the same name with -wal) is not: the store's file "
            "was deleted or replaced. Put the file back, or restore a backup; to begin with an "
            "empty store, move the log and the lock file (the same name with .lock) away");
    if (empty && recorded->id != 0)
        return fail(opening, RV_ERR_REFUSED,
                    "is empty, but its lock file (the same name with .lock) belongs to a store: "
                    "the store's file was deleted or replaced. Put the file back, or restore a "
                    "backup; to begin with an empty store, remove the lock file");
    if (empty && opening->there)
        return fail_empty(opening);
    if (there && number == RV_COPY_MARK)
        return fail(
            opening, RV_ERR_IN_USE,
            "is a backup, but the log beside it (the same name with -wal) belongs to an earlier "
            "store at this place: move the log to where the file of the earlier store is now");
    if (there && number != 0 && recorded->log && recorded->id != number)
        return fail_other(opening);
    if (!there && number != 0 && recorded->log && recorded->id == number)
        return fail_without_log(opening);
    if (there && recorded->log && recorded->id == number &&
        (opening->store->mark_found & ~(uint32_t)RV_MARK_RUNS) < recorded->marked)
        return fail_older(opening);
    return RV_OK;
}

/* SQLite makes the log beside the file's true name, and would follow a link there. One beside a
 * copy is that of the store which stood here before: SQLite would put its pages in between those of
 * the copy, which has none of its own until it is settled, and needs none for that. */
static enum rv_err log_check(const struct opening *opening)
{
    char name[PATH_MAX + sizeof "-wal"];
    struct stat stat;
    if (realpath(opening->path, name) == NULL)
        return fail_errno(opening, "cannot be opened", errno);
    memcpy(name + strlen(name), "-wal", sizeof "-wal");
    bool there = lstat(name, &stat) == 0;
    if (there && S_ISLNK(stat.st_mode))
        return fail(opening, RV_ERR_REFUSED, LINK_FORMAT, "log");
    opening->store->log_found = there && stat.st_size > 0;
    opening->store->mark_found = file_number(opening, RV_HEADER_USER);
    return log_match(opening);
}

#define ID_SQL "PRAGMA application_id = %d"
enum { SQL_BYTES = 100 };

/* Of what was lost, remote services may know more than the store does: it goes on like a copy. */
static enum rv_err loss_settle(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    struct rv_log_state found;
    char sql[SQL_BYTES];
    if (!store->lossy)
        return RV_OK;
    int code = rv_log_find(store->db, &found);
    sqlite3_snprintf(SQL_BYTES, sql, ID_SQL, RV_COPY_MARK);
    if (code == SQLITE_OK)
        code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return fail_sqlite(opening, rv_sqlite_err(store, code));
    if (!store->log_found)
        return fail(
            opening, RV_OK,
            "had no log, although the store needs its log; the changes in the log are lost");
    return fail(opening, RV_OK,
                "had a damaged log: the first %u of at least %u pages were intact and are now in "
                "the file; the changes in the other pages are lost",
                (unsigned)found.frames, (unsigned)store->recorded.state.frames);
}

static uint32_t id_make(void)
{
    uint32_t id;
    do {
        sqlite3_randomness(sizeof id, &id);
        id &= INT32_MAX;
    } while (id == 0 || id == RV_COPY_MARK);
    return id;
}

/* The id that is read through the log is the file's own, or the log has another store's first
 * page. */
static enum rv_err id_read(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    int number = 0;
    enum rv_err err = rv_sqlite_number(store, "PRAGMA application_id", &number);
    if (err != RV_OK)
        return fail_sqlite(opening, err);
    store->copied = number == RV_COPY_MARK;
    store->id = store->copied || opening->vfs != NULL ? 0 : (uint32_t)number;
    uint32_t in_file = file_number(opening, RV_HEADER_APPLICATION);
    if (store->id != 0 && in_file != 0 && in_file != store->id)
        return fail_other(opening);
    return RV_OK;
}

/* Also where there is no lock file, the mark tells whether the file needs a log. Enlistments only
 * rise: read through the store's own log, the newest is the mark's, or that of an older program,
 * which leaves the mark alone. Where the lock file knows the store, it has said more already. */
static enum rv_err mark_compare(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    uint32_t mark = store->mark_found;
    int enlistment = 0;
    if (mark == 0 || store->copied)
        return RV_OK;
    enum rv_err err = rv_sqlite_number(store, "SELECT max(enlistment) FROM instance", &enlistment);
    if (err != RV_OK)
        return fail_sqlite(opening, err);
    uint32_t newest = rv_mark_of(enlistment), marked = mark & ~(uint32_t)RV_MARK_RUNS;
    if (!store->log_found)
        return rv_mark_runs(mark) && newest == marked ? fail_without_log(opening) : RV_OK;
    bool ended = newest == marked && !rv_mark_runs(mark) && store->recorded.id != store->id;
    return newest < marked || ended ? fail_log(opening) : RV_OK;
}

/* A store that has none yet. The next start reads it from the file itself. */
static enum rv_err id_give(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    char sql[SQL_BYTES];
    if (store->id != 0 || opening->vfs != NULL)
        return RV_OK;
    store->id = id_make();
    sqlite3_snprintf(SQL_BYTES, sql, ID_SQL, (int)store->id);
    int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    enum rv_err err = rv_sqlite_err(store, code);
    if (err != RV_OK)
        return fail_sqlite(opening, err);
    err = rv_sqlite_checkpoint(store);
    return err == RV_OK ? RV_OK : fail_sqlite(opening, err);
}

/* The store that it was made of may have gone on, and handed out attempts with fences that nobody
 * here knows of: remote services would take ours for older writers. Seconds are above all of them,
 * as long as no task has more attempts than its store has lived seconds, and above those that
 * another server has given out on this same copy before now. Nothing of it goes through a log, so
 * that a crash leaves either a copy without one, or a store. */
static enum rv_err copy_settle(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    char name[SQL_BYTES];
    rv_assert(!opening->there);
    if (!store->copied)
        return RV_OK;
    store->id = opening->vfs == NULL ? id_make() : 0;
    sqlite3_snprintf(SQL_BYTES, name, ID_SQL, (int)store->id);
    int64_t seconds = store->clock.now(store->clock.self) / 1000;
    char lift[SQL_BYTES];
    sqlite3_snprintf(SQL_BYTES, lift, "UPDATE task SET fence = max(fence, %lld)",
                     (long long)(seconds < UINT32_MAX ? seconds : UINT32_MAX));
    const char *const steps[] = {
        "PRAGMA journal_mode = DELETE", "BEGIN IMMEDIATE", lift, name, "COMMIT",
        "PRAGMA journal_mode = WAL",
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        int code = sqlite3_exec(store->db, steps[i], NULL, NULL, NULL);
        if (code != SQLITE_OK)
            return fail_sqlite(opening, rv_sqlite_err(store, code));
    }
    return RV_OK;
}

static int frames_note(void *context, sqlite3 *db, const char *name, int frames)
{
    (void)db;
    (void)name;
    struct rv_sqlite *store = context;
    rv_assert(frames >= 0);
    store->frames = frames;
    return SQLITE_OK;
}

/* Closing would copy what SQLite has taken of the log into the database and remove the log. Whoever
 * could not open a store, for whatever reason, leaves both to the next start, which may find out
 * more. */
static int log_leave(struct rv_sqlite *store, bool leave)
{
    return sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leave, NULL);
}

/* Before anything is written: another program's database stays as it is. What is found in the log
 * is judged later. */
static bool is_foreign(const struct opening *opening)
{
    int version;
    return !opening->store->log_found &&
           rv_sqlite_version(opening->store, &version) == RV_ERR_NOT_FOUND;
}

static enum rv_err fail_foreign(const struct opening *opening)
{
    opening->fault->foreign = true;
    return fail(opening, RV_ERR_CORRUPT, "is the database of another program: use another --store");
}

static enum rv_err database_configure(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_wal_hook(store->db, frames_note, store); /* and no checkpoints by SQLite itself */
    static const char *const pragmas[] = {
        "PRAGMA locking_mode = EXCLUSIVE", /* before WAL: so the log's index needs no shared file */
        "PRAGMA page_size = " TEXT_OF(RV_SQLITE_PAGE_BYTES),
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA cache_size = -" TEXT_OF(CACHE_KIB),
        "PRAGMA journal_size_limit = " TEXT_OF(LOG_BYTES_MAX),
        "PRAGMA temp_store = MEMORY",
        "PRAGMA foreign_keys = OFF",
        "PRAGMA trusted_schema = OFF",
    };
    for (size_t i = 0; i < sizeof pragmas / sizeof pragmas[0]; i++) {
        int code = sqlite3_exec(store->db, pragmas[i], NULL, NULL, NULL);
        if (code != SQLITE_OK)
            return fail_sqlite(opening, rv_sqlite_err(store, code));
        if (i == 0 && is_foreign(opening)) {
            (void)log_leave(store, false); /* nothing of it is here */
            return fail_foreign(opening);
        }
    }
    return RV_OK;
}

/* A stop has moved all of its log into the file. A log that is there in spite of it was left when
 * the machine died at that moment, or belongs to another time. */
static bool log_left_is(const struct opening *opening, const struct rv_log_state *found)
{
    const struct rv_sqlite *store = opening->store;
    const struct rv_record_of_log *recorded = &store->recorded;
    return !recorded->stopped || !store->log_found || rv_mark_runs(store->mark_found) ||
           memcmp(found, &recorded->state, sizeof *found) == 0;
}

/* What was noted of the log must be there. With a log of another time the file may look damaged:
 * then it is the log. */
static enum rv_err log_compare(const struct opening *opening, enum rv_err err)
{
    const struct rv_record_of_log *recorded = &opening->store->recorded;
    struct rv_log_state found;
    if (opening->vfs != NULL || recorded->id != file_number(opening, RV_HEADER_APPLICATION))
        return err;
    int code = rv_log_find(opening->store->db, &found);
    if (code != SQLITE_OK)
        return fail_sqlite(opening, rv_sqlite_err(opening->store, code));
    if (!recorded->log)
        return log_left_is(opening, &found) ? err : fail_log(opening);
    if (rv_log_has(&found, &recorded->state) || loss_accepted(opening))
        return err;
    return fail_lossy(
        opening, RV_ERR_REFUSED,
        "has a log (the same name with -wal) without the last acknowledged changes of a killed "
        "server: the log was truncated or overwritten, or is an older copy. Put the log back, or "
        "restore a backup");
}

static enum rv_err log_secure(const struct opening *opening)
{
    int code = rv_log_secure(opening->store->db);
    enum rv_err err = rv_sqlite_err(opening->store, code);
    if (err == RV_OK)
        return RV_OK;
    if (err == RV_ERR_CORRUPT && loss_accepted(opening))
        return RV_OK;
    if (err == RV_ERR_CORRUPT)
        return fail_lossy(opening, err,
                          "has a damaged log, with acknowledged changes after the damage: restore "
                          "the store from a backup");
    return fail(opening, err, "has a log that cannot be rewritten: %s", sqlite3_errstr(code));
}

/* An enum is written as one of its table's texts (columns.c): the CHECKs would find nothing in each
 * row that this connection writes. They hold for all others, and check.c looks at them. */
static enum rv_err checks_leave(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    int code = sqlite3_exec(store->db, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    return code == SQLITE_OK ? RV_OK : fail_sqlite(opening, rv_sqlite_err(store, code));
}

static enum rv_err schema_prepare(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    int version = 0;
    enum rv_err err = rv_sqlite_version(store, &version);
    if (err == RV_OK && opening->there && version == 0) {
        (void)log_leave(store, store->log_found);
        return fail_empty(opening);
    }
    if (err == RV_OK && !rv_seal_there(store->db))
        return fail(opening, RV_ERR_CORRUPT,
                    "has pages without checksums: another program created it, or its first page is "
                    "damaged: restore it from a backup, or use another --store");
    if (err == RV_ERR_NOT_FOUND)
        return fail_foreign(opening);
    if (err != RV_OK)
        return fail_sqlite(opening, err);
    if (version > rv_sqlite_version_newest())
        return fail(opening, RV_ERR_VERSION,
                    "has schema version %d, and this program supports versions up to %d: start the "
                    "newer version of reeve that wrote the store, or use another --store",
                    version, rv_sqlite_version_newest());
    if (opening->there && version < rv_sqlite_version_newest())
        return fail(opening, RV_ERR_VERSION,
                    "has schema version %d, and this program requires version %d: start `reeve "
                    "serve` with this store once to migrate it",
                    version, rv_sqlite_version_newest());
    RV_TRY(id_read(opening));
    RV_TRY(mark_compare(opening));
    if (!rv_sqlite_record_begin(store))
        return fail_errno(opening, "has a lock file that cannot be written", errno);
    if (!opening->there)
        RV_TRY(copy_settle(opening));
    RV_TRY(checks_leave(opening)); /* first: a damaged row is brought up as it is */
    err = version == 0 ? rv_sqlite_create(store) : rv_sqlite_migrate(store, version);
    if (err != RV_OK)
        return fail_sqlite(opening, err);
    return opening->there ? RV_OK : id_give(opening);
}

/* A transaction that was begun must be ended, also without memory: a connection that cannot
 * roll back is of no use any more. */
static enum rv_err ends_prepare(const struct opening *opening)
{
    static const enum rv_sqlite_sql ends[] = {RV_SQL_COMMIT, RV_SQL_ROLLBACK};
    sqlite3_stmt *statement;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        enum rv_err err = rv_sqlite_statement(opening->store, ends[i], &statement);
        if (err != RV_OK)
            return fail_sqlite(opening, err);
    }
    return RV_OK;
}

/* The clock goes on from where the last server's stood. */
static enum rv_err floor_read(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    enum rv_err err = rv_sqlite_alive_read(store);
    if (err != RV_OK)
        return fail_sqlite(opening, err);
    int64_t wall = store->clock.now(store->clock.self);
    int64_t mono = store->clock.mono != NULL ? store->clock.mono(store->clock.self) : 0;
    rv_slew_begin(&store->slew, wall, mono, store->last_alive_at);
    return RV_OK;
}

static enum rv_err place_note(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    enum rv_err err = rv_place_begin(&store->place, opening->path,
                                     sqlite3_db_filename(store->db, "main"));
    if (err == RV_ERR_IO)
        return fail_errno(opening, "cannot be opened: its log", errno);
    return err == RV_OK ? err : fail(opening, err, "cannot be opened: %s", rv_err_text(err));
}

/* The connection, over the VFS that seals pages. */
static enum rv_err connection_open(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (opening->vfs != NULL)
        flags |= SQLITE_OPEN_CREATE;
    store->seal = rv_seal_new(opening->vfs);
    if (store->seal == NULL)
        return fail(opening, RV_ERR_MEMORY, "cannot be opened: out of memory");
    rv_seal_watch(store->seal, rv_copier_overwrites, &store->copier);
    int code = sqlite3_open_v2(opening->path, &store->db, flags, rv_seal_name(store->seal));
    if (code == SQLITE_OK)
        code = log_leave(store, true);
    if (code == SQLITE_OK)
        code = rv_seal_ask_for(store->db);
    enum rv_err err = rv_sqlite_err(store, code);
    return err == RV_OK ? database_configure(opening) : fail_sqlite(opening, err);
}

static enum rv_err database_open(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    enum rv_err err = connection_open(opening);
    if (err == RV_OK || err == RV_ERR_CORRUPT)
        err = log_compare(opening, err);
    RV_TRY(err);
    RV_TRY(log_secure(opening));
    RV_TRY(schema_prepare(opening));
    RV_TRY(loss_settle(opening));
    RV_TRY(floor_read(opening));
    RV_TRY(rv_sqlite_err(store, log_leave(store, false)));
    if (opening->vfs == NULL)
        RV_TRY(place_note(opening));
    return ends_prepare(opening); /* last: what changes the connection has them made anew */
}

/* A healthy store is left as one file, without its log: that nobody needs it is recorded before it
 * goes. After a failed write the log may hold a batch that nobody was told of: only the next start
 * may decide about it. Of files that are displaced the log's name may be another store's. */
static bool log_is_over(struct rv_sqlite *store)
{
    if (store->lock_fd < 0 || store->broken)
        return !store->broken;
    return !rv_place_changed(store) && rv_place_has_lock(store) &&
           rv_sqlite_mark_stop(store) == RV_OK && rv_sqlite_checkpoint(store) == RV_OK &&
           store->log_moved && rv_sqlite_record(store, false) && rv_place_is_right(store);
}

void rv_sqlite_close(struct rv_store *base)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    if (store->in_transaction)
        rv_sqlite_rollback(base);
    rv_sqlite_statements_done(store);
    int code = log_is_over(store) ? SQLITE_OK : log_leave(store, true);
    rv_assert(code == SQLITE_OK);
    code = sqlite3_close(store->db);
    rv_assert(code != SQLITE_BUSY);
    rv_seal_free(store->seal);
    rv_copier_done(&store->copier);
    rv_place_done(&store->place);
    rv_sqlite_lock_release(store);
    free(store);
}

static const struct rv_store_ops operations = {
#define RV_STORE_OPERATION(name) .name = rv_sqlite_##name,
#include "store/tbl/operation.def"
#undef RV_STORE_OPERATION
};

/* What the system's files need beside SQLite's own care; another VFS has neither. */
static enum rv_err system_files_prepare(const struct opening *opening)
{
    if (opening->there)
        RV_TRY(file_find(opening));
    RV_TRY(lock_take(opening));
    RV_TRY(file_create(opening));
    return log_check(opening);
}

/* What an earlier server could save when it stopped may be newer than any backup. */
static void saved_tell(const struct opening *opening, enum rv_err err)
{
    char saved[PATH_MAX];
    char *at = opening->fault->message;
    size_t len = strlen(at), room = sizeof opening->fault->message;
    bool needed = err == RV_ERR_CORRUPT || err == RV_ERR_REFUSED || err == RV_ERR_NOT_FOUND;
    if (needed && opening->vfs == NULL && rv_rescue_newest(opening->path, saved))
        snprintf(at + len, room - len,
                 ". A server that was stopped earlier has saved its whole store as %s", saved);
}

static void host_note(const struct opening *opening)
{
    struct rv_sqlite *store = opening->store;
    if (opening->vfs != NULL)
        snprintf(store->host, sizeof store->host, "%s", opening->vfs);
    else if (gethostname(store->host, sizeof store->host - 1) != 0)
        store->host[0] = '\0';
}

/* SQLite would count its memory for the whole process, under a lock at each malloc and free: nobody
 * asks for the figure. It may be said until SQLite is first used, and is of no account later. */
static void memory_uncounted(void)
{
    int code = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    rv_assert(code == SQLITE_OK || code == SQLITE_MISUSE);
}

enum rv_err rv_store_sqlite_open(const struct rv_store_sqlite_options *options,
                                 struct rv_store **ret_store,
                                 struct rv_store_sqlite_fault *ret_fault)
{
    *ret_fault = (struct rv_store_sqlite_fault){.pid = 0};
    struct opening opening = {.path = options->path,
                              .vfs = options->vfs,
                              .there = options->there,
                              .keep_intact = options->keep_intact,
                              .fault = ret_fault};
    memory_uncounted();
    struct rv_sqlite *store = calloc(1, sizeof *store);
    if (store == NULL)
        return fail(&opening, RV_ERR_MEMORY, "cannot be opened: out of memory");
    store->store.ops = &operations;
    store->clock = options->clock;
    store->checkpoint_pages = options->checkpoint_pages;
    store->apart_bytes = options->apart_bytes ? options->apart_bytes : RV_APART_BYTES;
    store->lock_fd = store->lock_bytes = store->place.folder_fd = -1;
    rv_copier_init(&store->copier);
    opening.store = store;
    host_note(&opening);
    enum rv_err err = options->vfs == NULL ? system_files_prepare(&opening) : RV_OK;
    if (err != RV_OK)
        goto err_after_lock;
    err = database_open(&opening);
    if (err != RV_OK)
        goto err_after_database;
    *ret_store = &store->store;
    return RV_OK;

err_after_database:
    rv_sqlite_statements_done(store);
    sqlite3_close(store->db);
    rv_seal_free(store->seal);
err_after_lock:
    if (store->file_made && is_empty(&opening)) /* nothing is left of what is refused */
        (void)unlink(options->path);
    rv_sqlite_lock_unmake(store, options->path);
    rv_copier_done(&store->copier);
    rv_place_done(&store->place);
    rv_sqlite_lock_release(store);
    free(store);
    saved_tell(&opening, err);
    return err;
}
