/* copy.h - the store's file as it was at one instant, read while the store goes on. */
#ifndef RV_STORE_COPY_H
#define RV_STORE_COPY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* `read` takes at least so many bytes at once. */
enum { RV_COPY_BLOCK_BYTES = 4096 };

/* Made by the store's thread; from then on another thread's. It ends before the store is closed. */
struct rv_copy {
    int64_t bytes; /* all of it */
    /* The next bytes, at most `max` of them; *ret_count 0: that was all. Errors: IO, CORRUPT (a
     * page of the file is not what was written), FULL (no room for a page that the store has
     * overwritten meanwhile). After one, nothing more can be read. */
    enum rv_err (*read)(struct rv_copy *copy, void *at, size_t max, size_t *ret_count);
    void (*close)(struct rv_copy *copy);
};

#endif
