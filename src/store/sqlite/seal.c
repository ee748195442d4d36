/* Seals: the last eight bytes of each page of the file are a checksum of the others and of the
 * page's number. SQLite would take a page as it comes, and a byte that has changed on the disk for
 * what was written: an index that lost an entry, a payload with another amount. It leaves those
 * bytes alone (they are "reserved"), so this VFS, which stands between it and the one below, sets
 * them as a page goes out and looks at them as it comes in. The log has SQLite's own checksums,
 * which it looks at when it recovers, but not when it reads a page later; for that the checksum of
 * each page of the log is kept in memory.
 *
 * SQLite writes the log in pieces: the header of a page, then the page. Pieces that follow one
 * another are gathered here and go out together, at the latest before the log is synced.
 *
 * Both files are written by this process alone. Somebody may truncate or overwrite one all the
 * same, so a few bytes of each, and its length, are kept in memory to be held against the file. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEAL_BYTES = 8,
    PLAIN_BYTES = RV_SQLITE_PAGE_BYTES - SEAL_BYTES,
    HEADER_BYTES = 100,   /* of the file, in its first page */
    HEADER_RESERVED = 20, /* there: reserved bytes of each page */
    LOG_HEADER_BYTES = 32,
    FRAME_HEADER_BYTES = 24, /* of each page in the log */
    FRAME_BYTES = FRAME_HEADER_BYTES + RV_SQLITE_PAGE_BYTES,
    GATHERED_BYTES = 16 * FRAME_BYTES, /* of the log: how much goes out in one write */
    LOCKS_AT = 0x40000000,    /* of the file: the page that SQLite locks and never writes */
    CONTROL_SEALED = 11081889 /* asks a file: bool: are its pages sealed? */
};

struct seal_file;

struct rv_seal {
    sqlite3_vfs vfs;                  /* first: what SQLite knows */
    sqlite3_vfs *below;               /* borrowed */
    struct seal_file *database, *log; /* borrowed, while they are open */
    char name[32];
    void (*overwrites)(void *self, int64_t page); /* NULL: nobody wants to know */
    void *self;
};

/* What this process wrote, or first read, at a place of the file. */
struct mark {
    sqlite3_int64 at;
    int count; /* 0: not known */
    unsigned char bytes[HEADER_BYTES];
};

struct seal_file {
    sqlite3_file base;
    struct rv_seal *seal; /* borrowed */
    bool log;
    bool sealed;    /* the database: its pages are */
    uint64_t *sums; /* owned; the log: of the page in each frame; 0: not known */
    size_t sums_room;
    unsigned char *gathered; /* owned; the log: bytes that are still to be written */
    int gathered_bytes;
    sqlite3_int64 gathered_at; /* offset of the first */
    int lost;                  /* SQLite's code: some could not be written, and nobody was told */
    sqlite3_int64 lost_at;     /* where they belong ... */
    sqlite3_int64 lost_end;    /* ... up to here */
    sqlite3_int64 end;         /* the file has at least so many bytes */
    struct mark head;          /* of the file */
    struct mark tail;          /* the log: the header of the frame that was written last */
    sqlite3_file *below;       /* lies behind this struct */
};

static struct seal_file *seal_of(sqlite3_file *file)
{
    return (struct seal_file *)file;
}

static sqlite3_file *below(sqlite3_file *file)
{
    return seal_of(file)->below;
}

/* ---- marks ---- */

static void mark_set(struct mark *mark, const unsigned char *from, int count, sqlite3_int64 at)
{
    rv_assert(count > 0);
    rv_assert(count <= (int)sizeof mark->bytes);
    mark->at = at;
    mark->count = count;
    memcpy(mark->bytes, from, (size_t)count);
}

