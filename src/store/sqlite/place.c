/* Whether the files that are open are those that the next start will find. Somebody may delete,
 * move or replace the store's file, its log, its lock file or their folder under the server: the
 * kernel keeps what is open, SQLite goes on with it, and all that is acknowledged from then on ends
 * with the process. Nobody can prevent that, but it can be seen from the names, and what is open
 * can be saved.
 *
 * Or somebody truncates a file or writes to it. Then nothing more is written, neither to the log
 * nor from the log into the file, so that what is whole is not built over, and the stop saves what
 * the memory and the files together still have. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOM_BYTES = 1 << 20 /* that a disk has which is not full */ };

/* Around the path. */
static const struct {
    const char *before, *after;
} texts[] = {
    [RV_PLACE_DELETED -
     1] = {"the store's file ",
           " was deleted, and only this server still has it open: save it with `reeve backup "
           "FILE`, stop the server, move the log (the same name with -wal) away if it exists, put "
           "FILE in the store's place, and start the server again"},
    [RV_PLACE_MOVED -
        1] = {"the store's file is no longer at ",
              ": the file or its folder was moved or replaced. Put the file back; if this is not "
              "possible, save the store with `reeve backup FILE` before you stop the server"},
    [RV_PLACE_LOG - 1] =
        {"the log of the store ",
         " (the same name with -wal) was deleted, moved or replaced: save the store with `reeve "
         "backup FILE`, then stop the server, which merges the log into the store's file, and "
         "start it again"},
    [RV_PLACE_LOCK - 1] = {"the lock file of the store ",
                           " (the same name with .lock) was deleted, moved or replaced: without "
                           "it, a missing or truncated log would not be detected after a crash. "
                           "Put the lock file back, or stop the server and start it again"},
    [RV_PLACE_FILE_CHANGED - 1] =
        {"the store's file ",
         " was truncated or overwritten by another program. The server no longer writes to the "
         "store. Stop the server: if it still has all data of the store, it saves the store under "
         "the same name with .saved. Then move the store and its log (the same name with -wal) "
         "away, put the saved file, or a backup, in the store's place, and start the server again"},
    [RV_PLACE_LOG_CHANGED - 1] =
        {"the log of the store ",
         " (the same name with -wal) was truncated or overwritten by another program. The server "
         "no longer writes to the store. Stop the server: if it still has all data of the store, "
         "it saves the store under the same name with .saved. Then move the store and its log "
         "away, put the saved file, or a backup, in the store's place, and start the server again"},
};

static char *text_of(const char *before, const char *path, const char *after)
{
    size_t bytes = strlen(before) + strlen(path) + strlen(after) + 1;
    char *text = malloc(bytes);
    if (text != NULL)
        snprintf(text, bytes, "%s%s%s", before, path, after);
    return text;
}

enum rv_err rv_place_begin(struct rv_place *place, const char *given, const char *name)
{
    struct stat log;
    char folder[PATH_MAX];
    rv_assert(place->given == NULL);
    rv_assert(place->folder_fd < 0);
    const char *base = strrchr(name, '/');
    if (base == NULL || (size_t)(base - name) >= sizeof folder - 1)
        return RV_ERR_IO;
    snprintf(folder, sizeof folder, "%.*s/", (int)(base - name), name);
    place->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place->given = strdup(given);
    place->log = text_of("", name, "-wal");
    place->lock = text_of("", given, ".lock");
    place->scratch = text_of("", base + 1, ".kept");
    place->saved = text_of("", base + 1, ".saved");
    bool whole = place->given && place->log && place->lock && place->scratch && place->saved;
    for (size_t i = 0; i < RV_PLACE_WRONGS; i++) {
        place->why[i] = text_of(texts[i].before, given, texts[i].after);
        whole = whole && place->why[i] != NULL;
    }
    if (!whole)
        return RV_ERR_MEMORY;
    if (place->folder_fd < 0 || stat(place->log, &log) != 0)
        return RV_ERR_IO;
    place->log_dev = log.st_dev;
    place->log_ino = log.st_ino;
    return RV_OK;
}

void rv_place_done(struct rv_place *place)
{
    if (place->folder_fd >= 0)
        close(place->folder_fd);
    free(place->given);
    free(place->log);
    free(place->lock);
    free(place->scratch);
    free(place->saved);
    for (size_t i = 0; i < sizeof place->why / sizeof place->why[0]; i++)
        free(place->why[i]);
}

/* The numbers of files that are open are given to no others. */
static bool is_at(const char *name, dev_t dev, ino_t ino)
{
    struct stat there;
    return stat(name, &there) == 0 && there.st_dev == dev && there.st_ino == ino;
}

bool rv_place_changed(struct rv_sqlite *store)
{
    static const enum rv_place_wrong wrongs[] = {
        [RV_SEAL_UNCHANGED] = RV_PLACE_RIGHT,
        [RV_SEAL_FILE_CHANGED] = RV_PLACE_FILE_CHANGED,
        [RV_SEAL_LOG_CHANGED] = RV_PLACE_LOG_CHANGED,
    };
    struct rv_place *place = &store->place;
    if (place->given != NULL && place->changed == RV_PLACE_RIGHT)
        place->changed = wrongs[rv_seal_look(store->seal)];
    return place->changed != RV_PLACE_RIGHT;
}

