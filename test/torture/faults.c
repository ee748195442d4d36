/* Every block that was taken inside the product is noted by its address, so that one that is never
 * given back is found without waiting for the end of the process, and can be named. */
#include "faults.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *at, size_t bytes);
void __real_free(void *at);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *at, size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);
void __wrap_free(void *at);

struct faults faults;
size_t faults_block_bytes;

static _Thread_local int depth; /* of the product's calls, in the thread that runs the scenario */
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER; /* blocks are given back by any thread */

/* ---- what lives: an open table by address ---- */

struct block {
    const void *at; /* NULL: the place is free */
    size_t bytes;
    uint64_t number; /* of the call that took it */
};

static struct block *blocks;
static size_t blocks_room;
static size_t blocks_count;

static size_t place_of(const void *at)
{
    uint64_t mixed = (uint64_t)(uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(mixed >> 20) & (blocks_room - 1);
    while (blocks[i].at != NULL && blocks[i].at != at)
        i = (i + 1) & (blocks_room - 1);
    return i;
}

static void table_grow(void)
{
    struct block *old = blocks;
    size_t old_room = blocks_room;
    blocks_room = old_room != 0 ? old_room * 2 : 4096;
    blocks = __real_calloc(blocks_room, sizeof *blocks);
    if (blocks == NULL)
        abort();
    for (size_t i = 0; i < old_room; i++)
        if (old[i].at != NULL)
            blocks[place_of(old[i].at)] = old[i];
    __real_free(old);
}

static void note(const void *at, size_t bytes)
{
    if (at == NULL || depth == 0)
        return;
    pthread_mutex_lock(&table);
    if (2 * blocks_count >= blocks_room)
        table_grow();
    blocks[place_of(at)] = (struct block){at, bytes, faults.calls};
    blocks_count++;
    pthread_mutex_unlock(&table);
}

/* Whatever stood behind a freed place moves up, so that it is still found. */
static void block_remove(const void *at)
{
    size_t hole = blocks_room != 0 && at != NULL ? place_of(at) : 0;
    if (blocks_room == 0 || at == NULL || blocks[hole].at == NULL)
        return;
    blocks[hole].at = NULL;
    blocks_count--;
    for (size_t i = (hole + 1) & (blocks_room - 1); blocks[i].at != NULL;
         i = (i + 1) & (blocks_room - 1)) {
        struct block moved = blocks[i];
        blocks[i].at = NULL;
        blocks[place_of(moved.at)] = moved;
    }
}

static void unnote(const void *at)
{
    pthread_mutex_lock(&table);
    block_remove(at);
    pthread_mutex_unlock(&table);
}

size_t faults_live(void)
{
    return blocks_count;
}

void faults_forget(void)
{
    if (blocks_room != 0)
        memset(blocks, 0, blocks_room * sizeof *blocks);
    blocks_count = 0;
}

void faults_print_live(void)
{
    for (size_t i = 0; i < blocks_room; i++)
        if (blocks[i].at != NULL)
            fprintf(stderr, "# %zu bytes, taken by call %llu, were not given back\n",
                    blocks[i].bytes, (unsigned long long)blocks[i].number);
}

/* ---- failing ---- */

void faults_arm(uint64_t fail_at, bool sticky)
{
    faults = (struct faults){.fail_at = fail_at, .sticky = sticky};
}

void faults_heal(void)
{
    faults.fail_at = 0;
}

void faults_enter(void)
{
    depth++;
}

void faults_leave(void)
{
    depth--;
}

#if defined(__SANITIZE_ADDRESS__)
void __sanitizer_print_stack_trace(void);
#endif

/* One run alone says where it was hurt. */
static void show_place(void)
{
#if defined(__SANITIZE_ADDRESS__)
    static bool shown;
    if (!shown && getenv("TORTURE_PLACE") != NULL)
        __sanitizer_print_stack_trace();
    shown = true;
#endif
}

static bool refused(void)
{
    if (depth == 0)
        return false;
    faults.calls++;
    bool refuses = faults.fail_at != 0 && (faults.sticky ? faults.calls >= faults.fail_at
                                                         : faults.calls == faults.fail_at);
    if (refuses)
        show_place();
    faults.failed = faults.failed || refuses;
    return refuses;
}

/* ---- the heap ---- */

void *__wrap_malloc(size_t bytes)
{
    void *at = refused() ? NULL : __real_malloc(bytes);
    note(at, bytes);
    return at;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    void *at = refused() ? NULL : __real_calloc(count, bytes);
    note(at, count * bytes);
    return at;
}

/* A failed realloc leaves the block as it was. */
void *__wrap_realloc(void *at, size_t bytes)
{
    if (refused())
        return NULL;
    unnote(at);
    void *moved = __real_realloc(at, bytes);
    if (moved == NULL)
        abort(); /* the machine itself has no memory: the run tells nothing */
    note(moved, bytes);
    return moved;
}

char *__wrap_strndup(const char *text, size_t len)
{
    size_t bytes = strnlen(text, len);
    char *copy = __wrap_malloc(bytes + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, strlen(text));
}

void __wrap_free(void *at)
{
    unnote(at);
    __real_free(at);
}

/* ---- SQLite ---- */

static void *sqlite_malloc(int bytes)
{
    return __wrap_malloc((size_t)bytes);
}

static void *sqlite_realloc(void *at, int bytes)
{
    return __wrap_realloc(at, (size_t)bytes);
}

static int sqlite_size(void *at)
{
    return at != NULL ? (int)malloc_usable_size(at) : 0;
}

static int sqlite_roundup(int bytes)
{
    return (bytes + 7) & ~7;
}

static int sqlite_init(void *context)
{
    (void)context;
    return SQLITE_OK;
}

static void sqlite_shutdown(void *context)
{
    (void)context;
}

void faults_take_sqlite(void)
{
    static const struct sqlite3_mem_methods heap = {
        .xMalloc = sqlite_malloc,
        .xFree = __wrap_free,
        .xRealloc = sqlite_realloc,
        .xSize = sqlite_size,
        .xRoundup = sqlite_roundup,
        .xInit = sqlite_init,
        .xShutdown = sqlite_shutdown,
    };
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &heap) != SQLITE_OK ||
        sqlite3_initialize() != SQLITE_OK)
        abort();
}
