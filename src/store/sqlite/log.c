/* What is done with a log that is found at start: it was left by a process that died. SQLite takes
 * of it what is whole, up to the first page that is not, and all is well if the process died while
 * it wrote. Two things it does not reckon with.
 *
 * A page in the middle has changed since. Then SQLite drops it and all that comes after, among it
 * batches that were acknowledged. They can be told from the remains of older batches: each page's
 * checksum goes on from the one before, so behind the end of a batch one that fits was written
 * after that batch was synced. An end counts if its page fits, too: the header of a page that was
 * torn may be half that of an older one. Damage to the newest two batches looks like a batch that
 * was never finished, and a log with another header, or an older one, like one that was only
 * begun: so the lock file has a note of how far the log had come (open.c), and the log is held
 * against it.
 *
 * A sync had failed. What the system could not write it then takes for written, and goes on showing
 * it: the disk has a hole there that no later sync fills, and everything after it would be lost
 * with the power. So what is about to be built on is written again, before anything is added. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

#include <endian.h>
#include <string.h>

enum {
    HEADER_BYTES = 32,
    HEADER_BEGUN = 12,
    HEADER_SALTS = 16,
    HEADER_SUMS = 24,
    FRAME_HEADER_BYTES = 24,
    FRAME_ENDS = 4, /* not 0: the last page of a batch */
    FRAME_SALTS = 8,
    FRAME_SUMS = 16,
    FRAME_BYTES = FRAME_HEADER_BYTES + RV_SQLITE_PAGE_BYTES
};

static uint32_t word_read(const unsigned char *at, bool big_end)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return big_end ? be32toh(word) : le32toh(word);
}

/* SQLite's checksum, whose words have the order of the machine that made the log ("WAL Checksum
 * Algorithm" of its file format). */
static void sums_add(uint32_t sums[static 2], const unsigned char *bytes, size_t count,
                     bool big_end)
{
    rv_assert(count % 8 == 0);
    for (size_t at = 0; at < count; at += 8) {
        sums[0] += word_read(bytes + at, big_end) + sums[1];
        sums[1] += word_read(bytes + at + 4, big_end) + sums[0];
    }
}

static bool sums_are(const uint32_t sums[static 2], const unsigned char *stored)
{
    return sums[0] == word_read(stored, true) && sums[1] == word_read(stored + 4, true);
}

static bool frame_fits(const unsigned char *frame, const unsigned char *before, bool big_end)
{
    uint32_t sums[2] = {word_read(before, true), word_read(before + 4, true)};
    sums_add(sums, frame, FRAME_SALTS, big_end);
    sums_add(sums, frame + FRAME_HEADER_BYTES, RV_SQLITE_PAGE_BYTES, big_end);
    return sums_are(sums, frame + FRAME_SUMS);
}

void rv_log_state_read(const unsigned char *header, struct rv_log_state *ret_state)
{
    *ret_state = (struct rv_log_state){.begun = word_read(header + HEADER_BEGUN, true),
                                       .salts = {word_read(header + HEADER_SALTS, true),
                                                 word_read(header + HEADER_SALTS + 4, true)}};
}

bool rv_log_has(const struct rv_log_state *found, const struct rv_log_state *least)
{
    uint32_t later = found->begun - least->begun;
    if (least->frames == 0)
        return true;
    if (later == 0)
        return memcmp(found->salts, least->salts, sizeof found->salts) == 0 &&
               found->frames >= least->frames;
    return later <= INT32_MAX && found->salts[0] - least->salts[0] == later;
}

static bool header_whole(const unsigned char *header, bool big_end)
{
    uint32_t sums[2] = {0, 0};
    sums_add(sums, header, HEADER_SUMS, big_end);
    return sums_are(sums, header + HEADER_SUMS);
}

static int state_find(sqlite3_file *log, sqlite3_int64 bytes, struct rv_log_state *found)
{
    unsigned char header[HEADER_BYTES], frame[FRAME_BYTES], before[8];
    rv_assert(bytes >= HEADER_BYTES);
    int code = log->pMethods->xRead(log, header, HEADER_BYTES, 0);
    bool big_end = (header[3] & 1) != 0;
    if (code != SQLITE_OK || !header_whole(header, big_end))
        return code;
    rv_log_state_read(header, found);
    memcpy(before, header + HEADER_SUMS, sizeof before);
    for (sqlite3_int64 at = HEADER_BYTES; at + FRAME_BYTES <= bytes; at += FRAME_BYTES) {
        code = log->pMethods->xRead(log, frame, FRAME_BYTES, at);
        bool ours = memcmp(frame + FRAME_SALTS, header + HEADER_SALTS, 8) == 0;
        if (code != SQLITE_OK || !ours || !frame_fits(frame, before, big_end))
            return code;
        if (word_read(frame + FRAME_ENDS, true) != 0)
            found->frames = (uint32_t)((at - HEADER_BYTES) / FRAME_BYTES + 1);
        memcpy(before, frame + FRAME_SUMS, sizeof before);
    }
    return SQLITE_OK;
}