/* What cannot be looked at is taken for unchanged. */
static enum rv_place_wrong place_find(struct rv_sqlite *store)
{
    const struct rv_place *place = &store->place;
    struct stat file, lock;
    if (place->given == NULL || fstat(store->copier.fd, &file) != 0 ||
        fstat(store->lock_fd, &lock) != 0)
        return RV_PLACE_RIGHT;
    if (rv_place_changed(store))
        return place->changed;
    if (file.st_nlink == 0)
        return RV_PLACE_DELETED;
    if (!is_at(place->given, file.st_dev, file.st_ino))
        return RV_PLACE_MOVED;
    if (!is_at(place->log, place->log_dev, place->log_ino))
        return RV_PLACE_LOG;
    return is_at(place->lock, lock.st_dev, lock.st_ino) ? RV_PLACE_RIGHT : RV_PLACE_LOCK;
}

int rv_place_elsewhere(void)
{
    FILE *file = tmpfile();
    if (file == NULL)
        return -1;
    int fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
    fclose(file);
    return fd;
}

int rv_place_scratch(const struct rv_place *place)
{
    unlinkat(place->folder_fd, place->scratch, 0);
    int fd = openat(place->folder_fd, place->scratch, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != ENOENT) {
        unlinkat(place->folder_fd, place->scratch, 0);
        return fd;
    }
    return rv_place_elsewhere(); /* the folder was deleted */
}

const char *rv_place_full_text(int number)
{
    if (number == ENOSPC)
        return "the disk is full";
    if (number == EDQUOT)
        return "the disk quota is used up";
    return number == EFBIG ? "the maximum file size is reached" : NULL;
}

/* What a start writes may have found room in a log that was there. */
static bool has_room(struct rv_place *place)
{
    if (place->roomy || place->given == NULL)
        return true;
    int fd = rv_place_scratch(place);
    int number = fd >= 0 ? posix_fallocate(fd, 0, ROOM_BYTES) : errno;
    if (fd >= 0)
        close(fd);
    place->roomy = rv_place_full_text(number) == NULL;
    return place->roomy;
}

enum rv_err rv_store_sqlite_look(struct rv_store *base, const char **ret_why)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    enum rv_place_wrong wrong = place_find(store);
    enum rv_err err = RV_OK;
    *ret_why = NULL;
    if (store->broken || (wrong == RV_PLACE_RIGHT && has_room(&store->place)))
        return RV_OK;
    if (wrong == RV_PLACE_RIGHT)
        return RV_ERR_FULL;
    /* What a kill would lose with a log that has no name is no more than came since. */
    if (wrong == RV_PLACE_LOG && store->frames != 0)
        err = rv_sqlite_checkpoint(store);
    rv_assert(wrong >= RV_PLACE_DELETED);
    rv_assert(wrong <= RV_PLACE_WRONGS);
    *ret_why = store->place.why[wrong - 1];
    return err == RV_OK ? RV_ERR_DISPLACED : err;
}

bool rv_place_has_lock(struct rv_sqlite *store)
{
    return place_find(store) != RV_PLACE_LOCK;
}

bool rv_place_is_right(struct rv_sqlite *store)
{
    return place_find(store) == RV_PLACE_RIGHT;
}

/* ---- what is open becomes a file again ---- */

/* What a file with a name needs is that it has all that the log has. */
static enum rv_err log_move(struct rv_sqlite *store, struct rv_store_sqlite_saved *saved)
{
    enum rv_err err = rv_sqlite_checkpoint(store);
    if (err == RV_OK && store->frames != 0)
        err = RV_ERR_FULL;
    if (err != RV_OK)
        snprintf(saved->why, sizeof saved->why,
                 "the log cannot be merged into the store's file: %s", rv_err_text(err));
    return err;
}

enum rv_err rv_store_sqlite_save(struct rv_store *base,
                                 const struct rv_store_sqlite_progress *progress,
                                 struct rv_store_sqlite_saved *ret_saved)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    *ret_saved = (struct rv_store_sqlite_saved){.file = ""};
    if (store->broken) {
        snprintf(ret_saved->why, sizeof ret_saved->why, "a write to the store has failed");
        return RV_ERR_IO;
    }
    enum rv_place_wrong wrong = place_find(store);
    switch (wrong) {
    case RV_PLACE_RIGHT:
    case RV_PLACE_LOCK:
        return RV_OK;
    case RV_PLACE_MOVED:
    case RV_PLACE_LOG:
        return log_move(store, ret_saved);
    case RV_PLACE_DELETED:
    case RV_PLACE_FILE_CHANGED:
    case RV_PLACE_LOG_CHANGED:
        break;
    }
    enum rv_err err = rv_rescue(store, progress, ret_saved);
    if (err == RV_OK)
        store->place.changed = wrong; /* what came later would not be saved */
    return err;
}
