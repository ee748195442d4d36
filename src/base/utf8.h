/* utf8.h - characters of UTF-8: their length, and those that must not be shown. */
#ifndef RV_BASE_UTF8_H
#define RV_BASE_UTF8_H

#include "base/assert.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the character at `at`, 1 to 4 bytes; 0: it is not valid (overlong, a surrogate, above
 * U+10FFFF, cut off). at < end. RFC 3629, section 4: the first byte bounds the second one. */
static inline size_t rv_utf8_len(const char *at, const char *end)
{
    const unsigned char *b = (const unsigned char *)at;
    size_t room = (size_t)(end - at);
    size_t len;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    rv_assert(at < end);
    if (b[0] < 0x80)
        return 1;
    if (b[0] >= 0xc2 && b[0] <= 0xdf) {
        len = 2;
    } else if (b[0] >= 0xe0 && b[0] <= 0xef) {
        len = 3;
        if (b[0] == 0xe0)
            low = 0xa0; /* below: overlong */
        if (b[0] == 0xed)
            high = 0x9f; /* above: surrogates */
    } else if (b[0] >= 0xf0 && b[0] <= 0xf4) {
        len = 4;
        if (b[0] == 0xf0)
            low = 0x90; /* below: overlong */
        if (b[0] == 0xf4)
            high = 0x8f; /* above: beyond U+10FFFF */
    } else {
        return 0;
    }
    if (room < len || b[1] < low || b[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((b[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

/* The code point of the valid character of `len` bytes. */
static inline uint32_t rv_utf8_point(const char *at, size_t len)
{
    rv_assert(len >= 1);
    rv_assert(len <= 4);
    const unsigned char *b = (const unsigned char *)at;
    uint32_t point = len == 1 ? b[0] : b[0] & (0xffU >> (len + 1));
    for (size_t i = 1; i < len; i++)
        point = point << 6 | (b[i] & 0x3fU);
    return point;
}

/* Whether it shows a text other than it is: control characters, separators of lines, marks that
 * turn the direction of writing, and characters that leave no trace (Unicode TR 36, section 2.10).
 * Joiners (U+200C, U+200D) and variation selectors are missing, because words and emojis need
 * them. */
static inline bool rv_utf8_hides(uint32_t point)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } hidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
                  {0x180e, 0x180e}, {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},
                  {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0] && point >= hidden[i].first; i++)
        if (point <= hidden[i].last)
            return true;
    return false;
}

/* Those of them that no text of a request may have. The others come from remote services and older
 * keys, too: they are escaped where they are shown. */
static inline bool rv_utf8_misleads(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x61c || point == 0x200e ||
           point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2066 && point <= 0x2069);
}

/* The first such character of a text in UTF-8; UINT32_MAX: there is none. */
static inline uint32_t rv_utf8_hidden(struct rv_str text)
{
    const char *end = text.len > 0 ? text.at + text.len : text.at;
    for (const char *at = text.at; at < end;) {
        size_t len = rv_utf8_len(at, end);
        if (len != 0 && rv_utf8_misleads(rv_utf8_point(at, len)))
            return rv_utf8_point(at, len);
        at += len != 0 ? len : 1;
    }
    return UINT32_MAX;
}

#endif
