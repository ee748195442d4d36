#include "json/token_priv.h"

#include "base/assert.h"
#include "base/utf8.h"

const char *rv_json_fail(struct json_failure *failure, const char *at, const char *message)
{
    *failure = (struct json_failure){RV_ERR_INVALID, at, message};
    return NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Four hex digits, or -1. */
static int hex4(const char *at, const char *end)
{
    int value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit;
        if (is_digit(c))
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
            digit = c - 'A' + 10;
        else
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static bool is_high_surrogate(int unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low_surrogate(int unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

/* From the backslash to the byte after the escape. */
static const char *escape_end(struct json_failure *failure, const char *at, const char *end)
{
    if (end - at < 2)
        return rv_json_fail(failure, end, "the string is not closed");
    if (at[1] == 'u') {
        int unit = hex4(at + 2, end);
        if (unit < 0)
            return rv_json_fail(failure, at, "expected four hex digits after \\u");
        if (is_low_surrogate(unit))
            return rv_json_fail(failure, at, "a low surrogate must follow a high surrogate");
        if (!is_high_surrogate(unit))
            return at + 6;
        if (end - at < 12 || at[6] != '\\' || at[7] != 'u' || !is_low_surrogate(hex4(at + 8, end)))
            return rv_json_fail(failure, at,
                                "a high surrogate must be followed by a low surrogate");
        return at + 12;
    }
    if (at[1] == '\0' || strchr("\"\\/bfnrt", at[1]) == NULL)
        return rv_json_fail(failure, at,
                            "unknown escape: only \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
    return at + 2;
}

const char *rv_json_string_end(struct json_failure *failure, const char *at, const char *end,
                               bool *ret_escaped)
{
    *ret_escaped = false;
    for (;;) {
        at = json_plain_end(at, end);
        if (at == end)
            return rv_json_fail(failure, at, "the string is not closed");
        if (*at == '"')
            return at;
        if (*at == '\\') {
            *ret_escaped = true;
            at = escape_end(failure, at, end);
            if (at == NULL)
                return NULL;
        } else if ((unsigned char)*at < 0x20) {
            return rv_json_fail(failure, at, "control character in a string: write it as \\u00XX");
        }
        while (at != end && (unsigned char)*at >= 0x80) {
            size_t len = rv_utf8_len(at, end);
            if (len == 0)
                return rv_json_fail(failure, at, "invalid UTF-8");
            at += len;
        }
    }
}

static char *utf8_put(char *to, int point)
{
    rv_assert(point <= 0x10ffff);
    if (point < 0x80) {
        *to++ = (char)point;
        return to;
    }
    if (point < 0x800) {
        *to++ = (char)(0xc0 | point >> 6);
    } else {
        if (point < 0x10000) {
            *to++ = (char)(0xe0 | point >> 12);
        } else {
            *to++ = (char)(0xf0 | point >> 18);
            *to++ = (char)(0x80 | (point >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (point >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (point & 0x3f));
    return to;
}

static char unescaped_char(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default: /* no enum: the quote, the backslash and the slash stand for themselves */
        return c;
    }
}

size_t rv_json_unescape(const char *at, const char *end, char *to)
{
    const char *begin = at;
    char *first = to;
    while (at != end) {
        const char *backslash = memchr(at, '\\', (size_t)(end - at));
        size_t plain = (size_t)((backslash ? backslash : end) - at);
        memcpy(to, at, plain);
        to += plain;
        at += plain;
        if (backslash == NULL)
            break;
        if (at[1] != 'u') {
            *to++ = unescaped_char(at[1]);
            at += 2;
            continue;
        }
        int point = hex4(at + 2, end);
        at += 6;
        if (is_high_surrogate(point)) {
            point = 0x10000 + (point - 0xd800) * 0x400 + (hex4(at + 2, end) - 0xdc00);
            at += 6;
        }
        rv_assert(point >= 0); /* the escape is well-formed */
        to = utf8_put(to, point);
    }
    rv_assert(to - first <= end - begin);
    return (size_t)(to - first);
}

static const char *digits_end(const char *at, const char *end)
{
    while (at != end && is_digit(*at))
        at++;
    return at;
}

const char *rv_json_number_end(struct json_failure *failure, const char *at, const char *end)
{
    if (*at == '-')
        at++;
    const char *whole = at;
    at = digits_end(at, end);
    if (at == whole)
        return rv_json_fail(failure, at, "expected a digit");
    if (*whole == '0' && at - whole > 1)
        return rv_json_fail(failure, whole, "a number must not begin with 0");
    if (at != end && *at == '.') {
        const char *fraction = ++at;
        at = digits_end(at, end);
        if (at == fraction)
            return rv_json_fail(failure, at, "expected a digit after the decimal point");
    }
    if (at != end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at != end && (*at == '+' || *at == '-'))
            at++;
        const char *exponent = at;
        at = digits_end(at, end);
        if (at == exponent)
            return rv_json_fail(failure, at, "expected a digit in the exponent");
    }
    return at;
}
