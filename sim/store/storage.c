#include "sim/store/storage.h"

#include "base/assert.h"
#include "base/hash.h"
#include "sim/store/database.h"
#include "sim/store/disk.h"
#include "sim/world/fault.h"
#include "sim/world/server.h"
#include "sim/store/unsettled.h"
#include "sim/store/vfs.h"
#include "sim/world/world.h"
#include "store/sqlite/sqlite.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH "reeve.db"
#define LOG PATH "-wal"
#define DISK_NAME "sim"
#define FOUND "found"

/* Texts that stand apart from their rows are longer than most of a world. */
enum { LOG_HEADER_BYTES = 32, APART_BYTES = 64 };

struct storage {
    struct disk *disk; /* owned */
    struct vfs *vfs;   /* owned */
    struct unsettled unsettled;
    enum disk_fault armed;
    uint64_t lasts;     /* what is armed: so many more ends of a process; 0: it strikes once */
    int64_t full_until; /* virtual time */
    bool rotten;        /* a byte has changed */
    bool cut;           /* the power fails when the process ends, whatever is drawn */
};

static struct storage *of(const struct world *w)
{
    return w->storage;
}

static void arm(struct world *w, enum disk_fault fault, uint64_t after, uint64_t lasts)
{
    struct storage *s = of(w);
    s->armed = fault;
    s->lasts = lasts;
    disk_arm(s->disk, fault, after, lasts > 0);
}

/* ---- looking on ---- */

void storage_look(struct world *w)
{
    if (of(w) != NULL)
        disk_calm(of(w)->disk, true);
}

void storage_looked(struct world *w)
{
    if (of(w) != NULL)
        disk_calm(of(w)->disk, false);
}

static int row_take(void *context, int columns, char **texts, char **names)
{
    (void)columns;
    (void)names;
    snprintf(context, 200, "%s", texts[0]);
    return 1;
}

/* S-01: whatever befell the disk short of changing what lay there, SQLite finds it sound. Looked at
 * on a copy, since looking may write. */
static void check_integrity(struct world *w)
{

    char text[200] = "";
    if (of(w)->rotten)
        return; /* it need not be; the store is to say so */
    struct disk *copy = disk_copy(of(w)->disk);
    struct vfs *vfs = vfs_new(copy, "copy", 0);
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int code = sqlite3_open_v2(PATH, &db, flags, "copy");
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, "PRAGMA integrity_check", row_take, text, NULL);
    if (code != SQLITE_ABORT || strcmp(text, "ok") != 0)
        world_violate(w, "S-01", "the database is damaged: %s",
                      text[0] ? text : sqlite3_errmsg(db));
    sqlite3_close(db);
    vfs_free(vfs);
    disk_free(copy);
}

/* ---- faults ---- */

/* Mostly soon, sometimes so late that a checkpoint is met, or the end of a long batch. */
static uint64_t operations_until(struct world *w)
{
    return fault_roll(w, UINT64_C(1) << fault_roll(w, 9));
}

void storage_plan(struct world *w)
{
    static const struct {
        enum fault fault;
        enum disk_fault what;
    } faults[] = {
        {FAULT_DISK_DEATH, DISK_DEATH},
        {FAULT_DISK_READ, DISK_READ},
        {FAULT_DISK_WRITE, DISK_WRITE},
        {FAULT_DISK_SYNC, DISK_SYNC},
    };
    struct storage *s = of(w);
    if (s == NULL || w->knobs.store != STORE_SQLITE)
        return;
    world_trace(w, disk_operations(s->disk));
    bool full = s->armed == DISK_FULL || s->armed == DISK_QUOTA;
    if (full && w->now >= s->full_until)
        arm(w, DISK_SOUND, 0, 0);
    bool waits = s->armed != DISK_SOUND && (s->lasts > 0 || !disk_struck(s->disk));
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        if (!fault_strikes(w, faults[i].fault, ACTOR_SERVER) || waits)
            continue;
        uint64_t after = operations_until(w);
        bool once = faults[i].what == DISK_DEATH || fault_roll(w, 4) > 0;
        arm(w, faults[i].what, after, once ? 0 : 1 + fault_roll(w, 4));
        waits = true;
    }
}

