/* A copy of the file as it was at one instant, taken while the store works on it.
 *
 * What is committed goes into the log; the file itself changes only when the log is moved into it.
 * So a copy begins with an empty log, and from then on the file stays as it is until the next time,
 * which does not wait: before a page is overwritten that the copy has not read yet, it is kept
 * aside, in a file without a name. The reader takes from there what is there, and all else from the
 * file. The store's one connection knows nothing of it.
 *
 * On a full disk the log may have no room in the file. Then its pages are kept aside too, before
 * the reader begins, and on another disk, if there is one.
 *
 * The pages go out as they stand, with their seals, but for the first: in the header it gets a mark
 * by which the next server knows that the file is a copy (open.c). */
#include "store/copy.h"
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(RV_COPY_BLOCK_BYTES >= RV_SQLITE_PAGE_BYTES, "a page is read at once");

/* The store's thread makes it, keeps pages for it and frees it; another one reads it. Between the
 * two there is no lock, since the store must never wait for a reader. */
struct reading {
    struct rv_copy copy; /* first: what the reader holds */
    int fd;              /* borrowed: of the database */
    int64_t pages;
    int64_t file_pages; /* so many the file has; the others are kept */
    atomic_uchar *kept; /* owned: a bit for each page that was kept aside */
    int kept_fd;        /* owned: page n at its place, else holes */
    atomic_llong at;    /* the reader's: pages before this one need not be kept any more */
    atomic_int err;     /* the store's: enum rv_err; a page could not be kept */
    atomic_bool closed; /* the reader's last word */
};

/* ---- the mark ---- */

void rv_copy_mark(unsigned char page[static RV_SQLITE_PAGE_BYTES])
{
    const uint32_t mark = htobe32(RV_COPY_MARK);
    memcpy(page + RV_HEADER_APPLICATION, &mark, sizeof mark);
    memset(page + RV_HEADER_USER, 0, sizeof mark);
    rv_seal_set(page, 0);
}

/* ---- pages that are kept ---- */

static void reading_free(struct reading *reading)
{
    if (reading->kept_fd >= 0)
        close(reading->kept_fd);
    free(reading->kept);
    free(reading);
}

void rv_copier_init(struct rv_copier *copier)
{
    *copier = (struct rv_copier){.fd = -1};
}

void rv_copier_done(struct rv_copier *copier)
{
    if (copier->reading != NULL) {
        rv_assert(atomic_load(&copier->reading->closed));
        reading_free(copier->reading);
    }
    if (copier->fd >= 0)
        close(copier->fd);
}

/* The copy that is being read, if there is one. */
static struct reading *reading_now(struct rv_copier *copier)
{
    if (copier->reading != NULL && atomic_load(&copier->reading->closed)) {
        reading_free(copier->reading);
        copier->reading = NULL;
    }
    return copier->reading;
}

