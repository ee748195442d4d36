#include "sim/store/disk.h"

#include "base/assert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 16 };

enum sector {
    SECTOR_KEPT,     /* both contents are the same */
    SECTOR_UNSYNCED, /* written since the last sync */
    SECTOR_FORSAKEN  /* a sync failed: seen, not kept, and no sync thinks of it any more */
};

struct disk_file {
    uint8_t *seen; /* owned, all three; `sectors` of them */
    uint8_t *kept;
    uint8_t *state; /* enum sector */
    size_t sectors;
    uint64_t seen_bytes; /* beyond them both contents are zeros */
    uint64_t kept_bytes;
    size_t *unsynced; /* owned: numbers of the sectors that are UNSYNCED, in no order */
    size_t unsynced_count;
    uint32_t users; /* handles, and names */
};

/* A name may stand for one file in the cache and for another on the platter. */
struct name {
    char text[DISK_NAME_BYTES];
    struct disk_file *seen;
    struct disk_file *kept;
};

struct disk {
    struct rv_prng dice;
    struct name names[NAMES_MAX];
    enum disk_fault fault;
    uint64_t left; /* operations before it strikes */
    bool sticky;
    bool struck;
    bool in_place; /* what is overwritten needs no new space */
    bool lies;
    bool dead;
    bool calm;
    uint64_t operations;
};

/* ---- files ---- */

static struct disk_file *file_new(void)
{
    struct disk_file *file = calloc(1, sizeof *file);
    rv_assert(file != NULL);
    return file;
}

static void file_release(struct disk_file *file)
{
    if (file == NULL || --file->users > 0)
        return;
    free(file->seen);
    free(file->kept);
    free(file->state);
    free(file->unsynced);
    free(file);
}

static void *grown(void *old, size_t old_bytes, size_t bytes)
{
    uint8_t *at = realloc(old, bytes);
    rv_assert(at != NULL);
    memset(at + old_bytes, 0, bytes - old_bytes);
    return at;
}

static void file_reserve(struct disk_file *file, uint64_t bytes)
{
    size_t wanted = (size_t)((bytes + DISK_SECTOR_BYTES - 1) / DISK_SECTOR_BYTES);
    if (wanted <= file->sectors)
        return;
    size_t had = file->sectors, has = had * 2 > wanted ? had * 2 : wanted + 64;
    file->seen = grown(file->seen, had * DISK_SECTOR_BYTES, has * DISK_SECTOR_BYTES);
    file->kept = grown(file->kept, had * DISK_SECTOR_BYTES, has * DISK_SECTOR_BYTES);
    file->state = grown(file->state, had, has);
    file->unsynced = grown(file->unsynced, had * sizeof(size_t), has * sizeof(size_t));
    file->sectors = has;
}

/* What programs see of it; nothing of that is kept. */
static struct disk_file *file_twin(const struct disk_file *file)
{
    struct disk_file *twin = file_new();
    twin->sectors = file->sectors;
    twin->seen_bytes = file->seen_bytes;
    twin->seen = calloc(twin->sectors + 1, DISK_SECTOR_BYTES);
    twin->kept = calloc(twin->sectors + 1, DISK_SECTOR_BYTES);
    twin->state = calloc(twin->sectors + 1, 1);
    twin->unsynced = calloc(twin->sectors + 1, sizeof(size_t));
    rv_assert(twin->seen != NULL && twin->kept != NULL && twin->state != NULL &&
              twin->unsynced != NULL);
    if (file->seen_bytes > 0)
        memcpy(twin->seen, file->seen, (size_t)file->seen_bytes);
    return twin;
}

static void sectors_touch(struct disk_file *file, uint64_t from, uint64_t until)
{
    for (size_t s = (size_t)(from / DISK_SECTOR_BYTES); s * DISK_SECTOR_BYTES < until; s++) {
        if (file->state[s] == SECTOR_UNSYNCED)
            continue;
        file->state[s] = SECTOR_UNSYNCED;
        file->unsynced[file->unsynced_count++] = s;
    }
}

static void file_write(struct disk_file *file, const void *at, size_t bytes, uint64_t offset)
{
    if (bytes == 0)
        return;
    file_reserve(file, offset + bytes);
    memcpy(file->seen + offset, at, bytes);
    sectors_touch(file, offset, offset + bytes);
    if (offset + bytes > file->seen_bytes)
        file->seen_bytes = offset + bytes;
}

