/* vfs.h - SQLite's files on a simulated disk. */
#ifndef RV_SIM_VFS_H
#define RV_SIM_VFS_H

#include "sim/store/disk.h"

struct vfs;

/* SQLite knows the disk by this name (borrowed) from now on, never as its default. It behaves as
 * SQLite's own for Unix does: the same sectors, the same care for names of new logs. With a seed
 * (0: none) SQLite's random numbers begin anew, so that what it writes is the same each time. */
struct vfs *vfs_new(struct disk *disk, const char *name, int seed);
/* No file may be open. */
void vfs_free(struct vfs *vfs);

#endif