/* These bytes are in the file now, or, if they are not `written`, perhaps some of them. */
static void marks_follow(struct seal_file *mine, const unsigned char *bytes, int count,
                         sqlite3_int64 at, bool written)
{
    sqlite3_int64 end = at + count;
    rv_assert(at >= 0);
    rv_assert(count > 0);
    int head = mine->log ? LOG_HEADER_BYTES : HEADER_BYTES;
    if (at < head)
        mine->head.count = 0;
    if (at < mine->tail.at + FRAME_HEADER_BYTES && end > mine->tail.at)
        mine->tail.count = 0;
    if (!written)
        return;
    if (mine->end < end)
        mine->end = end;
    if (at == 0 && count >= head)
        mark_set(&mine->head, bytes, head, 0);
    sqlite3_int64 last = end - FRAME_HEADER_BYTES - LOG_HEADER_BYTES;
    last = last / FRAME_BYTES * FRAME_BYTES + LOG_HEADER_BYTES;
    if (mine->log && last >= at && last + FRAME_HEADER_BYTES <= end)
        mark_set(&mine->tail, bytes + (last - at), FRAME_HEADER_BYTES, last);
}

static void marks_cut(struct seal_file *mine, sqlite3_int64 end)
{
    mine->end = end;
    if (mine->head.count > end)
        mine->head.count = 0;
    if (mine->tail.at + mine->tail.count > end)
        mine->tail.count = 0;
}

static bool mark_stands(sqlite3_file *file, const struct mark *mark)
{
    unsigned char bytes[HEADER_BYTES];
    if (mark->count == 0)
        return true;
    int code = file->pMethods->xRead(file, bytes, mark->count, mark->at);
    if (code != SQLITE_OK) /* what cannot be looked at is taken for unchanged */
        return code != SQLITE_IOERR_SHORT_READ;
    return memcmp(bytes, mark->bytes, (size_t)mark->count) == 0;
}

static bool file_stands(const struct seal_file *mine)
{
    sqlite3_int64 bytes = 0;
    if (mine == NULL)
        return true;
    int code = mine->below->pMethods->xFileSize(mine->below, &bytes);
    return (code != SQLITE_OK || bytes >= mine->end) && mark_stands(mine->below, &mine->head) &&
           mark_stands(mine->below, &mine->tail);
}

enum rv_seal_changed rv_seal_look(const struct rv_seal *seal)
{
    if (!file_stands(seal->database))
        return RV_SEAL_FILE_CHANGED;
    return file_stands(seal->log) ? RV_SEAL_UNCHANGED : RV_SEAL_LOG_CHANGED;
}

const unsigned char *rv_seal_log_head(const struct rv_seal *seal)
{
    return seal->log != NULL && seal->log->head.count > 0 ? seal->log->head.bytes : NULL;
}

/* ---- gathering ---- */

/* Comes before anything that looks at the file itself. What cannot be written is forgotten: the
 * transaction that it belongs to fails, since its next write or sync does. */
static int gathered_write(struct seal_file *mine)
{
    int bytes = mine->gathered_bytes;
    if (bytes == 0)
        return SQLITE_OK;
    rv_assert(mine->log);
    rv_assert(bytes <= GATHERED_BYTES);
    int code = mine->below->pMethods->xWrite(mine->below, mine->gathered, bytes, mine->gathered_at);
    marks_follow(mine, mine->gathered, bytes, mine->gathered_at, code == SQLITE_OK);
    mine->gathered_bytes = 0;
    if (code != SQLITE_OK) {
        mine->lost = code;
        mine->lost_at = mine->gathered_at;
        mine->lost_end = mine->gathered_at + bytes;
    }
    return code;
}

/* The same for a write or a sync, whose failure SQLite never ignores: told once. */
static int gathered_end(struct seal_file *mine)
{
    int code = mine->lost != SQLITE_OK ? mine->lost : gathered_write(mine);
    mine->lost = SQLITE_OK;
    return code;
}

/* What else is in the log can still be read: nobody knows yet that the transaction fails. */
static int gathered_show(struct seal_file *mine, int bytes, sqlite3_int64 offset)
{
    (void)gathered_write(mine);
    bool is_lost = offset < mine->lost_end && offset + bytes > mine->lost_at;
    return is_lost ? mine->lost : SQLITE_OK;
}

void rv_seal_undone(struct rv_seal *seal)
{
    if (seal->log != NULL)
        seal->log->lost = SQLITE_OK;
}