static void file_truncate(struct disk_file *file, uint64_t bytes)
{
    if (bytes >= file->seen_bytes)
        return;
    memset(file->seen + bytes, 0, (size_t)(file->seen_bytes - bytes));
    sectors_touch(file, bytes, file->seen_bytes);
    file->seen_bytes = bytes;
}

static void sector_copy(uint8_t *to, const uint8_t *from, size_t sector, size_t bytes)
{
    memcpy(to + sector * DISK_SECTOR_BYTES, from + sector * DISK_SECTOR_BYTES, bytes);
}

static void file_sync(struct disk_file *file)
{
    for (size_t i = 0; i < file->unsynced_count; i++) {
        sector_copy(file->kept, file->seen, file->unsynced[i], DISK_SECTOR_BYTES);
        file->state[file->unsynced[i]] = SECTOR_KEPT;
    }
    file->unsynced_count = 0;
    file->kept_bytes = file->seen_bytes;
}

/* ---- chance ---- */

static bool chance(struct disk *disk, uint32_t permille)
{
    return rv_prng_below(&disk->dice, 1000) < permille;
}

static size_t roll(struct disk *disk, size_t bound)
{
    return bound > 1 ? (size_t)rv_prng_below(&disk->dice, bound) : 0;
}

static void file_sync_fails(struct disk *disk, struct disk_file *file)
{
    for (size_t i = 0; i < file->unsynced_count; i++) {
        size_t sector = file->unsynced[i];
        file->state[sector] = SECTOR_FORSAKEN;
        if (!chance(disk, 500))
            continue;
        sector_copy(file->kept, file->seen, sector, DISK_SECTOR_BYTES);
        file->state[sector] = SECTOR_KEPT;
    }
    file->unsynced_count = 0;
}

/* The cache lets go of what was forsaken: it is read from the platter again. */
static void file_evict(struct disk_file *file)
{
    for (size_t s = 0; s < file->sectors; s++) {
        if (file->state[s] != SECTOR_FORSAKEN)
            continue;
        sector_copy(file->seen, file->kept, s, DISK_SECTOR_BYTES);
        file->state[s] = SECTOR_KEPT;
    }
}

/* What was cut off is no content: there its size decides. */
static void sector_lose(struct disk *disk, struct disk_file *file, size_t sector, uint32_t keep)
{
    bool content = sector * DISK_SECTOR_BYTES < file->seen_bytes;
    if (file->state[sector] == SECTOR_UNSYNCED && content) {
        if (chance(disk, keep))
            sector_copy(file->kept, file->seen, sector, DISK_SECTOR_BYTES);
        else if (chance(disk, 125))
            sector_copy(file->kept, file->seen, sector, roll(disk, DISK_SECTOR_BYTES));
    }
    sector_copy(file->seen, file->kept, sector, DISK_SECTOR_BYTES);
    file->state[sector] = SECTOR_KEPT;
}

/* The power fails. A size that grew may end anywhere between the old one and the new. */
static void file_lose(struct disk *disk, struct disk_file *file, uint32_t keep)
{
    uint64_t size = file->kept_bytes;
    if (file->seen_bytes != size && chance(disk, keep))
        size = file->seen_bytes;
    else if (file->seen_bytes > size)
        size += roll(disk, (size_t)(file->seen_bytes - size));
    for (size_t s = 0; s < file->sectors; s++)
        if (file->state[s] != SECTOR_KEPT)
            sector_lose(disk, file, s, keep);
    file->unsynced_count = 0;
    if (file->sectors > 0) {
        size_t room = file->sectors * DISK_SECTOR_BYTES;
        memset(file->seen + size, 0, room - (size_t)size);
        memset(file->kept + size, 0, room - (size_t)size);
    }
    file->seen_bytes = file->kept_bytes = size;
}

/* ---- names ---- */

static struct name *name_find(struct disk *disk, const char *text)
{
    for (size_t i = 0; i < NAMES_MAX; i++)
        if (strcmp(disk->names[i].text, text) == 0)
            return &disk->names[i];
    return NULL;
}

