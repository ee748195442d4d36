/* An arena is a list of blocks. A take that does not fit the current block goes to the next one
 * that is large enough; blocks double in size up to 256 KiB, so that an arena which serves a
 * thousand commands asks the system a handful of times. */
#include "base/arena.h"

#include "base/assert.h"
#include "base/format.h"

#include <stdio.h>
#include <stdlib.h>

/* The first block is small: a parked request holds it and needs little of it. The build of the
 * torture test makes all of them small and keeps none, so that every take may fail. */
#ifndef BLOCK_BYTES_MIN
#define BLOCK_BYTES_MIN 512
#define BLOCK_BYTES_MAX (256 * 1024)
#define ARENA_KEEP_BYTES (1024 * 1024)
#endif

struct rv_arena_block {
    struct rv_arena_block *next; /* owned */
    size_t bytes;                /* of the payload that follows this header */
};

static char *block_payload(struct rv_arena_block *block)
{
    return (char *)block + ((sizeof *block + RV_ARENA_ALIGN - 1) & ~(size_t)(RV_ARENA_ALIGN - 1));
}

void rv_arena_init(struct rv_arena *arena, size_t bytes_max)
{
    *arena = (struct rv_arena){.bytes_max = bytes_max};
}

static void blocks_free(struct rv_arena_block *block)
{
    while (block != NULL) {
        struct rv_arena_block *next = block->next;
        free(block);
        block = next;
    }
}

void rv_arena_done(struct rv_arena *arena)
{
    blocks_free(arena->first);
    *arena = (struct rv_arena){.bytes_max = arena->bytes_max};
}

static void arena_enter(struct rv_arena *arena, struct rv_arena_block *block)
{
    arena->current = block;
    arena->next = block ? block_payload(block) : NULL;
    arena->end = block ? arena->next + block->bytes : NULL;
}

void rv_arena_reset(struct rv_arena *arena)
{
    size_t kept = 0;
    for (struct rv_arena_block *b = arena->first; b != NULL; b = b->next) {
        kept += b->bytes;
        if (kept > ARENA_KEEP_BYTES || (b->next && kept + b->next->bytes > ARENA_KEEP_BYTES)) {
            blocks_free(b->next);
            b->next = NULL;
        }
    }
    arena_enter(arena, arena->first);
    arena->bytes_taken = 0;
    arena->refused = RV_OK;
}

void rv_arena_release(struct rv_arena *arena, struct rv_arena_mark mark)
{
    rv_assert(mark.bytes_taken <= arena->bytes_taken);
    if (mark.current == NULL) {
        rv_assert(mark.bytes_taken == 0);
        rv_arena_reset(arena);
        arena->refused = mark.refused;
        return;
    }
    rv_assert(mark.next <= mark.end);
    arena->current = mark.current;
    arena->next = mark.next;
    arena->end = mark.end;
    arena->bytes_taken = mark.bytes_taken;
    arena->refused = mark.refused;
}

static void *arena_refuse(struct rv_arena *arena, enum rv_err why)
{
    if (arena->refused != RV_ERR_MEMORY)
        arena->refused = why;
    return NULL;
}

/* Makes `bytes` (aligned start) available in the current block, or says no. */
static bool arena_grow(struct rv_arena *arena, size_t bytes)
{
    struct rv_arena_block *last = arena->current;
    while (last != NULL && last->next != NULL) {
        if (last->next->bytes >= bytes) {
            arena_enter(arena, last->next);
            return true;
        }
        last = last->next;
    }
    size_t size = last ? last->bytes * 2 : BLOCK_BYTES_MIN;
    if (size > BLOCK_BYTES_MAX)
        size = BLOCK_BYTES_MAX;
    if (size < bytes)
        size = bytes;
    struct rv_arena_block *block = malloc(sizeof *block + RV_ARENA_ALIGN + size);
    if (block == NULL)
        return false;
    *block = (struct rv_arena_block){.next = NULL, .bytes = size};
    if (last == NULL)
        arena->first = block;
    else
        last->next = block;
    arena_enter(arena, block);
    return true;
}

void *rv_arena_cut(struct rv_arena *arena, size_t bytes, size_t align)
{
    bool over = arena->bytes_max != 0 &&
                (bytes > arena->bytes_max || arena->bytes_taken > arena->bytes_max - bytes);
    if (over || bytes > SIZE_MAX / 2)
        return arena_refuse(arena, RV_ERR_LIMIT);
    rv_assert(align != 0);
    rv_assert((align & (align - 1)) == 0);
    rv_assert(align <= RV_ARENA_ALIGN);
    size_t pad = -(uintptr_t)arena->next & (align - 1);
    if (arena->next == NULL || (size_t)(arena->end - arena->next) < bytes + pad) {
        if (!arena_grow(arena, bytes))
            return arena_refuse(arena, RV_ERR_MEMORY);
        pad = 0; /* a block's payload begins aligned */
    }
    char *at = arena->next + pad;
    arena->next = at + bytes;
    arena->bytes_taken += bytes;
    rv_assert(arena->next <= arena->end);
    return at;
}

void *rv_arena_room(struct rv_arena *arena, size_t count, size_t bytes_each)
{
    if (bytes_each != 0 && count > SIZE_MAX / 2 / bytes_each)
        return arena_refuse(arena, RV_ERR_LIMIT);
    return rv_arena_take(arena, count * bytes_each);
}

void *rv_arena_zero(struct rv_arena *arena, size_t count, size_t bytes_each)
{
    void *at = rv_arena_room(arena, count, bytes_each);
    if (at != NULL)
        memset(at, 0, count * bytes_each);
    return at;
}

struct rv_str rv_arena_str(struct rv_arena *arena, struct rv_str text)
{
    if (text.at == NULL)
        return text;
    char *at = rv_arena_bytes(arena, text.len + 1);
    if (at == NULL)
        return RV_STR_NONE;
    memcpy(at, text.at, text.len);
    at[text.len] = '\0';
    return (struct rv_str){at, text.len};
}

struct rv_str rv_arena_vprintf(struct rv_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    char stack[256];
    int n = rv_format(stack, sizeof stack, format, args);
    struct rv_str made = RV_STR_NONE;
    if (n >= 0 && (size_t)n < sizeof stack) {
        made = rv_arena_str(arena, (struct rv_str){stack, (size_t)n});
    } else if (n >= 0) {
        char *at = rv_arena_bytes(arena, (size_t)n + 1);
        if (at != NULL && rv_format(at, (size_t)n + 1, format, again) == n)
            made = (struct rv_str){at, (size_t)n};
    }
    va_end(again);
    return made;
}

struct rv_str rv_arena_printf(struct rv_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct rv_str made = rv_arena_vprintf(arena, format, args);
    va_end(args);
    return made;
}
