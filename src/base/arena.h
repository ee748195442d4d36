/* arena.h - memory for one batch, one request, one definition; freed all at once. */
#ifndef RV_BASE_ARENA_H
#define RV_BASE_ARENA_H

#include "base/err.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_arena_block;

/* Blocks are kept on reset, so a warm arena allocates nothing from the system. `bytes_max` caps
 * what may be taken between two resets; over it every take gives NULL. `refused` says that some
 * take did and why: LIMIT for the cap, MEMORY (which counts more) for the system. */
struct rv_arena {
    struct rv_arena_block *first; /* owned */
    struct rv_arena_block *current;
    char *next;
    char *end;
    size_t bytes_taken;
    size_t bytes_max;
    enum rv_err refused; /* OK: none was */
};

/* `bytes_max` 0 means no cap of its own. Takes no memory yet. */
void rv_arena_init(struct rv_arena *arena, size_t bytes_max);
void rv_arena_done(struct rv_arena *arena);
/* Forgets everything taken. Keeps at most 1 MiB of blocks for the next use. */
void rv_arena_reset(struct rv_arena *arena);

/* A point to come back to: everything taken and refused after the mark is forgotten by release. */
struct rv_arena_mark {
    struct rv_arena_block *current;
    char *next;
    char *end;
    size_t bytes_taken;
    enum rv_err refused;
};
static inline struct rv_arena_mark rv_arena_mark(const struct rv_arena *arena)
{
    return (struct rv_arena_mark){arena->current, arena->next, arena->end, arena->bytes_taken,
                                  arena->refused};
}
void rv_arena_release(struct rv_arena *arena, struct rv_arena_mark mark);

enum { RV_ARENA_ALIGN = 16 };

/* What the takes below do where the present block or the cap has no room. `align` is a power of
 * two. */
void *rv_arena_cut(struct rv_arena *arena, size_t bytes, size_t align);

static inline void *rv_arena_cut_here(struct rv_arena *arena, size_t bytes, size_t align)
{
    size_t room = (size_t)(arena->end - arena->next);
    size_t pad = -(uintptr_t)arena->next & (align - 1);
    bool over = arena->bytes_max != 0 &&
                (bytes > arena->bytes_max || arena->bytes_taken > arena->bytes_max - bytes);
    if (arena->next == NULL || over || bytes > room || pad > room - bytes)
        return rv_arena_cut(arena, bytes, align);
    char *at = arena->next + pad;
    arena->next = at + bytes;
    arena->bytes_taken += bytes;
    return at;
}

/* Aligned to 16; contents undefined (take, room) or zero (zero). NULL if cap or system say no. */
static inline void *rv_arena_take(struct rv_arena *arena, size_t bytes)
{
    return rv_arena_cut_here(arena, bytes, RV_ARENA_ALIGN);
}
void *rv_arena_room(struct rv_arena *arena, size_t count, size_t bytes_each);
void *rv_arena_zero(struct rv_arena *arena, size_t count, size_t bytes_each);

/* Unaligned bytes, for text. */
static inline char *rv_arena_bytes(struct rv_arena *arena, size_t bytes)
{
    return (char *)rv_arena_cut_here(arena, bytes, 1);
}
/* Copies end with a NUL that is not counted. On failure `at` is NULL; an absent string stays so. */
struct rv_str rv_arena_str(struct rv_arena *arena, struct rv_str text);
struct rv_str rv_arena_printf(struct rv_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct rv_str rv_arena_vprintf(struct rv_arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#define RV_NEW(arena, type) ((type *)rv_arena_zero((arena), 1, sizeof(type)))
#define RV_NEW_ARRAY(arena, type, count) ((type *)rv_arena_zero((arena), (count), sizeof(type)))
/* An array each of whose members is written as a whole before it is read: a page of rows. */
#define RV_ROOM(arena, type, count) ((type *)rv_arena_room((arena), (count), sizeof(type)))

#endif