/* IOERR_DATA: there are synced batches behind the first page that is not whole. */
static int middle_check(sqlite3_file *log, sqlite3_int64 bytes)
{
    unsigned char header[HEADER_BYTES], frame[FRAME_BYTES], before[8];
    bool broken = false, batch_ended = false;
    rv_assert(bytes >= HEADER_BYTES);
    int code = log->pMethods->xRead(log, header, HEADER_BYTES, 0);
    bool big_end = (header[3] & 1) != 0;
    if (code != SQLITE_OK)
        return code;
    if (!header_whole(header, big_end))
        return SQLITE_OK; /* torn while the log was begun anew: SQLite does so too */
    memcpy(before, header + HEADER_SUMS, sizeof before);
    for (sqlite3_int64 at = HEADER_BYTES; at + FRAME_BYTES <= bytes; at += FRAME_BYTES) {
        code = log->pMethods->xRead(log, frame, FRAME_BYTES, at);
        if (code != SQLITE_OK)
            return code;
        bool ours = memcmp(frame + FRAME_SALTS, header + HEADER_SALTS, 8) == 0;
        bool fits = ours && frame_fits(frame, before, big_end);
        if (broken && batch_ended && fits)
            return SQLITE_IOERR_DATA;
        broken = broken || !fits;
        batch_ended = fits && word_read(frame + FRAME_ENDS, true) != 0;
        memcpy(before, frame + FRAME_SUMS, sizeof before);
    }
    return SQLITE_OK;
}

static int write_again(sqlite3_file *log, sqlite3_int64 bytes)
{
    unsigned char frame[FRAME_BYTES];
    int code = SQLITE_OK;
    for (sqlite3_int64 at = 0; code == SQLITE_OK && at < bytes; at += FRAME_BYTES) {
        int count = bytes - at < FRAME_BYTES ? (int)(bytes - at) : FRAME_BYTES;
        rv_assert(count > 0);
        code = log->pMethods->xRead(log, frame, count, at);
        if (code == SQLITE_OK)
            code = log->pMethods->xWrite(log, frame, count, at);
    }
    return code == SQLITE_OK ? log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) : code;
}

/* The log's file and its length, -1 if there is none. */
static int log_open(sqlite3 *db, sqlite3_file **ret_log, sqlite3_int64 *ret_bytes)
{
    *ret_bytes = -1;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, ret_log);
    if (code != SQLITE_OK || *ret_log == NULL || (*ret_log)->pMethods == NULL)
        return code;
    return (*ret_log)->pMethods->xFileSize(*ret_log, ret_bytes);
}

int rv_log_page(sqlite3 *db, int frame, uint32_t *ret_number, uint32_t *ret_pages,
                unsigned char *ret_page)
{
    unsigned char header[FRAME_HEADER_BYTES];
    rv_assert(frame >= 0);
    sqlite3_file *log = NULL;
    sqlite3_int64 bytes, at = HEADER_BYTES + (sqlite3_int64)frame * FRAME_BYTES;
    int code = log_open(db, &log, &bytes);
    if (code == SQLITE_OK && bytes < at + FRAME_BYTES)
        code = SQLITE_IOERR_SHORT_READ;
    if (code == SQLITE_OK)
        code = log->pMethods->xRead(log, header, sizeof header, at);
    if (code != SQLITE_OK)
        return code;
    *ret_number = word_read(header, true);
    if (ret_pages != NULL)
        *ret_pages = word_read(header + FRAME_ENDS, true);
    if (ret_page == NULL)
        return SQLITE_OK;
    return log->pMethods->xRead(log, ret_page, RV_SQLITE_PAGE_BYTES, at + FRAME_HEADER_BYTES);
}

int rv_log_find(sqlite3 *db, struct rv_log_state *ret_found)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 bytes;
    *ret_found = (struct rv_log_state){.frames = 0};
    int code = log_open(db, &log, &bytes);
    return code == SQLITE_OK && bytes >= HEADER_BYTES ? state_find(log, bytes, ret_found) : code;
}

int rv_log_secure(sqlite3 *db)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 bytes;
    int code = log_open(db, &log, &bytes);
    if (code != SQLITE_OK || bytes < HEADER_BYTES)
        return code;
    code = middle_check(log, bytes);
    return code == SQLITE_OK ? write_again(log, bytes) : code;
}
