#include "api/keys.h"

#include "api/digest.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/random.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "reeve_";
enum { PREFIX_BYTES = sizeof prefix - 1 };

static void random_text(char *room, size_t len)
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    rv_random_bytes(room, len);
    for (size_t i = 0; i < len; i++)
        room[i] = digits[(unsigned char)room[i] & 31];
}

enum rv_err rv_key_make(struct rv_arena *arena, struct rv_api_key *ret_key, struct rv_str *ret_text)
{
    char id[RV_API_KEY_ID_BYTES];
    char secret[RV_KEY_SECRET_BYTES];
    random_text(id, sizeof id);
    random_text(secret, sizeof secret);
    ret_key->id = rv_arena_str(arena, (struct rv_str){id, sizeof id});
    *ret_text = rv_arena_printf(arena, "%s%.*s_%.*s", prefix, (int)sizeof id, id,
                                (int)sizeof secret, secret);
    if (ret_key->id.at == NULL || ret_text->at == NULL)
        return RV_ERR_MEMORY;
    ret_key->hash = rv_digest_hex(arena, *ret_text);
    return ret_key->hash.at != NULL ? RV_OK : RV_ERR_MEMORY;
}

void rv_keys_init(struct rv_keys *keys)
{
    *keys = (struct rv_keys){.rows = NULL};
}

void rv_keys_done(struct rv_keys *keys)
{
    free(keys->rows);
    *keys = (struct rv_keys){.rows = NULL};
}

/* Where the id stands, or would. */
static size_t place_of(const struct rv_keys *keys, const char *id)
{
    size_t low = 0;
    size_t high = keys->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(keys->rows[middle].id, id, RV_API_KEY_ID_BYTES) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    rv_assert(low <= keys->count);
    return low;
}

static bool stands_at(const struct rv_keys *keys, size_t place, const char *id)
{
    return place < keys->count && memcmp(keys->rows[place].id, id, RV_API_KEY_ID_BYTES) == 0;
}

static unsigned hex_value(char c)
{
    return (unsigned)(c >= 'a' ? c - 'a' + 10 : c - '0') & 15;
}

static void text_take(char *room, struct rv_str text)
{
    rv_assert(text.len <= RV_NAME_BYTES_MAX);
    if (text.len > 0)
        memcpy(room, text.at, text.len);
    room[text.len] = '\0';
}

enum rv_err rv_keys_add(struct rv_keys *keys, const struct rv_api_key *key)
{
    rv_assert(key->id.len == RV_API_KEY_ID_BYTES);
    rv_assert(key->hash.len == RV_API_KEY_HASH_BYTES);
    size_t place = place_of(keys, key->id.at);
    bool new = !stands_at(keys, place, key->id.at);
    if (!RV_ARRAY_ROOM(keys->rows, keys->count, keys->room))
        return RV_ERR_MEMORY;
    struct rv_key *row = &keys->rows[place];
    rv_assert(keys->count < keys->room);
    if (new)
        memmove(row + 1, row, (keys->count++ - place) * sizeof *row);
    memcpy(row->id, key->id.at, sizeof row->id);
    for (size_t i = 0; i < sizeof row->digest; i++)
        row->digest[i] = (unsigned char)(hex_value(key->hash.at[2 * i]) << 4 |
                                         hex_value(key->hash.at[2 * i + 1]));
    row->role = key->role;
    text_take(row->agent, key->agent);
    text_take(row->name, key->name);
    return RV_OK;
}

void rv_keys_remove(struct rv_keys *keys, struct rv_str id)
{
    rv_assert(id.len == RV_API_KEY_ID_BYTES);
    size_t place = place_of(keys, id.at);
    if (!stands_at(keys, place, id.at))
        return;
    keys->count--;
    memmove(&keys->rows[place], &keys->rows[place + 1], (keys->count - place) * sizeof *keys->rows);
}

const struct rv_key *rv_keys_find(const struct rv_keys *keys, struct rv_str text)
{
    static const struct rv_key nobody;
    unsigned char digest[sizeof nobody.digest];
    if (text.len != RV_KEY_TEXT_BYTES || memcmp(text.at, prefix, PREFIX_BYTES) != 0)
        return NULL;
    rv_digest(text, digest);
    const char *id = text.at + PREFIX_BYTES;
    size_t place = place_of(keys, id);
    const struct rv_key *row = stands_at(keys, place, id) ? &keys->rows[place] : &nobody;
    bool same = CRYPTO_memcmp(row->digest, digest, sizeof digest) == 0;
    return same && row != &nobody ? row : NULL;
}

bool rv_keys_hold(const struct rv_keys *keys, struct rv_str id)
{
    return id.len == RV_API_KEY_ID_BYTES && stands_at(keys, place_of(keys, id.at), id.at);
}

bool rv_keys_have_admin(const struct rv_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        if (keys->rows[i].role == RV_ROLE_ADMIN)
            return true;
    return false;
}
