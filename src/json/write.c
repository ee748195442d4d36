#include "base/utf8.h"
#include "json/number_priv.h"
#include "json/order_priv.h"
#include "json/token_priv.h"

#include <float.h>
#include <math.h>

static void write_escape(struct rv_buf *buf, char c)
{
    static const char short_form[] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
                                      ['\t'] = 't', ['"'] = '"',  ['\\'] = '\\'};
    static const char hex[] = "0123456789abcdef";
    char letter = short_form[(unsigned char)c];
    if (letter != '\0') {
        char escape[] = {'\\', letter};
        rv_buf_add(buf, escape, sizeof escape);
    } else {
        char escape[] = {'\\', 'u', '0', '0', hex[(unsigned char)c >> 4], hex[c & 15]};
        rv_buf_add(buf, escape, sizeof escape);
    }
}

void rv_json_write_string(struct rv_buf *buf, struct rv_str text)
{
    const char *at = text.at;
    const char *end = text.at != NULL ? text.at + text.len : NULL;
    /* Most strings are plain from end to end. */
    if (text.len != 0 && json_plain_end(at, end) == end) {
        char *to = rv_buf_reserve(buf, text.len + 2);
        if (to != NULL) {
            to[0] = '"';
            memcpy(to + 1, at, text.len);
            to[text.len + 1] = '"';
            buf->len += text.len + 2;
        }
        return;
    }
    rv_buf_add_char(buf, '"');
    while (at != end) {
        const char *plain = at;
        at = json_plain_end(at, end);
        while (at != end && (unsigned char)*at >= 0x80) {
            size_t len = rv_utf8_len(at, end);
            if (len == 0)
                break;
            at += len;
        }
        rv_buf_add(buf, plain, (size_t)(at - plain));
        if (at == end)
            break;
        if ((unsigned char)*at >= 0x80) {
            rv_buf_lit(buf, "\xef\xbf\xbd");
            at++;
        } else if ((unsigned char)*at < 0x20 || *at == '"' || *at == '\\') {
            write_escape(buf, *at);
            at++;
        }
    }
    rv_buf_add_char(buf, '"');
}

static void write_number(struct rv_buf *buf, const struct rv_json *number)
{
    char text[JSON_REAL_TEXT_BYTES];
    if (!number->computed) {
        rv_buf_add(buf, number->u.text, number->len);
        return;
    }
    double real = number->u.real;
    if (isnan(real)) {
        rv_buf_lit(buf, "null");
        return;
    }
    if (isinf(real))
        real = real < 0 ? -DBL_MAX : DBL_MAX;
    if (json_is_written_as_int(real))
        rv_buf_add_int(buf, (int64_t)real);
    else
        rv_buf_add_str(buf, rv_json_text_of_real(real, text));
}

/* One level of a tree; recursion is bounded by RV_JSON_NESTING_MAX. */
struct json_writer {
    struct rv_buf *buf;
    bool canonical;
    unsigned depth;
};

static void write_value(struct json_writer *writer, const struct rv_json *value);

static void write_member(struct json_writer *writer, const struct rv_json_member *member)
{
    rv_json_write_string(writer->buf, json_key(member));
    rv_buf_add_char(writer->buf, ':');
    write_value(writer, &member->value);
}

static void write_sorted(struct json_writer *writer, const struct rv_json *object)
{
    struct json_order order;
    const struct rv_json_member *member;
    rv_json_order_init(&order, object);
    for (bool first = true; (member = rv_json_order_next(&order)) != NULL; first = false) {
        if (!first)
            rv_buf_add_char(writer->buf, ',');
        write_member(writer, member);
        if (writer->buf->failed != RV_OK)
            break;
    }
    rv_json_order_done(&order);
}

static void write_container(struct json_writer *writer, const struct rv_json *value)
{
    bool object = value->type == RV_JSON_OBJECT;
    if (writer->depth == RV_JSON_NESTING_MAX && writer->buf->failed == RV_OK)
        writer->buf->failed = RV_ERR_LIMIT;
    /* A full buffer takes no more, and what is shared in a tree could go on for ever. */
    if (writer->buf->failed != RV_OK)
        return;
    writer->depth++;
    rv_buf_add_char(writer->buf, object ? '{' : '[');
    if (object && writer->canonical) {
        write_sorted(writer, value);
    } else {
        for (uint32_t i = 0; i < value->len && writer->buf->failed == RV_OK; i++) {
            if (i > 0)
                rv_buf_add_char(writer->buf, ',');
            if (object)
                write_member(writer, &value->u.members[i]);
            else
                write_value(writer, &value->u.items[i]);
        }
    }
    rv_buf_add_char(writer->buf, object ? '}' : ']');
    writer->depth--;
}

static void write_value(struct json_writer *writer, const struct rv_json *value)
{
    switch ((enum rv_json_type)value->type) {
    case RV_JSON_NULL:
        rv_buf_lit(writer->buf, "null");
        break;
    case RV_JSON_BOOL:
        if (value->truth)
            rv_buf_lit(writer->buf, "true");
        else
            rv_buf_lit(writer->buf, "false");
        break;
    case RV_JSON_NUMBER:
        write_number(writer->buf, value);
        break;
    case RV_JSON_STRING:
        rv_json_write_string(writer->buf, (struct rv_str){value->u.text, value->len});
        break;
    case RV_JSON_ARRAY:
    case RV_JSON_OBJECT:
        write_container(writer, value);
        break;
    }
}

void rv_json_write(struct rv_buf *buf, const struct rv_json *value)
{
    write_value(&(struct json_writer){.buf = buf}, value);
}

void rv_json_write_canonical(struct rv_buf *buf, const struct rv_json *value)
{
    write_value(&(struct json_writer){.buf = buf, .canonical = true}, value);
}

void rv_json_pointer_add(struct rv_buf *pointer, struct rv_str token)
{
    rv_buf_add_char(pointer, '/');
    for (size_t i = 0; i < token.len; i++) {
        if (token.at[i] == '~')
            rv_buf_lit(pointer, "~0");
        else if (token.at[i] == '/')
            rv_buf_lit(pointer, "~1");
        else
            rv_buf_add_char(pointer, token.at[i]);
    }
}
