#include "api/digest.h"

#include "base/assert.h"

#include <assert.h>
#include <openssl/sha.h>

static_assert((int)RV_DIGEST_BYTES == (int)SHA256_DIGEST_LENGTH, "SHA-256");

void rv_digest(struct rv_str bytes, unsigned char ret_digest[static RV_DIGEST_BYTES])
{
    unsigned char *made = SHA256((const unsigned char *)bytes.at, bytes.len, ret_digest);
    rv_assert(made != NULL);
}

struct rv_str rv_digest_hex(struct rv_arena *arena, struct rv_str bytes)
{
    unsigned char digest[RV_DIGEST_BYTES];
    rv_digest(bytes, digest);
    char *hex = rv_arena_bytes(arena, 2 * sizeof digest);
    if (hex == NULL)
        return RV_STR_NONE;
    for (size_t i = 0; i < sizeof digest; i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    return (struct rv_str){hex, 2 * sizeof digest};
}
