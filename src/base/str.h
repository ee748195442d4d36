/* str.h - a borrowed run of bytes: pointer and length, no terminator promised. */
#ifndef RV_BASE_STR_H
#define RV_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whoever made the bytes owns them. An absent string has at == NULL and len == 0; an empty one
 * has len == 0 and at != NULL, so that "not given" and "given as empty" stay apart. */
struct rv_str {
    const char *at;
    size_t len;
};

#define RV_STR_NONE ((struct rv_str){NULL, 0})
/* From a string literal, at no cost. */
#define RV_STR(literal) ((struct rv_str){"" literal, sizeof(literal) - 1})
/* For printf's "%.*s". */
#define RV_STR_FMT(s) (int)(s).len, ((s).at ? (s).at : "")

static inline struct rv_str rv_str_of(const char *terminated)
{
    return (struct rv_str){terminated, terminated ? strlen(terminated) : 0};
}

static inline bool rv_str_eq(struct rv_str a, struct rv_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool rv_str_is(struct rv_str a, const char *terminated)
{
    return rv_str_eq(a, rv_str_of(terminated));
}

static inline bool rv_str_begins(struct rv_str text, struct rv_str prefix)
{
    return text.len >= prefix.len &&
           (prefix.len == 0 || memcmp(text.at, prefix.at, prefix.len) == 0);
}

/* 0 to 15, or -1. */
static inline int rv_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Order of the bytes, as strcmp would have it; for UTF-8 that is the order of the code points. */
static inline int rv_str_cmp(struct rv_str a, struct rv_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.at, b.at, n) : 0;
    if (c != 0)
        return c;
    return a.len < b.len ? -1 : a.len > b.len;
}

enum { RV_PERCENT_BYTES = 4 };
/* `c` as it may stand in any part of a URI: itself if RFC 3986 calls it unreserved, else %XX. */
void rv_percent_encode(char c, char ret_text[RV_PERCENT_BYTES]);

/* A copy that ends with a zero byte, "" of an absent text; free() frees it. NULL: no memory. */
char *rv_str_dup(struct rv_str text);

#endif
