/* json.h - JSON values on an arena: scan, parse, look up, write. */
#ifndef RV_JSON_JSON_H
#define RV_JSON_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rv_json_type {
    RV_JSON_NULL,
    RV_JSON_BOOL,
    RV_JSON_NUMBER,
    RV_JSON_STRING,
    RV_JSON_ARRAY,
    RV_JSON_OBJECT
};

struct rv_json_member;

/* No text that nests deeper is read, whatever `depth_max` says; a tree built deeper is not written
 * (the buffer fails with LIMIT) or copied (LIMIT), equals none, and compares as equal below this
 * level. It bounds all recursion here; RV_JSON_DEPTH_MAX is what the outside may send. */
enum { RV_JSON_NESTING_MAX = 1024 };

/* One value, 16 bytes, immutable once built and freely shared: a new array may hold old items.
 * All that it points to lives on an arena or in text that outlives it. A number is either the text
 * it was written with (exact, `computed` false) or a double that an expression made. */
struct rv_json {
    uint8_t type;  /* enum rv_json_type */
    bool truth;    /* RV_JSON_BOOL */
    bool computed; /* RV_JSON_NUMBER: `real` holds it, not `text` */
    uint32_t len;  /* bytes of text, or how many items or members */
    union {
        const char *text; /* string: UTF-8 without escapes, may hold NUL; number: as written */
        double real;
        const struct rv_json *items;
        const struct rv_json_member *members; /* in the order written; no key twice */
    } u;
};

struct rv_json_member {
    struct rv_json key; /* RV_JSON_STRING */
    struct rv_json value;
};

/* Where and why a text is no JSON. */
struct rv_json_fault {
    size_t offset;       /* of the offending byte */
    uint32_t line;       /* from 1 */
    uint32_t column;     /* from 1, in bytes */
    const char *message; /* static: names what was expected or which limit was passed */
};

/* RFC 8259, strictly: one value, UTF-8 valid, no lone surrogates, no duplicate keys, nesting at
 * most `depth_max`. Duplicate keys are the one thing that scan does not look for.
 * INVALID or LIMIT with *ret_fault filled (may be NULL). Reads `text` only. */
RV_CHECK enum rv_err rv_json_scan(struct rv_str text, unsigned depth_max,
                                  struct rv_json_fault *ret_fault);

/* As scan, and builds the tree. Strings without escapes and all numbers point into `text`, which
 * must outlive the tree. MEMORY or LIMIT also when the arena says no. */
RV_CHECK enum rv_err rv_json_parse(struct rv_arena *arena, struct rv_str text, unsigned depth_max,
                                   struct rv_json *ret_value, struct rv_json_fault *ret_fault);

/* Appends compact JSON. A computed number is written with the fewest digits that read back the same
 * (integers up to 1e17 without exponent, others from 0.0001 on);
 * NaN as null, infinities as +-1.7976931348623157e308. */
void rv_json_write(struct rv_buf *buf, const struct rv_json *value);
/* Object members sorted by key, recursively: the form that is hashed. */
void rv_json_write_canonical(struct rv_buf *buf, const struct rv_json *value);
/* Appends `text` as a JSON string with quotes; invalid UTF-8 becomes U+FFFD. */
void rv_json_write_string(struct rv_buf *buf, struct rv_str text);

/* NULL when the value is no object or has no such member. */
const struct rv_json *rv_json_get(const struct rv_json *object, struct rv_str key);
/* By RFC 6901 pointer ("/a/0/b"); NULL when there is nothing. */
const struct rv_json *rv_json_at(const struct rv_json *value, struct rv_str pointer);
/* Appends one reference token to a pointer under construction, escaping ~ and /. */
void rv_json_pointer_add(struct rv_buf *pointer, struct rv_str token);

/* The string, or an absent one for any other type (or NULL). */
struct rv_str rv_json_str(const struct rv_json *value);
/* The number as a double; 0 for any other type. */
double rv_json_real(const struct rv_json *value);
/* True and the integer if the value is a number with an integer's value within int64. */
bool rv_json_int(const struct rv_json *value, int64_t *ret_number);

struct rv_json rv_json_null(void);
struct rv_json rv_json_bool(bool truth);
struct rv_json rv_json_of_real(double real);
/* The digits are written on the arena; exact. On an exhausted arena: null. */
struct rv_json rv_json_of_int(struct rv_arena *arena, int64_t number);
/* Borrows `text`, which must be valid UTF-8 and shorter than 4 GiB. */
struct rv_json rv_json_of_str(struct rv_str text);

/* Same type and same value: numbers as rv_json_compare_numbers, objects whatever the order of their
 * members. NaN equals nothing. */
bool rv_json_equal(const struct rv_json *a, const struct rv_json *b);
/* < 0, 0 or > 0. A number is what it is written as: a text by all its digits, a computed one by
 * those that rv_json_write gives it (an infinite one is beyond all texts). So different integers
 * above 2^53 differ, and 1, 1.0 and 1e0 are the same. NaN comes before all others and equals
 * itself. */
int rv_json_compare_numbers(const struct rv_json *a, const struct rv_json *b);
/* jq's total order: null < false < true < numbers < strings < arrays < objects (jq manual, sort);
 * NaN before all other numbers and equal to itself. */
int rv_json_compare(const struct rv_json *a, const struct rv_json *b);
/* The same for trees that an expression made: since parts may be shared, a small one can stand for
 * more values than could ever be visited. About a unit of `*fuel` is taken for each value and each
 * 64 bytes of text. Below 0 the walk was given up, and its result means nothing. */
bool rv_json_equal_within(const struct rv_json *a, const struct rv_json *b, int64_t *fuel);
int rv_json_compare_within(const struct rv_json *a, const struct rv_json *b, int64_t *fuel);
/* A copy that owns everything it points to on `arena`. A null with MEMORY or LIMIT on failure. */
RV_CHECK enum rv_err rv_json_copy(struct rv_arena *arena, const struct rv_json *value,
                                  struct rv_json *ret_value);

#endif
