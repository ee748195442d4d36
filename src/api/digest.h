/* digest.h - SHA-256, for content that is pinned by its hash and keys that are known by theirs. */
#ifndef RV_API_DIGEST_H
#define RV_API_DIGEST_H

#include "base/arena.h"
#include "base/str.h"

enum { RV_DIGEST_BYTES = 32 };

void rv_digest(struct rv_str bytes, unsigned char ret_digest[static RV_DIGEST_BYTES]);
/* 64 hex digits on the arena; absent when it is full. */
struct rv_str rv_digest_hex(struct rv_arena *arena, struct rv_str bytes);

#endif
