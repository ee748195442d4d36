/* The store as this process still has it, written to a file beside its place. SQLite takes each
 * page from its memory, the log or the file, whichever has it: so neither a file that has no name
 * nor one that somebody has cut stands in the way, as long as no page is missing in all three. The
 * result is a copy (copy.c): marked as one, and its pages are sealed once they are written. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGES_AT_ONCE = 64, NAMES_MAX = 100 };

struct rescue {
    struct rv_sqlite *store;
    const struct rv_store_sqlite_progress *progress;
    struct rv_store_sqlite_saved *saved; /* the caller's */
    int folder;                          /* -1: none */
    int fd;
    char name[NAME_MAX + 1]; /* in the folder */
};

static enum rv_err fail(struct rescue *rescue, enum rv_err err, const char *why)
{
    snprintf(rescue->saved->why, sizeof rescue->saved->why, "%s", why);
    return err;
}

/* ---- the file ---- */

/* An older file is somebody's rescue too: the second is called FILE.saved.2. */
static void name_make(const char *saved, int number, char *ret_name, size_t bytes)
{
    if (number == 1)
        snprintf(ret_name, bytes, "%s", saved);
    else
        snprintf(ret_name, bytes, "%s.%d", saved, number);
}

bool rv_rescue_newest(const char *path, char ret_file[static PATH_MAX])
{
    char file[PATH_MAX], saved[PATH_MAX + sizeof ".saved"], name[sizeof saved + 16];
    struct stat newest = {.st_mtim = {.tv_sec = 0}};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    bool found = false;
    /* As SQLite names the file of the store, which may be the end of a link. */
    if (vfs == NULL || (vfs->xFullPathname(vfs, path, sizeof file, file) & 0xff) != SQLITE_OK)
        return false;
    snprintf(saved, sizeof saved, "%s.saved", file);
    for (int i = 1; i <= NAMES_MAX; i++) {
        struct stat of;
        name_make(saved, i, name, sizeof name);
        if (stat(name, &of) != 0 || strlen(name) >= PATH_MAX)
            continue;
        bool later = of.st_mtim.tv_sec != newest.st_mtim.tv_sec
                         ? of.st_mtim.tv_sec > newest.st_mtim.tv_sec
                         : of.st_mtim.tv_nsec >= newest.st_mtim.tv_nsec;
        if (found && !later)
            continue;
        found = true;
        newest = of;
        memcpy(ret_file, name, strlen(name) + 1);
    }
    return found;
}

static int file_make(struct rescue *rescue)
{
    int number = EEXIST;
    rv_assert(rescue->folder >= 0);
    rv_assert(rescue->fd < 0);
    for (int i = 1; i <= NAMES_MAX && number == EEXIST; i++) {
        name_make(rescue->store->place.saved, i, rescue->name, sizeof rescue->name);
        rescue->fd = openat(rescue->folder, rescue->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                            0600);
        number = rescue->fd >= 0 ? 0 : errno;
    }
    return number;
}

/* The folder that is open may have been deleted, and another made in its place. */
static int folder_find(struct rescue *rescue)
{
    const struct rv_place *place = &rescue->store->place;
    char name[PATH_MAX];
    const char *slash = strrchr(place->log, '/');
    snprintf(name, sizeof name, "%.*s/", (int)(slash - place->log), place->log);
    rescue->folder = fcntl(place->folder_fd, F_DUPFD_CLOEXEC, 0);
    int number = rescue->folder < 0 ? errno : file_make(rescue);
    if (number != ENOENT)
        return number;
    close(rescue->folder);
    rescue->folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return rescue->folder < 0 ? errno : file_make(rescue);
}

static enum rv_err file_open(struct rescue *rescue)
{
    char why[sizeof rescue->saved->why];
    int number = folder_find(rescue);
    if (number == 0)
        return RV_OK;
    const char *full = rv_place_full_text(number);
    if (full != NULL)
        return fail(rescue, RV_ERR_FULL, full);
    if (number == ENOENT)
        return fail(rescue, RV_ERR_IO,
                    "the store's folder was deleted: create it again with the same name");
    if (number == EEXIST)
        return fail(rescue, RV_ERR_IO, "too many saved files already exist: move them away");
    snprintf(why, sizeof why, "the file cannot be created beside the store: %s", strerror(number));
    return fail(rescue, RV_ERR_IO, why);
}

