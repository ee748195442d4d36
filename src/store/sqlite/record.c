/* The lock file, and its second line: which store has its log here ("log"), and how far that has
 * come, or which one was stopped here ("store"), and what its log was then. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD_BYTES = 96 };

static bool lock_name(const char *path, char ret_name[static PATH_MAX])
{
    int len = snprintf(ret_name, PATH_MAX, "%s.lock", path);
    return len > 0 && len < PATH_MAX;
}

int rv_sqlite_lock_open(const char *path, bool *ret_made)
{
    char name[PATH_MAX];
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    errno = ENAMETOOLONG;
    int fd = lock_name(path, name) ? open(name, flags | O_EXCL, 0600) : -1;
    *ret_made = fd >= 0;
    return fd < 0 && errno == EEXIST ? open(name, flags, 0600) : fd;
}

bool rv_sqlite_lock_is_gone(const char *path, int fd)
{
    char name[PATH_MAX];
    struct stat mine, there;
    if (!lock_name(path, name) || fstat(fd, &mine) != 0)
        return false;
    if (stat(name, &there) != 0)
        return errno == ENOENT;
    return mine.st_dev != there.st_dev || mine.st_ino != there.st_ino;
}

bool rv_sqlite_log_there(const char *path)
{
    char name[PATH_MAX + sizeof "-wal"];
    struct stat about;
    int len = snprintf(name, sizeof name, "%s-wal", path);
    return len > 0 && (size_t)len < sizeof name && stat(name, &about) == 0;
}

int64_t rv_sqlite_lock_pid(int fd)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    char *end = NULL;
    long long pid = strtoll(text, &end, 10);
    if (end == text || *end != '\n' || pid <= 0 || pid > INT32_MAX)
        return 0;
    return kill((pid_t)pid, 0) == 0 || errno == EPERM ? pid : 0;
}

void rv_sqlite_lock_unmake(const struct rv_sqlite *store, const char *path)
{
    char name[PATH_MAX];
    if (store->lock_fd >= 0 && store->lock_made && store->recorded.id == 0 && lock_name(path, name))
        (void)unlink(name);
}

/* "BEGUN SALTS FRAMES MARK"; a server of an older version writes no mark, or none of it. False: it
 * is not whole. */
static bool state_read(const char *text, struct rv_record_of_log *recorded)
{
    struct rv_log_state *state = &recorded->state;
    char *end;
    state->begun = (uint32_t)strtoul(text, &end, 16);
    uint64_t salts = *end == ' ' ? strtoull(end, &end, 16) : 0;
    state->salts[0] = (uint32_t)(salts >> 32);
    state->salts[1] = (uint32_t)salts;
    state->frames = *end == ' ' ? (uint32_t)strtoul(end, &end, 10) : 0;
    recorded->marked = *end == ' ' ? (uint32_t)strtoul(end, &end, 16) : 0;
    if (*end == '\n')
        return true;
    state->frames = recorded->marked = 0;
    return false;
}

void rv_sqlite_record_read(struct rv_sqlite *store)
{
    static const char *const kinds[] = {"\nstore ", "\nlog "};
    char text[RECORD_BYTES + 1];
    rv_assert(store->lock_fd >= 0);
    ssize_t n = pread(store->lock_fd, text, RECORD_BYTES, 0);
    text[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *line = strstr(text, kinds[i]);
        char *end = NULL;
        unsigned long id = line != NULL ? strtoul(line + strlen(kinds[i]), &end, 16) : 0;
        if (id == 0 || id > INT32_MAX)
            continue;
        store->recorded = (struct rv_record_of_log){.id = (uint32_t)id, .log = i != 0};
        if (*end == ' ')
            store->recorded.stopped = state_read(end, &store->recorded) && i == 0;
    }
}

/* In one write wherever the length stays: a process may be killed between two. */
bool rv_sqlite_record_write(struct rv_sqlite *store, int64_t pid)
{
    char text[RECORD_BYTES];
    const struct rv_record_of_log *recorded = &store->recorded;
    const struct rv_log_state *state = &recorded->state;
    rv_assert(store->lock_fd >= 0);
    int n = pid != 0 ? snprintf(text, sizeof text, "%lld\n", (long long)pid) : 0;
    if (recorded->id != 0)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s %08x", pid == 0 ? "\n" : "",
                      recorded->log ? "log" : "store", (unsigned)recorded->id);
    if (recorded->id != 0 && (recorded->log || recorded->stopped))
        n += snprintf(text + n, sizeof text - (size_t)n, " %08x %08x%08x %010u %08x",
                      (unsigned)state->begun, (unsigned)state->salts[0], (unsigned)state->salts[1],
                      (unsigned)state->frames, (unsigned)recorded->marked);
    rv_assert(n < RECORD_BYTES);
    if (recorded->id != 0)
        text[n++] = '\n';
    int before = store->lock_bytes;
    store->lock_bytes = -1;
    if (pwrite(store->lock_fd, text, (size_t)n, 0) != n ||
        (n != before && ftruncate(store->lock_fd, n) != 0))
        return false;
    store->lock_bytes = n;
    return true;
}

void rv_sqlite_lock_release(struct rv_sqlite *store)
{
    if (store->lock_fd < 0)
        return;
    (void)rv_sqlite_record_write(store, 0);
    close(store->lock_fd);
}

static struct rv_log_state state_now(const struct rv_sqlite *store)
{
    struct rv_log_state state = {.frames = 0};
    const unsigned char *header = rv_seal_log_head(store->seal);
    if (header == NULL || store->frames <= 0)
        return state;
    rv_log_state_read(header, &state);
    state.frames = (uint32_t)store->frames;
    return state;
}

static bool record_keep(struct rv_sqlite *store)
{
    return rv_sqlite_record_write(store, getpid()) && fdatasync(store->lock_fd) == 0;
}

bool rv_sqlite_record_begin(struct rv_sqlite *store)
{
    if (store->lock_fd < 0 || !store->recorded.stopped)
        return true;
    store->recorded = (struct rv_record_of_log){.id = store->recorded.id};
    return record_keep(store);
}

bool rv_sqlite_record(struct rv_sqlite *store, bool log)
{
    if (store->lock_fd < 0)
        return true;
    store->recorded = (struct rv_record_of_log){.id = store->id, .log = log};
    if (log)
        store->recorded.state = state_now(store);
    else
        store->recorded.stopped = rv_log_find(store->db, &store->recorded.state) == SQLITE_OK;
    return record_keep(store);
}

bool rv_sqlite_record_mark(struct rv_sqlite *store, uint32_t mark)
{
    rv_assert(store->recorded.log);
    store->recorded.marked = mark;
    return record_keep(store);
}

void rv_sqlite_record_log(struct rv_sqlite *store)
{
    struct rv_log_state state = state_now(store);
    if (store->lock_fd < 0 || store->instance == 0 || !store->recorded.log || state.frames == 0)
        return;
    if (memcmp(&state, &store->recorded.state, sizeof state) == 0)
        return;
    store->recorded.state = state;
    (void)rv_sqlite_record_write(store, getpid()); /* one that is behind asks for less */
}
