/* Secrets that come back: a service may repeat what it was sent, and what it says is kept. */
#include "agent/http/order_priv.h"

static const char veil[] = "***";

/* The first hidden text at or after `from`; its length, 0 if there is none. */
static size_t hidden_find(const struct rv_http_order *order, struct rv_str text, size_t from,
                          size_t *ret_at)
{
    for (size_t i = from; i < text.len; i++)
        for (size_t h = 0; h < order->hidden_count; h++) {
            struct rv_str hidden = order->hidden[h];
            if (text.len - i >= hidden.len && memcmp(text.at + i, hidden.at, hidden.len) == 0) {
                *ret_at = i;
                return hidden.len;
            }
        }
    return 0;
}

void rv_http_hide(const struct rv_http_order *order, struct rv_buf *to, struct rv_str text)
{
    size_t from = 0, at = 0, len;
    while ((len = hidden_find(order, text, from, &at)) > 0) {
        rv_buf_add(to, text.at + from, at - from);
        rv_buf_lit(to, "***");
        from = at + len;
    }
    if (text.len > from)
        rv_buf_add(to, text.at + from, text.len - from);
}

static void string_hide(const struct rv_http_order *order, struct rv_buf *to, struct rv_str text)
{
    size_t at;
    if (hidden_find(order, text, 0, &at) == 0) {
        rv_json_write_string(to, text);
        return;
    }
    struct rv_buf clean;
    rv_buf_init(&clean, text.len * sizeof veil + 1);
    rv_http_hide(order, &clean, text);
    if (clean.failed != RV_OK)
        to->failed = clean.failed;
    else
        rv_json_write_string(to, rv_buf_str(&clean));
    rv_buf_done(&clean);
}

void rv_http_hide_tree(const struct rv_http_order *order, struct rv_buf *to,
                       const struct rv_json *value)
{
    size_t at;
    switch ((enum rv_json_type)value->type) {
    case RV_JSON_NULL:
    case RV_JSON_BOOL:
        rv_json_write(to, value);
        return;
    case RV_JSON_NUMBER: /* as written: it comes from a text */
        if (hidden_find(order, (struct rv_str){value->u.text, value->len}, 0, &at) > 0)
            rv_buf_lit(to, "\"***\"");
        else
            rv_json_write(to, value);
        return;
    case RV_JSON_STRING:
        string_hide(order, to, rv_json_str(value));
        return;
    case RV_JSON_ARRAY:
        rv_buf_add_char(to, '[');
        for (uint32_t i = 0; i < value->len; i++) {
            if (i > 0)
                rv_buf_add_char(to, ',');
            rv_http_hide_tree(order, to, &value->u.items[i]);
        }
        rv_buf_add_char(to, ']');
        return;
    case RV_JSON_OBJECT:
        rv_buf_add_char(to, '{');
        for (uint32_t i = 0; i < value->len; i++) {
            if (i > 0)
                rv_buf_add_char(to, ',');
            string_hide(order, to, rv_json_str(&value->u.members[i].key));
            rv_buf_add_char(to, ':');
            rv_http_hide_tree(order, to, &value->u.members[i].value);
        }
        rv_buf_add_char(to, '}');
        return;
    }
}

void rv_http_base64(struct rv_buf *to, struct rv_str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.len; i += 3) {
        uint32_t group = 0;
        size_t given = bytes.len - i < 3 ? bytes.len - i : 3;
        for (size_t j = 0; j < given; j++)
            group |= (uint32_t)(unsigned char)bytes.at[i + j] << (16 - 8 * j);
        for (size_t j = 0; j < 4; j++)
            rv_buf_add_char(to, j <= given ? digits[group >> (18 - 6 * j) & 63] : '=');
    }
}
