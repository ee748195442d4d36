/* A VFS over SQLite's own: everything is passed on but what is armed to fail. It has no shared
 * memory, and needs none, since the store's connection is exclusive. */
#include "faulty_vfs.h"

#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real; /* lies behind this struct */
};

static struct {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    enum faulty_kind kind;
    int left;
    bool struck;
    int error; /* what the system said last */
} faulty;

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct faulty_file *)file)->real;
}

static bool strikes(bool sync)
{
    if (faulty.kind == FAULTY_NONE || sync != (faulty.kind == FAULTY_SYNC) || faulty.left-- > 0)
        return false;
    faulty.struck = true;
    faulty.error = faulty.kind == FAULTY_FULL ? ENOSPC : faulty.kind == FAULTY_QUOTA ? EDQUOT : EIO;
    return true;
}

static int faulty_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int faulty_read(sqlite3_file *file, void *at, int bytes, sqlite3_int64 offset)
{
    return real_of(file)->pMethods->xRead(real_of(file), at, bytes, offset);
}

static int faulty_write(sqlite3_file *file, const void *at, int bytes, sqlite3_int64 offset)
{
    if (strikes(false))
        return faulty.kind == FAULTY_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    return real_of(file)->pMethods->xWrite(real_of(file), at, bytes, offset);
}

static int faulty_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), bytes);
}

static int faulty_sync(sqlite3_file *file, int flags)
{
    if (strikes(true))
        return SQLITE_IOERR_FSYNC;
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int faulty_size(sqlite3_file *file, sqlite3_int64 *ret_bytes)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), ret_bytes);
}

static int faulty_lock(sqlite3_file *file, int lock)
{
    return real_of(file)->pMethods->xLock(real_of(file), lock);
}

static int faulty_unlock(sqlite3_file *file, int lock)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), lock);
}

static int faulty_reserved(sqlite3_file *file, int *ret_reserved)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret_reserved);
}

static int faulty_control(sqlite3_file *file, int operation, void *argument)
{
    if (operation == SQLITE_FCNTL_LAST_ERRNO && faulty.struck) {
        *(int *)argument = faulty.error;
        return SQLITE_OK;
    }
    return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static int faulty_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int faulty_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int faulty_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                       int *ret_flags)
{
    (void)vfs;
    static const sqlite3_io_methods methods = {
        .iVersion = 1,
        .xClose = faulty_close,
        .xRead = faulty_read,
        .xWrite = faulty_write,
        .xTruncate = faulty_truncate,
        .xSync = faulty_sync,
        .xFileSize = faulty_size,
        .xLock = faulty_lock,
        .xUnlock = faulty_unlock,
        .xCheckReservedLock = faulty_reserved,
        .xFileControl = faulty_control,
        .xSectorSize = faulty_sector,
        .xDeviceCharacteristics = faulty_traits,
    };
    struct faulty_file *mine = (struct faulty_file *)file;
    mine->real = (sqlite3_file *)(mine + 1);
    int code = faulty.real->xOpen(faulty.real, name, mine->real, flags, ret_flags);
    mine->base.pMethods = mine->real->pMethods != NULL ? &methods : NULL;
    return code;
}

static void faulty_register(void)
{
    faulty.real = sqlite3_vfs_find(NULL);
    faulty.vfs = *faulty.real;
    faulty.vfs.pNext = NULL;
    faulty.vfs.zName = "faulty";
    faulty.vfs.szOsFile = (int)sizeof(struct faulty_file) + faulty.real->szOsFile;
    faulty.vfs.xOpen = faulty_open;
    sqlite3_vfs_register(&faulty.vfs, 1);
}

void faulty_vfs_arm(enum faulty_kind kind, int after)
{
    if (faulty.real == NULL)
        faulty_register();
    faulty.kind = kind;
    faulty.left = after;
    faulty.struck = false;
}

bool faulty_vfs_struck(void)
{
    return faulty.struck;
}
