/* buf.h - a growable run of bytes with a cap that is set once, at init. */
#ifndef RV_BASE_BUF_H
#define RV_BASE_BUF_H

#include "base/assert.h"
#include "base/err.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A failure sticks: after the first append that does not fit (or finds no memory) every later one
 * does nothing, `failed` keeps the reason, and the bytes so far stay. So a writer checks once. */
struct rv_buf {
    char *at; /* owned */
    size_t len;
    size_t room;
    size_t bytes_max;
    enum rv_err failed; /* RV_OK, RV_ERR_LIMIT or RV_ERR_MEMORY */
};

void rv_buf_init(struct rv_buf *buf, size_t bytes_max);
void rv_buf_done(struct rv_buf *buf);
/* Empties it and clears the failure; the memory stays. */
void rv_buf_reset(struct rv_buf *buf);
/* What rv_buf_reserve does where the room is not there. */
char *rv_buf_grow(struct rv_buf *buf, size_t bytes);

/* Room for `bytes` more at the end, or NULL; the caller fills it and adds to `len`. */
static inline char *rv_buf_reserve(struct rv_buf *buf, size_t bytes)
{
    if (buf->failed == RV_OK && bytes <= buf->room - buf->len)
        return buf->at + buf->len;
    return rv_buf_grow(buf, bytes);
}

static inline void rv_buf_add(struct rv_buf *buf, const void *bytes, size_t len)
{
    char *at = len > 0 ? rv_buf_reserve(buf, len) : NULL;
    if (at == NULL)
        return;
    memcpy(at, bytes, len);
    buf->len += len;
}

static inline void rv_buf_add_str(struct rv_buf *buf, struct rv_str text)
{
    rv_buf_add(buf, text.at, text.len);
}

static inline void rv_buf_add_char(struct rv_buf *buf, char c)
{
    char *at = rv_buf_reserve(buf, 1);
    if (at == NULL)
        return;
    *at = c;
    buf->len++;
}

/* The text with all but the unreserved characters of RFC 3986 as %XX, fit for any part of a URI. */
void rv_buf_add_percent(struct rv_buf *buf, struct rv_str text);
/* The text as one word of a shell: in quotes unless each of its characters stands for itself. */
void rv_buf_add_word(struct rv_buf *buf, struct rv_str text);
void rv_buf_add_int(struct rv_buf *buf, int64_t number);
void rv_buf_printf(struct rv_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define rv_buf_lit(buf, literal) rv_buf_add((buf), "" literal, sizeof(literal) - 1)

static inline struct rv_str rv_buf_str(const struct rv_buf *buf)
{
    rv_assert(buf->len <= buf->room);
    return (struct rv_str){buf->at ? buf->at : "", buf->len};
}

#endif
