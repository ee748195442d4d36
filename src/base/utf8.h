/* utf8.h - the length of a UTF-8 character. */
#ifndef RV_BASE_UTF8_H
#define RV_BASE_UTF8_H

#include <stddef.h>

/* Length of the character at `at`, 1 to 4 bytes; 0: it is not valid (overlong, a surrogate, above
 * U+10FFFF, cut off). at < end. */
/* RFC 3629, section 4: the first byte bounds the second one. */
static inline size_t rv_utf8_len(const char *at, const char *end)
{
    const unsigned char *b = (const unsigned char *)at;
    size_t room = (size_t)(end - at);
    size_t len;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
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

#endif
