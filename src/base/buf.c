#include "base/buf.h"

#include "base/assert.h"
#include "base/format.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUF_ROOM_MIN = 256 };

void rv_buf_init(struct rv_buf *buf, size_t bytes_max)
{
    *buf = (struct rv_buf){.bytes_max = bytes_max};
}

void rv_buf_done(struct rv_buf *buf)
{
    free(buf->at);
    rv_buf_init(buf, buf->bytes_max);
}

void rv_buf_reset(struct rv_buf *buf)
{
    buf->len = 0;
    buf->failed = RV_OK;
}

char *rv_buf_grow(struct rv_buf *buf, size_t bytes)
{
    if (buf->failed != RV_OK)
        return NULL;
    rv_assert(buf->len <= buf->room);
    rv_assert(buf->room <= buf->bytes_max);
    if (bytes > buf->bytes_max || buf->len > buf->bytes_max - bytes) {
        buf->failed = RV_ERR_LIMIT;
        return NULL;
    }
    size_t need = buf->len + bytes;
    size_t room = buf->room ? buf->room * 2 : BUF_ROOM_MIN;
    if (room < need)
        room = need;
    if (room > buf->bytes_max)
        room = buf->bytes_max;
    rv_assert(room >= need);
    char *at = realloc(buf->at, room);
    if (at == NULL) {
        buf->failed = RV_ERR_MEMORY;
        return NULL;
    }
    buf->at = at;
    buf->room = room;
    return at + buf->len;
}

void rv_buf_add_int(struct rv_buf *buf, int64_t number)
{
    char digits[24];
    char *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (number < 0)
        *--at = '-';
    rv_buf_add(buf, at, (size_t)(digits + sizeof digits - at));
}

void rv_buf_printf(struct rv_buf *buf, const char *format, ...)
{
    char stack[512];
    va_list args;
    va_start(args, format);
    int n = rv_format(stack, sizeof stack, format, args);
    va_end(args);
    if (n < 0) {
        buf->failed = RV_ERR_LIMIT;
    } else if ((size_t)n < sizeof stack) {
        rv_buf_add(buf, stack, (size_t)n);
    } else {
        char *at = rv_buf_reserve(buf, (size_t)n + 1);
        if (at == NULL)
            return;
        va_start(args, format);
        int again = rv_format(at, (size_t)n + 1, format, args);
        va_end(args);
        rv_assert(again == n);
        buf->len += (size_t)n;
    }
}

void rv_buf_add_percent(struct rv_buf *buf, struct rv_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char encoded[RV_PERCENT_BYTES];
        rv_percent_encode(text.at[i], encoded);
        rv_buf_add_str(buf, rv_str_of(encoded));
    }
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_-./:,+@%", c) != NULL);
}

void rv_buf_add_word(struct rv_buf *buf, struct rv_str text)
{
    size_t plain = 0;
    while (plain < text.len && is_plain(text.at[plain]))
        plain++;
    if (plain == text.len && text.len > 0) {
        rv_buf_add_str(buf, text);
        return;
    }
    rv_buf_add_char(buf, '\'');
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == '\'')
            rv_buf_lit(buf, "'\\''");
        else
            rv_buf_add_char(buf, text.at[i]);
    rv_buf_add_char(buf, '\'');
}
