#include "api/digest.h"

#include "base/assert.h"

#include <openssl/sha.h>

struct rv_str rv_digest_hex(struct rv_arena *arena, struct rv_str bytes)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    unsigned char *made = SHA256((const unsigned char *)bytes.at, bytes.len, digest);
    rv_assert(made != NULL);
    char *hex = rv_arena_bytes(arena, 2 * sizeof digest);
    if (hex == NULL)
        return RV_STR_NONE;
    for (size_t i = 0; i < sizeof digest; i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    return (struct rv_str){hex, 2 * sizeof digest};
}
