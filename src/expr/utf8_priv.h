/* utf8_priv.h - code points of valid UTF-8: count, step, write. */
#ifndef RV_EXPR_UTF8_PRIV_H
#define RV_EXPR_UTF8_PRIV_H

#include "base/assert.h"
#include "base/str.h"

#include <stdint.h>

/* Writes `code` at `bytes`, which has room for 4; how many were written. */
static inline size_t utf8_put(char *bytes, uint32_t code)
{
    rv_assert(code <= 0x10FFFF);
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        bytes[0] = (char)(0xC0 | code >> 6);
        bytes[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        bytes[0] = (char)(0xE0 | code >> 12);
        bytes[1] = (char)(0x80 | (code >> 6 & 0x3F));
        bytes[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    bytes[0] = (char)(0xF0 | code >> 18);
    bytes[1] = (char)(0x80 | (code >> 12 & 0x3F));
    bytes[2] = (char)(0x80 | (code >> 6 & 0x3F));
    bytes[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* Length in bytes of the character that begins with `first`; 1 for a stray byte. */
static inline size_t utf8_len(char first)
{
    unsigned char c = (unsigned char)first;
    return c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

/* The code point at `at`; *ret_len bytes long. Never reads past the end of `text`. */
static inline uint32_t utf8_get(struct rv_str text, size_t at, size_t *ret_len)
{
    rv_assert(at < text.len);
    size_t len = utf8_len(text.at[at]);
    if (len > text.len - at)
        len = text.len - at;
    unsigned char first = (unsigned char)text.at[at];
    uint32_t code = len == 1 ? first : first & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)text.at[at + i] & 0x3Fu);
    *ret_len = len;
    return code;
}

/* How many of the eight bytes begin a character: all but those that are 10xxxxxx. */
static inline unsigned utf8_starts(const char *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    uint64_t inner = word & ~(word << 1) & UINT64_C(0x8080808080808080);
    return 8 - (unsigned)((inner >> 7) * UINT64_C(0x0101010101010101) >> 56);
}

static inline size_t utf8_count(struct rv_str text)
{
    size_t count = 0;
    size_t i = 0;
    for (; text.len - i >= 8; i += 8)
        count += utf8_starts(text.at + i);
    for (; i < text.len; i++)
        count += ((unsigned char)text.at[i] & 0xC0) != 0x80;
    return count;
}

/* Where character number `count` begins, or the end of the text. */
static inline size_t utf8_offset(struct rv_str text, size_t count)
{
    size_t at = 0;
    while (text.len - at >= 8 && utf8_starts(text.at + at) <= count) {
        count -= utf8_starts(text.at + at);
        at += 8;
    }
    while (at > 0 && at < text.len && ((unsigned char)text.at[at] & 0xC0) == 0x80)
        at++; /* the rest of a character that is counted already */
    for (; count > 0 && at < text.len; count--)
        at += utf8_len(text.at[at]);
    return at < text.len ? at : text.len;
}

/* The largest offset up to `bytes` that does not cut a character; bytes <= text.len. */
static inline size_t utf8_floor(struct rv_str text, size_t bytes)
{
    rv_assert(bytes <= text.len);
    while (bytes > 0 && bytes < text.len && ((unsigned char)text.at[bytes] & 0xC0) == 0x80)
        bytes--;
    return bytes;
}

/* How many bytes from the start are valid UTF-8: all of them, or where the first bad one stands. */
static inline size_t utf8_valid(struct rv_str text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t at = 0; at < text.len;) {
        unsigned char first = (unsigned char)text.at[at];
        size_t len;
        uint32_t code = utf8_get(text, at, &len);
        if (len != utf8_len(text.at[at]) || (first >= 0x80 && first < 0xC2) || first > 0xF4 ||
            code < least[len] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            return at;
        for (size_t i = 1; i < len; i++)
            if (((unsigned char)text.at[at + i] & 0xC0) != 0x80)
                return at;
        at += len;
    }
    return text.len;
}

#endif