static int gather(struct seal_file *mine, const void *at, int bytes, sqlite3_int64 offset)
{
    rv_assert(mine->log);
    rv_assert(bytes > 0);
    rv_assert(bytes <= GATHERED_BYTES);
    bool follows = offset == mine->gathered_at + mine->gathered_bytes;
    bool fits = mine->gathered_bytes + bytes <= GATHERED_BYTES;
    if (mine->lost != SQLITE_OK || !follows || !fits) {
        int code = gathered_end(mine);
        if (code != SQLITE_OK)
            return code;
        mine->gathered_at = offset;
    }
    rv_assert(offset == mine->gathered_at + mine->gathered_bytes);
    rv_assert(bytes <= GATHERED_BYTES - mine->gathered_bytes);
    memcpy(mine->gathered + mine->gathered_bytes, at, (size_t)bytes);
    mine->gathered_bytes += bytes;
    return SQLITE_OK;
}

/* ---- checksums ---- */

/* A seal is the same on every machine. */
static uint64_t long_read(const unsigned char *at)
{
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return le64toh(number);
}

/* One step can be taken back, so a change within one word never goes unnoticed. */
static uint64_t word_add(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(0x9fb21c651e98df25);
    return sum << 31 | sum >> 33;
}

/* Four sums side by side, so that one multiplication need not wait for the other. */
static uint64_t page_sum(const unsigned char *page, uint64_t number)
{
    uint64_t a = number, b = 1, c = 2, d = 3;
    size_t at = 0;
    for (; at + 32 <= PLAIN_BYTES; at += 32) {
        a = word_add(a, long_read(page + at));
        b = word_add(b, long_read(page + at + 8));
        c = word_add(c, long_read(page + at + 16));
        d = word_add(d, long_read(page + at + 24));
    }
    static_assert(PLAIN_BYTES % 8 == 0, "whole words");
    for (; at < PLAIN_BYTES; at += 8)
        a = word_add(a, long_read(page + at));
    uint64_t sum = word_add(word_add(word_add(a, b), c), d);
    return sum ^ sum >> 32;
}

static void sum_write(unsigned char *at, uint64_t sum)
{
    sum = htole64(sum);
    memcpy(at, &sum, SEAL_BYTES);
}

/* ---- reading ---- */

static bool header_sealed(const unsigned char *header)
{
    return memcmp(header, "SQLite format 3", 16) == 0 && header[HEADER_RESERVED] == SEAL_BYTES;
}

static bool page_whole(const unsigned char *page, int64_t number)
{
    unsigned char wanted[SEAL_BYTES];
    sum_write(wanted, page_sum(page, (uint64_t)number));
    return memcmp(page + PLAIN_BYTES, wanted, SEAL_BYTES) == 0;
}

/* A page that was never used since the file grew over it holds nothing yet. */
static bool page_blank(const unsigned char *page)
{
    return page[0] == 0 && memcmp(page, page + 1, RV_SQLITE_PAGE_BYTES - 1) == 0;
}

bool rv_seal_whole(const unsigned char *page, int64_t number)
{
    return number == LOCKS_AT / RV_SQLITE_PAGE_BYTES || page_whole(page, number) ||
           page_blank(page);
}

/* SQLite reads whole pages, and now and then the header alone, which the next page 1 confirms. */
static int database_check(struct seal_file *mine, const unsigned char *at, int bytes,
                          sqlite3_int64 offset)
{
    bool header = offset == 0 && bytes >= HEADER_BYTES;
    if (header && mine->head.count == 0)
        mark_set(&mine->head, at, HEADER_BYTES, 0);
    if (header && mine->sealed && !header_sealed(at))
        return SQLITE_IOERR_DATA;
    if (header)
        mine->sealed = header_sealed(at);
    if (!mine->sealed || offset + bytes <= HEADER_BYTES)
        return SQLITE_OK;
    if (bytes != RV_SQLITE_PAGE_BYTES || offset % RV_SQLITE_PAGE_BYTES != 0)
        return SQLITE_IOERR_DATA;
    return page_whole(at, offset / RV_SQLITE_PAGE_BYTES) ? SQLITE_OK : SQLITE_IOERR_DATA;
}

/* The number of the frame that begins there; `within`: so many bytes before. -1: none. */
static int64_t frame_at(sqlite3_int64 offset, int within)
{
    sqlite3_int64 at = offset - LOG_HEADER_BYTES - within;
    return at >= 0 && at % FRAME_BYTES == 0 ? at / FRAME_BYTES : -1;
}