bool storage_fill(struct world *w, int64_t ms)
{
    struct storage *s = of(w);
    if (s == NULL || w->knobs.store != STORE_SQLITE)
        return false;
    bool quota = fault_roll(w, 3) == 0;
    s->full_until = w->now + ms;
    world_say(w, "disk", "is full for %lld ms%s", (long long)ms, quota ? ": a quota" : "");
    arm(w, quota ? DISK_QUOTA : DISK_FULL, operations_until(w), UINT64_MAX);
    return true;
}

void storage_heal(struct world *w)
{
    if (of(w) != NULL)
        arm(w, DISK_SOUND, 0, 0);
}

bool storage_dead(const struct world *w)
{
    return of(w) != NULL && disk_dead(of(w)->disk);
}

void storage_die(struct world *w)
{
    if (of(w) != NULL)
        disk_die(of(w)->disk);
}

void storage_cut(struct world *w)
{
    if (of(w) != NULL)
        of(w)->cut = true;
}

bool storage_found(struct world *w, enum rv_err err)
{
    bool found = err == RV_ERR_CORRUPT && of(w) != NULL && of(w)->rotten;
    if (found)
        world_violate(w, FOUND, "the damage is found");
    return found;
}

void storage_forgive(struct world *w)
{
    if (w->violated != NULL && strcmp(w->violated, FOUND) == 0)
        w->violated = NULL;
}

/* How much of the log stands before its newest two batches, damage to which cannot be told from a
 * batch that was never finished (store/sqlite/log.c). */
static uint64_t log_certain(struct disk *disk)
{
    enum { FRAME_BYTES = 24 + 4096 };
    unsigned char header[LOG_HEADER_BYTES], frame[24];
    uint64_t ends[3] = {0, 0, 0}, at = LOG_HEADER_BYTES;
    struct disk_handle log;
    size_t there = 0;
    if (disk_open(disk, LOG, false, &log) != 0)
        return 0;
    int error = disk_read(&log, header, sizeof header, 0, &there);
    for (; error == 0 && there > 0; at += FRAME_BYTES) {
        error = disk_read(&log, frame, sizeof frame, at, &there);
        if (error != 0 || there < sizeof frame || memcmp(frame + 8, header + 16, 8) != 0)
            break;
        if (memcmp(frame + 4, "\0\0\0\0", 4) == 0)
            continue;
        ends[0] = ends[1];
        ends[1] = ends[2];
        ends[2] = at + FRAME_BYTES;
    }
    disk_close(&log);
    return ends[0];
}

static void rot(struct world *w)
{
    struct storage *s = of(w);
    if (s == NULL || !fault_strikes(w, FAULT_ROT, ACTOR_SERVER))
        return;
    storage_look(w);
    bool log = fault_roll(w, 2) == 0;
    uint64_t from = log ? LOG_HEADER_BYTES : 0;
    uint64_t until = log ? log_certain(s->disk) : disk_bytes_of(s->disk, PATH);
    uint64_t at = from + fault_roll(w, until > from ? until - from : 0);
    uint8_t bits = (uint8_t)(1 + fault_roll(w, 255));
    bool done = at < until && disk_rot(s->disk, log ? LOG : PATH, at, bits);
    storage_looked(w);
    s->rotten = s->rotten || done;
    if (done)
        world_say(w, "disk", "a byte of the %s changes at rest", log ? "log" : "database");
}

/* What keeps failing does so until somebody has mended it, a few starts later. */
void storage_ended(struct world *w)
{
    struct storage *s = of(w);
    if (s == NULL)
        return;
    bool power = w->knobs.store == STORE_SQLITE && fault_strikes(w, FAULT_POWER, ACTOR_SERVER);
    uint32_t keep = power ? (uint32_t)fault_roll(w, 1001) : 0;
    power = power || s->cut;
    s->cut = false;
    if (power && w->knobs.store == STORE_SQLITE)
        world_say(w, "disk", "the power fails: %u per mille of what was not synced stay", keep);
    disk_restart(s->disk, power, keep);
    rot(w);
    if (disk_struck(s->disk) && (s->lasts == 0 || --s->lasts == 0))
        arm(w, DISK_SOUND, 0, 0);
}

/* S-03: after a write or a sync that failed nobody knows what is in the file; the process ends. */
void storage_check_batch(struct world *w, enum rv_err err)
{
    struct storage *s = of(w);
    if (s == NULL || storage_found(w, err) || disk_dead(s->disk) || !disk_struck(s->disk))
        return;
    bool fatal = s->armed == DISK_WRITE || s->armed == DISK_SYNC;
    if (fatal && server_goes_on(err))
        world_violate(w, "S-03", "the disk refused to write, and the server goes on: %s",
                      rv_err_text(err));
}

