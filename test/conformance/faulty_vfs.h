/* faulty_vfs.h - SQLite's files with a disk that fails when the test says so. */
#ifndef RV_TEST_CONFORMANCE_FAULTY_VFS_H
#define RV_TEST_CONFORMANCE_FAULTY_VFS_H

#include <stdbool.h>

enum faulty_kind {
    FAULTY_NONE,
    FAULTY_FULL,  /* writes answer ENOSPC */
    FAULTY_QUOTA, /* writes answer EDQUOT */
    FAULTY_WRITE, /* writes answer EIO */
    FAULTY_SYNC   /* syncs answer EIO */
};

/* From the operation number `after` (0: the next one) on, all of that kind fail. Kinds other than
 * SYNC count writes, SYNC counts syncs. Makes itself SQLite's default at the first call. */
void faulty_vfs_arm(enum faulty_kind kind, int after);
/* Whether an armed fault has struck. */
bool faulty_vfs_struck(void);

#endif
