/* api_key.h - who may ask the server for what: roles, and a key as the store keeps it. */
#ifndef RV_CORE_API_KEY_H
#define RV_CORE_API_KEY_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/rows.h"

#include <stdbool.h>
#include <stdint.h>

enum rv_role {
#define RV_ROLE(name, text, purpose) RV_ROLE_##name,
#include "core/tbl/role.def"
#undef RV_ROLE
    RV_ROLE_COUNT
};

const char *rv_role_text(enum rv_role role);
const char *rv_role_purpose(enum rv_role role);
bool rv_role_parse(struct rv_str text, enum rv_role *ret_role);

/* The kind of the records that hold keys; such a record's key is the API key's id. */
#define RV_RECORD_API_KEY "api-key"

enum { RV_API_KEY_ID_BYTES = 8, RV_API_KEY_HASH_BYTES = 64 };

/* A key as it is kept: its text was shown once and is nowhere, its hash tells it again. */
struct rv_api_key {
    struct rv_str id; /* RV_API_KEY_ID_BYTES digits and lower-case letters */
    enum rv_role role;
    struct rv_str agent; /* AGENT: the one agent whose steps it is for; else absent */
    struct rv_str name;  /* what people call it; absent: nothing */
    struct rv_str hash;  /* hex SHA-256 of the key's text */
    int64_t created_at;
};

/* The record's value, JSON. */
void rv_api_key_write(struct rv_buf *buf, const struct rv_api_key *key);
/* INVALID: it is none. MEMORY. Texts are on the arena. */
RV_CHECK enum rv_err rv_api_key_read(struct rv_arena *arena, const struct rv_record *record,
                                     struct rv_api_key *ret_key);

#endif