static int sum_note(struct seal_file *mine, int64_t frame, uint64_t sum)
{
    size_t number = (size_t)frame;
    rv_assert(frame >= 0);
    if (number >= mine->sums_room) {
        size_t room = number * 2 + 256;
        uint64_t *sums = realloc(mine->sums, room * sizeof *sums);
        if (sums == NULL)
            return SQLITE_IOERR_NOMEM;
        memset(sums + mine->sums_room, 0, (room - mine->sums_room) * sizeof *sums);
        mine->sums = sums;
        mine->sums_room = room;
    }
    rv_assert(number < mine->sums_room);
    mine->sums[number] = sum;
    return SQLITE_OK;
}

/* SQLite reads frames with their headers when it recovers, and believes none that is not whole;
 * later it reads pages alone. */
static int log_check(struct seal_file *mine, const unsigned char *at, int bytes,
                     sqlite3_int64 offset)
{
    int64_t frame = bytes == FRAME_BYTES ? frame_at(offset, 0) : -1;
    if (frame >= 0)
        return sum_note(mine, frame, page_sum(at + FRAME_HEADER_BYTES, 1));
    frame = bytes == RV_SQLITE_PAGE_BYTES ? frame_at(offset, FRAME_HEADER_BYTES) : -1;
    bool known = frame >= 0 && (size_t)frame < mine->sums_room && mine->sums[frame] != 0;
    if (!known)
        return SQLITE_OK;
    return page_sum(at, 1) == mine->sums[frame] ? SQLITE_OK : SQLITE_IOERR_DATA;
}

/* Pages of the log go into the file as they are: one that has changed must stop that before the
 * first of them does. What cannot be read is left to SQLite, which will not read it either. */
bool rv_seal_log_whole(const struct rv_seal *seal, uint32_t frames)
{
    struct seal_file *mine = seal->log;
    if (mine == NULL || gathered_write(mine) != SQLITE_OK)
        return true;
    rv_assert(mine->gathered_bytes == 0); /* so its memory can be read into */
    const unsigned char *bytes = mine->gathered;
    for (size_t first = 0; first < frames; first += GATHERED_BYTES / FRAME_BYTES) {
        size_t count = frames - first;
        if (count > GATHERED_BYTES / FRAME_BYTES)
            count = GATHERED_BYTES / FRAME_BYTES;
        int code = mine->below->pMethods->xRead(
            mine->below, mine->gathered, (int)count * FRAME_BYTES,
            LOG_HEADER_BYTES + (sqlite3_int64)first * FRAME_BYTES);
        for (size_t i = 0; code == SQLITE_OK && i < count; i++) {
            bool known = first + i < mine->sums_room && mine->sums[first + i] != 0;
            const unsigned char *page = bytes + i * FRAME_BYTES + FRAME_HEADER_BYTES;
            if (known && page_sum(page, 1) != mine->sums[first + i])
                return false;
        }
    }
    return true;
}

static int seal_read(sqlite3_file *file, void *at, int bytes, sqlite3_int64 offset)
{
    struct seal_file *mine = seal_of(file);
    int code = gathered_show(mine, bytes, offset);
    if (code == SQLITE_OK)
        code = below(file)->pMethods->xRead(below(file), at, bytes, offset);
    /* SQLite takes a page behind the end for zeros, and asks for none that was not written. */
    if (code == SQLITE_IOERR_SHORT_READ && mine->sealed && bytes == RV_SQLITE_PAGE_BYTES)
        return SQLITE_IOERR_DATA;
    if (code != SQLITE_OK)
        return code;
    return mine->log ? log_check(mine, at, bytes, offset) : database_check(mine, at, bytes, offset);
}

/* ---- writing ---- */

static int log_write(struct seal_file *mine, const void *at, int bytes, sqlite3_int64 offset)
{
    int64_t frame = bytes == RV_SQLITE_PAGE_BYTES ? frame_at(offset, FRAME_HEADER_BYTES) : -1;
    int code = frame >= 0 ? sum_note(mine, frame, 0) : SQLITE_OK;
    if (code == SQLITE_OK)
        code = gather(mine, at, bytes, offset);
    if (code == SQLITE_OK && frame >= 0) {
        rv_assert((size_t)frame < mine->sums_room);
        mine->sums[frame] = page_sum(at, 1);
    }
    return code;
}

