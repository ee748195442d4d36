/* There is one user of the files, so there are no locks; and no shared memory, which the store does
 * not need, since its connection is exclusive. */
#include "sim/store/vfs.h"

#include "base/assert.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECTOR_BYTES = 4096, /* what SQLite's VFS for Unix says, whatever the disk has */
    UNIX_EPOCH_DAYS = 2440587
};

struct vfs {
    sqlite3_vfs base;
};

struct vfs_file {
    sqlite3_file base;
    struct disk_handle handle;
};

static struct disk_handle *handle_of(sqlite3_file *file)
{
    return &((struct vfs_file *)file)->handle;
}

static int file_close(sqlite3_file *file)
{
    disk_close(handle_of(file));
    return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *at, int bytes, sqlite3_int64 offset)
{
    size_t there = 0;
    if (disk_read(handle_of(file), at, (size_t)bytes, (uint64_t)offset, &there) != 0)
        return SQLITE_IOERR_READ;
    if (there == (size_t)bytes)
        return SQLITE_OK;
    memset((char *)at + there, 0, (size_t)bytes - there);
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *at, int bytes, sqlite3_int64 offset)
{
    int error = disk_write(handle_of(file), at, (size_t)bytes, (uint64_t)offset);
    if (error == 0)
        return SQLITE_OK;
    return error == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
    int error = disk_truncate(handle_of(file), (uint64_t)bytes);
    return error == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int file_sync(sqlite3_file *file, int flags)
{
    (void)flags;
    return disk_sync(handle_of(file)) == 0 ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_bytes)
{
    uint64_t bytes = 0;
    if (disk_size(handle_of(file), &bytes) != 0)
        return SQLITE_IOERR_FSTAT;
    *ret_bytes = (sqlite3_int64)bytes;
    return SQLITE_OK;
}

static int file_lock(sqlite3_file *file, int lock)
{
    (void)file;
    (void)lock;
    return SQLITE_OK;
}

static int file_reserved(sqlite3_file *file, int *ret_reserved)
{
    (void)file;
    *ret_reserved = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int operation, void *argument)
{
    if (operation != SQLITE_FCNTL_LAST_ERRNO)
        return SQLITE_NOTFOUND;
    *(int *)argument = handle_of(file)->error;
    return SQLITE_OK;
}

static int file_sector(sqlite3_file *file)
{
    (void)file;
    return SECTOR_BYTES;
}

static int file_traits(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_lock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
};

static struct disk *disk_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

/* As on Unix, a log syncs the folder with its first sync; nobody does so for the database. */
static int vfs_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                    int *ret_flags)
{
    struct vfs_file *mine = (struct vfs_file *)file;
    mine->base.pMethods = NULL;
    if (disk_open(disk_of(vfs), name, (flags & SQLITE_OPEN_CREATE) != 0, &mine->handle) != 0)
        return SQLITE_CANTOPEN;
    mine->handle.sync_names = (flags & SQLITE_OPEN_CREATE) != 0 &&
                              (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
    mine->base.pMethods = &file_methods;
    if (ret_flags != NULL)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    int error = disk_remove(disk_of(vfs), name, sync != 0);
    if (error == ENOENT)
        return SQLITE_IOERR_DELETE_NOENT;
    return error == 0 ? SQLITE_OK : SQLITE_IOERR_DELETE;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_there)
{
    (void)flags;
    if (disk_dead(disk_of(vfs)))
        return SQLITE_IOERR_ACCESS;
    *ret_there = disk_bytes_of(disk_of(vfs), name) > 0;
    return SQLITE_OK;
}

static int vfs_path(sqlite3_vfs *vfs, const char *name, int bytes, char *ret_path)
{
    (void)vfs;
    size_t len = strlen(name);
    if (len >= (size_t)bytes)
        return SQLITE_CANTOPEN;
    memcpy(ret_path, name, len + 1);
    return SQLITE_OK;
}

static int vfs_randomness(sqlite3_vfs *vfs, int bytes, char *ret_bytes)
{
    (void)vfs;
    memset(ret_bytes, 7, (size_t)bytes);
    return bytes;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

/* Nothing of the store's depends on SQLite's clock. */
static int vfs_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ret_ms)
{
    (void)vfs;
    *ret_ms = (sqlite3_int64)UNIX_EPOCH_DAYS * 86400000;
    return SQLITE_OK;
}

static int vfs_time(sqlite3_vfs *vfs, double *ret_days)
{
    (void)vfs;
    *ret_days = UNIX_EPOCH_DAYS;
    return SQLITE_OK;
}

static int vfs_error(sqlite3_vfs *vfs, int bytes, char *text)
{
    (void)vfs;
    (void)bytes;
    (void)text;
    return 0;
}

struct vfs *vfs_new(struct disk *disk, const char *name, int seed)
{
    struct vfs *vfs = calloc(1, sizeof *vfs);
    rv_assert(vfs != NULL);
    vfs->base = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = (int)sizeof(struct vfs_file),
        .mxPathname = DISK_NAME_BYTES,
        .zName = name,
        .pAppData = disk,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time,
        .xGetLastError = vfs_error,
        .xCurrentTimeInt64 = vfs_time_ms,
    };
    int code = sqlite3_vfs_register(&vfs->base, 0);
    rv_assert(code == SQLITE_OK);
    if (seed != 0)
        code = sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, seed, NULL);
    rv_assert(code == SQLITE_OK);
    return vfs;
}

void vfs_free(struct vfs *vfs)
{
    if (vfs == NULL)
        return;
    int code = sqlite3_vfs_unregister(&vfs->base);
    rv_assert(code == SQLITE_OK);
    free(vfs);
}
