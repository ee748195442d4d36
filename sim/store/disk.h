/* disk.h - a disk in memory that refuses, loses and tears as disks do; all of it from a seed. */
#ifndef RV_SIM_DISK_H
#define RV_SIM_DISK_H

#include "base/prng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each file has two contents: what programs see (the system's cache) and what is kept when the
 * power fails. A sync makes the first the second. A process that dies takes nothing with it; a loss
 * of power keeps of each sector that was written and not synced all, the first bytes or nothing,
 * whatever the order of the writes was, and likewise of sizes, new names and removed names.
 *
 * After a sync that failed the system takes what it could not write for written, as Linux does:
 * programs go on seeing it (or the old content, once the cache has let it go), and no later sync
 * brings it to the platter. Only writing it again does. */

enum { DISK_SECTOR_BYTES = 512, DISK_NAME_BYTES = 64 };

enum disk_fault {
    DISK_SOUND,
    DISK_FULL,  /* what needs space answers ENOSPC: a new file, a longer one, on some disks
                 * every write; the first sectors may have been written */
    DISK_QUOTA, /* the same, EDQUOT */
    DISK_READ,  /* EIO */
    DISK_WRITE, /* EIO; the first sectors may have been written */
    DISK_SYNC,  /* EIO; some of the sectors are kept */
    DISK_DEATH  /* the process dies in the middle of the operation */
};

struct disk;
struct disk_file;

/* A file as a program has it open. */
struct disk_handle {
    struct disk *disk;
    struct disk_file *file; /* owned in part: see disk_close */
    int error;              /* errno of the newest failure */
    bool sync_names;        /* the next sync keeps all names too */
};

struct disk *disk_new(uint64_t seed);
void disk_free(struct disk *disk);
/* What programs see, on a sound disk of its own, for looking at it: nothing of it is kept yet. */
struct disk *disk_copy(const struct disk *disk);

/* ---- what may befall it ---- */

/* From the operation that comes `after` others (0: the next) on, or only that one, the operations
 * fail that the fault concerns; only those count. DEATH concerns all. Takes the place of what was
 * armed before. */
void disk_arm(struct disk *disk, enum disk_fault fault, uint64_t after, bool sticky);
/* Whether what was armed has struck. */
bool disk_struck(const struct disk *disk);
/* While it is calm nothing strikes and nothing counts, and what is there can be read even of a disk
 * whose process is dead: for those who look on. */
void disk_calm(struct disk *disk, bool calm);
/* Syncs from now on say yes and do nothing: the canary. */
void disk_lie(struct disk *disk);
/* The process that uses it is dead: until disk_restart no operation does anything, all answer EIO.
 * Its handles are still to be closed. */
void disk_die(struct disk *disk);
bool disk_dead(const struct disk *disk);
/* Another process may use it; the handles of the last one are closed. `power`: it had failed, and
 * of what was not synced each piece is kept with the probability `keep`, per mille. */
void disk_restart(struct disk *disk, bool power, uint32_t keep);
/* These bits of one byte of the file change, at rest. False: it has no such byte. */
bool disk_rot(struct disk *disk, const char *name, uint64_t at, uint8_t bits);
/* Operations so far. */
uint64_t disk_operations(const struct disk *disk);

/* ---- operations: 0, or an errno ---- */

/* ENOENT: there is no such file, and it is not to be made. `name` NULL: a file without one. */
int disk_open(struct disk *disk, const char *name, bool create, struct disk_handle *ret_handle);
/* The last handle of a file that has no name any more ends it. */
void disk_close(struct disk_handle *handle);
/* *ret_bytes: as many as there are before the end of the file. */
int disk_read(struct disk_handle *handle, void *at, size_t bytes, uint64_t offset,
              size_t *ret_bytes);
int disk_write(struct disk_handle *handle, const void *at, size_t bytes, uint64_t offset);
int disk_truncate(struct disk_handle *handle, uint64_t bytes);
int disk_sync(struct disk_handle *handle);
int disk_size(struct disk_handle *handle, uint64_t *ret_bytes);
int disk_remove(struct disk *disk, const char *name, bool sync_names);
/* Bytes of the file of this name as programs see it; 0: there is none, or it is empty. */
uint64_t disk_bytes_of(const struct disk *disk, const char *name);

#endif