void rv_seal_set(unsigned char *page, int64_t number)
{
    sum_write(page + PLAIN_BYTES, page_sum(page, (uint64_t)number));
}

static int database_write(struct seal_file *mine, const void *at, int bytes, sqlite3_int64 offset)
{
    if (offset == 0 && bytes >= HEADER_BYTES)
        mine->sealed = header_sealed(at);
    if (!mine->sealed)
        return mine->below->pMethods->xWrite(mine->below, at, bytes, offset);
    rv_assert(bytes == RV_SQLITE_PAGE_BYTES);
    rv_assert(offset % RV_SQLITE_PAGE_BYTES == 0);
    rv_assert(offset != LOCKS_AT);
    unsigned char page[RV_SQLITE_PAGE_BYTES];
    memcpy(page, at, PLAIN_BYTES);
    rv_seal_set(page, offset / RV_SQLITE_PAGE_BYTES);
    if (mine->seal->overwrites != NULL)
        mine->seal->overwrites(mine->seal->self, offset / RV_SQLITE_PAGE_BYTES);
    int code = mine->below->pMethods->xWrite(mine->below, page, bytes, offset);
    marks_follow(mine, page, bytes, offset, code == SQLITE_OK);
    return code;
}

static int seal_write(sqlite3_file *file, const void *at, int bytes, sqlite3_int64 offset)
{
    return seal_of(file)->log ? log_write(seal_of(file), at, bytes, offset)
                              : database_write(seal_of(file), at, bytes, offset);
}

/* ---- the rest is passed on ---- */

static int seal_close(sqlite3_file *file)
{
    struct seal_file *mine = seal_of(file);
    struct seal_file **listed = mine->log ? &mine->seal->log : &mine->seal->database;
    int code = gathered_write(mine);
    if (*listed == mine)
        *listed = NULL;
    free(mine->gathered);
    free(mine->sums);
    int closed = mine->below->pMethods->xClose(mine->below);
    return code == SQLITE_OK ? closed : code;
}

static int seal_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
    int code = gathered_write(seal_of(file));
    if (code == SQLITE_OK)
        code = below(file)->pMethods->xTruncate(below(file), bytes);
    if (code == SQLITE_OK)
        marks_cut(seal_of(file), bytes);
    return code;
}

static int seal_sync(sqlite3_file *file, int flags)
{
    int code = gathered_end(seal_of(file));
    return code == SQLITE_OK ? below(file)->pMethods->xSync(below(file), flags) : code;
}

static int seal_size(sqlite3_file *file, sqlite3_int64 *ret_bytes)
{
    int code = gathered_write(seal_of(file));
    return code == SQLITE_OK ? below(file)->pMethods->xFileSize(below(file), ret_bytes) : code;
}

static int seal_lock(sqlite3_file *file, int lock)
{
    return below(file)->pMethods->xLock(below(file), lock);
}

static int seal_unlock(sqlite3_file *file, int lock)
{
    return below(file)->pMethods->xUnlock(below(file), lock);
}

static int seal_reserved(sqlite3_file *file, int *ret_reserved)
{
    return below(file)->pMethods->xCheckReservedLock(below(file), ret_reserved);
}

static int seal_control(sqlite3_file *file, int operation, void *argument)
{
    if (operation != CONTROL_SEALED)
        return below(file)->pMethods->xFileControl(below(file), operation, argument);
    *(bool *)argument = seal_of(file)->sealed;
    return SQLITE_OK;
}

static int seal_sector(sqlite3_file *file)
{
    return below(file)->pMethods->xSectorSize(below(file));
}

