/* token_priv.h - the tokens of JSON, and the words that read eight bytes at a time. */
#ifndef RV_JSON_TOKEN_PRIV_H
#define RV_JSON_TOKEN_PRIV_H

#include "json/json.h"

/* A fault under way: nothing has failed while `message` is NULL. */
struct json_failure {
    enum rv_err err;
    const char *at;
    const char *message;
};

/* Notes the failure and gives NULL, so that a reader can end with it. */
const char *rv_json_fail(struct json_failure *failure, const char *at, const char *message);

/* The functions below read from `at`, never from `end` on, and give the byte after what they
 * read, or NULL with *failure filled. */

/* From the byte after the opening quote to the closing quote itself. */
const char *rv_json_string_end(struct json_failure *failure, const char *at, const char *end,
                               bool *ret_escaped);
/* From the first byte, which is a digit or a minus sign. */
const char *rv_json_number_end(struct json_failure *failure, const char *at, const char *end);
/* Writes the text of the string token [at, end), which rv_json_string_end has read, and returns the
 * number of bytes: never more than the token has. */
size_t rv_json_unescape(const char *at, const char *end, char *to);

#define JSON_BYTES(b) (UINT64_C(0x0101010101010101) * (b))

/* Has the top bit set in each byte that is no plain text in a JSON string: a quote, a backslash, a
 * control character, anything outside ASCII. Bytes after the first such one may be marked wrongly
 * (a borrow runs upward), so only the first counts. */
static inline uint64_t json_special_bits(uint64_t bytes)
{
    uint64_t quote = bytes ^ JSON_BYTES('"');
    uint64_t backslash = bytes ^ JSON_BYTES('\\');
    uint64_t found = (quote - JSON_BYTES(1)) | (backslash - JSON_BYTES(1)) |
                     (bytes - JSON_BYTES(0x20)) | bytes;
    /* A byte from 0x80 on is special itself, so it needs no care in the differences. */
    return found & JSON_BYTES(0x80);
}

/* Skips plain text; what it stops at is special or the end. */
static inline const char *json_plain_end(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t bytes;
        memcpy(&bytes, at, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        bytes = __builtin_bswap64(bytes);
#endif
        uint64_t special = json_special_bits(bytes);
        if (special != 0)
            return at + __builtin_ctzll(special) / 8;
        at += 8;
    }
    while (at != end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' &&
           *at != '\\')
        at++;
    return at;
}

#endif