static struct name *name_need(struct disk *disk, const char *text)
{
    struct name *name = name_find(disk, text);
    if (name != NULL)
        return name;
    name = name_find(disk, "");
    rv_assert(name != NULL && strlen(text) < DISK_NAME_BYTES);
    snprintf(name->text, sizeof name->text, "%s", text);
    return name;
}

static void name_set(struct disk_file **place, struct disk_file *file)
{
    if (file != NULL)
        file->users++;
    file_release(*place);
    *place = file;
}

static void names_sync(struct disk *disk)
{
    for (size_t i = 0; i < NAMES_MAX; i++)
        name_set(&disk->names[i].kept, disk->names[i].seen);
}

struct disk *disk_new(uint64_t seed)
{
    struct disk *disk = calloc(1, sizeof *disk);
    rv_assert(disk != NULL);
    rv_prng_init(&disk->dice, seed);
    disk->in_place = chance(disk, 500);
    return disk;
}

void disk_free(struct disk *disk)
{
    if (disk == NULL)
        return;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        name_set(&disk->names[i].seen, NULL);
        name_set(&disk->names[i].kept, NULL);
    }
    free(disk);
}

struct disk *disk_copy(const struct disk *disk)
{
    struct disk *copy = disk_new(1);
    for (size_t i = 0; i < NAMES_MAX; i++) {
        const struct disk_file *file = disk->names[i].seen;
        if (file == NULL)
            continue;
        name_set(&name_need(copy, disk->names[i].text)->seen, file_twin(file));
    }
    return copy;
}

/* ---- what may befall it ---- */

void disk_arm(struct disk *disk, enum disk_fault fault, uint64_t after, bool sticky)
{
    disk->fault = fault;
    disk->left = after;
    disk->sticky = sticky;
    disk->struck = false;
}

bool disk_struck(const struct disk *disk)
{
    return disk->struck;
}

void disk_calm(struct disk *disk, bool calm)
{
    disk->calm = calm;
}

void disk_lie(struct disk *disk)
{
    disk->lies = true;
}

void disk_die(struct disk *disk)
{
    disk->dead = true;
}

bool disk_dead(const struct disk *disk)
{
    return disk->dead;
}

uint64_t disk_operations(const struct disk *disk)
{
    return disk->operations;
}

void disk_restart(struct disk *disk, bool power, uint32_t keep)
{
    disk->dead = false;
    bool evicts = chance(disk, 500);
    for (size_t i = 0; i < NAMES_MAX; i++) {
        struct name *name = &disk->names[i];
        if (power && name->seen != name->kept) {
            bool kept = chance(disk, keep);
            name_set(kept ? &name->kept : &name->seen, kept ? name->seen : name->kept);
        }
        if (name->seen == NULL)
            continue;
        if (power)
            file_lose(disk, name->seen, keep);
        else if (evicts)
            file_evict(name->seen);
    }
}

bool disk_rot(struct disk *disk, const char *name, uint64_t at, uint8_t bits)
{
    struct name *found = name_find(disk, name);
    struct disk_file *file = found ? found->seen : NULL;
    if (file == NULL || at >= file->seen_bytes)
        return false;
    file->seen[at] ^= bits;
    file->kept[at] ^= bits;
    return true;
}

/* Counts an operation and says whether the armed fault strikes it. */
static bool strikes(struct disk *disk, bool concerned)
{
    if (!concerned || disk->calm || (disk->struck && !disk->sticky))
        return false;
    if (disk->left > 0) {
        disk->left--;
        return false;
    }
    disk->struck = true;
    if (disk->fault == DISK_DEATH)
        disk->dead = true;
    return true;
}

/* What an operation comes to that fails the same way whatever it is: dead, or dying in it. */
static bool dies(struct disk *disk)
{
    disk->operations += !disk->calm;
    return strikes(disk, disk->fault == DISK_DEATH);
}

static int failed(struct disk_handle *handle, int error)
{
    handle->error = error;
    return error;
}

/* ---- operations ---- */

static int full_error(struct disk *disk)
{
    bool concerned = disk->fault == DISK_FULL || disk->fault == DISK_QUOTA;
    if (!strikes(disk, concerned))
        return 0;
    return disk->fault == DISK_FULL ? ENOSPC : EDQUOT;
}

static int file_make(struct disk *disk, const char *name, struct disk_handle *handle)
{
    int error = full_error(disk);
    if (error != 0)
        return error;
    handle->file = file_new();
    if (name != NULL)
        name_set(&name_need(disk, name)->seen, handle->file);
    return 0;
}

