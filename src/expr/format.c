/* @csv, @html and the other formats of strings (jq manual, Format strings and escaping). */
#include "expr/eval_priv.h"

#include <math.h>

/* What is written so far; room was reckoned before. */
struct writer {
    char *at;
    size_t len;
};

static void put(struct writer *writer, struct rv_str text)
{
    if (text.len > 0)
        memcpy(writer->at + writer->len, text.at, text.len);
    writer->len += text.len;
}

/* The text of the input with some characters replaced; `replaced` gives an absent string for the
 * others. `growth` is the longest replacement. */
static bool escape(struct ev *ev, struct rv_str text, size_t growth, struct rv_str before,
                   struct rv_str after, struct rv_str (*replaced)(unsigned char c, char *bytes),
                   struct rv_json *ret)
{
    struct writer writer = {.len = 0};
    writer.at = ev_take(ev, text.len * growth + before.len + after.len + 1);
    if (writer.at == NULL)
        return false;
    put(&writer, before);
    for (size_t i = 0; i < text.len; i++) {
        char bytes[4];
        if (!ev_spend_piece(ev, i, text.len, 0.75))
            return false;
        struct rv_str with = replaced((unsigned char)text.at[i], bytes);
        put(&writer, with.at ? with : (struct rv_str){text.at + i, 1});
    }
    put(&writer, after);
    rv_assert(writer.len <= text.len * growth + before.len + after.len);
    *ret = ev_string(writer.at, writer.len);
    return true;
}

static struct rv_str replaced_html(unsigned char c, char *bytes)
{
    (void)bytes;
    switch (c) {
    case '<':
        return RV_STR("&lt;");
    case '>':
        return RV_STR("&gt;");
    case '&':
        return RV_STR("&amp;");
    case '\'':
        return RV_STR("&apos;");
    case '"':
        return RV_STR("&quot;");
    default: /* a character, no enum */
        return RV_STR_NONE;
    }
}

/* Unreserved are letters, digits and -_.~ (RFC 3986, 2.3). */
static struct rv_str replaced_uri(unsigned char c, char *bytes)
{
    static const char hex[] = "0123456789ABCDEF";
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || (c != '\0' && strchr("-_.~", c) != NULL))
        return RV_STR_NONE;
    bytes[0] = '%';
    bytes[1] = hex[c >> 4];
    bytes[2] = hex[c & 15];
    return (struct rv_str){bytes, 3};
}

static struct rv_str replaced_csv(unsigned char c, char *bytes)
{
    (void)bytes;
    return c == '"' ? RV_STR("\"\"") : RV_STR_NONE;
}

static struct rv_str replaced_tsv(unsigned char c, char *bytes)
{
    (void)bytes;
    switch (c) {
    case '\t':
        return RV_STR("\\t");
    case '\n':
        return RV_STR("\\n");
    case '\r':
        return RV_STR("\\r");
    case '\\':
        return RV_STR("\\\\");
    default: /* a character, no enum */
        return RV_STR_NONE;
    }
}

static struct rv_str replaced_sh(unsigned char c, char *bytes)
{
    (void)bytes;
    return c == '\'' ? RV_STR("'\\''") : RV_STR_NONE;
}

bool native_html(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                 struct rv_json *ret)
{
    struct rv_json text;
    return native_tostring(ev, in, args, &text) &&
           escape(ev, value_str(&text), 6, RV_STR(""), RV_STR(""), replaced_html, ret);
}

bool native_uri(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                struct rv_json *ret)
{
    struct rv_json text;
    return native_tostring(ev, in, args, &text) &&
           escape(ev, value_str(&text), 3, RV_STR(""), RV_STR(""), replaced_uri, ret);
}

/* One item of a row: its text for the format, or an error. */
typedef bool (*field_fn)(struct ev *ev, const struct rv_json *item, struct rv_json *ret);

static bool row(struct ev *ev, const struct rv_json *items, size_t len, const char *separator,
                field_fn field, struct rv_json *ret)
{
    struct rv_json made = rv_json_of_str(RV_STR(""));
    const struct rv_json between = rv_json_of_str(rv_str_of(separator));
    for (size_t i = 0; i < len; i++) {
        struct rv_json pair[2] = {made, between};
        if ((i > 0 && !native_add(ev, NULL, pair, &pair[0])) || !field(ev, &items[i], &pair[1]) ||
            !ev_spend(ev, 1))
            return false;
        if (!native_add(ev, NULL, pair, &made))
            return false;
    }
    *ret = made;
    return true;
}

