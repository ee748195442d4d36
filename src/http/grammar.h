/* grammar.h - the characters and small texts of RFC 9110 and 3986. */
#ifndef RV_HTTP_GRAMMAR_H
#define RV_HTTP_GRAMMAR_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum grammar_class {
    GRAMMAR_TOKEN = 1,  /* tchar */
    GRAMMAR_VALUE = 2,  /* VCHAR, obs-text, SP, HTAB */
    GRAMMAR_PATH = 4,   /* pchar without "%", and "/" */
    GRAMMAR_QUERY = 8,  /* pchar without "%", "/", "?", and what browsers send as it is */
    GRAMMAR_HOST = 16,  /* unreserved and sub-delims */
    GRAMMAR_QUOTED = 32 /* qdtext */
};

extern const unsigned char grammar_classes[256];

static inline bool grammar_is(char c, unsigned classes)
{
    return (grammar_classes[(unsigned char)c] & classes) != 0;
}

/* Not empty, and of the characters of this class alone. */
bool grammar_all(struct rv_str text, enum grammar_class class);
/* Of GRAMMAR_VALUE alone, or empty. */
bool grammar_value(struct rv_str text);
/* How many characters of GRAMMAR_TOKEN it begins with. */
size_t grammar_token(struct rv_str text);
/* "host", "host:port", "[::1]:port"; the host must not be empty. */
bool grammar_authority(struct rv_str text);
/* Path and query by RFC 3986: it begins with a slash, each "%" is followed by two hex digits. */
bool grammar_target(struct rv_str text);
bool grammar_same(struct rv_str a, const char *lower); /* but for the case of ASCII letters */
bool grammar_alike(struct rv_str a, struct rv_str b);
/* Without the blanks and tabs around it. */
struct rv_str grammar_trim(struct rv_str text);
/* Takes the next element off a comma-separated list, trimmed; false at its end. */
bool grammar_element(struct rv_str *rest, struct rv_str *ret);
/* The extensions of a chunk, from their first semicolon on: ";" name [ "=" ( token | "text" ) ]. */
bool grammar_extensions(struct rv_str text);

#endif
