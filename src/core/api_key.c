#include "core/api_key.h"

#include "base/assert.h"
#include "base/limits.h"
#include "json/json.h"

static const struct {
    const char *text;
    const char *purpose;
} roles[RV_ROLE_COUNT] = {
#define RV_ROLE(name, text, purpose) {text, purpose},
#include "core/tbl/role.def"
#undef RV_ROLE
};

const char *rv_role_text(enum rv_role role)
{
    return (unsigned)role < RV_ROLE_COUNT ? roles[role].text : "?";
}

const char *rv_role_purpose(enum rv_role role)
{
    return (unsigned)role < RV_ROLE_COUNT ? roles[role].purpose : "?";
}

bool rv_role_parse(struct rv_str text, enum rv_role *ret_role)
{
    for (unsigned i = 0; i < RV_ROLE_COUNT; i++) {
        if (rv_str_is(text, roles[i].text)) {
            *ret_role = (enum rv_role)i;
            return true;
        }
    }
    return false;
}

static void member_write(struct rv_buf *buf, const char *name, struct rv_str text)
{
    if (text.at == NULL)
        return;
    rv_buf_printf(buf, "%c\"%s\":", buf->len == 0 ? '{' : ',', name);
    rv_json_write_string(buf, text);
}

void rv_api_key_write(struct rv_buf *buf, const struct rv_api_key *key)
{
    rv_assert(buf->len == 0); /* the first member also opens the object */
    rv_assert(key->role < RV_ROLE_COUNT);
    member_write(buf, "role", rv_str_of(rv_role_text(key->role)));
    member_write(buf, "agent", key->agent);
    member_write(buf, "name", key->name);
    member_write(buf, "hash", key->hash);
    rv_buf_add_char(buf, '}');
}

static struct rv_str member_read(const struct rv_json *object, const char *name)
{
    return rv_json_str(rv_json_get(object, rv_str_of(name)));
}

enum rv_err rv_api_key_read(struct rv_arena *arena, const struct rv_record *record,
                            struct rv_api_key *ret_key)
{
    struct rv_json value;
    enum rv_err err = rv_json_parse(arena, record->value, RV_JSON_DEPTH_MAX, &value, NULL);
    if (err == RV_ERR_MEMORY)
        return err;
    if (err != RV_OK || value.type != RV_JSON_OBJECT)
        return RV_ERR_INVALID;
    *ret_key = (struct rv_api_key){.id = record->key,
                                   .agent = member_read(&value, "agent"),
                                   .name = member_read(&value, "name"),
                                   .hash = member_read(&value, "hash"),
                                   .created_at = record->at};
    bool good = rv_role_parse(member_read(&value, "role"), &ret_key->role) &&
                ret_key->id.len == RV_API_KEY_ID_BYTES &&
                ret_key->hash.len == RV_API_KEY_HASH_BYTES &&
                ret_key->name.len <= RV_NAME_BYTES_MAX && ret_key->agent.len <= RV_NAME_BYTES_MAX &&
                (ret_key->agent.len > 0) == (ret_key->role == RV_ROLE_AGENT);
    return good ? RV_OK : RV_ERR_INVALID;
}