/* null and what is no number are empty. */
static bool plain_field(struct ev *ev, const struct rv_json *item, const char *format,
                        struct rv_json *ret)
{
    bool empty = item->type == RV_JSON_NULL || (item->computed && isnan(item->u.real));
    if (item->type == RV_JSON_ARRAY || item->type == RV_JSON_OBJECT)
        return ev_raise(ev, "%s (%s) is not valid in a %s row", value_kind(item),
                        value_brief(item).text, format);
    if (!empty)
        return native_tostring(ev, item, NULL, ret);
    *ret = rv_json_of_str(RV_STR(""));
    return true;
}

static bool csv_field(struct ev *ev, const struct rv_json *item, struct rv_json *ret)
{
    if (item->type != RV_JSON_STRING)
        return plain_field(ev, item, "csv", ret);
    return escape(ev, value_str(item), 2, RV_STR("\""), RV_STR("\""), replaced_csv, ret);
}

static bool tsv_field(struct ev *ev, const struct rv_json *item, struct rv_json *ret)
{
    if (item->type != RV_JSON_STRING)
        return plain_field(ev, item, "tsv", ret);
    return escape(ev, value_str(item), 2, RV_STR(""), RV_STR(""), replaced_tsv, ret);
}

static bool sh_field(struct ev *ev, const struct rv_json *item, struct rv_json *ret)
{
    if (item->type == RV_JSON_ARRAY || item->type == RV_JSON_OBJECT)
        return ev_raise(ev, "%s (%s) can not be escaped for shell", value_kind(item),
                        value_brief(item).text);
    if (item->type != RV_JSON_STRING)
        return native_tojson(ev, item, NULL, ret);
    return escape(ev, value_str(item), 4, RV_STR("'"), RV_STR("'"), replaced_sh, ret);
}

static bool array_needed(struct ev *ev, const struct rv_json *in, const char *format)
{
    return in->type == RV_JSON_ARRAY || ev_raise(ev, "%s (%s) cannot be %s-formatted, only array",
                                                 value_kind(in), value_brief(in).text, format);
}

bool native_csv(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                struct rv_json *ret)
{
    (void)args;
    return array_needed(ev, in, "csv") && row(ev, in->u.items, in->len, ",", csv_field, ret);
}

bool native_tsv(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                struct rv_json *ret)
{
    (void)args;
    return array_needed(ev, in, "tsv") && row(ev, in->u.items, in->len, "\t", tsv_field, ret);
}

bool native_sh(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
               struct rv_json *ret)
{
    (void)args;
    bool array = in->type == RV_JSON_ARRAY;
    return row(ev, array ? in->u.items : in, array ? in->len : 1, " ", sh_field, ret);
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool native_base64(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                   struct rv_json *ret)
{
    struct rv_json text;
    if (!native_tostring(ev, in, args, &text))
        return false;
    char *bytes = ev_take(ev, ((size_t)text.len + 2) / 3 * 4 + 1);
    size_t len = 0;
    for (size_t i = 0; bytes != NULL && i < text.len; i += 3) {
        uint32_t group = 0;
        if (!ev_spend_piece(ev, i, text.len, 0.25))
            return false;
        for (size_t j = 0; j < 3; j++)
            group = group << 8 | (i + j < text.len ? (unsigned char)text.u.text[i + j] : 0u);
        for (size_t j = 0; j < 4; j++)
            bytes[len++] = i + j <= text.len ? base64_digits[group >> (18 - 6 * j) & 63] : '=';
    }
    if (bytes == NULL)
        return false;
    *ret = ev_string(bytes, len);
    return true;
}

/* Digits up to the padding; -1 when something else stands there or the last group has one digit. */
static ptrdiff_t base64_decode(struct rv_str text, char *bytes)
{
    size_t len = 0;
    size_t digits = text.len;
    uint32_t group = 0;
    while (digits > 0 && text.at[digits - 1] == '=')
        digits--;
    for (size_t i = 0; i < digits; i++) {
        const char *digit = text.at[i] ? memchr(base64_digits, text.at[i], sizeof base64_digits - 1)
                                       : NULL;
        if (digit == NULL)
            return -1;
        group = group << 6 | (uint32_t)(digit - base64_digits);
        if (i % 4 != 0)
            bytes[len++] = (char)(group >> (6 - 2 * (i % 4)) & 0xFF);
    }
    return digits % 4 == 1 ? -1 : (ptrdiff_t)len;
}

bool native_base64d(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                    struct rv_json *ret)
{
    struct rv_json text;
    if (!native_tostring(ev, in, args, &text) || !ev_spend(ev, text.len / 4))
        return false;
    char *bytes = ev_take(ev, (size_t)text.len + 1);
    if (bytes == NULL)
        return false;
    ptrdiff_t len = base64_decode(value_str(&text), bytes);
    if (len < 0)
        return ev_raise(ev, "%s (%s) is not valid base64 data", value_kind(in),
                        value_brief(in).text);
    return text_repaired(ev, (struct rv_str){bytes, (size_t)len}, ret);
}
