/* keys.h - API keys: how one is made, and those that are valid now, in memory. */
#ifndef RV_API_KEYS_H
#define RV_API_KEYS_H

#include "base/limits.h"
#include "core/api_key.h"

#include <stdbool.h>
#include <stddef.h>

/* A key's text is "reeve_", its id, "_" and RV_KEY_SECRET_BYTES characters of Crockford's alphabet
 * in lower case: 200 bits from the system's random source. */
enum {
    RV_KEY_SECRET_BYTES = 40,
    RV_KEY_TEXT_BYTES = 6 + RV_API_KEY_ID_BYTES + 1 + RV_KEY_SECRET_BYTES
};

/* Makes one: its id and hash in *ret_key, its text, all on the arena. MEMORY. */
RV_CHECK enum rv_err rv_key_make(struct rv_arena *arena, struct rv_api_key *ret_key,
                                 struct rv_str *ret_text);

/* A key that is valid. */
struct rv_key {
    char id[RV_API_KEY_ID_BYTES];
    unsigned char digest[RV_API_KEY_HASH_BYTES / 2];
    enum rv_role role;
    char agent[RV_NAME_BYTES_MAX + 1];
    char name[RV_NAME_BYTES_MAX + 1];
};

/* One thread's, at a time. */
struct rv_keys {
    struct rv_key *rows; /* owned, by id */
    size_t count;
    size_t room;
    size_t unreadable; /* records that are no keys: they open nothing, and shut the door */
};

void rv_keys_init(struct rv_keys *keys);
void rv_keys_done(struct rv_keys *keys);
/* MEMORY: it is not in. */
RV_CHECK enum rv_err rv_keys_add(struct rv_keys *keys, const struct rv_api_key *key);
void rv_keys_remove(struct rv_keys *keys, struct rv_str id);
/* The key with this text; NULL: there is none. A wrong one takes as long as a right one. */
const struct rv_key *rv_keys_find(const struct rv_keys *keys, struct rv_str text);
/* By id: is it valid still? */
bool rv_keys_hold(const struct rv_keys *keys, struct rv_str id);
bool rv_keys_have_admin(const struct rv_keys *keys);

#endif