static int seal_traits(sqlite3_file *file)
{
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

/* No shared memory and no mapped pages: the store's connection is exclusive. */
static const sqlite3_io_methods seal_methods = {
    .iVersion = 1,
    .xClose = seal_close,
    .xRead = seal_read,
    .xWrite = seal_write,
    .xTruncate = seal_truncate,
    .xSync = seal_sync,
    .xFileSize = seal_size,
    .xLock = seal_lock,
    .xUnlock = seal_unlock,
    .xCheckReservedLock = seal_reserved,
    .xFileControl = seal_control,
    .xSectorSize = seal_sector,
    .xDeviceCharacteristics = seal_traits,
};

static void file_list(struct seal_file *mine)
{
    if (mine->log)
        mine->seal->log = mine;
    else
        mine->seal->database = mine;
    /* A log is what SQLite makes of it first (log.c). */
    if (!mine->log && mine->below->pMethods->xFileSize(mine->below, &mine->end) != SQLITE_OK)
        mine->end = 0;
}

static int seal_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    sqlite3_vfs *real = ((struct rv_seal *)vfs)->below;
    if ((flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) == 0)
        return real->xOpen(real, name, file, flags, ret_flags);
    struct seal_file *mine = seal_of(file);
    *mine = (struct seal_file){.seal = (struct rv_seal *)vfs,
                               .log = (flags & SQLITE_OPEN_WAL) != 0,
                               .below = (sqlite3_file *)(mine + 1)};
    if (mine->log && (mine->gathered = malloc(GATHERED_BYTES)) == NULL)
        return SQLITE_NOMEM;
    int code = real->xOpen(real, name, mine->below, flags, ret_flags);
    mine->base.pMethods = mine->below->pMethods != NULL ? &seal_methods : NULL;
    if (mine->base.pMethods == NULL) /* nobody closes it */
        free(mine->gathered);
    if (code == SQLITE_OK)
        file_list(mine);
    return code;
}

struct rv_seal *rv_seal_new(const char *vfs)
{
    sqlite3_vfs *real = sqlite3_vfs_find(vfs);
    struct rv_seal *seal = calloc(1, sizeof *seal);
    if (real == NULL || seal == NULL) {
        free(seal);
        return NULL;
    }
    snprintf(seal->name, sizeof seal->name, "sealed %p", (void *)seal);
    seal->below = real;
    seal->vfs = *real;
    seal->vfs.pNext = NULL;
    seal->vfs.zName = seal->name;
    seal->vfs.szOsFile = (int)sizeof(struct seal_file) + real->szOsFile;
    seal->vfs.xOpen = seal_open;
    if (sqlite3_vfs_register(&seal->vfs, 0) == SQLITE_OK)
        return seal;
    free(seal);
    return NULL;
}

void rv_seal_free(struct rv_seal *seal)
{
    if (seal == NULL)
        return;
    int code = sqlite3_vfs_unregister(&seal->vfs);
    rv_assert(code == SQLITE_OK);
    free(seal);
}

const char *rv_seal_name(const struct rv_seal *seal)
{
    return seal->name;
}

void rv_seal_watch(struct rv_seal *seal, void (*overwrites)(void *self, int64_t page), void *self)
{
    seal->overwrites = overwrites;
    seal->self = self;
}

int rv_seal_ask_for(sqlite3 *db)
{
    int bytes = SEAL_BYTES;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
}

bool rv_seal_there(sqlite3 *db)
{
    bool sealed = false;
    int code = sqlite3_file_control(db, "main", CONTROL_SEALED, &sealed);
    return code == SQLITE_OK && sealed;
}

int rv_seal_check(sqlite3 *db, void (*found)(void *self, int64_t page), void *self)
{
    unsigned char page[RV_SQLITE_PAGE_BYTES];
    sqlite3_file *file = NULL;
    sqlite3_int64 bytes = 0;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code == SQLITE_OK)
        code = file->pMethods->xFileSize(file, &bytes);
    for (sqlite3_int64 at = 0; code == SQLITE_OK && at < bytes; at += RV_SQLITE_PAGE_BYTES) {
        int64_t number = at / RV_SQLITE_PAGE_BYTES + 1;
        if (at == LOCKS_AT)
            continue;
        code = file->pMethods->xRead(file, page, RV_SQLITE_PAGE_BYTES, at);
        bool short_read = code == SQLITE_IOERR_SHORT_READ;
        if (short_read || (code == SQLITE_IOERR_DATA && !page_blank(page)))
            found(self, number);
        if (short_read || code == SQLITE_IOERR_DATA)
            code = SQLITE_OK;
    }
    return code;
}