int disk_open(struct disk *disk, const char *name, bool create, struct disk_handle *ret_handle)
{
    struct disk_handle handle = {.disk = disk};
    if (disk->dead || dies(disk))
        return EIO;
    struct name *found = name != NULL ? name_find(disk, name) : NULL;
    handle.file = found ? found->seen : NULL;
    if (handle.file == NULL && !create)
        return ENOENT;
    int error = handle.file == NULL ? file_make(disk, name, &handle) : 0;
    if (error != 0)
        return error;
    handle.file->users++;
    *ret_handle = handle;
    return 0;
}

void disk_close(struct disk_handle *handle)
{
    file_release(handle->file);
    handle->file = NULL;
}

int disk_read(struct disk_handle *handle, void *at, size_t bytes, uint64_t offset,
              size_t *ret_bytes)
{
    struct disk *disk = handle->disk;
    const struct disk_file *file = handle->file;
    bool gone = disk->dead && !disk->calm;
    if (gone || dies(disk) || strikes(disk, disk->fault == DISK_READ))
        return failed(handle, EIO);
    uint64_t there = offset < file->seen_bytes ? file->seen_bytes - offset : 0;
    *ret_bytes = there < bytes ? (size_t)there : bytes;
    if (*ret_bytes > 0)
        memcpy(at, file->seen + offset, *ret_bytes);
    return 0;
}

/* What a write that does not come to its end leaves: whole sectors of its beginning. */
static void file_write_part(struct disk *disk, struct disk_file *file, const void *at, size_t bytes,
                            uint64_t offset)
{
    size_t part = roll(disk, bytes / DISK_SECTOR_BYTES + 1) * DISK_SECTOR_BYTES;
    file_write(file, at, part < bytes ? part : 0, offset);
}

int disk_write(struct disk_handle *handle, const void *at, size_t bytes, uint64_t offset)
{
    struct disk *disk = handle->disk;
    struct disk_file *file = handle->file;
    if (disk->dead)
        return failed(handle, EIO);
    if (dies(disk) || strikes(disk, disk->fault == DISK_WRITE)) {
        file_write_part(disk, file, at, bytes, offset);
        return failed(handle, EIO);
    }
    bool needs_space = !disk->in_place || offset + bytes > file->seen_bytes;
    int error = needs_space ? full_error(disk) : 0;
    if (error != 0) {
        file_write_part(disk, file, at, bytes, offset);
        return failed(handle, error);
    }
    file_write(file, at, bytes, offset);
    return 0;
}

int disk_truncate(struct disk_handle *handle, uint64_t bytes)
{
    struct disk *disk = handle->disk;
    if (disk->dead || dies(disk) || strikes(disk, disk->fault == DISK_WRITE))
        return failed(handle, EIO);
    file_truncate(handle->file, bytes);
    return 0;
}

int disk_sync(struct disk_handle *handle)
{
    struct disk *disk = handle->disk;
    if (disk->dead || dies(disk))
        return failed(handle, EIO);
    if (strikes(disk, disk->fault == DISK_SYNC)) {
        file_sync_fails(disk, handle->file);
        return failed(handle, EIO);
    }
    if (disk->lies)
        return 0;
    file_sync(handle->file);
    if (handle->sync_names)
        names_sync(disk);
    handle->sync_names = false;
    return 0;
}

int disk_size(struct disk_handle *handle, uint64_t *ret_bytes)
{
    if (handle->disk->dead)
        return failed(handle, EIO);
    *ret_bytes = handle->file->seen_bytes;
    return 0;
}

int disk_remove(struct disk *disk, const char *name, bool sync_names)
{
    if (disk->dead || dies(disk))
        return EIO;
    struct name *found = name_find(disk, name);
    if (found == NULL || found->seen == NULL)
        return ENOENT;
    name_set(&found->seen, NULL);
    if (sync_names && !disk->lies)
        names_sync(disk);
    return 0;
}

uint64_t disk_bytes_of(const struct disk *disk, const char *name)
{
    for (size_t i = 0; i < NAMES_MAX; i++)
        if (strcmp(disk->names[i].text, name) == 0 && disk->names[i].seen != NULL)
            return disk->names[i].seen->seen_bytes;
    return 0;
}
