/* digest.h - SHA-256, for content that is pinned by its hash. */
#ifndef RV_API_DIGEST_H
#define RV_API_DIGEST_H

#include "base/arena.h"
#include "base/str.h"

/* 64 hex digits on the arena; absent when it is full. */
struct rv_str rv_digest_hex(struct rv_arena *arena, struct rv_str bytes);

#endif