static bool pages_get(int fd, void *to, size_t pages, int64_t first)
{
    size_t wanted = pages * RV_SQLITE_PAGE_BYTES, got = 0;
    while (got < wanted) {
        ssize_t n = pread(fd, (char *)to + got, wanted - got,
                          first * RV_SQLITE_PAGE_BYTES + (off_t)got);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        got += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool kept(const struct reading *reading, int64_t page)
{
    rv_assert(page >= 0);
    rv_assert(page < reading->pages);
    return (atomic_load(&reading->kept[page / 8]) >> (page % 8) & 1) != 0;
}

static enum rv_err page_put(struct reading *reading, const unsigned char *bytes, int64_t page)
{
    rv_assert(page >= 0);
    rv_assert(page < reading->pages);
    ssize_t n = pwrite(reading->kept_fd, bytes, RV_SQLITE_PAGE_BYTES, page * RV_SQLITE_PAGE_BYTES);
    if (n != RV_SQLITE_PAGE_BYTES)
        return n >= 0 || rv_place_full_text(errno) != NULL ? RV_ERR_FULL : RV_ERR_IO;
    atomic_uchar *byte = &reading->kept[page / 8];
    atomic_store(byte, (unsigned char)(atomic_load(byte) | 1 << (page % 8)));
    return RV_OK;
}

static enum rv_err page_keep(struct reading *reading, int64_t page)
{
    unsigned char bytes[RV_SQLITE_PAGE_BYTES];
    return pages_get(reading->fd, bytes, 1, page) ? page_put(reading, bytes, page) : RV_ERR_IO;
}

/* That a page was kept, or could not be, is told before it changes: a reader who has read it and
 * hears of neither has read it as it was. */
void rv_copier_overwrites(void *self, int64_t page)
{
    struct reading *reading = reading_now(self);
    if (reading == NULL || atomic_load(&reading->err) != RV_OK ||
        page < atomic_load(&reading->at) || page >= reading->pages || kept(reading, page))
        return;
    enum rv_err err = page_keep(reading, page);
    if (err != RV_OK)
        atomic_store(&reading->err, (int)err);
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- the reader's side ---- */

static enum rv_err page_take(const struct reading *reading, unsigned char *to, int64_t page)
{
    bool aside = kept(reading, page);
    if (aside && !pages_get(reading->kept_fd, to, 1, page))
        return RV_ERR_IO;
    if (!aside && page >= reading->file_pages)
        return RV_ERR_CORRUPT;
    return rv_seal_whole(to, page) ? RV_OK : RV_ERR_CORRUPT;
}

static enum rv_err copy_read(struct rv_copy *copy, void *to, size_t max, size_t *ret_count)
{
    struct reading *reading = (struct reading *)copy;
    unsigned char *bytes = to;
    int64_t first = atomic_load(&reading->at);
    int64_t left = reading->pages - first;
    rv_assert(left >= 0);
    size_t count = max / RV_SQLITE_PAGE_BYTES;
    count = (int64_t)count < left ? count : (size_t)left;
    rv_assert(max >= RV_COPY_BLOCK_BYTES);
    rv_assert(!atomic_load(&reading->closed));
    int64_t in_file = reading->file_pages - first;
    in_file = in_file < 0 ? 0 : in_file > (int64_t)count ? (int64_t)count : in_file;
    if (!pages_get(reading->fd, to, (size_t)in_file, first))
        return RV_ERR_IO;
    atomic_thread_fence(memory_order_seq_cst);
    enum rv_err err = (enum rv_err)atomic_load(&reading->err);
    size_t whole = 0;
    for (; err == RV_OK && whole < count; whole += err == RV_OK)
        err = page_take(reading, bytes + whole * RV_SQLITE_PAGE_BYTES, first + (int64_t)whole);
    if (err != RV_OK && whole == 0)
        return err;
    count = whole; /* the next call begins with the page that cannot be read */
    if (first == 0 && count > 0)
        rv_copy_mark(bytes);
    atomic_store(&reading->at, first + (int64_t)count);
    *ret_count = count * RV_SQLITE_PAGE_BYTES;
    return RV_OK;
}

/* What was kept gives its room back at once; the rest goes when the store next looks. */
static void copy_close(struct rv_copy *copy)
{
    struct reading *reading = (struct reading *)copy;
    rv_assert(!atomic_load(&reading->closed));
    if (ftruncate(reading->kept_fd, 0) != 0)
        atomic_store(&reading->at, reading->pages); /* it goes with the file */
    atomic_store(&reading->closed, true);
}

/* ---- the store's side ---- */

/* Of a page that is in the log more than once, the newest. */
static enum rv_err log_keep(struct rv_sqlite *store, struct reading *reading)
{
    unsigned char bytes[RV_SQLITE_PAGE_BYTES];
    uint32_t number;
    for (int i = 0; i < store->frames; i++) {
        RV_TRY(rv_sqlite_err(store, rv_log_page(store->db, i, &number, NULL, bytes)));
        if (number == 0 || number > reading->pages)
            continue; /* a later batch has made the file shorter */
        rv_seal_set(bytes, (int64_t)number - 1);
        RV_TRY(page_put(reading, bytes, (int64_t)number - 1));
    }
    return RV_OK;
}

/* Where the pages go that are kept, and those of the log. */
static enum rv_err reading_prepare(struct rv_sqlite *store, struct reading *reading, bool log)
{
    reading->kept = calloc((size_t)reading->pages / 8 + 1, sizeof *reading->kept);
    reading->kept_fd = log ? rv_place_elsewhere() : rv_place_scratch(&store->place);
    if (reading->kept == NULL)
        return RV_ERR_MEMORY;
    if (reading->kept_fd < 0)
        return RV_ERR_IO;
    return log ? log_keep(store, reading) : RV_OK;
}

/* Pages are kept beside the store, where there is room for what it grows by; those of a log that
 * has no room in the file, elsewhere. */
static enum rv_err reading_new(struct rv_sqlite *store, struct reading **ret_reading)
{
    bool log = store->frames != 0;
    uint32_t number, pages = 0;
    if (log)
        RV_TRY(
            rv_sqlite_err(store, rv_log_page(store->db, store->frames - 1, &number, &pages, NULL)));
    struct stat about;
    if (fstat(store->copier.fd, &about) != 0)
        return RV_ERR_IO;
    struct reading *reading = calloc(1, sizeof *reading);
    if (reading == NULL)
        return RV_ERR_MEMORY;
    reading->fd = store->copier.fd;
    reading->file_pages = about.st_size / RV_SQLITE_PAGE_BYTES;
    reading->pages = log ? (int64_t)pages : reading->file_pages;
    reading->copy = (struct rv_copy){
        .bytes = reading->pages * RV_SQLITE_PAGE_BYTES, .read = copy_read, .close = copy_close};
    enum rv_err err = reading_prepare(store, reading, log);
    if (err != RV_OK) {
        reading_free(reading);
        return err;
    }
    *ret_reading = reading;
    return RV_OK;
}

enum rv_err rv_store_sqlite_copy(struct rv_store *base, struct rv_copy **ret_copy)
{
    struct rv_sqlite *store = (struct rv_sqlite *)base;
    struct reading *reading = NULL;
    rv_assert(!store->in_transaction);
    rv_assert(store->instance != 0);
    if (store->broken)
        return RV_ERR_IO;
    if (store->copier.fd < 0)
        return RV_ERR_UNSUPPORTED;
    if (reading_now(&store->copier) != NULL)
        return RV_ERR_REFUSED;
    RV_TRY(rv_sqlite_checkpoint(store));
    RV_TRY(reading_new(store, &reading));
    rv_assert(store->copier.reading == NULL);
    store->copier.reading = reading;
    *ret_copy = &reading->copy;
    return RV_OK;
}