/* ---- its pages ---- */

static enum rv_err pages_copy(struct rescue *rescue, sqlite3 *to, sqlite3_backup **ret_backup)
{
    int code = sqlite3_exec(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL,
                            NULL);
    *ret_backup = NULL;
    if (code == SQLITE_OK)
        *ret_backup = sqlite3_backup_init(to, "main", rescue->store->db, "main");
    if (*ret_backup == NULL)
        return fail(rescue, RV_ERR_IO, sqlite3_errmsg(to));
    while (code == SQLITE_OK) {
        code = sqlite3_backup_step(*ret_backup, PAGES_AT_ONCE);
        rescue->progress->told(rescue->progress->self);
    }
    if (code == SQLITE_DONE)
        return RV_OK;
    if ((code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE)
        return fail(rescue, RV_ERR_FULL, "the disk is full");
    if ((code & 0xff) == SQLITE_NOMEM)
        return fail(rescue, RV_ERR_MEMORY, "out of memory");
    return fail(
        rescue, RV_ERR_CORRUPT,
        "a part of the store is neither in its files nor in the server's memory: restore a backup");
}

static enum rv_err pages_take(struct rescue *rescue)
{
    char path[sizeof "/proc/self/fd/2147483647/" + NAME_MAX];
    sqlite3_backup *backup = NULL;
    sqlite3 *to = NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", rescue->folder, rescue->name);
    int code = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    enum rv_err err = code == SQLITE_OK ? pages_copy(rescue, to, &backup)
                                        : fail(rescue, RV_ERR_IO, sqlite3_errstr(code));
    code = sqlite3_backup_finish(backup);
    if (err == RV_OK && code != SQLITE_OK)
        err = fail(rescue, RV_ERR_IO, sqlite3_errstr(code));
    code = sqlite3_close(to);
    if (err == RV_OK && code != SQLITE_OK)
        err = fail(rescue, RV_ERR_FULL, "the disk is full");
    return err;
}

static enum rv_err pages_seal(struct rescue *rescue)
{
    unsigned char page[RV_SQLITE_PAGE_BYTES];
    ssize_t n;
    for (int64_t i = 0; (n = pread(rescue->fd, page, sizeof page, i * (off_t)sizeof page)) != 0;
         i++) {
        if (i == 0 && n == (ssize_t)sizeof page)
            rv_copy_mark(page);
        if (n == (ssize_t)sizeof page && !rv_seal_whole(page, i))
            rv_seal_set(page, i);
        if (n != (ssize_t)sizeof page ||
            pwrite(rescue->fd, page, sizeof page, i * (off_t)sizeof page) != n)
            return fail(rescue, RV_ERR_IO, "the saved file cannot be written");
        if (i % PAGES_AT_ONCE == 0)
            rescue->progress->told(rescue->progress->self);
    }
    if (fsync(rescue->fd) != 0 || fsync(rescue->folder) != 0)
        return fail(rescue, RV_ERR_IO, "the saved file cannot be written");
    return RV_OK;
}

static enum rv_err rescue_run(struct rescue *rescue)
{
    RV_TRY(file_open(rescue));
    rv_assert(rescue->fd >= 0);
    RV_TRY(pages_take(rescue));
    return pages_seal(rescue);
}

enum rv_err rv_rescue(struct rv_sqlite *store, const struct rv_store_sqlite_progress *progress,
                      struct rv_store_sqlite_saved *saved)
{
    struct rescue rescue = {
        .store = store, .progress = progress, .saved = saved, .folder = -1, .fd = -1};
    const char *log = store->place.log;
    rv_assert(store->place.given != NULL);
    enum rv_err err = rescue_run(&rescue);
    if (err == RV_OK)
        snprintf(saved->file, sizeof saved->file, "%.*s%s", (int)(strrchr(log, '/') + 1 - log), log,
                 rescue.name);
    else if (rescue.fd >= 0)
        unlinkat(rescue.folder, rescue.name, 0);
    if (rescue.fd >= 0)
        close(rescue.fd);
    if (rescue.folder >= 0)
        close(rescue.folder);
    return err;
}