void storage_unknown(struct world *w, const struct rv_batch *batch, int64_t now)
{
    if (of(w) != NULL)
        unsettled_take(&of(w)->unsettled, batch, now, w->now);
}

bool storage_unsettled(const struct world *w)
{
    return of(w) != NULL && of(w)->unsettled.changes != NULL;
}

/* ---- a process and its store ---- */

static void check_refusal(struct world *w, enum rv_err err, const char *message);

void storage_check_start(struct world *w, enum rv_err err)
{
    storage_check_batch(w, err);
    if (of(w) != NULL && err != RV_OK)
        check_refusal(w, err, "the scheduler cannot begin");
    else
        rv_assert(err == RV_OK || database_shared(w));
}

static enum rv_err store_open(struct world *w, struct rv_wall_clock clock,
                              struct rv_store **ret_store, struct rv_store_sqlite_fault *ret_fault)
{
    struct rv_store_sqlite_options options = {
        .path = PATH,
        .clock = clock,
        .vfs = DISK_NAME,
        .checkpoint_pages = (int)w->knobs.checkpoint_pages,
        .apart_bytes = w->seed % 2 == 0 ? APART_BYTES : 0,
    };
    return rv_store_sqlite_open(&options, ret_store, ret_fault);
}

/* S-02: only a disk that has just failed keeps a store from opening, and what was made durable can
 * always be read. */
static void check_refusal(struct world *w, enum rv_err err, const char *message)
{
    struct storage *s = of(w);
    if (storage_found(w, err))
        return;
    bool passing = err == RV_ERR_IO || err == RV_ERR_FULL || err == RV_ERR_COMMIT_UNKNOWN;
    if (!passing || !(disk_struck(s->disk) || disk_dead(s->disk)))
        world_violate(w, "S-02", "the store does not open: %s (%s)", message, rv_err_text(err));
}

enum rv_err storage_open(struct world *w, struct rv_wall_clock clock, struct rv_store **ret_store)
{
    struct storage *s = of(w);
    struct rv_store_sqlite_fault fault;
    check_integrity(w);
    storage_plan(w);
    enum rv_err err = store_open(w, clock, ret_store, &fault);
    if (err != RV_OK) {
        world_say(w, "disk", "%s", fault.message);
        check_refusal(w, err, fault.message);
        return err;
    }
    if (s->unsettled.changes == NULL)
        return RV_OK;
    storage_look(w);
    bool there = unsettled_settle(&s->unsettled, w, *ret_store);
    storage_looked(w);
    world_say(w, "disk", "the batch of unknown outcome is %s", there ? "there" : "not there");
    return RV_OK;
}

static int64_t no_clock(void *self)
{
    (void)self;
    return 0;
}

/* A store may die again and again before it has come into being. */
static void birth(struct world *w)
{
    struct rv_store_sqlite_fault fault;
    struct rv_wall_clock clock = {.now = no_clock};
    while (w->violated == NULL && fault_strikes(w, FAULT_DISK_BIRTH, ACTOR_SERVER)) {
        struct rv_store *store = NULL;
        arm(w, DISK_DEATH, fault_roll(w, 200), 0);
        check_integrity(w);
        enum rv_err err = store_open(w, clock, &store, &fault);
        if (err != RV_OK)
            check_refusal(w, err, fault.message);
        storage_die(w);
        if (err == RV_OK)
            store->ops->close(store);
        storage_ended(w);
    }
    arm(w, DISK_SOUND, 0, 0);
}

void storage_new(struct world *w)
{
    if (w->knobs.store == STORE_MEMORY || w->knobs.store == STORE_SHARED)
        return;
    struct storage *s = calloc(1, sizeof *s);
    rv_assert(s != NULL);
    w->storage = s;
    s->disk = disk_new(rv_hash_int(w->seed));
    s->vfs = vfs_new(s->disk, DISK_NAME, (int)(w->seed % 1000000) + 1);
    unsettled_init(&s->unsettled);
    if (w->knobs.lying_disk)
        disk_lie(s->disk);
    if (w->knobs.store == STORE_SQLITE)
        birth(w);
}

void storage_free(struct world *w)
{
    struct storage *s = of(w);
    if (s == NULL)
        return;
    vfs_free(s->vfs);
    disk_free(s->disk);
    unsettled_done(&s->unsettled);
    free(s);
}
