#include "api/answer.h"
#include "api/put.h"
#include "base/assert.h"

static void key_put(struct rv_buf *buf, const struct rv_api_key *key)
{
    bool readable = key->role < RV_ROLE_COUNT;
    rv_put_text(buf, "id", key->id);
    if (readable)
        rv_put_text(buf, "role", rv_str_of(rv_role_text(key->role)));
    else
        rv_put_bool(buf, "unreadable", true);
    rv_put_text_if(buf, "agent", key->agent);
    rv_put_text_if(buf, "name", key->name);
    rv_put_instant_if(buf, "createdAt", key->created_at);
}

void rv_render_keys(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_KEYS);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_keys *keys = &call->u.keys;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "keys", '[');
    for (size_t i = 0; i < keys->count; i++) {
        rv_put_open(buf, '{');
        key_put(buf, &keys->rows[i]);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    if (keys->count == keys->limit)
        rv_put_text(buf, "next", keys->rows[keys->count - 1].id);
    rv_buf_add_char(buf, '}');
}

/* The one time that the key's text is shown. */
void rv_render_key_add(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_KEY_ADD);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_key *key = &call->u.key;
    answer->status = 201;
    rv_answer_locate(answer, "/v1/keys/");
    rv_answer_locate_name(answer, key->row.id);
    rv_put_open(buf, '{');
    key_put(buf, &key->row);
    rv_put_text_if(buf, "key", key->secret);
    rv_put_bool(buf, "first", key->first);
    rv_buf_add_char(buf, '}');
}

void rv_render_key_revoke(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_KEY_REVOKE);
    const struct rv_api_key *key = &call->u.key.row;
    rv_put_open(&answer->body, '{');
    rv_put_text(&answer->body, "id", key->id);
    rv_put_bool(&answer->body, "revoked", true);
    rv_buf_add_char(&answer->body, '}');
}
